//! Refused params, bounds on work, and properties of the modes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{found, outcome};
use crate::handlers::testing::refused;
use crate::handlers::trajectory::tests::{check_record, outcome_and_why, record};
use crate::model::Outcome::{CheckError, Fail, Pass};

#[test]
fn params_that_check_nothing_are_refused_at_their_place() {
    for (params, at, what) in [
        (json!({}), "", "`expected` is missing"),
        (
            json!({"expected": "a"}),
            "/expected",
            "must be an array (got \"a\")",
        ),
        (
            json!({"expected": [""]}),
            "/expected/0",
            "must not be empty",
        ),
        (
            json!({"expected": [1]}),
            "/expected/0",
            "must be a string or an object (got 1)",
        ),
        (
            json!({"expected": [{"args": {}}]}),
            "/expected/0",
            "`tool` is missing",
        ),
        (
            json!({"expected": [{"tool": "a", "arg": {}}]}),
            "/expected/0/arg",
            "`arg` is not a known property",
        ),
        (
            json!({"expected": [{"tool": "a", "args": null}]}),
            "/expected/0/args",
            "must be an object (got null)",
        ),
        (
            json!({"expected": [{"tool": "a", "args_mode": "subset"}]}),
            "/expected/0/args_mode",
            "expected[0] has an args_mode and no args to compare",
        ),
        (
            json!({"expected": [{"tool": "a", "args": {"x": 1}, "args_mode": "ignore"}]}),
            "/expected/0/args_mode",
            "expected[0] ignores its args: leave them out",
        ),
        (
            json!({"expected": [{"tool": "a", "args": {"x": 1}, "args_mode": "regex"}]}),
            "/expected/0/args/x",
            "expected[0] has 1 for x, which is not a pattern",
        ),
        (
            json!({"expected": [{"tool": "a", "args": {"x": "("}, "args_mode": "regex"}]}),
            "/expected/0/args/x",
            "expected[0] is not a valid regular expression: unclosed group",
        ),
        (
            json!({"expected": [{"tool": "a", "args": {"x": 1}, "arg_matchers": {"x": {"equals": 1}}}]}),
            "/expected/0/arg_matchers/x",
            "expected[0] has a condition on x, which `args` contains too",
        ),
        (
            json!({"expected": [{"tool": "a", "count": {}}]}),
            "/expected/0/count",
            "expected[0] allows any number of calls",
        ),
        (
            json!({"expected": [{"tool": "a", "count": {"min": 3, "max": 2}}]}),
            "/expected/0/count",
            "expected[0] has a min above its max",
        ),
        (
            json!({"expected": [{"tool": "a", "count": {"max": 1_000_000}}]}),
            "/expected",
            "expected allows up to 1000000 calls, more than 500",
        ),
        (
            json!({"expected": ["a"], "args_modes": {"b": "exact"}}),
            "/args_modes/b",
            "args_modes[b] is for a tool that is not expected",
        ),
        (
            json!({"expected": [], "mode": "superset"}),
            "/expected",
            "expected is empty: every list of calls contains at least that",
        ),
        (
            json!({"expected": ["a"], "before": [["a", "b"]]}),
            "/before",
            "before has no effect: strict already checks the order",
        ),
        (
            json!({"expected": ["a"], "mode": "subset", "before": [["a", "a"]]}),
            "/before/0",
            "before[0] names one tool twice",
        ),
    ] {
        let problems = refused("trajectory_match", &params);
        assert_eq!(
            problems.first(),
            Some(&(at.to_owned(), what.to_owned())),
            "{params}"
        );
    }
    for (matcher, part) in [
        (json!({}), ""),
        (json!({"equals": 1, "present": true}), ""),
        (json!({"one_of": []}), "/one_of"),
        (json!({"present": false}), "/present"),
        (json!({"regex": ""}), "/regex"),
        (json!({"contains": ""}), ""),
        (json!({"matches": "x"}), "/matches"),
    ] {
        let params = json!({"expected": [{"tool": "a", "arg_matchers": {"x": matcher}}]});
        let problems = refused("trajectory_match", &params);
        assert_eq!(
            problems[0].0,
            format!("/expected/0/arg_matchers/x{part}"),
            "{params}"
        );
    }
}

#[test]
fn too_expensive_comparison_is_a_check_error() {
    let expected: Vec<Value> = (0..500)
        .map(|n| json!({"tool": "t", "args": {"n": n}}))
        .collect();
    let calls: Vec<(&str, Value)> = (0..3000).map(|n| ("t", json!({"n": n}))).collect();
    let params = json!({"expected": expected, "mode": "unordered"});
    let (outcome, why) = outcome_and_why("trajectory_match", &params, &record(&calls));
    assert_eq!(
        (outcome, why.as_str()),
        (
            CheckError,
            "3000 calls are too many, or too large, to compare with 500 expected ones"
        )
    );
    // An agent with far too many calls fails; that is not a check error.
    let few = json!({"expected": ["t"]});
    assert_eq!(super::outcome(&few, &calls), Fail);
}

/// Calls of few tools with few arguments, so that lists often hold the same.
fn lists() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let call = (prop::sample::select(vec!["a", "b"]), 0_u64..2);
    prop::collection::vec(call.prop_map(|(name, x)| (name, json!({"x": x}))), 0..5)
}

fn params(mode: &str, expected: &[(&str, Value)]) -> Value {
    let expected: Vec<Value> = expected
        .iter()
        .map(|(tool, args)| json!({"tool": tool, "args": args}))
        .collect();
    // Vacuous, but it lets an empty list be compared in every mode.
    let before = if mode == "strict" {
        json!([])
    } else {
        json!([["y", "z"]])
    };
    json!({"expected": expected, "mode": mode, "before": before})
}

proptest! {
    #[test]
    fn subset_is_the_reverse_of_superset(a in lists(), b in lists()) {
        prop_assert_eq!(outcome(&params("subset", &a), &b), outcome(&params("superset", &b), &a));
    }

    #[test]
    fn unordered_ignores_the_order(
        (list, shuffled) in lists().prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
        other in lists(),
    ) {
        prop_assert_eq!(outcome(&params("unordered", &list), &shuffled), Pass);
        for mode in ["unordered", "subset", "superset"] {
            let outcome_of = |made: &[(&str, Value)]| found(&params(mode, &other), made);
            let ((a, x, _), (b, y, _)) = (outcome_of(&list), outcome_of(&shuffled));
            prop_assert_eq!((a, x), (b, y), "calls");
            let outcome_of = |made: &[(&str, Value)]| found(&params(mode, made), &other);
            let ((a, x, _), (b, y, _)) = (outcome_of(&list), outcome_of(&shuffled));
            prop_assert_eq!((a, x), (b, y), "expected");
        }
    }

    #[test]
    fn strict_pass_implies_unordered_subset_and_superset(a in lists(), b in lists()) {
        let passes = |mode: &str| outcome(&params(mode, &a), &b) == Pass;
        prop_assert!(!passes("strict") || passes("unordered"));
        prop_assert_eq!(passes("unordered"), passes("subset") && passes("superset"));
        prop_assert_eq!(outcome(&params("strict", &a), &a), Pass);
    }

    #[test]
    fn score_is_1_exactly_if_the_match_passes(a in lists(), b in lists()) {
        for mode in ["strict", "unordered", "subset", "superset"] {
            let finding = check_record("trajectory_match", &params(mode, &a), &record(&b));
            prop_assert_eq!(finding.outcome == Pass, finding.score == Some(1.0));
            prop_assert!(finding.score.is_some_and(|score| (0.0..=1.0).contains(&score)));
        }
    }
}
