//! Scanners that find the end of a JSON value or CSV row without parsing it.
//!
//! Responsible for brackets, strings and quotes only. Does not check the grammar: a broken value is a bad record for
//! the parser, not an unreadable file.

/// A scanner over one JSON value, fed in pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JsonValueScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// True in a value that is not an object, array or string. It ends at a separator.
    bare: bool,
    started: bool,
    /// True if a string contained a raw line break, which JSON forbids.
    pub(super) torn_string: bool,
}

impl JsonValueScanner {
    /// Returns a scanner in the middle of a value, with this number of open brackets.
    pub(super) fn inside(depth: usize) -> Self {
        Self {
            depth,
            started: true,
            ..Self::default()
        }
    }

    /// Reads `bytes`. On the first call, they must begin with the first byte of the value. Returns the number of bytes
    /// that belong to the value, once its end is found.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at += self.skip_string(&bytes[at..]);
                if !self.in_string && self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            let byte = bytes[at];
            if self.bare {
                // A separator ends a bare value and does not belong to it.
                if byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}') {
                    return Some(at);
                }
                at += 1;
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    // `saturating_sub` accepts a closing bracket without an opening one.
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ if !self.started => self.bare = true,
                _ => {}
            }
            self.started = true;
            at += 1;
        }
        None
    }

    /// Reads inside a string and returns the number of bytes read, with the closing quote.
    fn skip_string(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        // The previous piece ended after a backslash, so the first byte is escaped.
        if self.escaped && !bytes.is_empty() {
            self.escaped = false;
            at = 1;
        }
        loop {
            let Some(hit) = memchr::memchr3(b'"', b'\\', b'\n', &bytes[at..]) else {
                return bytes.len();
            };
            at += hit + 1;
            match bytes[at - 1] {
                b'"' => {
                    self.in_string = false;
                    return at;
                }
                // A torn line ends inside a string, so its scan continues into the next line.
                b'\n' => self.torn_string = true,
                // The escaped byte is in the next piece.
                _ if at == bytes.len() => {
                    self.escaped = true;
                    return at;
                }
                _ => at += 1,
            }
        }
    }
}

/// A scanner for the end of one CSV row, fed in pieces. Line breaks in quoted cells do not end the row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CsvRowScanner {
    state: CsvScanState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CsvScanState {
    /// A quote here opens a quoted cell.
    #[default]
    CellStart,
    Plain,
    Quoted,
    /// After a quote in a quoted cell: the end of the cell, or the first half of a doubled quote.
    QuoteSeen,
}

impl CsvRowScanner {
    /// Reads `bytes`. Returns the number of bytes that belong to the row with its line end, once the end is found.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.state == CsvScanState::Quoted {
                at += memchr::memchr(b'"', &bytes[at..])? + 1;
                self.state = CsvScanState::QuoteSeen;
                continue;
            }
            match bytes[at] {
                b'\n' => return Some(at + 1),
                b',' => self.state = CsvScanState::CellStart,
                // A quote in the middle of a plain cell is an ordinary character, as in `5" pipe`.
                b'"' if self.state != CsvScanState::Plain => self.state = CsvScanState::Quoted,
                _ => self.state = CsvScanState::Plain,
            }
            at += 1;
        }
        None
    }
}

/// Returns the JSON values at the beginning of `body`. The last value may be incomplete.
pub(super) fn split_values(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let begin = rest
            .iter()
            .position(|b| !(b.is_ascii_whitespace() || *b == b','))?;
        rest = &rest[begin..];
        // The list ends here. Text after it is not part of the first values.
        if rest[0] == b']' {
            return None;
        }
        let len = JsonValueScanner::default().feed(rest).unwrap_or(rest.len());
        let (value, after) = rest.split_at(len);
        rest = after;
        Some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn end(text: &str) -> Option<usize> {
        JsonValueScanner::default().feed(text.as_bytes())
    }

    #[test]
    fn a_value_ends_at_its_own_bracket_quote_or_separator() {
        for (text, len) in [
            ("{} ,", 2),
            (r#"{"a":"}"}]"#, 9),
            (r#"{"a":"\"}"},"#, 11),
            (r#"[[],{"x":[1]}]]"#, 14),
            (r#""a\\","#, 5),
            ("12]", 2),
            ("null,", 4),
            ("]", 1),
        ] {
            assert_eq!(end(text), Some(len), "{text}");
        }
        for text in ["", "{", "\"", r#"{"a":"}"#, "12", r#""\"#] {
            assert_eq!(end(text), None, "{text}");
        }
    }

    #[test]
    fn a_row_ends_at_a_line_end_outside_quotes() {
        for (text, len) in [
            ("a,b\nc", 4),
            ("\n", 1),
            ("\"a\nb\",c\r\nd", 9),
            ("\"a\"\"\n\",c\nd", 9),
            // A quote within a plain cell opens nothing.
            ("5\" pipe,x\ny", 10),
            ("\"\",\"\"\n", 6),
        ] {
            assert_eq!(
                CsvRowScanner::default().feed(text.as_bytes()),
                Some(len),
                "{text:?}"
            );
            for cut in 0..len {
                let mut scan = CsvRowScanner::default();
                assert_eq!(scan.feed(&text.as_bytes()[..cut]), None, "{text:?}");
                let rest = scan.feed(&text.as_bytes()[cut..]);
                assert_eq!(rest, Some(len - cut), "{text:?}");
            }
        }
        assert_eq!(CsvRowScanner::default().feed(b"\"a\nb"), None);
    }

    proptest! {
        #[test]
        fn scan_in_pieces_finds_the_same_end(text in r#"[\[{]["\\\[\]{},a\n]{0,30}"#, cut in 0usize..30) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            let mut scan = JsonValueScanner::default();
            let pieces = scan.feed(&bytes[..cut]).or_else(|| scan.feed(&bytes[cut..]).map(|n| n + cut));
            prop_assert_eq!(pieces, JsonValueScanner::default().feed(bytes));
        }
    }
}
