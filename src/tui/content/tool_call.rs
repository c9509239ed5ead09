//! The tool call of the shown step: its arguments as they form, then raw and canonical beside each other, what was repaired,
//! coerced, filled in or refused, and how long it took.
//!
//! Each call is told by its facts alone: nothing is prepared anew here, so a recording shows what happened then.

use std::borrow::Cow;

use super::argument_diff::ArgumentDiff;
use super::{
    ContentCx, empty_row, explain_no_cell, format_size, heading, overlay_spans, styled_line,
};
use crate::event::{
    AttemptState, CallRejection, CallState, FinishedCall, ToolResponseSource as From, TurnState,
};
use crate::model::{ArgumentChange, Millis, RawJson, SUBMIT_VERDICT};
use crate::theme::Role;
use crate::tui::state::judge_trace::{find_shown_call, find_streaming_call};
use crate::tui::state::pane::Pane;
use crate::tui::state::shown_cell::{ShownCell, resolve_shown_cell};
use crate::tui::widget::flow::{TextBlock, TextSource};

/// Larger arguments are not laid out or compared for every frame, in bytes.
const MAX_COMPARED_BYTES: usize = 16 << 10;
/// A shorter wait before a call is nobody's concern.
const MIN_REPORTED_WAIT: Millis = Millis(100);
/// More values that a tool filled in are counted.
const MAX_FILLED_LISTED: usize = 20;

/// The pane's text.
pub(super) fn build_source<'a>(ink: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    let Some(shown) = resolve_shown_cell(ink.app) else {
        return Box::new(explain_no_cell());
    };
    let trace = &ink.app.session().trace_panes;
    let turns = shown.turns();
    if let Some((_, attempt)) = find_streaming_call(trace, turns) {
        return Box::new(streaming_arguments(attempt, shown.has_ended()));
    }
    let Some((turn, at)) = find_shown_call(trace, turns) else {
        return Box::new(explain_no_call(ink, &shown));
    };
    let mut out = Vec::new();
    if turns[turn].calls.len() > 1 {
        out.extend(list_calls(ink, &turns[turn], at));
        out.push(empty_row());
    }
    push_call(ink, &turns[turn].calls[at], &shown, &mut out);
    Box::new(out)
}

fn explain_no_call<'a>(ink: &ContentCx<'a>, shown: &ShownCell<'a>) -> Vec<TextBlock<'a>> {
    if let Some(plain) = super::explain_code_check(ink, shown) {
        return plain;
    }
    let fills = "here the arguments of a judge's tool calls form, as it writes them";
    if let Some(waiting) = ink.explain_empty_trace(shown, fills) {
        return waiting;
    }
    let toolless = shown.is_toolless();
    let why = match (shown.judge_spec(), shown.turns()) {
        (None, _) => "no calls: no judge decides this",
        (Some(_), _) if toolless => "no calls: this judge has no tools",
        (Some(_), []) => "no calls: the judge was not asked",
        (Some(_), _) if shown.is_live() => "no call in this turn so far",
        (Some(_), _) => "no call in this turn",
    };
    vec![TextBlock::new(why, Role::Muted)]
}

/// Arguments as they stream; or as far as they came, where the cell ended before they did.
fn streaming_arguments(attempt: &AttemptState, over: bool) -> Vec<TextBlock<'_>> {
    let (what, role) = if over {
        (
            "as far as the arguments came before the cell ended",
            Role::Muted,
        )
    } else {
        ("arguments are forming …", Role::Live)
    };
    let mut out = vec![styled_line([(what, role)])];
    for args in attempt.args.values() {
        out.push(TextBlock::new(args.as_str(), Role::Text));
    }
    out
}

