//! The errors of a schema that cannot be used.

use thiserror::Error;

/// The reason why a schema does not compile, or cannot check a value in reasonable time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// The value is neither an object nor a boolean.
    #[error("a JSON Schema is an object or a boolean, not {found}")]
    NotASchema {
        /// The JSON type of the value, with its article.
        found: &'static str,
    },
    /// The schema refers to another document.
    #[error("`{uri}` cannot be referred to: a schema may only refer to itself (`#/$defs/…`)")]
    OutsideReference {
        /// The reference, truncated.
        uri: String,
    },
    /// A part of the schema is not valid.
    #[error("not a valid JSON Schema: {}{problem}", format_place(.place))]
    Invalid {
        /// The JSON pointer of the part, truncated. Empty for the whole schema.
        place: String,
        /// A validation error of the meta-schema, as a lower-case sentence.
        problem: String,
    },
    /// Validation would take too long for any value.
    #[error("its references and combinations would look at one value millions of times")]
    TooCostly,
    /// The value is nested too deep for this schema.
    #[error(
        "nested {depth} levels deep, too deep for a schema that refers to itself in several ways at once"
    )]
    ValueTooDeep {
        /// The number of levels of the value.
        depth: usize,
    },
}

fn format_place(place: &str) -> String {
    if place.is_empty() {
        String::new()
    } else {
        format!("at {place}: ")
    }
}
