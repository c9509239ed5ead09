mod properties;

use serde_json::{Value, json};

use crate::handlers::trajectory::tests::{check_record, outcome_and_why, record};
use crate::model::Outcome::{self, Fail, Pass};

fn get(id: u64) -> (&'static str, Value) {
    ("get_order", json!({"id": id}))
}

fn search(query: &str) -> (&'static str, Value) {
    ("search", json!({"query": query, "limit": 10}))
}

fn refund() -> (&'static str, Value) {
    ("refund", json!({"order": 7}))
}

/// Outcome, the score in hundredths, and the explanation.
pub(super) fn found(params: &Value, calls: &[(&str, Value)]) -> (Outcome, u32, String) {
    let finding = check_record("trajectory_match", params, &record(calls));
    let score = finding.score.expect("it scores");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 100"
    )]
    let hundredths = (score * 100.0).round() as u32;
    (finding.outcome, hundredths, finding.explanation)
}

pub(super) fn outcome(params: &Value, calls: &[(&str, Value)]) -> Outcome {
    check_record("trajectory_match", params, &record(calls)).outcome
}

#[test]
fn failure_shows_an_aligned_diff_of_both_lists() {
    let order = json!({"tool": "get_order", "args": {"id": 7}});
    let look = json!({"tool": "search", "args": {"query": "beam", "limit": 10}});
    for (params, calls, expected) in [
        (
            json!({"expected": [order, look]}),
            vec![get(7), search("beam")],
            (Pass, 100, "strict: 2 calls as expected"),
        ),
        (
            json!({"expected": [order, look]}),
            vec![get(7), refund()],
            (
                Fail,
                33,
                "not strict: 1 missing, 1 not expected; 1 call as expected
  get_order(id=7)
- expected search(query=\"beam\", limit=10)
+ called refund(order=7) in message 1",
            ),
        ),
        (
            json!({"expected": [order, look]}),
            vec![get(8), search("beam")],
            (
                Fail,
                50,
                "not strict: 1 with other arguments; 1 call as expected
~ get_order args differ in message 0: id expected 7 got 8
  search(query=\"beam\", limit=10)",
            ),
        ),
        (
            json!({"expected": [order, look], "mode": "exact"}),
            vec![search("beam"), get(7)],
            (
                Fail,
                33,
                "not exact: 1 missing, 1 not expected; 1 call as expected
- expected get_order(id=7)
  search(query=\"beam\", limit=10)
+ called get_order(id=7) in message 1",
            ),
        ),
        (
            json!({"expected": ["get_order", "refund"], "mode": "unordered"}),
            vec![refund(), search("x"), get(1)],
            (
                Fail,
                67,
                "not unordered: 1 not expected; 2 calls as expected
  refund(order=7)
+ called search(query=\"x\", limit=10) in message 1
  get_order(id=1)",
            ),
        ),
        (
            json!({"expected": [order, "refund"], "mode": "superset"}),
            vec![search("x"), get(9)],
            (
                Fail,
                0,
                "not superset: 1 missing, 1 with other arguments; 0 calls as expected
  search(query=\"x\", limit=10)
~ get_order args differ in message 1: id expected 7 got 9
- expected refund(…)",
            ),
        ),
        (
            json!({"expected": [order], "mode": "superset"}),
            vec![search("x"), get(7), get(7)],
            (Pass, 100, "superset: 1 call as expected, and 2 more"),
        ),
        (
            json!({"expected": [order, order], "mode": "subset"}),
            vec![get(7)],
            (Pass, 100, "subset: 1 call as expected"),
        ),
        (
            json!({"expected": [order], "mode": "subset"}),
            vec![get(7), get(7)],
            (
                Fail,
                50,
                "not subset: 1 not expected; 1 call as expected
  get_order(id=7)
+ called get_order(id=7) in message 1",
            ),
        ),
        (
            json!({"expected": []}),
            vec![],
            (Pass, 100, "strict: 0 calls as expected"),
        ),
        (
            json!({"expected": []}),
            vec![("rm\u{1b}[2J", json!({}))],
            (
                Fail,
                0,
                "not strict: 1 not expected; 0 calls as expected
+ called \"rm\\u{1b}[2J\"() in message 0",
            ),
        ),
    ] {
        let (outcome, score, why) = expected;
        assert_eq!(
            found(&params, &calls),
            (outcome, score, why.to_owned()),
            "{params}"
        );
    }
}

#[test]
fn a_long_diff_is_folded_and_bounded() {
    let mut calls = vec![get(7); 30];
    calls[10] = refund();
    let params = json!({"expected": [{"tool": "get_order", "count": {"min": 30, "max": 30}}]});
    assert_eq!(
        found(&params, &calls).2,
        "not strict: 1 missing, 1 not expected; 29 calls as expected
  … 8 calls
  get_order(id=7)
  get_order(id=7)
- expected get_order(…)
+ called refund(order=7) in message 10
  get_order(id=7)
  get_order(id=7)
  … 17 calls"
    );
    let many = found(&json!({"expected": []}), &vec![refund(); 100]).2;
    assert_eq!(many.lines().count(), 14);
    assert!(many.ends_with("\n  … 88 more not as expected"), "{many}");
}

#[test]
fn arguments_compare_by_their_mode() {
    let with = |mode: &str, args: Value| json!({"expected": [{"tool": "t", "args": args}], "args_mode": mode});
    for (mode, want, got, passed) in [
        (
            "exact",
            json!({"a": 1, "b": [1]}),
            json!({"b": [1.0], "a": 1.0}),
            true,
        ),
        ("exact", json!({"a": 1}), json!({"a": "1"}), false),
        ("exact", json!({"a": 1}), json!({"a": 1, "b": 2}), false),
        ("exact", json!({"a": 1, "b": 2}), json!({"a": 1}), false),
        ("exact", json!({"a": null}), json!({}), false),
        ("exact", json!({}), json!({}), true),
        ("exact", json!({}), json!({"a": 1}), false),
        ("subset", json!({"a": 1, "b": 2}), json!({"a": 1}), true),
        ("subset", json!({"a": 1}), json!({}), true),
        ("subset", json!({"a": 1}), json!({"a": 1, "b": 2}), false),
        ("subset", json!({"a": 1}), json!({"a": 2}), false),
        ("superset", json!({"a": 1}), json!({"a": 1, "b": 2}), true),
        ("superset", json!({"a": 1, "b": 2}), json!({"a": 1}), false),
        (
            "superset",
            json!({"a": {"x": 1}}),
            json!({"a": {"x": 1, "y": 2}}),
            false,
        ),
        ("ignore", json!({"a": 1}), json!({"b": 2}), true),
        (
            "regex",
            json!({"a": "^o.d"}),
            json!({"a": "order", "b": 2}),
            true,
        ),
        (
            "regex",
            json!({"a": "^o.d"}),
            json!({"a": "an order"}),
            false,
        ),
        ("regex", json!({"a": "^7$"}), json!({"a": 7}), true),
        ("regex", json!({"a": "."}), json!({}), false),
    ] {
        let params = with(mode, want);
        let wanted = if passed { Pass } else { Fail };
        assert_eq!(
            outcome(&params, &[("t", got.clone())]),
            wanted,
            "{params} {got}"
        );
    }
}

#[test]
fn mode_of_a_call_overrides_its_tool_and_the_default() {
    let params = json!({
        "expected": [
            {"tool": "a", "args": {"x": 1}},
            {"tool": "b", "args": {"x": 1}},
            {"tool": "b", "args": {"x": 1}, "args_mode": "exact"}],
        "args_modes": {"b": "superset"}});
    let calls = |a: Value, b: Value, c: Value| vec![("a", a), ("b", b), ("b", c)];
    let (one, two) = (json!({"x": 1}), json!({"x": 1, "y": 2}));
    for (calls, wanted) in [
        (calls(one.clone(), two.clone(), one.clone()), Pass),
        (calls(two.clone(), one.clone(), one.clone()), Fail),
        (calls(one.clone(), one, two), Fail),
    ] {
        assert_eq!(outcome(&params, &calls), wanted, "{calls:?}");
    }
}

#[test]
fn single_arguments_can_have_matchers() {
    for (matcher, got, miss) in [
        (json!({"regex": "^be"}), json!({"q": "beam"}), None),
        (
            json!({"regex": "^be"}),
            json!({"q": "a beam"}),
            Some("q expected a match of \"^be\" got \"a beam\""),
        ),
        (json!({"equals": 7}), json!({"q": 7.0}), None),
        (
            json!({"equals": null}),
            json!({}),
            Some("q expected null got nothing"),
        ),
        (json!({"one_of": [1, "x"]}), json!({"q": "x"}), None),
        (
            json!({"one_of": [1, "x"]}),
            json!({"q": "1"}),
            Some("q expected one of 1, \"x\" got \"1\""),
        ),
        (json!({"contains": "ea"}), json!({"q": "beam"}), None),
        (
            json!({"contains": "EA"}),
            json!({"q": "beam"}),
            Some("q expected a value that contains \"EA\" got \"beam\""),
        ),
        (json!({"contains": 1}), json!({"q": [2, 1.0]}), None),
        (
            json!({"contains": 1}),
            json!({"q": 1}),
            Some("q expected a value that contains 1 got 1"),
        ),
        (json!({"present": true}), json!({"q": null}), None),
        (
            json!({"present": true}),
            json!({}),
            Some("q expected any value got nothing"),
        ),
        (json!({"absent": true}), json!({"r": 1}), None),
        (
            json!({"absent": true}),
            json!({"q": null}),
            Some("q expected nothing got null"),
        ),
    ] {
        let params = json!({"expected": [{"tool": "t", "arg_matchers": {"q": matcher}}]});
        let (outcome, _, why) = found(&params, &[("t", got)]);
        assert_eq!(
            outcome,
            if miss.is_none() { Pass } else { Fail },
            "{params}"
        );
        if let Some(miss) = miss {
            let line = format!("~ t args differ in message 0: {miss}");
            assert_eq!(why.lines().nth(1), Some(line.as_str()), "{params}");
        }
    }
    // A matched argument is not part of `args`: the others must be those listed.
    let both = json!({"expected": [{"tool": "t", "args": {"a": 1}, "arg_matchers": {"q": {"present": true}}}]});
    assert_eq!(outcome(&both, &[("t", json!({"a": 1, "q": 2}))]), Pass);
    assert_eq!(
        outcome(&both, &[("t", json!({"a": 1, "q": 2, "z": 3}))]),
        Fail
    );
}

#[test]
fn unreadable_arguments_match_no_condition() {
    let call = |arguments: &str| {
        json!({"messages": [{"role": "assistant", "tool_calls": [
        {"id": "1", "function": {"name": "t", "arguments": arguments}}]}]})
    };
    let looks = json!({"expected": [{"tool": "t", "args": {}}]});
    assert_eq!(
        outcome_and_why("trajectory_match", &looks, &call("[1]")),
        (
            Fail,
            "not strict: 1 with other arguments; 0 calls as expected\n\
             ~ t args differ in message 0: its arguments are not a JSON object"
                .to_owned()
        )
    );
    assert_eq!(
        outcome_and_why("trajectory_match", &looks, &call("")).0,
        Pass
    );
    let free = json!({"expected": ["t"]});
    assert_eq!(
        outcome_and_why("trajectory_match", &free, &call("{")).0,
        Pass
    );
}

#[test]
fn count_applies_in_every_mode() {
    let with = |mode: &str, count: Value| json!({"expected": [{"tool": "search", "count": count}, "refund"], "mode": mode});
    let calls = |n: usize| {
        let mut calls = vec![search("x"); n];
        calls.push(refund());
        calls
    };
    for mode in ["strict", "unordered", "subset", "superset"] {
        for (count, n, wanted) in [
            (json!({"min": 2}), 1, Fail),
            (json!({"min": 2}), 2, Pass),
            (json!({"min": 2}), 9, Pass),
            (json!({"max": 2}), 0, Pass),
            (json!({"max": 2}), 2, Pass),
            (json!({"max": 2}), 3, Fail),
            (json!({"min": 1, "max": 2}), 0, Fail),
            (json!({"max": 0}), 1, Fail),
        ] {
            assert_eq!(
                outcome(&with(mode, count.clone()), &calls(n)),
                wanted,
                "{mode} {count} {n}"
            );
        }
    }
}

#[test]
fn interchangeable_calls_get_a_complete_assignment() {
    let params = json!({"mode": "unordered", "args_mode": "superset", "expected": [
        {"tool": "t", "args": {"a": 1}}, {"tool": "t", "args": {"a": 1, "b": 2}}]});
    // Greedy gives the first call's place away and finds none for the second.
    let both = ("t", json!({"a": 1, "b": 2}));
    let one = ("t", json!({"a": 1}));
    assert_eq!(outcome(&params, &[both.clone(), one.clone()]), Pass);
    assert_eq!(outcome(&params, &[one, both]), Pass);
}

#[test]
fn before_compares_every_first_tool_call_with_the_first_then_call() {
    let params = json!({"mode": "superset", "expected": [], "before": [["get_order", "refund"]]});
    for (calls, why) in [
        (vec![get(1), get(2), refund(), refund()], None),
        (vec![get(1)], None),
        (vec![], None),
        (
            vec![refund()],
            Some("! get_order must come before refund in message 0, and is not called"),
        ),
        (
            vec![get(1), refund(), get(2)],
            Some("! get_order in message 2 must come before refund in message 1"),
        ),
    ] {
        let (outcome, score, explanation) = found(&params, &calls);
        let wanted = if why.is_none() {
            (Pass, 100)
        } else {
            (Fail, 0)
        };
        assert_eq!((outcome, score), wanted, "{calls:?}");
        assert_eq!(explanation.lines().nth(1), why, "{explanation}");
    }
}

#[test]
fn spans_mark_calls_that_are_not_expected() {
    let params = json!({"expected": ["get_order"], "mode": "unordered"});
    let finding = check_record("trajectory_match", &params, &record(&[get(1), refund()]));
    let messages: Vec<usize> = finding.spans.iter().map(|mark| mark.message).collect();
    assert_eq!(messages, [1]);
    let finding = check_record("trajectory_match", &params, &record(&[get(1)]));
    assert_eq!(finding.spans.len(), 1, "a pass rests on its calls");
}
