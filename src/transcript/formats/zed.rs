//! Threads of Zed's agent, as the JSON that `threads.db` has compressed.
//!
//! | in the file | becomes |
//! |---|---|
//! | `{"User": …}` and `{"Agent": …}` | a message |
//! | `tool_results` of an answer | results after it, in the order of their calls |
//! | `{"Compaction": {"Summary": …}}` | a system message, with `compaction` |
//! | `"Resume"` | nothing |
//! | messages with a `role` and `segments`, of versions 0.1 and 0.2 | the same |

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::open_records;
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, media_part, owned_text, owned_unknown_part,
    reasoning_part, role_of, text_part,
};
use crate::model::{MessageRole, TranscriptPart};

/// Returns true if the first record has messages of a thread. The version is the last key, so the preview of a long
/// thread may lack it. An older thread begins with it.
pub(super) fn is_thread(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_part = |part: &Value| {
        let keys = ["Text", "Thinking", "ToolUse", "Mention", "Image"];
        keys.iter().any(|key| !part[*key].is_null())
    };
    let is_message = |message: &Value| {
        let content = [
            &message["User"]["content"][0],
            &message["Agent"]["content"][0],
        ];
        content.into_iter().any(is_part)
            || (record["version"].is_string()
                && message["role"].is_string()
                && message["segments"].is_array())
    };
    let messages = record["messages"].as_array();
    messages.is_some_and(|all| all.iter().any(is_message))
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_thread)
}

fn parse_thread(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let messages = outer
        .list("messages")
        .ok_or_else(|| "it is not a thread: it has no `messages`".to_owned())?;
    let mut built = TranscriptBuilder::new("zed", outer.id_text("id"));
    let title = outer.get_first(&["title", "summary"]);
    built.meta.set_raw("title", title);
    built.meta.set_raw("timestamp", outer.get("updated_at"));
    built.meta.set_raw("version", outer.get("version"));
    let model = outer.object("model").unwrap_or_default();
    built.meta.set_raw("model", model.get("model"));
    let usage = outer.object("cumulative_token_usage").unwrap_or_default();
    built.meta.set("usage", read_usage(&usage).to_json());
    // From the id of a prompt to the tokens of its answer.
    let counts = outer.object("request_token_usage").unwrap_or_default();
    let mut usage = None;
    for raw in messages {
        let Some(message) = RawFields::from_raw(raw) else {
            // "Resume" is written for a user who lets the agent go on.
            if json_string(raw).as_deref() != Some("Resume") {
                built.count_unknown_message();
            }
            continue;
        };
        if let Some(prompt) = message.object("User") {
            let id = prompt.text("id").unwrap_or_default();
            usage = counts.object(&id).map(|counts| read_usage(&counts));
            let parts = read_parts(&prompt, &["content"]);
            built.push(MessageRole::User, parts);
        } else if let Some(answer) = message.object("Agent") {
            let parts = read_parts(&answer, &["content"]);
            built.push(MessageRole::Assistant, parts);
            if let Some(usage) = usage.take()
                && let Some(meta) = built.last_meta(&MessageRole::Assistant)
            {
                meta.set("usage", usage.to_json());
            }
            add_results(&answer, &mut built);
        } else if let Some(summary) = message.object("Compaction") {
            match summary.text("Summary") {
                Some(text) => {
                    built.push_text(MessageRole::System, &text);
                    if let Some(meta) = built.last_meta(&MessageRole::System) {
                        meta.set("compaction", true);
                    }
                }
                None => built.unknown.push("a hidden summary".to_owned()),
            }
        } else if let Some(role) = message.text("role") {
            add_older(&role, &message, &mut built);
        } else {
            let kind = message.iter().next().map(|(key, _)| key);
            let kind = kind.unwrap_or_default();
            built
                .unknown
                .push(format!("a message of the kind `{kind}`"));
        }
    }
    built.finish(out);
    Ok(())
}

/// Adds a message of version 0.1 or 0.2. Version 0.1 has the results of an answer in the next message of the user.
fn add_older(role: &str, message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let parts = read_parts(message, &["segments", "tool_uses"]);
    let role = role_of(role);
    let has_results = message
        .list("tool_results")
        .is_some_and(|all| !all.is_empty());
    let is_answer = role == MessageRole::Assistant;
    if has_results && !is_answer {
        add_results(message, built);
    }
    if !parts.is_empty() || !has_results {
        built.push(role, parts);
    }
    if has_results && is_answer {
        add_results(message, built);
    }
}

