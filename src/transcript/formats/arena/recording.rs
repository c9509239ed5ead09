//! Session recordings: the events of a session, of which messages and tools form a transcript.
//!
//! Recordings in lines have a metadata line and event lines (`{"type": "metadata" | "event", …}`). Those of an event
//! store (`{"seq", "event": {…}}`) begin a new session at each new `session_id`. Responsible for events. Does not read
//! results.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::super::content::ObjectOnly;
use super::super::super::metadata::MetadataBuilder;
use super::super::super::reader::{RecordCx, SessionParser, TranscriptSink};
use super::super::lenient_message::{LenientMessageReader, text_or_json};
use super::{build_transcript, message, parse_or_none};
use crate::model::{MessageRole, SourceVerdict, TranscriptMessage, TranscriptPart};

#[derive(Deserialize)]
struct ArenaRecording<'a> {
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct ArenaRecordingLine<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ArenaEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// The data of an event. Go writes the names of its struct fields.
#[derive(Deserialize, Default)]
struct ArenaEventData<'a> {
    #[serde(borrow, default, rename = "Role", alias = "role")]
    role: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Content", alias = "content")]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Parts", alias = "parts")]
    parts: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "ToolCalls", alias = "tool_calls")]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "ToolResult", alias = "tool_result")]
    tool_result: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "tool_call_id")]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Index", alias = "index")]
    index: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "LatencyMs")]
    latency_ms: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "InputTokens")]
    input: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "OutputTokens")]
    output: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "TotalCost")]
    cost: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "SystemPrompt")]
    system: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "CallID")]
    call_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Duration")]
    duration: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "Status")]
    status: Option<&'a RawValue>,
}

/// Reads a recording in one object.
pub(super) fn parse_recording(record: &str, out: &mut TranscriptSink) -> Result<(), String> {
    let ObjectOnly(recording): ObjectOnly<ArenaRecording<'_>> =
        serde_json::from_str(record).map_err(|why| format!("not a PromptKit recording: {why}"))?;
    out.count_records(recording.events.len() as u64);
    let mut session = ArenaSession::default();
    for event in recording.events {
        session.add_event(event, out);
    }
    session.push_transcript(recording.metadata, out);
    Ok(())
}

/// The parser of recordings in lines.
#[derive(Debug, Default)]
pub(super) struct ArenaRecordingParser {
    /// The session id of the last event.
    session: String,
    has_lines: bool,
}

impl SessionParser for ArenaRecordingParser {
    fn starts_session(&mut self, line: &[u8]) -> bool {
        let Ok(ObjectOnly(line)) =
            serde_json::from_slice::<ObjectOnly<ArenaRecordingLine<'_>>>(line)
        else {
            return false;
        };
        if line.metadata.is_some() {
            let begins = self.has_lines;
            self.has_lines = true;
            // A metadata line begins a recording, so the next session id is not a change.
            self.session.clear();
            return begins;
        }
        let event = parse_or_none::<ObjectOnly<ArenaEvent<'_>>>(line.event);
        let session = event
            .map(|ObjectOnly(event)| text_or_json(event.session_id))
            .unwrap_or_default();
        // Lines without a session id continue the session.
        let begins = !self.session.is_empty() && !session.is_empty() && session != self.session;
        if !session.is_empty() {
            self.session = session;
        }
        self.has_lines = true;
        begins
    }

    fn parse_session(&self, lines: &[&[u8]], _cx: RecordCx<'_>, out: &mut TranscriptSink) {
        let mut session = ArenaSession::default();
        let mut metadata = None;
        for line in lines {
            let Ok(ObjectOnly(line)) =
                serde_json::from_slice::<ObjectOnly<ArenaRecordingLine<'_>>>(line)
            else {
                out.count_unknown("a line that is not JSON (cut off?)");
                continue;
            };
            match (line.metadata, line.event) {
                // A second metadata line does not occur in a session, because it begins one.
                (Some(raw), _) => metadata = Some(raw),
                (None, Some(event)) => session.add_event(event, out),
                (None, None) => {
                    out.count_unknown(&format!("a line of type {:?}", text_or_json(line.kind)));
                }
            }
        }
        session.push_transcript(metadata, out);
    }
}

