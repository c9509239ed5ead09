//! Tests of runs that stop calling a judge after equal errors in a row.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::support::{
    FunctionJudge, judge_pool_mut, outcomes, run_with, summarize_log, transcript,
};
use crate::clock::BoxFuture;
use crate::event::{CallCx, EventKind};
use crate::handlers::{JudgeBackend, JudgeRequest};
use crate::model::{CellResult, Outcome, StoppedJudge, TokenUsage};
use crate::run::RunOptions;
use crate::run::execute::context::RunCx;
use crate::run::execute::merge_window::MAX_TRANSCRIPTS_AHEAD;

const ONE: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, params: { criteria: is polite } }
";

const TWO_JUDGES: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, params: { criteria: is polite } }
  - { id: facts, type: llm_judge, judge: two, params: { criteria: is right } }
";

const TWO_MODELS: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, params: { criteria: is polite } }
  - { id: facts, type: llm_judge, params: { criteria: is right, model: other } }
";

const CASCADE: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, cascade: { judges: [two, one] }, params: { criteria: is polite } }
";

const JURY: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, jury: { judges: [one, two, three] }, params: { criteria: is polite } }
";

const CHECK_AND_JUDGE: &str = "
id: r
evals:
  - { id: x, type: contains, params: { patterns: [hello] } }
  - { id: tone, type: llm_judge, params: { criteria: is polite } }
";

fn transcripts(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| transcript(&format!("t{n}"), "hello"))
        .collect()
}

fn concurrent(concurrency: usize) -> RunOptions {
    RunOptions {
        concurrency: Some(concurrency),
        ..RunOptions::default()
    }
}

fn judge(decide: impl Fn(&JudgeRequest) -> Outcome + Send + Sync + 'static) -> Arc<FunctionJudge> {
    Arc::new(FunctionJudge::new(decide).calling())
}

fn dead_judge() -> Arc<FunctionJudge> {
    judge(|_| Outcome::JudgeError)
}

fn use_judge(core: &mut RunCx, at: usize, judge: &Arc<FunctionJudge>) {
    let slot = judge_pool_mut(core).slots[at].as_mut().expect("a slot");
    slot.judge = Arc::clone(judge) as Arc<dyn JudgeBackend>;
}

fn call_count(judge: &FunctionJudge) -> usize {
    judge.asked.lock().expect("no panic holds it").len()
}

fn stopped_judges(log: &[EventKind]) -> Vec<StoppedJudge> {
    log.iter()
        .filter_map(|kind| match kind {
            EventKind::Note { cell: None, text } => StoppedJudge::from_note(text),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn five_equal_errors_stop_a_judge_and_leave_its_cells_pending() {
    let dead = dead_judge();
    let (totals, log) = run_with(ONE, &concurrent(1), transcripts(20), &dead, |_| {})
        .ended()
        .await;
    assert_eq!(outcomes(&totals), [(Outcome::JudgeError, 5)]);
    assert_eq!((totals.cells, totals.pending), (20, 15));
    assert!(!totals.cancelled, "the run reached its end");
    assert_eq!(call_count(&dead), 5);
    let stopped = StoppedJudge {
        judge: "one".into(),
        model: None,
        errors: 5,
        error: "as scripted".into(),
    };
    assert_eq!(stopped_judges(&log), [stopped]);
    let starts = |line: &&String| line.starts_with("start");
    assert_eq!(summarize_log(&log).iter().filter(starts).count(), 5);
}

#[tokio::test]
async fn cells_under_way_end_and_report_the_stop_once() {
    let held = Arc::new(Semaphore::new(0));
    let dead = Arc::new(
        FunctionJudge::new(|_| Outcome::JudgeError)
            .calling()
            .held(&held),
    );
    let mut running = run_with(ONE, &concurrent(8), transcripts(20), &dead, |_| {});
    running
        .until(|kind| matches!(kind, EventKind::CellStarted { cell, .. } if cell.0 == 7))
        .await;
    held.add_permits(20);
    let (totals, log) = running.ended().await;
    let called = call_count(&dead) as u64;
    assert!((8..=12).contains(&called), "{called}");
    assert_eq!(outcomes(&totals), [(Outcome::JudgeError, called)]);
    assert_eq!(totals.pending, 20 - called);
    assert_eq!(stopped_judges(&log).len(), 1);
}

#[tokio::test]
async fn cells_of_a_withdrawn_eval_stay_pending_and_others_go_on() {
    let held = Arc::new(Semaphore::new(0));
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Pass).calling().held(&held));
    let options = concurrent(2);
    let other = Arc::clone(&judge);
    let mut running = run_with(TWO_JUDGES, &options, transcripts(10), &judge, |core| {
        use_judge(core, 1, &other);
    });
    // The first transcript's cells have started: one of each eval.
    running
        .until(|kind| matches!(kind, EventKind::CellStarted { cell, .. } if cell.0 == 1))
        .await;
    options.withdrawn.withdraw("r", "tone");
    held.add_permits(40);
    let (totals, log) = running.ended().await;
    assert!(!totals.cancelled, "the run reached its end");
    // Ten cells of the other eval, and the one that had started.
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 11)]);
    assert_eq!((totals.pending, call_count(&judge)), (9, 11));
    let notes = log.iter().filter(|kind| {
        matches!(kind, EventKind::Note { text, .. } if text.starts_with("r/tone: a save replaced"))
    });
    assert_eq!(notes.count(), 1);
}

