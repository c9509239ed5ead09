//! Braintrust's logs and experiments: one span per row, as JSON lines or a list.
//!
//! Responsible for the rows with one `root_span_id`, which are one conversation. `scores` are verdicts of the judge
//! `braintrust`; the expected output and the metadata of the root are metadata. The SDK sends a span as several rows: a
//! row with `_is_merge` has what changed after the row with the same `id`.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::record_readers::{Grouping, open_element_groups, parse_lines};
use super::trace_spans::{SpanKind, Trace, TraceSpan, parse_time};
use super::transcript_builder::verdict_of;

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
    let row = RawFields::from_bytes(line)?;
    Some(row.id_text("root_span_id")?.0.into_owned())
}

fn parse_rows(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut trace = Trace {
        source: "braintrust",
        ..Trace::default()
    };
    let rows = parse_lines(lines, out).into_iter().map(|(_, row)| row);
    for row in merge_rows(rows) {
        add_row(&row, &mut trace);
    }
    trace.finish(cx, out);
}

/// A row with the changes that later rows make.
#[derive(Debug)]
struct MergedRow<'a> {
    /// The keys of all rows. The value of a later row counts.
    fields: RawFields<'a>,
    /// The rows in order.
    rows: Vec<RawFields<'a>>,
}

impl<'a> MergedRow<'a> {
    fn new(row: RawFields<'a>) -> Self {
        Self {
            fields: row.clone(),
            rows: vec![row],
        }
    }

    /// Adds the changes of a later row.
    fn merge(&mut self, row: RawFields<'a>) {
        self.fields.extend(row.clone());
        self.rows.push(row);
    }

    /// Returns an object with the entries that all rows have in it.
    fn object(&self, key: &str) -> Option<RawFields<'a>> {
        let mut objects = self.rows.iter().filter_map(|row| row.object(key));
        let mut merged = objects.next()?;
        for object in objects {
            merged.extend(object);
        }
        Some(merged)
    }
}

/// Returns the rows, each with the changes of later rows with its id.
fn merge_rows<'a>(rows: impl Iterator<Item = RawFields<'a>>) -> Vec<MergedRow<'a>> {
    let mut merged: Vec<MergedRow<'a>> = Vec::new();
    let mut index_of: HashMap<String, usize> = HashMap::new();
    for row in rows {
        let id = row.id_text("id").map(|id| id.0.into_owned());
        let known = id.as_ref().and_then(|id| index_of.get(id)).copied();
        match known {
            Some(at) if row.flag("_is_merge") == Some(true) => merged[at].merge(row),
            _ => {
                if let Some(id) = id {
                    index_of.insert(id, merged.len());
                }
                merged.push(MergedRow::new(row));
            }
        }
    }
    merged
}

fn add_row<'a>(merged: &MergedRow<'a>, trace: &mut Trace<'a>) {
    let row = &merged.fields;
    let root = row.id_text("root_span_id").unwrap_or_default();
    let id = row
        .id_text("span_id")
        .or_else(|| row.id_text("id"))
        .unwrap_or_default();
    let is_root = row.flag("is_root").unwrap_or(*id == *root);
    let attributes = merged.object("span_attributes").unwrap_or_default();
    let kind = attributes.text("type").unwrap_or_default();
    let metrics = merged.object("metrics").unwrap_or_default();
    let metadata = merged.object("metadata");
    let scores = merged.object("scores").unwrap_or_default();
    // The score of a later row replaces that of an earlier one.
    let scores: IndexMap<&str, &RawValue> = scores.iter().collect();
    for (name, raw) in scores {
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
        trace.set_tags(row);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    #[test]
    fn later_rows_of_a_span_have_its_reply_and_its_scores() {
        let begun = json!({"id": "r1", "span_id": "s1", "root_span_id": "s1", "_is_merge": false,
            "span_attributes": {"name": "chat", "type": "llm"}, "metrics": {"start": 1.5e9}, "metadata": {"model": "m"},
            "input": [{"role": "user", "content": "Hi."}]});
        let ended = json!({"id": "r1", "span_id": "s1", "root_span_id": "s1", "_is_merge": true,
            "metrics": {"end": 1.6e9, "tokens": 7}, "output": [{"role": "assistant", "content": "Hello."}], "scores": {"tone": 0.5}});
        let scored = json!({"id": "r1", "span_id": "s1", "root_span_id": "s1", "_is_merge": true, "scores": {"tone": 1}});
        let (all, tally) = read(format!("{begun}\n{ended}\n{scored}\n").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(all.len(), 1);
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Hi.", "assistant Hello."]);
        let verdicts = one["verdicts"].as_array().expect("verdicts");
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts[0]["score"], 1.0);
        let reply = &one["messages"][1]["metadata"];
        assert_eq!(reply["usage"]["total"], 7);
        assert_eq!(reply["model"], "m");
    }
}
