//! LangSmith's runs: dumps of the SDK and exports, as a list, as lines, or nested in `child_runs`.
//!
//! Responsible for the runs of a trace. Runs with one `trace_id` are one conversation, wherever they are in the file.
//! `feedback` of people is a label, other feedback and `feedback_stats` are verdicts of the judge `langsmith`.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::native::{json_string, text_or_json};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::record_readers::{Grouping, open_element_groups, parse_lines};
use super::trace_spans::{SpanKind, Trace, TraceSpan, parse_time};
use super::transcript_builder::{keep_rating, verdict_with_category};
use crate::model::{SourceText, parse_pass_or_fail};

/// The depth of nested runs.
const MAX_DEPTH: u8 = 32;

/// Returns true if the file has runs.
pub(super) fn is_runs(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_run = |value: &Value| {
        let kinds = [
            "llm",
            "chain",
            "tool",
            "retriever",
            "embedding",
            "prompt",
            "parser",
        ];
        value["run_type"]
            .as_str()
            .is_some_and(|kind| kinds.contains(&kind))
            && (!value["inputs"].is_null() || value["dotted_order"].is_string())
    };
    is_run(record)
        || record["runs"]
            .as_array()
            .and_then(|all| all.first())
            .is_some_and(is_run)
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    open_element_groups(
        source,
        preview,
        &["runs"],
        Grouping {
            key: run_trace,
            parse: parse_runs,
            without_group: "a record that is not a run",
        },
    )
}

fn run_trace(line: &[u8]) -> Option<String> {
    let fields = RawFields::from_bytes(line)?;
    fields.text("run_type")?;
    let id = ["trace_id", "id", "run_id"];
    Some(
        id.iter()
            .find_map(|key| fields.id_text(key))?
            .0
            .into_owned(),
    )
}

fn parse_runs(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut trace = Trace {
        source: "langsmith",
        ..Trace::default()
    };
    for (text, run) in parse_lines(lines, out) {
        if trace.id.is_empty() {
            trace.id = run_trace(text.as_bytes()).unwrap_or_default();
        }
        add_run(&run, None, &mut trace, out, MAX_DEPTH);
    }
    trace.finish(cx, out);
}

fn add_run<'a>(
    run: &RawFields<'a>,
    outer: Option<&SourceText<'a>>,
    trace: &mut Trace<'a>,
    out: &mut TranscriptSink,
    depth: u8,
) {
    let id = run
        .id_text("id")
        .or_else(|| run.id_text("run_id"))
        .unwrap_or_default();
    let parent = run.id_text("parent_run_id").or_else(|| outer.cloned());
    if parent.is_none() {
        write_root(run, trace);
    }
    let extra = run.object("extra");
    let metadata = extra.as_ref().and_then(|extra| extra.object("metadata"));
    let invocation = extra
        .as_ref()
        .and_then(|extra| extra.object("invocation_params"));
    let model = metadata.as_ref().and_then(|all| all.text("ls_model_name"));
    let model = model.or_else(|| {
        let all = invocation.as_ref()?;
        all.text("model").or_else(|| all.text("model_name"))
    });
    let kind = match run.text("run_type").as_deref() {
        Some("llm") => SpanKind::Chat,
        Some("tool") => SpanKind::Tool,
        _ => SpanKind::Step,
    };
    let usage = run
        .object("outputs")
        .and_then(|all| all.object("usage_metadata"));
    let usage = usage.unwrap_or_else(|| run.clone());
    let count = |keys: &[&str]| keys.iter().find_map(|key| usage.integer(key));
    trace.spans.push(TraceSpan {
        id: id.clone(),
        parent,
        name: run.text("name").unwrap_or_default(),
        kind,
        start: parse_time(run.get("start_time")),
        end: parse_time(run.get("end_time")),
        input: run.get("inputs"),
        output: run.get("outputs"),
        model,
        usage: if kind == SpanKind::Chat {
            SourceUsage {
                input: count(&["prompt_tokens", "input_tokens"]),
                output: count(&["completion_tokens", "output_tokens"]),
                total: count(&["total_tokens"]),
                ..SourceUsage::default()
            }
        } else {
            SourceUsage::default()
        },
        cost: cost_of(run).filter(|_| kind == SpanKind::Chat),
        error: run.text_or_json("error").filter(|error| !error.is_empty()),
        call_id: tool_call_id(run),
    });
    for raw in run.list("child_runs").unwrap_or_default() {
        out.count_records(1);
        match RawFields::from_raw(raw) {
            Some(child) if depth > 0 => add_run(&child, Some(&id), trace, out, depth - 1),
            _ => out.count_unknown("a child run that is not an object, or too deep"),
        }
    }
}

