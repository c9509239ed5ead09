//! One attempt over HTTP for every dialect: it posts the body, reads the reply while it streams, and classifies how
//! it ended.
//!
//! Responsible for headers, the reading loop, the meaning of failures, and the settings that servers refused. The
//! dialect writes bodies and reads frames. The key enters only the headers and the redactor.

mod failures;
mod posting_auth;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;

use super::foreign_text::{self, ForeignText};
use super::google_auth::GoogleTokens;
use super::reply_model::ReplyModel;
use super::retry::{self, CAPPED, OVERDUE};
use super::server_error::{self, OmittableSetting};
use super::sse::{SseFrame, SseFrameError, SseParser};
use super::surrogates::SurrogateJoiner;
use super::{
    CompletedReply, ExchangeInfo, ModelCapabilities, Provider, ProviderError, RequestBody,
    TurnRequest,
};
use crate::clock::BoxFuture;
use crate::event::{CallCx, DeltaCoalescer, DeltaPart, DroppedSetting, EventKind, Redactor};
use crate::model::surrogates::replace_lone_halves;
use crate::model::{
    ApiKeySource, CellIx, JudgeConfig, Millis, OtherModel, StopReason, TokenUsage, TurnIx,
    is_loopback_url,
};
use crate::net::{LlmClient, LlmResponse, NetError};

/// The longest time from sending a request to the end of its reply, because a server can keep a connection alive
/// without replying.
const WHOLE: Millis = Millis(15 * 60_000);
/// The longest time until a reply that isn't streamed begins.
const DOCUMENT_FIRST_BYTE_TIMEOUT: Millis = Millis(10 * 60_000);

/// The differences between wire protocols.
pub(super) trait Dialect: Send + Sync {
    /// The URL for requests.
    fn url(&self) -> &str;
    /// The header with the key.
    fn key_header(&self) -> KeyHeader;
    /// Other headers that the protocol requires; a user's own header of the same name wins.
    fn extra_headers(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
    /// The settings that a server may refuse and dicta can omit.
    fn omittable_settings(&self) -> &'static [OmittableSetting];
    /// Builds the body as pieces, without the settings in `omit`.
    fn build_body_pieces(
        &self,
        turn: &TurnRequest<'_>,
        omit: &OmittedSettings,
    ) -> Result<Vec<Arc<str>>, ProviderError>;
    /// A reader for one reply of this turn.
    fn new_reply_reader(&self, turn: TurnIx) -> Box<dyn ReplyReader>;
}

/// The reader that turns frames into a reply.
pub(super) trait ReplyReader: Send {
    /// Reads a frame and appends new text for the screen to `new`.
    fn read_frame(
        &mut self,
        frame: SseFrame,
        new: &mut NewDeltas,
    ) -> Result<StreamProgress, ProviderError>;
    /// Reads the body of a reply that wasn't streamed.
    fn read_document(&mut self, body: &str, new: &mut NewDeltas) -> Result<(), ProviderError>;
    /// Returns the member that asks for the rest of a reply, as JSON (`"key":value`), if the server ended it in the
    /// middle.
    ///
    /// The client adds it to the request's body and reads the next reply into the same reader.
    fn take_continuation_member(&mut self) -> Option<String> {
        None
    }
    /// Returns the reply after the stream ended without an HTTP error.
    fn finish(self: Box<Self>) -> Result<CompletedReply, ProviderError>;
    /// The token counts that the server has reported so far.
    fn billed_usage(&self) -> Option<TokenUsage>;
}

/// The header in which a dialect sends its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyHeader {
    pub(super) name: &'static str,
    /// The text before the key, such as `Bearer `.
    pub(super) prefix: &'static str,
}

impl KeyHeader {
    /// `Authorization: Bearer <key>`.
    pub(super) const BEARER: Self = Self {
        name: "authorization",
        prefix: "Bearer ",
    };
    /// `x-goog-api-key: <key>`.
    pub(super) const GOOGLE: Self = Self {
        name: "x-goog-api-key",
        prefix: "",
    };
}

/// New text of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewDelta {
    /// The part that the text belongs to.
    pub(super) part: DeltaPart,
    pub(super) text: String,
}

