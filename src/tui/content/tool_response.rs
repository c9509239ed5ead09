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
    CallRejection, CallState, RecordedToolResponse, StoredText, ToolResponseSource, TurnState,
};
use crate::model::{Millis, SUBMIT_VERDICT, count_invisible, pluralize};
use crate::theme::{CodeLanguage, Role, StyledSpan};
use crate::tui::state::judge_trace::{
    CallPosition, ResponseQuote, find_shown_response, find_streaming_call, number_fetch,
};
use crate::tui::state::shown_cell::{ShownCell, resolve_shown_cell};
use crate::tui::state::text_cache::{BlobState, TextCache, TextIdentity, unshown_text_key};
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
    // A cell that ended does not receive the rest of the call.
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
    let Some(position) = find_shown_response(trace, turns) else {
        return Box::new(explain_no_response(cx, &shown));
    };
    let call = &turns[position.turn].calls[position.call];
    // A submitted verdict runs no tool.
    if call.name == SUBMIT_VERDICT {
        let why = "no tool response: this call submits the verdict";
        return Box::new(vec![TextBlock::new(why, Role::Muted)]);
    }
    let mut out = Vec::new();
    push_response(cx, turns, position, shown.has_ended(), &mut out);
    Box::new(out)
}

/// Returns true if a response is a page, which reaches the judge as Markdown.
pub(super) fn is_markdown(content_type: Option<&str>) -> bool {
    response_language(content_type) == Some(CodeLanguage::Markdown)
}

/// Adds a tool response: its number, requests, facts, and last its text. `over` is true if the cell ended.
pub(super) fn push_response<'a>(
    cx: &mut ContentCx<'a>,
    turns: &'a [TurnState],
    position: CallPosition,
    over: bool,
    out: &mut Vec<TextBlock<'a>>,
) {
    let call = &turns[position.turn].calls[position.call];
    if let Some(number) = number_fetch(turns, position) {
        out.push(styled_line([
            (format!("fetch {number}").as_str(), Role::Title),
            (" · ", Role::Muted),
            (call.name.as_str(), Role::Tool),
        ]));
    }
    out.extend(hop_blocks(&call.hops, cx.glyphs()));
    match &call.finished {
        Some(finished) => {
            let response = &finished.response;
            out.push(describe_response(
                cx,
                response,
                &finished.source,
                finished.elapsed,
                call.evidence_missed,
            ));
            let raw = cx.app.session().trace_panes.shows_raw;
            let last = if raw {
                push_raw_body(cx, response, out)
            } else {
                // After redirects, the last request returned the page.
                let url = call.hops.last().map(|hop| hop.url.as_str());
                push_response_text(cx, response, url, position, out)
            };
            out.push(empty_row());
            out.push(last);
        }
        None => match &call.pending {
            Some(pending) => {
                let why = if over {
                    "the trace was interrupted before the judge got this response"
                } else {
                    "paused: the judge gets this response next"
                };
                out.push(TextBlock::new(why, Role::Warning));
                out.push(empty_row());
                let text = match cx.load_text(&pending.text) {
                    LoadedText::Reading(bytes) => reading_block(bytes),
                    LoadedText::Failed(why) => TextBlock::new(why, Role::Error),
                    LoadedText::Loaded { text, .. } => {
                        match crate::tools::pretty_print_json(text, MAX_COUNTED_BYTES) {
                            Some(pretty) => TextBlock::new(pretty, Role::Text),
                            None => TextBlock::new(text, Role::Text),
                        }
                    }
                };
                out.push(text);
            }
            None => out.push(explain_unanswered(call, over)),
        },
    }
}

