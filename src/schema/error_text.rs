//! The texts of validation errors: sentences that a person, or a model, can act on.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ReferencingError, ValidationError};
use serde_json::Value;

use super::SchemaError;
use crate::model::escape_pointer_step;

/// Quoted values are cut to this many characters, because an instance may be a whole page.
const MAX_VALUE_CHARS: usize = 60;

/// Returns the reason why a schema does not compile.
pub(super) fn classify_schema_error(error: &ValidationError<'_>) -> SchemaError {
    // A reference to another document is refused by the retriever, so it has a reason of its own.
    if let Kind::Referencing(ReferencingError::Unretrievable { uri, .. }) = error.kind() {
        return SchemaError::OutsideReference {
            uri: truncate_value(uri),
        };
    }
    let place = error.instance_path().as_str();
    let problem = match error.kind() {
        // The crate reports a pattern that does not compile as a wrong format.
        Kind::Format { format } if format == "regex" => format!(
            "pattern {} does not compile (Rust `regex` syntax, at most 1 MiB compiled)",
            format_scalar(error.instance())
        ),
        // The meta-schema allows a type or a list of types, so its own message names no mistake.
        Kind::AnyOf { .. } if place.ends_with("/type") => {
            format!("{} is not a JSON type", format_scalar(error.instance()))
        }
        _ => list_value_errors(error)
            .into_iter()
            .next()
            .map(|(_, message)| message)
            .unwrap_or_default(),
    };
    SchemaError::Invalid {
        place: truncate_value(place),
        problem,
    }
}

/// Returns the problems of one validation error, each with the JSON pointer of its value and a sentence.
pub(super) fn list_value_errors(error: &ValidationError<'_>) -> Vec<(String, String)> {
    let at = error.instance_path().as_str().to_owned();
    let got = || format_scalar(error.instance());
    let message = match error.kind() {
        // One problem for each key, at the key itself, so that an editor can mark it.
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            return unexpected
                .iter()
                .map(|key| {
                    (
                        format!("{at}/{}", escape_pointer_step(key)),
                        format!("`{}` is not a known property", truncate_value(key)),
                    )
                })
                .collect();
        }
        Kind::Required { property } => {
            format!(
                "`{}` is missing",
                truncate_value(property.as_str().unwrap_or("?"))
            )
        }
        Kind::Type { kind } => format!("must be {} (got {})", describe_types(kind), got()),
        Kind::Enum { options } => {
            format!("must be one of {} (got {})", format_list(options), got())
        }
        Kind::Constant { expected_value } => {
            format!("must be {} (got {})", format_scalar(expected_value), got())
        }
        Kind::Minimum { limit } => format!("must be at least {limit} (got {})", got()),
        Kind::Maximum { limit } => format!("must be at most {limit} (got {})", got()),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit} (got {})", got()),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit} (got {})", got()),
        // "Not empty" is clearer than "at least 1".
        Kind::MinItems { limit: 1 } | Kind::MinLength { limit: 1 } => {
            "must not be empty".to_owned()
        }
        Kind::MinProperties { limit: 1 } => "must not be empty".to_owned(),
        Kind::MinItems { limit } => format!("must have at least {limit} entries"),
        Kind::MaxItems { limit } => format!("must have at most {limit} entries"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::UniqueItems => "must not hold the same entry twice".to_owned(),
        Kind::Pattern { pattern } => {
            format!(
                "must match the pattern `{}` (got {})",
                truncate_value(pattern),
                got()
            )
        }
        Kind::Format { format } => format!("must be in the format `{format}` (got {})", got()),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            format!("fits none of the allowed forms (got {})", got())
        }
        Kind::OneOfMultipleValid { .. } => {
            format!("fits more than one of the allowed forms (got {})", got())
        }
        Kind::FalseSchema => format!("is not allowed here (got {})", got()),
        // The crate's own text for rare keywords may quote the whole instance.
        _ => lowercase_first(&truncate_value_to(&error.to_string(), 300)),
    };
    vec![(at, message)]
}

/// Returns the type of a value in words.
pub(super) fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(n) if n.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn describe_types(kind: &TypeKind) -> String {
    let name = |t: &str| match t {
        "null" => "null".to_owned(),
        "array" | "object" | "integer" => format!("an {t}"),
        other => format!("a {other}"),
    };
    match kind {
        TypeKind::Single(one) => name(&one.to_string()),
        TypeKind::Multiple(set) => {
            let names: Vec<String> = set.iter().map(|t| name(&t.to_string())).collect();
            names.join(" or ")
        }
    }
}

fn format_list(options: &Value) -> String {
    match options.as_array() {
        // A longer list would hide the message; 12 is about a line.
        Some(options) if options.len() <= 12 => {
            let listed: Vec<String> = options.iter().map(format_scalar).collect();
            listed.join(", ")
        }
        Some(options) => format!("{} allowed values", options.len()),
        None => format_scalar(options),
    }
}

/// Formats a scalar as JSON, shortened, and a list or object by its type.
fn format_scalar(value: &Value) -> String {
    match value {
        // A list or an object can be a whole page, so only its type is named.
        Value::Array(_) | Value::Object(_) => json_type_name(value).to_owned(),
        scalar => truncate_value(&scalar.to_string()),
    }
}

fn truncate_value(text: &str) -> String {
    truncate_value_to(text, MAX_VALUE_CHARS)
}

fn truncate_value_to(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn lowercase_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
