//! The cells pane: all decisions, their states, and the visible rows in order.
//!
//! Owns the rows and their selection. Three sources fill them with the same facts: the outline, the newest verdicts
//! of past runs, and live or replayed runs. Does not contain traces: a row refers to the run with its trace.
//!
//! - [`name_index`]: evals, judges and transcripts of the newest header; stale verdicts.
//! - [`labels`]: labels, and the verdicts that a blind screen hides.
//! - [`past_verdicts`]: the newest verdicts, for rows that no run of this session touched.
//! - [`run_cells`]: cells that start, end, or stay undecided in a cancelled run; flips. Of two runs with the same
//!   cell, the newer one wins.
//! - [`failed_reruns`]: attempts to judge a row again that ended without a verdict.
//! - [`family`]: the other runs of the family of an opened recording.
//! - [`votes`]: the decision of a row.
//! - [`order`]: groups with their counts, sorted and filtered rows. Only changed groups are sorted again.
//! - [`estimate`]: the size and duration of judging some rows again.
//! - [`filter`]: the language of the filter. [`completion`]: what can continue it. [`tags`]: the tags that it tests.
//! - [`cursor`]: movement of the cursor.
//! - [`queue`]: copies of an eval's decisions for queues and figures. [`wholes`]: those of evals that parts replace.

pub(crate) mod completion;
mod cursor;
mod estimate;
mod failed_reruns;
mod family;
pub(crate) mod filter;
mod labels;
mod name_index;
mod order;
mod past_verdicts;
mod queue;
mod run_cells;
mod second_opinions;
mod tags;
mod votes;
mod wholes;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::event::{GatePoint, RunHeader};
use crate::model::{
    CauseSet, CellIx, CellName, CellNameRef, Decision, Digest, Doubt, EvalWhole, LabelDrift,
    Labels, Millis, Outcome, Panel, RunId, ScoreBounds, TranscriptRef, UndecidedPanel, VoteParams,
};
use crate::record::{EvalPath, NewestVerdicts, NoiseRecords};
use crate::tui::history_view::Shared;
use crate::tui::widget::list::ListState;
pub(crate) use failed_reruns::FailedRerun;
pub(crate) use family::RecordedFamily;
use filter::CellsFilter;
pub(crate) use labels::{LabelValue, LabelledScore};
pub(crate) use name_index::{VerdictInputs, hash_digest};
pub(crate) use order::{EvalGroup, RowCounts, RowStatus};
pub(crate) use queue::FigureDecision;
pub(crate) use run_cells::compute_label_agreement;

/// A decision: a row of the pane. Ids are dense and stable for the life of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RowId(pub(crate) u32);

/// A cell of the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotId {
    pub(crate) row: RowId,
    /// The slot number in the row: see [`CellsRow::slot`].
    pub(crate) slot: u16,
}

/// The indexes of a run's header, mapped to those of the pane.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunIndexMap {
    /// The pane's eval for each eval of the header.
    pub(crate) evals: Vec<u32>,
    /// The pane's judge for each judge of the header.
    pub(crate) judges: Vec<u32>,
    /// The hash of each eval of the header.
    pub(crate) eval_hashes: Vec<u64>,
    /// The hash of each judge of the header.
    pub(crate) judge_hashes: Vec<u64>,
    /// True if the run calls another judge than the rubrics name.
    pub(crate) second_opinion: bool,
    /// True if the run measures noise. Its verdicts decide nothing.
    pub(crate) measures_noise: bool,
    /// True if the run continues a recorded judge trace.
    pub(crate) is_branch: bool,
    /// The trace that the run continues, if its header names it.
    pub(crate) branch: Option<Arc<BranchOrigin>>,
}

/// The trace that a branch continues, and the change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BranchOrigin {
    /// The run with the trace.
    pub(crate) run: RunId,
    /// The number of the cell in that run, if the recording names it.
    pub(crate) cell: Option<CellIx>,
    /// The step and the change: `1.response.1, answer changed`.
    pub(crate) point: String,
}

/// An eval as the newest header describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EvalInfo {
    pub(crate) rubric: String,
    pub(crate) id: String,
    pub(crate) eval_type: String,
    pub(crate) digest: Digest,
    /// The digest of the question that labels answer, if it is known.
    pub(crate) question: Option<Digest>,
    /// The eval that this one replaces together with others, if any. Its labels are about all of them.
    pub(crate) part_of: Option<EvalWhole>,
    /// The transcripts that its prompts show as examples, and copies of them.
    pub(crate) shots: HashSet<String>,
    pub(crate) judged: bool,
    pub(crate) groups: Vec<String>,
    pub(crate) decision_rule: Arc<DecisionRule>,
}

