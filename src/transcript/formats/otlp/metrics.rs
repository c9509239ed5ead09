//! The metrics of a span in any convention: tokens, cost, model, times, and the failure message.
//!
//! Responsible for the attribute names of each convention. Does not read messages.

use super::wire::{OtlpAttrs, OtlpEntry};
use serde_json::Value;

use crate::model::{MessageRole, TranscriptMessage};
use crate::transcript::metadata::{MetadataBuilder, SourceUsage};

const COST_KEYS: [&str; 7] = [
    "gen_ai.usage.cost",
    "gen_ai.usage.total_cost",
    "gen_ai.usage.cost_usd",
    "llm.cost.total",
    "gen_ai.cost.total_cost",
    "operation.cost",
    "langfuse.observation.cost_details.total",
];

/// Returns the token counts of a span.
pub(super) fn read_usage(attrs: &OtlpAttrs<'_>) -> SourceUsage {
    SourceUsage {
        input: attrs.first_integer(&[
            // In each list, the semantic conventions come first, then OpenInference and the Vercel AI SDK.
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "ai.usage.promptTokens",
            "ai.usage.inputTokens",
        ]),
        output: attrs.first_integer(&[
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "ai.usage.completionTokens",
            "ai.usage.outputTokens",
        ]),
        total: attrs.first_integer(&[
            "gen_ai.usage.total_tokens",
            "llm.usage.total_tokens",
            "llm.token_count.total",
            "ai.usage.totalTokens",
        ]),
        cached: attrs.first_integer(&[
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
            "ai.usage.cachedInputTokens",
        ]),
        thinking: attrs.first_integer(&[
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
            "ai.usage.reasoningTokens",
        ]),
    }
}

/// Returns the cost of a span in USD.
pub(super) fn read_cost(attrs: &OtlpAttrs<'_>) -> Option<f64> {
    attrs.first_number(&COST_KEYS)
}

/// Returns the model that replied, else the requested one.
pub(super) fn read_model(attrs: &OtlpAttrs<'_>) -> Option<String> {
    let keys = [
        "gen_ai.response.model",
        "gen_ai.request.model",
        "llm.model_name",
        "ai.response.model",
        "ai.model.id",
    ];
    attrs.first_text(&keys).map(std::borrow::Cow::into_owned)
}

/// Returns the metadata of a model call, for its reply.
pub(super) fn model_call_metadata(entry: &OtlpEntry<'_>, stop: Option<&str>) -> MetadataBuilder {
    let attrs = &entry.attributes;
    let mut meta = MetadataBuilder::default();
    meta.set("timestamp", format_timestamp(entry.end_time_unix_nano));
    meta.set("latency_ms", duration_ms(entry));
    meta.set("usage", read_usage(attrs).to_json());
    meta.set("cost_usd", read_cost(attrs));
    meta.set("model", read_model(attrs));
    // This attribute is a list with one reason per choice.
    let reasons = attrs.text("gen_ai.response.finish_reasons");
    let reasons: Vec<String> = reasons
        .and_then(|json| serde_json::from_str(&json).ok())
        .unwrap_or_default();
    let finish_reason = || attrs.first_text(&["ai.response.finishReason", "llm.finish_reason"]);
    // The reason in the messages belongs to the kept choice, so it comes before the list.
    let stop = stop
        .map(str::to_owned)
        .or_else(|| reasons.into_iter().next());
    meta.set(
        "stop_reason",
        stop.or_else(|| finish_reason().map(std::borrow::Cow::into_owned)),
    );
    if entry.status.is_error() {
        meta.set("error", failure_message(entry));
    }
    meta
}

/// Returns the duration of a span in milliseconds, if it has both times.
pub(super) fn duration_ms(entry: &OtlpEntry<'_>) -> Option<f64> {
    let nanos = entry
        .end_time_unix_nano?
        .checked_sub(entry.start_time_unix_nano?)?;
    Some(nanos as f64 / 1e6)
}

/// Formats a time.
pub(super) fn format_timestamp(nanos: Option<u64>) -> Option<String> {
    let at = jiff::Timestamp::from_nanosecond(i128::from(nanos?)).ok()?;
    Some(at.to_string())
}

/// Returns the failure message of a span.
pub(super) fn failure_message(entry: &OtlpEntry<'_>) -> String {
    if !entry.status.message.is_empty() {
        return entry.status.message.to_string();
    }
    let exception = entry
        .events
        .iter()
        .find(|event| &*event.name == "exception");
    let exception = exception.and_then(|event| {
        event
            .attributes
            .first_text(&["exception.message", "exception.type"])
    });
    let why = exception.or_else(|| entry.attributes.text("error.type"));
    why.map_or_else(
        || "the span has the status ERROR".to_owned(),
        std::borrow::Cow::into_owned,
    )
}

/// Returns the sum over the replies of a conversation whose prompt contains earlier replies. The spans are about the
/// later ones alone, and evals would report the earlier ones as missing. `None` without such replies, or if a later reply
/// has no usage.
pub(super) fn sum_usage_after_history(messages: &[TranscriptMessage<'_>]) -> Option<SourceUsage> {
    let usages = messages
        .iter()
        .filter(|message| message.role == MessageRole::Assistant)
        .map(|message| {
            let usage = message.metadata.as_ref()?.parse_value()["usage"].take();
            usage.is_object().then_some(usage)
        });
    let usages: Vec<Option<Value>> = usages.collect();
    let first = usages
        .iter()
        .position(Option::is_some)
        .filter(|at| *at > 0)?;
    let mut sum = SourceUsage::default();
    for usage in &usages[first..] {
        let usage = usage.as_ref()?;
        sum = sum.sum_with(SourceUsage {
            input: usage["input"].as_u64(),
            output: usage["output"].as_u64(),
            total: usage["total"].as_u64(),
            cached: usage["cached"].as_u64(),
            thinking: usage["thinking"].as_u64(),
        });
    }
    Some(sum)
}