#[tokio::test]
async fn verdict_in_between_begins_a_new_row() {
    let flaky = judge(|ask| match &*ask.transcript.id {
        "t4" | "t9" | "t14" => Outcome::Pass,
        _ => Outcome::JudgeError,
    });
    let (totals, log) = run_with(ONE, &concurrent(1), transcripts(19), &flaky, |_| {})
        .ended()
        .await;
    assert_eq!((totals.pending, call_count(&flaky)), (0, 19));
    assert_eq!(stopped_judges(&log), []);
}

#[tokio::test]
async fn other_judges_go_on() {
    let (dead, other) = (dead_judge(), judge(|_| Outcome::Pass));
    let (totals, log) = run_with(TWO_JUDGES, &concurrent(2), transcripts(20), &dead, |core| {
        use_judge(core, 1, &other);
    })
    .ended()
    .await;
    let errors = call_count(&dead) as u64;
    assert!((5..=6).contains(&errors), "{errors}");
    let want = [(Outcome::Pass, 20), (Outcome::JudgeError, errors)];
    assert_eq!(outcomes(&totals), want);
    assert_eq!(totals.pending, 20 - errors);
    assert_eq!(stopped_judges(&log).len(), 1);
}

#[tokio::test]
async fn wrong_model_of_one_eval_does_not_stop_the_judge() {
    let judge = judge(|ask| match &ask.params.model {
        Some(_) => Outcome::JudgeError,
        None => Outcome::Pass,
    });
    // The evals alternate, and still the failing one ends its own row.
    let (totals, log) = run_with(TWO_MODELS, &concurrent(1), transcripts(20), &judge, |_| {})
        .ended()
        .await;
    let want = [(Outcome::Pass, 20), (Outcome::JudgeError, 5)];
    assert_eq!(outcomes(&totals), want);
    let models: Vec<_> = stopped_judges(&log)
        .into_iter()
        .map(|stopped| stopped.model)
        .collect();
    assert_eq!(models, [Some("other".to_owned())]);
}

