//! Values without quotes: numbers and literals in the syntax of other languages, and words.
//!
//! A word may contain blanks. A comma inside a word, or a word with a colon after a blank, has two readings: it belongs to
//! the word, or the word ends before it. The call is rejected, except for the commas of a number and of a URL.

use super::cursor::{
    JsonRepairer, OpenBracket, blank_len, ends_with_unpaired_quote, is_blank, is_comma, is_comment,
    is_end, starts_with_bare_key, starts_with_key_and_colon, starts_with_last_key,
    starts_with_quoted_key, take_bytes, token_len,
};
use super::quote_style::QuoteStyle;
use super::repair_log::RepairKind;
use super::text::TextPosition;
use crate::tools::json::JsonNode;

/// The length limit of a number, in bytes.
const MAX_NUMBER_LEN: usize = 60;

/// The lookahead for the scheme of a URL, in bytes.
const MAX_SCHEME_LEN: usize = 40;

/// The meaning of a bare word.
pub(super) enum BareWord {
    /// Valid JSON.
    ValidJson,
    Literal(&'static str),
    Number(String),
    /// A number that JSON lacks.
    NotFinite,
    Text,
}

// Spellings of Python and JavaScript.
pub(super) fn classify_word(word: &str) -> BareWord {
    match word {
        "true" | "false" | "null" => return BareWord::ValidJson,
        "True" | "TRUE" => return BareWord::Literal("true"),
        "False" | "FALSE" => return BareWord::Literal("false"),
        "None" | "Null" | "NULL" | "undefined" => return BareWord::Literal("null"),
        _ => {}
    }
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    // JSON has no such numbers; the value becomes text.
    if matches!(unsigned, "NaN" | "nan" | "Infinity" | "inf") {
        return BareWord::NotFinite;
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return BareWord::Text;
    }
    if is_json_number(word) {
        return BareWord::ValidJson;
    }
    match normalize_number(word) {
        Some(number) => BareWord::Number(number),
        None => BareWord::Text,
    }
}

fn is_json_number(word: &str) -> bool {
    let number = word
        .bytes()
        .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    number && serde_json::from_str::<&serde_json::value::RawValue>(word).is_ok()
}

/// Converts `+3`, `.5`, `1.` and `1_000` to JSON. `007` stays a text, because a number would lose its zeros.
fn normalize_number(word: &str) -> Option<String> {
    let bytes = word.as_bytes();
    let between_digits = |at: usize| {
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        at > 0 && digit(at - 1) && digit(at + 1)
    };
    // Python allows underscores between digits only.
    if (0..bytes.len()).any(|at| bytes[at] == b'_' && !between_digits(at)) {
        return None;
    }
    let plain = word.strip_prefix('+').unwrap_or(word).replace('_', "");
    let (sign, plain) = match plain.strip_prefix('-') {
        Some(plain) => ("-", plain),
        None => ("", plain.as_str()),
    };
    let zero = if plain.starts_with('.') { "0" } else { "" };
    let plain = match plain.split_once('.') {
        // JSON requires a digit after the point and before it.
        Some((whole, "")) => format!("{sign}{zero}{whole}.0"),
        Some((whole, behind)) if behind.starts_with(['e', 'E']) => {
            format!("{sign}{zero}{whole}.0{behind}")
        }
        _ => format!("{sign}{zero}{plain}"),
    };
    // Rejects `.` alone and `..5`.
    (word.bytes().any(|b| b.is_ascii_digit()) && is_json_number(&plain)).then_some(plain)
}

impl JsonRepairer<'_> {
    /// Reads a value without quotes.
    pub(super) fn read_bare_value(&mut self, place: TextPosition) -> JsonNode {
        let from = self.at;
        self.skip_word(place);
        let word = self.text[from..self.at].trim_end_matches(is_blank);
        match classify_word(word) {
            BareWord::ValidJson => JsonNode::Literal(word.to_owned()),
            BareWord::Literal(literal) => {
                self.log_repair(RepairKind::Literal);
                JsonNode::Literal(literal.to_owned())
            }
            BareWord::Number(number) => {
                self.log_repair(RepairKind::Number);
                JsonNode::Literal(number)
            }
            BareWord::NotFinite => {
                self.log_repair(RepairKind::NotFinite);
                JsonNode::Text(word.to_owned())
            }
            BareWord::Text => {
                // `{"a": x", "n": 1}`: the quote is part of the value, or the end of a text without its opening quote.
                if ends_with_unpaired_quote(word) {
                    let reason = "the quote at its end may belong to it or end it";
                    self.record_second_reading(from, reason);
                }
                self.log_repair(RepairKind::WordQuotes);
                JsonNode::Text(word.to_owned())
            }
        }
    }

