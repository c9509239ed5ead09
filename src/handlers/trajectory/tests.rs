//! The types that compare names alone, and what is refused of all.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::handlers::testing::{on_output, refused, transcript};
use crate::handlers::{CompiledEval, EvalTypeRegistry, Finding, Subject};
use crate::model::Outcome::{self, Fail, Pass};
use crate::model::{JsonText, Transcript};
use crate::rubric::EvalTypeCatalog;

/// The registry is made once: properties ask it thousands of times.
static REGISTRY: LazyLock<EvalTypeRegistry> = LazyLock::new(EvalTypeRegistry::builtin);

/// Runs the eval on a record.
pub(super) fn check_record(kind: &str, params: &Value, record: &Value) -> Finding {
    let transcript = transcript(record);
    match REGISTRY.compile(kind, params) {
        Ok(CompiledEval::Check(check)) => check.check(&Subject::new(&transcript)),
        other => panic!("{kind} {params} is no check: {other:?}"),
    }
}

/// Outcome and explanation of it.
pub(super) fn outcome_and_why(kind: &str, params: &Value, record: &Value) -> (Outcome, String) {
    let finding = check_record(kind, params, record);
    (finding.outcome, finding.explanation)
}

/// A message per call, from message 0.
pub(super) fn record(calls: &[(&str, Value)]) -> Value {
    let message = |(name, args): &(&str, Value)| {
        json!({"role": "assistant", "tool_calls": [
            {"id": "", "function": {"name": name, "arguments": args.to_string()}}]})
    };
    let messages: Vec<Value> = calls.iter().map(message).collect();
    json!({"messages": messages})
}

/// Calls without arguments.
fn named(names: &[&str]) -> Value {
    let calls: Vec<(&str, Value)> = names.iter().map(|name| (*name, json!({}))).collect();
    record(&calls)
}

fn scored(kind: &str, params: &Value, names: &[&str]) -> (bool, f64, String) {
    let finding = check_record(kind, params, &named(names));
    let score = finding.score.expect("it scores");
    (finding.outcome == Pass, score, finding.explanation)
}

#[test]
fn trajectory_matcher_compares_sets() {
    let params = json!({"expected_trajectory": ["s__a", "s__b", "s__b"]});
    for (names, expected) in [
        (
            &["s__b", "s__a", "s__a"][..],
            (true, 1.0, "called the 2 tools expected"),
        ),
        (
            &["s__a"],
            (false, 0.5, "1 of 2 tools on both sides; missing: s__b"),
        ),
        (
            &["s__a", "s__c", "bash"],
            (
                false,
                1.0 / 3.0,
                "1 of 3 tools on both sides; missing: s__b; not expected: s__c; ignored 1 call without a server",
            ),
        ),
        (
            &[],
            (
                false,
                0.0,
                "0 of 2 tools on both sides; missing: s__a, s__b",
            ),
        ),
    ] {
        let (passed, score, why) = expected;
        assert_eq!(
            scored("trajectory_matcher", &params, names),
            (passed, score, why.to_owned()),
            "{names:?}"
        );
    }
    let none = json!({"expected_trajectory": []});
    assert_eq!(
        scored("trajectory_matcher", &none, &["bash", "a__"]),
        (
            true,
            1.0,
            "no tool is expected and none was called; ignored 2 calls without a server".to_owned()
        )
    );
    let all = json!({"expected_trajectory": [], "filter_native_tools": false});
    assert!(!scored("trajectory_matcher", &all, &["bash"]).0);
    let part = json!({"expected_trajectory": ["s__a", "bash"]});
    assert_eq!(
        scored("trajectory_matcher", &part, &["s__a"]).2,
        "called the 1 tool expected; ignored 1 expected tool without a server"
    );
}

#[test]
fn trajectory_matcher_compares_in_order() {
    let params = json!({"expected_trajectory": ["a", "b", "c"], "enforce_order": true, "filter_native_tools": false});
    for (names, expected) in [
        (
            &["a", "b", "c"][..],
            (true, 1.0, "called the 3 tools expected, in order"),
        ),
        (
            &["a", "c"],
            (
                false,
                2.0 / 3.0,
                "1 edit from the expected order, over 3 calls\n  a\n- expected b\n  c",
            ),
        ),
        (
            &["a", "x", "c", "c"],
            (
                false,
                0.5,
                "2 edits from the expected order, over 4 calls\n  a\n- expected b\n+ called x in message 1\n  c\n+ called c in message 3",
            ),
        ),
    ] {
        let (passed, score, why) = expected;
        assert_eq!(
            scored("trajectory_matcher", &params, names),
            (passed, score, why.to_owned()),
            "{names:?}"
        );
    }
}

