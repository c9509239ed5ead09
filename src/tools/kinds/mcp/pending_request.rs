//! A request in flight and the wait for its reply.

use std::sync::Arc;

use rmcp::model::{ClientRequest, RequestId, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, ServiceError};

use super::request_tracker::RequestTracker;

/// A request in flight. Dropping it before its reply arrives cancels it at the server.
pub(super) struct PendingRequest {
    handle: Option<RequestHandle<RoleClient>>,
    pub(super) id: RequestId,
    tracker: Arc<RequestTracker>,
}

/// The end of a wait.
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, matched where it arrives"
)]
pub(super) enum RequestOutcome {
    Replied(Result<ServerResult, ServiceError>),
    /// The reply can no longer arrive; the tracker has the reason.
    Lost,
}

impl PendingRequest {
    pub(super) async fn send(
        peer: &Peer<RoleClient>,
        request: ClientRequest,
        tracker: &Arc<RequestTracker>,
    ) -> Result<Self, ServiceError> {
        let options = PeerRequestOptions::no_options();
        let handle = peer.send_cancellable_request(request, options).await?;
        Ok(Self {
            id: handle.id.clone(),
            handle: Some(handle),
            tracker: Arc::clone(tracker),
        })
    }

    /// Waits for the reply or its loss.
    pub(super) async fn await_reply(&mut self) -> RequestOutcome {
        let Some(handle) = &mut self.handle else {
            return RequestOutcome::Lost;
        };
        let waited = tokio::select! {
            biased;
            replied = &mut handle.rx => RequestOutcome::Replied(replied.unwrap_or(Err(ServiceError::TransportClosed))),
            () = self.tracker.wait_until_lost(Some(&self.id)) => RequestOutcome::Lost,
        };
        if matches!(waited, RequestOutcome::Replied(_)) {
            self.handle = None;
        }
        waited
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take()
            // Cancelling needs a runtime. Without one, dicta is ending, and the connection with it.
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (id, tracker) = (self.id.clone(), Arc::clone(&self.tracker));
            runtime.spawn(async move {
                let _gone = handle.cancel(Some("no longer wanted".to_owned())).await;
                tracker.take_request(&id);
            });
        }
    }
}
