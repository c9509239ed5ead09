//! One attempt over HTTP, whatever the dialect: posts, reads while it streams, and says truly how it ended.
//!
//! Owns headers, the reading loop, what a failure means, and what was learned of the model's settings. The dialect
//! writes bodies and reads frames. The key enters the headers and the redactor and no other place.

mod fault;
mod posting;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;

use super::frames::{Frame, FrameError, Framer};
use super::google::Tokens;
use super::refusal::{self, Param};
use super::retry::{self, CAPPED, OVERDUE};
use super::{Body, Caps, Finished, Provider, ProviderError, Told, TurnRequest};
use crate::clock::BoxFuture;
use crate::event::{CallCx, DeltaCoalescer, DeltaPart, DroppedSetting, Redactor};
use crate::model::{
    ApiKeySource, CellIx, JudgeConfig, Millis, TokenUsage, TurnIx, is_loopback_url,
};
use crate::net::{LlmClient, LlmResponse, NetError};

/// Longest time a reply may take from the sending of its request to its end, whatever comes on the way: a server that
/// only says it is alive does not answer.
const WHOLE: Millis = Millis(15 * 60_000);
/// How long an answer that is not streamed may take to begin.
const FIRST_BYTE_WHOLE: Millis = Millis(10 * 60_000);

/// What differs between protocols.
pub(super) trait Dialect: Send + Sync {
    /// Where to post.
    fn url(&self) -> &str;
    /// The header that carries the key: its name and what precedes the key.
    fn key_header(&self) -> (&'static str, &'static str);
    /// Headers that the protocol asks for besides; a user's own of the same name win.
    fn headers(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
    /// The settings a server may refuse and we can leave out.
    fn params(&self) -> &'static [Param];
    /// The body as pieces, without the settings that `omit` names.
    fn pieces(&self, turn: &TurnRequest<'_>, omit: &Omit) -> Result<Vec<Arc<str>>, ProviderError>;
    /// A reader for one reply of this turn.
    fn reader(&self, turn: TurnIx) -> Box<dyn Reader>;
}

/// Makes a reply of frames.
pub(super) trait Reader: Send {
    /// Takes a frame; what is new for the screen is added to `new`.
    fn frame(&mut self, frame: Frame, new: &mut New) -> Result<Progress, ProviderError>;
    /// Takes the body of a reply that was not streamed.
    fn whole(&mut self, body: &str, new: &mut New) -> Result<(), ProviderError>;
    /// The server ended its reply in the middle and is to be asked for the rest: the member to add to the request's
    /// body, as JSON (`"key":value`). What comes next is added to what came. Asked once a reply ended.
    fn goes_on(&mut self) -> Option<String> {
        None
    }
    /// The stream has ended where it should, as far as HTTP knows.
    fn end(self: Box<Self>) -> Result<Finished, ProviderError>;
    /// What the server has said so far that it costs.
    fn billed(&self) -> Option<TokenUsage>;
}

/// Text that came, by the part it belongs to.
pub(super) type New = Vec<(DeltaPart, String)>;

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Read on.
    More,
    /// The server's own end mark came.
    Done,
}

/// Settings to leave out, by [`Param::setting`].
#[derive(Debug, Clone, Default)]
pub(super) struct Omit {
    /// The judge's settings that this model is known not to take. What the user wrote into `extra_body` stays.
    pub(super) known: Vec<&'static str>,
    /// What the server refused, wherever it was written.
    pub(super) refused: Vec<&'static str>,
    /// What the server wants under [`Param::instead`].
    pub(super) renamed: Vec<&'static str>,
}

impl Omit {
    /// Whether the judge's own setting is left out.
    pub(super) fn has(&self, setting: &str) -> bool {
        self.known.contains(&setting) || self.refused.contains(&setting)
    }
}

/// What servers taught us of this model since the start.
#[derive(Debug, Default)]
struct Learned {
    omit: Omit,
    dropped: Vec<DroppedSetting>,
}

/// A dialect with its key and its connections.
pub(super) struct Client {
    dialect: Box<dyn Dialect>,
    caps: Caps,
    /// Caps hold what to leave out as text for people; this is the same for the dialect.
    known: Vec<&'static str>,
    stream: bool,
    headers: Vec<(String, String)>,
    /// Without userinfo and query: for people.
    shown_url: String,
    /// Where no key is sent: why, for a server that wants one.
    keyless: Option<String>,
    redactor: Redactor,
    /// In the place of a key.
    tokens: Option<Arc<Tokens>>,
    http: LlmClient,
    learned: Mutex<Learned>,
    max_attempts: u8,
    /// The last exchange of each cell, until somebody has read it.
    exchanges: Mutex<HashMap<CellIx, Told>>,
}

impl Client {
    /// `known` are the settings that `caps` says the model does not take.
    pub(super) fn new(
        dialect: Box<dyn Dialect>,
        caps: Caps,
        known: Vec<&'static str>,
        config: &JudgeConfig,
        key: Option<&str>,
        http: LlmClient,
    ) -> Self {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let accept = if config.stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        headers.push(("accept".to_owned(), accept.to_owned()));
        let asked = dialect.headers().into_iter();
        headers.extend(asked.map(|(name, value)| (name.to_owned(), value.to_owned())));
        if let Some(key) = key {
            let (name, prefix) = dialect.key_header();
            headers.push((name.to_owned(), format!("{prefix}{key}")));
        }
        // What the user wrote wins over ours: gateways have their own ways to carry a key.
        headers.retain(|(name, _)| {
            !config
                .headers
                .keys()
                .any(|own| own.eq_ignore_ascii_case(name))
        });
        let own = config.headers.iter();
        headers.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        let secrets = key
            .into_iter()
            .chain(config.headers.values().map(String::as_str));
        let keyless = match (key, &config.key) {
            _ if !config.headers.is_empty() => None,
            (None, ApiKeySource::EnvIfSet(name)) => {
                Some(format!("no key was sent: {name} is not set"))
            }
            (None, ApiKeySource::None) => Some("no key was sent".to_owned()),
            _ => None,
        };
        Self {
            shown_url: fault::shown(dialect.url()),
            max_attempts: config.max_attempts.unwrap_or(retry::MAX_ATTEMPTS).max(1),
            exchanges: Mutex::default(),
            keyless,
            redactor: Redactor::new(secrets),
            tokens: None,
            stream: config.stream,
            dialect,
            caps,
            known,
            headers,
            http,
            learned: Mutex::default(),
        }
    }

