//! Tests of a cancel: it does not wait for a running check or program. Programs also do not delay judges.

use std::sync::{Arc, Mutex, mpsc};

use tokio::sync::{Semaphore, mpsc as tasks};

use super::support::{
    FunctionJudge, Running, judge_pool_mut, outcomes, run, summarize_log, transcript,
    undecided_judge,
};
use crate::event::EventKind;
use crate::handlers::{Check, CompiledEval, ExecutionMode, Finding, Subject};
use crate::model::Outcome;
use crate::run::execute::context::RunCx;

/// A check that reports its start and decides when the test or the run's cancel ends it.
#[derive(Debug)]
struct WaitingCheck {
    inside: tasks::UnboundedSender<String>,
    until: Mutex<mpsc::Receiver<()>>,
    heeds: bool,
    nature: ExecutionMode,
    /// The check waits only on transcripts whose id begins with this text.
    ids: &'static str,
}

impl Check for WaitingCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let id = subject.transcript.id.to_string();
        if !id.starts_with(self.ids) {
            return Finding::new(true, "at once");
        }
        // The receiver is gone at the end of a test.
        let _gone = self.inside.send(id);
        if self.heeds {
            while !subject.is_cancelled() {
                std::thread::yield_now();
            }
            let _gone = self.inside.send("left".to_owned());
        } else {
            // This returns when the test drops or uses the sender.
            let _gone = self.until.lock().expect("no panic holds it").recv();
        }
        Finding::new(true, "at last")
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.nature
    }
}

struct WaitControl {
    inside: tasks::UnboundedReceiver<String>,
    /// Dropping it ends all waiting checks.
    until: mpsc::Sender<()>,
}

fn held(heeds: bool, nature: ExecutionMode, ids: &'static str) -> (WaitingCheck, WaitControl) {
    let (inside, is_inside) = tasks::unbounded_channel();
    let (go, until) = mpsc::channel();
    let check = WaitingCheck {
        inside,
        until: Mutex::new(until),
        heeds,
        nature,
        ids,
    };
    let hold = WaitControl {
        inside: is_inside,
        until: go,
    };
    (check, hold)
}

fn put(core: &mut RunCx, check: WaitingCheck) {
    let plan = Arc::get_mut(&mut judge_pool_mut(core).plan).expect("not shared yet");
    plan.evals[0].compiled = CompiledEval::Check(Box::new(check));
}

const ONE: &str = "
id: one
evals:
  - { id: x, type: contains, params: { patterns: [hello] } }
";

const BOTH: &str = "
id: both
evals:
  - { id: x, type: contains, params: { patterns: [hello] } }
  - { id: judged, type: llm_judge, params: { criteria: c } }
";

#[tokio::test]
async fn cancelled_run_does_not_wait_for_a_worker_inside_a_check() {
    let (check, mut hold) = held(false, ExecutionMode::Inline, "stuck");
    // A chunk has three records: the first chunk finishes, the second blocks a worker.
    let ids = ["a", "b", "c", "stuck", "e", "f"];
    let records = ids.iter().map(|id| transcript(id, "hello")).collect();
    let mut running = run(ONE, records, &undecided_judge(), |core| put(core, check));
    assert_eq!(hold.inside.recv().await.as_deref(), Some("stuck"));
    running
        .until(|kind| matches!(kind, EventKind::CellsPlanned { transcript, .. } if transcript.id == "c"))
        .await;
    running.core.cancel.cancel();
    // This would never end if the run waited for the worker.
    let (totals, log) = running.ended().await;
    assert!(totals.cancelled);
    let lines = summarize_log(&log);
    assert_eq!(lines[..2], ["plan a 0+1", "settle 0 pass"]);
    assert!(
        !lines.iter().any(|line| line.contains("stuck")),
        "{lines:?}"
    );
    drop(hold.until);
}

#[tokio::test]
async fn check_that_polls_for_a_cancel_sees_it() {
    let (check, mut hold) = held(true, ExecutionMode::Inline, "spins");
    let records = vec![transcript("spins", "hello")];
    let running = run(ONE, records, &undecided_judge(), |core| put(core, check));
    assert_eq!(hold.inside.recv().await.as_deref(), Some("spins"));
    running.core.cancel.cancel();
    let (totals, log) = running.ended().await;
    assert_eq!((totals.cells, totals.cancelled), (0, true));
    assert_eq!(summarize_log(&log), [""; 0], "what it found is dropped");
    assert_eq!(hold.inside.recv().await.as_deref(), Some("left"));
}

