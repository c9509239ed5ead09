//! The reader of a CSV table with a field mapping.
//!
//! Responsible for the walk over the rows of a file of any size. Does not know the rules of CSV: those are `csv.rs`.

use std::sync::Arc;

use csv::ByteRecord;

use super::super::csv::{CsvLayout, CsvQuoteState, CsvRows};
use super::MappedRecord;
use crate::transcript::field_mapping::FieldMapping;
use crate::transcript::reader::{TranscriptReader, TranscriptSink};
use crate::transcript::source::SourceFile;
use crate::transcript::walk::BLOCK_SIZE;
use crate::transcript::{MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError};

/// A reader of a table with a field mapping.
#[derive(Debug)]
pub(super) struct CsvTableReader {
    map: Arc<FieldMapping>,
    layout: CsvLayout,
    pos: u64,
    ended: bool,
    tally: ReadTally,
}

impl CsvTableReader {
    pub(super) fn new(layout: CsvLayout, map: &Arc<FieldMapping>) -> Self {
        Self {
            map: Arc::clone(map),
            pos: layout.rows_start as u64,
            layout,
            ended: false,
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
        let written = self.row_cells(row).and_then(|cells| {
            MappedRecord::from_row(&self.layout.columns, cells).write_transcript(&self.map, out)
        });
        if let Err(why) = written {
            out.push_fault(why);
        }
    }

    fn row_cells<'r>(&self, row: &'r ByteRecord) -> Result<Vec<&'r str>, String> {
        let names = &self.layout.columns;
        // A row with another number of cells would assign values to the wrong columns.
        if row.len() != names.len() {
            let cells = crate::model::pluralize(row.len(), "cell");
            let columns = crate::model::pluralize(names.len(), "column");
            return Err(format!("it has {cells}, and the table {columns}"));
        }
        let text = |(cell, name): (&'r [u8], &String)| {
            std::str::from_utf8(cell)
                .map_err(|why| format!("{name:?} is not UTF-8 at byte {}", why.valid_up_to()))
        };
        row.iter().zip(names).map(text).collect()
    }

    /// Returns a block with the fault for a row that exceeds [`MAX_RECORD`]. The reader stops there, because it can't
    /// find the start of the next row.
    fn reject_overlong_row(&mut self) -> (TranscriptBlock, ReadTally) {
        let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
        self.ended = true;
        out.count_records(1);
        out.set_span(RecordSpan {
            offset: self.pos,
            len: MAX_RECORD as u64,
            part: 0,
            number: 0,
        });
        let limit = MAX_RECORD / (1024 * 1024);
        out.push_fault(format!(
            "the row is {limit} MiB or longer, or a quote in it is never closed; what follows is not read"
        ));
        out.finish()
    }
}

impl TranscriptReader for CsvTableReader {
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        while !self.ended {
            let mut bytes = Vec::new();
            let mut want = BLOCK_SIZE;
            let (end, torn) = loop {
                // The block ends at a complete row, because a row may contain line breaks in quotes.
                let ended = source.fill_buffer(self.pos, &mut bytes, want)?;
                let scanned = CsvQuoteState::scan_rows(&bytes, self.layout.delimiter, false);
                if ended {
                    self.ended = true;
                    break (bytes.len(), scanned.in_quotes);
                }
                // At least one row is complete; the next block begins after it.
                if let Some(end) = scanned.end {
                    break (end, false);
                }
                if bytes.len() >= MAX_RECORD {
                    let (block, tally) = self.reject_overlong_row();
                    self.tally = tally;
                    return Ok(Some(block));
                }
                // A longer row needs a larger block. Doubling keeps the total work linear.
                want = (bytes.len() * 2).clamp(BLOCK_SIZE, MAX_RECORD);
            };
            let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
            let mut rows = CsvRows::from_bytes(&bytes[..end], self.layout.delimiter);
            while let Some((row_range, row)) = rows.next_row() {
                let span = RecordSpan {
                    offset: self.pos + row_range.start as u64,
                    len: row_range.len() as u64,
                    part: 0,
                    number: 0,
                };
                // Only the last row can contain an open quote, up to the end of the file.
                let is_last = bytes[row_range.end..end].trim_ascii().is_empty();
                self.push_row(row, torn && is_last, span, &mut out);
            }
            self.pos += end as u64;
            let (block, tally) = out.finish();
            self.tally = tally;
            // An empty block would mean the end to the caller.
            if !block.records.is_empty() {
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
