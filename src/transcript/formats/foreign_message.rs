//! Messages in the shapes of many tools: OpenAI, Anthropic, Gemini, Bedrock, LangChain, the Vercel AI SDK and
//! OpenTelemetry, also mixed.
//!
//! Responsible for one message, or a list of them, inside the record of a tool that stores messages of others, such as
//! a trace. An unknown part is kept as written and counted. Does not know the record around the messages.

mod metadata;
mod stored_calls;

use serde_json::value::RawValue;

use self::metadata::write_message_metadata;
use self::stored_calls::{holds_calls, is_stored_call};
use super::super::fields::{RawFields, compact_json, list_items};
use super::super::native::{json_string, text_or_json};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, owned_text, owned_unknown_part, reasoning_part,
    role_of, text_part,
};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// The depth of lists and wrappers that the reader follows.
const MAX_DEPTH: u8 = 8;

/// Adds a message, a list of messages, or a text. `default` is the role if a message has none.
pub(super) fn add_messages(
    raw: &RawValue,
    default: &MessageRole<'static>,
    out: &mut TranscriptBuilder,
) {
    add_nested(raw, default, out, MAX_DEPTH);
}

fn add_nested(
    raw: &RawValue,
    default: &MessageRole<'static>,
    out: &mut TranscriptBuilder,
    depth: u8,
) {
    if raw.get() == "null" {
        return;
    }
    if let Some(text) = json_string(raw) {
        if !text.is_empty() {
            out.push_text(default.clone(), &text);
        }
        return;
    }
    if let Some(items) = list_items(raw) {
        // A list of parts without roles is the content of one message.
        let is_content = items.iter().all(|item| is_bare_part(item));
        if is_content && !items.is_empty() || depth == 0 {
            let mut message = MessageInProgress::new(default.clone(), out);
            message.add_content(raw);
            return message.finish();
        }
        for item in items {
            if item.get().starts_with(['"', '{', '[', 'n']) {
                add_nested(item, default, out, depth - 1);
            } else {
                // A number or a Boolean, as in a prompt of token ids.
                out.count_unknown_message();
            }
        }
        return;
    }
    match RawFields::from_raw(raw) {
        Some(fields) => add_message(raw, &fields, default, out, depth),
        None => out.push_text(default.clone(), raw.get()),
    }
}

/// Returns true if a value is a part of a message's content and not a message.
fn is_bare_part(raw: &RawValue) -> bool {
    RawFields::from_raw(raw).is_some_and(|fields| {
        let is_message = [
            "role",
            "content",
            "parts",
            "tool_calls",
            "toolCalls",
            "kwargs",
            "data",
        ]
        .iter()
        .any(|key| fields.has(key));
        !is_message && (fields.text("text").is_some() || fields.has("type"))
    })
}

/// The types of items of the Responses API that are messages of their own.
fn is_item(kind: &str) -> bool {
    kind.ends_with("_call") || kind.ends_with("_call_output") || kind == "reasoning"
}

fn add_message(
    raw: &RawValue,
    fields: &RawFields<'_>,
    default: &MessageRole<'static>,
    out: &mut TranscriptBuilder,
    depth: u8,
) {
    let kind = fields.text("type").unwrap_or_default();
    // LangChain's serialized constructor: `{lc, type: "constructor", id: […, "AIMessage"], kwargs}`.
    if let (Some(kwargs), Some(path)) = (fields.object("kwargs"), fields.list("id")) {
        let class = path.last().and_then(|class| json_string(class));
        let role = class.map_or_else(|| default.clone(), |class| role_of(&class));
        return add_plain_message(raw, &kwargs, &role, out);
    }
    // LangChain's `messages_to_dict`: `{type, data}`.
    if let Some(data) = fields.object("data").filter(|_| !kind.is_empty()) {
        return add_plain_message(raw, &data, &role_of(&kind), out);
    }
    // Wrappers of OpenInference, LangSmith's choices and others: `{message, finish_reason}`.
    if let Some(inner) = fields.get("message").filter(|_| depth > 0)
        && !fields.has("content")
        && !fields.has("parts")
        && !inner.get().starts_with('[')
    {
        let role = fields.text("role");
        let role = role.map_or_else(|| default.clone(), |role| role_of(&role));
        add_nested(inner, &role, out, depth - 1);
        if let Some(meta) = out.last_meta(&role) {
            meta.set_raw("stop_reason", fields.get("finish_reason"));
        }
        return;
    }
    if is_item(&kind) && !fields.has("role") {
        let mut message = MessageInProgress::new(MessageRole::Assistant, out);
        message.add_part(raw);
        return message.finish();
    }
    // DeepEval stores an item of a call without its type, or with the type of a function.
    let names_call = fields.has("name") && fields.has("arguments") && fields.has("call_id");
    if names_call && !fields.has("role") {
        let mut message = MessageInProgress::new(MessageRole::Assistant, out);
        message.add_call(raw);
        return message.finish();
    }
    if matches!(&*kind, "text" | "input_text" | "output_text") && is_bare_part(raw) {
        let mut message = MessageInProgress::new(default.clone(), out);
        message.add_part(raw);
        return message.finish();
    }
    let word = ["role", "from", "speaker", "source"];
    let word = word.iter().find_map(|key| fields.text(key));
    // A part of LangChain has a role in `type`; one of the Responses API is a `message`.
    let word = word.or_else(|| Some(kind).filter(|kind| !kind.is_empty() && &**kind != "message"));
    let role = word.map_or_else(|| default.clone(), |word| role_of(&word));
    add_plain_message(raw, fields, &role, out);
}

