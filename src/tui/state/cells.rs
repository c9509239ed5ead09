//! The cells pane: every decision, where it stands, and which are shown in which order.
//!
//! Owns rows and their selection. Fed by the same facts from three sources: the outline of what a run would decide, the
//! board of past runs, and live or replayed runs. Refuses to hold traces: a row says where its trace stands.
//!
//! - [`known`]: evals, judges and transcripts, as the newest header has them; what is stale.
//! - [`labels`]: what people said, what a blind screen hides.
//! - [`lay`]: the board's results under rows no run of this session touched.
//! - [`live`]: cells that begin, end, or are left by a cancelled run; flips. Of two runs with the same cell the newer wins.
//! - [`order`]: groups with their counts, sorted and filtered rows. Only groups in which something moved are sorted anew.
//! - [`query`]: the filter's language. [`travel`]: moving the cursor.

mod cursor;
pub(crate) mod filter;
mod labels;
mod name_index;
mod order;
mod past_verdicts;
mod run_cells;
mod second_opinions;
mod votes;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::RunHeader;
use crate::model::{
    CellIx, CellName, CellNameRef, Decision, Digest, Doubt, Label, Outcome, Panel, RunId,
    ScoreBounds, TranscriptRef, UndecidedPanel, VoteParams,
};
use crate::record::NewestVerdicts;
use crate::tui::widget::list::ListState;
use filter::CellsFilter;
pub(crate) use labels::LabelValue;
pub(crate) use name_index::VerdictInputs;
pub(crate) use order::{EvalGroup, RowCounts, RowStatus};
pub(crate) use run_cells::compute_label_agreement;

/// A decision: a row of the pane. Dense and stable while a desk lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RowId(pub(crate) u32);

/// A cell: which row, and which of its slots.
pub(crate) type SlotId = (RowId, u16);

/// What a run's numbers mean here.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunIndexMap {
    /// Our eval, by the header's.
    pub(crate) evals: Vec<u32>,
    /// Our judge, by the header's.
    pub(crate) judges: Vec<u32>,
    /// What the evals were made of, by the header's number.
    pub(crate) eval_hashes: Vec<u64>,
    /// The judges, likewise.
    pub(crate) judge_hashes: Vec<u64>,
    /// The run was told to ask another judge than the rubrics name.
    pub(crate) second_opinion: bool,
}

/// An eval, as known from the newest header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EvalInfo {
    pub(crate) rubric: String,
    pub(crate) id: String,
    pub(crate) eval_type: String,
    pub(crate) digest: Digest,
    pub(crate) judged: bool,
    pub(crate) groups: Vec<String>,
    pub(crate) decision_rule: Arc<DecisionRule>,
}

/// What decides the cells of an eval; judges by their positions in [`Cells::judges`].
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct DecisionRule {
    /// Its judges, where they are several.
    pub(crate) panel: Option<Panel>,
    pub(crate) bounds: ScoreBounds,
    pub(crate) repeat: u32,
}

impl DecisionRule {
    fn vote_terms(&self) -> VoteParams<'_> {
        VoteParams {
            rule: self.panel.as_ref().map(|panel| panel.rule),
            judges: self.panel.as_ref().map_or(&[], |panel| &panel.judges),
            bounds: self.bounds,
            repeat: self.repeat,
        }
    }

    /// Whether a judge is one of several.
    fn is_panel_judge(&self, judge: Option<u32>) -> bool {
        let panel = self.panel.as_ref().zip(judge);
        panel.is_some_and(|(panel, judge)| panel.judges.contains(&judge))
    }
}

/// One cell of a decision.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RowSlot {
    /// Position in [`Cells::judges`], for judge cells.
    pub(crate) judge: Option<u32>,
    pub(crate) repeat: Option<u32>,
    /// The run its newest state is from, and its number there. The run is a position in [`Cells::runs`].
    pub(crate) run_cell: Option<(u32, CellIx)>,
    /// The run whose trace stands behind it, where the result was taken from a past run.
    pub(crate) cached_from: Option<RunId>,
    pub(crate) state: RowSlotState,
    /// What it was judged with.
    pub(crate) inputs: VerdictInputs,
}

