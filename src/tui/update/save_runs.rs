//! The runs that a save starts: their orders, their filters, and the judging that waits until the user stops saving.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{replayed_evidence, touched_evals};
use crate::event::{ParentCause, ParentRun};
use crate::model::{CellName, RunId};
use crate::run::CachePolicy;
use crate::tui::effect::Effect;
use crate::tui::run_order::RunOrder;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::runs::TrackedRun;
use crate::tui::state::saves::{EvalName, SaveRun};

/// The maximum number of runs per save. With more touched rubrics, one run covers all of them and may repeat a few
/// checks.
const MAX_RUNS_PER_SAVE: usize = 4;

/// Starts what a save left to do, if it is due: the judging that waited, and the record of the revision.
pub(super) fn handle_time_passed(app: &mut App) -> Vec<Effect> {
    let now = app.now;
    // The examples are judged before anything else.
    if app.examples.is_judging() {
        return Vec::new();
    }
    // Nothing runs while the user decides about a changed workspace.
    if app.asks_about_reload() {
        return Vec::new();
    }
    let mut effects = start_due_judging(app);
    // After the judging, because any run under the revision records it.
    if app.saves.record_due.take_if(|due| *due <= now).is_some() {
        effects.extend(record_revision(app));
    }
    effects
}

/// Records the revision with a run that judges nothing, unless another run records it. So each edit has an entry in the
/// history.
fn record_revision(app: &mut App) -> Option<Effect> {
    let revision = Some(app.saves.revision);
    let mut runs = app.live_session.runs.by_ticket.values();
    if runs.any(|run| run.revision == revision) {
        return None;
    }
    let order = build_save_order(app, Some(Vec::new()), None, CachePolicy::SkipUncached)?;
    let run = TrackedRun {
        save_number: Some(app.saves.number),
        edit: Some(app.saves.edit),
        revision,
        only_records: true,
        ..TrackedRun::default()
    };
    app.live_session.runs.by_ticket.insert(order.ticket, run);
    Some(Effect::StartRun(order))
}

/// Starts the judging that waited, if it is due.
fn start_due_judging(app: &mut App) -> Vec<Effect> {
    let now = app.now;
    let Some(mut waiting) = app
        .saves
        .pending_judging
        .take_if(|waiting| waiting.due <= now)
    else {
        return Vec::new();
    };
    if let Some(workspace) = app.workspace() {
        // A later save may have removed evals that were queued.
        let known = touched_evals::list_names(workspace);
        let exists = |name: &EvalName| known.contains(&(&*name.rubric, &*name.eval));
        waiting.evals.retain(exists);
        let all_exist = |name: &String| {
            // A decision belongs to an eval, and is removed with it.
            parse_eval_names(std::slice::from_ref(name))
                .iter()
                .all(exists)
        };
        waiting.decisions.retain(all_exist);
    }
    let mut effects = start_eval_runs(app, &waiting.evals, CachePolicy::Use);
    // These decisions have judges that cost money, so a preview decides if dicta asks first.
    if !waiting.decisions.is_empty()
        && let Some(order) = build_save_order(app, Some(waiting.decisions), None, CachePolicy::Use)
    {
        effects.push(Effect::PreviewRun(order));
    }
    replayed_evidence::set_replayed_evidence(app, &mut effects);
    let previewed = effects.iter().filter_map(|effect| match effect {
        Effect::PreviewRun(order) => Some(order.clone()),
        _ => None,
    });
    app.awaiting_preview.extend(previewed);
    effects
}

/// Starts an order of a save whose cost is known.
pub(super) fn start_previewed(app: &mut App, mut order: RunOrder) -> Effect {
    // A later save may have changed weights while the order waited. It asks the same questions, so the order stays, but its
    // run must record the newest revision: `record_revision` leaves that to a run of this revision.
    if let Some(workspace) = app.workspace() {
        order.workspace = Arc::clone(workspace);
    }
    let names = order.only.as_deref().cloned().unwrap_or_default();
    track_and_start(app, order, parse_eval_names(&names), names)
}

