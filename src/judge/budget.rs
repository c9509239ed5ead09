//! What may still be taken in a run and in a cell: USD, tokens, calls, minutes. Asked before each model call, told after.
//!
//! **Reservation.** A call is let out only while what is spent *and what the calls under way may still take* is below the
//! limit; else it waits until one of them is settled. So N parallel cells cannot all pass the check at once: a limit is
//! overshot by at most one call, as long as no call takes more than it was estimated at (its prompt's size and the most
//! it may write).
//!
//! **Unknown bills.** A call that was sent and whose bill never came counts against the limits as its estimate. That is
//! an assumption, and a stopped run says how much of it there is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::model::{BudgetConfig, BudgetLimits, Millis};

/// What calls took, or may take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetSpend {
    /// USD; 0 for a free judge.
    pub usd: f64,
    /// Tokens, prompts and replies together.
    pub tokens: u64,
    /// Model calls.
    pub calls: u64,
}

impl BudgetSpend {
    fn plus(self, other: Self) -> Self {
        Self {
            usd: self.usd + other.usd.max(0.0),
            tokens: self.tokens.saturating_add(other.tokens),
            calls: self.calls.saturating_add(other.calls),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            // Sums of fractions do not cancel exactly.
            usd: (self.usd - other.usd.max(0.0)).max(0.0),
            tokens: self.tokens.saturating_sub(other.tokens),
            calls: self.calls.saturating_sub(other.calls),
        }
    }
}

/// A call that asks to be let out.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CallEstimate {
    /// The most it is expected to take.
    pub spend: BudgetSpend,
    /// Whether it costs nothing, so that no limit of money stops it.
    pub free: bool,
}

/// What a cell took so far, and since when it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellSpend {
    /// Its calls.
    pub spend: BudgetSpend,
    /// How long it runs.
    pub elapsed: Millis,
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitReached {
    /// `usd`, `tokens`, `calls`, `minutes`.
    pub limit: &'static str,
    /// Whether it is the cell's limit, not the run's.
    pub is_cell_limit: bool,
    /// The limit.
    pub max: f64,
    /// What was taken of it.
    pub spent: f64,
    /// A sentence.
    pub why: String,
    /// Whether this is the first time it is noticed, so that it is told once a run; always of a cell's.
    pub is_first_report: bool,
}

/// What may still be taken in a run and its cells. The default has no limit.
#[derive(Default)]
pub struct Budget {
    limits: BudgetConfig,
    clock: Option<(Arc<dyn Clock>, Millis)>,
    state: Mutex<BudgetState>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct BudgetState {
    spent: BudgetSpend,
    /// What calls under way may still take.
    reserved: BudgetSpend,
    /// Of `spent`: what is assumed, since no bill came; and for how many calls.
    assumed: BudgetSpend,
    hard_limit_reported: bool,
    soft_limit_reported: bool,
}

/// The right to make one call. Dropped unsettled it counts as its estimate if it was sent, else as nothing.
pub struct Reservation {
    budget: Arc<Budget>,
    estimate: BudgetSpend,
    sent: bool,
}

impl Reservation {
    /// It is on its way: from now on it may be billed.
    pub fn mark_sent(&mut self) {
        self.sent = true;
    }

    /// What it took. Call once; what it was assumed to take is given back.
    pub fn settle(mut self, took: BudgetSpend) {
        self.close(took, false);
    }

    /// It was sent and its bill never came, which counts as the estimate.
    pub fn settle_as_estimate(mut self) -> BudgetSpend {
        let estimate = self.estimate;
        self.close(estimate, true);
        estimate
    }

    fn close(&mut self, took: BudgetSpend, assumed: bool) {
        let estimate = std::mem::take(&mut self.estimate);
        self.sent = false;
        let mut state = self.budget.lock();
        state.reserved = state.reserved.minus(estimate);
        state.spent = state.spent.plus(took);
        if assumed {
            state.assumed = state.assumed.plus(took);
        }
        drop(state);
        self.budget.settled.notify_waiters();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let estimate = self.estimate;
        if self.sent {
            self.close(estimate, true);
        } else if estimate != BudgetSpend::default() {
            self.close(BudgetSpend::default(), false);
        }
    }
}

impl Budget {
    /// A budget that begins now.
    pub fn new(limits: BudgetConfig, clock: Arc<dyn Clock>) -> Self {
        let began = clock.now();
        Self {
            limits,
            clock: Some((clock, began)),
            ..Self::default()
        }
    }

