//! HELM's scenario states (`scenario_state.json`), with the statistics per instance next to them.
//!
//! Responsible for one request state per transcript, read one at a time. `per_instance_stats.json` in the folder has the
//! metrics, which are verdicts of the judge `helm`. The correct references are metadata.

use std::collections::HashMap;
use std::io::Read as _;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use super::super::source::SourceFile;
use super::foreign_message::add_messages;
use super::record_readers::elements_walker;
use super::transcript_builder::{TranscriptBuilder, reasoning_part, text_part, verdict_of};
use crate::model::{MessageRole, SourceVerdict};

/// The number of bytes that the reader reads of the statistics.
const MAX_STATS: u64 = 128 * 1024 * 1024;

/// The metrics of a model's answer. Others are statistics of the run, such as token counts.
const METRICS: [&str; 14] = [
    "exact_match",
    "quasi_exact_match",
    "prefix_exact_match",
    "quasi_prefix_exact_match",
    "f1_score",
    "rouge_1",
    "rouge_2",
    "rouge_l",
    "bleu_1",
    "bleu_4",
    "math_equiv",
    "math_equiv_chain_of_thought",
    "final_number_exact_match",
    "ifeval_strict_accuracy",
];

/// Returns true if the file is a scenario state.
pub(super) fn is_state(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| s.has("request_states"))
        || preview.first_matches(|s| s.has("adapter_spec"))
            && preview.first_outline()["adapter_spec"]["method"].is_string()
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let walk = elements_walker(source, preview, &[&["request_states"]])?;
    let parser = StateParser {
        stats: read_stats(source),
    };
    Ok(Box::new(PerRecordReader::new(walk, parser)))
}

/// The parser of request states.
#[derive(Debug)]
struct StateParser {
    /// The metrics by instance and trial.
    stats: HashMap<String, Vec<SourceVerdict>>,
}

/// Returns the key of an instance: its id, the trial, and the perturbation.
fn instance_key(id: &str, trial: u64, perturbation: &str) -> String {
    format!("{id}:{trial}:{perturbation}")
}

fn read_stats(source: &SourceFile) -> HashMap<String, Vec<SourceVerdict>> {
    let mut all = HashMap::new();
    let path = source.path().with_file_name("per_instance_stats.json");
    // Opening a pipe would block.
    if !path.is_file() {
        return all;
    }
    let Ok(file) = std::fs::File::open(&path) else {
        return all;
    };
    let mut text = String::new();
    if file.take(MAX_STATS).read_to_string(&mut text).is_err() {
        return all;
    }
    let Ok(raw) = serde_json::from_str::<&serde_json::value::RawValue>(&text) else {
        return all;
    };
    for raw in list_items(raw).unwrap_or_default() {
        let Some(instance) = RawFields::from_raw(raw) else {
            continue;
        };
        let id = instance.id_text("instance_id").unwrap_or_default();
        let trial = instance.integer("train_trial_index").unwrap_or_default();
        let perturbation = perturbation_name(&instance);
        let verdicts: &mut Vec<SourceVerdict> = all
            .entry(instance_key(&id, trial, &perturbation))
            .or_default();
        for raw in instance.list("stats").unwrap_or_default() {
            let Some(stat) = RawFields::from_raw(raw) else {
                continue;
            };
            let name = stat.object("name").unwrap_or_default();
            let metric = name.text("name").unwrap_or_default();
            if METRICS.contains(&&*metric) && stat.has("mean") {
                verdicts.push(verdict_of("helm", &metric, stat.get("mean"), None));
            }
        }
    }
    all
}

fn perturbation_name(fields: &RawFields<'_>) -> String {
    let perturbation = fields.object("perturbation").unwrap_or_default();
    let name = perturbation.text("name");
    name.map(|name| name.0.into_owned()).unwrap_or_default()
}

impl RecordParser for StateParser {
    fn parse_record(
        &self,
        record: &str,
        _: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let (record, _) = super::super::lenient::replace_non_finite(record);
        let fields = RawFields::parse(&record)?;
        let instance = fields.object("instance").unwrap_or_default();
        let request = fields.object("request").unwrap_or_default();
        let result = fields.object("result").unwrap_or_default();
        let name = instance.id_text("id").unwrap_or_default();
        let trial = fields.integer("train_trial_index").unwrap_or_default();
        let perturbation = perturbation_name(&instance);
        let mut id = name.to_string();
        if trial > 0 {
            id = format!("{id}:trial-{trial}");
        }
        if !perturbation.is_empty() {
            id = format!("{id}:{perturbation}");
        }
        // Separate multiple choice has one request per reference.
        if let Some(reference) = fields.integer("reference_index") {
            let mode = fields.text("request_mode").unwrap_or_default();
            id = format!(
                "{id}:{}reference-{reference}",
                if mode.is_empty() {
                    String::new()
                } else {
                    format!("{}-", &*mode)
                }
            );
        }
        let mut built = TranscriptBuilder::new("helm", Some(id.into()));
        match request.list("messages").filter(|all| !all.is_empty()) {
            Some(messages) => {
                for raw in messages {
                    add_messages(raw, &MessageRole::User, &mut built);
                }
            }
            None => {
                if let Some(prompt) = request.filled_text("prompt") {
                    built.push_text(MessageRole::User, &prompt);
                }
            }
        }
        let completions = result.list("completions").unwrap_or_default();
        if completions.len() > 1 {
            out.count_missing("a further completion is not read");
        }
        if let Some(completion) = completions.first().copied().and_then(RawFields::from_raw) {
            let thinking = completion
                .object("thinking")
                .and_then(|all| all.text("text"));
            let mut parts: Vec<_> = thinking
                .map(|text| reasoning_part(&text))
                .into_iter()
                .collect();
            parts.push(text_part(&completion.text("text").unwrap_or_default()));
            built.push(MessageRole::Assistant, parts);
            if let Some(meta) = built.last_meta(&MessageRole::Assistant) {
                meta.set_raw("model", request.get("model"));
                let finish = completion.object("finish_reason");
                meta.set_raw(
                    "stop_reason",
                    finish.as_ref().and_then(|all| all.get("reason")),
                );
                if let Some(seconds) = result.number("request_time") {
                    meta.set("latency_ms", seconds * 1000.0);
                }
            }
        }
        built
            .meta
            .set_raw("timestamp", result.get("request_datetime"));
        built.meta.set_raw("model", request.get("model"));
        built.meta.set_raw("split", instance.get("split"));
        if result.flag("success") == Some(false) {
            let error = result
                .text("error")
                .unwrap_or_else(|| "the request failed".into());
            built.meta.set("error", &*error);
        }
        let references = instance.list("references").unwrap_or_default();
        let correct = references.iter().filter_map(|raw| {
            let reference = RawFields::from_raw(raw)?;
            let tags = reference.list("tags")?;
            let is_correct = tags.iter().any(|tag| tag.get() == "\"correct\"");
            is_correct.then(|| Some(reference.object("output")?.text("text")?.to_string()))?
        });
        let correct: Vec<String> = correct.collect();
        if !correct.is_empty() {
            built.meta.set("references", correct);
        }
        for verdict in self
            .stats
            .get(&instance_key(&name, trial, &perturbation))
            .into_iter()
            .flatten()
        {
            built.push_verdict(verdict.clone());
        }
        built.finish(out);
        Ok(())
    }
}