    fn learned(&self) -> std::sync::MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exchanges(&self) -> std::sync::MutexGuard<'_, HashMap<CellIx, Told>> {
        let exchanges = self.exchanges.lock();
        exchanges.unwrap_or_else(PoisonError::into_inner)
    }

    /// A server's or a system's words without our secrets, cut.
    fn clean(&self, text: &str) -> String {
        match self.redactor.redact(text) {
            Some(clean) => refusal::cut(&clean),
            None => refusal::cut(text),
        }
    }

    /// One exchange, and what is known of it besides its reply.
    async fn exchange(
        &self,
        body: &Body,
        cx: &CallCx,
        deltas: &mut DeltaCoalescer<'_>,
    ) -> Result<Finished, ProviderError> {
        let mut told = Told::default();
        let mut reader = self.dialect.reader(cx.turn);
        let read = tokio::select! {
            biased;
            read = self.ask(body, &mut *reader, &mut told, cx, deltas) => read,
            () = cx.clock.sleep(WHOLE) => Err(cut(format!("{OVERDUE}{WHOLE}"))),
        };
        let billed = reader.billed().map(TokenUsage::without_zero_counts);
        let done = read
            .and_then(|()| reader.end())
            .map(|finished| Finished {
                usage: finished.usage.without_zero_counts(),
                ..finished
            })
            .map_err(|error| self.as_told(error, billed));
        told.exchange.cost_unknown |= match &done {
            Ok(_) => false,
            Err(error) => error.may_be_billed() && billed.is_none(),
        };
        self.exchanges().insert(cx.cell, told);
        done
    }

