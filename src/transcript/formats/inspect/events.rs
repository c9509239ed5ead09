//! The events of a sample, which add times, tokens, costs and tool failures to its messages.
//!
//! Responsible for the match between events and messages. The id of its reply identifies a model call; in old logs
//! without ids, text and calls do. The id of a call identifies a tool run. Other events, and those of sub-agents and
//! graders, match no message and are readable only as raw content. Does not convert messages.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::InspectAttachments;
use super::wire::{InspectMessage, InspectOutput, is_present, parse_value};
use crate::transcript::content::ObjectOnly;
use crate::transcript::metadata::{MetadataBuilder, SourceUsage};
use crate::transcript::native::json_string;

/// The model calls and tool runs of a sample.
#[derive(Debug, Default)]
pub(super) struct InspectEvents {
    models: HashMap<ReplyKey, InspectModelCall>,
    tools: HashMap<String, InspectToolRun>,
}

/// One model call.
#[derive(Debug, Default)]
struct InspectModelCall {
    timestamp: Option<String>,
    latency_ms: Option<f64>,
    usage: SourceUsage,
    cost_usd: Option<f64>,
    model: Option<String>,
    stop_reason: Option<String>,
}

/// One tool run.
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
    /// Adds a list of events. Unreadable events are skipped.
    pub(super) fn add_events(&mut self, events: &RawValue, attachments: &InspectAttachments<'_>) {
        // An unreadable list only costs times and tokens.
        let events: Vec<&RawValue> = serde_json::from_str(events.get()).unwrap_or_default();
        for event in events {
            let Ok(ObjectOnly(event)) =
                serde_json::from_str::<ObjectOnly<InspectEvent<'_>>>(event.get())
            else {
                continue;
            };
            // A pending event has no result yet.
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
        // Only the first choice is part of the conversation.
        let Some(ObjectOnly(choice)) = output.choices.first() else {
            return;
        };
        let Some(ObjectOnly(message)) = &choice.message else {
            return;
        };
        let usage = output.usage.map(parse_value).unwrap_or_default();
        let call = InspectModelCall {
            // `timestamp` is the start of the call, and `completed` its end. A message exists from the end on.
            timestamp: event.completed.or(event.timestamp).and_then(string_value),
            latency_ms: output
                // The output states the duration of the call itself; that of the event is the fallback.
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

    /// Sets the metadata of an assistant message.
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

    /// Returns the tool run of a call.
    pub(super) fn find_tool_run(&self, call_id: &str) -> Option<&InspectToolRun> {
        self.tools.get(call_id)
    }
}

impl InspectEvent<'_> {
    /// Returns the duration in milliseconds: the recorded one, which excludes waiting, else the time between start and
    /// end.
    fn duration_ms(&self) -> Option<f64> {
        let elapsed = || {
            let from: jiff::Timestamp = string_value(self.timestamp?)?.parse().ok()?;
            let to: jiff::Timestamp = string_value(self.completed?)?.parse().ok()?;
            let elapsed_ms = to.duration_since(from).as_secs_f64() * 1000.0;
            (elapsed_ms >= 0.0).then_some(elapsed_ms)
        };
        self.working_time.and_then(seconds_to_ms).or_else(elapsed)
    }
}

/// Converts seconds to milliseconds, rounded to the microsecond. Smaller digits are rounding errors of floats.
pub(super) fn seconds_to_ms(seconds: &RawValue) -> Option<f64> {
    let seconds: f64 = serde_json::from_str(seconds.get()).ok()?;
    (seconds >= 0.0).then(|| (seconds * 1e6).round() / 1e3)
}

/// Parses token counts. Inspect's `input_tokens` excludes cached tokens in new versions only. `total_tokens` always
/// includes them, so the difference to the output is the input.
pub(super) fn parse_usage(usage: &Value) -> SourceUsage {
    let count = |key: &str| usage[key].as_u64();
    let (output, total) = (count("output_tokens"), count("total_tokens"));
    let input = count("input_tokens").map(|input| {
        let input_with_cache = total
            .zip(output)
            .and_then(|(total, output)| total.checked_sub(output));
        // New versions exclude cached tokens from the input, so the larger number is the complete one.
        input_with_cache.unwrap_or_default().max(input)
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

/// The key by which a reply is found.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ReplyKey {
    Id(String),
    /// Logs from 2024 have no ids of messages.
    ContentHash(u64),
}

fn reply_key(message: &InspectMessage<'_>, attachments: &InspectAttachments<'_>) -> ReplyKey {
    match message.id.and_then(string_value) {
        Some(id) => ReplyKey::Id(id),
        None => ReplyKey::ContentHash(message.content_hash(attachments)),
    }
}
