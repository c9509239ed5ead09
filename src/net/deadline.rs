//! Deadlines on our own clock: around any future, and around the connecting of a client.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use super::error::ConnectTimedOut;
use super::fetch::FetchError;
use crate::clock::{Clock, with_timeout};
use crate::model::Millis;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Puts a deadline on connecting (name, TCP, TLS): reqwest's own `connect_timeout` would run on tokio's time.
#[derive(Clone)]
pub(super) struct ConnectDeadline {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limit: Millis,
}

impl<S> Layer<S> for ConnectDeadline {
    type Service = ConnectWithDeadline<S>;

    fn layer(&self, inner: S) -> ConnectWithDeadline<S> {
        ConnectWithDeadline {
            inner,
            deadline: self.clone(),
        }
    }
}

/// A connector with a deadline.
#[derive(Clone)]
pub(super) struct ConnectWithDeadline<S> {
    inner: S,
    deadline: ConnectDeadline,
}

impl<S, R> Service<R> for ConnectWithDeadline<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let connecting = self.inner.call(target);
        let ConnectDeadline { clock, limit } = self.deadline.clone();
        Box::pin(async move {
            with_timeout(&*clock, limit, connecting)
                .await
                .unwrap_or_else(|| Err(Box::new(ConnectTimedOut(limit))))
        })
    }
}

/// A moment on our clock by which everything must be over.
pub(super) struct FetchDeadline {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) at: Millis,
}

impl FetchDeadline {
    pub(super) fn time_left(&self) -> Millis {
        self.at - self.clock.now()
    }

    pub(super) async fn run_until<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        with_timeout(&*self.clock, self.time_left(), work)
            .await
            .ok_or(FetchError::Timeout)
    }

    /// As [`Deadline::run`], for at most `limit`: `what` says what was waited for.
    pub(super) async fn run_phase<T>(
        &self,
        limit: Millis,
        what: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        let left = self.time_left();
        if limit >= left {
            return self.run_until(work).await;
        }
        with_timeout(&*self.clock, limit, work)
            .await
            .ok_or(FetchError::PhaseTimeout { what, after: limit })
    }
}
