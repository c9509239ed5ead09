use std::cell::RefCell;

use futures_util::FutureExt as _;
use proptest::prelude::*;

use super::*;
use crate::clock::FakeClock;

fn budget(run: BudgetLimits, cell: BudgetLimits) -> (Arc<Budget>, FakeClock) {
    let clock = FakeClock::new();
    let limits = RunAndCellBudgets {
        run,
        cell,
        ..RunAndCellBudgets::default()
    };
    (
        Arc::new(Budget::new(limits, Arc::new(clock.clone()))),
        clock,
    )
}

fn usd(max: f64) -> BudgetLimits {
    BudgetLimits {
        max_cost_usd: Some(max),
        ..BudgetLimits::default()
    }
}

fn call(usd: f64) -> CallEstimate {
    CallEstimate {
        spend: took(usd),
        free: false,
    }
}

fn took(usd: f64) -> BudgetSpend {
    BudgetSpend {
        usd,
        tokens: 100,
        calls: 1,
    }
}

/// Admits at once, or panics.
fn now(budget: &Arc<Budget>, call: CallEstimate) -> Result<Reservation, LimitReached> {
    let answer = budget.try_admit(call, CellSpend::default());
    answer.expect("nothing has to be waited for")
}

#[test]
fn reached_budget_is_reported_once_and_rejects_every_later_call() {
    let (budget, _) = budget(usd(0.5), BudgetLimits::default());
    now(&budget, call(0.5)).expect("room").settle(took(0.5));
    assert!(budget.check(false).is_err_and(|r| r.is_first_report));
    assert!(budget.check(false).is_err_and(|r| !r.is_first_report));
    let why = now(&budget, call(0.1)).err().expect("refused").why;
    assert!(why.contains("$0.5000"), "{why}");
    assert_eq!(budget.check(true), Ok(()), "what is free goes on");
    assert_eq!(Budget::default().check(false), Ok(()));
}

#[tokio::test]
async fn call_waits_while_the_budget_is_reserved() {
    let (budget, _) = budget(usd(1.0), BudgetLimits::default());
    // The first bill shows that estimates are enough.
    now(&budget, call(0.6))
        .expect("room")
        .settle(took(0.000_001));
    let mut first = now(&budget, call(0.6)).expect("room");
    let second = now(&budget, call(0.6)).expect("still below the limit");
    first.mark_sent();
    let mut third = Box::pin(budget.admit(call(0.6), CellSpend::default()));
    assert!((&mut third).now_or_never().is_none(), "1.2 is spoken for");
    first.settle(took(0.1));
    let third = (&mut third).now_or_never().expect("0.7 is");
    drop(third.expect("there is room"));
    drop(second);
    let spent = budget.spent();
    assert!((spent.usd - 0.1).abs() < 1e-5, "what was not sent is free");
    assert_eq!(spent.calls, 2);
}

#[tokio::test]
async fn few_calls_run_before_the_first_bill_of_a_small_budget() {
    let (budget, _) = budget(usd(1.0), BudgetLimits::default());
    let first = now(&budget, call(0.2)).expect("alone");
    let mut second = Box::pin(budget.admit(call(0.2), CellSpend::default()));
    assert!((&mut second).now_or_never().is_none(), "0.2 may be too low");
    first.settle(took(0.2));
    let second = (&mut second).now_or_never().expect("a bill arrived");
    let third = now(&budget, call(0.2)).expect("the estimate was enough");
    drop((second.expect("room"), third));
    // A large budget has room for many at once.
    let (budget, _) = self::budget(usd(100.0), BudgetLimits::default());
    let all: Vec<Reservation> = (0..100)
        .map(|_| now(&budget, call(0.2)).expect("room"))
        .collect();
    assert_eq!(all.len(), 100);
}

#[tokio::test]
async fn bill_above_its_estimate_raises_later_estimates() {
    let (budget, _) = budget(usd(1.0), BudgetLimits::default());
    now(&budget, call(0.1)).expect("room").settle(took(0.3));
    let second = now(&budget, call(0.1)).expect("0.3 of 1 is taken");
    let third = now(&budget, call(0.1)).expect("0.6 is taken or reserved");
    let fourth = now(&budget, call(0.1)).expect("0.9 is taken or reserved");
    let mut fifth = Box::pin(budget.admit(call(0.1), CellSpend::default()));
    assert!((&mut fifth).now_or_never().is_none(), "1.2 is reserved");
    for reservation in [second, third, fourth] {
        reservation.settle(took(0.3));
    }
    let spent = budget.spent().usd;
    assert!(
        (spent - 1.2).abs() < 1e-9,
        "{spent}: one call above the limit"
    );
    assert!((&mut fifth).now_or_never().is_some_and(|one| one.is_err()));
}

