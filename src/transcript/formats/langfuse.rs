//! Langfuse: a trace with its observations and scores, as the API, the UI and exports write them.
//!
//! | file | one trace is |
//! |---|---|
//! | `trace-ID.json` of the UI | `{trace, observations}` |
//! | a reply of the API (`GET /traces/ID`, `GET /traces`) | an object with `observations` and `scores`; `data` is a list of them |
//! | `session-ID.json`, a list of traces | each trace |
//! | exported observations, one per line or in a list | the lines with one `trace_id` |
//!
//! Responsible for these layouts and for scores. Scores of people (source `ANNOTATION`) are labels, others are verdicts
//! of the judge `langfuse`. A trace without observations has its own input and output.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::record_readers::{Grouping, open_elements, open_groups, parse_lines};
use super::trace_spans::{SpanKind, Trace, TraceSpan, parse_time};
use super::transcript_builder::{keep_rating, verdict_of};
use crate::model::SourceText;

/// The types of observations.
const TYPES: [&str; 10] = [
    "SPAN",
    "GENERATION",
    "EVENT",
    "AGENT",
    "TOOL",
    "CHAIN",
    "RETRIEVER",
    "EVALUATOR",
    "EMBEDDING",
    "GUARDRAIL",
];

fn is_observation(value: &Value) -> bool {
    let has_trace = !value["traceId"].is_null() || !value["trace_id"].is_null();
    has_trace
        && value["type"]
            .as_str()
            .is_some_and(|kind| TYPES.contains(&kind))
}

fn is_trace(value: &Value) -> bool {
    let own = |value: &Value| {
        value["id"].is_string()
            && (!value["projectId"].is_null()
                || !value["sessionId"].is_null()
                || !value["htmlPath"].is_null())
    };
    let list = |value: &Value| match value["observations"].as_array() {
        Some(all) => all.iter().all(|one| one.is_string() || is_observation(one)),
        None => false,
    };
    (value["trace"].is_object() && (list(value) || list(&value["trace"])))
        || (own(value)
            && (list(value) || !value["scores"].is_null() || !value["htmlPath"].is_null()))
}

/// Returns true if the file has traces or observations of Langfuse.
pub(super) fn is_export(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let any_trace = |key: &str| {
        record[key]
            .as_array()
            .and_then(|all| all.first())
            .is_some_and(is_trace)
    };
    is_trace(record) || is_observation(record) || any_trace("data") || any_trace("traces")
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let record = preview.first_outline();
    if is_observation(record) {
        return Ok(open_groups(
            preview,
            Grouping {
                key: observation_trace,
                parse: parse_observations,
                without_group: "a line without a trace id",
            },
        ));
    }
    let paths: &[&[&str]] = match (record["data"].is_array(), record["traces"].is_array()) {
        (true, _) => &[&["data"]],
        (_, true) => &[&["traces"]],
        _ => &[],
    };
    open_elements(source, preview, paths, parse_trace)
}

fn observation_trace(line: &[u8]) -> Option<String> {
    let fields = RawFields::from_bytes(line)?;
    let id = fields
        .id_text("traceId")
        .or_else(|| fields.id_text("trace_id"))?;
    Some(id.0.into_owned())
}

fn parse_observations(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut trace = Trace {
        source: "langfuse",
        ..Trace::default()
    };
    for (text, fields) in parse_lines(lines, out) {
        if trace.id.is_empty() {
            trace.id = observation_trace(text.as_bytes()).unwrap_or_default();
            write_trace_metadata(&fields, &mut trace);
        }
        trace.spans.push(read_observation(&fields));
    }
    trace.finish(cx, out);
}

fn parse_trace(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let (mut trace, own) = Trace::begin("langfuse", &outer)?;
    write_trace_metadata(&own, &mut trace);
    let observations = ["observations"].iter().find_map(|key| {
        let list = outer.list(key).or_else(|| own.list(key))?;
        (!list.is_empty()).then_some(list)
    });
    for raw in observations.unwrap_or_default() {
        match RawFields::from_raw(raw) {
            Some(fields) => trace.spans.push(read_observation(&fields)),
            // A list of traces has only the ids of their observations.
            None => out.count_unknown("an observation that is only an id"),
        }
    }
    out.count_records(trace.spans.len() as u64);
    // The input and output of the trace are those of its root, if that has none.
    let root = TraceSpan {
        id: "trace".into(),
        name: own.text("name").unwrap_or_default(),
        kind: SpanKind::Agent,
        start: parse_time(own.get("timestamp")),
        input: own.get("input"),
        output: own.get("output"),
        ..TraceSpan::default()
    };
    let has_own = root.input.is_some() || root.output.is_some();
    let has_readable = trace
        .spans
        .iter()
        .any(|span| span.parent.is_none() && span.kind != SpanKind::Tool && span.output.is_some());
    if has_own && !has_readable {
        trace.spans.insert(0, root);
    }
    let mut scores = outer.list("scores").unwrap_or_default();
    if outer.has("trace") {
        scores.extend(own.list("scores").unwrap_or_default());
    }
    for raw in scores {
        match RawFields::from_raw(raw) {
            Some(score) => read_score(&score, &mut trace),
            None => out.count_unknown("a score that is only an id"),
        }
    }
    trace.finish(cx, out);
    Ok(())
}

