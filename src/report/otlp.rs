//! Judge traces as OpenTelemetry spans: one trace per cell, in the JSON encoding of OTLP.
//!
//! Follows the semantic conventions for generative AI: a model call is a `chat` span, a tool call an `execute_tool` span,
//! and the verdict a `gen_ai.evaluation.result` event of the root span. Fields without a convention begin with `dicta.`.
//! Does not send anything.

use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::judge_trace::{read_piece, read_rope};
use crate::event::{BlobSource, CallState, CellState, RunHeader, TurnState};
use crate::model::{CellResult, Digest, Millis, ProviderKind, RawJson, SUBMIT_VERDICT, StopReason};

/// The kind of a span without a remote side.
const INTERNAL: u32 = 1;
/// The kind of a span that calls a server.
const CLIENT: u32 = 3;
/// The status of a span that ended in an error.
const ERROR: u32 = 2;

/// A judged cell to export.
pub struct ExportedCell {
    /// The name of the cell.
    pub name: String,
    /// The header of the run that judged it.
    pub header: Arc<RunHeader>,
    /// The state of the cell in that run.
    pub cell: CellState,
    /// True if the judge saw the transcript as an example, so that the verdict measures nothing.
    pub is_shot: bool,
    /// The texts of that run.
    pub blobs: Arc<dyn BlobSource>,
}

/// Writes the traces of cells as one `ExportTraceServiceRequest`.
pub fn write_otlp(out: &mut dyn Write, cells: &[ExportedCell]) -> io::Result<()> {
    let spans: Vec<Value> = cells.iter().flat_map(build_spans).collect();
    let version = cells
        .first()
        .map_or(env!("CARGO_PKG_VERSION"), |cell| cell.header.dicta.as_str());
    let document = json!({"resourceSpans": [{
        "resource": {"attributes": [attribute("service.name", &json!("dicta"))]},
        "scopeSpans": [{"scope": {"name": "dicta", "version": version}, "spans": spans}],
    }]});
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
}

/// Returns an attribute in the encoding of OTLP. Integers are texts there.
fn attribute(key: &str, value: &Value) -> Value {
    let encoded = match value {
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => json!({"intValue": whole.to_string()}),
            None => json!({"doubleValue": number.as_f64()}),
        },
        Value::Array(items) => {
            let items: Vec<Value> = items
                .iter()
                .map(|item| json!({"stringValue": item.as_str().unwrap_or_default()}))
                .collect();
            json!({"arrayValue": {"values": items}})
        }
        Value::String(text) => json!({"stringValue": text}),
        other => json!({"stringValue": other.to_string()}),
    };
    json!({"key": key, "value": encoded})
}

/// The attributes of a span.
#[derive(Default)]
struct Attributes(Vec<Value>);

impl Attributes {
    fn add(&mut self, key: &str, value: impl Into<Value>) {
        self.0.push(attribute(key, &value.into()));
    }

    /// Adds an attribute with a value that may be unknown.
    fn add_known<T: Into<Value>>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }
}

/// The spans of one cell under construction.
struct CellSpans<'c> {
    of: &'c ExportedCell,
    trace_id: String,
    root_id: String,
    /// The start of the run in nanoseconds since 1970.
    began: i128,
    spans: Vec<Value>,
}

fn build_spans(of: &ExportedCell) -> Vec<Value> {
    let run = of.header.run.0.as_bytes();
    // Ids follow from the names, so that two exports of one cell are one trace.
    let digest = Digest::hash_parts([b"trace".as_slice(), run, of.name.as_bytes()]);
    let started: Option<jiff::Timestamp> = of.header.started.0.parse().ok();
    let mut building = CellSpans {
        trace_id: digest.0[..32].to_owned(),
        root_id: digest.0[32..48].to_owned(),
        began: started.map_or(0, jiff::Timestamp::as_nanosecond),
        of,
        spans: Vec::new(),
    };
    building.push_root();
    let turns = of.cell.judge_trace.iter().zip(1..);
    // A request that a person did not release is not a model call.
    for (turn, number) in turns.filter(|(turn, _)| !turn.unsent) {
        building.push_turn(turn, number);
    }
    building.spans
}

