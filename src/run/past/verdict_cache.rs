//! The cell cache: verdicts of past runs, decided again under today's `min_score`.
//!
//! A hit needs its tool calls' evidence to hold:
//! - **Frozen** evidence: each call of the entry is looked up there, and the answer must be the same text.
//! - **Live**: a page cannot be known to be unchanged without fetching it, which is what a cache is there to save. So the
//!   entry stands on the evidence that its run recorded, and the result names that run; `--refresh` asks anew. An entry
//!   holds only while a judge still has the tool, declared and doing what it did then.
//!
//! What a person changed is never recalled, nor is anything that is not a verdict or "not applicable".

use std::sync::Arc;

use crate::handlers::JudgedParams;
use crate::judge::{EvidenceKey, EvidenceLookup, EvidenceStore, apply_bounds};
use crate::model::{CellIx, CellResult, Digest};
use crate::record::{CacheEntry, CacheIndex, EvidenceUsed};
use crate::run::judges::pool::{VerdictCache, mark_as_cached};
use crate::run::judges::tool_sets::ToolDigests;

/// The cache over the runs of a store.
pub(in crate::run) struct RecordedVerdictCache {
    pub(in crate::run) index: CacheIndex,
    /// The judges' tools today.
    pub(in crate::run) tools: ToolDigests,
    /// Whose answers are used; `None`: live.
    pub(in crate::run) replayed_evidence: Option<Arc<dyn EvidenceStore>>,
}

impl VerdictCache for RecordedVerdictCache {
    fn find(&self, key: &Digest, params: &JudgedParams) -> Option<CellResult> {
        let entry: &CacheEntry = self.index.get(key)?;
        if entry.result.by_human
            || !entry
                .evidence
                .iter()
                .all(|used| self.is_evidence_valid(used))
        {
            return None;
        }
        let verdict = entry.result.verdict.as_deref()?;
        let again = apply_bounds(verdict, params);
        if again.outcome.is_error() {
            // It lacks what decides today, so it must be asked again.
            return None;
        }
        let result = CellResult {
            outcome: again.outcome,
            score: again.score,
            ..entry.result.clone()
        };
        Some(mark_as_cached(&entry.run, result))
    }
}

impl RecordedVerdictCache {
    fn is_evidence_valid(&self, used: &EvidenceUsed) -> bool {
        let mut same = self
            .tools
            .find_matching(&used.tool, used.tool_digest.as_ref());
        match &self.replayed_evidence {
            None => same.next().is_some(),
            Some(frozen) => same.any(|digest| {
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