/// New texts in the order of their arrival.
pub(super) type NewDeltas = Vec<NewDelta>;

/// The state of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamProgress {
    /// More frames may follow.
    More,
    /// The server sent its own end mark.
    Done,
}

/// Turns the chunks of a stream into frames with whole characters.
#[derive(Default)]
pub(super) struct FrameDecoder {
    framing: SseParser,
    halves: SurrogateJoiner,
}

impl FrameDecoder {
    /// Appends the frames of a chunk to `frames`, also those before a fault.
    pub(super) fn push(
        &mut self,
        chunk: &[u8],
        frames: &mut Vec<SseFrame>,
    ) -> Result<(), ProviderError> {
        let pushed = self.framing.push(chunk, frames);
        self.halves.join(frames);
        pushed.map_err(framing_error)
    }

    /// Ends the stream and appends the rest as incomplete frames.
    pub(super) fn finish(mut self, frames: &mut Vec<SseFrame>) -> Result<(), ProviderError> {
        self.framing.finish(frames).map_err(framing_error)?;
        self.halves.join(frames);
        self.halves.finish(frames);
        Ok(())
    }
}

/// The settings to omit, by [`OmittableSetting::setting`].
#[derive(Debug, Clone, Default)]
pub(super) struct OmittedSettings {
    /// The judge's settings that this model is known to reject. The user's `extra_body` is not affected.
    pub(super) unsupported: Vec<&'static str>,
    /// The settings that the server refused, also in `extra_body`.
    pub(super) refused: Vec<&'static str>,
    /// The settings that the server wants under [`OmittableSetting::replacement_key`].
    pub(super) renamed: Vec<&'static str>,
}

impl OmittedSettings {
    /// Returns whether the judge's own setting is omitted.
    pub(super) fn contains(&self, setting: &str) -> bool {
        self.unsupported.contains(&setting) || self.refused.contains(&setting)
    }
}

/// The settings that servers refused since the start.
#[derive(Debug, Default)]
struct LearnedSettings {
    omitted: OmittedSettings,
    dropped: Vec<DroppedSetting>,
}

/// A dialect with its key and its connections.
pub(super) struct ProviderClient {
    dialect: Box<dyn Dialect>,
    capabilities: ModelCapabilities,
    /// The settings of `capabilities.dropped`, by name for the dialect.
    unsupported: Vec<&'static str>,
    stream: bool,
    headers: Vec<(String, String)>,
    /// The URL without userinfo and query, for messages.
    shown_url: String,
    /// The reason why no key is sent, for a server that requires one.
    missing_key_reason: Option<String>,
    redactor: Redactor,
    /// Google access tokens, if they replace a key.
    tokens: Option<Arc<GoogleTokens>>,
    http: LlmClient,
    learned: Mutex<LearnedSettings>,
    /// The name of the judge, and the model of its requests.
    judge_model: (String, String),
    /// True after a note about replies of another model.
    noted_other_model: AtomicBool,
    max_attempts: u8,
    /// The last exchange of each cell, until its reader discards it.
    exchanges: Mutex<HashMap<CellIx, ExchangeInfo>>,
}

