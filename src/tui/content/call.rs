//! The tool call of the shown step: its arguments as they form, then raw and canonical beside each other, what was repaired,
//! coerced, filled in or refused, and how long it took.
//!
//! Each call is told by its facts alone: nothing is prepared anew here, so a recording shows what happened then.

use std::borrow::Cow;

use super::beside::Difference;
use super::{Ink, gap, heading, no_cell, over, rich, size};
use crate::event::{AttemptState, CallState, ToolResponseSource as From, TurnState};
use crate::model::{ArgumentChange, Millis, RawJson, SUBMIT_VERDICT};
use crate::theme::Role;
use crate::tui::model::pane::Pane;
use crate::tui::model::trace::{Shown, call_at, forming, shown};
use crate::tui::widget::flow::{Block, Source};

/// Larger arguments are not laid out or compared for every frame, in bytes.
const LOOKED_AT: usize = 16 << 10;
/// A shorter wait before a call is nobody's concern.
const NOTICED: Millis = Millis(100);
/// More values that a tool filled in are counted.
const FILLED: usize = 20;

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
    one(ink, &turns[turn].calls[at], &shown, &mut out);
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

/// The calls of a turn, the open one marked, and the keys that go from one to the next.
fn siblings<'a>(ink: &Ink<'a>, turn: &'a TurnState, open: usize) -> Vec<Block<'a>> {
    let cursor = ink.glyphs().cursor;
    let head = rich([
        (
            format!("{} calls in this turn: ", turn.calls.len()).as_str(),
            Role::Muted,
        ),
        (",", Role::Key),
        (" and ", Role::Muted),
        (".", Role::Key),
        (" move", Role::Muted),
    ]);
    let line = |(at, call): (usize, &'a CallState)| {
        let (mark, role) = state(ink, call);
        let took = match &call.finished {
            Some((_, _, elapsed)) => format!(" {elapsed}"),
            None => String::new(),
        };
        Block {
            indent: 2,
            lead: if at == open { cursor } else { "" }.into(),
            ..rich([
                (format!("{} {} ", at + 1, call.name).as_str(), Role::Tool),
                (mark, role),
                (took.as_str(), Role::Muted),
            ])
        }
    };
    let lines = turn.calls.iter().enumerate().map(line);
    std::iter::once(head).chain(lines).collect()
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

fn one<'a>(ink: &mut Ink<'a>, call: &'a CallState, shown: &Shown<'a>, out: &mut Vec<Block<'a>>) {
    out.push(rich([(call.name.as_str(), Role::Tool)]));
    out.extend(ended(ink, call, shown));
    out.push(gap());
    let unreadable = call.canonical.is_none()
        && call
            .rejected
            .as_ref()
            .is_some_and(|(rule, _)| rule == "parse");
    match call.canonical.as_ref().map(RawJson::get) {
        Some(canonical) if ink.model.desk().trace.raw => {
            out.push(heading("as received, to the byte"));
            out.push(Block::new(call.raw.as_str(), Role::Text));
            out.push(heading("canonical, to the byte"));
            out.push(Block::new(canonical, Role::Text));
        }
        Some(canonical) => compared(ink, &call.raw, canonical, out),
        None if unreadable || ink.model.desk().trace.raw => {
            out.push(heading("as received"));
            out.push(Block::new(call.raw.as_str(), Role::Text));
            if unreadable {
                let why = "no canonical form: this is no JSON object, nor can it be made one";
                out.push(Block::new(why, Role::Muted));
            }
        }
        None => {
            out.push(heading("as received, and canonical"));
            out.push(ink.json(&call.raw));
        }
    }
    if call.canonical.is_some() && call.changes.is_empty() {
        out.push(Block::new("only the spelling differs", Role::Muted));
    }
    listed("repaired", &call.changes, out);
    listed("coerced", &call.coerced, out);
    called_with(ink, call, out);
    refused(ink, call, out);
}

/// What was received and what was made of it: in columns where there is room, else one below the other.
fn compared<'a>(ink: &mut Ink<'a>, raw: &'a str, canonical: &'a str, out: &mut Vec<Block<'a>>) {
    let laid_out = ink.json(canonical);
    let difference = Difference::of(raw, &laid_out.text);
    let width = ink
        .columns
        .then(|| ink.model.layout().inside(Pane::FunctionCall).width);
    let columns = difference.as_ref().zip(width).and_then(|(found, width)| {
        found.columns((raw, &laid_out.text), &laid_out.spans, width, ink.glyphs())
    });
    if let Some(columns) = columns {
        out.extend(columns);
        return;
    }
    let (gone, came) = difference.map_or_else(Default::default, |found| (found.gone, found.came));
    out.push(heading("as received"));
    out.push(Block {
        spans: gone.into(),
        ..Block::new(raw, Role::Text)
    });
    out.push(heading("canonical"));
    let spans = Cow::Owned(over(&laid_out.spans, &came));
    out.push(Block { spans, ..laid_out });
}

/// `repaired: quoted a key at /url`, a line each.
fn listed<'a>(what: &str, changes: &'a [ArgumentChange], out: &mut Vec<Block<'a>>) {
    for change in changes {
        let place = if change.path.is_empty() { "" } else { " at " };
        out.push(rich([
            (format!("{what}: ").as_str(), Role::Warning),
            (change.what.as_str(), Role::Text),
            (place, Role::Muted),
            (change.path.as_str(), Role::CodeKey),
        ]));
    }
}

