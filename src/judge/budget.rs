//! What may still be spent in a run. Asked before each model call, told after each.

use std::sync::{Mutex, PoisonError};

use crate::model::{Prices, Usage};

/// What may still be spent in a run; asked before each model call. The default has no limit.
#[derive(Debug, Default)]
pub struct Budget {
    max_cost_usd: Option<f64>,
    state: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    usd: f64,
    told: bool,
}

/// A limit that was reached: nothing more is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// `usd`.
    pub limit: &'static str,
    /// A sentence.
    pub why: String,
    /// Whether this is the first time it is noticed, so that it is told once a run.
    pub first: bool,
}

impl Budget {
    /// A budget of so many US dollars; `None` for no limit.
    pub fn new(max_cost_usd: Option<f64>) -> Self {
        Self {
            max_cost_usd,
            state: Mutex::default(),
        }
    }

    /// Whether another model call may be made. Calls already out may still overshoot: their price is known afterwards.
    pub fn check(&self) -> Result<(), Reached> {
        let Some(max) = self.max_cost_usd else {
            return Ok(());
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.usd < max {
            return Ok(());
        }
        let first = !std::mem::replace(&mut state.told, true);
        Err(Reached {
            limit: "usd",
            why: format!(
                "the budget of ${max} is reached (${:.4} spent); nothing was sent",
                state.usd
            ),
            first,
        })
    }

    /// Counts what a call cost, where that is known.
    pub fn spend(&self, usd: f64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.usd += usd.max(0.0);
    }

    /// US dollars spent so far, as far as known.
    pub fn spent(&self) -> f64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.usd
    }
}

/// What a usage costs in US dollars; `None` when tokens are unknown.
pub fn cost_of(usage: &Usage, prices: &Prices) -> Option<f64> {
    let (input, output) = (usage.input?, usage.output?);
    let cached = usage.cached.unwrap_or(0).min(input);
    let fresh = (input - cached) as f64 * prices.input;
    let read = cached as f64 * prices.cached.unwrap_or(prices.input);
    Some((fresh + read + output as f64 * prices.output) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reached_budget_is_told_once_and_refuses_ever_after() {
        let budget = Budget::new(Some(0.5));
        assert_eq!(budget.check(), Ok(()));
        budget.spend(0.5);
        assert!(budget.check().is_err_and(|r| r.first));
        assert!(budget.check().is_err_and(|r| !r.first));
        assert_eq!(Budget::default().check(), Ok(()));
    }

    #[test]
    fn cached_tokens_have_their_own_price_and_unknown_stays_unknown() {
        let prices = Prices {
            input: 2.0,
            output: 10.0,
            cached: Some(0.5),
        };
        let usage = Usage {
            input: Some(1_000_000),
            output: Some(100_000),
            cached: Some(400_000),
            thinking: None,
            calls: 1,
        };
        assert_eq!(cost_of(&usage, &prices), Some(1.2 + 0.2 + 1.0));
        assert_eq!(cost_of(&Usage::default(), &prices), None);
    }
}
