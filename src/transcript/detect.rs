//! Which format a file is in, from its first bytes alone; names and endings count for nothing.
//!
//! A file is native if one of its first records holds `messages`, whatever else is in it. A format that is recognised
//! but not read yet is named; anything else is described.

use super::native;
use super::scan::ValueScan;
use super::sniff::{self, Sniff};

/// How records stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One a line.
    Lines,
    /// One after another over any lines, as elements of an array or bare.
    Values {
        /// Whether an array is open.
        array: bool,
    },
    /// All have been read.
    Done,
}

/// What was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detected {
    pub(super) form: Form,
    /// Where records begin: after a byte order mark, white space, an opening bracket.
    pub(super) start: usize,
}

/// Why a file is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Unsupported(&'static str),
    Unknown(String),
}

/// How many records are looked at before a file is called foreign.
const LOOK_AT: usize = 64;

const MAGIC: [(&[u8], &str); 6] = [
    (
        b"PK\x03\x04",
        "a zip archive (Inspect's .eval logs are such)",
    ),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ObjAvro", "an Avro file"),
];

/// Recognises a file from `head`, its first bytes.
pub(super) fn detect(head: &[u8]) -> Result<Detected, Refusal> {
    if let Some((_, format)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(Refusal::Unsupported(format));
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(Refusal::Unknown(
            "it is UTF-16 text; save it as UTF-8".to_owned(),
        ));
    }
    let bom = if head.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let blank = head[bom..].len() - head[bom..].trim_ascii_start().len();
    let start = bom + blank;
    let body = &head[start..];
    match body.first() {
        None => Err(Refusal::Unknown("it holds only white space".to_owned())),
        Some(b'[') => {
            let found = Detected {
                form: Form::Values { array: true },
                start: start + 1,
            };
            recognise(values(body[1..].trim_ascii_start()), found)
        }
        Some(b'{') if spans_lines(body) => {
            let found = Detected {
                form: Form::Values { array: false },
                start,
            };
            recognise(values(body), found)
        }
        Some(_) => {
            let lines = body
                .split(|b| *b == b'\n')
                .filter(|line| !line.trim_ascii().is_empty());
            recognise(
                lines,
                Detected {
                    form: Form::Lines,
                    start,
                },
            )
        }
    }
}

/// Whether the object at the beginning goes over several lines, rather than being one of the lines of JSONL.
fn spans_lines(body: &[u8]) -> bool {
    let mut scan = ValueScan::default();
    let end = scan.feed(body);
    let first_line = memchr::memchr(b'\n', body).unwrap_or(body.len());
    match end {
        Some(end) => end > first_line && !scan.torn_string,
        // Not closed: a large or torn object, or a first line that is broken. Then the second line is whole.
        None if scan.torn_string => false,
        None => {
            let rest = body[first_line..].trim_ascii_start();
            let line = rest
                .split(|b| *b == b'\n')
                .next()
                .unwrap_or_default()
                .trim_ascii_end();
            !(line.starts_with(b"{") && ValueScan::default().feed(line) == Some(line.len()))
                && first_line < body.len()
        }
    }
}

/// The values at the beginning of `body`, the last one perhaps torn.
fn values(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let begin = rest
            .iter()
            .position(|b| !(b.is_ascii_whitespace() || *b == b','))?;
        rest = &rest[begin..];
        if rest[0] == b']' {
            return None;
        }
        let len = ValueScan::default().feed(rest).unwrap_or(rest.len());
        let (value, after) = rest.split_at(len);
        rest = after;
        Some(value)
    })
}

fn recognise<'a>(
    records: impl Iterator<Item = &'a [u8]>,
    found: Detected,
) -> Result<Detected, Refusal> {
    let mut first = None;
    for record in records.take(LOOK_AT) {
        let sniff = Sniff::of(record);
        if sniff.has("messages") {
            return match native::foreign_shape(record) {
                Some(format) => Err(Refusal::Unsupported(format)),
                None => Ok(found),
            };
        }
        first.get_or_insert((record, sniff));
    }
    let Some((record, sniff)) = first else {
        return Ok(found); // An empty array: no transcripts, and nothing wrong.
    };
    if let Some(format) = sniff.format() {
        return Err(Refusal::Unsupported(format));
    }
    Err(sniff::csv(record).map_or_else(
        || Refusal::Unknown(sniff.describe(record)),
        Refusal::Unsupported,
    ))
}

#[cfg(test)]
mod tests;
