//! Samples of lm-evaluation-harness (`samples_TASK_TIME.jsonl`, written with `--log_samples`).
//!
//! Responsible for one sample per record. The prompt is a user message, or the messages of a chat template; the reply is
//! the model's own text, not the filtered one. For a choice among texts, the reply is the text with the highest
//! likelihood. Metrics are verdicts of the judge `lm-eval`; the gold answer is in the metadata, as `target`.

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::native::{json_string, text_or_json};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::add_messages;
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, text_part, verdict_of};
use crate::model::MessageRole;

/// The keys of a sample that are not metrics.
const KEYS: [&str; 14] = [
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
    "task_name",
    "schema",
    "multiple_inputs",
];

/// Returns true if the first record is a sample.
pub(super) fn is_samples(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        s.has("doc_id") && s.has("resps") && (s.has("arguments") || s.has("doc"))
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_sample)
}

fn parse_sample(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let doc = fields.id_text("doc_id").unwrap_or_default();
    // The file is one task; a document occurs once for each filter.
    let filter = fields.text("filter").filter(|filter| &**filter != "none");
    let id = match &filter {
        Some(filter) => format!("{}:{}:{}", cx.source.stem(), &*doc, &**filter),
        None => format!("{}:{}", cx.source.stem(), &*doc),
    };
    let mut built = TranscriptBuilder::new("lm-eval", Some(id.into()));
    let arguments = list_arguments(&fields);
    let replies = list_replies(&fields);
    let likelihoods: Vec<Option<f64>> = replies.iter().map(|reply| likelihood(reply)).collect();
    let is_choice = !likelihoods.is_empty() && likelihoods.iter().all(Option::is_some);
    if is_choice {
        let best = likelihoods
            .iter()
            .enumerate()
            .max_by(|(_, a), (_, b)| a.unwrap_or(f64::MIN).total_cmp(&b.unwrap_or(f64::MIN)));
        let best = best.map_or(0, |(at, _)| at);
        if let Some((context, continuation)) = arguments.get(best) {
            add_prompt(context, &mut built);
            if let Some(text) = continuation.and_then(json_string) {
                built.push(MessageRole::Assistant, vec![text_part(text.trim_start())]);
            }
        }
        built.meta.set("choice", best);
    } else {
        if let Some((context, _)) = arguments.first() {
            add_prompt(context, &mut built);
        }
        // With repeats, the first reply is the answer that the default filter takes.
        if let Some(reply) = replies.first() {
            let texts = list_items(reply).unwrap_or_else(|| vec![reply]);
            if let Some(text) = texts.first() {
                built.push(MessageRole::Assistant, vec![text_part(&text_or_json(text))]);
            }
            if texts.len() > 1 {
                out.count_missing("a further reply of a repeated request is not read");
            }
        }
    }
    for key in [
        "target",
        "doc",
        "filtered_resps",
        "filter",
        "doc_id",
        "task_name",
    ] {
        built.meta.set_readable(key, fields.get(key));
    }
    add_metrics(&fields, &mut built);
    built.finish(out);
    Ok(())
}

/// Returns the context of each request and the continuation, or the settings of the generation.
fn list_arguments<'a>(fields: &RawFields<'a>) -> Vec<(&'a RawValue, Option<&'a RawValue>)> {
    // Newer versions write an object: `{gen_args_0: {arg_0, arg_1}}`.
    if let Some(object) = fields.object("arguments") {
        let requests = object.iter().filter_map(|(_, raw)| {
            let request = RawFields::from_raw(raw)?;
            Some((request.get("arg_0")?, request.get("arg_1")))
        });
        return requests.collect();
    }
    let requests = fields.list("arguments").unwrap_or_default();
    let requests = requests.into_iter().filter_map(|raw| {
        let request = list_items(raw)?;
        Some((*request.first()?, request.get(1).copied()))
    });
    requests.collect()
}

fn list_replies<'a>(fields: &RawFields<'a>) -> Vec<&'a RawValue> {
    fields.list("resps").unwrap_or_default()
}

/// Returns the log-likelihood of a reply, if it is one: `[[-3.2, false]]`, with numbers or texts.
fn likelihood(reply: &RawValue) -> Option<f64> {
    let first = list_items(reply)?.first().copied()?;
    let pair = list_items(first)?;
    let [number, greedy] = pair[..] else {
        return None;
    };
    let greedy = text_or_json(greedy).to_ascii_lowercase();
    if !["true", "false"].contains(&&*greedy) {
        return None;
    }
    text_or_json(number).parse().ok()
}

fn add_prompt(raw: &RawValue, built: &mut TranscriptBuilder) {
    let Some(text) = json_string(raw) else {
        return add_messages(raw, &MessageRole::User, built);
    };
    // A chat template without tokenization is a list of messages as JSON.
    if text.trim_start().starts_with("[{\"role\"")
        && let Ok(messages) = serde_json::from_str(text.trim())
    {
        return add_messages(messages, &MessageRole::User, built);
    }
    built.push_text(MessageRole::User, &text);
}

fn add_metrics(fields: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let names = fields.list("metrics").unwrap_or_default();
    let names: Vec<_> = names.iter().filter_map(|raw| json_string(raw)).collect();
    for (key, raw) in fields.iter() {
        let is_named = names.iter().any(|name| &**name == key);
        let is_number = raw.get().parse::<f64>().is_ok() || matches!(raw.get(), "true" | "false");
        if !KEYS.contains(&key)
            && raw.get() != "null"
            && (is_named || names.is_empty() && is_number)
        {
            built.push_verdict(verdict_of("lm-eval", key, Some(raw), None));
        }
    }
}