/// The rule that decides the cells of an eval. Judges are indexes into [`CellsState::judges`].
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct DecisionRule {
    /// The panel, if several judges decide.
    pub(crate) panel: Option<Panel>,
    pub(crate) bounds: ScoreBounds,
    pub(crate) repeat: u32,
    /// See [`VoteParams::needs_all_repeats`].
    pub(crate) needs_all_repeats: bool,
}

impl DecisionRule {
    pub(super) fn vote_terms(&self) -> VoteParams<'_> {
        VoteParams {
            rule: self.panel.as_ref().map(|panel| panel.rule),
            judges: self.panel.as_ref().map_or(&[], |panel| &panel.judges),
            bounds: self.bounds,
            repeat: self.repeat,
            needs_all_repeats: self.needs_all_repeats,
        }
    }

    /// Returns true if the judge is a member of the panel.
    fn is_panel_judge(&self, judge: Option<u32>) -> bool {
        let panel = self.panel.as_ref().zip(judge);
        panel.is_some_and(|(panel, judge)| panel.judges.contains(&judge))
    }
}

/// A cell of one of the pane's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunCellIx {
    /// The index of the run in the pane's runs.
    pub(crate) run: u32,
    /// The number of the cell in the run.
    pub(crate) cell: CellIx,
}

/// One cell of a decision.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RowSlot {
    /// The index into [`CellsState::judges`], for judge cells.
    pub(crate) judge: Option<u32>,
    pub(crate) repeat: Option<u32>,
    /// The run of the newest state, as an index into [`CellsState::runs`], and the cell's number in it.
    pub(crate) run_cell: Option<RunCellIx>,
    /// The run with the trace, if the result came from a past run.
    pub(crate) cached_from: Option<RunId>,
    pub(crate) state: RowSlotState,
    /// True if its judge called tools, so that all trace panes have content.
    pub(crate) used_tools: bool,
    /// The duration of the judging; 0 if it is unknown.
    pub(crate) duration: Millis,
    /// Hashes of the inputs that it was judged with.
    pub(crate) inputs: VerdictInputs,
    /// True if a person edited the judge trace.
    pub(crate) by_human: bool,
    /// The trace that the cell continues, if its run is a branch.
    pub(crate) branch: Option<Arc<BranchOrigin>>,
}

/// The state of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum RowSlotState {
    /// Never run.
    #[default]
    NeverRun,
    /// Planned, or being judged. The run's state contains the phase.
    Live,
    /// Has no result: its run was interrupted, at this gate if the trace was paused.
    Interrupted { paused_at: Option<GatePoint> },
    /// Has a result.
    Done {
        outcome: Outcome,
        score: Option<f64>,
        explanation: Arc<str>,
        /// The probability of a pass, if the judge returns one.
        probability: Option<f64>,
        /// The flag that makes the verdict doubtful.
        doubt: Option<Doubt>,
        /// The causes that `is:` matches.
        causes: CauseSet,
    },
}

/// The reason why a verdict is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StaleReason {
    /// The eval changed.
    Eval,
    /// The judge changed.
    Judge,
    /// The transcript changed.
    Transcript,
    /// Another installation or an earlier version recorded the verdict, or its record was changed.
    Origin,
}

impl StaleReason {
    /// Returns the reason for the screen.
    pub(crate) const fn explain(self) -> &'static str {
        match self {
            Self::Eval => "the eval changed since",
            Self::Judge => "the judge changed since",
            Self::Transcript => "the transcript changed since",
            Self::Origin => "its record is of another installation or version, or was changed",
        }
    }
}

/// A decision on one side of a flip.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlipSide {
    pub(crate) outcome: Outcome,
    pub(crate) score: Option<f64>,
    pub(crate) explanation: Arc<str>,
}

