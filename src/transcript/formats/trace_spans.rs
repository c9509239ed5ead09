//! Spans of tracing tools that are not OpenTelemetry's: Langfuse's observations, LangSmith's runs and similar ones.
//!
//! Responsible for the conversion to spans of OpenTelemetry, so that `otlp` builds the conversation: threads, sub-agents,
//! and the results of tools. Does not know any tool's file.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::fields::{RawFields, truncate_to_count};
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::native::parse_tags;
use super::super::reader::{RecordCx, TranscriptSink};
use super::io_value::add_io;
use super::otlp::{RawOtlpEntry, build_decorated};
use super::transcript_builder::{TranscriptBuilder, call_arguments, call_part};
use crate::model::{
    Label, MessageRole, SourceText, SourceVerdict, ToolResult, Transcript, TranscriptMessage,
    TranscriptPart,
};

/// The kind of a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SpanKind {
    /// A model call.
    Chat,
    /// A tool.
    Tool,
    /// An agent, or the whole work of a trace.
    Agent,
    /// Any other step.
    #[default]
    Step,
}

/// One span of a trace.
#[derive(Debug, Default)]
pub(super) struct TraceSpan<'a> {
    pub(super) id: SourceText<'a>,
    pub(super) parent: Option<SourceText<'a>>,
    pub(super) name: SourceText<'a>,
    pub(super) kind: SpanKind,
    /// The start and the end in nanoseconds since 1970.
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) output: Option<&'a RawValue>,
    pub(super) model: Option<SourceText<'a>>,
    pub(super) usage: SourceUsage,
    pub(super) cost: Option<f64>,
    /// The reason why the span failed.
    pub(super) error: Option<SourceText<'a>>,
    /// The id of the call that a tool span belongs to.
    pub(super) call_id: Option<SourceText<'a>>,
}

/// A trace: its spans, and what belongs to the whole.
#[derive(Debug, Default)]
pub(super) struct Trace<'a> {
    /// The tool, such as `langfuse`.
    pub(super) source: &'static str,
    pub(super) id: String,
    pub(super) spans: Vec<TraceSpan<'a>>,
    pub(super) meta: MetadataBuilder,
    pub(super) tags: Vec<SourceText<'static>>,
    pub(super) verdicts: Vec<SourceVerdict>,
    pub(super) labels: Vec<Label>,
}

/// Parses a time: nanoseconds, microseconds, milliseconds or seconds since 1970, or a text in ISO 8601.
pub(super) fn parse_time(raw: Option<&RawValue>) -> Option<u64> {
    let raw = raw?;
    if let Some(text) = super::super::native::json_string(raw) {
        let text = text.trim();
        let at = text.parse::<jiff::Timestamp>().ok().or_else(|| {
            // A time without a zone is UTC in these tools.
            let time: jiff::civil::DateTime = text.parse().ok()?;
            Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
        });
        if let Some(at) = at {
            return u64::try_from(at.as_nanosecond()).ok();
        }
        return scale_time(text.parse().ok()?);
    }
    scale_time(raw.get().parse().ok()?)
}

/// Returns nanoseconds. The size of the number shows its unit, because all times are of this century.
fn scale_time(number: f64) -> Option<u64> {
    let factor = match number {
        n if n >= 1e17 => 1.0,
        n if n >= 1e14 => 1e3,
        n if n >= 1e11 => 1e6,
        n if n >= 1e8 => 1e9,
        _ => return None,
    };
    Some(truncate_to_count(number * factor))
}

