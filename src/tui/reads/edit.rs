//! Reads the newest edit from the history: its diff, its flips with reasons, and what the revision no longer plans.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexSet;

use crate::clock::Clock;
use crate::compare::{StateChange, StateComparison, compare_with_earlier, unified_diff};
use crate::event::{EventKind, RunHeader};
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellName, CellResult, Digest, Outcome, ScoreBounds, pluralize};
use crate::record::{
    DecisionStanding, EvalEditKind, History, HistoryEntry, RecordedCell, RunStore, State,
    StateDecision,
};
use crate::run;
use crate::tui::state::cells::FlipSide;
use crate::tui::state::edit_report::{
    DecisionBefore, EditReport, EditedFile, EvalName, EvalRename, FileChange, NOTHING_MOVED,
    RecordedEdit, RecordedFlip, RemovedDecision,
};
use crate::workspace::{Env, Workspace};

/// The largest number of flips whose reasons are read. A reason is read from the log of its run.
const MAX_REASONS: usize = 500;

/// Reads the newest edit: the newest entry of the history against the one before, or the files against the newest entry
/// if they changed while no workbench was open. `None` if there is no edit.
pub(crate) fn read_edit(
    store: &RunStore,
    workspace: &Arc<Workspace>,
    (registry, env, clock): (&EvalTypeRegistry, &Env, &Arc<dyn Clock>),
) -> Option<RecordedEdit> {
    let history = History::read(store, &workspace.root);
    let newest = history.newest()?;
    let revision = read_revision(workspace, registry, env, clock)?;
    if newest.revision != revision {
        return describe_outside_edit(&history, newest, workspace);
    }
    let at = find_base(history.entries())?;
    let (base, earlier) = (&history.entries()[at], &history.entries()[..at]);
    let compared = compare_with_earlier(earlier, &base.state, &newest.state);
    Some(describe_entry(&history, base, newest, &compared, workspace))
}

/// Returns the revision of the workspace's files.
fn read_revision(
    workspace: &Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
) -> Option<Digest> {
    let mut revision = None;
    // The header is the first fact, so the transcripts need not be read.
    let mut take = |batch: run::OutlineBatch| {
        for fact in batch.facts {
            if let EventKind::RunStarted(header) = fact {
                revision = Some(header.revision_digest());
            }
        }
        false
    };
    run::outline_run(Arc::clone(workspace), registry, env, clock, &mut take).ok()?;
    revision
}

/// Returns the position of the entry before the newest edit. An entry that left verdicts to be judged and judged none is
/// continued by the next one.
fn find_base(entries: &[HistoryEntry]) -> Option<usize> {
    let mut at = entries.len().checked_sub(2)?;
    while at > 0 {
        let (before, entry) = (&entries[at - 1], &entries[at]);
        let waits = entry.judged == 0 && count_pending(&entry.state) > count_pending(&before.state);
        if !waits {
            break;
        }
        at -= 1;
    }
    Some(at)
}

fn count_pending(state: &State) -> usize {
    let pending = |one: &&StateDecision| one.standing == DecisionStanding::Pending;
    state.decisions().filter(pending).count()
}

