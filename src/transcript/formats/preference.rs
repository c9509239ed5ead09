//! Datasets of answers that people or programs compared or rated: TRL's formats (`prompt` with `completion`, `chosen`
//! and `rejected`, `label`), LLaMA-Factory's DPO and KTO, HH-RLHF's texts, annotations of AlpacaEval, and UltraFeedback.
//!
//! Responsible for these records. A pair is two transcripts, `ID:chosen` and `ID:rejected`, with the metadata `pair` and
//! `choice`; the choice is also the verdict `chosen` of the source judge `preference`. A rating (`label`) is the verdict
//! `desirable`. Text with `\n\nHuman:` and `\n\nAssistant:` is split into turns.

use std::cmp::Ordering;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::native::{json_string, text_or_json};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::alpaca::{add_question, question_key};
use super::record_readers::open_records;
use super::sharegpt::{KEYS, add_all, add_extra_keys, begin, find_id};
use super::transcript_builder::{TranscriptBuilder, verdict_of};
use crate::model::{MessageRole, SourceText, SourceVerdict};

/// The keys of the better and the worse answer.
const PAIR_KEYS: [(&str, &str); 2] = [
    ("chosen", "rejected"),
    ("chosen_messages", "rejected_messages"),
];

/// The keys of the two answers of AlpacaEval, with those of the models that gave them.
const COMPARED_KEYS: [(&str, &str); 2] = [("output_1", "generator_1"), ("output_2", "generator_2")];

/// The keys of the scores of a whole answer in UltraFeedback.
const WHOLE_SCORES: [&str; 2] = ["overall_score", "fine-grained_score"];

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
    let is_compared = record["instruction"].is_string()
        && COMPARED_KEYS
            .iter()
            .all(|(answer, _)| record[*answer].is_string());
    is_pair || is_completion || is_rated || is_compared || has_completions(record)
}

/// Returns true if a record has an instruction and the answers of several models (UltraFeedback).
fn has_completions(record: &Value) -> bool {
    let answers = record["completions"].as_array();
    let first = answers.and_then(|all| all.first());
    record["instruction"].is_string() && first.is_some_and(|one| one["response"].is_string())
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_record)
}

