//! Connections that record whether a request on a reused connection received any byte of its answer.
//!
//! A server may close an idle connection at the moment in which dicta sends a request on it. No library reports this
//! exactly: hyper's error is the same if a part of the answer arrived.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};

use hyper::http::Extensions;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tower_service::Service;

/// The last event was a byte of an answer.
const ANSWERED: u8 = 1;
/// A later request was sent, and no byte of its answer has arrived.
const UNANSWERED: u8 = 2;

/// The state of a connection, which travels through hyper's errors. It is 0 until the first byte of an answer.
#[derive(Debug, Clone, Default)]
struct ConnectionState(Arc<AtomicU8>);

impl ConnectionState {
    fn record_read(&self) {
        self.0.store(ANSWERED, Ordering::Relaxed);
    }

    /// Records written bytes. Only the head of a request begins another exchange: a server may answer while the body
    /// is still being sent.
    fn record_write(&self, bytes: &[u8]) {
        let is_head = bytes.starts_with(b"POST ") || bytes.starts_with(b"GET ");
        if is_head && self.0.load(Ordering::Relaxed) == ANSWERED {
            self.0.store(UNANSWERED, Ordering::Relaxed);
        }
    }
}

/// Returns whether a request failed on a reused connection before any byte of its answer arrived.
pub(super) fn failed_before_answer(connected: Option<&Connected>) -> bool {
    let mut extensions = Extensions::new();
    if let Some(connected) = connected {
        connected.get_extras(&mut extensions);
    }
    extensions
        .get::<ConnectionState>()
        .is_some_and(|state| state.0.load(Ordering::Relaxed) == UNANSWERED)
}

/// A connector whose connections are watched.
#[derive(Debug, Clone)]
pub(super) struct WatchingConnector<S>(pub(super) S);

impl<S, R> Service<R> for WatchingConnector<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = WatchedConnection<S::Response>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let connecting = self.0.call(target);
        Box::pin(async move {
            Ok(WatchedConnection {
                inner: connecting.await?,
                state: ConnectionState::default(),
            })
        })
    }
}

/// A connection that records reads and requests.
#[derive(Debug)]
pub(super) struct WatchedConnection<T> {
    inner: T,
    state: ConnectionState,
}

impl<T: Connection> Connection for WatchedConnection<T> {
    fn connected(&self) -> Connected {
        self.inner.connected().extra(self.state.clone())
    }
}

impl<T: Read + Unpin> Read for WatchedConnection<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // A buffer of its own, because a cursor does not report how much was read into it.
        let mut bytes = [0; 16 << 10];
        let room = buf.remaining().min(bytes.len());
        let mut own = hyper::rt::ReadBuf::new(&mut bytes[..room]);
        ready!(Pin::new(&mut self.inner).poll_read(cx, own.unfilled()))?;
        if !own.filled().is_empty() {
            self.state.record_read();
            buf.put_slice(own.filled());
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: Write + Unpin> Write for WatchedConnection<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.state.record_write(buf);
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(first) = bufs.first() {
            self.state.record_write(first);
        }
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(state: &ConnectionState) -> bool {
        failed_before_answer(Some(&Connected::new().extra(state.clone())))
    }

    #[test]
    fn only_a_later_request_without_an_answer_counts() {
        let state = ConnectionState::default();
        assert!(!connected(&state));
        state.record_write(b"POST / HTTP/1.1\r\n");
        assert!(!connected(&state), "a new connection");
        state.record_read();
        assert!(!connected(&state));
        state.record_write(b"the rest of a body");
        assert!(!connected(&state), "the same request");
        state.record_write(b"GET / HTTP/1.1\r\n");
        assert!(connected(&state));
        state.record_read();
        assert!(!connected(&state), "a byte of its answer");
        assert!(!failed_before_answer(None));
    }
}