/// Describes the newest entry.
fn describe_entry(
    history: &History,
    base: &HistoryEntry,
    newest: &HistoryEntry,
    compared: &StateComparison,
    workspace: &Workspace,
) -> RecordedEdit {
    let reasons = history.read_results(
        compared
            .flips
            .iter()
            .take(MAX_REASONS)
            .flat_map(StateChange::cells),
    );
    let flips = compared.flips.iter().filter_map(|change| {
        Some(RecordedFlip {
            name: change.name.clone(),
            before: to_side(&change.before, &reasons)?,
            after: to_side(&change.after, &reasons)?,
            arithmetic: change.cause.format_arithmetic(),
        })
    });
    let added = compared.added.iter().filter_map(|one| {
        let outcome = one.outcome()?;
        Some((newest.state.name(one), outcome))
    });
    let removed = compared.removed.iter().map(|one| RemovedDecision {
        name: base.state.name(one),
        row: None,
        outcome: one.outcome(),
    });
    let renames = find_renames(newest);
    let (old_texts, new_texts) = (read_texts(history, base), read_texts(history, newest));
    // An error is not a verdict, so its decision waits for one, too.
    let is_error = |one: &&StateDecision| {
        let outcome = one.outcome();
        outcome.is_some_and(|outcome| outcome.is_error() && outcome != Outcome::CheckError)
    };
    let failed = newest.state.decisions().filter(is_error).count();
    let pending = count_pending(&newest.state) + failed;
    let wait = if pending == 1 { "waits" } else { "wait" };
    RecordedEdit {
        report: EditReport {
            is_edit: true,
            is_restored: true,
            files: diff_texts(&old_texts, &new_texts, workspace),
            base_texts: old_texts,
            base_bounds: read_bounds(base.header(), &renames),
            removed: removed.collect(),
            // The next edit continues one that still waits for its judging.
            touched_evals: if pending > 0 && newest.judged == 0 {
                let edits = newest.edits.iter();
                edits
                    .map(|edit| format!("{}/{}", edit.rubric, edit.eval))
                    .collect()
            } else {
                IndexSet::new()
            },
            not_judged: match pending {
                // First verdicts can't flip, so the report lists them instead.
                0 if compared.flips.is_empty()
                    && renames.is_empty()
                    && compared.added.iter().all(|one| one.outcome().is_none()) =>
                {
                    Some(NOTHING_MOVED.to_owned())
                }
                0 => None,
                many => Some(format!("{} {wait} for R", pluralize(many as u64, "cell"))),
            },
            renames,
            replaced: find_replaced(newest),
            ..EditReport::default()
        },
        flips: flips.collect(),
        first_verdicts: added.collect(),
        cells_before: list_cells_before(history, &base.state, &newest.state),
    }
}

/// Lists the recorded cells of the judged decisions whose question the edit changed.
fn list_cells_before(history: &History, base: &State, newest: &State) -> Vec<DecisionBefore> {
    let is_judged =
        |state: &State, one: &StateDecision| state.eval(one).judged && !one.cells.is_empty();
    let then: HashMap<CellName, &StateDecision> = base
        .decisions()
        .filter(|one| is_judged(base, one))
        .map(|one| (base.name(one), one))
        .collect();
    let now = newest.decisions().filter(|one| is_judged(newest, one));
    now.filter_map(|one| {
        let name = newest.name(one);
        let before = then.get(&name)?;
        let is_edited = base.eval(before).digest != newest.eval(one).digest;
        let run_cell = |cell: &RecordedCell| (history.run_of(*cell).id.clone(), cell.cell);
        is_edited.then(|| DecisionBefore {
            name,
            cells: before.cells.iter().map(run_cell).collect(),
        })
    })
    .collect()
}

/// Describes an edit of the files that no run has recorded.
fn describe_outside_edit(
    history: &History,
    newest: &HistoryEntry,
    workspace: &Workspace,
) -> Option<RecordedEdit> {
    let old_texts = read_texts(history, newest);
    // As a run would record them: the texts of the recorded revision have no secrets.
    let files = workspace.masked_files().into_iter();
    let new_texts: HashMap<PathBuf, Arc<str>> = files.map(|file| (file.path, file.text)).collect();
    let files = diff_texts(&old_texts, &new_texts, workspace);
    if files.is_empty() {
        return None;
    }
    Some(RecordedEdit {
        report: EditReport {
            is_edit: true,
            is_restored: true,
            files,
            base_bounds: read_bounds(newest.header(), &[]),
            base_texts: old_texts,
            not_judged: Some("edited since the last run, nothing judged yet".to_owned()),
            ..EditReport::default()
        },
        flips: Vec::new(),
        first_verdicts: Vec::new(),
        cells_before: Vec::new(),
    })
}

fn to_side(
    decision: &StateDecision,
    reasons: &HashMap<RecordedCell, CellResult>,
) -> Option<FlipSide> {
    let outcome = decision.outcome()?;
    // The first cell that voted for the outcome explains it.
    let results = decision.cells.iter().filter_map(|cell| reasons.get(cell));
    let found = results
        .clone()
        .find(|result| result.outcome == outcome)
        .or_else(|| results.clone().next());
    let explanation = found.map_or("", |result| {
        result.error.as_deref().unwrap_or(&result.explanation)
    });
    Some(FlipSide {
        outcome,
        score: decision.score(),
        explanation: Arc::from(explanation),
    })
}

