//! The reader of native files, which passes records through as the file has them.
//!
//! Responsible for the conversion of single records that a native file may contain: those in Anthropic's content blocks,
//! and those with an answer next to their messages. Does not parse native records: that is `native.rs`.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use aho_corasick::{PatternID, Span};

use super::signatures::{ANSWER_KEYS, is_key_end};
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
        // Most native files have no such record, and this check of the block is cheap.
        if may_need_conversion(&block.bytes) {
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
    if !may_need_conversion(record) {
        return None;
    }
    anthropic::convert_to_native(record).or_else(|| api_log::convert_to_native(record))
}

/// A search for the texts of records that are not native: the text of Anthropic's blocks first, then keys. `None` on a
/// processor without the instructions for it.
static FOREIGN_TEXTS: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let keys = [anthropic::SYSTEM_KEY].into_iter().chain(ANSWER_KEYS);
    let keys = keys.map(|key| format!("\"{key}\""));
    Searcher::new(std::iter::once(anthropic::BLOCK_TEXT.to_owned()).chain(keys))
});

/// Returns true if the bytes may contain a record that is not native.
fn may_need_conversion(bytes: &[u8]) -> bool {
    // One pass for all texts, because it reads every byte of every native file.
    let Some(searcher) = &*FOREIGN_TEXTS else {
        return may_need_conversion_by_text(bytes);
    };
    let mut from = 0;
    while let Some(found) = searcher.find_in(bytes, Span::from(from..bytes.len())) {
        if found.pattern() == PatternID::ZERO || is_key_end(bytes, found.end()) {
            return true;
        }
        from = found.start() + 1;
    }
    false
}

/// As [`may_need_conversion`], with one pass for each text.
fn may_need_conversion_by_text(bytes: &[u8]) -> bool {
    anthropic::may_need_conversion(bytes) || api_log::may_have_answer(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pass_finds_each_text_of_a_foreign_record() {
        let mut texts = vec![anthropic::BLOCK_TEXT.to_owned()];
        for key in [anthropic::SYSTEM_KEY].into_iter().chain(ANSWER_KEYS) {
            texts.push(format!("\"{key}\":"));
            texts.push(format!("\"{key}\" \n\t:"));
        }
        for text in texts {
            for (before, after) in [(0, 0), (1, 0), (700, 900)] {
                let record = format!("{}{text}{}", "\"{".repeat(before), " x".repeat(after));
                assert!(may_need_conversion(record.as_bytes()), "{record}");
            }
        }
    }

    #[test]
    fn value_or_part_of_a_key_is_not_a_text_of_a_foreign_record() {
        let record = r#"{"id":"output","messages":[{"role":"system","content":"\"response\": system: choices"},{"role":"user","content":"response"}],"outputs":1,"response_id":2,"system" "#;
        assert!(!may_need_conversion(record.as_bytes()));
        let record = record.repeat(50);
        assert!(!may_need_conversion(record.as_bytes()));
        assert!(!may_need_conversion(b""));
    }

    proptest::proptest! {
        #[test]
        fn one_pass_finds_the_same_as_a_pass_for_each_text(
            text in r#"("(system|output|response|choices|model_output)|"? ?[:x"]|tool_us|e|\PC){0,40}"#,
        ) {
            proptest::prop_assert_eq!(
                may_need_conversion(text.as_bytes()),
                may_need_conversion_by_text(text.as_bytes())
            );
        }
    }
}