impl ProviderClient {
    /// `unsupported` are the settings that the model is known to reject.
    pub(super) fn new(
        dialect: Box<dyn Dialect>,
        capabilities: ModelCapabilities,
        unsupported: Vec<&'static str>,
        config: &JudgeConfig,
        key: Option<&str>,
        http: LlmClient,
    ) -> Self {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        // The same choice as `stream` in the body.
        let accept = if config.stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        headers.push(("accept".to_owned(), accept.to_owned()));
        let extra = dialect.extra_headers().into_iter();
        headers.extend(extra.map(|(name, value)| (name.to_owned(), value.to_owned())));
        if let Some(key) = key {
            let KeyHeader { name, prefix } = dialect.key_header();
            headers.push((name.to_owned(), format!("{prefix}{key}")));
        }
        // The user's own headers win: gateways carry keys in their own ways.
        headers.retain(|(name, _)| {
            !config
                .headers
                .keys()
                .any(|user_header| user_header.eq_ignore_ascii_case(name))
        });
        let user_headers = config.headers.iter();
        headers.extend(user_headers.map(|(name, value)| (name.clone(), value.clone())));
        // Users put keys into headers of any name, so every header value is a secret.
        let secrets = key
            .into_iter()
            .chain(config.headers.values().map(String::as_str));
        let missing_key_reason = match (key, &config.key) {
            // A header of the user may contain a key, so its absence can't be claimed.
            _ if !config.headers.is_empty() => None,
            (None, ApiKeySource::EnvIfSet(name)) => {
                Some(format!("no key was sent: {name} is not set"))
            }
            (None, ApiKeySource::None) => Some("no key was sent".to_owned()),
            _ => None,
        };
        Self {
            shown_url: failures::display_url(dialect.url()),
            max_attempts: config.max_attempts.unwrap_or(retry::MAX_ATTEMPTS).max(1),
            exchanges: Mutex::default(),
            missing_key_reason,
            redactor: Redactor::new(secrets),
            tokens: None,
            stream: config.stream,
            dialect,
            capabilities,
            unsupported,
            headers,
            http,
            learned: Mutex::default(),
            judge_model: (config.name.clone(), config.model.clone()),
            noted_other_model: AtomicBool::new(false),
        }
    }

