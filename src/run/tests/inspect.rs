//! Tests of evals that need numbers, on a log that Inspect wrote.

use serde_json::{Value, json};

use crate::handlers::{CompiledEval, EvalTypeRegistry, Subject};
use crate::model::Outcome;
use crate::transcript::TranscriptFile;

const SAMPLE: &str = include_str!("../../../tests/fixtures/inspect/sample.json");

fn decided(kind: &str, params: &Value) -> (Outcome, String) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("log.json");
    let head = r#"{"version":2,"status":"success","eval":{"task":"t","model":"mock/agent"}"#;
    std::fs::write(&path, format!("{head},\"samples\":[{SAMPLE}]}}")).expect("written");
    let mut file = TranscriptFile::open(&path).expect("a log");
    let block = file.next_block().expect("read").expect("a sample");
    let (record, bytes) = block.records().next().expect("a sample");
    let transcript = record.parse(bytes, "x").expect("a transcript");
    match EvalTypeRegistry::builtin().compile(kind, params) {
        Ok(CompiledEval::Check(check)) => {
            let finding = check.check(&Subject::new(&transcript));
            (finding.outcome, finding.explanation)
        }
        other => panic!("{kind} is no check: {other:?}"),
    }
}

#[test]
fn inspect_evals_read_times_tokens_costs_and_tool_errors() {
    for (kind, params, outcome) in [
        ("latency_budget", json!({"max_ms": 4000}), Outcome::Pass),
        ("end_to_end_latency", json!({"max_ms": 3999}), Outcome::Fail),
        ("cost_budget", json!({"max_cost_usd": 0.003}), Outcome::Pass),
        ("cost_budget", json!({"max_cost_usd": 0.002}), Outcome::Fail),
        (
            "token_consumption",
            json!({"max_tokens": 48}),
            Outcome::Pass,
        ),
        (
            "token_consumption",
            json!({"max_input_tokens": 32}),
            Outcome::Fail,
        ),
        ("tool_call_latency", json!({"max_ms": 400}), Outcome::Pass),
        ("tool_call_latency", json!({"max_ms": 399}), Outcome::Fail),
        (
            "no_tool_errors",
            json!({"tools": ["lookup"]}),
            Outcome::Pass,
        ),
        ("no_tool_errors", json!({}), Outcome::Fail),
    ] {
        let found = decided(kind, &params);
        assert_eq!(found.0, outcome, "{kind} {params}: {}", found.1);
    }
}