impl CellSpans<'_> {
    /// Returns a time of the run in nanoseconds since 1970, as OTLP writes it.
    fn time(&self, at: Millis) -> String {
        (self.began + i128::from(at.0) * 1_000_000).to_string()
    }

    fn span(
        &self,
        (id, name, kind): (&str, String, u32),
        (from, to): (Millis, Millis),
        attributes: Attributes,
    ) -> Map<String, Value> {
        let mut span = Map::new();
        span.insert("traceId".to_owned(), json!(self.trace_id));
        span.insert("spanId".to_owned(), json!(id));
        if id != self.root_id {
            span.insert("parentSpanId".to_owned(), json!(self.root_id));
        }
        span.insert("name".to_owned(), json!(name));
        span.insert("kind".to_owned(), json!(kind));
        span.insert("startTimeUnixNano".to_owned(), json!(self.time(from)));
        span.insert("endTimeUnixNano".to_owned(), json!(self.time(to.max(from))));
        span.insert("attributes".to_owned(), Value::Array(attributes.0));
        span
    }

    /// Returns the id of a child span.
    fn child_id(&self, part: &str) -> String {
        let digest = Digest::hash_parts([self.trace_id.as_bytes(), part.as_bytes()]);
        digest.0[..16].to_owned()
    }

    fn push_root(&mut self) {
        let cell = &self.of.cell;
        let key = cell.planned.map(|planned| planned.key);
        let eval = key.and_then(|key| self.of.header.evals.get(key.eval as usize));
        let from = cell.started.unwrap_or_default();
        let to = cell.ended.unwrap_or(from);
        let mut attributes = Attributes::default();
        attributes.add("gen_ai.operation.name", "invoke_agent");
        attributes.add("dicta.run", self.of.header.run.0.as_str());
        attributes.add("dicta.cell", self.of.name.as_str());
        if let Some(judge) = self.judge() {
            attributes.add("gen_ai.agent.name", judge.name.as_str());
            attributes.add("gen_ai.provider.name", provider_name(judge.provider));
            // Built-in judges have no model.
            if !judge.model.is_empty() {
                attributes.add("gen_ai.request.model", judge.model.as_str());
            }
        }
        if cell.by_human {
            attributes.add("dicta.edited_by_hand", true);
        }
        if self.of.is_shot {
            attributes.add("dicta.shot", true);
        }
        let name = eval.map_or("judge", |eval| eval.id.as_str());
        let mut span = self.span(
            (&self.root_id, format!("judge {name}"), INTERNAL),
            (from, to),
            attributes,
        );
        if let Some(result) = cell.result.as_deref() {
            let event = self.evaluation_event(name, result, to);
            span.insert("events".to_owned(), json!([event]));
            if result.outcome.is_error() {
                let why = result.error.as_deref().unwrap_or(&result.explanation);
                span.insert("status".to_owned(), json!({"code": ERROR, "message": why}));
            }
        }
        self.spans.push(Value::Object(span));
    }

    /// Returns the verdict as an event. An error has a type, and neither a label nor a score.
    fn evaluation_event(&self, eval: &str, result: &CellResult, at: Millis) -> Value {
        let mut attributes = Attributes::default();
        attributes.add("gen_ai.evaluation.name", eval);
        if result.outcome.is_error() {
            attributes.add("error.type", result.outcome.as_str());
        } else {
            attributes.add("gen_ai.evaluation.score.label", result.outcome.as_str());
            attributes.add_known("gen_ai.evaluation.score.value", result.score);
        }
        let why = result.error.as_deref().unwrap_or(&result.explanation);
        attributes.add("gen_ai.evaluation.explanation", why);
        if result.by_human {
            attributes.add("dicta.edited_by_hand", true);
        }
        if self.of.is_shot {
            attributes.add("dicta.shot", true);
        }
        json!({
            "name": "gen_ai.evaluation.result",
            "timeUnixNano": self.time(at),
            "attributes": attributes.0,
        })
    }

    fn judge(&self) -> Option<&crate::model::JudgeConfig> {
        let judge = self.of.cell.planned?.key.judge?;
        Some(&self.of.header.judges.get(judge as usize)?.config)
    }

    fn push_turn(&mut self, turn: &TurnState, number: usize) {
        let blobs = &*self.of.blobs;
        let to = turn.finished_at.unwrap_or(turn.started);
        let mut attributes = Attributes::default();
        attributes.add("gen_ai.operation.name", "chat");
        let mut name = "chat".to_owned();
        if let Some(judge) = self.judge() {
            attributes.add("gen_ai.provider.name", provider_name(judge.provider));
            if !judge.model.is_empty() {
                attributes.add("gen_ai.request.model", judge.model.as_str());
                name = format!("chat {}", judge.model);
            }
        }
        let usage = turn.usage.unwrap_or_default();
        attributes.add_known("gen_ai.usage.input_tokens", usage.input);
        attributes.add_known("gen_ai.usage.output_tokens", usage.output);
        // The body is in the provider's dialect, so it has no convention.
        attributes.add("dicta.request", read_rope(&turn.request, blobs));
        if let Some(replied) = &turn.finished {
            let reply = &replied.reply;
            let reason = finish_reason(&reply.stop);
            attributes.add("gen_ai.response.finish_reasons", vec![reason]);
            let messages = output_messages(&reply.thought, &reply.text, &turn.calls, reason);
            attributes.add("gen_ai.output.messages", messages.to_string());
        }
        let id = self.child_id(&format!("{number}.prompt"));
        let mut span = self.span((&id, name, CLIENT), (turn.started, to), attributes);
        let failed = turn.attempts.values().next_back();
        let failed = failed.and_then(|attempt| attempt.failed.as_ref());
        if let Some(failure) = failed.filter(|_| turn.finished.is_none()) {
            let status = json!({"code": ERROR, "message": failure.why});
            span.insert("status".to_owned(), status);
        }
        self.spans.push(Value::Object(span));
        for (call, nth) in turn.calls.iter().zip(1..) {
            self.push_call(call, &format!("{number}.call.{nth}"));
        }
    }

    fn push_call(&mut self, call: &CallState, part: &str) {
        // A submitted verdict calls no tool.
        if call.name == SUBMIT_VERDICT && call.rejected.is_none() {
            return;
        }
        let mut attributes = Attributes::default();
        attributes.add("gen_ai.operation.name", "execute_tool");
        attributes.add("gen_ai.tool.name", call.name.as_str());
        attributes.add("gen_ai.tool.type", "function");
        attributes.add("gen_ai.tool.call.id", call.id.as_str());
        let arguments = call.canonical.as_ref().map_or(&*call.raw, RawJson::get);
        attributes.add("gen_ai.tool.call.arguments", arguments);
        let from = call.started_at.unwrap_or(call.received_at);
        let (mut to, mut problem) = (from, None);
        if let Some(rejection) = &call.rejected {
            attributes.add("error.type", "rejected");
            attributes.add("dicta.rejected_by", rejection.rule.as_str());
            attributes.add("gen_ai.tool.call.result", rejection.text.as_str());
            problem = Some("the call was rejected");
        } else if let Some(done) = &call.finished {
            to = from + done.elapsed;
            let text = read_piece(&done.response.text, &*self.of.blobs);
            attributes.add("gen_ai.tool.call.result", text);
            if done.response.is_error {
                attributes.add("error.type", "tool_error");
                problem = Some("the tool returned an error");
            }
        }
        let id = self.child_id(part);
        let name = format!("execute_tool {}", call.name);
        let mut span = self.span((&id, name, INTERNAL), (from, to), attributes);
        if let Some(message) = problem {
            let status = json!({"code": ERROR, "message": message});
            span.insert("status".to_owned(), status);
        }
        self.spans.push(Value::Object(span));
    }
}

