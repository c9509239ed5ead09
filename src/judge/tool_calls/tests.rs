//! The checks between a call's preparation and its tool, as the log records them.
//!
//! They are identical calls, prerequisites, the limit on calls, and recorded responses.

use crate::event::{EventKind, ToolFact};
use crate::judge::fake::{Bench, Does, FakeTool, PASSED, Rules, Say, Script, calls, story};
use crate::judge::{EvidenceKey, EvidenceMissPolicy, ReplayedEvidence};
use crate::model::{Millis, Outcome, RawJson, RunId, ToolResponse};
use crate::tools::Tool as _;

fn submit() -> Say {
    calls(&[("submit_verdict", PASSED)])
}

fn url(name: &str) -> String {
    format!(r#"{{"url":"{name}"}}"#)
}

/// Judges with these turns of calls before the verdict; returns the recorded facts of the calls.
async fn told(bench: &Bench, turns: &[&[(&str, &str)]]) -> Vec<String> {
    let mut says: Vec<Say> = turns.iter().map(|turn| calls(turn)).collect();
    says.push(submit());
    let (result, facts) = bench.judge(&Script::new(says)).await;
    assert_eq!(result.outcome, Outcome::Pass, "{result:?}");
    assert_lawful(&facts);
    let verdict = format!("{}.", turns.len());
    let mut story = story(&facts);
    story.retain(|fact| fact.contains('.') && !fact.starts_with(&verdict));
    story
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
async fn identical_calls_are_answered_once_whatever_the_order_of_their_keys() {
    let tool = FakeTool::new("find", Does::Echo);
    let bench = Bench::new(std::slice::from_ref(&tool));
    let story = told(
        &bench,
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
        assert!(story.contains(&fact.to_owned()), "{fact} in {story:?}");
    }
}

#[tokio::test]
async fn without_a_cache_and_where_something_may_change_each_call_is_made() {
    for rules in [
        Rules {
            cache: false,
            ..Rules::default()
        },
        Rules {
            read_only: false,
            ..Rules::default()
        },
    ] {
        let tool = FakeTool::with("find", Does::Echo, rules);
        let bench = Bench::new(std::slice::from_ref(&tool));
        let a = url("a");
        let story = told(&bench, &[&[("find", &a), ("find", &a)], &[("find", &a)]]).await;
        assert_eq!(tool.ran.lock().expect("no panic").len(), 3);
        let live = story.iter().filter(|f| f.ends_with("answered live"));
        assert_eq!(live.count(), 3, "{story:?}");
    }
}

#[tokio::test]
async fn a_limit_counts_calls_that_are_made_and_no_others() {
    let limited = || Rules {
        max_calls: Some(2),
        ..Rules::default()
    };
    let tool = FakeTool::with("find", Does::Echo, limited());
    let bench = Bench::new(std::slice::from_ref(&tool));
    let (a, b, c) = (url("a"), url("b"), url("c"));
    let story = told(
        &bench,
        &[
            &[("find", &a), ("find", &a), ("find", r#"{"url":5}"#)],
            &[("find", &b), ("find", &c)],
            &[("find", &a)],
        ],
    )
    .await;
    let ends: Vec<&str> = story
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
    let mut bench = Bench::new(&[FakeTool::with("find", Does::Echo, limited())]);
    bench.evidence = std::sync::Arc::new(ReplayedEvidence::new(
        run,
        known.to_vec(),
        EvidenceMissPolicy::Error,
    ));
    let calls: &[(&str, &str)] = &[("find", &a), ("find", &a), ("find", &b), ("find", &c)];
    let story = told(&bench, &[calls]).await;
    for fact in [
        "0.0 answered frozen",
        "0.1 answered same trace",
        "0.2 answered frozen",
        "0.3 rejected max_calls",
    ] {
        assert!(story.contains(&fact.to_owned()), "{fact} in {story:?}");
    }
}

fn after(names: &[&str]) -> Rules {
    Rules {
        after: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Rules::default()
    }
}

#[tokio::test]
async fn a_tool_that_comes_after_another_waits_for_its_calls_wherever_they_stand() {
    let bench = Bench::new(&[
        FakeTool::new("a", Does::Echo),
        FakeTool::with("b", Does::Echo, after(&["a"])),
        FakeTool::with("c", Does::Echo, after(&["b", "a"])),
        FakeTool::new("d", Does::Echo),
    ]);
    let (one, two) = (url("1"), url("2"));
    let turn: &[(&str, &str)] = &[
        ("c", &one),
        ("b", &one),
        ("a", &one),
        ("a", &two),
        ("d", &one),
    ];
    let mut says = vec![calls(turn)];
    says.push(submit());
    let script = Script::new(says);
    let (_, facts) = bench.judge(&script).await;
    assert_lawful(&facts);
    let story = story(&facts);
    let at = |fact: &str| story.iter().position(|f| f == fact).expect(fact);
    assert!(at("0.1 running") > at("0.2 answered live"), "{story:?}");
    assert!(at("0.1 running") > at("0.3 answered live"), "{story:?}");
    assert!(at("0.0 running") > at("0.1 answered live"), "{story:?}");
    assert!(at("0.4 running") < at("0.2 answered live"), "{story:?}");
    // Answers go back in the order of the calls all the same.
    let body = &script.bodies.lock().expect("no panic")[1];
    let label = |n: usize, name: &str| body.find(&format!("begin fetch {n}: what {name} returned"));
    for (n, name) in [(1, "c"), (2, "b"), (3, "a"), (4, "a"), (5, "d")] {
        assert!(label(n, name).is_some(), "{n} {name}: {body}");
    }
}

#[tokio::test]
async fn a_call_whose_prerequisite_failed_or_never_ran_is_rejected_with_its_name() {
    let tools = || {
        [
            FakeTool::new("good", Does::Echo),
            FakeTool::new("bad", Does::Fail),
            FakeTool::with("b", Does::Echo, after(&["good"])),
            FakeTool::with("c", Does::Echo, after(&["bad"])),
            FakeTool::with("d", Does::Echo, after(&["c"])),
            FakeTool::with("e", Does::Echo, after(&["bad", "good"])),
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
        let bench = Bench::new(&tools());
        let mut says: Vec<Say> = turns.iter().map(|turn| calls(turn)).collect();
        says.push(submit());
        let (_, facts) = bench.judge(&Script::new(says)).await;
        assert_lawful(&facts);
        assert_eq!(texts(&facts), expected, "{turns:?}");
    }
}

#[tokio::test]
async fn a_second_try_is_recorded_with_the_first_ones_failure() {
    let bench = Bench::new(&[FakeTool::new("find", Does::Flaky(1))]);
    let one = url("1");
    let script = Script::new(vec![calls(&[("find", &one), ("find", &one)]), submit()]);
    let judging = bench.judge(&script);
    tokio::pin!(judging);
    let (result, facts) = loop {
        tokio::select! {
            biased;
            judged = &mut judging => break judged,
            () = tokio::task::yield_now() => bench.clock.advance(Millis(50)),
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
    assert!(story(&facts).contains(&"0.1 answered same trace".to_owned()));
}

#[tokio::test]
async fn a_tool_that_does_something_else_is_judged_anew_and_has_no_old_evidence() {
    let with = |statement| {
        let rules = Rules {
            statement,
            ..Rules::default()
        };
        FakeTool::with("find", Does::Echo, rules)
    };
    let limited = |statement| {
        let rules = Rules {
            statement,
            max_calls: Some(2),
            ..Rules::default()
        };
        FakeTool::with("find", Does::Echo, rules)
    };
    let key = |tool| {
        let bench = Bench::new(&[tool]);
        let engine = bench.engine(Script::new(Vec::new()));
        engine.cache_key(&bench.ask).expect("a key").0
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
        let mut bench = Bench::new(&[with(statement)]);
        let known = vec![(known.clone(), ToolResponse::ok("recorded"))];
        bench.evidence = std::sync::Arc::new(ReplayedEvidence::new(
            run.clone(),
            known,
            EvidenceMissPolicy::Error,
        ));
        let story = told(&bench, &[&[("find", &url("1"))]]).await;
        assert!(story.contains(&end.to_owned()), "{end} in {story:?}");
    }
}
