//! Tests of runs without judges.

use std::sync::Arc;

use super::support::{
    ListFeed, NO_TIME, compiled, judge_pool_mut, outcomes, planned, run, run_feed, run_with,
    summarize_log, transcript, undecided_judge,
};
use crate::event::{EventKind, FORMAT, RunEvent, RunState};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::{CellIx, Outcome};
use crate::run::inputs::feed::{RecordChunk, TranscriptFeed};
use crate::run::plan::DecisionMethod;
use crate::run::{DecisionFilter, RunError, RunOptions};
use crate::transcript as reader;
use crate::transcript::TranscriptError;

const TWO: &str = "
id: two
evals:
  - { id: hello, type: contains, params: { patterns: [hello] } }
  - { id: short, type: max_length, params: { max_characters: 8 } }
";

#[tokio::test]
async fn cells_are_numbered_in_plan_order_and_settle_per_transcript() {
    let records: Vec<String> = (0..50)
        .map(|n| transcript(&format!("t{n}"), if n % 2 == 0 { "hello" } else { "no" }))
        .collect();
    let running = run(TWO, records, &undecided_judge(), |_| {});
    let core = Arc::clone(&running.core);
    let (totals, log) = running.ended().await;
    let names = planned(&core, &log);
    let expected: Vec<(CellIx, String)> = (0..100)
        .map(|ix| {
            let eval = if ix % 2 == 0 { "hello" } else { "short" };
            (CellIx(ix), format!("t{}/two/{eval}", ix / 2))
        })
        .collect();
    assert_eq!(names, expected);
    assert_eq!(
        summarize_log(&log)[..2],
        ["plan t0 0+2", "settle 0 pass, 1 pass"]
    );
    assert_eq!(
        outcomes(&totals),
        [(Outcome::Pass, 75), (Outcome::Fail, 25)]
    );
    assert_eq!((totals.cells, totals.pending), (100, 0));
    let events: Vec<RunEvent> = (0..)
        .zip(log)
        .map(|(seq, kind)| RunEvent {
            seq,
            at: NO_TIME,
            kind,
        })
        .collect();
    let state = RunState::fold(&events);
    assert_eq!((state.cells.len(), state.stray), (100, 0));
    assert_eq!(FORMAT.major, 1);
}

#[tokio::test]
async fn bad_record_is_noted_and_the_others_are_checked() {
    let records = vec![
        transcript("a", "hello"),
        "{\"messages\": [".to_owned(),
        transcript("b", "hello"),
    ];
    let (totals, log) = run(TWO, records, &undecided_judge(), |_| {}).ended().await;
    assert_eq!(totals.cells, 4);
    let lines = summarize_log(&log);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("note list.jsonl: record 1 is skipped: ")),
        "{lines:?}"
    );
}

#[tokio::test]
async fn only_the_first_bad_records_are_listed() {
    let records = vec!["{".to_owned(); 500];
    let (_, log) = run(TWO, records, &undecided_judge(), |_| {}).ended().await;
    let lines = summarize_log(&log);
    assert_eq!(lines.len(), 11);
    assert_eq!(
        lines[10],
        "note list.jsonl: 500 records are skipped; the first 10 are named above"
    );
}

#[tokio::test]
async fn run_with_an_unreadable_feed_has_no_end() {
    let mut running = run_feed(TWO, Box::new(FailingFeed(Some(transcript("a", "hello")))));
    running
        .until(|kind| matches!(kind, EventKind::Note { .. }))
        .await;
    let ended = running.join.await.expect("no panic");
    assert!(
        matches!(ended, Err(RunError::Source(why)) if why.to_string() == "list.jsonl: the disk is gone")
    );
    assert_eq!(
        summarize_log(&running.log),
        [
            "plan a 0+2",
            "settle 0 pass, 1 pass",
            "note list.jsonl: the disk is gone"
        ]
    );
}

/// A feed of one record and an error.
struct FailingFeed(Option<String>);

impl TranscriptFeed for FailingFeed {
    fn next_chunk(&mut self) -> Result<Option<RecordChunk>, TranscriptError> {
        match self.0.take() {
            Some(record) => ListFeed::of([record]).next_chunk(),
            None => Err(TranscriptError::Io {
                path: "list.jsonl".into(),
                why: std::io::Error::other("the disk is gone"),
            }),
        }
    }
}

