//! The failure of a background task, as a sentence for the user.
//!
//! The causes have many types, and some of them can't be cloned. The app only shows the reason, so it keeps the text.

use std::fmt;

/// The reason why a background task failed: a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskFailure(String);

impl TaskFailure {
    /// Creates a failure from any error or sentence.
    pub(crate) fn new(cause: impl fmt::Display) -> Self {
        Self(cause.to_string())
    }

    /// Returns the sentence.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for TaskFailure {
    fn from(sentence: &str) -> Self {
        Self(sentence.to_owned())
    }
}

impl From<TaskFailure> for String {
    fn from(failure: TaskFailure) -> Self {
        failure.0
    }
}
