//! The emitter: it redacts facts, combines deltas, stores large texts, and passes facts to the sequencer.
//!
//! Responsible for everything between a fact and the sequencer. Does not number or write events. After the sequencer
//! closed, for example because its disk is full, the emitter drops facts. The run is cancelled by then, and no
//! unrecorded fact is shown.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    DeltaPart, EventKind, RecordedRequest, RecordedToolResponse, Redactor, StoredText,
    StreamRedactor, ToolFact, TurnFact,
};
use crate::clock::Clock;
use crate::model::{Blob, CallIx, CellIx, Digest, Millis, ToolResponse, TurnIx};

/// The largest text in bytes that an event contains inline.
pub const INLINE_MAX: usize = 4096;

/// The time for which the deltas of one stream are combined into one event.
const COALESCE_INTERVAL: Millis = Millis(33);

/// The largest text in bytes that a coalescer collects before it sends it.
const MAX_DELTA: usize = 256 << 10;

/// Reads blobs by digest.
pub trait BlobSource: Send + Sync {
    /// Returns the bytes, or an error that names the missing blob.
    fn get(&self, hash: &Digest) -> io::Result<Vec<u8>>;
}

/// Stores blobs by digest. Storing the same bytes again has no effect.
pub trait BlobStore: BlobSource {
    /// Stores the bytes durably enough to be named in an event; `true` if they are new here.
    fn put(&self, bytes: &[u8]) -> io::Result<(Blob, bool)>;
}

/// Blobs in memory, for tests and for calls that record nothing.
#[derive(Debug, Default)]
pub struct MemoryBlobs(Mutex<HashMap<Digest, Vec<u8>>>);

impl BlobSource for MemoryBlobs {
    fn get(&self, hash: &Digest) -> io::Result<Vec<u8>> {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.get(hash)
            .cloned()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no blob {hash}")))
    }
}

impl BlobStore for MemoryBlobs {
    fn put(&self, bytes: &[u8]) -> io::Result<(Blob, bool)> {
        let blob = Blob::from_bytes(bytes);
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = map.insert(blob.hash.clone(), bytes.to_vec()).is_none();
        Ok((blob, new))
    }
}

/// A redacted fact on its way to the sequencer, with its JSON.
#[derive(Debug)]
pub struct RedactedEvent {
    /// The fact.
    pub kind: EventKind,
    /// The fact as JSON.
    pub json: String,
}

impl RedactedEvent {
    /// Redacts and serializes a fact. If it contains a secret, the fact is parsed again from the redacted JSON.
    pub fn from_kind(kind: EventKind, redactor: &Redactor) -> Self {
        let json = kind.to_json().unwrap_or_else(|error| {
            // Facts contain no NaN and no maps with non-string keys, so this is a defect. It must not end a run.
            let text = format!("a fact could not be written: {error}");
            EventKind::Note {
                cell: kind.cell(),
                text,
            }
            .to_json()
            .unwrap_or_default()
        });
        match redactor.redact(&json) {
            None => Self { kind, json },
            // The fact is parsed from the redacted JSON, so that the screen and the log show the same text.
            Some(clean) => {
                if let Ok(kind) = EventKind::from_json(&clean) {
                    Self { kind, json: clean }
                } else if let Some(read) = redact_texts(&json, redactor) {
                    read
                } else {
                    let text =
                        "a fact was withheld: it held a secret in an unexpected place".to_owned();
                    let kind = EventKind::Note {
                        cell: kind.cell(),
                        text,
                    };
                    let json = kind.to_json().unwrap_or_default();
                    Self { kind, json }
                }
            }
        }
    }
}

/// Redacts a fact whose keys, numbers or fixed words contain a secret: only in its texts and numbers, as far as it stays a
/// fact.
///
/// A short header value may be equal to a key of the format, such as `judge`. A password in a request body may be a
/// number. A number of the format, such as a duration, may be equal to that password and stays.
fn redact_texts(json: &str, redactor: &Redactor) -> Option<RedactedEvent> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    [true, false].into_iter().find_map(|with_numbers| {
        let mut value = value.clone();
        redact_scalars(&mut value, redactor, with_numbers);
        let json = value.to_string();
        let kind = EventKind::from_json(&json).ok()?;
        Some(RedactedEvent { kind, json })
    })
}

fn redact_scalars(value: &mut serde_json::Value, redactor: &Redactor, with_numbers: bool) {
    use serde_json::Value;
    match value {
        Value::Number(number) if with_numbers => {
            if let Some(clean) = redactor.redact(&number.to_string()) {
                *value = Value::String(clean);
            }
        }
        Value::String(text) => {
            if let Some(clean) = redactor.redact(text) {
                *text = clean;
            }
        }
        Value::Array(items) => {
            for item in items {
                redact_scalars(item, redactor, with_numbers);
            }
        }
        Value::Object(map) => {
            for item in map.values_mut() {
                redact_scalars(item, redactor, with_numbers);
            }
        }
        _ => {}
    }
}

