//! The budget of a run and of each cell: USD, tokens, calls and minutes. The judge checks it before each model call
//! and reports to it afterwards.
//!
//! **Reservation.** The budget admits a call only if the amount spent *and the estimates of the calls under way* are
//! below the limit. Otherwise the call waits until one of those is settled. So N parallel cells can't all pass the
//! check at once, and a run exceeds a limit by at most one call. This holds as long as no call takes more than its
//! estimate: the size of its prompt and the longest reply it may write. If a bill exceeds its estimate, dicta reserves for
//! later calls as much more. Before the first bill of a run, no bill has shown that the estimates are enough. So an estimate
//! of cost counts several times then, if other calls are under way.
//!
//! **Unknown bills.** A call that was sent but never billed counts as its estimate. The message of an ended run
//! states how much of its cost is assumed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::event::format_limit_amount;
use crate::model::{BudgetLimits, Millis, RunAndCellBudgets};

/// The factor of estimates of cost until the first bill of a run.
const UNPROVEN_FACTOR: f64 = 4.0;

/// The amounts that calls took, or may take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetSpend {
    /// USD; 0 for a free judge.
    pub usd: f64,
    /// Tokens of prompts and replies together.
    pub tokens: u64,
    /// Model calls.
    pub calls: u64,
}

impl BudgetSpend {
    fn plus(self, other: Self) -> Self {
        Self {
            // A negative cost must not give budget back.
            usd: self.usd + other.usd.max(0.0),
            tokens: self.tokens.saturating_add(other.tokens),
            calls: self.calls.saturating_add(other.calls),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            // Subtracting a float that was added before can leave a small negative rest.
            usd: (self.usd - other.usd.max(0.0)).max(0.0),
            tokens: self.tokens.saturating_sub(other.tokens),
            calls: self.calls.saturating_sub(other.calls),
        }
    }
}

/// The estimate of a call that waits to be admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CallEstimate {
    /// The most that the call is expected to take.
    pub spend: BudgetSpend,
    /// `true` if the judge is free, so that no limit on cost stops the call.
    pub free: bool,
}

/// The amounts and the time that a cell took so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellSpend {
    /// The amounts of its calls.
    pub spend: BudgetSpend,
    /// The time since it began.
    pub elapsed: Millis,
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitReached {
    /// The name of the limit: `usd`, `tokens`, `calls` or `minutes`.
    pub limit: &'static str,
    /// `true` for a limit of the cell, `false` for one of the run.
    pub is_cell_limit: bool,
    /// The limit's value.
    pub max: f64,
    /// The amount taken so far.
    pub spent: f64,
    /// The message for the user.
    pub why: String,
    /// `true` if no one reported this limit before, so that the run reports it once. Always `true` for a limit of the
    /// cell.
    pub is_first_report: bool,
}

/// The budget of a run and its cells. The default has no limit.
#[derive(Default)]
pub struct Budget {
    limits: RunAndCellBudgets,
    /// `None` for a budget without limits, which needs no time.
    clock: Option<BudgetClock>,
    state: Mutex<BudgetState>,
    settled: Notify,
}

/// The clock of a run and the time at which the run began.
struct BudgetClock {
    clock: Arc<dyn Clock>,
    began: Millis,
}

#[derive(Debug, Default)]
struct BudgetState {
    spent: BudgetSpend,
    /// The estimates of the calls under way.
    reserved: BudgetSpend,
    /// The part of `spent` that is estimated because no bill arrived.
    assumed: BudgetSpend,
    /// The largest bill so far, as a multiple of its estimate; 0 without a bill.
    largest_bill: f64,
    hard_limit_reported: bool,
    soft_limit_reported: bool,
}

/// The permission for one call.
///
/// If it is dropped without being settled, it counts as its estimate if the call was sent, otherwise as nothing.
pub struct Reservation {
    budget: Arc<Budget>,
    estimate: BudgetSpend,
    /// The cost in `estimate` before it was raised because of earlier bills.
    expected_usd: f64,
    sent: bool,
}

impl Reservation {
    /// Records that the call was sent, so that the provider may bill it from now on.
    pub fn mark_sent(&mut self) {
        self.sent = true;
    }

    /// Replaces the estimate with the amounts that the call took.
    pub fn settle(mut self, took: BudgetSpend) {
        self.close(took, false);
    }

    /// Settles a call without a bill with its estimate, and returns the estimate.
    pub fn settle_as_estimate(mut self) -> BudgetSpend {
        let estimate = self.estimate;
        self.close(estimate, true);
        estimate
    }

