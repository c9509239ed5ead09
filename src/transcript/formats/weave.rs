//! Calls of Weights & Biases Weave: the reply of `calls/stream_query`, exports, and dumps of the SDK.
//!
//! | in the file | becomes |
//! |---|---|
//! | the calls of a trace, wherever they are | a trace, as `trace_spans.rs` builds it |
//! | a call of `Evaluation.predict_and_score` with those below it | a transcript, with its scores as verdicts |
//! | calls of scorers, and those of an evaluation that are not about one example | counted |
//! | feedback | labels of people (annotations, reactions) and verdicts of the judge `weave` |
//!
//! Does not read objects and tables: a reference such as `weave:///…` stays a text.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::SourceUsage;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::super::{RecordSpan, TranscriptError};
use super::record_readers::{Grouping, open_element_groups, parse_lines};
use super::trace_spans::{SpanKind, Trace, TraceSpan, parse_time};
use super::transcript_builder::{is_boolean_or_number, keep_rating, verdict_of};
use crate::model::SourceText;

/// The operation that runs a model on one example of an evaluation, and scores it.
const EXAMPLE_OP: &str = "Evaluation.predict_and_score";

/// The beginnings of the names of operations that are calls of a model's API.
const MODEL_OPS: [&str; 12] = [
    "anthropic.",
    "bedrock",
    "cerebras.",
    "cohere.",
    "google.",
    "groq.",
    "langchain.Llm",
    "litellm.",
    "mistralai.",
    "openai.",
    "together.",
    "vertexai.",
];

/// Returns true if the first record is a call, or has a list of calls.
pub(super) fn is_calls(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_call = |value: &Value| {
        let texts = ["id", "op_name", "trace_id", "started_at"];
        let has_texts = texts.iter().all(|key| value[*key].is_string());
        let has_data = value["inputs"].is_object() || value["attributes"].is_object();
        has_texts && has_data && value["span_id"].is_null()
    };
    is_call(record) || is_call(&record["calls"][0])
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    open_element_groups(
        source,
        preview,
        &["calls"],
        Grouping {
            key: call_trace,
            parse: parse_calls,
            without_group: "a record that is not a call",
        },
    )
}

fn call_trace(line: &[u8]) -> Option<String> {
    let fields = RawFields::from_bytes(line)?;
    fields.text("op_name")?;
    Some(fields.id_text("trace_id")?.0.into_owned())
}

fn parse_calls(lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let rows = parse_lines(lines, out);
    let calls: Vec<&RawFields<'_>> = rows.iter().map(|(_, call)| call).collect();
    let owners = find_owners(&calls);
    let is_evaluation = owners.iter().any(Option::is_some);
    if !is_evaluation {
        let id = calls.first().and_then(|call| call.id_text("trace_id"));
        let mut trace = begin(id);
        for call in &calls {
            add_call(call, false, &mut trace);
        }
        return trace.finish(cx, out);
    }
    // The examples and the scorers in the order of their calls.
    let mut examples: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    for (at, owner) in owners.iter().enumerate() {
        let Some(owner) = *owner else {
            out.count_unknown("a call of an evaluation that is not about one example");
            continue;
        };
        let place = *places.entry(owner).or_insert(examples.len());
        if place == examples.len() {
            examples.push((owner, Vec::new()));
        }
        examples[place].1.push(at);
    }
    let start = out.record_count();
    for (owner, members) in examples {
        if op_name(calls[owner]) == EXAMPLE_OP {
            // The transcripts of the calls differ in their part.
            let part = u32::try_from(out.record_count() - start).unwrap_or(u32::MAX);
            let span = RecordSpan { part, ..cx.span };
            add_example(calls[owner], &members, &calls, RecordCx { span, ..cx }, out);
        } else {
            for _ in members {
                out.count_unknown("a call of a scorer");
            }
        }
    }
}

