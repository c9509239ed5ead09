//! The run that `dicta run --resume` continues.
//!
//! Responsible for its name, and for the note about a run of an earlier revision. Does not run it.

use std::path::PathBuf;

use super::CommandCx;
use super::error::CommandError;
use super::history::name_entry;
use crate::model::RunId;
use crate::record::{History, RecordedRun, RunNeed, RunStore};
use crate::run;
use crate::workspace::Workspace;

/// Returns the name of the run that `--resume` continues. `@` is the newest run that has something to continue, without
/// recorded samples.
pub(super) fn find_resumed_run(
    name: &str,
    workspace: &Workspace,
    cx: &CommandCx,
) -> Result<String, CommandError> {
    let open = |extra_dirs: Vec<PathBuf>| RunStore {
        dir: workspace.runs.clone(),
        extra_dirs,
        key: run::find_record_key(&cx.env),
    };
    let store = open(workspace.extra_run_folders.clone());
    // The samples of the demo were recorded elsewhere, so their files are not here.
    let own = open(Vec::new());
    if !name.starts_with('@') {
        // The run itself reports a name that means no run.
        if let Ok(run) = store.resolve(name) {
            if is_sample(&run, workspace) {
                return Err(CommandError::usage(format!(
                    "--resume {name}: this run is a recorded sample, and its files are not here; `dicta replay {} --demo` \
                     plays it",
                    run.id.letters()
                )));
            }
            note_earlier_revision(&store, workspace, &run.id, cx);
        }
        return Ok(name.to_owned());
    }
    let run = own.resolve_for(name, RunNeed::Resume)?;
    // Another run may be newer, so state which one this is.
    if own.newest().is_some_and(|newest| newest.id != run.id) {
        let started = run.read_header()?.started;
        cx.streams.print_note(&format!(
            "--resume {name}: run {} of {}",
            run.id.letters(),
            started.0
        ));
    }
    note_earlier_revision(&store, workspace, &run.id, cx);
    Ok(run.id.0)
}

/// Returns true if a run is in a folder of recorded samples. A path can also name a run outside all folders of the
/// workspace.
fn is_sample(run: &RecordedRun, workspace: &Workspace) -> bool {
    let Some(folder) = run.dir.parent().and_then(|dir| dir.canonicalize().ok()) else {
        return false;
    };
    let mut sample_folders = workspace.extra_run_folders.iter();
    sample_folders.any(|samples| samples.canonicalize().is_ok_and(|dir| dir == folder))
}

/// Prints a note if a run judged an earlier revision than the newest one, because its results then leave `@` unchanged.
fn note_earlier_revision(store: &RunStore, workspace: &Workspace, run: &RunId, cx: &CommandCx) {
    let history = History::read(store, &workspace.root);
    let entries = history.entries();
    let mut earlier = entries.iter().rev().skip(1);
    let entry = earlier.find(|entry| entry.runs.iter().any(|one| one.id == *run));
    if let Some(entry) = entry {
        cx.streams.print_note(&format!(
            "--resume: run {} judged state {} ({}), and the rubric was edited since. Its results are added to that \
             state, and @ stays",
            run.letters(),
            entry.number,
            name_entry(entries.len(), entry.number)
        ));
    }
}
