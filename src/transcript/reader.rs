//! The interface of all formats: a reader that returns transcripts in the native format.
//!
//! Responsible for the two readers that formats share:
//!
//! - [`PerRecordReader`] for formats with independent records, each parsed by a [`RecordParser`]
//! - [`PerSessionReader`] for sessions of many lines, parsed by a [`SessionParser`]
//!
//! A format with another layout, such as a ZIP archive, implements [`TranscriptReader`] itself. Does not know any
//! format.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use super::scan::split_values;
use super::source::SourceFile;
use super::walk::{RecordBlock, RecordWalker};
use super::write::write_native;
use super::{
    MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError, TranscriptIndexEntry,
    TranscriptRecord,
};
use crate::model::{Label, Transcript};

/// The number of kinds of unknown records with a count of their own. Further kinds share one count.
const MAX_UNKNOWN_KINDS: usize = 64;

/// A reader of one format.
pub(super) trait TranscriptReader: fmt::Debug + Send {
    /// Returns the next transcripts, or `None` at the end.
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError>;

    /// Returns the native JSON of the transcript at `span`, which the reader returned before.
    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError>;

    /// Returns the transcript at `span` as the file contains it.
    fn read_raw(&self, source: &SourceFile, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        source.read_span(span)
    }

    /// Returns all transcripts from the index of the file; `None` if the format has no index.
    fn read_index(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<Vec<TranscriptIndexEntry>>, TranscriptError> {
        let _ = source;
        Ok(None)
    }

    /// Returns the counts so far; `None` if the format does not count.
    fn tally(&self) -> Option<&ReadTally> {
        None
    }
}

/// The transcripts, faults and counts that a format's code reports.
#[derive(Debug)]
pub(super) struct TranscriptSink {
    block: TranscriptBlock,
    span: RecordSpan,
    /// The offset in `block` of the first transcript of the record.
    record_start: usize,
    /// The limit on the transcripts of one record together, in bytes.
    max_record_bytes: usize,
    /// True if the elements of a list count in place of the current record.
    has_elements: bool,
    tally: ReadTally,
}

impl TranscriptSink {
    /// Returns an empty sink that continues the counts of `tally`.
    pub(super) fn new(tally: ReadTally) -> Self {
        Self {
            block: TranscriptBlock::default(),
            span: RecordSpan {
                offset: 0,
                len: 0,
                part: 0,
                number: 0,
            },
            record_start: 0,
            // More than any real record, whose branches repeat its beginning.
            max_record_bytes: 2 * MAX_RECORD,
            has_elements: false,
            tally,
        }
    }

    /// Sets the location of the transcripts that follow.
    pub(super) fn set_span(&mut self, span: RecordSpan) {
        if span.offset != self.span.offset {
            self.record_start = self.block.bytes.len();
        }
        self.has_elements = false;
        self.span = span;
    }

    /// Adds a transcript. An empty id becomes the default id.
    ///
    /// The transcripts of one record may repeat its texts, so a small record could fill the memory. Therefore the sink
    /// only counts the transcripts above its limit.
    pub(super) fn push_transcript(&mut self, transcript: &Transcript<'_>) {
        let start = self.block.bytes.len();
        if start - self.record_start > self.max_record_bytes {
            self.count_unknown("a transcript of a record that is too large");
            self.span.part += 1;
            return;
        }
        write_native(transcript, &mut self.block.bytes);
        self.push_record(start, None);
    }

    /// Adds a fault: a record that is not a transcript, with the reason as a sentence fragment.
    pub(super) fn push_fault(&mut self, why: impl Into<String>) {
        let start = self.block.bytes.len();
        self.push_record(start, Some(why.into()));
    }

    fn push_record(&mut self, start: usize, fault: Option<String>) {
        let end = self.block.bytes.len();
        // `dicta import` prints these bytes, so each record must be a line.
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
        // Several transcripts at one location differ in `part`, by which `read_native` finds them.
        self.span.part += 1;
    }

    /// Adds to the number of records, whether they were understood or not.
    pub(super) fn count_records(&mut self, records: u64) {
        self.tally.records += records;
    }

