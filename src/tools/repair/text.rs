//! Quoted texts: their end, their escapes, and texts joined with `+`.
//!
//! A quote ends its text if the text after it can follow a text. Otherwise the quote belongs to the text. If the quotes
//! inside a text have another reading ([`super::inner_quotes`]), the call is rejected.

use super::cursor::{
    JsonRepairer, OpenBracket, blank_len, continues_with_key_after_first_quote,
    ends_with_unpaired_quote, is_blank, is_colon, is_comma, is_comment, is_end,
    starts_with_bare_item, starts_with_bare_key, starts_with_key_and_colon,
    starts_with_key_and_equals_sign, starts_with_last_key, starts_with_quoted_item,
    starts_with_quoted_key, take_bytes, token_len,
};
use super::inner_quotes::{InnerQuote, InnerQuotes, explain_second_reading};
use super::quote_style::QuoteStyle;
use super::repair_log::RepairKind;

/// The position of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPosition {
    Value,
    Item,
    Top,
}

impl JsonRepairer<'_> {
    /// Reads a quoted value and what is joined to it. The cursor is at the opening quote.
    pub(super) fn read_text(&mut self, place: TextPosition) -> String {
        let mut text = self.read_quoted_text(place);
        loop {
            // Python and JavaScript join texts with `+`.
            let behind = &self.rest()[blank_len(self.rest())..];
            let next = behind.strip_prefix('+').map(|next| {
                let next = next.trim_start_matches(is_blank);
                (QuoteStyle::parse_opening(next).is_some(), next.len())
            });
            let Some((true, left)) = next else {
                return text;
            };
            self.at = self.text.len() - left;
            self.log_repair(RepairKind::JoinedTexts);
            text.push_str(&self.read_quoted_text(place));
        }
    }

    fn read_quoted_text(&mut self, place: TextPosition) -> String {
        let start = self.at;
        self.has_kept_backslash = false;
        self.has_letter_escape = false;
        let text = self.read_to_closing_quote(place);
        // `C:\dir\new`: if the first backslash is not an escape, the second one may not be one either.
        if self.has_kept_backslash && self.has_letter_escape && place != TextPosition::Top {
            self.second_reading.get_or_insert_with(|| {
                format!(
                    "the text at byte {start} can be read in two ways: some of its backslashes begin an escape and \
                     others do not; write \\\\ for a backslash"
                )
            });
        }
        text
    }

    fn read_to_closing_quote(&mut self, place: TextPosition) -> String {
        let Some((quote, length)) = self.find_opening_quote() else {
            return String::new();
        };
        if length != 1 || !self.rest().starts_with('"') {
            self.log_repair(RepairKind::OtherQuotes);
        }
        self.at += length;
        let from = self.at;
        let mut out = String::new();
        let mut inner_quotes = InnerQuotes::default();
        loop {
            let Some(c) = self.peek() else {
                let reason = inner_quotes.find_second_reading_of_cut_text();
                self.set_second_reading(from, place, reason);
                self.was_truncated = true;
                self.log_repair(RepairKind::CutText);
                self.give_back_brackets(&mut out);
                // With brackets after it, the text was hardly cut off.
                if self.at < self.text.len() {
                    let reason =
                        inner_quotes.find_second_reading_of_unended_text(self.text, self.at);
                    self.set_second_reading(from, place, reason);
                    self.set_second_reading(from, place, explain_unpaired_quote(&out));
                }
                // `{"a": 'x", "n": 1}`: another quote than the opening one may end the text.
                let reason =
                    continues_with_key_after_first_quote(&self.text[from..self.at]).then(|| {
                        "a quote inside it may end it, and a key follows that quote".to_owned()
                    });
                self.set_second_reading(from, place, reason);
                return out;
            };
            let before = self.text[from..self.at].chars().next_back();
            // The quote counts as the end only if what follows could follow a text in JSON.
            if let Some(length) = quote.closing_len(self.rest(), before) {
                if matches!(quote, QuoteStyle::Triple(_)) || self.is_closing_quote(length, place) {
                    let reason = inner_quotes.find_second_reading(self.at);
                    self.set_second_reading(from, place, reason);
                    self.at += length;
                    self.last_text_end = self.at;
                    return out;
                }
                // `=` after a quoted word is rarely JSON: the quotes can belong to the text, as in `, "a"=`.
                let is_doubtful_key = starts_with_key_and_equals_sign(self.rest());
                if place == TextPosition::Value && self.ends_before_next_key(&mut out) {
                    let reason = inner_quotes
                        .find_second_reading(self.at)
                        .or_else(|| {
                            inner_quotes.find_second_reading_of_unended_text(self.text, self.at)
                        })
                        .or_else(|| inner_quotes.find_second_reading_before_key(self.text, self.at))
                        .or_else(|| {
                            is_doubtful_key.then(|| {
                                "the quote before the next key may belong to it".to_owned()
                            })
                        })
                        .or_else(|| explain_unpaired_quote(&out));
                    self.set_second_reading(from, place, reason);
                    self.log_repair(RepairKind::EndQuote);
                    return out;
                }
                self.log_repair(RepairKind::InnerQuote);
                let behind = &self.rest()[length..];
                let inner = InnerQuote {
                    before,
                    after: behind.chars().next(),
                    end: self.at + length,
                    is_escaped: false,
                };
                inner_quotes.add(inner, behind, place == TextPosition::Item);
                out.push_str(&self.rest()[..length]);
                self.at += length;
            } else if c == '\\' {
                let escaped = &self.rest()[1..];
                if let Some(length) = quote.closing_len(escaped, None) {
                    let behind = &escaped[length..];
                    let inner = InnerQuote {
                        before,
                        after: behind.chars().next(),
                        end: self.at + 1 + length,
                        is_escaped: true,
                    };
                    inner_quotes.add(inner, behind, place == TextPosition::Item);
                }
                self.read_escape(&mut out);
            } else {
                // JSON does not allow raw control characters, but models write line breaks.
                if c < ' ' {
                    self.log_repair(RepairKind::ControlCharacter);
                }
                out.push(c);
                self.at += c.len_utf8();
            }
        }
    }

    /// Finds the quote at the cursor; a triple quote counts only if three more follow.
    fn find_opening_quote(&mut self) -> Option<(QuoteStyle, usize)> {
        let rest = self.rest();
        for (three, one) in [("\"\"\"", '"'), ("'''", '\'')] {
            // Looked up once: without a second triple quote, three quotes are an empty text and a quote.
            if !self.no_triple_quote_ahead
                && let Some(inside) = rest.strip_prefix(three)
            {
                if inside.contains(three) {
                    return Some((QuoteStyle::Triple(one), 3));
                }
                self.no_triple_quote_ahead = true;
            }
        }
        QuoteStyle::parse_opening(rest)
    }

    /// Records that the text at `start` has another reading, for the first such text.
    fn set_second_reading(&mut self, start: usize, place: TextPosition, reason: Option<String>) {
        // A text around the whole document must contain valid JSON, so its readings don't matter.
        if place == TextPosition::Top {
            return;
        }
        if let (None, Some(reason)) = (&self.second_reading, reason) {
            self.second_reading = Some(explain_second_reading(start, &reason));
        }
    }

    /// Returns true if the quote at the cursor may belong to the last text. Then the brackets before it do, too.
    pub(super) fn continues_last_text(&self) -> bool {
        if self.last_text_end == 0 || QuoteStyle::parse_opening(self.rest()).is_none() {
            return false;
        }
        let between = &self.text[self.last_text_end.min(self.at)..self.at];
        let is_outside = |c: char| is_blank(c) || is_comma(c) || matches!(c, '}' | ']');
        between.chars().all(is_outside) && between.contains(['}', ']'])
    }

    /// Removes brackets from the end of an unended text if they match the open brackets.
    fn give_back_brackets(&mut self, out: &mut String) {
        // A text that is cut at the end may have swallowed the brackets of its objects and lists.
        let mut inner = out.trim_end();
        for open in &self.open_brackets {
            let bracket = match open {
                OpenBracket::Object => '}',
                OpenBracket::List => ']',
            };
            match inner.strip_suffix(bracket) {
                Some(shorter) => inner = shorter.trim_end(),
                None => return,
            }
        }
        let left = out.len() - inner.len();
        // With escapes, the output differs from the text, and its length does not lead back.
        if self.text.ends_with(&out[inner.len()..]) {
            self.at -= left;
            out.truncate(out.len() - left);
        }
    }

    /// Returns true if the quote at the cursor ends a text.
    fn is_closing_quote(&self, length: usize, place: TextPosition) -> bool {
        let after = &self.rest()[length..];
        let gap = blank_len(after);
        let rest = &after[gap..];
        let Some(c) = rest.chars().next() else {
            return true;
        };
        if is_end(rest) || is_comment(rest) || token_len(rest).is_some() {
            return true;
        }
        let in_object = self.is_within(OpenBracket::Object);
        match c {
            // A bracket inside a text is followed by more text, so the rest decides.
            '}' if in_object => closes_before_bracket(rest, self.open_brackets.len() == 1),
            ']' if self.is_within(OpenBracket::List) => closes_before_bracket(rest, false),
            // The wrong bracket instead of `}`.
            ']' if in_object => is_end(&rest[1 + blank_len(&rest[1..])..]),
            '+' => QuoteStyle::parse_opening(rest[1..].trim_start_matches(is_blank)).is_some(),
            c if is_comma(c) => {
                let next = &rest[c.len_utf8()..];
                self.closes_before_comma(&next[blank_len(next)..], place)
            }
            // This text is a key: the list before it lacks its bracket.
            c if is_colon(c) => place == TextPosition::Item && in_object,
            _ if QuoteStyle::parse_opening(rest).is_some() => match place {
                TextPosition::Value => starts_with_key_and_colon(rest),
                // Without a gap, the quote is part of this item. With a gap, a comma is missing.
                TextPosition::Item => gap > 0,
                TextPosition::Top => false,
            },
            // An unquoted key on the next line follows a missing comma.
            _ => {
                place == TextPosition::Value
                    && after[..gap].contains('\n')
                    && starts_with_bare_key(rest)
            }
        }
    }

    fn closes_before_comma(&self, next: &str, place: TextPosition) -> bool {
        let Some(c) = next.chars().next() else {
            return true;
        };
        if is_end(next) || is_comment(next) || next.starts_with("...") {
            return true;
        }
        match (c, place) {
            ('}' | ']' | ',', _) => true,
            ('{' | '[', _) => self.is_within(OpenBracket::List),
            (_, TextPosition::Value) if QuoteStyle::parse_opening(next).is_some() => {
                starts_with_quoted_key(next) || starts_with_last_key(next)
            }
            (_, TextPosition::Value) => starts_with_bare_key(next),
            (_, TextPosition::Item) if QuoteStyle::parse_opening(next).is_some() => {
                starts_with_quoted_item(next)
            }
            (_, TextPosition::Item) => starts_with_bare_item(next) || starts_with_bare_key(next),
            (_, TextPosition::Top) => false,
        }
    }

    /// Returns true if the quote at the cursor opens the next key, because the text before it lacks its end. Then
    /// moves the cursor back to it.
    fn ends_before_next_key(&mut self, out: &mut String) -> bool {
        let text = out.trim_end();
        let comma = text.ends_with(',');
        // A line break or comma before a key shows that the quote opens the key.
        if !(comma || out[text.len()..].contains('\n')) || !starts_with_quoted_key(self.rest()) {
            return false;
        }
        let ended = text.strip_suffix(',').unwrap_or(text).len();
        let left = out.len() - ended;
        // With escapes, the output differs from the text, and its length does not lead back.
        if self.text[..self.at].ends_with(&out[ended..]) {
            self.at -= left;
        }
        out.truncate(ended);
        true
    }

    /// Reads the character after a backslash.
    fn read_escape(&mut self, out: &mut String) {
        let rest = &self.rest()[1..];
        let Some(c) = rest.chars().next() else {
            // The text ends in the middle of the escape.
            self.at += 1;
            return;
        };
        let plain = match c {
            '"' | '\\' | '/' => Some(c),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            _ => None,
        };
        if let Some(plain) = plain {
            self.has_letter_escape |= c.is_ascii_alphabetic();
            out.push(plain);
            self.at += 2;
            return;
        }
        if c == 'u' && self.read_unicode_escape(out) {
            self.has_letter_escape = true;
            return;
        }
        self.log_repair(RepairKind::Escape);
        let hex = |from: usize, length: usize| {
            let digits = rest.get(from..from + length)?;
            let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
            char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| all)?)
        };
        // Escapes of Python.
        let named = match c {
            'x' => hex(1, 2).map(|c| (c, 3)),
            'U' => hex(1, 8).map(|c| (c, 9)),
            '\n' => Some(('\n', 1)),
            c if QuoteStyle::parse_opening(rest).is_some() => Some((c, c.len_utf8())),
            _ => None,
        };
        if let Some((c, length)) = named {
            out.push(c);
            self.at += 1 + length;
        } else {
            // `\d`: the model meant a backslash and did not double it. In `\$` and `\_`, it can be no path.
            self.has_kept_backslash |= c.is_ascii_alphanumeric();
            out.push('\\');
            self.at += 1;
        }
    }

    /// Reads `\uXXXX`, as a pair if there is one. Returns false if it is not such an escape.
    fn read_unicode_escape(&mut self, out: &mut String) -> bool {
        let unit = |rest: &str| {
            let digits = rest.strip_prefix("\\u")?.get(..4)?;
            let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
            u16::from_str_radix(digits, 16).ok().filter(|_| all)
        };
        let rest = self.rest();
        let Some(first) = unit(rest) else {
            // The end of the text cuts the escape, so there is no character.
            let cut = rest.len() < 6 && rest[2..].bytes().all(|b| b.is_ascii_hexdigit());
            if cut {
                self.at = self.text.len();
            }
            return cut;
        };
        // Two halves of a surrogate pair make one character.
        let second = (0xd800..0xdc00)
            .contains(&first)
            .then(|| unit(&rest[6..]))
            .flatten();
        let units = [Some(first), second];
        if let Some(Ok(c)) = char::decode_utf16(units.into_iter().flatten()).next() {
            out.push(c);
            self.at += 6 * c.len_utf16();
        } else {
            self.log_repair(RepairKind::Surrogate);
            out.push('\u{fffd}');
            self.at += 6;
        }
        true
    }

    /// Reads a quoted key; `None` if the text ends in it. The cursor is at the opening quote.
    pub(super) fn read_quoted_key(&mut self) -> Option<String> {
        let (quote, length) = self.find_opening_quote()?;
        if length != 1 || !self.rest().starts_with('"') {
            self.log_repair(RepairKind::OtherQuotes);
        }
        self.at += length;
        let from = self.at;
        let mut out = String::new();
        loop {
            let c = self.peek()?;
            let before = self.text[from..self.at].chars().next_back();
            if let Some(length) = quote.closing_len(self.rest(), before) {
                let behind = &self.rest()[length..];
                let followed = behind[blank_len(behind)..].starts_with(is_colon);
                // Without a colon after it, this quote may open the next key, and this key lacks its closing quote.
                if !followed && let Some(at) = find_unended_key(&self.text[from..self.at]) {
                    self.log_repair(RepairKind::EndQuote);
                    self.at = from + at;
                    return Some(self.text[from..self.at].to_owned());
                }
                // `""query""`: the key may be empty, or its quotes are doubled.
                if behind.starts_with(|c: char| c.is_alphabetic() || c == '_')
                    || QuoteStyle::parse_opening(behind).is_some()
                {
                    let reason = "more of the key follows its closing quote".to_owned();
                    self.set_second_reading(from, TextPosition::Value, Some(reason));
                }
                self.at += length;
                return Some(out);
            }
            if c == '\\' {
                self.read_escape(&mut out);
            } else {
                if c < ' ' {
                    self.log_repair(RepairKind::ControlCharacter);
                }
                out.push(c);
                self.at += c.len_utf8();
            }
        }
    }
}

