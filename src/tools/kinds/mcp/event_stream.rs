//! Replies as server-sent events: limits their size, and detects a lost reply.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::SseError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sse_stream::{Sse, SseStream};

use super::failure::{McpFailure, McpHttpError};
use super::request_tracker::RequestTracker;
use crate::net::FetchError;

/// The chunks of a body. A body over a size limit ends in an error.
pub(super) type BodyChunks = BoxStream<'static, Result<Bytes, FetchError>>;

/// The request whose reply a stream should contain.
pub(super) struct AwaitedReply {
    pub(super) id: RequestId,
    pub(super) tracker: Arc<RequestTracker>,
}

/// Converts a body to server-sent events of at most `max` bytes each. If `waiting` names a request, its tracker
/// learns when the reply can no longer arrive.
pub(super) fn watch_event_stream(
    body: BodyChunks,
    max: usize,
    waiting: Option<AwaitedReply>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut size = EventSizeLimit {
        max_bytes: max,
        event_len: 0,
        line_len: 0,
    };
    let bounded = body.map(move |chunk| {
        let chunk = chunk.map_err(|error| McpHttpError(McpFailure::from_fetch_error(&error)))?;
        if size.admits(&chunk) {
            Ok(chunk)
        } else {
            Err(McpHttpError(McpFailure::message_too_large(max)))
        }
    });
    // Read nothing after the first error.
    let ended = bounded.scan(false, |over, chunk| {
        let next = (!*over).then(|| {
            *over = chunk.is_err();
            chunk
        });
        std::future::ready(next)
    });
    let events = SseStream::from_bytes_stream(ended);
    let Some(waiting) = waiting else {
        return events.boxed();
    };
    let mut watch = ReplyWatcher {
        awaited: waiting,
        resumable: false,
        is_settled: false,
    };
    // The extra `None` marks the end of the stream, which an iterator over events cannot see.
    let end = stream::once(std::future::ready(None));
    let watched = events.map(Some).chain(end).filter_map(move |event| {
        match &event {
            Some(Ok(event)) => watch.on_event(event),
            Some(Err(error)) => watch.on_stream_error(error),
            None => watch.on_stream_end(),
        }
        std::future::ready(event)
    });
    watched.boxed()
}

/// The state of a stream that should contain a reply.
struct ReplyWatcher {
    awaited: AwaitedReply,
    /// True if the events have ids. rmcp then resumes a broken stream.
    resumable: bool,
    /// True if the reply has passed or cannot arrive.
    is_settled: bool,
}

/// The part of a message that identifies it as a reply.
#[derive(Deserialize)]
struct JsonRpcHead {
    id: Option<RequestId>,
    method: Option<IgnoredAny>,
}

impl ReplyWatcher {
    fn on_event(&mut self, event: &Sse) {
        // Only a stream whose events have ids can be resumed.
        self.resumable |= event.id.is_some();
        let data = event.data.as_deref().unwrap_or_default();
        let head = serde_json::from_str::<JsonRpcHead>(data);
        // A request of the server may use the same id, so the reply is recognized by the missing method.
        self.is_settled |= head
            .is_ok_and(|head| head.method.is_none() && head.id.as_ref() == Some(&self.awaited.id));
    }

    fn on_stream_error(&mut self, error: &SseError) {
        let why = match error {
            SseError::Body(inner) => inner.downcast_ref::<McpHttpError>().map(|e| e.0.clone()),
            _ => None,
        };
        let why = why.unwrap_or_else(|| {
            McpFailure::permanent(format!(
                "the server's reply is no stream of events: {error}"
            ))
        });
        self.report_lost_reply(why);
    }

    fn on_stream_end(&mut self) {
        self.report_lost_reply(McpFailure::transient(
            "the server's reply ended without an answer",
        ));
    }

    fn report_lost_reply(&mut self, why: McpFailure) {
        if self.is_settled {
            return;
        }
        let AwaitedReply { id, tracker } = &self.awaited;
        // rmcp resumes such a stream, so the reply may still arrive.
        if self.resumable && why.transient {
            tracker.set_failure(id, why);
        } else {
            self.is_settled = true;
            tracker.mark_lost(id, why);
        }
    }
}

/// A counter of an event's bytes; an empty line ends the event.
struct EventSizeLimit {
    max_bytes: usize,
    event_len: usize,
    line_len: usize,
}

impl EventSizeLimit {
    fn admits(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            match byte {
                // Line ends may be `\n` or `\r\n`.
                b'\r' => {}
                // An empty line ends an event.
                b'\n' if self.line_len == 0 => self.event_len = 0,
                b'\n' => self.line_len = 0,
                _ => {
                    self.line_len += 1;
                    self.event_len += 1;
                }
            }
            if self.event_len > self.max_bytes {
                return false;
            }
        }
        true
    }
}
