//! Results of `generateText` of the Vercel AI SDK, as programs log them: the steps of an agent, with their calls.
//!
//! Responsible for `{steps}`, and for a single step with its text, calls and results. The prompt is next to them
//! (`messages` or `prompt`), else in the request of the first step. The messages of the response count, else the content
//! of each step. Does not read messages without a result: that is `ai_sdk.rs`.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::native::{json_string, parse_tags};
use super::super::reader::TranscriptSink;
use super::foreign_message::{MessageInProgress, add_messages, result_text};
use super::response_items::MessageBuilder;
use super::transcript_builder::{TranscriptBuilder, reasoning_part, text_part};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// The keys of the messages in the request of a provider.
const REQUEST_KEYS: [&str; 3] = ["messages", "input", "contents"];

/// The keys of a result that become messages, or metadata under the names of dicta.
const USED_KEYS: [&str; 19] = [
    "id",
    "messages",
    "prompt",
    "system",
    "steps",
    "content",
    "text",
    "reasoning",
    "reasoningText",
    "reasoningDetails",
    "toolCalls",
    "toolResults",
    "finishReason",
    "usage",
    "totalUsage",
    "request",
    "response",
    "tags",
    "metadata",
];

/// Returns true if a value is a result with steps, or a single step.
pub(super) fn is_result(value: &Value) -> bool {
    let steps = value["steps"].as_array();
    steps.map_or_else(|| is_step(value), |all| all.first().is_some_and(is_step))
}

/// Returns true if a value is a step. Each has its end, its tokens, and its content in one of two shapes.
fn is_step(value: &Value) -> bool {
    let has_calls = value["toolCalls"].is_array() && value["toolResults"].is_array();
    value["finishReason"].is_string()
        && value["usage"].is_object()
        && (has_calls || (value["content"].is_array() && value["response"].is_object()))
}

/// Returns true if a record is a result and not a list of messages with metadata.
pub(super) fn holds_result(fields: &RawFields<'_>) -> bool {
    let has_list = |key: &str| fields.list(key).is_some();
    let has_calls = has_list("toolCalls") && has_list("toolResults");
    let has_content = has_list("content") && fields.object("response").is_some();
    let steps = fields.list("steps").unwrap_or_default();
    let first = steps.first().copied().and_then(RawFields::from_raw);
    let has_steps = first.is_some_and(|step| step.has("finishReason"));
    has_steps || (fields.has("finishReason") && (has_calls || has_content))
}

/// Adds the transcript of a result.
pub(super) fn parse_result(fields: &RawFields<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let listed = fields.list("steps");
    let steps: Vec<RawFields<'_>> = match &listed {
        Some(all) => all
            .iter()
            .copied()
            .filter_map(RawFields::from_raw)
            .collect(),
        None => vec![fields.clone()],
    };
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return Err("it has no steps".to_owned());
    };
    let response = last.object("response").unwrap_or_default();
    let id = fields.id_text("id").or_else(|| response.id_text("id"));
    let mut built = TranscriptBuilder::new("ai-sdk", id);
    let unread = listed.map_or(0, |all| all.len() - steps.len());
    built.count_unknown("a step that is not an object", unread);
    add_prompt(fields, first, &mut built);
    let before = built.messages.len();
    add_response(fields, &steps, &mut built);
    if built.messages.len() == before {
        for step in &steps {
            add_step(step, &mut built);
        }
    }
    // Some programs log the whole conversation next to the result. Another answer at the end of a prompt is a beginning
    // that the model continues.
    let (asked, added) = built.messages.split_at(before);
    let is_repeated = asked
        .last()
        .zip(added.last())
        .is_some_and(|(last, answer)| {
            last.role == MessageRole::Assistant && list_texts(last).eq(list_texts(answer))
        });
    if is_repeated {
        built.messages.truncate(before);
    }
    let reason = fields
        .get("finishReason")
        .or_else(|| last.get("finishReason"));
    if let Some(meta) = built.last_meta(&MessageRole::Assistant) {
        meta.set_raw("stop_reason", reason);
    }
    write_metadata(fields, &steps, &mut built);
    built.finish(out);
    Ok(())
}

fn list_texts<'m>(message: &'m MessageBuilder<'_>) -> impl Iterator<Item = &'m str> {
    message.parts.iter().filter_map(|part| match part {
        TranscriptPart::Text(text) => Some(&*text.0),
        _ => None,
    })
}

