use serde_json::{Value, json};

use crate::handlers::testing::{loaded, on_output, outcome_and_why, refused};
use crate::model::Outcome::{self, CheckError, Fail, Pass};

const ORDER: &str = r#"{"id": 7, "total": 49.90, "items": [{"name": "cup", "n": 2}, {"name": "pot", "n": 1}], "note": "gift wrap"}"#;

fn outcome(params: &Value) -> Outcome {
    on_output("json_path", params, ORDER).outcome
}

#[test]
fn result_must_meet_every_condition() {
    for (params, wanted) in [
        (json!({"expression": "id", "expected": 7.0}), Pass),
        (json!({"expression": "id", "expected": "7"}), Fail),
        (
            json!({"expression": "items[0]", "expected": {"n": 2, "name": "cup"}}),
            Pass,
        ),
        (
            json!({"expression": "items[].name", "contains": ["pot"]}),
            Pass,
        ),
        (
            json!({"expression": "items[].name", "contains": ["pot", "pan"]}),
            Fail,
        ),
        (json!({"expression": "note", "contains": ["gift"]}), Pass),
        (json!({"expression": "note", "contains": ["Gift"]}), Fail),
        (
            json!({"expression": "total", "min": 49.9, "max": 49.9}),
            Pass,
        ),
        (json!({"expression": "total", "max": 49.89}), Fail),
        (json!({"expression": "note", "min": 1}), Fail),
        (
            json!({"expression": "items[?n > `1`]", "min_results": 1, "max_results": 1}),
            Pass,
        ),
        (json!({"expression": "items", "max_results": 1}), Fail),
        (json!({"expression": "nothing", "min_results": 1}), Fail),
        (json!({"expression": "nothing", "max_results": 0}), Pass),
        (
            json!({"expression": "length(items) == `2`", "expected": true}),
            Pass,
        ),
        (
            json!({"expression": "sort_by(items, &n)[0].name", "expected": "pot"}),
            Pass,
        ),
    ] {
        assert_eq!(outcome(&params), wanted, "{params}");
    }
    let found = on_output("json_path", &json!({"expression": "id", "max": 5}), ORDER);
    assert_eq!(found.explanation, r#"the result is "7": it is more than 5"#);
    assert!(!found.spans.is_empty());
}

#[test]
fn output_that_is_not_json_fails() {
    let params = json!({"expression": "a", "expected": 1});
    assert_eq!(on_output("json_path", &params, "a: 1").outcome, Fail);
    assert_eq!(
        outcome_and_why("json_path", &params, &json!({"messages": []})).0,
        Fail
    );
    let wrapped = json!({"expression": "a", "expected": 1, "allow_wrapped": true});
    assert_eq!(
        on_output("json_path", &wrapped, "x\n```json\n{\"a\": 1}\n```").outcome,
        Pass
    );
    let extract = json!({"expression": "a", "expected": 1, "extract_json": true});
    assert_eq!(
        on_output("json_path", &extract, "so {\"a\": 1}!").outcome,
        Pass
    );
}

#[test]
fn expression_that_does_not_fit_the_data_is_a_check_error() {
    let found = on_output(
        "json_path",
        &json!({"expression": "length(id)", "min": 1}),
        ORDER,
    );
    assert_eq!(found.outcome, CheckError);
    assert!(
        found
            .explanation
            .starts_with("the expression does not fit the data: argument 0 expects"),
        "{}",
        found.explanation
    );
}

#[test]
fn expression_can_read_calls_and_metadata() {
    let record = json!({"messages": [
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "get", "arguments": "{\"id\": 7}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "{\"total\": 12}"}],
        "metadata": {"tier": "gold"}});
    for (params, wanted) in [
        (
            json!({"of": "calls", "expression": "[?name == 'get'].arguments.id | [0]", "expected": 7}),
            Pass,
        ),
        (
            json!({"of": "calls", "expression": "[0].result.total", "max": 11}),
            Fail,
        ),
        (
            json!({"of": "metadata", "expression": "tier", "expected": "gold"}),
            Pass,
        ),
    ] {
        assert_eq!(
            outcome_and_why("json_path", &params, &record).0,
            wanted,
            "{params}"
        );
    }
    let none = json!({"messages": []});
    let metadata = json!({"of": "metadata", "expression": "tier", "expected": "gold"});
    assert_eq!(outcome_and_why("json_path", &metadata, &none).0, CheckError);
    let calls = json!({"of": "calls", "expression": "@", "max_results": 0});
    assert_eq!(
        outcome_and_why("json_path", &calls, &none).0,
        Pass,
        "no calls are no missing data"
    );
}

#[test]
fn alias_of_the_expression_param_is_known() {
    let record = json!({"messages": [{"role": "assistant", "content": "{\"a\": 1}"}]});
    let found = loaded(
        "json_path",
        &json!({"jmespath_expression": "a", "expected": 1}),
        &record,
    );
    assert_eq!(found.outcome, Pass);
}

#[test]
fn params_that_check_nothing_or_cannot_run_are_refused() {
    let deep = "(".repeat(201);
    let doubling = ["[@,@][]"; 20].join("|");
    for (params, at) in [
        (json!({"expression": "a"}), ""),
        (json!({"expression": "$.a", "expected": 1}), "/expression"),
        (json!({"expression": "a[", "expected": 1}), "/expression"),
        (
            json!({"expression": "nope(a)", "expected": 1}),
            "/expression",
        ),
        (
            json!({"expression": "a[::0]", "expected": 1}),
            "/expression",
        ),
        (
            json!({"expression": "a[-2147483648]", "expected": 1}),
            "/expression",
        ),
        (
            json!({"expression": "a[1::2147483647]", "expected": 1}),
            "/expression",
        ),
        (
            json!({"expression": "join(a, b)", "expected": "x"}),
            "/expression",
        ),
        (json!({"expression": deep, "expected": 1}), "/expression"),
        (
            json!({"expression": doubling, "expected": 1}),
            "/expression",
        ),
        (
            json!({"expression": "a".repeat(5000), "expected": 1}),
            "/expression",
        ),
        (json!({"expression": "a", "expected": null}), "/expected"),
        (json!({"expression": "a", "contains": []}), "/contains"),
        (json!({"expression": "a", "min": 2, "max": 1}), "/min"),
        (
            json!({"expression": "a", "min_results": 2, "max_results": 1}),
            "/min_results",
        ),
        (json!({"expression": "a", "min_results": 0}), "/min_results"),
        (
            json!({"expression": "a", "of": "calls", "expected": 1, "extract_json": true}),
            "/extract_json",
        ),
    ] {
        let problems = refused("json_path", &params);
        assert!(
            matches!(problems.as_slice(), [(first, _)] if first == at),
            "{params}: {problems:?}"
        );
    }
}

#[test]
fn number_of_results_has_the_singular_for_one() {
    for (params, text) in [
        (
            json!({"expression": "a", "min_results": 3}),
            "1 result, 2 fewer than 3",
        ),
        (
            json!({"expression": "a", "max_results": 0}),
            "1 result, 1 more than 0",
        ),
        (
            json!({"expression": "b", "min_results": 1}),
            "0 results, 1 fewer than 1",
        ),
    ] {
        let found = on_output("json_path", &params, r#"{"a": [1]}"#);
        assert!(found.explanation.contains(text), "{}", found.explanation);
    }
}

#[test]
fn largest_allowed_expression_runs_on_a_small_stack() {
    let nested = format!("{}id{}", "(".repeat(200), ")".repeat(200));
    let negated = format!("{}id", "!".repeat(200));
    let chained = format!("{}id", "@|".repeat(200));
    for (expression, expected) in [
        (nested, json!(7)),
        (negated, json!(true)),
        (chained, json!(7)),
    ] {
        let params = json!({"expression": expression, "expected": expected});
        assert_eq!(outcome(&params), Pass, "{params}");
    }
}

#[test]
fn too_much_data_for_an_expression_is_a_check_error() {
    let doubling = ["[@,@][]"; 12].join("|");
    let params = json!({"expression": doubling, "min_results": 1});
    let text = format!("[{}1]", "1,".repeat(50_000));
    let found = on_output("json_path", &params, &text);
    assert_eq!(found.outcome, CheckError);
    assert!(
        found.explanation.starts_with("there is too much data"),
        "{}",
        found.explanation
    );
}