fn add_plain_message(
    raw: &RawValue,
    fields: &RawFields<'_>,
    role: &MessageRole<'static>,
    out: &mut TranscriptBuilder,
) {
    // Langfuse writes the definitions of tools as messages of a tool.
    if *role == MessageRole::Tool
        && let Some(content) = fields.object("content")
        && content.text("type").as_deref() == Some("function")
        && content.has("function")
    {
        return;
    }
    // DeepEval stores the result of a tool as a text with LangChain's message.
    if *role == MessageRole::Tool
        && let Some(text) = fields.text("content")
        && text.starts_with("{\"lc\":")
        && let Ok(inner) = serde_json::from_str::<&RawValue>(&text)
        && let Some(constructor) = RawFields::from_raw(inner)
        && constructor.object("kwargs").is_some()
        && constructor.list("id").is_some()
    {
        return add_message(inner, &constructor, role, out, 0);
    }
    // A tracer of LangChain writes the name of a tool as the role of its result.
    if let MessageRole::Other(tool) = role
        && let Some(id) = out.find_open_call(tool)
    {
        let content = fields.get("content").map(result_text);
        return out.push_result(&id, content.unwrap_or_default(), stated_error(fields));
    }
    // Koog gives the role of a tool to a reply with calls when it repeats the reply.
    let is_reply = *role == MessageRole::Tool && fields.get("content").is_some_and(holds_calls);
    let role = if is_reply {
        MessageRole::Assistant
    } else {
        role.clone()
    };
    let role = &role;
    let before = out.messages.len();
    let mut message = MessageInProgress::new(role.clone(), out);
    let thoughts = ["reasoning_content", "thinking", "reasoning", "tool_plan"];
    let thoughts = fields.get_first(&thoughts);
    if let Some(text) = thoughts
        .and_then(json_string)
        .filter(|text| !text.is_empty())
    {
        message.parts.push(reasoning_part(&text));
    }
    // LiteLLM and OpenRouter write thoughts in blocks, too.
    for key in ["thinking_blocks", "reasoning_details"] {
        let blocks = fields.list(key).filter(|_| message.parts.is_empty());
        for block in blocks.unwrap_or_default() {
            message.add_reasoning(&RawFields::from_raw(block).unwrap_or_default());
        }
    }
    // Some tools write several of these fields with the same content.
    let contents = ["parts", "contents", "content", "value", "text"];
    let contents = contents.iter().filter_map(|key| fields.get(key));
    let is_filled = |raw: &&RawValue| !matches!(raw.get(), "[]" | "\"\"");
    let content = contents.into_iter().find(is_filled).or_else(|| {
        let is_result = *role == MessageRole::Tool;
        is_result.then(|| fields.get_first(&["output", "result"]))?
    });
    let call_ids = ["tool_call_id", "toolCallId", "tool_use_id", "call_id"];
    let call_id = call_ids.iter().find_map(|key| fields.id_text(key));
    message.answered_call = call_id.unwrap_or_default().0.into_owned();
    match content {
        Some(content) if *role == MessageRole::Assistant => message.add_answer(content),
        Some(content) => message.add_content(content),
        None => {}
    }
    // The words of a spoken answer.
    let speech = fields.object("audio").filter(|_| content.is_none());
    let speech = speech.and_then(|audio| audio.text("transcript"));
    for text in [fields.text("refusal"), speech].into_iter().flatten() {
        if !text.is_empty() {
            message.parts.push(text_part(&text));
        }
    }
    let extra = fields.object("additional_kwargs");
    let sources = [Some(fields), extra.as_ref()];
    for source in sources.into_iter().flatten() {
        // LangChain keeps calls whose arguments are not JSON in a list of their own.
        for key in [
            "tool_calls",
            "toolCalls",
            "toolInvocations",
            "invalid_tool_calls",
        ] {
            if let Some(value) = source.get(key) {
                message.add_calls(value);
            }
        }
        if let Some(call) = source.get("function_call") {
            message.add_call(call);
        }
    }
    if *role == MessageRole::Tool && !message.wrote {
        let mut id = std::mem::take(&mut message.answered_call);
        if id.is_empty() {
            id = fields.id_text("id").unwrap_or_default().0.into_owned();
        }
        message.flush_result(&id, stated_error(fields));
    }
    let is_empty = message.parts.is_empty() && !message.wrote;
    if is_empty && content.is_none() && !fields.has("role") && !fields.has("type") {
        // Not a message at all: a state, or the input of a function.
        message
            .parts
            .push(TranscriptPart::Text(SourceText::from(owned_text(raw))));
    }
    message.finish();
    write_message_metadata(fields, role, before, out);
}

