//! Scripted turns as OpenAI Responses.

use serde_json::{Value, json};

use super::render::split_at;
use super::{Reply, Request};

fn event(value: &Value) -> String {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}

/// The items as they ended, with the pieces they came in.
fn items(request: &Request, reply: &Reply) -> Vec<(Value, Vec<String>)> {
    let of = request.number;
    let mut items = Vec::new();
    if !reply.thought.is_empty() {
        let mut item = json!({"type": "reasoning", "id": format!("rs_{of}"),
            "summary": [{"type": "summary_text", "text": reply.thought}]});
        if let Some(signature) = &reply.signature {
            item["encrypted_content"] = json!(signature);
        }
        items.push((item, reply.split(&reply.thought)));
    }
    if !reply.text.is_empty() {
        let item = json!({"type": "message", "id": format!("msg_{of}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}]});
        items.push((item, reply.split(&reply.text)));
    }
    for (at, call) in reply.calls.iter().enumerate() {
        let item = json!({"type": "function_call", "id": format!("fc_{of}_{at}"), "call_id": format!("call_{of}_{at}"),
            "name": call.name, "arguments": call.arguments, "status": "completed"});
        let pieces = if call.split_at.is_empty() {
            reply.split(&call.arguments)
        } else {
            split_at(&call.arguments, &call.split_at)
        };
        items.push((item, pieces));
    }
    items
}

fn usage(reply: &Reply) -> Value {
    reply.usage.map_or(Value::Null, |(input, output)| {
        json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": 10},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": input + output})
    })
}

/// The response as it ended: any finish given is why it is incomplete.
pub(super) fn whole(request: &Request, reply: &Reply) -> Value {
    let output = items(request, reply).into_iter().map(|(item, _)| item);
    let mut response = json!({"id": format!("resp_{}", request.number), "object": "response", "model": "scripted",
        "status": "completed", "error": null, "incomplete_details": null,
        "output": output.collect::<Vec<Value>>(), "usage": usage(reply)});
    match reply.finish.as_deref() {
        None => {}
        Some("") => response["status"] = json!("in_progress"),
        Some(why) => {
            response["status"] = json!("incomplete");
            response["incomplete_details"] = json!({"reason": why});
        }
    }
    response
}

pub(super) fn stream(request: &Request, reply: &Reply) -> Vec<String> {
    let begun = json!({"id": format!("resp_{}", request.number), "object": "response", "status": "in_progress",
        "error": null, "output": []});
    let mut out = vec![event(
        &json!({"type": "response.created", "response": begun}),
    )];
    for (at, (item, pieces)) in items(request, reply).into_iter().enumerate() {
        let (piece, emptied, empty) = match item["type"].as_str() {
            Some("reasoning") => (
                "response.reasoning_summary_text.delta",
                "summary",
                json!([]),
            ),
            Some("message") => ("response.output_text.delta", "content", json!([])),
            _ => (
                "response.function_call_arguments.delta",
                "arguments",
                json!(""),
            ),
        };
        let mut opened = item.clone();
        opened[emptied] = empty;
        opened["status"] = json!("in_progress");
        out.push(event(
            &json!({"type": "response.output_item.added", "output_index": at, "item": opened}),
        ));
        for delta in pieces {
            out.push(event(
                &json!({"type": piece, "output_index": at, "item_id": item["id"], "delta": delta}),
            ));
        }
        out.push(event(
            &json!({"type": "response.output_item.done", "output_index": at, "item": item}),
        ));
    }
    if let Some(error) = &reply.error_tail {
        out.push(event(
            &json!({"type": "error", "code": error["code"], "message": error["message"]}),
        ));
        return out;
    }
    if let Some(tail) = &reply.tail {
        out.push(tail.clone());
        return out;
    }
    let response = whole(request, reply);
    let last = match reply.finish.as_deref() {
        None => "response.completed",
        Some("") => return out,
        Some(_) => "response.incomplete",
    };
    out.push(event(&json!({"type": last, "response": response})));
    out
}

/// One more event of a text that never ends.
pub(super) fn more(request: &Request, text: &str) -> String {
    event(
        &json!({"type": "response.output_text.delta", "output_index": 0, "item_id": format!("msg_{}", request.number),
        "delta": text}),
    )
}