    fn close(&mut self, took: BudgetSpend, assumed: bool) {
        // Take the estimate and clear `sent`, so that `drop` after this doesn't settle the call a second
        // time.
        let estimate = std::mem::take(&mut self.estimate);
        self.sent = false;
        let mut state = self.budget.lock();
        state.reserved = state.reserved.minus(estimate);
        state.spent = state.spent.plus(took);
        if assumed {
            state.assumed = state.assumed.plus(took);
        } else if self.expected_usd > 0.0 {
            state.largest_bill = state.largest_bill.max(took.usd / self.expected_usd);
        }
        // Unlock before waking others, because they lock the state at once.
        drop(state);
        // All waiting calls try again: one expensive estimate can make room for several of them.
        self.budget.settled.notify_waiters();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let estimate = self.estimate;
        // A cancelled cell drops its reservation. After sending, the provider may still bill the call.
        if self.sent {
            self.close(estimate, true);
        } else if estimate != BudgetSpend::default() {
            self.close(BudgetSpend::default(), false);
        }
    }
}

impl Budget {
    /// A budget whose minutes count from now.
    pub fn new(limits: RunAndCellBudgets, clock: Arc<dyn Clock>) -> Self {
        let began = clock.now();
        Self {
            limits,
            clock: Some(BudgetClock { clock, began }),
            ..Self::default()
        }
    }

    /// Checks that no limit of the run is reached. `free`: limits on cost don't apply.
    pub fn check(&self, free: bool) -> Result<(), LimitReached> {
        let mut state = self.lock();
        let over = find_exceeded_limit(&self.limits.run, &state.spent, self.elapsed(), free);
        over.map_or(Ok(()), |over| {
            let first = !std::mem::replace(&mut state.hard_limit_reported, true);
            Err(over.into_limit_reached(false, &state.assumed, first))
        })
    }

    /// Waits until a call may run, and reserves its estimate.
    ///
    /// Returns an error if a limit of the run or the cell is reached.
    pub async fn admit(
        self: &Arc<Self>,
        call: CallEstimate,
        so_far: CellSpend,
    ) -> Result<Reservation, LimitReached> {
        loop {
            // Register before the check: a call that is settled in between would wake no one otherwise.
            let settled = self.settled.notified();
            if let Some(answer) = self.try_admit(call, so_far) {
                return answer;
            }
            settled.await;
        }
    }

    /// Admits or rejects a call; returns `None` if the result depends on the calls under way.
    fn try_admit(
        self: &Arc<Self>,
        call: CallEstimate,
        so_far: CellSpend,
    ) -> Option<Result<Reservation, LimitReached>> {
        // The cell's own limit comes first: it doesn't change while other calls are under way.
        if let Some(over) =
            find_exceeded_limit(&self.limits.cell, &so_far.spend, so_far.elapsed, call.free)
        {
            return Some(Err(over.into_limit_reached(
                true,
                &BudgetSpend::default(),
                true,
            )));
        }
        // Spent amounts alone already exceed the run's limit, so waiting can't help.
        if let Err(reached) = self.check(call.free) {
            return Some(Err(reached));
        }
        let mut state = self.lock();
        // Count the estimates of calls under way as if they were spent.
        let likely = state.spent.plus(state.reserved);
        // Without a bill, the estimates are unproven. A call alone is admitted all the same.
        let unproven = BudgetSpend {
            usd: state.spent.usd + UNPROVEN_FACTOR * (state.reserved.usd + call.spend.usd),
            ..BudgetSpend::default()
        };
        let waits_for_first_bill = state.largest_bill <= 0.0
            && state.reserved.usd > 0.0
            && find_exceeded_limit(&self.limits.run, &unproven, Millis(0), call.free)
                .is_some_and(|usage| usage.limit == "usd");
        if waits_for_first_bill {
            return None;
        }
        // Time is 0 here: waiting for other calls can't give minutes back, and `check` above already tested
        // them.
        if find_exceeded_limit(&self.limits.run, &likely, Millis(0), call.free).is_some() {
            return None;
        }
        let estimate = BudgetSpend {
            usd: call.spend.usd * state.largest_bill.max(1.0),
            ..call.spend
        };
        state.reserved = state.reserved.plus(estimate);
        Some(Ok(Reservation {
            budget: Arc::clone(self),
            estimate,
            expected_usd: call.spend.usd,
            sent: false,
        }))
    }

