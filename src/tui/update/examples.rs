//! Examples of evals. They are checked when a workspace opens and on every save, before anything else is judged.
//!
//! Examples that code decides are always checked. Judges are called only for evals that a save touched. The calls of
//! paid judges are estimated first, and dicta asks if they cost too much.

use std::collections::HashSet;
use std::sync::Arc;

use super::save_runs;
use super::touched_evals::{
    TouchKind, TouchedEval, classify_judged, has_same_examples, index_evals, is_judged, list_names,
};
use crate::model::pluralize;
use crate::rubric::{Eval, Rubric};
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::edit_report::{EvalName, summarize};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::workspace::Workspace;
use crate::workspace::lint::ExampleResult;

/// Checks the examples of a workspace that was opened.
pub(super) fn try_after_open(app: &mut App, workspace: &Arc<Workspace>) -> Vec<Effect> {
    start_trials(app, workspace, Vec::new())
        .into_iter()
        .collect()
}

/// Checks the examples after a save. Free judges are called for the evals that the save touched.
pub(super) fn try_after_save(
    app: &mut App,
    old: &Workspace,
    new: &Arc<Workspace>,
    touched: &[TouchedEval],
) -> Vec<Effect> {
    app.examples.misses_before_save = app.examples.misses().count();
    // This save makes the running judging obsolete, so its evals are judged again.
    let interrupted = std::mem::take(&mut app.examples.being_judged);
    let (mut judged, mut paid): (Vec<EvalName>, Vec<EvalName>) =
        interrupted.into_iter().partition(|name| is_free(name, new));
    let mut waiting: Vec<(&str, u64)> = Vec::new();
    let before = index_evals(old);
    let touched: HashSet<&EvalName> = touched.iter().map(|touched| &touched.name).collect();
    for (rubric, eval) in list_evals(new) {
        let name = eval_name(rubric, eval);
        let was = before.get(&(&*rubric.id, &*eval.id));
        let same = was.is_some_and(|was| has_same_examples(&was.examples, &eval.examples));
        // Examples whose eval and texts are unchanged keep their results.
        if !touched.contains(&name) && same || !is_judged(eval) {
            continue;
        }
        // The results belong to the eval before the save.
        app.examples.judged.remove(&name);
        if eval.examples.is_empty() || !eval.enabled {
            continue;
        }
        match classify_judged(rubric, eval, new) {
            (TouchKind::Free, _) if !app.saves.paused => judged.push(name),
            (TouchKind::Free, _) => {}
            (_, judge) => {
                paid.push(name);
                let judge = judge.unwrap_or("a judge");
                let many = eval.examples.len() as u64;
                match waiting.iter_mut().find(|(known, _)| *known == judge) {
                    Some((_, known)) => *known += many,
                    None => waiting.push((judge, many)),
                }
            }
        }
    }
    // An eval can be both interrupted and touched.
    for names in [&mut judged, &mut paid] {
        names.sort();
        names.dedup();
    }
    let known = list_names(new);
    let exists = |name: &EvalName| known.contains(&(&*name.rubric, &*name.eval));
    // The save may have removed an eval whose judging it interrupted.
    judged.retain(exists);
    paid.retain(exists);
    app.examples.judged.retain(|name, _| exists(name));
    app.examples.not_judged_reason = describe_unjudged(&waiting);
    app.examples.problem = None;
    // An open question is about the examples before the save.
    app.overlays
        .retain(|overlay| !matches!(overlay, Overlay::ConfirmExamples(_)));
    let mut effects: Vec<Effect> = start_trials(app, new, judged).into_iter().collect();
    // A question about the live workspace would appear to belong to the replay.
    if !paid.is_empty() && !app.saves.paused && app.replay.is_none() {
        effects.push(Effect::PreviewExamples {
            number: app.examples.number,
            workspace: Arc::clone(new),
            evals: paid,
        });
    }
    effects
}

/// Calls paid judges for the examples of these evals.
pub(super) fn judge_paid(
    app: &mut App,
    number: u64,
    workspace: Arc<Workspace>,
    evals: Vec<EvalName>,
) -> Vec<Effect> {
    app.examples.not_judged_reason = None;
    app.examples.being_judged.extend(evals.iter().cloned());
    vec![Effect::JudgeExamples {
        number,
        workspace,
        evals,
    }]
}

/// Returns true if all judges of the eval are free.
fn is_free(name: &EvalName, workspace: &Workspace) -> bool {
    let found = workspace.find_eval(&name.rubric, &name.eval);
    found.is_some_and(|(rubric, at)| {
        classify_judged(rubric, &rubric.evals[at], workspace).0 == TouchKind::Free
    })
}