/// Adds what the model was asked.
fn add_prompt(fields: &RawFields<'_>, first: &RawFields<'_>, built: &mut TranscriptBuilder) {
    if let Some(system) = fields.get("system") {
        add_messages(system, &MessageRole::System, built);
    }
    if let Some(prompt) = fields.get_first(&["messages", "prompt"]) {
        return add_messages(prompt, &MessageRole::User, built);
    }
    // Version 4 has the body as JSON in a text.
    let body = first
        .object("request")
        .and_then(|request| request.get("body"));
    let text = body.and_then(json_string);
    let body = match &text {
        Some(text) => RawFields::parse(text).ok(),
        None => body.and_then(RawFields::from_raw),
    };
    let body = body.unwrap_or_default();
    let system = body.get_first(&["system", "instructions", "systemInstruction"]);
    if let Some(system) = system.filter(|_| !fields.has("system")) {
        add_messages(system, &MessageRole::System, built);
    }
    if let Some(messages) = body.get_first(&REQUEST_KEYS) {
        add_messages(messages, &MessageRole::User, built);
    }
}

/// Returns the messages that the model and the tools wrote.
fn response_messages<'a>(fields: &RawFields<'a>) -> Option<&'a RawValue> {
    let messages = fields.object("response")?.get("messages")?;
    let is_filled = list_items(messages).is_some_and(|all| !all.is_empty());
    is_filled.then_some(messages)
}

/// Returns the first element of a list as written.
fn first_element(list: &RawValue) -> Option<&str> {
    let first = list_items(list)?.first().copied()?;
    Some(first.get())
}

/// Adds the messages that the model and the tools wrote, if the result has them.
fn add_response(fields: &RawFields<'_>, steps: &[RawFields<'_>], built: &mut TranscriptBuilder) {
    let own: Vec<&RawValue> = steps.iter().filter_map(response_messages).collect();
    let whole = response_messages(fields).or_else(|| {
        // Each step repeats the messages of the steps before it.
        let (first, last) = (own.first().copied()?, own.last().copied()?);
        (first_element(first) == first_element(last)).then_some(last)
    });
    match whole {
        Some(whole) => add_messages(whole, &MessageRole::Assistant, built),
        None if own.len() == steps.len() => {
            for messages in own {
                add_messages(messages, &MessageRole::Assistant, built);
            }
        }
        None => {}
    }
}

/// Adds the answer of a step, and the results of its calls.
fn add_step(step: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let mut answer = MessageInProgress::new(MessageRole::Assistant, built);
    if let Some(content) = step.get("content") {
        answer.add_content(content);
        return answer.finish();
    }
    let thoughts = step
        .text("reasoningText")
        .or_else(|| step.text("reasoning"));
    if let Some(thoughts) = thoughts.filter(|text| !text.is_empty()) {
        answer.parts.push(reasoning_part(&thoughts));
    }
    if let Some(text) = step.filled_text("text") {
        answer.parts.push(text_part(&text));
    }
    for call in step.list("toolCalls").unwrap_or_default() {
        answer.add_call(call);
    }
    answer.finish();
    for raw in step.list("toolResults").unwrap_or_default() {
        let result = RawFields::from_raw(raw).unwrap_or_default();
        let id = result.id_text("toolCallId").unwrap_or_default();
        let output = result.get_first(&["result", "output"]);
        let text = output.map(result_text);
        built.push_result(&id, text.unwrap_or_default(), None);
    }
}

fn write_metadata(fields: &RawFields<'_>, steps: &[RawFields<'_>], built: &mut TranscriptBuilder) {
    let whole = fields
        .object("totalUsage")
        .or_else(|| fields.object("usage"));
    let usage = whole.map_or_else(
        || {
            let usages = steps.iter().filter_map(|step| step.object("usage"));
            usages.fold(SourceUsage::default(), |sum, usage| {
                sum.sum_with(parse_usage(&usage))
            })
        },
        |usage| parse_usage(&usage),
    );
    built.meta.set("usage", usage.to_json());
    let responses = || steps.iter().filter_map(|step| step.object("response"));
    let model = responses().find_map(|response| response.get("modelId"));
    let time = responses().find_map(|response| response.get("timestamp"));
    built.meta.set_raw("model", model);
    built.meta.set_raw("timestamp", time);
    if let Some(tags) = fields.get("tags") {
        let tags = parse_tags(tags).into_iter();
        built.tags = tags.map(SourceText::into_owned).collect();
    }
    for (key, value) in fields.iter() {
        if !USED_KEYS.contains(&key) && !["[]", "{}", "null"].contains(&value.get()) {
            built.meta.set_readable(key, Some(value));
        }
    }
    if let Some(metadata) = fields.object("metadata") {
        built.meta.merge_readable_fields(&metadata);
    }
}

