//! Spans of OpenTelemetry in other shapes than OTLP: dumps of the SDKs (`to_json`, console exporters), rows and exports
//! of Phoenix (`OpenInference`), Jaeger's JSON, and spans with log records of AWS `CloudWatch`.
//!
//! Responsible for the conversion of one span to OTLP JSON; `otlp` builds the conversations. Spans with one trace id are
//! one group, wherever they are in the file. A log record with a `body` belongs to the span that it names. Annotations of
//! Phoenix are verdicts of the judge `phoenix`, or labels if a person gave them.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items, truncate_to_count};
use super::super::native::{json_string, text_or_json};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::adot::{body_attributes, has_messages};
use super::io_value::add_io;
use super::otlp::{RawOtlpEntry, build_decorated, other_kind};
use super::record_readers::{Grouping, line_text, open_element_groups, open_elements};
use super::trace_spans::{parse_time, to_parts};
use super::transcript_builder::{
    TranscriptBuilder, keep_rating, label_and_number, owned_text, verdict_of,
};
use crate::model::{Label, MessageRole, SourceVerdict};

/// The depth of nested attributes.
const MAX_DEPTH: u8 = 12;

const TRACE_KEYS: [&str; 4] = ["trace_id", "traceId", "traceID", "context.trace_id"];
const SPAN_KEYS: [&str; 4] = ["span_id", "spanId", "spanID", "context.span_id"];
const START_KEYS: [&str; 4] = [
    "start_time",
    "startTime",
    "start_time_unix_nano",
    "startTimeUnixNano",
];

/// The keys of events in a span.
const EVENT_KEYS: [&str; 3] = ["events", "span_events", "logs"];

/// Returns true if a value is a span.
fn is_span(value: &Value) -> bool {
    let has = |keys: &[&str]| {
        keys.iter()
            .any(|key| !value[*key].is_null() || !value["context"][*key].is_null())
    };
    let has_attributes = !value["attributes"].is_null()
        || value["tags"].is_array()
        || value
            .as_object()
            .is_some_and(|all| all.keys().any(|key| key.starts_with("attributes.")));
    has(&TRACE_KEYS) && has(&SPAN_KEYS) && has_attributes
}

/// Returns true if the first record is a span, or has a list of them.
pub(super) fn is_spans(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let first = |value: &Value, key: &str| {
        value[key]
            .as_array()
            .and_then(|all| all.first())
            .is_some_and(is_span)
    };
    is_span(record)
        || first(record, "spans")
        || (first(record, "data") && record["data"][0]["type"].is_null())
        || first(&record["data"][0], "spans")
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let record = preview.first_outline();
    // Jaeger: `{data: [{traceID, spans}]}`.
    if record["data"][0]["spans"].is_array() {
        return open_elements(source, preview, &[&["data"]], parse_jaeger);
    }
    open_element_groups(
        source,
        preview,
        &["spans", "data"],
        Grouping {
            key: trace_of,
            parse: parse_spans,
            without_group: "a record that is not a span",
        },
    )
}

/// Returns a value of the span or of its context.
fn get_any<'a>(span: &RawFields<'a>, keys: &[&str]) -> Option<&'a RawValue> {
    let own = span.get_first(keys);
    own.or_else(|| span.object("context")?.get_first(keys))
}

fn trace_of(line: &[u8]) -> Option<String> {
    let span = RawFields::from_bytes(line)?;
    Some(text_or_json(get_any(&span, &TRACE_KEYS)?).0.into_owned())
}

fn parse_spans(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut group = SpanGroup::default();
    let texts: Vec<&str> = lines
        .iter()
        .filter_map(|line| line_text(line, out))
        .collect();
    let mut spans = Vec::new();
    // The bodies of log records by the id of their span.
    let mut bodies: HashMap<String, Vec<&RawValue>> = HashMap::new();
    for text in texts {
        match RawFields::parse(text) {
            Ok(record) => match log_body(&record) {
                Some(body) => bodies.entry(span_id(&record)).or_default().push(body),
                None => spans.push(record),
            },
            Err(_) => out.count_unknown("a record that is not a span"),
        }
    }
    for span in spans {
        let logged = bodies.remove(&span_id(&span)).unwrap_or_default();
        for _ in logged.iter().filter(|body| !has_messages(body)) {
            out.count_unknown("a log record without a list of messages");
        }
        group.add(&span, &logged, out);
    }
    for _ in bodies.into_values().flatten() {
        out.count_unknown("a log record without its span");
    }
    group.finish(cx, out);
}

