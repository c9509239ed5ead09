//! `dicta tools`, and the output of `dicta tool` next to the answer.

use serde_json::Value;

use crate::cli::TestDir;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON on standard output")
}

#[test]
fn tools_command_lists_provider_names_and_judges() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "judges:\n  reader: { provider: openai, base_url: http://127.0.0.1:9/v1, model: m, tools: [fetch_url] }\n",
        "  - { id: a, type: contains, params: { patterns: [x] } }\n",
    );
    let output = test_dir.dicta(&["tools", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let list = json(&output.stdout);
    let find_tool = |name: &str| {
        let all = list.as_array().expect("a list");
        let found = all.iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {list}")).clone()
    };
    let fetch = find_tool("fetch_url");
    assert_eq!(fetch["judges"], serde_json::json!(["reader"]));
    assert_eq!(find_tool("read_message")["judges"], serde_json::json!([]));
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
    let output = test_dir.dicta(&["tools", "--provider", "anthropic"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("input_schema"), "{text}");
    assert!(text.contains("built in · judges: reader"), "{text}");
}

#[test]
fn judges_and_tools_commands_mark_a_loosened_seen_rule() {
    let mark = |settings: &str| {
        let test_dir = TestDir::new();
        let tools = format!("tools: [{{ fetch_url: {settings} }}]");
        test_dir.workspace(
            &format!("judges:\n  reader: {{ provider: openai, base_url: http://127.0.0.1:9/v1, model: m, {tools} }}\n"),
            "  - { id: a, type: contains, params: { patterns: [x] } }\n",
        );
        let output = test_dir.dicta(&["judges"]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for loose in ["host", "off"] {
        let text = mark(&format!("{{ seen: '{loose}' }}"));
        assert!(
            text.contains(&format!("! fetch_url with `seen: {loose}`")),
            "{text}"
        );
    }
    for strict in ["{ seen: url }", "{ max_bytes: 10 }"] {
        let text = mark(strict);
        assert!(!text.contains("! fetch_url"), "{text}");
    }
}

#[test]
fn address_of_the_users_own_argument_is_not_refused_by_the_seen_rule() {
    let test_dir = TestDir::new();
    for url in [
        "https://127.0.0.1/a?x={1}|'b'",
        "https://127.0.0.1/\\u0061?x=1",
    ] {
        let arguments = format!("{{\"url\": \"{url}\"}}");
        let output = test_dir.dicta(&["tool", "fetch_url", &arguments, "--format", "json"]);
        let report = json(&output.stdout);
        // The address guard refuses loopback after the seen rule.
        assert_eq!(report["outcome"], "error", "{report}");
    }
}

#[test]
fn rejected_call_shows_its_rule_and_arguments() {
    let test_dir = TestDir::new();
    let output = test_dir.dicta(&["tool", "fetch_url", r#"{ "url": 5 }"#, "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output.stdout);
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["rule"], "schema");
    assert_eq!(report["canonical"]["url"], 5);
    assert_eq!(report["values"], Value::Null);
    assert_eq!(report["retried"], Value::Null);
    let output = test_dir.dicta(&["tool", "fetch_url", r#"{ "url": 5 }"#]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("canonical  {\"url\":5}"), "{text}");
    assert!(text.contains("rule       schema"), "{text}");
}

#[test]
fn undeclared_tool_is_rejected_like_a_judges_call() {
    let test_dir = TestDir::new();
    let output = test_dir.dicta(&["tool", "fetch_ulr", "{'a': 1}", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output.stdout);
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["rule"], "unknown_tool");
    assert_eq!(report["canonical"], serde_json::json!({"a": 1}));
    let error = report["error"].as_str().expect("text");
    assert!(error.contains("did you mean `fetch_url`?"), "{error}");
    let output = test_dir.dicta(&["tool", "fetch_ulr", "{}"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("available tools: `fetch_url`"), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn tool_command_works_in_a_folder_with_only_tools() {
    let test_dir = TestDir::new();
    test_dir.write("sub/dicta.yaml", "tools: [tools.yaml]\n");
    test_dir.write("sub/shop.db", "");
    test_dir.write(
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
        let output = test_dir.dicta(&["tool", name, arguments, "-w", "sub", "--format", "json"]);
        let stderr_text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), json(&output.stdout), stderr_text)
    };
    let (code, report, stderr_text) = tool("plain", "{}");
    assert_eq!((code, stderr_text.as_str()), (Some(0), ""), "{report}");
    let (code, _, stderr_text) = tool("find", r#"{"q":"tea"}"#);
    assert_eq!(code, Some(0));
    assert!(
        stderr_text.starts_with("warning: tools.yaml:8:"),
        "{stderr_text}"
    );
    let (code, report, _) = tool("bad", "{n: 1}");
    assert_eq!((code, &report["rule"]), (Some(1), &Value::from("broken")));
    assert_eq!(report["canonical"], serde_json::json!({"n": 1}));
    let (code, report, stderr_text) = tool("plan", "{}");
    assert_eq!(
        (code, &report["rule"]),
        (Some(1), &Value::from("unknown_tool"))
    );
    let error = report["error"].as_str().expect("text");
    assert!(error.contains("did you mean `plain`?"), "{error}");
    assert!(
        stderr_text.contains("error") && !stderr_text.contains("warning"),
        "{stderr_text}"
    );

    let output = test_dir.dicta(&["tools", "-w", "sub"]);
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
    let test_dir = TestDir::new();
    test_dir.workspace(
        "tools: [tools.yaml]\njudges:\n  j: { provider: openai, base_url: http://127.0.0.1:9/v1, model: m, tools: [find] }\n",
        "  - { id: a, type: contains, params: { patterns: [x] } }\n",
    );
    test_dir.write("tools.yaml", "tools: [\n");
    let output = test_dir.dicta(&["check"]);
    assert_eq!(output.status.code(), Some(2));
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output_text.contains("tools.yaml:1:8"), "{output_text}");
    assert!(!output_text.contains("unknown tool"), "{output_text}");
}
