//! Copilot's logs of prompts in VS Code (`.chatreplay.json`), as the debug view exports them.
//!
//! Responsible for one prompt, or for a list of them under `prompts`. A prompt is a transcript: the user's text, the
//! replies of the model and the calls of tools, in the order of the log. The context that VS Code adds to a request is not
//! read. Requests for a title or of a sub-agent are counted.

use serde_json::Value;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::exchange::parse_usage;
use super::foreign_message::result_text;
use super::record_readers::open_elements;
use super::transcript_builder::{TranscriptBuilder, call_arguments, reasoning_part};
use crate::model::MessageRole;

/// The kinds of entries in a log.
const KINDS: [&str; 4] = ["request", "toolCall", "element", "error"];

/// Returns true if the file is a log of prompts.
pub(super) fn is_replay(preview: &FilePreview<'_>) -> bool {
    let first = preview.first_outline();
    is_prompt(first) || is_prompt(&first["prompts"][0])
}

fn is_prompt(value: &Value) -> bool {
    let kind = value["logs"][0]["kind"].as_str();
    value["prompt"].is_string() && kind.is_some_and(|kind| KINDS.contains(&kind))
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let paths: &[&[&str]] = if preview.first_outline()["prompts"].is_array() {
        &[&["prompts"]]
    } else {
        &[]
    };
    open_elements(source, preview, paths, parse_prompt)
}

fn parse_prompt(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let logs = fields
        .list("logs")
        .ok_or_else(|| "its `logs` are not a list".to_owned())?;
    let mut built = TranscriptBuilder::new("copilot", fields.id_text("promptId"));
    if let Some(prompt) = fields.text("prompt") {
        built.push_text(MessageRole::User, &prompt);
    }
    let mut usage = SourceUsage::default();
    for raw in logs {
        let entry = RawFields::from_raw(raw).unwrap_or_default();
        match entry.text("kind").as_deref() {
            Some("request") => usage = usage.sum_with(add_request(&entry, &mut built)),
            Some("toolCall") => add_call(&entry, &mut built),
            // A part of the context, with its size.
            Some("element") => {}
            kind => {
                let kind = kind.unwrap_or_default();
                built.count_unknown(&format!("an entry of the kind `{kind}`"), 1);
            }
        }
    }
    built.meta.set("usage", usage.to_json());
    built.finish(out);
    Ok(())
}

/// Adds the reply of a request. Returns its tokens.
fn add_request(entry: &RawFields<'_>, built: &mut TranscriptBuilder) -> SourceUsage {
    let name = entry.text("name").unwrap_or_default();
    let content = entry.get("content");
    // The name of a request in the conversation begins with its place, as in `panel/editAgent`.
    let why = match name.split_once('/') {
        Some(("tool", _)) => Some("a request of a sub-agent"),
        None if content.is_none() => Some("a request outside of the conversation"),
        _ => None,
    };
    if let Some(why) = why {
        built.count_unknown(why, 1);
        return SourceUsage::default();
    }
    let facts = entry.object("metadata").unwrap_or_default();
    let usage = facts.object("usage").unwrap_or_default();
    let usage = parse_usage(&usage);
    let response = entry.object("response").unwrap_or_default();
    let reply = content.or_else(|| response.get("message")).map(result_text);
    if let Some(reply) = reply.filter(|text| !text.is_empty()) {
        built.push_text(MessageRole::Assistant, &reply);
        if let Some(meta) = built.last_meta(&MessageRole::Assistant) {
            meta.set_raw("timestamp", facts.get("endTime"));
            meta.set_raw("latency_ms", facts.get("duration"));
        }
    }
    if !built.meta.has("model") {
        built.meta.set_raw("model", facts.get("model"));
        built.meta.set_raw("timestamp", facts.get("startTime"));
    }
    if matches!(
        response.text("type").as_deref(),
        Some("failure" | "cancelled")
    ) {
        built
            .meta
            .set_raw("error", response.get_first(&["reason", "type"]));
    }
    usage
}

/// Adds a call of a tool with its result.
fn add_call(entry: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let thoughts = entry.object("thinking").unwrap_or_default();
    if let Some(thoughts) = thoughts.filled_text("text") {
        built.push(MessageRole::Assistant, vec![reasoning_part(&thoughts)]);
    }
    let id = entry.id_text("id").unwrap_or_default();
    let tool = entry.text("tool").unwrap_or_default();
    built.push_call(&id, &tool, call_arguments(entry.get("args")));
    let result = entry.get("response").map(result_text);
    built.push_result(&id, result.unwrap_or_default(), None);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, read};

    fn prompt(id: &str) -> Value {
        let request = |name: &str, text: &str| {
            json!({"id": "r", "kind": "request", "type": "ChatMLSuccess", "name": name,
                "metadata": {"model": "gpt-5", "startTime": "2025-11-01T00:00:00.000Z", "duration": 2000,
                    "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}},
                "requestMessages": {"messages": [{"role": 0, "content": [{"type": 1, "text": "Be brief."}]}]},
                "response": {"type": "success", "message": [text]}})
        };
        json!({"prompt": "Fix it.", "promptId": id, "hasSeen": false, "logCount": 5, "logs": [
            {"id": "e", "kind": "element", "name": "AgentPrompt", "tokens": 5, "maxTokens": 9},
            request("title", "Fixing"),
            request("panel/editAgent", "Reading."),
            {"id": "c1", "kind": "toolCall", "tool": "read_file", "args": "{\"path\":\"/a\"}",
                "response": ["one", "two"], "thinking": {"id": "t", "text": "Look."}},
            request("panel/editAgent", "Done."),
        ]})
    }

    #[test]
    fn prompt_is_a_transcript_with_its_calls() {
        let lines = [
            "user Fix it.",
            "assistant Reading.",
            "assistant <reasoning> | read_file({\"path\":\"/a\"})",
            "tool one\ntwo",
            "assistant Done.",
        ];
        let (all, tally) = read(format!("{:#}", prompt("p1")).as_bytes());
        assert_eq!(lines_of_each(&all), [lines]);
        assert_eq!(tally.unknown["a request outside of the conversation"], 1);
        let metadata = &all[0].as_ref().expect("a transcript")["metadata"];
        let usage = json!({"input": 200, "output": 10, "total": 210});
        assert_eq!(metadata["usage"], usage);
        assert_eq!(metadata["model"], "gpt-5");
        let whole = json!({"exportedAt": "2025-11-01T00:01:00.000Z", "totalPrompts": 2, "totalLogEntries": 10,
            "prompts": [prompt("p1"), prompt("p2")], "mcpServers": []});
        let (all, _) = read(format!("{whole:#}").as_bytes());
        assert_eq!(lines_of_each(&all), [lines, lines]);
    }
}
