//! The text of the fetched content pane: the requests, size, type, origin and hidden parts of a tool response. Then
//! follows the text as the model got it, or the raw body.

use std::borrow::Cow;
use std::sync::Arc;

use super::hops::hop_blocks;
use super::{
    ContentCx, HiddenTextRequest, LoadedText, empty_row, explain_no_cell, format_size,
    overlay_spans, styled_line,
};
use crate::event::{
    CallRejection, CallState, RecordedToolResponse, StoredText, ToolResponseSource as From,
};
use crate::model::{Millis, SUBMIT_VERDICT, count_invisible, pluralize};
use crate::theme::{CodeLanguage, Role};
use crate::tui::state::App;
use crate::tui::state::judge_trace::{find_shown_call, find_streaming_call, number_fetch};
use crate::tui::state::shown_cell::{ShownCell, resolve_shown_cell};
use crate::tui::state::text_cache::{BlobState, TextIdentity, unshown_text_key};
use crate::tui::widget::flow::{TextBlock, TextSource};

/// The largest text whose marks are counted for every frame, in bytes.
const MAX_COUNTED_BYTES: usize = 64 << 10;

/// Returns the text of the pane.
pub(super) fn build_source<'a>(cx: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    let Some(shown) = resolve_shown_cell(cx.app) else {
        return Box::new(explain_no_cell());
    };
    let trace = &cx.app.session().trace_panes;
    let turns = shown.turns();
    if find_streaming_call(trace, turns).is_some() && shown.has_ended() {
        let why = "no tool response: the cell ended while the judge wrote the call";
        return Box::new(vec![TextBlock::new(why, Role::Muted)]);
    }
    if find_streaming_call(trace, turns).is_some() {
        return Box::new(vec![TextBlock::new(
            "the judge is writing the call …",
            Role::Live,
        )]);
    }
    let Some((turn, at)) = find_shown_call(trace, turns) else {
        return Box::new(explain_no_response(cx, &shown));
    };
    let call = &turns[turn].calls[at];
    if call.name == SUBMIT_VERDICT {
        let why = "no tool response: this call submits the verdict";
        return Box::new(vec![TextBlock::new(why, Role::Muted)]);
    }
    let mut out = Vec::new();
    if let Some(number) = number_fetch(turns, turn, at) {
        out.push(styled_line([
            (format!("fetch {number}").as_str(), Role::Title),
            (" · ", Role::Muted),
            (call.name.as_str(), Role::Tool),
        ]));
    }
    out.extend(hop_blocks(&call.hops, cx.glyphs()));
    match &call.finished {
        Some(finished) => {
            let answer = &finished.response;
            out.push(describe_response(
                cx,
                answer,
                &finished.source,
                finished.elapsed,
                call.evidence_missed,
            ));
            let raw = cx.app.session().trace_panes.shows_raw;
            let last = if raw {
                push_raw_body(cx, answer, &mut out)
            } else {
                let url = call.hops.last().map(|hop| hop.url.as_str());
                push_response_text(cx, answer, url, (turn, at), &mut out)
            };
            out.push(empty_row());
            out.push(last);
        }
        None => out.push(explain_unanswered(call, shown.has_ended())),
    }
    Box::new(out)
}

fn explain_no_response<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> Vec<TextBlock<'a>> {
    if let Some(plain) = super::explain_code_check(cx, shown) {
        return plain;
    }
    let fills = "this pane shows the tool responses: pages with status, addresses and size";
    if let Some(waiting) = cx.explain_empty_trace(shown, fills) {
        return waiting;
    }
    let toolless = shown.is_toolless();
    let why = match shown.judge_spec() {
        None => "no tool response: this eval has no judge",
        Some(_) if toolless => "no tool response: this judge has no tools",
        Some(_) if shown.is_live() => "no tool response in this turn so far",
        Some(_) => "no tool response in this turn",
    };
    vec![TextBlock::new(why, Role::Muted)]
}

fn explain_unanswered(call: &CallState, over: bool) -> TextBlock<'_> {
    match &call.rejected {
        Some(_) if call.evidence_missed => TextBlock::new(
            "refused: no recorded tool response for this call; 3 shows the details",
            Role::Warning,
        ),
        Some(CallRejection { rule, .. }) => TextBlock::new(
            format!("refused by rule {rule} before it ran; 3 shows the details"),
            Role::Error,
        ),
        None if over => TextBlock::new("the cell ended before the tool responded", Role::Muted),
        None if call.started => TextBlock::new("waiting for the response …", Role::Live),
        None => TextBlock::new("not started", Role::Muted),
    }
}

