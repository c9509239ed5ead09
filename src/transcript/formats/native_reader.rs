//! The reader of native files, which passes records through as the file has them.
//!
//! Responsible for the conversion of single records in Anthropic's content blocks, which a native file may contain. Does
//! not parse native records: that is `native.rs`.

use super::anthropic;
use crate::transcript::reader::TranscriptReader;
use crate::transcript::source::SourceFile;
use crate::transcript::walk::RecordWalker;
use crate::transcript::{RecordSpan, TranscriptBlock, TranscriptError, TranscriptRecord};

/// A reader that returns records as the file contains them. Only records in Anthropic's content blocks are converted.
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
        // Most native files have no such record, and this check of the block is cheap.
        if anthropic::may_need_conversion(&block.bytes) {
            for record in &mut block.records {
                if let Some(line) =
                    anthropic::convert_to_native(&block.bytes[record.byte_range.clone()])
                {
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
        Ok(anthropic::convert_to_native(&bytes).unwrap_or(bytes))
    }
}
