//! Google's Agent Development Kit: sessions, eval sets, and results of evals.
//!
//! | file | transcripts |
//! |---|---|
//! | a session (`*.session.json`, the API's `sessions/ID`) | one: its events |
//! | an eval set (`*.evalset.json`, `*.test.json`) | one per eval case: the expected conversation |
//! | an eval set of ADK 0 (a list of `query` and `reference`, or of `data` with them) | one per file, or per `data` |
//! | results of an eval set (`*.evalset_result.json`) | one per case: what the agent did |
//!
//! Responsible for these files. Metrics are verdicts of the judge `adk`.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::foreign_message::{MessageInProgress, result_text};
use super::record_readers::{open_elements, open_lists, open_records};
use super::transcript_builder::{TranscriptBuilder, call_arguments, verdict_of};
use crate::model::MessageRole;

/// Returns true if the first record is a session.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let event = record["events"].as_array().and_then(|all| all.first());
    record["id"].is_string()
        && event.is_some_and(|event| {
            event["author"].is_string()
                && (!event["invocation_id"].is_null()
                    || !event["invocationId"].is_null()
                    || event["content"].is_object())
        })
}

/// Returns true if the first record is an eval set, or the results of one.
pub(super) fn is_eval(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    [
        "eval_cases",
        "evalCases",
        "eval_case_results",
        "evalCaseResults",
    ]
    .iter()
    .any(|key| record[*key].is_array())
        || is_old_turn(record)
        || is_old_turn(&record["data"][0])
}

/// Returns true if a value is a turn of an eval set of ADK 0.
fn is_old_turn(turn: &Value) -> bool {
    turn["query"].is_string() && turn["expected_tool_use"].is_array()
}

pub(super) fn open_session(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_session)
}

pub(super) fn open_eval(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let record = preview.first_outline();
    if is_old_turn(record) {
        return Ok(open_lists(preview, parse_old_case));
    }
    if is_old_turn(&record["data"][0]) {
        return Ok(open_records(preview, parse_old_case));
    }
    let paths: [&[&str]; 4] = [
        &["eval_cases"],
        &["evalCases"],
        &["eval_case_results"],
        &["evalCaseResults"],
    ];
    open_elements(source, preview, &paths, parse_case)
}

/// Returns the value of a key in either spelling.
fn get<'a>(fields: &RawFields<'a>, snake: &str, camel: &str) -> Option<&'a RawValue> {
    fields.get(snake).or_else(|| fields.get(camel))
}

fn parse_session(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let mut built = TranscriptBuilder::new("adk", fields.id_text("id"));
    add_session(&fields, &mut built, out);
    built.finish(out);
    Ok(())
}

fn add_session(fields: &RawFields<'_>, built: &mut TranscriptBuilder, out: &mut TranscriptSink) {
    built
        .meta
        .set_raw("agent", get(fields, "app_name", "appName"));
    built
        .meta
        .set_raw("user_id", get(fields, "user_id", "userId"));
    let events = fields.list("events").unwrap_or_default();
    out.count_elements(events.len());
    for raw in events {
        match RawFields::from_raw(raw) {
            Some(event) => add_event(&event, built),
            None => built
                .unknown
                .push("an event that is not an object".to_owned()),
        }
    }
}

fn add_event(event: &RawFields<'_>, built: &mut TranscriptBuilder) {
    // A partial event is a piece of a stream; a complete one follows.
    if event.flag("partial") == Some(true) {
        return;
    }
    let author = event.text("author").unwrap_or_default();
    let is_user = &*author == "user";
    if let Some(error) = get(event, "error_message", "errorMessage") {
        built.meta.set_raw("error", Some(error));
    }
    let Some(content) = event.get("content") else {
        // Changes of the state and other actions have no content.
        return;
    };
    let before = built.messages.len();
    add_content(content, is_user, built);
    for message in &mut built.messages[before..] {
        message.meta.set_raw("timestamp", event.get("timestamp"));
        if message.role == MessageRole::Assistant {
            if !is_user {
                message.meta.set("agent", &*author);
            }
            let model = get(event, "model_version", "modelVersion");
            message.meta.set_raw("model", model);
            message
                .meta
                .set_raw("stop_reason", get(event, "finish_reason", "finishReason"));
            let usage = get(event, "usage_metadata", "usageMetadata").and_then(RawFields::from_raw);
            if let Some(usage) = usage {
                let count = |snake: &str, camel: &str| {
                    usage.integer(snake).or_else(|| usage.integer(camel))
                };
                let usage = SourceUsage {
                    input: count("prompt_token_count", "promptTokenCount"),
                    output: count("candidates_token_count", "candidatesTokenCount"),
                    total: count("total_token_count", "totalTokenCount"),
                    cached: count("cached_content_token_count", "cachedContentTokenCount"),
                    thinking: count("thoughts_token_count", "thoughtsTokenCount"),
                };
                message.meta.set("usage", usage.to_json());
            }
        }
    }
}

