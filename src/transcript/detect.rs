//! Detection of a file's format from its first bytes. The file name does not matter.
//!
//! Responsible for the preview of a file's first records and for the formats whose signature matches. The formats and
//! their signatures are the tables in `formats`. Does not read transcripts: `trial.rs` chooses among the formats by what
//! their readers read.

use serde_json::Value;

use super::formats::{self, ReaderFactory, TranscriptFormat};
use super::scan::{JsonValueScanner, split_values};
use super::sniff::RecordSniff;
use super::source::BLOCK_SIZE;
use super::unread_files::name_unread_file;
use super::walk::{RecordLayout, RecordWalker};

/// The formats whose signature matches a file, in the order of the table.
#[derive(Debug)]
pub(super) struct FormatCandidates<'h> {
    /// The beginning of the file.
    pub(super) preview: FilePreview<'h>,
    /// The names of the formats, with the functions that create their readers. There is at least one.
    pub(super) formats: Vec<(&'static str, Option<ReaderFactory>)>,
}

/// The beginning of a file, for the detection of its format.
#[derive(Debug)]
pub(super) struct FilePreview<'h> {
    /// The first bytes of the file.
    pub(super) bytes: &'h [u8],
    /// The layout of the records.
    pub(super) layout: RecordLayout,
    /// The offset of the first record: after a byte order mark, white space and an opening bracket.
    pub(super) start: usize,
    /// The first records with the keys of their top level. The last record may be incomplete.
    pub(super) records: Vec<PreviewedRecord<'h>>,
}

/// A record of a preview.
#[derive(Debug)]
pub(super) struct PreviewedRecord<'h> {
    /// The bytes of the record.
    pub(super) bytes: &'h [u8],
    /// The top-level keys of the record.
    pub(super) sniff: RecordSniff,
}

impl FilePreview<'_> {
    /// Returns a walker over the records of the file.
    pub(super) fn record_walker(&self) -> RecordWalker {
        RecordWalker::new(self.layout, self.start as u64)
    }

    /// Returns a walker for files in which a list is one record. The list is the whole file, a line, or an element of
    /// an outer list.
    pub(super) fn list_walker(&self) -> RecordWalker {
        // If the first element is itself a list, the outer list only contains the records.
        let is_nested = self
            .records
            .first()
            .is_some_and(|seen| seen.bytes.starts_with(b"["));
        if self.layout != (RecordLayout::Values { array: true }) || is_nested {
            return self.record_walker();
        }
        // `start` is the offset after the bracket, but here the bracket belongs to the record.
        let start = self.start - 1;
        let body = &self.bytes[start..];
        // A first list that ends within its line, with more text below, is JSONL with one list per line.
        let line = memchr::memchr(b'\n', body).unwrap_or(body.len());
        let ends = JsonValueScanner::default()
            .feed(body)
            .is_some_and(|end| end <= line);
        let layout = if ends && !body[line..].trim_ascii().is_empty() {
            RecordLayout::Lines
        } else {
            RecordLayout::Values { array: false }
        };
        RecordWalker::new(layout, start as u64)
    }

    /// Returns true if the first record matches `is`.
    pub(super) fn first_matches(&self, is: impl FnOnce(&RecordSniff) -> bool) -> bool {
        self.records.first().is_some_and(|seen| is(&seen.sniff))
    }

    /// Returns the outline of the first record; null if there is none.
    pub(super) fn first_outline(&self) -> &Value {
        match self.records.first() {
            Some(seen) => seen.sniff.outline(seen.bytes),
            None => &Value::Null,
        }
    }

    /// Returns true if one of the first records matches `is`.
    pub(super) fn any_matches(&self, is: impl Fn(&RecordSniff) -> bool) -> bool {
        self.records.iter().any(|seen| is(&seen.sniff))
    }
}

/// A reason not to read a file. The strings are sentence fragments.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DetectError {
    /// The format is known but has no reader. The value is its name.
    Unsupported(&'static str),
    /// The content has no records.
    Unknown(String),
    /// The file has records or rows in no known format. A field mapping can describe them.
    Unmapped(String),
}

/// The maximum number of records in a preview. Session files may begin with many lines that name no format.
const MAX_PREVIEW_RECORDS: usize = 64;

