//! Deterministic evals on files that other tools wrote: the numbers that a source has are found where evals look.

use crate::cli::{TestDir, of_type, rows, text};

const EVALS: &str = "id: r
evals:
  - {id: latency, type: latency_budget, params: {max_ms: 5000}}
  - {id: whole, type: end_to_end_latency, params: {max_ms: 5000}}
  - {id: tokens, type: token_consumption, params: {max_tokens: 20000}}
  - {id: cost, type: cost_budget, params: {max_cost_usd: 0.05}}
  - {id: tool, type: tool_call_latency, params: {max_ms: 1000}}
  - {id: errors, type: no_tool_errors}
";

/// Outcomes by the evals' order, of one transcript of a fixture.
fn outcomes(fixture: &str, transcript: &str) -> Vec<String> {
    let test_dir = TestDir::new();
    let fixture = format!("{}/tests/fixtures/{fixture}", env!("CARGO_MANIFEST_DIR"));
    test_dir.write(
        "dicta.yaml",
        &format!("transcripts: ['{fixture}']\nrubrics: [r.yaml]\nruns: runs\n"),
    );
    test_dir.write("r.yaml", EVALS);
    let run = test_dir.dicta(&["run", "--format", "jsonl"]);
    let rows = rows(&run);
    let results = of_type(&rows, "result");
    let matching = |eval: &str| {
        let mut matching = results
            .iter()
            .filter(|r| r["transcript"] == transcript && r["eval"] == eval);
        matching.next().map_or_else(
            || panic!("no {eval} of {transcript}: {}", text(&run.stderr)),
            |row| row["outcome"].as_str().unwrap_or("-").to_owned(),
        )
    };
    ["latency", "whole", "tokens", "cost", "tool", "errors"]
        .map(matching)
        .into()
}

#[test]
fn codex_session_keeps_times_tokens_and_failures() {
    let found = outcomes("codex/rollout.jsonl", "s-1");
    assert_eq!(
        found,
        ["pass", "pass", "pass", "check_error", "pass", "fail"],
        "it knows no cost"
    );
}

#[test]
fn request_log_keeps_replies_and_its_own_keys() {
    let found = outcomes("openai/pairs.jsonl", "a");
    assert_eq!(found[..4], ["pass", "pass", "pass", "pass"]);
    assert_eq!(
        found[4..],
        ["check_error", "check_error"],
        "no tool is timed in it"
    );
}

#[test]
fn gemini_reply_keeps_its_token_counts() {
    let found = outcomes("gemini/reply.json", "r1");
    assert_eq!(
        found,
        [
            "check_error",
            "check_error",
            "pass",
            "check_error",
            // The reply calls no tool, so there is no call to check.
            "not_applicable",
            "not_applicable"
        ]
    );
}
