//! Turns events into rows: results in plan order, decisions of several cells, rubrics, then the summary.
//!
//! Responsible for the order and the counts. Does not format rows. A result waits only for the results before it in
//! plan order. A transcript is complete once all its planned cells have results. This is safe because a run plans
//! further repeats before the result that makes them necessary (see `run`). A decision can be emitted as soon as all
//! its planned cells have results, for the same reason.

mod decided;
mod plan_order;
mod summary;
mod wholes;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use serde::Serialize;

use self::wholes::JoinedParts;
use super::label_agreement::{EvalVerdicts, is_edited_by_human, look_up_label};
use super::panel_decision::find_judge_names;
use super::result_digests::{CellDigests, EvalSettings};
use super::score::RubricScore;
use crate::event::{
    BudgetStop, CellKey, EventKind, RunEvent, RunHeader, RunPurpose, RunStats, ToolCallKey,
    ToolFact, ToolResponseSource,
};
use crate::model::{
    CellIx, CellName, CellNameRef, CellResult, Cost, DISABLED_EVAL, Decision, Labels, NOT_SAMPLED,
    OtherModel, Outcome, RunId, ScoreBounds, StoppedJudge, TranscriptRef,
};
use crate::record::{LogEnding, RunStatus};

pub use decided::{DecidedRow, DecisionOrder};
use plan_order::{UnemittedCells, plan_position};
pub use summary::RunSummary;

