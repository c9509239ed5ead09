//! Signatures of formats whose keys are common words, such as `choices` and `items`.
//!
//! Responsible for the values below these keys: the key alone does not identify a format. A value that a cut preview does
//! not contain counts as a match, because the reader decides later. Does not read transcripts.

use serde_json::Value;

use super::super::detect::FilePreview;
use super::api_pages::is_stored_completions;

/// The keys that contain the answer of a log record next to its `messages`.
pub(super) const ANSWER_KEYS: [&str; 6] = [
    "response",
    "choices",
    "completion",
    "output",
    "generation",
    "model_output",
];

/// Returns true if `key` occurs as a key at any depth.
pub(super) fn contains_key(bytes: &[u8], key: &str) -> bool {
    let quoted = format!("\"{key}\"");
    let finder = memchr::memmem::Finder::new(&quoted);
    let mut from = 0;
    while let Some(found) = finder.find(&bytes[from..]) {
        let at = from + found;
        if is_key_end(bytes, at + quoted.len()) {
            return true;
        }
        // The quotation mark at the end may begin the next text.
        from = at + 1;
    }
    false
}

/// Returns true if the quoted text that ends before `end` is a key: a colon follows it.
pub(super) fn is_key_end(bytes: &[u8], end: usize) -> bool {
    bytes[end..].trim_ascii_start().first() == Some(&b':')
}

/// The formats of traces whose records have no `messages`. A record with messages next to its spans is not one of them.
pub(in crate::transcript) const TRACES_WITHOUT_MESSAGES: [&str; 6] = [
    "a Langfuse export",
    "a Braintrust log",
    "an MLflow trace",
    "an Opik trace",
    "a DeepEval trace",
    "spans of OpenTelemetry (SDK dumps, Phoenix, Jaeger)",
];

/// Returns true if one of the first records has a list of messages with roles. Any of them counts, because a native
/// file may begin with a broken line.
pub(super) fn is_native(preview: &FilePreview<'_>) -> bool {
    preview.records.iter().any(|seen| {
        seen.sniff.has("messages")
            && is_message_list(
                &seen.sniff.outline(seen.bytes)["messages"],
                seen.sniff.is_cut(),
            )
    })
}

/// Returns true if one of the first records has `messages` and the answer next to them.
pub(super) fn has_answer_next_to_messages(preview: &FilePreview<'_>) -> bool {
    preview.records.iter().any(|seen| {
        seen.sniff.has("messages") && {
            let outline = seen.sniff.outline(seen.bytes);
            is_message_list(&outline["messages"], false) && has_answer(outline)
        }
    })
}

/// Returns true if a record has a key with an answer.
pub(super) fn has_answer(record: &Value) -> bool {
    ANSWER_KEYS.iter().any(|key| match &record[key] {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    })
}

/// Returns true if the first record has messages with roles.
pub(in crate::transcript) fn begins_with_messages(preview: &FilePreview<'_>) -> bool {
    preview.first_outline()["messages"][0]["role"].is_string()
}

/// Returns true for a list of messages, and for an empty list.
fn is_message_list(messages: &Value, is_cut: bool) -> bool {
    match messages {
        Value::Array(items) => items
            .first()
            .is_none_or(|first| first.get("role").is_some() || is_cut),
        // JSON in a text is for a field mapping. `null` also represents what a cut preview does not contain.
        Value::Null => is_cut,
        _ => false,
    }
}

/// Returns true if a file is a list of livekit's items, or a report that contains one.
pub(super) fn is_livekit(preview: &FilePreview<'_>) -> bool {
    if wraps_response_items(preview) {
        return false;
    }
    let first = preview.first_outline();
    let items = match &first["chat_history"] {
        Value::Object(history) => history.get("items"),
        _ => first.get("items"),
    };
    let kinds = [
        "message",
        "function_call",
        "function_call_output",
        "agent_handoff",
        "agent_config_update",
    ];
    has_items(items, |item| {
        item["type"]
            .as_str()
            .is_some_and(|kind| kinds.contains(&kind))
    })
}

/// Returns true if a file has items of the Responses API under `items`. Their messages and calls have the types of
/// livekit's items, so one item needs a type or a part that livekit does not have.
pub(super) fn wraps_response_items(preview: &FilePreview<'_>) -> bool {
    let item_types = [
        "reasoning",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "file_search_call",
        "computer_call",
        "mcp_call",
    ];
    let part_types = [
        "input_text",
        "output_text",
        "input_image",
        "input_file",
        "refusal",
    ];
    let has_type = |value: &Value, types: &[&str]| {
        value["type"]
            .as_str()
            .is_some_and(|kind| types.contains(&kind))
    };
    let is_response_item = |item: &Value| {
        let mut parts = item["content"].as_array().into_iter().flatten();
        has_type(item, &item_types) || parts.any(|part| has_type(part, &part_types))
    };
    preview.first_outline()["items"]
        .as_array()
        .is_some_and(|items| items.iter().any(is_response_item))
}

/// Returns true if a file contains replies of OpenAI's chat completions, alone or as the list of stored ones.
pub(super) fn is_chat_completion(preview: &FilePreview<'_>) -> bool {
    if is_stored_completions(preview) {
        return true;
    }
    let first = preview.first_outline();
    match &first["choices"] {
        // A reply without choices still has one of the API's other keys.
        Value::Array(choices) if choices.is_empty() => ["object", "model", "usage", "id"]
            .iter()
            .any(|key| first.get(key).is_some()),
        choices => has_items(Some(choices), |choice| {
            choice["message"].is_object()
                || choice["delta"].is_object()
                || choice["text"].is_string()
        }),
    }
}

