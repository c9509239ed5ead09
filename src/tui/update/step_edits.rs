//! Edits of a step: of a paused trace, which continues with the text, or of a recorded one, which a branch changes.
//!
//! A short text is edited in the footer, a longer one in the editor. An edit is checked before anything continues with it.

use std::sync::Arc;

use super::notices::push_info;
use super::{pauses, runs};
use crate::event::{StepId, StepPart, find_call};
use crate::judge::PauseDecision;
use crate::model::{RawJson, SUBMIT_VERDICT};
use crate::run::{BranchOrder, CachePolicy, parse_branch_change};
use crate::tui::content::tool_response::loaded_response;
use crate::tui::effect::Effect;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::pauses::{BranchEdit, EditTarget, MODEL_PART, PauseRef};
use crate::tui::state::readable_request::ReadableRequest;
use crate::tui::state::shown_cell::resolve_shown_cell;
use crate::tui::state::{App, FooterInput};
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::line_input::LineInput;

/// The longest text that is edited in the footer, in characters. A longer one, or one with several lines, opens in the
/// editor.
const MAX_FOOTER_CHARS: usize = 400;

/// Opens a text in the footer or in the editor.
fn open(app: &mut App, target: EditTarget, text: String) -> Vec<Effect> {
    let is_short = text.lines().count() <= 1 && text.chars().nth(MAX_FOOTER_CHARS).is_none();
    if !is_short {
        return vec![Effect::EditText { target, text }];
    }
    app.ui.footer_input = Some(FooterInput::StepEdit {
        input: LineInput::new(text),
        target,
        problem: None,
    });
    Vec::new()
}

/// `e`: edits the thing at which the trace is paused.
pub(super) fn edit_pause(app: &mut App) -> Vec<Effect> {
    let found = app
        .shown_pause()
        .and_then(|at| Some((at, app.find_pause(at)?)));
    let Some((at, pause)) = found else {
        return push_info(app, "the trace goes on to its next stop");
    };
    let draft = pause.draft.clone();
    let Some(text) = draft.or_else(|| pause.at.editable_text()) else {
        return push_info(
            app,
            "the trace has ended: nothing can be edited here; space continues",
        );
    };
    open(app, EditTarget::Pause(at), text)
}

/// `w`: edits the selected arguments, response, or the criteria of the first prompt, for a branch with the new text.
pub(super) fn edit_for_branch(app: &mut App, step: StepId) -> Vec<Effect> {
    const ELSEWHERE: &str = "select a tool call, its response, or the first prompt: a branch continues with your text in its place";
    let Some(shown) = resolve_shown_cell(app) else {
        return Vec::new();
    };
    let call = shown.trace.and_then(|trace| find_call(trace, step));
    let call = call.filter(|call| call.name != SUBMIT_VERDICT);
    let (part, text) = match (step.part, call) {
        (StepPart::Prompt, _) if step.turn.0 == 0 => match shown_criteria(app) {
            Some(Ok(text)) => ("criteria", text),
            Some(Err(())) => return push_info(app, "the prompt is still being read"),
            None => return push_info(app, ELSEWHERE),
        },
        (StepPart::Response(_), Some(call)) => match loaded_response(&app.texts, call) {
            Some(Ok(text)) => ("answer", text.to_owned()),
            Some(Err(())) => return push_info(app, "the response is still being read"),
            None => return push_info(app, ELSEWHERE),
        },
        (StepPart::Call(_), Some(call)) => {
            let canonical = call.canonical.as_ref().map(RawJson::get);
            ("arguments", canonical.unwrap_or(&call.raw).to_owned())
        }
        _ => return push_info(app, ELSEWHERE),
    };
    open_branch_edit(app, step, part, text)
}

/// `W` on the first prompt: edits the whole user message, for a branch with the new text.
pub(super) fn edit_prompt_for_branch(app: &mut App, step: StepId) -> Vec<Effect> {
    let request = app.session().trace_screen.request(0);
    let Some(text) = request.map(ReadableRequest::first_user_text) else {
        return push_info(app, "the prompt is still being read");
    };
    match text {
        Some(text) => open_branch_edit(app, step, "prompt", text),
        None => push_info(app, "the first request has no user message"),
    }
}

