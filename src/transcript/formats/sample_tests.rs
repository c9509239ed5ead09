//! Tests of the readers of other tools' files: each sample is read as expected, damage never breaks a reader, and the
//! import of what a reader returns changes nothing.
//!
//! The samples have the shapes of real files, in short. `catalog.rs` names those files.

use std::path::Path;

use serde_json::{Value, json};

use super::testing::{assert_matches_expected, fixture};
use crate::transcript::TranscriptFile;

/// The samples in `tests/fixtures/foreign`.
const SAMPLES: &[&str] = &[
    "adk_evalset.json",
    "adk_result.json",
    "adk_session.json",
    "agent_bench.jsonl",
    "ai_sdk_model.jsonl",
    "ai_sdk_ui.json",
    "aider.md",
    "alpaca.json",
    "autogen.json",
    "autogen_calls.json",
    "azure_eval.json",
    "bedrock.jsonl",
    "bedrock_agent.jsonl",
    "bfcl_result.jsonl",
    "bfcl_score.jsonl",
    "bedrock_invocations.jsonl",
    "braintrust.jsonl",
    "browser_use.json",
    "chatgpt.json",
    "claude_export.json",
    "cline.json",
    "cohere.jsonl",
    "continue.json",
    "copilot.json",
    "copilot_cli.jsonl",
    "cursor.json",
    "cursor_agent.jsonl",
    "deepeval_run.json",
    "deepeval_trace.json",
    "deepseek.json",
    "droid.jsonl",
    "droid_stream.jsonl",
    "gemini_cli.json",
    "gemini_cli.jsonl",
    "gemini_stream.jsonl",
    "gemini_takeout.json",
    "goose.jsonl",
    "goose_export.json",
    "grok.json",
    "helicone.jsonl",
    "helm_state.json",
    "hh_rlhf.jsonl",
    "http_recording.json",
    "jaeger.json",
    "kimi_code.jsonl",
    "kimi_context.jsonl",
    "kimi_wire.jsonl",
    "kiro.json",
    "kiro.jsonl",
    "kiro_ide.json",
    "langchain.json",
    "langchain_dumps.jsonl",
    "langfuse_api.json",
    "langfuse_observations.jsonl",
    "langfuse_trace.json",
    "langsmith.jsonl",
    "librechat.json",
    "litellm.jsonl",
    "lm_eval.jsonl",
    "lm_studio.json",
    "mlflow.jsonl",
    "mt_bench.jsonl",
    "open_webui.json",
    "openai_agents.json",
    "openai_evals_log.jsonl",
    "openai_item_list.jsonl",
    "openai_output_items.json",
    "opencode.json",
    "opencode_run.jsonl",
    "openhands_events.json",
    "openhands_output.jsonl",
    "openhands_sdk.jsonl",
    "pi.jsonl",
    "opik.jsonl",
    "preference.jsonl",
    "promptfoo.csv",
    "promptfoo_status.csv",
    "promptfoo_v1.json",
    "qwen_code.jsonl",
    "ragas.json",
    "sharegpt.json",
    "sharegpt_v1.jsonl",
    "sillytavern.jsonl",
    "smolagents.json",
    "spans_phoenix.jsonl",
    "spans_sdk.json",
    "swe_agent.traj",
    "swe_agent_steps.traj",
    "tau2_bench.json",
    "tau_bench.json",
    "toolbench.json",
    "toolbench_dialogue.json",
    "trulens.json",
    "weave.jsonl",
    "zed.json",
];

/// The samples of formats that have tests of their own, below `tests/fixtures`.
const OLDER_SAMPLES: &[&str] = &[
    "anthropic/mixed.jsonl",
    "arena/geography.recording.json",
    "arena/run.json",
    "arena/session.jsonl",
    "arena/turns.arena-output.json",
    "claude-code/old.jsonl",
    "claude-code/session.jsonl",
    "codex/exec.jsonl",
    "codex/rollout.jsonl",
    "codex/together.jsonl",
    "evalbench/run/evals.csv",
    "evalbench/sql.evalset.json",
    "gemini/batch.jsonl",
    "gemini/history.json",
    "gemini/reply.json",
    "gemini/requests.jsonl",
    "inspect/log.json",
    "livekit/chat_ctx_all.json",
    "livekit/report.json",
    "openai/batch_input.jsonl",
    "openai/batch_output.jsonl",
    "openai/completion.json",
    "openai/in_out.jsonl",
    "openai/items.jsonl",
    "openai/list.json",
    "openai/lists.jsonl",
    "openai/pairs.jsonl",
    "openai/response.json",
    "otlp/agents.jsonl",
    "otlp/official_events_logs.jsonl",
    "otlp/openinference.jsonl",
    "otlp/vercel_ai.jsonl",
    "promptfoo/v2_table.json",
    "promptfoo/v3.json",
];

