//! MCP over streamable HTTP: rmcp's client with dicta's address guard.
//!
//! rmcp decides what to send and when: sessions, their renewal, protocol versions. Every request goes through
//! [`crate::net::AddressGuard`], like any request of a tool. Redirects of a POST are not followed. dicta opens no
//! stream for a server's own notifications, because a judge needs none of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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
use super::event_stream::{AwaitedReply, BodyChunks, watch_event_stream};
use super::failure::{McpFailure, McpHttpError};
use super::request_tracker::RequestTracker;
use crate::clock::BoxFuture;
use crate::model::{Hop, make_visible};
use crate::net::{FetchError, GuardedRequest, HopObserver};

/// The length at which the body of a refusal is cut, in bytes.
const MAX_REFUSAL_BYTES: usize = 300;
const EVENT_STREAM_TYPE: &str = "text/event-stream";
const JSON_TYPE: &str = "application/json";

/// A reply whose body is not read yet.
pub(super) struct McpHttpReply {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) session: Option<String>,
    /// The target of a redirect.
    pub(super) location: Option<String>,
    pub(super) body: BodyChunks,
}

/// A sender of HTTP requests.
pub(super) trait McpHttpSender: Send + Sync {
    /// Sends one request. A redirect of a POST is returned as a reply.
    fn send<'a>(
        &'a self,
        asking: GuardedRequest<'a>,
        hops: &'a dyn HopObserver,
    ) -> BoxFuture<'a, Result<McpHttpReply, FetchError>>;
}

/// A collector of the hops of one request.
#[derive(Default)]
struct HopCollector(Mutex<Vec<Hop>>);

impl HopObserver for HopCollector {
    fn record_hop(&self, hop: Hop) -> BoxFuture<'_, ()> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(hop);
        Box::pin(std::future::ready(()))
    }
}

/// rmcp's HTTP client over a sender.
#[derive(Clone)]
pub(super) struct McpHttpClient {
    pub(super) sender: Arc<dyn McpHttpSender>,
    /// The headers of the source.
    pub(super) headers: Arc<[(String, String)]>,
    pub(super) tracker: Arc<RequestTracker>,
}

/// Creates a transport to a server.
pub(super) fn new_transport(
    client: McpHttpClient,
    url: &str,
) -> StreamableHttpClientTransport<McpHttpClient> {
    let mut config =
        StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_MESSAGE);
    let mut retry = FixedInterval::default();
    retry.max_times = Some(2);
    config.retry_config = Arc::new(retry);
    StreamableHttpClientTransport::with_client(client, config)
}

type McpTransportError = StreamableHttpError<McpHttpError>;

impl McpHttpClient {
    fn request_headers(
        &self,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        more: HashMap<HeaderName, HeaderValue>,
    ) -> Vec<(String, String)> {
        let mut headers = vec![(
            "accept".to_owned(),
            format!("{JSON_TYPE}, {EVENT_STREAM_TYPE}"),
        )];
        // The source's headers precede those of the protocol; the config reader refuses names that collide.
        headers.extend(self.headers.iter().cloned());
        if let Some(session) = session {
            headers.push((HEADER_SESSION_ID.to_owned(), session.to_string()));
        }
        if let Some(event) = last_event {
            headers.push((HEADER_LAST_EVENT_ID.to_owned(), event));
        }
        // A value that is not ASCII cannot be sent; the protocol defines none.
        for (name, value) in more {
            if let Ok(value) = value.to_str() {
                headers.push((name.as_str().to_owned(), value.to_owned()));
            }
        }
        headers
    }

    /// Sends a request and records a failure under its id.
    async fn send_request(
        &self,
        asking: GuardedRequest<'_>,
        id: Option<&RequestId>,
    ) -> Result<McpHttpReply, McpTransportError> {
        let hops = HopCollector::default();
        let sent = self.sender.send(asking, &hops).await;
        // Hops are kept by request id, because rmcp sends requests from its own task.
        if let Some(id) = id {
            let hops = hops.0.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.tracker.add_hops(id, hops);
        }
        sent.map_err(|error| self.record_failure(id, McpFailure::from_fetch_error(&error)))
    }