fn open_branch_edit(app: &mut App, step: StepId, part: &'static str, text: String) -> Vec<Effect> {
    let Some((shown, row)) = resolve_shown_cell(app).zip(app.session().trace_panes.row) else {
        return Vec::new();
    };
    let Some(run) = shown.run.cloned() else {
        return push_info(app, "the run of this trace is not known yet");
    };
    let judge = shown.judge_spec();
    let target = BranchEdit {
        run,
        cell: shown.number,
        step,
        row,
        part,
        before: text.clone(),
        judge: None,
        costs: judge.is_none_or(|judge| !judge.config.is_free()),
    };
    open(app, EditTarget::Branch(Box::new(target)), text)
}

/// Returns the criteria of the first prompt, if the prompt has some; an error while it is read.
fn shown_criteria(app: &App) -> Option<Result<String, ()>> {
    let Some(request) = app.session().trace_screen.request(0) else {
        return Some(Err(()));
    };
    let mut sections = request.rubric_sections();
    let criteria = sections.find(|section| section.name.as_deref() == Some("criteria"));
    let text = criteria.and_then(|section| request.text.get(section.range.clone()))?;
    Some(Ok(text.trim().to_owned()))
}

/// Continues with the text that was typed in the footer. A text that dicta can't use stays in the line.
pub(super) fn accept_line(app: &mut App, target: EditTarget, input: LineInput) -> Vec<Effect> {
    match accept_text(app, &target, &input.text) {
        Ok(effects) => effects,
        Err(why) => {
            app.ui.footer_input = Some(FooterInput::StepEdit {
                input,
                target,
                problem: Some(why),
            });
            Vec::new()
        }
    }
}

/// Continues with the text from the editor. For a paused trace, a text that dicta can't use is kept for the next edit.
pub(super) fn handle_text_edited(
    app: &mut App,
    target: &EditTarget,
    edited: Result<Option<String>, TaskFailure>,
) -> Vec<Effect> {
    let text = match edited {
        Ok(Some(text)) => text,
        Ok(None) => return push_info(app, "nothing was changed"),
        Err(why) => {
            app.notices
                .push(app.now, NoticeLevel::Error, why.to_string());
            return Vec::new();
        }
    };
    match accept_text(app, target, &text) {
        Ok(effects) => effects,
        Err(why) => {
            let mut notice = why;
            if let EditTarget::Pause(at) = target {
                let run = app.live_session.runs.by_ticket.get_mut(&at.ticket);
                if let Some(pause) = run.and_then(|run| run.pauses.get_mut(&at.cell)) {
                    pause.draft = Some(text);
                    notice.push_str("; e opens your text again");
                }
            }
            app.notices.push(app.now, NoticeLevel::Error, notice);
            Vec::new()
        }
    }
}

fn accept_text(app: &mut App, target: &EditTarget, text: &str) -> Result<Vec<Effect>, String> {
    match target {
        EditTarget::Pause(at) => continue_with(app, *at, text),
        EditTarget::Branch(edit) => branch_with(app, edit, text),
    }
}

fn continue_with(app: &mut App, at: PauseRef, text: &str) -> Result<Vec<Effect>, String> {
    let Some(pause) = app.find_pause(at) else {
        return Ok(push_info(
            app,
            "the trace no longer waits: the edit was not used",
        ));
    };
    if pause.at.editable_text().as_deref() == Some(text) {
        return Ok(push_info(
            app,
            "nothing was changed: the trace is still paused",
        ));
    }
    let action = pause.at.edit(text).map_err(|error| error.to_string())?;
    let effects = pauses::release(app, at, PauseDecision::Edit(action));
    push_info(
        app,
        "continued with your edit: the verdict is marked, and enters no history",
    );
    Ok(effects)
}

fn branch_with(app: &mut App, edit: &BranchEdit, text: &str) -> Result<Vec<Effect>, String> {
    if edit.before == text {
        return Ok(push_info(app, "nothing was changed, so nothing was judged"));
    }
    let model = (edit.part == MODEL_PART).then(|| text.trim().to_owned());
    if model.as_deref() == Some("") {
        return Err("type the name of a model".to_owned());
    }
    let change = match &model {
        Some(_) => None,
        None => Some(parse_branch_change(edit.part, text)?),
    };
    let order = runs::build_workspace_order(app, None, None, CachePolicy::Off, None);
    let Some(mut order) = order else {
        return Ok(push_info(app, "no workspace is open"));
    };
    order.branch = Some(Arc::new(BranchOrder {
        run: edit.run.clone(),
        cell: edit.cell,
        at: edit.step,
        change,
        judge: edit.judge.as_ref().map(|judge| judge.name.clone()),
        model,
    }));
    if let Some(judge) = &edit.judge {
        order.add_judge(judge);
    }
    Ok(runs::start_or_ask(app, order, edit.costs, &[edit.row]))
}
