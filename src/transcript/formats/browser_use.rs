//! Saved histories of browser-use, such as `agent_history.json`: `{history: [{model_output, result, state, metadata}]}`.
//!
//! Responsible for one history per record. A step is a message of the assistant, with its actions as calls and their results
//! after it. The action `done` is the answer, and the judgement of a run is a verdict of `browser-use`. The task is only in the
//! `state_message` of newer versions. Screenshots in the file are counted and not read.

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::open_records;
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, call_part, owned_text, reasoning_part, text_part, verdict_of,
};
use crate::model::MessageRole;

/// The action that ends a run with the answer.
const DONE: &str = "done";

/// Returns true if the first record is a history of steps.
pub(super) fn is_history(preview: &FilePreview<'_>) -> bool {
    let steps = preview.first_outline()["history"].as_array();
    // A step without a reply of the model has a null in `model_output`.
    steps.and_then(|all| all.first()).is_some_and(|step| {
        step.get("model_output").is_some()
            && (step["result"].is_array() || step["result"].is_object())
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_history)
}

fn parse_history(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let steps = fields
        .list("history")
        .ok_or_else(|| "it has no list `history`".to_owned())?;
    out.count_elements(steps.len());
    let mut built = TranscriptBuilder::new("browser-use", fields.id_text("id"));
    let (mut start, mut end) = (None, None);
    for (at, raw) in steps.into_iter().enumerate() {
        let Some(step) = RawFields::from_raw(raw) else {
            built
                .unknown
                .push("a step that is not an object".to_owned());
            continue;
        };
        add_step(&step, at + 1, &mut built, out);
        let times = step.object("metadata").unwrap_or_default();
        start = start.or_else(|| times.number("step_start_time"));
        end = times.number("step_end_time").or(end);
    }
    if let Some(start) = start {
        built.meta.set("timestamp", start);
        if let Some(end) = end {
            built
                .meta
                .set("latency_ms", ((end - start) * 1000.0).max(0.0).round());
        }
    }
    built.finish(out);
    Ok(())
}

/// Returns the elements of a list, or a single value. The first version had no lists.
fn list_or_one<'a>(fields: &RawFields<'a>, key: &str) -> Vec<&'a RawValue> {
    let raw = fields.get(key);
    raw.map_or_else(Vec::new, |raw| list_items(raw).unwrap_or_else(|| vec![raw]))
}

fn add_step(
    step: &RawFields<'_>,
    number: usize,
    built: &mut TranscriptBuilder,
    out: &mut TranscriptSink,
) {
    if let Some(text) = step.filled_text("state_message") {
        built.push_text(MessageRole::User, &text);
    }
    let reply = step.object("model_output").unwrap_or_default();
    let mut parts = Vec::new();
    if let Some(text) = reply.filled_text("thinking") {
        parts.push(reasoning_part(&text));
    }
    let brain = reply.object("current_state").unwrap_or_default();
    for fields in [&brain, &reply] {
        let thoughts = describe_thoughts(fields);
        if !thoughts.is_empty() {
            parts.push(reasoning_part(&thoughts));
        }
    }
    // The state may contain a screenshot of megabytes.
    let state = step.object("state").unwrap_or_default();
    // The ids of the actions, and `None` for the answer.
    let mut ids = Vec::new();
    for (at, raw) in list_or_one(&reply, "action").into_iter().enumerate() {
        let action = RawFields::from_raw(raw).unwrap_or_default();
        // Some programs add the element next to the action.
        let mut named = action
            .iter()
            .filter(|(name, value)| *name != "interacted_element" && value.get() != "null");
        let Some((name, arguments)) = named.next() else {
            built.unknown.push("an action without a name".to_owned());
            ids.push(Some(String::new()));
            continue;
        };
        let others = named.count();
        built.count_unknown("an action next to another one", others);
        let answer = RawFields::from_raw(arguments).filter(|_| name == DONE);
        if let Some(answer) = answer {
            let text = answer.text("text");
            let text = text.map_or_else(|| owned_text(arguments), |text| text.0.into_owned());
            parts.push(text_part(&text));
            built.meta.set_raw("success", answer.get("success"));
            ids.push(None);
        } else {
            let id = format!("{number}.{}", at + 1);
            parts.push(call_part(&id, name, call_arguments(Some(arguments))));
            ids.push(Some(id));
        }
    }
    if !parts.is_empty() {
        built.push(MessageRole::Assistant, parts);
        add_metadata(step, &state, built);
    }
    if state.has("screenshot") {
        out.count_missing("a screenshot that dicta does not read");
    }
    for (at, raw) in list_or_one(step, "result").into_iter().enumerate() {
        let result = RawFields::from_raw(raw).unwrap_or_default();
        let id = ids.get(at).map_or(Some(""), Option::as_deref);
        add_result(&result, id, built);
    }
}