/// The input of the event log. Clones share one channel.
#[derive(Clone)]
pub struct Emitter {
    sequencer: mpsc::Sender<RedactedEvent>,
    blobs: Arc<dyn BlobStore>,
    redactor: Arc<Redactor>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl Emitter {
    /// Creates an emitter that sends facts to `to` and large texts to `blobs`.
    pub fn new(
        sequencer: mpsc::Sender<RedactedEvent>,
        blobs: Arc<dyn BlobStore>,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self {
            sequencer,
            blobs,
            redactor,
            failed: Arc::default(),
        }
    }

    /// Sends a fact. Waits while the sequencer is busy.
    pub async fn send(&self, kind: EventKind) {
        let envelope = RedactedEvent::from_kind(kind, &self.redactor);
        // The channel is closed; the module docs describe this case.
        let _closed = self.sequencer.send(envelope).await;
    }

    /// As [`Emitter::send`], for a thread outside the runtime.
    pub fn send_blocking(&self, kind: EventKind) {
        let envelope = RedactedEvent::from_kind(kind, &self.redactor);
        let _closed = self.sequencer.blocking_send(envelope);
    }

    /// Waits until the sequencer took all facts. The queue has a limit on facts, and none on their bytes.
    async fn wait_until_taken(&self) {
        let all = self.sequencer.max_capacity();
        let _closed = self.sequencer.reserve_many(all).await.map(drop);
    }

    /// Returns the redactor, for texts that bypass the log (errors, `dicta prompt`).
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Returns the blobs of this run.
    pub fn blobs(&self) -> &Arc<dyn BlobStore> {
        &self.blobs
    }

    /// Returns the first failure to store a blob, if there was one. The run must end then.
    pub fn take_failure(&self) -> Option<io::Error> {
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Redacts and stores bytes. Records `blob_stored` for a new blob.
    pub async fn store_blob(&self, bytes: &[u8]) -> Blob {
        // Redaction comes before the digest and the store, because neither may depend on a secret.
        let clean = self.redactor.redact_bytes(bytes);
        let bytes = clean.as_deref().unwrap_or(bytes);
        match self.blobs.put(bytes) {
            Ok((blob, true)) => {
                self.send(EventKind::BlobStored(blob.clone())).await;
                blob
            }
            Ok((blob, false)) => blob,
            Err(error) => {
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                // Only the first failure is kept: later ones follow from it.
                failed.get_or_insert(error);
                Blob::from_bytes(bytes)
            }
        }
    }

    /// Stores a text for an event: inline if it is short, otherwise as a blob.
    pub async fn store_text(&self, text: &str) -> StoredText {
        if text.len() <= INLINE_MAX {
            StoredText::Text(
                self.redactor
                    .redact(text)
                    .unwrap_or_else(|| text.to_owned()),
            )
        } else {
            StoredText::Blob(self.store_blob(text.as_bytes()).await)
        }
    }

    /// Stores the pieces of a request, one by one: pieces that earlier turns stored are shared.
    pub async fn store_pieces(&self, pieces: &[impl AsRef<str>]) -> RecordedRequest {
        let mut request = Vec::with_capacity(pieces.len());
        for piece in pieces {
            request.push(self.store_text(piece.as_ref()).await);
        }
        request
    }

    /// Stores a tool response for an event.
    pub async fn store_tool_response(&self, answer: &ToolResponse) -> RecordedToolResponse {
        RecordedToolResponse {
            text: self.store_text(&answer.text).await,
            is_error: answer.is_error,
            bytes: answer.bytes,
            truncated: answer.truncated,
            raw: answer.raw.clone(),
            content_type: answer.content_type.clone(),
            hidden: answer.hidden,
            data_version: answer.data_version.clone(),
        }
    }
}

/// The context of a provider or tool call: its access to the run.
#[derive(Clone)]
pub struct CallCx {
    /// The emitter.
    pub out: Emitter,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The cancellation token, which the call checks at every wait.
    pub cancel: CancellationToken,
    /// The cell of the call.
    pub cell: CellIx,
    /// The turn of the call.
    pub turn: TurnIx,
}

impl CallCx {
    /// Sends a fact about this turn.
    pub async fn turn(&self, fact: TurnFact) {
        self.out
            .send(EventKind::Turn {
                cell: self.cell,
                turn: self.turn,
                fact,
            })
            .await;
    }

    /// Sends a fact about a tool call of this turn.
    pub async fn emit_tool_fact(&self, call: CallIx, fact: ToolFact) {
        self.out
            .send(EventKind::Tool {
                cell: self.cell,
                turn: self.turn,
                call,
                fact,
            })
            .await;
    }

    /// Creates a coalescer for the deltas of one attempt.
    pub fn coalesce_deltas(&self, attempt: u8) -> DeltaCoalescer<'_> {
        DeltaCoalescer {
            cx: self,
            attempt,
            buffers: Vec::new(),
            gathering_since: None,
        }
    }
}

/// Combines the deltas of one attempt for up to 33 ms, and redacts secrets that are split between chunks.
///
/// The reading loop waits for the next chunk *or* [`DeltaCoalescer::time_until_flush`], so that text is not delayed while a model
/// thinks.
pub struct DeltaCoalescer<'a> {
    cx: &'a CallCx,
    attempt: u8,
    buffers: Vec<DeltaBuffer>,
    gathering_since: Option<Millis>,
}

