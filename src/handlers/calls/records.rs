//! Records for the tests of this family: an agent that calls tools, in short.

use serde_json::{Value, json};

/// A user's message, then a message per call (position 1, 3, 5 …), each followed by its answer (2, 4, 6 …).
pub(super) fn record_with_results(calls: &[(&str, &str, Value)]) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "q"})];
    for (at, (name, arguments, answer)) in calls.iter().enumerate() {
        let id = format!("c{at}");
        messages.push(json!({"role": "assistant", "tool_calls": [
            {"id": id, "function": {"name": name, "arguments": arguments}}]}));
        let mut message = json!({"role": "tool", "tool_call_id": id});
        message["content"] = answer["content"].clone();
        message["metadata"] = answer.clone();
        messages.push(message);
    }
    json!({"messages": messages})
}

/// As [`answered`], where nothing is answered: calls in messages 1, 2, 3 …
pub(super) fn calls(calls: &[(&str, &str)]) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "q"})];
    for (name, arguments) in calls {
        messages.push(json!({"role": "assistant", "tool_calls": [
            {"id": "", "function": {"name": name, "arguments": arguments}}]}));
    }
    json!({"messages": messages})
}

/// A record without calls.
pub(super) fn record_without_calls() -> Value {
    json!({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})
}

/// An answer that does not say whether it is an error.
pub(super) fn text(content: &str) -> Value {
    json!({"content": content})
}

/// An answer that says that it is none.
pub(super) fn successful(content: &str) -> Value {
    json!({"content": content, "is_error": false})
}

/// An answer that says that it is an error.
pub(super) fn failed(content: &str) -> Value {
    json!({"content": content, "is_error": true})
}

/// An answer after so many milliseconds.
pub(super) fn result_after(ms: f64) -> Value {
    json!({"content": "x", "duration_ms": ms})
}
