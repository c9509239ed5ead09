//! The calls of a plan that cost money, or may: their number, their estimated cost, and whether dicta must ask first.
//!
//! Responsible for the rule. Does not ask: the command line and the workbench do.

use std::sync::Arc;

use super::prepare::may_call_paid_judge;
use super::preview::{JudgePreview, RunPreview, preview_run};
use super::{RunError, RunOptions};
use crate::clock::Clock;
use crate::handlers::EvalTypeRegistry;
use crate::model::{Millis, format_usd, make_visible, pluralize};
use crate::workspace::{Env, Workspace};

/// The calls of a plan to judges that are not free. Cells with recorded verdicts need no call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PaidCalls {
    /// The names of the judges that are called, or may be.
    pub judges: Vec<String>,
    /// The number of cells that these judges judge for certain.
    pub cells: u64,
    /// The number of cells that a split vote or an unsure judge may add.
    pub possible_cells: u64,
    /// The minimum number of model calls.
    pub calls_least: u64,
    /// The maximum number of model calls.
    pub calls_most: u64,
    /// The estimated cost; `None` if the price of a judge is unknown.
    pub cost: Option<CostEstimate>,
    /// The judges whose cost no one knows: without prices, or on another machine with a price of 0.
    pub unpriced_judges: Vec<String>,
    /// The duration, if recorded cells exist for all cells.
    pub duration: Option<Millis>,
}

/// The estimated cost of the calls of a plan in USD.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostEstimate {
    /// The likely cost of the certain cells: of a cascade, the first judge only.
    pub likely: f64,
    /// The likely cost if every possible call is made: all judges of a jury or cascade, all repeats, all turns.
    pub with_all_calls: f64,
    /// The cost if, in addition, every reply has its maximum length.
    pub most: f64,
}

/// Estimates the calls of a run that cost money. Reads the transcripts only if the run may call a judge that is not
/// free. Calls no judge.
pub async fn estimate_paid_calls(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
) -> Result<PaidCalls, RunError> {
    if !may_call_paid_judge(&workspace, registry, env, &options)? {
        return Ok(PaidCalls::default());
    }
    let preview = preview_run(workspace, registry, env, clock, options).await?;
    Ok(PaidCalls::of_run(&preview))
}

impl PaidCalls {
    /// Returns the paid calls of a run.
    pub fn of_run(preview: &RunPreview) -> Self {
        Self::of_judges(preview.judges.iter().map(|(name, judge)| (&**name, judge)))
    }

    /// Returns the paid calls of these judges.
    pub fn of_judges<'p>(judges: impl IntoIterator<Item = (&'p str, &'p JudgePreview)>) -> Self {
        let mut all = Self::default();
        let mut cost = CostEstimate::default();
        let mut longest = Some(Millis(0));
        for (name, judge) in judges {
            if judge.is_free || judge.all_calls_most() == 0 {
                continue;
            }
            // A plan of several runs may call one judge in each of them.
            if !all.judges.iter().any(|known| known == name) {
                all.judges.push(name.to_owned());
            }
            all.cells += judge.cells - judge.cached;
            all.possible_cells += judge.possible_cells;
            all.calls_least += judge.calls_least;
            all.calls_most += judge.all_calls_most();
            // The judges work at the same time.
            longest = longest
                .zip(judge.duration)
                .map(|(one, other)| one.max(other));
            match (judge.cost_usd, judge.cost_with_all_calls, judge.cost_range) {
                // Security: the author of the file chooses the price, and only the other machine's owner knows it.
                (Some(likely), Some(with_all_calls), Some(range)) if range.most > 0.0 => {
                    cost.likely += likely;
                    cost.with_all_calls += with_all_calls;
                    cost.most += range.most;
                }
                _ => all.unpriced_judges.push(name.to_owned()),
            }
        }
        all.unpriced_judges.dedup();
        if all.unpriced_judges.is_empty() {
            all.cost = Some(cost);
        }
        all.duration = longest.filter(|_| !all.is_empty());
        all
    }

    /// Reports whether nothing costs money.
    pub fn is_empty(&self) -> bool {
        self.judges.is_empty()
    }

    /// Reports whether dicta must ask before these calls: the cost with all possible calls is higher than the limit,
    /// or a price is unknown.
    pub fn needs_confirmation(&self, limit_usd: f64) -> bool {
        !self.is_empty() && self.cost.is_none_or(|cost| cost.with_all_calls > limit_usd)
    }

    /// Returns the cost: `about $0.03 to $0.09 with all possible calls, at most $2.50`, or `cost unknown (no price for
    /// m)`.
    pub fn cost_text(&self) -> String {
        let Some(CostEstimate {
            likely,
            with_all_calls,
            most,
        }) = self.cost
        else {
            let names: Vec<_> = self.unpriced_judges.iter().map(|name| show(name)).collect();
            return format!("cost unknown (no known price for {})", names.join(", "));
        };
        let (likely_usd, all_usd) = (format_usd(likely), format_usd(with_all_calls));
        let about = if likely_usd == all_usd {
            format!("about {all_usd}")
        } else {
            format!("about {likely_usd} to {all_usd} with all possible calls")
        };
        format!("{about}, at most {}", format_usd(most))
    }

    /// Returns one line: `12 cells by gemini, 12 to 36 model calls, about $0.03, at most $2.50, about 3 min`. `noun`
    /// names what the judges judge.
    pub fn describe(&self, noun: &str) -> String {
        let judges: Vec<_> = self.judges.iter().map(|name| show(name)).collect();
        let mut count = pluralize(self.cells, noun);
        if self.possible_cells > 0 {
            count = format!("{count} (up to {} more)", self.possible_cells);
        }
        let calls = if self.calls_least == self.calls_most {
            pluralize(self.calls_most, "model call")
        } else {
            format!("{} to {} model calls", self.calls_least, self.calls_most)
        };
        let time = self
            .duration
            .map_or_else(String::new, |time| format!(", about {time}"));
        let (judges, cost) = (judges.join(", "), self.cost_text());
        format!("{count} by {judges}, {calls}, {cost}{time}")
    }
}

