//! Tests of runs with judges.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Semaphore;

use super::support::{
    FixedVerdictCache, FunctionJudge, find_error, judge_pool_mut, key, outcomes, planned, run,
    run_with, summarize_log, transcript,
};
use crate::clock::FakeClock;
use crate::event::EventKind;
use crate::judge::Budget;
use crate::model::{CellIx, CellResult, Millis, Outcome, RunAndCellBudgets, RunId};
use crate::run::RunOptions;
use crate::run::execute::merge_window::MAX_TRANSCRIPTS_AHEAD;

const ONE: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, params: { criteria: is polite } }
";

const THREE: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, repeat: 3, params: { criteria: is polite } }
";

fn transcripts(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| transcript(&format!("t{n}"), "x"))
        .collect()
}

#[tokio::test]
async fn judges_start_in_plan_order_within_the_concurrency() {
    let held = Arc::new(Semaphore::new(0));
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Pass).held(&held));
    let options = RunOptions {
        concurrency: Some(3),
        ..RunOptions::default()
    };
    let mut running = run_with(ONE, &options, transcripts(20), &judge, |_| {});
    running
        .until(|kind| matches!(kind, EventKind::CellStarted { cell, .. } if cell.0 == 2))
        .await;
    held.add_permits(20);
    let (totals, log) = running.ended().await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 20)]);
    assert_eq!(judge.most.load(Ordering::SeqCst), 3);
    let (mut live, mut started) = (0_i32, Vec::new());
    for kind in &log {
        match kind {
            EventKind::CellStarted { cell, .. } => {
                live += 1;
                started.push(cell.0);
            }
            EventKind::CellFinished { .. } => live -= 1,
            _ => {}
        }
        assert!((0..=3).contains(&live), "the log shows {live} at once");
    }
    assert_eq!(started, (0..20).collect::<Vec<u32>>());
}

#[tokio::test]
async fn unneeded_repeat_gets_no_cell() {
    let judge = Arc::new(FunctionJudge::new(|ask| {
        Outcome::from_passed(&*ask.transcript.id == "same" || ask.repeat != Some(2))
    }));
    let records = vec![transcript("same", "x"), transcript("split", "x")];
    let options = RunOptions {
        concurrency: Some(1),
        ..RunOptions::default()
    };
    let (totals, log) = run_with(THREE, &options, records, &judge, |_| {})
        .ended()
        .await;
    let judged: Vec<String> = summarize_log(&log)
        .into_iter()
        .filter(|line| !line.starts_with("plan same") && !line.starts_with("plan split 2"))
        .collect();
    assert_eq!(
        judged,
        [
            "start 0",
            "finish 0 pass",
            "start 1",
            "finish 1 pass",
            "start 2",
            "finish 2 pass",
            "start 3",
            // The event that plans the third cell comes before the result that makes it necessary.
            "plan split 4+1",
            "finish 3 fail",
            "start 4",
            "finish 4 pass",
        ]
    );
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 2)]);
    assert_eq!((totals.cells, totals.pending), (5, 0));
}

#[tokio::test]
async fn names_of_repeats_count_from_one() {
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Fail));
    let running = run(THREE, transcripts(1), &judge, |_| {});
    let core = Arc::clone(&running.core);
    let (_, log) = running.ended().await;
    assert_eq!(
        planned(&core, &log),
        [
            (CellIx(0), "t0/r/tone~one#1".to_owned()),
            (CellIx(1), "t0/r/tone~one#2".to_owned())
        ]
    );
    let asked = judge.asked.lock().expect("no panic holds it").clone();
    assert_eq!(asked, ["t0#1", "t0#2"]);
}