    /// Counts the elements of a list inside the current record, for a format whose records are these elements. The object
    /// around the list is then not a record, although the reader counted it. An empty list leaves that count.
    pub(super) fn count_elements(&mut self, elements: usize) {
        let counted = usize::from(!self.has_elements && elements > 0);
        self.has_elements |= elements > 0;
        self.count_records((elements - counted) as u64);
    }

    /// Counts a record that dicta does not understand, by kind.
    pub(super) fn count_unknown(&mut self, kind: &str) {
        count_kind(&mut self.tally.unknown, kind);
    }

    /// Counts a missing part of a record that was read.
    pub(super) fn count_missing(&mut self, what: &str) {
        count_kind(&mut self.tally.missing, what);
    }

    /// Adds a label to the last transcript. If the label has no transcript id, it applies to the default id.
    pub(super) fn attach_label(&mut self, label: Label) {
        if let Some(record) = self.block.records.last_mut() {
            record.labels.push(label);
        }
    }

    /// Adds a label to the transcript with this index in the block, as [`Self::attach_label`] does.
    pub(super) fn attach_label_to(&mut self, index: usize, label: Label) {
        if let Some(record) = self.block.records.get_mut(index) {
            record.labels.push(label);
        }
    }

    /// Returns true if a transcript or fault has this index in its record.
    pub(super) fn has_part(&self, part: u32) -> bool {
        let records = &self.block.records;
        records.iter().any(|record| record.span.part == part)
    }

    /// Returns the number of transcripts and faults.
    pub(super) fn record_count(&self) -> usize {
        self.block.records.len()
    }

    /// Returns the number of bytes.
    pub(super) fn byte_count(&self) -> usize {
        self.block.bytes.len()
    }

    /// Returns the transcripts; `None` without any, because an empty block would mean the end to the caller. The counts
    /// go to `tally`, so that they continue over blocks.
    pub(super) fn finish(self, tally: &mut ReadTally) -> Option<TranscriptBlock> {
        *tally = self.tally;
        (!self.block.records.is_empty()).then_some(self.block)
    }

    /// Returns the native JSON of the first transcript; `None` if there is no transcript, or a fault in its place.
    pub(super) fn into_first_native(self) -> Option<Vec<u8>> {
        let first = self.block.records.into_iter().next()?;
        (first.fault.is_none()).then(|| self.block.bytes[first.byte_range].to_vec())
    }

    /// Returns the native JSON of the transcript with the index `span.part`, for a reader that reads a record again.
    pub(super) fn into_native_at(
        self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let mut records = self.block.records.into_iter();
        match records.find(|record| record.span.part == span.part) {
            Some(TranscriptRecord {
                byte_range: range,
                fault: None,
                ..
            }) => Ok(self.block.bytes[range].to_vec()),
            Some(TranscriptRecord {
                fault: Some(why), ..
            }) => Err(source.unknown_error(why)),
            // The file changed after it was indexed.
            None => Err(source.unknown_error(format!(
                "the file changed: it has no transcript at byte {} any more; open it again",
                span.offset
            ))),
        }
    }
}

/// Increments the count of a kind. Kinds above the limit share one count.
pub(super) fn count_kind(counts: &mut BTreeMap<String, u64>, kind: &str) {
    let named = kind.contains(" ``").then(|| describe_empty_word(kind));
    let kind = named.as_deref().unwrap_or(kind);
    if let Some(count) = counts.get_mut(kind) {
        *count += 1;
        return;
    }
    let kind = if counts.len() < MAX_UNKNOWN_KINDS {
        // A kind comes from the file, so its length needs a limit.
        kind.chars().take(80).collect()
    } else {
        "other kinds".to_owned()
    };
    *counts.entry(kind).or_default() += 1;
}

/// Returns a kind in words if the word that names it is empty: "an event without a type" for an event of the type "".
fn describe_empty_word(kind: &str) -> String {
    let mut kind = kind.to_owned();
    for word in ["type", "role", "kind"] {
        let (empty, described) = (format!(" of the {word} ``"), format!(" without a {word}"));
        kind = kind.replace(&empty, &described);
    }
    kind.replace(" ``", " without a name")
}

/// The record that a format's code reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordCx<'a> {
    /// The file of the record.
    pub(super) source: &'a SourceFile,
    /// The location of the record.
    pub(super) span: RecordSpan,
}