impl Trace<'_> {
    /// Returns a trace without spans, and the fields that describe it: those under `trace`, else those of the record.
    pub(super) fn begin<'r>(
        source: &'static str,
        record: &RawFields<'r>,
    ) -> Result<(Self, RawFields<'r>), String> {
        let own = record.object("trace").unwrap_or_else(|| record.clone());
        let id = own
            .id_text("id")
            .ok_or_else(|| "it is not a trace: it has no `id`".to_owned())?;
        let trace = Self {
            source,
            id: id.to_string(),
            ..Self::default()
        };
        Ok((trace, own))
    }

    /// Sets the tags of a record that has some.
    pub(super) fn set_tags(&mut self, fields: &RawFields<'_>) {
        if let Some(tags) = fields.get("tags") {
            let tags = parse_tags(tags).into_iter();
            self.tags = tags.map(SourceText::into_owned).collect();
        }
    }

    /// Adds the transcripts of the trace to `out`.
    pub(super) fn finish(mut self, cx: RecordCx<'_>, out: &mut TranscriptSink) {
        // A span may name a parent that the file does not contain.
        let ids: HashSet<String> = self.spans.iter().map(|span| span.id.to_string()).collect();
        let has_chat = self
            .spans
            .iter()
            .any(|span| span.kind == SpanKind::Chat && span.output.is_some());
        let mut has_root = false;
        for span in &mut self.spans {
            span.parent = span
                .parent
                .take()
                .filter(|parent| ids.contains(&**parent) && **parent != *span.id);
            // The input and output of the whole count only if no model call has any.
            if span.parent.is_none() && span.kind == SpanKind::Step && !has_root && !has_chat {
                span.kind = SpanKind::Agent;
                has_root = true;
            }
        }
        // An agent may answer although its model failed.
        let is_answer =
            |span: &TraceSpan<'_>| span.kind == SpanKind::Agent && span.output.is_some();
        if !has_chat && self.spans.iter().any(is_answer) {
            let chats = self.spans.iter_mut();
            for chat in chats.filter(|span| span.kind == SpanKind::Chat) {
                chat.kind = SpanKind::Step;
                chat.input = None;
                out.count_unknown("a model call without a reply");
            }
        }
        drop_repeated_chats(&mut self.spans);
        for span in &self.spans {
            if span.kind == SpanKind::Step && (span.input.is_some() || span.output.is_some()) {
                out.count_unknown("a step that is not a model call, a tool or an agent");
            }
        }
        let mut built = BuiltSpans::default();
        let id = self.id.clone();
        for span in &self.spans {
            if matches!(span.kind, SpanKind::Chat | SpanKind::Agent) {
                built.push(span, &id);
            }
        }
        // If no message has a call, the spans of tools are the only record of them.
        let mut lost_calls = Vec::new();
        for span in self.spans.iter().filter(|span| span.kind == SpanKind::Tool) {
            if built.has_calls {
                built.push(span, &id);
            } else {
                lost_calls.push(span);
            }
        }
        lost_calls.sort_by_key(|span| span.start);
        let lost_calls: Vec<_> = lost_calls.into_iter().map(call_messages).collect();
        let mut lost_calls = lost_calls.into_iter().flatten().collect::<Vec<_>>();
        let BuiltSpans {
            entries, unknown, ..
        } = built;
        for kind in unknown {
            out.count_unknown(&kind);
        }
        let before = out.record_count();
        let (source, mut meta) = (self.source, Some(self.meta));
        let (mut tags, mut verdicts) = (self.tags, self.verdicts);
        build_decorated(&entries, cx.span, out, &mut |transcript| {
            let mut all = MetadataBuilder::default();
            all.set("source", source);
            merge(&mut all, transcript, &["source"]);
            if !lost_calls.is_empty() {
                let mut last = transcript.messages.iter();
                let last = last.rposition(|message| message.role == MessageRole::Assistant);
                let at = last.unwrap_or(transcript.messages.len());
                transcript.messages.splice(at..at, lost_calls.drain(..));
            }
            // The data of the trace belongs to its first transcript; others name it as their parent.
            if let Some(own) = meta.take() {
                if let Some(own) = own.finish()
                    && let Ok(own) = RawFields::parse(own.get())
                {
                    let mut merged = MetadataBuilder::default();
                    merged.set("source", source);
                    merged.merge_source_fields(&own);
                    merge(&mut merged, transcript, &["source", "trace"]);
                    all = merged;
                }
                transcript.tags = std::mem::take(&mut tags);
                transcript.verdicts.append(&mut verdicts);
            }
            transcript.metadata = all.finish();
        });
        if out.record_count() == before {
            out.push_fault("its spans hold no messages");
            return;
        }
        for label in self.labels {
            out.attach_label_to(before, label);
        }
    }
}

/// Adds the keys of a transcript's metadata that are not set yet.
fn merge(meta: &mut MetadataBuilder, transcript: &Transcript<'_>, skipped: &[&str]) {
    let Some(json) = &transcript.metadata else {
        return;
    };
    let Ok(fields) = RawFields::parse(json.get()) else {
        return;
    };
    for (key, value) in fields.iter() {
        if !skipped.contains(&key) && !meta.has(key) {
            meta.set_raw(key, Some(value));
        }
    }
}