/// Returns the reply of a model in the format of the conventions.
fn output_messages(thought: &str, text: &str, calls: &[CallState], reason: &str) -> Value {
    let mut parts = Vec::new();
    if !thought.is_empty() {
        parts.push(json!({"type": "reasoning", "content": thought}));
    }
    if !text.is_empty() {
        parts.push(json!({"type": "text", "content": text}));
    }
    for call in calls {
        // Invalid JSON stays a text.
        let arguments: Value = serde_json::from_str(&call.raw).unwrap_or_else(|_| json!(call.raw));
        parts.push(json!({
            "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments,
        }));
    }
    json!([{"role": "assistant", "parts": parts, "finish_reason": reason}])
}

/// Returns the reason for the end of a reply in the conventions.
fn finish_reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::Stop => "stop",
        StopReason::ToolCalls => "tool_call",
        StopReason::Length => "length",
        StopReason::Refused(_) => "content_filter",
        StopReason::Other(reason) => reason,
        StopReason::Unknown => "unknown",
    }
}

/// Returns the name of a provider in the conventions.
const fn provider_name(provider: ProviderKind) -> &'static str {
    match provider {
        ProviderKind::Openai
        | ProviderKind::OpenaiResponses
        | ProviderKind::OpenaiDecisions
        | ProviderKind::OpenaiEmbeddings => "openai",
        ProviderKind::Anthropic => "anthropic",
        ProviderKind::Gemini | ProviderKind::GeminiDecisions | ProviderKind::GeminiEmbeddings => {
            "gcp.gemini"
        }
        ProviderKind::Vertex => "gcp.vertex_ai",
        ProviderKind::Rules | ProviderKind::Replay | ProviderKind::Source => provider.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_types_of_otlp() {
        for (value, encoded) in [
            (json!(true), json!({"boolValue": true})),
            (json!(7), json!({"intValue": "7"})),
            (json!(1.0), json!({"doubleValue": 1.0})),
            (json!("a"), json!({"stringValue": "a"})),
            (
                json!(["stop"]),
                json!({"arrayValue": {"values": [{"stringValue": "stop"}]}}),
            ),
        ] {
            let attribute = attribute("k", &value);
            assert_eq!(attribute, json!({"key": "k", "value": encoded}));
        }
    }
}
