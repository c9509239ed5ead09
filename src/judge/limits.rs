//! Where a trace meets its budget: near a limit the judge is asked to conclude, at it the cell ends.

use super::budget::Reached;
use super::trace::Trace;
use crate::event::{CallCx, Kind};
use crate::model::{CellIx, CellResult, Outcome, VerdictMode};

impl Reached {
    /// The fact: hard, nothing more is sent; soft, judges were asked to conclude.
    pub fn fact(&self, cell: Option<CellIx>, hard: bool) -> Kind {
        Kind::BudgetReached {
            limit: self.limit.to_owned(),
            hard,
            cell,
            max: Some(self.max),
            spent: Some(self.spent),
        }
    }
}

impl Trace<'_> {
    /// Whether this turn is for the verdict alone, since a limit is near; told once a run, and once in the cell. A judge
    /// without tools has one turn anyway.
    pub(super) async fn conclude(&self, cx: &CallCx) -> bool {
        if self.setup.mode != VerdictMode::Call {
            return false;
        }
        let Some((reached, new)) = self.meter.near(cx.turn.0 > 0) else {
            return false;
        };
        if reached.first && !reached.of_cell {
            cx.out.send(reached.fact(None, false)).await;
        }
        if new {
            cx.out.send(reached.fact(Some(cx.cell), false)).await;
        }
        true
    }

    /// The cell ends, since nothing more may be sent.
    pub(super) async fn out_of_budget(&self, reached: Reached, cx: &CallCx) -> CellResult {
        if reached.of_cell {
            cx.out.send(reached.fact(Some(cx.cell), true)).await;
        } else if reached.first {
            cx.out.send(reached.fact(None, true)).await;
        }
        let why = format!("{}; nothing more was sent", reached.why);
        CellResult::failed(Outcome::Budget, why)
    }

    /// Turns are used up, or were cut short by a limit.
    pub(super) fn out_of_turns(&self) -> CellResult {
        if self.meter.concluding() {
            let why = "asked to conclude because a limit is near, the judge called another tool";
            return CellResult::failed(Outcome::Budget, why);
        }
        let why = format!(
            "no verdict within {} turns (max_turns)",
            self.setup.max_turns
        );
        CellResult::failed(Outcome::TurnLimit, why)
    }
}
