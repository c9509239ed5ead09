//! Harbor's trajectories (ATIF, `trajectory.json`) from v1.0 to v1.7: the steps of one agent.
//!
//! Responsible for steps. A step of the agent is an assistant message with its reasoning and calls. Its observation
//! contains the results of the calls; without a call it is text of the environment (role `user`). ATIF records neither
//! errors nor durations of tools. The id is that of the session. Does not read other files of Harbor.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::content::ObjectOnly;
use super::super::detect::FilePreview;
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use super::super::source::SourceFile;
use super::lenient_message::{
    LenientMessageReader, parse_tool_response, text_or_json, tool_result_part,
};
use crate::model::{
    MessageRole, SourceText, ToolCall, Transcript, TranscriptMessage, TranscriptPart,
};
use crate::transcript::native::parse_or_none;

/// Returns the reader of a trajectory.
#[expect(clippy::unnecessary_wraps, reason = "the table's type")]
pub(super) fn open(
    _source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    Ok(Box::new(PerRecordReader::new(
        preview.record_walker(),
        AtifParser,
    )))
}

#[derive(Debug)]
struct AtifParser;

#[derive(Deserialize)]
struct AtifTrajectory<'a> {
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    agent: Option<&'a RawValue>,
    #[serde(borrow)]
    steps: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    final_metrics: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AtifStep<'a> {
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    source: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model_name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ObjectOnly<AtifToolCall<'a>>>>,
    #[serde(borrow, default)]
    observation: Option<ObjectOnly<AtifObservation<'a>>>,
    #[serde(borrow, default)]
    metrics: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AtifToolCall<'a> {
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AtifObservation<'a> {
    #[serde(borrow, default)]
    results: Option<Vec<ObjectOnly<AtifObservationResult<'a>>>>,
}

#[derive(Deserialize)]
struct AtifObservationResult<'a> {
    #[serde(borrow, default)]
    source_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl RecordParser for AtifParser {
    fn parse_record(
        &self,
        record: &str,
        _cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let ObjectOnly(trajectory): ObjectOnly<AtifTrajectory<'_>> =
            serde_json::from_str(record).map_err(|why| format!("not an ATIF trajectory: {why}"))?;
        out.count_records(trajectory.steps.len() as u64);
        let mut messages = Vec::new();
        for raw in &trajectory.steps {
            match serde_json::from_str::<ObjectOnly<AtifStep<'_>>>(raw.get()) {
                Ok(ObjectOnly(step)) => read_step(&step, &mut messages),
                // One broken step must not hide the other steps of the trajectory.
                Err(_) => out.count_unknown("a step of another shape"),
            }
        }
        let agent: Value = parse_or_none(trajectory.agent).unwrap_or_default();
        let mut meta = MetadataBuilder::default();
        meta.set("source", "atif");
        meta.set("agent", agent["name"].clone());
        meta.set("model", agent["model_name"].clone());
        if let Some(metrics) = parse_or_none::<Value>(trajectory.final_metrics) {
            let tokens = SourceUsage {
                input: metrics["total_prompt_tokens"].as_u64(),
                output: metrics["total_completion_tokens"].as_u64(),
                cached: metrics["total_cached_tokens"].as_u64(),
                ..SourceUsage::default()
            };
            meta.set("usage", tokens.to_json());
            meta.set("cost_usd", metrics["total_cost_usd"].as_f64());
        }
        // ATIF has no time for the whole trajectory, so the first step supplies it.
        let first_metadata = messages
            .first()
            .and_then(|message: &TranscriptMessage<'_>| message.metadata.as_ref());
        meta.set(
            "timestamp",
            first_metadata
                .map(|meta| meta.parse_value()["timestamp"].clone())
                .unwrap_or_default(),
        );
        out.push_transcript(&Transcript {
            id: SourceText::from(text_or_json(trajectory.session_id)),
            messages,
            metadata: meta.finish(),
            ..Transcript::default()
        });
        Ok(())
    }
}

