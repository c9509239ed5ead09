//! Results of promptfoo and evalbench in a workspace: the checks of numbers and calls work on what the files tell.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cli::{TestDir, text};

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("a fixture")
}

/// Every outcome of a run, by `transcript/eval`.
fn outcomes(test_dir: &TestDir) -> BTreeMap<String, String> {
    let run = test_dir.dicta(&["run", "--format", "jsonl"]);
    let out = text(&run.stdout);
    let lines = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let results: Vec<Value> = lines
        .filter(|line: &Value| line["type"] == "result")
        .collect();
    assert!(!results.is_empty(), "{out}\n{}", text(&run.stderr));
    let word = |value: &Value| value.as_str().expect("text").to_owned();
    results
        .iter()
        .map(|r| {
            (
                format!("{}/{}", word(&r["transcript"]), word(&r["eval"])),
                word(&r["outcome"]),
            )
        })
        .collect()
}

#[test]
fn number_checks_work_on_promptfoo_results() {
    let test_dir = TestDir::new();
    test_dir.write("out.json", &fixture("promptfoo/v3.json"));
    test_dir.write(
        "dicta.yaml",
        "transcripts: [out.json]\nrubrics: [r.yaml]\nruns: runs\n",
    );
    test_dir.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: fast, type: latency_budget, params: { max_ms: 1000 } }\n  - { id: cheap, type: cost_budget, params: { max_cost_usd: 0.001 } }\n",
    );
    let outcome_by_cell = outcomes(&test_dir);
    let chat = "eval-abc-2026-11-21T17:35:12:9:1";
    let object = "635c15db-6575-4c34-b20a-1b76ee5ba122";
    for (cell, outcome) in [
        (format!("{chat}/fast"), "fail"),
        (format!("{chat}/cheap"), "fail"),
        (format!("{object}/fast"), "pass"),
        (format!("{object}/cheap"), "fail"),
    ] {
        assert_eq!(
            outcome_by_cell.get(&cell).map(String::as_str),
            Some(outcome),
            "{cell}: {outcome_by_cell:?}"
        );
    }
}

#[test]
fn number_and_call_checks_work_on_evalbench_runs() {
    let test_dir = TestDir::new();
    for name in ["evals.csv", "scores.csv"] {
        test_dir.write(
            &format!("job/{name}"),
            &fixture(&format!("evalbench/run/{name}")),
        );
    }
    test_dir.write(
        "dicta.yaml",
        "transcripts: [job/evals.csv]\nrubrics: [r.yaml]\nruns: runs\n",
    );
    test_dir.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: whole, type: end_to_end_latency, params: { max_ms: 1999 } }\n  - { id: cheap, type: cost_budget, params: { max_cost_usd: 0.05, max_input_tokens: 250 } }\n  - { id: tools, type: no_tool_errors }\n  - { id: tool, type: tool_call_latency, params: { max_ms: 400 } }\n",
    );
    let outcome_by_cell = outcomes(&test_dir);
    for (eval, outcome) in [
        ("whole", "fail"),
        ("cheap", "pass"),
        ("tools", "fail"),
        ("tool", "fail"),
    ] {
        let cell = format!("beam-01/{eval}");
        assert_eq!(
            outcome_by_cell.get(&cell).map(String::as_str),
            Some(outcome),
            "{cell}: {outcome_by_cell:?}"
        );
    }
}
