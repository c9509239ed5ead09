//! Reads the history for the progress screen, counts it, and carries out its changes of rubric files.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexSet;
use tokio_util::sync::CancellationToken;

use super::{Runtime, run_store_for};
use crate::clock::box_task;
use crate::compare::{
    FileDiff, compare_recorded_entry, compare_recorded_states, compare_with_noise, find_noisy_flip,
    unified_diff,
};
use crate::diag::yaml::YamlLimits;
use crate::event::{BlobSource as _, RunHeader};
use crate::model::{Blob, CellName, make_visible};
use crate::record::{
    EvalPath, FolderBlobs, History, HistoryEntry, HistoryReader, NoiseRecords, RecordedCell,
    RunLister,
};
use crate::rubric::{add_example, set_bound};
use crate::storage::{read_regular_file, read_regular_text};
use crate::tui::history_counts;
use crate::tui::history_view::{
    ComparedStates, HistoryView, ReadState, RestorePlan, RubricEdit, RubricEditOrder, Shared,
    SharedLabels, StateCell, StatePair,
};
use crate::tui::msg::Msg;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::label_draws::read_draws;
use crate::workspace::rubric_write::{RubricFileChange, is_restorable_rubric, write_rubric_files};
use crate::workspace::{Env, Workspace};

/// The history that was read last. Reasons and states are read with it, so that they fit the shown rows.
pub(super) type LastHistory = Arc<Mutex<Option<Arc<History>>>>;

/// The reader of the history. It has its own list of runs, so that its first read does not delay the reads after a save.
#[derive(Default)]
pub(super) struct ProgressReader {
    lister: RunLister,
    history: HistoryReader,
}

