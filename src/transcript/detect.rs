//! Which format a file is in, from its first bytes alone; names and endings count for nothing.
//!
//! The formats and their signs are one table, `formats::FORMATS`; the first whose sign a file bears is its format. One that
//! is recognised but not read yet is named; anything else is described.

use super::formats::{self, ReaderFactory};
use super::scan::JsonValueScanner;
use super::sniff::RecordSniff;
use super::walk::{RecordLayout, RecordWalker};

/// What was recognised.
#[derive(Debug)]
pub(super) struct DetectedFormat<'h> {
    /// The format's name.
    pub(super) name: &'static str,
    /// Makes its reader.
    pub(super) create_reader: ReaderFactory,
    /// What it was recognised by.
    pub(super) preview: FilePreview<'h>,
}

/// The beginning of a file, as far as it is looked at.
#[derive(Debug)]
pub(super) struct FilePreview<'h> {
    /// The first bytes, as they are.
    pub(super) bytes: &'h [u8],
    /// How records stand in it.
    pub(super) layout: RecordLayout,
    /// Where they begin: after a byte order mark, white space, an opening bracket.
    pub(super) start: usize,
    /// The first records, with the keys of their top level. The last one may be torn.
    pub(super) records: Vec<PreviewedRecord<'h>>,
}

/// A record that was looked at.
#[derive(Debug)]
pub(super) struct PreviewedRecord<'h> {
    /// As it stands.
    pub(super) bytes: &'h [u8],
    /// What it tells of itself.
    pub(super) sniff: RecordSniff,
}

impl FilePreview<'_> {
    /// A walk over the records, as they were recognised.
    pub(super) fn record_walker(&self) -> RecordWalker {
        RecordWalker::new(self.layout, self.start as u64)
    }

    /// The same, where a list is one record: the file's only one, one on each line, or one in a list of lists.
    pub(super) fn list_walker(&self) -> RecordWalker {
        let inner = self
            .records
            .first()
            .is_some_and(|seen| seen.bytes.starts_with(b"["));
        if self.layout != (RecordLayout::Values { array: true }) || inner {
            return self.record_walker();
        }
        // `start` is behind the bracket.
        let start = self.start - 1;
        let body = &self.bytes[start..];
        let line = memchr::memchr(b'\n', body).unwrap_or(body.len());
        let ends = JsonValueScanner::default()
            .feed(body)
            .is_some_and(|end| end <= line);
        let form = if ends && !body[line..].trim_ascii().is_empty() {
            RecordLayout::Lines
        } else {
            RecordLayout::Values { array: false }
        };
        RecordWalker::new(form, start as u64)
    }

    /// Whether the first record looks so.
    pub(super) fn first_matches(&self, is: impl FnOnce(&RecordSniff) -> bool) -> bool {
        self.records.first().is_some_and(|seen| is(&seen.sniff))
    }

    /// Whether one of the first records looks so.
    pub(super) fn any_matches(&self, is: impl Fn(&RecordSniff) -> bool) -> bool {
        self.records.iter().any(|seen| is(&seen.sniff))
    }
}

/// Why a file is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DetectError {
    Unsupported(&'static str),
    Unknown(String),
    /// Records or rows of a shape that is nobody's in particular: a map can say what they mean.
    Unmapped(String),
}

/// How many records are looked at before a file is called foreign.
const MAX_PREVIEW_RECORDS: usize = 64;

/// Recognises a file from `head`, its first bytes.
pub(super) fn detect(head: &[u8]) -> Result<DetectedFormat<'_>, DetectError> {
    if let Some(found) = formats::BINARY_FORMATS
        .iter()
        .find(|found| head.starts_with(found.magic))
    {
        let look = FilePreview {
            bytes: head,
            layout: RecordLayout::Done,
            start: 0,
            records: Vec::new(),
        };
        return require_reader(found.name, found.create_reader, look);
    }
    let look = preview_file(head)?;
    if let Some(format) = formats::TEXT_FORMATS
        .iter()
        .find(|format| (format.matches)(&look))
    {
        return require_reader(format.name, format.create_reader, look);
    }
    match look.records.first() {
        Some(seen) if seen.sniff.is_empty() => {
            Err(DetectError::Unknown(seen.sniff.describe(seen.bytes)))
        }
        Some(seen) => Err(DetectError::Unmapped(seen.sniff.describe(seen.bytes))),
        // An empty array: no transcripts, and nothing wrong.
        None => require_reader(
            formats::NATIVE_FORMAT.name,
            formats::NATIVE_FORMAT.create_reader,
            look,
        ),
    }
}

fn require_reader<'h>(
    name: &'static str,
    open: Option<ReaderFactory>,
    look: FilePreview<'h>,
) -> Result<DetectedFormat<'h>, DetectError> {
    match open {
        Some(open) => Ok(DetectedFormat {
            name,
            create_reader: open,
            preview: look,
        }),
        None => Err(DetectError::Unsupported(name)),
    }
}

/// How records stand in a file, and the first of them.
pub(super) fn preview_file(head: &[u8]) -> Result<FilePreview<'_>, DetectError> {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(DetectError::Unknown(
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
    let seen = |bytes| PreviewedRecord {
        bytes,
        sniff: RecordSniff::from_record(bytes),
    };
    let (form, start, records) = match body.first() {
        None => return Err(DetectError::Unknown("it holds only white space".to_owned())),
        Some(b'[') => (
            RecordLayout::Values { array: true },
            start + 1,
            split_values(body[1..].trim_ascii_start())
                .take(MAX_PREVIEW_RECORDS)
                .map(seen)
                .collect(),
        ),
        Some(b'{') if spans_lines(body) => (
            RecordLayout::Values { array: false },
            start,
            split_values(body)
                .take(MAX_PREVIEW_RECORDS)
                .map(seen)
                .collect(),
        ),
        Some(_) => {
            let lines = body.split(|b| *b == b'\n');
            let lines = lines.filter(|line| !line.trim_ascii().is_empty());
            (
                RecordLayout::Lines,
                start,
                lines.take(MAX_PREVIEW_RECORDS).map(seen).collect(),
            )
        }
    };
    Ok(FilePreview {
        bytes: head,
        layout: form,
        start,
        records,
    })
}

/// Whether the object at the beginning goes over several lines, rather than being one of the lines of JSONL.
fn spans_lines(body: &[u8]) -> bool {
    let mut scan = JsonValueScanner::default();
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
            !(line.starts_with(b"{") && JsonValueScanner::default().feed(line) == Some(line.len()))
                && first_line < body.len()
        }
    }
}

/// The values at the beginning of `body`, the last one perhaps torn.
pub(super) fn split_values(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let begin = rest
            .iter()
            .position(|b| !(b.is_ascii_whitespace() || *b == b','))?;
        rest = &rest[begin..];
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
mod tests;