/// Returns the formats that a file may have, from `head`, its first bytes. There is at least one.
pub(super) fn find_candidates(head: &[u8]) -> Result<FormatCandidates<'_>, DetectError> {
    // Binary formats come first: their bytes are not text, so a preview of records has no meaning.
    if let Some(found) = formats::BINARY_FORMATS
        .iter()
        .find(|found| head.starts_with(found.magic))
    {
        return Ok(FormatCandidates {
            preview: preview_binary(head),
            formats: vec![(found.name, found.create_reader)],
        });
    }
    let preview = preview_file(head)?;
    // The order of the table matters: formats share keys, so the more specific one comes first.
    let has_messages = formats::begins_with_messages(&preview);
    let mut found: Vec<&TranscriptFormat> = formats::TEXT_FORMATS
        .iter()
        .filter(|format| {
            !(has_messages && formats::TRACES_WITHOUT_MESSAGES.contains(&format.name))
                && (format.matches)(&preview)
        })
        .collect();
    if found.is_empty() {
        match preview.records.first() {
            // A record without keys is a number or plain text. A field mapping has nothing to find in it.
            Some(seen) if seen.sniff.is_empty() => {
                let is_whole = contains_whole_record(head, seen.bytes);
                return Err(DetectError::Unknown(
                    seen.sniff.describe(seen.bytes, is_whole),
                ));
            }
            Some(seen) => {
                let is_whole = contains_whole_record(head, seen.bytes);
                let known = name_unread_file(seen.sniff.outline(seen.bytes));
                let why =
                    known.map_or_else(|| seen.sniff.describe(seen.bytes, is_whole), str::to_owned);
                return Err(DetectError::Unmapped(why));
            }
            // A list that breaks off before its first element.
            None => found.push(&formats::NATIVE_FORMAT),
        }
    }
    Ok(FormatCandidates {
        preview,
        formats: found
            .into_iter()
            .map(|format| (format.name, format.create_reader))
            .collect(),
    })
}

/// Returns true if the file has no more of `record` than `head` has. `record` is a part of `head`.
fn contains_whole_record(head: &[u8], record: &[u8]) -> bool {
    // A shorter head is the whole file.
    head.len() < BLOCK_SIZE || record.as_ptr_range().end < head.as_ptr_range().end
}

/// Returns the name of the binary format of a file that begins with `head`.
pub(super) fn name_binary_format(head: &[u8]) -> Option<&'static str> {
    formats::BINARY_FORMATS
        .iter()
        .find(|format| head.starts_with(format.magic))
        .map(|format| format.name)
}

/// Returns true if `text` is a list without an element.
pub(super) fn is_empty_list(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let inner = text.trim_ascii().strip_prefix(b"[");
    let inner = inner.and_then(|rest| rest.strip_suffix(b"]"));
    inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}

/// Returns the preview that the reader of `format` receives for a file that begins with `head`.
pub(super) fn preview_as<'h>(head: &'h [u8], format: &str) -> Result<FilePreview<'h>, DetectError> {
    let is_binary = formats::BINARY_FORMATS
        .iter()
        .any(|binary| binary.name == format);
    if is_binary {
        Ok(preview_binary(head))
    } else {
        preview_file(head)
    }
}

/// Returns the preview of a binary file, which has no records.
fn preview_binary(head: &[u8]) -> FilePreview<'_> {
    FilePreview {
        bytes: head,
        layout: RecordLayout::Done,
        start: 0,
        records: Vec::new(),
    }
}

/// Returns true for UTF-16 with a byte order mark, and for two characters of ASCII in UTF-16 without one.
fn is_utf16(head: &[u8]) -> bool {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return true;
    }
    match head {
        [0, a, 0, b, ..] | [a, 0, b, 0, ..] => *a != 0 && *b != 0,
        _ => false,
    }
}

/// Returns the layout of the file that begins with `head`, and its first records.
pub(super) fn preview_file(head: &[u8]) -> Result<FilePreview<'_>, DetectError> {
    // Windows tools save UTF-16, in which no key would match.
    if is_utf16(head) {
        return Err(DetectError::Unknown(
            "it is UTF-16 text; save it as UTF-8".to_owned(),
        ));
    }
    // Excel and other Windows programs write a byte order mark.
    let bom = if head.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    // Offsets count from the start of the file, so the walker needs the skipped bytes.
    let blank = head[bom..].len() - head[bom..].trim_ascii_start().len();
    let start = bom + blank;
    let body = &head[start..];
    let seen = |bytes| PreviewedRecord {
        bytes,
        sniff: RecordSniff::from_record(bytes),
    };
    let (layout, start, records) = match body.first() {
        None => return Err(DetectError::Unknown("it holds only white space".to_owned())),
        Some(b'[') => (
            RecordLayout::Values { array: true },
            start + 1,
            split_values(body[1..].trim_ascii_start())
                .take(MAX_PREVIEW_RECORDS)
                .map(seen)
                .collect(),
        ),
        // One JSON object that extends over lines, or several such objects in sequence.
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
        layout,
        start,
        records,
    })
}

/// Returns true if the object at the beginning of `body` extends over several lines. Otherwise it is a line of JSONL.
fn spans_lines(body: &[u8]) -> bool {
    let mut scan = JsonValueScanner::default();
    let end = scan.feed(body);
    let first_line = memchr::memchr(b'\n', body).unwrap_or(body.len());
    match end {
        // A torn string means that the first line is broken JSONL, so the lines stay separate.
        Some(end) => end > first_line && !scan.torn_string,
        // The object isn't closed: it is large, or torn, or the first line is broken. In the last case, the second line
        // is a complete object.
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

#[cfg(test)]
mod tests;
