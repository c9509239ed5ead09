//! The reply to a guarded request, and its body: whole up to the caps, or piece by piece while it arrives.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use reqwest::header;

use super::body::{BodyCollector, BodyError, FetchedBody, ReadMore};
use super::deadline::FetchDeadline;
use super::error::classify_error;
use super::fetch::{FetchError, FetchLimits};
use super::{NetError, WaitPhase};
use crate::clock::{Clock, with_timeout};
use crate::model::Millis;

/// The last reply of a fetch. Its body has not been read yet.
pub struct FetchReply {
    /// The URL after redirects.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    pub(super) host: String,
    pub(super) reply: reqwest::Response,
    pub(super) deadline: FetchDeadline,
    pub(super) limits: FetchLimits,
}

impl FetchReply {
    /// Returns a header's value, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.reply.headers().get(name)?.to_str().ok()
    }

    /// Returns the size that the server announced, in bytes on the wire.
    pub fn announced_size(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// Returns the time until the deadline of the fetch.
    pub fn time_left(&self) -> Millis {
        self.deadline.time_left()
    }

    /// Reads the body up to the caps, before the deadline of the fetch.
    pub async fn read_body(mut self) -> Result<FetchedBody, FetchError> {
        // The encoding decides before the first byte is read, so an unknown one costs no traffic.
        let encoding = self.content_encoding();
        let mut body = BodyCollector::new(
            encoding.as_deref(),
            self.limits.wire_bytes,
            self.limits.decoded_bytes,
        )
        .ok_or_else(|| FetchError::UnsupportedEncoding(encoding.unwrap_or_default()))?;
        let sort = |error| match error {
            BodyError::DecompressionBomb => {
                FetchError::DecompressionBomb(self.limits.max_expansion)
            }
            BodyError::InvalidEncoding => FetchError::InvalidGzip,
        };
        loop {
            match self.deadline.run_until(self.reply.chunk()).await? {
                Ok(None) => break,
                Ok(Some(chunk)) => {
                    if body.push(&chunk, self.limits.max_expansion).map_err(sort)? == ReadMore::No {
                        // The rest of the body stays unread; dropping the reply closes the connection.
                        break;
                    }
                }
                Err(error) => return Err(classify_error(&error, &self.host).into()),
            }
        }
        body.finish().map_err(sort)
    }

    /// Returns the body piece by piece, for replies without an end (server-sent events). The deadline of the fetch no
    /// longer applies. Instead, each piece may take `idle`, and all pieces together may have `total` bytes. An
    /// encoded body is refused.
    pub fn into_stream(self, idle: Millis, total: u64) -> Result<BodyStream, FetchError> {
        if let Some(encoding) = self.content_encoding()
            // An empty value means no encoding, as `identity` does.
            && !matches!(encoding.trim(), "" | "identity")
        {
            return Err(FetchError::UnsupportedEncoding(encoding));
        }
        Ok(BodyStream {
            host: self.host,
            reply: self.reply,
            clock: self.deadline.clock,
            idle,
            total,
            received: 0,
        })
    }

    fn content_encoding(&self) -> Option<String> {
        // A header may occur several times, and two encodings are two layers.
        let all: Vec<String> = self
            .reply
            .headers()
            .get_all(header::CONTENT_ENCODING)
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
            .collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

impl fmt::Debug for FetchReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchReply")
            .field("url", &self.url)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A body that arrives piece by piece. Dropping it closes the connection.
pub struct BodyStream {
    host: String,
    reply: reqwest::Response,
    clock: Arc<dyn Clock>,
    idle: Millis,
    total: u64,
    received: u64,
}

impl BodyStream {
    /// Returns the next piece, or `None` at the end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let next = with_timeout(&*self.clock, self.idle, self.reply.chunk()).await;
        let chunk = match next {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Err(classify_error(&error, &self.host).into()),
            None => {
                return Err(FetchError::Net(NetError::Timeout {
                    host: self.host.clone(),
                    what: WaitPhase::NextByte,
                    after: self.idle,
                }));
            }
        };
        // The total counts over all events, because a server can stream without end.
        self.received += chunk.as_ref().map_or(0, |c| c.len() as u64);
        if self.received > self.total {
            return Err(FetchError::Net(NetError::TooLarge {
                host: self.host.clone(),
                limit: self.total,
            }));
        }
        Ok(chunk)
    }
}

impl fmt::Debug for BodyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyStream")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}
