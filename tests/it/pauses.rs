//! Pauses of judge traces: many live cells, some of them paused.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dicta::clock::{Clock, FakeClock, SystemClock};
use dicta::event::{EventKind, RunEvent};
use dicta::handlers::EvalTypeRegistry;
use dicta::judge::{Breakpoint, BreakpointGate, GateAction, PauseDecision, PausedAt, PausedTrace};
use dicta::model::{CellResult, Millis, Outcome};
use dicta::run::{self, RunHandle, RunOptions};
use dicta::workspace::{self, Env};
use serde_json::json;

use crate::cli::{POLITE, TestDir, judged_by, text};
use crate::support::wire::{Dialect, Reply, WireServer};

const CELLS: usize = 64;
const PAUSED: usize = 8;
const DAY: Millis = Millis(86_400_000);

/// Fails the transcripts with the word BAD.
fn judging() -> WireServer {
    WireServer::answering(Dialect::Openai, |request| {
        let passed = !request.mentions("BAD");
        let score = if passed { 1.0 } else { 0.0 };
        let verdict =
            json!({"citations": [], "reasoning": "It is.", "passed": passed, "score": score});
        Reply::text(verdict.to_string())
    })
}

/// A workspace of 64 transcripts, in which 8 fail. All cells together use up the calls of the budget.
fn workspace_of_64(server: &WireServer) -> TestDir {
    let test_dir = TestDir::new();
    let judge = judged_by(server).replace("model: m }", "model: m, timeout_s: 86400 }");
    test_dir.workspace(
        &format!("{judge}limits: {{ max_calls: {CELLS} }}\n"),
        POLITE,
    );
    let lines = (0..CELLS).map(|n| {
        let word = if n % (CELLS / PAUSED) == 0 { "BAD" } else { "good" };
        format!("{{\"id\":\"t{n}\",\"messages\":[{{\"role\":\"assistant\",\"content\":\"{word} {n}\"}}]}}\n")
    });
    test_dir.write("t.jsonl", &lines.collect::<String>());
    test_dir
}

/// Receives events until enough of them came. The fake time passes at most as fast as the real one, because the judge's
/// replies come over a real socket: with a faster clock, a reply on a busy machine is later than its deadline.
///
/// # Panics
///
/// After two minutes, with the results so far. Without this limit, one lost cell would stop all tests.
async fn receive(
    handle: &mut RunHandle,
    clock: &FakeClock,
    events: &mut Vec<RunEvent>,
    enough: impl Fn(&[RunEvent]) -> bool,
) {
    let (real, begun) = (SystemClock::new(), Instant::now());
    while !enough(events) {
        let late = begun.elapsed() > Duration::from_mins(2);
        assert!(
            !late,
            "{} pauses, {:#?}",
            count_pauses(events),
            results(events)
        );
        tokio::select! {
            biased;
            batch = handle.events.recv() => {
                let Some(batch) = batch else { return };
                events.extend(batch.iter().cloned());
            }
            () = real.sleep(Millis(1)) => clock.advance(Millis(1)),
        }
    }
}

fn results(events: &[RunEvent]) -> Vec<&CellResult> {
    let finished = events.iter().filter_map(|event| match &event.kind {
        EventKind::CellFinished { result, .. } => Some(&**result),
        _ => None,
    });
    finished.collect()
}

fn count_pauses(events: &[RunEvent]) -> usize {
    let paused = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Paused { .. }));
    paused.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_cells_keep_neither_permit_nor_deadline_nor_budget_from_the_others() {
    let server = judging();
    let test_dir = workspace_of_64(&server);
    let clock = FakeClock::new();
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let data = test_dir.path().join(".data").display().to_string();
    let env = Env([("DICTA_DATA_DIR".to_owned(), data)].into());
    let registry = EvalTypeRegistry::builtin();
    let workspace = workspace::load(test_dir.path(), &env, &registry).expect("a workspace");
    let breakpoint: Breakpoint = "verdict:fail".parse().expect("valid");
    let (gate, mut pauses) = BreakpointGate::new(vec![breakpoint]);
    let options = RunOptions {
        gate: Arc::new(gate),
        // As many as the paused cells: with their permits, no other cell could run.
        concurrency: Some(PAUSED),
        ..RunOptions::default()
    };
    let started = run::start_run(Arc::new(workspace), &registry, &env, shared, options);
    let mut handle = started.await.expect("a run");
    let mut events = Vec::new();
    receive(&mut handle, &clock, &mut events, |events| {
        results(events).len() == CELLS - PAUSED && count_pauses(events) == PAUSED
    })
    .await;
    assert_eq!(server.requests().len(), CELLS, "every cell made its call");
    // What was shown is on disk: a process that is killed now loses none of it.
    let log = std::fs::read(handle.dir.join("events.jsonl")).expect("a log");
    let lines = log.split(|byte| *byte == b'\n').count() - 1;
    assert!(lines >= events.len(), "{lines} of {}", events.len());
    // Longer than the deadline of every cell.
    clock.advance(Millis(DAY.0 * 3));
    let mut waiting: Vec<PausedTrace> = Vec::new();
    while let Ok(trace) = pauses.try_recv() {
        waiting.push(trace);
    }
    assert_eq!(waiting.len(), PAUSED);
    let edited = waiting.pop().expect("a trace");
    let PausedAt::Verdict(verdict) = &edited.at else {
        panic!("{:?}", edited.at);
    };
    let mut verdict = verdict.clone();
    (verdict.passed, verdict.score) = (Some(true), Some(1.0));
    let text = serde_json::to_string(&verdict).expect("JSON");
    let action = edited.at.edit(&text).expect("a verdict");
    assert!(matches!(action, GateAction::ContinueWith(_)));
    edited.decide(PauseDecision::Edit(action));
    for trace in waiting {
        trace.decide(PauseDecision::Continue);
    }
    receive(&mut handle, &clock, &mut events, |_| false).await;
    let totals = handle.join.await.expect("no panic").expect("a recording");
    let results = results(&events);
    let count = |outcome| results.iter().filter(|one| one.outcome == outcome).count();
    assert_eq!(results.len(), CELLS);
    assert_eq!(
        (count(Outcome::Pass), count(Outcome::Fail)),
        (CELLS - PAUSED + 1, PAUSED - 1)
    );
    let by_human: Vec<_> = results.iter().filter(|one| one.by_human).collect();
    assert_eq!(by_human.len(), 1);
    assert_eq!(by_human[0].outcome, Outcome::Pass);
    assert_eq!((totals.pending, totals.cancelled), (0, false));
    assert_eq!(server.requests().len(), CELLS);
}

#[test]
fn break_without_a_terminal_exits_with_2_and_runs_nothing() {
    let server = judging();
    let test_dir = TestDir::new();
    test_dir.workspace(&judged_by(&server), POLITE);
    let refused = test_dir.dicta(&["run", "--break", "verdict,call"]);
    assert_eq!(refused.status.code(), Some(2));
    let why = text(&refused.stderr);
    assert!(why.contains("--break asks at each pause"), "{why}");
    let wrong = test_dir.dicta(&["run", "--break", "verdicts"]);
    assert_eq!(wrong.status.code(), Some(2));
    let why = text(&wrong.stderr);
    assert!(
        why.contains("is not a breakpoint; write turn, call"),
        "{why}"
    );
    assert_eq!(server.requests().len(), 0);
}
