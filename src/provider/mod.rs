//! The providers of language models: one client over HTTP, and one dialect for each wire protocol.
//!
//! Responsible for request bodies, streamed replies, attempts and retries, and for reading request bodies back for
//! people. `build_body` is pure, because `dicta prompt`, the cache key and an edit at the gate use it. `send` is one
//! attempt, and [`call_with_retries`] makes the attempts and records each. Does not know verdicts, tools or files.
//! The history is sent back as the provider's own items, byte for byte.
//!
//! A *dialect* (`openai_chat`, `openai_responses`, `anthropic`, `gemini`, `decisions`, `embeddings`) writes bodies, reads replies
//! and explains bodies. `client` makes one attempt over HTTP for all of them, `sse` splits streams into frames,
//! [`retry`] decides about further attempts, `server_error` reads error bodies.
//!
//! **To add a dialect**, add a folder that implements `client::Dialect` and `client::ReplyReader` with an
//! `explain_body`. Then add a case in [`build_provider`] and in [`explain_request_body`], and rows in `capabilities`.

mod address;
mod anthropic;
mod attempts;
mod capabilities;
mod client;
mod context_window;
pub mod decisions;
pub mod embeddings;
mod foreign_text;
mod gemini;
pub mod google_auth;
mod openai_chat;
mod openai_responses;
mod readable_body;
mod reply_bytes;
mod reply_model;
mod request_body;
mod retirements;
pub mod retry;
mod server_error;
mod server_limits;
mod sse;
mod surrogates;
#[cfg(test)]
mod testing;
mod tool_declarations;
mod vertex;

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

pub use address::{default_base_url, find_foreign_origin, find_origin};
pub use attempts::call_with_retries;
pub use context_window::find_context_window;
pub use readable_body::{
    ReadableBody, ReadableItem, ReadablePart, ReadablePartKind, ReadableTool, SpeakerRole,
    format_field, format_settings, format_value,
};
pub(crate) use reply_bytes::split_frames;
pub use retirements::{RETIREMENTS_READ, find_retirement};
pub use server_limits::{RateLimitStatus, RemainingLimit};

use crate::clock::{BoxFuture, Clock};
use crate::event::{CallCx, DroppedSetting, HttpExchange};
use crate::model::{
    CellIx, HistoryItem, JudgeConfig, Millis, ModelReply, ProviderKind, TokenUsage,
    ToolDeclaration, VerdictMode,
};
use crate::net::LlmClient;

