//! The decisions that two states have in common.
//!
//! Responsible for pairing them. Does not compare their verdicts.

use crate::record::{Correspondence, State, StateDecision};

/// The pairing of two states.
pub(super) struct MatchedStates<'s> {
    before: &'s State,
    after: &'s State,
    matched: Correspondence,
}

impl<'s> MatchedStates<'s> {
    pub(super) fn new(before: &'s State, after: &'s State) -> Self {
        Self {
            before,
            after,
            matched: Correspondence::find(before, after),
        }
    }

    /// Returns the position in the older state of an eval of the newer one.
    pub(super) fn old_eval(&self, at: usize) -> Option<usize> {
        self.matched.evals.get(at).copied().flatten()
    }

    /// Returns the decision of the older state that a decision of the newer one continues.
    pub(super) fn old_decision(&self, decision: &StateDecision) -> Option<&'s StateDecision> {
        let eval = self.old_eval(decision.eval as usize)?;
        let transcript = self.old_transcript(decision)?;
        self.before.find(eval, transcript, decision.message)
    }

    /// Returns the transcript in the older state of a decision of the newer one.
    pub(super) fn old_transcript(&self, decision: &StateDecision) -> Option<u32> {
        let transcripts = &self.matched.transcripts;
        transcripts.get(decision.transcript as usize).copied()?
    }

    /// Returns the pairs of an eval of the newer state that are decided in both.
    pub(super) fn pairs(
        &self,
        eval: usize,
    ) -> impl Iterator<Item = (&'s StateDecision, &'s StateDecision)> {
        let decisions = self.after.evals.get(eval).map(|eval| &eval.decisions);
        let decisions = decisions.into_iter().flatten();
        decisions.filter_map(|new| Some((self.old_decision(new)?, new)))
    }
}
