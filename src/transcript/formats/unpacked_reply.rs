//! Values in logs of model calls that are JSON in a text, or a streamed reply.
//!
//! Responsible for the messages and the reply of a record. A stream is put together. The chunks of Gemini become one
//! reply, with the parts of all chunks in one candidate. A text that is only text stays as it is: an agent may answer in
//! JSON, so the JSON must be a reply of an API. Does not read the reply: that is `completion_log.rs`.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::fields::{RawFields, list_items};
use super::super::native::json_string;
use super::exchange::api_error;
use super::streamed_reply::{assemble_chunks, assemble_text};

/// Returns the JSON of a reply that is a stream, or JSON in a text; `None` for any other value. The error is a sentence
/// fragment: the API's error, or the reason why dicta cannot put the stream together.
pub(super) fn unpack_reply(raw: &RawValue) -> Result<Option<Box<RawValue>>, String> {
    let text = json_string(raw);
    let streamed = match &text {
        Some(text) => assemble_text(text),
        None => list_items(raw).and_then(|chunks| assemble_chunks(&chunks)),
    };
    let json = match (streamed, text) {
        (Some(reply), _) => {
            let json = reply?.json;
            match serde_json::from_str::<Vec<Value>>(&json) {
                Ok(chunks) => join_gemini_chunks(chunks).to_string(),
                Err(_) => json,
            }
        }
        (None, Some(text)) if is_api_reply(&text) => text.0.into_owned(),
        (None, _) => return Ok(None),
    };
    let Ok(reply) = RawValue::from_string(json) else {
        return Ok(None);
    };
    let error = RawFields::from_raw(&reply).as_ref().and_then(api_error);
    error.map_or(Ok(Some(reply)), Err)
}

/// Returns the list of messages that a text contains as JSON; `None` for any other value.
pub(super) fn unpack_messages(raw: &RawValue) -> Option<Box<RawValue>> {
    let text = json_string(raw)?;
    let Ok(Value::Array(all)) = serde_json::from_str(text.trim()) else {
        return None;
    };
    let are_messages = !all.is_empty() && all.iter().all(|one| one["role"].is_string());
    are_messages.then(|| RawValue::from_string(text.trim().to_owned()).ok())?
}

/// Returns true if a text is a reply of an API as JSON.
fn is_api_reply(text: &str) -> bool {
    let text = text.trim();
    if !text.starts_with('{') {
        return false;
    }
    let Ok(reply) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    let choice = &reply["choices"][0];
    choice["message"].is_object()
        || (choice["text"].is_string() && reply["object"] == "text_completion")
        || reply["candidates"][0]["content"].is_object()
        || (reply["object"] == "response" && reply["output"].is_array())
        || (reply["type"] == "message" && reply["role"] == "assistant")
}

/// Returns one reply with the content of all chunks. The last chunk has the final counts.
fn join_gemini_chunks(chunks: Vec<Value>) -> Value {
    let mut reply = Map::new();
    let mut parts: Vec<Value> = Vec::new();
    let mut end = Value::Null;
    for mut chunk in chunks {
        let candidate = chunk.pointer_mut("/candidates/0").map(Value::take);
        let mut candidate = candidate.unwrap_or_default();
        if let Some(Value::Array(more)) = candidate.pointer_mut("/content/parts") {
            for part in more.drain(..) {
                push_part(&mut parts, part);
            }
        }
        for key in ["finishReason", "finish_reason"] {
            if candidate[key].is_string() {
                end = candidate[key].take();
            }
        }
        if let Value::Object(fields) = chunk {
            reply.extend(fields);
        }
    }
    let content = json!({"role": "model", "parts": parts});
    let candidate = json!({"content": content, "finishReason": end});
    reply.insert("candidates".to_owned(), json!([candidate]));
    Value::Object(reply)
}

/// Adds a part. A text continues the text before it, if both are thoughts or neither is.
fn push_part(parts: &mut Vec<Value>, part: Value) {
    if let Some(text) = part["text"].as_str()
        && let Some(last) = parts.last_mut()
        && last["thought"] == part["thought"]
        && let Some(Value::String(so_far)) = last.get_mut("text")
    {
        so_far.push_str(text);
        return;
    }
    parts.push(part);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    fn answer_of(response: &serde_json::Value) -> Vec<String> {
        let record = json!({"messages": [{"role": "user", "content": "q"}], "response": response});
        let (all, tally) = read(format!("{record}\n").as_bytes());
        assert_eq!(all.len(), 1, "{record}");
        assert_eq!(tally.unknown_count(), 0, "{record}");
        let lines = message_lines(all[0].as_ref().expect("a transcript"));
        lines[1..].to_vec()
    }

    #[test]
    fn streamed_reply_next_to_messages_is_put_together() {
        let chunk = |text: &str| json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]});
        let event = |data: serde_json::Value| format!("data: {data}\n\n");
        let events = format!(
            "{}{}data: [DONE]\n\n",
            event(chunk("He")),
            event(chunk("y"))
        );
        assert_eq!(answer_of(&json!(events)), ["assistant Hey"]);
        assert_eq!(
            answer_of(&json!([chunk("He"), chunk("y")])),
            ["assistant Hey"]
        );
        let part = |text: &str| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]});
        let events = format!("{}{}", event(part("He")), event(part("y")));
        assert_eq!(answer_of(&json!(events)), ["assistant Hey"]);
        let events = concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hey\"}}\n\n",
        );
        assert_eq!(answer_of(&json!(events)), ["assistant Hey"]);
    }

    #[test]
    fn stream_in_any_key_of_the_reply_is_put_together() {
        let events = "data: {\"choices\":[{\"delta\":{\"content\":\"Hey\"}}]}\n\n";
        for key in ["completion", "output", "generated"] {
            let record = json!({"messages": [{"role": "user", "content": "q"}], key: events});
            let (all, _) = read(format!("{record}\n").as_bytes());
            let lines = message_lines(all[0].as_ref().expect("a transcript"));
            assert_eq!(lines, ["user q", "assistant Hey"], "{key}");
        }
    }

    #[test]
    fn reply_and_messages_as_json_in_texts_are_read() {
        let reply = r#"{"id":"c","choices":[{"message":{"role":"assistant","content":"A"}}]}"#;
        assert_eq!(answer_of(&json!(reply)), ["assistant A"]);
        // An agent that answers in JSON.
        let answer = r#"{"output":"A","message":"B"}"#;
        assert_eq!(answer_of(&json!(answer)), [format!("assistant {answer}")]);
        let messages = r#"[{"role":"system","content":"S"},{"role":"user","content":"Q"}]"#;
        let record = json!({"messages": messages, "response": "A"});
        let (all, _) = read(format!("{record}\n").as_bytes());
        assert_eq!(
            message_lines(all[0].as_ref().expect("a transcript")),
            ["system S", "user Q", "assistant A"]
        );
    }

    #[test]
    fn stream_of_an_unknown_service_is_a_bad_record() {
        let record = json!({"messages": [{"role": "user", "content": "q"}], "response": "data: {\"x\":1}\n\n"});
        let (all, _) = read(format!("{record}\n").as_bytes());
        let why = all[0].as_ref().expect_err("a bad record");
        assert!(why.contains("a stream of a service"), "{why}");
    }
}
