//! Records of TruLens: the rows of `get_records_and_feedback` as JSON, and a record itself.
//!
//! | in a row | becomes |
//! |---|---|
//! | `input` and `output`, which may be JSON in a text; in a record, `main_input` and `main_output` | the prompt and the answer |
//! | a column next to which `NAME_calls` is | a verdict of the judge `trulens`, with the reason in its first call |
//! | `cost_json` or `cost`, `perf_json` or `perf`, `latency`, `total_cost` | tokens, cost and duration |
//! | `calls` of the app in `record_json` | counted |

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, owned_text, verdict_of};
use crate::model::{MessageRole, SourceText};

/// The columns that other programs do not have next to a `record_id`.
const COLUMNS: [&str; 5] = ["record_json", "cost_json", "perf_json", "app_json", "ts"];

/// Returns true if the first record is a row or a record.
pub(super) fn is_records(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        let is_row = s.has("input") && s.has("output") && COLUMNS.iter().any(|key| s.has(key));
        let is_record = s.has("main_input") && (s.has("main_output") || s.has("calls"));
        s.has("record_id") && s.has("app_id") && (is_row || is_record)
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_row)
}

fn parse_row(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let row = RawFields::parse(record)?;
    let inner = unpacked(&row, &["record_json"]);
    let inner = inner.as_deref().and_then(RawFields::from_raw);
    let inner = inner.unwrap_or_default();
    let mut built = TranscriptBuilder::new("trulens", row.id_text("record_id"));
    let input = row.get("input").or_else(|| row.get("main_input"));
    let output = row.get("output").or_else(|| row.get("main_output"));
    let error = row.get("main_error").or_else(|| inner.get("main_error"));
    if let Some(input) = input.or_else(|| inner.get("main_input")) {
        built.push_text(MessageRole::User, &plain_text(input));
    }
    if let Some(output) = output.or_else(|| inner.get("main_output")) {
        built.push_text(MessageRole::Assistant, &plain_text(output));
    }
    write_metadata(&row, &inner, &mut built);
    built.meta.set_raw("error", error);
    for (key, calls) in row.iter() {
        let Some(name) = key.strip_suffix("_calls") else {
            continue;
        };
        let score = row.get(name).filter(|raw| is_number(raw));
        if score.is_some() {
            built.push_verdict(verdict_of("trulens", name, score, reason_of(calls)));
        }
    }
    let calls = row.list("calls").or_else(|| inner.list("calls"));
    let count = calls.unwrap_or_default().len();
    built.count_unknown("a call inside the app", count);
    built.finish(out);
    Ok(())
}

fn is_number(raw: &RawValue) -> bool {
    raw.get().parse::<f64>().is_ok()
}

fn write_metadata(row: &RawFields<'_>, inner: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let perf = unpacked(row, &["perf_json", "perf"]);
    let perf = perf.as_deref().and_then(RawFields::from_raw);
    let perf = perf.or_else(|| inner.object("perf")).unwrap_or_default();
    let cost = unpacked(row, &["cost_json", "cost"]);
    let cost = cost.as_deref().and_then(RawFields::from_raw);
    let cost = cost.or_else(|| inner.object("cost")).unwrap_or_default();
    let time = perf.get("start_time").or_else(|| row.get("ts"));
    built.meta.set_raw("timestamp", time);
    let usage = SourceUsage {
        input: cost.integer("n_prompt_tokens"),
        output: cost.integer("n_completion_tokens"),
        total: cost.integer("n_tokens"),
        ..SourceUsage::default()
    };
    built.meta.set("usage", usage.to_json());
    let money = cost.get("cost").or_else(|| row.get("total_cost"));
    built.meta.set_raw("cost_usd", money);
    // Seconds.
    if let Some(seconds) = row.number("latency") {
        built.meta.set("latency_ms", seconds * 1000.0);
    }
    for key in ["app_id", "app_name", "app_version", "type"] {
        built.meta.set_raw(key, row.get(key));
    }
    let tags = row.text("tags").unwrap_or_default();
    // A row has `-` without tags.
    if !matches!(&*tags, "" | "-") {
        built.tags.push(SourceText::from(tags.0.into_owned()));
    }
    if let Some(facts) = row.object("meta").or_else(|| inner.object("meta")) {
        built.meta.merge_readable_fields(&facts);
    }
}

