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

/// Adds `additionalProperties: false` to every mapping with known keys, so that a new key needs a line in the schema.
fn refuse_other_keys(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") {
                members
                    .entry("additionalProperties")
                    .or_insert(Value::Bool(false));
            }
            members.values_mut().for_each(refuse_other_keys);
        }
        Value::Array(items) => items.iter_mut().for_each(refuse_other_keys),
        _ => {}
    }
}

/// The schema of each kind of line, by its `type`.
fn line_schemas(test_dir: &TestDir) -> BTreeMap<String, dicta::schema::CompiledSchema> {
    let printed = test_dir.dicta(&["schema", "result"]);
    let mut schema: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    refuse_other_keys(&mut schema);
    let lines = schema["oneOf"].as_array().expect("kinds of lines").clone();
    let compile = |mut line: Value| {
        let name = line["properties"]["type"]["const"].as_str();
        let name = name.expect("a name").to_owned();
        line["$defs"] = schema["$defs"].clone();
        let compiled = dicta::schema::CompiledSchema::compile(&line).expect("a schema");
        (name, compiled)
    };
    lines.into_iter().map(compile).collect()
}

#[test]
fn json_lines_of_the_demo_and_of_a_jury_satisfy_the_printed_schema() {
    let test_dir = TestDir::new();
    let schemas = line_schemas(&test_dir);
    let demo = test_dir.dicta(&["run", "--demo", "--refresh", "--format", "jsonl"]);
    test_dir.workspace(
        "judge: rules\njudges:\n  other: { provider: rules }\n",
        "  - { id: a, type: llm_judge, jury: { judges: [rules, other] }, params: { criteria: The answer contains a number } }\n",
    );
    let jury = test_dir.dicta(&["run", "--format", "jsonl"]);
    let mut kinds = std::collections::BTreeSet::new();
    for line in text(&demo.stdout).lines().chain(text(&jury.stdout).lines()) {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let kind = value["type"].as_str().expect("a kind").to_owned();
        let schema = schemas.get(&kind).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(schema.errors(&value), [], "{line}");
        kinds.insert(kind);
    }
    let all: Vec<&String> = schemas.keys().collect();
    assert_eq!(kinds.iter().collect::<Vec<_>>(), all, "each kind occurs");
}
