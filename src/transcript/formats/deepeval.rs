//! DeepEval's test runs (`test_run_*.json`, `.latest_run_full.json`) and traces.
//!
//! Responsible for one test case per transcript, read one at a time, and for one trace per record. Metrics are verdicts
//! of the judge `deepeval`: pass or fail, the score, and the reason. Retrieved context and the expected output are
//! metadata. The trace of a test case is not read: its question and answer are those of the test case.

use serde_json::Value;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::{RawFields, truncate_to_count};
use super::super::metadata::SourceUsage;
use super::super::native::text_or_json;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::deepeval_inputs::complete_inputs;
use super::foreign_message::result_text;
use super::record_readers::{open_elements, open_records};
use super::trace_spans::{SpanKind, Trace, TraceSpan, parse_time};
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, role_of, text_part, verdict_of,
};
use crate::model::{MessageRole, SourceText, SourceVerdict};

/// The limit on the completed inputs of a trace, as a multiple of its size.
const MAX_COPIES: usize = 8;

const SPAN_LISTS: [(&str, SpanKind); 5] = [
    ("baseSpans", SpanKind::Step),
    ("agentSpans", SpanKind::Agent),
    ("llmSpans", SpanKind::Chat),
    ("retrieverSpans", SpanKind::Step),
    ("toolSpans", SpanKind::Tool),
];

/// Returns true if the first record is a test run.
pub(super) fn is_test_run(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_run = |value: &Value| {
        ["testCases", "conversationalTestCases"]
            .iter()
            .any(|key| value[*key].is_array())
    };
    is_run(record) || is_run(&record["testRunData"])
}

/// Returns true if the first record is a trace.
pub(super) fn is_trace(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| s.has("llmSpans") && (s.has("agentSpans") || s.has("toolSpans")))
}

pub(super) fn open_test_run(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let record = preview.first_outline();
    let outer = &record["testRunData"];
    let is_empty = |value: &Value| value["testCases"].as_array().is_none_or(Vec::is_empty);
    // A run has test cases of one kind; the other list is empty.
    let path: &[&[&str]] = match (outer.is_object(), is_empty(record) && is_empty(outer)) {
        (true, false) => &[&["testRunData", "testCases"]],
        (true, true) => &[&["testRunData", "conversationalTestCases"]],
        (false, false) => &[&["testCases"]],
        (false, true) => &[&["conversationalTestCases"], &["testCases"]],
    };
    open_elements(source, preview, path, parse_test_case)
}

pub(super) fn open_trace(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_trace)
}

fn parse_test_case(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let name = fields.text("name").unwrap_or_default();
    // Names repeat if a test runs over several goldens, so the order is part of the id.
    let id = match (name.is_empty(), fields.integer("order")) {
        (false, Some(order)) => format!("{}:{order}", &*name),
        _ => name.to_string(),
    };
    let mut built = TranscriptBuilder::new("deepeval", Some(id.into()));
    let turns = fields.list("turns");
    if let Some(turns) = turns {
        for raw in turns {
            let turn = RawFields::from_raw(raw).unwrap_or_default();
            let role = turn
                .text("role")
                .map_or(MessageRole::User, |role| role_of(&role));
            add_calls(&turn, &mut built);
            let text = turn.text("content").unwrap_or_default();
            built.push(role, vec![text_part(&text)]);
        }
    } else {
        if let Some(input) = fields.get("input") {
            built.push_text(MessageRole::User, &text_or_json(input));
        }
        add_calls(&fields, &mut built);
        match fields.get("actualOutput") {
            Some(output) => {
                built.push(
                    MessageRole::Assistant,
                    vec![text_part(&text_or_json(output))],
                );
            }
            None => out.count_missing("the answer (`actualOutput`) is missing"),
        }
    }
    let metrics = fields
        .list("metricsData")
        .or_else(|| fields.list("metricsMetadata"));
    for raw in metrics.unwrap_or_default() {
        if let Some(metric) = RawFields::from_raw(raw) {
            built.push_verdict(read_metric(&metric));
        }
    }
    let seconds = fields.number("runDuration");
    if let Some(seconds) = seconds {
        built.meta.set("latency_ms", seconds * 1000.0);
    }
    for key in [
        "expectedOutput",
        "context",
        "retrievalContext",
        "expectedTools",
        "scenario",
        "expectedOutcome",
        "comments",
        "tags",
        "success",
    ] {
        built.meta.set_readable(key, fields.get(key));
    }
    if let Some(metadata) = fields.object("additionalMetadata") {
        built.meta.merge_readable_fields(&metadata);
    }
    if fields.object("trace").is_some() {
        out.count_missing("the trace of a test case is not read");
    }
    built.finish(out);
    Ok(())
}

fn add_calls(fields: &RawFields<'_>, built: &mut TranscriptBuilder) {
    for raw in fields.list("toolsCalled").unwrap_or_default() {
        let call = RawFields::from_raw(raw).unwrap_or_default();
        let name = call.text("name").unwrap_or_default();
        let arguments = call_arguments(call.get_first(&["inputParameters", "input"]));
        built.push(MessageRole::Assistant, Vec::new());
        built.push_call("", &name, arguments);
        if let Some(output) = call.get("output") {
            built.push_result("", result_text(output), None);
        }
    }
}