#[tokio::test]
async fn cascade_continues_without_a_stopped_judge() {
    let (dead, strong) = (dead_judge(), judge(|_| Outcome::Pass));
    // `two` is first in the cascade, and so first among the run's judges.
    let (totals, log) = run_with(CASCADE, &concurrent(1), transcripts(12), &strong, |core| {
        use_judge(core, 0, &dead);
    })
    .ended()
    .await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 12)]);
    assert_eq!((totals.cells, totals.pending), (24, 0));
    assert_eq!((call_count(&dead), call_count(&strong)), (5, 12));
    assert_eq!(stopped_judges(&log).len(), 1);
    let uncalled: Vec<&str> = log
        .iter()
        .filter_map(|kind| match kind {
            EventKind::CellsSettled(cells) => Some(cells),
            _ => None,
        })
        .flatten()
        .filter_map(|cell| cell.result.error.as_deref())
        .collect();
    let why = "not called, because 5 cells in a row ended in the same error: as scripted";
    assert_eq!(uncalled, [why; 7]);
}

#[tokio::test]
async fn cascade_without_any_judge_left_stays_pending() {
    let dead = dead_judge();
    let (totals, log) = run_with(CASCADE, &concurrent(1), transcripts(12), &dead, |_| {})
        .ended()
        .await;
    assert_eq!(outcomes(&totals), [(Outcome::JudgeError, 5)]);
    assert_eq!(totals.pending, 7);
    assert_eq!(call_count(&dead), 10, "five of each judge");
    let names: Vec<_> = stopped_judges(&log)
        .into_iter()
        .map(|stopped| stopped.judge)
        .collect();
    assert_eq!(names, ["two", "one"]);
}

#[tokio::test]
async fn jury_with_a_stopped_member_stays_pending() {
    let (dead, other) = (dead_judge(), judge(|_| Outcome::Pass));
    let (totals, _) = run_with(JURY, &concurrent(1), transcripts(12), &other, |core| {
        use_judge(core, 0, &dead);
    })
    .ended()
    .await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 5)]);
    assert_eq!(totals.pending, 7, "one cell per undecided jury");
    assert_eq!(call_count(&dead), 5);
}

#[tokio::test]
async fn checks_go_on_behind_a_stopped_judge() {
    let count = usize::try_from(MAX_TRANSCRIPTS_AHEAD).expect("small") + 50;
    let dead = dead_judge();
    let (totals, _) = run_with(
        CHECK_AND_JUDGE,
        &concurrent(2),
        transcripts(count),
        &dead,
        |_| {},
    )
    .ended()
    .await;
    let passed = outcomes(&totals)[0];
    assert_eq!(passed, (Outcome::Pass, count as u64));
    assert!(call_count(&dead) <= 6);
}

/// A judge whose first five cells fail in a call. Others wait for a place at the server until the run refuses them.
struct QueueingJudge {
    refused: Semaphore,
}

impl JudgeBackend for QueueingJudge {
    fn judge<'a>(&'a self, ask: &'a JudgeRequest, cx: &'a CallCx) -> BoxFuture<'a, CellResult> {
        Box::pin(async move {
            let _ = ask;
            let calls = u32::from(cx.cell.0 < 5);
            if calls == 0 {
                let _refused = self.refused.acquire().await;
            }
            CellResult {
                usage: Some(TokenUsage {
                    calls,
                    ..TokenUsage::default()
                }),
                ..CellResult::from_error(Outcome::JudgeError, "refused")
            }
        })
    }
}

#[tokio::test]
async fn started_cell_without_a_call_stays_pending() {
    let judge = Arc::new(QueueingJudge {
        refused: Semaphore::new(0),
    });
    let mut running = run_with(
        ONE,
        &concurrent(8),
        transcripts(20),
        &dead_judge(),
        |core| {
            let slot = judge_pool_mut(core).slots[0].as_mut().expect("a slot");
            slot.judge = Arc::clone(&judge) as Arc<dyn JudgeBackend>;
        },
    );
    running
        .until(|kind| matches!(kind, EventKind::Note { .. }))
        .await;
    judge.refused.add_permits(20);
    let (totals, log) = running.ended().await;
    assert_eq!(outcomes(&totals), [(Outcome::JudgeError, 5)]);
    assert_eq!(totals.pending, 15);
    let finishes = |line: &&String| line.starts_with("finish");
    assert_eq!(summarize_log(&log).iter().filter(finishes).count(), 5);
}