/// Returns true or false if the fields state whether a tool failed.
fn stated_error(fields: &RawFields<'_>) -> Option<bool> {
    let flag = ["is_error", "isError", "error"];
    if let Some(flag) = flag.iter().find_map(|key| fields.flag(key)) {
        return Some(flag);
    }
    match fields.text("status").as_deref() {
        Some("error" | "failed") => Some(true),
        // LangChain and Bedrock write this word if the tool did not fail.
        Some("success") => Some(false),
        _ => None,
    }
}

/// A message under construction. Each tool result becomes a message of its own.
pub(super) struct MessageInProgress<'b> {
    out: &'b mut TranscriptBuilder,
    role: MessageRole<'static>,
    pub(super) parts: Vec<TranscriptPart<'static>>,
    wrote: bool,
    /// The id of the call that a message of a tool answers. A result among its parts may have no id of its own.
    answered_call: String,
}

impl<'b> MessageInProgress<'b> {
    /// Returns an empty message.
    pub(super) fn new(role: MessageRole<'static>, out: &'b mut TranscriptBuilder) -> Self {
        Self {
            out,
            role,
            parts: Vec::new(),
            wrote: false,
            answered_call: String::new(),
        }
    }

    /// Adds text, a part, or a list of parts.
    pub(super) fn add_content(&mut self, raw: &RawValue) {
        if let Some(text) = json_string(raw) {
            if !text.is_empty() {
                self.parts.push(text_part(&text));
            }
            return;
        }
        match list_items(raw) {
            Some(items) => {
                for item in items {
                    self.add_part(item);
                }
            }
            None => self.add_part(raw),
        }
    }

    /// Adds the content of an assistant. DeepEval and Koog store calls as a text with the list of them.
    fn add_answer(&mut self, raw: &RawValue) {
        let text = json_string(raw).filter(|text| text.starts_with('['));
        let calls: Option<Vec<&RawValue>> = text
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        let calls = calls.unwrap_or_default();
        if calls.is_empty() || !calls.iter().all(|call| is_stored_call(call)) {
            return self.add_content(raw);
        }
        for call in calls {
            self.add_call(call);
        }
    }

    /// Adds one part.
    pub(super) fn add_part(&mut self, raw: &RawValue) {
        if let Some(text) = json_string(raw) {
            self.parts.push(text_part(&text));
            return;
        }
        let Some(fields) = RawFields::from_raw(raw) else {
            self.parts.push(owned_unknown_part(raw));
            return;
        };
        if let Some(inner) = fields.object("message_content") {
            return self.add_fields(raw, &inner);
        }
        self.add_fields(raw, &fields);
    }

