//! Words for explanations: short, with hidden characters made visible, because what they quote is untrusted.

use std::fmt::{self, Write as _};
use std::ops::Range;

/// How many characters of a quoted text are shown.
const SHOWN: usize = 60;
/// How many things of a kind are listed.
const LISTED: usize = 5;

/// A text in quotes, escaped as in Rust and cut after 60 characters.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN) {
            None => write!(f, "{:?}", self.0),
            Some((at, _)) => write!(f, "{:?}…", &self.0[..at]),
        }
    }
}

/// A place in a transcript: `message 4, bytes 10..16`.
pub(super) struct Place {
    pub(super) message: Option<usize>,
    pub(super) bytes: Range<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = self.message {
            write!(f, "message {message}, ")?;
        }
        write!(f, "bytes {}..{}", self.bytes.start, self.bytes.end)
    }
}

/// The first five, with commas, and how many there are more.
pub(super) fn list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    let mut more = 0;
    for (at, item) in items.into_iter().enumerate() {
        if at >= LISTED {
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
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_show_what_hides() {
        assert_eq!(
            Quoted("a\u{200b}\u{1b}[2J\"").to_string(),
            r#""a\u{200b}\u{1b}[2J\"""#
        );
        assert_eq!(
            Quoted(&"é".repeat(61)).to_string(),
            format!("\"{}\"…", "é".repeat(60))
        );
        assert_eq!(list([1, 2]), "1, 2");
        assert_eq!(list(1..=8), "1, 2, 3, 4, 5 and 3 more");
    }
}
