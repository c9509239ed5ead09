//! The newest verdicts of past runs, for every row that no run of this session touched. Next to them are the earlier results
//! that decide nothing: second opinions, branches and edited judge traces.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::RunCellIx;
use super::name_index::hash_digest;
use super::run_cells::to_flip_side;
use super::votes::compute_decision;
use super::{
    BranchOrigin, CellsState, DecisionRule, FailedRerun, RowId, RowSlot, RowSlotState,
    VerdictInputs,
};
use crate::model::{CellName, CellVote, RunId};
use crate::record::{ExtraResult, NewestVerdicts, RecordedResult};

/// An upper bound that exceeds the repeats of any eval.
const MAX_REPEATS: u32 = 1000;

/// The number of rows that are filled at once.
const ROWS_PER_WAKE: u32 = 2000;

/// The newest verdicts. They are kept for rows that an outline adds later.
#[derive(Debug, Clone)]
pub(super) struct PastVerdicts {
    newest: Arc<NewestVerdicts>,
    runs: HashMap<RunId, u32>,
    /// The rows that are not filled yet.
    pending_rows: std::ops::Range<u32>,
}

impl PastVerdicts {
    /// Creates the verdicts for `rows` rows that are not filled yet.
    pub(super) fn new(newest: &Arc<NewestVerdicts>, rows: u32) -> Self {
        Self {
            newest: Arc::clone(newest),
            runs: HashMap::new(),
            pending_rows: 0..rows,
        }
    }
}

impl CellsState {
    pub(super) fn set_newest_verdicts(&mut self, board: &Arc<NewestVerdicts>) {
        let rows = u32::try_from(self.rows.len()).expect("a session holds fewer than 2^32 rows");
        self.past_verdicts = Some(PastVerdicts::new(board, rows));
        self.fill_next_rows();
        self.mark_order_outdated();
    }

    /// Returns true if rows are not filled yet.
    pub(crate) fn has_rows_to_fill(&self) -> bool {
        self.past_verdicts
            .as_ref()
            .is_some_and(|past| !past.pending_rows.is_empty())
    }

    /// Fills some more rows, which takes a few milliseconds.
    pub(super) fn fill_next_rows(&mut self) {
        let Some(past) = &mut self.past_verdicts else {
            return;
        };
        let to = past
            .pending_rows
            .end
            .min(past.pending_rows.start + ROWS_PER_WAKE);
        let rows = past.pending_rows.start..to;
        past.pending_rows.start = to;
        if rows.is_empty() {
            return;
        }
        for row in rows.map(RowId) {
            self.fill_row(row);
            self.update_staleness(row);
        }
        // The order is computed once at the end, because filling changes the sort class of most rows.
        if !self.has_rows_to_fill() {
            self.mark_order_outdated();
        }
    }

    /// Fills a row from past runs, unless a run of this session judged it.
    pub(super) fn fill_row(&mut self, id: RowId) {
        let Some(mut past) = self.past_verdicts.take() else {
            return;
        };
        // A rank of 0 means that no run of this session judged the row.
        if let Some(row) = self.row(id)
            && row.bookkeeping.run_rank == 0
        {
            let found = self.find_past_slots(&mut past, id);
            let by = self.decision_rule(id);
            if let Some(PastSlots {
                slots,
                verdict,
                failed_rerun,
            }) = found
            {
                self.update_row(id, |row| {
                    row.slots = slots;
                    row.failed_rerun = failed_rerun;
                    row.decision = compute_decision(row, &by);
                    // A past verdict is the baseline of later flips, not a flip itself.
                    row.verdict = match &row.decision {
                        // The newest result may be an error; then the last real verdict is the baseline.
                        Some(now) if now.outcome.is_verdict() => to_flip_side(row),
                        _ => verdict,
                    };
                });
            }
        }
        self.add_extra_results(&mut past, id);
        self.past_verdicts = Some(past);
    }

