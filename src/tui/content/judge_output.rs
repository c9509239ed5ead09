//! Responsible for what the judge wrote in the shown turn: thinking, the reasoning of a verdict that is still streaming,
//! and plain text. Does not show the finished verdict; `verdict` does.

use super::{ContentCx, empty_row, heading, styled_line};
use crate::event::{AttemptState, TurnState};
use crate::report::extract_reasoning;
use crate::theme::Role;
use crate::tui::state::judge_trace::find_shown_turn;
use crate::tui::state::shown_cell::ShownCell;
use crate::tui::widget::flow::TextBlock;

/// Returns the key that opens a paused trace, because the keys that continue it work on its screen. `None` there, and for
/// other traces.
pub(super) fn pause_hint<'a>(cx: &ContentCx<'a>) -> Option<TextBlock<'a>> {
    let is_elsewhere = cx.app.shown_pause().is_some() && !cx.app.shows_trace_screen();
    is_elsewhere.then(|| {
        styled_line([
            ("enter", Role::Key),
            (" opens the trace; ", Role::Muted),
            ("s", Role::Key),
            (" and ", Role::Muted),
            ("space", Role::Key),
            (" continue it there", Role::Muted),
        ])
    })
}

/// Appends the judge's output in the shown turn, both while it streams and after the turn.
/// `has_verdict` hides the reply text, because a finished verdict already shows what that text says.
pub(super) fn push_judge_output<'a>(
    cx: &ContentCx<'a>,
    shown: &ShownCell<'a>,
    has_verdict: bool,
    out: &mut Vec<TextBlock<'a>>,
) {
    let turns = shown.turns();
    let Some(turn) =
        find_shown_turn(&cx.app.session().trace_panes, turns).and_then(|at| turns.get(at))
    else {
        return;
    };
    // The finished reply is complete. An attempt has only what arrived so far.
    let (thought, text) = match (&turn.finished, newest_attempt(turn)) {
        (Some(finished), _) => {
            let reply = &finished.reply;
            (reply.thought.as_str(), reply.text.as_str())
        }
        (None, Some(attempt)) => (attempt.thought.as_str(), attempt.text.as_str()),
        (None, None) => return,
    };
    if !thought.trim().is_empty() {
        out.push(empty_row());
        out.push(heading("thinking"));
        out.push(TextBlock::new(thought.trim_end(), Role::Thought));
    }
    let live = turn.finished.is_none();
    // A verdict can also stream as the arguments of a function call.
    if let Some(attempt) = newest_attempt(turn).filter(|_| live) {
        for args in attempt.args.values() {
            push_partial_reasoning(args, out);
        }
    }
    // The JSON of a verdict is unreadable for people: while it streams, only its reasoning is shown.
    let is_verdict_json = if live {
        push_partial_reasoning(text, out)
    } else {
        has_verdict
    };
    if !is_verdict_json && !text.trim().is_empty() {
        out.push(empty_row());
        out.push(heading("reply"));
        out.push(TextBlock::new(text.trim_end(), Role::Text));
    }
}

/// Returns the newest attempt, unless it failed.
fn newest_attempt(turn: &TurnState) -> Option<&AttemptState> {
    turn.attempts
        .values()
        .last()
        // The output of a failed attempt belongs to no verdict.
        .filter(|attempt| attempt.failed.is_none())
}

/// Appends the reasoning inside the JSON of a streaming verdict. Returns true if the text is such JSON.
fn push_partial_reasoning(json: &str, out: &mut Vec<TextBlock<'_>>) -> bool {
    /// The longest text that is parsed, in bytes. A verdict is short, and this runs for every frame.
    const MAX_PARSED_BYTES: usize = 64 << 10;
    let Some(reasoning) = (json.len() <= MAX_PARSED_BYTES)
        .then(|| extract_reasoning(json))
        .flatten()
    else {
        return false;
    };
    if !reasoning.is_empty() {
        out.push(empty_row());
        out.push(heading("reasoning"));
        out.push(TextBlock::new(reasoning, Role::Text));
    }
    true
}
