//! A save: the rubric is swapped, what it touched is judged again, what flipped is told.
//!
//! What code decides is decided at once; judges wait for quiet, free ones for all that was touched, others for the focused
//! cell alone. A run of an earlier save that has asked nobody yet is superseded by a save of the same evals.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::rest::costly;
use super::touched::{self, How, Touched};
use super::{examples, frozen, labels};
use crate::compare::unified_diff;
use crate::diag::Diagnostic;
use crate::event::{ParentCause, ParentRun};
use crate::model::RunId;
use crate::run::CachePolicy;
use crate::tui::effect::{Effect, RunOrder};
use crate::tui::model::cells::Cells;
use crate::tui::model::notices::Level;
use crate::tui::model::pane::Pane;
use crate::tui::model::runs::{Run, Stage};
use crate::tui::model::saves::{
    self, Caused, Edited, EvalName, JUDGE_QUIET, PIECES, Report, Waiting, summary,
};
use crate::tui::model::{Model, Place};
use crate::tui::widget::flow::Scroll;
use crate::workspace::Workspace;

/// The largest text whose diff is worked out here, in bytes: a keypress must not wait for it.
const MAX_DIFF: usize = 128 << 10;
/// Touched rubrics beyond this share one run, which may decide a few checks more than it must.
const MAX_RUNS: usize = 4;

/// Everything loads again.
pub(super) fn reloaded(
    model: &mut Model,
    workspace: Arc<Workspace>,
    changed: &[PathBuf],
) -> Vec<Effect> {
    let others = labels::reloaded(model, &workspace, changed);
    if others.is_empty() && !changed.is_empty() && model.workspace().is_some() {
        // What was written here is no news.
        if !model.saves.problems.is_empty() {
            mended(model, true);
        }
        model.place = Place::Workspace(workspace);
        return Vec::new();
    }
    let changed = others.as_slice();
    mended(model, changed.is_empty());
    let Some(old) = model.workspace().map(Arc::clone) else {
        // It did not load when it was opened.
        model.place = Place::Workspace(Arc::clone(&workspace));
        let mut effects: Vec<Effect> = examples::opened(model, &workspace).into_iter().collect();
        effects.extend(look_anew(model, workspace));
        return effects;
    };
    if changed.is_empty() {
        return Vec::new();
    }
    model.place = Place::Workspace(Arc::clone(&workspace));
    let gone = touched::gone(&old, &workspace);
    let mut touched = touched::touched(&old, &workspace);
    let stays = touched.is_empty() && gone == 0 && cells_stay(&old, &workspace);
    let before = before(model, &old, &workspace, stays);
    if let Some(base) = &before {
        touched::since(base, &old, &workspace, &mut touched, |name| {
            holds(model, name)
        });
    }
    report(model, (&old, &workspace), before, changed, &touched, gone);
    // First of all.
    let exam = examples::saved(model, &old, &workspace, &touched);
    let mut effects: Vec<Effect> = exam.into_iter().collect();
    if !stays {
        // As decided before the save: what it moves is told by the runs it starts.
        effects.extend(look_anew(model, Arc::clone(&old)));
    }
    if model.replay.is_some() {
        let said = "a file was saved: the live cells take it, the replay stays (q goes back)";
        model.notices.tell(model.now, Level::Info, said);
    }
    if touched.is_empty() {
        if model.replay.is_none() {
            let said = model.report().map(|report| summary(&report));
            model
                .notices
                .tell(model.now, Level::Info, said.unwrap_or_default());
        }
        return effects;
    }
    // Only where nobody reads: the focused pane stays where it is.
    if model.ui.focus == Pane::Cells && model.replay.is_none() {
        model.ui.tab = Pane::Changes;
    }
    if model.saves.paused {
        model.saves.missed += 1;
        return effects;
    }
    effects.extend(judge_again(model, &touched));
    effects
}

/// What a save is compared with, where it goes on with the one before: a file that is written in pieces may load in
/// between without its last evals, and may be laid out anew by the editor after it was saved.
fn before(model: &Model, old: &Workspace, new: &Workspace, layout: bool) -> Option<Arc<Workspace>> {
    let report = model.saves.report.as_ref()?;
    let base = report.base.as_ref().filter(|_| report.number > 0)?;
    if model.now > report.at + PIECES {
        return None;
    }
    let back = report.lost && touched::back(base, old, new);
    (back || layout).then(|| Arc::clone(base))
}

