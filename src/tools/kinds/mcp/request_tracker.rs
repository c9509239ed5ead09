//! What becomes of requests over HTTP beside their answers, by their id: hops to be told, and why an answer cannot come.
//!
//! The SDK leaves a request to its time limit when the stream of its reply breaks; here that is known at once.

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
    /// No answer comes any more.
    is_lost: bool,
}

impl RequestTracker {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, TrackedRequest>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_hops(&self, id: &RequestId, hops: Vec<Hop>) {
        self.lock().entry(id.clone()).or_default().hops.extend(hops);
    }

    /// Why a request fails, should it fail.
    pub(super) fn set_failure(&self, id: &RequestId, why: McpFailure) {
        self.lock().entry(id.clone()).or_default().failure = Some(why);
    }

    /// A request whose answer cannot come any more, and why.
    pub(super) fn mark_lost(&self, id: &RequestId, why: McpFailure) {
        let mut entries = self.lock();
        let entry = entries.entry(id.clone()).or_default();
        entry.failure = Some(why);
        entry.is_lost = true;
        drop(entries);
        self.lost_notify.notify_waiters();
    }

    /// Comes back once this request is lost, or any where none is named: of a handshake nobody knows the id.
    pub(super) async fn wait_until_lost(&self, id: Option<&RequestId>) {
        loop {
            let told = self.lost_notify.notified();
            tokio::pin!(told);
            // From here on no news is missed.
            told.as_mut().enable();
            let is_lost = match id {
                Some(id) => self.lock().get(id).is_some_and(|entry| entry.is_lost),
                None => self.lock().values().any(|entry| entry.is_lost),
            };
            if is_lost {
                return;
            }
            told.await;
        }
    }

    /// What is known of a request; it is forgotten then.
    pub(super) fn take_request(&self, id: &RequestId) -> (Vec<Hop>, Option<McpFailure>) {
        let entry = self.lock().remove(id).unwrap_or_default();
        (entry.hops, entry.failure)
    }

    /// Any failure there is: of a handshake, whose id nobody knows.
    pub(super) fn take_any_failure(&self) -> Option<McpFailure> {
        self.lock().drain().find_map(|(_, entry)| entry.failure)
    }
}
