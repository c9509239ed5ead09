//! VS Code's log of a chat (`chatSessions/ID.jsonl`, since January 2026): a first state and the changes after it.
//!
//! Responsible for the state after the last change, which has the shape of the chats before. Each line is an entry of
//! `objectMutationLog.ts` in microsoft/vscode:
//!
//! | line | meaning |
//! |---|---|
//! | `{"kind": 0, "v": STATE}` | the first state |
//! | `{"kind": 1, "k": PATH, "v": VALUE}` | sets the value at a path of keys and indexes |
//! | `{"kind": 2, "k": PATH, "v": LIST, "i": INDEX}` | cuts the list at a path to a length, then appends values |
//! | `{"kind": 3, "k": PATH}` | removes the value at a path |
//!
//! A change of a place that does not exist is counted and left out. Does not read the requests of a chat: that is
//! `copilot.rs`.

use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::native::json_string;
use super::super::reader::TranscriptSink;
use super::record_readers::{NOT_JSON, line_text};

/// The number of steps of a path that is followed. VS Code writes about five.
const MAX_STEPS: usize = 32;

/// Returns true if the first line is the first state of a chat.
pub(super) fn is_log(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| s.has("kind") && s.has("v")) && {
        let first = preview.first_outline();
        let chat = &first["v"];
        // A preview may end before the requests of a long chat.
        let is_chat = chat["requests"].is_array() || chat["version"].is_number();
        let names = ["sessionId", "responderUsername"];
        first["kind"] == 0 && is_chat && names.iter().any(|name| chat[*name].is_string())
    }
}

/// Returns true if a line is the first state of a chat.
pub(super) fn starts_chat(line: &[u8]) -> bool {
    let entry = RawFields::from_bytes(line);
    entry.is_some_and(|entry| entry.integer("kind") == Some(0))
}

/// Returns the state after the last line as JSON, or `None` without a first state. Counts the lines that it could not
/// apply.
pub(super) fn replay(lines: &[&[u8]], out: &mut TranscriptSink) -> Option<String> {
    let mut chat = None;
    for line in lines {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        let Ok(entry) = RawFields::parse(text) else {
            out.count_unknown(NOT_JSON);
            continue;
        };
        if apply_entry(&mut chat, &entry).is_none() {
            out.count_unknown("a change of a place that does not exist");
        }
    }
    let mut json = String::new();
    chat?.write(&mut json);
    Some(json)
}

