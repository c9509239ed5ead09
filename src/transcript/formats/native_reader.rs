//! The reader of native files, which passes records through as the file has them.
//!
//! Responsible for the conversion of single records that a native file may contain: those in Anthropic's content blocks,
//! and those with an answer next to their messages. Does not parse native records: that is `native.rs`.

use super::{anthropic, api_log};
use crate::transcript::reader::TranscriptReader;
use crate::transcript::source::SourceFile;
use crate::transcript::walk::RecordWalker;
use crate::transcript::{RecordSpan, TranscriptBlock, TranscriptError, TranscriptRecord};

/// A reader that returns records as the file contains them, except for those that are not native.
#[derive(Debug)]
pub(super) struct NativeReader(pub(super) RecordWalker);

impl TranscriptReader for NativeReader {
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        let Some(raw) = self.0.next_block(source)? else {
            return Ok(None);
        };
        let record = |span: &RecordSpan| TranscriptRecord {
            span: *span,
            byte_range: raw.byte_range(*span),
            fault: None,
            labels: Vec::new(),
        };
        let mut block = TranscriptBlock {
            records: raw.spans.iter().map(record).collect(),
            bytes: raw.bytes,
        };
        // Most native files have no such record, and these checks of the block are cheap.
        if anthropic::may_need_conversion(&block.bytes) || api_log::may_have_answer(&block.bytes) {
            for record in &mut block.records {
                if let Some(line) = convert_to_native(&block.bytes[record.byte_range.clone()]) {
                    // The converted line goes after all others: the ranges of the other records must stay valid.
                    let start = block.bytes.len();
                    block.bytes.extend_from_slice(&line);
                    record.byte_range = start..block.bytes.len();
                    block.bytes.push(b'\n');
                }
            }
        }
        Ok(Some(block))
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.read_span(span)?;
        Ok(convert_to_native(&bytes).unwrap_or(bytes))
    }
}

/// Converts a record that is not native; `None` for a native record.
fn convert_to_native(record: &[u8]) -> Option<Vec<u8>> {
    anthropic::convert_to_native(record).or_else(|| api_log::convert_to_native(record))
}