/// Adds a content of Gemini. Its role is `user` also for results of tools.
fn add_content(content: &RawValue, is_user: bool, built: &mut TranscriptBuilder) {
    let fields = RawFields::from_raw(content).unwrap_or_default();
    let role = if is_user {
        MessageRole::User
    } else {
        MessageRole::Assistant
    };
    add_parts(&fields.list("parts").unwrap_or_default(), role, built);
}

fn add_parts(parts: &[&RawValue], role: MessageRole<'static>, built: &mut TranscriptBuilder) {
    let mut message = MessageInProgress::new(role, built);
    for part in parts {
        // A part without a value is an empty reply.
        let is_empty = RawFields::from_raw(part)
            .is_some_and(|part| part.iter().all(|(_, raw)| raw.get() == "null"));
        if !is_empty {
            message.add_part(part);
        }
    }
    message.finish();
}

fn parse_case(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let id = get(&fields, "eval_id", "evalId").map(super::super::native::text_or_json);
    let mut built = TranscriptBuilder::new("adk", id);
    if let Some(conversation) = fields.list("conversation") {
        built.meta.set("expected", true);
        for raw in conversation {
            add_invocation(raw, &mut built);
        }
    }
    let per_invocation = get(
        &fields,
        "eval_metric_result_per_invocation",
        "evalMetricResultPerInvocation",
    );
    let per_invocation = per_invocation.and_then(list_items);
    let session = get(&fields, "session_details", "sessionDetails").and_then(RawFields::from_raw);
    match session {
        Some(session) => add_session(&session, &mut built, out),
        None => {
            for raw in per_invocation.iter().flatten() {
                let result = RawFields::from_raw(raw).unwrap_or_default();
                if let Some(actual) = get(&result, "actual_invocation", "actualInvocation") {
                    add_invocation(actual, &mut built);
                }
            }
        }
    }
    let overall = get(
        &fields,
        "overall_eval_metric_results",
        "overallEvalMetricResults",
    );
    let overall = overall.and_then(list_items).unwrap_or_default();
    for raw in overall {
        add_metric(raw, &mut built);
    }
    built
        .meta
        .set_raw("session_id", get(&fields, "session_id", "sessionId"));
    built
        .meta
        .set_raw("eval_set", get(&fields, "eval_set_id", "evalSetId"));
    built.finish(out);
    Ok(())
}

/// Adds a turn of the user and what the agent did.
fn add_invocation(raw: &RawValue, built: &mut TranscriptBuilder) {
    let Some(turn) = RawFields::from_raw(raw) else {
        built
            .unknown
            .push("an invocation that is not an object".to_owned());
        return;
    };
    if let Some(content) = get(&turn, "user_content", "userContent") {
        add_content(content, true, built);
    }
    let data = get(&turn, "intermediate_data", "intermediateData").and_then(RawFields::from_raw);
    let data = data.unwrap_or_default();
    let list = |snake: &str, camel: &str| {
        let raw = get(&data, snake, camel)?;
        list_items(raw)
    };
    for raw in list("tool_uses", "toolUses").unwrap_or_default() {
        let call = RawFields::from_raw(raw).unwrap_or_default();
        let name = call.text("name").unwrap_or_default();
        let id = call.id_text("id").unwrap_or_default();
        built.push_call(&id, &name, call_arguments(call.get("args")));
    }
    for raw in list("tool_responses", "toolResponses").unwrap_or_default() {
        let result = RawFields::from_raw(raw).unwrap_or_default();
        let id = result.id_text("id").unwrap_or_default();
        let content = result.get("response").map(result_text).unwrap_or_default();
        built.push_result(&id, content, None);
    }
    let texts = list("intermediate_responses", "intermediateResponses");
    for raw in texts.unwrap_or_default() {
        // A pair: the name of the agent and the parts.
        match list_items(raw).as_deref() {
            Some(&[author, parts]) if list_items(parts).is_some() => {
                let parts = list_items(parts).unwrap_or_default();
                add_parts(&parts, MessageRole::Assistant, built);
                if let Some(meta) = built.last_meta(&MessageRole::Assistant) {
                    meta.set_raw("agent", Some(author));
                }
            }
            _ => built
                .unknown
                .push("an intermediate response of an unknown shape".to_owned()),
        }
    }
    if let Some(content) = get(&turn, "final_response", "finalResponse") {
        add_content(content, false, built);
    }
}

