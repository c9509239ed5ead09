//! Results and scores of the Berkeley function calling leaderboard (BFCL).
//!
//! Responsible for one entry per line. A result has the calls of the model, and of several turns the log of the
//! conversation. A score has the question and the reasons of a failure, which is the verdict `valid` of the judge
//! `bfcl`; entries that passed are only in the results. A model that wrote nothing has an empty reply, which is the right
//! one if no function fits. An entry whose model call failed is a fault.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::add_messages;
use super::record_readers::open_records;
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, owned_text, text_part, verdict_of,
};
use crate::model::MessageRole;

/// Returns true if one of the first records is a result or a score.
pub(super) fn is_entries(preview: &FilePreview<'_>) -> bool {
    let is_result = |value: &Value| {
        let has_counts = (!value["input_token_count"].is_null()
            || !value["inference_log"].is_null())
            && !value["latency"].is_null();
        // Results of 2024 have the number of the question in place of its id.
        let has_id = value["id"].is_string() || value["idx"].is_u64();
        // Some models have no counts. Their ids and calls are BFCL's.
        let first = &value["result"][0];
        let has_calls = names_question(&value["id"]) && (first.is_object() || first.is_array());
        has_id && !value["result"].is_null() && (has_counts || has_calls)
    };
    let is_score = |value: &Value| {
        value["valid"].is_boolean()
            && value["test_category"].is_string()
            && value["prompt"].is_object()
    };
    preview.records.iter().take(2).any(|seen| {
        let record = seen.sniff.outline(seen.bytes);
        is_result(record) || is_score(record)
    })
}

