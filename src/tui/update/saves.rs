//! A save: the rubric is swapped, what it touched is judged again, what flipped is told.
//!
//! What code decides is decided at once; judges wait for quiet, free ones for all that was touched, others for the focused
//! cell alone. A run of an earlier save that has asked nobody yet is superseded by a save of the same evals.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::touched::{self, How, Touched};
use crate::compare::unified;
use crate::diag::Diagnostic;
use crate::event::{Parent, ParentCause};
use crate::model::RunId;
use crate::run::{CachePolicy, Preview};
use crate::tui::effect::{Effect, RunOrder};
use crate::tui::model::cells::{RowId, SlotState};
use crate::tui::model::notices::Level;
use crate::tui::model::pane::Pane;
use crate::tui::model::runs::{Run, Stage};
use crate::tui::model::saves::{Caused, EvalName, JUDGE_QUIET, Report, Waiting, rest, summary};
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
    mended(model);
    let Some(old) = model.workspace().map(Arc::clone) else {
        // It did not load when it was opened.
        model.place = Place::Workspace(workspace);
        return look_anew(model);
    };
    if changed.is_empty() {
        return Vec::new();
    }
    model.place = Place::Workspace(Arc::clone(&workspace));
    let touched = touched::touched(&old, &workspace);
    let gone = touched::gone(&old, &workspace);
    let saves = &mut model.saves;
    saves.number += 1;
    saves.selected = 0;
    saves.scroll = Scroll::top();
    saves.figure = None;
    saves.left = None;
    saves.report = Some(Report {
        number: saves.number,
        at: model.now,
        files: changed
            .iter()
            .map(|path| (path.clone(), diff(path, &old, &workspace)))
            .collect(),
        touched: touched
            .iter()
            .map(|t| format!("{}/{}", t.name.rubric, t.name.eval))
            .collect(),
        paused: saves.paused && !touched.is_empty(),
        rest: touched
            .is_empty()
            .then(|| touched::otherwise(&old, &workspace, gone))
            .flatten(),
        ..Report::default()
    });
    let mut effects = if touched.is_empty() && gone == 0 && cells_stay(&old, &workspace) {
        Vec::new()
    } else {
        look_anew(model)
    };
    if touched.is_empty() {
        let said = model.saves.report.as_ref().map(summary);
        model
            .notices
            .tell(model.now, Level::Info, said.unwrap_or_default());
        return effects;
    }
    // Only where nobody reads: the focused pane stays where it is.
    if model.ui.focus == Pane::Cells {
        model.ui.tab = Pane::Changes;
    }
    if model.saves.paused {
        model.saves.missed += 1;
        return effects;
    }
    effects.extend(judge_again(model, &touched));
    effects
}

/// Whether nothing that is not an eval's own changed what cells there are or what stands beside them.
fn cells_stay(old: &Workspace, new: &Workspace) -> bool {
    old.transcripts == new.transcripts && old.labels == new.labels
}

/// Asks for the cells and the board as they are now.
fn look_anew(model: &mut Model) -> Vec<Effect> {
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
        },
    ]
}

fn mended(model: &mut Model) {
    let problems = std::mem::take(&mut model.saves.problems);
    if let Some(first) = problems.first() {
        let file = first.file.display();
        let said = format!("{file} loads again");
        model.notices.tell(model.now, Level::Info, said);
    }
}