/// Returns the body of a log record; `None` for a span.
fn log_body<'a>(record: &RawFields<'a>) -> Option<&'a RawValue> {
    let is_span = record.get_first(&START_KEYS).is_some();
    record.get("body").filter(|_| !is_span)
}

fn span_id(record: &RawFields<'_>) -> String {
    let id = get_any(record, &SPAN_KEYS).map(text_or_json);
    id.unwrap_or_default().0.into_owned()
}

fn parse_jaeger(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let trace = RawFields::parse(record)?;
    let mut group = SpanGroup::default();
    let spans = trace.list("spans").unwrap_or_default();
    out.count_elements(spans.len());
    for raw in spans {
        match RawFields::from_raw(raw) {
            Some(span) => group.add(&span, &[], out),
            None => out.count_unknown("a record that is not a span"),
        }
    }
    group.finish(cx, out);
    Ok(())
}

/// The spans of a trace as OTLP JSON.
#[derive(Default)]
struct SpanGroup {
    entries: Vec<RawOtlpEntry>,
    verdicts: Vec<SourceVerdict>,
    labels: Vec<Label>,
    trace: String,
}

impl SpanGroup {
    /// Adds a span, with the bodies of its log records.
    fn add(&mut self, span: &RawFields<'_>, bodies: &[&RawValue], out: &mut TranscriptSink) {
        let (span_json, left_out) = to_otlp(span, bodies);
        let text = span_json.to_string();
        if let Some(kind) = other_kind(&text) {
            out.count_unknown(&kind);
        }
        for _ in 0..left_out {
            out.count_unknown("another body of the same span");
        }
        self.entries.push(RawOtlpEntry {
            is_log: false,
            text,
        });
        if self.trace.is_empty() {
            let id = get_any(span, &TRACE_KEYS).map(text_or_json);
            self.trace = id.unwrap_or_default().0.into_owned();
        }
        let annotations = span
            .list("annotations")
            .or_else(|| span.list("span_annotations"));
        for raw in annotations.unwrap_or_default() {
            if let Some(annotation) = RawFields::from_raw(raw) {
                self.add_annotation(&annotation);
            }
        }
    }

    fn add_annotation(&mut self, annotation: &RawFields<'_>) {
        let name = annotation
            .text("name")
            .unwrap_or_else(|| "annotation".into());
        let result = annotation
            .object("result")
            .unwrap_or_else(|| annotation.clone());
        let value = result.get("label").or_else(|| result.get("score"));
        let mut verdict = verdict_of("phoenix", &name, value, result.text("explanation"));
        let score = result.number("score");
        verdict.score = score.filter(|score| (0.0..=1.0).contains(score));
        let mut whole = verdict.clone();
        if let Some(label) = result.text("label") {
            whole.value = label_and_number(&label, score);
        }
        let kind = annotation.text("annotator_kind").unwrap_or_default();
        if &*kind != "HUMAN" {
            self.verdicts.push(whole);
            return;
        }
        let (trace, by) = (&self.trace, annotation.id_text("user_id"));
        if score.is_some() && verdict.score.is_none() {
            // A label has no place for a number on another scale, so the verdict keeps it.
            self.verdicts.push(whole);
            keep_rating(verdict, trace, by, &mut self.labels, &mut Vec::new());
        } else {
            keep_rating(verdict, trace, by, &mut self.labels, &mut self.verdicts);
        }
    }

    fn finish(self, cx: RecordCx<'_>, out: &mut TranscriptSink) {
        let before = out.record_count();
        let mut verdicts = self.verdicts;
        build_decorated(&self.entries, cx.span, out, &mut |transcript| {
            transcript.verdicts.append(&mut verdicts);
        });
        for label in self.labels {
            out.attach_label_to(before, label);
        }
    }
}