/// The calls of a turn, the open one marked, and the keys that go from one to the next.
fn list_calls<'a>(ink: &ContentCx<'a>, turn: &'a TurnState, open: usize) -> Vec<TextBlock<'a>> {
    let cursor = ink.glyphs().cursor;
    let head = styled_line([
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
        let (mark, role) = call_mark(ink, call);
        let took = match &call.finished {
            Some(finished) => format!(" {}", finished.elapsed),
            None => String::new(),
        };
        TextBlock {
            indent: 2,
            lead: if at == open { cursor } else { "" }.into(),
            ..styled_line([
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
fn call_mark<'a>(ink: &ContentCx<'a>, call: &CallState) -> (&'a str, Role) {
    match (&call.rejected, &call.finished) {
        (Some(_), _) => (ink.glyphs().error, Role::Error),
        (None, Some(finished)) if finished.response.is_error => (ink.glyphs().fail, Role::Error),
        (None, Some(_)) => (ink.glyphs().pass, Role::Pass),
        (None, None) => (ink.glyphs().ellipsis, Role::Live),
    }
}

fn push_call<'a>(
    ink: &mut ContentCx<'a>,
    call: &'a CallState,
    shown: &ShownCell<'a>,
    out: &mut Vec<TextBlock<'a>>,
) {
    out.push(styled_line([(call.name.as_str(), Role::Tool)]));
    out.extend(describe_end(ink, call, shown));
    out.push(empty_row());
    let unreadable = call.canonical.is_none()
        && call
            .rejected
            .as_ref()
            .is_some_and(|rejection| rejection.rule == "parse");
    match call.canonical.as_ref().map(RawJson::get) {
        Some(canonical) if ink.app.session().trace_panes.shows_raw => {
            out.push(heading("as received, to the byte"));
            out.push(TextBlock::new(call.raw.as_str(), Role::Text));
            out.push(heading("canonical, to the byte"));
            out.push(TextBlock::new(canonical, Role::Text));
        }
        Some(canonical) => push_arguments(ink, &call.raw, canonical, out),
        None if unreadable || ink.app.session().trace_panes.shows_raw => {
            out.push(heading("as received"));
            out.push(TextBlock::new(call.raw.as_str(), Role::Text));
            if unreadable {
                let why = "no canonical form: this is no JSON object, nor can it be made one";
                out.push(TextBlock::new(why, Role::Muted));
            }
        }
        None => {
            out.push(heading("as received, and canonical"));
            out.push(ink.format_json(&call.raw));
        }
    }
    if call.canonical.is_some() && call.changes.is_empty() {
        out.push(TextBlock::new("only the spelling differs", Role::Muted));
    }
    push_changes("repaired", &call.changes, out);
    push_changes("coerced", &call.coerced, out);
    push_values(ink, call, out);
    push_rejection(ink, call, out);
}

/// What was received and what was made of it: in columns where there is room, else one below the other.
fn push_arguments<'a>(
    ink: &mut ContentCx<'a>,
    raw: &'a str,
    canonical: &'a str,
    out: &mut Vec<TextBlock<'a>>,
) {
    let laid_out = ink.format_json(canonical);
    let difference = ArgumentDiff::compare(raw, &laid_out.text);
    let width = ink
        .columns
        .then(|| ink.app.layout().inner_size(Pane::FunctionCall).width);
    let columns = difference.as_ref().zip(width).and_then(|(found, width)| {
        found.render_columns((raw, &laid_out.text), &laid_out.spans, width, ink.glyphs())
    });
    if let Some(columns) = columns {
        out.extend(columns);
        return;
    }
    let (gone, came) =
        difference.map_or_else(Default::default, |found| (found.removed, found.added));
    out.push(heading("as received"));
    out.push(TextBlock {
        spans: gone.into(),
        ..TextBlock::new(raw, Role::Text)
    });
    out.push(heading("canonical"));
    let spans = Cow::Owned(overlay_spans(&laid_out.spans, &came));
    out.push(TextBlock { spans, ..laid_out });
}

/// `repaired: quoted a key at /url`, a line each.
fn push_changes<'a>(what: &str, changes: &'a [ArgumentChange], out: &mut Vec<TextBlock<'a>>) {
    for change in changes {
        let place = if change.path.is_empty() { "" } else { " at " };
        out.push(styled_line([
            (format!("{what}: ").as_str(), Role::Warning),
            (change.what.as_str(), Role::Text),
            (place, Role::Muted),
            (change.path.as_str(), Role::CodeKey),
        ]));
    }
}

/// What the tool got, where that is not what the model wrote: defaults, claims, coerced values.
fn push_values<'a>(ink: &mut ContentCx<'a>, call: &'a CallState, out: &mut Vec<TextBlock<'a>>) {
    let Some(values) = call.values.as_ref().map(RawJson::get) else {
        return;
    };
    let written = call
        .canonical
        .as_ref()
        .map_or(call.raw.as_str(), RawJson::get);
    if !json_differs(values, written) {
        return;
    }
    out.push(heading("called with"));
    out.push(ink.format_json(values));
    let (filled, more) = find_filled_values(written, values);
    for name in filled {
        out.push(styled_line([
            ("filled in: ", Role::Warning),
            (name.as_str(), Role::CodeKey),
            (", which the model did not write", Role::Muted),
        ]));
    }
    if more > 0 {
        out.push(TextBlock::new(format!("… and {more} more"), Role::Muted));
    }
}

/// Names that stand in the values alone, and how many more there are.
fn find_filled_values(written: &str, values: &str) -> (Vec<String>, usize) {
    type Object = serde_json::Map<String, serde_json::Value>;
    if written.len() + values.len() > MAX_COMPARED_BYTES {
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
    let more = names.len().saturating_sub(MAX_FILLED_LISTED);
    names.truncate(MAX_FILLED_LISTED);
    (names, more)
}

/// The rule that refused it, and the model's view of that.
fn push_rejection<'a>(ink: &ContentCx<'a>, call: &'a CallState, out: &mut Vec<TextBlock<'a>>) {
    let Some(CallRejection { rule, text }) = &call.rejected else {
        return;
    };
    out.push(empty_row());
    out.push(styled_line([
        (
            format!("{} refused by rule ", ink.glyphs().error).as_str(),
            Role::Error,
        ),
        (rule.as_str(), Role::Error),
        (explain_rule(rule), Role::Muted),
        (": the model was told", Role::Error),
    ]));
    out.push(TextBlock {
        indent: 2,
        ..TextBlock::new(text.as_str(), Role::Text)
    });
}

/// A rule in other words; nothing for one that says enough, or that this version does not know.
fn explain_rule(rule: &str) -> &'static str {
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
fn describe_end<'a>(
    ink: &ContentCx<'a>,
    call: &'a CallState,
    shown: &ShownCell<'a>,
) -> Vec<TextBlock<'a>> {
    let (received, started) = (call.received_at, call.started_at);
    let waited = started.map_or(Millis(0), |started| started.since(received));
    let waited = if waited < MIN_REPORTED_WAIT {
        String::new()
    } else {
        format!(", after {waited} of waiting")
    };
    let so_far = |what: &str, since: Millis| {
        TextBlock::new(format!("{what} {} …", shown.now.since(since)), Role::Live)
    };
    let mut out = vec![match (&call.finished, started) {
        (Some(_), _) if call.name == SUBMIT_VERDICT => {
            TextBlock::new("the verdict was received", Role::Muted)
        }
        (Some(finished), _) => {
            let FinishedCall {
                response: answer,
                source: from,
                elapsed,
            } = finished;
            let (word, role) = if answer.is_error {
                ("error", Role::Error)
            } else {
                ("answered", Role::Pass)
            };
            let (mark, _) = call_mark(ink, call);
            let size = format_size(answer.bytes);
            let rest = match from {
                From::SameTrace { .. } => format!(" with an earlier answer: {size}"),
                _ => format!(" in {elapsed}: {size}{waited}"),
            };
            styled_line([
                (format!("{mark} {word}").as_str(), role),
                (rest.as_str(), Role::Text),
            ])
        }
        (None, _) if call.rejected.is_some() => {
            let mark = ink.glyphs().error;
            styled_line([(format!("{mark} rejected: it never ran"), Role::Error)])
        }
        (None, _) if shown.has_ended() => {
            TextBlock::new("the cell ended before it answered", Role::Muted)
        }
        (None, Some(started)) => so_far("running for", started),
        (None, None) => so_far("not started, waiting for", received),
    }];
    if let Some(From::SameTrace { turn, call }) =
        call.finished.as_ref().map(|finished| &finished.source)
    {
        let same = format!("turn {} call {}", turn.0 + 1, call.0 + 1);
        out.push(styled_line([
            ("answered once: same as ", Role::Muted),
            (same.as_str(), Role::Text),
        ]));
    }
    if let Some(why) = &call.retried {
        out.push(styled_line([
            ("tried again after: ", Role::Warning),
            (why.as_str(), Role::Text),
        ]));
    }
    out
}

/// Whether two small JSON texts say something else; large ones are compared as they are written.
fn json_differs(one: &str, other: &str) -> bool {
    if one == other || one.len() + other.len() > MAX_COMPARED_BYTES {
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
        let first = |over| streaming_arguments(&attempt, over)[0].text.to_string();
        assert_eq!(first(false), "arguments are forming …");
        assert_eq!(
            first(true),
            "as far as the arguments came before the cell ended"
        );
    }

    #[test]
    fn what_the_model_did_not_write_was_filled_in() {
        let filled = |written, values| find_filled_values(written, values).0;
        assert_eq!(filled(r#"{"a":1}"#, r#"{"a":1,"limit":10}"#), ["limit"]);
        assert!(filled(r#"{"a":"1"}"#, r#"{"a":1}"#).is_empty());
        assert!(filled("no json", r#"{"a":1}"#).is_empty());
        let many: Vec<String> = (0..25).map(|n| format!("\"k{n}\":{n}")).collect();
        let (names, more) = find_filled_values("{}", &format!("{{{}}}", many.join(",")));
        assert_eq!((names.len(), more), (20, 5));
    }
}
