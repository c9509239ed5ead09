//! LiveKit agents: a chat history (`ChatContext.to_dict()`: `{"items": […]}`), or a session report that contains one
//! (`{"chat_history": {"items": […]}, "job_id", "room", …}`).
//!
//! Responsible for the items of a history. Calls join the assistant message before them. A handoff and a change of
//! tools are messages of their own role (`agent_handoff`, `agent_config_update`), and new instructions are a system
//! message. A tool's duration is the time from its call to its output; a history without `created_at` has none. The id
//! is the report's `job_id`. Does not read audio.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::TranscriptError;
use super::super::content::ObjectOnly;
use super::super::detect::FilePreview;
use super::super::metadata::{MetadataBuilder, SourceUsage, borrow_json};
use super::super::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use super::super::source::SourceFile;
use super::lenient_message::{parse_role, text_or_json, tool_result_part};
use crate::model::{
    MessageRole, SourceText, ToolCall, Transcript, TranscriptMessage, TranscriptPart,
};
use crate::transcript::native::parse_or_none;

/// Returns the reader of a chat history or session report.
#[expect(clippy::unnecessary_wraps, reason = "the table's type")]
pub(super) fn open(
    _source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    Ok(Box::new(PerRecordReader::new(
        preview.record_walker(),
        LivekitParser,
    )))
}

#[derive(Debug)]
struct LivekitParser;

#[derive(Deserialize)]
struct LivekitRecord<'a> {
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    chat_history: Option<ObjectOnly<LivekitHistory<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tags: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct LivekitHistory<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct LivekitItem<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    created_at: Option<&'a RawValue>,
    #[serde(borrow, default)]
    interrupted: Option<&'a RawValue>,
    #[serde(borrow, default)]
    transcript_confidence: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metrics: Option<&'a RawValue>,
    #[serde(borrow, default)]
    old_agent_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    new_agent_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools_added: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools_removed: Option<&'a RawValue>,
}

impl RecordParser for LivekitParser {
    fn parse_record(
        &self,
        record: &str,
        _cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let ObjectOnly(fields): ObjectOnly<LivekitRecord<'_>> =
            serde_json::from_str(record).map_err(|why| format!("not a livekit history: {why}"))?;
        let report_items = fields.chat_history.map(|ObjectOnly(history)| history.items);
        // A session report contains the whole history; a bare history is the record itself.
        let items = report_items
            .or(fields.items)
            .ok_or("it has no list `items`, nor a `chat_history` with one")?;
        out.count_elements(items.len());
        let mut history = LivekitMessageBuilder::default();
        for raw in items {
            match serde_json::from_str::<ObjectOnly<LivekitItem<'_>>>(raw.get()) {
                Ok(ObjectOnly(item)) => history.add_item(raw, &item),
                Err(_) => out.count_unknown("an item that is not an object"),
            }
        }
        // The second parse keeps unknown keys of the report, which the struct above does not have.
        let report: Map<String, Value> = serde_json::from_str(record).unwrap_or_default();
        let report_text = |key: &str| report.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut meta = MetadataBuilder::default();
        meta.set("source", "livekit");
        if let Some(usage) = fields.usage {
            meta.set("usage", parse_usage(usage).to_json());
        }
        // Only a session report has a job id.
        if !report_text("job_id").is_empty() {
            write_report_metadata(&mut meta, &report);
        }
        let tags: Vec<String> = parse_or_none(fields.tags).unwrap_or_default();
        out.push_transcript(&Transcript {
            id: SourceText::from(report_text("job_id").to_owned()),
            messages: history.messages,
            metadata: meta.finish(),
            tags: tags.into_iter().map(SourceText::from).collect(),
            ..Transcript::default()
        });
        Ok(())
    }
}

/// Sets the metadata of a session report.
fn write_report_metadata(meta: &mut MetadataBuilder, report: &Map<String, Value>) {
    let value_of = |key: &str| report.get(key).cloned().unwrap_or_default();
    let started = value_of("started_at");
    meta.set(
        "timestamp",
        if started.is_null() {
            value_of("timestamp")
        } else {
            started
        },
    );
    for key in [
        "room",
        "room_id",
        "agent_name",
        "sdk_version",
        "close_reason",
        "duration_ms",
        "errors",
    ] {
        meta.set(key, value_of(key));
    }
    let error_events = report.get("events").and_then(Value::as_array);
    let mut error_events = error_events
        .into_iter()
        .flatten()
        .filter(|event| event["type"] == "error");
    // An error ended the session only if the close reason is an error.
    if let (Some(last), "CR_ERROR") = (
        error_events.next_back(),
        report
            .get("close_reason")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    ) {
        let error = &last["error"];
        // The reason is at one of several depths.
        let why = error["error"]
            .as_str()
            .or(error["message"].as_str())
            .or(error.as_str());
        meta.set(
            "error",
            why.map_or_else(|| error.to_string(), str::to_owned),
        );
    }
}

