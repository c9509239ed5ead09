//! The text of the function call pane: the arguments while they stream, then raw and canonical arguments, repairs,
//! conversions, defaults, rejections, and the duration.
//!
//! Uses only the recorded facts of a call and never prepares it again, so a replay shows what happened then.

use std::borrow::Cow;

use super::argument_diff::ArgumentDiff;
use super::{
    ContentCx, EDITED_BY_HAND, empty_row, explain_no_cell, format_size, heading, overlay_spans,
    styled_line,
};
use crate::event::{
    AttemptState, CallRejection, CallState, FinishedCall, ToolResponseSource, TurnState,
};
use crate::model::{ArgumentChange, Millis, RawJson, SUBMIT_VERDICT};
use crate::theme::Role;
use crate::tui::state::judge_trace::{find_shown_call, find_streaming_call};
use crate::tui::state::pane::Pane;
use crate::tui::state::shown_cell::{ShownCell, resolve_shown_cell};
use crate::tui::widget::flow::{TextBlock, TextSource};

/// The largest arguments that are laid out and compared for every frame, in bytes.
const MAX_COMPARED_BYTES: usize = 16 << 10;
/// The shortest reported wait before a call.
const MIN_REPORTED_WAIT: Millis = Millis(100);
/// The largest number of filled-in values that are listed; others are counted.
const MAX_FILLED_LISTED: usize = 20;

/// Returns the text of the pane.
pub(super) fn build_source<'a>(cx: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    let Some(shown) = resolve_shown_cell(cx.app) else {
        return Box::new(explain_no_cell());
    };
    let trace = &cx.app.session().trace_panes;
    let turns = shown.turns();
    // A call that still streams has only partial arguments.
    if let Some((_, attempt)) = find_streaming_call(trace, turns) {
        return Box::new(streaming_arguments(attempt, shown.has_ended()));
    }
    let Some(position) = find_shown_call(trace, turns) else {
        return Box::new(explain_no_call(cx, &shown));
    };
    let mut out = Vec::new();
    // A single call needs no list.
    let turn = &turns[position.turn];
    if turn.calls.len() > 1 {
        out.extend(list_calls(cx, turn, position.call));
        out.push(empty_row());
    }
    push_call(
        cx,
        &turn.calls[position.call],
        &shown,
        Pane::FunctionCall,
        &mut out,
    );
    Box::new(out)
}

fn explain_no_call<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> Vec<TextBlock<'a>> {
    let fills = "this pane shows the arguments of the judge's tool calls";
    if let Some(explanation) = cx.explain_empty_trace(shown, fills) {
        return explanation;
    }
    let toolless = shown.is_toolless();
    // The most basic reason comes first.
    let why = match (shown.judge_spec(), shown.turns()) {
        (None, _) => "no calls: this eval has no judge",
        (Some(_), _) if toolless => "no calls: this judge has no tools",
        (Some(_), []) => "no calls: the judge was not called",
        (Some(_), _) if shown.is_live() => "no call in this turn so far",
        (Some(_), _) => "no call in this turn",
    };
    vec![TextBlock::new(why, Role::Muted)]
}

/// Returns the arguments while they stream, or the received part if the cell ended first.
pub(super) fn streaming_arguments(attempt: &AttemptState, over: bool) -> Vec<TextBlock<'_>> {
    let (what, role) = if over {
        ("the arguments received before the cell ended", Role::Muted)
    } else {
        ("receiving the arguments …", Role::Live)
    };
    let mut out = vec![styled_line([(what, role)])];
    // The arguments can be incomplete JSON, so they stay plain text.
    for args in attempt.args.values() {
        out.push(TextBlock::new(args.as_str(), Role::Text));
    }
    out
}

