//! A request that was sent, and the wait for its answer.

use std::sync::Arc;

use rmcp::model::{ClientRequest, RequestId, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, ServiceError};

use super::ledger::Ledger;

/// Dropped before its answer came, it tells the server.
pub(super) struct Asked {
    handle: Option<RequestHandle<RoleClient>>,
    pub(super) id: RequestId,
    ledger: Arc<Ledger>,
}

/// How a wait ended.
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, matched where it arrives"
)]
pub(super) enum Waited {
    Replied(Result<ServerResult, ServiceError>),
    /// No answer can come any more; the ledger says why.
    Lost,
}

impl Asked {
    pub(super) async fn send(
        peer: &Peer<RoleClient>,
        request: ClientRequest,
        ledger: &Arc<Ledger>,
    ) -> Result<Self, ServiceError> {
        let options = PeerRequestOptions::no_options();
        let handle = peer.send_cancellable_request(request, options).await?;
        Ok(Self {
            id: handle.id.clone(),
            handle: Some(handle),
            ledger: Arc::clone(ledger),
        })
    }

    /// Waits for what there is to wait for.
    pub(super) async fn wait(&mut self) -> Waited {
        let Some(handle) = &mut self.handle else {
            return Waited::Lost;
        };
        let waited = tokio::select! {
            biased;
            replied = &mut handle.rx => Waited::Replied(replied.unwrap_or(Err(ServiceError::TransportClosed))),
            () = self.ledger.lost(Some(&self.id)) => Waited::Lost,
        };
        if matches!(waited, Waited::Replied(_)) {
            self.handle = None;
        }
        waited
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (id, ledger) = (self.id.clone(), Arc::clone(&self.ledger));
            runtime.spawn(async move {
                let _gone = handle.cancel(Some("no longer wanted".to_owned())).await;
                ledger.take(&id);
            });
        }
    }
}
