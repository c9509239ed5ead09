//! Scripted turns as Anthropic Messages.

use serde_json::{Value, json};

use super::render::split_at;
use super::{Reply, Request};

fn event(value: &Value) -> String {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}

fn delta(index: usize, delta: &Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn start(index: usize, block: &Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn stop(index: usize) -> String {
    event(&json!({"type": "content_block_stop", "index": index}))
}

fn id(request: &Request, at: usize) -> String {
    format!("toolu_{}_{at}", request.number)
}

/// Returns the content blocks of a whole reply.
fn blocks(request: &Request, reply: &Reply) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !reply.thought.is_empty() {
        let signature = reply.signature.as_deref().unwrap_or_default();
        blocks.push(json!({"type": "thinking", "thinking": reply.thought, "signature": signature}));
    }
    if !reply.text.is_empty() {
        blocks.push(json!({"type": "text", "text": reply.text}));
    }
    for (at, call) in reply.calls.iter().enumerate() {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        blocks.push(
            json!({"type": "tool_use", "id": id(request, at), "name": call.name, "input": input}),
        );
    }
    blocks
}

fn finish(reply: &Reply) -> Value {
    let natural = if reply.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    match reply.finish.as_deref() {
        Some("") => Value::Null,
        given => json!(given.unwrap_or(natural)),
    }
}

fn usage(reply: &Reply) -> Value {
    reply.usage.map_or(Value::Null, |(input, output)| {
        let cached = input.min(10);
        json!({"input_tokens": input - cached, "cache_read_input_tokens": cached, "output_tokens": output})
    })
}

pub(super) fn whole(request: &Request, reply: &Reply) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
        "content": blocks(request, reply), "stop_reason": finish(reply), "usage": usage(reply)})
}

pub(super) fn stream(request: &Request, reply: &Reply) -> Vec<String> {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "model": "scripted", "stop_reason": null, "usage": usage(reply)});
    let mut out = vec![event(&json!({"type": "message_start", "message": message}))];
    out.push(event(&json!({"type": "ping"})));
    let mut at = 0;
    if !reply.thought.is_empty() {
        out.push(start(
            at,
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
        ));
        for thought in reply.split(&reply.thought) {
            out.push(delta(
                at,
                &json!({"type": "thinking_delta", "thinking": thought}),
            ));
        }
        if let Some(signature) = &reply.signature {
            out.push(delta(
                at,
                &json!({"type": "signature_delta", "signature": signature}),
            ));
        }
        out.push(stop(at));
        at += 1;
    }
    if !reply.text.is_empty() {
        out.push(start(at, &json!({"type": "text", "text": ""})));
        for text in reply.split(&reply.text) {
            out.push(delta(at, &json!({"type": "text_delta", "text": text})));
        }
        out.push(stop(at));
        at += 1;
    }
    for (nth, call) in reply.calls.iter().enumerate() {
        let block =
            json!({"type": "tool_use", "id": id(request, nth), "name": call.name, "input": {}});
        out.push(start(at, &block));
        let pieces = if call.split_at.is_empty() {
            reply.split(&call.arguments)
        } else {
            split_at(&call.arguments, &call.split_at)
        };
        for piece in pieces {
            out.push(delta(
                at,
                &json!({"type": "input_json_delta", "partial_json": piece}),
            ));
        }
        out.push(stop(at));
        at += 1;
    }
    if let Some(error) = &reply.error_tail {
        out.push(event(&json!({"type": "error", "error": error})));
        return out;
    }
    if let Some(tail) = &reply.tail {
        out.push(tail.clone());
        return out;
    }
    out.push(event(
        &json!({"type": "message_delta", "delta": {"stop_reason": finish(reply)}, "usage": usage(reply)}),
    ));
    if reply.done {
        out.push(event(&json!({"type": "message_stop"})));
    }
    out
}

/// Returns another event of a text without end.
pub(super) fn more(text: &str) -> String {
    delta(0, &json!({"type": "text_delta", "text": text}))
}

/// Returns true if the service refuses the request: a past call's input is not an object, or a turn's tool results are not
/// first.
pub(super) fn is_refused(body: &Value) -> bool {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let alternate = messages
        .windows(2)
        .all(|pair| pair[0]["role"] != pair[1]["role"]);
    let blocks = |of: &Value| of["content"].as_array().cloned().unwrap_or_default();
    let bad_call = |block: &Value| block["type"] == "tool_use" && !block["input"].is_object();
    let calls = |of: &Value| {
        let blocks = blocks(of);
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        calls.map(|call| call["id"].clone()).collect::<Vec<_>>()
    };
    let answered = messages.windows(2).all(|pair| {
        let calls = calls(&pair[0]);
        let answers = blocks(&pair[1]);
        let first = answers.iter().take(calls.len());
        calls.is_empty() || first.map(|answer| answer["tool_use_id"].clone()).eq(calls)
    });
    !alternate
        || !answered
        || messages
            .iter()
            .flat_map(blocks)
            .any(|block| bad_call(&block))
}
