//! The hops and failures of HTTP requests by their ids, apart from their replies.
//!
//! If the stream of a reply breaks, the SDK waits for the time limit of the request. The tracker reports the loss at
//! once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

use super::failure::McpFailure;
use crate::model::Hop;

#[derive(Default)]
pub(super) struct RequestTracker {
    entries: Mutex<HashMap<RequestId, TrackedRequest>>,
    lost_notify: Notify,
}

#[derive(Default)]
struct TrackedRequest {
    hops: Vec<Hop>,
    failure: Option<McpFailure>,
    /// True if the reply can no longer arrive.
    is_lost: bool,
}

impl RequestTracker {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, TrackedRequest>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_hops(&self, id: &RequestId, hops: Vec<Hop>) {
        self.lock().entry(id.clone()).or_default().hops.extend(hops);
    }

    /// Sets the failure to report if the request fails.
    pub(super) fn set_failure(&self, id: &RequestId, why: McpFailure) {
        self.lock().entry(id.clone()).or_default().failure = Some(why);
    }

    /// Marks a request whose reply can no longer arrive.
    pub(super) fn mark_lost(&self, id: &RequestId, why: McpFailure) {
        let mut entries = self.lock();
        let entry = entries.entry(id.clone()).or_default();
        entry.failure = Some(why);
        entry.is_lost = true;
        // The lock is released before the waiting tasks wake up and take it.
        drop(entries);
        self.lost_notify.notify_waiters();
    }

    /// Returns once this request is lost, or any request without an id. The id of a handshake is not known.
    pub(super) async fn wait_until_lost(&self, id: Option<&RequestId>) {
        loop {
            let notified = self.lost_notify.notified();
            tokio::pin!(notified);
            // Register for notifications before the check below, or one could be missed.
            notified.as_mut().enable();
            let is_lost = match id {
                Some(id) => self.lock().get(id).is_some_and(|entry| entry.is_lost),
                None => self.lock().values().any(|entry| entry.is_lost),
            };
            if is_lost {
                return;
            }
            notified.await;
        }
    }

    /// Removes a request and returns its hops and failure.
    pub(super) fn take_request(&self, id: &RequestId) -> (Vec<Hop>, Option<McpFailure>) {
        let entry = self.lock().remove(id).unwrap_or_default();
        (entry.hops, entry.failure)
    }

    /// Removes and returns any failure. A handshake uses it, because its id is not known.
    pub(super) fn take_any_failure(&self) -> Option<McpFailure> {
        self.lock().drain().find_map(|(_, entry)| entry.failure)
    }
}
