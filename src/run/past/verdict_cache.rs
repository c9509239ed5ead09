//! The verdict cache: verdicts of earlier runs, rescored under the current bounds.
//!
//! Responsible for the validity of a recorded verdict. Does not read logs (see [`CacheIndex`]).
//!
//! A cached verdict is valid only if its tool responses are:
//! - With **recorded** tool responses, each call must have a recorded response with the same text.
//! - With **live** tools, a judge must still have each tool, with the same declaration and behavior. dicta doesn't
//!   fetch the pages again, because the cache exists to avoid that. The result names the run that fetched them;
//!   `--refresh` judges again. A local database is an exception: dicta compares its version at no cost. Recorded
//!   responses of another installation, or changed ones, are never those of a live tool.
//!
//! A verdict that rests on a failed tool call is never used: the tool may work now. A call without a recorded response
//! counts as failed, except if the current recorded responses lack it, too.
//!
//! A verdict that the judge gave early is never used: a budget limit was near, so the judge had no further turn.
//!
//! If the same question occurs twice, for example in two transcripts with the same text, each cell keeps its own verdict.
//!
//! Results that a person changed are never used. Results other than verdicts and `not_applicable` aren't either.

use std::sync::Arc;

use crate::handlers::JudgedParams;
use crate::judge::{EvidenceKey, EvidenceLookup, EvidenceStore};
use crate::model::{CellIx, CellName, CellResult, Digest};
use crate::record::{CacheEntry, CacheIndex, EvidenceUsed};
use crate::run::judges::pool::{VerdictCache, decide_again, mark_as_cached};
use crate::run::judges::tool_sets::ToolDigests;

/// The verdict cache over the runs of a store.
pub(in crate::run) struct RecordedVerdictCache {
    pub(in crate::run) index: CacheIndex,
    /// The current tools of the judges.
    pub(in crate::run) tools: ToolDigests,
    /// The recorded tool responses; `None` if tools are live.
    pub(in crate::run) replayed_evidence: Option<Arc<dyn EvidenceStore>>,
}

impl VerdictCache for RecordedVerdictCache {
    fn find(&self, key: &Digest, cell: &CellName, params: &JudgedParams) -> Option<CellResult> {
        let entry: &CacheEntry = self.index.find(key, cell)?;
        // A person's change is a decision about one run and must not spread to others.
        if entry.result.by_human
            || !entry
                .evidence
                .iter()
                .all(|used| self.is_evidence_valid(used))
        {
            return None;
        }
        let verdict = entry.result.verdict.as_deref()?;
        // The cache key excludes decision settings, so decide again under the current ones.
        let result = decide_again(&entry.result, verdict, params);
        if result.outcome.is_error() {
            // The recorded verdict lacks a value that the current settings need, so the judge must be called again.
            return None;
        }
        Some(mark_as_cached(&entry.run, result))
    }
}

impl RecordedVerdictCache {
    fn is_evidence_valid(&self, used: &EvidenceUsed) -> bool {
        // A judge may have several tools of one name; one with the recorded digest is enough.
        let mut same = self
            .tools
            .find_matching(&used.tool, used.tool_digest.as_ref());
        match &self.replayed_evidence {
            // A local file that changed since gives another response.
            None => {
                !used.is_missing
                    && used.is_verified
                    && same
                        .any(|digest| self.tools.data_version(digest) == used.data_version.as_ref())
            }
            Some(frozen) => same.any(|digest| {
                // No cell of this run makes the look-up, so its number is one that no cell has.
                let key = EvidenceKey::new(&used.tool, digest, &used.canonical_args);
                match frozen.get(CellIx(u32::MAX), &key) {
                    EvidenceLookup::Found {
                        response: answer, ..
                    }
                    | EvidenceLookup::MissingError(answer) => {
                        Digest::hash_bytes(answer.text.as_bytes()) == used.response_digest
                    }
                    EvidenceLookup::Miss | EvidenceLookup::MissingEndsCell(_) => false,
                }
            }),
        }
    }
}