#[test]
fn min_score_decides_a_nearly_right_trajectory() {
    let params = json!({"expected_trajectory": ["s__a", "s__b"], "min_score": 0.5});
    assert!(scored("trajectory_matcher", &params, &["s__a"]).0);
    assert!(!scored("trajectory_matcher", &params, &["s__a", "s__c"]).0);
}

#[test]
fn sequence_allows_other_calls_between() {
    let params = json!({"sequence": ["a", "b", "a"]});
    for (names, expected) in [
        (
            &["x", "a", "a", "x", "b", "a"][..],
            (
                true,
                1.0,
                "called in order: a in message 1, b in message 4, a in message 5",
            ),
        ),
        (
            &["a", "b"],
            (
                false,
                2.0 / 3.0,
                "2 of 3 in order: a is not called after b in message 1",
            ),
        ),
        (&["b"], (false, 0.0, "0 of 3 in order: a is not called")),
        (&[], (false, 0.0, "0 of 3 in order: a is not called")),
    ] {
        let (passed, score, why) = expected;
        assert_eq!(
            scored("tool_call_sequence", &params, names),
            (passed, score, why.to_owned()),
            "{names:?}"
        );
    }
}

#[test]
fn anti_pattern_that_occurs_fails() {
    let params = json!({"patterns": [
        {"sequence": ["refund", "get_policy"], "message": "read the policy first"},
        {"sequence": ["delete"]}]});
    for (names, outcome, why) in [
        (
            &["get_policy", "refund"][..],
            Pass,
            "none of 2 forbidden sequences occurred",
        ),
        (&[], Pass, "none of 2 forbidden sequences occurred"),
        (
            &["refund", "x", "get_policy", "delete"],
            Fail,
            "2 of 2 forbidden sequences occurred: \
             \"read the policy first\": refund → get_policy (refund in message 0, get_policy in message 2), \
             delete (delete in message 3)",
        ),
    ] {
        let found = outcome_and_why("tool_anti_pattern", &params, &named(names));
        assert_eq!(found, (outcome, why.to_owned()), "{names:?}");
    }
    let finding = check_record("tool_anti_pattern", &params, &named(&["x", "delete"]));
    assert_eq!(finding.spans[0].message, 1);
}

#[test]
fn lists_that_check_nothing_are_refused() {
    let many = vec!["a"; 501];
    for (kind, params, at, what) in [
        (
            "tool_call_sequence",
            json!({"sequence": []}),
            "/sequence",
            "must not be empty",
        ),
        (
            "tool_call_sequence",
            json!({"sequence": ["a", ""]}),
            "/sequence/1",
            "must not be empty",
        ),
        (
            "tool_call_sequence",
            json!({"sequence": many}),
            "/sequence",
            "sequence has 501 entries, more than 500",
        ),
        (
            "tool_anti_pattern",
            json!({"patterns": []}),
            "/patterns",
            "must not be empty",
        ),
        (
            "tool_anti_pattern",
            json!({"patterns": [{"sequence": ["a"], "message": null}]}),
            "/patterns/0/message",
            "must be a string (got null)",
        ),
        (
            "tool_anti_pattern",
            json!({"patterns": [{"message": "x"}]}),
            "/patterns/0",
            "`sequence` is missing",
        ),
        (
            "tool_call_chain",
            json!({"steps": []}),
            "/steps",
            "must not be empty",
        ),
        (
            "trajectory_matcher",
            json!({}),
            "",
            "`expected_trajectory` is missing",
        ),
        (
            "trajectory_matcher",
            json!({"expected_trajectory": ["get_order"]}),
            "/expected_trajectory",
            "expected_trajectory has no <server>__<tool> name, and filter_native_tools ignores all others: set it to false",
        ),
        ("outcome_equivalent", json!({}), "", "`metric` is missing"),
        (
            "outcome_equivalent",
            json!({"metric": "final_state"}),
            "",
            "`expected_state` is missing: final_state compares with it",
        ),
        (
            "outcome_equivalent",
            json!({"metric": "tool_calls", "expected_tool_calls": [], "expected_state": "x"}),
            "/expected_state",
            "expected_state is for final_state, not for tool_calls",
        ),
        (
            "outcome_equivalent",
            json!({"metric": "content_hash", "expected_content": ""}),
            "/expected_content",
            "must not be empty",
        ),
    ] {
        let problems = refused(kind, &params);
        assert_eq!(
            problems.first(),
            Some(&(at.to_owned(), what.to_owned())),
            "{kind} {params}"
        );
    }
}

