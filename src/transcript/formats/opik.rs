//! Opik's traces.
//!
//! | file | one trace is |
//! |---|---|
//! | `opik export` (`trace_ID.json`) | `{trace, spans}` |
//! | `search_traces` as JSON, a page of the API (`content`) | an object without spans |
//!
//! Responsible for spans and scores. Scores of people (source `ui`) are labels, others are verdicts of the judge `opik`. A
//! trace without spans has its own input and output.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::record_readers::open_elements;
use super::trace_spans::{SpanKind, Trace, TraceSpan, parse_time};
use super::transcript_builder::{keep_rating, verdict_with_category};
use crate::model::{SourceText, parse_pass_or_fail};

/// Returns true if the first record is a trace, an export of one, or a page of them.
pub(super) fn is_traces(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let spans = record["spans"].as_array();
    let are_spans = spans.is_some_and(|all| all.iter().all(|span| span["trace_id"].is_string()));
    (are_spans && record["trace"]["start_time"].is_string() && record["trace"]["id"].is_string())
        || is_trace(record)
        || is_trace(&record["content"][0])
}

fn is_trace(value: &Value) -> bool {
    let texts = ["id", "project_id", "start_time"];
    let own = [
        "feedback_scores",
        "llm_span_count",
        "span_count",
        "total_estimated_cost",
        "visibility_mode",
    ];
    texts.iter().all(|key| value[*key].is_string())
        && own.iter().any(|key| !value[*key].is_null())
        && (!value["input"].is_null() || !value["output"].is_null())
        // A span names its trace.
        && value["trace_id"].is_null()
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let paths: &[&[&str]] = if preview.first_outline()["content"].is_array() {
        &[&["content"]]
    } else {
        &[]
    };
    open_elements(source, preview, paths, parse_trace)
}

fn parse_trace(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let (mut trace, own) = Trace::begin("opik", &outer)?;
    write_trace_metadata(&own, &mut trace);
    for (at, raw) in outer
        .list("spans")
        .unwrap_or_default()
        .into_iter()
        .enumerate()
    {
        let Some(fields) = RawFields::from_raw(raw) else {
            out.count_unknown("a span that is not an object");
            continue;
        };
        trace.spans.push(read_span(&fields));
        for raw in fields.list("feedback_scores").unwrap_or_default() {
            add_score(raw, &format!("@{}", at + 1), &mut trace);
        }
    }
    out.count_records(trace.spans.len() as u64);
    // The input and output of the trace are those of its root, if that has none.
    let has_readable = trace
        .spans
        .iter()
        .any(|span| span.parent.is_none() && span.kind != SpanKind::Tool && span.output.is_some());
    if !has_readable && (own.has("input") || own.has("output")) {
        let root = TraceSpan {
            id: "trace".into(),
            name: own.text("name").unwrap_or_default(),
            kind: SpanKind::Agent,
            start: parse_time(own.get("start_time")),
            input: own.get("input"),
            output: own.get("output"),
            ..TraceSpan::default()
        };
        trace.spans.insert(0, root);
    }
    for raw in own.list("feedback_scores").unwrap_or_default() {
        add_score(raw, "", &mut trace);
    }
    trace.finish(cx, out);
    Ok(())
}

fn write_trace_metadata(own: &RawFields<'_>, trace: &mut Trace<'_>) {
    let meta = &mut trace.meta;
    meta.set_raw("timestamp", own.get("start_time"));
    meta.set_raw("name", own.get("name"));
    meta.set_raw("session_id", own.get("thread_id"));
    meta.set_raw("latency_ms", own.get("duration"));
    // The cost of unknown models is 0.
    let cost = own.number("total_estimated_cost");
    if cost.is_some_and(|cost| cost > 0.0) {
        meta.set_raw("cost_usd", own.get("total_estimated_cost"));
    }
    if let Some(error) = own.object("error_info") {
        meta.set_raw("error", error.get_first(&["message", "exception_type"]));
    }
    if let Some(metadata) = own.object("metadata") {
        meta.merge_readable_fields(&metadata);
    }
    trace.set_tags(own);
}

fn read_span<'a>(fields: &RawFields<'a>) -> TraceSpan<'a> {
    let usage = fields.object("usage").unwrap_or_default();
    let error = fields.object("error_info").map(|error| {
        let why = ["message", "exception_type"];
        let why = why.iter().find_map(|key| error.text(key));
        why.unwrap_or_else(|| "the span failed".into())
    });
    TraceSpan {
        id: fields.id_text("id").unwrap_or_default(),
        parent: fields.id_text("parent_span_id"),
        name: fields.text("name").unwrap_or_default(),
        kind: match fields.text("type").as_deref() {
            Some("llm") => SpanKind::Chat,
            Some("tool") => SpanKind::Tool,
            _ => SpanKind::Step,
        },
        start: parse_time(fields.get("start_time")),
        end: parse_time(fields.get("end_time")),
        input: fields.get("input"),
        output: fields.get("output"),
        model: fields.text("model"),
        usage: SourceUsage {
            input: usage.integer("prompt_tokens"),
            output: usage.integer("completion_tokens"),
            total: usage.integer("total_tokens"),
            ..SourceUsage::default()
        },
        cost: fields.number("total_estimated_cost"),
        error,
        call_id: None,
    }
}

/// Adds a score: the value of each author, if it has several. `place` is the position of its span.
fn add_score(raw: &RawValue, place: &str, trace: &mut Trace<'_>) {
    let score = RawFields::from_raw(raw).unwrap_or_default();
    let name = score.text("name").unwrap_or_else(|| "score".into());
    let name = format!("{name}{place}");
    let authors = score.object("value_by_author").unwrap_or_default();
    if authors.iter().count() < 2 {
        return add_value(&name, &score, score.id_text("created_by"), trace);
    }
    for (author, raw) in authors.iter() {
        let value = RawFields::from_raw(raw).unwrap_or_default();
        add_value(&name, &value, Some(author.into()), trace);
    }
}

fn add_value(name: &str, score: &RawFields<'_>, by: Option<SourceText<'_>>, trace: &mut Trace<'_>) {
    let (category, value) = (score.get("category_name"), score.get("value"));
    let mut verdict = verdict_with_category("opik", name, category, value, score.text("reason"));
    let stated = category.and_then(json_string);
    let stated = stated.and_then(|category| parse_pass_or_fail(&category));
    verdict.passed = verdict.passed.or(stated);
    if score.text("source").as_deref() != Some("ui") {
        trace.verdicts.push(verdict);
        return;
    }
    keep_rating(
        verdict,
        &trace.id,
        by,
        &mut trace.labels,
        &mut trace.verdicts,
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::read;

    #[test]
    fn score_keeps_its_category_next_to_its_number() {
        let trace = json!({
            "id": "t", "project_id": "p", "start_time": "2025-01-01T00:00:00Z",
            "input": {"question": "Hi"}, "output": {"answer": "Hello"},
            "feedback_scores": [
                {"name": "tone", "category_name": "formal", "value": 0.5, "source": "sdk"},
                {"name": "stars", "category_name": "great", "value": 4, "source": "sdk"},
            ],
        });
        let (all, _) = read(format!("{trace}\n").as_bytes());
        assert_eq!(
            all[0].as_ref().expect("a trace")["verdicts"],
            json!([
                {"judge": "opik", "eval": "tone", "score": 0.5, "value": "formal"},
                {"judge": "opik", "eval": "stars", "value": {"label": "great", "score": 4}},
            ])
        );
    }
}
