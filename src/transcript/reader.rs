//! What every format is to the rest: a way through a file that hands out transcripts in the native form.
//!
//! Owns the three ways that all formats share: records as they stand ([`Native`]), a record at a time ([`ByRecord`] with a
//! [`Shape`]), and a session of many lines ([`BySession`] with a [`Sessions`]). A format with a layout of its own (a zip)
//! is a [`Reader`] by itself.

use std::collections::BTreeMap;
use std::fmt;

use super::formats::anthropic;
use super::source::Source;
use super::walk::{Raw, Walk};
use super::write::write_native;
use super::{Block, Entry, MAX_RECORD, Record, Span, Tally, TranscriptError};
use crate::model::{Label, Transcript};

/// So many kinds of unknown records are told apart; the others are counted together.
const KINDS: usize = 64;

/// One format's way through a file.
pub(super) trait Reader: fmt::Debug + Send {
    /// The next few transcripts, or `None` at the end.
    fn next(&mut self, source: &Source) -> Result<Option<Block>, TranscriptError>;

    /// The native form of one of them again.
    fn again(&self, source: &Source, span: Span) -> Result<Vec<u8>, TranscriptError>;

    /// One of them as the file has it.
    fn raw(&self, source: &Source, span: Span) -> Result<Vec<u8>, TranscriptError> {
        source.bytes(span)
    }

    /// All of them by the file's own directory, where there is one.
    fn entries(&mut self, source: &Source) -> Result<Option<Vec<Entry>>, TranscriptError> {
        let _ = source;
        Ok(None)
    }

    /// What was counted so far.
    fn tally(&self) -> Option<&Tally> {
        None
    }
}

/// Collects what a format finds at one place after another.
#[derive(Debug)]
pub(super) struct Out {
    block: Block,
    span: Span,
    tally: Tally,
}

impl Out {
    /// Goes on counting from `tally`.
    pub(super) fn new(tally: Tally) -> Self {
        Self {
            block: Block::default(),
            span: Span {
                offset: 0,
                len: 0,
                part: 0,
                number: 0,
            },
            tally,
        }
    }

    /// What comes now stands at this place.
    pub(super) fn begin(&mut self, span: Span) {
        self.span = span;
    }

    /// A transcript. An empty id becomes the default one.
    pub(super) fn transcript(&mut self, transcript: &Transcript<'_>) {
        let start = self.block.bytes.len();
        write_native(transcript, &mut self.block.bytes);
        self.push(start, None);
    }

    /// Something that should have been a transcript: a sentence says why it is none.
    pub(super) fn fault(&mut self, why: impl Into<String>) {
        let start = self.block.bytes.len();
        self.push(start, Some(why.into()));
    }

    fn push(&mut self, start: usize, fault: Option<String>) {
        let end = self.block.bytes.len();
        // Lines stay lines: what is imported is these bytes.
        self.block.bytes.push(b'\n');
        self.tally.handed += 1;
        self.block.records.push(Record {
            span: Span {
                number: self.tally.handed,
                ..self.span
            },
            at: start..end,
            fault,
            labels: Vec::new(),
        });
        self.span.part += 1;
    }

    /// So many records of the file were looked at, understood or not.
    pub(super) fn count(&mut self, records: u64) {
        self.tally.records += records;
    }

    /// One of the records counted says nothing that is understood.
    pub(super) fn unknown(&mut self, kind: &str) {
        add(&mut self.tally.unknown, kind);
    }

    /// A record that is understood lacks something that was looked for.
    pub(super) fn wanting(&mut self, what: &str) {
        add(&mut self.tally.wanting, what);
    }

    /// What a person said of the transcript that came last. Without an id in it, it is about the default one.
    pub(super) fn label(&mut self, label: Label) {
        if let Some(record) = self.block.records.last_mut() {
            record.labels.push(label);
        }
    }

    /// How many transcripts and faults were collected.
    pub(super) fn len(&self) -> usize {
        self.block.records.len()
    }

    /// How many bytes were collected.
    pub(super) fn bytes(&self) -> usize {
        self.block.bytes.len()
    }

    /// What was collected, and what was counted.
    pub(super) fn finish(self) -> (Block, Tally) {
        (self.block, self.tally)
    }