/// Returns true for the id of a question, such as `multi_turn_base_12`: its category, then a number.
fn names_question(id: &Value) -> bool {
    let categories = [
        "simple",
        "multiple",
        "parallel",
        "multi_turn",
        "live_",
        "exec_",
        "java",
        "irrelevance",
        "memory",
        "web_search",
    ];
    id.as_str().is_some_and(|id| {
        let has_number = id.ends_with(|c: char| c.is_ascii_digit());
        has_number && categories.iter().any(|category| id.starts_with(category))
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_entry)
}

fn parse_entry(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    if fields.has("accuracy") && fields.has("total_count") {
        out.count_unknown("the accuracy of the whole file");
        return Ok(());
    }
    let mut built = TranscriptBuilder::new("bfcl", fields.id_text("id"));
    let prompt = fields.object("prompt").unwrap_or_default();
    let questions = prompt.list("question").unwrap_or_default();
    let log = fields.list("inference_log").unwrap_or_default();
    let result = fields.get_first(&["result", "model_result_raw", "model_result"]);
    // BFCL writes the error of a call where the answer would be, with its traceback.
    if fields.has("traceback")
        && let Some(error) = result.and_then(json_string)
    {
        return Err(format!("its model call failed: {}", &*error));
    }
    let turns = log
        .iter()
        .filter_map(|raw| RawFields::from_raw(raw))
        .filter(|turn| turn.has("begin_of_turn_query"));
    let turns: Vec<RawFields<'_>> = turns.collect();
    let split = result.and_then(|result| split_turns(result, &questions));
    if let Some(results) = split.filter(|_| turns.is_empty()) {
        for (question, result) in questions.iter().zip(results) {
            add_messages(question, &MessageRole::User, &mut built);
            add_outputs(result, 1, &mut built);
        }
    } else if turns.is_empty() {
        for raw in &questions {
            add_messages(raw, &MessageRole::User, &mut built);
        }
        if questions.is_empty() {
            add_logged_question(&log, &mut built);
        }
        if let Some(question) = prompt.get("question").filter(|_| questions.is_empty()) {
            // Older scores have the question as a text.
            add_messages(question, &MessageRole::User, &mut built);
        }
        if let Some(result) = result {
            add_result(result, &mut built);
        }
    } else {
        for turn in &turns {
            add_turn(turn, &mut built);
        }
    }
    let mut messages = built.messages.iter();
    let has_question = messages.any(|message| message.role == MessageRole::User);
    if built.has_messages() && !has_question {
        out.count_missing("the question is missing (it is in BFCL's data, not in its results)");
    }
    if let Some(valid) = fields.get("valid") {
        let reasons = fields.get("error").map(owned_text);
        let reasons = reasons.map(std::convert::Into::into);
        built.push_verdict(verdict_of("bfcl", "valid", Some(valid), reasons));
    }
    write_metadata(&fields, &mut built);
    built.finish(out);
    Ok(())
}

/// Adds the question from the log of a single turn, which has the whole request.
fn add_logged_question(log: &[&RawValue], built: &mut TranscriptBuilder) {
    for raw in log {
        let entry = RawFields::from_raw(raw).unwrap_or_default();
        let content = entry.object("content").unwrap_or_default();
        if entry.text("role").as_deref() == Some("inference_input")
            && let Some(message) = content.get("message")
            && list_items(message).is_some()
        {
            return add_messages(message, &MessageRole::User, built);
        }
    }
}

fn add_turn(turn: &RawFields<'_>, built: &mut TranscriptBuilder) {
    for (key, raw) in turn.iter() {
        if key == "begin_of_turn_query" {
            add_messages(raw, &MessageRole::User, built);
        } else if key.starts_with("step_") {
            for raw in list_items(raw).unwrap_or_default() {
                let entry = RawFields::from_raw(raw).unwrap_or_default();
                match entry.text("role").as_deref() {
                    Some("assistant") => {
                        if let Some(content) = entry.get("content") {
                            add_result(content, built);
                        }
                    }
                    Some("tool") => {
                        let content = entry.get("content").map(owned_text).unwrap_or_default();
                        built.push_result("", content, None);
                    }
                    // Notes of the program that runs the model.
                    Some(_) => {}
                    None => built.count_unknown("an entry of the log without a role", 1),
                }
            }
        }
    }
}

/// Adds the output of the model: text, or calls as `{name: arguments}`. Results of several turns are lists of steps, and a
/// step may itself be a list of calls.
fn add_result(raw: &RawValue, built: &mut TranscriptBuilder) {
    add_outputs(raw, 2, built);
}

/// Adds the outputs in `raw`, a list with at most `depth` levels of lists below it.
fn add_outputs(raw: &RawValue, depth: u8, built: &mut TranscriptBuilder) {
    if let Some(text) = json_string(raw) {
        return built.push(MessageRole::Assistant, vec![text_part(&text)]);
    }
    let items = list_items(raw).unwrap_or_else(|| vec![raw]);
    if items.is_empty() {
        return built.push(MessageRole::Assistant, Vec::new());
    }
    if depth == 0 || !items.iter().any(|item| item.get().starts_with('[')) {
        return add_flat(raw, built);
    }
    for item in items {
        add_outputs(item, depth - 1, built);
    }
}

/// Returns the results of the turns if `result` has one list for each of several questions.
fn split_turns<'r>(result: &'r RawValue, questions: &[&RawValue]) -> Option<Vec<&'r RawValue>> {
    let turns = list_items(result)?;
    let is_split = turns.len() > 1
        && turns.len() == questions.len()
        && turns.iter().all(|turn| turn.get().starts_with('['));
    is_split.then_some(turns)
}

fn add_flat(raw: &RawValue, built: &mut TranscriptBuilder) {
    let items = list_items(raw).unwrap_or_else(|| vec![raw]);
    let mut started = false;
    for item in items {
        if let Some(text) = json_string(item) {
            built.push(MessageRole::Assistant, vec![text_part(&text)]);
            started = true;
            continue;
        }
        let Some(calls) = RawFields::from_raw(item) else {
            built
                .unknown
                .push("an output of an unknown shape".to_owned());
            continue;
        };
        for (name, arguments) in calls.iter() {
            if !std::mem::replace(&mut started, true) {
                built.push(MessageRole::Assistant, Vec::new());
            }
            built.push_call("", name, call_arguments(Some(arguments)));
        }
    }
}

