//! Streamed messages of the Vercel AI SDK, put together to a reply of the Responses API.
//!
//! Responsible for the events of the UI message stream of AI SDK 5 and 6. Its messages contain calls with their results, which
//! the output items of the Responses API have, too. Metadata of applications (`messageMetadata`) is not read. Does not read
//! the reply: that is `openai.rs`.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// Returns true if a value is an event of such a stream.
pub(super) fn is_event(event: &Value) -> bool {
    let has_text = |key: &str| event[key].is_string();
    match event["type"].as_str().unwrap_or_default() {
        "start" => {
            let keys = ["type", "messageId", "messageMetadata"];
            let mut all = event.as_object().into_iter().flat_map(Map::keys);
            all.all(|key| keys.contains(&key.as_str()))
        }
        "start-step" => event.as_object().is_some_and(|fields| fields.len() == 1),
        "text-start" | "reasoning-start" => has_text("id"),
        "text-delta" | "reasoning-delta" => has_text("id") && has_text("delta"),
        "tool-input-start" | "tool-input-available" => {
            has_text("toolCallId") && has_text("toolName")
        }
        _ => false,
    }
}

/// Returns true if an event has no key but its type, as logs of other programs may have.
pub(super) fn is_bare_event(event: &Value) -> bool {
    event.as_object().is_some_and(|fields| fields.len() == 1)
}

/// A reply under construction.
#[derive(Debug, Default)]
pub(super) struct UiMessageReply {
    reply: Map<String, Value>,
    /// The output items in order.
    items: Vec<Value>,
    /// The places of texts and thoughts that have not ended, by their keys and ids.
    open: HashMap<String, usize>,
    /// The places of the calls, by call id.
    calls: HashMap<String, usize>,
    /// The places of their results. A result may follow preliminary ones.
    results: HashMap<String, usize>,
}

impl UiMessageReply {
    /// Adds an event.
    pub(super) fn add_event(&mut self, event: Value) {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        let kind = text("type");
        match kind {
            "start" => self.copy_key(&event, "messageId", "id"),
            "finish" => self.copy_key(&event, "finishReason", "status"),
            "text-start" | "text-delta" => {
                let new = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ""}]});
                self.add_piece(text("id"), "content", text("delta"), new);
            }
            "reasoning-start" | "reasoning-delta" => {
                let new =
                    json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": ""}]});
                self.add_piece(text("id"), "summary", text("delta"), new);
            }
            "text-end" => self.close_piece("content", text("id")),
            "reasoning-end" => self.close_piece("summary", text("id")),
            "tool-input-start" | "tool-input-delta" => {
                let call = self.call_of(text("toolCallId"), text("toolName"));
                if let Some(Value::String(arguments)) = call.get_mut("arguments") {
                    arguments.push_str(text("inputTextDelta"));
                }
            }
            "tool-input-available" | "tool-input-error" => {
                let call = self.call_of(text("toolCallId"), text("toolName"));
                call["arguments"] = Value::from(text_of(&event["input"]));
                if kind == "tool-input-error" {
                    self.add_result(text("toolCallId"), text("errorText"), false);
                }
            }
            "tool-output-available" => {
                self.add_result(text("toolCallId"), &text_of(&event["output"]), true);
            }
            "tool-output-error" => {
                self.add_result(text("toolCallId"), text("errorText"), false);
            }
            "start-step" | "finish-step" | "abort" | "message-metadata" => {}
            // Files, sources and data of applications stay as they are.
            _ => self.items.push(event),
        }
    }

    fn copy_key(&mut self, event: &Value, from: &str, to: &str) {
        if event[from].is_string() {
            self.reply.insert(to.to_owned(), event[from].clone());
        }
    }

    /// Appends a piece to the text of an item, which is the first entry of its list `key`. `new` is the item without text.
    fn add_piece(&mut self, id: &str, key: &str, piece: &str, new: Value) {
        let next = self.items.len();
        let place = *self.open.entry(format!("{key}/{id}")).or_insert(next);
        if place == next {
            self.items.push(new);
        }
        let text = self.items[place].pointer_mut(&format!("/{key}/0/text"));
        if let Some(Value::String(text)) = text {
            text.push_str(piece);
        }
    }

    fn close_piece(&mut self, key: &str, id: &str) {
        self.open.remove(&format!("{key}/{id}"));
    }

    /// Returns the item of a call, and adds it if it is new.
    fn call_of(&mut self, id: &str, name: &str) -> &mut Value {
        let next = self.items.len();
        let place = *self.calls.entry(id.to_owned()).or_insert(next);
        if place == next {
            self.items
                .push(json!({"type": "function_call", "call_id": id, "name": "", "arguments": ""}));
        }
        let call = &mut self.items[place];
        if !name.is_empty() {
            call["name"] = Value::from(name);
        }
        call
    }

    fn add_result(&mut self, id: &str, content: &str, has_succeeded: bool) {
        let output = json!({"content": content, "success": has_succeeded});
        let item = json!({"type": "function_call_output", "call_id": id, "output": output});
        if let Some(place) = self.results.get(id) {
            self.items[*place] = item;
        } else {
            self.results.insert(id.to_owned(), self.items.len());
            self.items.push(item);
        }
    }

    /// Returns the reply. `unread` are items that name what it lacks.
    pub(super) fn finish(self, unread: Vec<Value>) -> Value {
        let mut reply = self.reply;
        let items = self.items.into_iter().chain(unread);
        reply.insert("object".to_owned(), Value::from("response"));
        reply.insert("output".to_owned(), items.collect());
        Value::Object(reply)
    }
}