fn explain_no_response<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> Vec<TextBlock<'a>> {
    let fills = "this pane shows the tool responses: pages with status, addresses and size";
    if let Some(explanation) = cx.explain_empty_trace(shown, fills) {
        return explanation;
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
            "rejected: no recorded tool response for this call; 3 shows the details",
            Role::Warning,
        ),
        Some(CallRejection { rule, .. }) => TextBlock::new(
            format!("rejected by rule {rule} before it ran; 3 shows the details"),
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
    response: &'a RecordedToolResponse,
    from: &'a ToolResponseSource,
    elapsed: Millis,
    missed: bool,
) -> TextBlock<'a> {
    // The origin contains the duration only for a live call.
    let origin = match from {
        ToolResponseSource::Live if missed => {
            format!("live, in {elapsed}: no recorded tool response")
        }
        ToolResponseSource::Live => format!("live, in {elapsed}"),
        ToolResponseSource::Frozen { run } => format!("recorded in run {}", run.letters()),
        ToolResponseSource::SameTrace { turn, call } => {
            format!("same response as turn {} call {}", turn.0 + 1, call.0 + 1)
        }
        ToolResponseSource::ByHand => "written by hand".to_owned(),
        ToolResponseSource::Transcript => "read from the transcript".to_owned(),
    };
    let kind = response.content_type.as_deref();
    styled_line([
        (if response.is_error { "error · " } else { "" }, Role::Error),
        (format_sizes(cx, response).as_str(), Role::Text),
        (if response.truncated { ", cut" } else { "" }, Role::Warning),
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
fn format_sizes(cx: &ContentCx<'_>, response: &RecordedToolResponse) -> String {
    let total = format_size(response.bytes);
    if !response.truncated {
        return total;
    }
    let text_bytes = match &response.text {
        StoredText::Text(text) => text.len() as u64,
        StoredText::Blob(blob) => blob.bytes,
    };
    let raw = cx.app.session().trace_panes.shows_raw;
    match &response.raw {
        Some(kept) if raw => format!("{} of {total} kept", format_size(kept.bytes)),
        _ => format!("{} of {total} shown", format_size(text_bytes)),
    }
}

/// Adds the text as the model got it, with the cited quote, after a note on its hidden parts.
fn push_response_text<'a>(
    cx: &mut ContentCx<'a>,
    response: &'a RecordedToolResponse,
    url: Option<&str>,
    position: CallPosition,
    out: &mut Vec<TextBlock<'a>>,
) -> TextBlock<'a> {
    match cx.load_text(&response.text) {
        LoadedText::Reading(bytes) => reading_block(bytes),
        LoadedText::Failed(why) => TextBlock::new(why, Role::Error),
        LoadedText::Loaded { text, .. } if response.is_error => TextBlock::new(text, Role::Error),
        LoadedText::Loaded {
            text,
            identity: name,
        } => {
            let quoted = cx.app.session().trace_panes.selected_quote.as_ref();
            // The selected quote may belong to another response.
            let quoted = quoted.filter(|quote| quote.position == position);
            // A quote's position refers to the original text, so the text must not be laid out again.
            if quoted.is_none() && is_json_rows(text, response.content_type.as_deref()) {
                return cx.format_json(text);
            }
            let mut block = match response_language(response.content_type.as_deref()) {
                Some(lang) => cx.highlight_code(text, lang, Some(name)),
                None => TextBlock::new(text, Role::Text),
            };
            let hidden = find_hidden_text(cx, response, url, text, name);
            // The note precedes the text, because the marks can be far below.
            out.extend(describe_hidden_text(response, text, hidden));
            if let Some(hidden) = hidden {
                block.spans = Cow::Owned(overlay_spans(&block.spans, hidden));
            }
            // The quote comes last, so that it is visible above hidden text.
            if let Some(ResponseQuote { range, .. }) = quoted {
                let quoted = [StyledSpan::new(range.clone(), Role::Match)];
                block.spans = Cow::Owned(overlay_spans(&block.spans, &quoted));
            }
            block
        }
    }
}

/// Returns true if a text is JSON from a database or server in lines too long to read.
fn is_json_rows(text: &str, content_type: Option<&str>) -> bool {
    // The length of a line, in bytes, above which JSON is laid out again.
    const READ: usize = 80;
    let has_json_type = response_language(content_type) == Some(CodeLanguage::Json);
    let looks_like_json = content_type.is_none() && text.starts_with(['{', '[']);
    // The rows of a database are objects or arrays, one a line.
    let starts_json = |line: &str| line.trim_start().starts_with(['{', '[']);
    let is_long_json = |line: &str| line.len() > READ && starts_json(line);
    (has_json_type || looks_like_json) && (!text.contains('\n') || text.lines().any(is_long_json))
}