fn read_step(step: &AtifStep<'_>, messages: &mut Vec<TranscriptMessage<'static>>) {
    let role = match text_or_json(step.source).as_str() {
        "agent" => MessageRole::Assistant,
        "system" => MessageRole::System,
        "user" => MessageRole::User,
        other => MessageRole::Other(SourceText::from(other.to_owned())),
    };
    let mut parts = Vec::new();
    let thoughts = text_or_json(step.reasoning_content);
    if !thoughts.is_empty() {
        parts.push(TranscriptPart::Reasoning(SourceText::from(thoughts)));
    }
    if let Some(message) = step.message {
        let mut reader = LenientMessageReader::default();
        // The wrapper makes a text and a list of parts one shape that the shared reader accepts.
        reader.read_json(
            &format!("{{\"parts\":{}}}", message.get()),
            &MessageRole::User,
        );
        parts.extend(reader.messages.into_iter().flat_map(|reader| reader.parts));
    }
    for ObjectOnly(call) in step.tool_calls.iter().flatten() {
        parts.push(TranscriptPart::ToolCall(ToolCall {
            id: SourceText::from(text_or_json(call.tool_call_id)),
            name: SourceText::from(text_or_json(call.function_name)),
            arguments: SourceText::from(text_or_json(call.arguments)),
        }));
    }
    let mut meta = MetadataBuilder::default();
    let at: Value = parse_or_none(step.timestamp).unwrap_or_default();
    meta.set("timestamp", at.clone());
    // Only steps of the agent call a model; other steps have no metrics.
    if role == MessageRole::Assistant {
        meta.set(
            "model",
            parse_or_none::<Value>(step.model_name).unwrap_or_default(),
        );
        if let Some(metrics) = parse_or_none::<Value>(step.metrics) {
            let tokens = SourceUsage {
                input: metrics["prompt_tokens"].as_u64(),
                output: metrics["completion_tokens"].as_u64(),
                cached: metrics["cached_tokens"].as_u64(),
                ..SourceUsage::default()
            };
            meta.set("usage", tokens.to_json());
            meta.set("cost_usd", metrics["cost_usd"].as_f64());
        }
    }
    messages.push(TranscriptMessage {
        role,
        parts,
        metadata: meta.finish(),
    });
    let observed = step
        .observation
        .iter()
        .flat_map(|ObjectOnly(all)| all.results.iter().flatten());
    for ObjectOnly(one) in observed {
        let id = text_or_json(one.source_call_id);
        let content = parse_tool_response(one.content).content;
        let mut meta = MetadataBuilder::default();
        meta.set("timestamp", at.clone());
        // Without a call id, the environment reports something that the agent did not ask for.
        let (role, part) = if id.is_empty() {
            (
                MessageRole::User,
                TranscriptPart::Text(SourceText::from(content)),
            )
        } else {
            (MessageRole::Tool, tool_result_part(&id, content, None))
        };
        messages.push(TranscriptMessage {
            role,
            parts: vec![part],
            metadata: meta.finish(),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::transcript::formats::read_back::{message_lines, read};

    #[test]
    fn trajectory_becomes_a_transcript() {
        let file = json!({
            "schema_version": "ATIF-v1.6", "session_id": "run-1",
            "agent": {"name": "made", "version": "1", "model_name": "made-1"},
            "steps": [
                {"step_id": 1, "timestamp": "2026-01-01T00:00:00Z", "source": "user", "message": "List the files."},
                {"step_id": 2, "timestamp": "2026-01-01T00:00:02Z", "source": "agent", "model_name": "made-1",
                 "message": [{"type": "text", "text": "I look."}], "reasoning_content": "ls will do",
                 "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "ls"}}],
                 "observation": {"results": [{"source_call_id": "c1", "content": "a.txt"}, {"content": "the shell ended"}]},
                 "metrics": {"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 2, "cost_usd": 0.01}},
                7,
            ],
            "final_metrics": {"total_prompt_tokens": 10, "total_completion_tokens": 5, "total_cost_usd": 0.01},
        });
        let (all, tally) = read(
            serde_json::to_string_pretty(&file)
                .expect("JSON")
                .as_bytes(),
        );
        let transcript = all[0].as_ref().expect("a transcript");
        assert_eq!(transcript["id"], "run-1");
        assert_eq!(
            message_lines(transcript),
            [
                "user List the files.",
                "assistant <reasoning> | I look. | bash({\"cmd\":\"ls\"})",
                "tool a.txt",
                "user the shell ended",
            ]
        );
        assert_eq!(transcript["messages"][1]["metadata"]["usage"]["cached"], 2);
        assert_eq!(transcript["metadata"]["cost_usd"], 0.01);
        assert_eq!(tally.unknown["a step of another shape"], 1);
    }
}
