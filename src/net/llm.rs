//! The client for language models: it dials the endpoints that the user configured.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::deadline::ConnectDeadline;
use super::error::classify_error;
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
}

/// A client for the endpoints that the user configured. Cheap to clone; clones share connections.
///
/// Accepts http and https, any host and port, loopback included. Uses no proxy from the environment, follows no
/// redirect (a 3xx is a reply), speaks HTTP/1.1 and reuses connections. Dropping a future or an [`LlmResponse`]
/// cancels it.
#[derive(Clone)]
pub struct LlmClient {
    clock: Arc<dyn Clock>,
    /// By (is https, connect limit): a limit belongs to a client's connector, and plain http needs no roots.
    clients: Arc<Mutex<HashMap<ClientKey, reqwest::Client>>>,
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
        let url = parse_endpoint(url)?;
        // The header map marks all values as sensitive, since they may be keys.
        let headers = build_header_map(headers)?;
        let host = format_host_port(&url);
        // One client per scheme and connect limit, so that requests share connections.
        let client = self
            .build_http_client(url.scheme() == "https", limits.connect, &host)
            .await?;
        let request = match body {
            Some(body) => client.post(url).body(body),
            None => client.get(url),
        };
        let sending = request.headers(headers).send();
        let reply = match with_timeout(&*self.clock, limits.first_byte, sending).await {
            Some(Ok(reply)) => reply,
            Some(Err(error)) => return Err(classify_error(&error, &host)),
            None => {
                return Err(NetError::Timeout {
                    host,
                    what: WaitPhase::FirstByte,
                    after: limits.first_byte,
                });
            }
        };
        Ok(LlmResponse {
            status: reply.status().as_u16(),
            host,
            reply,
            clock: Arc::clone(&self.clock),
            limits,
            received: 0,
        })
    }

    async fn build_http_client(
        &self,
        https: bool,
        connect: Millis,
        host: &str,
    ) -> Result<reqwest::Client, NetError> {
        let key = ClientKey { https, connect };
        if let Some(client) = self.lock_clients().get(&key) {
            return Ok(client.clone());
        }
        let config = if https {
            // Reads the system's roots the first time, which blocks.
            tokio::task::spawn_blocking(tls::system_config)
                .await
                .unwrap_or_else(|error| Err(error.into()))
        // Local servers such as Ollama use http; loading the system's roots would only delay them.
        } else {
            Ok(tls::config_without_roots())
        };
        let failed = |why: String| NetError::Tls {
            host: host.to_owned(),
            why,
        };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(config.map_err(|error| failed(error.to_string()))?)
            // A key may not go to another host, and the caller counts every attempt.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .http1_only()
            .tcp_nodelay(true)
            .user_agent(USER_AGENT)
            .connector_layer(ConnectDeadline {
                clock: Arc::clone(&self.clock),
                limit: connect,
            })
            .build()
            .map_err(|error| failed(error.to_string()))?;
        // Two first calls at the same time may both build one. The first stays, so that they share connections.
        Ok(self.lock_clients().entry(key).or_insert(client).clone())
    }

    fn lock_clients(&self) -> std::sync::MutexGuard<'_, HashMap<ClientKey, reqwest::Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reply whose headers are here and whose body is still coming.
pub struct LlmResponse {
    /// The HTTP status.
    pub status: u16,
    host: String,
    reply: reqwest::Response,
    clock: Arc<dyn Clock>,
    limits: ReplyLimits,
    received: u64,
}

impl LlmResponse {
    /// Returns a header's value, if it is text; the first one if there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.reply.headers().get(name)?.to_str().ok()
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
        let chunk = match with_timeout(&*self.clock, limit, self.reply.chunk()).await {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Err(classify_error(&error, &self.host)),
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
