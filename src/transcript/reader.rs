//! What every format is to the rest: a way through a file that hands out transcripts in the native form.
//!
//! Owns the three ways that all formats share: records as they stand ([`Native`]), a record at a time ([`ByRecord`] with a
//! [`Shape`]), and a session of many lines ([`BySession`] with a [`Sessions`]). A format with a layout of its own (a zip)
//! is a [`Reader`] by itself.

use std::collections::BTreeMap;
use std::fmt;

use super::source::SourceFile;
use super::walk::{RecordBlock, RecordWalker};
use super::write::write_native;
use super::{
    MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError, TranscriptIndexEntry,
    TranscriptRecord,
};
use crate::model::{Label, Transcript};

/// So many kinds of unknown records are told apart; the others are counted together.
const MAX_UNKNOWN_KINDS: usize = 64;

/// One format's way through a file.
pub(super) trait TranscriptReader: fmt::Debug + Send {
    /// The next few transcripts, or `None` at the end.
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError>;

    /// The native form of one of them again.
    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError>;

    /// One of them as the file has it.
    fn read_raw(&self, source: &SourceFile, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        source.read_span(span)
    }

    /// All of them by the file's own directory, where there is one.
    fn read_index(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<Vec<TranscriptIndexEntry>>, TranscriptError> {
        let _ = source;
        Ok(None)
    }

    /// What was counted so far.
    fn tally(&self) -> Option<&ReadTally> {
        None
    }
}

/// Collects what a format finds at one place after another.
#[derive(Debug)]
pub(super) struct TranscriptSink {
    block: TranscriptBlock,
    span: RecordSpan,
    tally: ReadTally,
}

impl TranscriptSink {
    /// Goes on counting from `tally`.
    pub(super) fn new(tally: ReadTally) -> Self {
        Self {
            block: TranscriptBlock::default(),
            span: RecordSpan {
                offset: 0,
                len: 0,
                part: 0,
                number: 0,
            },
            tally,
        }
    }

    /// What comes now stands at this place.
    pub(super) fn set_span(&mut self, span: RecordSpan) {
        self.span = span;
    }

    /// A transcript. An empty id becomes the default one.
    pub(super) fn push_transcript(&mut self, transcript: &Transcript<'_>) {
        let start = self.block.bytes.len();
        write_native(transcript, &mut self.block.bytes);
        self.push_record(start, None);
    }

    /// Something that should have been a transcript: a sentence says why it is none.
    pub(super) fn push_fault(&mut self, why: impl Into<String>) {
        let start = self.block.bytes.len();
        self.push_record(start, Some(why.into()));
    }

    fn push_record(&mut self, start: usize, fault: Option<String>) {
        let end = self.block.bytes.len();
        // Lines stay lines: what is imported is these bytes.
        self.block.bytes.push(b'\n');
        self.tally.emitted += 1;
        self.block.records.push(TranscriptRecord {
            span: RecordSpan {
                number: self.tally.emitted,
                ..self.span
            },
            byte_range: start..end,
            fault,
            labels: Vec::new(),
        });
        self.span.part += 1;
    }

    /// So many records of the file were looked at, understood or not.
    pub(super) fn count_records(&mut self, records: u64) {
        self.tally.records += records;
    }

    /// One of the records counted says nothing that is understood.
    pub(super) fn count_unknown(&mut self, kind: &str) {
        count_kind(&mut self.tally.unknown, kind);
    }

    /// A record that is understood lacks something that was looked for.
    pub(super) fn count_missing(&mut self, what: &str) {
        count_kind(&mut self.tally.missing, what);
    }

    /// What a person said of the transcript that came last. Without an id in it, it is about the default one.
    pub(super) fn attach_label(&mut self, label: Label) {
        if let Some(record) = self.block.records.last_mut() {
            record.labels.push(label);
        }
    }

    /// How many transcripts and faults were collected.
    pub(super) fn record_count(&self) -> usize {
        self.block.records.len()
    }

    /// How many bytes were collected.
    pub(super) fn byte_count(&self) -> usize {
        self.block.bytes.len()
    }

    /// What was collected, and what was counted.
    pub(super) fn finish(self) -> (TranscriptBlock, ReadTally) {
        (self.block, self.tally)
    }

