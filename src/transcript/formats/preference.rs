//! Datasets of answers that people or programs compared or rated: TRL's formats (`prompt` with `completion`, `chosen`
//! and `rejected`, `label`), LLaMA-Factory's DPO and KTO, and HH-RLHF's texts.
//!
//! Responsible for these records. A pair is two transcripts, `ID:chosen` and `ID:rejected`, with the metadata `pair` and
//! `choice`; the choice is also the verdict `chosen` of the source judge `preference`. A rating (`label`) is the verdict
//! `desirable`. Text with `\n\nHuman:` and `\n\nAssistant:` is split into turns.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::native::{json_string, text_or_json};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::alpaca::add_question;
use super::record_readers::open_records;
use super::sharegpt::{KEYS, add_all, add_extra_keys, begin};
use super::transcript_builder::{TranscriptBuilder, verdict_of};
use crate::model::MessageRole;

/// The keys of the better and the worse answer.
const PAIR_KEYS: [(&str, &str); 2] = [
    ("chosen", "rejected"),
    ("chosen_messages", "rejected_messages"),
];

/// The words that begin a turn in HH-RLHF's texts.
const TURNS: [(&str, MessageRole<'static>); 2] = [
    ("\n\nHuman:", MessageRole::User),
    ("\n\nAssistant:", MessageRole::Assistant),
];

/// Returns true if a value is text, a message, or a list of messages.
fn is_answer(value: &Value) -> bool {
    let is_message = |value: &Value| !value["role"].is_null() || !value["from"].is_null();
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.first().is_some_and(is_message),
        value => is_message(value),
    }
}

/// Returns true if the first record is a pair, a rated answer, or a prompt with its completion.
pub(super) fn is_dataset(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_pair = PAIR_KEYS
        .iter()
        .any(|(better, worse)| is_answer(&record[*better]) && is_answer(&record[*worse]));
    let is_completion = is_answer(&record["prompt"])
        && is_answer(&record["completion"])
        && record["model"].is_null()
        && record["provider"].is_null();
    let is_rated = record["label"].is_boolean() && record["messages"].is_array();
    is_pair || is_completion || is_rated
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_record)
}

fn parse_record(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    for (better, worse) in PAIR_KEYS {
        let (Some(chosen), Some(rejected)) = (fields.get(better), fields.get(worse)) else {
            continue;
        };
        // The id of the record names the pair. Without one, its content does: a number would change with the file.
        let default_id = format!("{}:{:016x}", cx.source.stem(), hash_text(record));
        for (answer, choice) in [(chosen, "chosen"), (rejected, "rejected")] {
            let mut built = begin(&fields);
            let pair = if built.id.is_empty() {
                default_id.clone()
            } else {
                std::mem::take(&mut built.id)
            };
            built.id = format!("{pair}:{choice}");
            built.meta.set("pair", pair);
            built.meta.set("choice", choice);
            add_prompt(&fields, &mut built);
            add_answer(answer, &mut built);
            let passed = choice == "chosen";
            let raw: &RawValue = serde_json::from_str(if passed { "true" } else { "false" })
                .map_err(|why| why.to_string())?;
            built.push_verdict(verdict_of("preference", "chosen", Some(raw), None));
            let used = [better, worse, "prompt", "instruction", "input", "history"];
            add_extra_keys(&fields, &[&used[..], &KEYS].concat(), &mut built);
            built.finish(out);
        }
        return Ok(());
    }
    let mut built = begin(&fields);
    add_prompt(&fields, &mut built);
    if let Some(completion) = fields.get("completion") {
        add_answer(completion, &mut built);
    }
    if let Some(label) = fields
        .get("label")
        .filter(|raw| fields.flag("label").is_some() && !raw.get().is_empty())
    {
        built.push_verdict(verdict_of("preference", "desirable", Some(label), None));
    }
    let used = [
        "prompt",
        "completion",
        "label",
        "instruction",
        "input",
        "history",
    ];
    add_extra_keys(&fields, &[&used[..], &KEYS].concat(), &mut built);
    built.finish(out);
    Ok(())
}

/// Returns the FNV-1a hash of a text, which is the same in every version.
pub(super) fn hash_text(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Adds what comes before the answer: a prompt, an instruction, or a conversation.
fn add_prompt(fields: &RawFields<'_>, built: &mut TranscriptBuilder) {
    if let Some(messages) = KEYS.iter().find_map(|key| fields.list(key)) {
        return add_all(&messages, built);
    }
    match fields.get("prompt") {
        Some(prompt) => add_value(prompt, &MessageRole::User, built),
        None => add_question(fields, built),
    }
}

fn add_answer(raw: &RawValue, built: &mut TranscriptBuilder) {
    let before = built.messages.len();
    add_value(raw, &MessageRole::Assistant, built);
    // A chosen conversation may repeat the prompt.
    let added = &built.messages[before..];
    let repeats = before > 0
        && added.len() > before
        && built.messages[..before]
            .iter()
            .zip(added)
            .all(|(a, b)| a.role == b.role && a.parts == b.parts);
    if repeats {
        built.messages.drain(..before);
    }
}

fn add_value(raw: &RawValue, default: &MessageRole<'static>, built: &mut TranscriptBuilder) {
    if let Some(items) = list_items(raw) {
        return add_all(&items, built);
    }
    let Some(text) = json_string(raw) else {
        return add_all(&[raw], built);
    };
    let turns = split_turns(&text);
    if turns.is_empty() {
        built.push_text(default.clone(), &text_or_json(raw));
    }
    for (role, text) in turns {
        // A prompt ends with the word of the assistant, before its answer.
        if !text.is_empty() {
            built.push_text(role, text);
        }
    }
}

/// Splits a text of HH-RLHF into its turns; empty if it is another text.
pub(super) fn split_turns(text: &str) -> Vec<(MessageRole<'static>, &str)> {
    let mut starts: Vec<(usize, usize, &MessageRole<'static>)> = Vec::new();
    for (word, role) in &TURNS {
        let found = memchr::memmem::find_iter(text.as_bytes(), word.as_bytes());
        starts.extend(found.map(|at| (at, at + word.len(), role)));
    }
    starts.sort_by_key(|(at, _, _)| *at);
    // Text before the first turn means that the words are part of an ordinary text.
    let begins = starts
        .first()
        .is_some_and(|(at, _, _)| text[..*at].trim().is_empty());
    if !begins {
        return Vec::new();
    }
    let ends: Vec<usize> = starts
        .iter()
        .skip(1)
        .map(|(at, _, _)| *at)
        .chain([text.len()])
        .collect();
    let turns = starts.iter().zip(ends);
    turns
        .map(|((_, from, role), to)| ((*role).clone(), text[*from..to].trim()))
        .collect()
}