fn write_metadata(fields: &RawFields<'_>, built: &mut TranscriptBuilder) {
    // The counts of several turns are lists.
    let usage = SourceUsage {
        input: fields.integer("input_token_count"),
        output: fields.integer("output_token_count"),
        ..SourceUsage::default()
    };
    built.meta.set("usage", usage.to_json());
    if let Some(seconds) = fields.number("latency") {
        built.meta.set("latency_ms", seconds * 1000.0);
    }
    built.meta.set_raw("model", fields.get("model_name"));
    for key in [
        "idx",
        "test_category",
        "possible_answer",
        "model_result_decoded",
    ] {
        built.meta.set_readable(key, fields.get(key));
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    #[test]
    fn entry_of_the_log_without_a_role_is_counted() {
        let file = r#"{"id":"multi_turn_0","result":[["Done."]],"input_token_count":[[5]],"output_token_count":[[1]],"latency":[[1.0]],"inference_log":[{"begin_of_turn_query":[{"role":"user","content":"Move it"}],"step_0":[{"content":"Done."},{"role":"handler_log","content":"A note."}]}]}
"#;
        let (all, tally) = read(file.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Move it"]);
        assert_eq!(tally.unknown["an entry of the log without a role"], 1);
    }

    #[test]
    fn model_that_wrote_nothing_has_an_empty_reply() {
        let file = r#"{"id":"live_irrelevance_1-0-1","result":[],"input_token_count":777,"output_token_count":3056,"latency":37.5}
{"id":"multi_turn_0","result":[[[]]],"input_token_count":[[5]],"output_token_count":[[1]],"latency":[[1.0]],"inference_log":[{"begin_of_turn_query":[{"role":"user","content":"Move it"}],"step_0":[{"role":"assistant","content":[]},{"role":"handler_log","content":"Empty response from the model."}]}]}
"#;
        let (all, tally) = read(file.as_bytes());
        let lines = |at: usize| message_lines(all[at].as_ref().expect("a transcript"));
        assert_eq!(lines(0), ["assistant "]);
        assert_eq!(lines(1), ["user Move it", "assistant "]);
        assert_eq!(tally.missing.values().sum::<u64>(), 1, "{tally:?}");
    }

    #[test]
    fn steps_of_several_turns_without_a_log_are_read() {
        let file = r#"{"id":"multi_turn_1","result":[[[{"ls":"{}"}],[{"cd":"{\"folder\":\"a\"}"},{"pwd":"{}"}]],[],[["Done"]]],"input_token_count":7,"output_token_count":3,"latency":1.0}
{"id":"multi_turn_2","valid":false,"test_category":"multi_turn_base","prompt":{"question":[[{"role":"user","content":"List"}],[{"role":"user","content":"Move"}]]},"model_result":[[[{"ls":"{}"}],"Listed"],[[{"mv":"{}"}]]]}
"#;
        let (all, tally) = read(file.as_bytes());
        let lines = |at: usize| message_lines(all[at].as_ref().expect("a transcript"));
        assert_eq!(
            lines(0),
            [
                "assistant ls({})",
                "assistant cd({\"folder\":\"a\"}) | pwd({})",
                "assistant ",
                "assistant Done"
            ]
        );
        assert_eq!(
            lines(1),
            [
                "user List",
                "assistant ls({})",
                "assistant Listed",
                "user Move",
                "assistant mv({})"
            ]
        );
        assert!(tally.unknown.is_empty(), "{tally:?}");
    }

    #[test]
    fn result_without_counts_is_known_by_its_id() {
        let file = r#"{"id":"parallel_multiple_1","result":[{"f":"{}"},{"g":"{}"}]}
"#;
        let (all, _) = read(file.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["assistant f({}) | g({})"]);
        for id in ["other_1", "simple"] {
            assert!(!super::names_question(&id.into()), "{id}");
        }
    }

    #[test]
    fn result_with_the_number_of_its_question_is_read() {
        let file = r#"{"idx":0,"result":[{"f":"{}"}],"input_token_count":352,"output_token_count":18,"latency":1.5}
{"idx":1,"result":"[f(a=1)]","input_token_count":352,"output_token_count":18,"latency":1.5}
"#;
        let (all, _) = read(file.as_bytes());
        let lines = |at: usize| message_lines(all[at].as_ref().expect("a transcript"));
        assert_eq!(lines(0), ["assistant f({})"]);
        assert_eq!(lines(1), ["assistant [f(a=1)]"]);
        assert_eq!(all[1].as_ref().expect("a transcript")["metadata"]["idx"], 1);
    }

    #[test]
    fn error_of_a_call_is_no_answer() {
        let file = r#"{"id":"a","result":[{"f":"{}"}],"input_token_count":7,"output_token_count":3,"latency":1.0}
{"id":"multi_turn_miss_func_101","result":"Error during inference: no user message.","traceback":"Traceback"}
"#;
        let (all, _) = read(file.as_bytes());
        let why = all[1].as_ref().expect_err("a fault");
        assert!(
            why.contains("model call failed: Error during inference"),
            "{why}"
        );
    }
}
