//! tools.yaml as its author meets it: what loads, what is refused, and what a call of it becomes.

use std::process::Output;

use serde_json::Value;

use crate::cli::{NAMES_A_RELEASE, TestDir, text};

/// No server listens there: a started call ends in an error, and dicta prints its values.
const API: &str =
    "sources:\n  api: {kind: http, baseUrl: 'http://127.0.0.1:9', allowPrivate: true}\n";
const KEYS: &str = r#"{"keys": [{"kty": "EC", "crv": "P-256", "x": "arNRJlzDHRFzohfoW5IKh7u09aSBYV5f3xvaenmfQFo", "y": "HJws9iqKK3DF-FY8j49-TpRVLyU7ghxoegLAs-B20ic", "kid": "k", "use": "sig"}]}"#;
/// `sub` is ada, until 2100. Its key was thrown away.
const TOKEN: &str = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsiLCJ0eXAiOiJKV1QifQ.eyJzdWIiOiJhZGEiLCJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOiJkaWN0YSIsImV4cCI6NDEwMjQ0NDgwMH0.SOo4nfnhlNtEegYvJVnZRrix_j1eBu5-WxoalSpwX7fvQzf2XdTHuONc7bixzS2TftO54NLXz6B71KipiF5_3Q";

fn test_dir(judge: &str, tools: &str) -> TestDir {
    let test_dir = TestDir::new();
    test_dir.workspace(
        &format!(
            "tools: [tools.yaml]\njudges:\n  j: {{ provider: openai, base_url: 'http://127.0.0.1:9/v1', model: m, tools: {judge} }}\n"
        ),
        NAMES_A_RELEASE,
    );
    test_dir.write("tools.yaml", tools);
    test_dir
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", text(&output.stderr)))
}

fn call_tool(test_dir: &TestDir, tool: &str, json: &str) -> (Option<i32>, Value) {
    let output = test_dir.dicta(&["tool", tool, json, "--format", "json"]);
    (output.status.code(), report(&output))
}

