//! The names of states, and the baseline.
//!
//! Responsible for `@`, `@N` and `@baseline`, and for the file next to the runs that names the baseline of each
//! workspace. Does not name runs; the run store does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{History, HistoryEntry};
use crate::model::RunId;
use crate::record::{RecordError, RunStore};
use crate::storage;

/// The file in the folder of runs. Its name begins with a dot, because other names there are runs.
pub(in crate::record) const BASELINES_FILE: &str = ".baselines.json";
/// The file that writers lock, because the file itself is replaced.
pub(in crate::record) const BASELINES_LOCK_FILE: &str = ".baselines.lock";
/// The largest file that dicta reads.
const MAX_BASELINES_BYTES: u64 = 1 << 20;

/// The baseline of each workspace: the first run of the entry.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Baselines(BTreeMap<PathBuf, RunId>);

/// Returns the entry with this name.
pub(super) fn resolve<'h>(
    history: &'h History,
    name: &str,
) -> Result<&'h HistoryEntry, RecordError> {
    let entries = history.entries();
    let unknown = |why: String| Err(RecordError::UnknownState(why));
    let back = match name.strip_prefix('@') {
        Some("" | "1") => 1,
        Some("baseline") => {
            return match (history.baseline(), &history.lost_baseline) {
                (Some(entry), _) => Ok(entry),
                (None, Some(run)) => unknown(format!(
                    "run {} of the baseline is gone; `dicta history --baseline @` sets another one",
                    run.letters()
                )),
                (None, None) => unknown(history.baseline_problem.clone().unwrap_or_else(|| {
                    "no baseline is set; `dicta history --baseline @` sets it".to_owned()
                })),
            };
        }
        Some(number) => match number.parse::<usize>() {
            Ok(number) if number > 0 => number,
            _ => {
                return unknown(format!(
                    "`{name}` names no state: @ is the newest, @2 the one before the last edit, @baseline the baseline"
                ));
            }
        },
        None => {
            return unknown(format!("`{name}` names no state: its name begins with @"));
        }
    };
    match entries.len().checked_sub(back) {
        Some(at) => Ok(&entries[at]),
        None => unknown(match entries.len() {
            0 => "there is no state yet; `dicta run` records the first one".to_owned(),
            1 => format!(
                "there is no `{name}`: the history has one state; an edited rubric and `dicta run` add the next one"
            ),
            n => format!("there is no `{name}`: the history has {n} states"),
        }),
    }
}

/// Finds the entry of the baseline. An unreadable file is a problem.
pub(super) fn read_baseline(history: &mut History, store: &RunStore, root: &Path) {
    let run = match read_file(store) {
        Ok(mut baselines) => baselines.0.remove(root),
        Err(why) => {
            let problem = format!(
                "{}: {why}; no baseline is known until you repair or delete this file",
                store.dir.join(BASELINES_FILE).display()
            );
            history.problems.push(problem.clone());
            history.baseline_problem = Some(problem);
            return;
        }
    };
    let Some(run) = run else { return };
    let mut entries = history.entries.iter();
    history.baseline = entries.position(|entry| entry.runs.iter().any(|one| one.id == run));
    // `dicta runs prune` keeps the run, but a user can delete its folder.
    history.lost_baseline = history.baseline.is_none().then_some(run);
}

/// Sets the baseline and writes the file.
pub(super) fn write_baseline(
    history: &mut History,
    store: &RunStore,
    root: &Path,
    number: usize,
) -> Result<(), RecordError> {
    let at = number.checked_sub(1);
    let entry = at.and_then(|at| history.entries.get(at)).ok_or_else(|| {
        RecordError::UnknownState(format!("the history has no state with the number {number}"))
    })?;
    let Some(run) = entry.runs.first() else {
        return Err(RecordError::UnknownState(format!(
            "state {number} has no run"
        )));
    };
    let run = run.id.clone();
    change_file(store, |baselines| {
        baselines.0.insert(root.to_owned(), run);
    })?;
    history.baseline = at;
    history.lost_baseline = None;
    Ok(())
}

/// Removes the baseline and writes the file.
pub(super) fn remove_baseline(
    history: &mut History,
    store: &RunStore,
    root: &Path,
) -> Result<(), RecordError> {
    change_file(store, |baselines| {
        baselines.0.remove(root);
    })?;
    history.baseline = None;
    history.lost_baseline = None;
    Ok(())
}

fn change_file(store: &RunStore, change: impl FnOnce(&mut Baselines)) -> Result<(), RecordError> {
    let path = store.dir.join(BASELINES_FILE);
    let failed = |why| RecordError::Io {
        path: path.clone(),
        why,
    };
    // Two processes may set the baselines of two workspaces at once.
    let _lock =
        storage::FileLock::acquire_private(&store.dir.join(BASELINES_LOCK_FILE)).map_err(failed)?;
    let mut baselines = read_file(store).map_err(failed)?;
    change(&mut baselines);
    let text = serde_json::to_string_pretty(&baselines).map_err(|why| failed(why.into()))?;
    storage::replace_private_file(&path, text.as_bytes()).map_err(failed)
}

fn read_file(store: &RunStore) -> std::io::Result<Baselines> {
    let path = store.dir.join(BASELINES_FILE);
    match storage::read_optional_text(&path, MAX_BASELINES_BYTES)? {
        Some(text) => Ok(serde_json::from_str(&text)?),
        None => Ok(Baselines::default()),
    }
}
