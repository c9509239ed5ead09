//! What the tool answered: the requests it took, size, kind, where the answer came from, what a browser hides of it, and
//! the text as the model got it; or the body as it was received.

use std::borrow::Cow;
use std::sync::Arc;

use super::hops::hops;
use super::{Ink, Text, Unshown, gap, no_cell, over, rich, size};
use crate::event::{CallState, RecordedToolResponse, StoredText, ToolResponseSource as From};
use crate::model::{Millis, SUBMIT_VERDICT, count_invisible, pluralize};
use crate::theme::{Lang, Role};
use crate::tui::model::Model;
use crate::tui::model::texts::{Named, Read, unshown_key};
use crate::tui::model::trace::{Shown, call_at, fetch_number, forming, shown};
use crate::tui::widget::flow::{Block, Source};

/// Larger texts are not counted through for every frame, in bytes.
const COUNTED: usize = 64 << 10;

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
    if call.name == SUBMIT_VERDICT {
        let why = "nothing was fetched: this call states the verdict";
        return Box::new(vec![Block::new(why, Role::Muted)]);
    }
    let mut out = Vec::new();
    if let Some(number) = fetch_number(turns, turn, at) {
        out.push(rich([
            (format!("fetch {number}").as_str(), Role::Title),
            (" · ", Role::Muted),
            (call.name.as_str(), Role::Tool),
        ]));
    }
    out.extend(hops(&call.hops, ink.glyphs()));
    match &call.finished {
        Some((answer, from, elapsed)) => {
            out.push(facts(ink, answer, from, *elapsed, call.evidence_missed));
            let raw = ink.model.desk().trace.raw;
            let last = if raw {
                received(ink, answer, &mut out)
            } else {
                let url = call.hops.last().map(|hop| hop.url.as_str());
                body(ink, answer, url, (turn, at), &mut out)
            };
            out.push(gap());
            out.push(last);
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
        Some(_) if call.evidence_missed => Block::new(
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

/// Size, kind, where from, how long.
fn facts<'a>(
    ink: &Ink<'a>,
    answer: &'a RecordedToolResponse,
    from: &'a From,
    elapsed: Millis,
    missed: bool,
) -> Block<'a> {
    let origin = match from {
        From::Live if missed => {
            format!("live, in {elapsed}: a miss, frozen evidence has no such page")
        }
        From::Live => format!("live, in {elapsed}"),
        From::Frozen { run } => format!("from the evidence of run {}", run.letters()),
        From::SameTrace { turn, call } => {
            format!(
                "answered once: same as turn {} call {}",
                turn.0 + 1,
                call.0 + 1
            )
        }
        From::ByHand => "written by hand".to_owned(),
        From::Transcript => "read from the transcript".to_owned(),
    };
    let kind = answer.content_type.as_deref();
    rich([
        (if answer.is_error { "error · " } else { "" }, Role::Error),
        (sizes(ink, answer).as_str(), Role::Text),
        (if answer.truncated { ", cut" } else { "" }, Role::Warning),
        (
            kind.map(|kind| format!(" · {kind}"))
                .unwrap_or_default()
                .as_str(),
            Role::Muted,
        ),
        (format!(" · {origin}").as_str(), Role::Muted),
    ])
}

/// `12.4 KB`; of a text that was cut also how much of the body it is.
fn sizes(ink: &Ink<'_>, answer: &RecordedToolResponse) -> String {
    let whole = size(answer.bytes);
    if !answer.truncated {
        return whole;
    }
    let shown = match &answer.text {
        StoredText::Text(text) => text.len() as u64,
        StoredText::Blob(blob) => blob.bytes,
    };
    let raw = ink.model.desk().trace.raw;
    match &answer.raw {
        Some(kept) if raw => format!("{} of {whole} kept", size(kept.bytes)),
        _ => format!("{} of {whole} shown", size(shown)),
    }
}

/// The text as the model got it, with the quote that was gone to; what is hidden in it is told before.
fn body<'a>(
    ink: &mut Ink<'a>,
    answer: &'a RecordedToolResponse,
    url: Option<&str>,
    at: (usize, usize),
    out: &mut Vec<Block<'a>>,
) -> Block<'a> {
    match ink.text(&answer.text) {
        Text::Reading(bytes) => reading(bytes),
        Text::Failed(why) => Block::new(why, Role::Error),
        Text::Here(text, _) if answer.is_error => Block::new(text, Role::Error),
        Text::Here(text, name) => {
            let quoted = ink.model.desk().trace.quoted.as_ref();
            let quoted = quoted.filter(|(turn, call, _)| (*turn, *call) == at);
            // A quote stands at its place in the text as it is: then nothing is laid out anew.
            if quoted.is_none() && rows_of_json(text, answer.content_type.as_deref()) {
                return ink.json(text);
            }
            let mut block = match lang(answer.content_type.as_deref()) {
                Some(lang) => ink.code(text, lang, Some(name)),
                None => Block::new(text, Role::Text),
            };
            let hidden = unshown(ink, answer, url, text, name);
            out.extend(hides(answer, text, hidden));
            if let Some(hidden) = hidden {
                block.spans = Cow::Owned(over(&block.spans, hidden));
            }
            if let Some((_, _, range)) = quoted {
                let quoted = [(range.clone(), Role::Match)];
                block.spans = Cow::Owned(over(&block.spans, &quoted));
            }
            block
        }
    }
}

