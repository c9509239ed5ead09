//! A judge's conversation with its model: what goes back, and our reading of what came.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ToolResponse;

/// A piece of what we tell the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryBlock {
    /// Instructions; providers place them where their protocol wants them.
    System(String),
    /// Text of a user message.
    Text(String),
}

/// One entry of the history that is sent.
#[derive(Debug, Clone)]
pub enum HistoryItem {
    /// What we say.
    User(Vec<HistoryBlock>),
    /// What the model said: the provider's own items, byte for byte, beside our reading of them.
    Model {
        /// The provider's items in order, as received; resent untouched.
        native: Vec<Arc<RawValue>>,
        /// Our reading.
        reply: ModelReply,
    },
    /// Answers to the calls of the model's last reply, in call order; same length as its `calls`.
    ToolResponses(Vec<ToolResponse>),
}

/// Our reading of one model reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The text, thoughts left out.
    pub text: String,
    /// The thinking the provider showed, if any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thought: String,
    /// Function calls in the order made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ReplyCall>,
    /// Why it stopped.
    pub stop: StopReason,
}

/// A function call in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyCall {
    /// The provider's id, or one we made where it sent none (never sent back then).
    pub id: String,
    /// The function named.
    pub name: String,
    /// The arguments as received, unparsed.
    pub raw: String,
}

/// Why a model stopped, folded over providers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    #[default]
    Stop,
    /// It wants tools run.
    ToolCalls,
    /// Its token limit.
    Length,
    /// A filter or a refusal; the provider's word.
    Refused(String),
    /// Anything else, as the provider says it.
    Other(String),
}

/// Tokens and calls. Absent figures are unknown, not 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Prompt tokens, cached ones included.
    pub input: Option<u64>,
    /// Tokens written, thinking included.
    pub output: Option<u64>,
    /// Of `input`: read from the provider's cache.
    pub cached: Option<u64>,
    /// Of `output`: thinking.
    pub thinking: Option<u64>,
    /// Model calls made.
    pub calls: u32,
}

impl TokenUsage {
    /// What a server really counted. No prompt has no tokens: a server that says so (mocks and gateways do) has counted
    /// nothing, and its zeros are no figures.
    #[must_use]
    pub fn without_zero_counts(self) -> Self {
        if self.input != Some(0) {
            return self;
        }
        Self {
            output: self.output.filter(|tokens| *tokens > 0),
            calls: self.calls,
            ..Self::default()
        }
    }

    /// The sum; a figure known on one side only stays known (the calls say how many it covers).
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            }
        }
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            cached: add(self.cached, other.cached),
            thinking: add(self.thinking, other.thinking),
            calls: self.calls.saturating_add(other.calls),
        }
    }
}