    /// Adds the earlier results that decide nothing and are about the same eval and transcript as the row.
    fn add_extra_results(&mut self, past: &mut PastVerdicts, id: RowId) {
        let board = Arc::clone(&past.newest);
        if !board.has_extra_results() {
            return;
        }
        let mut name = String::new();
        self.write_cell_name(&mut name, id, None, None);
        // A branch comes after the trace that it continues.
        for extra in board.extra_results(&name).iter().rev() {
            let slot = self.build_extra_slot(past, extra);
            if self.is_extra_slot(id, &slot) {
                let is_kept = !extra.is_second_opinion();
                self.update_row(id, |row| row.put_second_opinion(slot, is_kept));
            }
        }
    }

    /// Returns the slot of a result that decides nothing.
    pub(super) fn build_extra_slot(
        &mut self,
        past: &mut PastVerdicts,
        extra: &ExtraResult,
    ) -> RowSlot {
        let digest = extra.result.judge.as_deref();
        let judge = extra.judge.as_deref().zip(digest);
        let judge = judge.map(|(name, digest)| self.find_or_add_judge(name, digest));
        let mut slot = self.build_past_slot(past, judge, extra.repeat, Some(&extra.result));
        slot.by_human = extra.by_human;
        slot.branch = extra.branch.as_ref().map(|branch| {
            Arc::new(BranchOrigin {
                run: branch.parent.clone(),
                cell: branch.parent_cell,
                point: branch.point.describe(),
            })
        });
        if let Some(interruption) = extra.interruption {
            slot.state = RowSlotState::Interrupted {
                paused_at: interruption.paused_at,
            };
        }
        slot
    }

    /// Returns true if a row lacks an earlier result that is about its eval and transcript and that decides nothing.
    fn is_extra_slot(&self, id: RowId, slot: &RowSlot) -> bool {
        let Some(row) = self.row(id) else {
            return false;
        };
        let mut judged = row.slots.iter().filter(|slot| slot.run_cell.is_some());
        let subject = judged.next().map(|slot| slot.inputs);
        let subject = subject.unwrap_or_else(|| self.current_inputs(row));
        let is_listed = |other: &RowSlot| {
            let is_same_opinion = other.is_opinion()
                && slot.is_opinion()
                && (other.judge, other.repeat) == (slot.judge, slot.repeat);
            other.run_cell == slot.run_cell || is_same_opinion
        };
        slot.inputs.has_same_subject(subject)
            && (!slot.is_opinion() || self.gives_second_opinion(row, slot.judge, slot.repeat))
            && !row
                .slots
                .iter()
                .any(|other| other.run_cell == slot.run_cell)
            && !row.second_opinions.iter().any(is_listed)
    }

