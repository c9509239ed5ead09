//! The totals of a run: planned and settled cells, and complete decisions.
//!
//! Responsible for counters only. A decision with a cell without a result counts under no outcome; its cells are
//! `pending`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;

use crate::event::{ReadingTotals, RunTotals};
use crate::model::{CellResult, Cost, Decision, Millis, Outcome, TokenUsage};

/// The counters of a run, shared by the merge thread and the scheduler.
#[derive(Debug, Default)]
pub(in crate::run) struct RunTally(Mutex<RunCounts>);

#[derive(Debug, Default)]
struct RunCounts {
    planned: u64,
    settled: u64,
    /// The number of decisions by outcome, in the order of [`Outcome::ALL`].
    outcomes: [u64; Outcome::ALL.len()],
    usage: TokenUsage,
    bill: Cost,
    reading: ReadingTotals,
}

impl RunTally {
    /// Sets the counts of the transcript files.
    pub(in crate::run) fn set_reading(&self, reading: ReadingTotals) {
        self.lock().reading = reading;
    }

    /// Adds planned cells.
    pub(in crate::run) fn add_planned(&self, cells: usize) {
        self.lock().planned += cells as u64;
    }

    /// Adds cells that got a result without a judge call.
    pub(in crate::run) fn add_settled(&self, cells: usize) {
        self.lock().settled += cells as u64;
    }

    /// Adds a cell that a judge finished.
    pub(in crate::run) fn add_judged(&self, result: &CellResult, free: bool) {
        let mut inner = self.lock();
        inner.settled += 1;
        // A free judge's tokens count as usage, but its missing price must not make the cost unknown.
        inner.usage = inner.usage.plus(result.usage.unwrap_or_default());
        if !free {
            inner.bill = inner.bill.plus(result.bill());
        }
    }

    /// Adds the decision of cells that all have results.
    pub(in crate::run) fn add_decision(&self, decision: Option<&Decision>) {
        if let Some(decision) = decision {
            self.lock().outcomes[decision.outcome as usize] += 1;
        }
    }

    /// Adds the decisions of cells of which each decides alone.
    pub(in crate::run) fn add_single_cells<'r>(
        &self,
        results: impl IntoIterator<Item = &'r CellResult>,
    ) {
        let mut inner = self.lock();
        for result in results {
            inner.outcomes[result.outcome as usize] += 1;
        }
    }

    /// Returns the totals of the run.
    pub(in crate::run) fn totals(&self, duration: Millis, cancelled: bool) -> RunTotals {
        let inner = self.lock();
        let outcomes = Outcome::ALL.into_iter().zip(inner.outcomes);
        let outcomes: IndexMap<Outcome, u64> = outcomes.filter(|(_, count)| *count > 0).collect();
        RunTotals {
            cells: inner.planned,
            // The merge thread adds planned cells first, so the difference is not negative at the end.
            pending: inner.planned.saturating_sub(inner.settled),
            outcomes,
            usage: inner.usage,
            cost_usd: inner.bill.exact_usd(),
            bill: (inner.bill.unknown > 0).then_some(inner.bill),
            assumed_usd: None,
            duration_ms: duration,
            cancelled,
            reading: inner.reading.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::decide_cells;

    #[test]
    fn totals_count_each_decision_once_and_every_cell() {
        let tally = RunTally::default();
        let pass = CellResult::new(Outcome::Pass, "");
        let fail = CellResult::new(Outcome::Fail, "");
        tally.add_planned(4);
        tally.add_settled(1);
        tally.add_single_cells([&fail]);
        tally.add_judged(&pass, true);
        tally.add_judged(&pass, true);
        tally.add_decision(decide_cells([&pass, &pass]).as_ref());
        let totals = tally.totals(Millis(7), false);
        assert_eq!((totals.cells, totals.pending), (4, 1));
        assert_eq!(
            totals.outcomes.into_iter().collect::<Vec<_>>(),
            [(Outcome::Pass, 1), (Outcome::Fail, 1)]
        );
        assert_eq!(totals.cost_usd, Some(0.0));
    }

    #[test]
    fn call_without_a_price_makes_the_cost_unknown() {
        let tally = RunTally::default();
        let mut asked = CellResult::new(Outcome::Pass, "");
        asked.usage = Some(TokenUsage {
            calls: 1,
            ..TokenUsage::default()
        });
        tally.add_planned(2);
        tally.add_judged(
            &CellResult {
                cost_usd: Some(0.5),
                ..asked.clone()
            },
            false,
        );
        assert_eq!(tally.totals(Millis(0), false).cost_usd, Some(0.5));
        tally.add_judged(&asked, false);
        let totals = tally.totals(Millis(0), false);
        assert_eq!(totals.cost_usd, None);
        let bill = totals.bill.expect("what is known of it");
        assert_eq!(bill.to_string(), "$0.5000 + unknown for 1 call");
    }
}