    fn record_failure(&self, id: Option<&RequestId>, failure: McpFailure) -> McpTransportError {
        if let Some(id) = id {
            self.tracker.set_failure(id, failure.clone());
        }
        StreamableHttpError::Client(McpHttpError(failure))
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        more: HashMap<HeaderName, HeaderValue>,
        max_event: usize,
    ) -> Result<StreamableHttpPostResponse, McpTransportError> {
        // Read before the session moves into the headers.
        let in_session = session.is_some();
        let id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let body = serde_json::to_vec(&message)?;
        let mut headers = self.request_headers(session, None, more);
        headers.push(("content-type".to_owned(), JSON_TYPE.to_owned()));
        let asking = GuardedRequest {
            method: "POST",
            url: &uri,
            headers: &headers,
            body: Some(&body),
        };
        let reply = self.send_request(asking, id.as_ref()).await?;
        match reply.status {
            // The reply comes over another stream, or the message expects no reply.
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            // The protocol defines 404 within a session as its end; rmcp then starts another session.
            404 if in_session => return Err(StreamableHttpError::SessionExpired),
            200..=299 => {}
            _ => return self.read_refusal(reply, id.as_ref()).await,
        }
        let session = reply.session;
        let kind = reply.content_type.unwrap_or_default();
        let kind = kind
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        // Only a request waits for a reply; a notification has no id.
        if let (EVENT_STREAM_TYPE, Some(id)) = (kind.as_str(), &id) {
            let waiting = AwaitedReply {
                id: id.clone(),
                tracker: Arc::clone(&self.tracker),
            };
            let events = watch_event_stream(reply.body, max_event, Some(waiting));
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = match collect_body(reply.body, MAX_MESSAGE).await {
            Ok(body) => body,
            Err(why) => return Err(self.record_failure(id.as_ref(), why)),
        };
        let Some(id) = &id else {
            // A reply to a notification, which expects none.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(error) => {
                let why = format!(
                    "the server's reply is no MCP message ({error}): {}",
                    preview_body(&body)
                );
                Err(self.record_failure(Some(id), McpFailure::permanent(why)))
            }
        }
    }

    /// Converts a refusal. A JSON-RPC error is a reply whatever its HTTP status is.
    async fn read_refusal(
        &self,
        reply: McpHttpReply,
        id: Option<&RequestId>,
    ) -> Result<StreamableHttpPostResponse, McpTransportError> {
        let status = reply.status;
        if let (300..=399, Some(to)) = (status, &reply.location) {
            let to = make_visible(to, false);
            let why = format!(
                "HTTP {status}: the server points to {to}; redirects are not followed here, so name the address itself as `url`"
            );
            return Err(self.record_failure(id, McpFailure::permanent(why)));
        }
        // The body only explains the refusal, so a failure to read it is ignored.
        let body = collect_body(reply.body, MAX_MESSAGE)
            .await
            .unwrap_or_default();
        if let Some(id) = id
            && let Ok(ServerJsonRpcMessage::Error(mut error)) = serde_json::from_slice(&body)
        {
            // The error may lack the id, by which rmcp assigns replies to requests.
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
        let text = match preview_body(&body) {
            text if text.is_empty() => text,
            text => format!(": {text}"),
        };
        let why = format!("HTTP {status}{hint}{text}");
        // 429 asks to come back later, and a 5xx is a fault of the server.
        let transient = status == 429 || status >= 500;
        let failure = McpFailure {
            text: why,
            transient,
        };
        Err(self.record_failure(id, failure))
    }
}

impl StreamableHttpClient for McpHttpClient {
    type Error = McpHttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, McpTransportError> {
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
    ) -> Result<StreamableHttpPostResponse, McpTransportError> {
        self.post(uri, message, session_id, custom_headers, max_sse_event_size)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), McpTransportError> {
        let headers = self.request_headers(Some(session_id), None, custom_headers);
        let asking = GuardedRequest {
            method: "DELETE",
            url: &uri,
            headers: &headers,
            body: None,
        };
        // A server need not support DELETE; the session then expires by itself.
        self.send_request(asking, None).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, McpTransportError> {
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
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, McpTransportError> {
        // Only a broken stream is resumed.
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
        let reply = self.send_request(asking, None).await?;
        match reply.status {
            200 => Ok(watch_event_stream(reply.body, max_sse_event_size, None)),
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => {
                let why = McpFailure::permanent(format!("HTTP {status}"));
                Err(StreamableHttpError::Client(McpHttpError(why)))
            }
        }
    }
}

/// Returns the start of an untrusted text on one line.
fn preview_body(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_REFUSAL_BYTES)]);
    make_visible(text.trim(), false).into_owned()
}

async fn collect_body(mut body: BodyChunks, max: usize) -> Result<Vec<u8>, McpFailure> {
    let mut all = Vec::new();
    while let Some(chunk) = body.next().await {
        all.extend_from_slice(&chunk.map_err(|error| McpFailure::from_fetch_error(&error))?);
        if all.len() > max {
            return Err(McpFailure::message_too_large(max));
        }
    }
    Ok(all)
}