fn parse_record(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    for (better, worse) in PAIR_KEYS {
        let answers = [
            (fields.get(better), "chosen"),
            (fields.get(worse), "rejected"),
        ];
        let has_keys = fields.has_key(better) && fields.has_key(worse);
        if !has_keys || answers.iter().all(|(answer, _)| answer.is_none()) {
            continue;
        }
        let pair = shared_id(&fields, record, cx);
        for (answer, choice) in answers {
            let Some(answer) = answer else {
                out.count_missing("one of the two answers of a pair is missing");
                continue;
            };
            let mut built = begin(&fields);
            built.id = format!("{pair}:{choice}");
            built.meta.set("pair", pair.as_str());
            built.meta.set("choice", choice);
            add_prompt(&fields, &mut built);
            add_answer(answer, &mut built);
            let passed = choice == "chosen";
            let raw: &RawValue = serde_json::from_str(if passed { "true" } else { "false" })
                .map_err(|why| why.to_string())?;
            built.push_verdict(verdict_of("preference", "chosen", Some(raw), None));
            let question = used_question_key(&fields);
            let used = [
                better,
                worse,
                question,
                "prompt",
                "instruction",
                "input",
                "history",
            ];
            add_extra_keys(&fields, &[&used[..], &KEYS].concat(), &mut built);
            built.finish(out);
        }
        return Ok(());
    }
    if COMPARED_KEYS.iter().all(|(answer, _)| fields.has(answer)) {
        add_compared(&fields, record, cx, out);
        return Ok(());
    }
    let answers = fields.list("completions");
    if let Some(answers) = answers.filter(|_| fields.text("instruction").is_some()) {
        add_completions(&fields, &answers, record, cx, out);
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
        used_question_key(&fields),
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

/// Returns the id that the answers of a record share. Without an id of the record, its content names them: a number would
/// change with the file.
fn shared_id(fields: &RawFields<'_>, record: &str, cx: RecordCx<'_>) -> String {
    match find_id(fields) {
        Some(id) => id.0.into_owned(),
        None => format!("{}:{:016x}", cx.source.stem(), hash_text(record)),
    }
}

/// Adds the two answers of an annotation of AlpacaEval. `preference` is between 1, for the first answer, and 2; 0 is a tie.
fn add_compared(fields: &RawFields<'_>, record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let preference = fields.number("preference");
    let preference = preference.map(|number| if number == 0.0 { 1.5 } else { number });
    let share = preference
        .map(|number| number - 1.0)
        .filter(|share| (0.0..=1.0).contains(share));
    let pair = shared_id(fields, record, cx);
    for (index, (answer, generator)) in COMPARED_KEYS.into_iter().enumerate() {
        let mut built = begin(fields);
        built.id = format!("{pair}:{answer}");
        built.meta.set("pair", pair.as_str());
        built.meta.set("choice", answer);
        built.meta.set_raw("model", fields.get(generator));
        add_prompt(fields, &mut built);
        if let Some(answer) = fields.get(answer) {
            add_answer(answer, &mut built);
        }
        if let Some(share) = share {
            let score = if index == 0 { 1.0 - share } else { share };
            let mut verdict = verdict_of("preference", "chosen", fields.get("preference"), None);
            verdict.score = Some(score);
            // A tie is not a choice.
            verdict.passed = match score.total_cmp(&0.5) {
                Ordering::Greater => Some(true),
                Ordering::Less => Some(false),
                Ordering::Equal => None,
            };
            built.push_verdict(verdict);
        }
        let mut used: Vec<&str> = COMPARED_KEYS.iter().flat_map(|(a, b)| [*a, *b]).collect();
        used.extend(["instruction", "input", "history", "prompt"]);
        used.extend(KEYS);
        add_extra_keys(fields, &used, &mut built);
        built.finish(out);
    }
}

/// Adds the answers of several models to one instruction, each with its ratings.
fn add_completions(
    fields: &RawFields<'_>,
    answers: &[&RawValue],
    record: &str,
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) {
    if answers.is_empty() {
        out.count_missing("the answers (`completions`) are missing");
    }
    let id = shared_id(fields, record, cx);
    for (number, raw) in (1..).zip(answers.iter().copied()) {
        let Some(answer) = RawFields::from_raw(raw) else {
            out.count_unknown("an answer that is not an object");
            continue;
        };
        let mut built = begin(fields);
        built.id = format!("{id}:{number}");
        if let Some(system) = answer.filled_text("custom_system_prompt") {
            built.push_text(MessageRole::System, &system);
        }
        add_prompt(fields, &mut built);
        match answer.get("response") {
            Some(response) => add_answer(response, &mut built),
            None => out.count_missing("the answer (`response`) is missing"),
        }
        built.meta.set_raw("model", answer.get("model"));
        built.meta.set_raw("principle", answer.get("principle"));
        for (aspect, raw) in answer.object("annotations").unwrap_or_default().iter() {
            let Some(rating) = RawFields::from_raw(raw) else {
                built.count_unknown("a rating that is not an object", 1);
                continue;
            };
            let why = rating.text("Rationale For Rating");
            let why = why.or_else(|| rating.text("Rationale"));
            built.push_verdict(rating_of(aspect, rating.get("Rating"), why));
        }
        for key in WHOLE_SCORES {
            let Some(score) = answer.get(key) else {
                continue;
            };
            built.push_verdict(rating_of(key, Some(score), answer.text("critique")));
        }
        let used = [
            "completions",
            "models",
            "instruction",
            "input",
            "history",
            "prompt",
        ];
        add_extra_keys(fields, &[&used[..], &KEYS].concat(), &mut built);
        built.finish(out);
    }
}

/// Returns a verdict with a rating of UltraFeedback as its value. Its scales begin at 1 and end at 5 or 10, so a rating of 1
/// is the worst one, and not the score 1.
fn rating_of(
    aspect: &str,
    rating: Option<&RawValue>,
    why: Option<SourceText<'_>>,
) -> SourceVerdict {
    SourceVerdict {
        score: None,
        ..verdict_of("ultrafeedback", aspect, rating, why)
    }
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
        None => add_question(fields, "input", built),
    }
}

/// Returns the key of the question that [`add_prompt`] adds; `prompt` if it adds no other.
fn used_question_key(fields: &RawFields<'_>) -> &'static str {
    let has_messages = KEYS.iter().any(|key| fields.list(key).is_some());
    if has_messages || fields.has("prompt") {
        "prompt"
    } else {
        question_key(fields)
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};
    use super::super::sample_tests::{Numbers, damage};
    use crate::transcript::TranscriptFile;

    #[test]
    fn pair_without_one_answer_keeps_the_other() {
        let rows = json!([
            {"prompt": "Hi", "chosen": "Hello", "rejected": "Go away"},
            {"prompt": "Sing.", "chosen": null, "rejected": "No."},
        ]);
        let (all, tally) = read(rows.to_string().as_bytes());
        assert_eq!(all.len(), 3);
        let last = all[2].as_ref().expect("a transcript");
        assert_eq!(message_lines(last), ["user Sing.", "assistant No."]);
        assert_eq!(last["verdicts"][0]["passed"], false);
        assert_eq!(
            tally.missing["one of the two answers of a pair is missing"],
            1
        );
    }

    #[test]
    fn answers_of_ultra_feedback_have_their_ratings() {
        let answer = |text: &str, score: f64| {
            json!({"model": text, "custom_system_prompt": "Be brief.", "response": text, "principle": "honesty",
                "annotations": {"honesty": {"Rating": "4", "Rationale": "It is true."}},
                "critique": "Short.", "overall_score": score})
        };
        let row = json!({"source": "sharegpt", "instruction": "Name a sea.", "models": ["a", "b"],
            "completions": [answer("The Baltic.", 1.0), answer("Rome.", 8.5)], "correct_answers": ["None"]});
        let (all, tally) = read(format!("{row}\n").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(all.len(), 2);
        let transcript = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(transcript),
            [
                "system Be brief.",
                "user Name a sea.",
                "assistant The Baltic."
            ]
        );
        assert_eq!(transcript["metadata"]["model"], "The Baltic.");
        assert_eq!(
            transcript["verdicts"],
            json!([
                {"judge": "ultrafeedback", "eval": "honesty", "value": "4", "reasoning": "It is true."},
                {"judge": "ultrafeedback", "eval": "overall_score", "value": 1.0, "reasoning": "Short."},
            ])
        );
        let ids: Vec<_> = all
            .iter()
            .map(|one| one.as_ref().expect("a transcript")["id"].to_string())
            .collect();
        assert!(
            ids[0].ends_with(":1\"") && ids[1].ends_with(":2\""),
            "{ids:?}"
        );
    }

    #[test]
    fn missing_answer_of_ultra_feedback_is_counted_and_a_number_is_its_rating() {
        let answer = json!({"model": "a", "annotations": {"honesty": {"Rating": 1, "Rationale": "It lies."}}});
        let rated =
            |completions: Value| json!({"instruction": "Name a sea.", "completions": completions});
        let rows = json!([
            rated(json!([{"model": "a", "response": "The Baltic."}])),
            rated(json!([])),
            rated(json!([answer])),
        ]);
        let (all, tally) = read(rows.to_string().as_bytes());
        assert_eq!(all.len(), 2);
        let last = all[1].as_ref().expect("a transcript");
        assert_eq!(message_lines(last), ["user Name a sea."]);
        assert_eq!(
            last["verdicts"],
            json!([{"judge": "ultrafeedback", "eval": "honesty", "value": 1, "reasoning": "It lies."}])
        );
        for what in [
            "the answers (`completions`) are missing",
            "the answer (`response`) is missing",
        ] {
            assert_eq!(tally.missing[what], 1, "{what}");
        }
    }

    #[test]
    fn annotation_of_alpaca_eval_is_two_answers_with_the_choice() {
        // (preference, verdicts of both answers)
        for (preference, wanted) in [
            (json!(1), [(Some(true), 1.0), (Some(false), 0.0)]),
            (json!(1.75), [(Some(false), 0.25), (Some(true), 0.75)]),
            (json!(0), [(None, 0.5), (None, 0.5)]),
        ] {
            let record = json!([{"instruction": "Name a sea.", "output_1": "The Baltic.", "generator_1": "a",
                "output_2": "Rome.", "generator_2": "b", "dataset": "d", "annotator": "gpt4", "preference": preference}]);
            let (all, tally) = read(record.to_string().as_bytes());
            assert_eq!(tally.unknown_count(), 0, "{tally:?}");
            let answers = ["assistant The Baltic.", "assistant Rome."];
            assert_eq!(all.len(), 2, "{preference}");
            for (index, got) in all.iter().enumerate() {
                let transcript = got.as_ref().expect("a transcript");
                assert_eq!(
                    message_lines(transcript),
                    ["user Name a sea.", answers[index]]
                );
                let metadata = &transcript["metadata"];
                let model = ["a", "b"][index];
                assert_eq!(
                    (&metadata["model"], &metadata["annotator"]),
                    (&json!(model), &json!("gpt4"))
                );
                assert_eq!(metadata["choice"], format!("output_{}", index + 1));
                let verdict = &transcript["verdicts"][0];
                assert_eq!(verdict["passed"].as_bool(), wanted[index].0, "{preference}");
                assert_eq!(verdict["score"], json!(wanted[index].1), "{preference}");
            }
            let pair = |index: usize| all[index].as_ref().expect("one")["metadata"]["pair"].clone();
            assert_eq!(pair(0), pair(1));
        }
    }

    #[test]
    fn question_of_a_pair_is_the_message_of_the_user() {
        let read_pair = |record: serde_json::Value| {
            let (all, tally) = read(json!([record]).to_string().as_bytes());
            assert_eq!(tally.unknown_count(), 0, "{tally:?}");
            assert_eq!(all.len(), 2);
            let transcripts = all.into_iter().map(|one| one.expect("a transcript"));
            transcripts.collect::<Vec<_>>()
        };
        let pair = json!({"system": "Be brief.", "question": "Name a sea.", "chosen": "The Baltic.", "rejected": "Rome."});
        let both = read_pair(pair.clone());
        let answers = ["assistant The Baltic.", "assistant Rome."];
        for (transcript, answer) in both.iter().zip(answers) {
            let lines = ["system Be brief.", "user Name a sea.", answer];
            assert_eq!(message_lines(transcript), lines);
            assert!(transcript["metadata"]["question"].is_null(), "{transcript}");
        }
        // A prompt counts before a question, which then stays in the metadata.
        let mut with_prompt = pair;
        with_prompt["prompt"] = json!("Name a sea in Europe.");
        let both = read_pair(with_prompt);
        assert_eq!(message_lines(&both[0])[1], "user Name a sea in Europe.");
        assert_eq!(both[0]["metadata"]["question"], "Name a sea.");
    }

    #[test]
    fn hostile_annotations_break_no_reader() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("annotations.json");
        let record = json!([{"instruction": "Name a sea.", "output_1": "The Baltic.", "generator_1": "a",
            "output_2": "Rome.", "generator_2": "b", "annotator": "gpt4", "preference": 1.25}]);
        let original = format!("{record:#}");
        let mut numbers = Numbers::new(1);
        for _ in 0..100 {
            std::fs::write(&path, damage(&original, &mut numbers)).expect("written");
            let Ok(mut file) =
                TranscriptFile::open_as(&path, "answers that were compared or rated")
            else {
                continue;
            };
            while let Ok(Some(block)) = file.next_block() {
                for (record, bytes) in block.records() {
                    assert!(record.fault.is_some() || record.parse(bytes, "t").is_ok());
                }
            }
        }
    }

    #[test]
    fn annotation_without_a_preference_has_no_verdict() {
        let record = json!([{"instruction": "Name a sea.", "output_1": "The Baltic.", "output_2": "Rome.", "preference": null}]);
        let (all, _) = read(record.to_string().as_bytes());
        assert_eq!(all.len(), 2);
        let verdicts = &all[0].as_ref().expect("a transcript")["verdicts"];
        assert!(verdicts.as_array().is_none_or(Vec::is_empty), "{verdicts}");
    }
}