/// Returns a text, or any other value as JSON.
fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    /// Returns events as a server sends them.
    fn events(all: &[Value]) -> String {
        let lines = all.iter().map(|event| format!("data: {event}\n\n"));
        lines.chain(["data: [DONE]\n\n".to_owned()]).collect()
    }

    fn reply() -> [Value; 17] {
        [
            json!({"type": "start", "messageId": "msg-1"}),
            json!({"type": "start-step"}),
            json!({"type": "reasoning-start", "id": "r1"}),
            json!({"type": "reasoning-delta", "id": "r1", "delta": "Look"}),
            json!({"type": "reasoning-delta", "id": "r1", "delta": " first."}),
            json!({"type": "reasoning-end", "id": "r1"}),
            json!({"type": "tool-input-start", "toolCallId": "c1", "toolName": "find"}),
            json!({"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "{\"id\""}),
            json!({"type": "tool-input-available", "toolCallId": "c1", "toolName": "find", "input": {"id": 7}}),
            json!({"type": "tool-output-available", "toolCallId": "c1", "output": {"state": "lost"}}),
            json!({"type": "tool-input-available", "toolCallId": "c2", "toolName": "find", "input": {"id": 8}}),
            json!({"type": "tool-output-error", "toolCallId": "c2", "errorText": "no such order"}),
            json!({"type": "finish-step"}),
            json!({"type": "text-start", "id": "t1"}),
            json!({"type": "text-delta", "id": "t1", "delta": "It is"}),
            json!({"type": "text-delta", "id": "t1", "delta": " lost."}),
            json!({"type": "finish", "finishReason": "stop"}),
        ]
    }

    #[test]
    fn events_become_messages_with_calls_and_results() {
        let second = [
            json!({"type": "start", "messageId": "msg-2"}),
            json!({"type": "text-delta", "id": "t1", "delta": "Yes."}),
        ];
        let (all, tally) = read(format!("{}{}", events(&reply()), events(&second)).as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        assert_eq!(all.len(), 2);
        let first = all[0].as_ref().expect("a reply");
        assert_eq!(first["id"], "msg-1");
        assert_eq!(
            message_lines(first),
            [
                r#"assistant <reasoning> | find({"id":7})"#,
                r#"tool {"state":"lost"}"#,
                r#"assistant find({"id":8})"#,
                "tool no such order",
                "assistant It is lost.",
            ]
        );
        let thought = &first["messages"][0]["content"][0]["reasoning"];
        assert_eq!(thought, "Look first.");
        let error = |at: usize| &first["messages"][at]["metadata"]["is_error"];
        assert_eq!((error(1), error(3)), (&json!(false), &json!(true)));
        let second = all[1].as_ref().expect("a reply");
        assert_eq!(message_lines(second), ["assistant Yes."]);
    }

    #[test]
    fn response_of_a_log_follows_the_messages_of_its_request() {
        let request = json!({"id": "chat-1", "messages": [{"role": "user", "parts": [{"type": "text", "text": "Where is it?"}]}]});
        let log = json!({"request": request, "response": events(&reply())});
        let (all, _) = read(format!("{log}\n").as_bytes());
        let lines = message_lines(all[0].as_ref().expect("a record"));
        assert_eq!(lines.first().map(String::as_str), Some("user Where is it?"));
        assert_eq!(
            lines.last().map(String::as_str),
            Some("assistant It is lost.")
        );
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn data_of_an_application_stay_as_they_are() {
        let stream = events(&[
            json!({"type": "text-delta", "id": "t1", "delta": "Here."}),
            json!({"type": "data-weather", "data": {"degrees": 7}}),
        ]);
        let (all, _) = read(stream.as_bytes());
        let lines = message_lines(all[0].as_ref().expect("a reply"));
        assert_eq!(lines, ["assistant Here. | <data-weather>"]);
    }
}
