//! Scripted turns as the bytes of each dialect.

use serde_json::{Value, json};

use super::{Dialect, Reply, Request, anthropic, responses};

/// Returns the pieces of a body with the turn: one event each if it is streamed. The turn names the model of the request,
/// or another one.
pub(super) fn pieces(request: &Request, reply: &Reply) -> Vec<String> {
    let name = reply.model.clone().unwrap_or_else(|| request.model());
    let pieces = dialect_pieces(request, reply).into_iter();
    let named = pieces.map(|piece| {
        ["model", "modelVersion"].iter().fold(piece, |piece, key| {
            piece.replacen(
                &format!("\"{key}\":\"scripted\""),
                &format!("\"{key}\":{}", json!(name)),
                1,
            )
        })
    });
    named.collect()
}

fn dialect_pieces(request: &Request, reply: &Reply) -> Vec<String> {
    match (request.dialect(), request.wants_stream()) {
        (Dialect::Openai, true) => openai(request, reply),
        (Dialect::Openai, false) => vec![openai_whole(request, reply).to_string()],
        (Dialect::Gemini, true) => gemini(reply),
        (Dialect::Gemini, false) => vec![gemini_whole(reply).to_string()],
        (Dialect::Anthropic, true) => anthropic::stream(request, reply),
        (Dialect::Anthropic, false) => vec![anthropic::whole(request, reply).to_string()],
        (Dialect::Responses, true) => responses::stream(request, reply),
        (Dialect::Responses, false) => vec![responses::whole(request, reply).to_string()],
    }
}

/// Returns another event of a text without end.
pub(super) fn more(request: &Request) -> String {
    let text = "and so on ".repeat(400);
    match request.dialect() {
        Dialect::Openai => chunk(request, &json!({"content": text}), &Value::Null),
        Dialect::Gemini => {
            event(&json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}))
        }
        Dialect::Anthropic => anthropic::more(&text),
        Dialect::Responses => responses::more(request, &text),
    }
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

pub(super) fn split_at(text: &str, at: &[usize]) -> Vec<String> {
    let mut from = 0;
    let mut out = Vec::new();
    for to in at.iter().copied().chain([text.len()]) {
        out.push(text[from..to].to_owned());
        from = to;
    }
    out
}

fn chunk(request: &Request, delta: &Value, finish: &Value) -> String {
    event(&json!({
        "id": format!("chatcmpl-{}", request.number), "object": "chat.completion.chunk", "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }))
}

fn openai(request: &Request, reply: &Reply) -> Vec<String> {
    let delta = |delta: Value| chunk(request, &delta, &Value::Null);
    let mut out = vec![delta(json!({"role": "assistant", "content": ""}))];
    for thought in reply.split(&reply.thought) {
        out.push(delta(json!({"reasoning_content": thought})));
    }
    for text in reply.split(&reply.text) {
        out.push(delta(json!({"content": text})));
    }
    for (at, call) in reply.calls.iter().enumerate() {
        let id = format!("call_{}_{at}_srv", request.number);
        out.push(delta(
            json!({"tool_calls": [{"index": at, "id": id, "type": "function",
            "function": {"name": call.name, "arguments": ""}}]}),
        ));
        let pieces = if call.split_at.is_empty() {
            reply.split(&call.arguments)
        } else {
            split_at(&call.arguments, &call.split_at)
        };
        for piece in pieces {
            out.push(delta(
                json!({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}),
            ));
        }
    }
    if let Some(error) = &reply.error_tail {
        out.push(event(&json!({"error": error})));
        return out;
    }
    if let Some(tail) = &reply.tail {
        out.push(tail.clone());
        return out;
    }
    let finish = openai_finish(reply);
    if finish != "" {
        out.push(chunk(request, &json!({}), &finish));
    }
    let wants_usage = request.json()["stream_options"]["include_usage"] == json!(true);
    if let (Some(usage), true) = (openai_usage(reply), wants_usage) {
        out.push(event(&json!({"choices": [], "usage": usage})));
    }
    if reply.done {
        out.push("data: [DONE]\n\n".to_owned());
    }
    out
}

fn openai_finish(reply: &Reply) -> Value {
    let natural = if reply.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    json!(reply.finish.as_deref().unwrap_or(natural))
}

fn openai_usage(reply: &Reply) -> Option<Value> {
    let (input, output) = reply.usage?;
    Some(
        json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5}}),
    )
}