/// Returns the cost of a run. The decimal number of the SDK is a text in dumps.
fn cost_of(run: &RawFields<'_>) -> Option<f64> {
    let written = || -> Option<f64> { run.text("total_cost")?.trim().parse().ok() };
    let cost = run.number("total_cost").or_else(written);
    cost.filter(|cost| cost.is_finite())
}

/// Returns the id of the call that a tool run belongs to: LangChain's tools return it in their message.
fn tool_call_id<'a>(run: &RawFields<'a>) -> Option<SourceText<'a>> {
    let outputs = run.object("outputs")?;
    let output = outputs.object("output")?;
    let message = output.object("kwargs").unwrap_or(output);
    message.id_text("tool_call_id")
}

fn write_root(run: &RawFields<'_>, trace: &mut Trace<'_>) {
    let meta = &mut trace.meta;
    meta.set_raw("timestamp", run.get("start_time"));
    meta.set_raw("name", run.get("name"));
    meta.set_raw("session_id", run.get("session_id"));
    meta.set_raw("reference_example_id", run.get("reference_example_id"));
    if run.number("total_cost").is_some() {
        meta.set_raw("cost_usd", run.get("total_cost"));
    } else if let Some(cost) = cost_of(run) {
        meta.set("cost_usd", cost);
    }
    let usage = SourceUsage {
        input: run.integer("prompt_tokens"),
        output: run.integer("completion_tokens"),
        total: run.integer("total_tokens"),
        ..SourceUsage::default()
    };
    // Zeros mean that LangSmith counted no tokens.
    let counts = [usage.input, usage.output, usage.total];
    if counts.into_iter().flatten().any(|count| count > 0) {
        meta.set("usage", usage.to_json());
    }
    meta.set_raw("error", run.get("error"));
    if let Some(extra) = run.object("extra")
        && let Some(metadata) = extra.object("metadata")
    {
        meta.merge_readable_fields(&metadata);
    }
    trace.set_tags(run);
    for raw in run.list("feedback").unwrap_or_default() {
        if let Some(feedback) = RawFields::from_raw(raw) {
            read_feedback(&feedback, trace);
        }
    }
    // The statistics have a mean per key. With one feedback, it is that feedback.
    if let Some(stats) = run
        .object("feedback_stats")
        .filter(|_| !run.has("feedback"))
    {
        for (key, raw) in stats.iter() {
            let Some(stat) = RawFields::from_raw(raw) else {
                continue;
            };
            let comment = stat.list("comments").unwrap_or_default();
            let comment = comment.first().map(|raw| text_or_json(raw));
            let category = find_category(&stat);
            let verdict = verdict_with_category(
                "langsmith",
                key,
                category.as_deref(),
                stat.get("avg"),
                comment,
            );
            if verdict.value.is_some() {
                trace.verdicts.push(verdict);
            }
        }
    }
}

/// Returns the category of all feedback with one key, or the number of each category.
fn find_category(stat: &RawFields<'_>) -> Option<Box<RawValue>> {
    let raw = stat.get("values")?;
    let counts = RawFields::from_raw(raw)?;
    let mut names = counts.iter().map(|(name, _)| name);
    let first = names.next()?;
    if names.next().is_some() {
        return Some(raw.to_owned());
    }
    serde_json::value::to_raw_value(first).ok()
}

