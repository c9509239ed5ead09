//! Text for the log of a GitHub workflow, in which a line can be a command.
//!
//! Responsible for text for people: reasons, names and messages may contain text that dicta did not write. Commands of
//! dicta itself are in [`super::github`].
//!
//! The runner executes a line that begins with `::` after white space, and the older form `##[` anywhere in a line.
//! `\u003a` and `\u005b` replace one character of each. Both are escapes of JSON strings, so a JSON document keeps its
//! values.

use std::io::{self, Write};

/// Writes text for people, and replaces what a workflow's log would execute.
#[derive(Debug)]
pub struct WorkflowLogWriter<W> {
    out: W,
    is_enabled: bool,
    at: LinePosition,
}

/// The part of the current line that decides about the next character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    /// Nothing but white space, or characters that a trim may remove.
    Start,
    /// One colon after the start.
    Colon,
    /// Anything else, and the number of `#` at its end.
    Text(u8),
}

impl<W: Write> WorkflowLogWriter<W> {
    /// Returns a writer that replaces commands if `is_enabled`.
    pub fn new(out: W, is_enabled: bool) -> Self {
        Self {
            out,
            is_enabled,
            at: LinePosition::Start,
        }
    }
}

impl LinePosition {
    /// Returns the position after a byte, and the text that replaces the byte.
    fn advance(self, byte: u8) -> (Self, Option<&'static [u8]>) {
        match (self, byte) {
            // .NET, in which the runner is written, ends a line at `\n` and at `\r`. Other white space than ASCII's
            // begins with a byte from 0x80. A letter there costs one needless escape.
            (_, b'\n' | b'\r') | (Self::Start, 0..=b' ' | 0x7f..) => (Self::Start, None),
            (Self::Start, b':') => (Self::Colon, None),
            (Self::Colon, b':') => (Self::Text(0), Some(br"\u003a")),
            (Self::Text(hashes), b'[') if hashes >= 2 => (Self::Text(0), Some(br"\u005b")),
            (Self::Text(hashes), b'#') => (Self::Text(hashes.saturating_add(1)), None),
            (_, b'#') => (Self::Text(1), None),
            _ => (Self::Text(0), None),
        }
    }
}

impl<W: Write> Write for WorkflowLogWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_enabled {
            return self.out.write(bytes);
        }
        let mut rest = 0;
        for (index, byte) in bytes.iter().enumerate() {
            let (at, replacement) = self.at.advance(*byte);
            self.at = at;
            if let Some(replacement) = replacement {
                self.out.write_all(&bytes[rest..index])?;
                self.out.write_all(replacement)?;
                rest = index + 1;
            }
        }
        self.out.write_all(&bytes[rest..])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Replaces what a workflow's log would execute in a whole text.
pub fn escape_workflow_commands(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    // Writing into memory cannot fail. Only ASCII characters are replaced, so the text stays UTF-8.
    let _infallible = WorkflowLogWriter::new(&mut out, true).write_all(text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns true if the runner would execute a line, by the rules of its source (`ActionCommand.cs`).
    fn has_command(text: &str) -> bool {
        let mut lines = text.split(['\n', '\r']);
        lines.any(|line| line.trim_start().starts_with("::") || line.contains("##["))
    }

    #[test]
    fn line_that_begins_with_two_colons_is_not_a_command() {
        for (text, expected) in [
            ("::error::x", r":\u003aerror::x"),
            ("a\n  ::add-mask::x\nb", "a\n  :\\u003aadd-mask::x\nb"),
            ("a\r::set-env name=x::y", "a\r:\\u003aset-env name=x::y"),
            ("\u{a0}::stop-commands::t", "\u{a0}:\\u003astop-commands::t"),
            ("why ##[error]x", r"why ##\u005berror]x"),
            ("####[group]x", r"####\u005bgroup]x"),
        ] {
            assert_eq!(escape_workflow_commands(text), expected);
        }
    }

    #[test]
    fn other_text_stays_unchanged() {
        for text in [
            "std::io::Error",
            ": x",
            ":x::y",
            "# [a]",
            "[a]: #[b]",
            "✗ fail 0.50  a/r/e::x\n    :-)\n",
        ] {
            assert_eq!(escape_workflow_commands(text), text);
        }
    }

    #[test]
    fn json_keeps_its_values() {
        let value = serde_json::json!({"a": ["::error::x", "##[error]x\n::y"]});
        for text in [value.to_string(), format!("{value:#}")] {
            let escaped = escape_workflow_commands(&text);
            assert!(!has_command(&escaped), "{escaped}");
            let read: serde_json::Value = serde_json::from_str(&escaped).expect("JSON");
            assert_eq!(read, value);
        }
    }

    proptest! {
        #[test]
        fn no_text_in_any_pieces_is_a_command(pieces in prop::collection::vec("[:#\\[ \\n\\r\\ta\u{a0}]{0,4}", 0..12)) {
            let mut out = Vec::new();
            let mut writer = WorkflowLogWriter::new(&mut out, true);
            for piece in &pieces {
                writer.write_all(piece.as_bytes()).expect("memory");
            }
            let text = String::from_utf8(out).expect("UTF-8");
            prop_assert!(!has_command(&text), "{text:?}");
        }

        #[test]
        fn disabled_writer_changes_nothing(text in "[:#\\[ \\na]{0,40}") {
            let mut out = Vec::new();
            WorkflowLogWriter::new(&mut out, false).write_all(text.as_bytes()).expect("memory");
            prop_assert_eq!(out, text.as_bytes());
        }
    }
}