/// A decision, with its cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CellsRow {
    /// The index into [`CellsState::transcripts`].
    pub(crate) transcript: u32,
    /// The index into [`CellsState::evals`].
    pub(crate) eval: u32,
    pub(crate) message: Option<u32>,
    pub(crate) slots: Vec<RowSlot>,
    /// The second opinions (`J`), the branches, and the traces that an interrupted run left. They are shown and don't decide.
    pub(crate) second_opinions: Vec<RowSlot>,
    /// The traces of other runs of the family, in an opened recording: the recorded trace and its branches.
    pub(crate) family: Vec<RowSlot>,
    /// The deciding cells before the eval, the judge or the transcript last changed, if this session judged the row since.
    pub(crate) before_edit: Vec<RowSlot>,
    /// The last attempt to judge the row again, if it ended without a verdict. The row keeps its earlier verdict.
    pub(crate) failed_rerun: Option<FailedRerun>,
    /// The decision; `None` until all planned cells have results.
    pub(crate) decision: Option<Decision>,
    /// The outcome of the last decision, while the row is judged again.
    pub(crate) outcome_before: Option<Outcome>,
    /// The newest verdict, with which a new one is compared.
    pub(crate) verdict: Option<FlipSide>,
    pub(crate) stale: Option<StaleReason>,
    /// The verdict before the newest edit, if the newest verdict differs.
    pub(crate) flipped: Option<FlipSide>,
    /// The label that counts.
    pub(crate) label: Option<LabelValue>,
    /// The text that changed since the label, if the label waits for a confirmation and so counts nowhere.
    pub(crate) to_confirm: Option<LabelDrift>,
    /// True if the decision has a sealed label, whose value no part of the screen knows.
    pub(crate) sealed: bool,
    /// True if the judge saw the label as an example, so that it measures nothing.
    pub(crate) shot: bool,
    /// True if the verdict is hidden until the row is labelled.
    pub(crate) hidden: bool,
    /// The data that only this module uses.
    pub(crate) bookkeeping: RowBookkeeping,
}

/// The part of a row that only the cells pane uses.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RowBookkeeping {
    /// The position in the order of the files.
    file_order: u32,
    /// The last outline that contained the row.
    outline_epoch: u32,
    /// True if no outline or run contains the row any more.
    removed: bool,
    /// The class of the sort order. It stays while the row is judged again, so that the row does not jump.
    sort_class: u8,
    /// The rank of the newest run of this session that planned the row; 0 for none.
    run_rank: u64,
    /// The cells that the outline planned.
    expected: Option<ExpectedCells>,
    /// The state before the current run, restored if the run is cancelled.
    before_run: Option<Box<RowBeforeRun>>,
}

/// The cells of a row that an outline planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExpectedCells {
    /// The judge of the first cell, as an index into [`CellsState::judges`].
    judge: Option<u32>,
    /// The number of repeats; 0 if the cell is not repeated.
    repeats: u32,
}

/// The state of a row before a run judged it.
#[derive(Debug, Clone, PartialEq)]
struct RowBeforeRun {
    slots: Vec<RowSlot>,
    flipped: Option<FlipSide>,
    failed_rerun: Option<FailedRerun>,
    rank: u64,
}

/// The order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RowSort {
    /// Flips, failures and errors first within an eval.
    #[default]
    ProblemsFirst,
    /// Rows whose verdict differs from the label first.
    Disagreements,
    /// Rows without a label first.
    Unlabelled,
    /// The order of the files.
    FileOrder,
}

impl RowSort {
    /// Returns the next sort order; the last is followed by the first.
    pub(crate) const fn cycle(self) -> Self {
        match self {
            Self::ProblemsFirst => Self::Disagreements,
            Self::Disagreements => Self::Unlabelled,
            Self::Unlabelled => Self::FileOrder,
            Self::FileOrder => Self::ProblemsFirst,
        }
    }

    /// All orders with their stable names.
    const IDS: [(Self, &'static str); 4] = [
        (Self::ProblemsFirst, "problems"),
        (Self::Disagreements, "disagreements"),
        (Self::Unlabelled, "unlabelled"),
        (Self::FileOrder, "file"),
    ];

    /// Returns the stable name.
    pub(crate) fn id(self) -> &'static str {
        let found = Self::IDS.iter().find(|(sort, _)| *sort == self);
        found.map_or("problems", |(_, id)| *id)
    }

    /// Returns the order with a stable name.
    pub(crate) fn from_id(id: &str) -> Option<Self> {
        let found = Self::IDS.iter().find(|(_, known)| *known == id);
        found.map(|(sort, _)| *sort)
    }

    /// Returns the name of the order.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ProblemsFirst => "flips, failures and errors first",
            Self::Disagreements => "disagreements first",
            Self::Unlabelled => "unlabelled first",
            Self::FileOrder => "in file order",
        }
    }
}