/// Returns a span as OTLP JSON, and the number of bodies whose messages are left out. `bodies` are those of its log
/// records.
fn to_otlp(span: &RawFields<'_>, bodies: &[&RawValue]) -> (Value, usize) {
    let text = |keys: &[&str]| get_any(span, keys).map(|raw| text_or_json(raw).0.into_owned());
    let mut attributes = Attributes::default();
    for (key, raw) in span.iter() {
        match key {
            "attributes" | "tags" => attributes.add_all(raw),
            // A row of a table has a column per attribute.
            _ => {
                if let Some(key) = key.strip_prefix("attributes.") {
                    attributes.add(key, raw, MAX_DEPTH);
                }
            }
        }
    }
    if let Some(kind) = span
        .text("span_kind")
        .filter(|_| !attributes.has("openinference.span.kind"))
    {
        attributes.push("openinference.span.kind", &kind);
    }
    attributes.convert_adk();
    let events = list_events(span);
    let events = events.iter().filter_map(|raw| RawFields::from_raw(raw));
    let in_events = events.filter_map(|event| event.get("body"));
    let left_out = attributes.add_bodies(in_events.chain(bodies.iter().copied()));
    let end = [
        "end_time",
        "endTime",
        "end_time_unix_nano",
        "endTimeUnixNano",
    ];
    let start = parse_time(span.get_first(&START_KEYS));
    let end = parse_time(span.get_first(&end)).or_else(|| {
        // Jaeger writes microseconds.
        let duration = span.number("duration")?;
        Some(start?.saturating_add(truncate_to_count(duration * 1000.0)))
    });
    let parent = [
        "parent_span_id",
        "parentSpanId",
        "parent_id",
        "parentId",
        "parentSpanID",
    ];
    let parent = span.get_first(&parent).map(text_or_json).or_else(|| {
        let references = span.list("references")?;
        RawFields::from_raw(references.first().copied()?)?.id_text("spanID")
    });
    let name = ["name", "operationName", "span_name"];
    let mut entry = json!({
        "traceId": text(&TRACE_KEYS).unwrap_or_default(),
        "spanId": text(&SPAN_KEYS).unwrap_or_default(),
        "parentSpanId": parent.unwrap_or_default().to_string(),
        "name": text(&name).unwrap_or_default(),
        "attributes": attributes.pairs,
        "events": convert_events(span),
    });
    for (key, time) in [("startTimeUnixNano", start), ("endTimeUnixNano", end)] {
        if let Some(time) = time {
            entry[key] = time.to_string().into();
        }
    }
    if let Some(message) = failure(span) {
        entry["status"] = json!({ "code": 2, "message": message });
    }
    (entry, left_out)
}

/// Returns the message of a span that failed.
fn failure(span: &RawFields<'_>) -> Option<String> {
    let status = span.object("status").unwrap_or_default();
    let code = status
        .get_first(&["code", "status_code"])
        .or_else(|| span.get("status_code"));
    let code = code.map(text_or_json).unwrap_or_default();
    let is_error = matches!(
        &*code,
        "2" | "ERROR" | "STATUS_CODE_ERROR" | "StatusCode.ERROR"
    );
    let message = status
        .get_first(&["message", "description"])
        .or_else(|| span.get("status_message"));
    is_error.then(|| message.map(owned_text).unwrap_or_default())
}

fn list_events<'a>(span: &RawFields<'a>) -> Vec<&'a RawValue> {
    let mut lists = EVENT_KEYS.iter().filter_map(|key| span.list(key));
    lists.next().unwrap_or_default()
}

fn convert_events(span: &RawFields<'_>) -> Vec<Value> {
    let converted = list_events(span).into_iter().filter_map(|raw| {
        let event = RawFields::from_raw(raw)?;
        let name = event.text("name").or_else(|| event.text("event_name"))?;
        let mut attributes = Attributes::default();
        for key in ["attributes", "fields"] {
            if let Some(raw) = event.get(key) {
                attributes.add_all(raw);
            }
        }
        Some(json!({ "name": &*name, "attributes": attributes.pairs }))
    });
    converted.collect()
}

/// Attributes as OTLP JSON.
#[derive(Default)]
struct Attributes {
    pairs: Vec<Value>,
}

