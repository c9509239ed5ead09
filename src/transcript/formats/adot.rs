//! The bodies in which AWS's distribution of OpenTelemetry (ADOT) keeps the messages of a span: `{input: {messages},
//! output: {messages}}`, in a log record of `CloudWatch` or in an event of the span.
//!
//! The content of a message is a text, often with JSON, or an object with such a text (`content`, `message`). The
//! sources are the spans in strands-agents/evals and the serializer in aws/bedrock-agentcore-sdk-python. Responsible for
//! the attributes that the semantic conventions have for this content. Does not find the span of a body.

use serde_json::value::RawValue;

use super::super::fields::{RawFields, list_items};
use super::super::native::json_string;
use super::foreign_message::MessageInProgress;
use super::io_value::add_io;
use super::trace_spans::to_parts;
use super::transcript_builder::{TranscriptBuilder, owned_text, role_of};
use crate::model::MessageRole;

/// An attribute with its text.
pub(super) type TextAttribute = (&'static str, String);

/// Returns true if a body is one of ADOT. Other programs write other bodies, such as lines of text.
pub(super) fn has_messages(body: &RawValue) -> bool {
    let body = RawFields::from_raw(body).unwrap_or_default();
    let mut sides = ["input", "output"]
        .into_iter()
        .filter_map(|side| body.object(side));
    sides.any(|side| side.has("messages"))
}

/// Returns the attributes for a body. A span without a kind is a model call or a tool only if the output shows it.
pub(super) fn body_attributes(body: &RawValue, has_kind: bool) -> Vec<TextAttribute> {
    let body = RawFields::from_raw(body).unwrap_or_default();
    let messages = |side: &str| {
        let side = body.object(side).unwrap_or_default();
        side.list("messages").unwrap_or_default()
    };
    let (input, output) = (messages("input"), messages("output"));
    if !has_kind {
        // OpenInference's instrumentation of LangChain names no kind here.
        let answer = output.first().map(|raw| content_text(raw));
        let answer = answer.unwrap_or_default();
        let answer = RawFields::parse(&answer).unwrap_or_default();
        if answer.has("tool_call_id") {
            return tool_attributes(&answer, &input);
        }
        if !answer.has("generations") {
            return Vec::new();
        }
    }
    let mut attributes = Vec::new();
    for (key, messages, role) in [
        ("gen_ai.input.messages", input, MessageRole::User),
        ("gen_ai.output.messages", output, MessageRole::Assistant),
    ] {
        let mut built = TranscriptBuilder::default();
        for raw in messages {
            add_message(raw, &role, &mut built);
        }
        if built.has_messages() {
            attributes.push((key, to_parts(&built)));
        }
    }
    attributes
}

/// Returns the attributes of a tool that answered with a message of LangChain.
fn tool_attributes(answer: &RawFields<'_>, input: &[&RawValue]) -> Vec<TextAttribute> {
    let text = |key: &str| answer.text(key).unwrap_or_default().0.into_owned();
    let mut attributes = vec![
        ("gen_ai.operation.name", "execute_tool".to_owned()),
        ("gen_ai.tool.name", text("name")),
        ("gen_ai.tool.call.id", text("tool_call_id")),
    ];
    if let Some(content) = answer.get("content") {
        attributes.push(("gen_ai.tool.call.result", owned_text(content)));
    }
    if let Some(arguments) = input.first() {
        attributes.push(("gen_ai.tool.call.arguments", content_text(arguments)));
    }
    attributes
}

/// Returns the content of a message without its wrapper.
fn unwrap_content(message: &RawValue) -> Option<&RawValue> {
    let content = RawFields::from_raw(message)?.get("content")?;
    let wrapped =
        RawFields::from_raw(content).and_then(|wrapper| wrapper.get_first(&["content", "message"]));
    Some(wrapped.unwrap_or(content))
}

fn content_text(message: &RawValue) -> String {
    unwrap_content(message).map(owned_text).unwrap_or_default()
}

/// Returns true for the output of a model or the state of a graph, as LangChain writes them. Other JSON is the text of
/// the message.
fn is_state(value: &RawValue) -> bool {
    RawFields::from_raw(value)
        .is_some_and(|fields| fields.has("generations") || fields.has("messages"))
}

fn add_message(raw: &RawValue, default: &MessageRole<'static>, built: &mut TranscriptBuilder) {
    let fields = RawFields::from_raw(raw).unwrap_or_default();
    let role = fields.text("role");
    let role = role.map_or_else(|| default.clone(), |role| role_of(&role));
    let Some(content) = unwrap_content(raw) else {
        built.push(role, Vec::new());
        return;
    };
    let text = json_string(content);
    let inner = text
        .as_deref()
        .and_then(|text| serde_json::from_str::<&RawValue>(text.trim()).ok());
    let value = inner.unwrap_or(content);
    if list_items(value).is_some() {
        // The content blocks of Bedrock.
        let mut message = MessageInProgress::new(role.clone(), built);
        message.add_content(value);
        message.finish();
    } else if is_state(value) {
        add_io(value, &role, built);
    } else {
        built.push_text(role.clone(), &owned_text(content));
    }
    let wrapper = fields.object("content").unwrap_or_default();
    if let Some(meta) = built.last_meta(&role) {
        meta.set_raw("stop_reason", wrapper.get("finish_reason"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    const START: u64 = 1_700_000_000_000_000_000;

    fn body(input: &Value, output: &Value) -> Value {
        json!({"input": {"messages": [input]}, "output": {"messages": [output]}})
    }

    #[test]
    fn log_records_give_the_messages_of_their_spans() {
        let span = |id: &str, operation: &str| {
            json!({"traceId": "t", "spanId": id, "name": operation, "startTimeUnixNano": START, "endTimeUnixNano": START + 9,
                "attributes": {"gen_ai.operation.name": operation, "session.id": "s1"}})
        };
        let log = |id: &str, body: Value| {
            json!({"traceId": "t", "spanId": id, "timeUnixNano": START, "body": body,
                "attributes": {"event.name": "strands.telemetry.tracer", "session.id": "s1"}})
        };
        let question =
            json!({"role": "user", "content": {"content": "[{\"text\": \"Weather?\"}]"}});
        let blocks = r#"[{"text": "I look."}, {"toolUse": {"toolUseId": "c1", "name": "get", "input": {"city":"Oslo"}}}]"#;
        let reply = json!({"role": "assistant", "content": {"message": blocks, "finish_reason": "tool_use"}});
        let other_reply = json!({"role": "assistant", "content": "I refuse."});
        let file = [
            log("a", body(&question, &reply)),
            // A repeated body loses nothing, and another one is counted.
            log("a", body(&question, &reply)),
            log("a", body(&question, &other_reply)),
            span("a", "chat"),
            log("gone", json!({"input": {}})),
            log("a", json!({"content": "Weather?", "role": "user"})),
            log("a", json!("a line of text")),
        ];
        let file = file.map(|record| record.to_string()).join("\n");
        let (all, tally) = read(format!("{file}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(one["id"], "s1");
        assert_eq!(
            message_lines(one),
            [
                "user Weather?",
                "assistant I look. | get({\"city\":\"Oslo\"})"
            ]
        );
        assert_eq!(one["messages"][1]["metadata"]["stop_reason"], "tool_use");
        assert_eq!(tally.unknown["another body of the same span"], 1);
        assert_eq!(tally.unknown["a log record without its span"], 1);
        assert_eq!(tally.unknown["a log record without a list of messages"], 2);
    }

    #[test]
    fn events_of_langchain_show_calls_of_models_and_tools() {
        let span = |id: &str, input: &str, output: &Value| {
            let body = body(
                &json!({"role": "user", "content": input}),
                &json!({"role": "assistant", "content": output.to_string()}),
            );
            let name = "openinference.instrumentation.langchain";
            json!({"trace_id": "t", "span_id": id, "name": name, "start_time": START, "end_time": START + 9,
                "attributes": {"event.name": name}, "span_events": [{"event_name": name, "body": body}]})
        };
        let call = json!({"name": "get", "args": {"city": "Oslo"}, "id": "c1"});
        let message = json!({"content": "I look.", "tool_calls": [call]});
        let file = json!([
            span(
                "a",
                "Weather?",
                &json!({"generations": [[{"text": "I look.", "message": message}]]})
            ),
            span(
                "b",
                "{'city': 'Oslo'}",
                &json!({"name": "get", "content": "Snow", "tool_call_id": "c1"})
            ),
            span("c", "some state", &json!("__end__")),
        ]);
        let (all, tally) = read(file.to_string().as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Weather?",
                "assistant I look. | get({\"city\":\"Oslo\"})",
                "tool Snow",
            ]
        );
        assert_eq!(one["messages"][2]["tool_call_id"], "c1");
        assert_eq!(tally.unknown_count(), 1, "{tally:?}");
    }

    #[test]
    fn prompt_next_to_replies_as_messages_is_read() {
        let file = json!([{"trace_id": "t", "span_id": "a", "name": "ClaudeAgentSDK.query", "start_time": START,
            "end_time": START + 9, "attributes": {"openinference.span.kind": "AGENT", "input.mime_type": "text/plain",
            "input.value": "What is 42 * 7?", "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "294"}}]);
        let (all, _) = read(file.to_string().as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            ["user What is 42 * 7?", "assistant 294"]
        );
    }
}