/// Removes the orders of earlier saves that wait for a preview or an answer. Returns their decisions.
pub(super) fn drop_unanswered(app: &mut App) -> Vec<String> {
    let mut names = Vec::new();
    app.awaiting_preview.retain(|order| {
        let dropped = order.is_of_save;
        if dropped {
            names.extend(order.only.as_deref().cloned().unwrap_or_default());
        }
        !dropped
    });
    app.overlays.retain(|overlay| match overlay {
        Overlay::ConfirmCost { order, .. } if order.is_of_save => {
            names.extend(order.only.as_deref().cloned().unwrap_or_default());
            false
        }
        _ => true,
    });
    names
}

/// Lets the orders of the user that wait for a preview or an answer judge the newest workspace. If the save changed the
/// revision, their cost is counted again, so that no answer is about other calls.
pub(super) fn renew_user_orders(app: &mut App, changes_revision: bool) -> Vec<Effect> {
    let Some(workspace) = app.workspace().map(Arc::clone) else {
        return Vec::new();
    };
    // A branch continues a recorded judge trace, which no save changes.
    let is_renewed = |order: &RunOrder| !order.is_of_save && order.branch.is_none();
    if !changes_revision {
        for order in &mut app.awaiting_preview {
            if is_renewed(order) {
                order.workspace = Arc::clone(&workspace);
            }
        }
        for overlay in &mut app.overlays {
            if let Overlay::ConfirmCost { order, .. } = overlay
                && is_renewed(order)
            {
                order.workspace = Arc::clone(&workspace);
            }
        }
        return Vec::new();
    }
    let mut orders: Vec<RunOrder> = app
        .awaiting_preview
        .extract_if(.., |order| is_renewed(order))
        .collect();
    let asked = app.overlays.extract_if(
        ..,
        |overlay| matches!(overlay, Overlay::ConfirmCost { order, .. } if is_renewed(order)),
    );
    orders.extend(asked.filter_map(|overlay| match overlay {
        Overlay::ConfirmCost { order, .. } => Some(order),
        _ => None,
    }));
    let mut effects = Vec::new();
    let known = touched_evals::list_names(&workspace);
    for mut order in orders {
        if let Some(only) = &order.only {
            let names = only.iter().filter(|name| {
                let evals = parse_eval_names(std::slice::from_ref(*name));
                let mut evals = evals.iter();
                evals.all(|eval| known.contains(&(&*eval.rubric, &*eval.eval)))
            });
            let names: Vec<String> = names.cloned().collect();
            if names.is_empty() {
                let why = "nothing was run: the save removed the evals of the run that waited";
                app.notices.push(app.now, NoticeLevel::Warning, why);
                continue;
            }
            order.only = Some(Arc::new(names));
        }
        let why = "a file was saved: the cost of the run that waits is counted again";
        app.notices.push(app.now, NoticeLevel::Info, why);
        // The result of the preview that may still be computed is about the old workspace.
        order.ticket = app.next_ticket();
        order.workspace = Arc::clone(&workspace);
        app.awaiting_preview.push(order.clone());
        effects.push(Effect::PreviewRun(order));
    }
    effects
}

/// Starts runs over whole evals, one run per rubric.
pub(super) fn start_eval_runs(
    app: &mut App,
    evals: &[EvalName],
    cache: CachePolicy,
) -> Vec<Effect> {
    build_filters(evals)
        .into_iter()
        .map(|filter| start_save_run(app, None, Some(filter), cache))
        .collect()
}

/// A filter that selects whole evals.
pub(super) struct EvalFilter {
    /// The filter as text, such as `rubric:"x" eval:"y,z"`.
    pub(super) text: String,
    /// The evals that it selects.
    pub(super) evals: Vec<EvalName>,
}

