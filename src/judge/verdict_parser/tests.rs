use super::*;
use crate::handlers::{ScoreScale, VerdictPartsSpec};

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
fn parts_decide_and_another_overall_result_is_flagged() {
    let format = VerdictFormat {
        parts: Some(PartsFormat::Criteria(2)),
        ..PLAIN
    };
    let parts = r#""criteria":[{"index":1,"passed":true},{"index":2,"passed":true}]"#;
    let read = |rest: &str| {
        let json = format!("{{{parts}{rest}}}");
        parse_verdict_object(&json, &format).expect("parts decide")
    };
    for (rest, flag) in [
        ("", None),
        (r#","passed":true"#, None),
        (r#","passed":false"#, Some("its parts amount to passed")),
    ] {
        let verdict = read(rest);
        assert_eq!((verdict.passed, verdict.score), (Some(true), Some(1.0)));
        let found = verdict.contradiction.as_deref();
        assert_eq!(found.is_some(), flag.is_some(), "{rest}: {found:?}");
        assert!(flag.is_none_or(|flag| found.is_some_and(|found| found.contains(flag))));
    }
    let params = JudgedParams {
        parts_spec: VerdictPartsSpec::Criteria(vec!["It greets.".into(), "It ends.".into()]),
        ..JudgedParams::default()
    };
    let explain = |rest| apply_bounds(&read(rest), &params).explanation;
    let (short, long) = (explain(""), explain(r#","reasoning":"Both hold.""#));
    assert_eq!(short.lines().count(), 3, "{short}");
    assert_eq!(long.lines().count(), 4, "{long}");
    assert!(long.contains("Both hold."), "{long}");
}

#[test]
fn scale_of_one_point_keeps_its_score() {
    let format = VerdictFormat {
        scale: Some(ScoreRange {
            low: 3.0,
            high: 3.0,
        }),
        ..PLAIN
    };
    let read = parse_verdict_object(r#"{"passed":true,"score":3}"#, &format).expect("in range");
    assert_eq!(read.score, Some(3.0));
}

#[test]
fn comparison_is_about_the_first_transcript_of_the_file() {
    let read = |json: &str, order| {
        let format = VerdictFormat {
            pair_order: Some(order),
            ..PLAIN
        };
        parse_verdict_object(json, &format).map(|read| (read.passed, read.score, read.raw_score))
    };
    for (json, of_a, first, second) in [
        (r#"{"score":1}"#, 1.0, (true, 1.0), (false, 0.0)),
        (r#"{"score":0}"#, 0.0, (false, 0.0), (true, 1.0)),
        (r#"{"score":0.5}"#, 0.5, (false, 0.5), (false, 0.5)),
        (r#"{"passed":true}"#, 1.0, (true, 1.0), (false, 0.0)),
    ] {
        for (order, (passed, score)) in
            [(PairOrder::FirstIsA, first), (PairOrder::SecondIsA, second)]
        {
            let expected = (Some(passed), Some(score), Some(of_a));
            assert_eq!(read(json, order).expect(json), expected, "{json} {order:?}");
        }
    }
    for json in [
        r#"{"score":1.01}"#,
        r#"{"score":-0.01}"#,
        r#"{"reasoning":"A"}"#,
    ] {
        assert!(read(json, PairOrder::FirstIsA).is_err(), "{json}");
    }
}

#[test]
fn comparison_whose_score_and_passed_differ_is_flagged() {
    for order in [PairOrder::FirstIsA, PairOrder::SecondIsA] {
        let format = VerdictFormat {
            pair_order: Some(order),
            ..PLAIN
        };
        for (json, is_flagged) in [
            (r#"{"passed":false,"score":1}"#, true),
            (r#"{"passed":true,"score":0}"#, true),
            (r#"{"passed":true,"score":0.5}"#, true),
            (r#"{"passed":true,"score":0.9}"#, false),
            (r#"{"passed":false,"score":0.5}"#, false),
            (r#"{"passed":false,"score":0}"#, false),
            (r#"{"score":1}"#, false),
            (r#"{"passed":true}"#, false),
            (r#"{"passed":false}"#, false),
        ] {
            let read = parse_verdict_object(json, &format).expect(json);
            assert_eq!(read.contradiction.is_some(), is_flagged, "{json} {order:?}");
        }
    }
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
        (
            r#"{"passed": true, "citations": "message 1"}"#,
            "`citations` must be a list (got \"message 1\")",
        ),
        (
            r#"{"applicable": "no", "passed": true}"#,
            "`applicable` must be true or false (got \"no\")",
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

#[test]
fn error_about_a_long_value_names_its_field_and_shows_its_beginning() {
    let reason = |field: &str| {
        let text = format!(r#"{{"passed": true, {field}}}"#);
        let error = parse_verdict_object(&text, &PLAIN).expect_err(&text);
        let reason = error
            .0
            .strip_prefix("the verdict doesn't have the expected format: ");
        reason.expect("the reason").to_owned()
    };
    // `score` must be a number (got "…"): 33 characters next to the value.
    let score = |length: usize| reason(&format!(r#""score": "{}""#, "é".repeat(length)));
    assert!(score(167).ends_with("é\")"), "{}", score(167));
    let cut = score(168);
    assert!(cut.starts_with("`score` must be a number (got \"é") && cut.ends_with("é\"…"));
    assert_eq!(score(9000).chars().count(), 201);
    let nested = reason(&format!(r#""citations": ["{}"]"#, "a".repeat(9000)));
    assert_eq!(nested.chars().count(), 201, "a text inside a list");
    assert!(reason(r#""score": {"value": 1}"#).contains("`score` must be a number"));
}

#[test]
fn verdict_keeps_every_stated_field() {
    let json = r#"{"citations":[{"source":"message 1","quote":"2.69"}],"reasoning":"It names it.","passed":true,
        "score":0.5,"applicable":true}"#;
    let format = VerdictFormat {
        allow_na: true,
        ..PLAIN
    };
    let expected = Verdict {
        passed: Some(true),
        score: Some(0.5),
        applicable: Some(true),
        reasoning: "It names it.".to_owned(),
        citations: vec![Citation {
            source: "message 1".to_owned(),
            quote: "2.69".to_owned(),
            found: false,
        }],
        ..Verdict::default()
    };
    assert_eq!(
        parse_verdict_object(json, &format),
        Ok(expected.clone()),
        "without parts"
    );
    let compared = VerdictFormat {
        pair_order: Some(PairOrder::FirstIsA),
        ..format
    };
    let read = parse_verdict_object(json, &compared).expect("a comparison");
    assert_eq!(
        (read.citations, read.reasoning, read.applicable),
        (
            expected.citations.clone(),
            expected.reasoning.clone(),
            Some(true)
        )
    );
    let with_parts = VerdictFormat {
        parts: Some(PartsFormat::Criteria(1)),
        ..format
    };
    let json = json.replace(
        r#""passed":true"#,
        r#""criteria":[{"index":1,"passed":true}]"#,
    );
    let read = parse_verdict_object(&json, &with_parts).expect("parts");
    assert_eq!(
        (read.citations, read.reasoning, read.applicable),
        (expected.citations, expected.reasoning, Some(true))
    );
    assert_eq!(read.parts.len(), 1);
}

#[test]
fn recorded_verdict_is_flagged_under_other_bounds_like_a_new_one() {
    let scale = Some(ScoreScale {
        low: 1.0,
        high: 5.0,
    });
    for (scale, json) in [
        (None, r#"{"reasoning":"No slur.","passed":true,"score":0}"#),
        (
            None,
            r#"{"reasoning":"Names it.","passed":false,"score":1}"#,
        ),
        (None, r#"{"reasoning":"Names it.","passed":true,"score":1}"#),
        (None, r#"{"reasoning":"It fails.","passed":true,"score":0}"#),
        (
            None,
            r#"{"reasoning":"Therefore it fails.","passed":true,"score":0}"#,
        ),
        (
            None,
            r#"{"verdict":"FAIL","reasoning":"","passed":true,"score":0}"#,
        ),
        (scale, r#"{"reasoning":"No slur.","passed":true,"score":1}"#),
        (scale, r#"{"reasoning":"No slur.","passed":true,"score":5}"#),
    ] {
        let params = |max_score| JudgedParams {
            max_score,
            scale,
            ..JudgedParams::default()
        };
        let read = |max_score| {
            let format = VerdictFormat::from_params(&params(max_score), false);
            parse_verdict_object(json, &format).expect("a verdict")
        };
        for (before, now) in [(None, Some(0.3)), (Some(0.3), None), (None, None)] {
            let mut recorded = read(before);
            update_score_flag(&mut recorded, &params(now));
            assert_eq!(recorded, read(now), "{json} {before:?} {now:?}");
        }
    }
}

#[test]
fn verdict_that_does_not_apply_is_not_flagged() {
    let format = VerdictFormat {
        allow_na: true,
        ..PLAIN
    };
    let json = r#"{"reasoning":"Therefore it fails.","passed":true,"applicable":false}"#;
    let read = parse_verdict_object(json, &format).expect("allowed");
    assert_eq!(read.contradiction, None);
    // Its parts and its comparison are not read.
    for format in [
        VerdictFormat {
            parts: Some(PartsFormat::Criteria(2)),
            ..format
        },
        VerdictFormat {
            pair_order: Some(PairOrder::FirstIsA),
            ..format
        },
    ] {
        let read = parse_verdict_object(json, &format).expect("allowed");
        assert_eq!((read.passed, read.applicable), (None, Some(false)));
    }
}

#[test]
fn part_with_a_contradictory_reason_is_flagged() {
    let format = VerdictFormat {
        parts: Some(PartsFormat::Criteria(1)),
        ..PLAIN
    };
    let read = |part: &str, rest: &str| {
        let json =
            format!(r#"{{"criteria":[{{"index":1,"passed":true,"reasoning":"{part}"}}]{rest}}}"#);
        let read = parse_verdict_object(&json, &format).expect("parts");
        read.contradiction.is_some()
    };
    assert!(read("No. The criterion is not met.", ""));
    assert!(read("Yes.", r#","reasoning":"Therefore it fails.""#));
    assert!(read("Yes.", r#","verdict":"fail""#));
    assert!(!read("Yes.", r#","reasoning":"It is there.""#));
}

#[test]
fn part_with_a_field_of_the_opposite_verdict_is_flagged() {
    let criteria = PartsFormat::Criteria(2);
    let goals = PartsFormat::Goals(None);
    for (parts, json, flag) in [
        (
            criteria,
            r#"{"criteria":[{"index":2,"passed":true,"verdict":"FAIL"},{"index":1,"passed":true}]}"#,
            Some("part 2 is met, but its field `verdict` is \"FAIL\""),
        ),
        (
            criteria,
            r#"{"criteria":[{"index":1,"passed":false,"met":true},{"index":2,"passed":true,"verdict":"pass"}]}"#,
            Some("part 1 is not met, but its field `met` is true"),
        ),
        (
            criteria,
            r#"{"criteria":[{"index":1,"passed":false,"verdict":"fail"},{"index":2,"passed":true,"note":"fail"}]}"#,
            None,
        ),
        (
            goals,
            r#"{"goals":[{"goal":"a refund","met":true,"passed":false}]}"#,
            Some("part 1 is met, but its field `passed` is false"),
        ),
        (
            PartsFormat::Calls(1),
            r#"{"calls":[{"index":1,"passed":true,"status":"failed"}]}"#,
            None,
        ),
    ] {
        let format = VerdictFormat {
            parts: Some(parts),
            ..PLAIN
        };
        let read = parse_verdict_object(json, &format).expect("parts");
        assert_eq!(read.contradiction.as_deref(), flag, "{json}");
    }
}