/// A dialect bound to one judge's configuration, key and client.
pub trait Provider: Send + Sync {
    /// The capabilities of the model.
    fn capabilities(&self) -> &ModelCapabilities;
    /// Builds the exact request of a turn. Pure, until a server refuses a setting of its model.
    ///
    /// After that ([`Provider::without_refused_setting`]) the body omits the setting, and `dropped` lists it.
    fn build_body(&self, turn: &TurnRequest<'_>) -> Result<RequestBody, ProviderError>;
    /// Makes one attempt: sends the body, emits deltas as `attempt` through `cx`, and returns the whole reply.
    fn send<'a>(
        &'a self,
        body: &'a RequestBody,
        attempt: u8,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<CompletedReply, ProviderError>>;
    /// The most attempts of one call.
    fn max_attempts(&self) -> u8 {
        retry::MAX_ATTEMPTS
    }
    /// The time until the cell's deadline; `None` if there is no deadline.
    fn time_left(&self) -> Option<Millis> {
        None
    }
    /// Waits until the limits of this provider's key allow another attempt, and records the wait (`TurnFact::Held`).
    ///
    /// The permit holds a place at the server until it is dropped.
    fn wait_for_permit<'a>(
        &'a self,
        body: &'a RequestBody,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<RequestPermit, ProviderError>> {
        let _ = (body, cx);
        Box::pin(std::future::ready(Ok(RequestPermit::default())))
    }
    /// Completes when no failed attempt may be repeated any more. A call that waits for its next attempt then ends with
    /// the error of the last one.
    fn wait_until_stopped(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
    /// Returns details of the last exchange for this cell, until [`Provider::forget_exchange`].
    fn last_exchange(&self, cell: CellIx) -> Option<ExchangeInfo> {
        let _ = cell;
        None
    }
    /// Discards the details of the last exchange for this cell.
    fn forget_exchange(&self, cell: CellIx) {
        let _ = cell;
    }
    /// Returns the body without the setting that this error refuses; `None` if it refuses none.
    ///
    /// Later bodies omit the setting too. The last entry of `dropped` describes it.
    fn without_refused_setting(
        &self,
        body: &RequestBody,
        error: &ProviderError,
    ) -> Option<RequestBody> {
        let _ = (body, error);
        None
    }
}

/// Renders tool declarations as JSON in a provider's format; `None` for a provider without function calls.
pub fn render_tool_declarations(kind: ProviderKind, tools: &[ToolDeclaration]) -> Option<String> {
    let render = match kind {
        ProviderKind::Openai => openai_chat::render_tool_declarations,
        ProviderKind::OpenaiResponses => openai_responses::render_tool_declarations,
        ProviderKind::Anthropic => anthropic::render_tool_declarations,
        ProviderKind::Gemini | ProviderKind::Vertex => gemini::render_tool_declarations,
        ProviderKind::OpenaiDecisions
        | ProviderKind::GeminiDecisions
        | ProviderKind::OpenaiEmbeddings
        | ProviderKind::GeminiEmbeddings
        | ProviderKind::Rules
        | ProviderKind::Replay
        | ProviderKind::Source => return None,
    };
    Some(render(tools))
}

/// Reads a request body of any dialect; returns `None` for a body of none of them, such as JSON that a person edited.
///
/// Recognizes the dialect by the keys of the body, because a recording names the judge but not its dialect. Slow for
/// bodies of megabytes: call it off the screen's thread.
pub fn explain_request_body(body: &str) -> Option<ReadableBody> {
    let Value::Object(map) = serde_json::from_str(body).ok()? else {
        return None;
    };
    let is_array = |key: &str| map.get(key).is_some_and(Value::is_array);
    // From the most specific key to `messages`, which two dialects share.
    if is_array("contents") {
        return gemini::explain_body(map);
    }
    if map.get("input").is_some_and(Value::is_string) && map.contains_key("questions") {
        return Some(decisions::explain_body(map));
    }
    if embeddings::is_body(&map) {
        return Some(embeddings::explain_body(map));
    }
    if is_array("input") && map.contains_key("model") {
        return openai_responses::explain_body(map);
    }
    if is_array("messages") {
        // Anthropic and Chat Completions both have `messages`; only Anthropic has the instructions in
        // `system`.
        return if map.contains_key("system") {
            anthropic::explain_body(map)
        } else {
            openai_chat::explain_body(map)
        };
    }
    None
}

/// The permission to send one request, with a place at the server while it lives. The default has no place.
#[derive(Default)]
pub struct RequestPermit(Option<Box<dyn std::any::Any + Send + Sync>>);

impl RequestPermit {
    /// A permit that gives back its place when it is dropped.
    pub fn with_slot(place: impl Send + Sync + 'static) -> Self {
        Self(Some(Box::new(place)))
    }

    /// Returns whether the permit holds a place.
    pub fn has_slot(&self) -> bool {
        self.0.is_some()
    }
}

/// The details of an exchange, without its reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeInfo {
    /// The details that the event log records.
    pub exchange: HttpExchange,
    /// The server's or the failure's own advice about a retry (`x-should-retry`), if there is any.
    pub should_retry: Option<bool>,
    /// The rest of the server's rate limits.
    pub rate_limits: RateLimitStatus,
}

/// The capabilities of a model, as far as they are known before the first call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCapabilities {
    /// `true` if the model has structured output.
    pub structured_output: bool,
    /// `true` if a request can force a function call.
    pub forced_call: bool,
    /// The settings of the judge that this model doesn't accept.
    pub dropped: Vec<DroppedSetting>,
}