    fn learned(&self) -> std::sync::MutexGuard<'_, LearnedSettings> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exchanges(&self) -> std::sync::MutexGuard<'_, HashMap<CellIx, ExchangeInfo>> {
        let exchanges = self.exchanges.lock();
        exchanges.unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes secrets from a text of a server or the system, and cuts it.
    fn redact(&self, text: &str) -> String {
        match self.redactor.redact(text) {
            Some(clean) => server_error::truncate_text(&clean),
            None => server_error::truncate_text(text),
        }
    }

    /// Runs one exchange and records its details.
    async fn run_exchange(
        &self,
        body: &RequestBody,
        cx: &CallCx,
        deltas: &mut DeltaCoalescer<'_>,
    ) -> Result<CompletedReply, ProviderError> {
        let mut exchange_info = ExchangeInfo::default();
        let mut reader = self.dialect.new_reply_reader(cx.turn);
        let mut model = ReplyModel::default();
        let read = tokio::select! {
            // A reply that is complete in time wins over the deadline.
            biased;
            read = self.request_reply(body, (&mut *reader, &mut model), &mut exchange_info, cx, deltas) => read,
            () = cx.clock.sleep(WHOLE) => Err(truncated_error(format!("{OVERDUE}{WHOLE}"))),
        };
        // Take the counts before `finish` consumes the reader.
        let billed = reader.billed_usage().map(TokenUsage::without_zero_counts);
        let done = read
            .and_then(|()| reader.finish())
            .map(|finished| CompletedReply {
                usage: finished.usage.without_zero_counts(),
                ..finished
            })
            .map_err(|error| self.redact_error(error, billed));
        // `|=`, because a connection error has set it already.
        exchange_info.exchange.cost_unknown |= match &done {
            Ok(_) => false,
            Err(error) => error.may_be_billed() && billed.is_none(),
        };
        self.exchanges().insert(cx.cell, exchange_info);
        if done.is_ok() {
            self.note_other_model(&model, cx).await;
        }
        done
    }

    /// Records once that replies name another model than the one that dicta asked for.
    async fn note_other_model(&self, model: &ReplyModel, cx: &CallCx) {
        let (judge, requested) = &self.judge_model;
        let replied = model.name().unwrap_or_default();
        let Some(other) = OtherModel::find(judge, requested, replied) else {
            return;
        };
        if self.noted_other_model.swap(true, Ordering::Relaxed) {
            return;
        }
        let text = other.to_note();
        cx.out.send(EventKind::Note { cell: None, text }).await;
    }

    async fn request_reply(
        &self,
        body: &RequestBody,
        (reader, model): (&mut dyn ReplyReader, &mut ReplyModel),
        exchange_info: &mut ExchangeInfo,
        cx: &CallCx,
        deltas: &mut DeltaCoalescer<'_>,
    ) -> Result<(), ProviderError> {
        // `Bytes`, because a second attempt with a new token sends the same body again.
        let mut text = bytes::Bytes::from(body.text());
        loop {
            let mut response = self.post_with_auth(&text, exchange_info, cx).await?;
            self.read_response_headers(&response, exchange_info, cx);
            // Redirects count as errors: following one could send the key to another host.
            if !(200..300).contains(&response.status) {
                return Err(self.status_error(response, cx, exchange_info).await);
            }
            let coding = response.header("content-encoding").unwrap_or("identity");
            // dicta doesn't ask for compression, and the readers below can't decompress.
            if !coding.eq_ignore_ascii_case("identity") {
                let coding = server_error::truncate_text(coding);
                return Err(ProviderError::WrongProtocol(format!(
                    "it is compressed ({coding}), which was not asked for"
                )));
            }
            if self.stream {
                self.stream(&mut response, (reader, model), exchange_info, cx, deltas)
                    .await?;
            } else {
                self.read_document(&mut response, (reader, model), exchange_info, cx, deltas)
                    .await?;
            }
            // Only Gemini ends a reply in the middle; the reader then asks for the rest.
            let rest = reader.take_continuation_member();
            let Some(longer) =
                rest.and_then(|member| posting_auth::append_member(&body.text(), &member))
            else {
                return Ok(());
            };
            let why = "the server ended its reply in the middle; asking for the rest of it";
            posting_auth::emit_note(cx, why).await;
            text = longer.into();
        }
    }

    /// Reads a stream to its end mark or its end.
    async fn stream(
        &self,
        response: &mut LlmResponse,
        (reader, model): (&mut dyn ReplyReader, &mut ReplyModel),
        exchange_info: &mut ExchangeInfo,
        cx: &CallCx,
        deltas: &mut DeltaCoalescer<'_>,
    ) -> Result<(), ProviderError> {
        let (mut decoder, mut frames) = (FrameDecoder::default(), Vec::new());
        while let Some(chunk) = next_chunk(response, exchange_info, cx, deltas).await? {
            // Frames before a fault are read first: they can contain the token counts, or an error that
            // explains it.
            let pushed = decoder.push(&chunk, &mut frames);
            for frame in &frames {
                let (SseFrame::Event { data: text, .. } | SseFrame::Stray { text, .. }) = frame;
                model.read(text);
            }
            if read_frames(&mut frames, reader, deltas).await? == StreamProgress::Done {
                // The end of the body is usually in the same packet; reading it frees the connection for
                // reuse.
                let _end = response.next_chunk().now_or_never();
                return Ok(());
            }
            pushed?;
        }
        // The stream ended without an end mark; its last frames are incomplete.
        decoder.finish(&mut frames)?;
        read_frames(&mut frames, reader, deltas).await?;
        Ok(())
    }

    /// Reads a reply that is one JSON document.
    async fn read_document(
        &self,
        response: &mut LlmResponse,
        (reader, model): (&mut dyn ReplyReader, &mut ReplyModel),
        exchange_info: &mut ExchangeInfo,
        cx: &CallCx,
        deltas: &mut DeltaCoalescer<'_>,
    ) -> Result<(), ProviderError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = next_chunk(response, exchange_info, cx, deltas).await? {
            bytes.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(bytes).map_err(|_| framing_error(SseFrameError::NotUtf8))?;
        model.read(&text);
        let mut new = NewDeltas::new();
        let done = reader.read_document(&replace_lone_halves(&text), &mut new);
        for NewDelta { part, text } in new {
            deltas.push(part, &text).await;
        }
        done
    }

    /// Redacts an error and adds the token counts of the reply.
    fn redact_error(&self, error: ProviderError, billed: Option<TokenUsage>) -> ProviderError {
        match error {
            ProviderError::Cut { why, .. } => ProviderError::Cut {
                why: self.redact(&why),
                billed,
            },
            ProviderError::InStream { message, retryable } => ProviderError::InStream {
                message: self.redact(&message),
                retryable,
            },
            ProviderError::Malformed(why) => ProviderError::Malformed(self.redact(&why)),
            ProviderError::WrongProtocol(why) => ProviderError::WrongProtocol(self.redact(&why)),
            other => other,
        }
    }
}

impl Provider for ProviderClient {
    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    fn build_body(&self, turn: &TurnRequest<'_>) -> Result<RequestBody, ProviderError> {
        // Copy under the lock and release it, because building a body takes time.
        let (mut omit, learned) = {
            let learned = self.learned();
            (learned.omitted.clone(), learned.dropped.clone())
        };
        omit.unsupported.clone_from(&self.unsupported);
        let mut dropped = self.capabilities.dropped.clone();
        dropped.extend(learned);
        let pieces = self.dialect.build_body_pieces(turn, &omit)?;
        Ok(RequestBody { pieces, dropped })
    }

