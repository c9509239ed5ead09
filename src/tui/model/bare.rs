//! A bare file of transcripts: how much of it is listed, and what stands instead of a list.

use super::cells::{Cells, EvalInfo, Names};
use crate::event::CellKey;
use crate::model::{Digest, TranscriptRef};
use crate::run::TranscriptIds;

/// See the module. Rows are made of the first records; the rest is counted, and listed when one comes near.
#[derive(Debug, Default)]
pub(crate) struct Bare {
    /// Records whose transcripts are listed, or that were found bad.
    pub(crate) listed: u64,
    /// Records of the file, as far as they are counted.
    pub(crate) counted: u64,
    /// Whether all are counted.
    pub(crate) whole: bool,
    /// Records that are no transcripts.
    pub(crate) bad: u64,
    /// More is being listed.
    pub(crate) listing: bool,
    /// Why nothing can be listed: a sentence.
    pub(crate) problem: Option<String>,
    /// A map is all that it lacks.
    pub(crate) mappable: bool,
    /// Makes ids unique over all pages.
    pub(crate) ids: TranscriptIds,
}

/// The group that transcripts without a rubric stand in.
pub(crate) const GROUP: &str = "transcripts";

impl Cells {
    /// Rows for transcripts that no rubric is about: one group, nothing decided.
    pub(crate) fn list_bare(&mut self, refs: &[TranscriptRef]) {
        if self.evals.is_empty() {
            self.new_eval(EvalInfo {
                rubric: String::new(),
                id: GROUP.to_owned(),
                kind: String::new(),
                digest: Digest::hash_bytes(b""),
                judged: false,
                groups: Vec::new(),
                decides: std::sync::Arc::default(),
            });
        }
        let names = Names {
            evals: vec![0],
            ..Names::default()
        };
        let key = CellKey {
            eval: 0,
            message: None,
            judge: None,
            repeat: None,
        };
        for transcript in refs {
            self.plan(&names, transcript, &[key]);
        }
        self.settle();
    }
}
