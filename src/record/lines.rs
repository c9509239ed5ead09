//! The lines of a log: limited in length, complete or cut off, with a checksum at the end.
//!
//! Responsible for the layout of a line. Does not know the meaning of events.

use std::io::{self, BufRead, Write as _};

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

/// The beginning of a keyed checksum behind the event of a line.
const MAC_FIELD: &[u8] = br#","mac":""#;
/// The beginning of the checksum at the end of a line.
const CRC_FIELD: &[u8] = br#","crc":""#;
/// The end of a line that has a checksum.
const LINE_END: &[u8] = br#""}"#;
/// The number of hex digits of a checksum.
const CRC_DIGITS: usize = 8;

/// A line without its checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineParts<'l> {
    /// The line before its checksums, without the last brace of a line that has some.
    pub(super) body: &'l [u8],
    /// The hex digits of the keyed checksum.
    pub(super) mac: Option<&'l [u8]>,
    /// `true` if the checksum matches; `None` if the line has none.
    pub(super) is_intact: Option<bool>,
}

impl<'l> LineParts<'l> {
    /// Splits a line and checks its checksum. `mac_digits` is the length of a keyed checksum.
    pub(super) fn split(line: &'l [u8], mac_digits: usize) -> Self {
        let Some((before, digits)) = split_field(line, CRC_FIELD, LINE_END, CRC_DIGITS) else {
            return Self {
                body: line,
                mac: None,
                is_intact: None,
            };
        };
        let is_intact = parse_crc(digits) == Some(crc32fast::hash(before));
        let (body, mac) = match split_field(before, MAC_FIELD, b"\"", mac_digits) {
            Some((body, mac)) => (body, Some(mac)),
            None => (before, None),
        };
        Self {
            body,
            mac,
            is_intact: Some(is_intact),
        }
    }
}

/// Parses lower-case hex digits, as the writer writes them. An upper-case digit is damage.
fn parse_crc(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |crc: u32, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(crc << 4 | u32::from(value))
    })
}

/// Splits a field with a value of `digits` bytes off the end of a line.
fn split_field<'l>(
    line: &'l [u8],
    field: &[u8],
    end: &[u8],
    digits: usize,
) -> Option<(&'l [u8], &'l [u8])> {
    let rest = line.strip_suffix(end)?;
    let (rest, value) = rest.split_at_checked(rest.len().checked_sub(digits)?)?;
    Some((rest.strip_suffix(field)?, value))
}

/// Appends the checksums to the line that begins at `start` in `lines`, and ends the line.
pub(super) fn finish_line(lines: &mut Vec<u8>, start: usize, mac: Option<impl std::fmt::Display>) {
    if let Some(mac) = mac {
        lines.extend_from_slice(MAC_FIELD);
        let _a_vec_takes_all = write!(lines, "{mac}\"");
    }
    let crc = crc32fast::hash(&lines[start..]);
    lines.extend_from_slice(CRC_FIELD);
    let _a_vec_takes_all = write!(lines, "{crc:08x}");
    lines.extend_from_slice(LINE_END);
    lines.push(b'\n');
}

/// Returns the number and the tag of a line in the writer's own layout; `None` for any other valid spelling.
///
/// A reader that wants few kinds skips the other lines without parsing them.
pub(super) fn peek_seq_and_tag<'l>(parts: &LineParts<'l>) -> Option<(u64, &'l str)> {
    let line = parts.body;
    // This is the exact layout of `LogWriter::append_line`.
    let rest = line.strip_prefix(br#"{"seq":"#)?;
    let (seq, rest) = parse_number(rest)?;
    let rest = rest.strip_prefix(br#","at":"#)?;
    let (_, rest) = parse_number(rest)?;
    let rest = rest.strip_prefix(br#","kind":{""#)?;
    // Tags contain no escapes, so the next quote ends the tag.
    let end = memchr::memchr(b'"', rest)?;
    // Check that the line is whole, because a reader would skip a cut line without a warning.
    (parts.is_intact == Some(true) || line.ends_with(b"}}"))
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
        let peek = |line: &[u8]| {
            let parts = LineParts::split(line, 4);
            peek_seq_and_tag(&parts).map(|(seq, tag)| (seq, tag.to_owned()))
        };
        let line = br#"{"seq":12,"at":3,"kind":{"note":{"cell":null,"text":"x"}}}"#;
        let note = Some((12, "note".to_owned()));
        assert_eq!(peek(line), note);
        assert_eq!(peek(&line[..line.len() - 4]), None);
        assert_eq!(peek(br#"{"at":3,"seq":12,"kind":{"note":{}}}"#), None);
        assert_eq!(peek(br#"{"seq":,"at":3,"kind":{"note":{}}}"#), None);
        for mac in [None, Some("beef")] {
            let mut sealed = line[..line.len() - 1].to_vec();
            finish_line(&mut sealed, 0, mac);
            let sealed = sealed.strip_suffix(b"\n").expect("a line break");
            assert_eq!(peek(sealed), note);
            for cut in 1..sealed.len() {
                let parts = LineParts::split(&sealed[..cut], 4);
                assert_eq!(parts.is_intact, None, "cut at {cut}");
            }
        }
    }

    #[test]
    fn every_changed_bit_of_a_line_is_found() {
        let body = br#"{"seq":12,"at":3,"kind":{"note":{"cell":null,"text":"x"}}"#;
        let mut line = b"before".to_vec();
        line.extend_from_slice(body);
        finish_line(&mut line, 6, Some("beef"));
        let line = line[6..].strip_suffix(b"\n").expect("a line break");
        let expected = LineParts {
            body,
            mac: Some(b"beef"),
            is_intact: Some(true),
        };
        assert_eq!(LineParts::split(line, 4), expected);
        let json: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        assert_eq!(json["mac"], "beef");
        for bit in 0..8 * line.len() {
            let mut damaged = line.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let parts = LineParts::split(&damaged, 4);
            assert_ne!(parts.is_intact, Some(true), "bit {bit}");
        }
    }
}