/// A row of a report.
#[derive(Debug, Clone)]
pub enum ReportRow<'a> {
    /// The run's header; the first row.
    Header(&'a RunHeader),
    /// A cell's result.
    Result(ResultRow<'a>),
    /// A decision with its cells; only if the builder has a [`DecisionOrder`].
    Decided(DecidedRow<'a>),
    /// A decision of several cells.
    Decision(&'a DecisionRow),
    /// A rubric's score on a transcript.
    Rubric(&'a RubricRow),
    /// The statistics per judge and per tool, before the summary; only if the run asked a judge.
    Stats(&'a RunStats),
    /// The summary; the last row.
    Summary(&'a RunSummary),
}

/// The result of a cell with its name, settings and label.
#[derive(Debug, Clone)]
pub struct ResultRow<'a> {
    /// The full name of the cell.
    pub name: CellNameRef<'a>,
    /// The eval type.
    pub eval_type: &'a str,
    /// The scores at which the verdict passes (`min_score`, `max_score`), if set.
    pub bounds: ScoreBounds,
    /// `true` if the judge is a panel member, so that the cell alone decides nothing.
    pub is_panel_member: bool,
    /// The label of its decision.
    pub label: Option<bool>,
    /// `true` if the prompts of the eval show the transcript or a copy of it, so that the result measures nothing.
    pub is_shot: bool,
    /// The digests that identify its question.
    pub digests: CellDigests<'a>,
    /// The last attempt to judge the decision again, if it ended without a verdict. The result is from before.
    pub failed_rerun: Option<&'a RerunFailure>,
    /// The result.
    pub result: &'a CellResult,
}

/// An attempt to judge a decision again that ended without a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RerunFailure {
    /// The run of the attempt.
    pub run: RunId,
    /// Its outcome.
    pub outcome: Outcome,
    /// The error, if the attempt states one.
    pub error: Option<String>,
}

/// A decision of several cells or of several judges.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRow {
    /// The name of the decision, without a judge or repeat.
    pub name: CellName,
    /// The eval type.
    pub eval_type: String,
    /// The decision.
    pub decision: Decision,
    /// The label of the decision.
    pub label: Option<bool>,
    /// `true` if the decision measures nothing; see [`ResultRow::is_shot`].
    pub is_shot: bool,
    /// `true` if a person edited one of the judge traces.
    pub edited: bool,
    /// The names of the judges, in the order of the panel members.
    pub judges: Vec<String>,
}

/// A rubric's score on a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct RubricRow {
    /// The transcript.
    pub transcript: String,
    /// The rubric.
    pub rubric: String,
    /// `true` if the rubric passed; `None` if no eval or not every required eval has a verdict.
    pub passed: Option<bool>,
    /// The weighted mean of its scores, Σ(w·s)/Σw.
    pub score: Option<f64>,
    /// `true` if it rests on a verdict that a person edited.
    pub edited: bool,
}

/// The function that receives the rows. A trait object, so that the compiler does not repeat the code of the builder for
/// each function.
type RowReceiver<'a, E> = dyn FnMut(&ReportRow<'_>) -> Result<(), E> + 'a;

/// Turns events into rows.
#[derive(Default)]
pub struct RowBuilder {
    header: Option<Box<RunHeader>>,
    /// The transcripts with cells that are not yet printed, in plan order.
    incomplete: BTreeMap<u64, IncompleteTranscript>,
    /// The numbers of these transcripts by record. If an early transcript is slow, there are many of them.
    numbers_by_record: HashMap<Arc<TranscriptRef>, u64, RandomState>,
    /// The planned ranges of cells by their first number: the count, the transcript in `incomplete`, and the offset
    /// in its cells.
    ranges: BTreeMap<CellIx, PlannedCellRange>,
    last_transcript_no: u64,
    decisions: Vec<DecisionRow>,
    rubrics: Vec<RubricRow>,
    summary: RunSummary,
    /// With recorded tool responses: the tools of calls that have not ended.
    pending_calls: HashMap<ToolCallKey, String>,
    stats: RunStats,
    has_judge_calls: bool,
    labels: Labels,
    decision_order: Option<DecisionOrder>,
}

#[derive(Debug, Clone, Copy)]
struct PlannedCellRange {
    len: usize,
    transcript_no: u64,
    first_cell: usize,
}

struct IncompleteTranscript {
    source: Arc<TranscriptRef>,
    cells: Vec<RowCell>,
    missing_results: usize,
    /// The first cells of its ranges in [`RowBuilder::ranges`].
    first_cells: Vec<CellIx>,
    /// The cells without a row. `None` until a row can appear before the transcript is complete.
    unemitted: Option<UnemittedCells>,
    /// The cells of each decision that several cells make, by eval and message. Empty unless decisions are emitted in the
    /// order of results.
    combined: HashMap<(u32, Option<u32>), CombinedCells>,
}

/// The cells of one decision.
#[derive(Default)]
struct CombinedCells {
    /// Their numbers in the transcript.
    numbers: Vec<usize>,
    /// The number of those without a result.
    missing: usize,
}

/// A planned cell and its result, once it has one.
struct RowCell {
    key: CellKey,
    result: Option<Arc<CellResult>>,
}

impl RowBuilder {
    /// Returns a builder whose rows carry labels.
    pub fn with_labels(labels: Labels) -> Self {
        Self {
            labels,
            ..Self::default()
        }
    }

    /// Also emits each decision with its cells, in this order.
    #[must_use]
    pub fn with_decisions(mut self, order: Option<DecisionOrder>) -> Self {
        self.decision_order = order;
        self
    }

    /// Marks the events as those of a state, by its number, and not of one run.
    #[must_use]
    pub fn with_state(mut self, number: Option<usize>) -> Self {
        self.summary.state = number;
        self
    }

    /// Returns the cost so far, as far as it is known.
    pub fn cost_so_far(&self) -> Cost {
        self.stats.total_cost()
    }

    /// Returns the number of transcripts that wait for results or for an earlier transcript.
    pub fn count_open_transcripts(&self) -> usize {
        self.incomplete.len()
    }

    /// Applies an event and emits the rows that it completes.
    pub fn apply<E>(&mut self, event: &RunEvent, emit: &mut RowReceiver<'_, E>) -> Result<(), E> {
        self.summary.duration_ms = event.at.0;
        // The statistics count all events, also those without a row.
        self.stats.apply(event);
        match &event.kind {
            EventKind::RunStarted(header) => {
                self.summary.run.clone_from(&header.run.0);
                self.summary.branch = describe_branch(header);
                self.summary.revision = Some(header.revision_digest());
                self.summary.settings = EvalSettings::from_header(header);
                self.summary.demo = header.demo;
                // `RunFinished` changes this, so a recording without an end stays interrupted.
                self.summary.status = RunStatus::Interrupted;
                self.summary.evals = EvalVerdicts::list(header);
                self.summary.evidence = header.replayed_evidence_plan();
                emit(&ReportRow::Header(header))?;
                self.header = Some(header.clone());
            }
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } => self.add_planned_cells(transcript, *first, keys),
            EventKind::CellsSettled(settled) => {
                for one in settled {
                    self.accept_result(one.cell, &one.result, emit)?;
                }
                self.emit_complete(false, emit)?;
            }
            EventKind::CellFinished { cell, result } => {
                self.accept_result(*cell, result, emit)?;
                self.emit_complete(false, emit)?;
            }
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } if self.summary.evidence.is_some() => {
                let key = ToolCallKey {
                    cell: *cell,
                    turn: *turn,
                    call: *call,
                };
                self.count_evidence_use(key, fact);
            }
            EventKind::BudgetReached { .. } => {
                self.summary
                    .budgets
                    .extend(BudgetStop::from_event(&event.kind));
            }
            EventKind::Note { cell: None, text } => {
                self.summary
                    .stopped_judges
                    .extend(StoppedJudge::from_note(text));
                self.summary
                    .other_models
                    .extend(OtherModel::from_note(text));
            }
            EventKind::RunFinished(totals) => {
                self.summary.status = RunStatus::new(LogEnding::Finished, totals.cancelled);
                self.summary.reading = totals.reading.clone();
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies the ending of the log after its last event. Events do not contain that a process still records the run.
    pub fn apply_ending(&mut self, ending: LogEnding) {
        if ending == LogEnding::Running {
            self.summary.status = RunStatus::Running;
        }
    }

    /// Counts the calls with and without a recorded tool response.
    fn count_evidence_use(&mut self, at: ToolCallKey, fact: &ToolFact) {
        if let ToolFact::Received { name, .. } = fact {
            // Later facts of the call do not contain the tool's name.
            self.pending_calls.insert(at, name.clone());
            return;
        }
        let Some(header) = &self.header else { return };
        let frozen =
            |source: &ToolResponseSource| matches!(source, ToolResponseSource::Frozen { .. });
        match fact {
            ToolFact::Finished { source, .. } if frozen(source) => {
                self.summary.evidence_answers += 1;
                self.pending_calls.remove(&at);
            }
            ToolFact::Finished { .. } | ToolFact::Rejected { .. } => {
                let tool = self.pending_calls.remove(&at).unwrap_or_default();
                let missed = fact.is_evidence_miss(header) && header.has_evidence_for(&tool);
                self.summary.evidence_misses += u64::from(missed);
            }
            _ => {}
        }
    }

    /// Emits the remaining rows and the summary.
    pub fn finish<E>(mut self, emit: &mut RowReceiver<'_, E>) -> Result<RunSummary, E> {
        // The run may have ended before all cells had results.
        self.emit_complete(true, emit)?;
        for row in &self.decisions {
            emit(&ReportRow::Decision(row))?;
        }
        for row in &self.rubrics {
            emit(&ReportRow::Rubric(row))?;
        }
        if !self.stats.is_empty() {
            emit(&ReportRow::Stats(&self.stats))?;
        }
        self.summary.bill = self.stats.total_cost();
        self.summary.prices_as_of = self.stats.oldest_price_date().map(str::to_owned);
        let bill = self.summary.bill;
        self.summary.cost_usd = bill.exact_usd().filter(|_| self.has_judge_calls);
        emit(&ReportRow::Summary(&self.summary))?;
        Ok(self.summary)
    }

    fn add_planned_cells(&mut self, transcript: &TranscriptRef, first: CellIx, keys: &[CellKey]) {
        // Later repeats of a transcript have new cell numbers.
        let known = self.numbers_by_record.get(transcript).copied();
        let place = known.unwrap_or_else(|| {
            self.summary.transcripts += 1;
            self.last_transcript_no += 1;
            self.last_transcript_no
        });
        let open = self.incomplete.entry(place).or_insert_with(|| {
            let source = Arc::new(transcript.clone());
            self.numbers_by_record.insert(Arc::clone(&source), place);
            IncompleteTranscript {
                source,
                cells: Vec::with_capacity(keys.len()),
                missing_results: 0,
                first_cells: Vec::new(),
                unemitted: None,
                combined: HashMap::new(),
            }
        });
        open.first_cells.push(first);
        self.ranges.insert(
            first,
            PlannedCellRange {
                len: keys.len(),
                transcript_no: place,
                first_cell: open.cells.len(),
            },
        );
        if let Some(unemitted) = &mut open.unemitted {
            unemitted.extend(open.cells.len(), keys);
        }
        if self.decision_order == Some(DecisionOrder::AsDecided) {
            let header = self.header.as_deref();
            for (number, key) in (open.cells.len()..).zip(keys) {
                let eval = header.and_then(|header| header.evals.get(key.eval as usize));
                if key.repeat.is_some() || eval.is_some_and(|eval| eval.panel.is_some()) {
                    let cells = open.combined.entry((key.eval, key.message)).or_default();
                    cells.numbers.push(number);
                    cells.missing += 1;
                }
            }
        }
        open.cells.extend(keys.iter().map(|key| RowCell {
            key: *key,
            result: None,
        }));
        open.missing_results += keys.len();
        self.summary.cells += keys.len() as u64;
        self.summary.pending += keys.len() as u64;
    }

    /// Adds a result, and emits the decision that it completes if decisions are emitted in the order of results.
    fn accept_result<E>(
        &mut self,
        cell: CellIx,
        result: &Arc<CellResult>,
        emit: &mut RowReceiver<'_, E>,
    ) -> Result<(), E> {
        let added = self.add_result(cell, result);
        let (Some((transcript_no, at)), Some(DecisionOrder::AsDecided), Some(header)) =
            (added, self.decision_order, &self.header)
        else {
            return Ok(());
        };
        match self.incomplete.get(&transcript_no) {
            Some(open) => open.emit_decision_of(at, header, &self.labels, emit),
            None => Ok(()),
        }
    }

    /// Adds a result. Returns the number of the transcript and the index of the cell in it, if the result is new.
    fn add_result(&mut self, cell: CellIx, result: &Arc<CellResult>) -> Option<(u64, usize)> {
        // Ignore a result whose cell was not planned or is already emitted.
        let (first, range) = self.ranges.range(..=cell).next_back()?;
        let offset = cell.index() - first.index();
        if offset >= range.len {
            return None;
        }
        let place = (range.transcript_no, range.first_cell + offset);
        let open = self.incomplete.get_mut(&place.0)?;
        let RowCell { key, result: slot } = &mut open.cells[place.1];
        // Only the first result of a cell counts.
        if slot.is_some() {
            return None;
        }
        *slot = Some(Arc::clone(result));
        if let Some(cells) = open.combined.get_mut(&(key.eval, key.message)) {
            // A cell without a repeat is a decision of its own.
            let is_one = cells.numbers.binary_search(&place.1).is_ok();
            cells.missing -= usize::from(is_one);
        }
        let flagged =
            result.outcome.is_verdict() && result.verdict.as_ref().is_some_and(|v| v.is_flagged());
        self.summary.flagged += u64::from(flagged);
        open.missing_results -= 1;
        self.summary.pending -= 1;
        // A cached result caused no call in this run.
        if let (Some(usage), None) = (result.usage, &result.cached) {
            self.summary.usage = self.summary.usage.plus(usage);
            self.has_judge_calls = true;
        }
        Some(place)
    }

    /// Emits the results that wait for no earlier one; with `all`, every cell with a result.
    fn emit_complete<E>(&mut self, all: bool, emit: &mut RowReceiver<'_, E>) -> Result<(), E> {
        // Take the header, because the loop borrows `self` mutably.
        let Some(header) = self.header.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        while let Some(entry) = self.incomplete.first_entry() {
            // Rows appear in plan order, so the oldest incomplete transcript holds back the later ones.
            if !all && entry.get().missing_results > 0 {
                outcome = entry.into_mut().emit_ready(&header, &self.labels, emit);
                break;
            }
            let (place, mut open) = entry.remove_entry();
            self.numbers_by_record.remove(&open.source);
            for first in &open.first_cells {
                // A damaged log may plan the same cells for another transcript, which keeps its range.
                if let Entry::Occupied(range) = self.ranges.entry(*first)
                    && range.get().transcript_no == place
                {
                    range.remove();
                }
            }
            outcome = open.emit_rest(&header, &self.labels, emit);
            if outcome.is_ok() {
                outcome = self.count_transcript(&header, &open, emit);
            }
            if outcome.is_err() {
                break;
            }
        }
        self.header = Some(header);
        outcome
    }

    fn count_transcript<E>(
        &mut self,
        header: &RunHeader,
        open: &IncompleteTranscript,
        emit: &mut RowReceiver<'_, E>,
    ) -> Result<(), E> {
        let mut scores: IndexMap<u32, RubricScore, RandomState> = IndexMap::default();
        let mut wholes = JoinedParts::default();
        // After the sort, the cells of one decision are adjacent.
        for group in open
            .cells
            .chunk_by(|a, b| (a.key.eval, a.key.message) == (b.key.eval, b.key.message))
        {
            let key = group[0].key;
            let Some(eval) = header.evals.get(key.eval as usize) else {
                continue;
            };
            let score = scores.entry(eval.rubric).or_default();
            score.has_weights |= eval.weighted;
            let name = header.cell_name(&open.source, &key);
            let found = look_up_label(&self.labels, header, &open.source, &key);
            let label = found.counted().and_then(|label| label.passed);
            let results = || group.iter().map(|cell| cell.result.as_deref());
            // Without all results, the vote can still change.
            let decision = if results().all(|result| result.is_some()) {
                eval.decide(group.iter().map(|cell| (&cell.key, cell.result.as_deref())))
            } else {
                score.undecided |= eval.required;
                None
            };
            let edited = is_edited_by_human(results());
            // A branch is an experiment, so its verdict enters no statistics.
            if !edited
                && header.purpose != RunPurpose::Branch
                && let Some(verdicts) = self.summary.evals.get_mut(key.eval as usize)
            {
                let outcome = decision.as_ref().map(|decision| decision.outcome);
                let passed = outcome.and_then(Outcome::passed);
                verdicts.count_lookup(passed, found);
                wholes.add(eval, key, passed, &open.source);
            }
            // An undecided decision is known only at the end, also if the others are emitted earlier.
            let is_due = match self.decision_order {
                None => false,
                Some(DecisionOrder::Plan) => true,
                Some(DecisionOrder::AsDecided) => decision.is_none(),
            };
            if is_due {
                let cells: &Vec<&RowCell> = &Vec::from_iter(group);
                open.emit_decision(cells, decision.as_ref(), header, &self.labels, emit)?;
            }
            let Some(decision) = decision else { continue };
            self.summary.outcomes[decision.outcome as usize] += 1;
            if let Some(verdicts) = self.summary.evals.get_mut(key.eval as usize) {
                let is_decided = decision.outcome.is_verdict();
                let is_left_out = is_left_out(results());
                verdicts.decided += u64::from(is_decided);
                verdicts.undecided += u64::from(!is_decided && !is_left_out);
            }
            score.edited |= edited;
            if edited {
                self.summary.edited_outcomes[decision.outcome as usize] += 1;
            } else {
                self.summary.count_votes(&decision);
                if let Some(verdicts) = self.summary.evals.get_mut(key.eval as usize) {
                    verdicts.pass += u64::from(decision.outcome == Outcome::Pass);
                    verdicts.fail += u64::from(decision.outcome == Outcome::Fail);
                }
            }
            score.add(eval.weight, eval.required, decision.outcome, decision.score);
            // A cascade whose first judge was sure has one cell, and its decision is a row too.
            if (group.len() > 1 || decision.panel.is_some())
                && let Some(name) = name
            {
                self.decisions.push(DecisionRow {
                    name: name.to_owned().decision_name(),
                    eval_type: eval.eval_type.clone(),
                    judges: find_judge_names(header, &decision),
                    label,
                    is_shot: eval.is_shot(&open.source.id),
                    edited,
                    decision,
                });
            }
        }
        wholes.finish(header, &open.source, &self.labels, &mut self.summary.wholes);
        for (rubric, score) in scores {
            let Some(spec) = header.rubrics.get(rubric as usize) else {
                continue;
            };
            self.summary.undecided_rubrics += u64::from(score.undecided);
            if spec.threshold.is_some() || score.has_weights {
                // A rubric without a threshold passes only with the full score.
                let (passed, value) = score.finish(spec.threshold.unwrap_or(1.0));
                self.rubrics.push(RubricRow {
                    transcript: open.source.id.clone(),
                    rubric: spec.id.clone(),
                    passed,
                    score: value,
                    edited: score.edited,
                });
            }
        }
        Ok(())
    }
}

/// Returns `true` if the rubric disables the eval of these cells or does not sample them, so that there was nothing to
/// decide.
fn is_left_out<'r>(results: impl Iterator<Item = Option<&'r CellResult>>) -> bool {
    results.flatten().any(|result| {
        let why = &result.explanation;
        result.outcome == Outcome::Skipped
            && (*why == DISABLED_EVAL || why.starts_with(NOT_SAMPLED))
    })
}

/// Returns the trace that a run continues, in words; `None` if the run is not a branch.
pub fn describe_branch(header: &RunHeader) -> Option<String> {
    let parent = header.parent.as_ref()?.run.letters();
    let point = header.branch_point()?.describe();
    Some(format!("branch of run {parent} from {point}"))
}

impl IncompleteTranscript {
    /// Emits the results that no earlier cell holds back.
    fn emit_ready<E>(
        &mut self,
        header: &RunHeader,
        labels: &Labels,
        emit: &mut RowReceiver<'_, E>,
    ) -> Result<(), E> {
        // Most transcripts get all results at once and need no list of the others.
        if self.missing_results == self.cells.len() {
            return Ok(());
        }
        let mut unemitted = self.unemitted.take().unwrap_or_else(|| {
            let mut unemitted = UnemittedCells::default();
            let keys: Vec<CellKey> = self.cells.iter().map(|cell| cell.key).collect();
            unemitted.extend(0, &keys);
            unemitted
        });
        let is_panel = |eval: u32| {
            let eval = header.evals.get(eval as usize);
            eval.is_some_and(|eval| eval.panel.is_some())
        };
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(at) = unemitted.take_next(is_panel, |at| self.cells[at].result.is_some())
        {
            outcome = self.emit_row(&self.cells[at], header, labels, emit);
        }
        self.unemitted = Some(unemitted);
        outcome
    }

    /// Emits all results that have no row yet, and sorts the cells into plan order.
    fn emit_rest<E>(
        &mut self,
        header: &RunHeader,
        labels: &Labels,
        emit: &mut RowReceiver<'_, E>,
    ) -> Result<(), E> {
        let rest = self.unemitted.take();
        for at in rest.iter().flat_map(UnemittedCells::positions) {
            self.emit_row(&self.cells[at], header, labels, emit)?;
        }
        // Repeats that were planned later are at the end, so restore the plan order.
        self.cells.sort_by_key(|cell| plan_position(&cell.key));
        if rest.is_none() {
            for cell in &self.cells {
                self.emit_row(cell, header, labels, emit)?;
            }
        }
        Ok(())
    }

    /// Emits the row of a cell. A cell without a result is pending and has no row.
    fn emit_row<E>(
        &self,
        cell: &RowCell,
        header: &RunHeader,
        labels: &Labels,
        emit: &mut RowReceiver<'_, E>,
    ) -> Result<(), E> {
        match self.make_row(cell, header, labels) {
            Some(row) => emit(&ReportRow::Result(row)),
            None => Ok(()),
        }
    }

    /// Returns the row of a cell, if it has a result.
    fn make_row<'a>(
        &'a self,
        RowCell { key, result }: &'a RowCell,
        header: &'a RunHeader,
        labels: &Labels,
    ) -> Option<ResultRow<'a>> {
        let (result, eval) = (result.as_deref()?, header.evals.get(key.eval as usize)?);
        let label = look_up_label(labels, header, &self.source, key).counted();
        Some(ResultRow {
            name: header.cell_name(&self.source, key)?,
            eval_type: &eval.eval_type,
            bounds: ScoreBounds::from_decision_settings(&eval.decision_settings),
            is_panel_member: eval.panel.is_some(),
            label: label.and_then(|label| label.passed),
            is_shot: eval.is_shot(&self.source.id),
            digests: CellDigests {
                transcript: &self.source.digest,
                eval: &eval.digest,
                judge: key
                    .judge
                    .and_then(|judge| header.judges.get(judge as usize)),
            },
            failed_rerun: None,
            result,
        })
    }
}

#[cfg(test)]
mod tests;