/// Makes one of two nested model calls a step: both have the same messages (Vercel AI SDK, agno). The call with
/// structured messages counts, else the inner one.
fn drop_repeated_chats(spans: &mut [TraceSpan<'_>]) {
    let is_structured = |span: &TraceSpan<'_>| {
        span.input.is_some_and(|raw| {
            let text = super::super::native::text_or_json(raw);
            text.trim_start().starts_with(['{', '['])
        })
    };
    let outer: HashMap<String, bool> = spans
        .iter()
        .filter(|span| span.kind == SpanKind::Chat && span.output.is_some())
        .map(|span| (span.id.to_string(), is_structured(span)))
        .collect();
    let mut replaced = HashSet::new();
    for span in spans.iter_mut().filter(|span| span.kind == SpanKind::Chat) {
        let Some(parent) = span
            .parent
            .as_ref()
            .filter(|parent| outer.contains_key(&***parent))
        else {
            continue;
        };
        if outer[&**parent] && !is_structured(span) || span.output.is_none() {
            span.kind = SpanKind::Step;
        } else {
            replaced.insert(parent.to_string());
        }
    }
    for span in spans.iter_mut().filter(|span| replaced.contains(&*span.id)) {
        span.kind = SpanKind::Step;
    }
}

/// The spans as OTLP JSON.
#[derive(Default)]
struct BuiltSpans {
    entries: Vec<RawOtlpEntry>,
    unknown: Vec<String>,
    /// True if a message of a span has a call.
    has_calls: bool,
}

impl BuiltSpans {
    fn push(&mut self, span: &TraceSpan<'_>, trace: &str) {
        let text = to_otlp(span, trace, self).to_string();
        self.entries.push(RawOtlpEntry {
            is_log: false,
            text,
        });
    }
}

/// Returns the call of a tool's span, and its result.
fn call_messages(span: &TraceSpan<'_>) -> Vec<TranscriptMessage<'static>> {
    let id = span.call_id.as_ref().unwrap_or(&span.id);
    let arguments = call_arguments(span.input);
    let mut messages = vec![TranscriptMessage {
        role: MessageRole::Assistant,
        parts: vec![call_part(id, &span.name, arguments)],
        metadata: None,
    }];
    let content = match (span.output, &span.error) {
        (Some(output), _) => tool_output(output),
        (None, Some(error)) => error.to_string(),
        (None, None) => return messages,
    };
    let duration = span
        .end
        .zip(span.start)
        .and_then(|(end, start)| end.checked_sub(start));
    messages.push(TranscriptMessage {
        role: MessageRole::Tool,
        parts: vec![TranscriptPart::ToolResult(ToolResult {
            call_id: id.clone().into_owned(),
            content: content.into(),
            is_error: Some(span.error.is_some()),
            duration_ms: duration.map(|nanos| nanos as f64 / 1e6),
        })],
        metadata: None,
    });
    messages
}

/// Returns a span as OTLP JSON.
fn to_otlp(span: &TraceSpan<'_>, trace: &str, built: &mut BuiltSpans) -> Value {
    let mut attributes = Vec::new();
    let mut set = |key: &str, value: Value| {
        let value = match value {
            Value::String(text) => json!({ "stringValue": text }),
            Value::Number(number) if number.is_f64() => json!({ "doubleValue": number }),
            Value::Number(number) => json!({ "intValue": number.to_string() }),
            _ => return,
        };
        attributes.push(json!({ "key": key, "value": value }));
    };
    let operation = match span.kind {
        SpanKind::Chat => "chat",
        SpanKind::Tool => "execute_tool",
        SpanKind::Agent => "invoke_agent",
        SpanKind::Step => "step",
    };
    set("gen_ai.operation.name", operation.into());
    if span.kind == SpanKind::Tool {
        set("gen_ai.tool.name", span.name.to_string().into());
        if let Some(id) = &span.call_id {
            set("gen_ai.tool.call.id", id.to_string().into());
        }
        if let Some(input) = span.input {
            let arguments = super::transcript_builder::owned_text(input);
            set("gen_ai.tool.call.arguments", arguments.into());
        }
        if let Some(output) = span.output {
            set("gen_ai.tool.call.result", tool_output(output).into());
        }
    } else {
        if span.kind == SpanKind::Agent {
            set("gen_ai.agent.name", span.name.to_string().into());
        }
        let mut input = TranscriptBuilder::default();
        if let Some(raw) = span.input {
            add_io(raw, &MessageRole::User, &mut input);
        }
        let mut output = TranscriptBuilder::default();
        if let Some(raw) = span.output {
            add_io(raw, &MessageRole::Assistant, &mut output);
        }
        for side in [&mut input, &mut output] {
            side.drop_repeated_calls();
            built.unknown.append(&mut side.unknown);
        }
        let messages = || input.messages.iter().chain(&output.messages);
        built.has_calls |= messages().any(|message| {
            let mut parts = message.parts.iter();
            parts.any(|part| matches!(part, TranscriptPart::ToolCall(_)))
        });
        // A graph returns its whole state: the messages of the input, then the new ones.
        let known = input.messages.len();
        if known > 0 && output.messages.len() > known {
            let mut pairs = input.messages.iter().zip(&output.messages);
            if pairs.all(|(a, b)| a.role == b.role && a.parts == b.parts) {
                output.messages.drain(..known);
            }
        }
        if input.has_messages() {
            set("gen_ai.input.messages", to_parts(&input).into());
        }
        if output.has_messages() {
            set("gen_ai.output.messages", to_parts(&output).into());
        }
    }
    if let Some(model) = &span.model {
        set("gen_ai.request.model", model.to_string().into());
    }
    let usage = span.usage;
    for (key, count) in [
        ("gen_ai.usage.input_tokens", usage.input),
        ("gen_ai.usage.output_tokens", usage.output),
        ("gen_ai.usage.total_tokens", usage.total),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached),
        ("gen_ai.usage.reasoning.output_tokens", usage.thinking),
    ] {
        if let Some(count) = count {
            set(key, count.into());
        }
    }
    if let Some(cost) = span.cost.filter(|cost| *cost > 0.0) {
        set("gen_ai.usage.cost", cost.into());
    }
    let mut entry = json!({
        "traceId": trace, "spanId": &*span.id, "name": &*span.name, "attributes": attributes,
    });
    if let Some(parent) = &span.parent {
        entry["parentSpanId"] = (**parent).into();
    }
    for (key, time) in [
        ("startTimeUnixNano", span.start),
        ("endTimeUnixNano", span.end),
    ] {
        if let Some(time) = time {
            entry[key] = time.to_string().into();
        }
    }
    if let Some(error) = &span.error {
        entry["status"] = json!({ "code": 2, "message": &**error });
    }
    entry
}

