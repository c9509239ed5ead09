//! Money and time through the built program: limits, going on after them, statistics, previews.

use serde_json::Value;

use crate::cli::{PASSES, POLITE, TestDir, judged_by, of_type, rows, text};
use crate::support::wire::{Reply, WireServer};

const PRICED: &str = "model: m, prices: { input: 1, output: 10 } }";

fn outcomes(rows: &[Value]) -> Vec<&Value> {
    of_type(rows, "result")
        .iter()
        .map(|r| &r["outcome"])
        .collect()
}

#[test]
fn call_limit_leaves_cells_pending_and_resume_judges_them() {
    let test_dir = TestDir::new();
    let server = WireServer::openai(vec![Reply::text(PASSES), Reply::text(PASSES)]);
    let judged = judged_by(&server);
    test_dir.workspace(&format!("{judged}limits: {{ max_calls: 1 }}\n"), POLITE);
    let run = test_dir.dicta(&["run", "-q", "-j", "1", "--format", "jsonl"]);
    assert_eq!(run.status.code(), Some(3), "{}", text(&run.stderr));
    let result_rows = rows(&run);
    assert_eq!(outcomes(&result_rows), ["pass"]);
    let summary = result_rows.last().expect("a summary");
    assert_eq!(summary["pending"], 1);
    assert_eq!(summary["interrupted"], false);
    assert_eq!(summary["budgets"][0]["limit"], "calls");
    assert_eq!(summary["budgets"][0]["max"], 1.0);
    let show_output = text(&test_dir.dicta(&["show", "@"]).stdout);
    assert!(
        show_output
            .contains("stopped by the budget: max_calls: 1 call of 1 call taken; 1 cell not run"),
        "{show_output}"
    );
    assert!(show_output.contains("dicta run --resume"), "{show_output}");

    test_dir.workspace(&judged, POLITE);
    let resumed = test_dir.dicta(&["run", "-q", "--resume", "@", "--format", "jsonl"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    let result_rows = rows(&resumed);
    assert_eq!(outcomes(&result_rows), ["pass", "pass"]);
    let cached: Vec<&Value> = of_type(&result_rows, "result")
        .iter()
        .map(|r| &r["cached"])
        .collect();
    assert_eq!(cached, [&Value::from(true), &Value::from(false)]);
    assert_eq!(
        server.requests().len(),
        2,
        "what was judged is not asked again"
    );
    assert!(text(&test_dir.dicta(&["runs"]).stdout).contains("resume of"));
}

#[test]
fn resume_judges_only_errors_again() {
    let test_dir = TestDir::new();
    let server = WireServer::openai(vec![
        Reply::text("no verdict at all"),
        Reply::text(PASSES),
        Reply::text(PASSES),
    ]);
    test_dir.workspace(&judged_by(&server), POLITE);
    let run = test_dir.dicta(&["run", "-q", "-j", "1", "--format", "jsonl"]);
    assert_eq!(outcomes(&rows(&run)), ["unparsed", "pass"]);
    let resumed = test_dir.dicta(&["run", "-q", "--resume", "@", "--format", "jsonl"]);
    let result_rows = rows(&resumed);
    assert_eq!(
        outcomes(&result_rows),
        ["pass", "pass"],
        "{}",
        text(&resumed.stderr)
    );
    let cached: Vec<&Value> = of_type(&result_rows, "result")
        .iter()
        .map(|r| &r["cached"])
        .collect();
    assert_eq!(cached, [&Value::from(false), &Value::from(true)]);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn strict_fails_on_a_verdict_that_contradicts_itself() {
    let test_dir = TestDir::new();
    let flagged = r#"{"citations": [], "reasoning": "It is rude. Therefore it fails.", "passed": true, "score": 1}"#;
    let replies = vec![Reply::text(flagged), Reply::text(PASSES)];
    let server = WireServer::openai(replies);
    test_dir.workspace(&judged_by(&server), POLITE);
    let run = test_dir.dicta(&["run", "-q", "-j", "1", "--format", "jsonl"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let lines = rows(&run);
    assert_eq!(lines.last().expect("a summary")["flagged"], 1);
    let strict = test_dir.dicta(&["run", "--strict"]);
    assert_eq!(strict.status.code(), Some(1), "{}", text(&strict.stderr));
    let report = text(&strict.stdout);
    assert!(report.contains("1 verdict flagged"), "{report}");
}

#[test]
fn cost_limit_holds_and_is_refused_without_known_prices() {
    let test_dir = TestDir::new();
    let server = WireServer::openai(vec![Reply::text(PASSES), Reply::text(PASSES)]);
    let priced = judged_by(&server).replace("model: m }", PRICED);
    test_dir.workspace(&priced, POLITE);
    let run = test_dir.dicta(&[
        "run",
        "-q",
        "-j",
        "1",
        "--max-cost",
        "0",
        "--format",
        "jsonl",
    ]);
    let summary = rows(&run).pop().expect("a summary");
    assert_eq!(summary["pending"], 2);
    assert_eq!(server.requests().len(), 0, "nothing was sent");

    let unpriced = "judge: m\njudges:\n  m: { provider: openai, base_url: 'https://models.example/v1', model: big }\n";
    test_dir.workspace(unpriced, POLITE);
    test_dir.trust();
    let mut refused = test_dir.command(&["run", "-q", "--max-cost", "2"]);
    let refused = refused.env("OPENAI_API_KEY", "k").output().expect("runs");
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(
        why.contains("judge `m`")
            && why.contains("price of big is not known")
            && why.contains("add `prices:"),
        "{why}"
    );
}

#[test]
fn cell_limit_ends_only_its_cell() {
    let test_dir = TestDir::new();
    let look = serde_json::json!({"url": "https://elsewhere.example/"});
    let verdict: Value = serde_json::from_str(PASSES).expect("JSON");
    // Of two calls the second is for the verdict; who calls a tool again then ends in `budget`.
    let server = WireServer::openai(vec![
        Reply::call("fetch_url", look.clone()),
        Reply::call("fetch_url", look.clone()),
        Reply::call("fetch_url", look),
        Reply::call("submit_verdict", verdict),
    ]);
    let judged = judged_by(&server).replace("model: m }", "model: m, tools: [fetch_url] }");
    test_dir.workspace(
        &format!("{judged}limits: {{ cell: {{ max_calls: 2 }} }}\n"),
        POLITE,
    );
    let run = test_dir.dicta(&["run", "-j", "1", "--stream", "--format", "jsonl"]);
    let result_rows = rows(&run);
    assert_eq!(
        outcomes(&result_rows),
        ["budget", "pass"],
        "{}",
        text(&run.stderr)
    );
    assert!(text(&run.stderr).contains("asked to conclude"));
    let tool = of_type(&result_rows, "tool");
    assert_eq!(tool[0]["tool"], "fetch_url");
    assert_eq!(tool[0]["calls"], 3);
}

#[test]
fn run_summary_and_show_report_the_same_statistics() {
    let test_dir = TestDir::new();
    let server = WireServer::openai(vec![Reply::text(PASSES), Reply::text("nothing")]);
    let priced = judged_by(&server).replace("model: m }", PRICED);
    test_dir.workspace(&priced, POLITE);
    let run = test_dir.dicta(&["run", "-q", "--yes", "-j", "1", "--format", "jsonl"]);
    let show_output = test_dir.dicta(&["show", "@", "--format", "jsonl"]);
    let (ran, show_output) = (rows(&run), rows(&show_output));
    assert_eq!(of_type(&ran, "judge"), of_type(&show_output, "judge"));
    let judge = of_type(&ran, "judge")[0];
    assert_eq!(
        (&judge["judge"], &judge["model"]),
        (&"m".into(), &"m".into())
    );
    for (key, value) in [
        ("cells", 2),
        ("calls", 2),
        ("failed", 0),
        ("rejected", 1),
        ("errors", 1),
        ("cached", 0),
    ] {
        assert_eq!(judge[key], value, "{key}: {judge}");
    }
    assert!(judge["p50_ms"].is_u64() && judge["p95_ms"].is_u64());
    let results = of_type(&ran, "result");
    let cost: f64 = results.iter().filter_map(|r| r["cost_usd"].as_f64()).sum();
    assert!(cost > 0.0);
    assert!((judge["cost_usd"].as_f64().expect("known") - cost).abs() < 1e-9);
    let human = text(&test_dir.dicta(&["show", "@"]).stdout);
    assert!(
        human.contains("judge m (m): 2 cells, 0 cached, 1 error · 2 calls (0 failed)"),
        "{human}"
    );

    // A preview rests on what was seen.
    let plan = text(&test_dir.dicta(&["run", "--dry-run", "--refresh"]).stdout);
    assert!(plan.contains("from 2 past cells"), "{plan}");
    let fresh = text(
        &test_dir
            .dicta(&["run", "--dry-run", "--refresh", "--judge", "m"])
            .stdout,
    );
    assert!(fresh.contains("about $0."), "{fresh}");
}
