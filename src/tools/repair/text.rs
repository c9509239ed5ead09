//! Texts in quotes: where they end, their escapes, what is added up with `+`.
//!
//! A quote ends its text if what follows is what follows a text; else it is part of it.

use super::cursor::{
    Mender, Open, blank_len, head, is_blank, is_colon, is_comma, is_comment, is_end,
    item_in_quotes, item_word, key_in_quotes, key_word, last_key, token_len, whole_key,
};
use super::notes::Kind;
use super::quote::Quote;

/// What a text is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Value,
    Item,
    Top,
}

impl Mender<'_> {
    /// A value in quotes, with what is added to it. The cursor stands at its opening quote.
    pub(super) fn text_value(&mut self, place: Place) -> String {
        let mut text = self.one_text(place);
        loop {
            let behind = &self.rest()[blank_len(self.rest())..];
            let next = behind.strip_prefix('+').map(|next| {
                let next = next.trim_start_matches(is_blank);
                (Quote::open(next).is_some(), next.len())
            });
            let Some((true, left)) = next else {
                return text;
            };
            self.at = self.text.len() - left;
            self.note(Kind::Joined);
            text.push_str(&self.one_text(place));
        }
    }

    fn one_text(&mut self, place: Place) -> String {
        let Some((quote, length)) = self.opening() else {
            return String::new();
        };
        if length != 1 || !self.rest().starts_with('"') {
            self.note(Kind::OtherQuotes);
        }
        self.at += length;
        let from = self.at;
        let mut out = String::new();
        loop {
            let Some(c) = self.peek() else {
                self.cut = true;
                self.note(Kind::CutText);
                self.leave_brackets(&mut out);
                return out;
            };
            let before = self.text[from..self.at].chars().next_back();
            if let Some(length) = quote.closed_by(self.rest(), before) {
                if matches!(quote, Quote::Triple(_)) || self.closes(length, place) {
                    self.at += length;
                    return out;
                }
                if place == Place::Value && self.should_have_ended(&mut out) {
                    self.note(Kind::EndQuote);
                    return out;
                }
                self.note(Kind::InnerQuote);
                out.push_str(&self.rest()[..length]);
                self.at += length;
            } else if c == '\\' {
                self.escape(&mut out);
            } else {
                if c < ' ' {
                    self.note(Kind::Control);
                }
                out.push(c);
                self.at += c.len_utf8();
            }
        }
    }

    /// The quote here, three in a row where three more follow.
    fn opening(&mut self) -> Option<(Quote, usize)> {
        let rest = self.rest();
        for (three, one) in [("\"\"\"", '"'), ("'''", '\'')] {
            if !self.no_triple
                && let Some(inside) = rest.strip_prefix(three)
            {
                if inside.contains(three) {
                    return Some((Quote::Triple(one), 3));
                }
                self.no_triple = true;
            }
        }
        Quote::open(rest)
    }

    /// Brackets at the end of a text that never ended, if they are just those that are open, were not meant as part of it.
    fn leave_brackets(&mut self, out: &mut String) {
        let mut inner = out.trim_end();
        for open in &self.open {
            let bracket = match open {
                Open::Object => '}',
                Open::List => ']',
            };
            match inner.strip_suffix(bracket) {
                Some(shorter) => inner = shorter.trim_end(),
                None => return,
            }
        }
        let left = out.len() - inner.len();
        if self.text.ends_with(&out[inner.len()..]) {
            self.at -= left;
            out.truncate(out.len() - left);
        }
    }

    /// Whether the quote here ends a text.
    fn closes(&self, length: usize, place: Place) -> bool {
        let after = &self.rest()[length..];
        let gap = blank_len(after);
        let rest = &after[gap..];
        let Some(c) = rest.chars().next() else {
            return true;
        };
        if is_end(rest) || is_comment(rest) || token_len(rest).is_some() {
            return true;
        }
        let in_object = self.within(Open::Object);
        match c {
            '}' if in_object => closes_before_bracket(rest, self.open.len() == 1),
            ']' if self.within(Open::List) => closes_before_bracket(rest, false),
            // Instead of the other bracket.
            ']' if in_object => is_end(&rest[1 + blank_len(&rest[1..])..]),
            '+' => Quote::open(rest[1..].trim_start_matches(is_blank)).is_some(),
            c if is_comma(c) => {
                let next = &rest[c.len_utf8()..];
                self.closes_before_comma(&next[blank_len(next)..], place)
            }
            // A key: the list before it lacks its bracket.
            c if is_colon(c) => place == Place::Item && in_object,
            _ if Quote::open(rest).is_some() => match place {
                Place::Value => whole_key(rest),
                Place::Item => gap > 0,
                Place::Top => false,
            },
            _ => place == Place::Value && after[..gap].contains('\n') && key_word(rest),
        }
    }

    fn closes_before_comma(&self, next: &str, place: Place) -> bool {
        let Some(c) = next.chars().next() else {
            return true;
        };
        if is_end(next) || is_comment(next) || next.starts_with("...") {
            return true;
        }
        match (c, place) {
            ('}' | ']' | ',', _) => true,
            ('{' | '[', _) => self.within(Open::List),
            (_, Place::Value) if Quote::open(next).is_some() => {
                key_in_quotes(next) || last_key(next)
            }
            (_, Place::Value) => key_word(next),
            (_, Place::Item) if Quote::open(next).is_some() => item_in_quotes(next),
            (_, Place::Item) => item_word(next) || key_word(next),
            (_, Place::Top) => false,
        }
    }

    /// Whether the quote here opens the next key, as the text before it lacks its end. The cursor then goes back to it.
    fn should_have_ended(&mut self, out: &mut String) -> bool {
        let text = out.trim_end();
        let comma = text.ends_with(',');
        if !(comma || out[text.len()..].contains('\n')) || !key_in_quotes(self.rest()) {
            return false;
        }
        let ended = text.strip_suffix(',').unwrap_or(text).len();
        let left = out.len() - ended;
        if self.text[..self.at].ends_with(&out[ended..]) {
            self.at -= left;
        }
        out.truncate(ended);
        true
    }

    /// What follows a backslash.
    fn escape(&mut self, out: &mut String) {
        let rest = &self.rest()[1..];
        let Some(c) = rest.chars().next() else {
            // Cut in the middle of it.
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
            out.push(plain);
            self.at += 2;
            return;
        }
        if c == 'u' && self.unicode(out) {
            return;
        }
        self.note(Kind::Escape);
        let hex = |from: usize, length: usize| {
            let digits = rest.get(from..from + length)?;
            let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
            char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| all)?)
        };
        let named = match c {
            'x' => hex(1, 2).map(|c| (c, 3)),
            'U' => hex(1, 8).map(|c| (c, 9)),
            '\n' => Some(('\n', 1)),
            c if Quote::open(rest).is_some() => Some((c, c.len_utf8())),
            _ => None,
        };
        if let Some((c, length)) = named {
            out.push(c);
            self.at += 1 + length;
        } else {
            // `\d`: a backslash that was meant, and not doubled.
            out.push('\\');
            self.at += 1;
        }
    }

    /// `\uXXXX`, in pairs where they are. False if it is no such escape.
    fn unicode(&mut self, out: &mut String) -> bool {
        let unit = |rest: &str| {
            let digits = rest.strip_prefix("\\u")?.get(..4)?;
            let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
            u16::from_str_radix(digits, 16).ok().filter(|_| all)
        };
        let rest = self.rest();
        let Some(first) = unit(rest) else {
            let cut = rest.len() < 6 && rest[2..].bytes().all(|b| b.is_ascii_hexdigit());
            if cut {
                self.at = self.text.len();
            }
            return cut;
        };
        let second = (0xd800..0xdc00)
            .contains(&first)
            .then(|| unit(&rest[6..]))
            .flatten();
        let units = [Some(first), second];
        if let Some(Ok(c)) = char::decode_utf16(units.into_iter().flatten()).next() {
            out.push(c);
            self.at += 6 * c.len_utf16();
        } else {
            self.note(Kind::Surrogate);
            out.push('\u{fffd}');
            self.at += 6;
        }
        true
    }

    /// A key in quotes; `None` if the text ends in it. The cursor stands at its opening quote.
    pub(super) fn key_text(&mut self) -> Option<String> {
        let (quote, length) = self.opening()?;
        if length != 1 || !self.rest().starts_with('"') {
            self.note(Kind::OtherQuotes);
        }
        self.at += length;
        let from = self.at;
        let mut out = String::new();
        loop {
            let c = self.peek()?;
            let before = self.text[from..self.at].chars().next_back();
            if let Some(length) = quote.closed_by(self.rest(), before) {
                let behind = &self.rest()[length..];
                let followed = behind[blank_len(behind)..].starts_with(is_colon);
                if !followed && let Some(at) = unended_key(&self.text[from..self.at]) {
                    self.note(Kind::EndQuote);
                    self.at = from + at;
                    return Some(self.text[from..self.at].to_owned());
                }
                self.at += length;
                return Some(out);
            }
            if c == '\\' {
                self.escape(&mut out);
            } else {
                if c < ' ' {
                    self.note(Kind::Control);
                }
                out.push(c);
                self.at += c.len_utf8();
            }
        }
    }
}

/// Where a key ends that lacks its end quote: `"a: 1, "b": 2`.
fn unended_key(text: &str) -> Option<usize> {
    let near = head(text, 100);
    let at = near.find(is_colon)?;
    let word = near[..at].chars().all(|c| c.is_alphanumeric() || c == '_');
    (at > 0
        && word
        && near[at..]
            .trim_start_matches(is_colon)
            .starts_with([' ', '"', '\'']))
    .then_some(at)
}

/// Whether a quote before the bracket that `rest` begins with ends its text.
fn closes_before_bracket(rest: &str, outermost: bool) -> bool {
    let after = &rest[1..];
    let gap = blank_len(after);
    let next = &after[gap..];
    let Some(c) = next.chars().next() else {
        return true;
    };
    if Quote::open(next).is_some() {
        return key_in_quotes(next) || after[..gap].contains('\n');
    }
    outermost
        || is_comma(c)
        || matches!(c, '}' | ']' | '{' | '[')
        || is_end(next)
        || is_comment(next)
        || token_len(next).is_some()
        || after[..gap].contains('\n')
        || key_word(next)
}