/// Lists the calls of a turn, with the open one marked and the keys that move between them.
fn list_calls<'a>(cx: &ContentCx<'a>, turn: &'a TurnState, open: usize) -> Vec<TextBlock<'a>> {
    // The first line counts the calls and names the keys.
    let cursor = cx.glyphs().cursor;
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
        let (mark, role) = call_mark(cx, call);
        let duration = match &call.finished {
            Some(finished) => format!(" {}", finished.elapsed),
            None => String::new(),
        };
        TextBlock {
            indent: 2,
            lead: if at == open { cursor } else { "" }.into(),
            ..styled_line([
                (format!("{} {} ", at + 1, call.name).as_str(), Role::Tool),
                (mark, role),
                (duration.as_str(), Role::Muted),
            ])
        }
    };
    let lines = turn.calls.iter().enumerate().map(line);
    std::iter::once(head).chain(lines).collect()
}

/// Returns the mark of a call's state.
fn call_mark<'a>(cx: &ContentCx<'a>, call: &CallState) -> (&'a str, Role) {
    match (&call.rejected, &call.finished) {
        (Some(_), _) => (cx.glyphs().error, Role::Error),
        (None, Some(finished)) if finished.response.is_error => (cx.glyphs().fail, Role::Error),
        (None, Some(_)) => (cx.glyphs().pass, Role::Pass),
        (None, None) => (cx.glyphs().ellipsis, Role::Live),
    }
}

/// Adds a call: its end, and the raw, canonical and validated arguments.
pub(super) fn push_call<'a>(
    cx: &mut ContentCx<'a>,
    call: &'a CallState,
    shown: &ShownCell<'a>,
    pane: Pane,
    out: &mut Vec<TextBlock<'a>>,
) {
    out.push(styled_line([(call.name.as_str(), Role::Tool)]));
    out.extend(describe_end(cx, call, shown));
    out.push(empty_row());
    // Without canonical arguments, the raw ones were already canonical, unless the rule `parse` rejected
    // them.
    let unreadable = call.canonical.is_none()
        && call
            .rejected
            .as_ref()
            .is_some_and(|rejection| rejection.rule == "parse");
    match call.canonical.as_ref().map(RawJson::get) {
        Some(canonical) if cx.app.session().trace_panes.shows_raw => {
            out.push(heading("raw arguments"));
            out.push(TextBlock::new(call.raw.as_str(), Role::Text));
            out.push(heading("canonical arguments"));
            out.push(TextBlock::new(canonical, Role::Text));
        }
        Some(canonical) => push_arguments(cx, (&call.raw, canonical), pane, out),
        None if unreadable || cx.app.session().trace_panes.shows_raw => {
            out.push(heading("raw arguments"));
            out.push(TextBlock::new(call.raw.as_str(), Role::Text));
            if unreadable {
                let why =
                    "no canonical arguments: this is not a JSON object, and dicta can't repair it";
                out.push(TextBlock::new(why, Role::Muted));
            }
        }
        None => {
            out.push(heading("raw arguments, also canonical"));
            out.push(cx.format_json(&call.raw));
        }
    }
    // dicta records canonical arguments only if they differ from the raw ones.
    if call.canonical.is_some() && call.changes.is_empty() {
        out.push(TextBlock::new("only the formatting differs", Role::Muted));
    }
    push_changes("repaired", &call.changes, out);
    push_changes("coerced", &call.coerced, out);
    push_values(cx, call, out);
    push_rejection(cx, call, out);
}

/// Adds raw and canonical arguments: in columns if they fit, else below each other.
fn push_arguments<'a>(
    cx: &mut ContentCx<'a>,
    (raw, canonical): (&'a str, &'a str),
    pane: Pane,
    out: &mut Vec<TextBlock<'a>>,
) {
    // In columns, if the pane is wide enough.
    let laid_out = cx.format_json(canonical);
    let difference = ArgumentDiff::compare(raw, &laid_out.text);
    let width = cx
        // The clipboard gets no columns.
        .columns
        .then(|| cx.app.layout().inner_size(pane).width);
    let columns = difference.as_ref().zip(width).and_then(|(found, width)| {
        found.render_columns((raw, &laid_out.text), &laid_out.spans, width, cx.glyphs())
    });
    if let Some(columns) = columns {
        out.extend(columns);
        return;
    }
    let (removed, added) =
        difference.map_or_else(Default::default, |found| (found.removed, found.added));
    out.push(heading("raw arguments"));
    out.push(TextBlock {
        spans: removed.into(),
        ..TextBlock::new(raw, Role::Text)
    });
    out.push(heading("canonical arguments"));
    let spans = Cow::Owned(overlay_spans(&laid_out.spans, &added));
    out.push(TextBlock { spans, ..laid_out });
}