/// Returns the text of a tool's output. LangChain's tools return a message.
fn tool_output(raw: &RawValue) -> String {
    let fields = RawFields::from_raw(raw);
    let output = fields
        .as_ref()
        .and_then(|fields| match fields.iter().count() {
            1 => fields.get("output"),
            _ => None,
        });
    let raw = output.unwrap_or(raw);
    if let Some(fields) = RawFields::from_raw(raw) {
        let kwargs = fields.object("kwargs").unwrap_or(fields);
        if kwargs.has("tool_call_id")
            && let Some(content) = kwargs.get("content")
        {
            return super::foreign_message::result_text(content);
        }
    }
    super::foreign_message::result_text(raw)
}

/// Returns messages as JSON in the shape of OpenTelemetry's conventions.
pub(super) fn to_parts(built: &TranscriptBuilder) -> String {
    let to_part = |part: &TranscriptPart<'_>| match part {
        TranscriptPart::Text(text) => json!({ "type": "text", "content": &**text }),
        TranscriptPart::Reasoning(text) => json!({ "type": "reasoning", "content": &**text }),
        TranscriptPart::ToolCall(call) => json!({
            "type": "tool_call", "id": &*call.id, "name": &*call.name, "arguments": &*call.arguments,
        }),
        TranscriptPart::ToolResult(result) => json!({
            "type": "tool_call_response", "id": &*result.call_id, "response": &*result.content,
            "is_error": result.is_error,
        }),
        TranscriptPart::Media { raw, .. } | TranscriptPart::Other(raw) => {
            // A value that is nested too deeply for a tree becomes its text.
            serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().into())
        }
    };
    let messages = built.messages.iter().map(|message| {
        let mut json = json!({
            "role": message.role.as_str(),
            "parts": message.parts.iter().map(to_part).collect::<Vec<_>>(),
        });
        let stop = message.meta.clone().finish();
        let stop = stop.and_then(|meta| {
            meta.parse_value()["stop_reason"]
                .as_str()
                .map(str::to_owned)
        });
        if let Some(stop) = stop {
            json["finish_reason"] = stop.into();
        }
        json
    });
    Value::Array(messages.collect()).to_string()
}
