//! The parser of server-sent events: bytes → lines → frames, for any split of the bytes.
//!
//! Responsible for framing and its limits; knows no dialect. It accepts known deviations of servers: `data:` without
//! a space, a last event without its blank line. It loses nothing: lines that aren't SSE fields become
//! [`SseFrame::Stray`]. Gemini reports errors in mid-stream that way, as a bare, pretty-printed JSON object after the
//! last `data:` line.
//!
//! Format: <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>.

/// The longest line, in bytes.
const MAX_LINE: usize = 1 << 20;
/// The largest event or stray object, in bytes with line ends.
const MAX_EVENT: usize = 8 << 20;
/// The most lines of one event: empty `data:` lines pass every limit on bytes.
const MAX_EVENT_LINES: usize = 10_000;
/// The most empty or comment lines in a row: a server that only keeps the connection alive doesn't reply.
const MAX_IDLE_LINES: usize = 100_000;

/// The fields of events.
const SSE_FIELDS: [&str; 4] = ["data:", "event:", "id:", "retry:"];

/// A unit of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SseFrame {
    /// An event with data.
    Event {
        /// The `event:` field; empty for most events.
        name: String,
        /// The `data:` lines, joined with line feeds.
        data: String,
        /// `false` if the stream ended before the blank line that ends an event.
        complete: bool,
    },
    /// Lines that aren't SSE fields: a JSON value from its first brace to its last, or one other line.
    Stray {
        /// The text, lines joined with line feeds.
        text: String,
        /// `false` if the stream ended inside a JSON value, or inside the name of a field.
        complete: bool,
    },
}

/// The reason why bytes can't be split into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SseFrameError {
    /// A limit was exceeded: a few words with the limit.
    TooLarge(&'static str),
    /// A line is not UTF-8.
    NotUtf8,
}

/// Turns chunks into frames.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    line: Vec<u8>,
    /// The last byte was a CR: an LF now belongs to it.
    after_cr: bool,
    /// A line was read, so a byte order mark can't follow.
    bom_checked: bool,
    name: String,
    data: Option<String>,
    data_lines: usize,
    stray: Option<StrayText>,
    idle_lines: usize,
}