    async fn ask(
        &self,
        body: &Body,
        reader: &mut dyn Reader,
        told: &mut Told,
        cx: &CallCx,
        deltas: &mut DeltaCoalescer<'_>,
    ) -> Result<(), ProviderError> {
        let mut text = bytes::Bytes::from(body.text());
        loop {
            let mut response = self.post(&text, told, cx).await?;
            self.note_head(&response, told, cx);
            if !(200..300).contains(&response.status) {
                return Err(self.refused(response, cx, told).await);
            }
            let coding = response.header("content-encoding").unwrap_or("identity");
            if !coding.eq_ignore_ascii_case("identity") {
                let coding = refusal::cut(coding);
                return Err(ProviderError::Malformed(format!(
                    "it is compressed ({coding}), which was not asked for"
                )));
            }
            if self.stream {
                self.stream(&mut response, reader, told, cx, deltas).await?;
            } else {
                self.whole(&mut response, reader, told, cx, deltas).await?;
            }
            let rest = reader.goes_on();
            let Some(longer) = rest.and_then(|member| posting::with_member(&body.text(), &member))
            else {
                return Ok(());
            };
            let why = "the server ended its reply in the middle; asking for the rest of it";
            posting::note(cx, why).await;
            text = longer.into();
        }
    }

    /// Reads a stream to its end mark or its end.
    async fn stream(
        &self,
        response: &mut LlmResponse,
        reader: &mut dyn Reader,
        told: &mut Told,
        cx: &CallCx,
        deltas: &mut DeltaCoalescer<'_>,
    ) -> Result<(), ProviderError> {
        let mut framing = Framer::default();
        let mut frames = Vec::new();
        while let Some(chunk) = next_chunk(response, told, cx, deltas).await? {
            // Frames before a fault are read first: what was billed, or an error that explains it, stands in them.
            let pushed = framing.push(&chunk, &mut frames);
            if take(&mut frames, reader, deltas).await? == Progress::Done {
                // The end of the body usually lies in the same packet; reading it frees the connection for reuse.
                let _end = response.next_chunk().now_or_never();
                return Ok(());
            }
            pushed.map_err(unframed)?;
        }
        framing.finish(&mut frames).map_err(unframed)?;
        take(&mut frames, reader, deltas).await?;
        Ok(())
    }

    /// Reads a reply that is one JSON document.
    async fn whole(
        &self,
        response: &mut LlmResponse,
        reader: &mut dyn Reader,
        told: &mut Told,
        cx: &CallCx,
        deltas: &mut DeltaCoalescer<'_>,
    ) -> Result<(), ProviderError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = next_chunk(response, told, cx, deltas).await? {
            bytes.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(bytes).map_err(|_| unframed(FrameError::NotUtf8))?;
        let mut new = New::new();
        let done = reader.whole(&text, &mut new);
        for (part, text) in new {
            deltas.push(part, &text).await;
        }
        done
    }

    /// The error as it leaves us: without secrets, and with what the reply cost.
    fn as_told(&self, error: ProviderError, billed: Option<TokenUsage>) -> ProviderError {
        match error {
            ProviderError::Cut { why, .. } => ProviderError::Cut {
                why: self.clean(&why),
                billed,
            },
            ProviderError::InStream { message, retryable } => ProviderError::InStream {
                message: self.clean(&message),
                retryable,
            },
            ProviderError::Malformed(why) => ProviderError::Malformed(self.clean(&why)),
            other => other,
        }
    }
}