pub(super) fn build_filters(evals: &[EvalName]) -> Vec<EvalFilter> {
    let mut rubrics: BTreeMap<&str, Vec<&EvalName>> = BTreeMap::new();
    for eval in evals {
        rubrics.entry(&eval.rubric).or_default().push(eval);
    }
    let text = |rubrics: &[&str], evals: &[&str]| {
        // Ids are quoted, because they may contain characters with a meaning in a filter.
        let quoted = |ids: &[&str]| format!("\"{}\"", ids.join(","));
        format!("rubric:{} eval:{}", quoted(rubrics), quoted(evals))
    };
    if rubrics.len() > MAX_RUNS_PER_SAVE {
        let names: Vec<&str> = rubrics.keys().copied().collect();
        // The filter selects each of these ids in each rubric, so it may also select untouched evals.
        let mut ids: Vec<&str> = evals.iter().map(|e| &*e.eval).collect();
        ids.sort_unstable();
        ids.dedup();
        return vec![EvalFilter {
            text: text(&names, &ids),
            evals: evals.to_vec(),
        }];
    }
    rubrics
        .into_iter()
        .map(|(rubric, evals)| {
            let ids: Vec<&str> = evals.iter().map(|e| &*e.eval).collect();
            EvalFilter {
                text: text(&[rubric], &ids),
                evals: evals.into_iter().cloned().collect(),
            }
        })
        .collect()
}

/// Builds an order over the current workspace.
pub(super) fn build_save_order(
    app: &mut App,
    only: Option<Vec<String>>,
    part: Option<EvalFilter>,
    cache: CachePolicy,
) -> Option<RunOrder> {
    let workspace = Arc::clone(app.workspace()?);
    let newest: Option<RunId> = {
        let mut runs = app.live_session.runs.by_ticket.values().rev();
        runs.find_map(|run| run.id.clone())
            // A run id begins with its time, so the largest is the newest.
            .or_else(|| app.live_session.cells.runs.iter().max().cloned())
    };
    Some(RunOrder {
        ticket: app.next_ticket(),
        workspace,
        only: only.map(Arc::new),
        filter: part.map(|part| part.text),
        except: None,
        judge: None,
        cache,
        replayed_evidence: None,
        recorded_only: false,
        branch: None,
        repeat: None,
        parent: newest.map(|run| ParentRun {
            run,
            cell: None,
            turn: None,
            cause: ParentCause::Save,
        }),
        measures_noise: false,
        is_of_save: true,
    })
}

/// Orders a run for the current save and tracks it.
pub(super) fn start_save_run(
    app: &mut App,
    only: Option<Vec<String>>,
    part: Option<EvalFilter>,
    cache: CachePolicy,
) -> Effect {
    let (evals, names) = (
        part.as_ref().map(|part| part.evals.clone()),
        only.clone().unwrap_or_default(),
    );
    let Some(order) = build_save_order(app, only, part, cache) else {
        // Without a workspace nothing can be judged; reading the files again is harmless.
        return Effect::RescanFiles;
    };
    let evals = evals.unwrap_or_else(|| parse_eval_names(&names));
    track_and_start(app, order, evals, names)
}

fn track_and_start(
    app: &mut App,
    order: RunOrder,
    evals: Vec<EvalName>,
    names: Vec<String>,
) -> Effect {
    let save = app.saves.number;
    let run = TrackedRun {
        save_number: Some(save),
        edit: Some(app.saves.edit),
        revision: Some(app.saves.revision),
        ..TrackedRun::default()
    };
    app.live_session.runs.by_ticket.insert(order.ticket, run);
    // A later save over these evals may cancel the run.
    app.saves.save_runs.push(SaveRun {
        ticket: order.ticket,
        evals,
        decisions: names,
    });
    if let Some(report) = &mut app.saves.report {
        report.running_runs.push(order.ticket);
    }
    Effect::StartRun(order)
}

/// Returns the evals of these decisions.
pub(super) fn parse_eval_names(names: &[String]) -> Vec<EvalName> {
    let mut evals: Vec<EvalName> = names
        .iter()
        .filter_map(|name| name.parse::<CellName>().ok())
        .map(|name| EvalName {
            rubric: name.rubric,
            eval: name.eval,
        })
        .collect();
    evals.sort();
    evals.dedup();
    evals
}