impl Runtime {
    /// Reads the history of the workspace. A newer order replaces one that waits: while the screen is open, the end of each
    /// run orders one.
    pub(super) fn read_history(&self, number: u64, workspace: Arc<Workspace>) {
        let (env, clock) = (self.deps.env.clone(), Arc::clone(&self.deps.clock));
        let last = Arc::clone(&self.last_history);
        let reader = Arc::clone(&self.progress_reader);
        let past = self.past_verdicts.clone();
        self.history_reads.submit(
            &self.outbox,
            move |_| {
                let store = run_store_for(&workspace, &env);
                let history = {
                    let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
                    let ProgressReader { lister, history } = &mut *reader;
                    history.read(lister, &store, &workspace.root, &*clock)
                };
                let noise = past.read_noise(&workspace, &env);
                let view = to_view(&history, noise);
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(history));
                Some(Msg::HistoryRead {
                    number,
                    view: Ok(view.into()),
                })
            },
            move |why| Msg::HistoryRead {
                number,
                view: Err(why),
            },
        );
    }

    /// Counts the entries. A newer order cancels an older one.
    pub(super) fn count_history(
        &mut self,
        number: u64,
        view: Shared<HistoryView>,
        labels: SharedLabels,
        workspace: Option<Arc<Workspace>>,
    ) {
        self.history_cancel.cancel();
        self.history_cancel = CancellationToken::new();
        let stop = self.history_cancel.clone();
        let out = self.outbox.clone();
        let working = self.outbox.tasks.start_task();
        let cache = Arc::clone(&self.count_cache);
        tokio::spawn(box_task(async move {
            // The earlier count ends at its next entry, because it is cancelled.
            let mut cache = cache.lock_owned().await;
            if stop.is_cancelled() {
                return;
            }
            let counting = tokio::task::spawn_blocking(move || {
                // Without its draws, every label is one that a person picked. `dicta agree` reports a broken file.
                let draws =
                    workspace.and_then(|workspace| read_draws(&workspace.labels_file_path()).ok());
                let draws = draws.unwrap_or_default();
                history_counts::count_entries(&view, &labels, &draws, &mut cache, &mut |facts| {
                    let msg = Msg::HistoryCounted { number, facts };
                    // The queue of runs waits for the screen, so a long history does not delay keys.
                    !stop.is_cancelled() && out.runs.blocking_send(msg).is_ok()
                });
            });
            // After a panic, which the log has, the other entries stay without counts.
            let _panicked = counting.await;
            drop(working);
        }));
    }

    /// Compares two states and the texts of their files.
    pub(super) fn compare_history_states(
        &self,
        number: u64,
        view: Shared<HistoryView>,
        labels: SharedLabels,
        pair: StatePair,
    ) {
        self.comparisons.submit(
            &self.outbox,
            move |_| {
                let states = view.entry(pair.before).zip(view.entry(pair.after));
                let compared = states.map(|(before, after)| {
                    let states = (&*before.state, &*after.state);
                    let find_run = |number| view.find_run(number);
                    // Next to each other, the newer state shows what its edit changed.
                    let comparison = Some(&view.entries[..])
                        .filter(|_| pair.before + 1 == pair.after)
                        .and_then(|entries| compare_recorded_entry(entries, pair.before, find_run))
                        .unwrap_or_else(|| compare_recorded_states(states.0, states.1, find_run));
                    let noise = &view.noise;
                    let find = |flip| find_noisy_flip(flip, states, noise);
                    ComparedStates {
                        noisy_flips: comparison.flips.iter().map(find).collect(),
                        flip_noise: compare_with_noise(states.0, states.1, &labels, noise),
                        files: diff_revisions(&view, before, after),
                        comparison,
                    }
                });
                Some(Msg::StatesCompared {
                    number,
                    pair,
                    compared: compared.map(Arc::new).ok_or_else(|| "no such state".into()),
                })
            },
            move |why| Msg::StatesCompared {
                number,
                pair,
                compared: Err(why),
            },
        );
    }

    /// Reads the reasons of verdicts.
    pub(super) fn read_reasons(&self, number: u64, cells: Vec<RecordedCell>) {
        let last = self.newest_history();
        let failed = cells.clone();
        self.spawn_blocking(
            move || {
                let results = last.map(|last| last.read_results(cells.iter().copied()));
                let results = results.unwrap_or_default();
                let reason = |cell: &RecordedCell| {
                    let result = results.get(cell)?;
                    let why = result.error.as_ref().unwrap_or(&result.explanation);
                    Some(why.clone())
                };
                let reasons = cells
                    .iter()
                    .map(|cell| (*cell, reason(cell).unwrap_or_default()));
                Msg::ReasonsRead {
                    number,
                    reasons: reasons.collect(),
                }
            },
            move |why| Msg::ReasonsRead {
                number,
                reasons: failed
                    .into_iter()
                    .map(|cell| (cell, why.to_string()))
                    .collect(),
            },
        );
    }

    /// Reads a state as the events of a run.
    pub(super) fn read_state(&self, number: usize, select: Option<CellName>) {
        let last = self.newest_history();
        self.spawn_blocking(
            move || {
                let read = last.as_deref().and_then(|history| {
                    let entry = history.entries().get(number.checked_sub(1)?)?;
                    Some(to_read_state(history, entry, select))
                });
                Msg::StateRead {
                    number,
                    read: read
                        .ok_or_else(|| "the history has changed: open the screen again".into()),
                }
            },
            move |why| Msg::StateRead {
                number,
                read: Err(why),
            },
        );
    }

    /// Sets or removes the baseline.
    pub(super) fn set_baseline(&self, workspace: Arc<Workspace>, entry: Option<usize>) {
        let env = self.deps.env.clone();
        let last = Arc::clone(&self.last_history);
        self.spawn_blocking(
            move || Msg::BaselineSet {
                entry,
                done: write_baseline(&last, &workspace, &env, entry),
            },
            move |why| Msg::BaselineSet {
                entry,
                done: Err(why),
            },
        );
    }

    /// Writes a state to a file.
    pub(super) fn export_state(&self, workspace: Arc<Workspace>, entry: usize, output: PathBuf) {
        let export = Arc::clone(&self.deps.export);
        self.spawn_blocking(
            move || {
                // Paths that the screen shows are relative to the folder of the workspace.
                let output = workspace.root.join(output);
                let exported = export(&workspace.root, entry, &output);
                Msg::StateExported(exported.map_err(TaskFailure::new))
            },
            |why| Msg::StateExported(Err(why)),
        );
    }

    /// Finds the rubric files of a revision that differ from the current ones.
    pub(super) fn plan_restore(
        &self,
        workspace: Arc<Workspace>,
        view: Shared<HistoryView>,
        number: usize,
    ) {
        self.spawn_blocking(
            move || {
                let entry = view.entry(number);
                let plan = entry.map(|entry| compute_restore_plan(&workspace, &view, entry));
                Msg::RestorePlanned(plan.unwrap_or_else(|| Err("no such state".into())))
            },
            |why| Msg::RestorePlanned(Err(why)),
        );
    }

    /// Changes rubric files.
    pub(super) fn edit_rubrics(&self, workspace: Arc<Workspace>, order: RubricEditOrder) {
        let undoes = matches!(order, RubricEditOrder::Undo(_));
        self.spawn_blocking(
            move || Msg::RubricsWritten {
                undoes,
                written: carry_out_edit(&workspace, order),
            },
            move |why| Msg::RubricsWritten {
                undoes,
                written: Err(why),
            },
        );
    }

    fn newest_history(&self) -> Option<Arc<History>> {
        let last = self.last_history.lock();
        last.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn to_view(history: &History, noise: NoiseRecords) -> HistoryView {
    HistoryView {
        entries: history.entries().to_vec(),
        runs: history.runs().to_vec(),
        baseline: history.baseline().map(|entry| entry.number),
        problems: [history.problems(), history.damaged_runs()].concat(),
        noise: Arc::new(noise),
    }
}

fn write_baseline(
    last: &Mutex<Option<Arc<History>>>,
    workspace: &Workspace,
    env: &Env,
    entry: Option<usize>,
) -> Result<(), TaskFailure> {
    let store = run_store_for(workspace, env);
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let mut history = match &*last {
        Some(history) => History::clone(history),
        None => History::read(&store, &workspace.root),
    };
    match entry {
        Some(entry) => history.set_baseline(&store, &workspace.root, entry),
        None => history.remove_baseline(&store, &workspace.root),
    }
    .map_err(TaskFailure::new)?;
    *last = Some(Arc::new(history));
    Ok(())
}

fn to_read_state(history: &History, entry: &HistoryEntry, select: Option<CellName>) -> ReadState {
    let cells = entry.state.decisions().map(|decision| {
        let cells = decision.cells.iter().map(|cell| StateCell {
            run: history.run_of(*cell).id.clone(),
            cell: cell.cell,
        });
        (entry.state.name(decision), cells.collect())
    });
    let identities = entry.state.identities.iter();
    let later_names = identities.zip(&entry.state.header.evals);
    let later_names = later_names.filter_map(|(identity, spec)| {
        let name = EvalPath {
            rubric: entry.state.rubric_id(spec).to_owned(),
            eval: spec.id.clone(),
        };
        Some((name, identity.later_name.clone()?))
    });
    ReadState {
        number: entry.number,
        cells: cells.collect::<HashMap<_, _>>().into(),
        events: history.state_events(entry).into(),
        dir: find_run_dir(history.runs(), entry).unwrap_or_default(),
        later_names: later_names.collect(),
        select,
    }
}

/// Returns the folder of the run with the texts of an entry: the last one, whose header the state has.
fn find_run_dir(runs: &[crate::record::RecordedRun], entry: &HistoryEntry) -> Option<PathBuf> {
    let id = entry.runs.last().map_or(&entry.header().run, |run| &run.id);
    let run = runs.iter().find(|run| run.id == *id)?;
    Some(run.dir.clone())
}

/// The texts of the files of a revision.
struct RevisionTexts<'h> {
    header: &'h RunHeader,
    /// The files by path.
    files: HashMap<&'h Path, &'h Blob>,
    blobs: Option<FolderBlobs>,
}

