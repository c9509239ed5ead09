//! `.json`: one object with the log's own facts and `samples`, a list, somewhere in it.
//!
//! Finds the list without holding the file; each sample is then a place in it. What stands before the list is read, what
//! stands behind it only where the facts were not before.

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::sample::RawSample;
use super::{FACT, Log};
use crate::transcript::TranscriptError;
use crate::transcript::detect::{Form, Look};
use crate::transcript::lenient::{finite, one_line};
use crate::transcript::reader::{ByRecord, Out, Reader, RecordCx, Shape};
use crate::transcript::scan::ValueScan;
use crate::transcript::source::Source;
use crate::transcript::walk::{BLOCK, Walk};

/// A sample in the list.
#[derive(Debug)]
struct InList(Log);

impl Shape for InList {
    fn read(&self, record: &str, _cx: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        let (text, non_finite) = finite(record);
        let text = one_line(&text);
        out.transcript(&RawSample::parse(&text)?.read(&self.0, non_finite)?);
        Ok(())
    }
}

/// Opens a log that is one JSON object.
pub(in crate::transcript::formats) fn open(
    source: &Source,
    look: &Look<'_>,
) -> Result<Box<dyn Reader>, TranscriptError> {
    let mut object = Fields {
        source,
        pos: look.start as u64,
        bytes: Vec::new(),
        at: 0,
    };
    let mut header: IndexMap<String, Box<RawValue>> = IndexMap::new();
    let mut samples = None;
    object.pass(b"{")?;
    while let Some(key) = object.key()? {
        match key.as_str() {
            "samples" if object.peek()? == Some(b'[') => {
                samples = Some(object.place() + 1);
                if header.contains_key("eval") {
                    break;
                }
                object.value(0)?;
            }
            "eval" | "results" | "tags" => {
                let value = object.value(FACT)?;
                let value = finite(&value);
                if let Ok(value) = serde_json::from_str(&value.0) {
                    header.insert(key, value);
                }
            }
            _ => drop(object.value(0)?),
        }
    }
    let mut first = Fields {
        source,
        pos: samples.unwrap_or_default(),
        bytes: Vec::new(),
        at: 0,
    };
    let samples = samples.filter(|_| !matches!(first.peek(), Ok(Some(b']'))));
    let Some(samples) = samples else {
        return Err(source.unknown(
            "it is an Inspect log without samples: it was written without them, or is the header of one only",
        ));
    };
    let header = serde_json::to_string(&header).unwrap_or_default();
    let log = Log::parse(&header).unwrap_or_default();
    let walk = Walk::new(Form::Elements, samples);
    Ok(Box::new(ByRecord::new(walk, InList(log))))
}

/// The fields of an object, one after another.
struct Fields<'s> {
    source: &'s Source,
    /// Where `bytes` begin in the file.
    pos: u64,
    bytes: Vec<u8>,
    at: usize,
}

impl Fields<'_> {
    fn place(&self) -> u64 {
        self.pos + self.at as u64
    }

    /// Reads on where nothing is left. False at the end of the file.
    fn more(&mut self) -> Result<bool, TranscriptError> {
        if self.at < self.bytes.len() {
            return Ok(true);
        }
        self.pos = self.place();
        self.at = 0;
        self.bytes.clear();
        self.source.fill(self.pos, &mut self.bytes, BLOCK)?;
        Ok(!self.bytes.is_empty())
    }

    /// The next byte that is no white space; it stays.
    fn peek(&mut self) -> Result<Option<u8>, TranscriptError> {
        while self.more()? {
            let byte = self.bytes[self.at];
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// Passes white space and any of these bytes.
    fn pass(&mut self, any: &[u8]) -> Result<(), TranscriptError> {
        while self.peek()?.is_some_and(|byte| any.contains(&byte)) {
            self.at += 1;
        }
        Ok(())
    }

    /// The key of the next field, up to its value.
    fn key(&mut self) -> Result<Option<String>, TranscriptError> {
        self.pass(b",")?;
        if self.peek()? != Some(b'"') {
            return Ok(None);
        }
        let key = self.value(FACT)?;
        self.pass(b":")?;
        Ok(serde_json::from_str(&key).ok())
    }

    /// Passes a value; returns it where it is no longer than `keep`.
    fn value(&mut self, keep: usize) -> Result<String, TranscriptError> {
        let mut kept = Vec::new();
        let mut scan = ValueScan::default();
        self.peek()?;
        while self.more()? {
            let rest = &self.bytes[self.at..];
            let end = scan.feed(rest);
            let piece = &rest[..end.unwrap_or(rest.len())];
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
