//! Cursor's chats: composer data (`composerData:ID` of its database, as JSON), older chat tabs, and the transcripts of
//! its agents (`agent-transcripts/ID.jsonl`).
//!
//! Responsible for these JSON layouts. `databases.rs` reads them from the database itself.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::{add_messages, result_text};
use super::record_readers::{NOT_JSON, line_text, open_records, open_sessions};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, reasoning_part, text_part,
};
use crate::model::MessageRole;

/// Returns true if the first record is a composer chat or has chat tabs.
pub(super) fn is_chat(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_bubble = |value: &Value| {
        !value["bubbleId"].is_null() || (!value["text"].is_null() && !value["type"].is_null())
    };
    let has_bubbles = |value: &Value, key: &str| {
        value[key]
            .as_array()
            .and_then(|all| all.first())
            .is_some_and(is_bubble)
    };
    let in_tabs = record["tabs"]
        .as_array()
        .and_then(|all| all.first())
        .is_some_and(|tab| has_bubbles(tab, "bubbles"));
    let composer = record["composerId"].is_string()
        && (has_bubbles(record, "conversation")
            || has_bubbles(record, "bubbles")
            || has_bubbles(record, "messages")
            || record["conversationMap"].is_object());
    composer || in_tabs
}

/// Returns true if the lines are a transcript of an agent.
pub(super) fn is_agent_transcript(preview: &FilePreview<'_>) -> bool {
    let has_keys = preview.first_matches(|s| {
        s.has("role") && s.has("message") && !s.has("sessionId") && !s.has("type")
    });
    let content = || &preview.first_outline()["message"]["content"];
    has_keys && (content().is_array() || content().is_string())
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_chat)
}

pub(super) fn open_agent_transcript(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_sessions(preview, |_| false, parse_agent_transcript)
}

pub(super) fn parse_chat(
    record: &str,
    _: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let Some(tabs) = fields.list("tabs") else {
        parse_composer(&fields, out);
        return Ok(());
    };
    for raw in tabs {
        match RawFields::from_raw(raw) {
            Some(tab) => parse_composer(&tab, out),
            None => out.count_unknown("a tab that is not an object"),
        }
    }
    Ok(())
}

fn parse_composer(fields: &RawFields<'_>, out: &mut TranscriptSink) {
    let id = fields
        .id_text("composerId")
        .or_else(|| fields.id_text("tabId"));
    let mut built = TranscriptBuilder::new("cursor", id);
    built.meta.set_raw("timestamp", fields.get("createdAt"));
    built
        .meta
        .set_raw("title", fields.get_first(&["name", "chatTitle"]));
    let bubbles = ["conversation", "bubbles", "messages"];
    let bubbles = bubbles
        .iter()
        .find_map(|key| fields.list(key).filter(|all| !all.is_empty()));
    let (bubbles, missing) = bubbles.map_or_else(|| bubbles_of_map(fields), |all| (all, 0));
    out.count_elements(bubbles.len() + missing);
    built.count_unknown("a bubble that the file does not contain", missing);
    for raw in bubbles {
        match RawFields::from_raw(raw) {
            Some(bubble) => add_bubble(&bubble, &mut built),
            None => built
                .unknown
                .push("a bubble that is not an object".to_owned()),
        }
    }
    built.finish(out);
}

/// Returns the bubbles of newer composers, which have the order and the bubbles apart, and the number of those that are
/// only in the order.
fn bubbles_of_map<'a>(fields: &RawFields<'a>) -> (Vec<&'a RawValue>, usize) {
    let map = fields.object("conversationMap").unwrap_or_default();
    let map: std::collections::HashMap<&str, _> = map.iter().collect();
    let headers = fields
        .list("fullConversationHeadersOnly")
        .unwrap_or_default();
    let ids = headers
        .iter()
        .filter_map(|raw| RawFields::from_raw(raw)?.id_text("bubbleId"));
    let bubbles: Vec<Option<&RawValue>> = ids.map(|id| map.get(&*id).copied()).collect();
    let missing = bubbles.iter().filter(|bubble| bubble.is_none()).count();
    (bubbles.into_iter().flatten().collect(), missing)
}