    /// Whether a limit of the run is reached, so that nothing new is begun. `free`: money does not matter.
    pub fn check(&self, free: bool) -> Result<(), LimitReached> {
        let mut state = self.lock();
        let over = find_exceeded_limit(&self.limits.run, &state.spent, self.elapsed(), free);
        over.map_or(Ok(()), |over| {
            let first = !std::mem::replace(&mut state.hard_limit_reported, true);
            Err(over.into_limit_reached(false, &state.assumed, first))
        })
    }

    /// Waits until a call may be made, and reserves what it may take. The error: a limit of the run or the cell is reached.
    pub async fn admit(
        self: &Arc<Self>,
        call: CallEstimate,
        so_far: CellSpend,
    ) -> Result<Reservation, LimitReached> {
        loop {
            // Before looking, so that what is settled meanwhile is not missed.
            let settled = self.settled.notified();
            if let Some(answer) = self.try_admit(call, so_far) {
                return answer;
            }
            settled.await;
        }
    }

    /// `None`: it depends on what the calls under way take.
    fn try_admit(
        self: &Arc<Self>,
        call: CallEstimate,
        so_far: CellSpend,
    ) -> Option<Result<Reservation, LimitReached>> {
        if let Some(over) =
            find_exceeded_limit(&self.limits.cell, &so_far.spend, so_far.elapsed, call.free)
        {
            return Some(Err(over.into_limit_reached(
                true,
                &BudgetSpend::default(),
                true,
            )));
        }
        if let Err(reached) = self.check(call.free) {
            return Some(Err(reached));
        }
        let mut state = self.lock();
        let likely = state.spent.plus(state.reserved);
        if find_exceeded_limit(&self.limits.run, &likely, Millis(0), call.free).is_some() {
            return None;
        }
        state.reserved = state.reserved.plus(call.spend);
        Some(Ok(Reservation {
            budget: Arc::clone(self),
            estimate: call.spend,
            sent: false,
        }))
    }

    /// Whether a judge should conclude now: a limit of the cell or the run is nearly reached, or one more call is all that
    /// is left of it. `begun`: it has asked at least once; a fresh cell concludes only where its own limit is one call.
    pub fn check_near(&self, cell: CellSpend, free: bool, begun: bool) -> Option<LimitReached> {
        let soft = self.limits.soft_limit_share;
        let own = find_near_limit(&self.limits.cell, soft, &cell.spend, cell.elapsed, free);
        let own = own.filter(|near| begun || near.limit == "calls");
        if let Some(near) = own {
            return Some(near.into_limit_reached(true, &BudgetSpend::default(), true));
        }
        if !begun {
            return None;
        }
        let mut state = self.lock();
        let near = find_near_limit(&self.limits.run, soft, &state.spent, self.elapsed(), free)?;
        let first = !std::mem::replace(&mut state.soft_limit_reported, true);
        Some(near.into_limit_reached(false, &state.assumed, first))
    }

    /// What was taken so far, assumed bills included.
    pub fn spent(&self) -> BudgetSpend {
        self.lock().spent
    }

    fn elapsed(&self) -> Millis {
        self.clock
            .as_ref()
            .map_or(Millis(0), |(clock, began)| clock.now().since(*began))
    }

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A limit with what was taken of it.
#[derive(Debug, Clone, Copy)]
struct LimitUsage {
    limit: &'static str,
    max: f64,
    spent: f64,
}

/// The limits that are set, each with what was taken of it.
fn list_limit_usage(
    caps: &BudgetLimits,
    took: &BudgetSpend,
    elapsed: Millis,
    free: bool,
) -> impl Iterator<Item = LimitUsage> {
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
    list_limit_usage(caps, took, elapsed, free).find(|of| of.spent >= of.max)
}

fn find_near_limit(
    caps: &BudgetLimits,
    soft: f64,
    took: &BudgetSpend,
    elapsed: Millis,
    free: bool,
) -> Option<LimitUsage> {
    list_limit_usage(caps, took, elapsed, free)
        .find(|of| of.spent >= of.max * soft || (of.limit == "calls" && of.spent + 1.0 >= of.max))
}

impl LimitUsage {
    fn into_limit_reached(self, of_cell: bool, assumed: &BudgetSpend, first: bool) -> LimitReached {
        let whose = if of_cell { "cell" } else { "run" };
        let amount = |x: f64| match self.limit {
            "usd" => format!("${x:.4}"),
            "minutes" => format!("{x:.1} minutes"),
            limit => format!("{x:.0} {limit}"),
        };
        let max = amount(self.max);
        let mut why = format!(
            "the {whose}'s limit of {max} is reached or near ({} taken",
            amount(self.spent)
        );
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
