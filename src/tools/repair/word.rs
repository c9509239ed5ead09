//! Values without quotes: numbers and literals in other languages' spelling, and words.

use super::cursor::{
    Mender, Open, blank_len, is_blank, is_comma, is_comment, is_end, key_in_quotes, key_word,
    last_key, token_len, whole_key,
};
use super::notes::Kind;
use super::quote::Quote;
use super::text::Place;
use crate::tools::json::Node;

/// Longer than any number worth a look.
const NUMBER: usize = 60;

/// What a bare word says.
pub(super) enum Word {
    /// JSON as it stands.
    Json,
    Literal(&'static str),
    Number(String),
    /// A number that JSON does not have.
    NotFinite,
    Text,
}

pub(super) fn read(word: &str) -> Word {
    match word {
        "true" | "false" | "null" => return Word::Json,
        "True" | "TRUE" => return Word::Literal("true"),
        "False" | "FALSE" => return Word::Literal("false"),
        "None" | "Null" | "NULL" | "undefined" => return Word::Literal("null"),
        _ => {}
    }
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    if matches!(unsigned, "NaN" | "nan" | "Infinity" | "inf") {
        return Word::NotFinite;
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Word::Text;
    }
    if is_number(word) {
        return Word::Json;
    }
    match mended(word) {
        Some(number) => Word::Number(number),
        None => Word::Text,
    }
}

fn is_number(word: &str) -> bool {
    let number = word
        .bytes()
        .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    number && serde_json::from_str::<&serde_json::value::RawValue>(word).is_ok()
}

/// `+3`, `.5`, `1.`, `1_000` as JSON. `007` stays a text: a number would lose its zeros.
fn mended(word: &str) -> Option<String> {
    let bytes = word.as_bytes();
    let between_digits = |at: usize| {
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        at > 0 && digit(at - 1) && digit(at + 1)
    };
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
        Some((whole, "")) => format!("{sign}{zero}{whole}.0"),
        Some((whole, behind)) if behind.starts_with(['e', 'E']) => {
            format!("{sign}{zero}{whole}.0{behind}")
        }
        _ => format!("{sign}{zero}{plain}"),
    };
    // `.` alone, and `..5`.
    (word.bytes().any(|b| b.is_ascii_digit()) && is_number(&plain)).then_some(plain)
}

impl Mender<'_> {
    /// A value without quotes.
    pub(super) fn word_value(&mut self, place: Place) -> Node {
        let from = self.at;
        self.pass_word(place);
        let word = self.text[from..self.at].trim_end_matches(is_blank);
        match read(word) {
            Word::Json => Node::Plain(word.to_owned()),
            Word::Literal(literal) => {
                self.note(Kind::Literal);
                Node::Plain(literal.to_owned())
            }
            Word::Number(number) => {
                self.note(Kind::Number);
                Node::Plain(number)
            }
            Word::NotFinite => {
                self.note(Kind::NotFinite);
                Node::Text(word.to_owned())
            }
            Word::Text => {
                self.note(Kind::WordQuotes);
                Node::Text(word.to_owned())
            }
        }
    }

    /// Moves to where the word ends. Brackets opened in it (`https://x/{id}`) may be closed in it.
    fn pass_word(&mut self, place: Place) {
        let from = self.at;
        let mut inner = 0_usize;
        while let Some(c) = self.peek() {
            match c {
                '{' | '[' if self.at > from => inner += 1,
                '}' | ']' if inner > 0 => inner -= 1,
                '}' => return,
                ']' if self.within(Open::List) => return,
                ']' if is_end(&self.rest()[1 + blank_len(&self.rest()[1..])..]) => return,
                c if is_comma(c) => {
                    let behind = &self.rest()[c.len_utf8()..];
                    if self.ends_at_comma(from, &behind[blank_len(behind)..], place) {
                        return;
                    }
                }
                c if is_blank(c) => {
                    let gap = blank_len(self.rest());
                    if self.ends_at_blank(from, gap, place) {
                        return;
                    }
                    self.at += gap;
                    continue;
                }
                '`' | '<' if is_end(self.rest()) || token_len(self.rest()).is_some() => return,
                _ => {}
            }
            self.at += c.len_utf8();
        }
    }

    fn ends_at_comma(&self, from: usize, next: &str, place: Place) -> bool {
        let last = is_end(next) || next.starts_with(['}', ']']);
        if last || place == Place::Item {
            return last || !self.rest().starts_with([';', '；']);
        }
        // `1,000` goes on.
        (self.is_whole(from) && !next.starts_with(|c: char| c.is_ascii_digit()))
            || next.starts_with(is_comma)
            || is_comment(next)
            || next.starts_with("...")
            || key_in_quotes(next)
            || last_key(next)
            || key_word(next)
            || (next.starts_with(['{', '[']) && self.within(Open::List))
    }

    /// Whether what was passed since is no mere word.
    fn is_whole(&self, from: usize) -> bool {
        let so_far = &self.text[from..self.at];
        so_far.len() <= NUMBER && !matches!(read(so_far), Word::Text)
    }

    fn ends_at_blank(&self, from: usize, gap: usize, place: Place) -> bool {
        let next = &self.rest()[gap..];
        let newline = self.rest()[..gap].contains('\n');
        if is_end(next) {
            return true;
        }
        // A comment needs a line to end in; else `issue #5}` would lose its bracket.
        if is_comment(next) && (next.starts_with("/*") || self.at + gap < self.last_newline) {
            return true;
        }
        if newline && (key_word(next) || next.starts_with(['}', ']'])) {
            return true;
        }
        let whole = self.is_whole(from);
        match place {
            Place::Item => {
                Quote::open(next).is_some_and(|(quote, _)| quote == Quote::Double)
                    || newline && Quote::open(next).is_some()
                    || whole
                        && next.starts_with(|c: char| {
                            c.is_ascii_digit() || matches!(c, '-' | '{' | '[' | '\'')
                        })
            }
            Place::Value | Place::Top => whole_key(next) || whole && key_word(next),
        }
    }
}
