//! Model dialects over one transport: pure request bodies, frames, attempts.
//!
//! Owns how a model is spoken to. `body()` is pure (`dicta prompt`, the cache key and a hand edit at the gate use it);
//! `send()` is ONE attempt; [`call`] owns the attempts and tells each as a fact. Refuses to know verdicts, tools' work or
//! files. History is sent back as the provider's own items, byte for byte, beside our reading of them.

//!
//! How it is laid out: a *dialect* (`openai`, `gemini`) writes bodies and reads frames; `client` is one attempt over
//! HTTP, the same for all; `frames` is the framing; [`retry`] the policy with its table; `refusal` reads what servers
//! say when they refuse. **Adding a dialect**: a folder that implements `client::Dialect` and `client::Reader`, a case
//! in [`build`], rows in `caps`.

mod anthropic;
mod attempts;
mod capabilities;
mod client;
mod context_window;
pub mod decisions;
mod gemini;
pub mod google_auth;
mod openai_chat;
mod openai_responses;
mod readable_body;
mod request_body;
pub mod retry;
mod server_error;
mod server_limits;
mod sse;
#[cfg(test)]
mod testing;
mod tool_declarations;
mod vertex;

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

pub use attempts::call_with_retries;
pub use context_window::find_context_window;
pub use readable_body::{
    ReadableBody, ReadableItem, ReadablePart, ReadablePartKind, ReadableTool, SpeakerRole,
    format_field, format_settings, format_value,
};
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
    /// What the model takes.
    fn capabilities(&self) -> &ModelCapabilities;
    /// The exact request for a turn. Pure: same input, same bytes, until a server teaches us what its model does not
    /// take ([`Provider::without`]); then `dropped` says so.
    fn build_body(&self, turn: &TurnRequest<'_>) -> Result<RequestBody, ProviderError>;
    /// One attempt: sends the body, emits deltas as `attempt` through `cx`, and returns the whole reply.
    fn send<'a>(
        &'a self,
        body: &'a RequestBody,
        attempt: u8,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<CompletedReply, ProviderError>>;
    /// Attempts of one call in all.
    fn max_attempts(&self) -> u8 {
        retry::MAX_ATTEMPTS
    }
    /// What the cell's deadline leaves; `None` where there is none.
    fn time_left(&self) -> Option<Millis> {
        None
    }
    /// Waits until the limits of this provider's key let another attempt begin, and tells the wait
    /// (`TurnFact::Held`). Whoever holds the pass holds a place; dropping it gives the place back.
    fn wait_for_permit<'a>(
        &'a self,
        body: &'a RequestBody,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<RequestPermit, ProviderError>> {
        let _ = (body, cx);
        Box::pin(std::future::ready(Ok(RequestPermit::default())))
    }
    /// What is known of the last exchange for this cell besides its reply, until [`Provider::forget`].
    fn last_exchange(&self, cell: CellIx) -> Option<ExchangeInfo> {
        let _ = cell;
        None
    }
    /// Nobody asks for the last exchange of this cell any more.
    fn forget_exchange(&self, cell: CellIx) {
        let _ = cell;
    }
    /// The body again without the setting that this refusal names as not taken, its last `dropped` saying so; `None`
    /// where the refusal names none. It is remembered: later bodies leave it out.
    fn without_refused_setting(
        &self,
        body: &RequestBody,
        error: &ProviderError,
    ) -> Option<RequestBody> {
        let _ = (body, error);
        None
    }
}