fn write_trace_metadata(own: &RawFields<'_>, trace: &mut Trace<'_>) {
    let meta = &mut trace.meta;
    let first = |keys: &[&str]| keys.iter().find_map(|key| own.get(key));
    meta.set_raw("timestamp", first(&["timestamp", "start_time"]));
    meta.set_raw("name", first(&["trace_name", "name"]));
    meta.set_raw("user_id", first(&["userId", "user_id"]));
    meta.set_raw("session_id", first(&["sessionId", "session_id"]));
    for key in ["environment", "release", "version"] {
        meta.set_raw(key, own.get(key));
    }
    if own.get("totalCost").is_some_and(|cost| cost.get() != "0") {
        meta.set_raw("cost_usd", own.get("totalCost"));
    }
    if let Some(seconds) = own
        .number("latency")
        .filter(|_| own.has("observations") || own.has("projectId"))
    {
        meta.set("latency_ms", seconds * 1000.0);
    }
    // The metadata is an object, or its JSON in a text.
    let text = own.text("metadata");
    let decoded = text.as_ref().and_then(|text| RawFields::parse(text).ok());
    if let Some(metadata) = own.object("metadata").or(decoded) {
        meta.merge_readable_fields(&metadata);
    }
    trace.set_tags(own);
}

fn read_observation<'a>(fields: &RawFields<'a>) -> TraceSpan<'a> {
    let first = |keys: [&str; 2]| keys.iter().find_map(|key| fields.get(key));
    let text = |keys: [&str; 2]| keys.iter().find_map(|key| fields.id_text(key));
    let kind = match fields.text("type").as_deref() {
        Some("GENERATION") => SpanKind::Chat,
        Some("TOOL") => SpanKind::Tool,
        Some("AGENT") => SpanKind::Agent,
        _ => SpanKind::Step,
    };
    let usage = ["usageDetails", "usage_details", "usage"];
    let usage = usage.iter().find_map(|key| fields.object(key));
    let usage = usage.map_or_else(SourceUsage::default, |usage| {
        let first = |keys: &[&str]| keys.iter().find_map(|key| usage.integer(key));
        SourceUsage {
            input: first(&["input", "promptTokens", "input_tokens", "prompt_tokens"]),
            output: first(&[
                "output",
                "completionTokens",
                "output_tokens",
                "completion_tokens",
            ]),
            total: first(&["total", "totalTokens", "total_tokens"]),
            cached: first(&[
                "input_cached_tokens",
                "cache_read_input_tokens",
                "input_cache_read",
            ]),
            thinking: first(&["output_reasoning_tokens", "reasoning_tokens"]),
        }
    });
    let cost = ["totalCost", "total_cost", "calculatedTotalCost"];
    let is_error = fields.text("level").as_deref() == Some("ERROR");
    let error = is_error.then(|| {
        text(["statusMessage", "status_message"]).unwrap_or_else(|| "the observation failed".into())
    });
    TraceSpan {
        id: fields.id_text("id").unwrap_or_default(),
        parent: text(["parentObservationId", "parent_observation_id"]),
        name: tool_name(fields, kind),
        kind,
        start: parse_time(first(["startTime", "start_time"])),
        end: parse_time(first(["endTime", "end_time"])),
        input: fields.get("input"),
        output: fields.get("output"),
        model: text(["model", "provided_model_name"]),
        usage,
        cost: cost.iter().find_map(|key| fields.number(key)),
        error,
        call_id: None,
    }
}

/// Returns the name of an observation; of a tool without the prefix that OpenTelemetry's conventions add.
fn tool_name<'a>(fields: &RawFields<'a>, kind: SpanKind) -> SourceText<'a> {
    let name = fields.text("name").unwrap_or_default();
    let prefix = "execute_tool ";
    if kind != SpanKind::Tool || !name.starts_with(prefix) {
        return name;
    }
    SourceText(match name.0 {
        Cow::Borrowed(name) => Cow::Borrowed(&name[prefix.len()..]),
        Cow::Owned(name) => Cow::Owned(name[prefix.len()..].to_owned()),
    })
}

/// Adds a score: a label if a person gave it, else a verdict.
fn read_score(score: &RawFields<'_>, trace: &mut Trace<'_>) {
    let name = score.text("name").unwrap_or_else(|| "score".into());
    let kind = ["dataType", "data_type"]
        .iter()
        .find_map(|key| score.text(key));
    let text = ["stringValue", "string_value"]
        .iter()
        .find_map(|key| score.get(key));
    let number = score.get("value");
    // A category has its name in `stringValue`, and an arbitrary number in `value`.
    let value = match kind.as_deref() {
        Some("CATEGORICAL") => text.or(number),
        _ => number.or(text),
    };
    let mut verdict = verdict_of("langfuse", &name, value, score.text("comment"));
    if kind.as_deref() == Some("BOOLEAN") {
        verdict.passed = match number.map(RawValue::get) {
            Some("1" | "1.0" | "true") => Some(true),
            Some("0" | "0.0" | "false") => Some(false),
            _ => None,
        };
    }
    if score.text("source").as_deref() == Some("ANNOTATION") {
        let by = ["authorUserId", "author_user_id"];
        let by = by.iter().find_map(|key| score.id_text(key));
        keep_rating(
            verdict,
            &trace.id,
            by,
            &mut trace.labels,
            &mut trace.verdicts,
        );
    } else {
        trace.verdicts.push(verdict);
    }
}