/// The kinds of reply that a request allows.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolChoice {
    /// Only text; the request has no tool key.
    NoTools,
    /// Text of this JSON Schema (structured output), without a tool key. For a decisions endpoint, its questions
    /// ([`decisions`]).
    Schema(serde_json::Value),
    /// Text or any of the declared functions.
    Auto,
    /// Only this function.
    ForcedTool(String),
}

/// The content of one request.
#[derive(Debug, Clone)]
pub struct TurnRequest<'a> {
    /// The conversation so far.
    pub history: &'a [HistoryItem],
    /// The declared functions; empty with [`ToolChoice::NoTools`] and [`ToolChoice::Schema`].
    pub tools: &'a [ToolDeclaration],
    /// The kinds of reply that are allowed.
    pub tool_choice: ToolChoice,
}

/// A request body as pieces whose concatenation is the exact JSON.
///
/// Large pieces (one for each history item) are recorded once, however many turns repeat them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBody {
    /// The pieces in order. They never contain a key: keys travel in headers.
    pub pieces: Vec<Arc<str>>,
    /// The settings that were omitted for this model.
    pub dropped: Vec<DroppedSetting>,
}

impl RequestBody {
    /// Returns the whole body.
    pub fn text(&self) -> String {
        self.pieces.concat()
    }
}

/// A complete reply.
#[derive(Debug, Clone)]
pub struct CompletedReply {
    /// The provider's own items in order, as received, which later requests send back.
    pub native: Vec<Arc<RawValue>>,
    /// The reply as dicta reads it.
    pub reply: ModelReply,
    /// The token counts.
    pub usage: TokenUsage,
}

impl CompletedReply {
    /// Explains that the reply hit its token limit, and how to avoid it.
    pub fn explain_token_limit(&self) -> String {
        let why = "the reply hit its token limit before it was complete";
        // Only a reply without text and calls shows that thinking took everything.
        let silent = self.reply.text.trim().is_empty() && self.reply.calls.is_empty();
        let thinking = self.usage.thinking.filter(|tokens| *tokens > 0);
        match thinking {
            Some(tokens) if silent => format!(
                "{why}: thinking took all of it ({tokens} tokens) and no answer was written; raise \
                 max_output_tokens or lower `reasoning`"
            ),
            _ if silent && !self.reply.thought.is_empty() => format!(
                "{why}: thinking took all of it and no answer was written; raise max_output_tokens or lower \
                 `reasoning`"
            ),
            _ => why.to_owned(),
        }
    }
}

/// The failure of an attempt, or of all attempts.
#[derive(Debug, Clone, Error)]
pub enum ProviderError {
    /// dicta can't build or send the request.
    #[error("{0}")]
    Request(String),
    /// There is no connection, or it broke before the first byte.
    #[error("cannot reach {url}: {why}")]
    Connect {
        /// The address.
        url: String,
        /// The reason.
        why: String,
    },
    /// The server refused the request.
    #[error("{status} from {url}: {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The address.
        url: String,
        /// The server's message, redacted and cut.
        message: String,
        /// The delay that the server asks for (`Retry-After` in all its forms, Gemini's `RetryInfo`).
        retry_after: Option<Millis>,
        /// `true` if a retry can't help (a daily quota, an invalid key).
        terminal: bool,
    },
    /// The stream ended without its end mark, or exceeded a limit, so there is no reply.
    #[error("the reply was cut: {why}")]
    Cut {
        /// The reason.
        why: String,
        /// The token counts, if they are known.
        billed: Option<TokenUsage>,
    },
    /// The server reported an error inside the stream.
    #[error("the server reported an error in its reply: {message}")]
    InStream {
        /// The server's message.
        message: String,
        /// `true` if another attempt may succeed.
        retryable: bool,
    },
    /// The bytes don't follow the protocol, possibly because of a fault in transmission.
    #[error("the reply is not the protocol: {0}")]
    Malformed(String),
    /// The server speaks another protocol (a web page, other JSON, compression), so it would send the same again.
    #[error("the reply is not the protocol: {0}")]
    WrongProtocol(String),
    /// The work was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Returns the verdict mode of a judge with or without tools; replaces `auto`.
