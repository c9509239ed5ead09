//! Branches of the shown trace without an edited text: `b` continues it from the selected step, and in the list of `J`
//! with another judge or model.

use std::sync::Arc;

use super::notices::push_info;
use super::runs;
use crate::event::{CallState, StepId, StepPart, ToolResponseSource, find_call};
use crate::judge::BranchChange;
use crate::model::{JudgeConfig, SUBMIT_VERDICT};
use crate::run::{BranchOrder, CachePolicy};
use crate::tui::effect::Effect;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::pauses::{BranchEdit, EditTarget, MODEL_PART};
use crate::tui::state::shown_cell::resolve_shown_cell;
use crate::tui::state::{App, FooterInput};
use crate::tui::widget::line_input::LineInput;

/// `b`: continues the trace from the selected step. From a tool call, the tool is called again, unless `replay_tools` of
/// dicta.yaml answered the call: the hosts of recorded responses may not exist, as in the demo.
pub(super) fn branch_from_step(app: &mut App) -> Vec<Effect> {
    let found = app.selected_trace_step();
    // On the verdict, a failed call is what a user wants to try again.
    let found = found.map(|step| {
        let failed = app.last_call_step(StepPart::Response).filter(|call| {
            step.part == StepPart::Verdict && has_failed(app, *call) && !is_replayed(app, *call)
        });
        failed.unwrap_or(step)
    });
    let Some(step) = found else {
        return Vec::new();
    };
    if is_replayed(app, step) {
        let why = "the branch reads the recorded response, because dicta.yaml has replay_tools; \
                   `dicta branch --refetch` makes the call";
        let effects = branch(app, step, None, None);
        if !effects.is_empty() {
            app.notices.push(app.now, NoticeLevel::Info, why);
        }
        return effects;
    }
    let call = find_tool_call(app, step);
    let refetches = call.is_some_and(|call| call.name != SUBMIT_VERDICT);
    branch(app, step, refetches.then_some(BranchChange::Refetch), None)
}

/// Returns the tool call of a step of the shown trace.
fn find_tool_call(app: &App, step: StepId) -> Option<&CallState> {
    find_call(resolve_shown_cell(app)?.trace?, step)
}

/// Returns true if a recorded response answered the tool call of the step, because dicta.yaml names runs for that.
fn is_replayed(app: &App, step: StepId) -> bool {
    let names_runs = app
        .workspace()
        .is_some_and(|open| open.replayed_evidence_run.is_some());
    let finished = find_tool_call(app, step).and_then(|call| call.finished.as_ref());
    names_runs
        && finished.is_some_and(|done| matches!(done.source, ToolResponseSource::Frozen { .. }))
}

/// `b` in the list of judges: continues the trace from the selected step with another judge.
pub(super) fn branch_with_judge(app: &mut App, judge: &JudgeConfig) -> Vec<Effect> {
    match app.selected_trace_step() {
        Some(step) => branch(app, step, None, Some(judge)),
        None => Vec::new(),
    }
}

/// `m` in the list of judges: asks for another model of the judge, and continues the trace with it.
pub(super) fn ask_model(app: &mut App, judge: &JudgeConfig) -> Vec<Effect> {
    let found = app.selected_trace_step().zip(app.session().trace_panes.row);
    let (Some((step, row)), Some(shown)) = (found, resolve_shown_cell(app)) else {
        return Vec::new();
    };
    let (Some(run), cell) = (shown.run.cloned(), shown.number) else {
        return push_info(app, "the run of this trace is not known yet");
    };
    let target = BranchEdit {
        run,
        cell,
        step,
        row,
        part: MODEL_PART,
        before: judge.model.clone(),
        judge: Some(judge.clone()),
        costs: !judge.is_free(),
    };
    app.ui.footer_input = Some(FooterInput::StepEdit {
        input: LineInput::new(judge.model.clone()),
        target: EditTarget::Branch(Box::new(target)),
        problem: None,
    });
    Vec::new()
}

fn branch(
    app: &mut App,
    step: StepId,
    change: Option<BranchChange>,
    judge: Option<&JudgeConfig>,
) -> Vec<Effect> {
    let (Some(row), Some(shown)) = (app.session().trace_panes.row, resolve_shown_cell(app)) else {
        return Vec::new();
    };
    let (Some(run), cell) = (shown.run.cloned(), shown.number) else {
        return push_info(app, "the run of this trace is not known yet");
    };
    let own = shown.judge_spec().map(|judge| &judge.config);
    let costs = judge.or(own).is_none_or(|judge| !judge.is_free());
    let Some(mut order) = runs::build_workspace_order(app, None, None, CachePolicy::Off, None)
    else {
        return push_info(app, "no workspace is open");
    };
    order.branch = Some(Arc::new(BranchOrder {
        run,
        cell,
        at: step,
        change,
        judge: judge.map(|judge| judge.name.clone()),
        model: None,
    }));
    if let Some(judge) = judge {
        order.add_judge(judge);
    }
    runs::start_or_ask(app, order, costs, &[row])
}

/// Returns true if a tool call has an error response, or dicta rejected it.
fn has_failed(app: &App, step: StepId) -> bool {
    find_tool_call(app, step).is_some_and(|call| {
        let finished = call.finished.as_ref();
        call.rejected.is_some() || finished.is_some_and(|done| done.response.is_error)
    })
}
