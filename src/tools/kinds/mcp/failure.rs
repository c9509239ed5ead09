//! Why a server could not be asked.

use std::fmt;

/// A sentence, and whether another try may end differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct McpFailure {
    pub(super) text: String,
    pub(super) transient: bool,
}

impl McpFailure {
    /// One that stays.
    pub(super) fn permanent(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            transient: false,
        }
    }

    /// One that may pass.
    pub(super) fn transient(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            transient: true,
        }
    }

    /// The same with more said.
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