/// Whether all that is known of an eval was decided by it as it was, so that nothing is left to judge.
fn holds(model: &Model, name: &EvalName) -> bool {
    let cells = &model.live.cells;
    let of = |at: u32| {
        let eval = cells.evals.get(at as usize);
        eval.is_some_and(|eval| eval.rubric == name.rubric && eval.id == name.eval)
    };
    let mut rows = cells.rows.iter().filter(|row| of(row.eval)).peekable();
    rows.peek().is_some() && rows.all(|row| row.decision.is_some() && row.stale.is_none())
}

/// Begins to tell what a save moved, or goes on with it.
fn report(
    model: &mut Model,
    (old, new): (&Arc<Workspace>, &Arc<Workspace>),
    before: Option<Arc<Workspace>>,
    changed: &[PathBuf],
    touched: &[Touched],
    gone: usize,
) {
    let saves = &mut model.saves;
    saves.number += 1;
    saves.figure = None;
    let known = saves.report.take().filter(|_| before.is_some());
    let base = before.unwrap_or_else(|| Arc::clone(old));
    let mut report = known.unwrap_or_else(|| {
        saves.selected = 0;
        saves.scroll = Scroll::top();
        Report {
            first: saves.number,
            ..Report::default()
        }
    });
    report.number = saves.number;
    report.at = model.now;
    for path in changed {
        let edited = edited(path, &base, new);
        match report.files.iter_mut().find(|file| file.path == *path) {
            Some(file) => *file = edited,
            None => report.files.push(edited),
        }
    }
    for name in touched
        .iter()
        .map(|t| format!("{}/{}", t.name.rubric, t.name.eval))
    {
        if !report.touched.contains(&name) {
            report.touched.push(name);
        }
    }
    report.examples = None;
    report.frozen = None;
    report.paused = saves.paused && !touched.is_empty();
    report.lost = gone > 0;
    report.rest = if touched.is_empty() {
        touched::otherwise(&base, new, touched::gone(&base, new)).or(report.rest)
    } else {
        None
    };
    report.base = Some(base);
    saves.report = Some(report);
}

/// Whether nothing that is not an eval's own changed what cells there are or what stands beside them.
fn cells_stay(old: &Workspace, new: &Workspace) -> bool {
    old.transcripts == new.transcripts
        && old.field_maps == new.field_maps
        && old.labels == new.labels
}

/// Asks for the cells and the board as they are now.
fn look_anew(model: &mut Model, decided_by: Arc<Workspace>) -> Vec<Effect> {
    model.generation += 1;
    let generation = model.generation;
    let Some(workspace) = model.workspace().map(Arc::clone) else {
        return Vec::new();
    };
    vec![
        Effect::Outline {
            generation,
            workspace: Arc::clone(&workspace),
        },
        Effect::ReadBoard {
            generation,
            workspace,
            decided_by,
        },
    ]
}

/// What was told of earlier saves is over. `alone`: nothing else will be told now.
fn mended(model: &mut Model, alone: bool) {
    let problems = std::mem::take(&mut model.saves.problems);
    let toast = model.notices.toast(model.now);
    if toast.is_some_and(|notice| notice.level == Level::Info) {
        model.notices.dismiss();
    }
    if let Some(first) = problems.first()
        && alone
    {
        let file = first.file.display();
        let said = format!("{file} loads again");
        model.notices.tell(model.now, Level::Info, said);
    }
}

fn edited(path: &Path, old: &Workspace, new: &Workspace) -> Edited {
    let text = |workspace: &Workspace| {
        let mut files = workspace.files.iter();
        let found = files.find(|(p, _)| p == path);
        found.map(|(_, text)| Arc::clone(text))
    };
    let (old, new) = (text(old), text(new));
    let how = match (&old, &new) {
        (None, Some(_)) => saves::How::New,
        (Some(_), None) => saves::How::Deleted,
        _ => saves::How::Saved,
    };
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let diff = if old.len().max(new.len()) > MAX_DIFF {
        format!("(too large to compare here: {} bytes)\n", new.len())
    } else {
        unified_diff(path, &old, &new)
    };
    Edited {
        path: path.to_owned(),
        diff: diff.into(),
        how,
    }
}