#[test]
fn outcome_compares_tool_sets_or_exact_text() {
    let tools = json!({"metric": "tool_calls", "expected_tool_calls": ["a", "b"]});
    for (names, outcome, why) in [
        (&["b", "a", "a"][..], Pass, "called the 2 tools expected"),
        (&["a", "c"], Fail, "not called: b; not expected: c"),
    ] {
        let found = outcome_and_why("outcome_equivalent", &tools, &named(names));
        assert_eq!(found, (outcome, why.to_owned()), "{names:?}");
    }
    let none = json!({"metric": "tool_calls", "expected_tool_calls": []});
    assert_eq!(
        outcome_and_why("outcome_equivalent", &none, &named(&[])).0,
        Pass
    );
    assert_eq!(
        outcome_and_why("outcome_equivalent", &none, &named(&["a"])).0,
        Fail
    );

    let text = json!({"metric": "content_hash", "expected_content": "Größe 7"});
    for (output, outcome, why) in [
        ("Größe 7", Pass, "the output is the expected one"),
        (
            "Größe 8",
            Fail,
            "the output differs from byte 8: expected \"7\", got \"8\"",
        ),
        (
            "Größe 7\n",
            Fail,
            "the output differs from byte 9: expected its end, got \"\\n\"",
        ),
        (
            "",
            Fail,
            "the output differs from byte 0: expected \"Größe 7\", got its end",
        ),
    ] {
        let found = on_output("outcome_equivalent", &text, output);
        assert_eq!(
            (found.outcome, found.explanation.as_str()),
            (outcome, why),
            "{output}"
        );
    }
}

#[test]
fn outcome_compares_the_state_in_the_metadata() {
    let params = json!({"metric": "final_state", "expected_state": "done"});
    for (metadata, expected) in [
        (
            json!({"workflow_state": "done"}),
            (Pass, "ended in the state \"done\""),
        ),
        (
            json!({"workflow_state": "open"}),
            (Fail, "ended in the state \"open\", not \"done\""),
        ),
        (
            json!({}),
            (
                Outcome::CheckError,
                "the transcript has no metadata.workflow_state",
            ),
        ),
        (
            json!({"workflow_state": 3}),
            (
                Outcome::CheckError,
                "metadata.workflow_state is not a text (got 3)",
            ),
        ),
    ] {
        let transcript = Transcript {
            metadata: Some(JsonText::from_value(&metadata)),
            ..Transcript::default()
        };
        let Ok(CompiledEval::Check(check)) = REGISTRY.compile("outcome_equivalent", &params) else {
            panic!("it is a check")
        };
        let found = check.check(&Subject::new(&transcript));
        assert_eq!(
            (found.outcome, found.explanation.as_str()),
            expected,
            "{metadata}"
        );
    }
}

#[test]
fn aliases_of_trajectory_types_are_known() {
    for alias in [
        "trajectory",
        "trajectory_strict_match",
        "trajectory_subset",
        "trajectory_superset",
        "trajectory_unordered_match",
    ] {
        let kind = REGISTRY.eval_type(alias).map(|spec| spec.name);
        assert_eq!(kind, Some("trajectory_match"), "{alias}");
    }
}

fn names() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(vec!["s__a", "s__b", "s__c"]), 0..6)
}

proptest! {
    #[test]
    fn trajectory_distance_is_symmetric(a in names(), b in names(), enforce_order: bool) {
        let compare = |first: &[&str], second: &[&str]| {
            let params = json!({"expected_trajectory": first, "enforce_order": enforce_order});
            let (passed, score, _) = scored("trajectory_matcher", &params, second);
            (passed, score)
        };
        prop_assert_eq!(compare(&a, &b), compare(&b, &a));
        prop_assert_eq!(compare(&a, &a), (true, 1.0));
    }

    #[test]
    fn extra_call_never_breaks_a_sequence(
        sequence in prop::collection::vec(prop::sample::select(vec!["s__a", "s__b"]), 1..4),
        calls in names(),
        at in any::<prop::sample::Index>(),
        more in prop::sample::select(vec!["s__a", "s__b", "x"]),
    ) {
        let params = json!({"sequence": sequence});
        let mut longer = calls.clone();
        longer.insert(at.index(calls.len() + 1), more);
        let (passed, score, _) = scored("tool_call_sequence", &params, &calls);
        let (still, more, _) = scored("tool_call_sequence", &params, &longer);
        prop_assert!(more >= score && (still || !passed));
        // And what must not happen is its reverse.
        let forbidden = json!({"patterns": [{"sequence": sequence}]});
        let anti = check_record("tool_anti_pattern", &forbidden, &named(&calls)).outcome;
        prop_assert_eq!(anti == Fail, passed);
    }
}
