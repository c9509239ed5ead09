//! A stream that ends when a server sends more than it may. The driver reads a row as a whole, however large it is.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of bytes that may still be read.
#[derive(Clone, Default)]
pub(super) struct ReadAllowance(Arc<AtomicU64>);

impl ReadAllowance {
    /// Sets the number of bytes.
    pub(super) fn renew(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// A stream to a server, over TCP or a socket file.
pub(super) trait DatabaseStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> DatabaseStream for S {}

/// A stream with a read allowance.
pub(super) struct MeteredStream {
    inner: Box<dyn DatabaseStream>,
    allowance: ReadAllowance,
}

impl MeteredStream {
    pub(super) fn new(inner: Box<dyn DatabaseStream>, allowance: ReadAllowance) -> Self {
        Self { inner, allowance }
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.allowance.is_spent() {
            return Poll::Ready(Err(io::Error::other("the server sent too much")));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        // Only this stream reads, so no order with other memory is needed.
        let order = Ordering::Relaxed;
        let less = |left: u64| Some(left.saturating_sub(read));
        let _always_some = self.allowance.0.fetch_update(order, order, less);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