/// Returns the first of these values, which may be JSON in a text.
fn unpacked<'a>(row: &RawFields<'a>, keys: &[&str]) -> Option<Cow<'a, RawValue>> {
    let written = row.get_first(keys)?;
    let text = json_string(written).filter(|text| text.trim_start().starts_with('{'));
    let value = text.and_then(|text| serde_json::from_str::<Box<RawValue>>(&text).ok());
    Some(value.map_or(Cow::Borrowed(written), Cow::Owned))
}

/// Returns a text. Older versions write it as JSON, in quotes.
fn plain_text(raw: &RawValue) -> String {
    let text = owned_text(raw);
    let quoted = Some(&text).filter(|text| text.starts_with('"'));
    let plain = quoted.and_then(|text| serde_json::from_str::<String>(text).ok());
    plain.unwrap_or(text)
}

/// Returns the reason in the first call of a feedback function.
fn reason_of(calls: &RawValue) -> Option<SourceText<'static>> {
    let items = list_items(calls)?;
    let first = items.first().and_then(|item| RawFields::from_raw(item))?;
    let facts = first.object("meta")?;
    let reason = facts.get_first(&["reason", "reasons"])?;
    let reason: Value = serde_json::from_str(reason.get()).ok()?;
    let reason = reason
        .as_str()
        .map_or_else(|| reason.to_string(), str::to_owned);
    Some(SourceText::from(reason))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    #[test]
    fn rows_and_records_are_read() {
        let cost =
            json!({"n_tokens": 30, "n_prompt_tokens": 20, "n_completion_tokens": 10, "cost": 0.25});
        let perf = json!({"start_time": "2024-05-01T00:00:00", "end_time": "2024-05-01T00:00:02"});
        let inner = json!({"record_id": "r1", "app_id": "a1", "main_input": "Why?", "main_output": "So.", "calls": [{"stack": []}],
            "cost": cost, "perf": perf, "tags": "-", "meta": {"user": "ann"}, "main_error": null});
        let row = json!({"app_id": "a1", "app_name": "Bot", "record_id": "r1", "input": "\"Why?\"", "output": "So.", "tags": "v1",
            "record_json": inner.to_string(), "cost_json": cost.to_string(), "perf_json": perf.to_string(), "ts": "2024-05-01",
            "Groundedness": 0.5, "Groundedness_calls": [{"args": {}, "ret": 0.5, "meta": {"reason": "half"}}],
            "Relevance": null, "Relevance_calls": null, "latency": 2, "total_tokens": 30, "total_cost": 0.25});
        for (file, has_verdict) in [(json!([row]), true), (inner, false)] {
            let (all, tally) = read(file.to_string().as_bytes());
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(message_lines(one), ["user Why?", "assistant So."], "{file}");
            assert_eq!(one["id"], "r1");
            let meta = &one["metadata"];
            assert_eq!(
                meta["usage"],
                json!({"input": 20, "output": 10, "total": 30})
            );
            assert_eq!(meta["cost_usd"], 0.25);
            assert_eq!(meta["timestamp"], "2024-05-01T00:00:00");
            assert_eq!(meta["user"], "ann");
            let counts: Vec<_> = tally.unknown.into_iter().collect();
            assert_eq!(counts, [("a call inside the app".to_owned(), 1)]);
            if has_verdict {
                let verdicts = one["verdicts"].as_array().expect("verdicts");
                assert_eq!(verdicts.len(), 1);
                assert_eq!(verdicts[0]["eval"], "Groundedness");
                assert_eq!(verdicts[0]["score"], 0.5);
                assert_eq!(verdicts[0]["reasoning"], "half");
                assert_eq!(one["tags"], json!(["v1"]));
                assert_eq!(meta["latency_ms"], 2000.0);
            }
        }
    }
}
