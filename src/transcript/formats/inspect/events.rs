//! What a sample's events tell of its messages: when, how long, how many tokens, what it cost, whether a tool failed.
//!
//! A model call is found by the id of the message it gave (by its text and calls in logs before messages had ids), a tool
//! run by the id of the call. Events of other kinds, and those of sub-agents and graders whose messages are not the
//! sample's, say nothing here; they are reachable as raw.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::InspectAttachments;
use super::wire::{InspectMessage, InspectOutput, is_present, parse_value};
use crate::transcript::content::ObjectOnly;
use crate::transcript::metadata::{MetadataBuilder, SourceUsage};
use crate::transcript::native::json_string;

/// What is known of the calls to models and tools.
#[derive(Debug, Default)]
pub(super) struct InspectEvents {
    models: HashMap<String, InspectModelCall>,
    tools: HashMap<String, InspectToolRun>,
}

/// One reply of a model.
#[derive(Debug, Default)]
struct InspectModelCall {
    timestamp: Option<String>,
    latency_ms: Option<f64>,
    usage: SourceUsage,
    cost_usd: Option<f64>,
    model: Option<String>,
    stop_reason: Option<String>,
}

/// One run of a tool.
#[derive(Debug, Default)]
pub(super) struct InspectToolRun {
    pub(super) timestamp: Option<String>,
    pub(super) duration_ms: Option<f64>,
    pub(super) failed: bool,
}

#[derive(Deserialize)]
struct InspectEvent<'a> {
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    completed: Option<&'a RawValue>,
    #[serde(borrow, default)]
    working_time: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pending: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    failed: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
}

impl InspectEvents {
    /// Takes in a list of events. Those that cannot be read say nothing.
    pub(super) fn add_events(&mut self, events: &RawValue, attachments: &InspectAttachments<'_>) {
        let events: Vec<&RawValue> = serde_json::from_str(events.get()).unwrap_or_default();
        for event in events {
            let Ok(ObjectOnly(event)) =
                serde_json::from_str::<ObjectOnly<InspectEvent<'_>>>(event.get())
            else {
                continue;
            };
            if event.pending.is_some_and(|pending| pending.get() == "true") {
                continue;
            }
            match event.event.map_or("", RawValue::get) {
                r#""model""# => self.add_model_call(&event, attachments),
                r#""tool""# => self.add_tool_run(&event),
                _ => {}
            }
        }
    }

    fn add_model_call(&mut self, event: &InspectEvent<'_>, attachments: &InspectAttachments<'_>) {
        let output = event
            .output
            .map(|output| serde_json::from_str::<InspectOutput<'_>>(output.get()));
        let Some(Ok(output)) = output else { return };
        let Some(ObjectOnly(choice)) = output.choices.first() else {
            return;
        };
        let Some(ObjectOnly(message)) = &choice.message else {
            return;
        };
        let usage = output.usage.map(parse_value).unwrap_or_default();
        let call = InspectModelCall {
            timestamp: event.completed.or(event.timestamp).and_then(string_value),
            latency_ms: output
                .time
                .and_then(seconds_to_ms)
                .or_else(|| event.duration_ms()),
            usage: parse_usage(&usage),
            cost_usd: usage["total_cost"].as_f64(),
            model: event.model.and_then(string_value),
            stop_reason: choice.stop_reason.and_then(string_value),
        };
        self.models.insert(reply_key(message, attachments), call);
    }

    fn add_tool_run(&mut self, event: &InspectEvent<'_>) {
        let Some(id) = event.id.and_then(string_value) else {
            return;
        };
        let run = InspectToolRun {
            timestamp: event.completed.or(event.timestamp).and_then(string_value),
            duration_ms: event.duration_ms(),
            failed: is_present(event.error)
                || event.failed.is_some_and(|failed| failed.get() == "true"),
        };
        self.tools.insert(id, run);
    }

    /// What is known of an assistant's message.
    pub(super) fn write_message_metadata(
        &self,
        message: &InspectMessage<'_>,
        attachments: &InspectAttachments<'_>,
        meta: &mut MetadataBuilder,
    ) {
        let Some(call) = self.models.get(&reply_key(message, attachments)) else {
            return;
        };
        meta.set("timestamp", call.timestamp.clone())
            .set("latency_ms", call.latency_ms)
            .set("usage", call.usage.to_json())
            .set("cost_usd", call.cost_usd)
            .set("model", call.model.clone())
            .set("stop_reason", call.stop_reason.clone());
    }

    /// The run of the tool that was called so.
    pub(super) fn find_tool_run(&self, call_id: &str) -> Option<&InspectToolRun> {
        self.tools.get(call_id)
    }
}

impl InspectEvent<'_> {
    /// How long it took: as it says, waiting excluded, else between its times.
    fn duration_ms(&self) -> Option<f64> {
        let between = || {
            let from: jiff::Timestamp = string_value(self.timestamp?)?.parse().ok()?;
            let to: jiff::Timestamp = string_value(self.completed?)?.parse().ok()?;
            let took = to.duration_since(from).as_secs_f64() * 1000.0;
            (took >= 0.0).then_some(took)
        };
        self.working_time.and_then(seconds_to_ms).or_else(between)
    }
}

/// Seconds as milliseconds, to the microsecond: what is finer is the arithmetic's.
pub(super) fn seconds_to_ms(seconds: &RawValue) -> Option<f64> {
    let seconds: f64 = serde_json::from_str(seconds.get()).ok()?;
    (seconds >= 0.0).then(|| (seconds * 1e6).round() / 1e3)
}

/// Tokens as the standard key has them. Inspect leaves those from a cache out of `input_tokens` today and did not always;
/// `total_tokens` holds all of them, so what is not output was read.
pub(super) fn parse_usage(usage: &Value) -> SourceUsage {
    let count = |key: &str| usage[key].as_u64();
    let (output, total) = (count("output_tokens"), count("total_tokens"));
    let input = count("input_tokens").map(|input| {
        let read = total
            .zip(output)
            .and_then(|(total, output)| total.checked_sub(output));
        read.unwrap_or_default().max(input)
    });
    SourceUsage {
        input,
        output,
        total,
        cached: count("input_tokens_cache_read"),
        thinking: count("reasoning_tokens"),
    }
}

fn string_value(raw: &RawValue) -> Option<String> {
    json_string(raw).map(|text| text.0.into_owned())
}

/// What a reply is found by.
fn reply_key(message: &InspectMessage<'_>, attachments: &InspectAttachments<'_>) -> String {
    match message.id.and_then(string_value) {
        Some(id) => format!("id {id}"),
        None => format!("said {}", message.content_key(attachments)),
    }
}