impl Attributes {
    fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|pair| pair["key"] == key)
    }

    fn text(&self, key: &str) -> Option<String> {
        let pair = self.pairs.iter().find(|pair| pair["key"] == key)?;
        Some(pair["value"]["stringValue"].as_str()?.to_owned())
    }

    fn push(&mut self, key: &str, text: &str) {
        self.pairs
            .push(json!({ "key": key, "value": { "stringValue": text } }));
    }

    /// Adds the messages of bodies of ADOT. Attributes of the span itself take precedence, then those of the first body.
    /// Returns the number of bodies with other messages than an earlier one.
    fn add_bodies<'a>(&mut self, bodies: impl Iterator<Item = &'a RawValue>) -> usize {
        let kinds = [
            "gen_ai.operation.name",
            "openinference.span.kind",
            "traceloop.span.kind",
        ];
        // Only the kind of the span itself counts, so that each body is read in the same way.
        let has_kind = kinds.iter().any(|key| self.has(key));
        let own = self.pairs.len();
        // The places of the attributes. A span can have many attributes and many bodies, so each key is searched once.
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut left_out = 0;
        for body in bodies {
            let mut differs = false;
            for (key, text) in body_attributes(body, has_kind) {
                let next = self.pairs.len();
                let at = *places.entry(key).or_insert_with(|| {
                    let found = self.pairs.iter().position(|pair| pair["key"] == key);
                    found.unwrap_or(next)
                });
                if at == next {
                    self.push(key, &text);
                } else {
                    differs |= at >= own && self.pairs[at]["value"]["stringValue"] != text;
                }
            }
            left_out += usize::from(differs);
        }
        left_out
    }

    /// Adds an object of attributes, or a list of `{key, value}` (OTLP, Jaeger).
    fn add_all(&mut self, raw: &RawValue) {
        if let Some(all) = RawFields::from_raw(raw) {
            for (key, raw) in all.iter() {
                self.add(key, raw, MAX_DEPTH);
            }
            return;
        }
        // Some stores keep the attributes as JSON in a text.
        if let Some(text) = json_string(raw)
            && let Ok(all) = RawFields::parse(&text)
        {
            for (key, raw) in all.iter() {
                self.add(key, raw, MAX_DEPTH);
            }
            return;
        }
        for raw in list_items(raw).unwrap_or_default() {
            let Some(pair) = RawFields::from_raw(raw) else {
                continue;
            };
            let (Some(key), Some(value)) = (pair.text("key"), pair.get("value")) else {
                continue;
            };
            // The value of OTLP is an object already.
            if value.get().starts_with('{') && pair.get("type").is_none() {
                if let Ok(value) = serde_json::from_str::<Value>(value.get()) {
                    self.pairs.push(json!({ "key": &*key, "value": value }));
                }
            } else {
                self.add(&key, value, MAX_DEPTH);
            }
        }
    }

    fn add(&mut self, key: &str, raw: &RawValue, depth: u8) {
        if raw.get() == "null" {
            return;
        }
        if let Some(text) = json_string(raw) {
            return self.push(key, &text);
        }
        let is_nested = raw.get().starts_with(['{', '[']);
        if !is_nested {
            let value = match raw.get() {
                "true" | "false" => json!({ "boolValue": raw.get() == "true" }),
                number if number.parse::<i64>().is_ok() => json!({ "intValue": number }),
                number => json!({ "doubleValue": number.parse::<f64>().unwrap_or_default() }),
            };
            self.pairs.push(json!({ "key": key, "value": value }));
            return;
        }
        // These conventions have JSON as one value; OpenInference has a path for each value.
        let is_json = key.starts_with("gen_ai.")
            || key.starts_with("ai.")
            || key.rsplit('.').next() == Some("value")
            || key.contains("json")
            || depth == 0;
        if is_json {
            return self.push(key, &owned_text(raw));
        }
        if let Some(fields) = RawFields::from_raw(raw) {
            for (inner, raw) in fields.iter() {
                self.add(&format!("{key}.{inner}"), raw, depth - 1);
            }
            return;
        }
        let items = list_items(raw).unwrap_or_default();
        if items.iter().any(|item| item.get().starts_with('{')) {
            for (at, raw) in items.iter().enumerate() {
                self.add(&format!("{key}.{at}"), raw, depth - 1);
            }
        } else {
            self.push(key, &owned_text(raw));
        }
    }

    /// Converts the attributes of Google's ADK, which has requests and replies as JSON of its own.
    fn convert_adk(&mut self) {
        let get = |key: &str| self.text(key).filter(|text| !matches!(&**text, "" | "{}"));
        let request = get("gcp.vertex.agent.llm_request");
        let response = get("gcp.vertex.agent.llm_response");
        let arguments = get("gcp.vertex.agent.tool_call_args");
        let result = get("gcp.vertex.agent.tool_response");
        for (key, json, role) in [
            ("gen_ai.input.messages", request, MessageRole::User),
            ("gen_ai.output.messages", response, MessageRole::Assistant),
        ] {
            let Some(json) = json.filter(|_| !self.has(key)) else {
                continue;
            };
            if let Ok(raw) = serde_json::from_str::<&RawValue>(&json) {
                let mut built = TranscriptBuilder::default();
                add_io(raw, &role, &mut built);
                if built.has_messages() {
                    self.push(key, &to_parts(&built));
                }
            }
        }
        for (key, text) in [
            ("gen_ai.tool.call.arguments", arguments),
            ("gen_ai.tool.call.result", result),
        ] {
            if let Some(text) = text.filter(|_| !self.has(key)) {
                self.push(key, &text);
            }
        }
    }
}