#[tokio::test]
async fn cached_verdicts_replace_judge_calls() {
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Fail));
    let known = |outcome| CellResult {
        cached: Some(RunId("old".into())),
        ..CellResult::new(outcome, "known")
    };
    let verdicts = vec![
        (key("t0", 1), known(Outcome::Pass)),
        (key("t0", 2), known(Outcome::Fail)),
        (key("t0", 3), known(Outcome::Pass)),
        (key("t1", 1), known(Outcome::Pass)),
        (key("t1", 2), known(Outcome::Fail)),
    ];
    let (totals, log) = run(THREE, transcripts(2), &judge, |core| {
        judge_pool_mut(core).verdict_cache = Some(Box::new(FixedVerdictCache(verdicts)));
    })
    .ended()
    .await;
    assert_eq!(
        summarize_log(&log),
        [
            "plan t0 0+3",
            "settle 0 pass, 1 fail, 2 pass",
            "plan t1 3+3",
            "settle 3 pass, 4 fail",
            "start 5",
            "finish 5 fail",
        ]
    );
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 1), (Outcome::Fail, 1)]);
}

#[tokio::test]
async fn further_repeat_may_be_cached() {
    let judge = Arc::new(FunctionJudge::new(|ask| {
        Outcome::from_passed(ask.repeat == Some(1))
    }));
    let known = CellResult {
        cached: Some(RunId("old".into())),
        ..CellResult::new(Outcome::Pass, "known")
    };
    let options = RunOptions {
        concurrency: Some(1),
        ..RunOptions::default()
    };
    let (totals, log) = run_with(THREE, &options, transcripts(1), &judge, |core| {
        judge_pool_mut(core).verdict_cache =
            Some(Box::new(FixedVerdictCache(vec![(key("t0", 3), known)])));
    })
    .ended()
    .await;
    assert_eq!(
        summarize_log(&log),
        [
            "plan t0 0+2",
            "start 0",
            "finish 0 pass",
            "start 1",
            "plan t0 2+1",
            "finish 1 fail",
            "settle 2 pass",
        ]
    );
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 1)]);
    assert_eq!((totals.cells, totals.pending), (3, 0));
}

#[tokio::test]
async fn cancelled_run_ends_running_cells_and_leaves_others_pending() {
    let held = Arc::new(Semaphore::new(0));
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Pass).held(&held));
    let mut running = run(ONE, transcripts(5), &judge, |_| {});
    running
        .until(|kind| matches!(kind, EventKind::CellsPlanned { first, .. } if first.0 == 4))
        .await;
    while judge.live.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    running.core.cancel.cancel();
    let (totals, log) = running.ended().await;
    assert!(totals.cancelled);
    assert_eq!(outcomes(&totals), [(Outcome::Cancelled, 2)]);
    assert_eq!((totals.cells, totals.pending), (5, 3));
    let ends = summarize_log(&log)
        .into_iter()
        .filter(|line| line.starts_with("finish"))
        .count();
    assert_eq!(ends, 2);
}

#[tokio::test]
async fn cancelled_vote_has_no_decision() {
    let held = Arc::new(Semaphore::new(1));
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Pass).held(&held));
    let mut running = run(THREE, transcripts(1), &judge, |_| {});
    running
        .until(|kind| matches!(kind, EventKind::CellFinished { .. }))
        .await;
    running.core.cancel.cancel();
    let (totals, _) = running.ended().await;
    assert_eq!(outcomes(&totals), [], "one pass of three is no majority");
    assert_eq!((totals.cells, totals.pending), (3, 1));
}

#[tokio::test]
async fn panicking_judge_ends_as_judge_error() {
    let judge = Arc::new(FunctionJudge::new(|_| panic!("a defect")));
    let (totals, log) = run(ONE, transcripts(1), &judge, |_| {}).ended().await;
    assert_eq!(outcomes(&totals), [(Outcome::JudgeError, 1)]);
    assert_eq!(
        find_error(&log).as_deref(),
        Some("the judge failed inside dicta: a defect")
    );
}

#[tokio::test]
async fn reached_budget_leaves_cells_pending_and_is_reported_once() {
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Pass));
    let (totals, log) = run(ONE, transcripts(30), &judge, |core| {
        let mut limits = RunAndCellBudgets::default();
        limits.run.max_cost_usd = Some(0.0);
        core.budget = Arc::new(Budget::new(limits, Arc::clone(&core.clock)));
    })
    .ended()
    .await;
    assert_eq!(outcomes(&totals), []);
    assert_eq!((totals.cells, totals.pending), (30, 30));
    let text: Vec<String> = summarize_log(&log)
        .into_iter()
        .filter(|line| !line.starts_with("plan"))
        .collect();
    assert_eq!(text, ["budget usd"]);
}

