//! Failed re-runs: attempts to judge a row again that ended without a verdict. The row keeps its earlier verdict, in the
//! list and in all counts, with the error of the attempt next to it.
//!
//! The cells of the attempt have slots, so that their judge traces can be shown. Their slots are numbered from
//! [`FIRST_FAILED_SLOT`]. If the question changed since the earlier verdict, that verdict is stale.

use std::sync::Arc;

use super::run_cells::to_flip_side;
use super::second_opinions::FIRST_FAILED_SLOT;
use super::votes::compute_decision;
use super::{CellsRow, DecisionRule, RowBeforeRun, RowSlot, RowSlotState};
use crate::model::Outcome;

/// The last attempt to judge a row again, which ended without a verdict.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailedRerun {
    /// The outcome: an error.
    pub(crate) outcome: Outcome,
    /// The error of the first cell with this outcome.
    pub(crate) error: Arc<str>,
    /// The cells of the attempt.
    pub(super) slots: Vec<RowSlot>,
}

impl FailedRerun {
    /// Returns the failed attempt that these cells are; `None` if they reached a verdict or are not complete.
    pub(super) fn from_slots(slots: Vec<RowSlot>, by: &DecisionRule) -> Option<Self> {
        let attempt = CellsRow {
            slots,
            ..CellsRow::default()
        };
        let outcome = compute_decision(&attempt, by)?.outcome;
        if !is_failed_attempt(outcome) {
            return None;
        }
        let mut errors = attempt.slots.iter().filter_map(|slot| match &slot.state {
            RowSlotState::Done {
                outcome: ended,
                explanation,
                ..
            } if *ended == outcome => Some(Arc::clone(explanation)),
            _ => None,
        });
        Some(Self {
            outcome,
            error: errors.next().unwrap_or_default(),
            slots: attempt.slots,
        })
    }
}

/// Returns true for an outcome that replaces no earlier verdict. A check that ends in an error does: code would end the
/// same way again.
fn is_failed_attempt(outcome: Outcome) -> bool {
    outcome.is_error() && outcome != Outcome::CheckError
}

impl CellsRow {
    /// Returns the failed re-run, unless a blind screen hides the verdict.
    pub(crate) fn visible_failed_rerun(&self) -> Option<&FailedRerun> {
        self.failed_rerun.as_ref().filter(|_| !self.hidden)
    }

    /// Returns true if a slot number belongs to a failed re-run of the row.
    pub(crate) fn is_failed_slot(&self, at: u16) -> bool {
        self.failed_slots().any(|(number, _)| number == at)
    }

    /// Returns the cells of the failed re-run with their slot numbers.
    pub(super) fn failed_slots(&self) -> impl Iterator<Item = (u16, &RowSlot)> {
        let slots = self.failed_rerun.iter().flat_map(|failed| &failed.slots);
        (FIRST_FAILED_SLOT..).zip(slots)
    }