fn openai_whole(request: &Request, reply: &Reply) -> Value {
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .enumerate()
        .map(|(at, call)| {
            json!({"id": format!("call_{}_{at}_srv", request.number), "type": "function",
                "function": {"name": call.name, "arguments": call.arguments}})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"object": "chat.completion", "choices": [
        {"index": 0, "message": message, "finish_reason": openai_finish(reply)}], "usage": openai_usage(reply)})
}

fn gemini_parts(reply: &Reply) -> Vec<Value> {
    let mut parts = Vec::new();
    for thought in reply.split(&reply.thought) {
        parts.push(json!({"text": thought, "thought": true}));
    }
    for text in reply.split(&reply.text) {
        parts.push(json!({"text": text}));
    }
    let calls_at = parts.len();
    for call in &reply.calls {
        let args: Value = serde_json::from_str(&call.arguments).expect("gemini's args are JSON");
        parts.push(json!({"functionCall": {"name": call.name, "args": args}}));
    }
    let signed = if reply.calls.is_empty() {
        parts.last_mut()
    } else {
        parts.get_mut(calls_at)
    };
    if let (Some(part), Some(signature)) = (signed, &reply.signature) {
        part["thoughtSignature"] = json!(signature);
    }
    parts
}

fn gemini_usage(reply: &Reply) -> Value {
    match reply.usage {
        Some((input, output)) => {
            json!({"promptTokenCount": input, "candidatesTokenCount": output, "thoughtsTokenCount": 5,
                "cachedContentTokenCount": 10, "totalTokenCount": input + output + 5})
        }
        None => Value::Null,
    }
}

fn gemini_response(parts: &[Value], finish: &Value, usage: &Value) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if !finish.is_null() {
        candidate["finishReason"] = finish.clone();
    }
    let mut response = json!({"candidates": [candidate], "modelVersion": "scripted"});
    if !usage.is_null() {
        response["usageMetadata"] = usage.clone();
    }
    response
}

fn gemini(reply: &Reply) -> Vec<String> {
    let mut parts = gemini_parts(reply);
    let plain = |part: &Value| {
        event(&gemini_response(
            std::slice::from_ref(part),
            &Value::Null,
            &Value::Null,
        ))
    };
    if let Some(error) = &reply.error_tail {
        let mut out: Vec<String> = parts.iter().map(plain).collect();
        let pretty = serde_json::to_string_pretty(&json!({"error": error})).expect("JSON");
        out.push(pretty.replace('\n', "\r\n"));
        return out;
    }
    if let Some(tail) = &reply.tail {
        let mut out: Vec<String> = parts.iter().map(plain).collect();
        out.push(tail.clone());
        return out;
    }
    let last: Vec<Value> = parts.pop().into_iter().collect();
    let mut out: Vec<String> = parts.iter().map(plain).collect();
    out.push(event(&gemini_response(
        &last,
        &gemini_finish(reply),
        &gemini_usage(reply),
    )));
    out
}

fn gemini_finish(reply: &Reply) -> Value {
    match reply.finish.as_deref() {
        Some("") => Value::Null,
        Some(reason) => json!(reason),
        None => json!("STOP"),
    }
}

fn gemini_whole(reply: &Reply) -> Value {
    gemini_response(
        &gemini_parts(reply),
        &gemini_finish(reply),
        &gemini_usage(reply),
    )
}