    /// The native form of the transcript at `part`, for a reader that finds a place again.
    pub(super) fn into_native_at(
        self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let mut found = self.block.records.into_iter();
        match found.find(|record| record.span.part == span.part) {
            Some(TranscriptRecord {
                byte_range: at,
                fault: None,
                ..
            }) => Ok(self.block.bytes[at].to_vec()),
            Some(TranscriptRecord {
                fault: Some(why), ..
            }) => Err(source.unknown_error(why)),
            None => Err(source.unknown_error(format!(
                "it no longer holds the transcript that stood at byte {}",
                span.offset
            ))),
        }
    }
}

/// One more of a kind; of kinds that are too many, one more of the others.
fn count_kind(counts: &mut BTreeMap<String, u64>, kind: &str) {
    if let Some(count) = counts.get_mut(kind) {
        *count += 1;
        return;
    }
    let kind = if counts.len() < MAX_UNKNOWN_KINDS {
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
    pub(super) source: &'a SourceFile,
    /// The place.
    pub(super) span: RecordSpan,
}

/// A format in which each record stands for itself.
pub(super) trait RecordParser: fmt::Debug + Send + Sync {
    /// Hands the record's transcripts to `out`: usually one. The error is a sentence.
    fn parse_record(
        &self,
        record: &str,
        cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String>;
}

/// Reads a [`Shape`].
#[derive(Debug)]
pub(super) struct PerRecordReader<S> {
    walk: RecordWalker,
    parser: S,
    tally: ReadTally,
}

impl<S: RecordParser> PerRecordReader<S> {
    /// A reader of the records of a walk.
    pub(super) fn new(walk: RecordWalker, parser: S) -> Self {
        Self {
            walk,
            parser,
            tally: ReadTally::default(),
        }
    }

    fn parse_into(
        &self,
        bytes: &[u8],
        span: RecordSpan,
        source: &SourceFile,
        out: &mut TranscriptSink,
    ) {
        out.set_span(span);
        if bytes.is_empty() {
            // See `Form::Elements`.
            out.push_fault(
                "the file ends before its list of records does: what came after is lost",
            );
            return;
        }
        let read = record_text(bytes).and_then(|record| {
            self.parser
                .parse_record(record, RecordCx { source, span }, out)
        });
        if let Err(why) = read {
            out.push_fault(why);
        }
    }
}

/// A record as text.
pub(super) fn record_text(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() >= MAX_RECORD {
        let limit = MAX_RECORD / (1024 * 1024);
        return Err(format!("the record is {limit} MiB or longer"));
    }
    std::str::from_utf8(bytes).map_err(|why| format!("not UTF-8 at byte {}", why.valid_up_to()))
}

impl<S: RecordParser> TranscriptReader for PerRecordReader<S> {
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        loop {
            let Some(raw) = self.walk.next_block(source)? else {
                return Ok(None);
            };
            let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
            out.count_records(raw.spans.len() as u64);
            for span in &raw.spans {
                self.parse_into(&raw.bytes[raw.byte_range(*span)], *span, source, &mut out);
            }
            let (block, tally) = out.finish();
            self.tally = tally;
            if !block.records.is_empty() {
                return Ok(Some(block));
            }
        }
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.read_span(span)?;
        let mut out = TranscriptSink::new(ReadTally::default());
        self.parse_into(&bytes, RecordSpan { part: 0, ..span }, source, &mut out);
        out.into_native_at(source, span)
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}

/// A format in which lines that follow each other make one session.
pub(super) trait SessionParser: fmt::Debug + Send + Sync {
    /// Told every line of the file in order: whether it begins another session than the line before it.
    fn starts_session(&mut self, line: &[u8]) -> bool;

    /// Hands the transcripts of a session to `out`: the conversation itself first, then branches and sub-agents. A line
    /// that is not understood is `out.unknown`, never an error.
    fn parse_session(&self, lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink);
}

/// Reads [`Sessions`].
#[derive(Debug)]
pub(super) struct PerSessionReader<S> {
    walk: RecordWalker,
    parser: S,
    tally: ReadTally,
    pending: PendingSession,
    ended: bool,
}

/// The session that is being read.
#[derive(Debug, Default)]
struct PendingSession {
    bytes: Vec<u8>,
    offset: u64,
    /// Where the last of its lines ends in the file.
    end: u64,
    lines: u64,
    /// It is longer than is kept.
    overlong: bool,
}

impl<S: SessionParser> PerSessionReader<S> {
    /// A reader of the lines of a walk.
    pub(super) fn new(walk: RecordWalker, parser: S) -> Self {
        Self {
            walk,
            parser,
            tally: ReadTally::default(),
            pending: PendingSession::default(),
            ended: false,
        }
    }

    fn push_line(&mut self, raw: &RecordBlock, span: RecordSpan) {
        let line = &raw.bytes[raw.byte_range(span)];
        let open = &mut self.pending;
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

    fn finish_session(&mut self, source: &SourceFile, out: &mut TranscriptSink) {
        let open = std::mem::take(&mut self.pending);
        if open.lines == 0 {
            return;
        }
        let span = RecordSpan {
            offset: open.offset,
            len: open.end - open.offset,
            part: 0,
            number: 0,
        };
        out.count_records(open.lines);
        out.set_span(span);
        if open.overlong {
            let limit = MAX_RECORD / (1024 * 1024);
            out.push_fault(format!("the session is {limit} MiB or longer"));
        } else {
            self.parser
                .parse_session(&split_lines(&open.bytes), RecordCx { source, span }, out);
        }
    }
}

/// The lines of a session's bytes; those that hold only white space are none.
fn split_lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
        .collect()
}

impl<S: SessionParser> TranscriptReader for PerSessionReader<S> {
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
        while !self.ended && out.record_count() == 0 {
            let Some(raw) = self.walk.next_block(source)? else {
                self.ended = true;
                self.finish_session(source, &mut out);
                break;
            };
            for span in &raw.spans {
                if self
                    .parser
                    .starts_session(&raw.bytes[raw.byte_range(*span)])
                {
                    self.finish_session(source, &mut out);
                }
                self.push_line(&raw, *span);
            }
        }
        let (block, tally) = out.finish();
        self.tally = tally;
        Ok((!block.records.is_empty()).then_some(block))
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.read_span(span)?;
        let mut out = TranscriptSink::new(ReadTally::default());
        let place = RecordSpan { part: 0, ..span };
        out.set_span(place);
        let cx = RecordCx {
            source,
            span: place,
        };
        self.parser
            .parse_session(&split_lines(&bytes), cx, &mut out);
        out.into_native_at(source, span)
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}
