//! Braintrust's logs and experiments: one span per row, as JSON lines or a list.
//!
//! Responsible for the rows with one `root_span_id`, which are one conversation. `scores` are verdicts of the judge
//! `braintrust`; the expected output and the metadata of the root are metadata.

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::native::parse_tags;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::record_readers::{Grouping, open_element_groups, parse_lines};
use super::trace_spans::{SpanKind, Trace, TraceSpan, parse_time};
use super::transcript_builder::verdict_of;
use crate::model::SourceText;

/// Returns true if the first record is a row.
pub(super) fn is_rows(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    [record, &record["events"][0]].iter().any(|row| {
        row["root_span_id"].is_string()
            && (!row["span_attributes"].is_null()
                || !row["scores"].is_null()
                || !row["span_id"].is_null())
    })
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    open_element_groups(
        source,
        preview,
        &["events"],
        Grouping {
            key: root_of,
            parse: parse_rows,
            without_group: "a row without a root span",
        },
    )
}

fn root_of(line: &[u8]) -> Option<String> {
    let row = RawFields::parse(std::str::from_utf8(line).ok()?).ok()?;
    Some(row.id_text("root_span_id")?.0.into_owned())
}

fn parse_rows(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut trace = Trace {
        source: "braintrust",
        ..Trace::default()
    };
    for (_, row) in parse_lines(lines, out) {
        add_row(&row, &mut trace);
    }
    trace.finish(cx, out);
}

fn add_row<'a>(row: &RawFields<'a>, trace: &mut Trace<'a>) {
    let root = row.id_text("root_span_id").unwrap_or_default();
    let id = row
        .id_text("span_id")
        .or_else(|| row.id_text("id"))
        .unwrap_or_default();
    let is_root = row.flag("is_root").unwrap_or(*id == *root);
    let attributes = row.object("span_attributes").unwrap_or_default();
    let kind = attributes.text("type").unwrap_or_default();
    let metrics = row.object("metrics").unwrap_or_default();
    let metadata = row.object("metadata");
    for (name, raw) in row.object("scores").unwrap_or_default().iter() {
        // A scorer that did not run has null.
        if raw.get() != "null" {
            trace
                .verdicts
                .push(verdict_of("braintrust", name, Some(raw), None));
        }
    }
    if is_root {
        trace.id = row.id_text("id").unwrap_or(root).0.into_owned();
        let meta = &mut trace.meta;
        meta.set_raw("timestamp", row.get("created"));
        meta.set_raw("name", attributes.get("name"));
        meta.set_readable("expected", row.get("expected"));
        meta.set_readable("error", row.get("error"));
        if let Some(metadata) = &metadata {
            meta.merge_readable_fields(metadata);
        }
        if let Some(tags) = row.get("tags") {
            let tags = parse_tags(tags).into_iter();
            trace.tags = tags.map(SourceText::into_owned).collect();
        }
    }
    let parents = row.list("span_parents").unwrap_or_default();
    let parent = parents
        .first()
        .map(|raw| super::super::native::text_or_json(raw));
    trace.spans.push(TraceSpan {
        id,
        parent,
        name: attributes.text("name").unwrap_or_default(),
        kind: match &*kind {
            "llm" => SpanKind::Chat,
            "tool" => SpanKind::Tool,
            _ => SpanKind::Step,
        },
        start: parse_time(metrics.get("start").or_else(|| row.get("created"))),
        end: parse_time(metrics.get("end")),
        input: row.get("input"),
        output: row.get("output"),
        model: metadata
            .as_ref()
            .and_then(|metadata| metadata.text("model")),
        usage: SourceUsage {
            input: metrics.integer("prompt_tokens"),
            output: metrics.integer("completion_tokens"),
            total: metrics.integer("tokens"),
            cached: metrics.integer("prompt_cached_tokens"),
            thinking: metrics.integer("completion_reasoning_tokens"),
        },
        cost: metrics.number("estimated_cost"),
        error: row.text_or_json("error").filter(|_| !is_root),
        call_id: None,
    });
}
