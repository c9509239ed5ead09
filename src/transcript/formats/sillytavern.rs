//! Chats of SillyTavern, and of other programs that write its format: one JSON object per line.
//!
//! | in the file | becomes |
//! |---|---|
//! | the header with `chat_metadata` or the names | the beginning of a transcript, with metadata |
//! | a message of a character | a message of the assistant; the metadata `name` has the speaker |
//! | a message of the narrator, a comment, help | a system message |
//! | `tool_invocations` | calls with their results |
//! | the other answers of a message (`swipes`) | counted |
//! | attached pictures and files | counted |

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::{open_sessions, parse_lines};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, owned_text, reasoning_part, text_part,
};
use crate::model::{MessageRole, TranscriptPart};

/// The keys under which a message has what its user attached.
const ATTACHMENTS: [&str; 7] = [
    "audio", "file", "files", "image", "images", "media", "video",
];

/// The kinds of messages of the program (`extra.type`). Extensions give other kinds to answers.
const NOTICES: [&str; 12] = [
    "assistant_note",
    "comment",
    "empty",
    "formatting",
    "generic",
    "help",
    "hotkeys",
    "macros",
    "narrator",
    "slash_commands",
    "welcome",
    "welcome_prompt",
];

/// Returns true if one of the first lines is a message with a speaker, or the first one is a header.
pub(super) fn is_chat(preview: &FilePreview<'_>) -> bool {
    // The variables of extensions may make a header longer than the preview.
    let begins_with_header = preview.first_matches(|s| {
        let has_names = s.has("user_name") && s.has("character_name");
        !s.has("mes")
            && ((s.has("chat_metadata") && (has_names || s.is_cut()))
                || (has_names && s.has("create_date")))
    });
    let mut records = preview.records.iter();
    begins_with_header
        || records.any(|seen| {
            seen.sniff.has("mes") && seen.sniff.has("is_user") && {
                let line = seen.sniff.outline(seen.bytes);
                let has_text = line["mes"].is_string() || line["mes"]["message"].is_string();
                has_text && line["is_user"].is_boolean()
            }
        })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_sessions(preview, is_header, parse_chat)
}

fn is_header(line: &[u8]) -> bool {
    let fields = RawFields::from_bytes(line);
    fields.is_some_and(|fields| is_header_line(&fields))
}

fn is_header_line(line: &RawFields<'_>) -> bool {
    let keys = ["chat_metadata", "user_name", "character_name"];
    !line.has_key("mes") && keys.iter().any(|key| line.has_key(key))
}

fn parse_chat(lines: &[&[u8]], _cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut built = TranscriptBuilder::new("sillytavern", None);
    for (_, line) in parse_lines(lines, out) {
        if is_header_line(&line) {
            add_header(&line, &mut built);
        } else if line.has("mes") {
            add_message(&line, &mut built);
        } else {
            built.unknown.push("a line without a message".to_owned());
        }
    }
    built.finish(out);
}

fn add_header(line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    built.meta.set_raw("timestamp", line.get("create_date"));
    for (key, name) in [("character", "character_name"), ("user", "user_name")] {
        // Newer versions write this word, because the messages have the names.
        let name = line.text(name).filter(|name| &**name != "unused");
        built.meta.set(key, name.map(|name| name.0.into_owned()));
    }
    let metadata = line.object("chat_metadata").unwrap_or_default();
    for (key, text) in [("note", "note_prompt"), ("scenario", "scenario")] {
        let text = metadata.filled_text(text);
        built.meta.set(key, text.map(|text| text.0.into_owned()));
    }
}

fn add_message(line: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let extra = line.object("extra").unwrap_or_default();
    if let Some(calls) = extra.list("tool_invocations") {
        let calls = calls.into_iter().filter_map(RawFields::from_raw);
        return add_calls(&calls.collect::<Vec<_>>(), built);
    }
    let mut parts: Vec<TranscriptPart<'static>> = Vec::new();
    if let Some(thought) = extra.filled_text("reasoning") {
        parts.push(reasoning_part(&thought));
    }
    let text = read_text(line);
    if !text.is_empty() {
        parts.push(text_part(&text));
    }
    let role = read_role(line, &extra);
    let is_answer = role == MessageRole::Assistant;
    built.push(role, parts);
    if let Some(added) = built.messages.last_mut() {
        added.meta.set_raw("name", line.get("name"));
        added.meta.set_raw("timestamp", line.get("send_date"));
        // The program does not send such a message to the model.
        if line.flag("is_system") == Some(true) {
            added.meta.set("hidden", true);
        }
        if is_answer {
            added.meta.set_raw("model", extra.get("model"));
        }
    }
    if is_answer {
        let swipes = line.list("swipes").unwrap_or_default();
        let others = swipes.len().saturating_sub(1);
        built.count_unknown("an answer that was not chosen (`swipes`)", others);
    }
    for key in ATTACHMENTS {
        let is_attached = extra
            .get(key)
            .is_some_and(|value| !matches!(value.get(), "[]" | "\"\"" | "false"));
        if is_attached {
            built.unknown.push(format!("an attachment (`{key}`)"));
        }
    }
}