/// Parses the report's usage: one entry per model, or one for all.
fn parse_usage(usage: &RawValue) -> SourceUsage {
    let entries: Vec<Map<String, Value>> = match serde_json::from_str(usage.get()) {
        Ok(Value::Array(all)) => all.into_iter().filter_map(into_map).collect(),
        Ok(Value::Object(one)) => vec![one],
        _ => Vec::new(),
    };
    // Each count has two names, depending on the layout of the report.
    let count = |entry: &Map<String, Value>, keys: [&str; 2]| {
        keys.iter().find_map(|key| entry.get(*key)?.as_u64())
    };
    // Speech models count tokens too, but `usage` covers only language models.
    let is_llm = |entry: &&Map<String, Value>| {
        entry
            .get("type")
            .and_then(Value::as_str)
            .is_none_or(|kind| kind.starts_with("llm"))
    };
    entries
        .iter()
        .filter(is_llm)
        .fold(SourceUsage::default(), |sum, entry| {
            sum.sum_with(SourceUsage {
                input: count(entry, ["input_tokens", "llm_prompt_tokens"]),
                output: count(entry, ["output_tokens", "llm_completion_tokens"]),
                cached: count(entry, ["input_cached_tokens", "llm_prompt_cached_tokens"]),
                thinking: count(entry, ["output_reasoning_tokens", "llm_reasoning_tokens"]),
                ..SourceUsage::default()
            })
        })
}