impl<'h> RevisionTexts<'h> {
    fn new(view: &HistoryView, entry: &'h HistoryEntry) -> Self {
        let dir = find_run_dir(&view.runs, entry);
        let header = entry.header();
        // The first file of a path counts, so insert it last.
        let files = header.snapshots.iter().rev();
        Self {
            header,
            files: files.map(|file| (&*file.path, &file.blob)).collect(),
            blobs: dir.map(|dir| FolderBlobs::new(&dir)),
        }
    }

    fn find(&self, path: &Path) -> Option<&'h Blob> {
        self.files.get(path).copied()
    }

    /// Returns the text of a file; `None` if it is not at hand. A file that the revision does not have is empty.
    fn read(&self, blob: Option<&Blob>) -> Option<String> {
        let Some(blob) = blob else {
            return Some(String::new());
        };
        let bytes = self.blobs.as_ref()?.get(&blob.hash).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Compares the files of two revisions. Rubrics come first. Files of labels are not part of a revision.
fn diff_revisions(
    view: &HistoryView,
    before: &HistoryEntry,
    after: &HistoryEntry,
) -> Vec<FileDiff> {
    let (old, new) = (
        RevisionTexts::new(view, before),
        RevisionTexts::new(view, after),
    );
    let rubrics = new.header.rubrics.iter().chain(&old.header.rubrics);
    let others = new.header.snapshots.iter().chain(&old.header.snapshots);
    let mut paths: IndexSet<&PathBuf> = IndexSet::new();
    for path in rubrics
        .map(|rubric| &rubric.path)
        .chain(others.map(|file| &file.path))
    {
        let is_data = path
            .extension()
            .is_some_and(|end| end == "jsonl" || end == "csv");
        if !is_data {
            paths.insert(path);
        }
    }
    let diff = |path: &PathBuf| {
        let (older, newer) = (old.find(path), new.find(path));
        // Equal blobs have equal texts, so they need no read.
        if older == newer {
            return None;
        }
        let texts = old.read(older).zip(new.read(newer));
        let diff = texts.map(|(old, new)| unified_diff(path, &old, &new));
        Some(FileDiff {
            path: path.clone(),
            diff: diff.unwrap_or_default(),
        })
    };
    paths.into_iter().filter_map(diff).collect()
}

fn compute_restore_plan(
    workspace: &Workspace,
    view: &HistoryView,
    entry: &HistoryEntry,
) -> Result<RestorePlan, TaskFailure> {
    let texts = RevisionTexts::new(view, entry);
    let show = |path: &Path| make_visible(&path.display().to_string(), false).into_owned();
    let (mut changes, mut kept) = (Vec::new(), Vec::new());
    for rubric in &texts.header.rubrics {
        let path = &rubric.path;
        if !is_restorable_rubric(workspace, path) {
            kept.push(format!(
                "{} is not a rubric file of this workspace",
                show(path)
            ));
            continue;
        }
        let Some(text) = texts.find(path).and_then(|blob| texts.read(Some(blob))) else {
            return Err(TaskFailure::new(format!(
                "the recording does not have the text of {}",
                show(path)
            )));
        };
        let now = read_regular_file(
            &workspace.root.join(path),
            YamlLimits::GENERATED.file_bytes(),
        )
        .ok();
        let Ok(before) = now.map(String::from_utf8).transpose() else {
            kept.push(format!("{} is not a text file now", show(path)));
            continue;
        };
        if before.as_deref() != Some(text.as_str()) {
            changes.push(RubricFileChange {
                path: path.clone(),
                before: before.map(Into::into),
                after: Some(text.into()),
            });
        }
    }
    let rubrics = texts.header.rubrics.iter();
    let rubrics: HashSet<&Path> = rubrics.map(|rubric| &*rubric.path).collect();
    let is_rubric = |path: &Path| rubrics.contains(path);
    for rubric in &workspace.rubrics {
        if !is_rubric(&rubric.path) {
            kept.push(format!("{} is newer and stays", show(&rubric.path)));
        }
    }
    // Other files can change verdicts too, so the user must know that they stay.
    // The recorded texts have no secrets.
    for file in &workspace.masked_files() {
        let differs = texts
            .find(&file.path)
            .is_some_and(|blob| *blob != Blob::from_bytes(file.text.as_bytes()));
        let is_data = file
            .path
            .extension()
            .is_some_and(|end| end == "jsonl" || end == "csv");
        if differs && !is_data && !is_rubric(&file.path) {
            kept.push(format!("{} differs and stays", show(&file.path)));
        }
    }
    Ok(RestorePlan {
        number: entry.number,
        changes,
        kept,
    })
}

fn carry_out_edit(
    workspace: &Workspace,
    order: RubricEditOrder,
) -> Result<RubricEdit, TaskFailure> {
    match order {
        RubricEditOrder::SetBound {
            path,
            eval,
            bound,
            value,
        } => {
            let file = workspace.root.join(&path);
            let refuse = |why: String| {
                let path = make_visible(&path.display().to_string(), false).into_owned();
                TaskFailure::new(format!("{path} stays as it is: {why}"))
            };
            let text = read_regular_text(&file, YamlLimits::GENERATED.file_bytes())
                .map_err(|error| refuse(error.to_string()))?;
            let text: Arc<str> = text.into();
            let edited = set_bound(&text, &path, &eval, bound, value)
                .map_err(|error| refuse(error.to_string()))?;
            let edit = RubricEdit {
                what: format!("{bound} {value} of {eval}"),
                changes: vec![RubricFileChange {
                    path: path.clone(),
                    before: Some(text),
                    after: Some(edited.into()),
                }],
            };
            write_rubric_files(workspace, &edit.changes).map_err(TaskFailure::new)?;
            Ok(edit)
        }
        RubricEditOrder::AddExample {
            path,
            eval,
            text,
            expects_pass,
        } => {
            let refuse = |why: String| {
                let path = make_visible(&path.display().to_string(), false).into_owned();
                TaskFailure::new(format!("{path} stays as it is: {why}"))
            };
            let before = read_regular_text(
                &workspace.root.join(&path),
                YamlLimits::GENERATED.file_bytes(),
            )
            .map_err(|error| refuse(error.to_string()))?;
            let before: Arc<str> = before.into();
            let edited = add_example(&before, &path, &eval, &text, expects_pass)
                .map_err(|error| refuse(error.to_string()))?;
            let expect = if expects_pass { "pass" } else { "fail" };
            let edit = RubricEdit {
                what: format!("an example of {eval} that expects {expect}"),
                changes: vec![RubricFileChange {
                    path: path.clone(),
                    before: Some(before),
                    after: Some(edited.into()),
                }],
            };
            write_rubric_files(workspace, &edit.changes).map_err(TaskFailure::new)?;
            Ok(edit)
        }
        RubricEditOrder::Write(edit) => {
            write_rubric_files(workspace, &edit.changes).map_err(TaskFailure::new)?;
            Ok(edit)
        }
        RubricEditOrder::Undo(edit) => {
            let reverse: Vec<RubricFileChange> =
                edit.changes.iter().map(RubricFileChange::reverse).collect();
            write_rubric_files(workspace, &reverse).map_err(TaskFailure::new)?;
            Ok(edit)
        }
    }
}
