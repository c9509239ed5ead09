//! Results of tau-bench (`[{task_id, reward, traj}]`) and tau2-bench (`{simulations: […]}`).
//!
//! Responsible for one simulation per transcript, read one at a time. The reward is the verdict `reward` of the judge
//! `tau-bench` or `tau2-bench`, and so is each check of tau2. Both name their users' tools: calls that the user makes are
//! messages of the user.

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::foreign_message::add_messages;
use super::record_readers::{open_elements, open_records};
use super::transcript_builder::{TranscriptBuilder, verdict_of};
use crate::model::MessageRole;

/// Returns true if the first record is a result of tau-bench.
pub(super) fn is_tau(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| s.has("traj") && (s.has("task_id") || s.has("reward")))
        && preview.first_outline()["traj"].is_array()
}

/// Returns true if the first record is a file of tau2-bench, or one of its simulations.
pub(super) fn is_tau2(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        (s.has("simulations") && (s.has("tasks") || s.has("info")))
            || (s.has("reward_info") && s.has("task_id") && (s.has("messages") || s.has("ticks")))
    })
}

pub(super) fn open_tau(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_tau)
}

pub(super) fn open_tau2(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let paths: &[&[&str]] = if preview.first_matches(|s| s.has("simulations")) {
        &[&["simulations"]]
    } else {
        &[]
    };
    open_elements(source, preview, paths, parse_tau2)
}

fn parse_tau(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let task = fields.id_text("task_id").unwrap_or_default();
    let trial = fields.integer("trial").unwrap_or_default();
    // The tasks repeat over trials, and files over models.
    let id = format!("{}:{}:{trial}", cx.source.stem(), &*task);
    let mut built = TranscriptBuilder::new("tau-bench", Some(id.into()));
    if let Some(messages) = fields.get("traj") {
        add_messages(messages, &MessageRole::User, &mut built);
    }
    let reward = fields.get("reward");
    if reward.is_some() {
        built.push_verdict(verdict_of("tau-bench", "reward", reward, None));
    }
    built.meta.set_raw("task_id", fields.get("task_id"));
    built.meta.set_raw("trial", fields.get("trial"));
    if let Some(info) = fields.object("info") {
        built.meta.set_raw("error", info.get("error"));
        built.meta.set_readable("task", info.get("task"));
        built.meta.set_raw("user_cost", info.get("user_cost"));
    }
    built.finish(out);
    Ok(())
}

fn parse_tau2(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let mut built = TranscriptBuilder::new("tau2-bench", fields.id_text("id"));
    for raw in fields.list("messages").unwrap_or_default() {
        add_tau2_message(raw, &mut built);
    }
    if fields.has("ticks") && !built.has_messages() {
        return Err("it is a voice simulation (`ticks`), which dicta does not read".to_owned());
    }
    let reward = fields.object("reward_info").unwrap_or_default();
    if let Some(value) = reward.get("reward") {
        built.push_verdict(verdict_of("tau2-bench", "reward", Some(value), None));
    }
    for (basis, value) in reward.object("reward_breakdown").unwrap_or_default().iter() {
        built.push_verdict(verdict_of("tau2-bench", basis, Some(value), None));
    }
    for raw in reward.list("nl_assertions").unwrap_or_default() {
        let Some(check) = RawFields::from_raw(raw) else {
            continue;
        };
        let name = check
            .text("nl_assertion")
            .unwrap_or_else(|| "nl_assertion".into());
        let reasoning = check.text("justification");
        built.push_verdict(verdict_of("tau2-bench", &name, check.get("met"), reasoning));
    }
    add_checks(&reward, &mut built);
    built.meta.set_raw("timestamp", fields.get("start_time"));
    if let Some(seconds) = fields.number("duration") {
        built.meta.set("latency_ms", seconds * 1000.0);
    }
    built.meta.set_raw("cost_usd", fields.get("agent_cost"));
    let reason = fields.text("termination_reason");
    if reason
        .as_deref()
        .is_some_and(|reason| reason.contains("error"))
    {
        built
            .meta
            .set_raw("error", fields.get("termination_reason"));
    }
    for key in [
        "task_id",
        "trial",
        "seed",
        "termination_reason",
        "user_cost",
    ] {
        built.meta.set_raw(key, fields.get(key));
    }
    built.finish(out);
    Ok(())
}

/// Adds the verdicts of the checks with words of their own: what the agent said, which actions it took, and the state of
/// the environment.
fn add_checks(reward: &RawFields<'_>, built: &mut TranscriptBuilder) {
    for (list, kind, described, name, met) in [
        ("communicate_checks", "communicate", "", "info", "met"),
        ("action_checks", "action", "action", "name", "action_match"),
        ("env_assertions", "env", "env_assertion", "func_name", "met"),
    ] {
        for raw in reward.list(list).unwrap_or_default() {
            let Some(check) = RawFields::from_raw(raw) else {
                continue;
            };
            let inner = check.object(described);
            let name = inner.as_ref().unwrap_or(&check).text_or_json(name);
            let eval = format!("{kind}: {}", &*name.unwrap_or_default());
            let reasoning = check.text("justification");
            built.push_verdict(verdict_of("tau2-bench", &eval, check.get(met), reasoning));
        }
    }
}

fn add_tau2_message(raw: &serde_json::value::RawValue, built: &mut TranscriptBuilder) {
    let before = built.messages.len();
    let fields = RawFields::from_raw(raw).unwrap_or_default();
    // Results of several calls are one message.
    let nested = fields.list("tool_messages");
    match nested {
        Some(nested) => nested
            .iter()
            .for_each(|raw| add_messages(raw, &MessageRole::Tool, built)),
        None => add_messages(raw, &MessageRole::User, built),
    }
    if let Some(seconds) = fields.number("generation_time_seconds")
        && let Some(message) = built.messages.get_mut(before)
    {
        message.meta.set("latency_ms", seconds * 1000.0);
    }
    if let Some(message) = built.messages.get_mut(before) {
        message.meta.set_raw("cost_usd", fields.get("cost"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::read;

    #[test]
    fn checks_of_tau2_are_verdicts() {
        let file = r#"{"info":{},"tasks":[],"simulations":[{"id":"s","task_id":"1","messages":[{"role":"assistant","content":"Hi"}],"reward_info":{"reward":0.0,
"action_checks":[{"action":{"action_id":"1_0","name":"get_user","arguments":{}},"action_match":true,"action_reward":1.0}],
"communicate_checks":[{"info":"4","met":false,"justification":"Not said."}],
"env_assertions":[{"env_assertion":{"env_type":"user","func_name":"is_on","arguments":{}},"met":true,"reward":1.0}]}}]}
"#;
        let (all, _) = read(file.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        let verdicts = one["verdicts"].as_array().expect("verdicts");
        let verdicts: Vec<_> = verdicts
            .iter()
            .map(|one| {
                (
                    one["eval"].as_str().unwrap_or_default(),
                    one["passed"].as_bool(),
                )
            })
            .collect();
        assert_eq!(
            verdicts,
            [
                ("reward", None),
                ("communicate: 4", Some(false)),
                ("action: get_user", Some(true)),
                ("env: is_on", Some(true)),
            ]
        );
    }
}