/// Adds the transcript of an eval set of ADK 0: a list of turns, or a record with them.
fn parse_old_case(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let mut fields = RawFields::default();
    let turns: Vec<&RawValue> = if record.starts_with('[') {
        serde_json::from_str(record).map_err(|why| format!("not a list: {why}"))?
    } else {
        fields = RawFields::parse(record)?;
        fields.list("data").unwrap_or_default()
    };
    let mut built = TranscriptBuilder::new("adk", fields.id_text("name"));
    built.meta.set("expected", true);
    for raw in turns {
        match RawFields::from_raw(raw) {
            Some(turn) => add_old_turn(&turn, &mut built),
            None => built
                .unknown
                .push("a turn that is not an object".to_owned()),
        }
    }
    built.finish(out);
    Ok(())
}

fn add_old_turn(turn: &RawFields<'_>, built: &mut TranscriptBuilder) {
    built.push_text(MessageRole::User, &turn.text("query").unwrap_or_default());
    for raw in turn.list("expected_tool_use").unwrap_or_default() {
        let call = RawFields::from_raw(raw).unwrap_or_default();
        // A test of ADK 0 can use this output in place of the tool. It is not a recorded result.
        if call.has("mock_tool_output") {
            built.unknown.push("a mocked output of a tool".to_owned());
        }
        let name = call.text("tool_name").unwrap_or_default();
        built.push_call("", &name, call_arguments(call.get("tool_input")));
    }
    let texts = turn.list("expected_intermediate_agent_responses");
    for raw in texts.unwrap_or_default() {
        let response = RawFields::from_raw(raw).unwrap_or_default();
        let text = response.text("text").unwrap_or_default();
        built.push_text(MessageRole::Assistant, &text);
        if let Some(meta) = built.last_meta(&MessageRole::Assistant) {
            meta.set_raw("agent", response.get("author"));
        }
    }
    if let Some(text) = turn.filled_text("reference") {
        built.push_text(MessageRole::Assistant, &text);
    }
}

fn add_metric(raw: &RawValue, built: &mut TranscriptBuilder) {
    let Some(metric) = RawFields::from_raw(raw) else {
        return;
    };
    let name = metric
        .text("metric_name")
        .or_else(|| metric.text("metricName"))
        .unwrap_or_default();
    let mut verdict = verdict_of("adk", &name, metric.get("score"), None);
    let status = get(&metric, "eval_status", "evalStatus").map(RawValue::get);
    verdict.passed = match status {
        Some("1" | "\"PASSED\"") => Some(true),
        Some("2" | "\"FAILED\"") => Some(false),
        _ => None,
    };
    built.push_verdict(verdict);
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    #[test]
    fn intermediate_responses_of_a_case_are_read() {
        let file = r#"{"eval_set_id":"s","eval_cases":[{"eval_id":"e","conversation":[{"user_content":{"role":"user","parts":[{"text":"Check it."}]},
"intermediate_data":{"tool_uses":[{"id":null,"name":"look","args":{}}],"intermediate_responses":[["monitor",[{"thought":null,"text":"It is closed."}]]]},
"final_response":{"role":"model","parts":[{"text":"Go elsewhere."}]}}]}]}
"#;
        let (all, tally) = read(file.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Check it.",
                "assistant look({})",
                "assistant It is closed.",
                "assistant Go elsewhere.",
            ]
        );
        assert_eq!(one["messages"][2]["metadata"]["agent"], "monitor");
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }

    #[test]
    fn eval_set_of_the_first_version_is_read() {
        let turns = r#"[{"query":"What is in my cart?","expected_tool_use":[{"tool_name":"cart","tool_input":{"id":"1"},"mock_tool_output":{"items":["soil"]}}],
"expected_intermediate_agent_responses":[{"author":"shop","text":"I look."}],"reference":"Soil."}]"#;
        let lines = [
            "user What is in my cart?",
            r#"assistant cart({"id":"1"})"#,
            "assistant I look.",
            "assistant Soil.",
        ];
        let set = format!(r#"[{{"name":"set","data":{turns},"initial_state":{{}}}}]"#);
        for (file, id) in [(turns, None), (&*set, Some("set"))] {
            let (all, tally) = read(file.as_bytes());
            assert_eq!(all.len(), 1, "{file}");
            assert_eq!(tally.unknown["a mocked output of a tool"], 1);
            assert_eq!(tally.unknown_count(), 1, "{tally:?}");
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(message_lines(one), lines, "{file}");
            assert_eq!(one["id"].as_str(), id, "{file}");
        }
    }
}
