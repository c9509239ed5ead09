//! A file of transcripts without a workspace: the part that is listed, or the problem that prevents that.

use std::collections::HashSet;

use super::cells::{CellsState, EvalInfo, RunIndexMap};
use crate::event::CellKey;
use crate::model::{Digest, TranscriptRef};
use crate::run::TranscriptIds;

/// The state of the file. The first records become rows. The rest is counted, and listed when the cursor comes near.
#[derive(Debug, Default)]
pub(crate) struct OpenedFileState {
    /// The number of records that were listed or found invalid.
    pub(crate) listed_records: u64,
    /// The number of records counted so far.
    pub(crate) counted_records: u64,
    /// True if all records are counted.
    pub(crate) fully_counted: bool,
    /// The number of records that are not transcripts.
    pub(crate) invalid_records: u64,
    /// True while a page is being listed.
    pub(crate) is_listing: bool,
    /// The reason why nothing can be listed: a sentence.
    pub(crate) problem: Option<String>,
    /// True if the file only lacks a field mapping.
    pub(crate) needs_field_mapping: bool,
    /// Makes ids unique over all pages.
    pub(crate) ids: TranscriptIds,
}

/// The group of transcripts without a rubric.
pub(crate) const NO_RUBRIC_GROUP: &str = "transcripts";

impl CellsState {
    /// Adds rows for transcripts without a rubric: one group without decisions.
    pub(crate) fn add_unjudged_rows(&mut self, refs: &[TranscriptRef]) {
        // The group is added with the first page; later pages extend it.
        if self.evals.is_empty() {
            self.add_eval(EvalInfo {
                question: None,
                part_of: None,
                shots: HashSet::new(),
                rubric: String::new(),
                id: NO_RUBRIC_GROUP.to_owned(),
                eval_type: String::new(),
                // No eval is judged, so any digest is valid.
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