/// Where a cell stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum RowSlotState {
    /// Never run.
    #[default]
    NeverRun,
    /// Planned or judged right now; the phase stands in the run's state.
    Live,
    /// Has a result.
    Done {
        outcome: Outcome,
        score: Option<f64>,
        explanation: Arc<str>,
        /// How likely it passes, where the judge states that.
        probability: Option<f64>,
        /// What makes the judge's words doubtful.
        doubt: Option<Doubt>,
    },
}

/// Why a verdict may not hold any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StaleReason {
    /// The eval changed since.
    Eval,
    /// The judge changed since.
    Judge,
    /// The transcript changed since.
    Transcript,
}

impl StaleReason {
    /// The reason, for people.
    pub(crate) const fn explain(self) -> &'static str {
        match self {
            Self::Eval => "the eval changed since",
            Self::Judge => "the judge changed since",
            Self::Transcript => "the transcript changed since",
        }
    }
}

/// What a decision was before it flipped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlipSide {
    pub(crate) outcome: Outcome,
    pub(crate) score: Option<f64>,
    pub(crate) explanation: Arc<str>,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CellsRow {
    /// Position in [`Cells::transcripts`].
    pub(crate) transcript: u32,
    /// Position in [`Cells::evals`].
    pub(crate) eval: u32,
    pub(crate) message: Option<u32>,
    pub(crate) slots: Vec<RowSlot>,
    /// What judges said that were asked besides the eval's own (`J`): shown, and deciding nothing.
    pub(crate) second_opinions: Vec<RowSlot>,
    /// The vote; `None` until all planned cells have results.
    pub(crate) decision: Option<Decision>,
    /// The newest verdict: what a new one is compared with.
    pub(crate) verdict: Option<FlipSide>,
    pub(crate) stale: Option<StaleReason>,
    /// What it was before, where the newest verdict is another.
    pub(crate) flipped: Option<FlipSide>,
    /// What a person said.
    pub(crate) label: Option<LabelValue>,
    /// Its verdict is hidden until a person said theirs.
    pub(crate) hidden: bool,
    /// What only this module looks at.
    pub(crate) bookkeeping: RowBookkeeping,
}

/// The part of a row that only the cells pane looks at.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RowBookkeeping {
    /// Its place in the order of the files.
    file_order: u32,
    /// The outline it was last seen in.
    outline_epoch: u32,
    /// No outline or run knows it any more.
    removed: bool,
    /// How it is sorted; stays while it is judged anew, so that it does not jump away.
    sort_class: u8,
    /// The rank of the newest run of this session that planned it; 0: none.
    run_rank: u64,
    /// The cells the outline planned: by whom, and how many repeats (0: not repeated).
    expected: Option<(Option<u32>, u32)>,
    /// What it was before the run that judges it now, in case that one leaves it.
    before_run: Option<Box<RowBeforeRun>>,
}

/// A row before a run took it.
#[derive(Debug, Clone, PartialEq)]
struct RowBeforeRun {
    slots: Vec<RowSlot>,
    flipped: Option<FlipSide>,
    rank: u64,
}

/// How the rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RowSort {
    /// Flips, failures and errors first, within an eval.
    #[default]
    ProblemsFirst,
    /// Where verdict and label differ first.
    Disagreements,
    /// What has no label first.
    Unlabelled,
    /// As the files list them.
    FileOrder,
}

impl RowSort {
    /// The one after it: they go round.
    pub(crate) const fn cycle(self) -> Self {
        match self {
            Self::ProblemsFirst => Self::Disagreements,
            Self::Disagreements => Self::Unlabelled,
            Self::Unlabelled => Self::FileOrder,
            Self::FileOrder => Self::ProblemsFirst,
        }
    }

    /// What it is called.
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
    /// A rubric × eval, by position in [`Cells::evals`].
    Group(u32),
    /// A decision.
    Row(RowId),
}

