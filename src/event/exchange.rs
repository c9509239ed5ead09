//! What is told of an exchange with a model's server besides its reply, and of the waits before it.

use serde::{Deserialize, Serialize};

/// One HTTP exchange, as far as it got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpExchange {
    /// The server's own name for the request (`x-request-id` and its kin): what its support asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Bytes of the reply's body that came.
    #[serde(default)]
    pub bytes: u64,
    /// The request was sent, and whether and what the server bills for it is not known: a cut, a time-out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cost_unknown: bool,
}

/// What holds a request back before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    /// `requests_per_minute`.
    Rate,
    /// `tokens_per_minute`, or what the server said is left of its own.
    Tokens,
    /// The server asked everybody with this key to wait.
    Server,
    /// As many requests are out as the server has shown to bear.
    #[serde(rename = "crowd")]
    Concurrency,
}

impl ThrottleReason {
    /// For people, after "waiting for".
    pub fn as_str(self) -> &'static str {
        match self {
            ThrottleReason::Rate => "the rate limit",
            ThrottleReason::Tokens => "the token limit",
            ThrottleReason::Server => "the server's own delay",
            ThrottleReason::Concurrency => "a free place at the server",
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_false(value: &bool) -> bool {
    !*value
}
