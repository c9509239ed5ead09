//! The conversation of a judge with its model: the history that dicta sends, and the replies it reads.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ToolResponse;

/// A part of a message that dicta sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryBlock {
    /// Instructions. Each provider places them where its protocol requires.
    System(String),
    /// The text of a user message.
    Text(String),
}

/// One entry of the history that dicta sends.
#[derive(Debug, Clone)]
pub enum HistoryItem {
    /// A message from dicta.
    User(Vec<HistoryBlock>),
    /// A reply of the model: the provider's native items byte for byte, next to their interpretation.
    Model {
        /// The provider's items in order, as received. dicta sends them back unchanged.
        native: Vec<Arc<RawValue>>,
        /// The interpretation of the items.
        reply: ModelReply,
    },
    /// The responses to the calls of the model's last reply, in call order; one per call.
    ToolResponses(Vec<ToolResponse>),
}

/// The interpretation of one model reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The text without the reasoning.
    pub text: String,
    /// The reasoning text that the provider returned; empty if none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thought: String,
    /// The function calls in the order of the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ReplyCall>,
    /// The reason why the model stopped.
    pub stop: StopReason,
}

/// A function call in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyCall {
    /// The provider's id. If the provider sent none, an id that dicta made and never sends back.
    pub id: String,
    /// The name of the function.
    pub name: String,
    /// The raw arguments as received.
    pub raw: String,
}

/// The reason why a model stopped, in terms that all providers share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished.
    #[default]
    Stop,
    /// The model requests tool calls.
    ToolCalls,
    /// The reply reached the token limit.
    Length,
    /// The model or a filter refused; holds the provider's word.
    Refused(String),
    /// Another reason, in the provider's words.
    Other(String),
    /// The server sent no reason, but the reply is complete.
    Unknown,
}

/// The token and call counts of replies. An absent count is unknown, not 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// The prompt tokens, including cached tokens.
    pub input: Option<u64>,
    /// The reply tokens, including reasoning.
    pub output: Option<u64>,
    /// The part of `input` that the provider read from its cache.
    pub cached: Option<u64>,
    /// The part of `output` that is reasoning.
    pub thinking: Option<u64>,
    /// The number of model calls.
    pub calls: u32,
}

impl TokenUsage {
    /// Drops the counts of a server that reports 0 prompt tokens. Every prompt has tokens, so such a server (a mock
    /// or a gateway) did not count.
    #[must_use]
    pub fn without_zero_counts(self) -> Self {
        // An unknown count is better than a wrong one: a cost of 0 would look like a free call.
        if self.input != Some(0) {
            return self;
        }
        Self {
            output: self.output.filter(|tokens| *tokens > 0),
            calls: self.calls,
            ..Self::default()
        }
    }

    /// Adds two usages. A count that only one side knows stays known; `calls` shows the number of calls it covers.
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