    /// Returns the limit because of which a judge should conclude now: the soft share is used, or one call is left.
    ///
    /// `begun`: the cell made a call before. A new cell concludes at once only if its own limit allows a single call.
    pub fn check_near(&self, cell: CellSpend, free: bool, begun: bool) -> Option<LimitReached> {
        let soft = self.limits.soft_limit_share;
        let cell_limit = find_near_limit(&self.limits.cell, soft, &cell.spend, cell.elapsed, free);
        // A cell without a call has nothing to conclude from, unless its limit allows a single call.
        let cell_limit = cell_limit.filter(|near| begun || near.limit == "calls");
        if let Some(near) = cell_limit {
            return Some(near.into_limit_reached(true, &BudgetSpend::default(), true));
        }
        if !begun {
            // Some call under way may settle below its estimate, so the answer is not known yet.
            return None;
        }
        let mut state = self.lock();
        let near = find_near_limit(&self.limits.run, soft, &state.spent, self.elapsed(), free)?;
        let first = !std::mem::replace(&mut state.soft_limit_reported, true);
        Some(near.into_limit_reached(false, &state.assumed, first))
    }

    /// Returns the part of the cost so far that is estimated, because no bill arrived.
    pub fn assumed_usd(&self) -> f64 {
        self.lock().assumed.usd
    }

    /// Returns the amounts taken so far, estimates of unknown bills included.
    pub fn spent(&self) -> BudgetSpend {
        self.lock().spent
    }

    fn elapsed(&self) -> Millis {
        self.clock
            .as_ref()
            .map_or(Millis(0), |run| run.clock.now().since(run.began))
    }

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        // The state is plain numbers, so a panic elsewhere doesn't make it invalid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A limit and the amount taken of it.
#[derive(Debug, Clone, Copy)]
struct LimitUsage {
    limit: &'static str,
    max: f64,
    spent: f64,
}

/// Lists the limits that are set, each with the amount taken of it.
fn list_limit_usage(
    caps: &BudgetLimits,
    took: &BudgetSpend,
    elapsed: Millis,
    free: bool,
) -> impl Iterator<Item = LimitUsage> {
    // A free judge can't exceed a limit on cost, even if other judges used it up.
    let usd = caps.max_cost_usd.filter(|_| !free);
    let tokens = caps.max_tokens.map(|most| most as f64);
    let calls = caps.max_calls.map(|most| most as f64);
    let minutes = elapsed.0 as f64 / 60_000.0;
    [
        ("usd", usd, took.usd),
        ("tokens", tokens, took.tokens as f64),
        ("calls", calls, took.calls as f64),
        ("minutes", caps.max_minutes, minutes),
    ]
    .into_iter()
    .filter_map(|(limit, max, spent)| {
        Some(LimitUsage {
            limit,
            max: max?,
            spent,
        })
    })
}

fn find_exceeded_limit(
    caps: &BudgetLimits,
    took: &BudgetSpend,
    elapsed: Millis,
    free: bool,
) -> Option<LimitUsage> {
    list_limit_usage(caps, took, elapsed, free).find(|usage| usage.spent >= usage.max)
}

fn find_near_limit(
    caps: &BudgetLimits,
    soft: f64,
    took: &BudgetSpend,
    elapsed: Millis,
    free: bool,
) -> Option<LimitUsage> {
    list_limit_usage(caps, took, elapsed, free).find(|usage| {
        // The last call has to be kept for the verdict itself.
        let is_last_call = usage.limit == "calls" && usage.spent + 1.0 >= usage.max;
        usage.spent >= usage.max * soft || is_last_call
    })
}

impl LimitUsage {
    fn into_limit_reached(self, of_cell: bool, assumed: &BudgetSpend, first: bool) -> LimitReached {
        // The message is the same for reached and near limits; the event records which of the two it is.
        let owner = if of_cell { "cell" } else { "run" };
        let amount = |amount: f64| format_limit_amount(self.limit, amount);
        let max = amount(self.max);
        let mut why = format!(
            "the {owner}'s limit of {max} is reached or near ({} taken",
            amount(self.spent)
        );
        // Without a bill the cost is only an estimate, so the message states which part is assumed.
        if assumed.calls > 0 && self.limit == "usd" {
            let calls = crate::model::pluralize(assumed.calls, "call");
            let usd = amount(assumed.usd);
            why = format!("{why}, {usd} of it assumed for {calls} without a bill");
        }
        why.push(')');
        LimitReached {
            limit: self.limit,
            is_cell_limit: of_cell,
            max: self.max,
            spent: self.spent,
            why,
            is_first_report: first,
        }
    }
}

#[cfg(test)]
mod tests;
