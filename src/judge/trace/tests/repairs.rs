//! Traces with arguments that aren't JSON.

use super::super::*;
use super::fixture_with_tool;
use crate::event::{EventKind, ToolFact};
use crate::judge::fake::{
    FakeTool, FakeToolBehavior, JudgeFixture, PASSED, Script, calls, format_facts,
};

/// The changes that the repairs recorded.
fn changes(facts: &[EventKind]) -> Vec<String> {
    facts
        .iter()
        .filter_map(|kind| match kind {
            EventKind::Tool {
                fact: ToolFact::Repaired { changes, .. },
                ..
            } => Some(changes.iter().map(|c| c.what.clone())),
            _ => None,
        })
        .flatten()
        .collect()
}

#[tokio::test]
async fn call_with_invalid_json_is_repaired_runs_and_is_sent_back_in_canonical_form() {
    for (raw, expected) in [
        (
            "{url: 'a',}",
            vec![
                "added quotes around 1 key",
                "made the quotes of 1 text double",
                "dropped 1 comma",
            ],
        ),
        ("{\"url\": \"a\"", vec!["closed 1 bracket"]),
        // JSON, but no object: a server would not take it either.
        (r#""{\"url\":\"a\"}""#, vec!["read the JSON inside a text"]),
    ] {
        let tool = FakeTool::new("fetch_url", FakeToolBehavior::Echo);
        let fixture = JudgeFixture::new(std::slice::from_ref(&tool));
        let script = Script::new(vec![
            calls(&[("fetch_url", raw)]),
            calls(&[("submit_verdict", PASSED)]),
        ]);
        let (result, facts) = fixture.judge(&script).await;
        assert_eq!(result.outcome, Outcome::Pass, "{raw}: {result:?}");
        assert_eq!(*tool.ran.lock().expect("no panic"), [r#"{"url":"a"}"#]);
        assert_eq!(changes(&facts), expected, "{raw}");
        let fact_words = format_facts(&facts);
        let at = |fact: &str| fact_words.iter().position(|s| s == fact).expect(fact);
        assert!(at("0.0 repaired") < at("0.0 validated"), "{fact_words:?}");
        assert!(at("0.0 validated") < at("0.0 running"), "{fact_words:?}");
        let bodies = script.bodies.lock().expect("no panic");
        let view = r#"raw: "{\"url\":\"a\"}""#;
        assert!(bodies[1].contains(view), "{raw}: {}", bodies[1]);
    }
}

#[tokio::test]
async fn repair_is_recorded_before_the_call_is_rejected() {
    let tool = FakeTool::new("fetch_url", FakeToolBehavior::Echo);
    let fixture = JudgeFixture::new(std::slice::from_ref(&tool));
    let script = Script::new(vec![
        calls(&[
            ("fetch_url", "{url: 5}"),
            ("fetch_url", "not json"),
            ("nope", "{a: 1}"),
        ]),
        calls(&[("submit_verdict", PASSED)]),
    ]);
    let (result, facts) = fixture.judge(&script).await;
    assert_eq!(result.outcome, Outcome::Pass);
    assert!(tool.ran.lock().expect("no panic").is_empty());
    let fact_words = format_facts(&facts);
    for fact in [
        "0.0 repaired",
        "0.0 rejected schema",
        "0.1 rejected parse",
        "0.2 repaired",
        "0.2 rejected unknown_tool",
    ] {
        assert!(
            fact_words.contains(&fact.to_owned()),
            "{fact} in {fact_words:?}"
        );
    }
    assert!(
        !fact_words
            .iter()
            .any(|s| s.ends_with("running") && s.starts_with("0.")),
        "{fact_words:?}"
    );
    let bodies = script.bodies.lock().expect("no panic");
    assert!(
        bodies[1].contains(r#"raw: "{\"url\":5}""#),
        "canonical though rejected"
    );
    assert!(
        bodies[1].contains(r#"raw: "{}""#),
        "nothing to be read degrades"
    );
}

#[tokio::test]
async fn repaired_verdict_counts_unless_it_is_truncated_or_contradicts_itself() {
    let python_literal = "{'citations': [], 'reasoning': 'ok', 'passed': True, 'score': 1.}";
    let closed = r#"{"citations":[],"reasoning":"ok","passed":true,"score":1"#;
    let glued =
        r#"{"reasoning":"ok","passed":true,"score":1}{"reasoning":"no","passed":false,"score":0}"#;
    let twice = r#"{"reasoning":"ok","passed":true,"passed":false,"score":1,}"#;
    let inner = r#""{\"reasoning\":\"ok\",\"passed\":true,\"passed\":false,\"score\":1}""#;
    for (raw, outcome, word) in [
        (python_literal, Outcome::Pass, ""),
        (closed, Outcome::Truncated, "cut off"),
        (
            "{passed: true, reasoning: \"because",
            Outcome::Truncated,
            "cut off",
        ),
        (glued, Outcome::Unparsed, "several values"),
        (twice, Outcome::Unparsed, "more than once"),
        (inner, Outcome::Unparsed, "more than once"),
        ("I would pass it.", Outcome::Unparsed, "could not parse"),
        ("{'passed': 'yes', 'score': 1}", Outcome::Unparsed, "passed"),
    ] {
        let fixture = fixture_with_tool();
        // A malformed verdict gets one more turn, so the script repeats it.
        let script = Script::new(vec![
            calls(&[("submit_verdict", raw)]),
            calls(&[("submit_verdict", raw)]),
        ]);
        let (result, facts) = fixture.judge(&script).await;
        assert_eq!(result.outcome, outcome, "{raw}: {result:?}");
        let why = result.error.clone().unwrap_or_default();
        assert!(why.contains(word), "{raw}: {why}");
        if outcome == Outcome::Pass {
            let repaired = result.verdict.expect("a verdict").repaired;
            let descriptions: Vec<String> = repaired.into_iter().map(|c| c.what).collect();
            assert_eq!(descriptions, changes(&facts));
            assert_eq!(descriptions.len(), 3, "{descriptions:?}");
        } else {
            assert!(
                !format_facts(&facts).iter().any(|s| s.ends_with("running")),
                "{raw}"
            );
        }
    }
}

#[tokio::test]
async fn cut_off_verdict_gets_one_more_turn() {
    let passed = r#"{"citations":[],"reasoning":"ok","passed":true,"score":1}"#;
    for cut in [
        r#"{"citations":[],"reasoning":"ok","passed":false,"score":0"#,
        r#"{"citations":[],"reasoning":"ok","passed":fal"#,
        r#"{"citations":[],"reasoning":"be"#,
    ] {
        let fixture = fixture_with_tool();
        let script = Script::new(vec![
            calls(&[("submit_verdict", cut)]),
            calls(&[("submit_verdict", passed)]),
        ]);
        let (result, _) = fixture.judge(&script).await;
        assert_eq!(result.outcome, Outcome::Pass, "{cut}: {result:?}");
    }
}

#[tokio::test]
async fn half_of_a_surrogate_pair_loses_no_verdict() {
    let half = r#"{"citations":[],"reasoning":"half \ud83d only","passed":true,"score":1}"#;
    let fixture = fixture_with_tool();
    let script = Script::new(vec![calls(&[("submit_verdict", half)])]);
    let (result, _) = fixture.judge(&script).await;
    assert_eq!(result.outcome, Outcome::Pass, "{result:?}");
    let verdict = result.verdict.expect("a verdict");
    assert_eq!(verdict.reasoning, "half \u{fffd} only");
}
