//! Results of Azure AI Evaluation (`azure-ai-evaluation`): the file of `evaluate(output_path=…)`, and its rows as lines
//! (`instance_results.jsonl`).
//!
//! | column | becomes |
//! |---|---|
//! | `inputs.query`, `inputs.conversation` | the question, or the messages before the answer |
//! | `outputs.response`, `inputs.response`, the only text of the outputs | the answer, or the messages of an agent |
//! | `outputs.EVALUATOR.METRIC`, with its result and reason | a verdict of the judge `azure` |
//! | other columns | metadata |
//!
//! Most metrics are from 1 to 5, so their numbers are values and no scores. Does not read the metrics of the whole file.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::foreign_message::{add_messages, result_text};
use super::io_value::add_io;
use super::record_readers::open_elements;
use super::transcript_builder::{TranscriptBuilder, verdict_of};
use crate::model::{MessageRole, parse_pass_or_fail};

/// The columns of the question, the most exact one first.
const QUESTIONS: [&str; 8] = [
    "inputs.query",
    "inputs.conversation",
    "inputs.question",
    "inputs.messages",
    "inputs.chat_input",
    "inputs.user_query",
    "inputs.user_input",
    "inputs.prompt",
];

/// The columns of the answer. What a target returned comes before what the data had.
const ANSWERS: [&str; 4] = [
    "outputs.response",
    "inputs.response",
    "outputs.answer",
    "inputs.answer",
];

/// The outputs of a target that are not its answer.
const OTHER_OUTPUTS: [&str; 4] = ["context", "contexts", "documents", "error"];

/// The ends of the names of columns that belong to the metric before them.
const DETAILS: [&str; 17] = [
    "_completion_tokens",
    "_details",
    "_explanation",
    "_finish_reason",
    "_input_tokens",
    "_label",
    "_model",
    "_output_tokens",
    "_passed",
    "_prompt_tokens",
    "_properties",
    "_reason",
    "_result",
    "_sample_input",
    "_sample_output",
    "_score",
    "_threshold",
];

/// The metrics that are shares, from 0 to 1.
const SHARES: [&str; 7] = [
    "bleu_score",
    "f1_score",
    "gleu_score",
    "meteor_score",
    "rouge_f1_score",
    "rouge_precision",
    "rouge_recall",
];

/// Returns true if the first record is a row, or has rows.
pub(super) fn is_results(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    is_row(record) || is_row(&record["rows"][0])
}

fn is_row(value: &Value) -> bool {
    value.as_object().is_some_and(|row| {
        let has_input = row.keys().any(|key| key.starts_with("inputs."));
        // Tables of other tools have such columns, too, but no evaluators.
        let is_metric = |key: &String| {
            let rest = key.strip_prefix("outputs.");
            rest.is_some_and(|rest| rest.contains('.'))
        };
        has_input && row.keys().any(is_metric)
    })
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let paths: &[&[&str]] = if preview.first_outline()["rows"].is_array() {
        &[&["rows"]]
    } else {
        &[]
    };
    open_elements(source, preview, paths, parse_row)
}

