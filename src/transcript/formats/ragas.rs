//! Rows of Ragas: datasets and results, as `to_jsonl`, `to_pandas().to_json(orient="records")` and
//! `to_pandas().to_csv(FILE)` write them.
//!
//! Responsible for the question and the answer, or the messages of several turns. The scores of Ragas' metrics are verdicts
//! of the judge `ragas`. Version 0.1 has the columns `question` and `answer`. Other columns are metadata: contexts,
//! references, and metrics with a name of the user's.

use serde_json::Value;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::MetadataBuilder;
use super::super::native::text_or_json;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::data_frame::{self, ColumnKind, TableHeader};
use super::foreign_message::add_messages;
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, is_boolean_or_number, verdict_of};
use crate::model::MessageRole;

/// The names of Ragas' metrics, without the mode in parentheses.
const METRICS: [&str; 35] = [
    "agent_goal_accuracy",
    "answer_accuracy",
    "answer_correctness",
    "answer_relevancy",
    "answer_similarity",
    "bleu_score",
    "chrf_score",
    "context_entity_recall",
    "context_precision",
    "context_recall",
    "context_relevance",
    "context_relevancy",
    "exact_match",
    "factual_correctness",
    "faithfulness",
    "id_based_context_precision",
    "id_based_context_recall",
    "llm_context_precision_with_reference",
    "llm_context_precision_without_reference",
    "multi_modal_faithfulness",
    "multi_modal_relevance",
    "noise_sensitivity",
    "non_llm_context_precision_with_reference",
    "non_llm_context_recall",
    "non_llm_string_similarity",
    "nv_accuracy",
    "nv_context_relevance",
    "nv_response_groundedness",
    "response_groundedness",
    "response_relevancy",
    "rouge_score",
    "semantic_similarity",
    "string_present",
    "tool_call_accuracy",
    "topic_adherence",
];

/// The columns of Ragas that no other tool is known to write.
const COLUMNS: [&str; 3] = ["reference", "reference_contexts", "retrieved_contexts"];

/// Returns true for rows of JSON, and for a table.
pub(super) fn is_rows(preview: &FilePreview<'_>) -> bool {
    has_rows(preview) || find_table(preview).is_some()
}

/// Returns the header of a table that has a question with an answer and a column of Ragas.
fn find_table(preview: &FilePreview<'_>) -> Option<TableHeader> {
    let header = data_frame::parse_header(preview)?;
    let has = |name: &&str| header.columns.iter().any(|column| column == *name);
    let has_metric = header.columns.iter().any(|column| is_metric(column));
    let is_row = ["user_input", "response"].iter().all(has);
    let is_first_version = ["question", "answer", "contexts"].iter().all(has);
    let has_column = has_metric || COLUMNS.iter().any(has);
    let is_table = (is_row && has_column) || (is_first_version && has_metric);
    is_table.then_some(header)
}

/// Returns true if the first record has a question with an answer and a column of Ragas, or messages of several turns.
fn has_rows(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_message = |message: &Value| {
        message["content"].is_string()
            && matches!(message["type"].as_str(), Some("human" | "ai" | "tool"))
    };
    if let Some(messages) = record["user_input"].as_array() {
        return !messages.is_empty() && messages.iter().all(is_message);
    }
    let Some(row) = record.as_object() else {
        return false;
    };
    let has_column = || {
        row.keys()
            .any(|key| COLUMNS.contains(&&**key) || is_metric(key))
    };
    // Version 0.1 has columns with common names, so it takes a metric, too.
    let is_first_version = ["question", "answer"]
        .iter()
        .all(|key| record[*key].is_string())
        && record["contexts"].is_array()
        && row.keys().any(|key| is_metric(key));
    let is_row =
        row.get("user_input").is_some_and(Value::is_string) && row.contains_key("response");
    is_first_version || (is_row && has_column())
}

fn is_metric(column: &str) -> bool {
    let name = column.split('(').next().unwrap_or_default();
    METRICS.contains(&name)
}

/// Returns the kind of a table's column.
fn kind_of_column(column: &str) -> ColumnKind {
    match column {
        "question" | "answer" | "response" | "reference" | "ground_truth" => ColumnKind::Text,
        "user_input" => ColumnKind::TextOrMessages,
        _ if is_metric(column) => ColumnKind::Score,
        _ => ColumnKind::Any,
    }
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    match find_table(preview) {
        Some(header) => data_frame::open(header, kind_of_column, parse_row),
        None => open_records(preview, parse_row),
    }
}

