//! OpenAI Evals: the logs of the open-source framework (`oaieval`), and output items of the hosted service.
//!
//! Responsible for both layouts. In a log, the events of one sample are one transcript: the last `sampling` is the
//! conversation, calls are `function_call` events. Results are verdicts of the judge `openai-evals`. The hosted service
//! ends on 30 November 2026: its output items are the replies of `GET /evals/ID/runs/ID/output_items`, as a list in
//! `data` or one per line. Azure's service has the reply of an agent in the item: `sample.output_items`.

use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::exchange::parse_usage;
use super::foreign_message::{add_messages, result_text};
use super::record_readers::{Grouping, NOT_JSON, line_text, open_elements, open_groups};
use super::transcript_builder::{TranscriptBuilder, call_arguments, verdict_of};
use crate::model::MessageRole;

/// Returns true if the first lines are a log.
pub(super) fn is_log(preview: &FilePreview<'_>) -> bool {
    let is_event = |s: &super::super::sniff::RecordSniff| {
        s.has("run_id") && s.has("event_id") && s.has("sample_id") && s.has("data")
    };
    let has_spec = preview.first_matches(|s| s.has("spec"))
        && preview.first_outline()["spec"]["run_id"].is_string();
    preview.any_matches(is_event) || has_spec
}

/// Returns true if the first record is an output item of the hosted service.
pub(super) fn is_output_items(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    // Scripts save the run next to its items, under `output_items`.
    let firsts = [record, &record["data"][0], &record["output_items"][0]];
    firsts.iter().any(|item| {
        item["object"] == "eval.run.output_item"
            || (!item["datasource_item"].is_null() && item["sample"].is_object())
    })
}

pub(super) fn open_log(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_groups(
        preview,
        Grouping {
            key: sample_of,
            parse: parse_sample,
            without_group: "a line without a sample",
        },
    )
}

pub(super) fn open_output_items(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let record = preview.first_outline();
    let paths: &[&[&str]] = if record["data"].is_array() {
        &[&["data"]]
    } else if record["output_items"].is_array() {
        &[&["output_items"]]
    } else {
        &[]
    };
    open_elements(source, preview, paths, parse_output_item)
}

/// The group of the lines about the whole run. No sample has such an id.
const RUN_GROUP: &str = "\0run";

/// Returns true if a line is about the whole run: its spec or its report.
fn is_about_run(line: &[u8]) -> bool {
    let text = std::str::from_utf8(line).unwrap_or_default();
    RawFields::parse(text)
        .is_ok_and(|line| !line.has("event_id") && (line.has("spec") || line.has("final_report")))
}

fn sample_of(line: &[u8]) -> Option<String> {
    if is_about_run(line) {
        return Some(RUN_GROUP.to_owned());
    }
    let event = RawFields::from_bytes(line)?;
    event.get("event_id")?;
    Some(event.id_text("sample_id")?.0.into_owned())
}

fn parse_sample(lines: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
    // These lines have no transcript. dicta understands them, so they count as read.
    if lines.iter().all(|line| is_about_run(line)) {
        return;
    }
    let mut built = TranscriptBuilder::new("openai-evals", None);
    let mut calls = Vec::new();
    let texts: Vec<&str> = lines
        .iter()
        .filter_map(|line| line_text(line, out))
        .collect();
    for text in texts {
        let Ok(event) = RawFields::parse(text) else {
            built.unknown.push(NOT_JSON.to_owned());
            continue;
        };
        if built.id.is_empty() {
            // Sample ids repeat in every run.
            let run = event.id_text("run_id").unwrap_or_default();
            let sample = event.id_text("sample_id").unwrap_or_default();
            built.id = format!("{}:{}", &*run, &*sample);
            built.meta.set_raw("timestamp", event.get("created_at"));
        }
        let data = event.object("data").unwrap_or_default();
        let kind = event.text("type").unwrap_or_default();
        match &*kind {
            "sampling" => add_sampling(&data, &mut built),
            "match" => {
                let verdict = verdict_of("openai-evals", "match", data.get("correct"), None);
                built.push_verdict(verdict);
                built.meta.set_readable("expected", data.get("expected"));
                built.meta.set_readable("picked", data.get("picked"));
            }
            "metrics" => {
                for (name, raw) in data.iter() {
                    let is_value =
                        raw.get().parse::<f64>().is_ok() || raw.get().starts_with(['t', 'f', '"']);
                    if is_value {
                        built.push_verdict(verdict_of("openai-evals", name, Some(raw), None));
                    } else {
                        built.meta.set_readable(name, Some(raw));
                    }
                }
            }
            "error" => {
                built.meta.set_raw("error", data.get("message"));
            }
            "function_call" => {
                let name = data.text("name").unwrap_or_default().0.into_owned();
                let result = data.get("return_value").map(result_text);
                calls.push((name, call_arguments(data.get("arguments")), result));
            }
            "pick_option" | "cond_logp" | "raw_sample" | "extra" | "embedding" => {
                built.meta.set_readable(&kind, event.get("data"));
            }
            _ => built.unknown.push(format!("an event of the type `{kind}`")),
        }
    }
    if !calls.is_empty() {
        // The calls happened before the last reply.
        let reply = built.messages.pop();
        for (name, arguments, result) in calls {
            built.push(MessageRole::Assistant, Vec::new());
            built.push_call("", &name, arguments);
            if let Some(result) = result {
                built.push_result("", result, None);
            }
        }
        built.messages.extend(reply);
    }
    built.finish(out);
}

