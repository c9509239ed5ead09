//! What becomes of requests over HTTP beside their answers, by their id: hops to be told, and why an answer cannot come.
//!
//! The SDK leaves a request to its time limit when the stream of its reply breaks; here that is known at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

use super::failure::Failure;
use crate::model::Hop;

#[derive(Default)]
pub(super) struct Ledger {
    entries: Mutex<HashMap<RequestId, Entry>>,
    losses: Notify,
}

#[derive(Default)]
struct Entry {
    hops: Vec<Hop>,
    failed: Option<Failure>,
    /// No answer comes any more.
    lost: bool,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, id: &RequestId, hops: Vec<Hop>) {
        self.lock().entry(id.clone()).or_default().hops.extend(hops);
    }

    /// Why a request fails, should it fail.
    pub(super) fn fail(&self, id: &RequestId, why: Failure) {
        self.lock().entry(id.clone()).or_default().failed = Some(why);
    }

    /// A request whose answer cannot come any more, and why.
    pub(super) fn lose(&self, id: &RequestId, why: Failure) {
        let mut entries = self.lock();
        let entry = entries.entry(id.clone()).or_default();
        entry.failed = Some(why);
        entry.lost = true;
        drop(entries);
        self.losses.notify_waiters();
    }

    /// Comes back once this request is lost, or any where none is named: of a handshake nobody knows the id.
    pub(super) async fn lost(&self, id: Option<&RequestId>) {
        loop {
            let told = self.losses.notified();
            tokio::pin!(told);
            // From here on no news is missed.
            told.as_mut().enable();
            let is_lost = match id {
                Some(id) => self.lock().get(id).is_some_and(|entry| entry.lost),
                None => self.lock().values().any(|entry| entry.lost),
            };
            if is_lost {
                return;
            }
            told.await;
        }
    }

    /// What is known of a request; it is forgotten then.
    pub(super) fn take(&self, id: &RequestId) -> (Vec<Hop>, Option<Failure>) {
        let entry = self.lock().remove(id).unwrap_or_default();
        (entry.hops, entry.failed)
    }

    /// Any failure there is: of a handshake, whose id nobody knows.
    pub(super) fn take_any(&self) -> Option<Failure> {
        self.lock().drain().find_map(|(_, entry)| entry.failed)
    }
}