/// Returns size, type, origin and duration of a response.
fn describe_response<'a>(
    cx: &ContentCx<'a>,
    answer: &'a RecordedToolResponse,
    from: &'a From,
    elapsed: Millis,
    missed: bool,
) -> TextBlock<'a> {
    let origin = match from {
        From::Live if missed => {
            format!("live, in {elapsed}: no recorded tool response")
        }
        From::Live => format!("live, in {elapsed}"),
        From::Frozen { run } => format!("recorded in run {}", run.letters()),
        From::SameTrace { turn, call } => {
            format!("same response as turn {} call {}", turn.0 + 1, call.0 + 1)
        }
        From::ByHand => "written by hand".to_owned(),
        From::Transcript => "read from the transcript".to_owned(),
    };
    let kind = answer.content_type.as_deref();
    styled_line([
        (if answer.is_error { "error · " } else { "" }, Role::Error),
        (format_sizes(cx, answer).as_str(), Role::Text),
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

/// Formats the size, `12.4 KB`; for a shortened text also its part of the body.
fn format_sizes(cx: &ContentCx<'_>, answer: &RecordedToolResponse) -> String {
    let whole = format_size(answer.bytes);
    if !answer.truncated {
        return whole;
    }
    let shown = match &answer.text {
        StoredText::Text(text) => text.len() as u64,
        StoredText::Blob(blob) => blob.bytes,
    };
    let raw = cx.app.session().trace_panes.shows_raw;
    match &answer.raw {
        Some(kept) if raw => format!("{} of {whole} kept", format_size(kept.bytes)),
        _ => format!("{} of {whole} shown", format_size(shown)),
    }
}

/// Adds the text as the model got it, with the cited quote, after a note on its hidden parts.
fn push_response_text<'a>(
    cx: &mut ContentCx<'a>,
    answer: &'a RecordedToolResponse,
    url: Option<&str>,
    at: (usize, usize),
    out: &mut Vec<TextBlock<'a>>,
) -> TextBlock<'a> {
    match cx.load_text(&answer.text) {
        LoadedText::Reading(bytes) => reading_block(bytes),
        LoadedText::Failed(why) => TextBlock::new(why, Role::Error),
        LoadedText::Loaded(text, _) if answer.is_error => TextBlock::new(text, Role::Error),
        LoadedText::Loaded(text, name) => {
            let quoted = cx.app.session().trace_panes.selected_quote.as_ref();
            let quoted = quoted.filter(|(turn, call, _)| (*turn, *call) == at);
            // A quote's position refers to the original text, so the text must not be laid out again.
            if quoted.is_none() && is_json_rows(text, answer.content_type.as_deref()) {
                return cx.format_json(text);
            }
            let mut block = match response_language(answer.content_type.as_deref()) {
                Some(lang) => cx.highlight_code(text, lang, Some(name)),
                None => TextBlock::new(text, Role::Text),
            };
            let hidden = find_hidden_text(cx, answer, url, text, name);
            out.extend(describe_hidden_text(answer, text, hidden));
            if let Some(hidden) = hidden {
                block.spans = Cow::Owned(overlay_spans(&block.spans, hidden));
            }
            if let Some((_, _, range)) = quoted {
                let quoted = [(range.clone(), Role::Match)];
                block.spans = Cow::Owned(overlay_spans(&block.spans, &quoted));
            }
            block
        }
    }
}

/// Returns true if a text is JSON from a database or server in lines too long to read.
fn is_json_rows(text: &str, content_type: Option<&str>) -> bool {
    const READ: usize = 80;
    let says_so = response_language(content_type) == Some(CodeLanguage::Json);
    let looks_so = content_type.is_none() && text.starts_with(['{', '[']);
    let begins = |line: &str| line.trim_start().starts_with(['{', '[']);
    let unread = |line: &str| line.len() > READ && begins(line);
    (says_so || looks_so) && (!text.contains('\n') || text.lines().any(unread))
}

/// Returns the hidden spans of a page, or requests them and returns none.
fn find_hidden_text<'a>(
    cx: &mut ContentCx<'a>,
    answer: &'a RecordedToolResponse,
    url: Option<&str>,
    text: &str,
    name: TextIdentity<'_>,
) -> Option<&'a [(std::ops::Range<usize>, Role)]> {
    let raw = answer.raw.as_ref().filter(|_| answer.hidden > 0)?;
    let key = unshown_text_key(&raw.hash.0, name);
    if let Some(looks) = cx.app.texts.highlights.get(&key) {
        return looks.as_ref().map(|looks| looks.as_slice());
    }
    cx.missing.hidden_text.push(HiddenTextRequest {
        key,
        raw: raw.clone(),
        url: url.map(str::to_owned),
        content_type: answer.content_type.clone(),
        text: Arc::from(text),
    });
    None
}

