//! The trace screen: the steps of one judge trace as a list, with the details of the selected step.
//!
//! Responsible for what is selected, folded and found. Does not draw and does not read: see `content::trace_steps` and
//! `update/trace_screen.rs`.

use std::collections::{BTreeMap, HashSet};

use super::agent_comparison::AgentComparison;
use super::cells::SlotId;
use super::follow_ups::FollowUps;
use super::judge_trace::{CallPosition, RecordedCellState, RequestState};
use super::readable_request::ReadableRequest;
use crate::event::{StepId, StepPart, TraceStep};
use crate::judge::VerdictClaim;
use crate::model::RunId;
use crate::tui::widget::flow::ScrollState;

/// The range of [`TraceScreen::detail_level`].
pub(crate) const DETAIL_LEVELS: std::ops::RangeInclusive<u8> = 1..=6;
/// The level at which the blocks of a prompt are unfolded.
pub(crate) const LEVEL_OF_BLOCKS: u8 = 3;
/// The level at which dicta's own frame of a prompt is unfolded.
pub(crate) const LEVEL_OF_FRAME: u8 = 4;

/// The state of the trace screen for the focused cell.
#[derive(Debug, Clone)]
pub(crate) struct TraceScreen {
    /// The selected step; `None` follows the newest one.
    pub(crate) selected: Option<StepId>,
    /// The steps that are folded or unfolded contrary to their default.
    pub(crate) toggled: HashSet<StepId>,
    /// The number of levels that the details unfold.
    pub(crate) detail_level: u8,
    pub(crate) steps: ScrollState,
    pub(crate) details: ScrollState,
    /// The readable requests by turn.
    pub(crate) requests: BTreeMap<usize, RequestState>,
    pub(crate) claims: FoundClaims,
    /// The claim that `c` selected last.
    pub(crate) selected_claim: Option<usize>,
    /// The follow-up questions about the verdict.
    pub(crate) follow_ups: FollowUps,
    /// The agent's similar call for a tool response.
    pub(crate) agent: Option<AgentSearch>,
    /// The other slot of the decision that is shown next to this one.
    pub(crate) other_slot: Option<u16>,
    /// The recorded trace of the other slot, if its run is not in memory.
    pub(crate) other: RecordedCellState,
}

impl Default for TraceScreen {
    fn default() -> Self {
        Self {
            selected: None,
            toggled: HashSet::new(),
            detail_level: 2,
            steps: ScrollState::tail(),
            details: ScrollState::top(),
            requests: BTreeMap::new(),
            claims: FoundClaims::default(),
            selected_claim: None,
            follow_ups: FollowUps::default(),
            agent: None,
            other_slot: None,
            other: RecordedCellState::default(),
        }
    }
}

/// The claims of the shown verdict, and what they were found in.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FoundClaims {
    /// The search that they belong to; `None` before the first one.
    pub(crate) key: Option<ClaimsKey>,
    pub(crate) claims: Vec<VerdictClaim>,
}

/// The inputs of a search for claims. When they change, dicta searches again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClaimsKey {
    pub(crate) slot: SlotId,
    pub(crate) run: Option<RunId>,
    /// The reasoning of the verdict.
    pub(crate) reasoning: String,
    /// True if the transcript is loaded.
    pub(crate) has_document: bool,
    /// True if the prompt of the first turn is loaded, which contains the rubric.
    pub(crate) has_rubric: bool,
    /// The number of tool responses that are loaded.
    pub(crate) responses: usize,
}

/// The result of the search for the agent's call that is similar to a call of the judge.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentSearch {
    pub(crate) run: Option<RunId>,
    pub(crate) position: CallPosition,
    /// True if the transcript was loaded.
    pub(crate) has_document: bool,
    /// True if the judge got the response; false while a person can still edit it.
    pub(crate) is_final: bool,
    pub(crate) found: Option<AgentComparison>,
}

impl TraceScreen {
    /// Returns the state for another cell. The detail level stays, because it is the user's choice.
    pub(crate) fn for_another_cell(&self) -> Self {
        Self {
            detail_level: self.detail_level,
            ..Self::default()
        }
    }

    /// Returns true if the body of a step is shown in the list.
    pub(crate) fn is_unfolded(&self, id: StepId) -> bool {
        // Texts of the judge are short and say the most; requests and responses are in the details.
        let by_default = matches!(
            id.part,
            StepPart::Reasoning | StepPart::Reply | StepPart::Verdict
        );
        by_default != self.toggled.contains(&id)
    }

    /// Returns the readable request of a turn, if it is loaded for this cell.
    pub(crate) fn request(&self, turn: usize) -> Option<&ReadableRequest> {
        match self.requests.get(&turn)? {
            RequestState::Loaded(request) => Some(request),
            _ => None,
        }
    }

    /// Returns the selected step, or the newest one.
    pub(crate) fn find_selected(&self, steps: &[TraceStep]) -> Option<usize> {
        let chosen = self
            .selected
            .and_then(|id| steps.iter().position(|step| step.id == id));
        chosen.or_else(|| steps.len().checked_sub(1))
    }
}
