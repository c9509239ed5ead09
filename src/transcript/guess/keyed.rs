//! Objects that have one conversation, or one record of it, for each key, which no field mapping describes.
//!
//! Responsible for the reason, with a command that converts such a file. Does not guess a mapping.

use std::path::Path;

use serde_json::{Map, Value};

use super::fields::{detect_message_keys, normalize_name};
use super::records::ANSWER_NAMES;
use super::{CONVERSATION_NAMES, INPUT_NAMES, MappingGuessBuilder, OUTPUT_NAMES, SYSTEM_NAMES};
use crate::model::{make_visible, quote_shell_path};

/// The number of values whose keys are compared.
const MAX_COMPARED_VALUES: usize = 20;
/// The number of keys that the reason names.
const MAX_NAMED_KEYS: usize = 2;
/// The number of characters of a key that the reason shows.
const MAX_KEY_CHARS: usize = 40;

/// Returns the reason why an object needs a conversion: its values are conversations. The reason is a sentence fragment.
/// `None` for any other object.
pub(super) fn explain_keyed_conversations(object: &Value, path: &Path) -> Option<String> {
    let conversations = object.as_object()?;
    // Lists of messages below known names are the input and the answer of one conversation.
    let is_known_name = |key: &String| {
        let name = normalize_name(key);
        let name = name.as_str();
        CONVERSATION_NAMES.contains(&name)
            || SYSTEM_NAMES.contains(&name)
            || INPUT_NAMES.contains(&name)
            || OUTPUT_NAMES.contains(&name)
            || ANSWER_NAMES
                .iter()
                .any(|(one, other)| name == *one || name == *other)
    };
    if conversations.len() < 2 || conversations.keys().any(is_known_name) {
        return None;
    }
    let values = || conversations.values();
    let (what, record) = if values().all(has_messages) {
        // Datasets with `from` and `value` name their list `conversations`.
        let first = values().next()?;
        let is_sharegpt = first[0].get("from").is_some();
        let record = if is_sharegpt {
            "{id: .key, conversations: .value}"
        } else {
            "{id: .key, messages: .value}"
        };
        ("a list of messages", record)
    } else if values().all(has_conversation) {
        ("a conversation", "{id: .key} + .value")
    } else if has_entries(conversations) {
        ("an entry", "{id: .key} + .value")
    } else {
        return None;
    };
    let named: Vec<String> = conversations
        .keys()
        .take(MAX_NAMED_KEYS)
        .map(|key| quote_key(key))
        .collect();
    let more = if conversations.len() > MAX_NAMED_KEYS {
        " …"
    } else {
        ""
    };
    let input = quote_shell_path(path);
    let output = quote_shell_path(&path.with_extension("jsonl"));
    // The shell would empty the input before jq reads it.
    let output = if input == output {
        "conversations.jsonl".to_owned()
    } else {
        output
    };
    Some(format!(
        "it is one object with {what} for each key ({}{more}), and a record must be one conversation; \
         `jq -c 'to_entries[] | {record}' {input} > {output}` writes one on each line",
        named.join(", ")
    ))
}

/// Returns a key in quotes. A long key is cut, so that it does not hide the command behind it.
fn quote_key(key: &str) -> String {
    let shown = make_visible(key, false);
    match shown.char_indices().nth(MAX_KEY_CHARS) {
        Some((end, _)) => format!("`{}…`", &shown[..end]),
        None => format!("`{shown}`"),
    }
}

/// Returns true for a list of messages.
fn has_messages(value: &Value) -> bool {
    value.is_array() && detect_message_keys(value).is_some()
}

/// Returns true for an object with a list of messages below a usual name.
fn has_conversation(value: &Value) -> bool {
    let mut names = CONVERSATION_NAMES.iter();
    names.any(|name| has_messages(&value[*name]))
}

