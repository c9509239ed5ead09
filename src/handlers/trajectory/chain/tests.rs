use serde_json::{Value, json};

use crate::handlers::testing::{check_record, refused};
use crate::model::Outcome::{CheckError, Fail, Pass};

/// A call of a tool, with arguments, a result and whether that is an error. No result: not answered.
type Called<'a> = (&'a str, Value, Option<(&'a str, bool)>);

fn record(calls: &[Called<'_>]) -> Value {
    let mut messages = Vec::new();
    for (name, args, result) in calls {
        messages.push(json!({"role": "assistant", "tool_calls": [
            {"id": "", "function": {"name": name, "arguments": args.to_string()}}]}));
        if let Some((text, is_error)) = result {
            let metadata = json!({"is_error": is_error});
            messages.push(json!({"role": "tool", "content": text, "metadata": metadata}));
        }
    }
    json!({"messages": messages})
}

#[test]
fn each_chain_step_needs_a_call_that_satisfies_it() {
    let params = json!({"steps": [
        {"tool": "get_order", "args_match": {"id": "^\\d+$"}, "no_error": true},
        {"tool": "refund", "result_includes": ["REFUNDED"], "result_matches": "[0-9]+ EUR"}]});
    let get =
        |id: Value, failed: bool| ("get_order", json!({"id": id}), Some(("an order", failed)));
    let refund = |text: &'static str| ("refund", json!({}), Some((text, false)));
    for (calls, expected) in [
        (
            vec![
                get(json!(7), false),
                ("search", json!({}), None),
                refund("Refunded 5 EUR"),
            ],
            (
                Pass,
                1.0,
                "the chain is complete: get_order in message 0, refund in message 3",
            ),
        ),
        (vec![], (Fail, 0.0, "0 of 2 steps: get_order is not called")),
        (
            vec![get(json!("7"), false)],
            (
                Fail,
                0.5,
                "1 of 2 steps: refund is not called after get_order in message 0",
            ),
        ),
        (
            vec![refund("refunded 5 EUR"), get(json!("7"), false)],
            (
                Fail,
                0.5,
                "1 of 2 steps: refund is not called after get_order in message 2",
            ),
        ),
        (
            vec![get(json!("x7"), true)],
            (
                Fail,
                0.0,
                "0 of 2 steps: get_order in message 0 does not meet the conditions: \
                 id expected a match of \"^\\\\d+$\" got \"x7\", its result is an error",
            ),
        ),
        // Other than upstream: it tried, failed and tried again.
        (
            vec![
                get(json!("7"), true),
                get(json!("7"), false),
                refund("refunded 5 EUR"),
            ],
            (
                Pass,
                1.0,
                "the chain is complete: get_order in message 2, refund in message 4",
            ),
        ),
        (
            vec![get(json!("7"), false), refund("no"), refund("no")],
            (
                Fail,
                0.5,
                "1 of 2 steps: refund in message 2 does not meet the conditions: its result lacks \"REFUNDED\", \
                 its result has no match of \"[0-9]+ EUR\", nor does 1 later call",
            ),
        ),
        (
            vec![get(json!("7"), false), ("refund", json!({}), None)],
            (
                Fail,
                0.5,
                "1 of 2 steps: refund in message 2 does not meet the conditions: it has no result",
            ),
        ),
    ] {
        let found = check_record("tool_call_chain", &params, &record(&calls));
        let (outcome, score, why) = expected;
        assert_eq!(
            (found.outcome, found.score, found.explanation.as_str()),
            (outcome, Some(score), why),
            "{calls:?}"
        );
    }
}

#[test]
fn missing_data_is_an_error_unless_the_chain_fails_anyway() {
    let call = |name: &str| {
        json!({"role": "assistant", "tool_calls": [
            {"id": "", "function": {"name": name, "arguments": "{}"}}]})
    };
    let answer = json!({"role": "tool", "content": "Error: denied"});
    let gone = json!({"messages": [call("get"), call("pay"), call("end")]});
    let unsaid = json!({"messages": [call("get"), answer, call("pay"), answer]});
    let no_error = |tool: &str| json!({"tool": tool, "no_error": true});
    let reads = |tool: &str| json!({"tool": tool, "result_includes": ["paid"]});
    for (steps, record, outcome) in [
        (json!([no_error("get"), no_error("pay")]), &gone, CheckError),
        (json!([reads("get"), reads("pay")]), &gone, CheckError),
        (json!([reads("pay"), reads("get")]), &gone, Fail),
        (json!([{"tool": "get"}, {"tool": "pay"}]), &gone, Pass),
        (
            json!([no_error("get"), no_error("pay")]),
            &unsaid,
            CheckError,
        ),
        (json!([no_error("get"), reads("pay")]), &unsaid, Fail),
        (json!([no_error("pay"), no_error("get")]), &unsaid, Fail),
    ] {
        let params = json!({"steps": steps});
        let found = check_record("tool_call_chain", &params, record);
        assert_eq!(found.outcome, outcome, "{params}: {}", found.explanation);
    }
}

#[test]
fn step_with_useless_conditions_is_refused() {
    for (step, at) in [
        (json!({"args_match": {}}), ""),
        (json!({"tool": ""}), "/tool"),
        (
            json!({"tool": "a", "args_match": {"x": "("}}),
            "/args_match/x",
        ),
        (
            json!({"tool": "a", "args_match": {"x": 1}}),
            "/args_match/x",
        ),
        (
            json!({"tool": "a", "result_matches": "("}),
            "/result_matches",
        ),
        (
            json!({"tool": "a", "result_matches": null}),
            "/result_matches",
        ),
        (
            json!({"tool": "a", "result_includes": [""]}),
            "/result_includes/0",
        ),
        (
            json!({"tool": "a", "result_includes": "x"}),
            "/result_includes",
        ),
        (json!({"tool": "a", "results": []}), "/results"),
    ] {
        let problems = refused("tool_call_chain", &json!({"steps": [step]}));
        assert_eq!(problems.len(), 1, "{step}");
        assert_eq!(problems[0].0, format!("/steps/0{at}"), "{step}");
    }
}