/// Parses token counts in the spelling of version 5, or of version 4.
fn parse_usage(usage: &RawFields<'_>) -> SourceUsage {
    SourceUsage {
        input: usage
            .integer("inputTokens")
            .or_else(|| usage.integer("promptTokens")),
        output: usage
            .integer("outputTokens")
            .or_else(|| usage.integer("completionTokens")),
        total: usage.integer("totalTokens"),
        cached: usage.integer("cachedInputTokens"),
        thinking: usage.integer("reasoningTokens"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, read};

    const LINES: [&str; 4] = [
        "user Weather?",
        r#"assistant get({"city":"Rome"})"#,
        "tool sunny",
        "assistant Sunny.",
    ];

    fn metadata_of(all: &[Result<Value, String>]) -> &Value {
        &all[0].as_ref().expect("a transcript")["metadata"]
    }

    #[test]
    fn result_of_version_4_is_a_conversation() {
        let call = json!({"type": "tool-call", "toolCallId": "c1", "toolName": "get", "args": {"city": "Rome"}});
        let result = json!({"type": "tool-result", "toolCallId": "c1", "toolName": "get",
            "args": {"city": "Rome"}, "result": "sunny"});
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "Weather?"}]})
            .to_string();
        let messages = json!([
            {"role": "assistant", "content": [call]},
            {"role": "tool", "content": [result]},
            {"role": "assistant", "content": [{"type": "text", "text": "Sunny."}]},
        ]);
        let step = |text: &str, calls: Value, results: Value, messages: &[Value]| {
            json!({"stepType": "initial", "text": text, "toolCalls": calls, "toolResults": results,
                "finishReason": "stop", "usage": {"promptTokens": 10, "completionTokens": 5, "totalTokens": 15},
                "request": {"body": body}, "response": {"id": "r", "modelId": "gpt-4o",
                    "timestamp": "2025-01-01T00:00:00.000Z", "messages": messages}})
        };
        let all = messages.as_array().expect("a list");
        let first = step("", json!([call]), json!([result]), &all[..2]);
        let last = step("Sunny.", json!([]), json!([]), all);
        let mut whole = last.clone();
        whole["steps"] = json!([first, last]);
        let (all, tally) = read(format!("{whole:#}").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(lines_of_each(&all), [LINES]);
        let metadata = metadata_of(&all);
        assert_eq!(
            metadata["usage"],
            json!({"input": 10, "output": 5, "total": 15})
        );
        assert_eq!(metadata["model"], "gpt-4o");
        // Without the messages of the response, the steps have the content.
        let steps = whole["steps"].as_array().expect("steps").clone();
        let steps: Vec<Value> = steps
            .into_iter()
            .map(|mut step| {
                step.as_object_mut().expect("a step").remove("response");
                step
            })
            .collect();
        let bare = json!({"prompt": "Weather?", "steps": steps});
        let (all, _) = read(format!("{bare}\n").as_bytes());
        assert_eq!(lines_of_each(&all), [LINES]);
    }

    #[test]
    fn begun_answer_is_continued_and_a_logged_conversation_is_not_repeated() {
        let step = json!({"text": "Sunny.", "toolCalls": [], "toolResults": [], "finishReason": "stop", "usage": {}});
        for (last, lines) in [
            (
                "It is",
                &["user Weather?", "assistant It is", "assistant Sunny."][..],
            ),
            ("Sunny.", &["user Weather?", "assistant Sunny."][..]),
        ] {
            let prompt = json!([{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": last}]);
            let record = json!({"messages": prompt, "steps": [step]});
            let (all, _) = read(format!("{record}\n").as_bytes());
            assert_eq!(lines_of_each(&all), [lines], "{last}");
        }
    }

    #[test]
    fn result_of_version_5_is_a_conversation() {
        let call = json!({"type": "tool-call", "toolCallId": "c1", "toolName": "get", "input": {"city": "Rome"}});
        let result = json!({"type": "tool-result", "toolCallId": "c1", "toolName": "get",
            "input": {"city": "Rome"}, "output": "sunny"});
        let step = |content: Value| {
            json!({"content": content, "finishReason": "stop",
                "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}, "warnings": [],
                "request": {"body": {"input": [{"role": "user", "content": "Weather?"}]}},
                "response": {"id": "r", "modelId": "gpt-4o"}})
        };
        let steps = json!([
            step(json!([call, result])),
            step(json!([{"type": "text", "text": "Sunny."}])),
        ]);
        let (all, tally) = read(json!({"steps": steps}).to_string().as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(lines_of_each(&all), [LINES]);
        let usage = json!({"input": 20, "output": 10, "total": 30});
        assert_eq!(metadata_of(&all)["usage"], usage);
    }
}