/// Returns true if the values are objects with the same keys, in which the guess finds a conversation or an answer.
fn has_entries(object: &Map<String, Value>) -> bool {
    // The last value of a large object may be cut off.
    let whole = object.len().min(MAX_COMPARED_VALUES).saturating_sub(1);
    let entries: Vec<Value> = object.values().take(whole.max(2)).cloned().collect();
    let Some(keys) = entries.first().and_then(Value::as_object) else {
        return false;
    };
    let is_alike = |entry: &Value| {
        let shared = keys.keys().filter(|key| !entry[key.as_str()].is_null());
        let shared = shared.count();
        shared >= 2 && 2 * shared >= keys.len()
    };
    entries.iter().all(is_alike) && MappingGuessBuilder::from_records(&entries, false).complete
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn object_of_conversations_is_explained_with_a_command() {
        let messages = json!([{"role": "user", "content": "hi"}]);
        let turns = json!([{"from": "human", "value": "hi"}]);
        for (object, expected) in [
            (
                json!({"c1": messages, "c2": messages, "c3": messages}),
                "a list of messages for each key (`c1`, `c2` …), and a record must be one conversation; \
                 `jq -c 'to_entries[] | {id: .key, messages: .value}' 'my chats.json' > 'my chats.jsonl'`",
            ),
            (
                json!({"c1": turns, "c2": turns}),
                "{id: .key, conversations: .value}",
            ),
            (
                json!({"c1": {"messages": messages}, "c2": {"messages": messages, "tags": []}}),
                "a conversation for each key (`c1`, `c2`)",
            ),
        ] {
            let why = explain_keyed_conversations(&object, Path::new("my chats.json"));
            let why = why.expect("a reason");
            assert!(why.contains(expected), "{why}");
        }
        let why =
            explain_keyed_conversations(&json!({"a": turns, "b": turns}), Path::new("c.jsonl"));
        assert!(
            why.expect("a reason")
                .contains("c.jsonl > conversations.jsonl")
        );
    }

    #[test]
    fn object_of_answers_is_explained_with_a_command() {
        let first = json!({"query": "When?", "answer": "On Monday.", "steps": 2});
        let second = json!({"query": "Where?", "answer": "Here.", "steps": 1});
        let object = json!({"41987": first, "41988": second});
        let why = explain_keyed_conversations(&object, Path::new("answers.json"));
        let why = why.expect("a reason");
        assert!(
            why.contains("an entry for each key (`41987`, `41988`)"),
            "{why}"
        );
        assert!(why.contains("to_entries[] | {id: .key} + .value"), "{why}");
        for object in [
            json!({"41987": first, "count": {"all": 1}}),
            json!({"41987": first, "41988": "On Monday."}),
            json!({"today": {"open": true, "seats": 2}, "monday": {"open": true, "seats": 3}}),
        ] {
            let why = explain_keyed_conversations(&object, Path::new("c.json"));
            assert_eq!(why, None, "{object}");
        }
    }

    #[test]
    fn long_key_is_cut() {
        let messages = json!([{"role": "user", "content": "hi"}]);
        let long = "k".repeat(100_000);
        let object = json!({long: messages, "c2": messages});
        let why = explain_keyed_conversations(&object, Path::new("c.json")).expect("a reason");
        let cut = format!("(`{}…`, `c2`)", "k".repeat(MAX_KEY_CHARS));
        assert!(why.contains(&cut), "{why:.200}");
        assert!(why.len() < 400);
    }

    #[test]
    fn one_conversation_in_several_lists_is_left_to_the_guess() {
        let messages = json!([{"role": "user", "content": "hi"}]);
        for object in [
            json!({"prompt": messages, "completion": messages}),
            json!({"chosen": messages, "rejected": messages}),
            json!({"c1": messages}),
            json!({"c1": messages, "count": 1}),
            json!([messages, messages]),
        ] {
            assert_eq!(
                explain_keyed_conversations(&object, Path::new("c.json")),
                None,
                "{object}"
            );
        }
    }
}