/// Everything the pane knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct CellsState {
    pub(crate) evals: Vec<EvalInfo>,
    pub(crate) judges: Vec<(String, Digest)>,
    pub(crate) transcripts: Vec<TranscriptRef>,
    pub(crate) runs: Vec<RunId>,
    pub(crate) rows: Vec<CellsRow>,
    /// What is shown, in order: filtered, sorted, closed groups without their rows.
    pub(crate) shown: Vec<CellsEntry>,
    pub(crate) list: ListState<CellsEntry>,
    pub(crate) sort: RowSort,
    /// As typed; empty: everything.
    pub(crate) filter: String,
    /// Why the filter as typed cannot be read; what is shown is then the one before.
    pub(crate) filter_problem: Option<String>,
    /// Whether the outline is complete.
    pub(crate) outline_complete: bool,
    /// Why it could not be worked out, if so: a sentence.
    pub(crate) outline_error: Option<String>,
    /// All decisions, by where they stand.
    pub(crate) total: RowCounts,
    /// Decisions that the filter lets through.
    pub(crate) matching: usize,
    /// By position of the eval.
    pub(crate) groups: Vec<EvalGroup>,
    /// The judges of the newest header: those that `R` would ask.
    pub(crate) current_judges: Vec<u32>,
    /// Whether verdicts are hidden until they are labelled.
    pub(crate) blind: bool,
    row_index: HashMap<(u32, u32, Option<u32>), RowId>,
    name_index: name_index::NameIndex,
    labels: labels::MergedLabels,
    past_verdicts: Option<past_verdicts::PastVerdicts>,
    query: CellsFilter,
    order: order::OrderState,
}

/// A verdict that arrived and is another than the one before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowFlip {
    pub(crate) row: RowId,
    pub(crate) before: FlipSide,
    pub(crate) after: FlipSide,
    /// Whether it moved to the human's label; `None` without one.
    pub(crate) agrees_with_label: Option<bool>,
}

impl CellsState {
    /// The name of a row's decision: without judge and repeat.
    pub(crate) fn decision_name(&self, row: RowId) -> Option<CellName> {
        let row = self.row(row)?;
        self.name_with(row, None, None).map(CellNameRef::to_owned)
    }

    /// Why a row that several judge is undecided though all who were asked have answered.
    pub(crate) fn explain_undecided(&self, row: &CellsRow) -> Option<UndecidedPanel> {
        let eval = self.evals.get(row.eval as usize)?;
        votes::explain_undecided(row, &eval.decision_rule)
    }

    /// The name of one cell of a row.
    pub(crate) fn cell_name(&self, (row, slot): SlotId) -> Option<CellName> {
        let row = self.row(row)?;
        let slot = row.slot(slot)?;
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
        let judge = match judge {
            Some(judge) => Some(self.judges.get(judge as usize)?.0.as_str()),
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

    /// The row of a decision's name.
    pub(crate) fn find_row(&self, name: &CellName) -> Option<RowId> {
        let transcript = self.name_index.transcript_ix(&name.transcript)?;
        let eval = self.name_index.eval_ix(&name.rubric, &name.eval)?;
        self.row_index
            .get(&(transcript, eval, name.message))
            .copied()
    }

    /// The row under the cursor.
    pub(crate) fn selected_row(&self) -> Option<RowId> {
        match self.list.selected {
            Some(CellsEntry::Row(row)) => Some(row),
            _ => None,
        }
    }

    /// A row.
    pub(crate) fn row(&self, row: RowId) -> Option<&CellsRow> {
        self.rows.get(row.0 as usize)
    }

    /// Learns a header's evals and judges (the newest digests win if `current`), and says which of ours they are.
    pub(crate) fn register_header(&mut self, header: &RunHeader, current: bool) -> RunIndexMap {
        self.update_from_header(header, current)
    }

    /// Human verdicts, old ones aside.
    pub(crate) fn replace_labels(&mut self, labels: &[Label]) {
        self.store_file_labels(labels);
    }

    /// Lays the board under what is known: rows that no live run has touched take its results, stale where digests differ.
    pub(crate) fn apply_newest_verdicts(&mut self, board: &Arc<NewestVerdicts>) {
        self.set_newest_verdicts(board);
    }
}

impl CellsRow {
    /// Whether a judge works on it, or is about to.
    pub(crate) fn is_live(&self) -> bool {
        self.slots
            .iter()
            .any(|slot| slot.state == RowSlotState::Live)
    }

    /// Whether one should look at it: it failed, flipped or is in error.
    pub(crate) fn is_problem(&self) -> bool {
        let decided = self.visible_decision();
        !self.hidden && self.flipped.is_some()
            || decided.is_some_and(|d| d.outcome == Outcome::Fail || d.outcome.is_error())
    }

    /// Why it was decided so: what the first cell says that voted so.
    pub(crate) fn decision_explanation(&self) -> Option<&Arc<str>> {
        let decision = self.decision.as_ref()?;
        let wanted = decision.outcome;
        let mut first = None;
        for slot in self
            .slots
            .iter()
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
                first.get_or_insert(why);
            }
        }
        first
    }
}