fn into_map(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// A conversation under construction.
#[derive(Debug, Default)]
struct LivekitMessageBuilder {
    messages: Vec<TranscriptMessage<'static>>,
    /// The time of the newest call with an id, in seconds.
    call_times: HashMap<String, f64>,
    /// True if the last message is the assistant's and takes further calls.
    accepts_calls: bool,
}

impl LivekitMessageBuilder {
    fn add_item(&mut self, raw: &RawValue, item: &LivekitItem<'_>) {
        let kind = text_or_json(item.kind);
        // Any item other than a call or a message ends the open message.
        let accepts_call = std::mem::take(&mut self.accepts_calls);
        match kind.as_str() {
            "message" => self.add_message(item),
            "function_call" => self.add_call(item, accepts_call),
            "function_call_output" => self.add_output(item),
            "agent_handoff" => {
                let (old, new) = (
                    text_or_json(item.old_agent_id),
                    text_or_json(item.new_agent_id),
                );
                let text = if old.is_empty() {
                    new
                } else {
                    format!("{old} -> {new}")
                };
                self.add_note(
                    item,
                    MessageRole::Other(SourceText::from(kind)),
                    text,
                    MetadataBuilder::default(),
                );
            }
            "agent_config_update" => self.add_config_update(item, kind),
            _ => {
                // The item stays visible as its own message, because its place in the conversation matters.
                let compact = super::super::fields::compact_json(raw.get());
                if let Ok(item) = serde_json::from_str::<crate::model::JsonText<'_>>(&compact) {
                    self.messages.push(TranscriptMessage {
                        role: MessageRole::Other(SourceText::from(kind)),
                        parts: vec![TranscriptPart::Other(item.into_owned())],
                        metadata: None,
                    });
                }
            }
        }
    }

    fn add_message(&mut self, item: &LivekitItem<'_>) {
        let role = parse_role(&text_or_json(item.role));
        let mut meta = MetadataBuilder::default();
        let metrics: Map<String, Value> = parse_or_none(item.metrics).unwrap_or_default();
        // `e2e_latency` includes speech, so it is not the latency of the model.
        if let Some(seconds) = metrics.get("e2e_latency").and_then(Value::as_f64) {
            meta.set("end_to_end_latency_ms", seconds * 1000.0);
        }
        let model = metrics
            .get("llm_metadata")
            .and_then(|llm| llm.get("model_name"));
        meta.set("model", model.cloned().unwrap_or_default());
        if !metrics.is_empty() {
            meta.set("metrics", metrics);
        }
        if parse_or_none(item.interrupted) == Some(true) {
            meta.set("interrupted", true);
        }
        meta.set(
            "transcript_confidence",
            parse_or_none::<Value>(item.transcript_confidence).unwrap_or_default(),
        );
        let parts = item.content.map(content_parts).unwrap_or_default();
        self.accepts_calls = role == MessageRole::Assistant;
        self.push_message(item, role, parts, meta);
    }

    fn add_call(&mut self, item: &LivekitItem<'_>, accepts_call: bool) {
        let id = text_or_json(item.call_id);
        if let Some(at) = parse_or_none(item.created_at) {
            self.call_times.insert(id.clone(), at);
        }
        let call = TranscriptPart::ToolCall(ToolCall {
            id: SourceText::from(id),
            name: SourceText::from(text_or_json(item.name)),
            arguments: SourceText::from(text_or_json(item.arguments)),
        });
        self.accepts_calls = true;
        // A call belongs to the reply before it. After another item, it begins a message of its own.
        match self.messages.last_mut().filter(|_| accepts_call) {
            Some(message) => message.parts.push(call),
            None => self.push_message(
                item,
                MessageRole::Assistant,
                vec![call],
                MetadataBuilder::default(),
            ),
        }
    }

    fn add_output(&mut self, item: &LivekitItem<'_>) {
        let id = text_or_json(item.call_id);
        let called_at = self.call_times.get(&id).copied();
        let answered: Option<f64> = parse_or_none(item.created_at);
        let mut part =
            tool_result_part(&id, text_or_json(item.output), parse_or_none(item.is_error));
        if let (TranscriptPart::ToolResult(result), Some(called_at), Some(answered)) =
            (&mut part, called_at, answered)
            && answered >= called_at
        {
            // Both times are seconds as floats, so digits below a microsecond are rounding errors.
            result.duration_ms = Some(((answered - called_at) * 1e6).round() / 1e3);
        }
        self.push_message(
            item,
            MessageRole::Tool,
            vec![part],
            MetadataBuilder::default(),
        );
    }

    fn add_config_update(&mut self, item: &LivekitItem<'_>, kind: String) {
        let mut meta = MetadataBuilder::default();
        let (added, removed): (Vec<String>, Vec<String>) = (
            parse_or_none(item.tools_added).unwrap_or_default(),
            parse_or_none(item.tools_removed).unwrap_or_default(),
        );
        let mut tools = Vec::new();
        for (what, names) in [("tools added", added), ("tools removed", removed)] {
            if !names.is_empty() {
                tools.push(format!("{what}: {}", names.join(", ")));
                meta.set(&what.replace(' ', "_"), names);
            }
        }
        let instructions = text_or_json(item.instructions);
        // Without instructions, the tools that changed are the text.
        if instructions.is_empty() {
            self.add_note(
                item,
                MessageRole::Other(SourceText::from(kind)),
                tools.join("; "),
                meta,
            );
        } else {
            self.add_note(item, MessageRole::System, instructions, meta);
        }
    }

    fn add_note(
        &mut self,
        item: &LivekitItem<'_>,
        role: MessageRole<'static>,
        text: String,
        meta: MetadataBuilder,
    ) {
        self.push_message(
            item,
            role,
            vec![TranscriptPart::Text(SourceText::from(text))],
            meta,
        );
    }

    fn push_message(
        &mut self,
        item: &LivekitItem<'_>,
        role: MessageRole<'static>,
        parts: Vec<TranscriptPart<'static>>,
        mut meta: MetadataBuilder,
    ) {
        meta.set(
            "timestamp",
            parse_or_none::<Value>(item.created_at).unwrap_or_default(),
        );
        self.messages.push(TranscriptMessage {
            role,
            parts,
            metadata: meta.finish(),
        });
    }
}

/// Converts content: texts as they are, audio as its transcription if there is one.
fn content_parts(raw: &RawValue) -> Vec<TranscriptPart<'static>> {
    #[derive(Deserialize)]
    struct LivekitContentPart<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow, default)]
        transcript: Option<&'a RawValue>,
    }
    let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        // The content may also be a plain text.
        let text = text_or_json(Some(raw));
        return if text.is_empty() {
            Vec::new()
        } else {
            vec![TranscriptPart::Text(SourceText::from(text))]
        };
    };
    let convert_part = |raw: &RawValue| {
        let Ok(ObjectOnly(content)) =
            serde_json::from_str::<ObjectOnly<LivekitContentPart<'_>>>(raw.get())
        else {
            return TranscriptPart::Text(SourceText::from(text_or_json(Some(raw))));
        };
        let kind = text_or_json(content.kind);
        let spoken_text = text_or_json(content.transcript);
        match kind.as_str() {
            // Speech with a transcription is text; without one, it stays media.
            "audio_content" if !spoken_text.is_empty() => {
                TranscriptPart::Text(SourceText::from(spoken_text))
            }
            "image_content" | "audio_content" => TranscriptPart::Media {
                kind: SourceText::from(kind),
                raw: borrow_json(raw).into_owned(),
            },
            _ => TranscriptPart::Other(borrow_json(raw).into_owned()),
        }
    };
    all.into_iter().map(convert_part).collect()
}

#[cfg(test)]
mod tests;
