//! The counts of a run's transcript files: records that dicta did not understand, and files that it could not read.
//!
//! Responsible for the same numbers as `dicta check` reports. Does not emit events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::worker::WorkedRecord;
use crate::event::ReadingTotals;
use crate::model::pluralize;
use crate::run::inputs::feed::FileReport;
use crate::transcript::{ReadCounts, ReadTally};

/// The number of files whose unread content a run describes; the run only counts further ones.
const MAX_DESCRIBED_FILES: usize = 10;

/// The counts by file.
#[derive(Debug, Default)]
pub(in crate::run) struct FileCounts(BTreeMap<PathBuf, FileCount>);

#[derive(Debug, Default)]
struct FileCount {
    counts: ReadCounts,
    tally: Option<ReadTally>,
    is_broken: bool,
}

impl FileCount {
    /// Returns the number of records, and how many of them were not understood.
    fn records(&self) -> (u64, u64) {
        self.counts.records(self.tally.as_ref())
    }

    /// Returns true if the file could not be read, or holds records and none of them is a transcript.
    fn is_broken(&self) -> bool {
        self.is_broken || (self.counts.transcripts == 0 && self.counts.bad_records > 0)
    }

    /// Describes what was not read, other than bad records, which have notes of their own.
    fn describe_unread(&self) -> Option<String> {
        let unknown = self.tally.iter().flat_map(|tally| &tally.unknown);
        let kinds: Vec<String> = self
            .counts
            .unread
            .iter()
            .chain(unknown)
            .take(MAX_DESCRIBED_FILES)
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let tally = self.tally.as_ref();
        (!kinds.is_empty()).then(|| self.counts.describe_missed(tally, "", &kinds))
    }
}

impl FileCounts {
    /// Counts a record of a file.
    pub(in crate::run) fn add_record(&mut self, path: &Path, worked: &WorkedRecord) {
        // A lookup before the insertion avoids a copy of the path for every record.
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), FileCount::default());
        }
        let Some(file) = self.0.get_mut(path) else {
            return;
        };
        match worked {
            WorkedRecord::Bad(_) => file.counts.add_bad_record(),
            WorkedRecord::Transcript(item) => {
                if let Some(unread) = &item.unread {
                    file.counts.add_transcript(unread);
                }
            }
        }
    }

    /// Adds the end of a file.
    pub(in crate::run) fn add_report(&mut self, report: FileReport) {
        let file = self.0.entry(report.path).or_default();
        file.is_broken |= report.error.is_some();
        file.tally = report.tally.or(file.tally.take());
    }

    /// Returns a sentence for each of the first files with unread content, and one for the others.
    pub(in crate::run) fn describe_unread(&self) -> Vec<String> {
        let described: Vec<String> = self
            .0
            .iter()
            .filter_map(|(path, file)| {
                Some(format!("{}: {}", path.display(), file.describe_unread()?))
            })
            .collect();
        let more = described.len().saturating_sub(MAX_DESCRIBED_FILES);
        let mut shown: Vec<String> = described.into_iter().take(MAX_DESCRIBED_FILES).collect();
        if more > 0 {
            let have = if more == 1 { "has" } else { "have" };
            shown.push(format!(
                "{} {have} records that were not understood; `dicta check` lists them",
                pluralize(more, "more file")
            ));
        }
        shown
    }

    /// Returns the totals over all files.
    pub(in crate::run) fn totals(&self) -> ReadingTotals {
        let mut totals = ReadingTotals::default();
        for file in self.0.values() {
            let (records, missed) = file.records();
            totals.records += records;
            totals.not_understood += missed;
            totals.bad_records += file.counts.bad_records;
            totals.broken_files += u64::from(file.is_broken());
        }
        totals
    }
}
