//! Chats of the Kiro IDE (`kiro.kiroagent/WORKSPACE/*.chat`), one for each action of its agent.
//!
//! | in the file | becomes |
//! |---|---|
//! | `human` | a message of the user; the instructions and rules that Kiro adds, a system message |
//! | `bot` | an answer; the one that Kiro puts after its instructions, nothing |
//! | `tool` | a result; the file has no calls and no ids |
//! | the state of the editor (`<EnvironmentContext>`) | nothing |
//!
//! Does not read sessions under `workspace-sessions`, whose layout is that of Continue.

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::{MessageInProgress, result_text};
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, role_of};
use crate::model::MessageRole;

/// The beginnings of texts that Kiro writes in the name of the user.
const INSTRUCTIONS: [&str; 8] = [
    "# System Prompt",
    "# Identity",
    "<identity>",
    "## Included Rules",
    "<user-rule",
    "<implicit-rules>",
    "<workflow-definition>",
    "You are operating in a workspace",
];

/// The answer that Kiro puts after its instructions.
const PREAMBLE: &str = "I will follow these instructions.";

/// Returns true if the first record is a chat with the ids of Kiro.
pub(super) fn is_chat(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let role = record["chat"][0]["role"].as_str();
    matches!(role, Some("human" | "bot" | "tool"))
        && (record["executionId"].is_string() || record["actionId"].is_string())
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_chat)
}

fn parse_chat(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let chat = outer
        .list("chat")
        .ok_or_else(|| "it is not a chat: it has no `chat`".to_owned())?;
    // Several chats may have one `executionId`, so the id is that of the file.
    let mut built = TranscriptBuilder::new("kiro-ide", None);
    let facts = outer.object("metadata").unwrap_or_default();
    built.meta.set_raw("timestamp", facts.get("startTime"));
    built.meta.set_raw("model", facts.get("modelId"));
    if let (Some(from), Some(to)) = (facts.integer("startTime"), facts.integer("endTime")) {
        built.meta.set("latency_ms", to.saturating_sub(from));
    }
    built.meta.set_raw("workflow", facts.get("workflow"));
    built.meta.set_raw("execution_id", outer.get("executionId"));
    for raw in chat {
        match RawFields::from_raw(raw) {
            Some(message) => add_message(&message, &mut built),
            None => built.count_unknown_message(),
        }
    }
    built.finish(out);
    Ok(())
}

fn add_message(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let role = role_of(&message.text("role").unwrap_or_default());
    let Some(content) = message.get("content") else {
        return built.push(role, Vec::new());
    };
    if role == MessageRole::Tool {
        return built.push_result("", result_text(content), None);
    }
    let Some(text) = message.text("content") else {
        let mut added = MessageInProgress::new(role, built);
        added.add_content(content);
        return added.finish();
    };
    let last = built.messages.last().map(|message| &message.role);
    if text.trim() == PREAMBLE && last == Some(&MessageRole::System) {
        return;
    }
    if role != MessageRole::User {
        return built.push_text(role, &text);
    }
    let prompt = without_context(&text);
    let prompt = prompt.trim();
    let is_instruction = INSTRUCTIONS.iter().any(|begin| prompt.starts_with(begin));
    if is_instruction {
        built.push_text(MessageRole::System, prompt);
    } else if !prompt.is_empty() {
        built.push_text(role, prompt);
    }
}

/// Returns a prompt without the state of the editor.
fn without_context(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<EnvironmentContext>") {
        kept.push_str(before);
        rest = after
            .split_once("</EnvironmentContext>")
            .map_or("", |(_, rest)| rest);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    #[test]
    fn instructions_prompts_answers_and_results_are_read() {
        let chat = json!({"executionId": "e-1", "actionId": "act",
        "metadata": {"modelId": "claude-sonnet-4", "workflow": "act", "workflowId": "w", "startTime": 1_770_638_400_000_u64, "endTime": 1_770_638_400_500_u64},
        "context": [],
        "chat": [
            {"role": "human", "content": "# System Prompt\n\n# Identity\nYou are Kiro."},
            {"role": "bot", "content": "I will follow these instructions."},
            {"role": "human", "content": "Rename it.\n\n<EnvironmentContext>\nopen: a.ts\n</EnvironmentContext>"},
            {"role": "human", "content": "<EnvironmentContext>open: b.ts"},
            {"role": "bot", "content": "I rename it."},
            {"role": "tool", "content": "renamed"},
            {"role": "human", "content": [{"type": "text", "text": "Thanks"}]},
            {"role": "bot", "content": "I will follow these instructions."},
            7,
        ]});
        let (all, tally) = read(format!("{chat:#}").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "system # System Prompt\n\n# Identity\nYou are Kiro.",
                "user Rename it.",
                "assistant I rename it.",
                "tool renamed",
                "user Thanks",
                "assistant I will follow these instructions.",
            ]
        );
        let meta = &one["metadata"];
        assert_eq!(meta["model"], "claude-sonnet-4");
        assert_eq!(meta["latency_ms"], 500);
        assert_eq!(meta["execution_id"], "e-1");
        let counts: Vec<_> = tally.unknown.into_iter().collect();
        assert_eq!(counts, [("a message that is not an object".to_owned(), 1)]);
    }
}
