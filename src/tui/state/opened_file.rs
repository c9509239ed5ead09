//! A bare file of transcripts: how much of it is listed, and what stands instead of a list.

use super::cells::{CellsState, EvalInfo, RunIndexMap};
use crate::event::CellKey;
use crate::model::{Digest, TranscriptRef};
use crate::run::TranscriptIds;

/// See the module. Rows are made of the first records; the rest is counted, and listed when one comes near.
#[derive(Debug, Default)]
pub(crate) struct OpenedFileState {
    /// Records whose transcripts are listed, or that were found bad.
    pub(crate) listed_records: u64,
    /// Records of the file, as far as they are counted.
    pub(crate) counted_records: u64,
    /// Whether all are counted.
    pub(crate) fully_counted: bool,
    /// Records that are no transcripts.
    pub(crate) invalid_records: u64,
    /// More is being listed.
    pub(crate) is_listing: bool,
    /// Why nothing can be listed: a sentence.
    pub(crate) problem: Option<String>,
    /// A map is all that it lacks.
    pub(crate) needs_field_mapping: bool,
    /// Makes ids unique over all pages.
    pub(crate) ids: TranscriptIds,
}

/// The group that transcripts without a rubric stand in.
pub(crate) const NO_RUBRIC_GROUP: &str = "transcripts";

impl CellsState {
    /// Rows for transcripts that no rubric is about: one group, nothing decided.
    pub(crate) fn add_unjudged_rows(&mut self, refs: &[TranscriptRef]) {
        if self.evals.is_empty() {
            self.add_eval(EvalInfo {
                rubric: String::new(),
                id: NO_RUBRIC_GROUP.to_owned(),
                eval_type: String::new(),
                digest: Digest::hash_bytes(b""),
                judged: false,
                groups: Vec::new(),
                decision_rule: std::sync::Arc::default(),
            });
        }
        let names = RunIndexMap {
            evals: vec![0],
            ..RunIndexMap::default()
        };
        let key = CellKey {
            eval: 0,
            message: None,
            judge: None,
            repeat: None,
        };
        for transcript in refs {
            self.add_outlined_cells(&names, transcript, &[key]);
        }
        self.update_shown();
    }
}