    fn add_fields(&mut self, raw: &RawValue, fields: &RawFields<'_>) {
        let kind = fields.text("type").unwrap_or_default();
        // Cohere's API expects a tool result as a document with data.
        if self.role == MessageRole::Tool
            && &*kind == "document"
            && let Some(document) = fields.object("document")
            && let Some(data) = document.get("data")
        {
            return self.parts.push(text_part(&owned_text(data)));
        }
        let text = || {
            let keys = ["text", "content", "refusal", "value"];
            keys.iter().find_map(|key| fields.text(key))
        };
        match &*kind {
            "text" | "input_text" | "output_text" | "refusal" => match text() {
                Some(text) => self.parts.push(text_part(&text)),
                None => self.parts.push(owned_unknown_part(raw)),
            },
            "reasoning" | "thinking" | "summary_text" | "reasoning_text" => {
                self.add_reasoning(fields);
            }
            "redacted_thinking" | "step-start" | "step-finish" => {}
            "tool-call" | "tool_call" | "tool_use" | "function_call" | "server_tool_use"
            | "custom_tool_call" => self.add_call(raw),
            "tool-result"
            | "tool_result"
            | "tool_call_response"
            | "function_call_output"
            | "custom_tool_call_output"
            | "tool-error" => self.add_result(fields),
            "tool-invocation" | "dynamic-tool" => self.add_ui_call(&kind, fields),
            _ if kind.starts_with("tool-") && fields.has("toolCallId") => {
                self.add_ui_call(&kind, fields);
            }
            "image" | "image_url" | "imageUrl" | "input_image" | "file" | "input_file"
            | "audio" | "input_audio" | "video" | "document" | "media" | "blob" | "uri"
            | "source-url" | "source-document" => self.add_media(&kind, raw),
            "" => self.add_untyped(raw, fields),
            "function" if is_stored_call(raw) => self.add_call(raw),
            // A tool call of DeepEval.
            _ if fields.has("name") && fields.has("inputParameters") => self.add_call(raw),
            _ => self.parts.push(owned_unknown_part(raw)),
        }
    }

    fn add_media(&mut self, kind: &str, raw: &RawValue) {
        if let TranscriptPart::Other(raw) = owned_unknown_part(raw) {
            let kind = SourceText::from(kind.to_owned());
            self.parts.push(TranscriptPart::Media { kind, raw });
        }
    }

    fn add_reasoning(&mut self, fields: &RawFields<'_>) {
        let keys = ["thinking", "text", "reasoning", "content", "value"];
        if let Some(text) = keys.iter().find_map(|key| fields.text(key)) {
            if !text.is_empty() {
                self.parts.push(reasoning_part(&text));
            }
            return;
        }
        // The Responses API has a list of texts; a summary counts only without them.
        for key in ["content", "summary"] {
            let items = fields.list(key).unwrap_or_default();
            let texts = items
                .iter()
                .filter_map(|item| RawFields::from_raw(item)?.text("text"));
            let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
            self.parts
                .extend(texts.iter().map(|text| reasoning_part(text)));
            if !texts.is_empty() {
                return;
            }
        }
    }

    /// Adds a part without a type: those of Gemini and Bedrock.
    fn add_untyped(&mut self, raw: &RawValue, fields: &RawFields<'_>) {
        if let Some(text) = fields.text("text") {
            if text.is_empty() {
                return;
            }
            let is_thought = fields.flag("thought") == Some(true);
            self.parts.push(if is_thought {
                reasoning_part(&text)
            } else {
                text_part(&text)
            });
            return;
        }
        let object = |keys: [&str; 2]| keys.into_iter().find_map(|key| fields.object(key));
        if let Some(call) = object(["toolUse", "tool_use"]) {
            let id = call.id_text("toolUseId").unwrap_or_default();
            let name = call.text("name").unwrap_or_default();
            let arguments = call_arguments(call.get("input"));
            self.parts.push(call_part(&id, &name, arguments));
        } else if let Some(result) = object(["toolResult", "tool_result"]) {
            self.add_result(&result);
        } else if let Some(reasoning) = fields.object("reasoningContent") {
            if let Some(text) = reasoning.object("reasoningText") {
                self.add_reasoning(&text);
            }
        } else if let Some(call) = object(["functionCall", "function_call"]) {
            let id = call.id_text("id").unwrap_or_default();
            let name = call.text("name").unwrap_or_default();
            let arguments = call_arguments(call.get("args"));
            self.parts.push(call_part(&id, &name, arguments));
        } else if let Some(result) = object(["functionResponse", "function_response"]) {
            self.add_result(&result);
        } else if fields.has("cachePoint") || fields.has("thoughtSignature") {
            // A mark for the service, without content.
        } else {
            let kinds = [
                "image",
                "document",
                "video",
                "audio",
                "inlineData",
                "inline_data",
                "fileData",
                "file_data",
            ];
            match kinds.iter().find(|kind| fields.has(kind)) {
                Some(kind) => self.add_media(kind, raw),
                None => self.parts.push(owned_unknown_part(raw)),
            }
        }
    }

