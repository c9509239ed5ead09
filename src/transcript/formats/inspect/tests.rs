//! Valid logs as Inspect writes them, and broken ones.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::{Transcript, TranscriptPart};
use crate::transcript::{MAX_RECORD, TranscriptFile};

mod hostile;
mod layouts;
mod packed;

use packed::{Method, Zip};

const SAMPLE: &str = include_str!("../../../../tests/fixtures/inspect/sample.json");
const OLD: &str = include_str!("../../../../tests/fixtures/inspect/old_sample.json");
const LOG: &str = include_str!("../../../../tests/fixtures/inspect/log.json");
const HEADER: &str = r#"{"version":2,"status":"success","eval":{"task":"sums","model":"mock/agent","tags":["t"],"config":{"epochs":2}}}"#;

fn written(name: &str, bytes: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).expect("written");
    (dir, path)
}

/// Reads every sample twice: in its block and by its location.
fn all(path: &Path) -> Vec<Result<Transcript<'static>, String>> {
    let mut file = TranscriptFile::open(path).expect("a log");
    let mut all = Vec::new();
    while let Some(block) = file.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            if record.fault.is_none() {
                assert_eq!(file.read_native(record.span).expect("read again"), bytes);
                assert!(!file.read_raw(record.span).expect("raw").is_empty());
                assert!(!bytes.contains(&b'\n'), "a line is a line");
            } else {
                assert!(file.read_native(record.span).is_err());
            }
            let read = record.parse(bytes, "default");
            all.push(read.map(Transcript::into_owned).map_err(|bad| bad.why));
        }
    }
    all
}

fn only(path: &Path) -> Transcript<'static> {
    let mut all = all(path);
    assert_eq!(all.len(), 1);
    all.remove(0).expect("a transcript")
}

fn metadata(of: Option<&crate::model::JsonText<'_>>) -> Value {
    of.map(crate::model::JsonText::parse_value)
        .unwrap_or_default()
}

fn refusal(name: &str, bytes: impl AsRef<[u8]>) -> String {
    let (_dir, path) = written(name, bytes);
    TranscriptFile::open(&path)
        .expect_err("refused")
        .to_string()
}

/// A log with one sample.
fn log_of(sample: &str) -> Vec<u8> {
    Zip::default()
        .add("_journal/start.json", "{}", Method::Stored)
        .add("samples/refund-03_epoch_2.json", sample, Method::Deflate)
        .add("header.json", HEADER, Method::Stored)
        .finish()
}

