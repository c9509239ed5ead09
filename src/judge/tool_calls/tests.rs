//! The checks between a call's preparation and its tool, as the log records them.
//!
//! They are identical calls, prerequisites, the limit on calls, and recorded responses.

use crate::event::{EventKind, ToolFact};
use crate::judge::fake::{
    FakeTool, FakeToolBehavior, FakeToolRules, JudgeFixture, PASSED, Script, ScriptedReply, calls,
    format_facts,
};
use crate::judge::{EvidenceKey, EvidenceMissPolicy, ReplayedEvidence};
use crate::model::{Millis, Outcome, RawJson, RunId, ToolResponse};
use crate::tools::Tool as _;

fn submit() -> ScriptedReply {
    calls(&[("submit_verdict", PASSED)])
}

fn url(name: &str) -> String {
    format!(r#"{{"url":"{name}"}}"#)
}

/// Judges with these turns of calls before the verdict; returns the recorded facts of the calls.
async fn record_call_facts(fixture: &JudgeFixture, turns: &[&[(&str, &str)]]) -> Vec<String> {
    let mut replies: Vec<ScriptedReply> = turns.iter().map(|turn| calls(turn)).collect();
    replies.push(submit());
    let (result, facts) = fixture.judge(&Script::new(replies)).await;
    assert_eq!(result.outcome, Outcome::Pass, "{result:?}");
    assert_lawful(&facts);
    let verdict = format!("{}.", turns.len());
    let mut fact_words = format_facts(&facts);
    fact_words.retain(|fact| fact.contains('.') && !fact.starts_with(&verdict));
    fact_words
}

/// received → repaired? → ( validated → started → hop* → finished ) | rejected, for every call.
fn assert_lawful(facts: &[EventKind]) {
    let mut calls = std::collections::BTreeMap::<(u16, u16), String>::new();
    for kind in facts {
        let EventKind::Tool {
            turn, call, fact, ..
        } = kind
        else {
            continue;
        };
        let letter = match fact {
            ToolFact::Received { .. } => 'c',
            ToolFact::Repaired { .. } => 'r',
            ToolFact::Validated { .. } => 'v',
            ToolFact::Started => 's',
            ToolFact::Hop(_) => 'h',
            ToolFact::Finished { .. } => 'f',
            ToolFact::Rejected { .. } => 'x',
        };
        calls.entry((turn.0, call.0)).or_default().push(letter);
    }
    for (call, facts) in calls {
        let order = facts.replace('h', "").replacen('r', "", 1);
        assert!(order == "cvsf" || order == "cx", "{call:?}: {facts}");
    }
}

fn texts(facts: &[EventKind]) -> Vec<String> {
    let rejected = facts.iter().filter_map(|kind| match kind {
        EventKind::Tool {
            fact: ToolFact::Rejected { text, .. },
            ..
        } => Some(text.clone()),
        _ => None,
    });
    rejected.collect()
}

#[tokio::test]
async fn identical_calls_run_once_in_any_key_order() {
    let tool = FakeTool::new("find", FakeToolBehavior::Echo);
    let fixture = JudgeFixture::new(std::slice::from_ref(&tool));
    let fact_words = record_call_facts(
        &fixture,
        &[
            &[
                ("find", r#"{"url":"a","n":1}"#),
                ("find", r#"{ "n": 1, "url": "a" }"#),
                ("find", r#"{"url":"a","n":2}"#),
            ],
            &[("find", r#"{"n":1,"url":"a"}"#)],
        ],
    )
    .await;
    assert_eq!(tool.ran.lock().expect("no panic").len(), 2);
    for fact in [
        "0.0 answered live",
        "0.1 answered same trace",
        "0.2 answered live",
        "1.0 answered same trace",
    ] {
        assert!(
            fact_words.contains(&fact.to_owned()),
            "{fact} in {fact_words:?}"
        );
    }
}

#[tokio::test]
async fn calls_without_cache_or_with_side_effects_run_every_time() {
    for rules in [
        FakeToolRules {
            cache: false,
            ..FakeToolRules::default()
        },
        FakeToolRules {
            read_only: false,
            ..FakeToolRules::default()
        },
    ] {
        let tool = FakeTool::with("find", FakeToolBehavior::Echo, rules);
        let fixture = JudgeFixture::new(std::slice::from_ref(&tool));
        let a = url("a");
        let fact_words =
            record_call_facts(&fixture, &[&[("find", &a), ("find", &a)], &[("find", &a)]]).await;
        assert_eq!(tool.ran.lock().expect("no panic").len(), 3);
        let live = fact_words.iter().filter(|f| f.ends_with("answered live"));
        assert_eq!(live.count(), 3, "{fact_words:?}");
    }
}

#[tokio::test]
async fn call_limit_counts_only_calls_that_run() {
    let limited = || FakeToolRules {
        max_calls: Some(2),
        ..FakeToolRules::default()
    };
    let tool = FakeTool::with("find", FakeToolBehavior::Echo, limited());
    let fixture = JudgeFixture::new(std::slice::from_ref(&tool));
    let (a, b, c) = (url("a"), url("b"), url("c"));
    let fact_words = record_call_facts(
        &fixture,
        &[
            &[("find", &a), ("find", &a), ("find", r#"{"url":5}"#)],
            &[("find", &b), ("find", &c)],
            &[("find", &a)],
        ],
    )
    .await;
    let ends: Vec<&str> = fact_words
        .iter()
        .map(String::as_str)
        .filter(|fact| fact.contains("answered") || fact.contains("rejected"))
        .collect();
    assert_eq!(
        ends,
        [
            "0.2 rejected schema",
            "0.0 answered live",
            "0.1 answered same trace",
            "1.1 rejected max_calls",
            "1.0 answered live",
            "2.0 answered same trace",
        ]
    );
    // Frozen evidence counts as a live run does.
    let known = ["a", "b", "c"].map(|name| {
        let args = RawJson::parse(&url(name)).expect("JSON");
        let key = EvidenceKey::new("find", &tool.digest(), &args);
        (key, ToolResponse::ok("recorded"))
    });
    let run = RunId("20261121T000000Z-kvqa".into());
    let mut fixture =
        JudgeFixture::new(&[FakeTool::with("find", FakeToolBehavior::Echo, limited())]);
    fixture.evidence = std::sync::Arc::new(ReplayedEvidence::new(
        run,
        known.to_vec(),
        EvidenceMissPolicy::Error,
    ));
    let calls: &[(&str, &str)] = &[("find", &a), ("find", &a), ("find", &b), ("find", &c)];
    let fact_words = record_call_facts(&fixture, &[calls]).await;
    for fact in [
        "0.0 answered frozen",
        "0.1 answered same trace",
        "0.2 answered frozen",
        "0.3 rejected max_calls",
    ] {
        assert!(
            fact_words.contains(&fact.to_owned()),
            "{fact} in {fact_words:?}"
        );
    }
}

fn after(names: &[&str]) -> FakeToolRules {
    FakeToolRules {
        after: names.iter().map(|name| (*name).to_owned()).collect(),
        ..FakeToolRules::default()
    }
}

#[tokio::test]
async fn tool_waits_for_calls_of_its_prerequisite_in_any_order() {
    let fixture = JudgeFixture::new(&[
        FakeTool::new("a", FakeToolBehavior::Echo),
        FakeTool::with("b", FakeToolBehavior::Echo, after(&["a"])),
        FakeTool::with("c", FakeToolBehavior::Echo, after(&["b", "a"])),
        FakeTool::new("d", FakeToolBehavior::Echo),
    ]);
    let (one, two) = (url("1"), url("2"));
    let turn: &[(&str, &str)] = &[
        ("c", &one),
        ("b", &one),
        ("a", &one),
        ("a", &two),
        ("d", &one),
    ];
    let mut replies = vec![calls(turn)];
    replies.push(submit());
    let script = Script::new(replies);
    let (_, facts) = fixture.judge(&script).await;
    assert_lawful(&facts);
    let fact_words = format_facts(&facts);
    let at = |fact: &str| fact_words.iter().position(|f| f == fact).expect(fact);
    assert!(
        at("0.1 running") > at("0.2 answered live"),
        "{fact_words:?}"
    );
    assert!(
        at("0.1 running") > at("0.3 answered live"),
        "{fact_words:?}"
    );
    assert!(
        at("0.0 running") > at("0.1 answered live"),
        "{fact_words:?}"
    );
    assert!(
        at("0.4 running") < at("0.2 answered live"),
        "{fact_words:?}"
    );
    // Answers go back in the order of the calls all the same.
    let body = &script.bodies.lock().expect("no panic")[1];
    let label = |n: usize, name: &str| body.find(&format!("begin fetch {n}: what {name} returned"));
    for (n, name) in [(1, "c"), (2, "b"), (3, "a"), (4, "a"), (5, "d")] {
        assert!(label(n, name).is_some(), "{n} {name}: {body}");
    }
}

#[tokio::test]
async fn call_with_a_failed_or_missing_prerequisite_is_rejected_with_its_name() {
    let tools = || {
        [
            FakeTool::new("good", FakeToolBehavior::Echo),
            FakeTool::new("bad", FakeToolBehavior::Fail),
            FakeTool::with("b", FakeToolBehavior::Echo, after(&["good"])),
            FakeTool::with("c", FakeToolBehavior::Echo, after(&["bad"])),
            FakeTool::with("d", FakeToolBehavior::Echo, after(&["c"])),
            FakeTool::with("e", FakeToolBehavior::Echo, after(&["bad", "good"])),
        ]
    };
    let one = url("1");
    let one = one.as_str();
    let broken = r#"{"url":5}"#;
    let never = "Error: `b` was not called: call `good` first: it has not been called";
    for (turns, expected) in [
        (vec![vec![("b", one)]], vec![never]),
        (
            vec![vec![("good", broken), ("b", one)]],
            vec![
                "Error: url must be text",
                "Error: `b` was not called: call `good` first: its call was rejected",
            ],
        ),
        (
            vec![vec![("bad", one), ("c", one)]],
            vec!["Error: `c` was not called: `bad` failed"],
        ),
        (
            vec![vec![("bad", one)], vec![("c", one)]],
            vec!["Error: `c` was not called: `bad` failed"],
        ),
        // What is rejected counts as not run for what comes after it.
        (
            vec![vec![("d", one), ("c", one)]],
            vec![
                "Error: `c` was not called: call `bad` first: it has not been called",
                "Error: `d` was not called: call `c` first: its call was rejected",
            ],
        ),
        (
            vec![vec![("bad", one), ("e", one)]],
            vec![
                "Error: `e` was not called: `bad` failed; call `good` first: it has not been called",
            ],
        ),
        (vec![vec![("good", one)], vec![("b", one)]], vec![]),
        // Once is enough, later turns included; the model may put right what it left out.
        (
            vec![
                vec![("b", one)],
                vec![("good", one), ("b", one)],
                vec![("b", one)],
            ],
            vec![never],
        ),
    ] {
        let fixture = JudgeFixture::new(&tools());
        let mut replies: Vec<ScriptedReply> = turns.iter().map(|turn| calls(turn)).collect();
        replies.push(submit());
        let (_, facts) = fixture.judge(&Script::new(replies)).await;
        assert_lawful(&facts);
        assert_eq!(texts(&facts), expected, "{turns:?}");
    }
}

#[tokio::test]
async fn retried_tool_call_records_its_first_failure() {
    let fixture = JudgeFixture::new(&[FakeTool::new("find", FakeToolBehavior::Flaky(1))]);
    let one = url("1");
    let script = Script::new(vec![calls(&[("find", &one), ("find", &one)]), submit()]);
    let judging = fixture.judge(&script);
    tokio::pin!(judging);
    let (result, facts) = loop {
        tokio::select! {
            biased;
            judged = &mut judging => break judged,
            () = tokio::task::yield_now() => fixture.clock.advance(Millis(50)),
        }
    };
    assert_eq!(result.outcome, Outcome::Pass);
    let retried: Vec<_> = facts
        .iter()
        .filter_map(|kind| match kind {
            EventKind::Tool {
                fact:
                    ToolFact::Finished {
                        retried, elapsed, ..
                    },
                ..
            } => Some((retried.as_deref(), *elapsed)),
            _ => None,
        })
        .collect();
    assert_eq!(retried[0].0, Some("Error: HTTP 503 fetching it"));
    assert!(retried[0].1 >= Millis(250), "the wait is told: {retried:?}");
    assert_eq!(
        retried[1].0, None,
        "the identical call was not tried at all"
    );
    assert!(format_facts(&facts).contains(&"0.1 answered same trace".to_owned()));
}

#[tokio::test]
async fn changed_tool_has_another_cache_key_and_no_recorded_evidence() {
    let with = |statement| {
        let rules = FakeToolRules {
            statement,
            ..FakeToolRules::default()
        };
        FakeTool::with("find", FakeToolBehavior::Echo, rules)
    };
    let limited = |statement| {
        let rules = FakeToolRules {
            statement,
            max_calls: Some(2),
            ..FakeToolRules::default()
        };
        FakeTool::with("find", FakeToolBehavior::Echo, rules)
    };
    let key = |tool| {
        let fixture = JudgeFixture::new(&[tool]);
        let engine = fixture.engine(Script::new(Vec::new()));
        engine.cache_key(&fixture.request).expect("a key").key
    };
    assert_eq!(key(with("SELECT 1")), key(with("SELECT 1")));
    assert_ne!(key(with("SELECT 1")), key(with("SELECT 2")));
    assert_ne!(key(with("SELECT 1")), key(limited("SELECT 1")));

    let args = RawJson::parse(&url("1")).expect("JSON");
    let known = EvidenceKey::new("find", &with("SELECT 1").digest(), &args);
    let run = RunId("20261121T000000Z-kvqa".into());
    for (statement, end) in [
        ("SELECT 1", "0.0 answered frozen"),
        ("SELECT 2", "0.0 rejected frozen"),
    ] {
        let mut fixture = JudgeFixture::new(&[with(statement)]);
        let known = vec![(known.clone(), ToolResponse::ok("recorded"))];
        fixture.evidence = std::sync::Arc::new(ReplayedEvidence::new(
            run.clone(),
            known,
            EvidenceMissPolicy::Error,
        ));
        let fact_words = record_call_facts(&fixture, &[&[("find", &url("1"))]]).await;
        assert!(
            fact_words.contains(&end.to_owned()),
            "{end} in {fact_words:?}"
        );
    }
}
