//! Results of AgentBench and of benchmarks that use its code, such as MedAgentBench (`runs.jsonl`, `error.jsonl`).
//!
//! Responsible for one sample per line, whose `history` is the conversation. The result of a task is in the metadata.
//! One that is true, false or a number is also a verdict of the judge `agentbench`. Does not read `overall.json`, which
//! has no samples.

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::add_messages;
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, is_boolean_or_number, verdict_of};
use crate::model::MessageRole;

/// The keys of a result that state how good it is.
const SCORE_KEYS: [&str; 5] = ["result", "reward", "score", "success", "is_correct"];

/// Returns true if the first record is a sample with its status. The time is the last key, so the preview of a long
/// conversation may lack it.
pub(super) fn is_run(preview: &FilePreview<'_>) -> bool {
    let output = &preview.first_outline()["output"];
    let keys = ["index", "error", "info", "output"];
    preview.first_matches(|s| keys.iter().all(|key| s.has(key)))
        && output["status"].is_string()
        && output.get("result").is_some()
        && (output["history"].is_null() || output["history"].is_array())
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_run)
}

fn parse_run(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let output = outer.object("output").unwrap_or_default();
    let mut built = TranscriptBuilder::new("agentbench", None);
    if let Some(history) = output.get("history") {
        add_messages(history, &MessageRole::User, &mut built);
    }
    if !built.has_messages() {
        let error = outer.text("error").unwrap_or_else(|| "no error".into());
        return Err(format!("the sample has no conversation ({})", &*error));
    }
    let time = outer.object("time").unwrap_or_default();
    built.meta.set_raw("timestamp", time.get("timestamp"));
    built.meta.set_raw("index", outer.get("index"));
    built.meta.set_raw("status", output.get("status"));
    built.meta.set_raw("error", outer.get("error"));
    built.meta.set_raw("info", outer.get("info"));
    built.meta.set_readable("result", output.get("result"));
    let result = output.object("result").unwrap_or_default();
    for key in SCORE_KEYS {
        let value = result.get(key).filter(|value| is_boolean_or_number(value));
        if value.is_some() {
            built.push_verdict(verdict_of("agentbench", key, value, None));
        }
    }
    built.finish(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    fn run(history: &Value, result: &Value) -> Value {
        let error = history.is_null().then_some("AGENT_FAILED");
        json!({"index": 97, "error": error, "info": null, "time": {"timestamp": 1_737_159_055_712_u64, "str": "2025-01-17 16:10:55"},
            "output": {"index": 97, "status": "completed", "result": result, "history": history}})
    }

    #[test]
    fn history_and_result_are_read() {
        let history = json!([
            {"role": "user", "content": "Question: the last value?"},
            {"role": "agent", "content": "GET /Observation"},
            {"role": "user", "content": "{}"},
            {"role": "agent", "content": "FINISH([-1])"},
        ]);
        let lines = [
            run(&history, &json!("[-1]")),
            run(&Value::Null, &Value::Null),
            run(
                &history,
                &json!({"result": true, "reward": 0.5, "log": ["a"]}),
            ),
        ];
        let file = lines.map(|line| format!("{line}\n")).concat();
        let (all, tally) = read(file.as_bytes());
        assert_eq!(all.len(), 3);
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Question: the last value?",
                "assistant GET /Observation",
                "user {}",
                "assistant FINISH([-1])",
            ]
        );
        assert_eq!(one["metadata"]["result"], "[-1]");
        assert_eq!(one["metadata"]["index"], 97);
        assert!(one["verdicts"].as_array().is_none_or(Vec::is_empty));
        let why = all[1].as_ref().expect_err("a bad record");
        assert!(why.contains("AGENT_FAILED"), "{why}");
        let judged = all[2].as_ref().expect("a transcript");
        let verdicts = &judged["verdicts"];
        assert_eq!(verdicts[0]["judge"], "agentbench");
        assert_eq!(verdicts[0]["eval"], "result");
        assert_eq!(verdicts[0]["passed"], true);
        assert_eq!(verdicts[1]["score"], 0.5);
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }
}