pub fn resolve_verdict_mode(
    mode: VerdictMode,
    has_tools: bool,
    caps: &ModelCapabilities,
) -> VerdictMode {
    match (mode, has_tools) {
        (VerdictMode::Auto, true) => VerdictMode::Call,
        (VerdictMode::Auto, false) if caps.structured_output => VerdictMode::Schema,
        (VerdictMode::Auto, false) => VerdictMode::Text,
        (mode, _) => mode,
    }
}

/// Builds the provider of a judge. `key` is the key itself and enters only headers. Sends nothing.
///
/// Returns [`ProviderError::Request`] for a kind without a dialect, an invalid `base_url`, and an `extra_body` with a
/// key that dicta sets itself.
pub fn build_provider(
    config: &JudgeConfig,
    key: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, ProviderError> {
    let client = client(config, &RequestAuth::Key(key), clock)?;
    Ok(Arc::new(client))
}

/// Builds the provider of a judge that uses Google credentials: each request has an access token.
pub fn build_provider_with_tokens(
    config: &JudgeConfig,
    tokens: &Arc<google_auth::GoogleTokens>,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, ProviderError> {
    let auth = RequestAuth::GoogleTokens(tokens.credentials().project());
    let client = client(config, &auth, clock)?;
    Ok(Arc::new(client.with_tokens(Arc::clone(tokens))))
}

/// The authentication of a judge's requests.
enum RequestAuth<'a> {
    /// A key, or none.
    Key(Option<&'a str>),
    /// Access tokens from credentials that belong to this project.
    GoogleTokens(Option<&'a str>),
}

fn client(
    config: &JudgeConfig,
    auth: &RequestAuth<'_>,
    clock: Arc<dyn Clock>,
) -> Result<client::ProviderClient, ProviderError> {
    let dialect = build_dialect(config, auth)?;
    let (caps, known) = capabilities::find_capabilities(config);
    let http = LlmClient::new(clock);
    // Access tokens are added per request, because they expire.
    let key = match auth {
        RequestAuth::Key(key) => *key,
        RequestAuth::GoogleTokens(_) => None,
    };
    // These endpoints send one JSON document and refuse `stream`.
    let unary = config.provider.writes_no_text();
    let config = &JudgeConfig {
        stream: config.stream && !unary,
        ..config.clone()
    };
    Ok(client::ProviderClient::new(
        dialect, caps, known, config, key, http,
    ))
}

fn build_dialect(
    config: &JudgeConfig,
    auth: &RequestAuth<'_>,
) -> Result<Box<dyn client::Dialect>, ProviderError> {
    Ok(match config.provider {
        ProviderKind::Openai => Box::new(openai_chat::ChatDialect::new(config)?),
        ProviderKind::Gemini => Box::new(gemini::GeminiDialect::new(config)?),
        ProviderKind::OpenaiResponses => Box::new(openai_responses::ResponsesDialect::new(config)?),
        ProviderKind::Anthropic => Box::new(anthropic::AnthropicDialect::new(config)?),
        ProviderKind::Vertex => vertex::build_dialect(config, auth)?,
        ProviderKind::OpenaiDecisions | ProviderKind::GeminiDecisions => {
            Box::new(decisions::DecisionsDialect::new(config)?)
        }
        ProviderKind::OpenaiEmbeddings | ProviderKind::GeminiEmbeddings => {
            Box::new(embeddings::EmbeddingsDialect::new(config)?)
        }
        kind @ (ProviderKind::Rules | ProviderKind::Replay | ProviderKind::Source) => {
            return Err(ProviderError::Request(format!(
                "provider `{}` is built in and sends no requests",
                kind.as_str()
            )));
        }
    })
}

/// Reads the body of a reply in the dialect of `kind`. Sends nothing.
pub(crate) fn read_reply_bytes(
    kind: ProviderKind,
    streamed: bool,
    chunks: &[&[u8]],
) -> Result<CompletedReply, ProviderError> {
    let mut config = JudgeConfig::new("bytes", kind);
    "any".clone_into(&mut config.model);
    let dialect = build_dialect(&config, &RequestAuth::Key(None))?;
    reply_bytes::read_chunks(&*dialect, streamed, chunks)
}