#[test]
fn a_sample_is_a_transcript_with_all_that_its_log_knows() {
    let (_dir, path) = written("a.eval", log_of(SAMPLE));
    let read = only(&path);
    assert_eq!((&*read.id, &*read.tags[0]), ("refund-03_epoch_2", "t"));
    let meta = metadata(read.metadata.as_ref());
    for (key, wanted) in [
        ("source", r#""inspect""#),
        ("task", r#""sums""#),
        ("model", r#""mock/agent""#),
        ("sample_id", r#""refund-03""#),
        ("epoch", "2"),
        ("target", r#""by Friday""#),
        ("choices", r#"["a","b"]"#),
        ("input", r#""Where is my refund?""#),
        ("latency_ms", "4000.0"),
        ("timestamp", r#""2026-11-21T17:00:00+00:00""#),
        // The grader's tokens are not the agent's.
        ("usage", r#"{"input":33,"output":15,"total":48,"cached":3}"#),
        ("cost_usd", "0.003"),
        ("group", r#""refunds""#),
        ("cap", "null"),
        ("store", r#"{"note":"kept"}"#),
        ("limit", r#"{"type":"token","limit":100}"#),
        ("original", r#"{"model":"mine"}"#),
        ("non_finite_numbers", "2"),
        ("error", "null"),
    ] {
        assert_eq!(meta[key].to_string(), wanted, "{key}");
    }
    let verdicts: Vec<_> = read
        .verdicts
        .iter()
        .map(|v| (&*v.judge, &*v.eval, v.passed, v.score))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("inspect", "match", Some(true), Some(1.0)),
            ("inspect", "tone/polite", None, Some(1.0)),
            ("inspect", "tone/length", None, None),
            ("inspect", "graded", None, None),
        ]
    );
    assert_eq!(
        read.verdicts[0].reasoning.as_deref(),
        Some("It says Friday.")
    );
    assert_eq!(
        read.verdicts[3].error.as_deref(),
        Some("not scored: grader_failed")
    );
}

#[test]
fn messages_have_their_parts_times_tokens_and_errors() {
    let (_dir, path) = written("a.eval", log_of(SAMPLE));
    let read = only(&path);
    let roles: Vec<_> = read
        .messages
        .iter()
        .map(|m| m.role.as_str().to_owned())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "tool", "assistant"]
    );
    let TranscriptPart::Media { kind, raw } = &read.messages[1].parts[1] else {
        panic!("{:?}", read.messages[1])
    };
    assert_eq!(&**kind, "image");
    assert_eq!(raw.parse_value()["image"], "data:image/png;base64,AAAA");

    let asked = &read.messages[2];
    assert!(matches!(&asked.parts[0], TranscriptPart::Reasoning(text) if &**text == "Look it up."));
    assert!(matches!(&asked.parts[1], TranscriptPart::Other(raw) if !raw.get().contains("gAAAA")));
    let TranscriptPart::ToolCall(call) = &asked.parts[3] else {
        panic!("{asked:?}")
    };
    assert_eq!((&*call.id, &*call.name), ("c1", "lookup"));
    assert_eq!(
        &*call.arguments,
        r#"{"order":12345678901234567890,"deep":{"a":[1.50]}}"#
    );
    let meta = metadata(asked.metadata.as_ref());
    assert_eq!(meta["latency_ms"], 250.0);
    assert_eq!(
        meta["usage"].to_string(),
        r#"{"input":13,"output":5,"total":18,"cached":3,"thinking":2}"#
    );
    assert_eq!(
        (&meta["cost_usd"], &meta["stop_reason"]),
        (&0.001.into(), &"tool_calls".into())
    );
    assert_eq!(meta["tool_call_errors"]["c2"], "not JSON: {x");

    let TranscriptPart::ToolResult(found) = &read.messages[3].parts[0] else {
        panic!("a result")
    };
    assert_eq!(
        (found.is_error, found.duration_ms),
        (Some(false), Some(400.0)),
        "waiting is left out"
    );
    let TranscriptPart::ToolResult(failed) = &read.messages[4].parts[0] else {
        panic!("a result")
    };
    assert_eq!(
        (failed.is_error, failed.duration_ms),
        (Some(true), Some(125.0)),
        "its two times"
    );
    assert_eq!(&*failed.content, "not JSON: {x", "what the model saw");

    let last = &read.messages[5];
    assert_eq!(last.text(), "It comes by Friday.");
    let meta = metadata(last.metadata.as_ref());
    assert_eq!(
        (&meta["mood"], &meta["model"]),
        (&"calm".into(), &"mock/agent".into())
    );
    assert_eq!(meta["latency_ms"], 500.0);
}

#[test]
fn a_log_of_2024_reads_the_same() {
    let header =
        r#"{"version":1,"eval":{"task":"old","model":"m"},"results":{"scorer":{"name":"exact"}}}"#;
    let zip = Zip::default()
        .add("samples/7_epoch_1.json", OLD, Method::Stored)
        .add("header.json", header, Method::Stored);
    let (_dir, path) = written("a.eval", zip.finish());
    let read = only(&path);
    assert_eq!(&*read.id, "7", "one epoch: the plain id");
    assert_eq!(read.messages[3].text(), "I cannot.");
    let verdict = &read.verdicts[0];
    assert_eq!((&*verdict.eval, verdict.passed), ("exact", Some(false)));
    assert_eq!(verdict.reasoning.as_deref(), Some("It did not add."));
    let meta = metadata(read.messages[1].metadata.as_ref());
    assert_eq!(
        meta["usage"]["total"], 5,
        "found by what was said: messages had no ids"
    );
    let TranscriptPart::ToolResult(failed) = &read.messages[2].parts[0] else {
        panic!("a result")
    };
    assert_eq!((failed.is_error, &*failed.content), (Some(true), "no y"));
}

#[test]
fn tool_success_is_known_only_if_inspect_ran_the_tool() {
    let given = r#"{"id":"x","epoch":1,"messages":[{"role":"tool","tool_call_id":"c","content":"ok"}],"events":[]}"#;
    let (_dir, path) = written("a.eval", log_of(given));
    let read = only(&path);
    assert!(
        matches!(&read.messages[0].parts[0], TranscriptPart::ToolResult(result) if result.is_error.is_none())
    );
}

#[test]
fn a_tool_that_the_provider_ran_is_a_call_and_its_answer() {
    let used = r#"{"id":"x","epoch":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","tool_type":"web_search","id":"w","name":"search","arguments":"{\"q\":1}","result":"3 pages"},{"type":"data","data":{"k":1}},"plain"]}]}"#;
    let (_dir, path) = written("a.eval", log_of(used));
    let parts = only(&path).messages.remove(0).parts;
    assert!(
        matches!(&parts[0], TranscriptPart::ToolCall(call) if &*call.arguments == r#"{"q":1}"#)
    );
    assert!(
        matches!(&parts[1], TranscriptPart::ToolResult(result) if &*result.content == "3 pages" && result.is_error == Some(false))
    );
    assert!(matches!(&parts[2], TranscriptPart::Other(_)));
    assert!(matches!(&parts[3], TranscriptPart::Text(text) if &**text == "plain"));
}
