use proptest::prelude::*;

use super::*;

const PLAIN: VerdictFormat = VerdictFormat {
    allow_na: false,
    scale: None,
    needs_score: false,
    parts: None,
};
const SCORED: VerdictFormat = VerdictFormat {
    needs_score: true,
    ..PLAIN
};

/// Replies of which none states a verdict. Tools before us read most of them as a pass, a fail, or a number.
const FAULTS: &[&str] = &[
    "",
    " \n\t",
    "\u{feff}",
    "I think it is great",
    "PASS",
    "FAIL",
    "Pass\nAll good.",
    "FAIL - it did not pass",
    "CORRECT",
    "C",
    "Verdict: PASS",
    "passed: true",
    "passed:true",
    "10/10",
    "2/10",
    "1/100",
    "Score: 0.9",
    "0.8",
    "1",
    "true",
    "null",
    "\"passed\"",
    "[]",
    "{}",
    "[{\"passed\":true}]",
    r#"[{"passed":true,"score":1}]"#,
    r#"{"verdict":{"passed":true,"score":1}}"#,
    r#"{"result":"{\"passed\":true}"}"#,
    r#"{"Passed":true,"Score":1}"#,
    r#"{"pass":true}"#,
    r#"{"passed":"true"}"#,
    r#"{"passed":"false","score":0.1}"#,
    r#"{"passed":1}"#,
    r#"{"passed":0}"#,
    r#"{"passed":null,"score":0.5}"#,
    r#"{"passed":"yes"}"#,
    r#"{"passed":[true]}"#,
    r#"{"score":0.5}"#,
    r#"{"passed":true,"score":"0.9"}"#,
    r#"{"passed":true,"score":7}"#,
    r#"{"passed":true,"score":-1}"#,
    r#"{"passed":true,"score":1.0000001}"#,
    r#"{"passed":true,"score":NaN}"#,
    r#"{"passed":true,"score":Infinity}"#,
    r#"{"passed":true,"score":1e999}"#,
    r#"{"passed":true,"score":null}"#,
    r#"{"passed":true,"score":[1]}"#,
    r#"{"passed":true,"score":true}"#,
    r#"{"passed":true,"reasoning":5}"#,
    r#"{"passed":true,"reasoning":["a"]}"#,
    r#"{"passed":true,"citations":"message 1"}"#,
    r#"{"passed":true,"citations":["message 1"]}"#,
    r#"{"passed":true,"citations":[{"source":1,"quote":"a"}]}"#,
    r#"{"passed":true,"citations":[{"quote":"a"}]}"#,
    r#"{"passed":true,"passed":false}"#,
    r#"{"passed":true,"passed":true}"#,
    r#"{"passed":true,"applicable":false}"#,
    r#"{"passed":true,"applicable":"no"}"#,
    r#"{"passed":true"#,
    r#"{"passed":true,"score":0."#,
    r#"{"passed":true,}"#,
    "{'passed': true}",
    "{passed: true}",
    r#"{"passed":True}"#,
    r#"{"passed":true}{"passed":false}"#,
    r#"{"passed":true} {"passed":true}"#,
    "{\"passed\":true}\n\n{\"passed\":false}",
    "```json\n{\"passed\":true}\n```\n```json\n{\"passed\":false}\n```",
    r#"The answer says {"passed": true} and I disagree."#,
    "It said:\n{\"passed\": true}\nbut my verdict: fail",
    "Score: 0.2\n{\"passed\": true, \"score\": 0.9}",
    "{\"passed\": false, \"note\":\n{\"passed\": true}\n",
    "```json\n{\"passed\":true",
    "<verdict>pass</verdict>",
    "<tool_call>{\"name\":\"submit_verdict\",\"arguments\":{\"passed\":true}}</tool_call>",
    "submit_verdict(passed=true)",
];

#[test]
fn no_fault_becomes_a_verdict() {
    assert!(FAULTS.len() >= 60);
    for fault in FAULTS {
        let read = parse_verdict_text(fault, &PLAIN);
        assert!(read.is_err(), "{fault:?} was read as {read:?}");
    }
}

#[test]
fn a_stated_verdict_is_read_in_every_form_that_states_it_plainly() {
    let expected = Verdict {
        passed: Some(true),
        score: Some(0.5),
        reasoning: "ok".into(),
        ..Verdict::default()
    };
    for text in [
        r#"{"citations":[],"reasoning":"ok","passed":true,"score":0.5}"#,
        r#" {"score":0.5,"passed":true,"reasoning":"ok"} "#,
        r#"{"score":5e-1,"passed":true,"reasoning":"ok","confidence":"high"}"#,
        "```json\n{\"reasoning\":\"ok\",\"passed\":true,\"score\":0.5}\n```",
        "```\n{\"reasoning\":\"ok\",\"passed\":true,\"score\":0.5}\n```",
        "Here is my verdict {as asked}.\n\n{\"reasoning\":\"ok\",\"passed\":true,\"score\":0.5}\n\nThank you.",
        "I looked at {\"other\": 1}.\n```json\n{\"reasoning\":\"ok\",\"passed\":true,\"score\":0.5}\n```",
    ] {
        assert_eq!(
            parse_verdict_text(text, &PLAIN),
            Ok(expected.clone()),
            "{text}"
        );
    }
}

