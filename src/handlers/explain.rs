//! Formats the values in explanations: short, and with hidden characters made visible, because they are untrusted
//! text.

use std::fmt::{self, Write as _};
use std::io;

use serde_json::Value;

use crate::model::make_visible;

/// The words of an explanation for a transcript in which the agent has written no message.
pub(super) const NO_ANSWER: &str = "there is no assistant message";
/// The largest number of characters of a quoted text or value.
const MAX_SHOWN_CHARS: usize = 60;
/// The largest number of listed items.
const MAX_LISTED_ITEMS: usize = 5;

/// A text in quotes, escaped as in Rust and cut after 60 characters.
pub(super) struct QuotedText<'a>(pub(super) &'a str);

impl fmt::Display for QuotedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Characters, not bytes: the cut must not split a character.
        match self.0.char_indices().nth(MAX_SHOWN_CHARS) {
            None => write!(f, "{:?}", self.0),
            Some((at, _)) => write!(f, "{:?}…", &self.0[..at]),
        }
    }
}

/// The end of a sentence about a found text: ` in message 4`. It is empty without a message. The finding's spans have the
/// exact range, which the transcript pane marks.
pub(super) struct TextLocation(pub(super) Option<usize>);

impl fmt::Display for TextLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(message) => write!(f, " in message {message}"),
            None => Ok(()),
        }
    }
}

/// Formats the first five items with commas, and the number of the others.
pub(super) fn format_list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    // Most lists are short, and fit.
    let mut out = String::with_capacity(64);
    push_list(&mut out, items);
    out
}

/// Appends a list, formatted as by [`format_list`].
pub(super) fn push_list<T: fmt::Display>(out: &mut String, items: impl IntoIterator<Item = T>) {
    let mut more = 0;
    for (at, item) in items.into_iter().enumerate() {
        if at >= MAX_LISTED_ITEMS {
            // The remaining items are counted and not formatted, because the list can be very long.
            more += 1;
            continue;
        }
        let comma = if at == 0 { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ok = write!(out, "{comma}{item}");
    }
    if more > 0 {
        let _ok = write!(out, " and {more} more");
    }
}

/// The name of a tool or an argument: unchanged if it is plain, otherwise in quotes.
pub(super) struct EscapedName<'a>(pub(super) &'a str);

impl fmt::Display for EscapedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        // A plain name is readable without quotes. All others could contain spaces or control characters.
        if !self.0.is_empty() && self.0.len() <= MAX_SHOWN_CHARS && self.0.chars().all(plain) {
            f.write_str(self.0)
        } else {
            QuotedText(self.0).fmt(f)
        }
    }
}

/// A JSON value, shortened and safe for a terminal.
pub(super) struct ShortJson<'a>(pub(super) &'a Value);

/// The largest number of bytes of a value that are formatted before it is cut. A value may be a whole page.
const MAX_WRITTEN_BYTES: usize = 256;

impl fmt::Display for ShortJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A text is cut before it is escaped, so a long one is never formatted in full.
        if let Value::String(text) = self.0 {
            return QuotedText(text).fmt(f);
        }
        let mut head = TruncatingWriter(Vec::new());
        // Writing fails when the buffer is full; the text shows its contents.
        let is_complete = serde_json::to_writer(&mut head, self.0).is_ok();
        // The cut can split a character, hence `lossy`.
        let text = String::from_utf8_lossy(&head.0);
        // Values come from transcripts: hidden characters must not reach the terminal.
        let seen = make_visible(&text, false);
        match seen.char_indices().nth(MAX_SHOWN_CHARS) {
            Some((at, _)) => write!(f, "{}…", &seen[..at]),
            None if is_complete => f.write_str(&seen),
            None => write!(f, "{seen}…"),
        }
    }
}

/// A writer that takes the first bytes and refuses the rest.
struct TruncatingWriter(Vec<u8>);

impl io::Write for TruncatingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_WRITTEN_BYTES - self.0.len();
        if room == 0 {
            // The error ends the serialization of a large value early; the caller never shows it.
            return Err(io::Error::other("enough"));
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quotes_are_short_and_make_hidden_characters_visible() {
        assert_eq!(
            QuotedText("a\u{200b}\u{1b}[2J\"").to_string(),
            r#""a\u{200b}\u{1b}[2J\"""#
        );
        assert_eq!(
            QuotedText(&"é".repeat(61)).to_string(),
            format!("\"{}\"…", "é".repeat(60))
        );
        assert_eq!(format_list([1, 2]), "1, 2");
        assert_eq!(format_list(1..=8), "1, 2, 3, 4, 5 and 3 more");
    }

    #[test]
    fn values_are_shortened_and_escaped() {
        for (value, shown) in [
            (json!(null), "null".to_owned()),
            (json!(10.0), "10.0".to_owned()),
            (json!("a\u{202e}b"), r#""a\u{202e}b""#.to_owned()),
            (
                json!({"a": ["x\u{200b}"]}),
                r#"{"a":["x‹U+200B›"]}"#.to_owned(),
            ),
            (
                json!((0..1000).collect::<Vec<_>>()),
                "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,…".to_owned(),
            ),
            (json!(["é".repeat(300)]), format!("[\"{}…", "é".repeat(58))),
        ] {
            assert_eq!(ShortJson(&value).to_string(), shown);
        }
        assert_eq!(EscapedName("order_id").to_string(), "order_id");
        assert_eq!(EscapedName("a b").to_string(), r#""a b""#);
        assert_eq!(EscapedName("").to_string(), r#""""#);
    }
}