/// Returns an empty trace.
fn begin(id: Option<SourceText<'_>>) -> Trace<'static> {
    Trace {
        source: "weave",
        id: id.unwrap_or_default().0.into_owned(),
        ..Trace::default()
    }
}

/// Returns, for each call, the call of the example or of the scorer to which it belongs.
fn find_owners(calls: &[&RawFields<'_>]) -> Vec<Option<usize>> {
    let ids = calls
        .iter()
        .enumerate()
        .filter_map(|(at, call)| Some((call.id_text("id")?.0.into_owned(), at)));
    let places: HashMap<String, usize> = ids.collect();
    let parents: Vec<Option<usize>> = calls
        .iter()
        .map(|call| places.get(&*call.id_text("parent_id")?).copied())
        .collect();
    let examples: HashMap<usize, HashSet<String>> = calls
        .iter()
        .enumerate()
        .filter(|(_, call)| op_name(call) == EXAMPLE_OP)
        .map(|(at, call)| (at, scorer_names(call)))
        .collect();
    let is_scorer = |at: usize| {
        let name = op_name(calls[at]);
        let scorers = parents[at].and_then(|parent| examples.get(&parent));
        let short = name.strip_suffix(".score");
        scorers.is_some_and(|all| short.is_some() || all.contains(&name))
    };
    let mut owners: Vec<Option<usize>> = (0..calls.len())
        .map(|at| (examples.contains_key(&at) || is_scorer(at)).then_some(at))
        .collect();
    let mut is_known: Vec<bool> = owners.iter().map(Option::is_some).collect();
    for at in 0..calls.len() {
        let (mut path, mut next) = (Vec::new(), Some(at));
        // A call is known from here on, so a cycle of parents ends.
        while let Some(here) = next.filter(|here| !is_known[*here]) {
            is_known[here] = true;
            path.push(here);
            next = parents[here];
        }
        let owner = next.and_then(|here| owners[here]);
        for here in path {
            owners[here] = owner;
        }
    }
    owners
}

/// Returns the names of the scorers that scored an example.
fn scorer_names(example: &RawFields<'_>) -> HashSet<String> {
    let result = example.object("output").unwrap_or_default();
    let scores = result.object("scores").unwrap_or_default();
    scores.iter().map(|(name, _)| name.to_owned()).collect()
}

/// Adds the transcripts of one example of an evaluation.
fn add_example(
    example: &RawFields<'_>,
    members: &[usize],
    calls: &[&RawFields<'_>],
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) {
    let id = example.id_text("id");
    let mut trace = begin(id.clone());
    let result = example.object("output").unwrap_or_default();
    let scores = result.object("scores").unwrap_or_default();
    for (scorer, score) in scores.iter() {
        add_score(scorer, score, &mut trace);
    }
    for at in members {
        let call = calls[*at];
        let is_example = call.id_text("id") == id;
        add_call(call, is_example, &mut trace);
    }
    trace.finish(cx, out);
}

/// Returns the name of an operation without the address of its project and its digest.
fn op_name(call: &RawFields<'_>) -> String {
    let name = call.text("op_name").unwrap_or_default();
    let Some((_, own)) = name.split_once("/op/") else {
        return name.0.into_owned();
    };
    own.split(':').next().unwrap_or(own).to_owned()
}

fn add_call<'a>(call: &RawFields<'a>, is_example: bool, trace: &mut Trace<'a>) {
    let parent = call.id_text("parent_id").filter(|_| !is_example);
    let name = op_name(call);
    if parent.is_none() {
        write_root(call, &name, trace);
    }
    add_feedback(call, trace);
    let inputs = call.object("inputs").unwrap_or_default();
    let kind = span_kind(call, &name, &inputs);
    let summary = call.object("summary").unwrap_or_default();
    let usage = summary.object("usage").unwrap_or_default();
    // The key is the model that replied.
    let mut models = usage.iter();
    let model = models
        .next()
        .filter(|_| models.next().is_none() && kind == SpanKind::Chat);
    let counts = model.and_then(|(_, counts)| RawFields::from_raw(counts));
    let counts = counts.unwrap_or_default();
    let count = |keys: [&str; 2]| keys.iter().find_map(|key| counts.integer(key));
    let output = call.get("output");
    let result = call.object("output").unwrap_or_default();
    trace.spans.push(TraceSpan {
        id: call.id_text("id").unwrap_or_default(),
        parent,
        kind: if is_example { SpanKind::Step } else { kind },
        start: parse_time(call.get("started_at")),
        end: parse_time(call.get("ended_at")),
        input: if kind == SpanKind::Chat {
            call.get("inputs")
        } else {
            own_input(call.get("inputs"), &inputs)
        },
        output: if is_example {
            result.get("output")
        } else {
            output
        },
        model: model
            .map(|(model, _)| SourceText::from(model.to_owned()))
            .or_else(|| inputs.text("model").filter(|_| kind == SpanKind::Chat)),
        usage: SourceUsage {
            input: count(["prompt_tokens", "input_tokens"]),
            output: count(["completion_tokens", "output_tokens"]),
            total: counts.integer("total_tokens"),
            ..SourceUsage::default()
        },
        error: call
            .text_or_json("exception")
            .filter(|error| !error.is_empty()),
        name: SourceText::from(name),
        ..TraceSpan::default()
    });
}

fn span_kind(call: &RawFields<'_>, name: &str, inputs: &RawFields<'_>) -> SpanKind {
    let attributes = call.object("attributes").unwrap_or_default();
    let own = attributes.object("weave").unwrap_or_default();
    let kind = own.text("kind").or_else(|| attributes.text("kind"));
    match kind.as_deref() {
        Some("llm") => return SpanKind::Chat,
        Some("tool") => return SpanKind::Tool,
        Some("agent") => return SpanKind::Agent,
        _ => {}
    }
    let is_api = MODEL_OPS.iter().any(|prefix| name.starts_with(prefix));
    let has_messages = ["messages", "contents"]
        .iter()
        .any(|key| inputs.list(key).is_some_and(|all| !all.is_empty()));
    if is_api || (has_messages && call.has("output")) {
        SpanKind::Chat
    } else {
        SpanKind::Step
    }
}

/// Returns the input of a function: its only argument, else all of them. Methods have their object as an argument.
fn own_input<'a>(whole: Option<&'a RawValue>, inputs: &RawFields<'a>) -> Option<&'a RawValue> {
    let mut own = inputs
        .iter()
        .filter(|(key, _)| !matches!(*key, "self" | "model"));
    match (own.next(), own.next()) {
        (Some((_, only)), None) => Some(only),
        _ => whole,
    }
}

fn write_root(call: &RawFields<'_>, name: &str, trace: &mut Trace<'_>) {
    let meta = &mut trace.meta;
    meta.set_raw("timestamp", call.get("started_at"));
    meta.set("name", name);
    meta.set_raw("display_name", call.get("display_name"));
    meta.set_raw("session_id", call.get("thread_id"));
    meta.set_raw("user_id", call.get("wb_user_id"));
    meta.set_raw("error", call.get("exception"));
    let attributes = call.object("attributes").unwrap_or_default();
    for (key, value) in attributes.iter() {
        // The versions of the program and its system.
        if key != "weave" && !meta.has(key) {
            meta.set_readable(key, Some(value));
        }
    }
}

/// Adds the score of a scorer: a value, or an object with `passed` or one value.
fn add_score(scorer: &str, score: &RawValue, trace: &mut Trace<'_>) {
    let Some(fields) = RawFields::from_raw(score) else {
        let verdict = verdict_of("weave", scorer, Some(score), None);
        if verdict.value.is_some() {
            trace.verdicts.push(verdict);
        }
        return;
    };
    let reasons = ["reason", "reasoning", "explanation", "rationale"];
    for (key, value) in fields.iter() {
        if !is_boolean_or_number(value) {
            continue;
        }
        let reason = reasons.iter().find_map(|key| fields.text(key));
        let eval = format!("{scorer}.{key}");
        trace
            .verdicts
            .push(verdict_of("weave", &eval, Some(value), reason));
    }
}

fn add_feedback(call: &RawFields<'_>, trace: &mut Trace<'_>) {
    let summary = call.object("summary").unwrap_or_default();
    let own = summary.object("weave").unwrap_or_default();
    let all = own.list("feedback").or_else(|| call.list("feedback"));
    for raw in all.unwrap_or_default() {
        let feedback = RawFields::from_raw(raw).unwrap_or_default();
        let payload = feedback.object("payload").unwrap_or_default();
        let kind = feedback.text("feedback_type").unwrap_or_default();
        let by = || {
            feedback
                .text("creator")
                .or_else(|| feedback.text("wb_user_id"))
        };
        if let Some(scorer) = kind.strip_prefix("wandb.runnable.") {
            if let Some(score) = payload.get("output") {
                add_score(scorer, score, trace);
            }
        } else if let Some(name) = kind.strip_prefix("wandb.annotation.") {
            let rating = verdict_of("weave", name, payload.get("value"), None);
            let id = trace.id.clone();
            keep_rating(rating, &id, by(), &mut trace.labels, &mut trace.verdicts);
        } else if kind.starts_with("wandb.reaction.") {
            let mut rating = verdict_of("weave", "reaction", payload.get("emoji"), None);
            rating.passed = match payload.text("emoji").as_deref() {
                Some("👍") => Some(true),
                Some("👎") => Some(false),
                _ => None,
            };
            let id = trace.id.clone();
            keep_rating(rating, &id, by(), &mut trace.labels, &mut trace.verdicts);
        } else if let Some(note) = payload.get("note") {
            trace.meta.set_raw("note", Some(note));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, read};

    fn call(id: &str, parent: Option<&str>, op: &str, inputs: &Value, output: &Value) -> Value {
        json!({"id": id, "project_id": "e/p", "op_name": format!("weave:///e/p/op/{op}:Xa1"), "trace_id": "t",
            "parent_id": parent, "started_at": "2025-01-01T00:00:00Z", "ended_at": "2025-01-01T00:00:01Z",
            "attributes": {}, "inputs": inputs, "output": output, "summary": {}})
    }

    #[test]
    fn each_example_of_an_evaluation_is_a_transcript_with_its_scores() {
        let example = |id: &str, question: &str, answer: &str, score: bool| {
            let scores =
                json!({"exact": {"correct": score, "reason": "read"}, "length": 0.4, "note": "x"});
            call(
                id,
                Some("root"),
                "Evaluation.predict_and_score",
                &json!({"self": "weave:///e/p/object/E:1", "model": "weave:///e/p/object/M:1", "example": {"question": question}}),
                &json!({"output": answer, "scores": scores, "model_latency": 0.1}),
            )
        };
        let chat = |id: &str, parent: &str, question: &str, answer: &str| {
            let messages =
                json!({"model": "m", "messages": [{"role": "user", "content": question}]});
            let reply = json!({"choices": [{"message": {"role": "assistant", "content": answer}}]});
            call(
                id,
                Some(parent),
                "openai.chat.completions.create",
                &messages,
                &reply,
            )
        };
        let calls = json!([
            call("root", None, "Evaluation.evaluate", &json!({}), &json!({})),
            example("p1", "One?", "1", true),
            example("p2", "Two?", "2", false),
            chat("c1", "p1", "One?", "1"),
            call(
                "s1",
                Some("p1"),
                "exact",
                &json!({"output": "1"}),
                &json!({"correct": true})
            ),
            chat("judge", "s1", "Is it right?", "yes"),
        ]);
        let (all, tally) = read(calls.to_string().as_bytes());
        let lines = lines_of_each(&all);
        assert_eq!(lines[0], ["user One?", "assistant 1"]);
        assert_eq!(lines[lines.len() - 1], ["user Two?", "assistant 2"]);
        let (first, last) = (&all[0], &all[all.len() - 1]);
        let (first, last) = (first.as_ref().expect("one"), last.as_ref().expect("one"));
        assert_eq!((&first["id"], &last["id"]), (&json!("p1"), &json!("p2")));
        let verdict = |at: usize, of: &Value| {
            let one = &of["verdicts"][at];
            (
                one["eval"].clone(),
                one["passed"].as_bool(),
                one["score"].as_f64(),
            )
        };
        assert_eq!(
            verdict(0, first),
            (json!("exact.correct"), Some(true), None)
        );
        assert_eq!(
            verdict(0, last),
            (json!("exact.correct"), Some(false), None)
        );
        assert_eq!(verdict(1, first), (json!("length"), None, Some(0.4)));
        assert_eq!(first["verdicts"][0]["reasoning"], "read");
        assert_eq!(tally.unknown["a call of a scorer"], 2);
        let kind = "a call of an evaluation that is not about one example";
        assert_eq!(tally.unknown[kind], 1);
    }

    #[test]
    fn cycle_of_parents_ends() {
        let input = json!({"messages": [{"role": "user", "content": "Hi"}]});
        let calls = json!({"calls": [
            call("a", Some("b"), "chat", &input, &json!("Hello")),
            call("b", Some("a"), "Evaluation.summarize", &json!({}), &json!(null)),
        ]});
        let (all, _) = read(calls.to_string().as_bytes());
        assert_eq!(lines_of_each(&all), [["user Hi", "assistant Hello"]]);
    }
}