fn add_bubble(bubble: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let kind = bubble
        .get("type")
        .map(|raw| raw.get().trim_matches('"').to_owned());
    let role = match kind.as_deref() {
        Some("1" | "user") => MessageRole::User,
        Some("2" | "ai" | "assistant") => MessageRole::Assistant,
        other => {
            built.unknown.push(format!(
                "a bubble of the type `{}`",
                other.unwrap_or("none")
            ));
            return;
        }
    };
    let mut parts = Vec::new();
    let thinking = bubble
        .object("thinking")
        .and_then(|thinking| thinking.text("text"));
    if let Some(text) = thinking.filter(|text| !text.is_empty()) {
        parts.push(reasoning_part(&text));
    }
    let texts = ["text", "rawText"];
    let text = texts.iter().find_map(|key| bubble.filled_text(key));
    if let Some(text) = text {
        parts.push(text_part(&text));
    }
    let tool = bubble
        .object("toolFormerData")
        .filter(|tool| tool.has("name") || tool.has("tool"));
    if let Some(tool) = &tool {
        let id = tool.id_text("toolCallId").unwrap_or_default();
        let name = tool
            .text_or_json("name")
            .or_else(|| tool.text_or_json("tool"));
        let arguments = call_arguments(tool.get_first(&["rawArgs", "params"]));
        parts.push(call_part(&id, &name.unwrap_or_default(), arguments));
    }
    // A bubble without text and call shows only the state of the program.
    if parts.is_empty() {
        return;
    }
    built.push(role.clone(), parts);
    if let Some(last) = built.messages.last_mut() {
        last.meta.set_raw("timestamp", bubble.get("createdAt"));
        let model = bubble.object("modelInfo");
        let model = model.as_ref().and_then(|model| model.get("modelName"));
        last.meta
            .set_raw("model", model.or_else(|| bubble.get("modelType")));
    }
    if let Some(tool) = tool
        && let Some(result) = tool.get_first(&["result", "error"])
    {
        let is_error = match tool.text("status").as_deref() {
            // A command that ran is completed, whatever its exit code.
            _ if has_failed_command(result) => Some(true),
            Some("completed") => Some(false),
            Some("error") => Some(true),
            _ => None,
        };
        let id = tool.id_text("toolCallId").unwrap_or_default();
        built.push_result(&id, result_text(result), is_error);
    }
}

/// Returns true if a result states that its command failed, or that the user rejected it. Cursor writes a result as JSON in
/// a text.
fn has_failed_command(result: &RawValue) -> bool {
    let text = json_string(result);
    let fields = match &text {
        Some(text) => RawFields::parse(text).ok(),
        None => RawFields::from_raw(result),
    };
    fields.is_some_and(|fields| {
        let keys = ["exitCodeV2", "exitCode"];
        let code = keys.iter().find_map(|key| fields.number(key));
        code.is_some_and(|code| code != 0.0) || fields.flag("rejected") == Some(true)
    })
}