fn parse_row(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let row: HashMap<&str, &RawValue> = fields
        .iter()
        .filter(|(_, value)| value.get() != "null")
        .collect();
    let first =
        |columns: &[&'static str]| columns.iter().copied().find(|key| row.contains_key(key));
    let question = first(&QUESTIONS);
    // A conversation contains its answers.
    let has_answers = question == Some("inputs.conversation");
    let output = || find_output(&fields).filter(|_| !has_answers);
    let answer = first(&ANSWERS).or_else(output);
    let mut built = TranscriptBuilder::new("azure", None);
    match question {
        Some(column) => add_turns(row[column], &MessageRole::User, &mut built),
        None => out.count_missing("the question (`query`) is missing"),
    }
    match answer {
        Some(column) => add_turns(row[column], &MessageRole::Assistant, &mut built),
        None if has_answers => {}
        None => out.count_missing("the answer (`response`) is missing"),
    }
    for (column, value) in fields.iter() {
        if value.get() == "null" || question == Some(column) || answer == Some(column) {
            continue;
        }
        let metric = column
            .strip_prefix("outputs.")
            .and_then(|rest| rest.split_once('.'));
        if let Some((evaluator, metric)) = metric {
            add_metric(evaluator, metric, value, &row, &mut built);
        } else {
            let name = column
                .strip_prefix("inputs.")
                .or_else(|| column.strip_prefix("outputs."));
            let name = name.filter(|name| !built.meta.has(name)).unwrap_or(column);
            built.meta.set_readable(name, Some(value));
        }
    }
    built.finish(out);
    Ok(())
}

/// Returns the output of a target that is a text, whatever its name is; `None` if there are several.
fn find_output<'f>(fields: &'f RawFields<'_>) -> Option<&'f str> {
    let mut texts = fields.iter().filter(|(column, value)| {
        let name = column.strip_prefix("outputs.");
        let is_output = |name: &str| !name.contains('.') && !OTHER_OUTPUTS.contains(&name);
        name.is_some_and(is_output) && value.get().starts_with('"')
    });
    let (column, _) = texts.next()?;
    texts.next().is_none().then_some(column)
}

/// Adds a text, a message, or a list of messages, also as JSON in a text.
fn add_turns(raw: &RawValue, default: &MessageRole<'static>, built: &mut TranscriptBuilder) {
    if let Some(text) = json_string(raw)
        && text.trim_start().starts_with('[')
        && let Ok(inner) = serde_json::from_str::<&RawValue>(&text)
    {
        return add_list(inner, default, built);
    }
    add_list(raw, default, built);
}

fn add_list(raw: &RawValue, default: &MessageRole<'static>, built: &mut TranscriptBuilder) {
    let messages = list_items(raw).unwrap_or_default();
    let has_role = |raw: &&RawValue| RawFields::from_raw(raw).is_some_and(|one| one.has("role"));
    if messages.is_empty() || !messages.iter().all(has_role) {
        return add_io(raw, default, built);
    }
    for raw in messages {
        let message = RawFields::from_raw(raw).unwrap_or_default();
        if message.text("role").as_deref() == Some("tool") {
            add_results(&message, built);
        } else {
            add_messages(raw, default, built);
        }
    }
}

/// Adds the results of a message of a tool. The message has the id of the call, its parts have the results.
fn add_results(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let id = message.id_text("tool_call_id").unwrap_or_default();
    let Some(content) = message.get("content") else {
        return built.push_result(&id, String::new(), None);
    };
    let parts = list_items(content).unwrap_or_default();
    let results = parts.into_iter().filter_map(|raw| {
        let part = RawFields::from_raw(raw)?;
        let result = part.get_first(&["tool_result", "function_call_output"])?;
        Some(result_text(result))
    });
    let results: Vec<String> = results.collect();
    let text = if results.is_empty() {
        result_text(content)
    } else {
        results.join("\n")
    };
    built.push_result(&id, text, None);
}

/// Adds a metric as a verdict, unless it is a detail of another one.
fn add_metric(
    evaluator: &str,
    metric: &str,
    value: &RawValue,
    row: &HashMap<&str, &RawValue>,
    built: &mut TranscriptBuilder,
) {
    let column = |name: &str| {
        row.get(format!("outputs.{evaluator}.{name}").as_str())
            .copied()
    };
    let is_named = |name: &str| !name.is_empty() && column(name).is_some();
    let is_detail = DETAILS.iter().any(|end| {
        let of_another = metric.strip_suffix(*end).is_some_and(is_named);
        // The column may have the name of the detail alone, next to `score`.
        let of_score = metric == &end[1..] && metric != "score" && is_named("score");
        of_another || of_score
    });
    let is_older_name = metric.strip_prefix("gpt_").is_some_and(is_named);
    if is_detail || is_older_name {
        return;
    }
    if value.get().starts_with(['[', '{']) {
        let name = format!("{evaluator}.{metric}");
        built.meta.set_readable(&name, Some(value));
        return;
    }
    let stem = metric.strip_suffix("_score").unwrap_or(metric);
    let detail = |end: &str| {
        let names = [metric, stem].map(|name| format!("{name}_{end}"));
        let found = names.iter().find_map(|name| column(name));
        found.or_else(|| column(end).filter(|_| metric == "score"))
    };
    let eval = if [stem, metric].contains(&evaluator) || metric == "score" {
        evaluator.to_owned()
    } else {
        format!("{evaluator}.{metric}")
    };
    let reason = detail("reason").or_else(|| detail("explanation"));
    let reason = reason.and_then(json_string);
    let mut verdict = verdict_of("azure", &eval, Some(value), reason);
    let result = detail("result").and_then(json_string);
    let stated = result.and_then(|word| parse_pass_or_fail(&word));
    let flag = detail("passed").and_then(|raw| serde_json::from_str(raw.get()).ok());
    verdict.passed = stated.or(flag).or(verdict.passed);
    verdict.score = verdict.score.filter(|_| SHARES.contains(&metric));
    built.push_verdict(verdict);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    #[test]
    fn metrics_are_verdicts_and_scales_are_no_scores() {
        let row = json!({
            "inputs.query": "Capital of France?", "inputs.response": "Paris.", "inputs.ground_truth": "Paris", "inputs.context": null,
            "outputs.groundedness.groundedness": 1.0, "outputs.groundedness.gpt_groundedness": 1.0,
            "outputs.groundedness.groundedness_result": "fail", "outputs.groundedness.groundedness_threshold": 3,
            "outputs.groundedness.groundedness_reason": "No context.", "outputs.groundedness.groundedness_prompt_tokens": 9,
            "outputs.f1.f1_score": 0.5, "outputs.f1.f1_score_score": 0.5, "outputs.f1.f1_score_passed": true,
            "outputs.violence.violence": "Very low", "outputs.violence.violence_score": 0, "outputs.violence.violence_result": "pass",
            "outputs.tone.score": 5, "outputs.tone.reason": "Kind.", "outputs.tone.result": "pass",
            "outputs.custom.words": 1, "outputs.latency": 2.5,
        });
        let (all, tally) = read(json!({"rows": [row], "metrics": {}}).to_string().as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            ["user Capital of France?", "assistant Paris."]
        );
        assert_eq!(one["metadata"]["ground_truth"], "Paris");
        assert_eq!(one["metadata"]["latency"], 2.5);
        let verdicts = one["verdicts"].as_array().expect("verdicts").iter();
        let found: Vec<(&Value, Option<bool>, Option<f64>, &Value)> = verdicts
            .map(|one| {
                let (passed, score) = (one["passed"].as_bool(), one["score"].as_f64());
                (&one["eval"], passed, score, &one["reasoning"])
            })
            .collect();
        assert_eq!(
            found,
            [
                (
                    &json!("groundedness"),
                    Some(false),
                    None,
                    &json!("No context.")
                ),
                (&json!("f1"), Some(true), Some(0.5), &Value::Null),
                (&json!("violence"), Some(true), None, &Value::Null),
                (&json!("tone"), Some(true), None, &json!("Kind.")),
                (&json!("custom.words"), None, None, &Value::Null),
            ]
        );
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }

    #[test]
    fn columns_of_a_flow_and_an_explanation_are_read() {
        let row = json!({
            "inputs.chat_input": "Which tents?", "inputs.truth": "The small ones.", "outputs.sql": "SELECT 1", "outputs.context": "Tents",
            "outputs.seconds": 1.5, "outputs.similarity.score": 5, "outputs.similarity.explanation": "They are equal.",
        });
        let (all, tally) = read(format!("{row}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            ["user Which tents?", "assistant SELECT 1"]
        );
        assert_eq!(one["verdicts"].as_array().map(Vec::len), Some(1));
        assert_eq!(one["verdicts"][0]["reasoning"], "They are equal.");
        assert!(tally.missing.is_empty(), "{tally:?}");
        let row = json!({"inputs.code": "x", "outputs.response": "y", "outputs.tone.tone": 1});
        let (_, tally) = read(format!("{row}\n").as_bytes());
        assert!(
            tally
                .missing
                .contains_key("the question (`query`) is missing")
        );
    }

    #[test]
    fn output_after_a_conversation_is_no_answer() {
        let turns =
            json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]);
        let row = json!({"inputs.conversation": turns, "outputs.topic": "a greeting", "outputs.tone.tone": 1});
        let (all, _) = read(format!("{row}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Hi", "assistant Hello"]);
        assert_eq!(one["metadata"]["topic"], "a greeting");
    }

    #[test]
    fn table_without_evaluators_is_not_taken() {
        let row =
            json!({"inputs.question": "Who?", "outputs.answer": "Nobody", "feedback.exact": 1});
        let text = row.to_string();
        let preview = crate::transcript::detect::preview_file(text.as_bytes()).expect("a record");
        assert!(!super::is_results(&preview));
    }

    #[test]
    fn messages_of_an_agent_have_their_calls_and_results() {
        let query = json!([{"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]}]);
        let response = json!([
            {"role": "assistant", "content": [{"type": "tool_call", "tool_call_id": "c1", "name": "get", "arguments": {"city": "Rome"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "tool_result", "tool_result": {"sky": "clear"}}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Clear."}]},
        ]);
        for response in [response.clone(), json!(response.to_string())] {
            let row =
                json!({"inputs.query": query, "inputs.response": response, "outputs.a.a": 4.0});
            let (all, _) = read(format!("{row}\n").as_bytes());
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(
                message_lines(one),
                [
                    "system Be kind.",
                    "user Weather?",
                    "assistant get({\"city\":\"Rome\"})",
                    "tool {\"sky\":\"clear\"}",
                    "assistant Clear.",
                ]
            );
            assert_eq!(one["messages"][3]["tool_call_id"], "c1");
        }
    }
}
