//! Tests of the list of steps, of their ids, and of the alignment of two traces.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::event::{
    AttemptReply, CallRejection, FinishedCall, RecordedToolResponse, StoredText, ToolResponseSource,
};
use crate::model::{CellResult, ModelReply, Outcome, Verdict};

fn turn(thought: &str, text: &str, calls: Vec<CallState>) -> TurnState {
    TurnState {
        finished: Some(AttemptReply {
            attempt: 1,
            reply: ModelReply {
                thought: thought.to_owned(),
                text: text.to_owned(),
                ..ModelReply::default()
            },
        }),
        finished_at: Some(Millis(900)),
        usage: Some(TokenUsage {
            input: Some(100),
            output: Some(40),
            thinking: Some(30),
            cached: None,
            calls: 1,
        }),
        calls,
        started: Millis(10),
        ..TurnState::default()
    }
}

fn call(name: &str, raw: &str, response: Option<&str>) -> CallState {
    CallState {
        name: name.to_owned(),
        raw: raw.to_owned(),
        started: response.is_some(),
        started_at: response.map(|_| Millis(1000)),
        received_at: Millis(900),
        finished: response.map(|text| FinishedCall {
            response: RecordedToolResponse {
                text: StoredText::Text(text.to_owned()),
                is_error: false,
                bytes: text.len() as u64,
                truncated: false,
                raw: None,
                content_type: None,
                hidden: 0,
                data_version: None,
            },
            source: ToolResponseSource::Live,
            elapsed: Millis(50),
        }),
        ..CallState::default()
    }
}

fn judged(turns: Vec<TurnState>, outcome: Outcome) -> CellState {
    let result = CellResult::new(outcome, "");
    CellState {
        judge_trace: turns,
        result: Some(Arc::new(result)),
        phase: CellPhase::Done,
        ended: Some(Millis(2000)),
        ..CellState::default()
    }
}

fn with_verdict(mut turn: TurnState) -> TurnState {
    turn.verdict = Some(Verdict::default());
    turn
}

fn ids(cell: &CellState) -> Vec<String> {
    let steps = list_trace_steps(cell);
    steps.iter().map(|step| step.id.to_string()).collect()
}

#[test]
fn steps_are_in_reading_order() {
    let cell = judged(
        vec![
            turn("look it up", "", vec![call("find_order", "{}", Some("[]"))]),
            with_verdict(turn(
                "it differs",
                "",
                vec![call(SUBMIT_VERDICT, "{}", None)],
            )),
        ],
        Outcome::Fail,
    );
    assert_eq!(
        ids(&cell),
        [
            "1.prompt",
            "1.reasoning",
            "1.call.1",
            "1.response.1",
            "2.prompt",
            "2.reasoning",
            "2.call.1",
            "2.verdict"
        ]
    );
    let steps = list_trace_steps(&cell);
    assert_eq!(steps[0].tokens, Some(100));
    assert_eq!(steps[1].tokens, Some(30), "the reasoning's own tokens");
    assert_eq!(steps[2].tokens, Some(10), "the rest of the output");
    assert_eq!(steps[3].at, Some(Millis(1050)));
    assert_eq!(steps[3].elapsed, Some(Millis(50)));
    assert_eq!(steps[7].at, Some(Millis(2000)));
}

#[test]
fn forming_arguments_are_a_step_of_their_own_turn() {
    let mut second = TurnState::default();
    let attempt = second.attempts.entry(1).or_default();
    attempt.args.insert(CallIx(0), "{\"reaso".to_owned());
    let cell = CellState {
        judge_trace: vec![
            turn("", "", vec![call("find_order", "{}", Some("[]"))]),
            second,
        ],
        phase: CellPhase::Streaming,
        ..CellState::default()
    };
    let steps = list_trace_steps(&cell);
    let last = steps.last().expect("steps");
    assert_eq!(last.id.to_string(), "2.call.1");
    assert_eq!(last.progress, StepProgress::Active);
}

