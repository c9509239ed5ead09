//! Harbor's trajectories (ATIF, `trajectory.json`) from v1.0 to v1.7: the steps of one agent.
//!
//! Responsible for steps. A step of the agent is an assistant message with its reasoning and calls. Its observation
//! contains the results of the calls; without a call it is text of the environment (role `user`). ATIF records neither
//! errors nor durations of tools. The id is that of the session; a sub-agent has the id `SESSION.agent-TRAJECTORY` and
//! names its parent. Does not read other files of Harbor.

use std::collections::HashMap;

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
use crate::transcript::fields::RawFields;
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
    trajectory_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    subagent_trajectories: Option<Vec<&'a RawValue>>,
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
    #[serde(borrow, default)]
    subagent_trajectory_ref: Option<&'a RawValue>,
}

/// The depth of sub-agents in sub-agents that dicta reads.
const MAX_AGENT_DEPTH: usize = 8;

/// The place of a sub-agent in the trajectory that contains it.
struct AtifParent<'p> {
    /// The id of the containing transcript.
    id: &'p str,
    /// The id of the call that started the sub-agent.
    call_id: Option<String>,
    depth: usize,
}

impl RecordParser for AtifParser {
    fn parse_record(
        &self,
        record: &str,
        _cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        push_trajectory(record, None, out)
    }
}

/// Adds the transcript of a trajectory, then those of its sub-agents.
fn push_trajectory(
    record: &str,
    parent: Option<&AtifParent<'_>>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let ObjectOnly(trajectory): ObjectOnly<AtifTrajectory<'_>> =
        serde_json::from_str(record).map_err(|why| format!("not an ATIF trajectory: {why}"))?;
    out.count_elements(trajectory.steps.len());
    let mut messages = Vec::new();
    // The calls that started sub-agents, by the id of the sub-agent.
    let mut agent_calls: HashMap<String, String> = HashMap::new();
    for raw in &trajectory.steps {
        match serde_json::from_str::<ObjectOnly<AtifStep<'_>>>(raw.get()) {
            Ok(ObjectOnly(step)) => {
                read_step(&step, &mut messages);
                collect_agent_calls(&step, &mut agent_calls);
            }
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
    let own_id = text_or_json(trajectory.trajectory_id);
    let id = match parent {
        Some(_) if own_id.is_empty() => String::new(),
        Some(parent) => format!("{}.agent-{own_id}", parent.id),
        None => Some(text_or_json(trajectory.session_id))
            .filter(|id| !id.is_empty())
            .unwrap_or(own_id),
    };
    if let Some(parent) = parent {
        let mut link = serde_json::json!({"transcript": parent.id});
        if let Some(call) = &parent.call_id {
            link["tool_call_id"] = Value::from(call.as_str());
        }
        meta.set("parent", link);
    }
    out.push_transcript(&Transcript {
        id: SourceText::from(id.clone()),
        messages,
        metadata: meta.finish(),
        ..Transcript::default()
    });
    let depth = parent.map_or(0, |parent| parent.depth) + 1;
    for raw in trajectory.subagent_trajectories.into_iter().flatten() {
        let agent: Value = RawFields::from_raw(raw)
            .and_then(|agent| Some(Value::from(agent.text("trajectory_id")?.to_string())))
            .unwrap_or_default();
        let child = AtifParent {
            id: &id,
            call_id: agent.as_str().and_then(|id| agent_calls.get(id).cloned()),
            depth,
        };
        let read =
            depth <= MAX_AGENT_DEPTH && push_trajectory(raw.get(), Some(&child), out).is_ok();
        if !read {
            out.count_records(1);
            out.count_unknown("a sub-agent's trajectory of another shape");
        }
    }
    Ok(())
}

/// Remembers which call of a step started which sub-agent.
fn collect_agent_calls(step: &AtifStep<'_>, agent_calls: &mut HashMap<String, String>) {
    let results = step
        .observation
        .iter()
        .flat_map(|ObjectOnly(all)| all.results.iter().flatten());
    for ObjectOnly(result) in results {
        let agents: Vec<Value> = parse_or_none(result.subagent_trajectory_ref).unwrap_or_default();
        let call = text_or_json(result.source_call_id);
        for agent in agents {
            if let Some(id) = agent["trajectory_id"].as_str() {
                agent_calls.insert(id.to_owned(), call.clone());
            }
        }
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
    let observed: Vec<_> = step
        .observation
        .iter()
        .flat_map(|ObjectOnly(all)| all.results.iter().flatten())
        .collect();
    // Terminus-2 writes no id. One result of a step with one call belongs to that call.
    let only_call = match (step.tool_calls.as_deref(), observed.len()) {
        (Some([ObjectOnly(call)]), 1) => Some(text_or_json(call.tool_call_id)),
        _ => None,
    };
    for ObjectOnly(one) in observed {
        let id = Some(text_or_json(one.source_call_id))
            .filter(|id| !id.is_empty())
            .or_else(|| only_call.clone())
            .unwrap_or_default();
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

    #[test]
    fn sub_agents_become_transcripts_that_name_their_parent() {
        let step = |message: &str| json!({"source": "agent", "message": message});
        let inner =
            json!({"schema_version": "ATIF-v1.7", "trajectory_id": "deep", "steps": [step("c")]});
        let child = json!({"trajectory_id": "child", "steps": [step("b")], "subagent_trajectories": [inner, 7]});
        let result = json!({"source_call_id": "c1", "content": "ok", "subagent_trajectory_ref": [{"trajectory_id": "child"}]});
        let calling = json!({"source": "agent", "message": "a",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "delegate", "arguments": {}}],
            "observation": {"results": [result]}});
        let file = json!({"schema_version": "ATIF-v1.7", "session_id": "s", "steps": [calling],
            "subagent_trajectories": [child]});
        let (all, tally) = read(file.to_string().as_bytes());
        let all: Vec<_> = all
            .into_iter()
            .map(|one| one.expect("a transcript"))
            .collect();
        let ids: Vec<_> = all
            .iter()
            .map(|one| one["id"].as_str().expect("an id"))
            .collect();
        assert_eq!(ids, ["s", "s.agent-child", "s.agent-child.agent-deep"]);
        assert_eq!(
            all[1]["metadata"]["parent"],
            json!({"transcript": "s", "tool_call_id": "c1"})
        );
        assert_eq!(tally.unknown_count(), 1, "the number among the sub-agents");
    }

    #[test]
    fn only_result_of_a_step_answers_its_only_call() {
        let step = |results: serde_json::Value| {
            json!({"source": "agent", "message": "",
                "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {}}],
                "observation": {"results": results}})
        };
        let one = step(json!([{"content": "a.txt"}]));
        let two = step(json!([{"content": "a"}, {"content": "b"}]));
        let file = json!({"schema_version": "ATIF-v1.5", "session_id": "s", "steps": [one, two]});
        let (all, _) = read(file.to_string().as_bytes());
        let transcript = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(transcript),
            [
                "assistant bash({})",
                "tool a.txt",
                "assistant bash({})",
                "user a",
                "user b"
            ]
        );
        assert_eq!(transcript["messages"][1]["tool_call_id"], "c1");
    }
}
