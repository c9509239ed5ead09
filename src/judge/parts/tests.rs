use std::sync::Arc;

use super::super::fake::{FakeTool, JudgeFixture, Script, calls, format_facts, text};
use super::super::{VerdictFormat, apply_bounds, parse_verdict_object, parse_verdict_text};
use super::*;
use crate::handlers::JudgedParams;
use crate::model::{CellResult, JudgeConfig, Outcome, ProviderKind, Verdict, VerdictMode};

fn format(parts: PartsFormat) -> VerdictFormat {
    VerdictFormat {
        parts: Some(parts),
        ..VerdictFormat::default()
    }
}

/// Parses a reply of a server that follows the verdict's schema.
fn parse_text(reply: &str, format: &VerdictFormat) -> Result<Verdict, VerdictParseError> {
    parse_verdict_text(reply, format, VerdictMode::Schema, |_| false)
}

const TWO: PartsFormat = PartsFormat::Criteria(2);

/// Replies of which none states a verdict of two criteria.
const FAULTS: &[(&str, &str)] = &[
    ("", "the reply is empty"),
    ("PASS", "the reply is not one JSON object"),
    ("10/10", "the reply is not one JSON object"),
    ("2/10", "the reply is not one JSON object"),
    ("1/100", "the reply is not one JSON object"),
    ("FAIL - it did not pass", "the reply is not one JSON object"),
    ("Verdict:\nPASS", "the reply is not one JSON object"),
    ("1. PASS\n2. PASS", "the reply is not one JSON object"),
    ("I think both PASS.", "the reply is not one JSON object"),
    ("{}", "the verdict has no `criteria`"),
    (
        r#"{"passed":true,"score":1}"#,
        "the verdict has no `criteria`",
    ),
    (
        r#"{"reasoning":"both are met"}"#,
        "the verdict has no `criteria`",
    ),
    (r#"{"criteria":[]}"#, "criterion 1 of 2 has no verdict"),
    (
        r#"{"criteria":null}"#,
        "the verdict doesn't have the expected format",
    ),
    (
        r#"{"criteria":"all met"}"#,
        "the verdict doesn't have the expected format",
    ),
    (
        r#"{"criteria":[true,true]}"#,
        "the verdict doesn't have the expected format",
    ),
    (
        r#"{"criteria":[{"index":1,"passed":true}]}"#,
        "criterion 2 of 2 has no verdict",
    ),
    (
        r#"{"criteria":[{"index":2,"passed":true}]}"#,
        "criterion 1 of 2 has no verdict",
    ),
    (
        r#"{"criteria":[{"index":1,"passed":true},{"index":1,"passed":true}]}"#,
        "criterion 1 has two verdicts",
    ),
    (
        r#"{"criteria":[{"index":1,"passed":true},{"index":2,"passed":true},{"index":3,"passed":true}]}"#,
        "the verdict speaks of criterion 3, and they are numbered from 1 to 2",
    ),
    (
        r#"{"criteria":[{"index":0,"passed":true},{"index":1,"passed":true}]}"#,
        "the verdict speaks of criterion 0",
    ),
    (
        r#"{"criteria":[{"index":1.5,"passed":true},{"index":2,"passed":true}]}"#,
        "the verdict speaks of criterion 1.5",
    ),
    (
        r#"{"criteria":[{"index":"1","passed":true},{"index":2,"passed":true}]}"#,
        "the verdict doesn't have the expected format",
    ),
    (
        r#"{"criteria":[{"passed":true},{"passed":true}]}"#,
        "the verdict doesn't have the expected format",
    ),
    (
        r#"{"criteria":[{"index":1,"passed":"true"},{"index":2,"passed":true}]}"#,
        "the verdict doesn't have the expected format",
    ),
    (
        r#"{"criteria":[{"index":1,"passed":true,"passed":false},{"index":2,"passed":true}]}"#,
        "the verdict doesn't have the expected format",
    ),
    (
        r#"{"criteria":[{"index":1},{"index":2}]}"#,
        "the verdict doesn't have the expected format",
    ),
    (
        r#"{"criteria":[{"index":1,"passed":true},{"index":2,"passed":true}],"criteria":[]}"#,
        "the verdict doesn't have the expected format",
    ),
    (
        r#"{"criteria":[{"index":1,"passed":true},{"index":2,"passed":true}],"applicable":false}"#,
        "the verdict says \"not applicable\"",
    ),
    (
        r#"It would be {"criteria":[{"index":1,"passed":true},{"index":2,"passed":true}]} at best."#,
        "the reply is not one JSON object",
    ),
    (
        "{\"criteria\":[{\"index\":1,\"passed\":true},{\"index\":2,\"passed\":true}]}\n\n{\"passed\":false}",
        "the reply is not one JSON object",
    ),
    (
        r#"{"criteria":[{"index":1,"passed":true},{"index":2,"pas"#,
        "the reply is not one JSON object",
    ),
];

#[test]
fn faulty_parts_never_become_a_verdict() {
    for (reply, why) in FAULTS {
        let read = parse_text(reply, &format(TWO));
        let error = read.expect_err(reply).to_string();
        assert!(error.starts_with(why), "{reply}: {error}");
    }
}

#[test]
fn missing_count_never_counts_as_zero() {
    for reply in [
        r#"{"reasoning":"perfect"}"#,
        r#"{"hallucinations":{"count":0}}"#,
        r#"{"clarifications":{"count":0}}"#,
        r#"{"hallucinations":{},"clarifications":{"count":0}}"#,
        r#"{"hallucinations":{"count":null},"clarifications":{"count":0}}"#,
        r#"{"hallucinations":{"count":-1},"clarifications":{"count":0}}"#,
        r#"{"hallucinations":{"count":0.5},"clarifications":{"count":0}}"#,
        r#"{"hallucinations":{"count":1e9},"clarifications":{"count":0}}"#,
        r#"{"hallucinations":{"count":"0"},"clarifications":{"count":0}}"#,
        r#"{"hallucinations":0,"clarifications":0}"#,
        "Hallucination Count: 0\nClarification Count: 0",
        r#"{"passed":true,"score":1}"#,
    ] {
        assert!(
            parse_text(reply, &format(PartsFormat::Behaviors)).is_err(),
            "{reply}"
        );
    }
    let reply = r#"{"hallucinations":{"reasoning":"a","count":1},"clarifications":{"count":2.0}}"#;
    let read = parse_text(reply, &format(PartsFormat::Behaviors)).expect("counts");
    assert_eq!(read.parts[1].count, Some(2));
    assert_eq!(read.passed, Some(false));
    assert!((read.score.expect("a score") - 0.1).abs() < 1e-9);
}

#[test]
fn goals_are_identified_by_name_or_number() {
    let named = format(PartsFormat::Goals(None));
    for reply in [
        r#"{"goals":[]}"#,
        r#"{"goals":[{"met":true}]}"#,
        r#"{"goals":[{"goal":" ","met":true}]}"#,
        r#"{"goals":[{"goal":"a","met":"true"}]}"#,
        r#"{"goals":[{"goal":"a"}]}"#,
        r#"{"reasoning":"PASS"}"#,
        "FAIL\nit did not pass",
        "FAIL\\nit did not pass",
    ] {
        assert!(parse_text(reply, &named).is_err(), "{reply}");
    }
    let many: Vec<_> = (0..51)
        .map(|n| json!({"goal": n.to_string(), "met": true}))
        .collect();
    assert!(parse_text(&json!({ "goals": many }).to_string(), &named).is_err());
    let reply =
        r#"{"goals":[{"goal":"book","met":true,"reasoning":"it is"},{"goal":"pay","met":false}]}"#;
    let read = parse_text(reply, &named).expect("goals");
    assert_eq!((read.passed, read.score), (Some(false), Some(0.5)));
    assert_eq!(read.parts[0].text, "book");
    let numbered = format(PartsFormat::Goals(Some(2)));
    assert!(parse_text(reply, &numbered).is_err(), "they have no index");
    let reply = r#"{"goals":[{"index":2,"met":true},{"index":1,"met":true}]}"#;
    assert_eq!(
        parse_text(reply, &numbered).expect("goals").score,
        Some(1.0)
    );
}

#[test]
fn overall_verdict_follows_from_the_parts_despite_the_judges_own() {
    let reply = r#"{"criteria":[{"index":2,"reasoning":"no","passed":false},{"index":1,"reasoning":"yes","passed":true}],
        "reasoning":"One is not met.","passed":true,"score":7}"#;
    let read = parse_verdict_object(reply, &format(TWO)).expect("a verdict");
    assert_eq!((read.passed, read.score), (Some(false), Some(0.5)));
    assert_eq!(
        read.parts[0].reasoning, "yes",
        "in the order of the criteria"
    );
    assert_eq!(
        read.contradiction.as_deref(),
        Some("its parts amount to failed, but the judge states passed as a whole")
    );
    let reply = r#"{"criteria":[{"index":1,"passed":true},{"index":2,"passed":true}],
        "reasoning":"Therefore the answer fails."}"#;
    let read = parse_verdict_object(reply, &format(TWO)).expect("a verdict");
    assert!(read.contradiction.is_some(), "{read:?}");
}