/// Samples of formats without a file in `tests/fixtures`, by a name and their text.
const MADE_SAMPLES: &[(&str, &str)] = &[
    (
        "atif.json",
        r#"{"schema_version":"ATIF-v1.4","session_id":"s1","agent":{"name":"a","version":"1","model_name":"m"},"steps":[
        {"step_id":1,"source":"user","message":"Where is it?"},
        {"step_id":2,"source":"agent","message":"I look.","tool_calls":[{"tool_call_id":"c1","function_name":"find","arguments":{"id":7}}],
         "observation":{"results":[{"source_call_id":"c1","content":"on its way"}]},"metrics":{"prompt_tokens":5,"completion_tokens":3}},
        {"step_id":3,"source":"agent","message":"On its way."}]}"#,
    ),
    (
        "stream.txt",
        "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"}}]}\n\n\
         data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n\
         data: [DONE]\n",
    ),
];

/// A sample with the name that messages use.
struct Sample {
    name: String,
    path: std::path::PathBuf,
}

/// Returns all samples. Those without a file are written to `folder`.
fn all_samples(folder: &Path) -> Vec<Sample> {
    let older = OLDER_SAMPLES.iter().map(|name| (*name).to_owned());
    let newer = SAMPLES.iter().map(|name| format!("foreign/{name}"));
    let files = newer.chain(older).map(|name| Sample {
        path: fixture(&name),
        name,
    });
    let made = MADE_SAMPLES.iter().map(|(name, text)| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("written");
        Sample {
            name: (*name).to_owned(),
            path,
        }
    });
    files.chain(made).collect()
}

/// The readers with tests of damaged files of their own: archives, databases, tables, which need a map, and the native format, whose
/// records stay as they are.
const TESTED_ELSEWHERE: [&str; 4] = [
    "an Inspect log (.eval)",
    "an SQLite database",
    "a CSV table",
    "native",
];

#[test]
fn every_registered_reader_has_a_sample_that_is_damaged() {
    let dir = tempfile::tempdir().expect("a folder");
    let samples = all_samples(dir.path());
    let covered: std::collections::BTreeSet<&str> = samples
        .iter()
        .map(|sample| read_records(&sample.path).0)
        .collect();
    let missing: Vec<&str> = crate::transcript::readable_formats()
        .into_iter()
        .filter(|name| !covered.contains(name) && !TESTED_ELSEWHERE.contains(name))
        .collect();
    assert!(
        missing.is_empty(),
        "add a sample of {missing:?}; {covered:?}"
    );
}

/// The number of damaged variants of a sample.
const VARIANTS: u64 = 100;

#[test]
fn each_sample_is_read_as_expected() {
    for sample in SAMPLES {
        assert_matches_expected(&format!("foreign/{sample}"));
    }
}

#[test]
fn every_sample_file_is_tested() {
    let folder = std::fs::read_dir(fixture("foreign")).expect("the folder");
    for entry in folder {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        let is_expected = name.ends_with(".expected");
        assert!(is_expected || SAMPLES.contains(&&*name), "{name}");
    }
}

/// Returns the native records of a file, and its format.
pub(super) fn read_records(path: &Path) -> (&'static str, Vec<Vec<u8>>) {
    let mut file = TranscriptFile::open(path).unwrap_or_else(|why| panic!("{why}"));
    let mut all = Vec::new();
    while let Some(block) = file.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            if record.fault.is_none() {
                all.push(bytes.to_vec());
            }
        }
    }
    (file.format(), all)
}