    /// Restores the verdict from before a run that ended without one. Returns false if there was none, or if the run
    /// reached a verdict.
    pub(super) fn keep_verdict_of(&mut self, before: RowBeforeRun, by: &DecisionRule) -> bool {
        let Some(failed) = FailedRerun::from_slots(self.slots.clone(), by) else {
            return false;
        };
        let attempt = std::mem::replace(&mut self.slots, before.slots);
        let earlier = compute_decision(self, by);
        if !earlier
            .as_ref()
            .is_some_and(|decision| decision.outcome.is_verdict())
        {
            self.slots = attempt;
            return false;
        }
        self.decision = earlier;
        self.flipped = before.flipped;
        self.failed_rerun = Some(failed);
        // A new verdict is compared with the one that the row shows.
        self.verdict = self.verdict.take().or_else(|| to_flip_side(self));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{board, header, keys, on_board, outline, outlined, row, transcript};
    use super::super::{CellsState, RowStatus, SlotId, StaleReason};
    use super::*;
    use crate::model::{CellIx, CellResult, RunId};
    use crate::record::NewestVerdicts;
    use crate::tui::state::cells::run_cells::CellCompletion;

    const NAME: &str = "a/r/tone";

    /// Runs the cell of `a` and returns its slot.
    fn start(cells: &mut CellsState, run: &RunId, rank: u64, version: &str) -> SlotId {
        let names = cells.register_header(&header(&run.0, &["tone?"], version), true);
        cells.register_run(run, rank);
        let places = cells.start_cells(run, &names, &transcript("a"), CellIx(0), &keys(&["tone?"]));
        places[0].expect("a place")
    }

    fn end(
        cells: &mut CellsState,
        rank: u64,
        version: &str,
        result: &CellResult,
    ) -> CellCompletion {
        let run = RunId(format!("2026010{rank}T000000Z-runn"));
        let at = start(cells, &run, rank, version);
        cells.finish_cell(at, &run, CellIx(0), result)
    }

    fn dead() -> CellResult {
        CellResult::from_error(Outcome::JudgeError, "cannot reach the server")
    }

    fn passed() -> CellsState {
        let mut cells = outlined(&["a"], &["tone?"]);
        cells.apply_newest_verdicts(&board(&[("a/r/tone~one", Outcome::Pass)]));
        cells
    }

    fn held(cells: &CellsState) -> &CellsRow {
        cells.row(row(cells, NAME)).expect("a row")
    }

    fn failed_outcome(cells: &CellsState) -> Option<Outcome> {
        Some(held(cells).failed_rerun.as_ref()?.outcome)
    }

    #[test]
    fn failed_rerun_keeps_earlier_verdict_and_its_counts() {
        for outcome in Outcome::ALL.into_iter().filter(|o| o.is_error()) {
            let mut cells = passed();
            let ended = end(&mut cells, 1, "v1", &CellResult::from_error(outcome, "why"));
            assert_eq!((ended.decided, ended.flip), (true, None), "{outcome}");
            let keeps = outcome != Outcome::CheckError;
            let want = if keeps { Outcome::Pass } else { outcome };
            let row = held(&cells);
            assert_eq!(row.status(), RowStatus::Decided(want), "{outcome}");
            assert_eq!((row.stale, row.is_problem()), (None, true), "{outcome}");
            let total = cells.total;
            let counts = (total.pass, total.error, total.failed_reruns);
            let want = if keeps { (1, 0, 1) } else { (0, 1, 0) };
            assert_eq!(counts, want, "{outcome}");
        }
    }

    #[test]
    fn outcome_that_the_decision_had_before_is_no_first_judging() {
        for outcome in [Outcome::NotApplicable, Outcome::JudgeError] {
            let mut cells = outlined(&["a"], &["tone?"]);
            let again = CellResult::from_error(outcome, "why");
            let first = end(&mut cells, 1, "v1", &again);
            assert!(first.first_verdict, "{outcome}: it was never judged");
            let second = end(&mut cells, 2, "v1", &again);
            assert_eq!(
                (second.outcome, second.first_verdict),
                (Some(outcome), false)
            );
            // The answer to another question is the first verdict.
            let third = end(&mut cells, 3, "v1", &CellResult::new(Outcome::Pass, "so"));
            assert!(third.first_verdict, "{outcome}");
        }
    }

    #[test]
    fn traces_of_both_runs_have_slots() {
        let mut cells = passed();
        end(&mut cells, 1, "v1", &dead());
        let row = held(&cells);
        let runs: Vec<&str> = row
            .all_slots()
            .map(|(_, slot)| {
                cells.runs[slot.run_cell.expect("a run").run as usize]
                    .0
                    .as_str()
            })
            .collect();
        assert_eq!(runs, ["20260101T000000Z-past", "20260101T000000Z-runn"]);
        assert_eq!(row.adjacent_slot(0, true), Some(FIRST_FAILED_SLOT));
        assert!(row.is_failed_slot(FIRST_FAILED_SLOT) && !row.is_failed_slot(0));
        let failed = row.failed_rerun.as_ref().expect("it failed");
        assert_eq!(&*failed.error, "cannot reach the server");
    }

    #[test]
    fn verdict_of_a_changed_question_stays_and_is_stale() {
        let mut cells = passed();
        outline(&mut cells, &["a"], &["tone?"], "v2");
        end(&mut cells, 1, "v2", &CellResult::cancelled());
        let row = held(&cells);
        assert_eq!(row.status(), RowStatus::Decided(Outcome::Pass));
        assert_eq!(row.stale, Some(StaleReason::Eval));
        assert_eq!(failed_outcome(&cells), Some(Outcome::Cancelled));
        // The next verdict is compared with the one that stayed.
        let ended = end(&mut cells, 2, "v2", &CellResult::new(Outcome::Fail, "no"));
        assert!(ended.flip.is_some());
        assert_eq!(failed_outcome(&cells), None, "the verdict ends the error");
        assert_eq!(held(&cells).stale, None);
    }

    #[test]
    fn second_failure_replaces_the_first_and_a_cancel_keeps_it() {
        let mut cells = passed();
        end(&mut cells, 1, "v1", &dead());
        let timeout = CellResult::from_error(Outcome::Timeout, "too late");
        end(&mut cells, 2, "v1", &timeout);
        assert_eq!(failed_outcome(&cells), Some(Outcome::Timeout));
        assert_eq!(held(&cells).all_slots().count(), 2);
        let run = RunId("20260109T000000Z-late".into());
        let at = start(&mut cells, &run, 9, "v1");
        assert_eq!(failed_outcome(&cells), None, "it is judged again");
        cells.abandon_cells(&run, &[Some(at)]);
        assert_eq!(failed_outcome(&cells), Some(Outcome::Timeout));
        assert_eq!(held(&cells).status(), RowStatus::Decided(Outcome::Pass));
    }

    #[test]
    fn first_failure_without_a_verdict_is_the_result() {
        let mut cells = outlined(&["a"], &["tone?"]);
        end(&mut cells, 1, "v1", &dead());
        assert_eq!(failed_outcome(&cells), None);
        let status = held(&cells).status();
        assert_eq!(status, RowStatus::Decided(Outcome::JudgeError));
        assert_eq!((cells.total.error, cells.total.failed_reruns), (1, 0));
    }

    #[test]
    fn recorded_failure_keeps_the_recorded_verdict() {
        let mut newest = NewestVerdicts::default();
        for (run, outcome) in [
            ("20260101T000000Z-past", Outcome::Fail),
            ("20260102T000000Z-dead", Outcome::Cancelled),
        ] {
            let mut cell = on_board(run, "a", outcome, "why");
            cell.judge = Some(Arc::new(super::super::tests::digest("one")));
            newest.insert("a/r/tone~one".into(), cell);
        }
        let mut cells = outlined(&["a"], &["tone?"]);
        cells.apply_newest_verdicts(&Arc::new(newest));
        let row = held(&cells);
        assert_eq!(row.status(), RowStatus::Decided(Outcome::Fail));
        assert_eq!(
            (row.stale, failed_outcome(&cells)),
            (None, Some(Outcome::Cancelled))
        );
        let total = cells.total;
        assert_eq!((total.fail, total.failed_reruns), (1, 1));
        assert_eq!((total.cancelled_reruns, total.budget_reruns), (1, 0));
        // An edit makes the verdict stale, as any other.
        outline(&mut cells, &["a"], &["tone?"], "v2");
        assert_eq!(held(&cells).stale, Some(StaleReason::Eval));
        assert_eq!(failed_outcome(&cells), Some(Outcome::Cancelled));
    }
}