/// Returns the evals that the entry renamed, with the numbers of their verdicts.
fn find_renames(newest: &HistoryEntry) -> Vec<EvalRename> {
    let state = &newest.state;
    let mut verdicts: HashMap<(&str, &str), u64> = HashMap::new();
    for one in state.decisions().filter(|one| one.passed().is_some()) {
        let spec = state.eval(one);
        let name = (state.rubric_id(spec), spec.id.as_str());
        *verdicts.entry(name).or_default() += 1;
    }
    let edits = newest.edits.iter().filter_map(|edit| {
        let EvalEditKind::Renamed { from } = &edit.kind else {
            return None;
        };
        let (rubric, eval) = from.split_once('/').unwrap_or((&edit.rubric, from));
        let verdicts = verdicts.get(&(&*edit.rubric, &*edit.eval));
        Some(EvalRename {
            from: EvalName {
                rubric: rubric.to_owned(),
                eval: eval.to_owned(),
            },
            to: EvalName {
                rubric: edit.rubric.clone(),
                eval: edit.eval.clone(),
            },
            verdicts: verdicts.copied().unwrap_or_default(),
        })
    });
    edits.collect()
}

/// Returns the evals that the entry probably renamed and edited at once.
fn find_replaced(newest: &HistoryEntry) -> Vec<EvalRename> {
    let edits = newest.edits.iter().filter_map(|edit| {
        let EvalEditKind::New { perhaps: Some(old) } = &edit.kind else {
            return None;
        };
        let name = |eval: &str| EvalName {
            rubric: edit.rubric.clone(),
            eval: eval.to_owned(),
        };
        Some(EvalRename {
            from: name(old),
            to: name(&edit.eval),
            verdicts: 0,
        })
    });
    edits.collect()
}

/// Returns the score bounds of a revision, by the evals' names now.
fn read_bounds(header: &RunHeader, renames: &[EvalRename]) -> HashMap<EvalName, ScoreBounds> {
    // The first new name of an eval counts, so insert it last.
    let renames = renames.iter().rev();
    let renames = renames.map(|rename| (&rename.from, &rename.to));
    let renames: HashMap<&EvalName, &EvalName> = renames.collect();
    let evals = header.evals.iter().map(|spec| {
        let rubric = header.rubrics.get(spec.rubric as usize);
        let name = EvalName {
            rubric: rubric.map_or_else(String::new, |rubric| rubric.id.clone()),
            eval: spec.id.clone(),
        };
        let bounds = ScoreBounds::from_decision_settings(&spec.decision_settings);
        let new_name = renames.get(&name).copied().cloned();
        (new_name.unwrap_or(name), bounds)
    });
    evals.collect()
}

/// Returns the texts of the files of a revision. A text that cannot be read is absent.
fn read_texts(history: &History, entry: &HistoryEntry) -> HashMap<PathBuf, Arc<str>> {
    let header = entry.header();
    let Some(run) = history.runs().iter().find(|run| run.id == header.run) else {
        return HashMap::new();
    };
    let snapshots = header.snapshots.iter().filter_map(|file| {
        let text = super::read_text(&run.dir, &file.blob).ok()?;
        Some((file.path.clone(), text))
    });
    snapshots.collect()
}

/// Compares the files of two revisions, without labels, which determine no verdict.
fn diff_texts(
    old: &HashMap<PathBuf, Arc<str>>,
    new: &HashMap<PathBuf, Arc<str>>,
    workspace: &Workspace,
) -> Vec<EditedFile> {
    let mut paths: Vec<&PathBuf> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let labels: HashSet<PathBuf> = workspace
        .label_places
        .iter()
        .map(|place| workspace.root.join(&*place.file))
        .chain([workspace.labels_file_path()])
        .collect();
    let mut files = Vec::new();
    for path in paths {
        let (was, is) = (old.get(path), new.get(path));
        if was == is || labels.contains(&workspace.root.join(path)) {
            continue;
        }
        let text = |side: Option<&Arc<str>>| side.cloned().unwrap_or_default();
        files.push(EditedFile {
            path: path.clone(),
            diff: unified_diff(path, &text(was), &text(is)).into(),
            change: match (was, is) {
                (None, _) => FileChange::New,
                (_, None) => FileChange::Deleted,
                _ => FileChange::Saved,
            },
        });
    }
    files
}
