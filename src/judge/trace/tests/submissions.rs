//! Tests of submitted verdicts: their form, and what contradicts them.

use super::*;

#[tokio::test]
async fn submitted_verdict_of_wrong_form_is_unparsed() {
    for raw in [
        r#"{"passed":"yes"}"#,
        r#"{"passed":true,"score":7}"#,
        "{}",
        r#"{"passed":true,"applicable":false}"#,
        r#"{"passed":true,"passed":false}"#,
    ] {
        let fixture = fixture_with_tool();
        let (result, facts) = fixture
            .judge(&Script::new(vec![
                calls(&[("submit_verdict", raw)]),
                calls(&[("submit_verdict", raw)]),
            ]))
            .await;
        assert_eq!(
            (result.outcome, result.score),
            (Outcome::Unparsed, None),
            "{raw}"
        );
        assert!(
            format_facts(&facts).iter().any(|f| f == "1 unparsed"),
            "{raw}"
        );
    }
    let fixture = fixture_with_tool();
    let two = || {
        calls(&[
            ("submit_verdict", PASSED),
            ("submit_verdict", r#"{"passed":false,"score":0}"#),
        ])
    };
    let (result, _) = fixture.judge(&Script::new(vec![two(), two()])).await;
    assert_eq!(result.outcome, Outcome::Unparsed);
}

#[tokio::test]
async fn malformed_submission_gets_one_more_turn_with_the_reason() {
    let fixture = fixture_with_tool();
    let malformed = || calls(&[("submit_verdict", r#"{"passed":"true","score":1}"#)]);
    let script = Script::new(vec![malformed(), calls(&[("submit_verdict", PASSED)])]);
    let (result, _) = fixture.judge(&script).await;
    assert_eq!(result.outcome, Outcome::Pass, "{:?}", result.error);
    let second_body = script.bodies.lock().expect("no panic")[1].clone();
    assert!(
        second_body.contains("`passed` must be true or false (got")
            && second_body.contains("once more"),
        "{second_body}"
    );
    // Without a turn left, the first malformed submission ends the cell.
    let mut fixture = fixture_with_tool();
    fixture.config.max_turns = 1;
    let (result, _) = fixture.judge(&Script::new(vec![malformed()])).await;
    assert_eq!(result.outcome, Outcome::Unparsed);
}

/// Judges with a model that submits these arguments `times` times.
async fn judge_submission(arguments: &str, times: usize) -> CellResult {
    let fixture = fixture_with_tool();
    let replies = (0..times).map(|_| calls(&[("submit_verdict", arguments)]));
    fixture.judge(&Script::new(replies.collect())).await.0
}

#[tokio::test]
async fn prose_around_a_submitted_object_is_not_a_verdict() {
    for prose in [
        r#"The verdict would be {"passed": true, "score": 1.0} if it were polite, but it is not."#,
        // Words that a repair of a tool's arguments leaves out.
        r#"{"passed": true, "score": 1.0}</tool_call> But it is rude: FAIL"#,
        r#"{"passed": true, "score": 1.0} // but it is not"#,
        r#"/* if it were polite */ {"passed": true, "score": 1.0}"#,
        r#"[EXAMPLE] {"passed": true, "score": 1.0}"#,
        r#"<|it would be|>{"passed": true, "score": 1.0}"#,
    ] {
        let result = judge_submission(prose, 2).await;
        assert_eq!(result.outcome, Outcome::Unparsed, "{prose}");
        let why = result.error.expect("a reason");
        assert!(why.contains("text around"), "{prose}: {why}");
    }
}

#[tokio::test]
async fn tags_and_tokens_around_a_submitted_object_are_no_prose() {
    for raw in [
        r#"{"passed": true, "score": 1.0}</tool_call>"#,
        r#"{"passed": true, "score": 1.0}</s><|im_end|>"#,
        r#"[TOOL_CALLS]{"passed": true, "score": 1.0}"#,
        // A comment inside the object gets a note.
        r#"{"passed": true, /* polite */ "score": 1.0}"#,
    ] {
        let result = judge_submission(raw, 1).await;
        assert_eq!(result.outcome, Outcome::Pass, "{raw}: {:?}", result.error);
    }
}

#[tokio::test]
async fn refusal_in_the_reasoning_is_a_judge_error_and_not_a_fail() {
    let refusal = r#"{"citations":[],"reasoning":"I'm sorry, but I can't assist with that request.","passed":false,"score":0}"#;
    let in_text = JudgeFixture::new(&[]);
    let (result, _) = in_text.judge(&Script::new(vec![text(refusal)])).await;
    assert_eq!(result.outcome, Outcome::JudgeError, "{result:?}");
    let in_call = fixture_with_tool();
    let reply = calls(&[("submit_verdict", refusal)]);
    let (result, _) = in_call.judge(&Script::new(vec![reply])).await;
    assert_eq!(result.outcome, Outcome::JudgeError, "{result:?}");
    assert!(result.error.expect("a reason").contains("refused to judge"));
}

#[tokio::test]
async fn second_call_with_the_same_verdict_and_the_opposite_reason_flags_it() {
    for (second, is_flagged) in [
        (PASSED, false),
        (
            r#"{"citations":[],"reasoning":"Therefore it fails.","passed":true,"score":1}"#,
            true,
        ),
        (
            r#"{"citations":[],"reasoning":"ok","passed":true,"score":1,"verdict":"FAIL"}"#,
            true,
        ),
    ] {
        let fixture = fixture_with_tool();
        let reply = calls(&[("submit_verdict", PASSED), ("submit_verdict", second)]);
        let (result, _) = fixture.judge(&Script::new(vec![reply])).await;
        assert_eq!(result.outcome, Outcome::Pass, "{second}");
        let verdict = result.verdict.expect("a verdict");
        assert_eq!(verdict.reasoning, "ok", "the first call counts");
        assert_eq!(verdict.contradiction.is_some(), is_flagged, "{second}");
    }
}

#[tokio::test]
async fn text_that_contradicts_the_submitted_verdict_flags_it() {
    let judge = async |words: &str| {
        let fixture = fixture_with_tool();
        let ScriptedReply::Reply(mut reply) = calls(&[("submit_verdict", PASSED)]) else {
            unreachable!("calls() makes a reply")
        };
        reply.text = words.to_owned();
        let (result, _) = fixture
            .judge(&Script::new(vec![ScriptedReply::Reply(reply)]))
            .await;
        assert_eq!(result.outcome, Outcome::Pass);
        result.verdict.expect("a verdict").contradiction
    };
    for words in [
        "Verdict: FAIL",
        "I read it.\n**Final verdict:** not met",
        "Verdict: not_met",
        "__Verdict__: FAIL",
        "Final verdict - FAILED (score 0)",
        "The answer is rude.\n**FAIL**",
        "{\"passed\": false, \"reasoning\": \"It is rude.\"}",
        "```json\n{\"passed\": false}\n```",
    ] {
        assert!(judge(words).await.is_some(), "{words}");
    }
    for words in [
        "",
        "Verdict: PASS",
        "I submit my verdict now.",
        "The command printed:\nfail\nand went on.",
        "FAIL\nNo: I misread it.\nVerdict: PASS",
        "{\"passed\": true}",
    ] {
        assert_eq!(judge(words).await, None, "{words}");
    }
}