#[test]
fn call_without_a_bill_counts_as_its_estimate_and_the_message_reports_it() {
    let (budget, _) = budget(usd(0.5), BudgetLimits::default());
    let mut lost = now(&budget, call(0.5)).expect("room");
    lost.mark_sent();
    drop(lost);
    let why = budget.check(false).expect_err("reached").why;
    assert!(
        why.contains("$0.5000 of it assumed for 1 call without a bill"),
        "{why}"
    );
}

#[test]
fn limits_of_calls_tokens_and_minutes_stop_a_run() {
    let calls = BudgetLimits {
        max_calls: Some(1),
        ..BudgetLimits::default()
    };
    let tokens = BudgetLimits {
        max_tokens: Some(100),
        ..BudgetLimits::default()
    };
    for (caps, limit) in [(calls, "calls"), (tokens, "tokens")] {
        let (budget, _) = budget(caps, BudgetLimits::default());
        now(&budget, call(0.0)).expect("room").settle(took(0.0));
        assert_eq!(budget.check(true).expect_err("reached").limit, limit);
    }
    let minutes = BudgetLimits {
        max_minutes: Some(2.0),
        ..BudgetLimits::default()
    };
    let (budget, clock) = budget(minutes, BudgetLimits::default());
    clock.advance(Millis(119_999));
    assert_eq!(budget.check(true), Ok(()));
    clock.advance(Millis(1));
    assert_eq!(budget.check(true).expect_err("reached").limit, "minutes");
}

#[test]
fn limit_of_a_cell_stops_only_that_cell() {
    let (budget, _) = budget(BudgetLimits::default(), usd(0.5));
    let spent = CellSpend {
        spend: took(0.5),
        elapsed: Millis(0),
    };
    let refused = budget.try_admit(call(0.1), spent).expect("at once");
    assert!(refused.is_err_and(|r| r.is_cell_limit));
    assert!(now(&budget, call(0.1)).is_ok());
}

#[test]
fn judge_must_conclude_at_the_soft_share_unless_its_cell_is_new() {
    let (budget, _) = budget(usd(1.0), BudgetLimits::default());
    let fresh = CellSpend::default();
    assert_eq!(budget.check_near(fresh, false, true), None);
    now(&budget, call(0.8)).expect("room").settle(took(0.8));
    assert!(
        budget
            .check_near(fresh, false, true)
            .is_some_and(|r| r.is_first_report)
    );
    assert!(
        budget
            .check_near(fresh, false, true)
            .is_some_and(|r| !r.is_first_report)
    );
    assert_eq!(budget.check_near(fresh, false, false), None);
    assert_eq!(budget.check_near(fresh, true, true), None);
}

#[test]
fn last_allowed_call_of_a_cell_asks_only_for_the_verdict() {
    let calls = BudgetLimits {
        max_calls: Some(3),
        ..BudgetLimits::default()
    };
    let (budget, _) = budget(BudgetLimits::default(), calls);
    let after = |calls| CellSpend {
        spend: BudgetSpend {
            calls,
            ..BudgetSpend::default()
        },
        elapsed: Millis(0),
    };
    assert_eq!(budget.check_near(after(1), true, true), None);
    assert!(budget.check_near(after(2), true, true).is_some());
}

proptest! {
    /// Calls come in any order and are settled in any order, each for no more than it was estimated at.
    #[test]
    fn run_exceeds_a_limit_by_at_most_one_call(
        max in 0.0..2.0_f64,
        steps in prop::collection::vec((0.01..0.5_f64, 0.0..1.0_f64, any::<prop::sample::Index>(), any::<bool>()), 1..60),
    ) {
        let (budget, _) = budget(usd(max), BudgetLimits::default());
        let out: RefCell<Vec<(Reservation, f64)>> = RefCell::default();
        let mut most = 0.0_f64;
        for (estimate, share, which, settles) in steps {
            if settles && !out.borrow().is_empty() {
                let at = which.index(out.borrow().len());
                let (reservation, actual) = out.borrow_mut().swap_remove(at);
                reservation.settle(took(actual));
            } else if let Some(Ok(mut reservation)) = budget.try_admit(call(estimate), CellSpend::default()) {
                reservation.mark_sent();
                most = most.max(estimate);
                out.borrow_mut().push((reservation, estimate * share));
            }
        }
        // What is left is dropped, and counts whole.
        out.into_inner().clear();
        prop_assert!(budget.spent().usd <= max + most + 1e-9);
    }
}