/// Returns the hidden spans of a page, or requests them and returns none.
fn find_hidden_text<'a>(
    cx: &mut ContentCx<'a>,
    response: &'a RecordedToolResponse,
    url: Option<&str>,
    text: &str,
    name: TextIdentity<'_>,
) -> Option<&'a [StyledSpan]> {
    let raw = response.raw.as_ref().filter(|_| response.hidden > 0)?;
    let key = unshown_text_key(&raw.hash.0, name);
    if let Some(looks) = cx.app.texts.highlights.get(&key) {
        return looks.as_ref().map(|looks| looks.as_slice());
    }
    // The page must be read and parsed, and a frame must not wait for that.
    cx.missing.hidden_text.push(HiddenTextRequest {
        key,
        raw: raw.clone(),
        url: url.map(str::to_owned),
        content_type: response.content_type.clone(),
        text: Arc::from(text),
    });
    None
}

/// Returns the counts of the parts that a person who reads the page does not see.
fn describe_hidden_text<'a>(
    response: &RecordedToolResponse,
    text: &str,
    found: Option<&[StyledSpan]>,
) -> Vec<TextBlock<'a>> {
    let mut out = Vec::new();
    // First the text that the page hides by its styles.
    if response.hidden > 0 {
        let count = pluralize(response.hidden, "character");
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
    // Then the invisible characters of Unicode.
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
    response: &'a RecordedToolResponse,
    out: &mut Vec<TextBlock<'a>>,
) -> TextBlock<'a> {
    let raw_note = |what: &str| styled_line([("raw: ", Role::Warning), (what, Role::Muted)]);
    // Without a recorded body, show the text and report it.
    let Some(raw) = &response.raw else {
        out.push(raw_note(
            "no body was recorded; this is the tool's own text",
        ));
        return match cx.load_text(&response.text) {
            LoadedText::Reading(bytes) => reading_block(bytes),
            LoadedText::Failed(why) => TextBlock::new(why, Role::Error),
            LoadedText::Loaded { text, .. } => TextBlock::new(text, Role::Text),
        };
    };
    match cx.load_blob(raw) {
        LoadedText::Reading(bytes) => reading_block(bytes),
        LoadedText::Failed(why) => TextBlock::new(why, Role::Error),
        LoadedText::Loaded {
            text,
            identity: name,
        } => {
            let kept = format_size(raw.bytes);
            out.push(raw_note(&format!("the body as received, {kept}")));
            match raw_body_language(response.content_type.as_deref()) {
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
        // The model gets an HTML page as Markdown, but the raw body is HTML.
        CodeLanguage::Markdown if content_type?.contains("html") => Some(CodeLanguage::Html),
        lang => Some(lang),
    }
}

/// Returns the language of the text: an HTML page reaches the model as text with Markdown syntax.
fn response_language(content_type: Option<&str>) -> Option<CodeLanguage> {
    // A content type can have parameters, such as `; charset=utf-8`.
    let kind = content_type?.split(';').next()?.trim();
    Some(match kind {
        "text/html" | "application/xhtml+xml" | "text/markdown" => CodeLanguage::Markdown,
        kind if kind == "application/json" || kind.ends_with("+json") => CodeLanguage::Json,
        kind if kind.contains("yaml") => CodeLanguage::Yaml,
        // The highlighter of HTML also reads the tags of XML.
        kind if kind.contains("xml") => CodeLanguage::Html,
        _ => return None,
    })
}

/// Returns the text of a response if it is loaded, for finding quotes in it.
pub(crate) fn loaded_response<'a>(
    texts: &'a TextCache,
    call: &'a CallState,
) -> Option<Result<&'a str, ()>> {
    match &call.shown_response()?.text {
        StoredText::Text(text) => Some(Ok(text)),
        StoredText::Blob(blob) => match texts.blobs.get(&blob.hash.0) {
            Some(BlobState::Loaded(text)) => Some(Ok(text)),
            // No quote can be found in an unreadable text.
            Some(BlobState::Failed(_)) => None,
            // The search must wait for this text.
            Some(BlobState::Loading) | None => Some(Err(())),
        },
    }
}
