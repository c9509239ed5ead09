//! The classification of spans by the names of each convention: semantic conventions, `OpenInference`, `OpenLLMetry`,
//! Vercel AI SDK.
//!
//! Responsible for kinds and ids of spans. Does not read their content.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::wire::{OtlpAttrs, OtlpEntry};

/// The kind of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GenAiSpanKind {
    /// A model call.
    Chat,
    /// A tool's execution.
    Tool,
    /// The work of an agent, which includes all spans below.
    Agent,
    /// Any other span; the text is the kind under which dicta counts it.
    Other(String),
}

const CONVERSATION_ID_KEYS: [&str; 7] = [
    "gen_ai.conversation.id",
    "session.id",
    "ai.telemetry.metadata.sessionId",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "langsmith.trace.session_id",
    "gen_ai.thread.id",
];

/// Returns the conversation id in the attributes of a span.
pub(super) fn conversation_id<'a>(attrs: &OtlpAttrs<'a>) -> Option<Cow<'a, str>> {
    attrs.first_text(&CONVERSATION_ID_KEYS)
}

/// Returns the kind of a span.
pub(super) fn classify_entry(entry: &OtlpEntry<'_>) -> GenAiSpanKind {
    let attrs = &entry.attributes;
    let other = |name: &str| GenAiSpanKind::Other(name.to_owned());
    // The Vercel AI SDK comes first, because its spans also have attributes of other conventions.
    if let Some(id) = attrs.text("ai.operationId") {
        return match &*id {
            "ai.toolCall" => GenAiSpanKind::Tool,
            "ai.generateText" | "ai.streamText" | "ai.generateObject" | "ai.streamObject" => {
                GenAiSpanKind::Agent
            }
            id if id.ends_with(".doGenerate") || id.ends_with(".doStream") => GenAiSpanKind::Chat,
            id => other(id),
        };
    }
    // The semantic conventions.
    if let Some(operation) = attrs.text("gen_ai.operation.name") {
        return match &*operation {
            "chat" | "generate_content" | "text_completion" => GenAiSpanKind::Chat,
            "execute_tool" => GenAiSpanKind::Tool,
            "invoke_agent" => GenAiSpanKind::Agent,
            operation => other(operation),
        };
    }
    // OpenInference.
    if let Some(kind) = attrs.text("openinference.span.kind") {
        return match &*kind {
            "LLM" => GenAiSpanKind::Chat,
            "TOOL" => GenAiSpanKind::Tool,
            "AGENT" => GenAiSpanKind::Agent,
            kind => other(kind),
        };
    }
    // OpenLLMetry, which marks model calls with `llm.request.type` instead.
    match attrs.text("traceloop.span.kind").as_deref() {
        Some("tool") => return GenAiSpanKind::Tool,
        Some("agent") => return GenAiSpanKind::Agent,
        Some(kind) => return other(kind),
        None => {}
    }
    if let Some(request) = attrs.text("llm.request.type") {
        return match &*request {
            "chat" | "completion" => GenAiSpanKind::Chat,
            request => other(request),
        };
    }
    // Spans of other instrumentations name no kind, but only model calls have these attributes.
    let chat_keys = [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.request.model",
        "gen_ai.prompt.0.content",
        "gen_ai.completion.0.content",
        "llm.input_messages.0.message.role",
    ];
    if chat_keys.iter().any(|key| attrs.has(key)) {
        return GenAiSpanKind::Chat;
    }
    // The name of any other span is the kind under which dicta counts it.
    let name = if entry.name.is_empty() {
        "a span without a name"
    } else {
        &*entry.name
    };
    other(name)
}

/// Returns the name of an event in a log record; empty for other log records.
pub(super) fn event_name<'a>(entry: &'a OtlpEntry<'_>) -> Cow<'a, str> {
    if entry.event_name.is_empty() {
        entry.attributes.text("event.name").unwrap_or_default()
    } else {
        Cow::Borrowed(&*entry.event_name)
    }
}

/// Returns the hash of a trace or conversation id. Millions of open spans fit in memory only without the texts.
pub(super) fn hash_id(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}
