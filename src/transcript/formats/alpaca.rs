//! Alpaca's instructions: `{instruction, input, output}`, also with `system` and `history`; and Dolly's, with `context` and
//! `response`.
//!
//! Responsible for one question and answer per record. The user's message is the instruction, with the input below.
//! Also reads AlpacaEval's outputs (`generator`). Does not read pairs of answers: that is `preference.rs`.

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::native::text_or_json;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::open_records;
use super::sharegpt::{add_extra_keys, begin};
use super::transcript_builder::{TranscriptBuilder, text_part};
use crate::model::MessageRole;

/// The keys of a question, in the order in which they count.
const QUESTION_KEYS: [&str; 3] = ["instruction", "question", "query"];

/// Returns the key of a record's question. Pairs of answers such as those of `orca_dpo_pairs` have no `instruction`.
pub(super) fn question_key(fields: &RawFields<'_>) -> &'static str {
    let has_text = |key: &&'static str| fields.text(key).is_some_and(|text| !text.is_empty());
    let found = QUESTION_KEYS.into_iter().find(has_text);
    found.unwrap_or("instruction")
}

/// Returns true if the first record is an instruction with its answer.
pub(super) fn is_instruction(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_text = |key: &str| record[key].is_string();
    let has_answer =
        is_text("output") || (is_text("response") && (is_text("context") || is_text("input")));
    is_text("instruction")
        && has_answer
        && (record["input"].is_null() || record["input"].is_string())
        && record["messages"].is_null()
        && record["inputs"].is_null()
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_instruction)
}

fn parse_instruction(
    record: &str,
    _: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let mut built = begin(&fields);
    let answer = if fields.has("output") || !fields.has("response") {
        "output"
    } else {
        "response"
    };
    let input = if answer == "output" || fields.has_key("input") {
        "input"
    } else {
        "context"
    };
    add_question(&fields, input, &mut built);
    let output = fields
        .get(answer)
        .ok_or_else(|| "it has no `output`".to_owned())?;
    built.push(
        MessageRole::Assistant,
        vec![text_part(&text_or_json(output))],
    );
    add_extra_keys(
        &fields,
        &["instruction", input, answer, "history"],
        &mut built,
    );
    built.finish(out);
    Ok(())
}

/// Adds the earlier turns and the question of a record. `input_key` is the key of the text below the question.
pub(super) fn add_question(fields: &RawFields<'_>, input_key: &str, built: &mut TranscriptBuilder) {
    for raw in fields.list("history").unwrap_or_default() {
        let turn = list_items(raw).unwrap_or_default();
        for (at, raw) in turn.iter().enumerate() {
            let role = if at % 2 == 0 {
                MessageRole::User
            } else {
                MessageRole::Assistant
            };
            built.push_text(role, &text_or_json(raw));
        }
    }
    let instruction = fields.text(question_key(fields)).unwrap_or_default();
    let input = fields.text(input_key).unwrap_or_default();
    let question = match (instruction.is_empty(), input.is_empty()) {
        (_, true) => instruction.0.into_owned(),
        (true, _) => input.0.into_owned(),
        // The prompt of Alpaca has the input in a section of its own, below the instruction.
        _ => format!("{}\n\n{}", &*instruction, &*input),
    };
    if !question.is_empty() {
        built.push_text(MessageRole::User, &question);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{lines_of_each, read};

    #[test]
    fn context_of_dolly_is_below_the_instruction() {
        let rows = json!([
            {"instruction": "When?", "context": "It began in 2000.", "response": "2000.", "category": "closed_qa"},
            {"instruction": "Name a fish.", "context": "", "response": "Tuna.", "category": "open_qa"},
        ]);
        let (all, tally) = read(rows.to_string().as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(
            lines_of_each(&all),
            [
                ["user When?\n\nIt began in 2000.", "assistant 2000."],
                ["user Name a fish.", "assistant Tuna."],
            ]
        );
        let metadata = &all[0].as_ref().expect("a transcript")["metadata"];
        assert_eq!(metadata["category"], "closed_qa");
        assert!(metadata["context"].is_null(), "{metadata}");
    }
}
