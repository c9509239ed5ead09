//! `dicta tools` and what `dicta tool` says beside the answer.

use serde_json::Value;

use crate::cli::Bench;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON on standard output")
}

#[test]
fn tools_command_lists_provider_names_and_judges() {
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
fn rejected_call_shows_its_rule_and_arguments() {
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
fn undeclared_tool_is_rejected_like_a_judges_call() {
    let bench = Bench::new();
    let output = bench.dicta(&["tool", "fetch_ulr", "{'a': 1}", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output.stdout);
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["rule"], "unknown_tool");
    assert_eq!(report["canonical"], serde_json::json!({"a": 1}));
    let error = report["error"].as_str().expect("text");
    assert!(error.contains("did you mean `fetch_url`?"), "{error}");
    let output = bench.dicta(&["tool", "fetch_ulr", "{}"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("available tools: `fetch_url`"), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn tool_command_works_in_a_folder_with_only_tools() {
    let bench = Bench::new();
    bench.write("sub/dicta.yaml", "tools: [tools.yaml]\n");
    bench.write("sub/shop.db", "");
    bench.write(
        "sub/tools.yaml",
        "\
sources:
  shop: { kind: sqlite, database: shop.db }
tools:
  find:
    kind: sqlite-sql
    source: shop
    description: Finds
    parameters: [{ name: q, type: string, description: what, allowedValues: [tea.*] }]
    statement: select ? as q
  plain:
    kind: sqlite-sql
    source: shop
    description: Says one
    statement: select 1 as one
  bad:
    kind: sqlite-sql
    source: shop
    description: Refused
    parameters: [{ name: n, type: integer, description: n, default: 9, maxValue: 5 }]
    statement: select ?
",
    );
    let tool = |name: &str, arguments: &str| {
        let output = bench.dicta(&["tool", name, arguments, "-w", "sub", "--format", "json"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), json(&output.stdout), said)
    };
    let (code, report, said) = tool("plain", "{}");
    assert_eq!((code, said.as_str()), (Some(0), ""), "{report}");
    let (code, _, said) = tool("find", r#"{"q":"tea"}"#);
    assert_eq!(code, Some(0));
    assert!(said.starts_with("warning: tools.yaml:8:"), "{said}");
    let (code, report, _) = tool("bad", "{n: 1}");
    assert_eq!((code, &report["rule"]), (Some(1), &Value::from("broken")));
    assert_eq!(report["canonical"], serde_json::json!({"n": 1}));
    let (code, report, said) = tool("plan", "{}");
    assert_eq!(
        (code, &report["rule"]),
        (Some(1), &Value::from("unknown_tool"))
    );
    let error = report["error"].as_str().expect("text");
    assert!(error.contains("did you mean `plain`?"), "{error}");
    assert!(
        said.contains("error") && !said.contains("warning"),
        "{said}"
    );

    let output = bench.dicta(&["tools", "-w", "sub"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "file, sqlite source shop · no judge uses it",
        "reads only",
        "q  string, required, matching /tea.*/: what",
        "✗ broken: tools.yaml:",
        "! tools.yaml:8:",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn unreadable_tools_file_causes_no_unknown_tool_errors() {
    let bench = Bench::new();
    bench.workspace(
        "tools: [tools.yaml]\njudges:\n  j: { provider: openai, base_url: http://127.0.0.1:9/v1, model: m, tools: [find] }\n",
        "  - { id: a, type: contains, params: { patterns: [x] } }\n",
    );
    bench.write("tools.yaml", "tools: [\n");
    let output = bench.dicta(&["check"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("tools.yaml:1:8"), "{told}");
    assert!(!told.contains("unknown tool"), "{told}");
}
