//! The choice among the formats of a file: a format that reads no record is not the file's format.
//!
//! Responsible for three signals and their weight. The signature of a format is the first. Signatures of common words
//! also occur in other files, so the reader of such a format reads the first records: the share that it reads is the
//! second signal. Further formats with a matching signature are the third. Blocks of the trial are kept, so no record is
//! read twice. Does not know any format.

use std::collections::VecDeque;

use super::detect::{DetectError, FormatCandidates};
use super::formats::{self, NATIVE_FORMAT, ReaderFactory};
use super::reader::TranscriptReader;
use super::source::{BLOCK_SIZE, SourceFile};
use super::unread::UnreadContent;
use super::{BadRecord, TranscriptBlock, TranscriptError, parse_native};
use crate::model::Transcript;

/// The number of blocks that a trial reads until it finds a transcript.
const MAX_TRIAL_BLOCKS: usize = 4;

/// The degree to which the content of a file confirms its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetectionConfidence {
    /// The signature is specific to the format, or no other format matches and dicta read every first record.
    High,
    /// dicta read at least half of the first records, or the signatures of other formats match too.
    Medium,
    /// dicta read fewer than half of the first records.
    Low,
}

impl DetectionConfidence {
    /// Returns the degree as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// The format of a file with its reader.
#[derive(Debug)]
pub(super) struct ChosenFormat {
    pub(super) name: &'static str,
    pub(super) confidence: DetectionConfidence,
    pub(super) reader: Box<dyn TranscriptReader>,
    /// The blocks that the trial read, in order.
    pub(super) blocks: VecDeque<TranscriptBlock>,
}

/// A reason not to read a file, or an error of the operating system.
pub(super) enum ChoiceError {
    Refused(DetectError),
    Failed(TranscriptError),
}

impl From<TranscriptError> for ChoiceError {
    fn from(error: TranscriptError) -> Self {
        Self::Failed(error)
    }
}

/// Chooses the format of a file among its candidates.
pub(super) fn choose_format(
    source: &SourceFile,
    candidates: &FormatCandidates<'_>,
) -> Result<ChosenFormat, ChoiceError> {
    let has_rivals = candidates.formats.len() > 1;
    let mut best: Option<FormatTrial> = None;
    let mut refusal = None;
    for (name, create_reader) in &candidates.formats {
        let Some(create_reader) = create_reader else {
            if best.is_none() {
                return Err(ChoiceError::Refused(DetectError::Unsupported(name)));
            }
            break;
        };
        if !formats::is_generic(name) {
            return Ok(ChosenFormat {
                name,
                confidence: DetectionConfidence::High,
                reader: create_reader(source, &candidates.preview)?,
                blocks: VecDeque::new(),
            });
        }
        let trial = FormatTrial::run(name, *create_reader, source, candidates)?;
        match trial {
            Ok(trial) if trial.is_complete() => {
                best = Some(trial);
                break;
            }
            // Equal shares keep the first format, because the table has the more specific one first.
            Ok(trial) if best.as_ref().is_none_or(|best| trial.is_better_than(best)) => {
                best = Some(trial);
            }
            Ok(_) => {}
            Err(why) => {
                refusal.get_or_insert((*name, why));
            }
        }
    }
    match (best, refusal) {
        (Some(trial), refusal) => Ok(trial.into_chosen(has_rivals && refusal.is_none())),
        (None, Some((name, why))) => Err(ChoiceError::Refused(DetectError::Unmapped(format!(
            "it looks like {}, but dicta reads none of its records: {why}",
            formats::name_with_article(name)
        )))),
        (None, None) => Err(ChoiceError::Refused(DetectError::Unknown(
            "it has no records".to_owned(),
        ))),
    }
}

/// The first records of a file, as the reader of one format reads them.
struct FormatTrial {
    name: &'static str,
    reader: Box<dyn TranscriptReader>,
    blocks: VecDeque<TranscriptBlock>,
    /// The number of records that the reader returned.
    found: u64,
    /// The number of records with at least one message that dicta read.
    read: u64,
}

impl FormatTrial {
    /// Reads the first records. The inner error is the reason why the file does not have the format, as a sentence
    /// fragment.
    fn run(
        name: &'static str,
        create_reader: ReaderFactory,
        source: &SourceFile,
        candidates: &FormatCandidates<'_>,
    ) -> Result<Result<Self, String>, TranscriptError> {
        let reader = match create_reader(source, &candidates.preview) {
            Ok(reader) => reader,
            Err(error @ TranscriptError::Io { .. }) => return Err(error),
            Err(TranscriptError::Unknown { why, .. } | TranscriptError::Unmapped { why, .. }) => {
                return Ok(Err(why));
            }
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut trial = Self {
            name,
            reader,
            blocks: VecDeque::new(),
            found: 0,
            read: 0,
        };
        if name == NATIVE_FORMAT.name {
            return Ok(trial.check_preview(candidates));
        }
        let mut fault = None;
        while trial.read == 0 && trial.blocks.len() < MAX_TRIAL_BLOCKS {
            let Some(block) = trial.reader.next_block(source)? else {
                break;
            };
            for (record, bytes) in block.records() {
                fault = fault.or(trial.add_record(record.parse(bytes, "")));
            }
            trial.blocks.push_back(block);
        }
        if trial.read > 0 {
            return Ok(Ok(trial));
        }
        Ok(Err(fault.unwrap_or_else(|| trial.describe_skipped())))
    }

    /// Returns why the reader returned no record, as a sentence fragment.
    fn describe_skipped(&self) -> String {
        let skipped = self.reader.tally().map(|tally| &tally.unknown);
        let skipped = skipped.into_iter().flatten();
        let skipped: Vec<String> = skipped
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        if skipped.is_empty() {
            return "it has no records".to_owned();
        }
        format!("not understood: {}", skipped.join(", "))
    }

    /// Parses the records of the preview, without a block of the reader: a native file may grow while it is open.
    fn check_preview(mut self, candidates: &FormatCandidates<'_>) -> Result<Self, String> {
        let mut fault = None;
        let complete = candidates.preview.records.iter().enumerate();
        // Only the end of the preview may cut a record.
        let complete = complete.filter(|(_, seen)| !seen.sniff.is_cut());
        for (at, seen) in complete {
            let parsed = parse_native(seen.bytes, at as u64 + 1, "");
            fault = fault.or(self.add_record(parsed));
        }
        // The preview ends within a record, or the last record of a small file is torn: the reader reports it.
        let is_whole_file = candidates.preview.bytes.len() < BLOCK_SIZE;
        let is_torn = candidates
            .preview
            .records
            .iter()
            .any(|seen| seen.sniff.is_cut());
        match fault {
            Some(why) if self.read == 0 && !(is_whole_file && is_torn) => Err(why),
            // A list that breaks off before its first element has no record.
            _ => Ok(self),
        }
    }

    /// Counts a record. Returns the reason if dicta did not read it.
    fn add_record(&mut self, parsed: Result<Transcript<'_>, BadRecord>) -> Option<String> {
        self.found += 1;
        match parsed {
            Ok(transcript)
                if UnreadContent::has_read_any(&transcript)
                    || UnreadContent::find(&transcript).kinds.is_empty() =>
            {
                self.read += 1;
                None
            }
            Ok(_) => Some("its messages have no readable part".to_owned()),
            Err(bad) => Some(bad.why),
        }
    }

    fn is_complete(&self) -> bool {
        self.read == self.found
    }

    fn is_better_than(&self, other: &Self) -> bool {
        // The product compares the shares without a division.
        u128::from(self.read) * u128::from(other.found)
            > u128::from(other.read) * u128::from(self.found)
    }

    fn into_chosen(self, has_rivals: bool) -> ChosenFormat {
        let confidence = if self.is_complete() && !has_rivals {
            DetectionConfidence::High
        } else if self.read * 2 >= self.found {
            DetectionConfidence::Medium
        } else {
            DetectionConfidence::Low
        };
        ChosenFormat {
            name: self.name,
            confidence,
            reader: self.reader,
            blocks: self.blocks,
        }
    }
}
