//! The position in the text and the lookahead.
//!
//! Every lookahead is short or stops at the next quote, so that the repair takes one pass even for hostile text.

use super::quote_style::QuoteStyle;
use super::repair_log::{RepairKind, RepairLog, RepairPathStep};

/// The lookahead for a key or a short item, in bytes.
const MAX_LOOKAHEAD: usize = 400;

/// The signs that open or close a quoted text.
const QUOTE_SIGNS: [char; 8] = ['"', '＂', '\'', '`', '“', '”', '‘', '’'];

/// An open bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenBracket {
    Object,
    List,
}

pub(super) struct JsonRepairer<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// The open brackets, outermost first.
    pub(super) open_brackets: Vec<OpenBracket>,
    pub(super) path: Vec<RepairPathStep>,
    pub(super) log: RepairLog,
    /// True if the text ended before all brackets were closed.
    pub(super) was_truncated: bool,
    /// True if a comma was skipped that counts for the next value.
    pub(super) has_pending_comma: bool,
    /// True if a later value of the same key replaced a value.
    pub(super) has_duplicate_keys: bool,
    /// True if no `"""` or `'''` follows. It keeps the search from running again.
    pub(super) no_triple_quote_ahead: bool,
    pub(super) last_newline: usize,
    /// The position behind the last text whose closing quote was found; 0 if there is none.
    pub(super) last_text_end: usize,
    /// True if the current text has a backslash that begins no escape of JSON and stays a backslash, as in `\d`.
    pub(super) has_kept_backslash: bool,
    /// True if the current text has an escape of JSON with a letter, such as `\n`.
    pub(super) has_letter_escape: bool,
    /// True if a comment, or a token or tag with other words than those of chat templates, is outside all brackets.
    pub(super) has_outer_remark: bool,
    /// The reason why the first ambiguous text or unquoted value has another reading.
    pub(super) second_reading: Option<String>,
}

impl<'t> JsonRepairer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            open_brackets: Vec::new(),
            path: Vec::new(),
            log: RepairLog::default(),
            was_truncated: false,
            has_pending_comma: false,
            has_duplicate_keys: false,
            no_triple_quote_ahead: false,
            last_newline: text.rfind('\n').unwrap_or(0),
            last_text_end: 0,
            has_kept_backslash: false,
            has_letter_escape: false,
            has_outer_remark: false,
            second_reading: None,
        }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn eat(&mut self, what: &str) -> bool {
        let there = self.rest().starts_with(what);
        if there {
            self.at += what.len();
        }
        there
    }

    pub(super) fn log_repair(&mut self, kind: RepairKind) {
        self.log.add(kind, &self.path);
    }

    pub(super) fn is_within(&self, open: OpenBracket) -> bool {
        // The nesting limit bounds this search to 128 brackets.
        self.open_brackets.contains(&open)
    }

    /// Returns true if no JSON follows: at the end, a code fence or a closing tag.
    pub(super) fn is_at_end(&self) -> bool {
        is_end(self.rest())
    }

    /// Skips white space, comments and leaked tokens.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let passed = blank_len(rest);
            if passed > 0 {
                // JSON allows only these four blanks, so others are a repair.
                if !rest.as_bytes()[..passed]
                    .iter()
                    .all(|byte| b" \t\r\n".contains(byte))
                {
                    self.log_repair(RepairKind::NonJsonBlank);
                }
                self.at += passed;
                continue;
            }
            if let Some(length) = comment_len(rest) {
                self.log_repair(RepairKind::Comment);
                self.has_outer_remark |= self.open_brackets.is_empty();
                self.at += length;
            } else if let Some(length) = token_len(rest) {
                self.log_repair(RepairKind::Token);
                // The tokens of chat templates are single words, such as `<|im_end|>`.
                let is_remark = rest[..length].contains(is_blank);
                self.has_outer_remark |= is_remark && self.open_brackets.is_empty();
                self.at += length;
            } else {
                return;
            }
        }
    }
}