/// Returns the reason why a text with a missing end may end before the quote at its end.
fn explain_unpaired_quote(text: &str) -> Option<String> {
    ends_with_unpaired_quote(text)
        .then(|| "its last quote has no partner, and it may belong to it or end it".to_owned())
}

/// Returns the end of a key without a closing quote: `"a: 1, "b": 2`.
fn find_unended_key(text: &str) -> Option<usize> {
    let near = take_bytes(text, 100);
    let at = near.find(is_colon)?;
    let word = near[..at].chars().all(|c| c.is_alphanumeric() || c == '_');
    (at > 0
        && word
        && near[at..]
            .trim_start_matches(is_colon)
            .starts_with([' ', '"', '\'']))
    .then_some(at)
}

/// Returns true if a quote before the bracket at the start of `rest` ends its text.
fn closes_before_bracket(rest: &str, outermost: bool) -> bool {
    let after = &rest[1..];
    let gap = blank_len(after);
    let next = &after[gap..];
    let Some(c) = next.chars().next() else {
        return true;
    };
    if QuoteStyle::parse_opening(next).is_some() {
        return starts_with_quoted_key(next) || after[..gap].contains('\n');
    }
    outermost
        || is_comma(c)
        || matches!(c, '}' | ']' | '{' | '[')
        || is_end(next)
        || is_comment(next)
        || token_len(next).is_some()
        || after[..gap].contains('\n')
        || starts_with_bare_key(next)
}
