//! Tool spans, which add data to the calls and results in the messages.
//!
//! Responsible for the match between a span and its call. It uses the call's id, else the tool's name and arguments,
//! else the name alone in order. Does not read messages.

use std::collections::HashSet;

use super::metrics::{duration_ms, failure_message, format_timestamp};
use super::wire::OtlpEntry;
use crate::model::{MessageRole, SourceText, ToolResult, TranscriptMessage, TranscriptPart};
use crate::transcript::fields::compact_json;
use crate::transcript::metadata::MetadataBuilder;

/// The data of a tool span.
#[derive(Debug)]
pub(super) struct ToolSpan {
    pub(super) id: Option<String>,
    name: String,
    arguments: Option<String>,
    result: Option<String>,
    /// True if the span ended with an error. Any other end is a success.
    is_error: bool,
    duration_ms: Option<f64>,
    ended: Option<String>,
}

impl ToolSpan {
    pub(super) fn from_span(entry: &OtlpEntry<'_>) -> Self {
        let attrs = &entry.attributes;
        // The attributes of all conventions, the semantic conventions first.
        let first_text = |keys: &[&str]| attrs.first_text(keys).map(std::borrow::Cow::into_owned);
        let name = first_text(&[
            "gen_ai.tool.name",
            "ai.toolCall.name",
            "tool.name",
            "traceloop.entity.name",
        ]);
        let is_error = entry.status.is_error();
        let result = first_text(&[
            "gen_ai.tool.call.result",
            "ai.toolCall.result",
            "output.value",
            "traceloop.entity.output",
        ]);
        Self {
            id: first_text(&[
                "gen_ai.tool.call.id",
                "ai.toolCall.id",
                "tool_call.id",
                "tool.id",
            ]),
            name: name.unwrap_or_else(|| {
                let name = &*entry.name;
                name.strip_prefix("execute_tool ")
                    .unwrap_or(name)
                    .to_owned()
            }),
            arguments: first_text(&[
                "gen_ai.tool.call.arguments",
                "ai.toolCall.args",
                "input.value",
                "tool.parameters",
                "traceloop.entity.input",
            ]),
            // A failed tool may have no result, only the message of its exception.
            result: result.or_else(|| is_error.then(|| failure_message(entry))),
            is_error,
            duration_ms: duration_ms(entry),
            ended: format_timestamp(entry.end_time_unix_nano),
        }
    }
}

/// A call with the index of its message.
struct IndexedToolCall<'m> {
    message_index: usize,
    id: &'m str,
    name: &'m str,
    arguments: &'m str,
}

/// Adds a span to its call: duration and error of the result, or the whole result. Returns true if the call was found.
pub(super) fn apply_tool_span(
    span: &ToolSpan,
    messages: &mut Vec<TranscriptMessage<'static>>,
    used: &mut HashSet<usize>,
) -> bool {
    let calls = list_calls(messages);
    // Equal calls need one span each.
    let is_unused = |(index, _): &(usize, &IndexedToolCall<'_>)| !used.contains(index);
    let find = |is: &dyn Fn(&IndexedToolCall<'_>) -> bool| {
        calls
            .iter()
            .enumerate()
            .filter(is_unused)
            .find(|(_, call)| is(call))
            .map(|(at, _)| at)
    };
    // Programs differ in the white space of arguments.
    let arguments = span.arguments.as_deref().map(compact_json);
    let has_same_arguments = |call: &IndexedToolCall<'_>| {
        call.name == span.name && arguments.as_deref() == Some(&*compact_json(call.arguments))
    };
    let by_id = span
        .id
        .as_deref()
        .and_then(|id| find(&|call| call.id == id));
    let by_name = || {
        span.id
            .is_none()
            // The name alone is too weak for a span whose id matches no call.
            .then(|| find(&|call| call.name == span.name))?
    };
    let Some(at) = by_id.or_else(|| find(&has_same_arguments)).or_else(by_name) else {
        return false;
    };
    let call = &calls[at];
    let (message, id) = (call.message_index, call.id.to_owned());
    let index_in_message = calls[..at]
        .iter()
        .rev()
        .take_while(|other| other.message_index == message)
        .count();
    used.insert(at);
    // The messages may leave out the arguments, which the span has.
    if let (true, Some(arguments)) = (call.arguments.is_empty(), &span.arguments) {
        set_arguments(&mut messages[message], index_in_message, arguments);
    }
    let results = messages[message + 1..].iter().enumerate();
    let results: Vec<usize> = results
        // Without an id, only the results directly after the call can belong to it.
        .take_while(|(_, one)| !id.is_empty() || one.role == MessageRole::Tool)
        .filter(|(_, one)| matches!(one.parts.first(), Some(TranscriptPart::ToolResult(result)) if *result.call_id == *id))
        .map(|(at, _)| message + 1 + at)
        .collect();
    // Without ids, results have the same order as calls.
    let result_index = if id.is_empty() {
        results.get(index_in_message)
    } else {
        results.first()
    };
    match result_index {
        Some(result_index) => update_result(span, &mut messages[*result_index]),
        None => insert_result(span, id, message, messages),
    }
    true
}