/// A format in which records are independent.
pub(super) trait RecordParser: fmt::Debug + Send + Sync {
    /// Adds the transcripts of the record to `out`, usually one. The error is a sentence fragment.
    fn parse_record(
        &self,
        record: &str,
        cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String>;

    /// Returns a record as text. The error is a sentence fragment.
    fn decode<'b>(&self, bytes: &'b [u8]) -> Result<Cow<'b, str>, String> {
        record_text(bytes).map(Cow::Borrowed)
    }
}

/// A reader for a [`RecordParser`].
#[derive(Debug)]
pub(super) struct PerRecordReader<S> {
    walk: RecordWalker,
    parser: S,
    tally: ReadTally,
}

impl<S: RecordParser> PerRecordReader<S> {
    /// Returns a reader of the records of a walk.
    pub(super) fn new(walk: RecordWalker, parser: S) -> Self {
        Self {
            walk,
            parser,
            tally: ReadTally::default(),
        }
    }

    /// Returns the reader with the count of a part that the file as a whole lacks.
    pub(super) fn with_missing(mut self, what: Option<&str>) -> Self {
        if let Some(what) = what {
            count_kind(&mut self.tally.missing, what);
        }
        self
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
            out.push_fault(describe_empty_record(source, span));
            return;
        }
        let parsed = self.parser.decode(bytes).and_then(|record| {
            self.parser
                .parse_record(&record, RecordCx { source, span }, out)
        });
        if let Err(why) = parsed {
            out.push_fault(why);
        }
    }
}

/// Returns what an empty record of a walk represents, as a sentence fragment.
pub(super) fn describe_empty_record(source: &SourceFile, span: RecordSpan) -> &'static str {
    // A list that is not complete has its empty record at the end of the file.
    if span.offset < source.size() {
        "after its list of records, the file has a further value that is not read"
    } else {
        "the file ends before its list of records does: what came after is lost"
    }
}

/// Returns a record as text. The error is a sentence fragment.
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
            if let Some(block) = out.finish(&mut self.tally) {
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
        // The parser counts parts from 0 again, and `span.part` selects one of them.
        self.parse_into(&bytes, RecordSpan { part: 0, ..span }, source, &mut out);
        out.into_native_at(source, span)
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}

/// A format in which consecutive lines form one session.
pub(super) trait SessionParser: fmt::Debug + Send + Sync {
    /// Returns true if `line` begins a new session. The reader calls it for every line of the file, in order.
    fn starts_session(&mut self, line: &[u8]) -> bool;

    /// Adds the transcripts of a session to `out`: first the conversation, then branches and sub-agents. An unknown
    /// line is a [`TranscriptSink::count_unknown`], never an error.
    fn parse_session(&self, lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink);
}

/// A reader for a [`SessionParser`].
#[derive(Debug)]
pub(super) struct PerSessionReader<S> {
    walk: RecordWalker,
    /// False for a list of values: they can extend over lines, and commas can be between them.
    has_lines: bool,
    parser: S,
    tally: ReadTally,
    pending: PendingSession,
    ended: bool,
}

/// The lines of the current session.
#[derive(Debug, Default)]
struct PendingSession {
    bytes: Vec<u8>,
    offset: u64,
    /// The end offset of its last line in the file.
    end: u64,
    lines: u64,
    /// True if the session exceeds [`MAX_RECORD`], so `bytes` is empty.
    overlong: bool,
}

impl<S: SessionParser> PerSessionReader<S> {
    /// Returns a reader of the lines of a walk.
    pub(super) fn new(walk: RecordWalker, parser: S) -> Self {
        Self {
            has_lines: walk.has_lines(),
            walk,
            parser,
            tally: ReadTally::default(),
            pending: PendingSession::default(),
            ended: false,
        }
    }