    /// Adds a call in any shape.
    pub(super) fn add_call(&mut self, raw: &RawValue) {
        let Some(mut fields) = RawFields::from_raw(raw) else {
            self.parts.push(owned_unknown_part(raw));
            return;
        };
        if let Some(inner) = fields.object("tool_call") {
            fields = inner;
        }
        if let Some(inner) = fields.object("toolInvocation") {
            fields = inner;
        }
        let ids = ["call_id", "toolCallId", "tool_call_id", "id"];
        let id = ids.iter().find_map(|key| fields.id_text(key));
        let function = fields.object("function");
        let function = function.as_ref().unwrap_or(&fields);
        let names = ["name", "toolName", "tool_name", "function_name"];
        let Some(name) = names.iter().find_map(|key| function.text(key)) else {
            // LLaMA-Factory writes the call as JSON in a text.
            let value = fields.text("value");
            match value.as_deref().map(serde_json::from_str::<&RawValue>) {
                Some(Ok(inner)) if !inner.get().starts_with('"') => self.add_call(inner),
                _ => self.parts.push(owned_unknown_part(raw)),
            }
            return;
        };
        let arguments = [
            "arguments",
            "args",
            "input",
            "inputParameters",
            "parameters",
            "kwargs",
        ];
        let arguments = function.get_first(&arguments);
        self.parts.push(call_part(
            &id.clone().unwrap_or_default(),
            &name,
            call_arguments(arguments),
        ));
        // The UI messages of the Vercel AI SDK have the result next to the call.
        if fields.text("state").as_deref() == Some("result") {
            self.add_result(&fields);
        }
    }

    /// Adds a call of a UI message of the Vercel AI SDK, with its result.
    fn add_ui_call(&mut self, kind: &str, fields: &RawFields<'_>) {
        let inner = fields.object("toolInvocation");
        let fields = inner.as_ref().unwrap_or(fields);
        let id = fields.id_text("toolCallId").unwrap_or_default();
        let name = fields.text("toolName");
        let name = name.unwrap_or_else(|| kind.trim_start_matches("tool-").to_owned().into());
        let arguments = fields.get_first(&["input", "args", "rawInput"]);
        self.parts
            .push(call_part(&id, &name, call_arguments(arguments)));
        match fields.text("state").as_deref() {
            Some("output-error") => {
                let text = fields.text("errorText").unwrap_or_default();
                self.push_result(&id, text.0.into_owned(), Some(true));
            }
            Some("output-available" | "result") => {
                let output = fields.get_first(&["output", "result"]);
                let content = output.map(result_text).unwrap_or_default();
                self.push_result(&id, content, Some(false));
            }
            _ => {}
        }
    }

    fn add_result(&mut self, fields: &RawFields<'_>) {
        let ids = [
            "toolCallId",
            "tool_use_id",
            "toolUseId",
            "tool_call_id",
            "call_id",
            "id",
        ];
        let id = ids.iter().find_map(|key| fields.id_text(key));
        let outputs = [
            "output",
            "result",
            "response",
            "content",
            "tool_result",
            "error",
        ];
        let output = fields.get_first(&outputs);
        let mut is_error = stated_error(fields);
        if fields.text("type").as_deref() == Some("tool-error") {
            is_error = Some(true);
        }
        let mut content = output.map(result_text).unwrap_or_default();
        // The Vercel AI SDK wraps an output in `{type, value}`.
        if let Some(wrapped) = output.and_then(RawFields::from_raw)
            && let (Some(kind), Some(value)) = (wrapped.text("type"), wrapped.get("value"))
        {
            is_error = is_error.or(match &*kind {
                "error-text" | "error-json" => Some(true),
                "text" | "json" | "content" => Some(false),
                _ => None,
            });
            content = result_text(value);
        }
        let id = id.map_or_else(|| self.answered_call.clone(), |id| id.0.into_owned());
        self.push_result(&id, content, is_error);
    }