/// Starts what is to be judged at once, and lets the rest wait.
fn judge_again(model: &mut Model, touched: &[Touched]) -> Vec<Effect> {
    let mut waiting = model.saves.waiting.take().unwrap_or(Waiting {
        due: model.now,
        names: Vec::new(),
        evals: Vec::new(),
        save: 0,
    });
    let names: Vec<EvalName> = touched.iter().map(|t| t.name.clone()).collect();
    let mut effects = supersede(model, &names, &mut waiting);
    let of = |wanted: fn(How) -> bool| -> Vec<EvalName> {
        let of = touched.iter().filter(|t| wanted(t.how));
        of.map(|t| t.name.clone()).collect()
    };
    let checks = of(|how| how == How::Check);
    effects.extend(start_evals(model, &checks, CachePolicy::Use));
    let changed = touched.iter().filter(|t| t.decides && t.how != How::Check);
    model
        .saves
        .redecided
        .extend(changed.map(|t| t.name.clone()));
    // Free judges are asked for all of it, and answer from past verdicts where these hold.
    let known = touched.iter().filter(|t| match t.how {
        How::Decides => true,
        How::Costly => model.saves.redecided.contains(&t.name),
        How::Check | How::Free => false,
    });
    let known: Vec<EvalName> = known
        .filter(|t| recorded(&model.live.cells, &t.name))
        .map(|t| t.name.clone())
        .collect();
    effects.extend(start_evals(model, &known, CachePolicy::SkipUncached));
    waiting.evals.extend(of(|how| how == How::Free));
    waiting.evals.sort();
    waiting.evals.dedup();
    effects.extend(costly(model, touched, &mut waiting));
    if !waiting.evals.is_empty() || !waiting.names.is_empty() {
        waiting.due = model.now + JUDGE_QUIET;
        waiting.save = model.saves.number;
        model.saves.waiting = Some(waiting);
    }
    effects
}

/// Cancels runs of earlier saves over the same evals that have asked nobody yet; what else they were over waits again.
fn supersede(model: &mut Model, touched: &[EvalName], waiting: &mut Waiting) -> Vec<Effect> {
    let runs = &mut model.live.runs.map;
    let mut effects = Vec::new();
    model.saves.caused.retain(|caused| {
        let Some(run) = runs.get_mut(&caused.ticket) else {
            return false;
        };
        if !matches!(run.stage, Stage::Ordered | Stage::Running) {
            return false;
        }
        let asked = run.has_asked();
        let same = caused.evals.iter().any(|eval| touched.contains(eval));
        if asked || !same {
            return true;
        }
        run.stage = Stage::Cancelling;
        effects.push(Effect::CancelRun(caused.ticket));
        let left = caused.evals.iter().filter(|eval| !touched.contains(eval));
        waiting.evals.extend(left.cloned());
        waiting.names.extend(caused.names.iter().cloned());
        false
    });
    effects
}

/// Whether an eval has verdicts that can be decided otherwise.
fn recorded(cells: &Cells, name: &EvalName) -> bool {
    cells.rows.iter().any(|row| {
        let eval = cells.evals.get(row.eval as usize);
        row.verdict.is_some()
            && eval.is_some_and(|eval| eval.rubric == name.rubric && eval.id == name.eval)
    })
}

/// A moment came: judge cells that waited for quiet start.
pub(super) fn time_passed(model: &mut Model) -> Vec<Effect> {
    let now = model.now;
    if model.examples.judging() {
        return Vec::new();
    }
    let Some(mut waiting) = model.saves.waiting.take_if(|waiting| waiting.due <= now) else {
        return Vec::new();
    };
    if let Some(workspace) = model.workspace() {
        // What a later save took away cannot be judged.
        let there = |name: &EvalName| touched::has(workspace, name);
        waiting.evals.retain(there);
        let all_there = |name: &String| evals_of(std::slice::from_ref(name)).iter().all(there);
        waiting.names.retain(all_there);
    }
    let mut effects = start_evals(model, &waiting.evals, CachePolicy::Use);
    if !waiting.names.is_empty() {
        effects.push(start(model, Some(waiting.names), None, CachePolicy::Use));
    }
    frozen::freeze(model, &mut effects);
    effects
}

/// Runs over whole evals: one a rubric.
fn start_evals(model: &mut Model, evals: &[EvalName], cache: CachePolicy) -> Vec<Effect> {
    filters(evals)
        .into_iter()
        .map(|filter| start(model, None, Some(filter), cache))
        .collect()
}

/// Evals as a filter, and which of them it is about.
pub(super) type Part = (String, Vec<EvalName>);

