//! `.json`: one object with the data of the log and a list `samples` at any position.
//!
//! Responsible for the location of the list without the file in memory. Each sample is a location in it. It reads the
//! fields before the list, and those after it only if the data of the log is still missing. Does not convert samples.

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::sample::InspectSample;
use super::{InspectLog, MAX_HEADER_BYTES};
use crate::transcript::TranscriptError;
use crate::transcript::detect::FilePreview;
use crate::transcript::lenient::{minify_multiline_json, replace_non_finite};
use crate::transcript::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use crate::transcript::scan::JsonValueScanner;
use crate::transcript::source::{BLOCK_SIZE, SourceFile};
use crate::transcript::walk::RecordWalker;

/// The parser of a sample in the list.
#[derive(Debug)]
struct InspectJsonParser(InspectLog);

impl RecordParser for InspectJsonParser {
    fn parse_record(
        &self,
        record: &str,
        _cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let (text, non_finite) = replace_non_finite(record);
        let text = minify_multiline_json(&text);
        InspectSample::parse(&text)?.push_into(&self.0, non_finite, out)
    }
}

/// Opens a log that is one JSON object.
pub(in crate::transcript::formats) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let mut object = InspectJsonCursor {
        source,
        pos: preview.start as u64,
        bytes: Vec::new(),
        at: 0,
    };
    let mut header: IndexMap<String, Box<RawValue>> = IndexMap::new();
    let mut samples = None;
    // The cursor enters the object.
    object.skip_bytes(b"{")?;
    while let Some(key) = object.next_key()? {
        match key.as_str() {
            // A string or null under `samples` means that the log has none.
            "samples" if object.peek_byte()? == Some(b'[') => {
                samples = Some(object.position() + 1);
                // Inspect writes `eval` before the samples. Then the rest of a large file need not be read.
                if header.contains_key("eval") {
                    break;
                }
                // The header may follow the samples in a file that another program wrote.
                object.next_value(0)?;
            }
            // Only these fields describe the log. Others, such as `plan` and `stats`, can be large.
            "eval" | "results" | "tags" => {
                let value = object.next_value(MAX_HEADER_BYTES)?;
                let value = replace_non_finite(&value);
                if let Ok(value) = serde_json::from_str(&value.0) {
                    header.insert(key, value);
                }
            }
            _ => drop(object.next_value(0)?),
        }
    }
    let mut first_element = InspectJsonCursor {
        source,
        pos: samples.unwrap_or_default(),
        bytes: Vec::new(),
        at: 0,
    };
    // An empty list is an error here, because the walker would return nothing without a reason.
    let samples = samples.filter(|_| !matches!(first_element.peek_byte(), Ok(Some(b']'))));
    let Some(samples) = samples else {
        return Err(source.unknown_error(
            "it is an Inspect log without samples: it was written without them, or is the header of one only",
        ));
    };
    // `InspectLog` parses text, so the collected fields form an object again.
    let header = serde_json::to_string(&header).unwrap_or_default();
    let log = InspectLog::parse(&header).unwrap_or_default();
    // The header applies to this log only, so samples of a further log would have wrong scores.
    let walk = RecordWalker::over_one_list(samples, 1);
    Ok(Box::new(PerRecordReader::new(walk, InspectJsonParser(log))))
}

/// A cursor over the fields of an object.
struct InspectJsonCursor<'s> {
    source: &'s SourceFile,
    /// The offset of `bytes` in the file.
    pos: u64,
    bytes: Vec<u8>,
    at: usize,
}

impl InspectJsonCursor<'_> {
    fn position(&self) -> u64 {
        self.pos + self.at as u64
    }

    /// Reads the next bytes if none are left. Returns false at the end of the file.
    fn fill_buffer(&mut self) -> Result<bool, TranscriptError> {
        if self.at < self.bytes.len() {
            return Ok(true);
        }
        self.pos = self.position();
        self.at = 0;
        self.bytes.clear();
        self.source
            .fill_buffer(self.pos, &mut self.bytes, BLOCK_SIZE)?;
        Ok(!self.bytes.is_empty())
    }

    /// Returns the next byte other than white space without consuming it.
    fn peek_byte(&mut self) -> Result<Option<u8>, TranscriptError> {
        while self.fill_buffer()? {
            let byte = self.bytes[self.at];
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// Skips white space and any of these bytes.
    fn skip_bytes(&mut self, any: &[u8]) -> Result<(), TranscriptError> {
        while self.peek_byte()?.is_some_and(|byte| any.contains(&byte)) {
            self.at += 1;
        }
        Ok(())
    }

    /// Returns the key of the next field and moves to its value.
    fn next_key(&mut self) -> Result<Option<String>, TranscriptError> {
        self.skip_bytes(b",")?;
        if self.peek_byte()? != Some(b'"') {
            return Ok(None);
        }
        let key = self.next_value(MAX_HEADER_BYTES)?;
        self.skip_bytes(b":")?;
        Ok(serde_json::from_str(&key).ok())
    }

    /// Skips a value. Returns it if it isn't longer than `keep`.
    fn next_value(&mut self, keep: usize) -> Result<String, TranscriptError> {
        let mut kept = Vec::new();
        let mut scan = JsonValueScanner::default();
        // Skips the white space before the value.
        self.peek_byte()?;
        while self.fill_buffer()? {
            let rest = &self.bytes[self.at..];
            let end = scan.feed(rest);
            let piece = &rest[..end.unwrap_or(rest.len())];
            // A longer value is only skipped; the caller gets an empty text, which does not parse.
            if kept.len() + piece.len() <= keep {
                kept.extend_from_slice(piece);
            }
            self.at += piece.len();
            if end.is_some() {
                break;
            }
        }
        Ok(String::from_utf8(kept).unwrap_or_default())
    }
}