/// Returns the counts of the parts that a person who reads the page does not see.
fn describe_hidden_text<'a>(
    answer: &RecordedToolResponse,
    text: &str,
    found: Option<&[(std::ops::Range<usize>, Role)]>,
) -> Vec<TextBlock<'a>> {
    let mut out = Vec::new();
    if answer.hidden > 0 {
        let count = pluralize(answer.hidden, "character");
        let marked = match found {
            Some([]) => "their positions are unknown",
            Some(_) => "marked in the text",
            None => "locating them …",
        };
        out.push(styled_line([
            ("hidden: ", Role::Warning),
            (
                format!("{count} hidden in a browser, ").as_str(),
                Role::Text,
            ),
            (marked, Role::Muted),
        ]));
    }
    let invisible = if text.len() <= MAX_COUNTED_BYTES {
        count_invisible(text)
    } else {
        0
    };
    if invisible > 0 {
        let count = pluralize(invisible as u64, "invisible character");
        out.push(styled_line([
            ("hidden: ", Role::Warning),
            (count.as_str(), Role::Text),
            (", marked in the text", Role::Muted),
        ]));
    }
    out
}

/// Adds the raw body, as a hex dump if it is binary.
fn push_raw_body<'a>(
    cx: &mut ContentCx<'a>,
    answer: &'a RecordedToolResponse,
    out: &mut Vec<TextBlock<'a>>,
) -> TextBlock<'a> {
    let raw_note = |what: &str| styled_line([("raw: ", Role::Warning), (what, Role::Muted)]);
    let Some(raw) = &answer.raw else {
        out.push(raw_note(
            "no body was recorded; this is the tool's own text",
        ));
        return match cx.load_text(&answer.text) {
            LoadedText::Reading(bytes) => reading_block(bytes),
            LoadedText::Failed(why) => TextBlock::new(why, Role::Error),
            LoadedText::Loaded(text, _) => TextBlock::new(text, Role::Text),
        };
    };
    match cx.load_blob(raw) {
        LoadedText::Reading(bytes) => reading_block(bytes),
        LoadedText::Failed(why) => TextBlock::new(why, Role::Error),
        LoadedText::Loaded(text, name) => {
            let kept = format_size(raw.bytes);
            out.push(raw_note(&format!("the body as received, {kept}")));
            match raw_body_language(answer.content_type.as_deref()) {
                Some(lang) => cx.highlight_code(text, lang, Some(name)),
                None => TextBlock::new(text, Role::Text),
            }
        }
    }
}

fn reading_block<'a>(bytes: u64) -> TextBlock<'a> {
    TextBlock::new(format!("reading {} …", format_size(bytes)), Role::Muted)
}

/// Returns the language of a raw body.
fn raw_body_language(content_type: Option<&str>) -> Option<CodeLanguage> {
    match response_language(content_type)? {
        CodeLanguage::Markdown if content_type?.contains("html") => Some(CodeLanguage::Html),
        lang => Some(lang),
    }
}

/// Returns the language of the text: an HTML page reaches the model as text with Markdown syntax.
fn response_language(content_type: Option<&str>) -> Option<CodeLanguage> {
    let kind = content_type?.split(';').next()?.trim();
    Some(match kind {
        "text/html" | "application/xhtml+xml" | "text/markdown" => CodeLanguage::Markdown,
        kind if kind == "application/json" || kind.ends_with("+json") => CodeLanguage::Json,
        kind if kind.contains("yaml") => CodeLanguage::Yaml,
        kind if kind.contains("xml") => CodeLanguage::Html,
        _ => return None,
    })
}

/// Returns the text of a response if it is loaded, for finding quotes in it.
pub(crate) fn loaded_response<'a>(
    app: &'a App,
    call: &'a CallState,
) -> Option<Result<&'a str, ()>> {
    match &call.finished.as_ref()?.response.text {
        StoredText::Text(text) => Some(Ok(text)),
        StoredText::Blob(blob) => match app.texts.blobs.get(&blob.hash.0) {
            Some(BlobState::Loaded(text)) => Some(Ok(text)),
            Some(BlobState::Failed(_)) => None,
            Some(BlobState::Loading) | None => Some(Err(())),
        },
    }
}