impl Provider for Client {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn body(&self, turn: &TurnRequest<'_>) -> Result<Body, ProviderError> {
        let (mut omit, learned) = {
            let learned = self.learned();
            (learned.omit.clone(), learned.dropped.clone())
        };
        omit.known.clone_from(&self.known);
        let mut dropped = self.caps.dropped.clone();
        dropped.extend(learned);
        let pieces = self.dialect.pieces(turn, &omit)?;
        Ok(Body { pieces, dropped })
    }

    fn send<'a>(
        &'a self,
        body: &'a Body,
        attempt: u8,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<Finished, ProviderError>> {
        Box::pin(async move {
            let mut deltas = cx.coalesce_deltas(attempt);
            let result = self.exchange(body, cx, &mut deltas).await;
            deltas.finish().await;
            result
        })
    }

    fn max_attempts(&self) -> u8 {
        self.max_attempts
    }

    fn told(&self, cell: CellIx) -> Option<Told> {
        self.exchanges().get(&cell).cloned()
    }

    fn forget(&self, cell: CellIx) {
        self.exchanges().remove(&cell);
    }

    fn without(&self, body: &Body, error: &ProviderError) -> Option<Body> {
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
        let param = refusal::named(self.dialect.params(), message)?;
        let rename = param.instead.is_some_and(|other| message.contains(other));
        let dropped = DroppedSetting {
            what: param.setting.to_owned(),
            why: format!("the server refused it: {message}"),
        };
        let shorter = refusal::without(body, param, rename, dropped.clone())?;
        let mut learned = self.learned();
        let omit = &mut learned.omit;
        let list = if rename {
            &mut omit.renamed
        } else {
            &mut omit.refused
        };
        if !list.contains(&param.setting) {
            list.push(param.setting);
            learned.dropped.push(dropped);
        }
        Some(shorter)
    }
}

/// The next piece of the body; what was gathered goes out while nothing comes.
async fn next_chunk(
    response: &mut LlmResponse,
    told: &mut Told,
    cx: &CallCx,
    deltas: &mut DeltaCoalescer<'_>,
) -> Result<Option<bytes::Bytes>, ProviderError> {
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
                let chunk = chunk.map_err(|error| broken(&error))?;
                told.exchange.bytes += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
                return Ok(chunk);
            }
            () = quiet => deltas.flush().await,
        }
    }
}

async fn take(
    frames: &mut Vec<Frame>,
    reader: &mut dyn Reader,
    deltas: &mut DeltaCoalescer<'_>,
) -> Result<Progress, ProviderError> {
    let mut new = New::new();
    for frame in frames.drain(..) {
        let progress = reader.frame(frame, &mut new);
        for (part, text) in new.drain(..) {
            deltas.push(part, &text).await;
        }
        if progress? == Progress::Done {
            return Ok(Progress::Done);
        }
    }
    Ok(Progress::More)
}

/// The body broke off, or is too large.
fn broken(error: &NetError) -> ProviderError {
    let why = match error {
        NetError::TooLarge { limit, .. } => format!("{CAPPED}{} MiB", limit >> 20),
        other => other.to_string(),
    };
    cut(why)
}

fn unframed(error: FrameError) -> ProviderError {
    match error {
        FrameError::TooLarge(cap) => cut(format!("{CAPPED}the cap of {cap}")),
        FrameError::NotUtf8 => ProviderError::Malformed("it is not UTF-8".to_owned()),
    }
}

/// A reply that is none, because it did not end as it should.
pub(super) fn cut(why: impl Into<String>) -> ProviderError {
    ProviderError::Cut {
        why: why.into(),
        billed: None,
    }
}

/// A frame that is not JSON, or JSON of another kind.
pub(super) fn malformed(what: &str, text: &str) -> ProviderError {
    ProviderError::Malformed(format!("{what}: `{}`", refusal::cut(text)))
}

/// An error that stands in the reply.
pub(super) fn in_stream(error: serde_json::Value) -> ProviderError {
    let said = refusal::of(error);
    ProviderError::InStream {
        retryable: said.retryable(),
        message: said.message,
    }
}