#[tokio::test]
async fn slow_programs_do_not_delay_judges_and_settle_at_their_end() {
    let (check, hold) = held(false, ExecutionMode::Blocking, "");
    let records = ["a", "b", "c"].map(|id| transcript(id, "hello")).to_vec();
    let judge = Arc::new(FunctionJudge::new(|_| Outcome::Fail));
    let mut running: Running = run(BOTH, records, &judge, |core| put(core, check));
    for _ in 0..3 {
        running
            .until(|kind| matches!(kind, EventKind::CellFinished { .. }))
            .await;
    }
    let settled = |line: &String| line.starts_with("settle");
    assert!(
        !summarize_log(&running.log).iter().any(settled),
        "all judged, no program ended"
    );
    drop(hold.until);
    let (totals, log) = running.ended().await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 3), (Outcome::Fail, 3)]);
    assert_eq!((totals.cells, totals.pending), (6, 0));
    assert_eq!(
        summarize_log(&log)
            .iter()
            .filter(|line| settled(line))
            .count(),
        3
    );
}

#[tokio::test]
async fn programs_that_a_cancel_ends_leave_their_cells_pending() {
    let (check, mut hold) = held(true, ExecutionMode::Blocking, "");
    let records = vec![transcript("a", "hello")];
    let running = run(ONE, records, &undecided_judge(), |core| put(core, check));
    assert_eq!(hold.inside.recv().await.as_deref(), Some("a"));
    running.core.cancel.cancel();
    let (totals, log) = running.ended().await;
    assert_eq!(
        (totals.cells, totals.pending, totals.cancelled),
        (1, 1, true)
    );
    assert_eq!(summarize_log(&log), ["plan a 0+1"]);
}

#[tokio::test]
async fn programs_of_all_runs_share_their_places() {
    let places: &'static Semaphore = Box::leak(Box::new(Semaphore::new(1)));
    let start = |id: &str| {
        let (check, hold) = held(false, ExecutionMode::Blocking, "");
        let records = vec![transcript(id, "hello")];
        let running = run(ONE, records, &undecided_judge(), |core| {
            put(core, check);
            core.program_places = places;
        });
        (running, hold)
    };
    let (first, mut first_hold) = start("a");
    assert_eq!(first_hold.inside.recv().await.as_deref(), Some("a"));
    let (mut second, mut second_hold) = start("b");
    let (mut cancelled, mut cancelled_hold) = start("c");
    for running in [&mut second, &mut cancelled] {
        running
            .until(|kind| matches!(kind, EventKind::CellsPlanned { .. }))
            .await;
    }
    // A cancelled run does not wait for a place.
    cancelled.core.cancel.cancel();
    let (totals, _) = cancelled.ended().await;
    assert_eq!((totals.pending, totals.cancelled), (1, true));
    assert!(cancelled_hold.inside.try_recv().is_err());
    assert!(second_hold.inside.try_recv().is_err(), "no place is free");
    drop(first_hold.until);
    let (totals, _) = first.ended().await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 1)]);
    // The end of the first program is the start of the second.
    assert_eq!(second_hold.inside.recv().await.as_deref(), Some("b"));
    drop(second_hold.until);
    let (totals, _) = second.ended().await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 1)]);
    assert_eq!(places.available_permits(), 1);
}

#[tokio::test]
async fn scripts_are_skipped_if_the_workspace_does_not_allow_them() {
    let rubric = "id: r\nevals:\n  - { id: s, type: script, params: { command: [true] } }\n";
    let rubric = rubric.replace("[true]", "['true']");
    let records = vec![transcript("a", "hello")];
    let (totals, log) = run(&rubric, records, &undecided_judge(), |_| {})
        .ended()
        .await;
    assert_eq!(outcomes(&totals), [(Outcome::Skipped, 1)]);
    let Some(EventKind::CellsSettled(cells)) = log.get(1) else {
        panic!("settled")
    };
    assert_eq!(
        cells[0].result.explanation,
        "scripts are off: set `allow_scripts: true` in dicta.yaml"
    );
}
