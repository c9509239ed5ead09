//! Cells that start, end, or stay undecided in a cancelled run. Of two runs with the same cell, the newer one wins.

use std::sync::Arc;

use super::RunCellIx;
use super::name_index::hash_inputs;
use super::second_opinions::is_second_opinion_slot;
use super::votes::compute_decision;
use super::{
    CellsRow, CellsState, FlipSide, LabelValue, RowBeforeRun, RowFlip, RowId, RowSlot,
    RowSlotState, RunIndexMap, SlotId,
};
use crate::event::CellKey;
use crate::model::{
    CauseSet, CellIx, CellResult, Doubt, Millis, Outcome, RunId, TranscriptRef, verdict_probability,
};

impl CellsState {
    /// Registers a run. Of runs with the same cell, the one with the highest rank wins. Ranks count from 1.
    pub(crate) fn register_run(&mut self, run: &RunId, rank: u64) {
        self.find_or_add_run(run, rank);
    }

    /// Returns the index of a run in [`CellsState::runs`], and adds it if it is new.
    pub(super) fn find_or_add_run(&mut self, run: &RunId, rank: u64) -> u32 {
        // Ranks never decrease, so the highest one needs no search.
        self.order.highest_rank = self.order.highest_rank.max(rank);
        if let Some(at) = self.find_run_ix(run) {
            let known = &mut self.order.run_ranks[at as usize];
            *known = (*known).max(rank);
            return at;
        }
        let at = u32::try_from(self.runs.len()).expect("fewer than 2^32 runs");
        self.runs.push(run.clone());
        self.order.run_ranks.push(rank);
        self.order.run_numbers.insert(run.clone(), at);
        at
    }

    fn find_run_ix(&self, run: &RunId) -> Option<u32> {
        // Events of one run arrive together, so the last run is checked first.
        if let Some(last) = self.runs.last()
            && last == run
        {
            return u32::try_from(self.runs.len() - 1).ok();
        }
        self.order.run_numbers.get(run).copied()
    }

    fn run_rank(&self, run: u32) -> u64 {
        self.order.run_ranks.get(run as usize).copied().unwrap_or(0)
    }

    /// Opens the group of a cell whose judge started.
    pub(crate) fn mark_judge_started(&mut self, SlotId { row, .. }: SlotId) {
        let group = self.row(row).map(|row| row.eval as usize);
        let group = group.and_then(|eval| self.groups.get_mut(eval));
        if let Some(group) = group.filter(|group| !group.stays_open) {
            group.stays_open = true;
            self.mark_order_urgent();
        }
    }

    /// Marks the cells that a run planned for a transcript as live; they are numbered from `first`. A row that a
    /// newer run planned is skipped, and its cells have no slot.
    pub(crate) fn start_cells(
        &mut self,
        run: &RunId,
        names: &RunIndexMap,
        transcript: &TranscriptRef,
        first: CellIx,
        keys: &[CellKey],
    ) -> Vec<Option<SlotId>> {
        // A run without a rank is the first of its row.
        let run = self.find_or_add_run(run, 1);
        let rank = self.run_rank(run).max(1);
        // Only the newest run has the current digests of transcripts.
        let newest = self.order.highest_rank <= rank;
        let transcript_ix = self.find_or_add_transcript(transcript, newest);
        let mut places = Vec::with_capacity(keys.len());
        for (key, cell) in keys.iter().zip(first.0..) {
            // The slot stays empty, so that slots keep the numbers of the cells.
            let Some(eval) = names.evals.get(key.eval as usize) else {
                places.push(None);
                continue;
            };
            let row = self.find_or_add_row(transcript_ix, *eval, key.message);
            let judge = key
                .judge
                .and_then(|judge| names.judges.get(judge as usize).copied());
            let is_second_opinion = names.measures_noise
                || names.is_branch
                || names.second_opinion
                    && self
                        .row(row)
                        .is_some_and(|row| self.gives_second_opinion(row, judge, key.repeat));
            // A newer run planned the row, so this run's result would be outdated.
            if !is_second_opinion
                && self
                    .row(row)
                    .is_some_and(|row| row.bookkeeping.run_rank > rank)
            {
                places.push(None);
                continue;
            }
            let slot = RowSlot {
                judge,
                repeat: key.repeat,
                run_cell: Some(RunCellIx {
                    run,
                    cell: CellIx(cell),
                }),
                cached_from: None,
                state: RowSlotState::Live,
                used_tools: false,
                duration: Millis(0),
                inputs: hash_inputs(names, key, &transcript.digest),
                by_human: false,
                branch: names.branch.clone(),
            };
            // A second opinion does not change the row's decision or its staleness.
            if is_second_opinion {
                let at = self
                    .update_row(row, |row| row.put_second_opinion(slot, names.is_branch))
                    .flatten();
                places.push(at.map(|slot| SlotId { row, slot }));
                continue;
            }
            let at = self.update_row(row, |row| {
                // The row's own judge runs again, so opinions about older inputs no longer apply.
                row.drop_outdated_second_opinions(slot.inputs);
                // The first cell of this run saves the state before it.
                if row.bookkeeping.run_rank < rank {
                    let before_run = RowBeforeRun {
                        slots: std::mem::take(&mut row.slots),
                        // A flip belongs to the edit, so it stays while the row is judged again.
                        flipped: row.flipped.clone(),
                        failed_rerun: row.failed_rerun.take(),
                        rank: row.bookkeeping.run_rank,
                    };
                    // Undecided cells of an older run are not worth restoring, so the state before that run is kept.
                    let live = before_run
                        .slots
                        .iter()
                        .any(|slot| slot.state == RowSlotState::Live);
                    if !live {
                        row.bookkeeping.before_run = Some(Box::new(before_run));
                    }
                    row.bookkeeping.run_rank = rank;
                }
                // A run judges the row, so the row exists again.
                row.bookkeeping.removed = false;
                // The list shows the old outcome until the new one is known.
                if let Some(decision) = row.decision.take() {
                    row.outcome_before = Some(decision.outcome);
                }
                row.stale = None;
                row.slots.push(slot);
                row.slots.len() - 1
            });
            let at = at.and_then(|at| u16::try_from(at).ok());
            places.push(at.map(|slot| SlotId { row, slot }));
        }
        places
    }