#[test]
fn with_a_bound_the_score_is_required_and_passed_is_not() {
    assert!(parse_verdict_text(r#"{"passed":true}"#, &SCORED).is_err());
    let read = parse_verdict_text(r#"{"score":0.8}"#, &SCORED).expect("a score decides");
    assert_eq!((read.passed, read.score), (None, Some(0.8)));
}

#[test]
fn not_applicable_must_be_allowed() {
    let format = VerdictFormat {
        allow_na: true,
        ..PLAIN
    };
    let read = parse_verdict_text(r#"{"applicable":false}"#, &format).expect("allowed");
    assert_eq!(
        apply_bounds(&read, &JudgedParams::default()).outcome,
        Outcome::NotApplicable
    );
    assert_eq!(apply_bounds(&read, &JudgedParams::default()).score, None);
    assert!(
        parse_verdict_text(r#"{"applicable":true}"#, &format).is_err(),
        "applicable alone decides nothing"
    );
}

#[test]
fn a_score_in_its_own_scale_is_kept_and_scaled() {
    let format = VerdictFormat {
        scale: Some(ScoreRange::new(1.0, 5.0)),
        ..PLAIN
    };
    let read = parse_verdict_text(r#"{"passed":true,"score":4}"#, &format).expect("in the scale");
    assert_eq!((read.score, read.raw_score), (Some(0.75), Some(4.0)));
    assert!(parse_verdict_text(r#"{"passed":true,"score":0.9}"#, &format).is_err());
    assert!(parse_verdict_text(r#"{"passed":true,"score":6}"#, &format).is_err());
}

#[test]
fn decision_settings_rescore_a_recorded_verdict() {
    let verdict = Verdict {
        passed: Some(true),
        score: Some(0.6),
        reasoning: "because".into(),
        ..Verdict::default()
    };
    let with = |min_score, max_score| {
        let params = JudgedParams {
            min_score,
            max_score,
            ..JudgedParams::default()
        };
        let result = apply_bounds(&verdict, &params);
        (result.outcome, result.score)
    };
    assert_eq!(with(None, None), (Outcome::Pass, Some(0.6)));
    assert_eq!(with(Some(0.6), None), (Outcome::Pass, Some(0.6)));
    assert_eq!(with(Some(0.7), None), (Outcome::Fail, Some(0.6)));
    assert_eq!(with(None, Some(0.5)), (Outcome::Fail, Some(0.6)));
    let empty_verdict = Verdict {
        passed: Some(true),
        ..Verdict::default()
    };
    let params = JudgedParams {
        min_score: Some(0.5),
        ..JudgedParams::default()
    };
    assert_eq!(
        apply_bounds(&empty_verdict, &params).outcome,
        Outcome::Unparsed
    );
}

#[test]
fn contradictory_verdict_is_flagged_and_not_changed() {
    for (reason, passed, score, flagged) in [
        ("Therefore it fails.", true, 0.9, true),
        ("Therefore it fails.", false, 0.1, false),
        ("Names it.", true, 0.0, true),
        ("Names it.", false, 1.0, true),
        ("Names it.", true, 0.4, false),
    ] {
        let json = format!(r#"{{"reasoning":"{reason}","passed":{passed},"score":{score}}}"#);
        let read = parse_verdict_object(&json, &PLAIN).expect("a verdict");
        assert_eq!(read.contradiction.is_some(), flagged, "{json}");
        assert_eq!((read.passed, read.score), (Some(passed), Some(score)));
    }
    // Where a bound decides, a low score may be the good one.
    let bound = VerdictFormat {
        needs_score: true,
        ..PLAIN
    };
    let json = r#"{"reasoning":"No slur.","passed":true,"score":0}"#;
    assert_eq!(
        parse_verdict_object(json, &bound)
            .expect("a verdict")
            .contradiction,
        None
    );
}

proptest! {
    #[test]
    fn no_text_panics_and_no_number_comes_from_prose(text in "[ -~\n]{0,60}") {
        let read = parse_verdict_text(&text, &PLAIN);
        let has_object = text.contains('{');
        prop_assert!(has_object || read.is_err());
    }

    #[test]
    fn verdict_that_is_cut_anywhere_is_rejected(cut in 0usize..70) {
        let reply = r#"{"citations":[],"reasoning":"so it is","passed":true,"score":0.75}"#;
        prop_assume!(cut < reply.len());
        prop_assert!(parse_verdict_text(&reply[..cut], &PLAIN).is_err());
    }

    #[test]
    fn unicode_never_panics(text in any::<String>()) {
        let _ = parse_verdict_text(&text, &PLAIN);
    }
}

#[test]
fn error_names_the_field_with_the_wrong_type() {
    for (text, why) in [
        (
            r#"{"passed": "true", "score": 1}"#,
            "`passed` must be true or false (got \"true\")",
        ),
        (
            r#"{"passed": true, "score": "0.9"}"#,
            "`score` must be a number (got \"0.9\")",
        ),
        (
            r#"{"passed": true, "reasoning": null}"#,
            "`reasoning` must be text (got null)",
        ),
    ] {
        let VerdictParseError(message) =
            parse_verdict_object(text, &VerdictFormat::default()).expect_err(text);
        assert_eq!(
            message,
            format!("the verdict doesn't have the expected format: {why}")
        );
    }
    let twice = r#"{"passed": true, "passed": false}"#;
    let VerdictParseError(message) =
        parse_verdict_object(twice, &VerdictFormat::default()).expect_err("stated twice");
    assert!(message.contains("duplicate field `passed`"), "{message}");
}