fn read_metric(metric: &RawFields<'_>) -> SourceVerdict {
    let name = metric
        .text("name")
        .or_else(|| metric.text("metric"))
        .unwrap_or_default();
    let mut verdict = verdict_of(
        "deepeval",
        &name,
        metric.get("score"),
        metric.text("reason"),
    );
    verdict.passed = metric.flag("success");
    if let Some(error) = metric.filled_text("error") {
        verdict.error = Some(error.0.into_owned());
        verdict.passed = None;
        verdict.score = None;
    }
    verdict
}

fn parse_trace(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let completed = complete_inputs(&fields, MAX_COPIES * record.len());
    let mut trace = Trace {
        source: "deepeval",
        id: fields.id_text("uuid").unwrap_or_default().0.into_owned(),
        ..Trace::default()
    };
    trace.meta.set_raw("timestamp", fields.get("startTime"));
    trace.meta.set_raw("name", fields.get("name"));
    if let Some(metadata) = fields.object("metadata") {
        trace.meta.merge_readable_fields(&metadata);
    }
    for (key, kind) in SPAN_LISTS {
        let spans = fields.list(key).unwrap_or_default();
        for (at, raw) in spans.into_iter().enumerate() {
            let Some(span) = RawFields::from_raw(raw) else {
                out.count_unknown("a span that is not an object");
                continue;
            };
            let mut span = read_span(&span, kind);
            if kind == SpanKind::Chat
                && let Some(Some(input)) = completed.get(at)
            {
                span.input = Some(&**input);
            }
            trace.spans.push(span);
        }
    }
    out.count_records(trace.spans.len() as u64);
    let metrics = fields.list("metricsData").unwrap_or_default();
    for raw in metrics {
        if let Some(metric) = RawFields::from_raw(raw) {
            trace.verdicts.push(read_metric(&metric));
        }
    }
    trace.finish(cx, out);
    Ok(())
}

fn read_span<'a>(span: &RawFields<'a>, kind: SpanKind) -> TraceSpan<'a> {
    let count = |key: &str| span.number(key).map(truncate_to_count);
    let usage = SourceUsage {
        input: count("inputTokenCount"),
        output: count("outputTokenCount"),
        ..SourceUsage::default()
    };
    // The integration of the OpenAI Agents SDK writes `DESCRIPTION: TOOL` as the name of a tool's span.
    let name = span.text("name").unwrap_or_default();
    let described = span
        .text("description")
        .filter(|text| kind == SpanKind::Tool && !text.is_empty());
    let tool = described.and_then(|text| {
        name.strip_prefix(&format!("{}: ", &*text))
            .map(str::to_owned)
    });
    // The integration of Strands writes the name of OpenTelemetry's operation before that of the tool.
    let tool = tool.or_else(|| {
        let operation = name.strip_prefix("execute_tool ");
        operation
            .filter(|_| kind == SpanKind::Tool)
            .map(str::to_owned)
    });
    let failed = span.text("status").as_deref() == Some("ERRORED");
    let error = span
        .text("error")
        .or_else(|| failed.then(|| "the span failed".into()));
    TraceSpan {
        id: span.id_text("uuid").unwrap_or_default(),
        parent: span.id_text("parentUuid"),
        name: tool.map_or(name, SourceText::from),
        kind,
        start: parse_time(span.get("startTime")),
        end: parse_time(span.get("endTime")),
        input: span.get("input"),
        output: span.get("output"),
        model: span.text("model"),
        usage,
        // DeepEval writes prices per token, and no cost.
        cost: None,
        error,
        call_id: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    #[test]
    fn span_of_a_described_tool_finds_its_call() {
        let time = |second: u8| format!("2026-01-29T14:38:0{second}.000Z");
        let trace = json!({
            "uuid": "t", "baseSpans": [], "agentSpans": [],
            "llmSpans": [{
                "uuid": "s", "name": "m", "type": "llm", "startTime": time(1), "endTime": time(2),
                "input": [{"role": "user", "content": "Weather?"}],
                "output": {"call_id": "c1", "name": "get", "arguments": "{}"},
            }],
            "toolSpans": [{
                "uuid": "x", "name": "Function tool: get", "description": "Function tool", "type": "tool",
                "startTime": time(2), "endTime": time(3), "input": {}, "output": "Sunny",
            }],
        });
        let (all, tally) = read(format!("{trace}\n").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(
            message_lines(all[0].as_ref().expect("a transcript")),
            ["user Weather?", "assistant get({})", "tool Sunny"]
        );
    }

    #[test]
    fn operation_is_not_a_part_of_the_name_of_a_tool() {
        let time = |second: u8| format!("2026-01-29T14:38:0{second}.000Z");
        let trace = json!({
            "uuid": "t", "baseSpans": [], "agentSpans": [],
            "llmSpans": [{
                "uuid": "s", "name": "chat", "type": "llm", "startTime": time(3), "endTime": time(4),
                "input": "Which time?", "output": "Ten.",
            }],
            "toolSpans": [{
                "uuid": "x", "name": "execute_tool get_time", "type": "tool",
                "startTime": time(1), "endTime": time(2), "input": null, "output": "10:00",
            }],
        });
        let (all, _) = read(format!("{trace}\n").as_bytes());
        let lines = message_lines(all[0].as_ref().expect("a transcript"));
        assert_eq!(lines[1], "assistant get_time({})", "{lines:?}");
    }
}
