use super::*;

const PLAIN: VerdictFormat = VerdictFormat {
    allow_na: false,
    scale: None,
    needs_score: false,
    parts: None,
    pair_order: None,
};
const SCORED: VerdictFormat = VerdictFormat {
    needs_score: true,
    ..PLAIN
};

#[test]
fn bound_requires_a_score_and_makes_passed_optional() {
    assert!(parse_verdict_object(r#"{"passed":true}"#, &SCORED).is_err());
    let read = parse_verdict_object(r#"{"score":0.8}"#, &SCORED).expect("a score decides");
    assert_eq!((read.passed, read.score), (None, Some(0.8)));
}

#[test]
fn not_applicable_is_rejected_unless_allowed() {
    let format = VerdictFormat {
        allow_na: true,
        ..PLAIN
    };
    let read = parse_verdict_object(r#"{"applicable":false}"#, &format).expect("allowed");
    assert_eq!(
        apply_bounds(&read, &JudgedParams::default()).outcome,
        Outcome::NotApplicable
    );
    assert_eq!(apply_bounds(&read, &JudgedParams::default()).score, None);
    assert!(
        parse_verdict_object(r#"{"applicable":true}"#, &format).is_err(),
        "applicable alone decides nothing"
    );
}

#[test]
fn verdict_keeps_the_score_of_the_scale_and_its_normalized_value() {
    let format = VerdictFormat {
        scale: Some(ScoreRange::new(1.0, 5.0)),
        ..PLAIN
    };
    let read = parse_verdict_object(r#"{"passed":true,"score":4}"#, &format).expect("in the scale");
    assert_eq!((read.score, read.raw_score), (Some(0.75), Some(4.0)));
    assert!(parse_verdict_object(r#"{"passed":true,"score":0.9}"#, &format).is_err());
    assert!(parse_verdict_object(r#"{"passed":true,"score":6}"#, &format).is_err());
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
