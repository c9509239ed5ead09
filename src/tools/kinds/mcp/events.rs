//! Replies that come as server-sent events: measured, and watched for the answer.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::SseError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sse_stream::{Sse, SseStream};

use super::failure::Failure;
use super::http::{Chunks, WayError, failure, too_large};
use super::ledger::Ledger;

/// Who waits for an answer on a stream.
pub(super) struct Waiting {
    pub(super) id: RequestId,
    pub(super) ledger: Arc<Ledger>,
}

/// Server-sent events, each of at most `max` bytes. Where somebody waits, the ledger learns that no answer can come any
/// more.
pub(super) fn events(
    body: Chunks,
    max: usize,
    waiting: Option<Waiting>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut size = EventSize {
        max,
        so_far: 0,
        line: 0,
    };
    let bounded = body.map(move |chunk| {
        let chunk = chunk.map_err(|error| WayError(failure(&error)))?;
        if size.admits(&chunk) {
            Ok(chunk)
        } else {
            Err(WayError(too_large(max)))
        }
    });
    // After the first error nothing more is read.
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
    let mut watch = Watch {
        waiting,
        resumable: false,
        over: false,
    };
    let end = stream::once(std::future::ready(None));
    let watched = events.map(Some).chain(end).filter_map(move |event| {
        match &event {
            Some(Ok(event)) => watch.passes(event),
            Some(Err(error)) => watch.breaks(error),
            None => watch.ends(),
        }
        std::future::ready(event)
    });
    watched.boxed()
}

/// What is seen of a stream that should bring an answer.
struct Watch {
    waiting: Waiting,
    /// Its events have ids: rmcp takes it up again where it broke.
    resumable: bool,
    /// The answer passed, or cannot come.
    over: bool,
}

/// So much of a message tells whether it is an answer, and to what.
#[derive(Deserialize)]
struct Head {
    id: Option<RequestId>,
    method: Option<IgnoredAny>,
}

impl Watch {
    fn passes(&mut self, event: &Sse) {
        self.resumable |= event.id.is_some();
        let data = event.data.as_deref().unwrap_or_default();
        let head = serde_json::from_str::<Head>(data);
        self.over |= head
            .is_ok_and(|head| head.method.is_none() && head.id.as_ref() == Some(&self.waiting.id));
    }

    fn breaks(&mut self, error: &SseError) {
        let why = match error {
            SseError::Body(inner) => inner.downcast_ref::<WayError>().map(|e| e.0.clone()),
            _ => None,
        };
        let why = why.unwrap_or_else(|| {
            Failure::lasting(format!(
                "the server's reply is no stream of events: {error}"
            ))
        });
        self.gives_up(why);
    }

    fn ends(&mut self) {
        self.gives_up(Failure::transient(
            "the server's reply ended without an answer",
        ));
    }

    fn gives_up(&mut self, why: Failure) {
        if self.over {
            return;
        }
        let Waiting { id, ledger } = &self.waiting;
        if self.resumable && why.transient {
            ledger.fail(id, why);
        } else {
            self.over = true;
            ledger.lose(id, why);
        }
    }
}

/// Counts an event's bytes; an empty line ends it.
struct EventSize {
    max: usize,
    so_far: usize,
    line: usize,
}

impl EventSize {
    fn admits(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            match byte {
                b'\r' => {}
                b'\n' if self.line == 0 => self.so_far = 0,
                b'\n' => self.line = 0,
                _ => {
                    self.line += 1;
                    self.so_far += 1;
                }
            }
            if self.so_far > self.max {
                return false;
            }
        }
        true
    }
}