/// Adds one line for each change: `repaired: quoted a key at /url`.
fn push_changes<'a>(what: &str, changes: &'a [ArgumentChange], out: &mut Vec<TextBlock<'a>>) {
    for change in changes {
        if change.is_by_hand() {
            out.push(TextBlock::new(EDITED_BY_HAND, Role::Warning));
            continue;
        }
        let place = if change.path.is_empty() { "" } else { " at " };
        out.push(styled_line([
            (format!("{what}: ").as_str(), Role::Warning),
            (change.what.as_str(), Role::Text),
            (place, Role::Muted),
            (change.path.as_str(), Role::CodeKey),
        ]));
    }
}

/// Adds the values that the tool got if they differ from the arguments: defaults, claims, converted values.
fn push_values<'a>(cx: &mut ContentCx<'a>, call: &'a CallState, out: &mut Vec<TextBlock<'a>>) {
    let Some(values) = call.values.as_ref().map(RawJson::get) else {
        return;
    };
    // Compare with the canonical form, because the raw one may not be JSON.
    let written = call
        .canonical
        .as_ref()
        .map_or(call.raw.as_str(), RawJson::get);
    // Compare the values, because another layout of the same values is not a change.
    if !json_differs(values, written) {
        return;
    }
    out.push(heading("validated arguments"));
    out.push(cx.format_json(values));
    let (filled, more) = find_filled_values(written, values);
    for name in filled {
        out.push(styled_line([
            ("filled in: ", Role::Warning),
            (name.as_str(), Role::CodeKey),
            (", not written by the model", Role::Muted),
        ]));
    }
    if more > 0 {
        out.push(TextBlock::new(format!("… and {more} more"), Role::Muted));
    }
}

/// Returns the names that occur only in the values, and the number of further ones.
fn find_filled_values(written: &str, values: &str) -> (Vec<String>, usize) {
    type Object = serde_json::Map<String, serde_json::Value>;
    if written.len() + values.len() > MAX_COMPARED_BYTES {
        return Default::default();
    }
    // Only an object has names to compare.
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

/// Adds the rule that rejected the call and the message for the model.
fn push_rejection<'a>(cx: &ContentCx<'a>, call: &'a CallState, out: &mut Vec<TextBlock<'a>>) {
    let Some(CallRejection { rule, text }) = &call.rejected else {
        return;
    };
    out.push(empty_row());
    out.push(styled_line([
        (
            format!("{} rejected by rule ", cx.glyphs().error).as_str(),
            Role::Error,
        ),
        (rule.as_str(), Role::Error),
        (explain_rule(rule), Role::Muted),
        (": message for the model", Role::Error),
    ]));
    out.push(TextBlock {
        indent: 2,
        ..TextBlock::new(text.as_str(), Role::Text)
    });
}

/// Returns an explanation of a rule, or an empty text if its name is clear or unknown to this version.
fn explain_rule(rule: &str) -> &'static str {
    match rule {
        "parse" => " (the arguments are not a JSON object)",
        "schema" | "parameters" | "arguments" => " (the tool's parameters)",
        "seen" => " (the URL was not in the texts that the judge read)",
        "after" => " (another tool must be called first)",
        "max_calls" => " (too many calls of this tool)",
        "auth" => " (no valid token for this tool)",
        "frozen" => " (no recorded tool response)",
        "not_yet" => " (a verdict together with other calls)",
        _ => "",
    }
}