    fn send<'a>(
        &'a self,
        body: &'a RequestBody,
        attempt: u8,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<CompletedReply, ProviderError>> {
        Box::pin(async move {
            let mut deltas = cx.coalesce_deltas(attempt);
            let result = self.run_exchange(body, cx, &mut deltas).await;
            deltas.finish().await;
            result
        })
    }

    fn max_attempts(&self) -> u8 {
        self.max_attempts
    }

    fn last_exchange(&self, cell: CellIx) -> Option<ExchangeInfo> {
        self.exchanges().get(&cell).cloned()
    }

    fn forget_exchange(&self, cell: CellIx) {
        self.exchanges().remove(&cell);
    }

    fn without_refused_setting(
        &self,
        body: &RequestBody,
        error: &ProviderError,
    ) -> Option<RequestBody> {
        let ProviderError::Status {
            status, message, ..
        } = error
        else {
            return None;
        };
        // Servers on this machine answer 500 where others answer 400.
        if !(matches!(status, 400 | 422) || *status == 500 && is_loopback_url(&self.shown_url)) {
            return None;
        }
        // The message must name a setting that this dialect can omit.
        let param = server_error::find_refused_setting(self.dialect.omittable_settings(), message)?;
        // Some servers know the same setting only under its other name.
        let rename = param
            .replacement_key
            .is_some_and(|other| message.contains(other));
        let dropped = DroppedSetting {
            what: param.setting.to_owned(),
            why: format!("the server refused it: {message}"),
        };
        // Returns `None` if the body lacks the setting, so the refusal is about something else.
        let shorter = server_error::remove_setting(body, param, rename, dropped.clone())?;
        let mut learned = self.learned();
        let omit = &mut learned.omitted;
        let list = if rename {
            &mut omit.renamed
        } else {
            &mut omit.refused
        };
        // Parallel cells can learn of the same refusal; record it once.
        if !list.contains(&param.setting) {
            list.push(param.setting);
            learned.dropped.push(dropped);
        }
        Some(shorter)
    }
}

/// Returns the next piece of the body. Emits collected deltas while no piece arrives.
async fn next_chunk(
    response: &mut LlmResponse,
    exchange_info: &mut ExchangeInfo,
    cx: &CallCx,
    deltas: &mut DeltaCoalescer<'_>,
) -> Result<Option<bytes::Bytes>, ProviderError> {
    // Pinned outside the loop, so that a flush doesn't restart the read.
    let mut coming = pin!(response.next_chunk());
    loop {
        let due = deltas.time_until_flush();
        let quiet = async {
            match due {
                Some(wait) => cx.clock.sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ProviderError::Cancelled),
            chunk = &mut coming => {
                let chunk = chunk.map_err(|error| broken_body_error(&error))?;
                exchange_info.exchange.bytes += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
                return Ok(chunk);
            }
            () = quiet => deltas.flush().await,
        }
    }
}

async fn read_frames(
    frames: &mut Vec<SseFrame>,
    reader: &mut dyn ReplyReader,
    deltas: &mut DeltaCoalescer<'_>,
) -> Result<StreamProgress, ProviderError> {
    let mut new = NewDeltas::new();
    for frame in frames.drain(..) {
        let progress = reader.read_frame(frame, &mut new);
        // Show the text before a fault ends the reply.
        for NewDelta { part, text } in new.drain(..) {
            deltas.push(part, &text).await;
        }
        if progress? == StreamProgress::Done {
            return Ok(StreamProgress::Done);
        }
    }
    Ok(StreamProgress::More)
}

/// Returns the error of a body that broke off or is too large.
fn broken_body_error(error: &NetError) -> ProviderError {
    let why = match error {
        // The words begin with `CAPPED`, by which the retry rules recognize a size limit.
        NetError::TooLarge { limit, .. } => format!("{CAPPED}{} MiB", limit >> 20),
        other => other.to_string(),
    };
    truncated_error(why)
}

fn framing_error(error: SseFrameError) -> ProviderError {
    match error {
        SseFrameError::TooLarge(cap) => truncated_error(format!("{CAPPED}the cap of {cap}")),
        SseFrameError::NotUtf8 => ProviderError::WrongProtocol("it is not UTF-8".to_owned()),
    }
}

/// Returns the error of a reply that did not end as it should.
pub(super) fn truncated_error(why: impl Into<String>) -> ProviderError {
    ProviderError::Cut {
        why: why.into(),
        billed: None,
    }
}

/// Returns true if a reply with this stop reason is an answer: it was neither cut nor refused, and is not faulty.
pub(super) fn has_answer(stop: &Result<StopReason, ProviderError>) -> bool {
    matches!(
        stop,
        Ok(StopReason::Stop | StopReason::ToolCalls | StopReason::Other(_))
    )
}

/// Returns the error of a frame that is not JSON, or is JSON of an unknown shape.
pub(super) fn malformed_error(what: &str, text: &str) -> ProviderError {
    ProviderError::Malformed(format!("{what}: {}", foreign_text::quote_text(text)))
}

/// Returns the error of a stream that ended inside a line outside of events.
pub(super) fn cut_line_error() -> ProviderError {
    truncated_error("it ended inside a line that is not an event")
}

/// Returns the error of a stream in reply to a request for one document.
pub(super) fn unrequested_stream_error(frame: &SseFrame) -> ProviderError {
    let (SseFrame::Event { data: text, .. } | SseFrame::Stray { text, .. }) = frame;
    malformed_error("it is a stream, which dicta did not request", text)
}

/// Returns the error of a text that shows that the server speaks another protocol.
pub(super) fn wrong_protocol_error(what: &str, text: &str) -> ProviderError {
    ProviderError::WrongProtocol(format!("{what}: {}", foreign_text::quote_text(text)))
}

/// Returns the error of a whole reply that isn't the document it should be.
///
/// Broken JSON can be a fault in transmission. Another document, or none, would be the same next time.
pub(super) fn unreadable_document_error(what: &str, body: &str) -> ProviderError {
    match serde_json::from_str::<&serde_json::value::RawValue>(body) {
        Err(error) if error.is_eof() && !body.trim().is_empty() => {
            truncated_error("it ended inside its JSON")
        }
        Err(_) if body.trim_start().starts_with(['{', '[']) => malformed_error(what, body),
        _ if body.trim().is_empty() => truncated_error("it is empty"),
        _ => wrong_protocol_error(what, body),
    }
}

/// Returns the error of a stream that ended without `end_mark`: another protocol, nothing at all, or a cut.
///
/// `foreign` explains a reply that contains nothing of the protocol; `what` is then the message's beginning.
pub(super) fn unfinished_error(
    foreign: &ForeignText,
    frame_count: usize,
    end_mark: &str,
    what: &str,
) -> ProviderError {
    if let Some(event) = foreign.unknown_event() {
        return wrong_protocol_error(what, event);
    }
    match foreign.lines() {
        Some(foreign) if frame_count == 0 => wrong_protocol_error("it holds no events", foreign),
        _ if frame_count == 0 => truncated_error("it is empty"),
        _ => truncated_error(format!("it ended without {end_mark}")),
    }
}

/// Returns the reported usage; a server that reports none made one call of unknown size.
pub(super) fn usage_or_one_call(usage: Option<TokenUsage>) -> TokenUsage {
    usage.unwrap_or(TokenUsage {
        calls: 1,
        ..TokenUsage::default()
    })
}

/// Returns the error that a reply contains.
pub(super) fn in_stream_error(error: serde_json::Value) -> ProviderError {
    let error = server_error::parse_error_value(error);
    ProviderError::InStream {
        retryable: error.is_retryable(),
        message: error.message,
    }
}