fn read_feedback(feedback: &RawFields<'_>, trace: &mut Trace<'_>) {
    let key = feedback.text("key").unwrap_or_else(|| "feedback".into());
    // A category has its name in `value`, and its number in `score`.
    let (score, category) = (feedback.get("score"), feedback.get("value"));
    let comment = feedback.text("comment");
    let mut verdict = verdict_with_category("langsmith", &key, category, score, comment);
    let source = feedback.object("feedback_source");
    let kind = source.as_ref().and_then(|source| source.text("type"));
    // Feedback of the app comes from a person; `model` and `api` are programs.
    if kind.as_deref() != Some("app") {
        trace.verdicts.push(verdict);
        return;
    }
    let by = source.and_then(|source| source.text("user_name"));
    // The number of a category is arbitrary, so its name comes first.
    let name = category.and_then(json_string);
    let stated = name.and_then(|name| parse_pass_or_fail(&name));
    // People rate with 0 and 1 in LangSmith's annotation queues.
    let rating = score.or(category).map(RawValue::get);
    verdict.passed = verdict.passed.or(stated).or(match rating {
        Some("1" | "1.0") => Some(true),
        Some("0" | "0.0") => Some(false),
        _ => None,
    });
    keep_rating(
        verdict,
        &trace.id,
        by,
        &mut trace.labels,
        &mut trace.verdicts,
    );
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, read};
    use crate::transcript::TranscriptFile;

    #[test]
    fn root_run_has_the_tokens_and_the_cost_of_its_trace() {
        let metadata_of = |tokens: u64, cost: Value| {
            let run = json!({
                "id": "r1", "trace_id": "r1", "run_type": "chain", "name": "agent",
                "inputs": {"messages": [{"role": "user", "content": "Hi"}]},
                "outputs": {"messages": [{"role": "assistant", "content": "Hello"}]},
                "prompt_tokens": tokens, "completion_tokens": tokens, "total_tokens": 2 * tokens,
                "total_cost": cost,
            });
            let (all, _) = read(format!("{run}\n").as_bytes());
            all[0].as_ref().expect("a trace")["metadata"].clone()
        };
        let metadata = metadata_of(4, json!("0.00025"));
        let usage = json!({"input": 4, "output": 4, "total": 8});
        assert_eq!(metadata["usage"], usage);
        assert_eq!(metadata["cost_usd"], json!(0.00025));
        let metadata = metadata_of(0, json!(0.001));
        assert!(metadata["usage"].is_null(), "{metadata}");
        assert_eq!(metadata["cost_usd"], json!(0.001));
    }

    #[test]
    fn feedback_keeps_its_category_next_to_its_score() {
        let feedback = |key: &str, score: Value, value: Value, kind: &str| json!({"key": key, "score": score, "value": value, "feedback_source": {"type": kind}});
        let run = |own: Value| {
            let mut run = json!({
                "id": "r1", "trace_id": "r1", "run_type": "chain", "name": "agent",
                "inputs": {"messages": [{"role": "user", "content": "Hi"}]},
                "outputs": {"messages": [{"role": "assistant", "content": "Hello"}]},
            });
            let all = own.as_object().expect("fields").clone();
            run.as_object_mut().expect("a run").extend(all);
            format!("{run}\n")
        };
        let all = [
            feedback("tone", json!(0.5), json!("formal"), "model"),
            feedback("stars", json!(4), json!("great"), "model"),
            feedback("fix", json!(true), json!({"was": "4"}), "model"),
            feedback("style", json!(0.25), json!("formal"), "app"),
            feedback("right", json!(1), json!("no"), "app"),
        ];
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("runs.jsonl");
        std::fs::write(&path, run(json!({"feedback": all}))).expect("written");
        let mut file = TranscriptFile::open(&path).expect("a known format");
        let block = file.next_block().expect("a block").expect("transcripts");
        let (record, bytes) = block.records().next().expect("a transcript");
        let native: Value = serde_json::from_slice(bytes).expect("JSON");
        assert_eq!(
            native["verdicts"],
            json!([
                {"judge": "langsmith", "eval": "tone", "score": 0.5, "value": "formal"},
                {"judge": "langsmith", "eval": "stars", "value": {"label": "great", "score": 4}},
                {"judge": "langsmith", "eval": "fix", "passed": true, "value": {"was": "4"}},
                {"judge": "langsmith", "eval": "style", "score": 0.25, "value": "formal"},
            ])
        );
        let labels = record.labels.iter();
        let labels: Vec<_> = labels
            .map(|label| (&*label.eval, label.passed, label.score))
            .collect();
        assert_eq!(
            labels,
            [
                ("style", None, Some(0.25)),
                ("right", Some(false), Some(1.0))
            ]
        );
        let stats = json!({
            "tone": {"n": 1, "avg": 0.5, "values": {"formal": 1}},
            "topic": {"n": 3, "avg": null, "values": {"food": 2, "art": 1}},
            "plain": {"n": 1, "avg": 1.0, "values": {}},
        });
        let (all, _) = read(run(json!({"feedback_stats": stats})).as_bytes());
        assert_eq!(
            all[0].as_ref().expect("a trace")["verdicts"],
            json!([
                {"judge": "langsmith", "eval": "tone", "score": 0.5, "value": "formal"},
                {"judge": "langsmith", "eval": "topic", "value": {"art": 1, "food": 2}},
                {"judge": "langsmith", "eval": "plain", "score": 1.0, "value": 1.0},
            ])
        );
    }

    #[test]
    fn call_in_two_shapes_is_one_call() {
        let message = |class: &str, kwargs: serde_json::Value| json!({"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", class], "kwargs": kwargs});
        let question = message("HumanMessage", json!({"content": "Weather?"}));
        let reply = message(
            "AIMessage",
            json!({"content": "",
                "additional_kwargs": {"tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "get", "arguments": "{}"}},
                ]},
                "tool_calls": [{"id": "c1", "name": "get", "args": {}, "type": "tool_call"}]}),
        );
        let run = json!({"id": "r", "trace_id": "r", "dotted_order": "1", "run_type": "llm", "name": "m",
            "inputs": {"messages": [[question]]},
            "outputs": {"generations": [[{"text": "", "message": reply}]]}});
        let (all, _) = read(format!("{run}\n").as_bytes());
        assert_eq!(
            lines_of_each(&all),
            [["user Weather?", "assistant get({})"]]
        );
    }
}