/// Makes hidden characters of a judge's name visible.
fn show(name: &str) -> std::borrow::Cow<'_, str> {
    make_visible(name, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::CostRange;

    fn judge(likely: f64, with_all_calls: f64, most: f64) -> JudgePreview {
        JudgePreview {
            cells: 3,
            cached: 1,
            calls_least: 2,
            calls_most: 2,
            cost_usd: Some(likely),
            cost_with_all_calls: Some(with_all_calls),
            cost_range: Some(CostRange {
                least: likely,
                most,
            }),
            ..JudgePreview::default()
        }
    }

    #[test]
    fn free_judges_and_cached_cells_need_no_confirmation() {
        let free = JudgePreview {
            is_free: true,
            ..judge(0.0, 0.0, 0.0)
        };
        let cached = JudgePreview {
            cells: 4,
            cached: 4,
            cost_usd: Some(0.0),
            cost_range: Some(CostRange::default()),
            ..JudgePreview::default()
        };
        let calls = PaidCalls::of_judges([("free", &free), ("cached", &cached)]);
        assert!(calls.is_empty());
        assert!(!calls.needs_confirmation(0.0));
    }

    #[test]
    fn dicta_asks_above_the_limit_with_all_possible_calls() {
        let cheap = judge(0.02, 0.06, 0.9);
        let one = PaidCalls::of_judges([("a", &cheap)]);
        assert!(!one.needs_confirmation(0.1), "{one:?}");
        assert!(
            one.needs_confirmation(0.05),
            "a workspace can lower the limit"
        );
        let two = PaidCalls::of_judges([("a", &cheap), ("b", &cheap)]);
        assert!(two.needs_confirmation(0.1), "the sum counts: {two:?}");
        assert_eq!(
            two.describe("cell"),
            "4 cells by a, b, 4 model calls, about $0.0400 to $0.12 with all possible calls, at most $1.80"
        );
    }

    #[test]
    fn unknown_price_is_stated_and_always_asked_about() {
        let unknown = JudgePreview {
            cost_usd: None,
            cost_with_all_calls: None,
            cost_range: None,
            ..judge(0.0, 0.0, 0.0)
        };
        let calls = PaidCalls::of_judges([("a", &judge(0.001, 0.001, 0.002)), ("b", &unknown)]);
        assert!(calls.needs_confirmation(100.0));
        assert_eq!(calls.cost_text(), "cost unknown (no known price for b)");
    }

    #[test]
    fn price_of_0_of_a_judge_that_is_not_free_is_unknown() {
        let calls = PaidCalls::of_judges([("far", &judge(0.0, 0.0, 0.0))]);
        assert!(calls.needs_confirmation(100.0));
        assert_eq!(calls.unpriced_judges, ["far"]);
    }

    #[test]
    fn later_judge_of_a_cascade_counts_for_the_upper_bound() {
        let later = JudgePreview {
            cells: 0,
            cached: 0,
            calls_least: 0,
            calls_most: 0,
            possible_cells: 2,
            possible_calls_most: 6,
            ..judge(0.0, 0.3, 0.9)
        };
        let calls = PaidCalls::of_judges([("later", &later)]);
        assert!(calls.needs_confirmation(0.1));
        assert_eq!(
            calls.describe("cell"),
            "0 cells (up to 2 more) by later, 0 to 6 model calls, about $0 to $0.30 with all possible calls, at most $0.90"
        );
    }
}