fn diff(path: &Path, old: &Workspace, new: &Workspace) -> Arc<str> {
    let text = |workspace: &Workspace| {
        let mut files = workspace.files.iter();
        let found = files.find(|(p, _)| p == path);
        found.map_or_else(|| Arc::from(""), |(_, text)| Arc::clone(text))
    };
    let (old, new): (Arc<str>, Arc<str>) = (text(old), text(new));
    if old.len().max(new.len()) > MAX_DIFF {
        return format!("(too large to compare here: {} bytes)\n", new.len()).into();
    }
    unified(path, &old, &new).into()
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
    effects.extend(start_evals(model, &checks));
    let known = decided(model, touched);
    if !known.is_empty() {
        effects.push(start(model, Some(known), None));
    }
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
        let asked = run.state.cells.iter().any(|cell| !cell.trace.is_empty());
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

/// The decisions with recorded verdicts that are only decided otherwise: taking them from past runs asks nobody.
fn decided(model: &Model, touched: &[Touched]) -> Vec<String> {
    let cells = &model.live.cells;
    let mut by_eval: BTreeMap<u32, bool> = BTreeMap::new();
    for (at, eval) in (0_u32..).zip(&cells.evals) {
        let found = touched
            .iter()
            .find(|t| t.name.rubric == eval.rubric && t.name.eval == eval.id);
        if let Some(How::Decides { needs_score }) = found.map(|t| t.how) {
            by_eval.insert(at, needs_score);
        }
    }
    if by_eval.is_empty() {
        return Vec::new();
    }
    let mut names = Vec::new();
    for (at, row) in (0_u32..).zip(&cells.rows) {
        let Some(needs_score) = by_eval.get(&row.eval) else {
            continue;
        };
        let recorded = !row.slots.is_empty()
            && row.slots.iter().all(|slot| {
                matches!(&slot.state, SlotState::Done { outcome, score, .. }
                    if outcome.is_verdict() && (score.is_some() || !needs_score))
            });
        if row.stale.is_none() && recorded {
            names.extend(cells.name(RowId(at)).map(|name| name.to_string()));
        }
    }
    names
}

/// Of a judge that costs only the focused cell waits; what the rest would take is asked and told.
fn costly(model: &mut Model, touched: &[Touched], waiting: &mut Waiting) -> Vec<Effect> {
    let costly: Vec<&Touched> = touched.iter().filter(|t| t.how == How::Costly).collect();
    let Some(judge) = costly.first().and_then(|t| t.judge.clone()) else {
        return Vec::new();
    };
    let cells = &model.live.cells;
    let hit = |row: RowId| {
        let eval = cells.evals.get(cells.row(row)?.eval as usize)?;
        costly
            .iter()
            .any(|t| t.name.rubric == eval.rubric && t.name.eval == eval.id)
            .then_some(())
    };
    let focused = cells.selected().filter(|row| hit(*row).is_some());
    let mut left: u64 = 0;
    for (at, row) in (0_u32..).zip(&cells.rows) {
        if focused != Some(RowId(at)) && hit(RowId(at)).is_some() {
            left += u64::try_from(row.slots.len()).unwrap_or(1).max(1);
        }
    }
    if let Some(name) = focused.and_then(|row| cells.name(row)) {
        let name = name.to_string();
        if !waiting.names.contains(&name) {
            waiting.names.push(name);
        }
    }
    if left == 0 {
        return Vec::new();
    }
    if let Some(report) = &mut model.saves.report {
        report.rest = Some(rest(left, &judge, None));
    }
    let names: Vec<EvalName> = costly.iter().map(|t| t.name.clone()).collect();
    let order = order(model, None, filters(&names).into_iter().next());
    model.saves.left = Some((left, judge));
    model.saves.figure = order.as_ref().map(|order| order.ticket);
    order.map(Effect::Preview).into_iter().collect()
}

/// What the rest would take is known.
pub(super) fn previewed(model: &mut Model, preview: Result<Preview, String>) -> Vec<Effect> {
    model.saves.figure = None;
    if let (Ok(preview), Some((left, judge)), Some(report)) =
        (preview, model.saves.left.take(), &mut model.saves.report)
        && let Some(of) = preview.judges.get(&judge)
    {
        // Of what would be asked, one part is the focused cell, which is judged anyway.
        let asked = of.cells.saturating_sub(of.cached).max(1);
        let part = left.min(asked) as f64 / asked as f64;
        report.rest = Some(rest(left, &judge, of.cost_usd.map(|usd| usd * part)));
    }
    Vec::new()
}

/// A moment came: judge cells that waited for quiet start.
pub(super) fn time_passed(model: &mut Model) -> Vec<Effect> {
    let now = model.now;
    let Some(waiting) = model.saves.waiting.take_if(|waiting| waiting.due <= now) else {
        return Vec::new();
    };
    let mut effects = start_evals(model, &waiting.evals);
    if !waiting.names.is_empty() {
        effects.push(start(model, Some(waiting.names), None));
    }
    effects
}

/// Runs over whole evals: one a rubric.
fn start_evals(model: &mut Model, evals: &[EvalName]) -> Vec<Effect> {
    filters(evals)
        .into_iter()
        .map(|filter| start(model, None, Some(filter)))
        .collect()
}

/// Evals as a filter, and which of them it is about.
type Part = (String, Vec<EvalName>);

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

fn order(model: &mut Model, only: Option<Vec<String>>, part: Option<Part>) -> Option<RunOrder> {
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
        judge: None,
        cache: CachePolicy::Use,
        frozen: None,
        parent: newest.map(|run| Parent {
            run,
            cell: None,
            turn: None,
            cause: ParentCause::Save,
        }),
    })
}

/// Starts a run of this save: it is known from now on.
fn start(model: &mut Model, only: Option<Vec<String>>, part: Option<Part>) -> Effect {
    let (evals, names) = (
        part.as_ref().map(|(_, evals)| evals.clone()),
        only.clone().unwrap_or_default(),
    );
    let Some(order) = order(model, only, part) else {
        return Effect::LookAgain;
    };
    let save = model.saves.number;
    let run = Run {
        cause: Some(ParentCause::Save),
        save: Some(save),
        since: model.now,
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
    let said = match (saves.paused, missed) {
        (true, _) => "auto is off: a save only marks verdicts stale (A turns it on)".to_owned(),
        (false, 0) => "auto is on: a save judges again what it touched".to_owned(),
        (false, missed) => {
            let saves = crate::model::counted(missed, "save");
            format!("auto is on; {saves} came meanwhile: R judges what is stale")
        }
    };
    model.notices.tell(model.now, Level::Info, said);
    Vec::new()
}

#[cfg(test)]
#[path = "saves_tests.rs"]
mod tests;
