//! Code of promptfoo's assertions, run by the interpreters of this machine. Without one, its test is skipped.

use std::process::Command;

use serde_json::json;

use crate::cli::{TestDir, of_type, rows, text};

/// A text, a structure, a list of calls, and a message with a call, as promptfoo's results give them.
const TRANSCRIPTS: &str = r#"{"id":"text","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a; b"}]}
{"id":"json","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"{\"a\":1}","metadata":{"output_type":"json"}}]}
{"id":"calls","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}],"metadata":{"output_type":"calls"}}]}
{"id":"message","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"m","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}],"metadata":{"output_type":"message"}}]}
"#;

/// Code, the transcript that it is for, and the outcome. A threshold of 0.5 applies to all.
type Case = (&'static str, &'static str, &'static str);

const JAVASCRIPT: &[Case] = &[
    // YAML's `|` ends the code with a line break.
    ("output.length > 3\n", "text", "pass"),
    ("const s = output; s === 'a; b'", "text", "pass"),
    ("const s = output; s === 'b'", "text", "fail"),
    (
        "(() => { const n = output.length; return n > 3 })()",
        "text",
        "pass",
    ),
    ("let n = output.length; return n > 3", "text", "pass"),
    ("if (output) return true; return false;", "text", "pass"),
    ("const n = output.length;\nreturn n > 3;\n", "text", "pass"),
    ("({ pass: true, score: 0.1, reason: 'r' })", "text", "pass"),
    ("output.a === 1", "json", "pass"),
    ("output[0].function.name === 'f'", "calls", "pass"),
    (
        "output.content === 'm' && output.tool_calls.length === 1",
        "message",
        "pass",
    ),
    ("output.a.b", "text", "check_error"),
];

const PYTHON: &[Case] = &[
    ("len(output) > 3", "text", "pass"),
    ("x = json.loads('[1]')\nreturn x[0] == 1\n", "text", "pass"),
    ("'true'", "text", "pass"),
    ("'0.4'", "text", "fail"),
    (
        "{'pass': True, 'score': 0.4, 'reason': 'r'}",
        "text",
        "fail",
    ),
    ("json.dumps({'pass': True, 'score': 0.6})", "text", "pass"),
    ("'maybe'", "text", "check_error"),
    ("output['a'] == 1", "json", "pass"),
    ("output[0]['function']['name'] == 'f'", "calls", "pass"),
    ("output['content'] == 'm'", "message", "pass"),
];

/// Checks the outcomes of code in one language.
#[expect(clippy::print_stdout, reason = "a person sees why the test is skipped")]
fn check_code(kind: &str, interpreter: &str, cases: &[Case]) {
    let version = Command::new(interpreter).arg("--version").output();
    if !version.is_ok_and(|version| version.status.success()) {
        // Printed, so that a person sees that the code did not run.
        println!("skipped: {interpreter} is not installed");
        return;
    }
    let asserts: Vec<_> = cases
        .iter()
        .enumerate()
        .map(|(at, (code, ..))| {
            json!({"type": kind, "metric": format!("case-{at}"), "value": code, "threshold": 0.5})
        })
        .collect();
    let config = json!({"prompts": ["p"], "providers": ["x"], "defaultTest": {"assert": asserts}});
    let test_dir = TestDir::new();
    test_dir.write("chats.jsonl", TRANSCRIPTS);
    test_dir.write("promptfooconfig.yaml", &config.to_string());
    test_dir.write(
        "dicta.yaml",
        "transcripts: [chats.jsonl]\nrubrics: [promptfooconfig.yaml]\nallow_scripts: true\n",
    );
    let run = test_dir
        .command(&["run", "--format", "jsonl"])
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .expect("the program runs");
    let rows = rows(&run);
    let results = of_type(&rows, "result");
    for (at, (code, transcript, wanted)) in cases.iter().enumerate() {
        let eval = format!("case-{at}");
        let row = results
            .iter()
            .find(|row| row["eval"] == eval.as_str() && row["transcript"] == *transcript)
            .unwrap_or_else(|| panic!("no result for {code}: {}", text(&run.stderr)));
        assert_eq!(row["outcome"], *wanted, "{code}: {row}");
    }
}

#[test]
fn javascript_decides_as_in_promptfoo() {
    check_code("javascript", "node", JAVASCRIPT);
}

#[test]
fn python_decides_as_in_promptfoo() {
    check_code("python", "python3", PYTHON);
}