fn parse_agent_transcript(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    // The name of the file is the id of the session.
    let mut built = TranscriptBuilder::new("cursor", Some(cx.source.stem().to_owned().into()));
    // How the last turn ended, unless a message follows.
    let mut end = None;
    for line in lines {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        let Ok(raw) = serde_json::from_str::<&RawValue>(text) else {
            built.unknown.push(NOT_JSON.to_owned());
            continue;
        };
        let fields = RawFields::from_raw(raw);
        let event = fields.filter(|line| !line.has("role") && !line.has("message"));
        let Some(event) = event else {
            end = None;
            add_messages(raw, &MessageRole::User, &mut built);
            continue;
        };
        match event.text("type").as_deref() {
            Some("turn_ended" | "error") => end = Some(event),
            kind => {
                let kind = format!("a line of the type `{}`", kind.unwrap_or("none"));
                built.unknown.push(kind);
            }
        }
    }
    if let Some(end) = end {
        let status = end.get("status");
        let status = status.filter(|status| status.get() != "\"success\"");
        built.meta.set_raw("stop_reason", status);
        built.meta.set_raw("error", end.get("error"));
    }
    built.finish(out);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    #[test]
    fn command_that_failed_or_was_rejected_is_an_error() {
        let error_of = |result: Value| {
            let tool = json!({"toolCallId": "t", "name": "run_terminal_cmd", "rawArgs": "{}", "status": "completed", "result": result.to_string()});
            let bubble = json!({"bubbleId": "b", "type": 2, "text": "", "toolFormerData": tool});
            let chat = json!({"composerId": "c", "conversation": [bubble]});
            let (all, _) = read(format!("{chat}\n").as_bytes());
            let chat = all[0].as_ref().expect("a chat");
            chat["messages"][1]["metadata"]["is_error"].clone()
        };
        assert_eq!(error_of(json!({"output": "a", "exitCodeV2": 0})), false);
        assert_eq!(error_of(json!({"output": "", "exitCodeV2": 1})), true);
        assert_eq!(error_of(json!({"output": "", "exitCode": 2})), true);
        assert_eq!(error_of(json!({"output": "", "rejected": true})), true);
        assert_eq!(error_of(json!("text")), false);
    }

    #[test]
    fn agent_transcript_may_have_plain_text_as_content() {
        let said = |role: &str, text: &str| {
            json!({"role": role, "message": {"role": role, "content": text}}).to_string()
        };
        let lines = [said("user", "Hi"), said("assistant", "Hello")];
        let (all, tally) = read(lines.join("\n").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(
            message_lines(all[0].as_ref().expect("a session")),
            ["user Hi", "assistant Hello"]
        );
    }

    #[test]
    fn end_of_a_turn_adds_no_message() {
        let said = |role: &str, text: &str| {
            let content = json!([{"type": "text", "text": text}]);
            json!({"role": role, "message": {"content": content}}).to_string()
        };
        let lines = [
            said("user", "Hi"),
            said("assistant", "Hello"),
            r#"{"type":"turn_ended","status":"aborted","error":"User aborted"}"#.to_owned(),
            said("user", "Go on"),
            said("assistant", "Yes"),
            r#"{"type":"turn_ended","status":"success"}"#.to_owned(),
            r#"{"type":"novel"}"#.to_owned(),
        ];
        let (all, tally) = read(lines.join("\n").as_bytes());
        assert_eq!(tally.unknown_count(), 1, "{tally:?}");
        let session = all[0].as_ref().expect("a session");
        assert_eq!(message_lines(session).len(), 4);
        assert!(session["metadata"]["error"].is_null(), "{session}");
        let (all, _) = read(lines[..3].join("\n").as_bytes());
        let metadata = &all[0].as_ref().expect("a session")["metadata"];
        assert_eq!(metadata["error"], "User aborted");
        assert_eq!(metadata["stop_reason"], "aborted");
    }

    #[test]
    fn bubble_that_only_the_order_names_is_counted() {
        let chat = json!({
            "composerId": "c",
            "fullConversationHeadersOnly": [{"bubbleId": "b1"}, {"bubbleId": "b2"}],
            "conversationMap": {"b1": {"bubbleId": "b1", "type": 1, "text": "Hi"}},
        });
        let (all, tally) = read(format!("{chat}\n").as_bytes());
        assert_eq!(message_lines(all[0].as_ref().expect("a chat")), ["user Hi"]);
        assert_eq!((tally.records, tally.unknown_count()), (2, 1), "{tally:?}");
    }
}