    fn push_result(&mut self, id: &str, content: String, is_error: Option<bool>) {
        self.flush();
        self.out.push_result(id, content, is_error);
        self.wrote = true;
    }

    /// Converts the parts so far to a tool result.
    fn flush_result(&mut self, id: &str, is_error: Option<bool>) {
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        for part in std::mem::take(&mut self.parts) {
            match part {
                TranscriptPart::Text(text) => texts.push(text.0.into_owned()),
                // The tool returned JSON.
                TranscriptPart::Other(json) => texts.push(json.get().to_owned()),
                part => others.push(part),
            }
        }
        self.out.push_result(id, texts.join("\n"), is_error);
        if let Some(last) = self.out.messages.last_mut() {
            last.parts.extend(others);
        }
        self.wrote = true;
    }

    fn flush(&mut self) {
        if !self.parts.is_empty() {
            let parts = std::mem::take(&mut self.parts);
            self.out.push(self.role.clone(), parts);
            self.wrote = true;
        }
    }

    /// Adds the message. A message without content remains visible, because it has a role.
    pub(super) fn finish(mut self) {
        self.flush();
        if !self.wrote {
            self.out.push(self.role.clone(), Vec::new());
        }
    }
}

/// Returns the text of a tool result: a text, the texts of a list of text parts, or JSON.
pub(super) fn result_text(raw: &RawValue) -> String {
    let Some(items) = list_items(raw) else {
        return owned_text(raw);
    };
    let text_of = |item: &&RawValue| -> Option<String> {
        if let Some(text) = json_string(item) {
            return Some(text.0.into_owned());
        }
        let fields = RawFields::from_raw(item)?;
        match fields.text("text") {
            Some(text) => Some(text.0.into_owned()),
            // Bedrock wraps JSON.
            None => Some(compact_json(fields.get("json")?.get()).into_owned()),
        }
    };
    let texts: Option<Vec<String>> = items.iter().map(text_of).collect();
    match texts.filter(|texts| !texts.is_empty()) {
        Some(texts) => texts.join("\n"),
        None => text_or_json(raw).0.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    /// Returns the messages of a model call in a trace of DeepEval.
    fn lines_of(input: &serde_json::Value, output: &serde_json::Value) -> Vec<String> {
        let span = json!({"uuid": "s", "name": "m", "type": "llm", "input": input, "output": output,
            "startTime": "2026-01-29T14:38:33.984Z", "endTime": "2026-01-29T14:38:35.984Z"});
        let trace = json!({"uuid": "t", "baseSpans": [], "agentSpans": [], "toolSpans": [], "llmSpans": [span]});
        let (all, tally) = read(format!("{trace}\n").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        message_lines(all[0].as_ref().expect("a transcript"))
    }

    #[test]
    fn calls_in_a_text_are_calls() {
        let row = |calls: &str| json!({"conversations": [{"role": "user", "content": "Add."}, {"role": "assistant", "content": "", "tool_calls": calls}]});
        let calls = r#"[{"name": "add", "arguments": {"a": 1}}]"#;
        let file = format!("{}\n{}\n{}\n", row(calls), row(""), row("add(1)"));
        let (all, _) = read(file.as_bytes());
        let last = |at: usize| message_lines(all[at].as_ref().expect("a transcript")).pop();
        assert_eq!(last(0).as_deref(), Some(r#"assistant add({"a":1})"#));
        assert_eq!(last(1).as_deref(), Some("assistant "));
        // A text in another language is kept, and counts as unread.
        let kept = &all[2].as_ref().expect("a transcript")["messages"][1]["content"];
        assert!(kept.to_string().contains("add(1)"), "{kept}");
    }

    #[test]
    fn numbers_in_a_list_of_messages_are_not_messages() {
        let list = json!([[
            {"role": "user", "content": [{"text": "Hi"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "get", "input": {}}}]},
            7, true, null,
        ]]);
        let (all, tally) = read(list.to_string().as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Hi", "assistant get({})"]);
        assert_eq!(tally.unknown["a message that is not an object"], 2);
    }

    #[test]
    fn call_and_result_of_deepeval_are_read() {
        let input = json!([
            {"type": "message", "role": "user", "content": "Weather?"},
            {"call_id": "c1", "name": "get", "arguments": "{\"city\":\"London\"}"},
            {"role": "tool", "call_id": "c1", "output": "Rainy"},
            {"id": "c2", "call_id": "c2", "name": "get", "type": "function", "arguments": {"city": "Rome"}},
            {"call_id": "c2", "type": "tool", "output": "Sunny"},
        ]);
        assert_eq!(
            lines_of(&input, &json!("Rain and sun.")),
            [
                "user Weather?",
                "assistant get({\"city\":\"London\"})",
                "tool Rainy",
                "assistant get({\"city\":\"Rome\"})",
                "tool Sunny",
                "assistant Rain and sun.",
            ]
        );
    }

    #[test]
    fn messages_of_langchain_in_a_trace_of_deepeval_are_read() {
        let question = json!({"role": "human", "content": "Weather?"});
        let call = json!({"id": "c1", "name": "get", "args": {"city": "Rome"}});
        let output = json!({"role": "AI", "content": "", "toolCalls": [call]});
        let lines = ["user Weather?", "assistant get({\"city\":\"Rome\"})"];
        assert_eq!(lines_of(&json!([question]), &output), lines);
        let calls = r#"[{"name":"get","args":{"city":"Rome"},"type":"tool_call","id":"c1"}]"#;
        let result = r#"{"lc":1,"type":"constructor","id":["langchain_core","messages","ToolMessage"],"kwargs":{"status":"success","content":"Foggy","tool_call_id":"c1"}}"#;
        let input = json!([
            question,
            {"role": "ai", "content": calls},
            {"role": "tool", "content": result},
            {"role": "ai", "content": "[{\"name\":\"get\"}]"},
        ]);
        let output = json!({"role": "AI", "content": "Fog.", "toolCalls": []});
        assert_eq!(
            lines_of(&input, &output),
            [
                lines[0],
                lines[1],
                "tool Foggy",
                "assistant [{\"name\":\"get\"}]",
                "assistant Fog.",
            ]
        );
    }

    #[test]
    fn plan_and_documents_of_cohere_are_read() {
        let call =
            json!({"id": "c1", "type": "function", "function": {"name": "get", "arguments": "{}"}});
        let document = json!({"type": "document", "document": {"data": {"output": "60"}}});
        let input = json!([
            {"role": "assistant", "tool_plan": "I will look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": [document]},
        ]);
        assert_eq!(
            lines_of(&input, &json!("Sixty.")),
            [
                "assistant <reasoning> | get({})",
                "tool {\"output\":\"60\"}",
                "assistant Sixty.",
            ]
        );
    }

    #[test]
    fn call_as_the_output_of_a_model_is_a_call() {
        let input = json!([{"role": "user", "content": "Weather?"}]);
        let call = r#"{"call_id":"c1","name":"get","arguments":"{}"}"#;
        let calls = json!([{"name": "get", "type": "FUNCTION", "inputParameters": {}}]);
        for output in [json!(call), calls] {
            assert_eq!(
                lines_of(&input, &output),
                ["user Weather?", "assistant get({})"],
                "{output}"
            );
        }
    }

    #[test]
    fn calls_that_koog_writes_as_content_are_calls() {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "get", "arguments": "{\"city\": \"Rome\"}"}});
        let as_text = json!([call]).to_string();
        for content in [json!([call]), json!(as_text)] {
            let input = json!([
                {"role": "user", "content": "Weather?"},
                {"role": "tool", "content": content},
                {"role": "tool", "content": "Sunny"},
            ]);
            assert_eq!(
                lines_of(&input, &json!("Sun.")),
                [
                    "user Weather?",
                    "assistant get({\"city\": \"Rome\"})",
                    "tool Sunny",
                    "assistant Sun.",
                ]
            );
        }
    }

    #[test]
    fn role_with_the_name_of_a_called_tool_is_a_result() {
        let call =
            json!({"id": "c1", "type": "function", "function": {"name": "get", "arguments": "{}"}});
        let input = json!([
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "get", "content": "Sunny"},
        ]);
        assert_eq!(
            lines_of(&input, &json!("Sun.")),
            [
                "user Weather?",
                "assistant get({})",
                "tool Sunny",
                "assistant Sun."
            ]
        );
    }
}