/// The collected text of one part of a reply.
struct DeltaBuffer {
    part: DeltaPart,
    redactor: StreamRedactor,
    /// The text that is safe to send.
    ready: String,
}

impl DeltaCoalescer<'_> {
    /// Adds text to a part.
    pub async fn push(&mut self, part: DeltaPart, text: &str) {
        if text.is_empty() {
            return;
        }
        // A reply has few parts, so a search is cheaper than a map, and the order of the parts stays.
        let at = if let Some(at) = self.buffers.iter().position(|buffer| buffer.part == part) {
            at
        } else {
            self.buffers.push(DeltaBuffer {
                part,
                redactor: StreamRedactor::default(),
                ready: String::new(),
            });
            self.buffers.len() - 1
        };
        let buffer = &mut self.buffers[at];
        let ready = buffer.redactor.push(&self.cx.out.redactor, text);
        buffer.ready.push_str(&ready);
        self.gathering_since
            .get_or_insert_with(|| self.cx.clock.now());
        if self.buffers[at].ready.len() >= MAX_DELTA {
            // The server writes faster than any model. Without this wait, the queue would contain most of the reply.
            self.flush().await;
            self.cx.out.wait_until_taken().await;
            return;
        }
        // While chunks arrive without pause, no reading loop waits, so the coalescer itself sends on time.
        if self.time_until_flush() == Some(Millis(0)) {
            self.flush().await;
        }
    }

    /// Returns the time until the collected text must be sent; `None` if there is no text.
    pub fn time_until_flush(&self) -> Option<Millis> {
        let since = self.gathering_since?;
        Some((since + COALESCE_INTERVAL) - self.cx.clock.now())
    }

    /// Sends the collected text.
    pub async fn flush(&mut self) {
        self.gathering_since = None;
        for buffer in &mut self.buffers {
            if !buffer.ready.is_empty() {
                let text = std::mem::take(&mut buffer.ready);
                self.cx
                    .turn(TurnFact::Delta {
                        attempt: self.attempt,
                        part: buffer.part,
                        text,
                    })
                    .await;
            }
        }
    }

    /// Sends everything, including text that the redactor held back. Call it before the fact that ends the attempt.
    pub async fn finish(mut self) {
        // At the end of the stream, a held back beginning of a secret cannot become a secret any more.
        for buffer in &mut self.buffers {
            let rest = buffer.redactor.finish(&self.cx.out.redactor);
            buffer.ready.push_str(&rest);
        }
        self.flush().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::clock::FakeClock;

    #[test]
    fn secret_that_equals_a_key_is_redacted_in_texts_alone() {
        let fact = |text: &str| EventKind::Turn {
            cell: CellIx(1),
            turn: TurnIx(0),
            fact: TurnFact::Delta {
                attempt: 1,
                part: DeltaPart::Text,
                text: text.to_owned(),
            },
        };
        let redactor = Redactor::new(["attempt"]);
        let event = RedactedEvent::from_kind(fact("one attempt"), &redactor);
        assert_eq!(event.kind, fact("one [redacted]"));
        assert_eq!(EventKind::from_json(&event.json).ok(), Some(event.kind));
    }

    #[tokio::test]
    async fn reply_that_is_faster_than_the_recorder_waits_for_it() {
        let (to, mut queue) = mpsc::channel(1024);
        let redactor = Arc::new(Redactor::new(["a secret of the test"]));
        let cx = CallCx {
            out: Emitter::new(to, Arc::new(MemoryBlobs::default()), redactor),
            clock: Arc::new(FakeClock::new()),
            cancel: CancellationToken::new(),
            cell: CellIx(0),
            turn: TurnIx(0),
        };
        let mut deltas = cx.coalesce_deltas(1);
        deltas.push(DeltaPart::Text, "a short text").await;
        let text = "x".repeat(2 * MAX_DELTA);
        let mut push = Box::pin(deltas.push(DeltaPart::Text, &text));
        assert!((&mut push).now_or_never().is_none(), "the queue has a text");
        assert!(queue.recv().await.is_some());
        push.await;
        assert!(queue.try_recv().is_err(), "the text is one fact");
    }
}