/// Returns true if the JSON ends before `rest`.
pub(super) fn is_end(rest: &str) -> bool {
    // A code fence or a closing tag ends the JSON; an opening tag may be part of a text.
    rest.is_empty()
        || rest.starts_with("```")
        || rest
            .strip_prefix("</")
            .is_some_and(|tag| tag.starts_with(|c: char| c.is_ascii_alphabetic()))
}

pub(super) fn is_blank(c: char) -> bool {
    // These invisible characters are not white space in Unicode.
    c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

pub(super) fn blank_len(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_blank).len()
}

pub(super) fn is_comment(rest: &str) -> bool {
    rest.starts_with("/*") || rest.starts_with("//") || rest.starts_with('#')
}

fn comment_len(rest: &str) -> Option<usize> {
    if let Some(inside) = rest.strip_prefix("/*") {
        return Some(inside.find("*/").map_or(rest.len(), |at| at + 4));
    }
    is_comment(rest).then(|| rest.find('\n').unwrap_or(rest.len()))
}

/// Returns the length of a leaked template token that is not a quote.
pub(super) fn token_len(rest: &str) -> Option<usize> {
    if let Some(inside) = rest.strip_prefix("<|") {
        if QuoteStyle::parse_opening(rest).is_some() {
            return None;
        }
        // A token of a chat template is short, so a `|>` far away is not its end.
        let near = take_bytes(inside, 44);
        return near.find("|>").map(|at| at + 4);
    }
    ["<start_of_turn>", "<end_of_turn>"]
        .into_iter()
        .find(|tag| rest.starts_with(tag))
        .map(str::len)
}

