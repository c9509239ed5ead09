//! The quotes inside one text, and whether the end of the text is certain.
//!
//! A model that does not escape the quotes inside a text writes them in pairs: `say "hi" now`. The rule: a text has one
//! reading if every inner quote that opens a word has its partner before the text ends. Otherwise the quote that seems to
//! end the text may be that partner, and the call is rejected. A quote directly behind the opening quote or before the
//! closing one may also be the same quote written twice.

use std::fmt::Write as _;

use super::cursor::{
    is_blank, is_comma, is_word_char, starts_with_bare_key, starts_with_half_quoted_key,
};

/// The quotes inside a text so far.
#[derive(Debug, Default)]
pub(super) struct InnerQuotes {
    /// The open pairs. True if the model escaped the opening quote, so that it certainly belongs to the text.
    open: Vec<bool>,
    /// The number of quotes that belong to no pair, such as that of `5" disk`.
    single_count: usize,
    /// True while the pair that opens at the beginning of the text is open.
    is_first_pair_open: bool,
    /// The position behind the quote that closed the pair at the beginning of the text.
    first_pair_end: Option<usize>,
    /// The position behind the last unescaped quote.
    last_end: Option<usize>,
    /// The position behind the last escaped quote.
    last_escaped_end: Option<usize>,
    /// True if a quote may end the text, because a key follows it, or a comma follows it and it has no partner.
    has_early_end: bool,
    /// True if a quote opens a word that a quote and a colon follow, such as `"limit":`.
    has_inner_key: bool,
}

/// A quote inside a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct InnerQuote {
    /// The character before the quote; `None` at the beginning of the text.
    pub(super) before: Option<char>,
    /// The character after the quote.
    pub(super) after: Option<char>,
    /// The position behind the quote.
    pub(super) end: usize,
    pub(super) is_escaped: bool,
}

impl InnerQuote {
    /// Returns true if the quote opens a word. `in_pair` is true inside a pair, where the quote may also close it.
    fn opens(&self, in_pair: bool) -> bool {
        if in_pair {
            let begins = |c: char| c.is_whitespace() || matches!(c, '(' | '[' | '{' | '=');
            return self.before.is_none_or(begins) && self.after.is_some_and(char::is_alphanumeric);
        }
        !self.before.is_some_and(char::is_alphanumeric)
            && self.after.is_some_and(|c| !c.is_whitespace())
    }
}

impl InnerQuotes {
    /// Adds a quote that belongs to the text. `behind` is the input after it, and `is_item` is true for a text of a list.
    pub(super) fn add(&mut self, quote: InnerQuote, behind: &str, is_item: bool) {
        if quote.is_escaped {
            self.last_escaped_end = Some(quote.end);
        } else {
            self.last_end = Some(quote.end);
        }
        let opens = quote.opens(!self.open.is_empty());
        if !quote.is_escaped && starts_with_half_quoted_key(behind) {
            // `{"a": "x"limit": 3}`: the quote may end the text. In `{"a": "say "x": y"}`, it opens a word.
            if opens && quote.after.is_some_and(is_word_char) {
                self.has_inner_key = true;
            } else {
                self.has_early_end = true;
            }
        }
        if opens {
            self.is_first_pair_open |= quote.before.is_none() && !quote.is_escaped;
            self.open.push(quote.is_escaped);
        } else if self.open.pop().is_some() {
            if self.open.is_empty() && std::mem::take(&mut self.is_first_pair_open) {
                self.first_pair_end = Some(quote.end);
            }
        } else if !quote.is_escaped {
            self.single_count += 1;
            // `["a", b"]`: the quote may end the item.
            let next = behind.trim_start_matches(is_blank);
            self.has_early_end |= is_item && next.starts_with(is_comma);
        }
    }

    /// Returns the reason why a quote at `end` may not be the end of the text.
    pub(super) fn find_second_reading(&self, end: usize) -> Option<String> {
        let is_doubled = self.last_end == Some(end);
        let reason = if self.open.contains(&false) {
            "a quote inside it has no partner, so that quote or the next one may end it"
        } else if is_doubled && self.first_pair_end == Some(end) {
            "its quotes are doubled, and they may belong to it or not"
        } else if is_doubled && self.single_count % 2 == 1 {
            "its last quote is doubled, and it may belong to it or not"
        } else if self.has_early_end {
            "a quote inside it may end it, and what follows that quote may be a key or an item"
        } else {
            return None;
        };
        Some(reason.to_owned())
    }

    /// Returns the reason why the last escaped quote may be the end of a text in `input` that has no other end. It seems to
    /// end at `end`. In `"C:\dir\"`, the model meant a backslash and did not double it. Only brackets, or an unquoted
    /// key, may follow that quote.
    pub(super) fn find_second_reading_of_unended_text(
        &self,
        input: &str,
        end: usize,
    ) -> Option<String> {
        let behind = input.get(self.last_escaped_end?..end)?;
        let behind = behind.trim_start_matches(|c| is_blank(c) || matches!(c, '}' | ']'));
        let next = behind.strip_prefix(',');
        let is_key =
            next.is_some_and(|next| starts_with_bare_key(next.trim_start_matches(is_blank)));
        (behind.is_empty() || is_key).then(|| {
            "its last quote has a backslash, and either of them may belong to the text; write \\\\ for a backslash"
                .to_owned()
        })
    }

    /// Returns the reason why an inner quote may be the end of a text in `input` whose end quote is missing before the next
    /// key. In `{"a": "x" b: 2, "c": 3}`, the quote after `x` has no partner. In `{"a": "x"], "b": 1}`, only a bracket
    /// follows it, which may be one too many.
    pub(super) fn find_second_reading_before_key(&self, input: &str, end: usize) -> Option<String> {
        let behind = input.get(self.last_end?..end)?;
        let is_outside = |c: char| is_blank(c) || matches!(c, '}' | ']');
        let reason = if behind.contains(['}', ']']) && behind.chars().all(is_outside) {
            "its last quote may end it, and the bracket after that quote is one too many"
        } else if self.single_count % 2 == 1 || self.has_inner_key {
            "a quote inside it may end it"
        } else {
            return None;
        };
        Some(reason.to_owned())
    }

    /// Returns the reason why a text that the input cuts may have ended earlier.
    pub(super) fn find_second_reading_of_cut_text(&self) -> Option<String> {
        (self.single_count % 2 == 1 || self.has_early_end || self.has_inner_key)
            .then(|| "a quote inside it may end it, or the text is cut off".to_owned())
    }
}

/// Formats the reason for the model, with the way to write the call unambiguously.
pub(super) fn explain_second_reading(start: usize, reason: &str) -> String {
    let mut out = String::new();
    let _infallible = write!(
        out,
        "the text at byte {start} can be read in two ways: {reason}; write \\\" for a quote inside a text"
    );
    out
}