    /// The native form of the transcript at `part`, for a reader that finds a place again.
    pub(super) fn only(self, source: &Source, span: Span) -> Result<Vec<u8>, TranscriptError> {
        let mut found = self.block.records.into_iter();
        match found.find(|record| record.span.part == span.part) {
            Some(Record {
                at, fault: None, ..
            }) => Ok(self.block.bytes[at].to_vec()),
            Some(Record {
                fault: Some(why), ..
            }) => Err(source.unknown(why)),
            None => Err(source.unknown(format!(
                "it no longer holds the transcript that stood at byte {}",
                span.offset
            ))),
        }
    }
}

/// One more of a kind; of kinds that are too many, one more of the others.
fn add(counts: &mut BTreeMap<String, u64>, kind: &str) {
    if let Some(count) = counts.get_mut(kind) {
        *count += 1;
        return;
    }
    let kind = if counts.len() < KINDS {
        kind.chars().take(80).collect()
    } else {
        "other kinds".to_owned()
    };
    *counts.entry(kind).or_default() += 1;
}

/// What a format's code is told about the place it reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordCx<'a> {
    /// The file.
    pub(super) source: &'a Source,
    /// The place.
    pub(super) span: Span,
}

/// Records that are handed on as they stand; only those in Anthropic's blocks, which a file may mix with them, are written
/// anew.
#[derive(Debug)]
pub(super) struct Native(pub(super) Walk);

impl Reader for Native {
    fn next(&mut self, source: &Source) -> Result<Option<Block>, TranscriptError> {
        let Some(raw) = self.0.next(source)? else {
            return Ok(None);
        };
        let record = |span: &Span| Record {
            span: *span,
            at: raw.at(*span),
            fault: None,
            labels: Vec::new(),
        };
        let mut block = Block {
            records: raw.spans.iter().map(record).collect(),
            bytes: raw.bytes,
        };
        if anthropic::maybe(&block.bytes) {
            for record in &mut block.records {
                if let Some(line) = anthropic::converted(&block.bytes[record.at.clone()]) {
                    let start = block.bytes.len();
                    block.bytes.extend_from_slice(&line);
                    record.at = start..block.bytes.len();
                    block.bytes.push(b'\n');
                }
            }
        }
        Ok(Some(block))
    }

    fn again(&self, source: &Source, span: Span) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.bytes(span)?;
        Ok(anthropic::converted(&bytes).unwrap_or(bytes))
    }
}

/// A format in which each record stands for itself.
pub(super) trait Shape: fmt::Debug + Send + Sync {
    /// Hands the record's transcripts to `out`: usually one. The error is a sentence.
    fn read(&self, record: &str, cx: RecordCx<'_>, out: &mut Out) -> Result<(), String>;
}

/// Reads a [`Shape`].
#[derive(Debug)]
pub(super) struct ByRecord<S> {
    walk: Walk,
    shape: S,
    tally: Tally,
}

impl<S: Shape> ByRecord<S> {
    /// A reader of the records of a walk.
    pub(super) fn new(walk: Walk, shape: S) -> Self {
        Self {
            walk,
            shape,
            tally: Tally::default(),
        }
    }

    fn one(&self, bytes: &[u8], span: Span, source: &Source, out: &mut Out) {
        out.begin(span);
        if bytes.is_empty() {
            // See `Form::Elements`.
            out.fault("the file ends before its list of records does: what came after is lost");
            return;
        }
        let read = text_of(bytes)
            .and_then(|record| self.shape.read(record, RecordCx { source, span }, out));
        if let Err(why) = read {
            out.fault(why);
        }
    }
}

/// A record as text.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() >= MAX_RECORD {
        let limit = MAX_RECORD / (1024 * 1024);
        return Err(format!("the record is {limit} MiB or longer"));
    }
    std::str::from_utf8(bytes).map_err(|why| format!("not UTF-8 at byte {}", why.valid_up_to()))
}

impl<S: Shape> Reader for ByRecord<S> {
    fn next(&mut self, source: &Source) -> Result<Option<Block>, TranscriptError> {
        loop {
            let Some(raw) = self.walk.next(source)? else {
                return Ok(None);
            };
            let mut out = Out::new(std::mem::take(&mut self.tally));
            out.count(raw.spans.len() as u64);
            for span in &raw.spans {
                self.one(&raw.bytes[raw.at(*span)], *span, source, &mut out);
            }
            let (block, tally) = out.finish();
            self.tally = tally;
            if !block.records.is_empty() {
                return Ok(Some(block));
            }
        }
    }