fn add_sampling(data: &RawFields<'_>, built: &mut TranscriptBuilder) {
    // A sample with several replies has the whole conversation in the last prompt; a model that grades comes after it.
    let mut next = TranscriptBuilder::default();
    if let Some(prompt) = data.get("prompt") {
        add_messages(prompt, &MessageRole::User, &mut next);
    }
    if let Some(sampled) = data.get("sampled") {
        let replies = list_items(sampled).unwrap_or_else(|| vec![sampled]);
        if let Some(reply) = replies.first() {
            add_messages(reply, &MessageRole::Assistant, &mut next);
        }
    }
    if let (Some(usage), Some(meta)) = (
        data.object("usage"),
        next.last_meta(&MessageRole::Assistant),
    ) {
        meta.set("usage", parse_usage(&usage).to_json());
    }
    let continues = built
        .messages
        .iter()
        .zip(&next.messages)
        .all(|(a, b)| a.role == b.role && a.parts == b.parts);
    if !built.has_messages() || (continues && next.messages.len() >= built.messages.len()) {
        built.messages = next.messages;
    } else {
        built
            .unknown
            .push("a further sampling of the sample".to_owned());
    }
}

/// Returns a list or a text that is not empty.
fn filled<'a>(fields: &RawFields<'a>, key: &str) -> Option<&'a RawValue> {
    let raw = fields.get(key)?;
    let is_filled = raw.get().starts_with(['[', '"']) && !matches!(raw.get(), "[]" | "\"\"");
    is_filled.then_some(raw)
}

