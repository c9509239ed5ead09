//! A message as `PromptKit` writes it: its own `tool_result`, `latency_ms`, `cost_info`, and what was decided of it in
//! `meta.assertions` and `validations`.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::super::content::Object;
use super::super::super::fields::Fields;
use super::super::super::meta::{Meta, Tokens};
use super::super::super::native::string;
use super::super::message::{Messages, result, words};
use super::{of, verdict};
use crate::model::{Message, Part, Role, SourceVerdict, Text};

#[derive(Deserialize, Default)]
struct Own<'a> {
    #[serde(borrow, default, alias = "ToolResult")]
    tool_result: Option<Object<Answer<'a>>>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    latency_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost_info: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    meta: Option<Object<Meant<'a>>>,
    #[serde(borrow, default)]
    validations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Meant<'a> {
    #[serde(borrow, default)]
    assertions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default, alias = "ID")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "Content")]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "Parts")]
    parts: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "Error")]
    error: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "LatencyMs")]
    latency_ms: Option<&'a RawValue>,
}

/// Reads a message; `at` is when, where it does not say so itself.
pub(super) fn read(
    raw: &RawValue,
    at: Option<&RawValue>,
    messages: &mut Vec<Message<'static>>,
    verdicts: &mut Vec<SourceVerdict>,
) {
    one(raw, &Role::User, at, None, messages, verdicts);
}

/// The same of an answer, whose cost may stand beside it.
pub(super) fn read_reply(
    raw: &RawValue,
    at: Option<&RawValue>,
    cost: Option<&RawValue>,
    messages: &mut Vec<Message<'static>>,
    verdicts: &mut Vec<SourceVerdict>,
) {
    one(raw, &Role::Assistant, at, cost, messages, verdicts);
}

fn one(
    raw: &RawValue,
    role: &Role<'static>,
    at: Option<&RawValue>,
    cost: Option<&RawValue>,
    messages: &mut Vec<Message<'static>>,
    verdicts: &mut Vec<SourceVerdict>,
) {
    let mut read = Messages::default();
    read.one(raw, role);
    let Object(own) =
        serde_json::from_str::<Object<Own<'_>>>(raw.get()).unwrap_or(Object(Own::default()));
    let Some(mut message) = read.all.pop() else {
        return;
    };
    messages.append(&mut read.all);
    if let Some(Object(answer)) = &own.tool_result {
        answered(&mut message, answer);
    }
    if let Some(thoughts) = own.reasoning.map(thoughts).filter(|text| !text.is_empty()) {
        message
            .parts
            .insert(0, Part::Reasoning(Text::from(thoughts)));
    }
    let mut meta = Meta::default();
    meta.set(
        "timestamp",
        of::<Value>(own.timestamp.or(at)).unwrap_or_default(),
    );
    meta.set("latency_ms", of::<f64>(own.latency_ms));
    cost_meta(own.cost_info.or(cost), &mut meta);
    let stop = words(own.finish_reason);
    if !stop.is_empty() {
        meta.set("stop_reason", stop);
    }
    message.metadata = meta.finish();
    let place = Some(messages.len());
    let meant = own.meta.as_ref().and_then(|Object(meta)| meta.assertions);
    verdicts.extend(verdict::all(meant, "assertion", place));
    verdicts.extend(verdict::all(own.validations, "validation", place));
    messages.push(message);
}

/// What a tool answered stands apart from the message's text, which repeats it.
fn answered(message: &mut Message<'static>, answer: &Answer<'_>) {
    let error = words(answer.error);
    let mut content = words(answer.content);
    let mut rest = Vec::new();
    if content.is_empty() {
        let parts = answer.parts.map_or("[]", RawValue::get);
        let mut inner = Messages::default();
        inner.read(&format!("{{\"parts\":{parts}}}"), &Role::User);
        for one in inner.all {
            content.push_str(&one.text());
            let media = one
                .parts
                .into_iter()
                .filter(|part| !matches!(part, Part::Text(_)));
            rest.extend(media);
        }
    }
    if content.is_empty() {
        content = match message.parts.first() {
            Some(Part::ToolResult(result)) if !result.content.is_empty() => {
                result.content.to_string()
            }
            _ => error.clone(),
        };
    }
    // Arena leaves `error` out where there was none.
    let mut part = result(&words(answer.id), content, Some(!error.is_empty()));
    if let Part::ToolResult(result) = &mut part {
        result.duration_ms = of(answer.latency_ms);
    }
    message.role = Role::Tool;
    message.parts = std::iter::once(part).chain(rest).collect();
}

/// The thoughts of a trace, wherever it has them.
fn thoughts(raw: &RawValue) -> String {
    let keys = ["text", "content", "summary"];
    let inside = || {
        let map = Fields::of(raw)?;
        keys.iter().find_map(|key| map.written(key))
    };
    let text = string(raw).or_else(inside).unwrap_or_default();
    text.0.into_owned()
}

/// Tokens as `cost_info` and `Cost` have them.
pub(super) fn tokens(cost: &Value) -> Tokens {
    let count = |key: &str| cost.get(key).and_then(Value::as_u64);
    Tokens {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cached: count("cached_tokens"),
        ..Tokens::default()
    }
}

/// Tokens and cost as the standard keys.
pub(super) fn cost_meta(cost: Option<&RawValue>, meta: &mut Meta) {
    if let Some(cost) = of::<Value>(cost) {
        meta.set("usage", tokens(&cost).value());
        let total = cost
            .get("total_cost_usd")
            .or_else(|| cost.get("total_cost"));
        meta.set("cost_usd", total.and_then(Value::as_f64));
    }
}