fn list_calls<'m>(messages: &'m [TranscriptMessage<'static>]) -> Vec<IndexedToolCall<'m>> {
    let mut calls = Vec::new();
    for (message_index, message) in messages.iter().enumerate() {
        for part in &message.parts {
            if let TranscriptPart::ToolCall(call) = part {
                calls.push(IndexedToolCall {
                    message_index,
                    id: &call.id,
                    name: &call.name,
                    arguments: &call.arguments,
                });
            }
        }
    }
    calls
}

fn set_arguments(
    message: &mut TranscriptMessage<'static>,
    index_in_message: usize,
    arguments: &str,
) {
    let calls = message.parts.iter_mut().filter_map(|part| match part {
        TranscriptPart::ToolCall(call) => Some(call),
        _ => None,
    });
    if let Some(call) = calls.into_iter().nth(index_in_message) {
        call.arguments = SourceText::from(arguments.to_owned());
    }
}

/// Adds the data of a span to an existing result.
fn update_result(span: &ToolSpan, message: &mut TranscriptMessage<'static>) {
    if let Some(TranscriptPart::ToolResult(result)) = message.parts.first_mut() {
        // The messages are closer to what the model got, so their values take precedence.
        result.is_error = result.is_error.or(Some(span.is_error));
        result.duration_ms = result.duration_ms.or(span.duration_ms);
    }
    if message.metadata.is_none() {
        message.metadata = end_time_metadata(span);
    }
}

/// Inserts a result that the messages lack: the model never read it, or that call was not recorded.
fn insert_result(
    span: &ToolSpan,
    id: String,
    call: usize,
    messages: &mut Vec<TranscriptMessage<'static>>,
) {
    // A span without a result adds nothing to the conversation.
    let Some(result) = &span.result else { return };
    // Results of parallel calls follow the message; the new one goes after them.
    let result_count = messages[call + 1..]
        .iter()
        .take_while(|message| message.role == MessageRole::Tool)
        .count();
    let part = TranscriptPart::ToolResult(ToolResult {
        call_id: SourceText::from(id),
        content: SourceText::from(result.clone()),
        is_error: Some(span.is_error),
        duration_ms: span.duration_ms,
    });
    messages.insert(
        call + 1 + result_count,
        TranscriptMessage {
            role: MessageRole::Tool,
            parts: vec![part],
            metadata: end_time_metadata(span),
        },
    );
}

fn end_time_metadata(span: &ToolSpan) -> Option<crate::model::JsonText<'static>> {
    let mut meta = MetadataBuilder::default();
    meta.set("timestamp", span.ended.clone());
    meta.finish()
}
