//! SWE-agent's trajectories (`*.traj`) and those of mini-swe-agent.
//!
//! Responsible for one trajectory per file. The messages are those of `history`, as the model got them; a file without
//! a history has the steps of `trajectory`. The exit status and the statistics of the model are metadata. Only
//! mini-swe-agent records the exit codes of commands. A trajectory has no verdict: that is in the results of SWE-bench.

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::native::text_or_json;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::sniff::RecordSniff;
use super::exchange::parse_usage;
use super::foreign_message::{add_messages, result_text};
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, reasoning_part, text_part};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// Returns true if the first record is a trajectory.
pub(super) fn is_trajectory(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let step = &record["trajectory"][0];
    let is_step = !step["action"].is_null() && !step["observation"].is_null();
    let has_history = record["history"].as_array().and_then(|all| all.first());
    let has_history = has_history.is_some_and(|one| one["role"].is_string());
    let info = &record["info"];
    // A demonstration has the history alone.
    let mut entries = record["history"].as_array().into_iter().flatten();
    let is_own = entries.any(|one| !one["agent"].is_null() || !one["message_type"].is_null());
    let has_info = !info["exit_status"].is_null() || !info["model_stats"].is_null();
    let is_mini = record["messages"].is_array()
        && record["trajectory_format"]
            .as_str()
            .is_some_and(|format| format.starts_with("mini-swe-agent"));
    // The name of the format follows the messages, and may be after the preview. A patch before it may be large.
    let is_cut = preview.first_matches(RecordSniff::is_cut);
    let has_patch = info["exit_status"].is_string() && info.get("submission").is_some();
    let is_mini = is_mini || (is_cut && (info["mini_version"].is_string() || has_patch));
    (record["trajectory"].is_array() && (is_step || has_history))
        || (has_history && (has_info || is_own))
        || is_mini
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_trajectory)
}

fn parse_trajectory(
    record: &str,
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    // The name of the file is the id of the instance.
    let id = fields.id_text("instance_id");
    let id = id.unwrap_or_else(|| cx.source.stem().trim_end_matches(".traj").to_owned().into());
    let mut built = TranscriptBuilder::new("swe-agent", Some(id));
    let history = ["history", "messages"];
    let history = history
        .iter()
        .find_map(|key| fields.list(key).filter(|all| !all.is_empty()));
    match history {
        Some(history) => {
            out.count_elements(history.len());
            let info = fields.object("info").unwrap_or_default();
            let submission = info.text("submission").unwrap_or_default();
            for raw in history {
                match ExitMessage::read(raw) {
                    Some(ExitMessage::Text(text)) if text.trim() == submission.trim() => {}
                    Some(ExitMessage::Text(text)) => {
                        built.meta.set("exit_message", &*text);
                    }
                    Some(ExitMessage::Other) => {
                        let kind = "an exit message whose content is not a text";
                        built.unknown.push(kind.to_owned());
                    }
                    None => add_entry(raw, &mut built),
                }
            }
        }
        None => add_steps(&fields, out, &mut built),
    }
    write_metadata(&fields, &mut built);
    built.finish(out);
    Ok(())
}

/// The last message of mini-swe-agent's program.
enum ExitMessage<'a> {
    /// The submission, or the reason for the end. Empty if the message has no content.
    Text(SourceText<'a>),
    /// A content that is not a text.
    Other,
}

impl<'a> ExitMessage<'a> {
    /// Reads a message; `None` for a message of another role.
    fn read(raw: &'a RawValue) -> Option<Self> {
        let fields = RawFields::from_raw(raw)?;
        if fields.text("role").as_deref() != Some("exit") {
            return None;
        }
        Some(match (fields.text("content"), fields.has("content")) {
            (Some(text), _) => Self::Text(text),
            (None, false) => Self::Text(SourceText::default()),
            (None, true) => Self::Other,
        })
    }
}

fn add_entry(raw: &RawValue, built: &mut TranscriptBuilder) {
    let Some(fields) = RawFields::from_raw(raw) else {
        built
            .unknown
            .push("a message that is not an object".to_owned());
        return;
    };
    // A tool message names its calls in a list.
    let calls = fields.list("tool_call_ids").unwrap_or_default();
    if fields.text("role").as_deref() == Some("tool") && !calls.is_empty() {
        let content = fields.get("content").map(result_text).unwrap_or_default();
        return built.push_result(&text_or_json(calls[0]), content, None);
    }
    let before = built.messages.len();
    add_messages(raw, &MessageRole::User, built);
    let blocks = fields.list("thinking_blocks").unwrap_or_default();
    let thoughts = blocks
        .iter()
        .filter_map(|raw| RawFields::from_raw(raw)?.text("thinking"));
    let thoughts: Vec<_> = thoughts.map(|text| reasoning_part(&text)).collect();
    if let Some(message) = built.messages.get_mut(before) {
        message.parts.splice(0..0, thoughts);
        // The demonstration comes from another run.
        if fields.flag("is_demo") == Some(true) {
            message.meta.set("is_demo", true);
        }
        let extra = fields.object("extra");
        let time = extra.as_ref().and_then(|extra| extra.get("timestamp"));
        message.meta.set_raw("timestamp", time);
        if message.role == MessageRole::Assistant
            && let Some(extra) = &extra
        {
            // mini-swe-agent keeps the whole reply of the API.
            let reply = extra.object("response").unwrap_or_default();
            message.meta.set_raw("model", reply.get("model"));
            if let Some(usage) = reply.object("usage") {
                message.meta.set("usage", parse_usage(&usage).to_json());
            }
            message.meta.set_raw("cost_usd", extra.get("cost"));
        }
        let code = extra.as_ref().and_then(|extra| extra.get("returncode"));
        if let (Some(code), Some(TranscriptPart::ToolResult(result))) =
            (code, message.parts.first_mut())
        {
            result.is_error = result.is_error.or(Some(code.get() != "0"));
        }
    }
}

