//! Tests of the ratings in other tools' files: verdicts of sources, and labels of people.

use serde_json::{Value, json};

use super::sample_tests::read_records;
use super::testing::fixture;
use crate::transcript::TranscriptFile;

/// Returns the labels in a sample: transcript, eval, pass, person.
fn read_labels(sample: &str) -> Vec<(String, String, Option<bool>, Option<String>)> {
    let mut file = TranscriptFile::open(&fixture("foreign").join(sample)).expect("a sample");
    let mut labels = Vec::new();
    while let Some(block) = file.next_block().expect("a block") {
        for (record, _) in block.records() {
            let all = record.labels.iter().cloned();
            labels.extend(all.map(|label| (label.transcript, label.eval, label.passed, label.by)));
        }
    }
    labels
}

#[test]
fn ratings_of_people_are_labels() {
    let label = |transcript: &str, eval: &str, passed, by: Option<&str>| {
        vec![(
            transcript.to_owned(),
            eval.to_owned(),
            passed,
            by.map(str::to_owned),
        )]
    };
    for (sample, expected) in [
        (
            "langfuse_trace.json",
            label("t-1", "correct", Some(true), Some("bob")),
        ),
        (
            "langsmith.jsonl",
            label("r1", "correctness", Some(true), Some("ann")),
        ),
        ("copilot.json", label("", "vote", Some(true), None)),
        ("helicone.jsonl", label("q-1", "feedback", Some(true), None)),
        (
            "mlflow.jsonl",
            label("tr-1", "correct", Some(true), Some("ann")),
        ),
        ("librechat.json", label("c-1", "rating", Some(false), None)),
        ("open_webui.json", label("c-1", "rating", Some(true), None)),
        (
            "opik.jsonl",
            label("0198a", "correctness", Some(true), Some("ann")),
        ),
        (
            "spans_phoenix.jsonl",
            label("p1", "quality", Some(true), None),
        ),
        (
            "weave.jsonl",
            label("t1", "correct", Some(true), Some("ann")),
        ),
    ] {
        assert_eq!(read_labels(sample), expected, "{sample}");
    }
}

#[test]
fn answers_of_mt_bench_get_their_questions_and_judgments() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        path
    };
    let answers = folder("model_answer").join("gpt-4.jsonl");
    std::fs::copy(fixture("foreign/mt_bench.jsonl"), &answers).expect("the answers");
    let question =
        json!({"question_id": 81, "category": "writing", "turns": ["Write.", "Rewrite."]});
    std::fs::write(dir.path().join("question.jsonl"), question.to_string()).expect("written");
    let judgment = json!({
        "question_id": 81, "model": "gpt-4", "judge": ["gpt-4", "single-v1"], "turn": 2, "score": 7,
        "judgment": "Good. Rating: [[7]]",
    });
    let judgments = folder("model_judgment").join("gpt-4_single.jsonl");
    std::fs::write(&judgments, judgment.to_string()).expect("written");
    let (_, records) = read_records(&answers);
    let record: Value = serde_json::from_slice(&records[0]).expect("JSON");
    let roles = record["messages"].as_array().expect("messages").iter();
    let texts: Vec<_> = roles
        .map(|message| message["content"].as_str().expect("a text"))
        .collect();
    assert_eq!(
        texts,
        ["Write.", "Hawaii is great.", "Rewrite.", "A great Hawaii."]
    );
    assert_eq!(
        record["verdicts"],
        json!([{"judge": "gpt-4", "eval": "turn 2", "value": 7, "reasoning": "Good. Rating: [[7]]"}])
    );
    let refused = TranscriptFile::open(&judgments).expect_err("they are no transcripts");
    assert!(
        refused.to_string().contains("open the answers"),
        "{refused}"
    );
}

#[test]
fn scores_on_other_scales_stay_in_the_values_of_verdicts() {
    let dir = tempfile::tempdir().expect("a folder");
    for (sample, from, to, value) in [
        (
            "otlp/agents.jsonl",
            r#"{"doubleValue": 0.5}"#,
            r#"{"doubleValue": 4.5}"#,
            json!({"label": "pass", "score": 4.5}),
        ),
        (
            "foreign/spans_phoenix.jsonl",
            r#""label": "correct", "score": 1.0"#,
            r#""label": "correct", "score": -1.5"#,
            json!({"label": "correct", "score": -1.5}),
        ),
        (
            "foreign/promptfoo.csv",
            "[PASS] (1.00)",
            "[PASS] (2.50)",
            json!(2.5),
        ),
    ] {
        let text = std::fs::read_to_string(fixture(sample)).expect("a sample");
        assert!(text.contains(from), "{sample}");
        let path = dir.path().join(sample.replace('/', "-"));
        std::fs::write(&path, text.replace(from, to)).expect("written");
        let (_, all, _) = super::testing::read(&path);
        let first = all[0].as_ref().expect("a transcript");
        let verdict = &first.verdicts[0];
        assert_eq!(verdict.score, None, "{sample}");
        let kept = verdict.value.as_ref().expect("a value").get();
        let kept: Value = serde_json::from_str(kept).expect("JSON");
        assert_eq!(kept, value, "{sample}");
    }
}

#[test]
fn rating_of_phoenix_on_another_scale_is_a_label_and_a_verdict() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("spans.jsonl");
    let text = std::fs::read_to_string(fixture("foreign/spans_phoenix.jsonl")).expect("a sample");
    let from = r#""label": "good", "score": 1}"#;
    assert!(text.contains(from));
    let text = text.replace(from, r#""label": "good", "score": 5}"#);
    std::fs::write(&path, text).expect("written");
    let mut file = TranscriptFile::open(&path).expect("a known format");
    let block = file.next_block().expect("a block").expect("transcripts");
    let (record, bytes) = block.records().next().expect("a transcript");
    let labels: Vec<_> = record
        .labels
        .iter()
        .map(|label| (&*label.eval, label.passed, label.score))
        .collect();
    assert_eq!(labels, [("quality", Some(true), None)]);
    let native: Value = serde_json::from_slice(bytes).expect("JSON");
    assert_eq!(
        native["verdicts"][1],
        json!({"judge": "phoenix", "eval": "quality", "value": {"label": "good", "score": 5.0}})
    );
}

#[test]
fn statistics_of_helm_are_verdicts() {
    let dir = tempfile::tempdir().expect("a folder");
    let scenario = dir.path().join("scenario_state.json");
    std::fs::copy(fixture("foreign/helm_state.json"), &scenario).expect("the state");
    let stats = json!([{"instance_id": "id1", "train_trial_index": 0, "stats": [
        {"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": 1.0},
        {"name": {"name": "num_prompt_tokens"}, "count": 1, "mean": 9.0},
    ]}]);
    std::fs::write(
        dir.path().join("per_instance_stats.json"),
        stats.to_string(),
    )
    .expect("written");
    let (_, records) = read_records(&scenario);
    let record: Value = serde_json::from_slice(&records[0]).expect("JSON");
    assert_eq!(
        record["verdicts"],
        json!([{"judge": "helm", "eval": "exact_match", "score": 1.0, "value": 1.0}])
    );
}