#[test]
fn import_of_a_readers_output_is_the_identity() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("imported.jsonl");
    for Sample {
        name: sample,
        path: origin,
    } in all_samples(dir.path())
    {
        let (_, records) = read_records(&origin);
        assert!(!records.is_empty(), "{sample} has transcripts");
        std::fs::write(&path, records.join(&b'\n')).expect("written");
        let (format, again) = read_records(&path);
        assert_eq!(format, "native", "{sample}");
        for (before, after) in records.iter().zip(&again) {
            assert_eq!(
                String::from_utf8_lossy(before),
                String::from_utf8_lossy(after),
                "{sample}"
            );
            let parsed = crate::transcript::parse_native(after, 1, "").expect("native");
            let written = crate::transcript::to_native(&parsed);
            assert_eq!(
                String::from_utf8_lossy(&written),
                String::from_utf8_lossy(before),
                "{sample}"
            );
        }
        assert_eq!(records.len(), again.len(), "{sample}");
    }
}

#[test]
fn elements_of_a_list_count_as_records_and_the_object_around_it_does_not() {
    for (sample, records) in [
        ("adk_session.json", 6),
        ("autogen.json", 5),
        // Each of the two model calls has messages and a reply.
        ("autogen_calls.json", 5),
        ("copilot.json", 2),
        ("cursor.json", 5),
        ("gemini_cli.json", 3),
        ("jaeger.json", 1),
        ("kiro.json", 2),
        ("opencode.json", 2),
        ("openhands_events.json", 7),
        // A pair of an action and its observation.
        ("openhands_output.jsonl", 2),
        ("swe_agent.traj", 5),
        ("swe_agent_steps.traj", 2),
    ] {
        let path = fixture(&format!("foreign/{sample}"));
        let mut file = TranscriptFile::open(&path).expect("a known format");
        while file.next_block().expect("a block").is_some() {}
        assert_eq!(file.tally().expect("a tally").records, records, "{sample}");
    }
}

/// A source of numbers that are the same in every run.
pub(super) struct Numbers(u64);

impl Numbers {
    /// Returns the numbers of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Values that a reader does not expect.
fn hostile_value(numbers: &mut Numbers) -> Value {
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(18_446_744_073_709_551_615_u64),
        json!(""),
        json!("\u{0}\u{202e}\u{1b}[2J"),
        json!("[{\"role\":"),
        json!("x".repeat(5000)),
        json!([]),
        json!({}),
        json!([null]),
        json!([[[]]]),
        json!({"role": 3, "type": [], "content": {"a": 1}}),
        json!([{"role": "user", "content": [{"type": "text"}]}]),
        deep,
    ];
    let at = numbers.below(values.len());
    values[at].clone()
}

/// Replaces or removes one value of a tree.
fn damage_value(value: &mut Value, numbers: &mut Numbers) {
    let is_leaf = match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => true,
    };
    if is_leaf || numbers.below(6) == 0 {
        *value = hostile_value(numbers);
        return;
    }
    match value {
        Value::Array(items) => {
            let at = numbers.below(items.len());
            match numbers.below(8) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => damage_value(&mut items[at], numbers),
            }
        }
        Value::Object(fields) => {
            let at = numbers.below(fields.len());
            let key = fields.keys().nth(at).expect("a key").clone();
            match numbers.below(8) {
                0 => drop(fields.remove(&key)),
                _ => damage_value(&mut fields[&key], numbers),
            }
        }
        _ => {}
    }
}

/// Returns a damaged sample: a value of another type, a cut, a changed byte, or a repeated piece.
pub(super) fn damage(original: &str, numbers: &mut Numbers) -> Vec<u8> {
    let is_lines =
        original.lines().count() > 1 && original.lines().all(|line| line.starts_with('{'));
    if numbers.below(4) > 0 {
        let mut lines: Vec<String> = if is_lines {
            original.lines().map(str::to_owned).collect()
        } else {
            vec![original.to_owned()]
        };
        let at = numbers.below(lines.len());
        if let Ok(mut value) = serde_json::from_str::<Value>(&lines[at]) {
            damage_value(&mut value, numbers);
            lines[at] = value.to_string();
        }
        return lines.join("\n").into_bytes();
    }
    let original = original.as_bytes();
    let cut = numbers.below(original.len());
    match numbers.below(3) {
        0 => original[..cut].to_vec(),
        1 => {
            let mut bytes = original.to_vec();
            bytes[cut] = u8::try_from(numbers.below(256)).expect("below 256");
            bytes
        }
        _ => {
            let from = numbers.below(cut + 1);
            [&original[..cut], &original[from..]].concat()
        }
    }
}

