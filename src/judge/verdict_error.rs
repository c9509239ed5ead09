//! The reason why a text doesn't state a verdict, and the strict decoding of a verdict's fields.

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The reason why a text doesn't state a verdict, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictParseError(pub String);

impl fmt::Display for VerdictParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns an error with this reason.
pub(super) fn verdict_error<T>(why: impl Into<String>) -> Result<T, VerdictParseError> {
    Err(VerdictParseError(why.into()))
}

/// Decodes a field that must have its type if it is present; `null` is an error.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}

/// The most characters of a reason. The raw reply is shown next to it, so a whole object or a long text here would only
/// hide the reason.
const MAX_REASON: usize = 200;

/// Describes a decoding error: names the field if one has the wrong type, otherwise uses the parser's message.
pub(super) fn describe_type_error(json: &str, error: &serde_json::Error) -> VerdictParseError {
    // Parse without types, to find the field that serde's message doesn't name.
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
    // The parser's message repeats a text with the wrong type, whatever its length.
    let reason = wrong.unwrap_or_else(|| error.to_string());
    let mut shown: String = reason.chars().take(MAX_REASON).collect();
    if shown.len() < reason.len() {
        shown.push('…');
    }
    VerdictParseError(format!(
        "the verdict doesn't have the expected format: {shown}"
    ))
}
