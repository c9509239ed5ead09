//! The name of a step of a judge trace in one line: its part, its tool, and its result.

use super::{EDITED_BY_HAND, outcome_mark};
use crate::event::{CallState, StepPart, StepProgress, ToolResponseSource, TraceStep, find_call};
use crate::model::Outcome;
use crate::report::{describe_outcome, format_bytes};
use crate::theme::{Glyphs, Role};
use crate::tui::state::judge_trace::{CallPosition, number_fetch};
use crate::tui::state::shown_cell::ShownCell;

/// Returns the name of a step in pieces.
pub(super) fn describe_step(
    shown: &ShownCell<'_>,
    step: &TraceStep,
    glyphs: &Glyphs,
) -> Vec<(String, Role)> {
    let turn = usize::from(step.id.turn.0);
    let call = shown.trace.and_then(|cell| find_call(cell, step.id));
    let name = |call: Option<&CallState>| {
        // A model can return a name of any length.
        call.map_or_else(String::new, |call| call.name.chars().take(40).collect())
    };
    let (to, from) = if glyphs.ascii {
        ("->", "<-")
    } else {
        ("→", "←")
    };
    match step.id.part {
        StepPart::Prompt => {
            let failed = shown.turns().get(turn).map_or(0, |turn| {
                let attempts = turn.attempts.values();
                attempts.filter(|attempt| attempt.failed.is_some()).count()
            });
            let mut out = vec![(
                format!("{} prompt", circled_number(turn + 1, glyphs)),
                Role::Title,
            )];
            if failed > 0 {
                let what = crate::model::pluralize(failed as u64, "failed attempt");
                out.push((format!("  {what}"), Role::Warning));
            }
            out
        }
        StepPart::Reasoning => vec![("  reasoning".to_owned(), Role::Reasoning)],
        StepPart::Reply => vec![("  reply".to_owned(), Role::Assistant)],
        StepPart::Call(_) => {
            let mut out = vec![(format!("  {to} {}", name(call)), Role::Tool)];
            if call.is_none() && shown.has_ended() {
                out.push(("arguments were cut off".to_owned(), Role::Muted));
            } else if call.is_none() {
                out.push(("arguments are forming".to_owned(), Role::Live));
            }
            if let Some(call) = call {
                if call.rejected.is_some() {
                    out.push((format!(" {} rejected", glyphs.error), Role::Error));
                } else if call.is_edited_by_hand() {
                    out.push((format!(" {EDITED_BY_HAND}"), Role::Warning));
                } else if !call.changes.is_empty() {
                    out.push((" repaired".to_owned(), Role::Warning));
                }
            }
            out
        }
        StepPart::Response(nth) => {
            let position = CallPosition {
                turn,
                call: usize::from(nth.0),
            };
            let number = number_fetch(shown.turns(), position);
            let number = number.map_or_else(String::new, |number| format!(" fetch {number}"));
            let (what, role) = match (step.progress, call.is_some_and(|c| c.rejected.is_some())) {
                (_, true) => (format!(" {} rejected", glyphs.error), Role::Error),
                (StepProgress::Failed, false) => (format!(" {} error", glyphs.fail), Role::Error),
                (StepProgress::Active, false) if call.is_some_and(|c| c.pending.is_some()) => {
                    let pause = if shown.has_ended() {
                        " not sent to the judge"
                    } else {
                        " paused"
                    };
                    (pause.to_owned(), Role::Warning)
                }
                (StepProgress::Active, false) if shown.has_ended() => {
                    (" no response".to_owned(), Role::Muted)
                }
                (StepProgress::Active, false) => (format!(" {}", glyphs.ellipsis), Role::Live),
                (StepProgress::Done, false) if is_new_request(shown, call) => {
                    let text = format!("{number} live: no recorded response");
                    (text, Role::Warning)
                }
                (StepProgress::Done, false) => {
                    let size = call
                        .and_then(|call| call.finished.as_ref())
                        .map(|done| format_bytes(done.response.bytes));
                    (
                        format!("{number} {}", size.unwrap_or_default()),
                        Role::Muted,
                    )
                }
            };
            vec![
                (format!("  {from} {}", name(call)), Role::Tool),
                (what, role),
            ]
        }
        StepPart::Verdict => describe_verdict(shown, step, glyphs),
    }
}

fn describe_verdict(
    shown: &ShownCell<'_>,
    step: &TraceStep,
    glyphs: &Glyphs,
) -> Vec<(String, Role)> {
    let mark = if glyphs.ascii { "# " } else { "■ " };
    let mut out = vec![(format!("{mark}verdict "), Role::Title)];
    let turn = shown.turns().get(usize::from(step.id.turn.0));
    // An earlier reply without a valid verdict is not the result of the cell.
    if turn.is_some_and(|turn| turn.unparsed.is_some()) && step.progress == StepProgress::Failed {
        out.push((format!("{} no valid verdict", glyphs.error), Role::Error));
        return out;
    }
    let verdict = super::verdict::shown_verdict(shown);
    let (outcome, score) = match (shown.result, verdict) {
        (Some(result), _) => (result.outcome, result.score),
        (None, Some(verdict)) => match verdict.passed {
            Some(passed) => (Outcome::from_passed(passed), verdict.score),
            None => return out,
        },
        (None, None) => return out,
    };
    let (mark, role) = outcome_mark(outcome, glyphs);
    let score = score.map_or_else(String::new, |score| format!(" {score:.2}"));
    out.push((format!("{mark} {}{score}", describe_outcome(outcome)), role));
    if shown.trace.is_some_and(|cell| cell.by_human) {
        out.push((format!("  {}", super::EDITED_BY_HAND), Role::Warning));
    }
    out
}

/// Returns the number of a turn, circled if Unicode has such a character.
pub(crate) fn circled_number(number: usize, glyphs: &Glyphs) -> String {
    match u32::try_from(number) {
        // The circled numbers 1 to 20 begin at U+2460.
        Ok(n @ 1..=20) if !glyphs.ascii => char::from_u32(0x245F + n).map(String::from),
        _ => None,
    }
    .unwrap_or_else(|| format!("({number})"))
}

/// Returns true if a tool ran although the run uses recorded tool responses. Only one of two compared judges made this
/// request then.
fn is_new_request(shown: &ShownCell<'_>, call: Option<&CallState>) -> bool {
    let replays = shown.header.is_some_and(|header| header.frozen.is_some());
    let source = call
        .and_then(|call| call.finished.as_ref())
        .map(|done| &done.source);
    replays && source == Some(&ToolResponseSource::Live)
}