/// Returns the parts that a message has under some keys.
fn read_parts(message: &RawFields<'_>, keys: &[&str]) -> Vec<TranscriptPart<'static>> {
    let lists = keys.iter().filter_map(|key| message.list(key));
    lists.flatten().filter_map(read_part).collect()
}

/// Returns a part; `None` for reasoning that the provider hides.
fn read_part(raw: &RawValue) -> Option<TranscriptPart<'static>> {
    let part = RawFields::from_raw(raw).unwrap_or_default();
    if let Some(text) = part.text("Text") {
        return Some(text_part(&text));
    }
    if let Some(thought) = part.object("Thinking") {
        return Some(reasoning_part(&thought.text("text").unwrap_or_default()));
    }
    if let Some(call) = part.object("ToolUse") {
        return Some(read_call(&call));
    }
    // The text of a file that the prompt names.
    let mention = part.object("Mention").unwrap_or_default();
    if let Some(text) = mention.filled_text("content") {
        return Some(text_part(&text));
    }
    if part.has("Image") {
        return Some(media_part("image", raw));
    }
    match part.text("type").as_deref() {
        Some("text") => Some(text_part(&part.text("text").unwrap_or_default())),
        Some("thinking") => Some(reasoning_part(&part.text("text").unwrap_or_default())),
        Some("RedactedThinking") => None,
        _ if part.has("RedactedThinking") => None,
        _ if part.has("name") && part.has("input") => Some(read_call(&part)),
        _ => Some(owned_unknown_part(raw)),
    }
}