/// Returns true if a file contains Gemini's requests, replies or contents.
pub(super) fn is_gemini(preview: &FilePreview<'_>) -> bool {
    let first = preview.first_outline();
    let is_content = |content: &Value| {
        content["parts"].is_array() || content["parts"].is_string() || content.is_string()
    };
    let reply_keys = [
        "usageMetadata",
        "usage_metadata",
        "modelVersion",
        "model_version",
        "promptFeedback",
        "prompt_feedback",
    ];
    let has_reply_key = reply_keys.iter().any(|key| first.get(key).is_some());
    let content_keys = ["content", "finishReason", "finish_reason"];
    let is_candidate =
        |candidate: &Value| content_keys.iter().any(|key| candidate.get(key).is_some());
    let contents = first.get("contents");
    contents.is_some_and(Value::is_string)
        || contents.is_some_and(is_content)
        || has_items(contents, is_content)
        || has_items(first.get("candidates"), is_candidate)
        || (first.get("candidates").is_some() && has_reply_key)
        || (first["role"].is_string() && is_content(first))
        // A list of contents, one record each, or nested in an outer list.
        || first[0]["role"].is_string() && is_content(&first[0])
}

/// Returns true if a file contains a list of messages, or one message per record.
pub(super) fn is_list_of_messages(preview: &FilePreview<'_>) -> bool {
    let first = preview.first_outline();
    let is_message = |message: &Value| {
        let content = ["content", "parts", "tool_calls", "function_call"];
        // A role is a word: a sentence under `role` describes a person.
        message["role"]
            .as_str()
            .is_some_and(|role| !role.is_empty() && !role.contains(' '))
            && content.iter().any(|key| message.get(key).is_some())
    };
    // A list may begin with an item without a role.
    let any_message = |list: &Value| {
        list.as_array()
            .is_some_and(|items| items.iter().any(is_message))
    };
    is_message(first) || any_message(first)
}

/// Returns true if a file contains requests to the Responses API, its replies, or both.
pub(super) fn is_responses(preview: &FilePreview<'_>) -> bool {
    let first = preview.first_outline();
    if first["object"] == "response" {
        return true;
    }
    let is_item = |item: &Value| item["type"].is_string();
    let is_input = |item: &Value| is_item(item) || item["role"].is_string();
    // Other tools write `input` and `output` as plain values. Here at least one of them is a list of items.
    let output = first.get("output");
    let has_output = match output {
        Some(Value::Array(items)) if items.is_empty() => first.get("model").is_some(),
        output => has_items(output, is_item),
    };
    (has_output
        && ["input", "usage", "model"]
            .iter()
            .any(|key| first.get(key).is_some()))
        || (has_items(first.get("input"), is_input)
            && ["model", "instructions"].iter().any(|key| first.get(key).is_some())
            // The answer is text only in the formats of other tools.
            && !output.is_some_and(Value::is_string))
}

/// Returns true if a value is a list that begins with an object that `is` accepts.
fn has_items(list: Option<&Value>, is: impl Fn(&Value) -> bool) -> bool {
    list.and_then(|list| list.get(0)).is_some_and(is)
}

#[cfg(test)]
mod tests {
    use super::super::super::detect::preview_file;
    use super::*;

    fn matches(text: &str, is: fn(&FilePreview<'_>) -> bool) -> bool {
        is(&preview_file(text.as_bytes()).expect("records"))
    }

    type Signature = fn(&FilePreview<'_>) -> bool;

    #[test]
    fn one_generic_key_is_not_a_format() {
        let cases: [(&str, Signature); 9] = [
            (
                r#"{"choices":["Paris","Rome"],"answer":"A"}"#,
                is_chat_completion,
            ),
            (
                r#"{"model_id":"m","choices":[{"index":0,"turns":["a"]}]}"#,
                is_chat_completion,
            ),
            (r#"{"question":"q","chat_history":[]}"#, is_livekit),
            (r#"{"items":[{"label":"Overview"}]}"#, is_livekit),
            (
                r#"{"candidates":[{"name":"extract a function"}]}"#,
                is_gemini,
            ),
            (r#"{"output":["a","b"],"input":"q"}"#, is_responses),
            (
                r#"{"input":[{"role":"user","content":"q"}],"output":"a","model":"m"}"#,
                is_responses,
            ),
            (
                r#"{"name":"n","role":"an AI specialized in law","goals":[]}"#,
                is_list_of_messages,
            ),
            (
                r#"{"messages":[{"type":"gemini","content":"x"}]}"#,
                is_native,
            ),
        ];
        for (text, is) in cases {
            assert!(!matches(text, is), "{text}");
        }
    }

    #[test]
    fn values_of_the_format_match() {
        let cases: [(&str, Signature); 9] = [
            (
                r#"{"choices":[{"message":{"role":"assistant"}}]}"#,
                is_chat_completion,
            ),
            (r#"{"choices":[],"usage":{}}"#, is_chat_completion),
            (
                r#"{"chat_history":{"items":[{"type":"message"}]}}"#,
                is_livekit,
            ),
            (r#"{"candidates":[],"usageMetadata":{}}"#, is_gemini),
            (r#"[[{"role":"user","parts":[{"text":"x"}]}]]"#, is_gemini),
            (r#"{"object":"response","output":[]}"#, is_responses),
            (r#"[{"role":"user","content":"x"}]"#, is_list_of_messages),
            (r#"{"messages":[]}"#, is_native),
            (
                r#"{"messages":[{"role":"user"}],"output":"x"}"#,
                has_answer_next_to_messages,
            ),
        ];
        for (text, is) in cases {
            assert!(matches(text, is), "{text}");
        }
    }
}