    /// Stores the result of a cell. Returns a flip if the decision is complete and its verdict changed.
    pub(crate) fn finish_cell(
        &mut self,
        at: SlotId,
        run: &RunId,
        cell: CellIx,
        result: &CellResult,
    ) -> CellCompletion {
        let Some(run) = self.find_run_ix(run) else {
            return CellCompletion::default();
        };
        // A newer run may have replaced the slot, or the row was restored.
        let waits = |row: &CellsRow| {
            let slot = row.slot(at.slot)?;
            (slot.run_cell == Some(RunCellIx { run, cell })).then_some(())
        };
        if self.row(at.row).and_then(waits).is_none() {
            return CellCompletion::default();
        }
        let by = self.decision_rule(at.row);
        let ended = self.update_row(at.row, |row| {
            let Some(slot) = row.slot_mut(at.slot) else {
                return CellCompletion::default();
            };
            slot.cached_from.clone_from(&result.cached);
            slot.used_tools = result.used_tools();
            slot.duration = result.duration_ms;
            slot.by_human = result.by_human;
            slot.state = RowSlotState::Done {
                outcome: result.outcome,
                score: result.score,
                explanation: Arc::from(result.error.as_deref().unwrap_or(&result.explanation)),
                probability: verdict_probability(result),
                doubt: Doubt::from_result(result),
                causes: CauseSet::of_result(result),
            };
            // A second opinion has no vote, so it can't cause a flip.
            if is_second_opinion_slot(at.slot) {
                return CellCompletion {
                    decided: true,
                    ..CellCompletion::default()
                };
            }
            row.decision = compute_decision(row, &by);
            // Other cells of the decision are still missing.
            if row.decision.is_none() {
                return CellCompletion::default();
            }
            // The run decided the row, so a cancellation no longer restores it.
            let before = row.bookkeeping.before_run.take();
            let outcome_before = row.outcome_before.take();
            let earlier = before.as_ref().map(|before| before.slots.clone());
            if let Some(before) = before {
                let before = match row.set_edited_cells_aside(before, &by) {
                    // A verdict that a person edited decides nothing.
                    Ok(first) => {
                        return CellCompletion {
                            decided: true,
                            moved_to: Some(first),
                            ..CellCompletion::default()
                        };
                    }
                    Err(before) => before,
                };
                // An attempt without a verdict must not hide the verdict from before it.
                if row.keep_verdict_of(*before, &by) {
                    return CellCompletion {
                        decided: true,
                        ..CellCompletion::default()
                    };
                }
            }
            if let Some(earlier) = earlier {
                row.keep_cells_before_edit(earlier);
            }
            let outcome = row.decision.as_ref().map(|decision| decision.outcome);
            CellCompletion {
                decided: true,
                // An outcome without a verdict is not new if the decision had it before.
                first_verdict: row.verdict.is_none() && outcome != outcome_before,
                outcome,
                flip: record_flip(at.row, row, result.by_human),
                moved_to: None,
            }
        });
        self.update_staleness(at.row);
        ended.unwrap_or_default()
    }

    /// Forgets the flips of the edit before, because a new edit begins.
    pub(crate) fn begin_edit(&mut self) {
        for row in (0..self.rows.len()).map(|row| RowId(u32::try_from(row).unwrap_or(u32::MAX))) {
            if self.row(row).is_some_and(|row| row.flipped.is_some()) {
                self.update_row(row, |row| row.flipped = None);
            }
        }
    }