/// Returns the end and the duration of a call, one fact a line.
fn describe_end<'a>(
    cx: &ContentCx<'a>,
    call: &'a CallState,
    shown: &ShownCell<'a>,
) -> Vec<TextBlock<'a>> {
    let (received, started) = (call.received_at, call.started_at);
    let waited = started.map_or(Millis(0), |started| started.since(received));
    let waited = if waited < MIN_REPORTED_WAIT {
        String::new()
    } else {
        format!(", after waiting {waited}")
    };
    // The duration of an open call grows with every frame.
    let so_far = |what: &str, since: Millis| {
        TextBlock::new(format!("{what} {} …", shown.now.since(since)), Role::Live)
    };
    let mut out = vec![match (&call.finished, started) {
        // The verdict has a pane of its own, so only its arrival is reported here.
        (Some(_), _) if call.name == SUBMIT_VERDICT => {
            TextBlock::new("verdict received", Role::Muted)
        }
        (Some(finished), _) => {
            let FinishedCall {
                response,
                source: from,
                elapsed,
            } = finished;
            let (word, role) = if response.is_error {
                ("error", Role::Error)
            } else {
                ("answered", Role::Pass)
            };
            let (mark, _) = call_mark(cx, call);
            let size = format_size(response.bytes);
            let rest = match from {
                // No time: the response was there already.
                ToolResponseSource::SameTrace { .. } => {
                    format!(" from an earlier response: {size}")
                }
                _ => format!(" in {elapsed}: {size}{waited}"),
            };
            styled_line([
                (format!("{mark} {word}").as_str(), role),
                (rest.as_str(), Role::Text),
            ])
        }
        // A rejected call never starts, so this case precedes those of open calls.
        (None, _) if call.rejected.is_some() => {
            let mark = cx.glyphs().error;
            styled_line([(format!("{mark} rejected: it never ran"), Role::Error)])
        }
        (None, _) if call.pending.is_some() => {
            TextBlock::new("paused before the judge got the response", Role::Warning)
        }
        (None, _) if shown.has_ended() => {
            TextBlock::new("the cell ended before the tool responded", Role::Muted)
        }
        (None, Some(started)) => so_far("running for", started),
        (None, None) => so_far("not started, waiting for", received),
    }];
    if let Some(ToolResponseSource::SameTrace { turn, call }) =
        call.finished.as_ref().map(|finished| &finished.source)
    {
        let same = format!("turn {} call {}", turn.0 + 1, call.0 + 1);
        out.push(styled_line([
            ("same response as ", Role::Muted),
            (same.as_str(), Role::Text),
        ]));
    }
    if let Some(why) = &call.retried {
        out.push(styled_line([
            ("retried after: ", Role::Warning),
            (why.as_str(), Role::Text),
        ]));
    }
    out
}

/// Returns true if two small JSON texts have different values. Compares large texts byte by byte, which is faster.
fn json_differs(one: &str, other: &str) -> bool {
    if one == other || one.len() + other.len() > MAX_COMPARED_BYTES {
        return one != other;
    }
    // Parsed values ignore white space.
    let parsed = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    parsed(one) != parsed(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_cell_receives_no_arguments() {
        let attempt = AttemptState::default();
        let first = |over| streaming_arguments(&attempt, over)[0].text.to_string();
        assert_eq!(first(false), "receiving the arguments …");
        assert_eq!(first(true), "the arguments received before the cell ended");
    }

    #[test]
    fn filled_values_are_those_the_model_did_not_write() {
        let filled = |written, values| find_filled_values(written, values).0;
        assert_eq!(filled(r#"{"a":1}"#, r#"{"a":1,"limit":10}"#), ["limit"]);
        assert!(filled(r#"{"a":"1"}"#, r#"{"a":1}"#).is_empty());
        assert!(filled("no json", r#"{"a":1}"#).is_empty());
        let many: Vec<String> = (0..25).map(|n| format!("\"k{n}\":{n}")).collect();
        let (names, more) = find_filled_values("{}", &format!("{{{}}}", many.join(",")));
        assert_eq!((names.len(), more), (20, 5));
    }
}
