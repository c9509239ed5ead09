//! One attempt over HTTP, whatever the dialect: posts, reads while it streams, and says truly how it ended.
//!
//! Owns headers, the reading loop, what a failure means, and what was learned of the model's settings. The dialect
//! writes bodies and reads frames. The key enters the headers and the redactor and no other place.

mod posting;

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;

use super::frames::{Frame, FrameError, Framer};
use super::google::Tokens;
use super::refusal::{self, Param};
use super::retry::{self, CAPPED};
use super::{Body, Caps, Finished, Provider, ProviderError, TurnRequest};
use crate::clock::Fut;
use crate::event::{CallCx, DeltaPart, Deltas, Dropped, Redactor};
use crate::model::{JudgeConfig, KeySource, TurnIx, Usage};
use crate::net::{ModelClient, NetError, Response};

/// Longest error body that is read, in bytes; the text shown of it is far shorter.
const MAX_ERROR_BODY: usize = 256 << 10;

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
    fn billed(&self) -> Option<Usage>;
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
    dropped: Vec<Dropped>,
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
    http: ModelClient,
    learned: Mutex<Learned>,
}

impl Client {
    /// `known` are the settings that `caps` says the model does not take.
    pub(super) fn new(
        dialect: Box<dyn Dialect>,
        caps: Caps,
        known: Vec<&'static str>,
        config: &JudgeConfig,
        key: Option<&str>,
        http: ModelClient,
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
            (None, KeySource::EnvIfSet(name)) => {
                Some(format!("no key was sent: {name} is not set"))
            }
            (None, KeySource::None) => Some("no key was sent".to_owned()),
            _ => None,
        };
        Self {
            shown_url: shown(dialect.url()),
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

    /// A server's or a system's words without our secrets, cut.
    fn clean(&self, text: &str) -> String {
        match self.redactor.redact(text) {
            Some(clean) => refusal::cut(&clean),
            None => refusal::cut(text),
        }
    }

    async fn exchange(
        &self,
        body: &Body,
        cx: &CallCx,
        deltas: &mut Deltas<'_>,
    ) -> Result<Finished, ProviderError> {
        let mut text = body.text();
        let mut reader = self.dialect.reader(cx.turn);
        loop {
            let mut response = self.post(&text, cx).await?;
            if !(200..300).contains(&response.status) {
                return Err(self.refused(response, cx).await);
            }
            let read = if self.stream {
                self.stream(&mut response, &mut *reader, cx, deltas).await
            } else {
                self.whole(&mut response, &mut *reader, cx, deltas).await
            };
            if read.is_ok()
                && let Some(member) = reader.goes_on()
                && let Some(longer) = posting::with_member(&body.text(), &member)
            {
                posting::note(
                    cx,
                    "the server ended its reply in the middle; asking for the rest of it",
                )
                .await;
                text = longer;
                continue;
            }
            let billed = reader.billed();
            return read
                .and_then(|()| reader.end())
                .map_err(|error| self.told(error, billed));
        }
    }

    /// Reads a stream to its end mark or its end.
    async fn stream(
        &self,
        response: &mut Response,
        reader: &mut dyn Reader,
        cx: &CallCx,
        deltas: &mut Deltas<'_>,
    ) -> Result<(), ProviderError> {
        let mut framing = Framer::default();
        let mut frames = Vec::new();
        while let Some(chunk) = next_chunk(response, cx, deltas).await? {
            // Frames before a fault are read first: what was billed, or an error that explains it, stands in them.
            let pushed = framing.push(&chunk, &mut frames);
            if take(&mut frames, reader, deltas).await? == Progress::Done {
                // The end of the body usually lies in the same packet; reading it frees the connection for reuse.
                let _end = response.chunk().now_or_never();
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
        response: &mut Response,
        reader: &mut dyn Reader,
        cx: &CallCx,
        deltas: &mut Deltas<'_>,
    ) -> Result<(), ProviderError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = next_chunk(response, cx, deltas).await? {
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

    /// No reply at all.
    fn unreachable(&self, error: &NetError) -> ProviderError {
        let why = self.clean(&error.to_string());
        match error {
            NetError::BadUrl { .. } | NetError::BadHeader { .. } => ProviderError::Request(why),
            _ => ProviderError::Connect {
                url: self.shown_url.clone(),
                why,
            },
        }
    }

    /// A status that is no success.
    async fn refused(&self, mut response: Response, cx: &CallCx) -> ProviderError {
        let status = response.status;
        let mut bytes = Vec::new();
        while bytes.len() < MAX_ERROR_BODY {
            let chunk = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return ProviderError::Cancelled,
                chunk = response.chunk() => chunk,
            };
            // A reason that breaks off is still one: the status is what counts.
            let Ok(Some(chunk)) = chunk else { break };
            bytes.extend_from_slice(&chunk);
        }
        let said = refusal::read(&String::from_utf8_lossy(&bytes));
        let now = cx.clock.wall().0.parse::<jiff::Timestamp>().ok();
        let header = |name: &str| response.header(name);
        let asked = retry::asked_by_headers(header, now.map(jiff::Timestamp::as_second));
        let mut message = self.clean(&said.message);
        if let Some(to) = header("location").filter(|_| (300..400).contains(&status)) {
            message = self.clean(&format!(
                "it redirects to {to}; set base_url to where it answers"
            ));
        }
        if let Some(keyless) = self
            .keyless
            .as_ref()
            .filter(|_| matches!(status, 401 | 403))
        {
            message = format!("{message} ({keyless})");
        }
        ProviderError::Status {
            status,
            url: self.shown_url.clone(),
            message,
            retry_after: asked.or_else(|| retry::asked_by_details(&said.error)),
            terminal: retry::quota_is_used_up(&said.error)
                || header("x-should-retry") == Some("false"),
        }
    }

    /// The error as it leaves us: without secrets, and with what the reply cost.
    fn told(&self, error: ProviderError, billed: Option<Usage>) -> ProviderError {
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
    ) -> Fut<'a, Result<Finished, ProviderError>> {
        Box::pin(async move {
            let mut deltas = cx.deltas(attempt);
            let result = self.exchange(body, cx, &mut deltas).await;
            deltas.finish().await;
            result
        })
    }

    fn without(&self, body: &Body, error: &ProviderError) -> Option<Body> {
        let ProviderError::Status {
            status: 400 | 422,
            message,
            ..
        } = error
        else {
            return None;
        };
        let param = refusal::named(self.dialect.params(), message)?;
        let rename = param.instead.is_some_and(|other| message.contains(other));
        let dropped = Dropped {
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
    response: &mut Response,
    cx: &CallCx,
    deltas: &mut Deltas<'_>,
) -> Result<Option<bytes::Bytes>, ProviderError> {
    let mut coming = pin!(response.chunk());
    loop {
        let due = deltas.due();
        let quiet = async {
            match due {
                Some(wait) => cx.clock.sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ProviderError::Cancelled),
            chunk = &mut coming => return chunk.map_err(|error| broken(&error)),
            () = quiet => deltas.flush().await,
        }
    }
}

async fn take(
    frames: &mut Vec<Frame>,
    reader: &mut dyn Reader,
    deltas: &mut Deltas<'_>,
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

fn shown(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut url) => {
            // Only a URL without a host refuses these, and it has no userinfo.
            let _none = url.set_username("");
            let _none = url.set_password(None);
            url.set_query(None);
            url.into()
        }
        Err(_) => "the configured address".to_owned(),
    }
}
