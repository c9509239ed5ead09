//! The built program as a person or a CI job calls it: files in, text and exit codes out.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::wire::{Reply, WireServer};

/// A folder to work in, with its own data directory and no keys in the environment.
pub(crate) struct TestDir {
    dir: TempDir,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self {
            dir: TempDir::new().expect("a temporary folder"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("inside")).expect("folders");
        std::fs::write(&path, text).expect("written");
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dicta"));
        command
            .args(args)
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
            .env_clear()
            .env("DICTA_DATA_DIR", self.path().join(".data"))
            .env("TERM", "xterm");
        command
    }

    pub(crate) fn dicta(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// Runs a command whose files may not have a byte, as on a full disk.
    pub(crate) fn dicta_on_full_disk(&self, args: &[&str]) -> Output {
        // An ignored signal makes the limit an error of the write.
        Command::new("/bin/sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_dicta"))
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("DICTA_DATA_DIR", self.path().join(".data"))
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    }

    /// Allows what the workspace sends to loopback servers, as its user would.
    pub(crate) fn trust(&self) {
        let output = self.dicta(&["trust", "."]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    /// A workspace with two transcripts and one rubric of the given evals (flow YAML lines).
    pub(crate) fn workspace(&self, dicta_yaml: &str, evals: &str) {
        self.write(
            "dicta.yaml",
            &format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n{dicta_yaml}"),
        );
        self.write("r.yaml", &format!("id: r\nevals:\n{evals}"));
        self.write(
            "t.jsonl",
            concat!(
                r#"{"id":"one","messages":[{"role":"user","content":"Which release?"},{"role":"assistant","content":"It is 2.69, see https://pages.example/a"}]}"#,
                "\n",
                r#"{"id":"two","messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Good day"}]}"#,
                "\n"
            ),
        );
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

pub(crate) fn rows(output: &Output) -> Vec<Value> {
    text(&output.stdout)
        .lines()
        .map(|l| serde_json::from_str(l).expect("every line is JSON"))
        .collect()
}

pub(crate) fn of_type<'r>(rows: &'r [Value], kind: &str) -> Vec<&'r Value> {
    rows.iter().filter(|r| r["type"] == kind).collect()
}

pub(crate) const NAMES_A_RELEASE: &str =
    "  - { id: names, type: regex, params: { pattern: '\\d\\.\\d+' } }\n";
pub(crate) const POLITE: &str =
    "  - { id: polite, type: llm_judge, params: { criteria: The answer is polite. } }\n";
pub(crate) const PASSES: &str = r#"{"citations":[{"source":"message 1","quote":"Good day"}],"reasoning":"It greets.","passed":true,"score":0.9}"#;

pub(crate) fn judged_by(server: &WireServer) -> String {
    format!(
        "judge: m\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m }}\n",
        server.base_url()
    )
}

#[test]
fn demo_runs_without_key_and_network() {
    let test_dir = TestDir::new();
    let run = test_dir.dicta(&["run", "--demo", "--stream", "--format", "jsonl"]);
    let stderr_text = text(&run.stderr);
    assert_eq!(
        run.status.code(),
        Some(1),
        "some of the demo fails on purpose: {stderr_text}"
    );
    assert!(
        stderr_text.contains("demo") && stderr_text.contains("not a model"),
        "{stderr_text}"
    );
    assert!(
        stderr_text.contains("\n  · turn 1: a prompt of "),
        "turns are told live, under their cell's name: {stderr_text}"
    );
    let rows = rows(&run);
    let summary = rows.last().expect("a summary");
    assert_eq!(
        (&summary["type"], &summary["demo"], &summary["pending"]),
        (&"summary".into(), &true.into(), &0.into())
    );
    assert!(of_type(&rows, "result").len() >= 20);
    assert!(
        of_type(&rows, "result")
            .iter()
            .any(|r| r["judge"] == "quick" && r["passed"] == true)
    );
}

#[test]
fn filter_by_cause_finds_the_calls_of_a_replayed_judge() {
    let test_dir = TestDir::new();
    test_dir.dicta(&["run", "--demo", "-q"]);
    for (filter, cells) in [("is:repaired", 3), ("is:refused", 1)] {
        let plan = test_dir.dicta(&[
            "run",
            "--demo",
            "--dry-run",
            "--where",
            filter,
            "--format",
            "jsonl",
        ]);
        let plan = rows(&plan);
        assert_eq!(plan[0]["cells"], cells, "{filter}: {plan:?}");
    }
}

#[test]
fn bare_dicta_without_terminal_never_judges_the_users_workspace() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let inside = test_dir.dicta(&[]);
    assert_eq!(inside.status.code(), Some(2));
    let help = text(&inside.stderr);
    assert!(
        help.contains("is not a terminal") && help.contains("Judge:\n  check"),
        "{help}"
    );
    assert_eq!(text(&inside.stdout), "");
    assert!(!text(&test_dir.dicta(&["runs"]).stdout).contains("finished"));
}

#[test]
fn bare_dicta_outside_a_workspace_runs_the_free_demo() {
    let test_dir = TestDir::new();
    let outside = test_dir.dicta(&[]);
    assert_eq!(outside.status.code(), Some(1), "{}", text(&outside.stderr));
    assert!(text(&outside.stderr).contains("free demo"));
    assert!(text(&outside.stdout).contains("beam-release"));
}

#[test]
fn commands_outside_a_workspace_say_how_to_get_one() {
    let test_dir = TestDir::new();
    for command in [
        &["check", "--strict"][..],
        &["run"],
        &["runs"],
        &["show", "@"],
        &["compare", "@2", "@"],
        &["replay", "@", "--print"],
        &["prompt", "a/b/c"],
        &["judges"],
        &["robustness", "quick"],
    ] {
        let output = test_dir.dicta(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let why = text(&output.stderr);
        assert!(
            why.contains("no dicta.yaml here or above")
                && why.contains("dicta init")
                && why.contains("dicta demo"),
            "{command:?}: {why}"
        );
    }
}

#[test]
fn demo_command_names_the_folder_and_restores_it() {
    let test_dir = TestDir::new();
    let folder = text(&test_dir.dicta(&["demo"]).stdout).trim().to_owned();
    let rubric = std::path::Path::new(&folder).join("rubrics/orders.yaml");
    let original = std::fs::read_to_string(&rubric).expect("the demo's rubric");
    std::fs::write(&rubric, "id: edited\n").expect("writable");
    let reset = test_dir.dicta(&["demo", "--reset"]);
    assert_eq!(text(&reset.stdout).trim(), folder);
    let restored = std::fs::read_to_string(&rubric).expect("restored");
    assert_eq!(restored, original);
    // The edit is not lost: stderr names the folder that has it.
    let former = text(&reset.stderr);
    let former = former.trim().rsplit(' ').next().expect("a folder");
    let kept = std::fs::read_to_string(std::path::Path::new(former).join("rubrics/orders.yaml"));
    assert_eq!(kept.expect("the former file"), "id: edited\n");
}

#[test]
fn option_c_selects_the_folder_of_any_command() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let outside = tempfile::tempdir().expect("a folder");
    let workspace = test_dir.path().to_str().expect("UTF-8").to_owned();
    for command in [&["run", "-q"][..], &["check"], &["runs"]] {
        let mut words = vec!["-C", &workspace];
        words.extend(command);
        let output = test_dir
            .command(&words)
            .current_dir(outside.path())
            .output()
            .expect("the program runs");
        assert_ne!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
    let missing = test_dir.dicta(&["-C", "nowhere", "runs"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("-C nowhere"));
}

#[test]
fn undecided_required_eval_exits_with_4() {
    let test_dir = TestDir::new();
    let rubric = format!(
        "{NAMES_A_RELEASE}  - {{ id: polite, type: llm_judge, required: true, params: {{ criteria: The answer is polite. }} }}\n"
    );
    // `rules` can't read the criteria, so the required eval is not applicable.
    test_dir.workspace(
        "judge: quick\njudges:\n  quick: { provider: rules }\n",
        &rubric,
    );
    test_dir.write(
        "t.jsonl",
        "{\"id\":\"one\",\"messages\":[{\"role\":\"assistant\",\"content\":\"It is 2.11.\"}]}\n",
    );
    let run = test_dir.dicta(&["run", "-q", "--format", "jsonl"]);
    assert_eq!(run.status.code(), Some(4), "{}", text(&run.stdout));
    assert_eq!(
        rows(&run).last().expect("a summary")["undecided_rubrics"],
        1
    );
}

#[test]
fn starter_workspace_passes_check_and_has_a_failure() {
    let test_dir = TestDir::new();
    assert_eq!(test_dir.dicta(&["init", "mine"]).status.code(), Some(0));
    assert_eq!(
        test_dir.dicta(&["init", "mine"]).status.code(),
        Some(2),
        "nothing is overwritten"
    );
    let mine = test_dir.path().join("mine");
    let mine = mine.to_str().expect("UTF-8");
    let check = test_dir.dicta(&["check", mine]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
    let run = test_dir.dicta(&["run", mine, "--format", "jsonl"]);
    let rows = rows(&run);
    assert_eq!(run.status.code(), Some(1));
    assert!(rows.iter().any(|r| r["passed"] == true) && rows.iter().any(|r| r["passed"] == false));
}

#[test]
fn first_rubric_of_init_accepts_an_order_number_that_the_user_gave() {
    let test_dir = TestDir::new();
    let chats = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/sample-runs/demo/raw/chats.jsonl"
    );
    let made = test_dir.dicta(&["init", "mine", "--from", chats]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let mine = test_dir.path().join("mine");
    let mine = mine.to_str().expect("UTF-8");
    let run = test_dir.dicta(&["run", mine, "--where", "eval:grounded", "--format", "jsonl"]);
    let rows = rows(&run);
    let grounded = of_type(&rows, "result");
    let verdict = |id: &str| {
        let of_id = grounded.iter().find(|row| row["transcript"] == id);
        of_id.map(|row| row["passed"].clone())
    };
    // The user named HB-2041; no tool returned the 14.90 EUR of chat-03.
    assert_eq!(verdict("chat-01"), Some(Value::Bool(true)), "{rows:#?}");
    assert_eq!(verdict("chat-03"), Some(Value::Bool(false)), "{rows:#?}");
}

#[test]
fn result_lines_contain_every_key_in_plan_order() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "",
        &format!(
            "{NAMES_A_RELEASE}  - {{ id: greets, type: contains, params: {{ patterns: [day] }} }}\n"
        ),
    );
    let run = test_dir.dicta(&["run", "--format", "jsonl"]);
    let rows = rows(&run);
    let cells: Vec<&str> = of_type(&rows, "result")
        .iter()
        .map(|r| r["cell"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        cells,
        ["one/r/names", "one/r/greets", "two/r/names", "two/r/greets"]
    );
    let keys: Vec<&String> = rows[0].as_object().expect("an object").keys().collect();
    for key in [
        "type",
        "cell",
        "transcript",
        "rubric",
        "eval",
        "kind",
        "message",
        "judge",
        "repeat",
        "outcome",
        "passed",
        "score",
        "explanation",
        "error",
        "citations",
        "usage",
        "cost_usd",
        "duration_ms",
        "cached",
    ] {
        assert!(keys.iter().any(|k| *k == key), "{key}");
    }
    let summary = rows.last().expect("a summary");
    for (key, n) in [
        ("cells", 4),
        ("pending", 0),
        ("pass", 2),
        ("fail", 2),
        ("judge_error", 0),
    ] {
        assert_eq!(summary[key], n, "{key}");
    }
}

#[test]
fn exit_codes_distinguish_outcomes() {
    let test_dir = TestDir::new();
    let code = |evals: &str| {
        test_dir.workspace("", evals);
        test_dir.dicta(&["run", "-q"]).status.code()
    };
    assert_eq!(
        code("  - { id: a, type: regex, params: { pattern: '.' } }\n"),
        Some(0)
    );
    assert_eq!(code(NAMES_A_RELEASE), Some(1));
    assert_eq!(
        code("  - { id: a, type: regex, params: { pattern: '(' } }\n"),
        Some(2)
    );
    assert_eq!(
        code("  - { id: a, type: regex, enabled: false, params: { pattern: '.' } }\n"),
        Some(4)
    );
    assert_eq!(
        code(
            "  - { id: a, type: regex, applies_to: { tags: [none] }, params: { pattern: '.' } }\n"
        ),
        Some(2)
    );
    let broken = WireServer::openai(vec![Reply::status(400), Reply::status(400)]);
    test_dir.workspace(&judged_by(&broken), POLITE);
    assert_eq!(
        test_dir.dicta(&["run", "-q"]).status.code(),
        Some(3),
        "errors are no verdicts"
    );
}

#[test]
fn judge_is_called_over_http_and_its_citations_are_checked() {
    let test_dir = TestDir::new();
    let server = WireServer::openai(vec![Reply::text(PASSES), Reply::text(PASSES)]);
    test_dir.workspace(&judged_by(&server), POLITE);
    let run = test_dir.dicta(&["run", "-j", "1", "--stream", "--format", "jsonl"]);
    let rows = rows(&run);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let found: Vec<&Value> = of_type(&rows, "result")
        .iter()
        .map(|r| &r["citations"][0]["found"])
        .collect();
    assert_eq!(
        found,
        [&Value::from(false), &Value::from(true)],
        "only the second transcript says so"
    );
    assert!(text(&run.stderr).contains("It greets."), "the turn is told");
    for request in server.requests() {
        let body = request.json();
        assert!(
            body.get("tools").is_none() && body.get("tool_choice").is_none(),
            "no tool key without tools"
        );
    }
    let again = test_dir.dicta(&["run", "--format", "jsonl"]);
    assert!(
        self::rows(&again)
            .iter()
            .filter(|r| r["type"] == "result")
            .all(|r| r["cached"] == true)
    );
    assert_eq!(server.requests().len(), 2, "the second run asks nobody");
}

#[test]
fn submitted_verdict_is_shown_once_and_cached_for_the_next_run() {
    let test_dir = TestDir::new();
    let verdict: Value = serde_json::from_str(PASSES).expect("JSON");
    let look = serde_json::json!({"url": "https://elsewhere.example/"});
    let server = WireServer::openai(vec![
        Reply::call("submit_verdict", verdict.clone()).and_call("fetch_url", look),
        Reply::call("submit_verdict", verdict.clone()),
        Reply::call("submit_verdict", verdict),
    ]);
    let judged = judged_by(&server).replace("model: m }", "model: m, tools: [fetch_url] }");
    test_dir.workspace(&judged, POLITE);
    let run = test_dir.dicta(&["run", "-j", "1", "--stream", "--format", "jsonl"]);
    let stderr_text = text(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{stderr_text}");
    assert!(
        stderr_text.contains("✗ submit_verdict rejected (not_yet)"),
        "{stderr_text}"
    );

    let show_output = text(&test_dir.dicta(&["show", "@", "one/"]).stdout);
    let (first, second) = show_output
        .split_once("── prompt, turn 2")
        .expect("two turns");
    assert!(first.contains("an impartial judge") && !second.contains("an impartial judge"));
    assert!(second.contains("as turn 1, with:") && second.contains("not yet: read these"));
    assert!(
        !show_output.contains("fetched content"),
        "nothing was fetched: {show_output}"
    );

    let again = test_dir.dicta(&["run", "--format", "jsonl"]);
    let cached: Vec<Value> = of_type(&rows(&again), "result")
        .iter()
        .map(|r| r["cached"].clone())
        .collect();
    assert_eq!(cached, [true, true], "{}", text(&again.stderr));
    assert_eq!(server.requests().len(), 3, "the second run asks nobody");
}

#[test]
fn judge_failure_is_reported_once() {
    let test_dir = TestDir::new();
    let bad_key = || Reply::status(401).body(r#"{"error": {"message": "No such key."}}"#);
    let server = WireServer::openai(vec![bad_key(), Reply::text("")]);
    test_dir.workspace(&judged_by(&server), POLITE);
    let run = test_dir.dicta(&["run", "-j", "1", "--stream", "--format", "jsonl"]);
    let stderr_text = text(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{stderr_text}");
    assert_eq!(
        stderr_text.matches("No such key").count(),
        1,
        "{stderr_text}"
    );
    assert!(
        stderr_text.contains("(no key was sent: OPENAI_API_KEY is not set); no further attempt")
    );
    assert_eq!(
        stderr_text.matches("the reply is empty").count(),
        1,
        "{stderr_text}"
    );
}

#[test]
fn recorded_runs_can_be_listed_shown_replayed_and_compared() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    test_dir.dicta(&["run", "-q"]);
    test_dir.workspace(
        "",
        "  - { id: names, type: regex, params: { pattern: 'day' } }\n",
    );
    let run = test_dir.dicta(&["run", "-q", "--format", "jsonl"]);
    // A header row, then one row per run.
    assert_eq!(text(&test_dir.dicta(&["runs"]).stdout).lines().count(), 3);
    let show_output = test_dir.dicta(&["show", "@", "--format", "jsonl"]);
    assert_eq!(
        text(&show_output.stdout),
        text(&run.stdout),
        "show prints the same lines as run"
    );
    let cell = text(&test_dir.dicta(&["show", "@", "two/r/names"]).stdout);
    assert!(cell.contains("pass"), "{cell}");
    let replay = test_dir.dicta(&["replay", "@", "--print", "--speed", "0"]);
    assert!(text(&replay.stdout).contains("two/r/names"));
    let document = test_dir.dicta(&["compare", "@2", "@", "--format", "json"]);
    let document: Value = serde_json::from_slice(&document.stdout).expect("one document");
    assert_eq!(document["flips"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["flips"][0]["before"]["passed"], true);
    assert_eq!(document["flips"][0]["after"]["passed"], false);
    assert_eq!(document["summary"]["flips"], 2);
    let markdown = text(
        &test_dir
            .dicta(&["compare", "@2", "@", "--format", "md"])
            .stdout,
    );
    assert!(
        markdown.contains("\n| ✓ pass | ✗ fail | `one/r/names` | "),
        "{markdown}"
    );
    let compared = text(&test_dir.dicta(&["compare", "@2", "@"]).stdout);
    assert!(
        compared.contains("flips: 2") && compared.contains("✓ → ✗  one/r/names"),
        "{compared}"
    );
    assert!(
        compared.contains("+  - { id: names") && compared.contains("-  - { id: names"),
        "{compared}"
    );
    let same = text(&test_dir.dicta(&["compare", "@", "@"]).stdout);
    assert!(
        same.contains("0 flips, 0 other changes, 0 new, 0 removed, 2 unchanged"),
        "{same}"
    );
}

#[test]
fn prompt_command_prints_the_request_without_sending_or_key() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "judge: m\njudges:\n  m: { provider: openai, base_url: 'http://127.0.0.1:9/v1', model: m }\n",
        POLITE,
    );
    let prompt = test_dir.dicta(&["prompt", "two/"]);
    assert_eq!(prompt.status.code(), Some(0), "{}", text(&prompt.stderr));
    let body: Value = serde_json::from_slice(&prompt.stdout).expect("the exact body");
    assert!(body["messages"].to_string().contains("Good day"));
    let key = text(&test_dir.dicta(&["prompt", "two/", "--key"]).stdout);
    assert!(key.contains("prompt"), "{key}");
    let other = test_dir.dicta(&["prompt", "two/r/polite~rules"]);
    assert_eq!(other.status.code(), Some(0), "{}", text(&other.stderr));
}

#[test]
fn tool_command_calls_a_tool_like_a_judge() {
    let test_dir = TestDir::new();
    let refused = test_dir.dicta(&[
        "tool",
        "fetch_url",
        r#"{"url": "https://127.0.0.1/"}"#,
        "--format",
        "json",
    ]);
    assert_eq!(refused.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!(report["outcome"], "error");
    assert!(report["hops"][0]["refused"].is_string(), "{report}");
    let unparsable = test_dir.dicta(&[
        "tool",
        "fetch_url",
        "the downloads page",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_slice(&unparsable.stdout).expect("JSON");
    assert_eq!(
        (&report["outcome"], &report["canonical"]),
        (&"rejected".into(), &Value::Null)
    );
    for key in [
        "tool",
        "raw",
        "canonical",
        "repaired",
        "changes",
        "values",
        "outcome",
        "error",
        "text",
        "bytes",
        "truncated",
        "hops",
        "duration_ms",
    ] {
        assert!(report.get(key).is_some(), "{key}");
    }
}