/// Tool declarations as the requests of a provider hold them: JSON; `None` for one that calls no functions, or is asked of
/// nobody.
pub fn render_tool_declarations(kind: ProviderKind, tools: &[ToolDeclaration]) -> Option<String> {
    let render = match kind {
        ProviderKind::Openai => openai_chat::render_tool_declarations,
        ProviderKind::OpenaiResponses => openai_responses::render_tool_declarations,
        ProviderKind::Anthropic => anthropic::render_tool_declarations,
        ProviderKind::Gemini | ProviderKind::Vertex => gemini::render_tool_declarations,
        ProviderKind::OpenaiDecisions
        | ProviderKind::GeminiDecisions
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
    if is_array("contents") {
        return gemini::explain_body(map);
    }
    if map.get("input").is_some_and(Value::is_string) && map.contains_key("questions") {
        return Some(decisions::explain_body(map));
    }
    if is_array("input") && map.contains_key("model") {
        return openai_responses::explain_body(map);
    }
    if is_array("messages") {
        // Anthropic and Chat Completions both have `messages`; only Anthropic has the instructions in `system`.
        return if map.contains_key("system") {
            anthropic::explain_body(map)
        } else {
            openai_chat::explain_body(map)
        };
    }
    None
}

/// Leave to send one request: a place at the server, held while this lives. The default holds none.
#[derive(Default)]
pub struct RequestPermit(Option<Box<dyn std::any::Any + Send + Sync>>);

impl RequestPermit {
    /// A pass that gives back its place when it is dropped, as `place` does.
    pub fn with_slot(place: impl Send + Sync + 'static) -> Self {
        Self(Some(Box::new(place)))
    }

    /// Whether a place is held.
    pub fn has_slot(&self) -> bool {
        self.0.is_some()
    }
}

/// What a server let on about an exchange besides its reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeInfo {
    /// For the log.
    pub exchange: HttpExchange,
    /// Whether trying again may help, where that was said (`x-should-retry`) or the failure itself says it.
    pub should_retry: Option<bool>,
    /// What is left of its limits.
    pub rate_limits: RateLimitStatus,
}

/// What a model takes, known before the first call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCapabilities {
    /// Whether it has structured output.
    pub structured_output: bool,
    /// Whether a function can be forced.
    pub forced_call: bool,
    /// Settings of the judge that this model does not take.
    pub dropped: Vec<DroppedSetting>,
}

/// What the model may answer with.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolChoice {
    /// Text alone; the request holds no tool key at all.
    NoTools,
    /// Text in this JSON Schema (structured output); no tool key either. A decisions endpoint, which writes no text, gets
    /// its questions here ([`decisions`]).
    Schema(serde_json::Value),
    /// Text or any of the declared functions.
    Auto,
    /// This function alone.
    ForcedTool(String),
}

/// One turn to be asked.
#[derive(Debug, Clone)]
pub struct TurnRequest<'a> {
    /// Everything so far.
    pub history: &'a [HistoryItem],
    /// Declared functions; empty with [`Choice::NoTools`] and [`Choice::Schema`].
    pub tools: &'a [ToolDeclaration],
    /// What it may answer with.
    pub tool_choice: ToolChoice,
}

/// A request body as pieces: concatenated they are the exact JSON. Large pieces (a history item each) are recorded once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBody {
    /// In order. Never holds a key: keys travel in headers.
    pub pieces: Vec<Arc<str>>,
    /// What was left out for this model.
    pub dropped: Vec<DroppedSetting>,
}

impl RequestBody {
    /// The exact bytes.
    pub fn text(&self) -> String {
        self.pieces.concat()
    }
}

/// A complete reply.
#[derive(Debug, Clone)]
pub struct CompletedReply {
    /// The provider's own items in order, as received; what goes back.
    pub native: Vec<Arc<RawValue>>,
    /// Our reading.
    pub reply: ModelReply,
    /// What it cost.
    pub usage: TokenUsage,
}

