//! The reason why a text doesn't state a verdict, and the strict reading of a verdict's fields.

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Why a text states no verdict: a lower-case sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictParseError(pub String);

impl fmt::Display for VerdictParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(super) fn verdict_error<T>(why: impl Into<String>) -> Result<T, VerdictParseError> {
    Err(VerdictParseError(why.into()))
}

/// A field that is there has its type; `null` is no way to leave it out.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}

/// Why an object has not the form: the field by name where one has the wrong type, else the parser's words.
pub(super) fn describe_type_error(json: &str, error: &serde_json::Error) -> VerdictParseError {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let wrong = value
        .as_object()
        .into_iter()
        .flatten()
        .find_map(|(name, got)| {
            let (must, is) = match name.as_str() {
                "citations" => ("a list", got.is_array()),
                "reasoning" => ("text", got.is_string()),
                "score" => ("a number", got.is_number()),
                "passed" | "applicable" => ("true or false", got.is_boolean()),
                _ => return None,
            };
            (!is).then(|| format!("`{name}` must be {must} (got {got})"))
        });
    // Raw text is shown beside it; a whole object here would hide the sentence.
    VerdictParseError(match wrong.filter(|text| text.len() <= 200) {
        Some(text) => format!("the verdict does not have its form: {text}"),
        None => format!("the verdict does not have its form: {error}"),
    })
}
