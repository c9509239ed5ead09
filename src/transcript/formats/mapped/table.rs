//! The reader of a CSV table with a field mapping.
//!
//! Responsible for the walk over the rows of a file of any size. Does not know the rules of CSV: those are `csv.rs`.

use std::borrow::Cow;
use std::sync::Arc;

use csv::ByteRecord;

use super::super::csv::{CsvLayout, CsvQuoteState, CsvRows};
use super::super::record_readers::WalkRecords;
use super::MappedRules;
use super::record::MappedRecord;
use crate::model::{has_formula_marks, unmark_formula};
use crate::transcript::reader::{TranscriptReader, TranscriptSink};
use crate::transcript::source::{BLOCK_SIZE, SourceFile};
use crate::transcript::walk::RecordBlock;
use crate::transcript::{MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError};

/// A walk over the rows of a table.
#[derive(Debug)]
pub(super) struct RowWalker {
    delimiter: u8,
    pos: u64,
    ended: bool,
}

/// Consecutive complete rows.
struct RowBlock {
    bytes: Vec<u8>,
    offset: u64,
    /// True if a quote in the last row is never closed.
    torn: bool,
    /// True if the row exceeds [`MAX_RECORD`]. The walk ends there, because it can't find the start of the next row.
    overlong: bool,
}

impl RowWalker {
    pub(super) fn new(delimiter: u8, pos: u64) -> Self {
        Self {
            delimiter,
            pos,
            ended: false,
        }
    }

    fn next_rows(&mut self, source: &SourceFile) -> Result<Option<RowBlock>, TranscriptError> {
        if self.ended {
            return Ok(None);
        }
        let offset = self.pos;
        let mut bytes = Vec::new();
        let mut want = BLOCK_SIZE;
        let (end, torn, overlong) = loop {
            // The block ends at a complete row, because a row may contain line breaks in quotes.
            let ended = source.fill_buffer(offset, &mut bytes, want)?;
            let scanned = CsvQuoteState::scan_rows(&bytes, self.delimiter, false);
            if ended {
                self.ended = true;
                break (bytes.len(), scanned.in_quotes, false);
            }
            // At least one row is complete; the next block begins after it.
            if let Some(end) = scanned.end {
                break (end, false, false);
            }
            if bytes.len() >= MAX_RECORD {
                self.ended = true;
                break (MAX_RECORD, true, true);
            }
            // A longer row needs a larger block. Doubling keeps the total work linear.
            want = (bytes.len() * 2).clamp(BLOCK_SIZE, MAX_RECORD);
        };
        self.pos += end as u64;
        bytes.truncate(end);
        Ok(Some(RowBlock {
            bytes,
            offset,
            torn,
            overlong,
        }))
    }
}

impl RowBlock {
    fn span(&self, range: &std::ops::Range<usize>) -> RecordSpan {
        RecordSpan {
            offset: self.offset + range.start as u64,
            len: range.len() as u64,
            part: 0,
            number: 0,
        }
    }
}

impl WalkRecords for RowWalker {
    fn next_block(&mut self, source: &SourceFile) -> Result<Option<RecordBlock>, TranscriptError> {
        loop {
            let Some(block) = self.next_rows(source)? else {
                return Ok(None);
            };
            let mut spans = Vec::new();
            if block.overlong {
                // A span of the maximum size is a fault for every reader.
                spans.push(block.span(&(0..MAX_RECORD)));
            } else {
                let mut rows = CsvRows::from_bytes(&block.bytes, self.delimiter);
                while let Some((range, row)) = rows.next_row() {
                    // Spreadsheets export empty rows.
                    if row.iter().any(|cell| !cell.trim_ascii().is_empty()) {
                        spans.push(block.span(&range));
                    }
                }
            }
            if !spans.is_empty() {
                return Ok(Some(RecordBlock {
                    offset: block.offset,
                    bytes: block.bytes,
                    spans,
                }));
            }
        }
    }
}

