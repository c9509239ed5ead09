//! SWE-agent's trajectories (`*.traj`) and those of mini-swe-agent.
//!
//! Responsible for one trajectory per file. The messages are those of `history`, as the model got them; a file without
//! a history has the steps of `trajectory`. The exit status and the statistics of the model are metadata. A trajectory
//! records neither which commands failed nor a verdict: that is in the results of SWE-bench.

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::native::text_or_json;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::{add_messages, result_text};
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, reasoning_part, text_part};
use crate::model::MessageRole;

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
            out.count_records(history.len() as u64);
            for raw in history {
                add_entry(raw, &mut built);
            }
        }
        None => add_steps(&fields, out, &mut built),
    }
    write_metadata(&fields, &mut built);
    built.finish(out);
    Ok(())
}

fn add_entry(raw: &serde_json::value::RawValue, built: &mut TranscriptBuilder) {
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
    }
}

fn add_steps(fields: &RawFields<'_>, out: &mut TranscriptSink, built: &mut TranscriptBuilder) {
    let steps = fields.list("trajectory").unwrap_or_default();
    out.count_records(steps.len() as u64);
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
        let text = step.text("response").filter(|text| !text.is_empty());
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
