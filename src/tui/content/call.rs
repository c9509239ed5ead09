//! The tool call of the shown step: its arguments as they form, then raw and canonical, what was repaired or refused.

use super::{Ink, gap, heading, no_cell, rich, size};
use crate::event::{AttemptState, CallState, TurnState};
use crate::model::SUBMIT;
use crate::theme::Role;
use crate::tui::model::trace::{Shown, call_at, forming, shown};
use crate::tui::widget::flow::{Block, Source};

/// The pane's text.
pub(super) fn source<'a>(ink: &mut Ink<'a>) -> Box<dyn Source + 'a> {
    let Some(shown) = shown(ink.model) else {
        return Box::new(no_cell());
    };
    let trace = &ink.model.desk().trace;
    let turns = shown.turns();
    if let Some((_, attempt)) = forming(trace, turns) {
        return Box::new(arguments_forming(attempt, shown.is_over()));
    }
    let Some((turn, at)) = call_at(trace, turns) else {
        return Box::new(no_call(ink, &shown));
    };
    let mut out = Vec::new();
    if turns[turn].calls.len() > 1 {
        out.extend(siblings(ink, &turns[turn], at));
        out.push(gap());
    }
    one(ink, &turns[turn].calls[at], shown.is_over(), &mut out);
    Box::new(out)
}

fn no_call<'a>(ink: &Ink<'a>, shown: &Shown<'a>) -> Vec<Block<'a>> {
    if let Some(plain) = super::decided_by_code(ink, shown) {
        return plain;
    }
    let fills = "here the arguments of a judge's tool calls form, as it writes them";
    if let Some(waiting) = ink.waiting(shown, fills) {
        return waiting;
    }
    let toolless = shown.is_toolless();
    let why = match (shown.judge(), shown.turns()) {
        (None, _) => "no calls: no judge decides this",
        (Some(_), _) if toolless => "no calls: this judge has no tools",
        (Some(_), []) => "no calls: the judge was not asked",
        (Some(_), _) if shown.is_live() => "no call in this turn so far",
        (Some(_), _) => "no call in this turn",
    };
    vec![Block::new(why, Role::Muted)]
}

/// Arguments as they stream; or as far as they came, where the cell ended before they did.
fn arguments_forming(attempt: &AttemptState, over: bool) -> Vec<Block<'_>> {
    let (what, role) = if over {
        (
            "as far as the arguments came before the cell ended",
            Role::Muted,
        )
    } else {
        ("arguments are forming …", Role::Live)
    };
    let mut out = vec![rich([(what, role)])];
    for args in attempt.args.values() {
        out.push(Block::new(args.as_str(), Role::Text));
    }
    out
}

/// The calls of a turn, the open one marked.
fn siblings<'a>(ink: &Ink<'a>, turn: &'a TurnState, open: usize) -> Vec<Block<'a>> {
    let cursor = ink.glyphs().cursor;
    let line = |(at, call): (usize, &'a CallState)| {
        let (mark, role) = state(ink, call);
        Block {
            indent: 2,
            lead: if at == open { cursor } else { "" }.into(),
            ..rich([
                (format!("{} {} ", at + 1, call.name).as_str(), Role::Tool),
                (mark, role),
            ])
        }
    };
    turn.calls.iter().enumerate().map(line).collect()
}

/// Where a call stands, as a mark.
fn state<'a>(ink: &Ink<'a>, call: &CallState) -> (&'a str, Role) {
    match (&call.rejected, &call.finished) {
        (Some(_), _) => (ink.glyphs().error, Role::Error),
        (None, Some((answer, _, _))) if answer.is_error => (ink.glyphs().fail, Role::Error),
        (None, Some(_)) => (ink.glyphs().pass, Role::Pass),
        (None, None) => (ink.glyphs().ellipsis, Role::Live),
    }
}

fn one<'a>(ink: &mut Ink<'a>, call: &'a CallState, over: bool, out: &mut Vec<Block<'a>>) {
    out.push(rich([(call.name.as_str(), Role::Tool)]));
    let raw = ink.model.desk().trace.raw;
    let canonical = call.canonical.as_ref().map(crate::model::RawJson::get);
    match canonical {
        None if raw => out.push(Block::new(call.raw.as_str(), Role::Text)),
        None => out.push(ink.json(&call.raw)),
        Some(canonical) => {
            out.push(heading("as received"));
            out.push(Block::new(call.raw.as_str(), Role::Text));
            out.push(heading("canonical"));
            out.push(ink.json(canonical));
        }
    }
    if canonical.is_some() && call.changes.is_empty() {
        out.push(Block::new("only the spelling differs", Role::Muted));
    }
    for change in &call.changes {
        let place = if change.path.is_empty() { "" } else { " at " };
        out.push(rich([
            ("repaired: ", Role::Warning),
            (change.what.as_str(), Role::Text),
            (place, Role::Muted),
            (change.path.as_str(), Role::Muted),
        ]));
    }
    if let Some(values) = &call.values
        && differs(values.get(), canonical.unwrap_or(&call.raw))
    {
        out.push(heading("called with"));
        out.push(ink.json(values.get()));
    }
    if let Some((rule, text)) = &call.rejected {
        out.push(gap());
        out.push(rich([
            (
                format!("{} refused by rule ", ink.glyphs().error).as_str(),
                Role::Error,
            ),
            (rule.as_str(), Role::Error),
            (": the model was told", Role::Error),
        ]));
        out.push(Block {
            indent: 2,
            ..Block::new(text.as_str(), Role::Text)
        });
    }
    out.push(gap());
    out.push(ended(ink, call, over));
}

/// What became of it, in a line.
fn ended<'a>(ink: &Ink<'a>, call: &'a CallState, over: bool) -> Block<'a> {
    match &call.finished {
        Some(_) if call.name == SUBMIT => Block::new("the verdict was received", Role::Muted),
        Some((answer, _, elapsed)) => {
            let (word, role) = if answer.is_error {
                ("error", Role::Error)
            } else {
                ("answered", Role::Pass)
            };
            let (mark, _) = state(ink, call);
            rich([
                (format!("{mark} {word}").as_str(), role),
                (
                    format!(" in {elapsed}: {}", size(answer.bytes)).as_str(),
                    Role::Text,
                ),
            ])
        }
        None if call.rejected.is_some() => Block::new("it never ran", Role::Muted),
        None if over => Block::new("the cell ended before it answered", Role::Muted),
        None if call.started => Block::new("running …", Role::Live),
        None => Block::new("not started", Role::Muted),
    }
}

/// Whether two small JSON texts say something else; large ones are compared as they are written.
fn differs(one: &str, other: &str) -> bool {
    const PARSED: usize = 16 << 10;
    if one == other || one.len() + other.len() > PARSED {
        return one != other;
    }
    let parsed = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    parsed(one) != parsed(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_forms_in_a_cell_that_has_ended() {
        let attempt = AttemptState::default();
        let first = |over| arguments_forming(&attempt, over)[0].text.to_string();
        assert_eq!(first(false), "arguments are forming …");
        assert_eq!(
            first(true),
            "as far as the arguments came before the cell ended"
        );
    }
}