/// Returns the texts that the model writes for itself, one per line: the evaluation of its previous goal, memory, next goal.
fn describe_thoughts(fields: &RawFields<'_>) -> String {
    let thoughts = fields.iter().filter(|(key, value)| {
        !["action", "current_state", "thinking"].contains(key)
            && !matches!(value.get(), "null" | "\"\"")
    });
    let lines = thoughts.map(|(key, value)| format!("{key}: {}", owned_text(value)));
    lines.collect::<Vec<_>>().join("\n")
}

fn add_metadata(step: &RawFields<'_>, state: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let times = step.object("metadata").unwrap_or_default();
    let Some(meta) = built.last_meta(&MessageRole::Assistant) else {
        return;
    };
    meta.set_raw("timestamp", times.get("step_start_time"));
    // The number of tokens is browser-use's own estimate.
    let usage = SourceUsage {
        input: times.integer("input_tokens"),
        ..SourceUsage::default()
    };
    meta.set("usage", usage.to_json());
    for key in ["url", "title", "screenshot_path"] {
        meta.set_raw(key, state.get(key));
    }
}

/// Adds the result of an action. `id` is that of its call; `None` for the answer, whose text the result repeats.
fn add_result(result: &RawFields<'_>, id: Option<&str>, built: &mut TranscriptBuilder) {
    if let Some(judgement) = result.object("judgement") {
        let reasoning = ["reasoning", "failure_reason"];
        let reasoning = reasoning.iter().find_map(|key| judgement.filled_text(key));
        let verdict = judgement.get("verdict");
        built.push_verdict(verdict_of("browser-use", "judgement", verdict, reasoning));
    }
    built.meta.set_raw("success", result.get("success"));
    let error = result.filled_text("error");
    let contents = ["extracted_content", "long_term_memory"];
    let content = contents.iter().find_map(|key| result.filled_text(key));
    let is_error = error.is_some();
    if id.is_none() && !is_error {
        return;
    }
    let texts: Vec<&str> = [error.as_deref(), content.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    built.push_result(id.unwrap_or_default(), texts.join("\n"), Some(is_error));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    #[test]
    fn first_version_without_lists_is_read() {
        let file = json!({"history": [
            {"model_output": {"current_state": {"valuation_previous_goal": "Unknown", "memory": "", "next_goal": "Search."}, "action": {"search_google": {"query": "tea"}}},
             "result": {"is_done": false, "include_in_memory": false},
             "state": {"url": "about:blank", "title": "", "tabs": [], "screenshot": "iVBOR"}},
            {"model_output": {"current_state": {"next_goal": "Answer."}, "action": {"done": {"text": "Tea is a drink."}}},
             "result": {"is_done": true, "extracted_content": "Tea is a drink."}, "state": {}},
        ]});
        let (all, tally) = read(format!("{file:#}\n").as_bytes());
        let one = all[0].as_ref().expect("a history");
        assert_eq!(
            message_lines(one),
            [
                r#"assistant <reasoning> | search_google({"query":"tea"})"#,
                "tool ",
                "assistant <reasoning> | Tea is a drink.",
            ]
        );
        assert_eq!((tally.records, tally.unknown_count()), (2, 0), "{tally:?}");
        assert_eq!(tally.missing["a screenshot that dicta does not read"], 1);
    }

    #[test]
    fn judgement_of_a_run_is_a_verdict() {
        let file = json!({"history": [{
            "model_output": {"memory": "m", "next_goal": "n", "action": [{"done": {"text": "Bought.", "success": true}}]},
            "result": [{"is_done": true, "success": true, "judgement": {"reasoning": "", "verdict": false, "failure_reason": "Nothing was bought."}}],
            "state": {}, "state_message": "<user_request>Buy tea.</user_request>",
        }]});
        let (all, _) = read(format!("{file}\n").as_bytes());
        let one = all[0].as_ref().expect("a history");
        assert_eq!(
            message_lines(one)[0],
            "user <user_request>Buy tea.</user_request>"
        );
        assert_eq!(one["metadata"]["success"], true);
        assert_eq!(
            one["verdicts"],
            json!([{"judge": "browser-use", "eval": "judgement", "passed": false, "value": false, "reasoning": "Nothing was bought."}])
        );
    }
}