#[test]
fn rejected_call_has_the_rejection_as_its_response() {
    let mut refused = call("find_order", "{}", None);
    refused.rejected = Some(CallRejection {
        rule: "schema".to_owned(),
        text: "Error".to_owned(),
    });
    let cell = judged(vec![turn("", "", vec![refused])], Outcome::TurnLimit);
    assert_eq!(
        ids(&cell),
        ["1.prompt", "1.call.1", "1.response.1", "1.verdict"]
    );
    let steps = list_trace_steps(&cell);
    assert!(
        steps[1..]
            .iter()
            .all(|step| step.progress == StepProgress::Failed)
    );
}

#[test]
fn cell_without_a_turn_has_only_its_end() {
    assert_eq!(ids(&judged(Vec::new(), Outcome::Budget)), ["1.verdict"]);
    assert_eq!(ids(&CellState::default()), [""; 0]);
}

#[test]
fn step_keeps_its_id_while_the_trace_grows() {
    let mut cell = judged(
        vec![turn("a", "", vec![call("t", "{}", None)])],
        Outcome::Pass,
    );
    cell.result = None;
    cell.phase = CellPhase::Waiting;
    let before = ids(&cell);
    cell.judge_trace[0].calls[0] = call("t", "{}", Some("x"));
    cell.judge_trace
        .push(with_verdict(turn("b", "", Vec::new())));
    let after = ids(&cell);
    assert!(
        before.iter().all(|id| after.contains(id)),
        "{before:?} {after:?}"
    );
}

#[test]
fn alignment_marks_the_first_different_step() {
    let same = || {
        turn(
            "look it up",
            "",
            vec![call("find_order", "{\"n\": 1}", Some("190"))],
        )
    };
    let left = judged(
        vec![same(), with_verdict(turn("says 190", "", vec![]))],
        Outcome::Fail,
    );
    let mut first = same();
    // Another spelling of the same arguments is not a difference.
    first.calls[0].raw = "{\"n\":1}".to_owned();
    let right = judged(
        vec![
            first,
            turn("", "", vec![call("other", "{}", Some("x"))]),
            with_verdict(turn("fine", "", vec![])),
        ],
        Outcome::Pass,
    );
    let aligned = align_traces(&left, &right, false);
    let rows: Vec<(Option<String>, Option<String>, bool)> = aligned
        .iter()
        .map(|row| {
            let id = |step: Option<TraceStep>| step.map(|step| step.id.to_string());
            (id(row.left), id(row.right), row.same)
        })
        .collect();
    let first = rows.iter().position(|row| !row.2).expect("a difference");
    assert_eq!(rows[..first].len(), 5, "{rows:?}");
    let verdicts = rows.last().expect("rows");
    assert_eq!(
        (verdicts.0.as_deref(), verdicts.1.as_deref()),
        (Some("2.verdict"), Some("3.verdict"))
    );
    assert!(!verdicts.2);
}

#[test]
fn prompts_are_compared_only_on_request() {
    let asked = |text: &str| {
        let mut turn = with_verdict(turn("", "fine", vec![]));
        turn.request = vec![StoredText::Text(text.to_owned())];
        judged(vec![turn], Outcome::Pass)
    };
    let (left, right) = (asked("polite"), asked("kind"));
    let same = |compares_prompts| {
        let aligned = align_traces(&left, &right, compares_prompts);
        aligned.iter().map(|row| row.same).collect::<Vec<bool>>()
    };
    let ignored = same(false);
    assert!(ignored.iter().all(|same| *same), "{ignored:?}");
    let compared = same(true);
    assert!(!compared[0] && compared[1..].iter().all(|same| *same));
}

proptest! {
    #[test]
    fn any_id_survives_its_text(turn in 0_u16..u16::MAX, part in 0_u8..6, call in 0_u16..u16::MAX) {
        let part = match part {
            0 => StepPart::Prompt,
            1 => StepPart::Reasoning,
            2 => StepPart::Reply,
            3 => StepPart::Call(CallIx(call)),
            4 => StepPart::Response(CallIx(call)),
            _ => StepPart::Verdict,
        };
        let id = StepId { turn: TurnIx(turn), part };
        prop_assert_eq!(id.to_string().parse::<StepId>(), Ok(id));
    }

    #[test]
    fn no_text_breaks_the_parser_of_ids(text in ".{0,20}") {
        if let Ok(id) = text.parse::<StepId>() {
            prop_assert_eq!(id.to_string().parse::<StepId>(), Ok(id));
        }
    }
}