impl CompletedReply {
    /// Why a reply that hit its token limit is none.
    pub fn explain_token_limit(&self) -> String {
        let why = "the reply hit its token limit before it was complete";
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

/// Why an attempt, or all of them, failed.
#[derive(Debug, Clone, Error)]
pub enum ProviderError {
    /// The request cannot be built.
    #[error("{0}")]
    Request(String),
    /// No connection, or it broke before the first byte.
    #[error("cannot reach {url}: {why}")]
    Connect {
        /// Where to.
        url: String,
        /// Why.
        why: String,
    },
    /// The server refused.
    #[error("{status} from {url}: {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// Where from.
        url: String,
        /// What the server said, redacted and cut.
        message: String,
        /// How long it asked to wait (`Retry-After` in all its forms, Gemini's `RetryInfo`).
        retry_after: Option<Millis>,
        /// Whether trying again cannot help (a daily quota, a bad key).
        terminal: bool,
    },
    /// The stream ended without its end mark, or a cap was hit: the reply is no reply.
    #[error("the reply was cut: {why}")]
    Cut {
        /// How.
        why: String,
        /// What it cost, where known.
        billed: Option<TokenUsage>,
    },
    /// An error inside the stream.
    #[error("the server reported an error in its reply: {message}")]
    InStream {
        /// What it said.
        message: String,
        /// Whether another attempt may help.
        retryable: bool,
    },
    /// Bytes that are not the protocol.
    #[error("the reply is not the protocol: {0}")]
    Malformed(String),
    /// The work is no longer wanted.
    #[error("cancelled")]
    Cancelled,
}

/// Whether a verdict mode fits a judge with or without tools; what `auto` becomes.
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

/// Builds the dialect for a judge. `key` is the key itself; it enters headers only.
///
/// A kind without a dialect in this version, an unusable `base_url` and an `extra_body` that speaks for the judge are
/// [`ProviderError::Request`]. Sends nothing.
pub fn build_provider(
    config: &JudgeConfig,
    key: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, ProviderError> {
    let client = client(config, &RequestAuth::Key(key), clock)?;
    Ok(Arc::new(client))
}

/// As [`build`], for a judge that Google's credentials speak for: each request carries an access token.
pub fn build_provider_with_tokens(
    config: &JudgeConfig,
    tokens: &Arc<google_auth::GoogleTokens>,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, ProviderError> {
    let auth = RequestAuth::GoogleTokens(tokens.credentials().project());
    let client = client(config, &auth, clock)?;
    Ok(Arc::new(client.with_tokens(Arc::clone(tokens))))
}

/// What speaks for a judge.
enum RequestAuth<'a> {
    /// A key, or nothing.
    Key(Option<&'a str>),
    /// Access tokens, made of credentials that belong to this project.
    GoogleTokens(Option<&'a str>),
}

fn client(
    config: &JudgeConfig,
    auth: &RequestAuth<'_>,
    clock: Arc<dyn Clock>,
) -> Result<client::ProviderClient, ProviderError> {
    let dialect: Box<dyn client::Dialect> = match config.provider {
        ProviderKind::Openai => Box::new(openai_chat::ChatDialect::new(config)?),
        ProviderKind::Gemini => Box::new(gemini::GeminiDialect::new(config)?),
        ProviderKind::OpenaiResponses => Box::new(openai_responses::ResponsesDialect::new(config)?),
        ProviderKind::Anthropic => Box::new(anthropic::AnthropicDialect::new(config)?),
        ProviderKind::Vertex => vertex::build_dialect(config, auth)?,
        ProviderKind::OpenaiDecisions | ProviderKind::GeminiDecisions => {
            Box::new(decisions::DecisionsDialect::new(config)?)
        }
        kind @ (ProviderKind::Rules | ProviderKind::Replay | ProviderKind::Source) => {
            return Err(ProviderError::Request(format!(
                "provider `{}` is built in and sends no requests",
                kind.as_str()
            )));
        }
    };
    let (caps, known) = capabilities::find_capabilities(config);
    let http = LlmClient::new(clock);
    let key = match auth {
        RequestAuth::Key(key) => *key,
        RequestAuth::GoogleTokens(_) => None,
    };
    let unary = config.provider.is_decisions();
    let config = &JudgeConfig {
        stream: config.stream && !unary,
        ..config.clone()
    };
    Ok(client::ProviderClient::new(
        dialect, caps, known, config, key, http,
    ))
}
