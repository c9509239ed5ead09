//! The texts of a request, as a document that a person edits instead of the request's JSON.
//!
//! Responsible for finding the texts in the requests of all dialects, and for putting edited ones back. Everything else of
//! the request stays byte for byte. Leaves out texts that a provider signed, because the server would refuse a changed one.
//! Repeats the edits in the later requests of a trace, because each of them contains the conversation so far.
//!
//! ```text
//! === 1 of 2: system
//! You judge …
//! === 2 of 2: user
//! …
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use serde_json::value::RawValue;

/// The keys of a request that contain its conversation, in all dialects.
const CONVERSATION_KEYS: &[&str] = &[
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
    "messages",
    "input",
    "contents",
];
/// The keys of texts within a conversation.
const TEXT_KEYS: &[&str] = &["content", "text", "output"];
/// The keys of blocks that a provider signed or encrypted, or that the model alone writes.
const SIGNED_KEYS: &[&str] = &[
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "thought",
    "summary",
];
/// The deepest nesting that is searched. No request of dicta is deeper.
const MAX_DEPTH: usize = 12;

/// The first characters of a heading.
const MARK: &str = "===";

/// A text of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RequestText {
    /// The place of the JSON string in the request.
    place: Range<usize>,
    /// The role of its message, or the key of the request.
    role: String,
    text: String,
}

/// The texts of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestTexts<'b> {
    body: &'b str,
    texts: Vec<RequestText>,
    /// The beginning of headings; no line of a text begins with it.
    mark: String,
}

impl<'b> RequestTexts<'b> {
    /// Finds the texts of a request. Returns `None` if there are none.
    pub(super) fn find(body: &'b str) -> Option<Self> {
        let request: BTreeMap<String, &RawValue> = serde_json::from_str(body).ok()?;
        let mut found = Self {
            body,
            texts: Vec::new(),
            mark: MARK.to_owned(),
        };
        for key in CONVERSATION_KEYS {
            if let Some(value) = request.get(*key) {
                found.collect(value.get(), key, true, 0);
            }
        }
        found.texts.sort_by_key(|text| text.place.start);
        let is_taken = |mark: &str| {
            let mut lines = found.texts.iter().flat_map(|text| text.text.lines());
            lines.any(|line| line.starts_with(mark))
        };
        let mut mark = MARK.to_owned();
        while is_taken(&mark) {
            mark.push('=');
        }
        found.mark = mark;
        (!found.texts.is_empty()).then_some(found)
    }

    /// Collects the texts of a JSON value. `is_text` states that a string is one.
    fn collect(&mut self, json: &'b str, role: &str, is_text: bool, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        if json.starts_with('"') {
            if let Some(text) = serde_json::from_str(json).ok().filter(|_| is_text) {
                let start = json.as_ptr() as usize - self.body.as_ptr() as usize;
                self.texts.push(RequestText {
                    place: start..start + json.len(),
                    role: role.to_owned(),
                    text,
                });
            }
        } else if json.starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            for item in items {
                self.collect(item.get(), role, is_text, depth + 1);
            }
        } else if json.starts_with('{') {
            let fields: BTreeMap<String, &RawValue> =
                serde_json::from_str(json).unwrap_or_default();
            if SIGNED_KEYS.iter().any(|key| fields.contains_key(*key)) {
                return;
            }
            let own_role = fields.get("role").map(|role| role.get());
            let own_role = own_role.and_then(|role| serde_json::from_str::<String>(role).ok());
            // A heading is one line, so a role of the model's own item must be a word.
            let is_word = |role: &String| role.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let own_role = own_role.filter(is_word);
            let role = own_role.as_deref().unwrap_or(role);
            for (key, value) in &fields {
                let is_text = TEXT_KEYS.contains(&key.as_str());
                if is_text || matches!(key.as_str(), "parts") {
                    self.collect(value.get(), role, is_text, depth + 1);
                }
            }
        }
    }

    /// Returns the document to edit.
    pub(super) fn to_document(&self) -> String {
        let mut document = String::new();
        for (at, text) in self.texts.iter().enumerate() {
            let heading = self.format_heading(at);
            let _infallible = writeln!(document, "{heading}\n{}", text.text);
        }
        document
    }

    fn format_heading(&self, at: usize) -> String {
        let role = self.texts.get(at).map_or("", |text| &text.role);
        format!("{} {} of {}: {role}", self.mark, at + 1, self.texts.len())
    }

    /// Returns the request with the texts of an edited document. The error is a sentence.
    pub(super) fn apply(&self, document: &str) -> Result<String, String> {
        let mut body = String::with_capacity(self.body.len());
        let mut rest = document;
        let mut end = 0;
        for (at, text) in self.texts.iter().enumerate() {
            let heading = self.format_heading(at);
            let lost = || format!("the line `{heading}` is missing: keep the headings");
            rest = rest.strip_prefix(heading.as_str()).ok_or_else(lost)?;
            // An editor may write the line breaks of another system.
            rest = rest.strip_prefix('\r').unwrap_or(rest);
            rest = rest.strip_prefix('\n').ok_or_else(lost)?;
            let next = (at + 1 < self.texts.len()).then(|| self.format_heading(at + 1));
            let written = match next {
                None => {
                    let all = rest.strip_suffix('\n').unwrap_or(rest);
                    rest = "";
                    all
                }
                Some(next) => {
                    let lost = || format!("the line `{next}` is missing: keep the headings");
                    // An empty text has no line of its own.
                    let found = if rest.starts_with(&next) {
                        Some((0, 0))
                    } else {
                        let line = format!("\n{next}");
                        rest.find(&line).map(|found| (found, found + 1))
                    };
                    let (text_end, next_start) = found.ok_or_else(lost)?;
                    let written = &rest[..text_end];
                    rest = &rest[next_start..];
                    written
                }
            };
            body.push_str(&self.body[end..text.place.start]);
            if written == text.text {
                // An unchanged text keeps its spelling.
                body.push_str(&self.body[text.place.clone()]);
            } else {
                let json = serde_json::to_string(written).map_err(|error| error.to_string())?;
                body.push_str(&json);
            }
            end = text.place.end;
        }
        body.push_str(&self.body[end..]);
        Ok(body)
    }
}