/// A line of the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum CellsEntry {
    /// A rubric and eval, as an index into [`CellsState::evals`].
    Group(u32),
    /// A decision.
    Row(RowId),
}

/// A judge of the cells pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellsJudge {
    pub(crate) name: String,
    /// The digest of everything that could change its verdicts.
    pub(crate) digest: Digest,
    /// The digest of the judge as it is called, with its tools.
    pub(crate) call_digest: Digest,
    /// False for a source judge, which returns recorded verdicts and leaves no trace.
    pub(crate) has_traces: bool,
}

/// The identity of a row: its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RowKey {
    /// The index into [`CellsState::transcripts`].
    transcript: u32,
    /// The index into [`CellsState::evals`].
    eval: u32,
    /// The judged message, for an eval that judges messages.
    message: Option<u32>,
}

/// The state of the cells pane.
#[derive(Debug, Clone, Default)]
pub(crate) struct CellsState {
    /// The repeats of the noise runs of the workspace.
    pub(crate) noise: Shared<NoiseRecords>,
    pub(crate) evals: Vec<EvalInfo>,
    pub(crate) judges: Vec<CellsJudge>,
    pub(crate) transcripts: Vec<TranscriptRef>,
    pub(crate) runs: Vec<RunId>,
    pub(crate) rows: Vec<CellsRow>,
    /// The visible lines in order: filtered, sorted, without the rows of closed groups.
    pub(crate) shown: Vec<CellsEntry>,
    pub(crate) list: ListState<CellsEntry>,
    pub(crate) sort: RowSort,
    /// The filter as typed; empty shows all rows.
    pub(crate) filter: String,
    /// The problem of the typed filter, if any. The pane then still uses the filter before it.
    pub(crate) filter_problem: Option<String>,
    /// Sentences about the ids in the filter that nothing has, as of the last key.
    pub(crate) unmatched_problem: Option<String>,
    /// The tags of the outlined transcripts.
    pub(crate) tags: tags::TagIndex,
    /// True if the outline is complete.
    pub(crate) outline_complete: bool,
    /// The problem that stopped the outline: a sentence.
    pub(crate) outline_error: Option<String>,
    /// The counts of all decisions by state.
    pub(crate) total: RowCounts,
    /// The number of decisions that match the filter.
    pub(crate) matching: usize,
    /// The groups, by the index of their eval.
    pub(crate) groups: Vec<EvalGroup>,
    /// The judges of the newest header, which `R` would call.
    pub(crate) current_judges: Vec<u32>,
    /// True if verdicts are hidden until they are labelled.
    pub(crate) blind: bool,
    /// The rows whose verdict the user saw while the row was selected.
    revealed: HashSet<RowId>,
    row_index: HashMap<RowKey, RowId>,
    name_index: name_index::NameIndex,
    labels: labels::MergedLabels,
    /// The names that evals have in the newest state, if they are others. Only an opened state has any: its labels moved
    /// with the names.
    pub(crate) later_names: HashMap<EvalPath, EvalPath>,
    past_verdicts: Option<past_verdicts::PastVerdicts>,
    query: CellsFilter,
    order: order::OrderState,
}

/// The changes of decisions by some events.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DecisionChanges {
    pub(crate) flips: Vec<RowFlip>,
    pub(crate) decided: Vec<DecidedRow>,
}

/// A decision that a run completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecidedRow {
    pub(crate) row: RowId,
    pub(crate) outcome: Outcome,
    /// True if the row had neither a verdict nor this outcome before.
    pub(crate) is_first: bool,
    /// True if code decides the row, and no judge.
    pub(crate) is_check: bool,
    /// True if each of its cells has a verdict of a past run, so that no judge was asked.
    pub(crate) is_recorded: bool,
}

/// A new verdict that differs from the one before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowFlip {
    pub(crate) row: RowId,
    pub(crate) before: FlipSide,
    pub(crate) after: FlipSide,
    /// True if the new verdict equals the label; `None` without a label.
    pub(crate) agrees_with_label: Option<bool>,
    /// The arithmetic, if only the score bounds changed: `0.70 ≥ 0.50, was < 0.75`.
    pub(crate) arithmetic: Option<String>,
}