fn read_call(call: &RawFields<'_>) -> TranscriptPart<'static> {
    let written = call.get_first(&["input", "raw_input"]);
    // Newer versions write `{"type": "json", "value": …}`.
    let wrapper = written.and_then(RawFields::from_raw).unwrap_or_default();
    let is_wrapped = matches!(wrapper.text("type").as_deref(), Some("json" | "text"))
        && wrapper.iter().count() == 2;
    let value = wrapper.get("value").filter(|_| is_wrapped);
    let id = call.id_text("id").unwrap_or_default();
    let name = call.text("name").unwrap_or_default();
    call_part(&id, &name, call_arguments(value.or(written)))
}

/// Adds results, which are a list, or an object with the ids of their calls as keys.
fn add_results(message: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let by_id = message.object("tool_results").unwrap_or_default();
    let mut results: Vec<(String, RawFields<'_>)> = Vec::new();
    let list = message.list("tool_results").unwrap_or_default();
    let pairs = by_id.iter().chain(list.into_iter().map(|raw| ("", raw)));
    for (key, raw) in pairs {
        let Some(result) = RawFields::from_raw(raw) else {
            built
                .unknown
                .push("a result that is not an object".to_owned());
            continue;
        };
        let id = result.id_text("tool_use_id");
        let id = id.map_or_else(|| key.to_owned(), |id| id.0.into_owned());
        results.push((id, result));
    }
    let calls: Vec<String> = built
        .messages
        .last()
        .map(|message| message.parts.iter().filter_map(call_id).collect())
        .unwrap_or_default();
    results.sort_by_key(|(id, _)| calls.iter().position(|call| call == id));
    for (id, result) in results {
        let content = result.get("content").map(text_of).unwrap_or_default();
        // A result without a text has its data in `output`.
        let output = result.get("output").filter(|_| content.is_empty());
        let text = output.map_or(content, owned_text);
        built.push_result(&id, text, result.flag("is_error"));
    }
}

fn call_id(part: &TranscriptPart<'_>) -> Option<String> {
    match part {
        TranscriptPart::ToolCall(call) => Some(call.id.to_string()),
        _ => None,
    }
}

/// Returns the text of a result: a text, a part, or a list of them.
fn text_of(raw: &RawValue) -> String {
    let items = list_items(raw).unwrap_or_else(|| vec![raw]);
    let texts = items.into_iter().map(|item| {
        let part = RawFields::from_raw(item).unwrap_or_default();
        let text = part.text("Text").or_else(|| part.text("text"));
        text.map_or_else(|| owned_text(item), |text| text.0.into_owned())
    });
    texts.collect::<Vec<String>>().join("\n")
}

fn read_usage(counts: &RawFields<'_>) -> SourceUsage {
    let cached = counts.integer("cache_read_input_tokens");
    let written = counts.integer("cache_creation_input_tokens");
    let new = counts.integer("input_tokens");
    let input = [new, cached, written].into_iter().flatten();
    SourceUsage {
        input: new.or(cached).map(|_| input.fold(0, u64::saturating_add)),
        output: counts.integer("output_tokens"),
        cached,
        ..SourceUsage::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    #[test]
    fn prompts_answers_calls_and_results_are_read() {
        let thread = json!({"title": "Retry", "version": "0.3.0", "updated_at": "2026-07-19T09:00:02Z",
        "model": {"provider": "anthropic", "model": "m-1"},
        "request_token_usage": {"u1": {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7}},
        "messages": [
            {"User": {"id": "u1", "content": [{"Text": "Look at "}, {"Mention": {"uri": {"File": {"abs_path": "/a"}}, "content": "fn a()"}},
                {"Image": {"source": "aGk="}}]}},
            {"Agent": {"content": [{"Thinking": {"text": "Hm.", "signature": null}}, {"RedactedThinking": "x"}, {"Text": "I read."},
                {"ToolUse": {"id": "c1", "name": "read_file", "raw_input": "{}", "input": {"path": "b"}}},
                {"ToolUse": {"id": "c2", "name": "grep", "input": {"type": "json", "value": {"regex": "a"}}}}],
              "tool_results": {
                "c2": {"tool_use_id": "c2", "tool_name": "grep", "is_error": true, "content": [{"Text": "no"}, {"Text": "match"}]},
                "c1": {"tool_use_id": "c1", "tool_name": "read_file", "is_error": false, "content": {"Text": "b"}, "output": null}}}},
            "Resume",
            {"Compaction": {"Summary": "They read files."}},
            {"Compaction": {"ProviderNative": {}}},
            {"Note": {}},
            {"Agent": {"content": [{"Text": "Done."}], "tool_results": {}}},
        ]});
        let (all, tally) = read(format!("{thread:#}").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Look at  | fn a() | <image>",
                "assistant <reasoning> | I read. | read_file({\"path\":\"b\"}) | grep({\"regex\":\"a\"})",
                "tool b",
                "tool no\nmatch",
                "system They read files.",
                "assistant Done.",
            ]
        );
        assert_eq!(one["messages"][3]["tool_call_id"], "c2");
        assert_eq!(one["messages"][3]["metadata"]["is_error"], true);
        let usage = &one["messages"][1]["metadata"]["usage"];
        assert_eq!(*usage, json!({"input": 10, "output": 5, "cached": 7}));
        assert_eq!(one["messages"][4]["metadata"]["compaction"], true);
        assert_eq!(one["metadata"]["model"], "m-1");
        let counts: Vec<_> = tally.unknown.into_iter().collect();
        let expected = ["a hidden summary", "a message of the kind `Note`"];
        assert_eq!(counts, expected.map(|kind| (kind.to_owned(), 1)));
    }

    #[test]
    fn older_versions_are_read() {
        let call = json!([{"id": "c1", "name": "now", "input": {}}]);
        let result = json!([{"tool_use_id": "c1", "is_error": false, "content": "9:00"}]);
        let texts = |text: &str| json!([{"type": "text", "text": text}]);
        let prompt = json!({"id": 0, "role": "user", "segments": texts("Time?")});
        let answer = json!({"id": 3, "role": "assistant", "segments": texts("Nine.")});
        let first = json!({"summary": "Time", "version": "0.1.0", "messages": [
            prompt,
            {"id": 1, "role": "assistant", "segments": [], "tool_uses": call},
            {"id": 2, "role": "user", "segments": [], "tool_results": result},
            answer,
        ]});
        let second = json!({"summary": "Time", "version": "0.2.0", "messages": [
            prompt,
            {"id": 1, "role": "assistant", "segments": [], "tool_uses": call, "tool_results": result},
            answer,
        ]});
        for thread in [first, second] {
            let (all, tally) = read(thread.to_string().as_bytes());
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(
                message_lines(one),
                [
                    "user Time?",
                    "assistant now({})",
                    "tool 9:00",
                    "assistant Nine."
                ]
            );
            assert_eq!(one["metadata"]["title"], "Time");
            assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        }
    }
}
