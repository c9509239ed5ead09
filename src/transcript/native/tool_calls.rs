//! The calls of a native message: a list, or the text of one.
//!
//! Responsible for lists that are JSON in a text, as in datasets whose columns are texts (Hermes, `MiniMind`). Does not
//! interpret arguments.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{NativeParseError, NativeRecordFunctionCall, NativeRecordToolCall, text_or_json};
use crate::model::{SourceText, TranscriptPart};
use crate::transcript::content::ObjectOnly;

/// The value of `tool_calls`.
pub(super) enum RawToolCalls<'a> {
    /// A list of calls.
    List(Vec<ObjectOnly<NativeRecordToolCall<'a>>>),
    /// A text, which is a list in JSON.
    Text(SourceText<'a>),
}

impl RawToolCalls<'_> {
    /// Returns the number of calls in a list; 1 for a text, unless it is blank or an empty list.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::List(calls) => calls.len(),
            Self::Text(text) => usize::from(!matches!(text.trim(), "" | "[]" | "null")),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawToolCalls<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawToolCallsVisitor)
    }
}

/// The visitor for [`RawToolCalls`].
struct RawToolCallsVisitor;

impl<'de> Visitor<'de> for RawToolCallsVisitor {
    type Value = RawToolCalls<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(RawToolCalls::List)
    }

    fn visit_borrowed_str<E: Error>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(RawToolCalls::Text(SourceText::from(v)))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<Self::Value, E> {
        // serde passes a borrowed text if the JSON string has no escapes, else a decoded copy.
        Ok(RawToolCalls::Text(SourceText::from(v.to_owned())))
    }
}

/// A call in a text: in OpenAI's shape, or with the keys of its function directly.
#[derive(Deserialize)]
struct WrittenToolCall<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<ObjectOnly<NativeRecordFunctionCall<'a>>>,
    #[serde(borrow, default)]
    custom: Option<ObjectOnly<NativeRecordFunctionCall<'a>>>,
    #[serde(borrow, default)]
    name: Option<SourceText<'a>>,
    #[serde(borrow, default, alias = "input")]
    arguments: Option<&'a RawValue>,
}

/// Returns the calls of a text.
pub(super) fn parse_call_text(
    text: &str,
) -> Result<Vec<TranscriptPart<'static>>, NativeParseError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let calls: Option<Vec<ObjectOnly<WrittenToolCall<'_>>>> =
        serde_json::from_str(text).map_err(|_| {
            NativeParseError::Invalid(
                "its `tool_calls` are a text that is not a list of calls in JSON".to_owned(),
            )
        })?;
    let calls = calls.into_iter().flatten().enumerate();
    let parts = calls.map(|(at, ObjectOnly(call))| {
        let function = match call.function.or(call.custom) {
            Some(ObjectOnly(function)) => function,
            None => NativeRecordFunctionCall {
                name: call.name,
                arguments: call.arguments,
            },
        };
        let id = call.id.map(text_or_json).unwrap_or_default();
        let part = function.into_tool_call(id, &format_args!("tool call {at}"))?;
        Ok(part.into_owned())
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use crate::model::TranscriptPart;
    use crate::transcript::parse_native;

    /// The calls of a message with this value of `tool_calls` as `id=name(arguments)`, or the reason why there are none.
    fn calls(tool_calls: &str) -> Result<Vec<String>, String> {
        let record = format!(
            r#"{{"messages":[{{"role":"assistant","content":null,"tool_calls":{tool_calls}}}]}}"#
        );
        let transcript = parse_native(record.as_bytes(), 1, "").map_err(|bad| bad.why)?;
        let calls = transcript.messages[0].parts.iter().map(|part| match part {
            TranscriptPart::ToolCall(call) => {
                format!("{}={}({})", &*call.id, &*call.name, &*call.arguments)
            }
            other => format!("{other:?}"),
        });
        Ok(calls.collect())
    }

    #[test]
    fn calls_in_a_text_are_read_as_those_of_a_list() {
        let list = r#"[{"id":"c1","type":"function","function":{"name":"find","arguments":"{\"q\":\"a\\nb\"}"}},{"id":"c2","function":{"name":"stop","arguments":{}}}]"#;
        let expected = [r#"c1=find({"q":"a\nb"})"#, "c2=stop({})"];
        let text = serde_json::Value::from(list).to_string();
        assert_eq!(calls(list).expect("a list"), expected);
        assert_eq!(calls(&text).expect("a text"), expected);
        let plain = r#""[{\"name\":\"find\",\"arguments\":{\"q\":1}}]""#;
        assert_eq!(calls(plain).expect("a text"), [r#"=find({"q":1})"#]);
        for none in ["\"\"", "\" \"", "\"[]\"", "\"null\"", "null", "[]"] {
            assert_eq!(
                calls(none).expect("no call"),
                Vec::<String>::new(),
                "{none}"
            );
        }
    }

    #[test]
    fn text_that_is_not_a_list_of_calls_is_a_fault_of_its_record() {
        for text in [
            r#""[{'name': 'find'}]""#,
            r#""find""#,
            r#""{}""#,
            r#""[1]""#,
        ] {
            let why = calls(text).expect_err("a fault");
            assert_eq!(
                why,
                "message 0: its `tool_calls` are a text that is not a list of calls in JSON"
            );
        }
        let why = calls(r#""[{\"id\":\"c1\"}]""#).expect_err("a fault");
        assert_eq!(why, "message 0: tool call 0 has no `name`");
    }
}
