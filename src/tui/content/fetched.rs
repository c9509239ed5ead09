//! What the tool answered: status, hops, addresses, bytes, truncation, and the text.

use std::borrow::Cow;

use super::{Ink, Text, gap, no_cell, rich, size};
use crate::event::{Answered, CallState, Piece, Source as From};
use crate::model::{Hop, Millis, SUBMIT};
use crate::theme::{Lang, Role};
use crate::tui::model::Model;
use crate::tui::model::texts::Read;
use crate::tui::model::trace::{Shown, call_at, fetch_number, forming, shown};
use crate::tui::widget::flow::{Block, Source};

/// The pane's text.
pub(super) fn source<'a>(ink: &mut Ink<'a>) -> Box<dyn Source + 'a> {
    let Some(shown) = shown(ink.model) else {
        return Box::new(no_cell());
    };
    let trace = &ink.model.desk().trace;
    let turns = shown.turns();
    if forming(trace, turns).is_some() && shown.is_over() {
        let why = "nothing was fetched: the cell ended while the call was written";
        return Box::new(vec![Block::new(why, Role::Muted)]);
    }
    if forming(trace, turns).is_some() {
        return Box::new(vec![Block::new("the call is being written …", Role::Live)]);
    }
    let Some((turn, at)) = call_at(trace, turns) else {
        return Box::new(nothing(ink, &shown));
    };
    let call = &turns[turn].calls[at];
    if call.name == SUBMIT {
        let why = "nothing was fetched: this call states the verdict";
        return Box::new(vec![Block::new(why, Role::Muted)]);
    }
    let mut out = Vec::new();
    if let Some(number) = fetch_number(turns, turn, at) {
        out.push(Block::new(format!("fetch {number}"), Role::Title));
    }
    out.extend(call.hops.iter().map(hop));
    match &call.finished {
        Some((answer, from, elapsed)) => {
            out.push(facts(answer, from, *elapsed, call.missed));
            out.push(gap());
            out.push(body(ink, answer, (turn, at)));
        }
        None => out.push(unanswered(call, shown.is_over())),
    }
    Box::new(out)
}

fn nothing<'a>(ink: &Ink<'a>, shown: &Shown<'a>) -> Vec<Block<'a>> {
    if let Some(plain) = super::decided_by_code(ink, shown) {
        return plain;
    }
    let fills =
        "here stands what a judge's tool calls returned: pages, with status, addresses and bytes";
    if let Some(waiting) = ink.waiting(shown, fills) {
        return waiting;
    }
    let toolless = shown.is_toolless();
    let why = match shown.judge() {
        None => "nothing is fetched: no judge decides this",
        Some(_) if toolless => "nothing is fetched: this judge has no tools",
        Some(_) if shown.is_live() => "nothing was fetched in this turn so far",
        Some(_) => "nothing was fetched in this turn",
    };
    vec![Block::new(why, Role::Muted)]
}

fn unanswered(call: &CallState, over: bool) -> Block<'_> {
    match &call.rejected {
        Some(_) if call.missed => Block::new(
            "a miss: frozen evidence has no answer for this call, so it was refused; 3 shows why",
            Role::Warning,
        ),
        Some((rule, _)) => Block::new(
            format!("refused by rule {rule} before it ran; 3 shows why"),
            Role::Error,
        ),
        None if over => Block::new("the cell ended before it answered", Role::Muted),
        None if call.started => Block::new("waiting for the answer …", Role::Live),
        None => Block::new("not started", Role::Muted),
    }
}

/// One request: where, at which address, how it ended.
fn hop(hop: &Hop) -> Block<'_> {
    let address = hop.address.map(|address| format!(" at {address}"));
    let (end, role) = match (&hop.refused, hop.status) {
        (Some(why), _) => (format!(" refused: {why}"), Role::Error),
        (None, Some(status)) if status >= 400 => (format!(" {status}"), Role::Error),
        (None, Some(status)) => (format!(" {status}"), Role::Pass),
        (None, None) => (" no answer".to_owned(), Role::Error),
    };
    rich([
        (hop.url.as_str(), Role::CodeLink),
        (address.as_deref().unwrap_or_default(), Role::Muted),
        (end.as_str(), role),
    ])
}

/// Size, kind, where from, how long.
fn facts<'a>(answer: &'a Answered, from: &'a From, elapsed: Millis, missed: bool) -> Block<'a> {
    let origin = match from {
        From::Live if missed => {
            format!("live, in {elapsed}: a miss, frozen evidence has no such page")
        }
        From::Live => format!("live, in {elapsed}"),
        From::Frozen { run } => format!("from the evidence of run {}", run.letters()),
        From::SameTrace { turn, call } => {
            format!("shared with call {} of turn {}", call.0 + 1, turn.0 + 1)
        }
        From::ByHand => "written by hand".to_owned(),
        From::Transcript => "read from the transcript".to_owned(),
    };
    let kind = answer.content_type.as_deref();
    rich([
        (if answer.is_error { "error · " } else { "" }, Role::Error),
        (size(answer.bytes).as_str(), Role::Text),
        (
            kind.map(|kind| format!(" · {kind}"))
                .unwrap_or_default()
                .as_str(),
            Role::Muted,
        ),
        (if answer.truncated { " · cut" } else { "" }, Role::Warning),
        (format!(" · {origin}").as_str(), Role::Muted),
    ])
}

/// The text, with the quote that was gone to.
fn body<'a>(ink: &mut Ink<'a>, answer: &'a Answered, at: (usize, usize)) -> Block<'a> {
    match ink.text(&answer.text) {
        Text::Reading(bytes) => Block::new(format!("reading {} …", size(bytes)), Role::Muted),
        Text::Failed(why) => Block::new(why, Role::Error),
        Text::Here(text, _) if answer.is_error => Block::new(text, Role::Error),
        Text::Here(text, name) => {
            let mut block = match lang(answer.content_type.as_deref()) {
                Some(lang) => ink.code(text, lang, Some(name)),
                None => Block::new(text, Role::Text),
            };
            if let Some((turn, call, range)) = &ink.model.desk().trace.quoted
                && (*turn, *call) == at
            {
                block.spans =
                    Cow::Owned(super::over(&block.spans, &[(range.clone(), Role::Match)]));
            }
            block
        }
    }
}

/// What a page is shown in. A page of HTML reaches the model as text with Markdown's marks.
fn lang(content_type: Option<&str>) -> Option<Lang> {
    let kind = content_type?.split(';').next()?.trim();
    Some(match kind {
        "text/html" | "application/xhtml+xml" | "text/markdown" => Lang::Markdown,
        kind if kind == "application/json" || kind.ends_with("+json") => Lang::Json,
        kind if kind.contains("yaml") => Lang::Yaml,
        kind if kind.contains("xml") => Lang::Html,
        _ => return None,
    })
}

/// A call's answer, if it is here: for finding quotes in it.
pub(crate) fn answer<'a>(model: &'a Model, call: &'a CallState) -> Option<Result<&'a str, ()>> {
    match &call.finished.as_ref()?.0.text {
        Piece::Text(text) => Some(Ok(text)),
        Piece::Blob(blob) => match model.texts.blobs.get(&blob.hash.0) {
            Some(Read::Here(text)) => Some(Ok(text)),
            Some(Read::Failed(_)) => None,
            Some(Read::Reading) | None => Some(Err(())),
        },
    }
}