/// The outcome of a tool call.
#[derive(Debug)]
struct ArenaToolOutcome {
    call_id: String,
    /// The duration in milliseconds.
    duration_ms: Option<f64>,
    failed: bool,
}

/// The metrics of a message in a later event.
#[derive(Debug)]
struct ArenaMessageUpdate {
    position: u64,
    metrics: MetadataBuilder,
}

/// A session under construction.
#[derive(Debug, Default)]
struct ArenaSession {
    id: String,
    messages: Vec<TranscriptMessage<'static>>,
    /// The indexes of the messages with a stated position. The last message at a position counts.
    message_positions: HashMap<u64, usize>,
    /// The metrics that followed their message.
    updates: Vec<ArenaMessageUpdate>,
    /// The outcomes of tool calls, which are not in the messages.
    tool_outcomes: Vec<ArenaToolOutcome>,
    verdicts: Vec<SourceVerdict>,
    start_time: Option<Value>,
}

impl ArenaSession {
    fn add_event(&mut self, raw: &RawValue, out: &mut TranscriptSink) {
        let Ok(ObjectOnly(event)) = serde_json::from_str::<ObjectOnly<ArenaEvent<'_>>>(raw.get())
        else {
            out.count_unknown("an event that is not an object");
            return;
        };
        if self.id.is_empty() {
            self.id = text_or_json(event.session_id);
        }
        let timestamp = event.timestamp;
        // Recordings without metadata take the start time from their first event.
        if self.start_time.is_none() {
            self.start_time = parse_or_none(timestamp);
        }
        let kind = text_or_json(event.kind);
        let data = parse_or_none::<ObjectOnly<ArenaEventData<'_>>>(event.data)
            .map(|ObjectOnly(data)| data)
            .unwrap_or_default();
        match kind.as_str() {
            "message" if event.message.is_some() => {
                if let Some(raw) = event.message {
                    message::read_message(raw, timestamp, &mut self.messages, &mut self.verdicts);
                }
            }
            "message.created" => self.add_message(&data, timestamp),
            "message.updated" => self.add_update(&data),
            "conversation.started" => {
                let prompt = text_or_json(data.system);
                // Only before the first message: a later prompt would move all positions.
                if !prompt.is_empty() && self.messages.is_empty() {
                    let mut system = LenientMessageReader::default();
                    system.push_text(MessageRole::System, &prompt);
                    self.messages.append(&mut system.messages);
                }
            }
            "tool.call.completed" | "tool.call.failed" => {
                // Go writes durations in nanoseconds.
                let duration_ms = parse_or_none::<f64>(data.duration).map(|nanos| nanos / 1e6);
                let failed = kind == "tool.call.failed" || text_or_json(data.status) == "error";
                self.tool_outcomes.push(ArenaToolOutcome {
                    call_id: text_or_json(data.call_id),
                    duration_ms,
                    failed,
                });
            }
            // The message with the call has the same content.
            "tool.call.started" => {}
            _ => out.count_unknown(&format!("an event {kind}")),
        }
    }

    fn add_message(&mut self, data: &ArenaEventData<'_>, timestamp: Option<&RawValue>) {
        let mut json = String::from("{");
        for (key, raw) in [
            ("role", data.role),
            ("content", data.content),
            ("parts", data.parts),
            ("tool_calls", data.tool_calls),
            ("tool_result", data.tool_result),
            ("tool_call_id", data.tool_call_id),
        ] {
            if let Some(raw) = raw.filter(|raw| raw.get() != "null") {
                if json.len() > 1 {
                    json.push(',');
                }
                json.push_str(&["\"", key, "\":", raw.get()].concat());
            }
        }
        json.push('}');
        if text_or_json(data.role) == "system"
            && self
                .messages
                .first()
                .is_some_and(|message| message.role == MessageRole::System)
            && self.messages.len() == 1
        {
            // `conversation.started` already added these instructions.
            self.messages.clear();
        }
        // The fields of the event form an ordinary message, which the reader of messages converts.
        if let Ok(raw) = serde_json::from_str::<&RawValue>(&json) {
            message::read_message(raw, timestamp, &mut self.messages, &mut self.verdicts);
        }
        if let Some(position) = parse_or_none(data.index) {
            let message_index = self.messages.len().saturating_sub(1);
            self.message_positions.insert(position, message_index);
        }
    }

