//! Events in, rows out: results in plan order, then decisions of several cells, then rubrics, then the summary.
//!
//! A transcript is complete once all its planned cells have results: further repeats are planned before the result that
//! makes them necessary (see `run`).

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexMap;

use super::label_agreement::{EvalVerdicts, find_label, is_edited_by_human};
use super::panel_decision::find_judge_names;
use super::score::RubricScore;
use crate::event::{
    BudgetStop, CellKey, EventKind, ReplayedEvidencePlan, RunEvent, RunHeader, RunStats, ToolFact,
    ToolResponseSource,
};
use crate::model::{
    CallIx, CellIx, CellName, CellNameRef, CellResult, Cost, Decision, Labels, Outcome,
    ScoreBounds, TokenUsage, TranscriptRef, TurnIx,
};

/// One line of a report.
#[derive(Debug, Clone)]
pub enum ReportRow<'a> {
    /// The run's header, first.
    Header(&'a RunHeader),
    /// A cell's result.
    Result(ResultRow<'a>),
    /// A decision of more than one cell.
    Decision(&'a DecisionRow),
    /// A rubric's score on a transcript.
    Rubric(&'a RubricRow),
    /// Per judge and per tool, before the end; only where a judge was needed.
    Stats(&'a RunStats),
    /// The end.
    Summary(&'a RunSummary),
}

/// A cell's result with all that names it.
#[derive(Debug, Clone)]
pub struct ResultRow<'a> {
    /// The full name.
    pub name: CellNameRef<'a>,
    /// The eval type.
    pub eval_type: &'a str,
    /// What decides a score: `min_score` and `max_score`, where set.
    pub bounds: ScoreBounds,
    /// Its judge is one of several: alone it decides nothing.
    pub is_panel_member: bool,
    /// What a person says of its decision.
    pub label: Option<bool>,
    /// The result.
    pub result: &'a CellResult,
}

/// A decision of more than one cell, or of more than one judge.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRow {
    /// Its name; `judge` and `repeat` are absent.
    pub name: CellName,
    /// The eval type.
    pub eval_type: String,
    /// What was decided.
    pub decision: Decision,
    /// What a person says of it.
    pub label: Option<bool>,
    /// The judges' names, in the order of the ruling's members.
    pub judges: Vec<String>,
}

/// A rubric's score on a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct RubricRow {
    /// The transcript.
    pub transcript: String,
    /// The rubric.
    pub rubric: String,
    /// `None`: undecided, because nothing has a verdict or a required eval has none.
    pub passed: Option<bool>,
    /// Σ(w·s)/Σw over its verdicts.
    pub score: Option<f64>,
}

/// What a run came to. Outcomes count decisions; `cells` and `pending` count cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSummary {
    /// The run's id.
    pub run: String,
    /// Whether it ran the demo.
    pub demo: bool,
    /// Cells planned.
    pub cells: u64,
    /// Cells without a result.
    pub pending: u64,
    /// No end was recorded, or it was cancelled.
    pub interrupted: bool,
    /// Decisions by outcome.
    pub outcomes: [u64; Outcome::ALL.len()],
    /// What judging took.
    pub usage: TokenUsage,
    /// USD; `None` when some of it is unknown, or nothing was asked.
    pub cost_usd: Option<f64>,
    /// What is known of it.
    pub bill: Cost,
    /// The day of the built-in prices, where some of it is reckoned by these.
    pub prices_as_of: Option<String>,
    /// Limits of the run that were reached, in order.
    pub budgets: Vec<BudgetStop>,
    /// Milliseconds from the first to the last event.
    pub duration_ms: u64,
    /// Transcripts reached.
    pub transcripts: u64,
    /// Verdicts by eval, in the order of the header.
    pub evals: Vec<EvalVerdicts>,
    /// Whose evidence answered judges' tool calls, if any.
    pub evidence: Option<ReplayedEvidencePlan>,
    /// Calls that it answered.
    pub evidence_answers: u64,
    /// Calls that it had no answer for.
    pub evidence_misses: u64,
    /// Decisions that a vote of several won.
    pub voted: u64,
    /// Of them: all voted so.
    pub unanimous: u64,
    /// Their winners' shares, added up.
    pub share_sum: f64,
    /// Decisions of a cascade.
    pub cascades: u64,
    /// Of them: the first judge was unsure.
    pub escalated: u64,
}

impl RunSummary {
    /// How many decisions ended so.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// Decisions that ended in an error.
    pub fn errors(&self) -> u64 {
        Outcome::ALL
            .iter()
            .filter(|o| o.is_error())
            .map(|o| self.count(*o))
            .sum()
    }

    /// The mean share of the winning votes; `None` where nothing was voted on.
    pub fn mean_share(&self) -> Option<f64> {
        (self.voted > 0).then(|| self.share_sum / self.voted as f64)
    }

    fn count_votes(&mut self, decision: &Decision) {
        let stands = decision
            .panel
            .as_ref()
            .and_then(|ruling| ruling.deciding_member);
        if let Some(stands) = stands {
            self.cascades += 1;
            self.escalated += u64::from(stands > 0);
        }
        if let Some(share) = decision.winning_share().filter(|share| share.total > 1) {
            self.voted += 1;
            self.unanimous += u64::from(share.won == share.total);
            self.share_sum += share.fraction();
        }
    }

    /// The exit code of design.md 4 over decisions. What is pending is not passed.
    pub fn exit_code(&self) -> u8 {
        if self.count(Outcome::Fail) > 0 {
            1
        } else if self.errors() > 0 || self.pending > 0 {
            3
        } else if self.count(Outcome::Pass) > 0 {
            0
        } else {
            4
        }
    }
}

/// Gathers events into rows.
#[derive(Default)]
pub struct RowBuilder {
    header: Option<Box<RunHeader>>,
    /// Transcripts with unprinted cells, in plan order.
    incomplete: BTreeMap<u64, IncompleteTranscript>,
    /// Cells by their first number: how many, whose transcript's place in `open`, and from where in its cells.
    ranges: BTreeMap<CellIx, PlannedCellRange>,
    last_transcript_no: u64,
    decisions: Vec<DecisionRow>,
    rubrics: Vec<RubricRow>,
    summary: RunSummary,
    /// With frozen evidence: the tools of calls that have not ended.
    pending_calls: HashMap<(CellIx, TurnIx, CallIx), String>,
    stats: RunStats,
    has_judge_calls: bool,
    labels: Labels,
}

#[derive(Debug, Clone, Copy)]
struct PlannedCellRange {
    len: usize,
    transcript_no: u64,
    first_cell: usize,
}

struct IncompleteTranscript {
    source: TranscriptRef,
    cells: Vec<(CellKey, Option<CellResult>)>,
    missing_results: usize,
}

impl RowBuilder {
    /// Rows that say what people said, too.
    pub fn with_labels(labels: Labels) -> Self {
        Self {
            labels,
            ..Self::default()
        }
    }

    /// Takes an event and passes on the rows that are complete.
    pub fn apply<E>(
        &mut self,
        event: &RunEvent,
        emit: &mut impl FnMut(&ReportRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.summary.duration_ms = event.at.0;
        self.stats.apply(event);
        match &event.kind {
            EventKind::RunStarted(header) => {
                self.summary.run.clone_from(&header.run.0);
                self.summary.demo = header.demo;
                self.summary.interrupted = true;
                let evals = header.evals.iter().map(|eval| EvalVerdicts {
                    rubric: header
                        .rubrics
                        .get(eval.rubric as usize)
                        .map_or_else(String::new, |rubric| rubric.id.clone()),
                    eval: eval.id.clone(),
                    ..EvalVerdicts::default()
                });
                self.summary.evals = evals.collect();
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
                for cell in settled {
                    self.add_result(cell.0, &cell.1);
                }
                self.emit_complete(false, emit)?;
            }
            EventKind::CellFinished { cell, result } => {
                self.add_result(*cell, result);
                self.emit_complete(false, emit)?;
            }
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } if self.summary.evidence.is_some() => {
                self.count_evidence_use((*cell, *turn, *call), fact)
            }
            EventKind::BudgetReached { .. } => {
                self.summary
                    .budgets
                    .extend(BudgetStop::from_event(&event.kind));
            }
            EventKind::RunFinished(totals) => self.summary.interrupted = totals.cancelled,
            _ => {}
        }
        Ok(())
    }

    /// Counts what frozen evidence answered, and what it did not.
    fn count_evidence_use(&mut self, at: (CellIx, TurnIx, CallIx), fact: &ToolFact) {
        if let ToolFact::Received { name, .. } = fact {
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

    /// Passes on what is left, and the summary.
    pub fn finish<E>(
        mut self,
        emit: &mut impl FnMut(&ReportRow<'_>) -> Result<(), E>,
    ) -> Result<RunSummary, E> {
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
        self.summary.cost_usd = bill.known_usd().filter(|_| self.has_judge_calls);
        emit(&ReportRow::Summary(&self.summary))?;
        Ok(self.summary)
    }

    fn add_planned_cells(&mut self, transcript: &TranscriptRef, first: CellIx, keys: &[CellKey]) {
        // Further repeats of a transcript are planned later, under new numbers; few transcripts are open at a time.
        let known = self
            .incomplete
            .iter()
            .find(|(_, open)| open.source == *transcript)
            .map(|(place, _)| *place);
        let place = known.unwrap_or_else(|| {
            self.summary.transcripts += 1;
            self.last_transcript_no += 1;
            self.last_transcript_no
        });
        let open = self
            .incomplete
            .entry(place)
            .or_insert_with(|| IncompleteTranscript {
                source: transcript.clone(),
                cells: Vec::with_capacity(keys.len()),
                missing_results: 0,
            });
        self.ranges.insert(
            first,
            PlannedCellRange {
                len: keys.len(),
                transcript_no: place,
                first_cell: open.cells.len(),
            },
        );
        open.cells.extend(keys.iter().map(|key| (*key, None)));
        open.missing_results += keys.len();
        self.summary.cells += keys.len() as u64;
        self.summary.pending += keys.len() as u64;
    }

    fn add_result(&mut self, cell: CellIx, result: &CellResult) {
        let Some((first, range)) = self.ranges.range(..=cell).next_back() else {
            return;
        };
        let offset = cell.index() - first.index();
        if offset >= range.len {
            return;
        }
        let Some(open) = self.incomplete.get_mut(&range.transcript_no) else {
            return;
        };
        let slot = &mut open.cells[range.first_cell + offset].1;
        if slot.is_some() {
            return;
        }
        *slot = Some(result.clone());
        open.missing_results -= 1;
        self.summary.pending -= 1;
        if let (Some(usage), None) = (result.usage, &result.cached) {
            self.summary.usage = self.summary.usage.plus(usage);
            self.has_judge_calls = true;
        }
    }

    /// Prints transcripts from the oldest on while they are complete; all that have results with `all`.
    fn emit_complete<E>(
        &mut self,
        all: bool,
        emit: &mut impl FnMut(&ReportRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(header) = self.header.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        while let Some(entry) = self.incomplete.first_entry() {
            if !all && entry.get().missing_results > 0 {
                break;
            }
            let (place, mut open) = entry.remove_entry();
            open.cells
                .sort_by_key(|(key, _)| (key.eval, key.message, key.judge, key.repeat));
            self.ranges.retain(|_, range| range.transcript_no != place);
            outcome = open.emit_rows(&header, &self.labels, emit);
            if outcome.is_err() {
                break;
            }
            self.count_transcript(&header, &open);
        }
        self.header = Some(header);
        outcome
    }

    fn count_transcript(&mut self, header: &RunHeader, open: &IncompleteTranscript) {
        let mut scores: IndexMap<u32, RubricScore> = IndexMap::new();
        for group in open
            .cells
            .chunk_by(|a, b| (a.0.eval, a.0.message) == (b.0.eval, b.0.message))
        {
            let key = group[0].0;
            let Some(eval) = header.evals.get(key.eval as usize) else {
                continue;
            };
            let score = scores.entry(eval.rubric).or_default();
            score.has_weights |= eval.weighted;
            let name = header.cell_name(&open.source, &key);
            let of = name.map(|name| (name.transcript, name.rubric, name.eval));
            let said = of.and_then(|of| find_label(&self.labels, of, key.message));
            let results = || group.iter().map(|(_, result)| result.as_ref());
            let decision = if results().all(|result| result.is_some()) {
                eval.decide(group.iter().map(|(key, result)| (key, result.as_ref())))
            } else {
                score.undecided |= eval.required;
                None
            };
            if let Some(said) = said.filter(|_| !is_edited_by_human(results()))
                && let Some(of) = self.summary.evals.get_mut(key.eval as usize)
            {
                let outcome = decision.as_ref().map(|decision| decision.outcome);
                of.count_label(outcome.and_then(Outcome::passed), said);
            }
            let Some(decision) = decision else { continue };
            self.summary.outcomes[decision.outcome as usize] += 1;
            self.summary.count_votes(&decision);
            if let Some(of) = self.summary.evals.get_mut(key.eval as usize) {
                of.pass += u64::from(decision.outcome == Outcome::Pass);
                of.fail += u64::from(decision.outcome == Outcome::Fail);
            }
            score.add(eval.weight, eval.required, decision.outcome, decision.score);
            // Several judges of which one was enough are told too.
            if (group.len() > 1 || decision.panel.is_some())
                && let Some(name) = name
            {
                self.decisions.push(DecisionRow {
                    name: name.to_owned().decision_name(),
                    eval_type: eval.eval_type.clone(),
                    judges: find_judge_names(header, &decision),
                    label: said,
                    decision,
                });
            }
        }
        for (rubric, score) in scores {
            let Some(spec) = header.rubrics.get(rubric as usize) else {
                continue;
            };
            if spec.threshold.is_some() || score.has_weights {
                let (passed, value) = score.finish(spec.threshold.unwrap_or(1.0));
                self.rubrics.push(RubricRow {
                    transcript: open.source.id.clone(),
                    rubric: spec.id.clone(),
                    passed,
                    score: value,
                });
            }
        }
    }
}

impl IncompleteTranscript {
    fn emit_rows<E>(
        &self,
        header: &RunHeader,
        labels: &Labels,
        emit: &mut impl FnMut(&ReportRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (key, result) in &self.cells {
            let (Some(result), Some(eval), Some(name)) = (
                result,
                header.evals.get(key.eval as usize),
                header.cell_name(&self.source, key),
            ) else {
                continue;
            };
            emit(&ReportRow::Result(ResultRow {
                name,
                eval_type: &eval.eval_type,
                bounds: ScoreBounds::from_decision_settings(&eval.decision_settings),
                is_panel_member: eval.panel.is_some(),
                label: find_label(
                    labels,
                    (name.transcript, name.rubric, name.eval),
                    key.message,
                ),
                result,
            }))?;
        }
        Ok(())
    }
}