    fn again(&self, source: &Source, span: Span) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.bytes(span)?;
        let mut out = Out::new(Tally::default());
        self.one(&bytes, Span { part: 0, ..span }, source, &mut out);
        out.only(source, span)
    }

    fn tally(&self) -> Option<&Tally> {
        Some(&self.tally)
    }
}

/// A format in which lines that follow each other make one session.
pub(super) trait Sessions: fmt::Debug + Send + Sync {
    /// Told every line of the file in order: whether it begins another session than the line before it.
    fn begins(&mut self, line: &[u8]) -> bool;

    /// Hands the transcripts of a session to `out`: the conversation itself first, then branches and sub-agents. A line
    /// that is not understood is `out.unknown`, never an error.
    fn read(&self, lines: &[&[u8]], cx: RecordCx<'_>, out: &mut Out);
}

/// Reads [`Sessions`].
#[derive(Debug)]
pub(super) struct BySession<S> {
    walk: Walk,
    sessions: S,
    tally: Tally,
    open: Pending,
    ended: bool,
}

/// The session that is being read.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    offset: u64,
    /// Where the last of its lines ends in the file.
    end: u64,
    lines: u64,
    /// It is longer than is kept.
    overlong: bool,
}

impl<S: Sessions> BySession<S> {
    /// A reader of the lines of a walk.
    pub(super) fn new(walk: Walk, sessions: S) -> Self {
        Self {
            walk,
            sessions,
            tally: Tally::default(),
            open: Pending::default(),
            ended: false,
        }
    }

    fn take(&mut self, raw: &Raw, span: Span) {
        let line = &raw.bytes[raw.at(span)];
        let open = &mut self.open;
        if open.lines == 0 {
            open.offset = span.offset;
        }
        open.lines += 1;
        open.end = span.offset + span.len;
        let len = usize::try_from(open.end - open.offset).unwrap_or(usize::MAX);
        if open.overlong || len >= MAX_RECORD {
            open.overlong = true;
            open.bytes = Vec::new();
            return;
        }
        // What stands between two lines is white space; so places within the session are places in the file.
        let gap = usize::try_from(span.offset - open.offset).unwrap_or(usize::MAX);
        open.bytes.resize(gap, b'\n');
        open.bytes.extend_from_slice(line);
    }

    fn flush(&mut self, source: &Source, out: &mut Out) {
        let open = std::mem::take(&mut self.open);
        if open.lines == 0 {
            return;
        }
        let span = Span {
            offset: open.offset,
            len: open.end - open.offset,
            part: 0,
            number: 0,
        };
        out.count(open.lines);
        out.begin(span);
        if open.overlong {
            let limit = MAX_RECORD / (1024 * 1024);
            out.fault(format!("the session is {limit} MiB or longer"));
        } else {
            self.sessions
                .read(&lines_of(&open.bytes), RecordCx { source, span }, out);
        }
    }
}

/// The lines of a session's bytes; those that hold only white space are none.
fn lines_of(bytes: &[u8]) -> Vec<&[u8]> {
    bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
        .collect()
}

impl<S: Sessions> Reader for BySession<S> {
    fn next(&mut self, source: &Source) -> Result<Option<Block>, TranscriptError> {
        let mut out = Out::new(std::mem::take(&mut self.tally));
        while !self.ended && out.len() == 0 {
            let Some(raw) = self.walk.next(source)? else {
                self.ended = true;
                self.flush(source, &mut out);
                break;
            };
            for span in &raw.spans {
                if self.sessions.begins(&raw.bytes[raw.at(*span)]) {
                    self.flush(source, &mut out);
                }
                self.take(&raw, *span);
            }
        }
        let (block, tally) = out.finish();
        self.tally = tally;
        Ok((!block.records.is_empty()).then_some(block))
    }

    fn again(&self, source: &Source, span: Span) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.bytes(span)?;
        let mut out = Out::new(Tally::default());
        let place = Span { part: 0, ..span };
        out.begin(place);
        let cx = RecordCx {
            source,
            span: place,
        };
        self.sessions.read(&lines_of(&bytes), cx, &mut out);
        out.only(source, span)
    }

    fn tally(&self) -> Option<&Tally> {
        Some(&self.tally)
    }
}