/// A value of the state. It is taken apart only if a change concerns its inside, so all others stay as written.
#[derive(Debug)]
enum StateValue<'a> {
    Written(&'a RawValue),
    Object(IndexMap<String, StateValue<'a>>),
    List(Vec<StateValue<'a>>),
}

impl<'a> StateValue<'a> {
    /// Takes the value apart, unless that was done.
    fn open(&mut self) {
        let Self::Written(raw) = self else {
            return;
        };
        let raw = *raw;
        if let Some(items) = list_items(raw) {
            *self = Self::List(items.into_iter().map(Self::Written).collect());
        } else if let Some(fields) = RawFields::from_raw(raw) {
            let fields = fields.iter();
            let fields = fields.map(|(key, value)| (key.to_owned(), Self::Written(value)));
            *self = Self::Object(fields.collect());
        }
    }

    /// Returns the value at a step of a path.
    fn child(&mut self, step: &RawValue) -> Option<&mut Self> {
        self.open();
        match self {
            Self::Written(_) => None,
            Self::Object(fields) => fields.get_mut(&*json_string(step)?),
            Self::List(items) => items.get_mut(parse_index(step)?),
        }
    }

    /// Returns the value at a path.
    fn find(&mut self, path: &[&RawValue]) -> Option<&mut Self> {
        let mut place = self;
        for step in path {
            place = place.child(step)?;
        }
        Some(place)
    }

    /// Sets the value at a path, or removes it.
    fn set(&mut self, path: &[&RawValue], value: Option<StateValue<'a>>) -> Option<()> {
        let (last, parents) = path.split_last()?;
        let place = self.find(parents)?;
        place.open();
        match place {
            Self::Written(_) => return None,
            Self::Object(fields) => {
                let key = json_string(last)?;
                if let Some(value) = value {
                    fields.insert(key.0.into_owned(), value);
                } else if let Some(removed) = fields.get_mut(&*key) {
                    // Null means the same. A removal would move all later fields, so many would take too long.
                    *removed = Self::Written(RawValue::NULL);
                }
            }
            Self::List(items) => {
                let at = parse_index(last)?;
                let value = value.unwrap_or(Self::Written(RawValue::NULL));
                // The list grows by one place at most, so that an index cannot fill the memory.
                if at == items.len() {
                    items.push(value);
                } else {
                    *items.get_mut(at)? = value;
                }
            }
        }
        Some(())
    }

    /// Cuts the list at a path to `len`, then appends values. An absent list is empty.
    fn push(
        &mut self,
        path: &[&RawValue],
        added: Vec<&'a RawValue>,
        len: Option<u64>,
    ) -> Option<()> {
        let is_absent = match self.find(path) {
            Some(Self::Written(raw)) => raw.get() == "null",
            Some(_) => false,
            None => true,
        };
        if is_absent {
            self.set(path, Some(Self::List(Vec::new())))?;
        }
        let place = self.find(path)?;
        place.open();
        let Self::List(items) = place else {
            return None;
        };
        if let Some(len) = len.and_then(|len| usize::try_from(len).ok()) {
            items.truncate(len);
        }
        items.extend(added.into_iter().map(Self::Written));
        Some(())
    }

    /// Appends the value as JSON.
    fn write(&self, json: &mut String) {
        match self {
            Self::Written(raw) => json.push_str(raw.get()),
            Self::Object(fields) => {
                json.push('{');
                for (at, (key, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        json.push(',');
                    }
                    json.push_str(&Value::from(key.as_str()).to_string());
                    json.push(':');
                    value.write(json);
                }
                json.push('}');
            }
            Self::List(items) => {
                json.push('[');
                for (at, value) in items.iter().enumerate() {
                    if at > 0 {
                        json.push(',');
                    }
                    value.write(json);
                }
                json.push(']');
            }
        }
    }
}

fn parse_index(step: &RawValue) -> Option<usize> {
    serde_json::from_str(step.get()).ok()
}

/// Applies an entry. Returns `None` if its place does not exist.
fn apply_entry<'a>(chat: &mut Option<StateValue<'a>>, entry: &RawFields<'a>) -> Option<()> {
    let kind = entry.integer("kind")?;
    if kind == 0 {
        *chat = Some(StateValue::Written(entry.get("v")?));
        return Some(());
    }
    let chat = chat.as_mut()?;
    let path = entry.list("k").filter(|path| path.len() <= MAX_STEPS)?;
    match kind {
        // `null` and an absent value both remove what was there.
        1 => chat.set(&path, entry.get("v").map(StateValue::Written)),
        2 => {
            let added = entry
                .get("v")
                .map_or_else(|| Some(Vec::new()), list_items)?;
            chat.push(&path, added, entry.integer("i"))
        }
        3 => chat.set(&path, None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    const FIRST: &str = r#"{"kind":0,"v":{"version":3,"creationDate":1786006635121,"responderUsername":"GitHub Copilot","sessionId":"s-1","requests":[]}}"#;
    const PROMPT: &str = r#"{"kind":2,"k":["requests"],"v":[{"requestId":"r1","timestamp":1786006695282,"message":{"text":"What does it do?"},"response":[]}]}"#;

    /// Returns the messages of a chat with these changes, and the number of changes that were not read.
    fn lines_of(changes: &[&str]) -> (Vec<String>, u64) {
        let text = format!("{FIRST}\n{PROMPT}\n{}\n", changes.join("\n"));
        let (all, tally) = read(text.as_bytes());
        assert_eq!(all.len(), 1);
        let chat = all[0].as_ref().expect("a chat");
        assert_eq!(chat["id"], "s-1");
        (message_lines(chat), tally.unknown_count())
    }

    #[test]
    fn changes_of_a_chat_are_applied_in_order() {
        let changes = [
            r#"{"kind":1,"k":["customTitle"],"v":"A title"}"#,
            r#"{"kind":2,"k":["requests",0,"response"],"v":[{"value":"It reads "},{"value":"b."}]}"#,
            r#"{"kind":2,"k":["requests",0,"response"],"v":[{"value":"a."}],"i":1}"#,
            r#"{"kind":1,"k":["requests",0,"elapsedMs"],"v":8391}"#,
            r#"{"kind":3,"k":["requests",0,"modelState"]}"#,
            r#"{"kind":2,"k":["requests"],"v":[{"message":{"text":"Thanks."}}]}"#,
            r#"{"kind":2,"k":["requests",1,"response"],"v":[{"value":"Welcome."}]}"#,
        ];
        let (lines, unread) = lines_of(&changes);
        assert_eq!(
            lines,
            [
                "user What does it do?",
                "assistant It reads a.",
                "user Thanks.",
                "assistant Welcome.",
            ]
        );
        assert_eq!(unread, 0);
    }

    #[test]
    fn removed_value_is_absent_until_it_is_set_again() {
        let removal = r#"{"kind":3,"k":["responderUsername"]}"#;
        let other = r#"{"kind":1,"k":["responderUsername"],"v":"Other"}"#;
        for (changes, agent) in [
            (&[removal][..], None),
            (&[removal, removal][..], None),
            (&[removal, other][..], Some("Other")),
        ] {
            let text = format!("{FIRST}\n{PROMPT}\n{}\n", changes.join("\n"));
            let (all, tally) = read(text.as_bytes());
            let chat = all[0].as_ref().expect("a chat");
            assert_eq!(chat["metadata"]["agent"].as_str(), agent);
            assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        }
    }

    #[test]
    fn change_of_a_place_that_does_not_exist_is_counted() {
        let changes = [
            r#"{"kind":1,"k":["requests",4000000000,"message"],"v":"x"}"#,
            r#"{"kind":1,"k":["requests",4000000000],"v":"x"}"#,
            r#"{"kind":2,"k":["requests",0,"message","text"],"v":["x"]}"#,
            r#"{"kind":2,"k":["requests"],"v":{"message":{"text":"x"}}}"#,
            r#"{"kind":9,"k":["requests"]}"#,
            r#"{"kind":1,"k":[],"v":"x"}"#,
            r#"{"kind":1}"#,
        ];
        let (lines, unread) = lines_of(&changes);
        assert_eq!(lines, ["user What does it do?"]);
        assert_eq!(unread, changes.len() as u64);
    }
}
