//! The client for language models: it dials the endpoints that the user configured.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error as _;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower_layer::Layer as _;

use super::deadline::{ConnectDeadline, ConnectWithDeadline};
use super::error::classify_cause;
use super::watched_connection::{WatchingConnector, failed_before_answer};
use super::{NetError, WaitPhase, tls};
use crate::clock::{Clock, with_timeout};
use crate::model::Millis;

/// The `User-Agent` header.
pub(super) const USER_AGENT: &str = concat!("dicta/", env!("CARGO_PKG_VERSION"));

/// The limits on time and size of one exchange. The deadline of a whole cell is the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// For name, TCP and TLS together.
    pub connect: Millis,
    /// From the start until the reply's headers, and again until the first byte of its body. Long, because models think
    /// before they write.
    pub first_byte: Millis,
    /// Between two pieces of the body.
    pub idle: Millis,
    /// Size of the body.
    pub total_bytes: u64,
}

impl Default for ReplyLimits {
    /// 5 s, 120 s, 60 s, 64 MiB.
    fn default() -> Self {
        Self {
            // Five seconds to connect, but two minutes for the first byte: a model thinks before it streams.
            connect: Millis::from_secs(5),
            first_byte: Millis::from_secs(120),
            idle: Millis::from_secs(60),
            total_bytes: 64 << 20,
        }
    }
}

/// The settings that distinguish HTTP clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ClientKey {
    https: bool,
    /// The connect deadline.
    connect: Millis,
    /// `false` for a client that makes a new connection for each request.
    reuses: bool,
}

type Connector = ConnectWithDeadline<WatchingConnector<HttpsConnector<HttpConnector>>>;
type HttpClient = Client<Connector, WholeBody>;

/// A client for the endpoints that the user configured. Cheap to clone; clones share connections.
///
/// Accepts http and https, any host and port, loopback included. Uses no proxy from the environment, follows no
/// redirect (a 3xx is a reply), speaks HTTP/1.1 and reuses connections. Dropping a future or an [`LlmResponse`]
/// cancels it.
#[derive(Clone)]
pub struct LlmClient {
    clock: Arc<dyn Clock>,
    /// By (is https, connect limit): a limit belongs to a client's connector, and plain http needs no roots.
    clients: Arc<Mutex<HashMap<ClientKey, HttpClient>>>,
}

impl fmt::Debug for LlmClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelClient").finish_non_exhaustive()
    }
}

impl LlmClient {
    /// Creates a client whose deadlines run on `clock`. Builds no connection yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            clients: Arc::default(),
        }
    }

    /// Sends one request and returns when the reply's headers have arrived, whatever its status. One call is one
    /// attempt.
    ///
    /// If a reused connection breaks before any byte of the reply arrived, it sends the request once more on a new
    /// connection: the server had closed it, and did not read the request. [`LlmResponse::was_resent`] reports it.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(String, String)],
        body: impl Into<Bytes>,
        limits: ReplyLimits,
    ) -> Result<LlmResponse, NetError> {
        self.send(url, headers, Some(body.into()), limits).await
    }

    /// Like [`LlmClient::post`], but a GET without a body, to list a server's models.
    pub async fn get(
        &self,
        url: &str,
        headers: &[(String, String)],
        limits: ReplyLimits,
    ) -> Result<LlmResponse, NetError> {
        self.send(url, headers, None, limits).await
    }

    async fn send(
        &self,
        url: &str,
        headers: &[(String, String)],
        body: Option<Bytes>,
        limits: ReplyLimits,
    ) -> Result<LlmResponse, NetError> {
        let mut url = parse_endpoint(url)?;
        // The header map marks all values as sensitive, since they may be keys.
        let mut all = build_header_map(headers)?;
        let host = format_host_port(&url);
        if !all.contains_key(header::AUTHORIZATION)
            && let Some(credentials) = basic_credentials(&url)
        {
            all.insert(header::AUTHORIZATION, credentials);
        }
        // Hosts without a user part accept both calls, and other URLs have been refused.
        let _cleared = (url.set_username(""), url.set_password(None));
        let defaults = [(header::USER_AGENT, USER_AGENT), (header::ACCEPT, "*/*")];
        for (name, value) in defaults {
            all.entry(name).or_insert(HeaderValue::from_static(value));
        }
        let uri: Uri = url
            .as_str()
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| NetError::BadUrl {
                why: error.to_string(),
            })?;
        let build_request = || {
            let method = if body.is_some() {
                Method::POST
            } else {
                Method::GET
            };
            let mut request = Request::new(WholeBody(body.clone()));
            *request.method_mut() = method;
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = all.clone();
            request
        };
        let key = ClientKey {
            https: url.scheme() == "https",
            connect: limits.connect,
            reuses: true,
        };
        let first = self.send_once(key, build_request(), &host, limits).await?;
        let (reply, resent) = match first {
            Ok(reply) => (reply, false),
            // Only once, and not from the pool: another idle connection may be closed as well.
            Err(error) if failed_before_answer(error.connect_info()) => {
                let key = ClientKey {
                    reuses: false,
                    ..key
                };
                let second = self.send_once(key, build_request(), &host, limits).await?;
                (second.map_err(|error| classify(&error, &host))?, true)
            }
            Err(error) => return Err(classify(&error, &host)),
        };
        Ok(LlmResponse {
            status: reply.status().as_u16(),
            host,
            reply,
            clock: Arc::clone(&self.clock),
            limits,
            received: 0,
            resent,
        })
    }

    /// Sends a request once. The outer error is one before the request, or a deadline.
    async fn send_once(
        &self,
        key: ClientKey,
        request: Request<WholeBody>,
        host: &str,
        limits: ReplyLimits,
    ) -> Result<Result<Response<Incoming>, ClientError>, NetError> {
        // One client per scheme and connect limit, so that requests share connections.
        let client = self.build_http_client(key, host).await?;
        let sending = client.request(request);
        with_timeout(&*self.clock, limits.first_byte, sending)
            .await
            .ok_or_else(|| NetError::Timeout {
                host: host.to_owned(),
                what: WaitPhase::FirstByte,
                after: limits.first_byte,
            })
    }

    async fn build_http_client(&self, key: ClientKey, host: &str) -> Result<HttpClient, NetError> {
        if let Some(client) = self.lock_clients().get(&key) {
            return Ok(client.clone());
        }
        let config = if key.https {
            // Reads the system's roots the first time, which blocks.
            tokio::task::spawn_blocking(tls::system_config)
                .await
                .unwrap_or_else(|error| Err(error.into()))
        // Local servers such as Ollama use http; loading the system's roots would only delay them.
        } else {
            Ok(tls::config_without_roots())
        };
        let config = config.map_err(|error| NetError::Tls {
            host: host.to_owned(),
            why: error.to_string(),
        })?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // As reqwest does: a connection whose other end vanished ends after a minute.
        let probe = Some(Duration::from_secs(15));
        tcp.set_keepalive(probe);
        tcp.set_keepalive_interval(probe);
        tcp.set_keepalive_retries(Some(3));
        let deadline = ConnectDeadline {
            clock: Arc::clone(&self.clock),
            limit: key.connect,
        };
        let connector = deadline.layer(WatchingConnector(HttpsConnector::from((tcp, config))));
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new());
        if !key.reuses {
            builder.pool_max_idle_per_host(0);
        }
        let client = builder.build(connector);
        // Two first calls at the same time may both build one. The first stays, so that they share connections.
        Ok(self.lock_clients().entry(key).or_insert(client).clone())
    }

    fn lock_clients(&self) -> std::sync::MutexGuard<'_, HashMap<ClientKey, HttpClient>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reply whose headers are here and whose body is still coming.