#[tokio::test]
async fn cell_that_waited_for_a_reached_budget_stays_pending() {
    let clock = Arc::new(FakeClock::new());
    let passing = Arc::clone(&clock);
    // A cell that the budget held back until nothing was left: it made no call.
    let judge = Arc::new(FunctionJudge::new(move |ask| {
        if &*ask.transcript.id == "t0" {
            return Outcome::Pass;
        }
        passing.advance(Millis::from_secs(120));
        Outcome::Budget
    }));
    let (totals, log) = run(ONE, transcripts(30), &judge, |core| {
        let mut limits = RunAndCellBudgets::default();
        limits.run.max_minutes = Some(1.0);
        core.budget = Arc::new(Budget::new(limits, clock));
    })
    .ended()
    .await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 1)]);
    assert_eq!((totals.cells, totals.pending), (30, 29));
    let text = summarize_log(&log);
    assert_eq!(
        text.iter().filter(|line| *line == "budget minutes").count(),
        1
    );
}

#[tokio::test]
async fn merge_window_holds_checks_back_behind_a_slow_judge() {
    const MIXED: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, applies_to: { ids: [t0] }, params: { criteria: is polite } }
  - { id: any, type: contains, params: { patterns: [x] } }
";
    let held = Arc::new(Semaphore::new(0));
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Pass).held(&held));
    let count = usize::try_from(MAX_TRANSCRIPTS_AHEAD).expect("small") + 500;
    let mut running = run(MIXED, transcripts(count), &judge, |_| {});
    let last = format!("t{}", MAX_TRANSCRIPTS_AHEAD - 1);
    running
        .until(
            |kind| matches!(kind, EventKind::CellsPlanned { transcript, .. } if transcript.id == last),
        )
        .await;
    held.add_permits(1);
    let (totals, log) = running.ended().await;
    assert_eq!(totals.pending, 0);
    let place = |wanted: &str| {
        summarize_log(&log)
            .iter()
            .position(|line| line.starts_with(wanted))
    };
    let (finished, beyond) = (
        place("finish 0"),
        place(&format!("plan t{MAX_TRANSCRIPTS_AHEAD} ")),
    );
    assert!(finished < beyond, "{finished:?} {beyond:?}");
}

#[tokio::test]
async fn judged_cell_without_criteria_ends_without_a_call_or_pass() {
    let rubric = "
id: r
evals:
  - { id: pii, type: pii_leakage, repeat: 3 }
  - { id: calls, type: parameter_analysis }
  - { id: role, type: role_violation }
";
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Pass));
    let records = vec![
        transcript("leak", "write to ann@lee.org"),
        transcript("fine", "hello"),
    ];
    let (totals, log) = run(rubric, records, &judge, |_| {}).ended().await;
    assert_eq!(
        outcomes(&totals),
        [
            (Outcome::Pass, 1),
            (Outcome::Fail, 1),
            (Outcome::NotApplicable, 2),
            (Outcome::CheckError, 2)
        ]
    );
    let asked = judge.asked.lock().expect("no panic holds it").clone();
    assert_eq!(
        asked,
        ["fine#1", "fine#2"],
        "the leak is not sent to anybody: {log:?}"
    );
}

#[tokio::test]
async fn each_separate_criterion_has_its_own_decision() {
    let rubric = "
id: r
evals:
  - { id: k, type: binary_rubric, repeat: 3, params: { grouping: per_criterion, criteria: [polite, short] } }
";
    let judge = Arc::new(FunctionJudge::new(|ask| {
        Outcome::from_passed(ask.params.criteria.contains("polite") || ask.repeat != Some(2))
    }));
    let (totals, log) = run(rubric, transcripts(1), &judge, |_| {}).ended().await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 2)]);
    let asked = judge.asked.lock().expect("no panic holds it").len();
    assert_eq!(asked, 5, "each votes by itself: {log:?}");
}