fn parse_output_item(
    record: &str,
    _: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let id = fields
        .id_text("id")
        .or_else(|| fields.id_text("datasource_item_id"));
    let mut built = TranscriptBuilder::new("openai-evals", id);
    let sample = fields.object("sample").unwrap_or_default();
    if let Some(input) = filled(&sample, "input") {
        add_messages(input, &MessageRole::User, &mut built);
    }
    // Without a prompt of the run, the question is in the item.
    if !built.has_messages()
        && let Some(item) = fields.object("datasource_item")
    {
        let keys = ["input", "question", "prompt", "query"];
        if let Some(question) = item.get_first(&keys) {
            add_messages(question, &MessageRole::User, &mut built);
        }
    }
    let item = fields.object("datasource_item").unwrap_or_default();
    let error = sample.object("error").unwrap_or_default();
    let error = filled(&error, "message").or_else(|| filled(&error, "code"));
    let model = filled(&sample, "model");
    // A run without a model grades replies that the item has.
    let reply = if error.is_none() && model.is_none() {
        filled(&item, "response")
    } else {
        None
    };
    let output = filled(&sample, "output")
        .or_else(|| filled(&sample, "output_text"))
        .or_else(|| filled(&item, "sample.output_items"))
        .or_else(|| filled(&item, "sample.output_text"))
        .or(reply);
    if let Some(output) = output {
        add_messages(output, &MessageRole::Assistant, &mut built);
    }
    if let Some(meta) = built.last_meta(&MessageRole::Assistant) {
        meta.set_raw("model", model);
        meta.set_raw("stop_reason", filled(&sample, "finish_reason"));
        if let Some(usage) = sample.object("usage") {
            meta.set("usage", parse_usage(&usage).to_json());
        }
    }
    built.meta.set_raw("model", model);
    built.meta.set_raw("error", error);
    for raw in fields.list("results").unwrap_or_default() {
        let Some(result) = RawFields::from_raw(raw) else {
            continue;
        };
        let name = result.text("name").unwrap_or_else(|| "result".into());
        // The service adds the id of the grader, a UUID, to its name.
        let short = name
            .len()
            .checked_sub(37)
            .and_then(|at| name.split_at_checked(at));
        let name = match short {
            Some((short, id)) if id.starts_with('-') && id.matches('-').count() == 5 => {
                short.to_owned()
            }
            _ => name.to_string(),
        };
        let mut verdict = verdict_of("openai-evals", &name, result.get("score"), None);
        verdict.passed = result.flag("passed");
        let grader = result.object("sample").unwrap_or_default();
        let reason = grader.list("output").unwrap_or_default();
        let reason = reason
            .last()
            .and_then(|raw| RawFields::from_raw(raw)?.text("content"));
        let reason = reason.or_else(|| result.text("reason"));
        verdict.reasoning = reason.map(|text| text.0.into_owned());
        built.push_verdict(verdict);
    }
    built.meta.set_raw("timestamp", fields.get("created_at"));
    for key in ["eval_id", "run_id", "status"] {
        built.meta.set_raw(key, fields.get(key));
    }
    built
        .meta
        .set_readable("item", fields.get("datasource_item"));
    built.finish(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    #[test]
    fn spec_and_report_of_a_log_are_read_and_have_no_transcript() {
        let file = concat!(
            r#"{"spec":{"eval_name":"m.s1","run_id":"r1"}}"#,
            "\n",
            r#"{"final_report":{"accuracy":1.0}}"#,
            "\n",
            r#"{"run_id":"r1","event_id":0,"sample_id":"m.1","type":"sampling","data":{"prompt":"Hi","sampled":"Ho"}}"#,
            "\n",
            r#"{"run_id":"r1","event_id":1,"sample_id":"m.1","type":"match","data":{"correct":true}}"#,
            "\n",
            r#"{"strange":1}"#,
            "\n",
        );
        let (all, tally) = read(file.as_bytes());
        assert_eq!((all.len(), tally.records), (1, 5));
        let unknown: Vec<(&str, u64)> = tally.unknown.iter().map(|(k, n)| (&**k, *n)).collect();
        assert_eq!(unknown, [("a line without a sample", 1)]);
    }

    #[test]
    fn reply_of_an_agent_in_the_item_is_read() {
        let file = r#"{"object":"eval.run.output_item","id":"1","datasource_item":{"query":"Weather?","sample.output_text":"Sunny.","sample.output_items":[{"type":"function_call","call_id":"c1","name":"get","arguments":"{}"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Sunny."}]}]},"results":[{"type":"azure_ai_evaluator","name":"Quality","score":0.8,"label":"pass","reason":"clear","passed":true}],"sample":{"input":[],"output":[]}}"#;
        let (all, _) = read(format!("{file}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            ["user Weather?", "assistant get({})", "assistant Sunny."]
        );
        assert_eq!(one["verdicts"][0]["reasoning"], "clear");
    }

    #[test]
    fn result_of_a_tool_in_a_part_is_read() {
        let file = r#"{"object":"eval.run.output_item","id":"1","datasource_item":{},"results":[],"sample":{"input":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"output":[{"role":"assistant","content":[{"type":"tool_call","tool_call_id":"c1","name":"get","arguments":{"a":1}}]},{"role":"tool","tool_call_id":"c1","content":[{"type":"tool_result","tool_result":"Sunny"}]},{"role":"assistant","content":[{"type":"text","text":"It is sunny."}]}]}}"#;
        let (all, _) = read(format!("{file}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Hi",
                "assistant get({\"a\":1})",
                "tool Sunny",
                "assistant It is sunny."
            ]
        );
        assert_eq!(one["messages"][2]["tool_call_id"], "c1");
    }

    #[test]
    fn items_below_their_run_are_read() {
        let file = r#"{"run":{"object":"eval.run","id":"r"},"output_items":[{"object":"eval.run.output_item","id":"a","datasource_item":{"question":"Hi?"},"results":[],"sample":{"output":[{"role":"assistant","content":"Hi."}]}}]}"#;
        let (all, _) = read(format!("{file}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Hi?", "assistant Hi."]);
    }

    #[test]
    fn reply_in_the_item_counts_only_without_a_model_and_an_error() {
        let item = |sample: &str| {
            let file = format!(
                r#"{{"object":"eval.run.output_item","id":"a","datasource_item":{{"query":"Hi?","response":"Hi."}},"results":[],"sample":{sample}}}"#
            );
            let (mut all, _) = read(format!("{file}\n").as_bytes());
            all.remove(0).expect("a transcript")
        };
        let graded = item(
            r#"{"input":[],"output":[],"model":"","finish_reason":"","error":{"code":"","message":""}}"#,
        );
        assert_eq!(message_lines(&graded), ["user Hi?", "assistant Hi."]);
        for key in ["error", "model"] {
            assert!(graded["metadata"].get(key).is_none(), "{graded}");
        }
        let failed = item(r#"{"output":[],"error":{"code":"limit","message":""}}"#);
        assert_eq!(message_lines(&failed), ["user Hi?"]);
        assert_eq!(failed["metadata"]["error"], "limit");
        let empty = item(r#"{"output":[],"model":"m"}"#);
        assert_eq!(message_lines(&empty), ["user Hi?"]);
    }
}
