//! `rubricPrompt`: the author's own prompt for the grading model, which becomes the scoring guide of a judged eval.
//!
//! dicta's frame stays: it shows the judge the output and the criteria, and asks for the verdict. So the places of both in
//! the author's prompt become words, and a chat becomes the texts of its messages.

use serde_json::{Map, Value};

use super::super::conversion::ConversionError;
use super::super::doc_location::DocLocation;
use super::assertion_value::{is_template, number_text, read_file_value};
use crate::rubric::RubricFiles;

/// promptfoo's own variables of such a prompt, each with the words that replace it.
const PLACES: [(&str, &str); 4] = [
    ("output", "(the output)"),
    ("rubric", "(the criteria)"),
    ("criteria", "(the criteria)"),
    ("prompt", "(the conversation)"),
];

/// Returns the scoring guide.
pub(super) fn to_scoring_guide(
    files: &dyn RubricFiles,
    at: &DocLocation,
    vars: Option<&Map<String, Value>>,
) -> Result<String, ConversionError> {
    let read = read_file_value(files, at, at.value().clone())?;
    let text = match read {
        // A prompt as text can be a chat in JSON.
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(chat @ Value::Array(_)) => join_messages(&chat),
            _ => Some(text),
        },
        chat => join_messages(&chat),
    };
    let text = text.filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| {
        ConversionError::new(
            "it is neither a text nor a list of messages",
            "write a text",
        )
    })?;
    let filled = fill_places(&text, vars);
    if is_template(&filled) {
        return Err(ConversionError::new(
            "it has a template that promptfoo fills in",
            "write the text itself, as `scoring_guide`",
        ));
    }
    Ok(filled)
}

/// Returns the texts of a chat.
fn join_messages(chat: &Value) -> Option<String> {
    let texts: Option<Vec<&str>> = chat
        .as_array()?
        .iter()
        .map(|message| message.get("content")?.as_str())
        .collect();
    Some(texts?.join("\n\n"))
}

/// Replaces variables: promptfoo's own by words, and those of the test by their values.
fn fill_places(text: &str, vars: Option<&Map<String, Value>>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((inside, after)) = after.split_once("}}") else {
            out.push_str("{{");
            rest = after;
            continue;
        };
        // A filter such as `| dump` only changes how promptfoo writes the value.
        let name = inside.split('|').next().unwrap_or_default().trim();
        let own = PLACES.iter().find(|(place, _)| *place == name);
        let value = vars.and_then(|vars| vars.get(name));
        match (own, value) {
            (Some((_, words)), _) => out.push_str(words),
            (None, Some(Value::String(value))) => out.push_str(value),
            (None, Some(Value::Number(value))) => out.push_str(&number_text(value)),
            (None, Some(value)) => out.push_str(&value.to_string()),
            (None, None) => {
                out.push_str("{{");
                out.push_str(inside);
                out.push_str("}}");
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out
}
