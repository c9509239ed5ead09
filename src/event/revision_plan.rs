//! The plan of a revision: every decision over the workspace's transcripts, in a compact form.
//!
//! Responsible for its JSON. A run whose options leave out decisions records it, so that the history knows what is pending.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::model::Digest;

/// Every decision that a revision plans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionPlan {
    /// The transcripts with decisions, in plan order.
    pub transcripts: Vec<PlannedTranscript>,
    /// The distinct lists of decisions. Most transcripts share one list.
    pub lists: Vec<Vec<PlannedDecision>>,
    /// The position of each list, for [`RevisionPlan::push`].
    #[serde(skip)]
    list_positions: HashMap<Vec<PlannedDecision>, u32>,
}

/// A transcript of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTranscript {
    /// The id.
    pub id: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its decisions: an index into [`RevisionPlan::lists`].
    pub list: u32,
}

/// A decision of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlannedDecision {
    /// The eval: an index into [`super::RunHeader::evals`].
    pub eval: u32,
    /// The 0-based position of the judged message, for evals on messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<u32>,
}

impl RevisionPlan {
    /// Adds a transcript with its decisions in plan order.
    pub fn push(&mut self, id: &str, digest: &Digest, decisions: Vec<PlannedDecision>) {
        let list = if let Some(at) = self.list_positions.get(&decisions) {
            *at
        } else {
            let at = u32::try_from(self.lists.len()).expect("fewer than 2^32 lists");
            self.lists.push(decisions.clone());
            self.list_positions.insert(decisions, at);
            at
        };
        self.transcripts.push(PlannedTranscript {
            id: id.to_owned(),
            digest: digest.clone(),
            list,
        });
    }

    /// Returns the decisions of a transcript; none if the plan is damaged.
    pub fn decisions(&self, transcript: &PlannedTranscript) -> &[PlannedDecision] {
        self.lists
            .get(transcript.list as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the plan as the JSON of [`super::EventKind::RevisionPlanned`].
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