fn parse_row(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let row = RawFields::parse(record)?;
    let (question, answer) = if row.has("question") && !row.has("user_input") {
        ("question", "answer")
    } else {
        ("user_input", "response")
    };
    let input = row.get(question);
    let input = input.ok_or_else(|| "it has no `user_input`".to_owned())?;
    let mut built = TranscriptBuilder::new("ragas", None);
    let has_turns = input.get().starts_with('[');
    if has_turns {
        add_messages(input, &MessageRole::User, &mut built);
    } else {
        built.push_text(MessageRole::User, &text_or_json(input));
    }
    match row.get(answer) {
        Some(response) => built.push_text(MessageRole::Assistant, &text_or_json(response)),
        None if has_turns => {}
        None => out.count_missing(&format!("the answer (`{answer}`) is missing")),
    }
    let mut rest = MetadataBuilder::default();
    for (column, value) in row.iter() {
        if column == question || column == answer {
            continue;
        }
        // A score without a value is null: the metric failed.
        if is_boolean_or_number(value) && is_metric(column) {
            built.push_verdict(verdict_of("ragas", column, Some(value), None));
        } else {
            rest.set_readable(column, Some(value));
        }
    }
    if let Some(rest) = rest.finish()
        && let Ok(rest) = RawFields::parse(rest.get())
    {
        built.meta.merge_source_fields(&rest);
    }
    built.finish(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};
    use crate::transcript::TranscriptFile;

    #[test]
    fn table_of_pandas_is_read() {
        let table = ",user_input,retrieved_contexts,response,reference,faithfulness,answer_relevancy\n\
            0,Why?,\"['a cat', \"\"it's\"\"]\",So.,Because.,1.0,\n\
            1,\"When, please?\",\"['a dog']\",,Now.,0.25,0.5\n";
        let (all, tally) = read(table.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Why?", "assistant So."]);
        let contexts = &one["metadata"]["retrieved_contexts"];
        assert_eq!(contexts, &json!(["a cat", "it's"]));
        assert_eq!(one["metadata"]["reference"], "Because.");
        // A metric without a value failed.
        assert_eq!(one["verdicts"].as_array().map(Vec::len), Some(1));
        assert_eq!(one["verdicts"][0]["eval"], "faithfulness");
        assert_eq!(one["verdicts"][0]["score"], 1.0);
        let other = all[1].as_ref().expect("a transcript");
        assert_eq!(message_lines(other), ["user When, please?"]);
        assert_eq!(other["verdicts"].as_array().map(Vec::len), Some(2));
        assert!(
            tally
                .missing
                .contains_key("the answer (`response`) is missing")
        );
    }

    #[test]
    fn answer_that_looks_like_a_value_stays_as_written() {
        let table = "user_input,retrieved_contexts,response,reference\n\
            \"['a', 'b']\",\"['c']\",\"{\"\"b\"\":  1, \"\"a\"\": 2}\",\"['x']\"\n";
        let (all, _) = read(table.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            ["user ['a', 'b']", r#"assistant {"b":  1, "a": 2}"#]
        );
        assert_eq!(one["metadata"]["reference"], "['x']");
        assert_eq!(one["metadata"]["retrieved_contexts"], json!(["c"]));
    }

    #[test]
    fn table_of_the_first_version_is_read() {
        let table =
            "question,answer,contexts,ground_truth,faithfulness\nWhy?,So.,['a cat'],So,0.5\n";
        let (all, _) = read(table.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Why?", "assistant So."]);
        assert_eq!(one["verdicts"][0]["score"], 0.5);
        assert_eq!(one["metadata"]["ground_truth"], "So");
    }

    #[test]
    fn rows_of_the_first_version_are_read() {
        let row = r#"{"question":"Why?","answer":"So.","contexts":["c"],"ground_truth":"So","faithfulness":1.0,"context_relevancy":null}"#;
        let (all, _) = read(format!("{row}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Why?", "assistant So."]);
        assert_eq!(one["verdicts"][0]["eval"], "faithfulness");
        assert_eq!(one["verdicts"].as_array().map(Vec::len), Some(1));
        assert_eq!(one["metadata"]["ground_truth"], "So");
    }

    #[test]
    fn questions_of_other_tools_are_no_rows() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("rows.jsonl");
        let row = r#"{"question":"Why?","answer":"So.","contexts":["c"]}"#;
        std::fs::write(&path, row).expect("written");
        TranscriptFile::open(&path).expect_err("no format");
    }
}
