//! Evals over files that other tools saved: the numbers that their sources have are there.

use serde_json::Value;

use crate::cli::{TestDir, of_type, rows};

const EVALS: &str = "id: r
evals:
  - { id: latency, type: latency_budget, params: { max_ms: 60000 } }
  - { id: whole, type: end_to_end_latency, params: { max_ms: 60000 } }
  - { id: cost, type: cost_budget, params: { max_cost_usd: 1 } }
  - { id: tokens, type: token_consumption, params: { max_tokens: 1000000 } }
  - { id: tools, type: tool_call_latency, params: { max_ms: 60000 } }
  - { id: errors, type: no_tool_errors }
";

/// The outcomes of the evals on a fixture, in the order of [`EVALS`]: pass (`p`), fail (`f`) or error (`e`).
fn outcomes(fixture: &str) -> String {
    let test_dir = TestDir::new();
    let from = format!("{}/tests/fixtures/{fixture}", env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(from, test_dir.path().join("saved.json")).expect("a fixture");
    test_dir.write(
        "dicta.yaml",
        "transcripts: [saved.json]\nrubrics: [r.yaml]\nruns: runs\n",
    );
    test_dir.write("r.yaml", EVALS);
    let output = test_dir.dicta(&["run", "--format", "jsonl"]);
    let rows = rows(&output);
    let results = of_type(&rows, "result");
    let cell = |row: &Value| row["cell"].as_str().unwrap_or_default().to_owned();
    let first = results.first().map(|row| cell(row));
    let first = first.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let transcript = first.strip_suffix("latency").expect("the first eval");
    let own = results
        .iter()
        .filter(|row| cell(row).starts_with(transcript));
    own.map(|row| match row["passed"].as_bool() {
        Some(true) => 'p',
        Some(false) => 'f',
        None => 'e',
    })
    .collect()
}

#[test]
fn import_keeps_numbers_exactly() {
    assert_eq!(outcomes("otlp/agents.jsonl"), "pppppf");
    assert_eq!(outcomes("arena/run.json"), "pppppf");
    // Nothing says what a call cost.
    assert_eq!(outcomes("otlp/vercel_ai.jsonl"), "ppeppp");
}