/// Returns the cells of a row as text. The error is a sentence fragment.
pub(super) fn row_cells<'r>(
    layout: &CsvLayout,
    row: &'r ByteRecord,
) -> Result<Vec<Cow<'r, str>>, String> {
    let names = &layout.columns;
    // A row with another number of cells would assign values to the wrong columns.
    if row.len() != names.len() {
        let cells = crate::model::pluralize(row.len(), "cell");
        let columns = crate::model::pluralize(names.len(), "column");
        return Err(format!("it has {cells}, and the table {columns}"));
    }
    let has_marks = has_formula_marks(&names.iter().map(String::as_str));
    let text = |(cell, name): (&'r [u8], &String)| {
        let text = layout.encoding.decode(cell);
        let text = text.map(|text| match text {
            Cow::Borrowed(text) if has_marks => unmark_formula(text).into(),
            Cow::Owned(text) if has_marks => unmark_formula(&text).to_owned().into(),
            text => text,
        });
        text.map_err(|why| format!("{name:?} is {why}; if the file has another encoding, name it with `encoding` in `map`"))
    };
    row.iter().zip(names).map(text).collect()
}

/// A reader of a table with a field mapping.
#[derive(Debug)]
pub(super) struct CsvTableReader {
    rules: Arc<MappedRules>,
    layout: CsvLayout,
    walk: RowWalker,
    tally: ReadTally,
}

impl CsvTableReader {
    pub(super) fn new(layout: CsvLayout, rules: Arc<MappedRules>) -> Self {
        Self {
            rules,
            walk: RowWalker::new(layout.delimiter, layout.rows_start as u64),
            layout,
            tally: ReadTally::default(),
        }
    }

    fn push_row(&self, row: &ByteRecord, torn: bool, span: RecordSpan, out: &mut TranscriptSink) {
        out.set_span(span);
        out.count_records(1);
        if torn {
            // The open quote hides all later rows, so this row has no reliable cells.
            out.push_fault("a quote in it is never closed: the rest of the file is in one cell");
            return;
        }
        // Spreadsheets export empty rows. In a table of one column, an empty cell can be a value.
        if row.iter().all(|cell| cell.trim_ascii().is_empty()) && self.layout.columns.len() > 1 {
            out.count_unknown("rows of empty cells");
            return;
        }
        let written = row_cells(&self.layout, row).and_then(|cells| {
            let record = MappedRecord::from_row(&self.layout.columns, cells);
            self.rules.write_transcript(record, "", out)
        });
        if let Err(why) = written {
            out.push_fault(why);
        }
    }

    fn push_rows(&self, block: &RowBlock, out: &mut TranscriptSink) {
        if block.overlong {
            out.count_records(1);
            out.set_span(block.span(&(0..MAX_RECORD)));
            let limit = MAX_RECORD / (1024 * 1024);
            out.push_fault(format!(
                "the row is {limit} MiB or longer, or a quote in it is never closed; what follows is not read"
            ));
            return;
        }
        let mut rows = CsvRows::from_bytes(&block.bytes, self.layout.delimiter);
        while let Some((range, row)) = rows.next_row() {
            // Only the last row can contain an open quote, up to the end of the file.
            let is_last = block.bytes[range.end..].trim_ascii().is_empty();
            self.push_row(row, block.torn && is_last, block.span(&range), out);
        }
    }
}

impl TranscriptReader for CsvTableReader {
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        while let Some(rows) = self.walk.next_rows(source)? {
            let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
            self.push_rows(&rows, &mut out);
            if let Some(block) = out.finish(&mut self.tally) {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.read_span(span)?;
        let mut out = TranscriptSink::new(ReadTally::default());
        let mut rows = CsvRows::from_bytes(&bytes, self.layout.delimiter);
        if let Some((_, row)) = rows.next_row() {
            let torn = CsvQuoteState::scan_rows(&bytes, self.layout.delimiter, false).in_quotes;
            self.push_row(row, torn, RecordSpan { part: 0, ..span }, &mut out);
        }
        out.into_native_at(source, span)
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}
