//! The lines of a log: limited in length, complete or cut off.
//!
//! Responsible for the layout of a line. Does not know the meaning of events.

use std::io::{self, BufRead};

/// The kind of a line that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogLineKind {
    /// The line ends with a line break.
    Complete,
    /// The file ends within the line.
    Unterminated,
    /// The line is longer than the limit. The buffer holds its beginning.
    TooLong,
}

/// Reads the next line into `line`, without its line break. Returns `None` at the end.
pub(super) fn read_line(
    input: &mut dyn BufRead,
    line: &mut Vec<u8>,
    cap: usize,
) -> io::Result<Option<LogLineKind>> {
    line.clear();
    let mut length = 0;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(match length {
                0 => None,
                // `length` counts the dropped bytes too.
                n if n > cap => Some(LogLineKind::TooLong),
                _ => Some(LogLineKind::Unterminated),
            });
        }
        let end = memchr::memchr(b'\n', available);
        let part = &available[..end.unwrap_or(available.len())];
        // The rest of a line above the limit is read and dropped, so that memory use stays bounded.
        let room = cap.saturating_sub(line.len()).min(part.len());
        line.extend_from_slice(&part[..room]);
        length += part.len();
        // The line break is consumed, but it is not part of the line.
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(if length > cap {
                LogLineKind::TooLong
            } else {
                LogLineKind::Complete
            }));
        }
    }
}

/// Returns the number and the tag of a line in the writer's own layout; `None` for any other valid spelling.
///
/// A reader that wants few kinds skips the other lines without parsing them.
pub(super) fn peek_seq_and_tag(line: &[u8]) -> Option<(u64, &str)> {
    // This is the exact layout of `LogWriter::append_line`.
    let rest = line.strip_prefix(br#"{"seq":"#)?;
    let (seq, rest) = parse_number(rest)?;
    let rest = rest.strip_prefix(br#","at":"#)?;
    let (_, rest) = parse_number(rest)?;
    let rest = rest.strip_prefix(br#","kind":{""#)?;
    // Tags contain no escapes, so the next quote ends the tag.
    let end = memchr::memchr(b'"', rest)?;
    // Check that the line is whole, because a reader would skip a cut line without a warning.
    line.ends_with(b"}}")
        .then(|| std::str::from_utf8(&rest[..end]).ok())
        .flatten()
        .map(|tag| (seq, tag))
}

fn parse_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let text = std::str::from_utf8(&bytes[..digits]).ok()?;
    Some((text.parse().ok()?, &bytes[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], cap: usize, buffer: usize) -> Vec<(LogLineKind, String)> {
        let mut input = io::BufReader::with_capacity(buffer, text);
        let (mut line, mut all) = (Vec::new(), Vec::new());
        while let Some(kind) = read_line(&mut input, &mut line, cap).expect("memory reads") {
            all.push((kind, String::from_utf8_lossy(&line).into_owned()));
        }
        all
    }

    #[test]
    fn long_line_does_not_affect_other_lines() {
        for buffer in [1, 2, 3, 64] {
            assert_eq!(
                lines(b"ab\n\ncdefgh\ni\njk", 4, buffer),
                [
                    (LogLineKind::Complete, "ab".to_owned()),
                    (LogLineKind::Complete, String::new()),
                    (LogLineKind::TooLong, "cdef".to_owned()),
                    (LogLineKind::Complete, "i".to_owned()),
                    (LogLineKind::Unterminated, "jk".to_owned()),
                ]
            );
        }
    }

    #[test]
    fn only_complete_lines_are_peeked() {
        let line = br#"{"seq":12,"at":3,"kind":{"note":{"cell":null,"text":"x"}}}"#;
        assert_eq!(peek_seq_and_tag(line), Some((12, "note")));
        assert_eq!(peek_seq_and_tag(&line[..line.len() - 4]), None);
        assert_eq!(
            peek_seq_and_tag(br#"{"at":3,"seq":12,"kind":{"note":{}}}"#),
            None
        );
        assert_eq!(
            peek_seq_and_tag(br#"{"seq":,"at":3,"kind":{"note":{}}}"#),
            None
        );
    }
}
