//! MCP servers of a workspace, with the built program: calls, failures as a user meets them, and no process left behind.

mod ends;
mod far;
mod server;

use std::process::Output;

use serde_json::{Value, json};

use crate::cli::{NAMES_A_RELEASE, PASSES, POLITE, TestDir, text};
use crate::support::wire::{Reply, WireServer};

/// Not a test: the server, where this program is started as one.
#[test]
fn serve() {
    if let Ok(kind) = std::env::var("DICTA_TEST_SERVER") {
        server::live(&kind);
    }
}

/// A source of tools.yaml that starts this program as a server of some kind, in flow YAML.
fn as_server(kind: &str, more: &Value) -> String {
    let program = std::env::current_exe().expect("this program");
    let mut source = json!({
        "kind": "mcp",
        "command": program,
        "args": ["--exact", "mcp::serve", "--nocapture", "--test-threads=1"],
        "env": {"DICTA_TEST_SERVER": kind},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        source[key] = value.clone();
    }
    source.to_string()
}

/// A workspace whose tools.yaml this is.
fn workspace(tools: &str, judges: &str) -> TestDir {
    let test_dir = TestDir::new();
    test_dir.write("tools.yaml", tools);
    let evals = if judges.is_empty() {
        NAMES_A_RELEASE
    } else {
        POLITE
    };
    test_dir.workspace(&format!("tools: [tools.yaml]\n{judges}"), evals);
    test_dir
}

fn tool(test_dir: &TestDir, name: &str, arguments: &str) -> (Value, Output) {
    let output = test_dir
        .command(&["tool", name, arguments, "--format", "json"])
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("OPENAI_API_KEY", "sk-hush-hush")
        .output()
        .expect("the program runs");
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (report, output)
}

fn describe_output(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn mcp_tool_is_called_by_server_name_and_by_file_name() {
    let tools = format!(
        "sources:\n  small: {}\ntools:\n  say: {{kind: mcp, source: small, tool: echo}}\n  lost: {{kind: mcp, source: small, tool: ecko}}\n",
        as_server("plain", &json!({}))
    );
    let test_dir = workspace(&tools, "");
    for name in ["echo", "say"] {
        let (report, output) = tool(&test_dir, name, "{'text': 'héllo',}");
        assert_eq!(
            report["text"],
            "héllo",
            "{name}: {}",
            describe_output(&output)
        );
        assert_eq!(report["values"], json!({"text": "héllo"}));
        let (report, _) = tool(&test_dir, name, r#"{"text": 5}"#);
        assert_eq!(
            (&report["outcome"], &report["rule"]),
            (&json!("rejected"), &json!("schema"))
        );
    }
    // A number that would reach the server as another one is rejected before anything is sent.
    let (report, _) = tool(
        &test_dir,
        "say",
        r#"{"text": "x", "n": 123456789012345678901}"#,
    );
    assert_eq!(report["outcome"], "rejected");
    let why = report["error"].as_str().expect("a text");
    assert!(
        why.contains("123456789012345678901 does not fit into 64 bits"),
        "{why}"
    );
    let (_, output) = tool(&test_dir, "lost", "{}");
    assert!(
        describe_output(&output).contains("did you mean `echo`?"),
        "{}",
        describe_output(&output)
    );
    let listed = test_dir.dicta(&["tools", "--format", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let say = listed
        .as_array()
        .expect("a list")
        .iter()
        .find(|t| t["name"] == "say");
    let say = say.expect("it is listed");
    assert_eq!(say["schema"]["required"], json!(["text"]));
    assert_eq!(say["description"], "Says it again.");
}

#[test]
fn mcp_server_gets_no_key_and_runs_in_its_folder() {
    let test_dir = TestDir::new();
    let program = std::env::current_exe().expect("this program");
    test_dir.write(
        "deep/tools.yaml",
        &format!(
            "sources:\n  small: {}\n  near: {}\n",
            as_server("plain", &json!({})),
            as_server("plain", &json!({"command": "bin/near", "prefix": "near_"}))
        ),
    );
    test_dir.write("deep/bin/x", "");
    std::os::unix::fs::symlink(program, test_dir.path().join("deep/bin/near")).expect("linked");
    test_dir.workspace("tools: [deep/tools.yaml]\n", NAMES_A_RELEASE);
    for name in ["where", "near_where"] {
        let (report, output) = tool(&test_dir, name, "{}");
        let tool_text = report["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", describe_output(&output)));
        let (cwd, names) = tool_text.split_once('\n').expect("two lines");
        assert!(cwd.ends_with("/deep"), "{cwd}");
        assert!(
            names.contains("PATH") && !names.contains("OPENAI") && !names.contains("DICTA_DATA"),
            "{names}"
        );
    }
}

#[test]
fn judge_calls_an_mcp_tool_and_the_trace_records_every_step() {
    let wire = WireServer::openai(vec![
        Reply::raw_call("my_echo", "{'text': 'x',}").and_raw_call("my_echo", r#"{"text":5}"#),
        Reply::verdict(serde_json::from_str::<Value>(PASSES).expect("JSON")),
    ]);
    let config = serde_json::from_str::<Value>(&as_server(
        "plain",
        &json!({"allow": ["echo"], "prefix": "my_"}),
    ));
    let mut config = config.expect("JSON");
    config.as_object_mut().expect("an object").remove("kind");
    let judges = format!(
        "judge: j\njudges:\n  j: {{provider: openai, base_url: '{}', model: m, tools: [{{mcp: {config}}}]}}\n",
        wire.base_url()
    );
    let test_dir = workspace("sources: {}\n", &judges);
    let run = test_dir.dicta(&["run", "--where", "transcript:two"]);
    assert_eq!(
        wire.requests()[0].tools(),
        ["my_echo", "submit_verdict"],
        "{}",
        describe_output(&run)
    );
    let runs = std::fs::read_dir(test_dir.path().join("runs")).expect("runs");
    let dir = runs.flatten().next().expect("a run").path();
    let log = std::fs::read_to_string(dir.join("events.jsonl")).expect("a log");
    let steps = |call: u64| -> Vec<String> {
        let events = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let of_call = events.filter_map(|event| {
            let fact = &event["kind"]["tool"];
            let is_it = fact["turn"] == 0 && fact["call"] == call;
            is_it.then(|| match &fact["fact"] {
                Value::String(name) => name.clone(),
                fact => fact
                    .as_object()
                    .and_then(|f| f.keys().next().cloned())
                    .expect("a fact"),
            })
        });
        of_call.collect()
    };
    assert_eq!(
        steps(0),
        ["received", "repaired", "validated", "started", "finished"]
    );
    assert_eq!(steps(1), ["received", "rejected"]);
}

#[test]
fn unusable_mcp_server_reports_the_reason_and_the_fix() {
    for (source, says) in [
        (
            json!({"command": "no-such-program"}),
            vec!["`no-such-program` cannot be started: it is not installed, or not on PATH"],
        ),
        (
            json!({"command": "./no/such"}),
            vec!["no/such` cannot be started: there is no such file"],
        ),
        (
            json!({"env": {"DICTA_TEST_SERVER": "refuses"}}),
            vec!["ended with exit status: 2", "no licence"],
        ),
        (
            json!({"env": {"DICTA_TEST_SERVER": "mute"}, "startTimeout": "4s"}),
            vec![
                "no handshake after 4.0 s (`startTimeout` gives it longer)",
                "its standard output holds what is no message: running 1 test",
            ],
        ),
        (
            json!({"env": {"DICTA_TEST_SERVER": "empty"}}),
            vec!["it has no tools"],
        ),
        (
            json!({"allow": ["ecko"]}),
            vec!["`ecko` (did you mean `echo`?)"],
        ),
    ] {
        let test_dir = workspace(
            &format!("sources:\n  small: {}\n", as_server("plain", &source)),
            "",
        );
        let (_, output) = tool(&test_dir, "echo", "{}");
        // dicta rejects a call of a tool that no server has.
        assert_eq!(output.status.code(), Some(1), "{source}");
        for part in says {
            assert!(
                describe_output(&output).contains(part),
                "{part}: {}",
                describe_output(&output)
            );
        }
    }
    let judges = "judge: j\njudges:\n  j: {provider: openai, base_url: 'http://127.0.0.1:9/v1', model: m, tools: [one, two]}\n";
    let both = format!(
        "sources:\n  one: {}\n  two: {}\n",
        as_server("plain", &json!({})),
        as_server("plain", &json!({"allow": ["echo"]}))
    );
    let output = workspace(&both, judges).dicta(&["run"]);
    assert!(
        describe_output(&output).contains("two tools are called `echo`"),
        "{}",
        describe_output(&output)
    );
    assert!(
        describe_output(&output).contains("`prefix`"),
        "{}",
        describe_output(&output)
    );
}