impl SseParser {
    /// Parses a chunk and appends complete frames to `out`.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<SseFrame>,
    ) -> Result<(), SseFrameError> {
        // A CR LF can be split between two chunks.
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        // SSE allows CR, LF and CR LF as line ends.
        while let Some(at) = memchr::memchr2(b'\r', b'\n', bytes) {
            self.append_to_line(&bytes[..at])?;
            let ended_by = bytes[at];
            bytes = &bytes[at + 1..];
            if ended_by == b'\r' {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            self.end_line(out)?;
        }
        self.append_to_line(bytes)
    }

    /// Ends the stream and appends the rest as incomplete frames.
    pub(super) fn finish(mut self, out: &mut Vec<SseFrame>) -> Result<(), SseFrameError> {
        // The stream may end inside a character; the text before it is still valid.
        if let Err(error) = std::str::from_utf8(&self.line)
            && error.error_len().is_none()
        {
            self.line.truncate(error.valid_up_to());
        }
        if SSE_FIELDS
            .iter()
            .any(|field| field.as_bytes().starts_with(&self.line))
        {
            // The beginning of a field's name, or nothing: not a line of something else.
            let rest = String::from_utf8_lossy(&self.line).into_owned();
            if !rest.is_empty() && self.stray.is_none() {
                out.push(SseFrame::Stray {
                    text: rest,
                    complete: false,
                });
            }
        } else {
            self.end_line(out)?;
        }
        if let Some(stray) = self.stray.take() {
            out.push(SseFrame::Stray {
                text: stray.text,
                complete: false,
            });
        }
        if let Some(data) = self.data.take() {
            out.push(SseFrame::Event {
                name: self.name,
                data,
                complete: false,
            });
        }
        Ok(())
    }

    fn append_to_line(&mut self, bytes: &[u8]) -> Result<(), SseFrameError> {
        if self.line.len() + bytes.len() > MAX_LINE {
            return Err(SseFrameError::TooLarge("1 MiB for a line"));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<SseFrame>) -> Result<(), SseFrameError> {
        let line = std::mem::take(&mut self.line);
        let mut bytes = &line[..];
        if !self.bom_checked {
            self.bom_checked = true;
            // A byte order mark may only be at the beginning of the stream.
            bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| SseFrameError::NotUtf8)?;
        let done = self.take_line(text, out);
        // Reuse the buffer for the next line.
        self.line = line;
        self.line.clear();
        done
    }

    fn take_line(&mut self, line: &str, out: &mut Vec<SseFrame>) -> Result<(), SseFrameError> {
        // One space after the colon belongs to the syntax, further ones to the value.
        let (field, value) = match line.split_once(':') {
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (line, ""),
        };
        match field {
            // Data is data even inside an object that never closed: garbage must not swallow a reply.
            "data" => self.add_data(value),
            "" if line.is_empty() && (self.stray.is_none() || self.data.is_some()) => {
                self.end_event(out);
                self.count_idle_line()
            }
            // Inside an open JSON value a line with a colon is a part of it.
            _ if self.stray.is_some() => self.add_stray(line, out),
            "" => self.count_idle_line(),
            "event" => {
                value.clone_into(&mut self.name);
                Ok(())
            }
            // These fields only serve reconnects, which dicta never does.
            "id" | "retry" => Ok(()),
            _ => self.add_stray(line, out),
        }
    }

    fn count_idle_line(&mut self) -> Result<(), SseFrameError> {
        self.idle_lines += 1;
        if self.idle_lines > MAX_IDLE_LINES {
            return Err(SseFrameError::TooLarge("100,000 empty lines in a row"));
        }
        Ok(())
    }

    fn add_data(&mut self, value: &str) -> Result<(), SseFrameError> {
        self.idle_lines = 0;
        self.data_lines += 1;
        let data = match &mut self.data {
            Some(data) => {
                data.push('\n');
                data
            }
            none => none.insert(String::new()),
        };
        if data.len() + value.len() > MAX_EVENT {
            return Err(SseFrameError::TooLarge("8 MiB for an event"));
        }
        if self.data_lines > MAX_EVENT_LINES {
            return Err(SseFrameError::TooLarge("10,000 lines for an event"));
        }
        data.push_str(value);
        Ok(())
    }

    fn end_event(&mut self, out: &mut Vec<SseFrame>) {
        let name = std::mem::take(&mut self.name);
        self.data_lines = 0;
        if let Some(data) = self.data.take() {
            out.push(SseFrame::Event {
                name,
                data,
                complete: true,
            });
        }
    }

    fn add_stray(&mut self, line: &str, out: &mut Vec<SseFrame>) -> Result<(), SseFrameError> {
        self.idle_lines = 0;
        // A server that changes to another format has finished its event.
        self.end_event(out);
        let stray = self.stray.get_or_insert_with(StrayText::default);
        if stray.text.len() + line.len() > MAX_EVENT {
            return Err(SseFrameError::TooLarge("8 MiB for an event"));
        }
        stray.add(line);
        if !stray.is_open() {
            out.extend(self.stray.take().map(|stray| SseFrame::Stray {
                text: stray.text,
                complete: true,
            }));
        }
        Ok(())
    }
}

/// Lines outside SSE, collected while a JSON value is open.
#[derive(Debug, Default)]
struct StrayText {
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl StrayText {
    fn add(&mut self, line: &str) {
        let json = !self.text.is_empty() || line.trim_start().starts_with(['{', '[']);
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
        if !json {
            return;
        }
        // Count braces outside strings; the value is complete at depth 0.
        for byte in line.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_open(&self) -> bool {
        self.depth > 0
    }
}

#[cfg(test)]
mod tests {
    mod conformance;

    use super::*;
    use proptest::prelude::*;

    fn frames(chunks: &[&[u8]]) -> Vec<SseFrame> {
        let (mut framer, mut out) = (SseParser::default(), Vec::new());
        for chunk in chunks {
            framer.push(chunk, &mut out).expect("within the caps");
        }
        framer.finish(&mut out).expect("within the caps");
        out
    }

    fn data(text: &str) -> SseFrame {
        named("", text)
    }

    fn named(name: &str, text: &str) -> SseFrame {
        SseFrame::Event {
            name: name.to_owned(),
            data: text.to_owned(),
            complete: true,
        }
    }

    /// Line ends, comments, fields, byte order marks and deviations, as far as a reply to a POST can hold them.
    #[test]
    fn parser_reads_events_as_the_specification_requires() {
        let cases: &[(&str, &[SseFrame])] = &[
            ("data: a\n\n", &[data("a")]),
            ("data:a\n\n", &[data("a")]),
            ("data:  a\n\n", &[data(" a")]),
            ("data\n\n", &[data("")]),
            ("data:\n\n", &[data("")]),
            ("data: a\ndata: b\n\n", &[data("a\nb")]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &[data("a"), data("b")]),
            ("data: a\r\rdata: b\r\r", &[data("a"), data("b")]),
            ("data: a\n\r\ndata: b\r\n\n", &[data("a"), data("b")]),
            (
                ": ping\n\ndata: a\n\n: OPENROUTER PROCESSING\n\n",
                &[data("a")],
            ),
            (
                "event: error\ndata: a\n\ndata: b\n\n",
                &[named("error", "a"), data("b")],
            ),
            ("event: nothing\n\ndata: b\n\n", &[data("b")]),
            ("id: 7\nretry: 10\ndata: a:b:c\n\n", &[data("a:b:c")]),
            ("\u{feff}data: a\n\n", &[data("a")]),
            ("data: \u{feff}\n\n", &[data("\u{feff}")]),
            ("data: é😀\n\n", &[data("é😀")]),
            ("\n\n\n", &[]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(&frames(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn event_without_its_blank_line_is_incomplete() {
        for text in ["data: a", "data: a\n"] {
            let cut = SseFrame::Event {
                name: String::new(),
                data: "a".to_owned(),
                complete: false,
            };
            assert_eq!(frames(&[text.as_bytes()]), [cut], "{text:?}");
        }
    }

    #[test]
    fn error_body_outside_sse_is_kept_whole() {
        let tail =
            "{\n  \"error\": {\n\n    \"code\": 499,\n    \"message\": \"a \\\" } brace\"\n  }\n}";
        let stream = format!("data: {{}}\r\n\r\n{}\r\n", tail.replace('\n', "\r\n"));
        let stray = |text: &str, complete| SseFrame::Stray {
            text: text.to_owned(),
            complete,
        };
        assert_eq!(
            frames(&[stream.as_bytes()]),
            [data("{}"), stray(tail, true)]
        );
        let cut = &tail[..tail.len() - 2];
        assert_eq!(frames(&[cut.as_bytes()]), [stray(cut, false)]);
        assert_eq!(
            frames(&[b"<html>\ndata: a\n\n"]),
            [stray("<html>", true), data("a")]
        );
        assert_eq!(
            frames(&[b"{ never closed\ndata: a\n\n"]),
            [data("a"), stray("{ never closed", false)],
            "garbage does not swallow a reply"
        );
    }

    #[test]
    fn parser_limits_the_size_of_lines_and_events() {
        let endless = |piece: &[u8], most: usize| {
            let (mut framer, mut out) = (SseParser::default(), Vec::new());
            let mut bytes = 0;
            loop {
                bytes += piece.len();
                assert!(bytes <= most, "no cap within {most} bytes");
                if let Err(error) = framer.push(piece, &mut out) {
                    return error;
                }
            }
        };
        let row = vec![b'x'; 64 << 10];
        let mut lines = b"data: ".to_vec();
        lines.extend(&row);
        lines.push(b'\n');
        let mut open = b"{".to_vec();
        open.extend(&row);
        open.push(b'\n');
        let cases: [(&[u8], &str); 6] = [
            (&row, "1 MiB for a line"),
            (&lines, "8 MiB for an event"),
            (&open, "8 MiB for an event"),
            (b"data:\n", "10,000 lines for an event"),
            (b"\r\n", "100,000 empty lines in a row"),
            (b": alive\n", "100,000 empty lines in a row"),
        ];
        for (piece, cap) in cases {
            assert_eq!(endless(piece, 9 << 20), SseFrameError::TooLarge(cap));
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_rejected() {
        let mut framer = SseParser::default();
        assert_eq!(
            framer.push(b"data: \xff\n", &mut Vec::new()),
            Err(SseFrameError::NotUtf8)
        );
    }

    proptest! {
        #[test]
        fn frames_are_the_same_for_every_split_of_the_bytes(
            parts in prop::collection::vec(prop::sample::select(vec![
                "data: ", "data:", "data", "é😀", "x", "\r", "\n", "\r\n", "\r\n\r\n", ": c", "event: e", "{", "}", "\"", "\\", "\u{feff}", ":", "id: 1",
            ]), 0..24),
            cuts in prop::collection::vec(0usize..80, 0..8),
        ) {
            let whole = parts.concat();
            let bytes = whole.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|c| *c < bytes.len()).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            prop_assert_eq!(frames(&chunks), frames(&[bytes]));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(frames(&single), frames(&[bytes]));
        }
    }
}
