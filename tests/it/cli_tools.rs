//! `dicta tools` and what `dicta tool` says beside the answer.

use serde_json::Value;

use crate::cli::Bench;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON on standard output")
}

#[test]
fn tools_are_listed_as_each_provider_is_told_with_the_judges_that_have_them() {
    let bench = Bench::new();
    bench.workspace(
        "judges:\n  reader: { provider: openai, base_url: http://127.0.0.1:9/v1, model: m, tools: [fetch_url] }\n",
        "  - { id: a, type: contains, params: { patterns: [x] } }\n",
    );
    let output = bench.dicta(&["tools", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let list = json(&output.stdout);
    let of = |name: &str| {
        let all = list.as_array().expect("a list");
        let found = all.iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {list}")).clone()
    };
    let fetch = of("fetch_url");
    assert_eq!(fetch["judges"], serde_json::json!(["reader"]));
    assert_eq!(of("read_message")["judges"], serde_json::json!([]));
    assert_eq!(fetch["from"], "built in");
    for (provider, at) in [
        ("openai", "/0/function/parameters"),
        ("openai-responses", "/0/parameters"),
        ("anthropic", "/0/input_schema"),
        ("gemini", "/0/functionDeclarations/0/parametersJsonSchema"),
    ] {
        let declared = fetch["declared"][provider].pointer(at);
        assert_eq!(declared, Some(&fetch["schema"]), "{provider}");
    }
    let output = bench.dicta(&["tools", "--provider", "anthropic"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("input_schema"), "{text}");
    assert!(text.contains("built in · judges: reader"), "{text}");
}

#[test]
fn a_rejected_call_says_by_which_rule_and_shows_what_was_read() {
    let bench = Bench::new();
    let output = bench.dicta(&["tool", "fetch_url", r#"{ "url": 5 }"#, "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output.stdout);
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["rule"], "schema");
    assert_eq!(report["canonical"]["url"], 5);
    assert_eq!(report["values"], Value::Null);
    assert_eq!(report["retried"], Value::Null);
    let output = bench.dicta(&["tool", "fetch_url", r#"{ "url": 5 }"#]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("canonical  {\"url\":5}"), "{text}");
    assert!(text.contains("rule       schema"), "{text}");
}

#[test]
fn a_tool_that_nothing_declares_is_a_usage_error_that_names_those_there_are() {
    let bench = Bench::new();
    let output = bench.dicta(&["tool", "fetch_ulr", "{}"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("did you mean `fetch_url`?"), "{text}");
}
