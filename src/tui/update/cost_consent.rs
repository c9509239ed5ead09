//! The question before calls that cost money. dicta asks if their estimated cost is higher than `limits.confirm_usd`,
//! or if a price is unknown.
//!
//! Responsible for the decision to ask and for the answers. Calls that a save starts by itself count together: many
//! cheap saves must not spend more than one question allows.

use std::sync::Arc;

use super::{examples, runs, save_runs};
use crate::run::{PaidCalls, RunPreview};
use crate::tui::effect::Effect;
use crate::tui::run_order::RunOrder;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::{ExamplesQuestion, Overlay};
use crate::tui::state::runs::RunTicket;
use crate::tui::state::saves::EvalName;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::Workspace;

/// Handles the preview of an order: starts it, or asks first.
pub(super) fn handle_preview(
    app: &mut App,
    ticket: RunTicket,
    preview: Result<RunPreview, TaskFailure>,
) -> Vec<Effect> {
    let waiting = &mut app.awaiting_preview;
    let Some(at) = waiting.iter().position(|order| order.ticket == ticket) else {
        return Vec::new();
    };
    // The order leaves the list in each case, so that an answer starts it only once.
    let order = waiting.remove(at);
    match preview {
        Err(why) => {
            let why = format!("nothing was run: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
            Vec::new()
        }
        Ok(preview) => {
            // A question about money that no answer can spend would mislead.
            if let Some(why) = find_missing_key(app, &preview) {
                let why = format!("nothing was run: {why}");
                app.notices.push(app.now, NoticeLevel::Error, why);
                return Vec::new();
            }
            let calls = PaidCalls::of_run(&preview);
            if must_ask(app, &calls, &order.workspace, order.is_of_save) {
                app.overlays.push(Overlay::ConfirmCost { order, preview });
                return Vec::new();
            }
            vec![start(app, order, &preview)]
        }
    }
}

/// Returns the sentence about a key that a judge of the run lacks.
fn find_missing_key(app: &App, preview: &RunPreview) -> Option<String> {
    let mut called = preview
        .judges
        .iter()
        .filter(|(_, judge)| judge.all_calls_most() > 0);
    called.find_map(|(name, _)| app.missing_keys.get(name).cloned())
}

/// Handles the preview of examples with paid judges: judges them, or asks first.
pub(super) fn handle_examples_preview(
    app: &mut App,
    number: u64,
    workspace: Arc<Workspace>,
    evals: Vec<EvalName>,
    calls: Result<PaidCalls, TaskFailure>,
) -> Vec<Effect> {
    // A newer check has started. A failed preview keeps the text that the examples wait.
    let Ok(calls) = calls else { return Vec::new() };
    if number != app.examples.number || calls.is_empty() {
        return Vec::new();
    }
    if must_ask(app, &calls, &workspace, true) {
        app.overlays
            .push(Overlay::ConfirmExamples(ExamplesQuestion {
                number,
                workspace,
                evals,
                calls,
            }));
        return Vec::new();
    }
    examples::judge_paid(app, number, workspace, evals)
}

/// Returns true if dicta must ask before these calls.
fn must_ask(app: &mut App, calls: &PaidCalls, workspace: &Workspace, is_automatic: bool) -> bool {
    let limit_usd = workspace.limits.confirm_usd;
    if !is_automatic {
        return calls.needs_confirmation(limit_usd);
    }
    if calls.needs_confirmation(limit_usd - app.saves.unasked_usd) {
        return true;
    }
    app.saves.unasked_usd += calls.cost.map_or(0.0, |cost| cost.with_all_calls);
    false
}

fn start(app: &mut App, order: RunOrder, preview: &RunPreview) -> Effect {
    if order.is_of_save {
        save_runs::start_previewed(app, order)
    } else {
        runs::report_start(app, preview);
        runs::start_run(app, order, None)
    }
}

/// The answer yes to a run.
pub(super) fn accept_run(app: &mut App, order: RunOrder, preview: &RunPreview) -> Vec<Effect> {
    if order.is_of_save {
        app.saves.unasked_usd = 0.0;
    }
    vec![start(app, order, preview)]
}

/// The answer yes to examples.
pub(super) fn accept_examples(app: &mut App, question: ExamplesQuestion) -> Vec<Effect> {
    app.saves.unasked_usd = 0.0;
    let ExamplesQuestion {
        number,
        workspace,
        evals,
        ..
    } = question;
    // A save while the question was open starts a check of its own.
    if number != app.examples.number {
        return Vec::new();
    }
    examples::judge_paid(app, number, workspace, evals)
}

/// The answer no.
pub(super) fn decline(app: &mut App, declined: &Overlay) {
    let notice = match declined {
        Overlay::ConfirmCost { order, .. } if order.is_of_save => {
            "the cell is not judged: r on it asks again, A turns judging after saves off"
        }
        Overlay::ConfirmExamples(_) => {
            "the examples are not judged: `dicta check --examples` judges them"
        }
        _ => "nothing was run",
    };
    app.notices.push(app.now, NoticeLevel::Info, notice);
}