    /// Returns the past results of a row.
    fn find_past_slots(&mut self, past: &mut PastVerdicts, id: RowId) -> Option<PastSlots> {
        let row = self.row(id)?;
        let mut slots = Vec::with_capacity(row.slots.len());
        let mut verdicts = Vec::new();
        let mut name = String::new();
        // Copied, because building a slot changes the cells.
        let planned: Vec<(Option<u32>, Option<u32>)> =
            row.slots.iter().map(|s| (s.judge, s.repeat)).collect();
        let board = Arc::clone(&past.newest);
        for (judge, repeat) in &planned {
            self.write_cell_name(&mut name, id, *judge, *repeat);
            let cell = board.get(&name);
            verdicts.extend(board.verdict(&name));
            slots.push(self.build_past_slot(past, *judge, *repeat, cell));
        }
        if self.decision_rule(id).panel.is_some() {
            let more = self.find_panel_slots(past, &board, id, &planned);
            for (slot, named) in more {
                verdicts.extend(board.verdict(&named));
                slots.push(slot);
            }
        } else if let Some((judge, Some(last))) = planned.last().copied() {
            // A tied vote or an unsure cascade called more judges than the outline plans.
            let run = |at: &RowSlot| at.run_cell.map(|at| at.run);
            for repeat in last + 1..MAX_REPEATS {
                self.write_cell_name(&mut name, id, judge, Some(repeat));
                // The extra cells of one vote have consecutive repeats and come from one run.
                let Some(cell) = board.get(&name) else { break };
                let slot = self.build_past_slot(past, judge, Some(repeat), Some(cell));
                if slots.first().is_none_or(|first| run(first) != run(&slot)) {
                    break;
                }
                verdicts.extend(board.verdict(&name));
                slots.push(slot);
            }
        }
        // No planned cell has a past result, so the judge of the eval may have changed.
        if slots.iter().all(|slot| slot.run_cell.is_none())
            && let Some(other) = self.find_other_judges_slots(past, &board, id)
        {
            slots = other;
        }
        // A verdict is computed only if each slot has one; a part of a panel can't decide.
        let by = self.decision_rule(id);
        let is_whole = verdicts.len() >= slots.len();
        let verdict = is_whole
            .then(|| compute_past_verdict(&verdicts, &slots, &by))
            .flatten();
        // The newest results are an attempt that failed, so the verdicts before it stay.
        if verdict.is_some()
            && verdicts.len() == slots.len()
            && have_same_question(&verdicts)
            && let Some(failed) = FailedRerun::from_slots(slots.clone(), &by)
        {
            let pairs: Vec<_> = slots.iter().map(|slot| (slot.judge, slot.repeat)).collect();
            let earlier = pairs.into_iter().zip(verdicts.iter().copied());
            let earlier = earlier.map(|((judge, repeat), cell)| {
                self.build_past_slot(past, judge, repeat, Some(cell))
            });
            return Some(PastSlots {
                slots: earlier.collect(),
                verdict,
                failed_rerun: Some(failed),
            });
        }
        Some(PastSlots {
            slots,
            verdict,
            failed_rerun: None,
        })
    }

    /// Adds the slots of further members and repeats. A tied jury or an unsure cascade has more cells than the
    /// outline plans. The vote ignores those that it does not need.
    fn find_panel_slots(
        &mut self,
        past: &mut PastVerdicts,
        board: &NewestVerdicts,
        id: RowId,
        planned: &[(Option<u32>, Option<u32>)],
    ) -> Vec<(RowSlot, String)> {
        let by = self.decision_rule(id);
        let judges = by.panel.as_ref().map_or(&[][..], |panel| &panel.judges);
        let mut slots = Vec::new();
        let mut name = String::new();
        for judge in judges.iter().map(|judge| Some(*judge)) {
            // A single cell has no repeat number in its name.
            let numbers = (1..=by.repeat).map(|number| (by.repeat > 1).then_some(number));
            for repeat in numbers.filter(|repeat| !planned.contains(&(judge, *repeat))) {
                self.write_cell_name(&mut name, id, judge, repeat);
                // Repeats are numbered without gaps, so the first missing one ends the search.
                let Some(cell) = board.get(&name) else { break };
                slots.push((
                    self.build_past_slot(past, judge, repeat, Some(cell)),
                    name.clone(),
                ));
            }
        }
        slots
    }

    /// Returns slots of other judges or other repeats, from before the eval changed its judge.
    fn find_other_judges_slots(
        &mut self,
        past: &mut PastVerdicts,
        board: &NewestVerdicts,
        id: RowId,
    ) -> Option<Vec<RowSlot>> {
        let mut name = String::new();
        self.write_cell_name(&mut name, id, None, None);
        let found: CellName = board.newest_judged_cell(&name)?.parse().ok()?;
        let newest = board.get(&found.to_string())?.run.clone();
        let mut slots = Vec::new();
        let mut next = found;
        // The repeats of one run belong together; an older run used other inputs.
        while let Some(cell) = board.get(&next.to_string())
            && cell.run == newest
        {
            let judge = match (&next.judge, &cell.judge) {
                (Some(name), Some(digest)) => Some(self.find_or_add_judge(name, digest)),
                _ => None,
            };
            slots.push(self.build_past_slot(past, judge, next.repeat, Some(cell)));
            let Some(repeat) = next.repeat else { break };
            next.repeat = Some(repeat + 1);
        }
        Some(slots)
    }

