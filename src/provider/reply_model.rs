//! The model that a reply names, in any dialect.
//!
//! Responsible for finding the name in the first events of a reply. Does not compare it.

use serde::Deserialize;

/// The number of events with such a member in which the name is looked for.
const MAX_EVENTS: usize = 5;

/// The model that a reply names.
#[derive(Debug, Default)]
pub(super) struct ReplyModel {
    name: Option<String>,
    events: usize,
}

/// The places of the name: Chat Completions and documents of Anthropic and Responses; Gemini; events of Anthropic;
/// events of Responses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedModel {
    model: Option<String>,
    model_version: Option<String>,
    message: Option<InnerModel>,
    response: Option<InnerModel>,
}

#[derive(Deserialize)]
struct InnerModel {
    model: Option<String>,
}

impl ReplyModel {
    /// Looks for the name in an event or a whole reply. Text of another form has none.
    pub(super) fn read(&mut self, text: &str) {
        // Most events have no such member, so they are not read twice.
        if self.name.is_some() || self.events >= MAX_EVENTS || !text.contains("\"model") {
            return;
        }
        self.events += 1;
        let Ok(found) = serde_json::from_str::<NamedModel>(text) else {
            return;
        };
        let inner = found.message.or(found.response);
        self.name = found
            .model
            .or(found.model_version)
            .or(inner.and_then(|inner| inner.model));
    }

    /// Returns the name.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_found_in_the_events_and_documents_of_all_dialects() {
        for (text, expected) in [
            (r#"{"id":"c","model":"gpt-5","choices":[]}"#, Some("gpt-5")),
            (
                r#"{"candidates":[],"modelVersion":"gemini-2.5-pro"}"#,
                Some("gemini-2.5-pro"),
            ),
            (
                r#"{"type":"message_start","message":{"model":"claude-opus-4"}}"#,
                Some("claude-opus-4"),
            ),
            (
                r#"{"type":"response.created","response":{"model":"o3"}}"#,
                Some("o3"),
            ),
            (r#"{"message":"a text","model":3}"#, None),
            ("[DONE]", None),
        ] {
            let mut model = ReplyModel::default();
            model.read(text);
            assert_eq!(model.name(), expected, "{text}");
        }
        let mut late = ReplyModel::default();
        (0..MAX_EVENTS).for_each(|_| late.read(r#"{"model":null}"#));
        late.read(r#"{"model":"m"}"#);
        assert_eq!(late.name(), None, "later events are not read twice");
    }
}