/// Orders the check. Returns `None` if there are no examples and no earlier results to clear.
fn start_trials(
    app: &mut App,
    workspace: &Arc<Workspace>,
    judged: Vec<EvalName>,
) -> Option<Effect> {
    let examples = &mut app.examples;
    examples.number += 1;
    examples.fixed_by_save = false;
    examples.being_judged.clone_from(&judged);
    // Without examples nothing is checked, unless old results must disappear.
    let some = list_evals(workspace).any(|(_, eval)| !eval.examples.is_empty());
    if !some && examples.all_trials().next().is_none() {
        return None;
    }
    Some(Effect::TryExamples {
        number: examples.number,
        workspace: Arc::clone(workspace),
        judged,
    })
}

/// Stores the results of examples that code decides.
pub(super) fn handle_tried(app: &mut App, number: u64, trials: Vec<ExampleResult>) -> Vec<Effect> {
    // A newer check has started, and it judges these examples again.
    if number != app.examples.number {
        return Vec::new();
    }
    app.examples.checks = trials;
    announce_misses(app);
    Vec::new()
}

/// Stores the results of judges, and starts the judging that waited for them.
pub(super) fn handle_judged(
    app: &mut App,
    number: u64,
    evals: Vec<EvalName>,
    trials: Vec<ExampleResult>,
    problem: Option<String>,
) -> Vec<Effect> {
    // A newer check has started, and it judges these examples again.
    if number != app.examples.number {
        return Vec::new();
    }
    // Free and paid judges answer one after the other, so the other evals are still being judged.
    let answered: HashSet<EvalName> = evals.into_iter().collect();
    app.examples
        .being_judged
        .retain(|name| !answered.contains(name));
    for name in &answered {
        // Each eval of this answer gets new results, so its old ones are removed.
        app.examples.judged.remove(name);
    }
    for trial in trials {
        let name = EvalName {
            rubric: trial.rubric.clone(),
            eval: trial.eval.clone(),
        };
        app.examples.judged.entry(name).or_default().push(trial);
    }
    if let Some(why) = &problem {
        let notice = format!("examples could not be judged: {why}");
        app.notices.push(app.now, NoticeLevel::Warning, notice);
    }
    app.examples.problem = problem;
    announce_misses(app);
    // A run that a save ordered waits until the examples are judged.
    save_runs::handle_time_passed(app)
}

/// Shows a notice if examples miss, or if a save fixed all of them.
fn announce_misses(app: &mut App) {
    let examples = &mut app.examples;
    let misses = examples.describe_misses();
    // Judges may still report a miss, so the message waits for them.
    let all_fixed = misses.is_none() && examples.misses_before_save > 0 && !examples.is_judging();
    examples.fixed_by_save = all_fixed;
    let notice = match &misses {
        Some(_) => misses.clone(),
        None => app.examples.describe_passes().filter(|_| all_fixed),
    };
    if let Some(report) = &mut app.saves.report {
        report.examples.clone_from(&notice);
    }
    // A notice about the live workspace would appear to belong to the replay.
    let Some(notice) = notice.filter(|_| app.replay.is_none()) else {
        return;
    };
    let level = match misses {
        Some(_) => NoticeLevel::Warning,
        None => NoticeLevel::Info,
    };
    let report = app.saves.report.as_ref();
    // After a save, the message also says what the save changed.
    let notice = report.filter(|r| r.number > 0).map_or(notice, summarize);
    app.notices.push(app.now, level, notice);
}

fn describe_unjudged(by_judge: &[(&str, u64)]) -> Option<String> {
    let many: u64 = by_judge.iter().map(|(_, n)| n).sum();
    let names: Vec<_> = by_judge
        .iter()
        .map(|(judge, _)| crate::model::make_visible(judge, false))
        .collect();
    let wait = if many == 1 { "waits" } else { "wait" };
    (many > 0).then(|| {
        format!(
            "{} {wait}: {} may cost, `dicta check --examples` asks first",
            pluralize(many, "example"),
            names.join(" and ")
        )
    })
}

fn list_evals(workspace: &Workspace) -> impl Iterator<Item = (&Rubric, &Eval)> {
    workspace.rubrics.iter().flat_map(|rubric| {
        let evals = rubric.evals.iter();
        evals.map(move |eval| (&**rubric, eval))
    })
}

fn eval_name(rubric: &Rubric, eval: &Eval) -> EvalName {
    EvalName {
        rubric: rubric.id.clone(),
        eval: eval.id.clone(),
    }
}
