//! MCP over streamable HTTP: rmcp's client, on dicta's one way out.
//!
//! rmcp decides what is sent when (sessions, their renewal, protocol versions); what is sent goes through
//! [`crate::net::Guard`] like any other request of a tool. Redirects of a POST are not followed. Streams that a server
//! opens for news of its own are not listened to: nothing a judge needs comes on them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use hyper::http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransport,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::MAX_MESSAGE;
use super::events::{Waiting, events};
use super::failure::Failure;
use super::ledger::Ledger;
use crate::clock::BoxFuture;
use crate::model::{Hop, make_visible};
use crate::net::{FetchError, GuardedRequest, HopObserver};

/// Of a refusal's body, so much is shown.
const SHOWN: usize = 300;
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// A reply whose body is still to come.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) session: Option<String>,
    /// Where a redirect points.
    pub(super) location: Option<String>,
    pub(super) body: Chunks,
}

/// A body as it comes; over some limit, an error.
pub(super) type Chunks = BoxStream<'static, Result<Bytes, FetchError>>;

/// The way out.
pub(super) trait Way: Send + Sync {
    /// Sends one request. Redirects of a POST are a reply.
    fn send<'a>(
        &'a self,
        asking: GuardedRequest<'a>,
        hops: &'a dyn HopObserver,
    ) -> BoxFuture<'a, Result<Reply, FetchError>>;
}

/// Gathers the hops of one request.
#[derive(Default)]
struct Gather(Mutex<Vec<Hop>>);

impl HopObserver for Gather {
    fn record_hop(&self, hop: Hop) -> BoxFuture<'_, ()> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(hop);
        Box::pin(std::future::ready(()))
    }
}

/// rmcp's client over a way out.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) way: Arc<dyn Way>,
    /// The source's own.
    pub(super) headers: Arc<[(String, String)]>,
    pub(super) ledger: Arc<Ledger>,
}

/// A transport to a server.
pub(super) fn transport(client: Client, url: &str) -> StreamableHttpClientTransport<Client> {
    let mut config =
        StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_MESSAGE);
    let mut retry = FixedInterval::default();
    retry.max_times = Some(2);
    config.retry_config = Arc::new(retry);
    StreamableHttpClientTransport::with_client(client, config)
}

/// An error of the way out, or of the server in words of ours.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct WayError(pub(super) Failure);

type Error = StreamableHttpError<WayError>;

impl Client {
    fn request_headers(
        &self,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        more: HashMap<HeaderName, HeaderValue>,
    ) -> Vec<(String, String)> {
        let mut headers = vec![("accept".to_owned(), format!("{JSON}, {EVENTS}"))];
        headers.extend(self.headers.iter().cloned());
        if let Some(session) = session {
            headers.push((HEADER_SESSION_ID.to_owned(), session.to_string()));
        }
        if let Some(event) = last_event {
            headers.push((HEADER_LAST_EVENT_ID.to_owned(), event));
        }
        for (name, value) in more {
            if let Ok(value) = value.to_str() {
                headers.push((name.as_str().to_owned(), value.to_owned()));
            }
        }
        headers
    }

    /// Sends a request; what fails is noted under its id.
    async fn ask(
        &self,
        asking: GuardedRequest<'_>,
        id: Option<&RequestId>,
    ) -> Result<Reply, Error> {
        let hops = Gather::default();
        let sent = self.way.send(asking, &hops).await;
        if let Some(id) = id {
            let hops = hops.0.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.ledger.add(id, hops);
        }
        sent.map_err(|error| self.failed(id, failure(&error)))
    }

