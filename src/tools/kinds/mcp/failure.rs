//! Failures of requests to an MCP server.

use std::fmt;

use crate::net::FetchError;

/// The failure of a request: a sentence, and whether a retry may succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct McpFailure {
    pub(super) text: String,
    pub(super) transient: bool,
}

impl McpFailure {
    /// Creates a failure that a retry cannot avoid.
    pub(super) fn permanent(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            transient: false,
        }
    }

    /// Creates a failure that a retry may avoid.
    pub(super) fn transient(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            transient: true,
        }
    }

    /// Describes a request that the address guard refused or that failed.
    pub(super) fn from_fetch_error(error: &FetchError) -> Self {
        let text = match error {
            FetchError::Refused(refusal) if refusal.allowable => {
                format!("{refusal}; the source's `allowPrivate: true` would admit it")
            }
            other => other.to_string(),
        };
        Self {
            text,
            transient: error.is_transient(),
        }
    }

    /// Describes a message over the size limit `max`, in bytes.
    pub(super) fn message_too_large(max: usize) -> Self {
        Self::permanent(format!(
            "the server sent a message of more than {max} bytes"
        ))
    }

    /// Appends a text.
    pub(super) fn with_suffix(mut self, more: &str) -> Self {
        self.text.push_str(more);
        self
    }
}

impl fmt::Display for McpFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A failure as rmcp's transport reports it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct McpHttpError(pub(super) McpFailure);