/// Returns the text of a message. Imports of other programs wrap it in an object.
fn read_text(line: &RawFields<'_>) -> String {
    let inner = line
        .object("mes")
        .and_then(|inner| inner.get("message").map(owned_text));
    inner.unwrap_or_else(|| line.get("mes").map(owned_text).unwrap_or_default())
}

fn read_role(line: &RawFields<'_>, extra: &RawFields<'_>) -> MessageRole<'static> {
    if line.flag("is_user") == Some(true) {
        return MessageRole::User;
    }
    let is_notice = extra
        .text("type")
        .is_some_and(|kind| NOTICES.contains(&&*kind));
    let is_program = line.text("name").as_deref() == Some("SillyTavern System");
    if is_notice || is_program {
        return MessageRole::System;
    }
    MessageRole::Assistant
}

/// Adds the calls of a message with their results. The text of the message repeats them.
fn add_calls(calls: &[RawFields<'_>], built: &mut TranscriptBuilder) {
    for call in calls {
        let id = call.id_text("id").unwrap_or_default();
        let name = call.text("name").unwrap_or_default();
        built.push_call(&id, &name, call_arguments(call.get("parameters")));
    }
    for call in calls {
        let id = call.id_text("id").unwrap_or_default();
        if let Some(result) = call.get("result") {
            built.push_result(&id, owned_text(result), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{lines_of_each, message_lines, read};

    #[test]
    fn chats_of_older_versions_and_of_groups_are_read() {
        let old = [
            json!({"user_name": "You", "character_name": "Aqua", "create_date": 1_674_559_896_839_u64}),
            json!({"name": "Aqua", "is_user": false, "is_name": true, "send_date": 1_674_563_371_558_u64, "mes": "*waves* Hi."}),
            json!({"name": "You", "is_user": true, "mes": "Hello."}),
        ];
        let group = [
            json!({"chat_metadata": {"note_prompt": "Speak in rhymes."}}),
            json!({"name": "Ada", "is_user": false, "is_system": false, "mes": "A."}),
            json!({"name": "Narrator", "is_user": false, "mes": "Rain.", "extra": {"type": "narrator"}}),
            json!({"name": "Bob", "is_user": false, "is_system": true, "mes": {"message": "B."}}),
        ];
        let lines: Vec<String> = old.iter().chain(&group).map(ToString::to_string).collect();
        let (all, tally) = read(lines.join("\n").as_bytes());
        assert_eq!(
            lines_of_each(&all),
            [
                vec!["assistant *waves* Hi.", "user Hello."],
                vec!["assistant A.", "system Rain.", "assistant B."],
            ]
        );
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        let (old, group) = (all[0].as_ref().expect("one"), all[1].as_ref().expect("one"));
        assert_eq!(old["metadata"]["character"], "Aqua");
        assert_eq!(group["metadata"]["note"], "Speak in rhymes.");
        assert_eq!(group["messages"][2]["metadata"]["name"], "Bob");
        assert_eq!(group["messages"][2]["metadata"]["hidden"], true);
    }

    #[test]
    fn header_may_be_longer_than_the_preview() {
        let variables = "x".repeat(2 * crate::transcript::source::BLOCK_SIZE);
        for header in [
            format!(r#"{{"chat_metadata":{{"variables":"{variables}"}},"user_name":"unused"}}"#),
            format!(
                r#"{{"user_name":"You","character_name":"Ada","create_date":"2026","chat_metadata":{{"variables":"{variables}"}}}}"#
            ),
        ] {
            let message = json!({"name": "Ada", "is_user": false, "mes": "Hi."});
            let (all, _) = read(format!("{header}\n{message}\n").as_bytes());
            assert_eq!(lines_of_each(&all), [["assistant Hi."]]);
        }
    }

    #[test]
    fn calls_reasoning_and_other_answers_are_read_or_counted() {
        let lines = [
            json!({"user_name": "unused", "character_name": "unused", "chat_metadata": {}}),
            json!({"name": "You", "is_user": true, "mes": "Weather?", "extra": {"file": {"name": "a.txt"}, "image": ""}}),
            json!({"name": "SillyTavern System", "is_user": false, "is_system": true, "mes": "Tool calls: get", "extra": {"tool_invocations": [
                {"id": "c1", "name": "get", "parameters": "{\"city\":\"Rome\"}", "result": "Sunny"}]}}),
            json!({"name": "Ada", "is_user": false, "mes": "Sun.", "swipes": ["Sun.", "Rain.", "Fog."], "swipe_id": 0,
                "extra": {"reasoning": "Hm.", "model": "m-1", "type": "regenerated"}}),
            json!({"note": 1}),
        ];
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let (all, tally) = read(text.join("\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Weather?",
                "assistant get({\"city\":\"Rome\"})",
                "tool Sunny",
                "assistant <reasoning> | Sun.",
            ]
        );
        assert_eq!(one["messages"][2]["tool_call_id"], "c1");
        assert_eq!(one["messages"][3]["metadata"]["model"], "m-1");
        let counts: Vec<_> = tally.unknown.into_iter().collect();
        assert_eq!(
            counts,
            [
                ("a line without a message".to_owned(), 1),
                ("an answer that was not chosen (`swipes`)".to_owned(), 2),
                ("an attachment (`file`)".to_owned(), 1),
            ]
        );
    }
}