#[test]
fn allowed_not_applicable_needs_no_parts() {
    let format = VerdictFormat {
        allow_na: true,
        ..format(TWO)
    };
    let read = parse_verdict_object(r#"{"reasoning":"no","applicable":false}"#, &format)
        .expect("a verdict");
    assert_eq!(
        apply_bounds(&read, &params()).outcome,
        Outcome::NotApplicable
    );
    assert!(parse_verdict_object(r#"{"reasoning":"no","applicable":true}"#, &format).is_err());
}

#[test]
fn schema_lists_parts_before_the_reason_without_an_overall_verdict() {
    for (parts, keys) in [
        (TWO, &["citations", "criteria", "reasoning"][..]),
        (
            PartsFormat::Goals(None),
            &["citations", "goals", "reasoning"],
        ),
        (PartsFormat::Calls(3), &["citations", "calls", "reasoning"]),
        (
            PartsFormat::Behaviors,
            &["citations", "hallucinations", "clarifications", "reasoning"],
        ),
    ] {
        let schema = format(parts).schema();
        let names: Vec<&String> = schema["properties"]
            .as_object()
            .expect("fields")
            .keys()
            .collect();
        assert_eq!(names, keys);
        assert_eq!(schema["required"], json!(keys));
        assert_eq!(PartsFormat::from_schema(&schema), Some(parts), "read back");
        assert!(format(parts).example().contains(keys[1]));
        assert!(parts.render_instructions().contains(keys[1]));
        assert!(!format(parts).example().contains("score"));
    }
    assert_eq!(
        PartsFormat::from_schema(&VerdictFormat::default().schema()),
        None
    );
}

fn params() -> JudgedParams {
    JudgedParams {
        criteria: "1. The answer mentions \"2.69\"\n2. The answer contains a link\n".to_owned(),
        parts_spec: VerdictPartsSpec::Criteria(vec![
            "The answer mentions \"2.69\"".to_owned(),
            "The answer contains a link".to_owned(),
        ]),
        session: true,
        ..JudgedParams::default()
    }
}

const SPLIT: &str = r#"{"citations":[{"source":"message 1","quote":"Use 2.69"}],
    "criteria":[{"index":1,"reasoning":"it does","passed":true},{"index":2,"reasoning":"none","passed":false}],
    "reasoning":"It links nowhere."}"#;

fn fixture(tools: &[Arc<FakeTool>]) -> JudgeFixture {
    let mut fixture = JudgeFixture::new(tools);
    fixture.request.params = params();
    fixture
}

fn verdict(result: &CellResult) -> &Verdict {
    result.verdict.as_deref().expect("a verdict")
}

#[tokio::test]
async fn one_request_judges_every_criterion() {
    let script = Script::new(vec![text(SPLIT)]);
    let (result, facts) = fixture(&[]).judge(&script).await;
    assert_eq!((result.outcome, result.score), (Outcome::Fail, Some(0.5)));
    assert_eq!(
        result.explanation,
        "1 of 2 criteria met.\nIt links nowhere.\n✓ 1. The answer mentions \"2.69\": it does\n✗ 2. The answer contains a \
         link: none"
    );
    assert!(verdict(&result).citations[0].found);
    assert_eq!(
        format_facts(&facts),
        ["0 started", "0 finished", "0 verdict"]
    );
    let sent = &script.bodies.lock().expect("no panic")[0];
    assert!(
        sent.contains("one entry for each of the 2 numbered criteria"),
        "{sent}"
    );
    assert!(
        !sent.contains("`passed`: true only if the criteria are met"),
        "no overall is asked for"
    );
}

#[tokio::test]
async fn verdict_without_every_part_is_rejected() {
    let short = r#"{"criteria":[{"index":1,"passed":true}],"reasoning":"fine"}"#;
    let (result, facts) = fixture(&[]).judge(&Script::new(vec![text(short)])).await;
    assert_eq!(result.outcome, Outcome::Unparsed);
    assert_eq!(
        result.error.as_deref(),
        Some("criterion 2 of 2 has no verdict")
    );
    assert_eq!(
        format_facts(&facts).last().map(String::as_str),
        Some("0 unparsed")
    );
}

#[tokio::test]
async fn submissions_with_equal_share_but_different_parts_disagree() {
    let other = SPLIT
        .replace("\"passed\":true", "\"passed\":x")
        .replace("\"passed\":false", "\"passed\":true")
        .replace("\"passed\":x", "\"passed\":false");
    let tool = FakeTool::new("fetch_url", super::super::fake::FakeToolBehavior::Echo);
    let fixture = fixture(&[tool]);
    let both = calls(&[("submit_verdict", SPLIT), ("submit_verdict", &other)]);
    let again = calls(&[("submit_verdict", SPLIT), ("submit_verdict", &other)]);
    let (result, _) = fixture.judge(&Script::new(vec![both, again])).await;
    assert_eq!(result.outcome, Outcome::Unparsed);
    let twice = calls(&[("submit_verdict", SPLIT), ("submit_verdict", SPLIT)]);
    let (result, _) = fixture.judge(&Script::new(vec![twice])).await;
    assert_eq!(result.score, Some(0.5), "{:?}", result.error);
}

#[tokio::test]
async fn recorded_verdict_is_rescored_from_its_parts() {
    let (result, _) = fixture(&[]).judge(&Script::new(vec![text(SPLIT)])).await;
    let mut recorded = verdict(&result).clone();
    let lenient = JudgedParams {
        min_score: Some(0.5),
        ..params()
    };
    assert_eq!(apply_bounds(&recorded, &lenient).outcome, Outcome::Pass);
    // What a record says of the whole does not count next to its parts.
    (recorded.passed, recorded.score) = (Some(true), Some(1.0));
    let again = apply_bounds(&recorded, &params());
    assert_eq!((again.outcome, again.score), (Outcome::Fail, Some(0.5)));
}

#[tokio::test]
async fn rules_judge_decides_each_criterion() {
    let mut fixture = fixture(&[]);
    fixture.config = JudgeConfig::new("quick", ProviderKind::Rules);
    let rules = || fixture.engine(Arc::new(super::super::rules::RulesProvider::new(None)));
    let (result, _) = fixture.judge_with(&rules()).await;
    assert_eq!((result.outcome, result.score), (Outcome::Fail, Some(0.5)));
    assert_eq!(
        result.explanation,
        "1 of 2 criteria met.\nrules, a checker and not a model.\n\
         ✓ 1. The answer mentions \"2.69\": “2.69” is in message 1\n\
         ✗ 2. The answer contains a link: there is no URL"
    );
}

#[tokio::test]
async fn rules_judge_leaves_unsupported_criteria_undecided() {
    for (criteria, parts) in [
        (
            "1. The tone is kind\n",
            VerdictPartsSpec::Criteria(vec!["The tone is kind".to_owned()]),
        ),
        ("The answer mentions \"2.69\"", VerdictPartsSpec::Behaviors),
        (
            "The answer mentions \"2.69\"",
            VerdictPartsSpec::Goals(Vec::new()),
        ),
        (
            "The answer mentions \"2.69\"",
            VerdictPartsSpec::Calls(vec!["search in message 1".to_owned()]),
        ),
    ] {
        let mut fixture = fixture(&[]);
        fixture.config = JudgeConfig::new("quick", ProviderKind::Rules);
        fixture.request.params.criteria = criteria.to_owned();
        fixture.request.params.parts_spec = parts.clone();
        let rules = fixture.engine(Arc::new(super::super::rules::RulesProvider::new(None)));
        let (result, _) = fixture.judge_with(&rules).await;
        assert_eq!(
            result.outcome,
            Outcome::NotApplicable,
            "{parts:?} {:?}",
            result.error
        );
        assert!(!result.explanation.is_empty());
    }
}

#[test]
fn cache_key_of_parts_names_their_own_parser() {
    let fixture = fixture(&[]);
    let engine = fixture.engine(Script::new(Vec::new()));
    let parser = |request: &crate::handlers::JudgeRequest| {
        let parts = engine.cache_key(request).expect("a key").parts;
        parts.into_iter().find(|(name, _)| name == "parser")
    };
    let mut plain = fixture.request.clone();
    plain.params.parts_spec = VerdictPartsSpec::SingleVerdict;
    assert_ne!(parser(&fixture.request), parser(&plain));
    // A session has no parts either, so its replies are read in the same way.
    let mut session = plain.clone();
    session.params.session = true;
    assert_eq!(parser(&plain), parser(&session));
}
