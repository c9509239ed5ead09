//! The HTTP exchange of an attempt, and the limits that delay an attempt.
//!
//! Responsible for their JSON. Does not send requests.

use serde::{Deserialize, Serialize};

/// One HTTP exchange, as far as it completed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpExchange {
    /// The server's id of the request (`x-request-id` or similar), which its support asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The number of received bytes of the reply's body.
    #[serde(default)]
    pub bytes: u64,
    /// `true` if dicta sent the request and doesn't know its cost, for example after a timeout.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cost_unknown: bool,
}

/// The limit that delays a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    /// `requests_per_minute`.
    Rate,
    /// `tokens_per_minute`, or the remaining tokens that the server reported.
    Tokens,
    /// The server asked all users of this key to wait.
    Server,
    /// The number of concurrent requests has reached the number that the server accepted before.
    #[serde(rename = "crowd")]
    Concurrency,
}

impl ThrottleReason {
    /// Returns the limit in words, for use after "waiting for".
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