    pub(super) fn write_cell_name(
        &self,
        into: &mut String,
        id: RowId,
        judge: Option<u32>,
        repeat: Option<u32>,
    ) {
        into.clear();
        let name = self
            .row(id)
            .and_then(|row| self.name_with(row, judge, repeat));
        if let Some(name) = name {
            let _infallible = write!(into, "{name}");
        }
    }

    pub(super) fn build_past_slot(
        &mut self,
        past: &mut PastVerdicts,
        judge: Option<u32>,
        repeat: Option<u32>,
        cell: Option<&RecordedResult>,
    ) -> RowSlot {
        let Some(cell) = cell else {
            return RowSlot {
                judge,
                repeat,
                ..RowSlot::default()
            };
        };
        // Thousands of rows share few runs, so their indexes are remembered.
        let run = past.runs.get(&cell.run).copied().unwrap_or_else(|| {
            // Rank 0 is below each run of this session.
            let run = self.find_or_add_run(&cell.run, 0);
            past.runs.insert(cell.run.clone(), run);
            run
        });
        RowSlot {
            judge,
            repeat,
            run_cell: Some(RunCellIx {
                run,
                cell: cell.cell,
            }),
            cached_from: cell.cached_from.clone(),
            state: RowSlotState::Done {
                outcome: cell.outcome,
                score: cell.score,
                // An error has no explanation, so its message takes that place.
                explanation: Arc::from(cell.error.as_deref().unwrap_or(&cell.explanation)),
                probability: cell.probability,
                doubt: cell.doubt,
                causes: cell.causes,
            },
            used_tools: cell.used_tools,
            duration: cell.duration,
            // Only the results that decide nothing are edited ones and branches.
            by_human: false,
            branch: None,
            inputs: VerdictInputs {
                eval: hash_digest(&cell.eval),
                judge: cell.judge.as_ref().map_or(0, |digest| hash_digest(digest)),
                transcript: hash_digest(&cell.transcript),
                second_opinion: false,
                is_branch: false,
                is_foreign: !cell.is_own,
            },
        }
    }
}

/// The past results of a row.
struct PastSlots {
    slots: Vec<RowSlot>,
    /// The newest verdict, if the newest results are not verdicts.
    verdict: Option<super::FlipSide>,
    /// The attempt after the verdict in `slots`, if it ended without one.
    failed_rerun: Option<FailedRerun>,
}

/// Returns true if the cells judged the same eval and transcript, so that they can decide together.
fn have_same_question(cells: &[&RecordedResult]) -> bool {
    let mut pairs = cells.windows(2);
    pairs.all(|pair| (&pair[0].eval, &pair[0].transcript) == (&pair[1].eval, &pair[1].transcript))
}

/// Returns the verdict that some cells decide together, if any. `slots` contains their judges.
fn compute_past_verdict(
    cells: &[&RecordedResult],
    slots: &[RowSlot],
    by: &DecisionRule,
) -> Option<super::FlipSide> {
    let votes: Vec<CellVote> = cells
        .iter()
        .zip(slots)
        .map(|(cell, slot)| CellVote {
            judge: slot.judge,
            repeat: slot.repeat,
            ballot: Some(cell.ballot()),
        })
        .collect();
    let decision = by.vote_terms().decide(&votes)?;
    let deciding_cell = cells
        .iter()
        .zip(slots)
        // Only a judge that the vote counted may explain the decision.
        .filter(|(_, slot)| decision.counts_judge(slot.judge))
        .find(|(cell, _)| cell.outcome == decision.outcome)?
        .0;
    decision.outcome.is_verdict().then(|| super::FlipSide {
        outcome: decision.outcome,
        score: decision.score,
        explanation: Arc::from(deciding_cell.explanation.as_str()),
    })
}
