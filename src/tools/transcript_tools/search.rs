//! The tool `search_transcript`.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};

use super::{
    JudgedMessages, MAX_RESPONSE_BYTES, TranscriptToolArgs, new_response, to_visible_json_string,
};
use crate::event::CallCx;
use crate::model::{Millis, ToolResponse};

/// The text searched between two checks of the time, in bytes.
pub(super) const SLICE_BYTES: usize = 256 << 10;

/// The overlap of two slices, so that a match across their border is found.
const SLICE_OVERLAP: usize = 2 << 10;

/// The time limit of a search.
const MAX_SEARCH_TIME: Millis = Millis(2000);

/// The size limit of a compiled pattern, in bytes.
const MAX_PATTERN_SIZE: usize = 256 << 10;

/// The default number of shown matches.
const DEFAULT_MATCH_LIMIT: usize = 20;

/// The number of shown matches per message; the others are counted.
const MAX_SHOWN_PER_MESSAGE: usize = 5;

/// The text shown before and after a match, in bytes.
const CONTEXT_BYTES: usize = 80;

/// Compiles the pattern of a call. Refuses an invalid pattern and one that matches the empty text.
pub(super) fn compile_search_pattern(args: &TranscriptToolArgs) -> Result<Regex, String> {
    let text = if args.regex {
        args.query.clone()
    } else {
        regex::escape(&args.query)
    };
    let pattern = RegexBuilder::new(&text)
        .case_insensitive(!args.match_case)
        .multi_line(true)
        .size_limit(MAX_PATTERN_SIZE)
        // Both limits, because the size of a pattern and of its automaton grow separately.
        .dfa_size_limit(MAX_PATTERN_SIZE)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "the pattern is too large".to_owned(),
            error => format!("`query` is no regular expression: {error}"),
        })?;
    // An empty match exists at every byte and would fill the response.
    if pattern.is_match("") {
        return Err("the pattern finds the empty text everywhere; ask for a text".to_owned());
    }
    Ok(pattern)
}

pub(super) async fn search_transcript(
    messages: &JudgedMessages,
    args: &TranscriptToolArgs,
    cx: &CallCx,
) -> ToolResponse {
    let pattern = match compile_search_pattern(args) {
        Ok(pattern) => pattern,
        Err(why) => return ToolResponse::error(why),
    };
    // The search ends at the number of matches, the size of the response, or the time.
    let limit = args.limit.unwrap_or(DEFAULT_MATCH_LIMIT);
    let ends = cx.clock.now() + MAX_SEARCH_TIME;
    let mut found = SearchMatches::default();
    let mut message = args.from;
    let mut searched = 0;
    // The reason why the search stopped before the end.
    let mut stopped = None;
    while message < messages.message_count {
        if found.shown_count >= limit || found.lines.len() > MAX_RESPONSE_BYTES {
            stopped = Some("more places may follow");
            break;
        }
        let mut of_one = 0;
        let mut before = 0;
        for leaf in messages.parts_of(message) {
            let mut at = 0;
            while at < leaf.text.len() {
                let end = leaf
                    .text
                    .floor_char_boundary((at + SLICE_BYTES).min(leaf.text.len()));
                let slice_ends = leaf
                    .text
                    .floor_char_boundary((end + SLICE_OVERLAP).min(leaf.text.len()));
                for place in pattern.find_iter(&leaf.text[at..slice_ends]) {
                    // A match that begins in the overlap belongs to the next slice.
                    if at + place.start() >= end {
                        break;
                    }
                    of_one += 1;
                    found.total += 1;
                    if of_one <= MAX_SHOWN_PER_MESSAGE && found.shown_count < limit {
                        let (from, to) = (at + place.start(), at + place.end());
                        found.push_match(&leaf.label, &leaf.text, from, to, before);
                    }
                }
                searched += end - at;
                at = end;
                // Other tasks run between slices, and the time limit is checked.
                tokio::task::yield_now().await;
                if cx.clock.now() > ends {
                    stopped = Some("the search took too long");
                }
                if stopped.is_some() {
                    break;
                }
            }
            before += leaf.text.len();
            if stopped.is_some() {
                break;
            }
        }
        // Only some matches of each message are shown, so that one message cannot use the whole response.
        let more = of_one - found.shown_of_message;
        if more > 0 {
            let _infallible = writeln!(
                found.lines,
                "[{message}] and {more} more places in this message"
            );
        }
        found.shown_of_message = 0;
        message += 1;
        if stopped.is_some() {
            break;
        }
    }
    // The first line states the number of matches, the last one how to continue.
    let head = match (found.total, stopped) {
        (0, None) => "no place found".to_owned(),
        (1, _) => "1 place found".to_owned(),
        (n, _) => format!("{n} places found"),
    };
    let mut out = messages.delimiting_line(&head) + &found.lines;
    if let Some(why) = stopped {
        let rest = if message < messages.message_count {
            format!("{why}: search_transcript with from: {message} goes on")
        } else {
            format!("{why}; the end of the last message was not searched")
        };
        out.push_str(&messages.delimiting_line(&rest));
    }
    new_response(out, searched, stopped.is_some())
}

#[derive(Default)]
struct SearchMatches {
    lines: String,
    /// The numbers of matches found, matches shown, and matches shown of the current message.
    total: usize,
    shown_count: usize,
    shown_of_message: usize,
}

impl SearchMatches {
    /// Adds a match with its context on one line.
    fn push_match(&mut self, label: &str, text: &str, from: usize, to: usize, before: usize) {
        // Characters around the match, cut at character boundaries.
        let start = text.floor_char_boundary(from.saturating_sub(CONTEXT_BYTES));
        let end = text
            .floor_char_boundary((to.min(from + CONTEXT_BYTES) + CONTEXT_BYTES).min(text.len()));
        let (left, right) = (
            if start > 0 { "…" } else { "" },
            if end < text.len() { "…" } else { "" },
        );
        let _infallible = writeln!(
            self.lines,
            "{label}, byte {}: {left}{}{right}",
            before + from,
            to_visible_json_string(&text[start..end])
        );
        self.shown_count += 1;
        self.shown_of_message += 1;
    }
}
