//! `--sample N --seed S`: a random sample of N transcripts, chosen by a hash of seed and id.
//!
//! Responsible for the choice. The same seed chooses the same transcripts, and adding or removing a transcript
//! changes at most one of the others. One pass over all records keeps N of them and a hash of each id.

use std::collections::BinaryHeap;
use std::sync::Arc;

use super::feed::{
    ChosenRecord, ChosenRecords, FileFeed, FileReport, RecordChunk, ResumePoint, TranscriptFeed,
    TranscriptFiles,
};
use super::ids::TranscriptIds;
use crate::run::plan::RunPlan;
use crate::transcript::TranscriptError;

/// The size and the seed of a random sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleSpec {
    /// The number of transcripts, of those with at least one selected cell.
    pub size: u64,
    /// The seed; another seed chooses other transcripts.
    pub seed: u64,
}

impl SampleSpec {
    /// Returns a transcript's rank; the lowest ranks are chosen.
    fn rank(self, id: &str) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(id.as_bytes());
        let hash = hasher.finalize();
        // Eight bytes of the hash make equal ranks improbable.
        let (head, _) = hash.as_bytes().split_at(8);
        u64::from_le_bytes(head.try_into().expect("eight bytes"))
    }

    /// Chooses records of a feed that returns all records.
    pub(in crate::run) fn choose(
        self,
        plan: &RunPlan,
        mut feed: impl TranscriptFeed,
    ) -> Result<ChosenRecords, TranscriptError> {
        let mut ids = TranscriptIds::default();
        let mut chosen: BinaryHeap<(u64, u64, String)> = BinaryHeap::new();
        let mut number = 0;
        while let Some(chunk) = feed.next_chunk()? {
            let RecordChunk { bytes, records, .. } = chunk;
            for record in records {
                let at = number;
                number += 1;
                let bytes = &bytes[record.location.byte_range.clone()];
                let Ok(transcript) = record.parse(bytes) else {
                    continue;
                };
                // Number ids before leaving records out, so that ids are those of a run over all records.
                let (id, _) = ids.make_unique(transcript.id.to_string());
                // The sample counts only transcripts with at least one selected cell.
                if plan.tasks(&transcript, bytes).is_empty() {
                    continue;
                }
                // The heap keeps the lowest ranks: `pop` removes the highest.
                chosen.push((self.rank(&id), at, id));
                if chosen.len() as u64 > self.size {
                    chosen.pop();
                }
            }
        }
        let mut picked: Vec<ChosenRecord> = chosen
            .into_iter()
            .map(|(_, number, id)| ChosenRecord { number, id })
            .collect();
        // The feed searches by number, so sort by it.
        picked.sort_unstable();
        Ok(Arc::from(picked))
    }
}

/// A feed of the chosen records. It chooses them at the first call.
pub(in crate::run) struct SampledFeed {
    sample: SampleSpec,
    plan: Arc<RunPlan>,
    files: TranscriptFiles,
    resume_point: Option<ResumePoint>,
    chosen: Option<FileFeed>,
}

impl SampledFeed {
    /// Creates a feed of a sample of `files`, without the records up to `after`.
    pub(in crate::run) fn new(
        sample: SampleSpec,
        plan: Arc<RunPlan>,
        files: TranscriptFiles,
        resume_point: Option<ResumePoint>,
    ) -> Self {
        Self {
            sample,
            plan,
            files,
            resume_point,
            chosen: None,
        }
    }
}

impl TranscriptFeed for SampledFeed {
    fn next_chunk(&mut self) -> Result<Option<RecordChunk>, TranscriptError> {
        let feed = match &mut self.chosen {
            Some(feed) => feed,
            chosen @ None => {
                // Choose at the first call and not earlier, because reading all files may take long.
                let all = FileFeed::new(self.files.clone(), None);
                let picked = self.sample.choose(&self.plan, all)?;
                let files = std::mem::take(&mut self.files);
                let feed = FileFeed::new(files, Some(picked));
                chosen.insert(feed.after(self.resume_point.take()))
            }
        };
        feed.next_chunk()
    }

    fn take_file_reports(&mut self) -> Vec<FileReport> {
        self.chosen
            .as_mut()
            .map(TranscriptFeed::take_file_reports)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_chooses_the_same_transcripts() {
        let order = |seed: u64| {
            let sample = SampleSpec { size: 3, seed };
            let mut ids: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
            ids.sort_by_key(|id| sample.rank(id));
            ids.truncate(3);
            ids
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}