/// What the tool got, where that is not what the model wrote: defaults, claims, coerced values.
fn called_with<'a>(ink: &mut Ink<'a>, call: &'a CallState, out: &mut Vec<Block<'a>>) {
    let Some(values) = call.values.as_ref().map(RawJson::get) else {
        return;
    };
    let written = call
        .canonical
        .as_ref()
        .map_or(call.raw.as_str(), RawJson::get);
    if !differs(values, written) {
        return;
    }
    out.push(heading("called with"));
    out.push(ink.json(values));
    let (filled, more) = filled_in(written, values);
    for name in filled {
        out.push(rich([
            ("filled in: ", Role::Warning),
            (name.as_str(), Role::CodeKey),
            (", which the model did not write", Role::Muted),
        ]));
    }
    if more > 0 {
        out.push(Block::new(format!("… and {more} more"), Role::Muted));
    }
}

/// Names that stand in the values alone, and how many more there are.
fn filled_in(written: &str, values: &str) -> (Vec<String>, usize) {
    type Object = serde_json::Map<String, serde_json::Value>;
    if written.len() + values.len() > LOOKED_AT {
        return Default::default();
    }
    let read = |text| serde_json::from_str::<Object>(text).ok();
    let (Some(written), Some(values)) = (read(written), read(values)) else {
        return Default::default();
    };
    let mut names: Vec<String> = values
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| !written.contains_key(name))
        .collect();
    let more = names.len().saturating_sub(FILLED);
    names.truncate(FILLED);
    (names, more)
}

/// The rule that refused it, and the model's view of that.
fn refused<'a>(ink: &Ink<'a>, call: &'a CallState, out: &mut Vec<Block<'a>>) {
    let Some((rule, text)) = &call.rejected else {
        return;
    };
    out.push(gap());
    out.push(rich([
        (
            format!("{} refused by rule ", ink.glyphs().error).as_str(),
            Role::Error,
        ),
        (rule.as_str(), Role::Error),
        (meaning(rule), Role::Muted),
        (": the model was told", Role::Error),
    ]));
    out.push(Block {
        indent: 2,
        ..Block::new(text.as_str(), Role::Text)
    });
}

/// A rule in other words; nothing for one that says enough, or that this version does not know.
fn meaning(rule: &str) -> &'static str {
    match rule {
        "parse" => " (the arguments are no JSON object)",
        "schema" | "parameters" | "arguments" => " (the tool's parameters)",
        "seen" => " (nobody had named that address)",
        "after" => " (another tool comes before it)",
        "max_calls" => " (calls of this tool are counted)",
        "auth" => " (nobody is signed in who may call it)",
        "frozen" => " (evidence is frozen)",
        "not_yet" => " (a verdict beside other calls)",
        _ => "",
    }
}

/// What became of it and when, a line each.
fn ended<'a>(ink: &Ink<'a>, call: &'a CallState, shown: &Shown<'a>) -> Vec<Block<'a>> {
    let (received, started) = call.received_and_started;
    let waited = started.map_or(Millis(0), |started| started.since(received));
    let waited = if waited < NOTICED {
        String::new()
    } else {
        format!(", after {waited} of waiting")
    };
    let so_far = |what: &str, since: Millis| {
        Block::new(format!("{what} {} …", shown.now.since(since)), Role::Live)
    };
    let mut out = vec![match (&call.finished, started) {
        (Some(_), _) if call.name == SUBMIT_VERDICT => {
            Block::new("the verdict was received", Role::Muted)
        }
        (Some((answer, from, elapsed)), _) => {
            let (word, role) = if answer.is_error {
                ("error", Role::Error)
            } else {
                ("answered", Role::Pass)
            };
            let (mark, _) = state(ink, call);
            let size = size(answer.bytes);
            let rest = match from {
                From::SameTrace { .. } => format!(" with an earlier answer: {size}"),
                _ => format!(" in {elapsed}: {size}{waited}"),
            };
            rich([
                (format!("{mark} {word}").as_str(), role),
                (rest.as_str(), Role::Text),
            ])
        }
        (None, _) if call.rejected.is_some() => {
            let mark = ink.glyphs().error;
            rich([(format!("{mark} rejected: it never ran"), Role::Error)])
        }
        (None, _) if shown.is_over() => {
            Block::new("the cell ended before it answered", Role::Muted)
        }
        (None, Some(started)) => so_far("running for", started),
        (None, None) => so_far("not started, waiting for", received),
    }];
    if let Some((_, From::SameTrace { turn, call }, _)) = &call.finished {
        let same = format!("turn {} call {}", turn.0 + 1, call.0 + 1);
        out.push(rich([
            ("answered once: same as ", Role::Muted),
            (same.as_str(), Role::Text),
        ]));
    }
    if let Some(why) = &call.retried {
        out.push(rich([
            ("tried again after: ", Role::Warning),
            (why.as_str(), Role::Text),
        ]));
    }
    out
}

/// Whether two small JSON texts say something else; large ones are compared as they are written.
fn differs(one: &str, other: &str) -> bool {
    if one == other || one.len() + other.len() > LOOKED_AT {
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

    #[test]
    fn what_the_model_did_not_write_was_filled_in() {
        let filled = |written, values| filled_in(written, values).0;
        assert_eq!(filled(r#"{"a":1}"#, r#"{"a":1,"limit":10}"#), ["limit"]);
        assert!(filled(r#"{"a":"1"}"#, r#"{"a":1}"#).is_empty());
        assert!(filled("no json", r#"{"a":1}"#).is_empty());
        let many: Vec<String> = (0..25).map(|n| format!("\"k{n}\":{n}")).collect();
        let (names, more) = filled_in("{}", &format!("{{{}}}", many.join(",")));
        assert_eq!((names.len(), more), (20, 5));
    }
}