fn filters(evals: &[EvalName]) -> Vec<Part> {
    let mut rubrics: BTreeMap<&str, Vec<&EvalName>> = BTreeMap::new();
    for eval in evals {
        rubrics.entry(&eval.rubric).or_default().push(eval);
    }
    let text = |rubrics: &[&str], evals: &[&str]| {
        let quoted = |ids: &[&str]| format!("\"{}\"", ids.join(","));
        format!("rubric:{} eval:{}", quoted(rubrics), quoted(evals))
    };
    if rubrics.len() > MAX_RUNS {
        let names: Vec<&str> = rubrics.keys().copied().collect();
        let mut ids: Vec<&str> = evals.iter().map(|e| &*e.eval).collect();
        ids.sort_unstable();
        ids.dedup();
        return vec![(text(&names, &ids), evals.to_vec())];
    }
    rubrics
        .into_iter()
        .map(|(rubric, evals)| {
            let ids: Vec<&str> = evals.iter().map(|e| &*e.eval).collect();
            (text(&[rubric], &ids), evals.into_iter().cloned().collect())
        })
        .collect()
}

/// An order over the workspace as it is now.
pub(super) fn order(
    model: &mut Model,
    only: Option<Vec<String>>,
    part: Option<Part>,
    cache: CachePolicy,
) -> Option<RunOrder> {
    let workspace = Arc::clone(model.workspace()?);
    let newest: Option<RunId> = {
        let mut runs = model.live.runs.map.values().rev();
        runs.find_map(|run| run.id.clone())
            .or_else(|| model.live.cells.runs.iter().max().cloned())
    };
    Some(RunOrder {
        ticket: model.ticket(),
        workspace,
        only: only.map(Arc::new),
        where_: part.map(|(filter, _)| filter),
        but: None,
        judge: None,
        cache,
        frozen: None,
        parent: newest.map(|run| ParentRun {
            run,
            cell: None,
            turn: None,
            cause: ParentCause::Save,
        }),
    })
}

/// Starts a run of this save: it is known from now on.
fn start(
    model: &mut Model,
    only: Option<Vec<String>>,
    part: Option<Part>,
    cache: CachePolicy,
) -> Effect {
    let (evals, names) = (
        part.as_ref().map(|(_, evals)| evals.clone()),
        only.clone().unwrap_or_default(),
    );
    let Some(order) = order(model, only, part, cache) else {
        return Effect::LookAgain;
    };
    let save = model.saves.number;
    let run = Run {
        save: Some(save),
        ..Run::default()
    };
    model.live.runs.map.insert(order.ticket, run);
    let evals = evals.unwrap_or_else(|| evals_of(&names));
    model.saves.caused.push(Caused {
        ticket: order.ticket,
        evals,
        names,
    });
    if let Some(report) = &mut model.saves.report {
        report.running.push(order.ticket);
    }
    Effect::StartRun(order)
}

/// The evals that decisions are of.
fn evals_of(names: &[String]) -> Vec<EvalName> {
    let mut evals: Vec<EvalName> = names
        .iter()
        .filter_map(|name| name.parse::<crate::model::CellName>().ok())
        .map(|name| EvalName {
            rubric: name.rubric,
            eval: name.eval,
        })
        .collect();
    evals.sort();
    evals.dedup();
    evals
}

/// Something does not load: the last good state stays.
pub(super) fn failed(model: &mut Model, problems: Vec<Diagnostic>) -> Vec<Effect> {
    model.saves.problems = problems;
    Vec::new()
}

/// The editor was left: what it saved is looked at, whether or not anything was heard of it.
pub(super) fn editor_closed(model: &mut Model, how: Result<(), String>) -> Vec<Effect> {
    if let Err(why) = how {
        let said = format!("the editor: {why}");
        model.notices.tell(model.now, Level::Error, said);
    }
    vec![Effect::LookAgain]
}

/// `A`: whether a save judges again.
pub(super) fn toggle_auto(model: &mut Model) -> Vec<Effect> {
    let saves = &mut model.saves;
    saves.paused = !saves.paused;
    let missed = std::mem::take(&mut saves.missed);
    if saves.paused && saves.waiting.take().is_some() {
        saves.missed = 1;
    }
    let said = match (saves.paused, missed) {
        (true, _) => "auto is off: a save only marks verdicts stale (A turns it on)".to_owned(),
        (false, 0) => "auto is on: a save judges again what it touched".to_owned(),
        (false, missed) => {
            let saves = crate::model::pluralize(missed, "save");
            format!("auto is on; {saves} came meanwhile: R judges what is stale")
        }
    };
    model.notices.tell(model.now, Level::Info, said);
    Vec::new()
}

#[cfg(test)]
mod tests;
