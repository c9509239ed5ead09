//! The input of a program: one JSON object.
//!
//! ```json
//! {"type": "script", "params": {…}, "transcript": {"id": "…", "messages": […], "metadata": {…}, "tags": […]}}
//! ```
//!
//! The transcript is in the native format, whatever its source format, with the messages that the eval sees (with
//! `every_turn` those up to the judged one). A `dicta` reader can read it again.
//!
//! `content` is a text, null without text, or a list of parts if there is more than one text, reasoning or media. A
//! tool message has `tool_call_id`, and the known `is_error` and `duration_ms` in its `metadata`. Only `metadata` and
//! `tags` of a transcript without them, and `tool_calls` of a message without calls, are left out.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::Subject;
use crate::model::{
    JsonText, MessageRole, ToolCall, ToolResult, TranscriptMessage, TranscriptPart,
};

#[derive(Serialize)]
struct ScriptRequest<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    params: &'a Map<String, Value>,
    transcript: ScriptTranscript<'a>,
}

#[derive(Serialize)]
struct ScriptTranscript<'a> {
    id: &'a str,
    messages: Vec<ScriptMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a JsonText<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<&'a str>,
}

#[derive(Serialize)]
struct ScriptMessage<'a> {
    role: &'a str,
    content: ScriptMessageContent<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ScriptToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<ScriptMessageMetadata<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ScriptMessageContent<'a> {
    Nothing,
    Text(&'a str),
    Parts(Vec<ScriptContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum ScriptContentPart<'a> {
    Ours(ScriptTypedPart<'a>),
    AsWritten(&'a JsonText<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ScriptTypedPart<'a> {
    Text {
        text: &'a str,
    },
    Reasoning {
        text: &'a str,
    },
    /// A further result in one message. The native format has no such part, so only this file writes it.
    ToolResult {
        tool_call_id: &'a str,
        content: &'a str,
        is_error: Option<bool>,
    },
}

#[derive(Serialize)]
struct ScriptToolCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: ScriptToolFunction<'a>,
}

#[derive(Serialize)]
struct ScriptToolFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ScriptMessageMetadata<'a> {
    AsWritten(&'a JsonText<'a>),
    Ours(Value),
}

/// Returns the bytes for the program's standard input.
pub(super) fn encode_request(
    params: &Map<String, Value>,
    subject: &Subject<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let transcript = subject.transcript;
    // Only the messages that the eval sees.
    let messages = transcript.messages[..subject.end].iter();
    serde_json::to_vec(&ScriptRequest {
        kind: "script",
        params,
        transcript: ScriptTranscript {
            id: &transcript.id,
            messages: messages.map(build_message).collect(),
            metadata: transcript.metadata.as_ref(),
            tags: transcript.tags.iter().map(|tag| &**tag).collect(),
        },
    })
}

fn build_message<'a>(message: &'a TranscriptMessage<'a>) -> ScriptMessage<'a> {
    let mut pieces = Vec::new();
    let mut tool_calls = Vec::new();
    // The first result sets `tool_call_id`; the native format has one result in each message.
    let mut result: Option<&ToolResult<'_>> = None;
    for part in &message.parts {
        match part {
            TranscriptPart::Text(text) => {
                pieces.push(ScriptContentPart::Ours(ScriptTypedPart::Text { text }));
            }
            TranscriptPart::Reasoning(text) => {
                pieces.push(ScriptContentPart::Ours(ScriptTypedPart::Reasoning { text }));
            }
            TranscriptPart::ToolCall(call) => tool_calls.push(build_tool_call(call)),
            TranscriptPart::ToolResult(first) if result.is_none() => {
                result = Some(first);
                pieces.push(ScriptContentPart::Ours(ScriptTypedPart::Text {
                    text: &first.content,
                }));
            }
            TranscriptPart::ToolResult(other) => {
                pieces.push(ScriptContentPart::Ours(ScriptTypedPart::ToolResult {
                    tool_call_id: &other.call_id,
                    content: &other.content,
                    is_error: other.is_error,
                }));
            }
            // Media and unknown parts go to the program as their source wrote them.
            TranscriptPart::Media { raw, .. } | TranscriptPart::Other(raw) => {
                pieces.push(ScriptContentPart::AsWritten(raw));
            }
        }
    }
    // One text is written as a plain text, as most formats do.
    let content = match pieces.as_slice() {
        [] => ScriptMessageContent::Nothing,
        [ScriptContentPart::Ours(ScriptTypedPart::Text { text })] => {
            ScriptMessageContent::Text(text)
        }
        _ => ScriptMessageContent::Parts(pieces),
    };
    ScriptMessage {
        // Other roles keep their original name.
        role: match &message.role {
            MessageRole::Other(name) => name,
            role => role.as_str(),
        },
        content,
        tool_calls,
        tool_call_id: result.map(|result| &*result.call_id),
        metadata: build_metadata(message, result),
    }
}

fn build_tool_call<'a>(call: &'a ToolCall<'a>) -> ScriptToolCall<'a> {
    ScriptToolCall {
        id: &call.id,
        kind: "function",
        function: ScriptToolFunction {
            name: &call.name,
            arguments: &call.arguments,
        },
    }
}

/// Returns the message's own metadata as written. Without it, the known properties of the tool result.
fn build_metadata<'a>(
    message: &'a TranscriptMessage<'a>,
    result: Option<&ToolResult<'_>>,
) -> Option<ScriptMessageMetadata<'a>> {
    // The source's metadata already has these values, if it recorded them there.
    if let Some(own) = &message.metadata {
        return Some(ScriptMessageMetadata::AsWritten(own));
    }
    let result = result?;
    let mut known = Map::new();
    if let Some(is_error) = result.is_error {
        known.insert("is_error".to_owned(), json!(is_error));
    }
    if let Some(took) = result.duration_ms {
        known.insert("duration_ms".to_owned(), json!(took));
    }
    (!known.is_empty()).then_some(ScriptMessageMetadata::Ours(Value::Object(known)))
}