fn add_steps(fields: &RawFields<'_>, out: &mut TranscriptSink, built: &mut TranscriptBuilder) {
    let steps = fields.list("trajectory").unwrap_or_default();
    out.count_elements(steps.len());
    for raw in steps {
        let Some(step) = RawFields::from_raw(raw) else {
            built
                .unknown
                .push("a step that is not an object".to_owned());
            continue;
        };
        // The first step of newer versions has the whole prompt.
        if built.messages.is_empty()
            && let Some(query) = step.get("query").filter(|raw| list_items(raw).is_some())
        {
            add_messages(query, &MessageRole::User, built);
        }
        let text = step.filled_text("response");
        if let Some(text) = text.or_else(|| step.text("thought")) {
            built.push(MessageRole::Assistant, vec![text_part(&text)]);
        }
        let action = step.text("action").unwrap_or_default();
        built.push_call(
            "",
            "action",
            serde_json::json!({ "command": &*action }).to_string(),
        );
        let observation = step.get("observation").map(result_text).unwrap_or_default();
        built.push_result("", observation, None);
    }
}

fn write_metadata(fields: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let info = fields.object("info").unwrap_or_default();
    let meta = &mut built.meta;
    if let Some(stats) = info.object("model_stats") {
        let usage = SourceUsage {
            input: stats.integer("tokens_sent"),
            output: stats.integer("tokens_received"),
            ..SourceUsage::default()
        };
        meta.set("usage", usage.to_json());
        meta.set_raw("cost_usd", stats.get("instance_cost"));
        meta.set_raw("api_calls", stats.get("api_calls"));
    }
    let config = info.object("config").unwrap_or_default();
    let model = config.object("model").unwrap_or_default();
    meta.set_raw("model", model.get("model_name"));
    meta.set_raw("environment", fields.get("environment"));
    for key in [
        "exit_status",
        "submission",
        "swe_agent_version",
        "mini_version",
    ] {
        meta.set_raw(key, info.get(key));
    }
    // SWE-agent names the error in the exit status.
    let status = info.text("exit_status").unwrap_or_default();
    if status.starts_with("exit_") || status.contains("Error") {
        meta.set("error", &*status);
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    #[test]
    fn exit_message_that_is_not_a_text_is_counted() {
        for (content, count) in [(r#"[{"type":"text","text":"Gone."}]"#, 1), ("null", 0)] {
            let file = format!(
                r#"{{"info":{{"exit_status":"Error"}},"trajectory_format":"mini-swe-agent-1.1","messages":[
{{"role":"user","content":"Fix it."}},{{"role":"exit","content":{content}}}]}}
"#
            );
            let (all, tally) = read(file.as_bytes());
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(message_lines(one), ["user Fix it."], "{content}");
            assert_eq!(tally.unknown_count(), count, "{tally:?}");
        }
    }

    #[test]
    fn tokens_and_cost_of_mini_swe_agents_replies_are_read() {
        let file = r#"{"info":{"config":{"model":{"model_name":"openai/m"}}},"trajectory_format":"mini-swe-agent-1.1","messages":[
{"role":"user","content":"Fix it."},
{"role":"assistant","content":"Done.","extra":{"cost":0.0006,"response":{"model":"m-2025","usage":{"prompt_tokens":17,"completion_tokens":8,"total_tokens":25}}}}]}
"#;
        let (all, _) = read(file.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(one["metadata"]["model"], "openai/m");
        let reply = &one["messages"][1]["metadata"];
        assert_eq!(reply["model"], "m-2025");
        assert_eq!(reply["cost_usd"], 0.0006);
        assert_eq!(reply["usage"]["input"], 17);
        assert_eq!(reply["usage"]["output"], 8);
    }

    #[test]
    fn end_and_exit_codes_of_mini_swe_agent_are_read() {
        let file = r#"{"info":{"exit_status":"Submitted","submission":"diff --git a b\n"},"trajectory_format":"mini-swe-agent-1.1","instance_id":"i-1","messages":[
{"role":"user","content":"Fix it."},
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},
{"role":"tool","tool_call_id":"c1","content":"<returncode>127</returncode>","extra":{"returncode":127,"timestamp":1773065377.5}},
{"role":"exit","content":"diff --git a b","extra":{"exit_status":"Submitted","submission":"diff --git a b"}}]}
"#;
        let (all, tally) = read(file.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Fix it.",
                r#"assistant bash({"command":"ls"})"#,
                "tool <returncode>127</returncode>",
            ]
        );
        assert_eq!(one["messages"][2]["metadata"]["is_error"], true);
        assert_eq!(one["metadata"]["submission"], "diff --git a b\n");
        assert!(one["metadata"]["exit_message"].is_null());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }
}