    /// Moves to the end of the word. Brackets that open in the word (`https://x/{id}`) may close in it.
    fn skip_word(&mut self, place: TextPosition) {
        let from = self.at;
        let mut inner = 0_usize;
        while let Some(c) = self.peek() {
            match c {
                // A word such as `f(x)[0]` may contain brackets; only an unmatched one ends it.
                '{' | '[' if self.at > from => inner += 1,
                '}' | ']' if inner > 0 => inner -= 1,
                '}' => return,
                ']' if self.is_within(OpenBracket::List) => return,
                ']' if is_end(&self.rest()[1 + blank_len(&self.rest()[1..])..]) => return,
                c if is_comma(c) => {
                    let behind = &self.rest()[c.len_utf8()..];
                    if self.ends_at_comma(from, &behind[blank_len(behind)..], place) {
                        return;
                    }
                    // A comma in the brackets of a word, as in `x[1, 2]`, belongs to the word.
                    if inner == 0 && !self.is_part_of_word(from, c) {
                        self.record_second_reading(from, "its comma may belong to it or end it");
                    }
                }
                c if is_blank(c) => {
                    let gap = blank_len(self.rest());
                    if self.ends_at_blank(from, gap, place) {
                        return;
                    }
                    // `{a: x b: 1}`: the comma before a key may be missing.
                    if inner == 0 && starts_with_bare_key(&self.rest()[gap..]) {
                        let reason = "a word before a colon may belong to it or be the next key";
                        self.record_second_reading(from, reason);
                    }
                    self.at += gap;
                    continue;
                }
                // A code fence or token of a chat template ends the text of the model.
                '`' | '<' if is_end(self.rest()) || self.starts_with_word_token() => return,
                _ => {}
            }
            self.at += c.len_utf8();
        }
    }

    /// Returns true if a token of one word follows. `<| x |>` is code.
    fn starts_with_word_token(&self) -> bool {
        token_len(self.rest()).is_some_and(|length| !self.rest()[..length].contains(is_blank))
    }

    /// Records that the word at `from` has another reading, unless a text before it has one.
    fn record_second_reading(&mut self, from: usize, reason: &str) {
        self.second_reading.get_or_insert_with(|| {
            format!(
                "the value at byte {from} can be read in two ways: {reason}; write quotes around a text"
            )
        });
    }

    /// Returns true if `comma` at the cursor, inside the word at `from`, certainly belongs to the word.
    fn is_part_of_word(&self, from: usize, comma: char) -> bool {
        let before = &self.text[from..self.at];
        let behind = &self.rest()[comma.len_utf8()..];
        // `1,000`: three digits follow.
        let digits = behind.bytes().take(4).take_while(u8::is_ascii_digit);
        let is_in_number =
            before.ends_with(|c: char| c.is_ascii_digit()) && comma == ',' && digits.count() == 3;
        // `https://x.y/a,b`: no blank and no other URL follows.
        let near = take_bytes(behind, MAX_SCHEME_LEN);
        let end = near.find(|c| is_blank(c) || is_comma(c));
        let next = &near[..end.unwrap_or(near.len())];
        let is_in_url = take_bytes(before, MAX_SCHEME_LEN).contains("://")
            && !next.is_empty()
            && !next.contains("://");
        is_in_number || is_in_url
    }

    fn ends_at_comma(&self, from: usize, next: &str, place: TextPosition) -> bool {
        let last = is_end(next) || next.starts_with(['}', ']']);
        if last || place == TextPosition::Item {
            return last || !self.rest().starts_with([';', '；']);
        }
        // `1,000` continues after the comma.
        (self.is_literal_since(from) && !next.starts_with(|c: char| c.is_ascii_digit()))
            || next.starts_with(is_comma)
            || is_comment(next)
            || next.starts_with("...")
            || starts_with_quoted_key(next)
            || starts_with_last_key(next)
            || starts_with_bare_key(next)
            || (next.starts_with(['{', '[']) && self.is_within(OpenBracket::List))
    }

    /// Returns true if the text since `from` is a literal and not only a word.
    fn is_literal_since(&self, from: usize) -> bool {
        let so_far = &self.text[from..self.at];
        so_far.len() <= MAX_NUMBER_LEN && !matches!(classify_word(so_far), BareWord::Text)
    }

    fn ends_at_blank(&self, from: usize, gap: usize, place: TextPosition) -> bool {
        let next = &self.rest()[gap..];
        let newline = self.rest()[..gap].contains('\n');
        if is_end(next) {
            return true;
        }
        // Only a comment that ends with a line counts. Otherwise `issue #5}` would lose its bracket.
        if is_comment(next) && (next.starts_with("/*") || self.at + gap < self.last_newline) {
            return true;
        }
        if newline && (starts_with_bare_key(next) || next.starts_with(['}', ']'])) {
            return true;
        }
        let is_literal = self.is_literal_since(from);
        match place {
            TextPosition::Item => {
                QuoteStyle::parse_opening(next)
                    .is_some_and(|(quote, _)| quote == QuoteStyle::Double)
                    || newline && QuoteStyle::parse_opening(next).is_some()
                    || is_literal
                        && next.starts_with(|c: char| {
                            c.is_ascii_digit() || matches!(c, '-' | '{' | '[' | '\'')
                        })
            }
            TextPosition::Value | TextPosition::Top => {
                starts_with_key_and_colon(next) || is_literal && starts_with_bare_key(next)
            }
        }
    }
}
