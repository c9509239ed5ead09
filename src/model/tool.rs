//! Judge tools as data: what a tool declares, what became of a call.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Blob, Digest};

/// The function a judge with tools submits its verdict with (design.md 6).
pub const SUBMIT_VERDICT: &str = "submit_verdict";

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDeclaration {
    /// `[A-Za-z_][A-Za-z0-9_.:-]{0,127}`.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments object.
    pub schema: serde_json::Value,
}

impl ToolDeclaration {
    /// Digest of everything the model sees; part of cache and evidence keys.
    pub fn digest(&self) -> Digest {
        let schema = self.schema.to_string();
        Digest::hash_parts([
            self.name.as_bytes(),
            self.description.as_bytes(),
            schema.as_bytes(),
        ])
    }
}

/// A call that was refused before it started. Terminal; the text is what the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// Which rule refused: `parse`, `unknown_tool`, `schema`, `seen` …
    pub rule: String,
    /// A sentence the model can act on, listing every failing field.
    pub text: String,
}

/// One thing argument repair or coercion changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentChange {
    /// JSON pointer into the canonical arguments; empty for the whole.
    pub path: String,
    /// What was done, for people: `closed 1 bracket`.
    pub what: String,
}

/// What a tool answered, as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResponse {
    /// The text for the model. Errors begin with `Error: `.
    pub text: String,
    /// Whether it is an error.
    pub is_error: bool,
    /// Size of the body the tool received, before cutting, in bytes.
    pub bytes: u64,
    /// Whether `text` was cut.
    pub truncated: bool,
    /// The raw body as received (capped), where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Blob>,
    /// The content type, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Characters of it that stand where a browser does not show them.
    #[serde(default, skip_serializing_if = "none_hidden")]
    pub hidden: u64,
    /// An error that another try may not have: no connection, 429, 5xx, a statement's timeout. Not recorded.
    #[serde(skip)]
    pub transient: bool,
}

impl ToolResponse {
    /// The same error, one that another try may not have.
    #[must_use]
    pub fn transient(self) -> Self {
        Self {
            transient: true,
            ..self
        }
    }

    /// A plain answer.
    pub fn ok(text: impl Into<String>) -> Self {
        let text = text.into();
        let bytes = text.len() as u64;
        Self {
            text,
            is_error: false,
            bytes,
            truncated: false,
            raw: None,
            content_type: None,
            hidden: 0,
            transient: false,
        }
    }

    /// A failure the model can act on: `Error: <why>`.
    pub fn error(why: impl std::fmt::Display) -> Self {
        let text = format!("Error: {why}");
        let bytes = text.len() as u64;
        Self {
            text,
            is_error: true,
            bytes,
            truncated: false,
            raw: None,
            content_type: None,
            hidden: 0,
            transient: false,
        }
    }
}

/// Whether nothing is hidden: the usual, and then not written.
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
    /// The address dialled, once one was chosen.
    pub address: Option<IpAddr>,
    /// The HTTP status, once there was one.
    pub status: Option<u16>,
    /// Why the guard refused, if it did (`unresolvable` too).
    pub refused: Option<String>,
}