/// Whether a text is what a database or a server answers: JSON, by its type or by its looks, in lines that nobody reads.
fn rows_of_json(text: &str, content_type: Option<&str>) -> bool {
    const READ: usize = 80;
    let says_so = lang(content_type) == Some(Lang::Json);
    let looks_so = content_type.is_none() && text.starts_with(['{', '[']);
    let begins = |line: &str| line.trim_start().starts_with(['{', '[']);
    let unread = |line: &str| line.len() > READ && begins(line);
    (says_so || looks_so) && (!text.contains('\n') || text.lines().any(unread))
}

/// Where a browser does not show the text, as far as it is known; asks for it where it is not.
fn unshown<'a>(
    ink: &mut Ink<'a>,
    answer: &'a RecordedToolResponse,
    url: Option<&str>,
    text: &str,
    name: Named<'_>,
) -> Option<&'a [(std::ops::Range<usize>, Role)]> {
    let raw = answer.raw.as_ref().filter(|_| answer.hidden > 0)?;
    let key = unshown_key(&raw.hash.0, name);
    if let Some(looks) = ink.model.texts.looks.get(&key) {
        return looks.as_ref().map(|looks| looks.as_slice());
    }
    ink.wanted.unshown.push(Unshown {
        key,
        raw: raw.clone(),
        url: url.map(str::to_owned),
        content_type: answer.content_type.clone(),
        text: Arc::from(text),
    });
    None
}

/// What a person who reads the page does not see of it, counted.
fn hides<'a>(
    answer: &RecordedToolResponse,
    text: &str,
    found: Option<&[(std::ops::Range<usize>, Role)]>,
) -> Vec<Block<'a>> {
    let mut out = Vec::new();
    if answer.hidden > 0 {
        let count = pluralize(answer.hidden, "character");
        let marked = match found {
            Some([]) => "where is not known any more",
            Some(_) => "marked where they stand",
            None => "looking where …",
        };
        out.push(rich([
            ("hidden: ", Role::Warning),
            (
                format!("{count} that a browser does not show, ").as_str(),
                Role::Text,
            ),
            (marked, Role::Muted),
        ]));
    }
    let invisible = if text.len() <= COUNTED {
        count_invisible(text)
    } else {
        0
    };
    if invisible > 0 {
        let count = pluralize(invisible as u64, "invisible character");
        out.push(rich([
            ("hidden: ", Role::Warning),
            (count.as_str(), Role::Text),
            (", marked where they stand", Role::Muted),
        ]));
    }
    out
}

/// The body as it was received; bytes that are no text as hexadecimal numbers.
fn received<'a>(
    ink: &mut Ink<'a>,
    answer: &'a RecordedToolResponse,
    out: &mut Vec<Block<'a>>,
) -> Block<'a> {
    let told = |what: &str| rich([("raw: ", Role::Warning), (what, Role::Muted)]);
    let Some(raw) = &answer.raw else {
        out.push(told("no body was kept; this is the tool's own text"));
        return match ink.text(&answer.text) {
            Text::Reading(bytes) => reading(bytes),
            Text::Failed(why) => Block::new(why, Role::Error),
            Text::Here(text, _) => Block::new(text, Role::Text),
        };
    };
    match ink.blob(raw) {
        Text::Reading(bytes) => reading(bytes),
        Text::Failed(why) => Block::new(why, Role::Error),
        Text::Here(text, name) => {
            let kept = size(raw.bytes);
            out.push(told(&format!("the body as it was received, {kept}")));
            match source_lang(answer.content_type.as_deref()) {
                Some(lang) => ink.code(text, lang, Some(name)),
                None => Block::new(text, Role::Text),
            }
        }
    }
}

fn reading<'a>(bytes: u64) -> Block<'a> {
    Block::new(format!("reading {} …", size(bytes)), Role::Muted)
}

/// What a body is written in.
fn source_lang(content_type: Option<&str>) -> Option<Lang> {
    match lang(content_type)? {
        Lang::Markdown if content_type?.contains("html") => Some(Lang::Html),
        lang => Some(lang),
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
        StoredText::Text(text) => Some(Ok(text)),
        StoredText::Blob(blob) => match model.texts.blobs.get(&blob.hash.0) {
            Some(Read::Here(text)) => Some(Ok(text)),
            Some(Read::Failed(_)) => None,
            Some(Read::Reading) | None => Some(Err(())),
        },
    }
}