    fn push_line(&mut self, raw: &RecordBlock, span: RecordSpan) {
        let line = &raw.bytes[raw.byte_range(span)];
        let session = &mut self.pending;
        if session.lines == 0 {
            session.offset = span.offset;
        }
        session.lines += 1;
        session.end = span.offset + span.len;
        let len = usize::try_from(session.end - session.offset).unwrap_or(usize::MAX);
        if session.overlong || len >= MAX_RECORD {
            session.overlong = true;
            // The bytes are dropped at once, because the session is a fault anyway.
            session.bytes = Vec::new();
            return;
        }
        if !self.has_lines {
            // `finish_session` reads them from the file.
            return;
        }
        // Only white space separates two lines. Line breaks replace it, so offsets in the session are offsets in the
        // file.
        let gap = usize::try_from(span.offset - session.offset).unwrap_or(usize::MAX);
        session.bytes.resize(gap, b'\n');
        session.bytes.extend_from_slice(line);
    }

    fn finish_session(&mut self, source: &SourceFile, out: &mut TranscriptSink) {
        let session = std::mem::take(&mut self.pending);
        if session.lines == 0 {
            return;
        }
        let span = RecordSpan {
            offset: session.offset,
            len: session.end - session.offset,
            part: 0,
            number: 0,
        };
        out.count_records(session.lines);
        out.set_span(span);
        if session.overlong {
            let limit = MAX_RECORD / (1024 * 1024);
            out.push_fault(format!("the session is {limit} MiB or longer"));
            return;
        }
        // Other text than white space can be between two values. So the bytes come from the file, as they do when
        // `read_native` reads the session again.
        let bytes = if self.has_lines {
            session.bytes
        } else {
            match source.read_span(span) {
                Ok(bytes) => bytes,
                Err(why) => return out.push_fault(why.to_string()),
            }
        };
        let lines = self.split_session(&bytes);
        self.parser
            .parse_session(&lines, RecordCx { source, span }, out);
    }

    /// Returns the records of a session.
    fn split_session<'b>(&self, bytes: &'b [u8]) -> Vec<&'b [u8]> {
        if self.has_lines {
            split_lines(bytes)
        } else {
            split_values(bytes).collect()
        }
    }
}

/// Returns the lines of a session without those that contain only white space.
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
        // A session ends when the next one begins, so one block of the file may complete none.
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
        Ok(out.finish(&mut self.tally))
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.read_span(span)?;
        let mut out = TranscriptSink::new(ReadTally::default());
        let record_span = RecordSpan { part: 0, ..span };
        out.set_span(record_span);
        let cx = RecordCx {
            source,
            span: record_span,
        };
        self.parser
            .parse_session(&self.split_session(&bytes), cx, &mut out);
        out.into_native_at(source, span)
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SourceText;

    #[test]
    fn kind_with_an_empty_word_is_described() {
        let mut counts = BTreeMap::new();
        for kind in [
            "a line of the type ``",
            "an entry ``",
            "an entry ``",
            "an entry `x`",
        ] {
            count_kind(&mut counts, kind);
        }
        let counts: Vec<_> = counts
            .iter()
            .map(|(kind, count)| (&**kind, *count))
            .collect();
        assert_eq!(
            counts,
            [
                ("a line without a type", 1),
                ("an entry `x`", 1),
                ("an entry without a name", 2)
            ]
        );
    }

    #[test]
    fn transcripts_of_one_record_have_a_limit_together() {
        let transcript = Transcript {
            id: SourceText::from("x".repeat(60)),
            ..Transcript::default()
        };
        let mut sink = TranscriptSink::new(ReadTally::default());
        sink.max_record_bytes = 100;
        for offset in [7, 900] {
            sink.set_span(RecordSpan {
                offset,
                len: 1,
                part: 0,
                number: 0,
            });
            for _ in 0..5 {
                sink.push_transcript(&transcript);
            }
        }
        let mut tally = ReadTally::default();
        let block = sink.finish(&mut tally).expect("transcripts");
        assert_eq!(block.records.len(), 4, "two of each record");
        assert_eq!(
            tally.unknown["a transcript of a record that is too large"],
            6
        );
    }
}
