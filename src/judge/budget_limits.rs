//! The reaction of a judge trace to its budget: near a limit the judge must conclude, at the limit the cell ends.

use super::budget::LimitReached;
use super::usage_meter::{NearLimit, UsageMeter};
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
    // Without tools the only turn is already the one with the verdict.
    if verdict_mode != VerdictMode::Call {
        return false;
    }
    let Some(NearLimit { reached, is_new }) = meter.check_near(cx.turn.0 > 0) else {
        return false;
    };
    // One event without a cell for the run, then one for each cell that concludes.
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
    // A limit of the run ends many cells, but only the first of them records it.
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
    // The budget cut the turns short, so the outcome is `budget` and not `turn_limit`.
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
    use crate::judge::fake::{
        FakeTool, FakeToolBehavior, JudgeFixture, PASSED, Script, ScriptedReply, calls,
        format_facts,
    };
    use crate::model::{BudgetLimits, Millis, Prices, RunAndCellBudgets};
    use crate::provider::{ProviderError, ToolChoice};

    fn fixture(limits: RunAndCellBudgets) -> JudgeFixture {
        let mut fixture = JudgeFixture::new(&[FakeTool::new("fetch_url", FakeToolBehavior::Echo)]);
        fixture.config.prices = Some(Prices {
            input: 1.0,
            output: 10.0,
            cached: None,
        });
        fixture.budget = Arc::new(Budget::new(limits, Arc::new(FakeClock::new())));
        fixture
    }

    fn most_calls(calls: u64) -> BudgetLimits {
        BudgetLimits {
            max_calls: Some(calls),
            ..BudgetLimits::default()
        }
    }

    fn fetch() -> ScriptedReply {
        calls(&[("fetch_url", r#"{"url":"a"}"#)])
    }

    #[tokio::test]
    async fn judge_near_a_limit_may_only_submit_its_verdict_and_the_event_is_recorded_once() {
        let fixture = fixture(RunAndCellBudgets {
            cell: most_calls(2),
            ..RunAndCellBudgets::default()
        });
        let script = Script::new(vec![fetch(), calls(&[("submit_verdict", PASSED)])]);
        let (result, facts) = fixture.judge(&script).await;
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
        let fact_words = format_facts(&facts);
        assert_eq!(
            fact_words.iter().filter(|t| *t == "budget reached").count(),
            1
        );
    }

    #[tokio::test]
    async fn judge_that_does_not_conclude_ends_with_the_outcome_budget() {
        let fixture = fixture(RunAndCellBudgets {
            cell: most_calls(2),
            ..RunAndCellBudgets::default()
        });
        let script = Script::new(vec![fetch(), fetch()]);
        let (result, _) = fixture.judge(&script).await;
        assert_eq!(result.outcome, Outcome::Budget);
        let why = result.error.expect("why");
        assert!(why.contains("asked to conclude"), "{why}");
    }

    #[tokio::test]
    async fn retries_count_as_calls_and_stop_at_the_limit() {
        let mut fixture = fixture(RunAndCellBudgets {
            run: most_calls(2),
            ..RunAndCellBudgets::default()
        });
        fixture.tools.tools.clear();
        let busy = ProviderError::InStream {
            message: "busy".into(),
            retryable: true,
        };
        let script = Script::new(vec![ScriptedReply::Error(busy)]);
        let mut judged = Box::pin(fixture.judge(&script));
        let (result, _) = loop {
            if let Some(judged) = (&mut judged).now_or_never() {
                break judged;
            }
            fixture.clock.advance(Millis(1000));
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