impl CellsState {
    /// Returns the name of a row's decision, without judge and repeat.
    pub(crate) fn decision_name(&self, row: RowId) -> Option<CellName> {
        let row = self.row(row)?;
        self.name_with(row, None, None).map(CellNameRef::to_owned)
    }

    /// Returns the reason why a panel is undecided although all called judges answered.
    pub(crate) fn explain_undecided(&self, row: &CellsRow) -> Option<UndecidedPanel> {
        let eval = self.evals.get(row.eval as usize)?;
        votes::explain_undecided(row, &eval.decision_rule)
    }

    /// Returns the name of one cell of a row.
    pub(crate) fn cell_name(&self, at: SlotId) -> Option<CellName> {
        let row = self.row(at.row)?;
        let slot = row.slot(at.slot)?;
        self.name_with(row, slot.judge, slot.repeat)
            .map(CellNameRef::to_owned)
    }

    fn name_with(
        &self,
        row: &CellsRow,
        judge: Option<u32>,
        repeat: Option<u32>,
    ) -> Option<CellNameRef<'_>> {
        let eval = self.evals.get(row.eval as usize)?;
        // A judge index that is unknown gives no name, instead of the name of a cell without a judge.
        let judge = match judge {
            Some(judge) => Some(self.judges.get(judge as usize)?.name.as_str()),
            None => None,
        };
        Some(CellNameRef {
            transcript: &self.transcripts.get(row.transcript as usize)?.id,
            rubric: &eval.rubric,
            eval: &eval.id,
            message: row.message,
            judge,
            repeat,
        })
    }

    /// Returns the row of a decision's name.
    pub(crate) fn find_row(&self, name: &CellName) -> Option<RowId> {
        let transcript = self.name_index.transcript_ix(&name.transcript)?;
        let eval = self.name_index.eval_ix(&name.rubric, &name.eval)?;
        let message = name.message;
        let key = RowKey {
            transcript,
            eval,
            message,
        };
        self.row_index.get(&key).copied()
    }

    /// Returns the row under the cursor.
    pub(crate) fn selected_row(&self) -> Option<RowId> {
        match self.list.selected {
            Some(CellsEntry::Row(row)) => Some(row),
            _ => None,
        }
    }

    /// Returns a row.
    pub(crate) fn row(&self, row: RowId) -> Option<&CellsRow> {
        self.rows.get(row.0 as usize)
    }

    /// Adds a header's evals and judges and returns the index map. If `current`, its digests replace older ones.
    pub(crate) fn register_header(&mut self, header: &RunHeader, current: bool) -> RunIndexMap {
        self.update_from_header(header, current)
    }

    /// Replaces the labels of the files.
    pub(crate) fn replace_labels(&mut self, labels: Labels) {
        self.store_file_labels(labels);
    }

    /// Applies the newest verdicts to the rows that no run of this session touched. They are stale if a digest
    /// differs.
    pub(crate) fn apply_newest_verdicts(&mut self, board: &Arc<NewestVerdicts>) {
        self.set_newest_verdicts(board);
    }
}

impl CellsRow {
    /// Returns true if a judge works on the row or will.
    pub(crate) fn is_live(&self) -> bool {
        self.slots
            .iter()
            .any(|slot| slot.state == RowSlotState::Live)
    }

    /// Returns true if the row failed, flipped, has an error, or if its last re-run failed or was interrupted.
    pub(crate) fn is_problem(&self) -> bool {
        let decided = self.visible_decision();
        // A hidden row is not a problem, because its place in the list would reveal the verdict.
        !self.hidden && self.flipped.is_some()
            || self.visible_failed_rerun().is_some()
            || !self.hidden && self.interrupted_attempt().is_some()
            || decided.is_some_and(|d| d.outcome == Outcome::Fail || d.outcome.is_error())
    }

    /// Returns the explanation of the first cell that voted for the decision.
    pub(crate) fn decision_explanation(&self) -> Option<&Arc<str>> {
        let decision = self.decision.as_ref()?;
        let wanted = decision.outcome;
        let mut first = None;
        for slot in self
            .slots
            .iter()
            // A member whose vote did not count can't explain the decision.
            .filter(|slot| decision.counts_judge(slot.judge))
        {
            if let RowSlotState::Done {
                outcome,
                explanation: why,
                ..
            } = &slot.state
            {
                if *outcome == wanted {
                    return Some(why);
                }
                // No cell has the outcome of the vote, as for a mean score; then the first explanation is
                // shown.
                first.get_or_insert(why);
            }
        }
        first
    }
}