fn assert_survives_variants(samples: &[Sample]) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("odd.json");
    for (number, Sample { name, path: origin }) in samples.iter().enumerate() {
        let original = std::fs::read_to_string(origin).expect("a sample");
        let (format, _) = read_records(origin);
        let mut numbers = Numbers(number as u64 + 1);
        for variant in 0..VARIANTS {
            std::fs::write(&path, damage(&original, &mut numbers)).expect("written");
            // Damage may hide the format from the detection, but not from its reader.
            let opened = match variant % 2 {
                0 => TranscriptFile::open(&path),
                _ => TranscriptFile::open_as(&path, format),
            };
            if let Ok(mut file) = opened {
                while let Ok(Some(block)) = file.next_block() {
                    for (record, bytes) in block.records() {
                        if file.format() == "native" || record.fault.is_some() {
                            continue;
                        }
                        let parsed = record.parse(bytes, "t");
                        parsed.unwrap_or_else(|bad| panic!("{name} {variant}: {}", bad.why));
                        let again = file.read_native(record.span).expect("found again");
                        assert_eq!(again, bytes, "{name} {variant}");
                    }
                }
            }
        }
    }
}

/// The number of tests that share the samples, so that each test is short.
const PARTS: usize = 10;

/// Reads the variants of a part of the samples.
fn assert_part_survives(part: usize) {
    let dir = tempfile::tempdir().expect("a folder");
    let samples = all_samples(dir.path());
    let size = samples.len().div_ceil(PARTS);
    assert_survives_variants(samples.chunks(size).nth(part).expect("a part"));
}

#[test]
fn hostile_variants_of_part_0_break_no_reader() {
    assert_part_survives(0);
}

#[test]
fn hostile_variants_of_part_1_break_no_reader() {
    assert_part_survives(1);
}

#[test]
fn hostile_variants_of_part_2_break_no_reader() {
    assert_part_survives(2);
}

#[test]
fn hostile_variants_of_part_3_break_no_reader() {
    assert_part_survives(3);
}

#[test]
fn hostile_variants_of_part_4_break_no_reader() {
    assert_part_survives(4);
}

#[test]
fn hostile_variants_of_part_5_break_no_reader() {
    assert_part_survives(5);
}

#[test]
fn hostile_variants_of_part_6_break_no_reader() {
    assert_part_survives(6);
}

#[test]
fn hostile_variants_of_part_7_break_no_reader() {
    assert_part_survives(7);
}

#[test]
fn hostile_variants_of_part_8_break_no_reader() {
    assert_part_survives(8);
}

#[test]
fn hostile_variants_of_part_9_break_no_reader() {
    assert_part_survives(9);
}

#[test]
fn records_of_one_trace_are_found_anywhere_in_a_file() {
    let line = |trace: usize, span: usize| {
        json!({
            "id": format!("o{span}"), "trace_id": format!("t{trace}"), "type": "GENERATION", "name": "chat",
            "project_id": "p", "start_time": format!("2025-01-01 00:00:0{span}.000000"),
            "input": [{"role": "user", "content": format!("question {trace} {span}")}], "output": "x".repeat(2000),
        })
        .to_string()
    };
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("observations.jsonl");
    // The spans of a trace are far apart: first all first spans, then all second ones.
    let lines: Vec<String> = (1..3)
        .flat_map(|span| (0..600).map(move |trace| line(trace, span)))
        .collect();
    std::fs::write(&path, lines.join("\n")).expect("written");
    let mut file = TranscriptFile::open(&path).expect("observations");
    let (mut blocks, mut ids) = (0, std::collections::BTreeSet::new());
    while let Some(block) = file.next_block().expect("a block") {
        blocks += 1;
        for (record, bytes) in block.records() {
            let transcript = record.parse(bytes, "none").expect("a transcript");
            ids.insert(transcript.id.to_string());
        }
        assert!(block.bytes.len() < 3 * 1024 * 1024, "a block is small");
    }
    // Two unrelated questions of a trace are its transcript and a branch.
    assert_eq!(ids.len(), 1200);
    assert!(blocks > 1, "the file is read in parts");
}