/// Returns at most the first `max` bytes, cut at a character boundary.
pub(super) fn take_bytes(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

pub(super) fn is_colon(c: char) -> bool {
    matches!(c, ':' | '：')
}

pub(super) fn is_comma(c: char) -> bool {
    matches!(c, ',' | ';' | '，' | '；')
}

fn trim_blanks_start(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

/// Returns the text after a short quoted text: `None` if there is no such text, `Some("")` if it is cut.
fn after_quoted_text(rest: &str) -> Option<&str> {
    let (quote, length) = QuoteStyle::parse_opening(rest)?;
    let mut at = length;
    while at < MAX_LOOKAHEAD.min(rest.len()) {
        let here = &rest[at..];
        if let Some(length) = quote.closing_len(here, rest[..at].chars().next_back()) {
            return Some(trim_blanks_start(&here[length..]));
        }
        let c = here.chars().next()?;
        at += c.len_utf8();
        // An escaped quote does not close the text.
        if c == '\\' {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    // A text that the input cuts counts as complete, because no key can follow it.
    (at >= rest.len()).then_some("")
}

/// Returns true if a quoted key follows, possibly cut.
pub(super) fn starts_with_quoted_key(rest: &str) -> bool {
    after_quoted_text(rest)
        .is_some_and(|behind| behind.is_empty() || behind.starts_with(|c| is_colon(c) || c == '='))
}

/// Returns true if a quoted key and its colon follow.
pub(super) fn starts_with_key_and_colon(rest: &str) -> bool {
    after_quoted_text(rest).is_some_and(|behind| behind.starts_with(|c| is_colon(c) || c == '='))
}

/// Returns true if a quoted key and `=` instead of its colon follow.
pub(super) fn starts_with_key_and_equals_sign(rest: &str) -> bool {
    after_quoted_text(rest).is_some_and(|behind| behind.starts_with('='))
}

/// Returns true if a quoted key without a value follows as the last one.
pub(super) fn starts_with_last_key(rest: &str) -> bool {
    after_quoted_text(rest)
        .and_then(|behind| behind.strip_prefix('}'))
        .is_some_and(|behind| {
            let behind = trim_blanks_start(behind);
            is_end(behind) || behind.starts_with([',', ']', '}'])
        })
}

/// Returns true if a quoted item follows.
pub(super) fn starts_with_quoted_item(rest: &str) -> bool {
    after_quoted_text(rest).is_some_and(|behind| {
        behind.is_empty()
            || behind.starts_with(|c| is_comma(c) || is_colon(c) || matches!(c, ']' | '}'))
            || QuoteStyle::parse_opening(behind).is_some()
    })
}

pub(super) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | '@')
}

/// Returns true if an unquoted key follows. `https://` is not a key.
pub(super) fn starts_with_bare_key(rest: &str) -> bool {
    let near = take_bytes(rest, MAX_LOOKAHEAD);
    let behind = near.trim_start_matches(is_word_char);
    let starts = near.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'));
    let behind = trim_blanks_start(behind);
    // `https://` is a URL and not a key.
    starts && behind.starts_with(is_colon) && !behind.starts_with("://")
}

/// Returns true if a key follows that lacks only its opening quote, as in `limit": 3`. A comma may precede it.
pub(super) fn starts_with_half_quoted_key(rest: &str) -> bool {
    let near = trim_blanks_start(take_bytes(rest, MAX_LOOKAHEAD));
    let near = trim_blanks_start(near.strip_prefix(is_comma).unwrap_or(near));
    let starts = near.starts_with(|c: char| c.is_alphabetic() || c == '_');
    starts
        && near
            .trim_start_matches(is_word_char)
            .strip_prefix(QUOTE_SIGNS)
            .is_some_and(|behind| trim_blanks_start(behind).starts_with(is_colon))
}

/// Returns true if the first quote in `text` is followed by a comma and a key, so that it can end the text.
pub(super) fn continues_with_key_after_first_quote(text: &str) -> bool {
    let mut before = None;
    for (at, c) in text.char_indices() {
        let behind = &text[at + c.len_utf8()..];
        let is_apostrophe =
            before.is_some_and(char::is_alphanumeric) && behind.starts_with(char::is_alphanumeric);
        if QUOTE_SIGNS.contains(&c) && !is_apostrophe {
            return trim_blanks_start(behind)
                .strip_prefix(is_comma)
                .map(trim_blanks_start)
                .is_some_and(|next| starts_with_key_and_colon(next) || starts_with_bare_key(next));
        }
        before = Some(c);
    }
    false
}

/// Returns true if `text` ends with a quote that has no partner in it, as in `a"`.
pub(super) fn ends_with_unpaired_quote(text: &str) -> bool {
    let text = text.trim_end_matches(is_blank);
    let Some(last) = text.chars().next_back() else {
        return false;
    };
    let count = |quotes: &[char]| text.chars().filter(|c| quotes.contains(c)).count();
    match last {
        '"' | '＂' | '\'' | '`' => count(&[last]) % 2 == 1,
        '”' => count(&['”']) > count(&['“', '„', '‟']),
        '’' => count(&['’']) > count(&['‘', '‚', '‛']),
        '“' | '‘' => true,
        _ => false,
    }
}

/// Returns true if an unquoted value follows that a comma or bracket ends.
pub(super) fn starts_with_bare_item(rest: &str) -> bool {
    let near = take_bytes(rest, MAX_LOOKAHEAD);
    let behind = near.trim_start_matches(|c: char| is_word_char(c) || c == '+');
    behind.len() < near.len() && {
        let behind = trim_blanks_start(behind);
        behind.is_empty() || behind.starts_with(|c| is_comma(c) || matches!(c, ']' | '}'))
    }
}

/// Returns true if the next bracket within the lookahead closes a list.
pub(super) fn list_ends_next(rest: &str) -> bool {
    take_bytes(rest, MAX_LOOKAHEAD)
        .find(['[', ']', '{', '}'])
        .is_some_and(|at| rest[at..].starts_with(']'))
}