/// The edits of the texts of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextEdits(Vec<TextEdit>);

/// An edit of one text of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TextEdit {
    role: String,
    before: String,
    /// The number of equal texts before this one.
    equal_before: usize,
    after: String,
}

impl TextEdits {
    /// Returns the edits that lead from one body of a request to another. Empty if the bodies have different numbers of
    /// texts.
    pub(super) fn list(before: &str, after: &str) -> Self {
        let found = RequestTexts::find(before).zip(RequestTexts::find(after));
        let Some((old, new)) = found.filter(|(old, new)| old.texts.len() == new.texts.len()) else {
            return Self(Vec::new());
        };
        let pairs = old.texts.iter().zip(&new.texts).enumerate();
        let changed = pairs.filter(|(_, (old, new))| old.text != new.text);
        let edits = changed.map(|(at, (text, edited))| TextEdit {
            role: text.role.clone(),
            before: text.text.clone(),
            equal_before: old.texts[..at]
                .iter()
                .filter(|other| other.role == text.role && other.text == text.text)
                .count(),
            after: edited.text.clone(),
        });
        Self(edits.collect())
    }

    /// Reports whether there are no edits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a later request with these edits. An edit of a text that the request lacks has no effect.
    pub(super) fn apply(&self, body: &str) -> String {
        let mut edited = body.to_owned();
        let Some(found) = RequestTexts::find(body) else {
            return edited;
        };
        // All places come from the request before the edits: an edited text can be equal to the text of another edit.
        let places = self.0.iter().filter_map(|edit| {
            let texts = found.texts.iter();
            let mut equal = texts.filter(|text| text.role == edit.role && text.text == edit.before);
            let json = serde_json::to_string(&edit.after).ok()?;
            Some((equal.nth(edit.equal_before)?.place.clone(), json))
        });
        let mut places: Vec<(Range<usize>, String)> = places.collect();
        // From the end, so that the places before an edit stay valid.
        places.sort_by_key(|(place, _)| Reverse(place.start));
        for (place, json) in places {
            edited.replace_range(place, &json);
        }
        edited
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// One request of each dialect, with a signed block or a tool call where it has one.
    fn requests() -> Vec<serde_json::Value> {
        vec![
            json!({"model": "m", "messages": [
                {"role": "system", "content": "You judge."},
                {"role": "user", "content": [{"type": "text", "text": "Is it right?"}]},
                {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{\"text\":\"no\"}"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "190.25"},
            ], "tools": [{"function": {"description": "text"}}]}),
            json!({"model": "m", "instructions": "You judge.", "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Is it right?"}]},
                {"type": "reasoning", "id": "r", "summary": [{"text": "no"}], "encrypted_content": "x"},
                {"type": "function_call_output", "call_id": "1", "output": "190.25"},
            ]}),
            json!({"system": [{"type": "text", "text": "You judge."}], "messages": [
                {"role": "user", "content": "Is it right?"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "no", "signature": "s"}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "190.25"}]},
            ]}),
            json!({"systemInstruction": {"parts": [{"text": "You judge."}]}, "contents": [
                {"role": "user", "parts": [{"text": "Is it right?"}]},
                {"role": "model", "parts": [{"text": "no", "thoughtSignature": "s"}]},
                {"role": "user", "parts": [{"text": "190.25"}]},
            ]}),
        ]
    }

    #[test]
    fn texts_of_each_dialect_are_found_and_signed_ones_are_not() {
        for request in requests() {
            let body = request.to_string();
            let found = RequestTexts::find(&body).expect("texts");
            let texts: Vec<&str> = found.texts.iter().map(|text| text.text.as_str()).collect();
            assert_eq!(texts, ["You judge.", "Is it right?", "190.25"], "{body}");
            let document = found.to_document();
            assert!(document.starts_with("=== 1 of 3: "), "{document}");
            assert_eq!(
                found.apply(&document).as_ref(),
                Ok(&body),
                "nothing changes"
            );
            let edited = document.replace("190.25", "195.25 \"EUR\"\n=== or so");
            let changed = found.apply(&edited).expect("an edit");
            assert_eq!(
                changed,
                body.replace("\"190.25\"", "\"195.25 \\\"EUR\\\"\\n=== or so\""),
                "the rest stays byte for byte"
            );
        }
    }

    #[test]
    fn edits_are_repeated_in_a_later_request_of_each_dialect() {
        for request in requests() {
            let later = request.to_string();
            // The first request has no tool response yet. Another text in its place keeps the number of texts.
            let first = later.replace("190.25", "What is it?");
            let edits = TextEdits::list(&first, &first.replace("Is it right?", "Is it \u{e9}?"));
            assert_eq!(edits.0.len(), 1, "{edits:?}");
            let kept = edits.apply(&later);
            assert_eq!(kept, later.replace("Is it right?", "Is it \u{e9}?"));
            assert_eq!(edits.apply(&kept), kept, "the text is gone");
        }
    }

    #[test]
    fn edit_of_one_of_two_equal_texts_changes_that_one() {
        let body = |texts: [&str; 3]| {
            let messages = texts.map(|text| json!({"role": "user", "content": text}));
            json!({"messages": messages}).to_string()
        };
        let edits = TextEdits::list(&body(["a", "a", "a"]), &body(["a", "b", "a"]));
        assert_eq!(edits.apply(&body(["a", "a", "c"])), body(["a", "b", "c"]));
        // The edits of one request apply at the same time.
        for (before, after) in [
            (["a", "b", "c"], ["b", "a", "c"]),
            (["a", "a", "c"], ["b", "d", "c"]),
            (["a", "b", "c"], ["b", "c", "a"]),
        ] {
            let edits = TextEdits::list(&body(before), &body(after));
            assert_eq!(edits.apply(&body(before)), body(after), "{before:?}");
        }
        let shorter = json!({"messages": [{"role": "user", "content": "b"}]}).to_string();
        assert!(TextEdits::list(&body(["a", "a", "a"]), &shorter).is_empty());
    }

    #[test]
    fn lost_heading_is_named() {
        let body = requests()[0].to_string();
        let found = RequestTexts::find(&body).expect("texts");
        for bad in ["", "hello", "=== 1 of 3: system\nonly this"] {
            let error = found.apply(bad).expect_err("a heading is missing");
            assert!(error.contains("is missing: keep the headings"), "{error}");
        }
        assert_eq!(RequestTexts::find("{}"), None);
        assert_eq!(RequestTexts::find("[1]"), None);
    }

    proptest! {
        #[test]
        fn any_text_survives_an_edit(texts in proptest::collection::vec("(=|[a-z\n\"\\\\ ])*", 1..4), edits in proptest::collection::vec("[a-z\n ]*", 4)) {
            let messages: Vec<_> = texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
            let body = json!({"messages": messages, "n": 1.50}).to_string();
            let found = RequestTexts::find(&body).expect("texts");
            prop_assert_eq!(&found.apply(&found.to_document()).expect("the same"), &body);
            let edited = RequestTexts {
                texts: found.texts.iter().zip(&edits).map(|(text, edit)| RequestText { text: edit.clone(), ..text.clone() }).collect(),
                ..found.clone()
            };
            let changed: serde_json::Value = serde_json::from_str(&found.apply(&edited.to_document()).expect("an edit")).expect("JSON");
            for (at, edit) in edits.iter().enumerate().take(texts.len()) {
                prop_assert_eq!(changed["messages"][at]["content"].as_str(), Some(edit.as_str()));
            }
        }
    }
}
