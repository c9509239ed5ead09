//! Judge tools as data: declarations, calls and responses.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Blob, Digest};

/// The function with which a judge with tools submits its verdict.
pub const SUBMIT_VERDICT: &str = "submit_verdict";

/// The declaration of a tool, as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDeclaration {
    /// The name, which matches `[A-Za-z_][A-Za-z0-9_.:-]{0,127}`.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of the arguments object.
    pub schema: serde_json::Value,
}

impl ToolDeclaration {
    /// Returns the digest of everything that the model sees. It is part of cache keys and of the keys of recorded
    /// tool responses.
    pub fn digest(&self) -> Digest {
        let schema = self.schema.to_string();
        Digest::hash_parts([
            self.name.as_bytes(),
            self.description.as_bytes(),
            schema.as_bytes(),
        ])
    }
}

/// A tool call that dicta refused before it ran. It is final; the judge receives the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// The rule that refused: `parse`, `unknown_tool`, `schema`, `seen` …
    pub rule: String,
    /// A sentence that the model can act on. It lists every invalid argument.
    pub text: String,
}

/// One change of argument repair or coercion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentChange {
    /// The JSON pointer into the canonical arguments; empty for all of them.
    pub path: String,
    /// The change, for people: `closed 1 bracket`.
    pub what: String,
}

impl ArgumentChange {
    /// The words of a change that a person made.
    const BY_HAND: &str = "edited by hand";

    /// Returns the change of arguments that a person wrote.
    pub fn by_hand() -> Self {
        Self {
            path: String::new(),
            what: Self::BY_HAND.to_owned(),
        }
    }

    /// Reports whether a person made the change. All others are repairs or coercions.
    pub fn is_by_hand(&self) -> bool {
        self.what == Self::BY_HAND
    }
}

/// The response of a tool, as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResponse {
    /// The text for the model. Errors begin with `Error: `.
    pub text: String,
    /// True if the response is an error.
    pub is_error: bool,
    /// The size in bytes of the body that the tool received, before truncation.
    pub bytes: u64,
    /// True if `text` was truncated.
    pub truncated: bool,
    /// The raw body up to a size limit, if the tool received one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Blob>,
    /// The content type of the body, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The number of characters that a browser would not show.
    #[serde(default, skip_serializing_if = "none_hidden")]
    pub hidden: u64,
    /// The version of the local data that the tool read, if dicta can find out whether that data changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_version: Option<Digest>,
    /// True for an error that another attempt may avoid: no connection, 429, 5xx, a statement's timeout. Not
    /// recorded.
    #[serde(skip)]
    pub transient: bool,
}

impl ToolResponse {
    /// Marks the error as transient.
    #[must_use]
    pub fn transient(self) -> Self {
        Self {
            transient: true,
            ..self
        }
    }

    /// Creates a successful response.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::from_text(text.into(), false)
    }

    /// Creates an error that the model can act on: `Error: <reason>`.
    pub fn error(why: impl std::fmt::Display) -> Self {
        Self::from_text(format!("Error: {why}"), true)
    }

    /// Creates an error whose text the model receives as it is.
    pub fn error_text(text: impl Into<String>) -> Self {
        Self::from_text(text.into(), true)
    }

    fn from_text(text: String, is_error: bool) -> Self {
        let bytes = text.len() as u64;
        Self {
            text,
            is_error,
            bytes,
            truncated: false,
            raw: None,
            content_type: None,
            hidden: 0,
            data_version: None,
            transient: false,
        }
    }
}

/// Returns true for 0, which serde then leaves out.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(crate) fn none_hidden(n: &u64) -> bool {
    *n == 0
}

/// One request of a fetch: the first, or one after a redirect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The URL of this hop.
    pub url: String,
    /// The address that dicta connected to, if it chose one.
    pub address: Option<IpAddr>,
    /// The HTTP status, if the server replied.
    pub status: Option<u16>,
    /// The reason why the address guard refused, if it did (`unresolvable` too).
    pub refused: Option<String>,
}