    /// Marks the row of a flip that the history has. A run of this session knows its own flips.
    pub(crate) fn restore_flip(&mut self, row: RowId, before: &FlipSide) {
        if self
            .row(row)
            .is_some_and(|row| row.bookkeeping.run_rank == 0)
        {
            self.update_row(row, |row| row.flipped = Some(before.clone()));
        }
    }

    /// Restores the cells from before the last edit, which the history has. A run of this session knows its own.
    pub(crate) fn restore_cells_before_edit(&mut self, row: RowId, cells: &[(RunId, CellIx)]) {
        // Rank 0 is that of runs before this session.
        let run_cells: Vec<RunCellIx> = cells
            .iter()
            .map(|(run, cell)| RunCellIx {
                run: self.find_or_add_run(run, 0),
                cell: *cell,
            })
            .collect();
        self.update_row(row, |row| {
            let is_known = row.bookkeeping.run_rank > 0 || !row.before_edit.is_empty();
            if !is_known && run_cells.len() == row.slots.len() {
                let slots = row.slots.iter().zip(&run_cells);
                row.before_edit = slots
                    .map(|(slot, run_cell)| RowSlot {
                        run_cell: Some(*run_cell),
                        cached_from: None,
                        ..slot.clone()
                    })
                    .collect();
            }
        });
    }

    /// Restores the planned but undecided cells of a run that ended.
    pub(crate) fn abandon_cells(&mut self, run: &RunId, places: &[Option<SlotId>]) {
        let Some(run) = self.find_run_ix(run) else {
            return;
        };
        for SlotId { row, slot: at } in places.iter().flatten() {
            if is_second_opinion_slot(*at) {
                self.update_row(*row, |row| row.reset_second_opinion(*at, run));
                continue;
            }
            let waits = |slot: &RowSlot| {
                slot.state == RowSlotState::Live && slot.run_cell.is_some_and(|at| at.run == run)
            };
            // The row has only cells with results, which stay.
            if !self
                .row(*row)
                .is_some_and(|row| row.slots.iter().any(waits))
            {
                continue;
            }
            let by = self.decision_rule(*row);
            self.update_row(*row, |row| {
                // The first undecided cell restores the whole row, so the next one finds nothing to restore.
                if let Some(past) = row.bookkeeping.before_run.take() {
                    row.slots = past.slots;
                    row.flipped = past.flipped;
                    row.failed_rerun = past.failed_rerun;
                    row.bookkeeping.run_rank = past.rank;
                } else {
                    for slot in row.slots.iter_mut().filter(|slot| waits(slot)) {
                        slot.state = RowSlotState::NeverRun;
                        slot.run_cell = None;
                    }
                }
                row.decision = compute_decision(row, &by);
                row.outcome_before = None;
            });
            self.update_staleness(*row);
        }
        self.mark_order_outdated();
    }
}

/// The effect of a cell's end on its row.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CellCompletion {
    /// True if the decision is complete.
    pub(crate) decided: bool,
    /// The outcome of the decision; `None` for a second opinion.
    pub(crate) outcome: Option<Outcome>,
    /// True if the row had neither a verdict nor this outcome before.
    pub(crate) first_verdict: bool,
    pub(crate) flip: Option<RowFlip>,
    /// The new number of the row's first cell, if a person edited the traces and the cells no longer decide.
    pub(crate) moved_to: Option<u16>,
}

/// Converts a decided row to one side of a flip.
pub(super) fn to_flip_side(row: &CellsRow) -> Option<FlipSide> {
    let decision = row.decision.as_ref()?;
    Some(FlipSide {
        outcome: decision.outcome,
        score: decision.score,
        explanation: row.decision_explanation().cloned().unwrap_or_default(),
    })
}

/// Returns true if the verdict equals the label; `None` if the label is neither pass nor fail.
pub(crate) fn compute_label_agreement(label: Option<LabelValue>, outcome: Outcome) -> Option<bool> {
    let passed = label?.passed()?;
    Some(Some(passed) == outcome.passed())
}

/// Stores a decision as the newest verdict, if it is one. Returns the flip if it differs from the verdict before. The row
/// remembers the verdict before the edit.
fn record_flip(id: RowId, row: &mut CellsRow, by_human: bool) -> Option<RowFlip> {
    // A verdict that a person edited is not a baseline.
    let after = to_flip_side(row).filter(|side| side.outcome.is_verdict() && !by_human)?;
    let before = row.verdict.replace(after.clone())?;
    if before.outcome == after.outcome {
        return None;
    }
    let before_edit = row.flipped.take().unwrap_or_else(|| before.clone());
    row.flipped = Some(before_edit).filter(|before_edit| before_edit.outcome != after.outcome);
    Some(RowFlip {
        row: id,
        before,
        agrees_with_label: compute_label_agreement(row.label, after.outcome),
        after,
        arithmetic: None,
    })
}