pub struct LlmResponse {
    /// The HTTP status.
    pub status: u16,
    host: String,
    reply: Response<Incoming>,
    clock: Arc<dyn Clock>,
    limits: ReplyLimits,
    received: u64,
    resent: bool,
}

impl LlmResponse {
    /// Returns a header's value, if it is text; the first one if there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.reply.headers().get(name)?.to_str().ok()
    }

    /// Returns whether the request was sent a second time, because the first connection was closed.
    pub fn was_resent(&self) -> bool {
        self.resent
    }

    /// Returns the next piece of the body, or `None` at its end. A body that ends early is an error if the server
    /// sent a length or chunks. Without either, dicta cannot recognize a cut.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        // The headers already arrived, but a model may think before it sends the first byte of the body.
        let (what, limit) = if self.received == 0 {
            (WaitPhase::FirstByte, self.limits.first_byte)
        } else {
            (WaitPhase::NextByte, self.limits.idle)
        };
        let reading = read_chunk(self.reply.body_mut());
        let chunk = match with_timeout(&*self.clock, limit, reading).await {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Err(classify_cause(Some(&error), false, &self.host)),
            None => {
                return Err(NetError::Timeout {
                    host: self.host.clone(),
                    what,
                    after: limit,
                });
            }
        };
        if let Some(chunk) = &chunk {
            self.received += chunk.len() as u64;
            // The limit counts bytes on the wire, because the client asks for no compression.
            if self.received > self.limits.total_bytes {
                return Err(NetError::TooLarge {
                    host: self.host.clone(),
                    limit: self.limits.total_bytes,
                });
            }
        }
        Ok(chunk)
    }
}

impl fmt::Debug for LlmResponse {
    /// Leaves headers out: a server may echo what it received.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// Returns the next data of a body; `None` at its end.
async fn read_chunk(body: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame.transpose()? else {
            return Ok(None);
        };
        // The only other frames are trailers.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// The body of a request, which is sent at once.
#[derive(Debug)]
struct WholeBody(Option<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

fn classify(error: &ClientError, host: &str) -> NetError {
    classify_cause(error.source(), error.is_connect(), host)
}

/// Returns the value of `Authorization` for the user part of a URL.
fn basic_credentials(url: &url::Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    // reqwest decodes the user part and writes the header. This client sends nothing.
    let writer = reqwest::Client::builder()
        .tls_backend_preconfigured(tls::config_without_roots())
        .no_proxy()
        .build()
        .ok()?;
    let request = writer.get(url.clone()).build().ok()?;
    request.headers().get(header::AUTHORIZATION).cloned()
}

fn parse_endpoint(url: &str) -> Result<url::Url, NetError> {
    let bad = |why: &str| NetError::BadUrl {
        why: why.to_owned(),
    };
    let url = url::Url::parse(url).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(&format!(
            "the scheme is `{}`, not http or https",
            url.scheme()
        )));
    }
    if url.host().is_none() {
        return Err(bad("it has no host"));
    }
    Ok(url)
}

pub(super) fn build_header_map(headers: &[(String, String)]) -> Result<HeaderMap, NetError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let bad = || NetError::BadHeader { name: name.clone() };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        // Sensitive values appear as `Sensitive` in debug output.
        value.set_sensitive(true);
        map.append(key, value);
    }
    Ok(map)
}

/// `host:port`, the port always there.
pub(super) fn format_host_port(url: &url::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
