//! The reaction of a judge trace to its budget: near a limit the judge must conclude, at the limit the cell ends.

use super::budget::LimitReached;
use super::usage_meter::UsageMeter;
use crate::event::{CallCx, EventKind};
use crate::model::{CellIx, CellResult, Outcome, VerdictMode, pluralize};

impl LimitReached {
    /// The fact that the limit was reached.
    ///
    /// `hard`: the run sends nothing more. Otherwise dicta asked the judges to conclude.
    pub fn to_event(&self, cell: Option<CellIx>, hard: bool) -> EventKind {
        EventKind::BudgetReached {
            limit: self.limit.to_owned(),
            hard,
            cell,
            max: Some(self.max),
            spent: Some(self.spent),
        }
    }
}

/// Returns whether this turn may only submit the verdict, because a budget limit is near, and records that.
///
/// Records it once a run and once a cell. A judge without tools has one turn anyway, so the result is `false`.
pub(super) async fn emit_conclude_if_near(
    meter: &UsageMeter<'_>,
    verdict_mode: VerdictMode,
    cx: &CallCx,
) -> bool {
    if verdict_mode != VerdictMode::Call {
        return false;
    }
    let Some((reached, is_new)) = meter.check_near(cx.turn.0 > 0) else {
        return false;
    };
    if reached.is_first_report && !reached.is_cell_limit {
        cx.out.send(reached.to_event(None, false)).await;
    }
    if is_new {
        cx.out.send(reached.to_event(Some(cx.cell), false)).await;
    }
    true
}

/// Records a reached limit and returns the result of the cell that it ends.
pub(super) async fn end_out_of_budget(reached: LimitReached, cx: &CallCx) -> CellResult {
    if reached.is_cell_limit {
        cx.out.send(reached.to_event(Some(cx.cell), true)).await;
    } else if reached.is_first_report {
        cx.out.send(reached.to_event(None, true)).await;
    }
    let why = format!("{}; nothing more was sent", reached.why);
    CellResult::from_error(Outcome::Budget, why)
}

/// Returns the result of a cell whose turns are used up, or were cut short by a limit.
pub(super) fn end_out_of_turns(meter: &UsageMeter<'_>, max_turns: u16) -> CellResult {
    if meter.is_concluding() {
        let why = "asked to conclude because a limit is near, the judge called another tool";
        return CellResult::from_error(Outcome::Budget, why);
    }
    let why = format!(
        "no verdict within {} (max_turns)",
        pluralize(u64::from(max_turns), "turn")
    );
    CellResult::from_error(Outcome::TurnLimit, why)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::clock::FakeClock;
    use crate::judge::Budget;
    use crate::judge::fake::{Bench, Does, FakeTool, PASSED, Say, Script, calls, story};
    use crate::model::{BudgetLimits, Millis, Prices, RunAndCellBudgets};
    use crate::provider::{ProviderError, ToolChoice};

    fn bench(limits: RunAndCellBudgets) -> Bench {
        let mut bench = Bench::new(&[FakeTool::new("fetch_url", Does::Echo)]);
        bench.config.prices = Some(Prices {
            input: 1.0,
            output: 10.0,
            cached: None,
        });
        bench.budget = Arc::new(Budget::new(limits, Arc::new(FakeClock::new())));
        bench
    }

    fn most_calls(calls: u64) -> BudgetLimits {
        BudgetLimits {
            max_calls: Some(calls),
            ..BudgetLimits::default()
        }
    }

    fn fetch() -> Say {
        calls(&[("fetch_url", r#"{"url":"a"}"#)])
    }

    #[tokio::test]
    async fn near_a_limit_only_the_verdict_is_allowed_and_that_is_told() {
        let bench = bench(RunAndCellBudgets {
            cell: most_calls(2),
            ..RunAndCellBudgets::default()
        });
        let script = Script::new(vec![fetch(), calls(&[("submit_verdict", PASSED)])]);
        let (result, facts) = bench.judge(&script).await;
        assert_eq!(result.outcome, Outcome::Pass);
        let asked = script.asked.lock().expect("no panic");
        let choices: Vec<&ToolChoice> = asked.iter().map(|(choice, _)| choice).collect();
        assert_eq!(
            choices,
            [
                &ToolChoice::Auto,
                &ToolChoice::ForcedTool("submit_verdict".to_owned())
            ]
        );
        let told = story(&facts);
        assert_eq!(told.iter().filter(|t| *t == "budget reached").count(), 1);
    }

    #[tokio::test]
    async fn who_does_not_conclude_ends_in_budget() {
        let bench = bench(RunAndCellBudgets {
            cell: most_calls(2),
            ..RunAndCellBudgets::default()
        });
        let script = Script::new(vec![fetch(), fetch()]);
        let (result, _) = bench.judge(&script).await;
        assert_eq!(result.outcome, Outcome::Budget);
        let why = result.error.expect("why");
        assert!(why.contains("asked to conclude"), "{why}");
    }

    #[tokio::test]
    async fn attempts_are_calls_so_that_retries_stop_at_the_limit_too() {
        let mut bench = bench(RunAndCellBudgets {
            run: most_calls(2),
            ..RunAndCellBudgets::default()
        });
        bench.tools.tools.clear();
        let busy = ProviderError::InStream {
            message: "busy".into(),
            retryable: true,
        };
        let script = Script::new(vec![Say::Error(busy)]);
        let mut judged = Box::pin(bench.judge(&script));
        let (result, _) = loop {
            if let Some(judged) = (&mut judged).now_or_never() {
                break judged;
            }
            bench.clock.advance(Millis(1000));
        };
        assert_eq!(script.bodies.lock().expect("no panic").len(), 2);
        assert_eq!(result.outcome, Outcome::Budget, "{result:?}");
        assert_eq!(result.usage.map(|usage| usage.calls), Some(2));
        assert_eq!(
            result.bill.map(|bill| bill.unknown),
            Some(2),
            "whether they are billed is not known"
        );
    }
}
