//! The state of a revision: every planned decision with the cells that it rests on.
//!
//! Responsible for the shape of states and for the names of their decisions. Does not compute them.

use std::sync::Arc;

use super::RecordedCell;
use crate::event::{EvalSpec, RunHeader};
use crate::model::{CellName, Digest, LabelQuery, Outcome, TranscriptRef};

/// Every decision that a revision plans. States share what they have in common, so a clone is cheap.
#[derive(Debug, Clone)]
pub struct State {
    /// The header that describes the revision.
    pub header: Arc<RunHeader>,
    /// The transcripts, in plan order.
    pub transcripts: Arc<Vec<StateTranscript>>,
    /// The decisions of each eval of the header, at the same positions.
    pub evals: Vec<Arc<EvalDecisions>>,
    /// The identity of each eval of the header, at the same positions. Empty for a state that is not of a history.
    pub identities: Vec<EvalIdentity>,
}

/// The identity of an eval in all states of one history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalIdentity {
    /// The number that each state gives the eval, also after a rename or an edit; [`Self::UNKNOWN`] for an eval that no
    /// state has.
    pub number: u32,
    /// The name in the newest state that has the eval, if it is another one. A user may have moved the labels there.
    pub later_name: Option<EvalPath>,
}

impl EvalIdentity {
    /// The number of an eval that the history does not know. It corresponds to no other eval.
    pub const UNKNOWN: u32 = 0;
}

/// The ids of a rubric and an eval.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EvalPath {
    /// The id of the rubric.
    pub rubric: String,
    /// The id of the eval.
    pub eval: String,
}

/// A transcript of a state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StateTranscript {
    /// The id.
    pub id: Arc<str>,
    /// The digest of its bytes.
    pub digest: Digest,
}

impl From<&TranscriptRef> for StateTranscript {
    fn from(transcript: &TranscriptRef) -> Self {
        Self {
            id: transcript.id.as_str().into(),
            digest: transcript.digest.clone(),
        }
    }
}

/// The decisions of one eval, sorted by transcript and message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalDecisions {
    /// The decisions.
    pub decisions: Vec<StateDecision>,
}

/// A decision of a state.
#[derive(Debug, Clone, PartialEq)]
pub struct StateDecision {
    /// The transcript: an index into [`State::transcripts`].
    pub transcript: u32,
    /// The eval: an index into [`RunHeader::evals`].
    pub eval: u32,
    /// The 0-based position of the judged message, for evals on messages.
    pub message: Option<u32>,
    /// The outcome, or that it is pending.
    pub standing: DecisionStanding,
    /// The cells that the decision rests on, in the order of judges and repeats. Empty while it is pending.
    pub cells: Box<[RecordedCell]>,
    /// The judge and repeat of each of these cells.
    pub slots: Box<[CellSlot]>,
    /// The newest failed or cancelled attempt to judge the decision again, if it is newer than the verdict.
    pub failed_rerun: Option<RecordedCell>,
    /// `true` if a person edited one of the judge traces, so that the decision enters no statistics. Only a state of one
    /// run has such decisions; the history has none.
    pub edited: bool,
}

/// The judge and repeat of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellSlot {
    /// The judge: an index into [`RunHeader::judges`] of the state's header. `None` without a judge.
    pub judge: Option<u32>,
    /// The repeat, from 1; `None` without repeats.
    pub repeat: Option<u32>,
}

/// The status of a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DecisionStanding {
    /// No run has judged the question of this revision completely.
    Pending,
    /// The cells decide it. The outcome may be an error.
    Decided {
        /// The outcome.
        outcome: Outcome,
        /// The score, if the eval type has scores.
        score: Option<f64>,
    },
}

impl StateDecision {
    /// Returns the outcome; `None` while the decision is pending.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.standing {
            DecisionStanding::Pending => None,
            DecisionStanding::Decided { outcome, .. } => Some(outcome),
        }
    }

    /// Returns pass or fail; `None` for a pending decision and for other outcomes.
    pub fn passed(&self) -> Option<bool> {
        self.outcome()?.passed()
    }

    /// Returns pass or fail for statistics; `None` also for a decision that a person edited.
    pub fn judged_verdict(&self) -> Option<bool> {
        self.passed().filter(|_| !self.edited)
    }

    /// Returns the score, if there is one.
    pub fn score(&self) -> Option<f64> {
        match self.standing {
            DecisionStanding::Pending => None,
            DecisionStanding::Decided { score, .. } => score,
        }
    }

    /// Returns the cells that it rests on, and the failed attempt.
    pub fn all_cells(&self) -> impl Iterator<Item = RecordedCell> {
        self.cells.iter().copied().chain(self.failed_rerun)
    }
}

impl State {
    /// Returns all decisions, by eval, then transcript and message.
    pub fn decisions(&self) -> impl Iterator<Item = &StateDecision> {
        self.evals.iter().flat_map(|eval| &eval.decisions)
    }

    /// Returns the number of planned decisions.
    pub fn len(&self) -> usize {
        self.evals.iter().map(|eval| eval.decisions.len()).sum()
    }

    /// Returns `true` if the revision plans nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the eval of a decision.
    pub fn eval(&self, decision: &StateDecision) -> &EvalSpec {
        &self.header.evals[decision.eval as usize]
    }

    /// Returns the id of the rubric of an eval.
    pub fn rubric_id(&self, eval: &EvalSpec) -> &str {
        let rubric = self.header.rubrics.get(eval.rubric as usize);
        rubric.map_or("", |rubric| rubric.id.as_str())
    }

    /// Returns the transcript of a decision.
    pub fn transcript(&self, decision: &StateDecision) -> &StateTranscript {
        &self.transcripts[decision.transcript as usize]
    }

    /// Returns the query for the label of a decision; `None` for a decision about one message, because a label is about
    /// a whole transcript. A decision that a person edited has none either: it enters no label statistics.
    pub fn label_query(&self, decision: &StateDecision) -> Option<LabelQuery<'_>> {
        if decision.message.is_some() || decision.edited {
            return None;
        }
        let eval = self.eval(decision);
        let transcript = self.transcript(decision);
        Some(LabelQuery {
            transcript: &transcript.id,
            transcript_digest: Some(&transcript.digest),
            rubric: self.rubric_id(eval),
            eval: &eval.id,
            question: eval.question.as_ref(),
            later_name: self
                .later_name(decision)
                .map(|name| (name.rubric.as_str(), name.eval.as_str())),
            is_shot: eval.is_shot(&transcript.id),
        })
    }

    /// Returns the name of a decision's eval in the newest state, if it is another one.
    pub fn later_name(&self, decision: &StateDecision) -> Option<&EvalPath> {
        let identity = self.identities.get(decision.eval as usize)?;
        identity.later_name.as_ref()
    }

    /// Returns the name of a decision, without judge and repeat.
    pub fn name(&self, decision: &StateDecision) -> CellName {
        let eval = self.eval(decision);
        CellName {
            transcript: self.transcript(decision).id.to_string(),
            rubric: self.rubric_id(eval).to_owned(),
            eval: eval.id.clone(),
            message: decision.message,
            judge: None,
            repeat: None,
        }
    }

    /// Finds a decision by the position of its eval, its transcript and message.
    pub fn find(
        &self,
        eval: usize,
        transcript: u32,
        message: Option<u32>,
    ) -> Option<&StateDecision> {
        let decisions = &self.evals.get(eval)?.decisions;
        let at = decisions
            .binary_search_by_key(&(transcript, message), |one| (one.transcript, one.message))
            .ok()?;
        Some(&decisions[at])
    }
}