#[test]
fn unused_broken_tool_stops_check_and_run() {
    let tools = format!(
        "{API}tools:\n  fine: {{kind: http, source: api, method: GET, path: /, description: d}}\n  \
         bad: {{kind: http, source: api, method: GET, path: /, description: d, parameters: [{{name: n, type: integer, description: n, default: x}}]}}\n"
    );
    let test_dir = test_dir("[fine]", &tools);
    for command in ["check", "run"] {
        let output = test_dir.dicta(&[command]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        let output_text = text(&output.stderr);
        assert!(
            output_text.contains("unable to parse the default: \"x\" not type \"integer\"")
                && output_text.contains("tools.yaml:5:"),
            "{output_text}"
        );
    }
    let (code, report) = call_tool(&test_dir, "bad", "{n: 2,}");
    assert_eq!((code, &report["outcome"]), (Some(1), &"rejected".into()));
    assert_eq!(report["rule"], "broken");
    assert_eq!(report["canonical"].to_string(), r#"{"n":2}"#);
    assert!(
        report["error"]
            .as_str()
            .is_some_and(|why| why.contains("tools.yaml:5:")),
        "{report}"
    );
    // The others can still be tried.
    let (_, report) = call_tool(&test_dir, "fine", "{}");
    assert_eq!(report["outcome"], "error");
}

#[test]
fn folder_of_tools_files_is_one_toolbox_and_unknown_names_get_suggestions() {
    let test_dir = TestDir::new();
    let judges = |tools: &str| {
        test_dir.workspace(
            &format!(
                "tools: [kit, one.json]\njudges:\n  j: {{ provider: openai, base_url: 'http://127.0.0.1:9/v1', model: m, tools: {tools} }}\n"
            ),
            NAMES_A_RELEASE,
        );
        test_dir.dicta(&["check"])
    };
    let tool = "method: GET, path: /, description: '${WORDS:of: words}'";
    test_dir.write(
        "kit/a.yaml",
        &format!(
            "{API}tools:\n  a: {{kind: http, source: api, {tool}}}\ntoolsets: {{both: [a, b]}}\n"
        ),
    );
    test_dir.write(
        "kit/b.yaml",
        "kind: tool\nname: b\ntype: http\nsource: api\nmethod: GET\npath: /\ndescription: d\n---\nkind: group\nname: last\ntools: [c]\n",
    );
    test_dir.write(
        "one.json",
        r#"{"tools": {"c": {"kind": "http", "source": "api", "method": "GET", "path": "/", "description": "d"}}}"#,
    );
    let fine = judges("[both, last]");
    assert_eq!(fine.status.code(), Some(0), "{}", text(&fine.stderr));
    let output = test_dir.dicta(&["tools", "--format", "json"]);
    let list = report(&output);
    let find_tool = |name: &str| {
        let mut all = list.as_array().into_iter().flatten();
        all.find(|row| row["name"] == name)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(find_tool("a")["description"], "of: words");
    assert_eq!(find_tool("c")["judges"], serde_json::json!(["j"]));
    let wrong = judges("[bofh, zzzzzz, last]");
    assert_eq!(wrong.status.code(), Some(2));
    let output_text = text(&wrong.stderr);
    for part in [
        "`bofh`; did you mean `both`?",
        "`zzzzzz`",
        "a, b, both, c, fetch_url, last",
    ] {
        assert!(output_text.contains(part), "{part} in {output_text}");
    }
}

#[test]
fn parameter_rules_are_enforced_and_declared_to_the_model() {
    let tools = format!(
        "{API}tools:\n  t:\n    kind: http\n    source: api\n    method: POST\n    path: /\n    description: d\n    parameters:\n      \
         - {{name: n, type: integer, description: n, allowedValues: [1, 2]}}\n      \
         - {{name: f, type: float, description: f, minValue: 0, maxValue: 2, default: 1}}\n      \
         - {{name: l, type: array, description: l, default: [1, 2], items: {{type: integer}}}}\n      \
         - {{name: w, type: string, description: w, allowedValues: [red], required: false}}\n  \
         any: {{kind: http, source: api, method: POST, path: /, description: d, inputSchema: {{type: object}}}}\n"
    );
    let test_dir = test_dir("[t, any]", &tools);
    let check = test_dir.dicta(&["check"]);
    assert!(
        text(&check.stderr)
            .contains("`red` also admits `hundred`; write `^red$` or `anchored: true`"),
        "{}",
        text(&check.stderr)
    );
    let (_, report) = call_tool(&test_dir, "t", r#"{"n":1}"#);
    assert_eq!(report["outcome"], "error", "it was started: {report}");
    assert_eq!(
        report["values"].to_string(),
        r#"{"n":1,"f":1.0,"l":[1,2],"w":null}"#
    );
    let (code, report) = call_tool(&test_dir, "t", r#"{"n":3,"f":2.5,"l":[1,"x"],"w":"blue"}"#);
    assert_eq!((code, &report["rule"]), (Some(1), &"parameters".into()));
    let why = report["error"].as_str().unwrap_or_default();
    for part in [
        "\"n\": 3 is not an allowed value (allowed: 1, 2)",
        "\"f\": 2.5 is above the maximum value (2)",
        "\"l\": unable to parse element #1: \"x\" not type \"integer\"",
        "\"w\": blue is not an allowed value (allowed: red)",
    ] {
        assert!(why.contains(part), "{part} in {why}");
    }
    // As written, even where no program holds the number.
    let output = test_dir.dicta(&[
        "tool",
        "any",
        r#"{"a":1e400,"b":12345678901234567890123}"#,
        "--format",
        "json",
    ]);
    let output_text = text(&output.stdout);
    assert!(
        output_text.contains(r#""values":{"a":1e400,"b":12345678901234567890123}"#),
        "{output_text}"
    );
    let list = test_dir.dicta(&["tools", "--format", "json"]);
    let list: Value = serde_json::from_slice(&list.stdout).expect("JSON");
    let t = list
        .as_array()
        .into_iter()
        .flatten()
        .find(|row| row["name"] == "t");
    let properties = &t.expect("it is there")["schema"]["properties"];
    assert_eq!(properties["n"]["enum"], serde_json::json!([1, 2]));
    assert_eq!(properties["f"]["maximum"], 2);
    assert_eq!(properties["w"]["pattern"], "red");
}

#[test]
fn token_claim_fills_its_parameter_and_no_token_is_shown() {
    let tools = format!(
        "{API}authServices:\n  idp: {{kind: generic, audience: dicta, issuer: 'https://id.example', jwks: keys.json}}\ntools:\n  \
         mine: {{kind: http, source: api, method: POST, path: /, description: d, authRequired: [idp], parameters: [{{name: who, type: string, description: w, authServices: [{{name: idp, field: sub}}]}}]}}\n"
    );
    let test_dir = test_dir("[mine]", &tools);
    test_dir.write("keys.json", KEYS);
    let with = |token: &str| {
        let mut command =
            test_dir.command(&["tool", "mine", r#"{"who":"eve"}"#, "--format", "json"]);
        command.env("IDP_TOKEN", token).output().expect("it runs")
    };
    let fine = with(TOKEN);
    assert_eq!(report(&fine)["values"].to_string(), r#"{"who":"ada"}"#);
    let forged = TOKEN.replace("eyJzdWIiOiJhZGEi", "eyJzdWIiOiJldmUi");
    for (token, why) in [
        ("", ""),
        ("nonsense", "it is not a signed JWT"),
        (forged.as_str(), "its signature is not the service's"),
    ] {
        let output = with(token);
        assert_eq!(report(&output)["rule"], "auth");
        assert!(
            text(&output.stderr).contains(why),
            "{}",
            text(&output.stderr)
        );
    }
    for output in [
        fine,
        with(&forged),
        test_dir.dicta(&["tools", "--format", "json"]),
    ] {
        let output_text = text(&output.stdout) + &text(&output.stderr);
        assert!(
            !output_text.contains("eyJ") && !output_text.contains(r#""who":{"#),
            "{output_text}"
        );
    }
}

#[test]
fn unset_variable_is_reported_at_its_place_and_set_values_stay_hidden() {
    let tools = API.replace(
        "allowPrivate: true",
        "allowPrivate: true, headers: {X-Key: '${SHOP_KEY}'}, more: 1",
    );
    let test_dir = test_dir("[]", &tools);
    let output_text = text(&test_dir.dicta(&["check"]).stderr);
    assert!(
        output_text.contains("${SHOP_KEY} is not set in the environment, and has no default")
            && output_text.contains("tools.yaml:2:")
            && output_text.contains("set SHOP_KEY, or give a default: ${SHOP_KEY:value}"),
        "{output_text}"
    );
    let output = test_dir
        .command(&["check"])
        .env("SHOP_KEY", "hush-hush-12345")
        .output();
    let output_text = text(&output.expect("it runs").stderr);
    assert!(
        output_text.contains("unknown key `more`") && !output_text.contains("hush-hush"),
        "{output_text}"
    );
}

#[cfg(feature = "sqlite")]
#[test]
fn placeholder_in_quotes_is_a_warning() {
    let tools = |statement: &str| {
        format!(
            "sources:\n  s: {{kind: sqlite, database: s.db}}\ntools:\n  find:\n    kind: sqlite-sql\n    source: s\n    \
             description: d\n    statement: \"{statement}\"\n    parameters: [{{name: q, type: string, description: d}}]\n"
        )
    };
    let warning = "so the values of q change nothing";
    for (statement, warns) in [
        ("SELECT * FROM t WHERE n = '?'", true),
        ("SELECT * FROM t WHERE n = ?", false),
    ] {
        let test_dir = TestDir::new();
        test_dir.write("tools.yaml", &tools(statement));
        let checked = test_dir.dicta(&["check", "tools.yaml"]);
        let out = format!("{}{}", text(&checked.stdout), text(&checked.stderr));
        assert_eq!(checked.status.code(), Some(0), "{out}");
        assert_eq!(out.contains(warning), warns, "{statement}: {out}");
    }
}