    fn failed(&self, id: Option<&RequestId>, failure: Failure) -> Error {
        if let Some(id) = id {
            self.ledger.fail(id, failure.clone());
        }
        StreamableHttpError::Client(WayError(failure))
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        more: HashMap<HeaderName, HeaderValue>,
        max_event: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let in_session = session.is_some();
        let id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let body = serde_json::to_vec(&message)?;
        let mut headers = self.request_headers(session, None, more);
        headers.push(("content-type".to_owned(), JSON.to_owned()));
        let asking = GuardedRequest {
            method: "POST",
            url: &uri,
            headers: &headers,
            body: Some(&body),
        };
        let reply = self.ask(asking, id.as_ref()).await?;
        match reply.status {
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            404 if in_session => return Err(StreamableHttpError::SessionExpired),
            200..=299 => {}
            _ => return self.refused(reply, id.as_ref()).await,
        }
        let session = reply.session;
        let kind = reply.content_type.unwrap_or_default();
        let kind = kind
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        if let (EVENTS, Some(id)) = (kind.as_str(), &id) {
            let waiting = Waiting {
                id: id.clone(),
                ledger: Arc::clone(&self.ledger),
            };
            let events = events(reply.body, max_event, Some(waiting));
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = match collect(reply.body, MAX_MESSAGE).await {
            Ok(body) => body,
            Err(why) => return Err(self.failed(id.as_ref(), why)),
        };
        let Some(id) = &id else {
            // An answer to what asks for none.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(error) => {
                let why = format!(
                    "the server's reply is no MCP message ({error}): {}",
                    shown(&body)
                );
                Err(self.failed(Some(id), Failure::lasting(why)))
            }
        }
    }

    /// A reply that says no. JSON-RPC errors are answers whatever their status.
    async fn refused(
        &self,
        reply: Reply,
        id: Option<&RequestId>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let status = reply.status;
        if let (300..=399, Some(to)) = (status, &reply.location) {
            let to = make_visible(to, false);
            let why = format!(
                "HTTP {status}: the server points to {to}; redirects are not followed here, so name the address itself as `url`"
            );
            return Err(self.failed(id, Failure::lasting(why)));
        }
        let body = collect(reply.body, MAX_MESSAGE).await.unwrap_or_default();
        if let Some(id) = id
            && let Ok(ServerJsonRpcMessage::Error(mut error)) = serde_json::from_slice(&body)
        {
            error.id = Some(id.clone());
            return Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::Error(error),
                None,
            ));
        }
        let hint = match status {
            401 | 403 => " (what it wants to know belongs in `headers`)",
            404 => " (is this the address of an MCP server?)",
            _ => "",
        };
        let text = match shown(&body) {
            text if text.is_empty() => text,
            text => format!(": {text}"),
        };
        let why = format!("HTTP {status}{hint}{text}");
        let transient = status == 429 || status >= 500;
        let failure = Failure {
            text: why,
            transient,
        };
        Err(self.failed(id, failure))
    }
}

impl StreamableHttpClient for Client {
    type Error = WayError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.post(uri, message, session_id, custom_headers, MAX_MESSAGE)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.post(uri, message, session_id, custom_headers, max_sse_event_size)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let headers = self.request_headers(Some(session_id), None, custom_headers);
        let asking = GuardedRequest {
            method: "DELETE",
            url: &uri,
            headers: &headers,
            body: None,
        };
        // A server need not know the word; the session ends by itself then.
        self.ask(asking, None).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            MAX_MESSAGE,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        // Only what was broken off is taken up again.
        if last_event_id.is_none() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let headers = self.request_headers(session_id, last_event_id, custom_headers);
        let asking = GuardedRequest {
            method: "GET",
            url: &uri,
            headers: &headers,
            body: None,
        };
        let reply = self.ask(asking, None).await?;
        match reply.status {
            200 => Ok(events(reply.body, max_sse_event_size, None)),
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => {
                let why = Failure::lasting(format!("HTTP {status}"));
                Err(StreamableHttpError::Client(WayError(why)))
            }
        }
    }
}

pub(super) fn failure(error: &FetchError) -> Failure {
    let text = match error {
        FetchError::Refused(refusal) if refusal.allowable => {
            format!("{refusal}; the source's `allowPrivate: true` would admit it")
        }
        other => other.to_string(),
    };
    Failure {
        text,
        transient: error.is_transient(),
    }
}

/// The beginning of a stranger's text, on one line.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    make_visible(text.trim(), false).into_owned()
}

async fn collect(mut body: Chunks, max: usize) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    while let Some(chunk) = body.next().await {
        all.extend_from_slice(&chunk.map_err(|error| failure(&error))?);
        if all.len() > max {
            return Err(too_large(max));
        }
    }
    Ok(all)
}

pub(super) fn too_large(max: usize) -> Failure {
    Failure::lasting(format!(
        "the server sent a message of more than {max} bytes"
    ))
}
