//! Deadlines on dicta's clock: around a future, a whole fetch, and the connecting of a client.
//!
//! dicta does not use the timers of tokio and reqwest, so that a paused judge trace can stop its deadline.

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

/// A connector layer that puts a deadline on connecting (name, TCP, TLS). reqwest's own `connect_timeout` would use
/// tokio's time.
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
        // The call starts here and not in the future, because `inner` cannot be borrowed across the await.
        let connecting = self.inner.call(target);
        let ConnectDeadline { clock, limit } = self.deadline.clone();
        Box::pin(async move {
            with_timeout(&*clock, limit, connecting)
                .await
                .unwrap_or_else(|| Err(Box::new(ConnectTimedOut(limit))))
        })
    }
}

/// The moment on dicta's clock by which a whole fetch must end.
pub(super) struct FetchDeadline {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) at: Millis,
}

impl FetchDeadline {
    /// Returns the time until the deadline; 0 if it has passed.
    pub(super) fn time_left(&self) -> Millis {
        self.at - self.clock.now()
    }

    /// Runs work until the deadline.
    pub(super) async fn run_until<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        with_timeout(&*self.clock, self.time_left(), work)
            .await
            .ok_or(FetchError::Timeout)
    }

    /// Runs work for at most `limit`, and never beyond the deadline. `what` names the phase in the error.
    pub(super) async fn run_phase<T>(
        &self,
        limit: Millis,
        what: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        let left = self.time_left();
        // The error is then that of the whole deadline, because a longer limit would not help.
        if limit >= left {
            return self.run_until(work).await;
        }
        with_timeout(&*self.clock, limit, work)
            .await
            .ok_or(FetchError::PhaseTimeout { what, after: limit })
    }
}