#[tokio::test]
async fn second_transcript_with_an_id_gets_a_suffix() {
    let records = vec![transcript("a", "x"), transcript("a", "y")];
    let (_, log) = run(TWO, records, &undecided_judge(), |_| {}).ended().await;
    let lines = summarize_log(&log);
    assert_eq!(
        lines[2..4],
        [
            "note list.jsonl: another transcript is called `a`; this one is shown as `a~2`",
            "plan a~2 2+2"
        ]
    );
}

#[tokio::test]
async fn limit_selects_the_first_transcripts_with_cells() {
    let options = RunOptions {
        limit: Some(2),
        filter: Some(DecisionFilter::parse("!transcript:t0 eval:hello").expect("parses")),
        ..RunOptions::default()
    };
    let records = (0..1000)
        .map(|n| transcript(&format!("t{n}"), "hello"))
        .collect();
    let running = run_with(TWO, &options, records, &undecided_judge(), |_| {});
    let core = Arc::clone(&running.core);
    let (totals, log) = running.ended().await;
    assert_eq!(
        planned(&core, &log),
        [
            (CellIx(0), "t1/two/hello".to_owned()),
            (CellIx(1), "t2/two/hello".to_owned())
        ]
    );
    assert_eq!(totals.cells, 2);
}

#[derive(Debug)]
struct PanickingCheck;

impl Check for PanickingCheck {
    fn check(&self, _: &Subject<'_>) -> Finding {
        panic!("a defect")
    }
}

#[tokio::test]
async fn panicking_check_ends_as_check_error() {
    let records = vec![transcript("a", "hello")];
    let (totals, log) = run(TWO, records, &undecided_judge(), |core| {
        let plan = Arc::get_mut(&mut judge_pool_mut(core).plan).expect("not shared yet");
        plan.evals[0].compiled = CompiledEval::Check(Box::new(PanickingCheck));
    })
    .ended()
    .await;
    assert_eq!(summarize_log(&log)[1], "settle 0 check_error, 1 pass");
    assert_eq!(
        outcomes(&totals),
        [(Outcome::Pass, 1), (Outcome::CheckError, 1)]
    );
    let Some(EventKind::CellsSettled(cells)) = log.get(1) else {
        panic!("settled")
    };
    assert_eq!(
        cells[0].result.error.as_deref(),
        Some("the handler failed inside dicta: a defect")
    );
}

const TRIGGERS: &str = "
id: t
evals:
  - { id: every, type: contains, trigger: every_turn, params: { patterns: [a] } }
  - { id: off, type: contains, enabled: false, params: { patterns: [a] } }
  - { id: never, type: contains, trigger: sample_sessions, sample_percentage: 0, params: { patterns: [a] } }
  - { id: always, type: contains, trigger: sample_turns, sample_percentage: 100, params: { patterns: [a] } }
  - { id: other, type: contains, applies_to: { tags: [x] }, params: { patterns: [a] } }
  - { id: calls, type: contains, trigger: every_turn, when: { any_tool_called: true }, params: { patterns: [a] } }
";

#[test]
fn triggers_plan_cells_per_message_or_transcript_with_skip_reasons() {
    let plan = compiled(TRIGGERS, &RunOptions::default()).plan;
    let record = br#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},
        {"role":"user","content":"q"},{"role":"assistant","content":"b","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}]}"#;
    let transcript = reader::parse_native(record, 1, "s:1").expect("native");
    let tasks: Vec<(u32, Option<u32>, DecisionMethod)> = plan
        .tasks(&transcript, record)
        .into_iter()
        .map(|task| (task.eval, task.message, task.method))
        .collect();
    let skip = |why: &str| DecisionMethod::Skip(why.to_owned());
    assert_eq!(
        tasks,
        [
            (0, Some(1), DecisionMethod::Check),
            (0, Some(3), DecisionMethod::Check),
            (1, None, skip("disabled in the rubric")),
            (2, None, skip("not sampled (0% of sessions)")),
            (3, Some(1), DecisionMethod::Check),
            (3, Some(3), DecisionMethod::Check),
            (
                5,
                Some(1),
                skip("its precondition is not met: no tool was called")
            ),
            (5, Some(3), DecisionMethod::Check),
        ]
    );
}