    fn add_update(&mut self, data: &ArenaEventData<'_>) {
        let Some(position) = parse_or_none(data.index) else {
            return;
        };
        let mut meta = MetadataBuilder::default();
        meta.set("latency_ms", parse_or_none::<f64>(data.latency_ms));
        let tokens = super::super::super::metadata::SourceUsage {
            input: parse_or_none(data.input),
            output: parse_or_none(data.output),
            ..Default::default()
        };
        meta.set("usage", tokens.to_json());
        meta.set("cost_usd", parse_or_none::<f64>(data.cost));
        self.updates.push(ArenaMessageUpdate {
            position,
            metrics: meta,
        });
    }

    fn push_transcript(mut self, metadata: Option<&RawValue>, out: &mut TranscriptSink) {
        // Step 1: metrics that arrived after their message.
        for ArenaMessageUpdate {
            position,
            metrics: mut meta,
        } in std::mem::take(&mut self.updates)
        {
            // The position of a message may differ from its index.
            let at = self.message_positions.get(&position).copied();
            if let Some(message) = at.and_then(|at| self.messages.get_mut(at)) {
                if let Some(message_metadata) = &message.metadata {
                    // An update has the final numbers, so they take precedence.
                    meta.merge_source(message_metadata.parse_value());
                }
                message.metadata = meta.finish();
            }
        }
        // Step 2: the results of tools, joined by call id.
        let mut outcomes: HashMap<&str, (Option<f64>, bool)> = HashMap::new();
        for outcome in &self.tool_outcomes {
            let (duration_ms, failed) = outcomes.entry(&outcome.call_id).or_default();
            *duration_ms = outcome.duration_ms.or(*duration_ms);
            *failed |= outcome.failed;
        }
        let parts = self
            .messages
            .iter_mut()
            .flat_map(|message| &mut message.parts);
        for part in parts {
            if let TranscriptPart::ToolResult(result) = part
                && let Some((duration_ms, failed)) = outcomes.get(&*result.call_id)
            {
                result.duration_ms = duration_ms.or(result.duration_ms);
                result.is_error = Some(*failed || result.is_error == Some(true));
            }
        }
        // Step 3: the metadata of the session. The stated values take precedence over those of the events.
        let stated: Value = parse_or_none(metadata).unwrap_or_default();
        let stated_text = |key: &str| stated.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut meta = MetadataBuilder::default();
        meta.set("source", "arena");
        meta.set(
            "timestamp",
            stated
                .get("start_time")
                .cloned()
                .or(self.start_time)
                .unwrap_or_default(),
        );
        let duration_ms = stated
            .get("duration")
            .and_then(Value::as_f64)
            .map(|nanos| nanos / 1e6);
        meta.set("duration_ms", duration_ms);
        for key in [
            "model",
            "provider_id",
            "provider_name",
            "conversation_id",
            "description",
        ] {
            if !stated_text(key).is_empty() {
                meta.set(key, stated_text(key));
            }
        }
        let id = if stated_text("session_id").is_empty() {
            &self.id
        } else {
            stated_text("session_id")
        };
        let tags = stated
            .get("tags")
            .and_then(|tags| serde_json::value::to_raw_value(tags).ok());
        out.push_transcript(&build_transcript(
            id,
            self.messages,
            meta,
            tags.as_deref(),
            self.verdicts,
        ));
    }
}
