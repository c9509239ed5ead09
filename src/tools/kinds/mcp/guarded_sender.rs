//! The way out of MCP over HTTP: the guard that every tool's requests pass.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::config::McpEndpoint;
use super::http::{McpHttpReply, McpHttpSender};
use super::{MAX_MESSAGE, McpConfig};
use crate::clock::{BoxFuture, Clock};
use crate::model::Millis;
use crate::net::{
    AddressGuard, AddressPolicy, FetchError, FetchLimits, GuardedRequest, HopObserver, Resolver,
};

/// What all events of one reply may be together: progress, and the answer.
const MAX_REPLY_BYTES: u64 = 4 * MAX_MESSAGE as u64;
/// Beyond the time a call has: the call's own end comes first, and says so.
const DEADLINE_MARGIN: Millis = Millis::from_secs(5);

/// The guard, with the limits of a source.
pub(super) struct GuardedSender {
    guard: AddressGuard,
    clock: Arc<dyn Clock>,
    limits: FetchLimits,
}

/// https, port 443 and public addresses, unless the source says `allowPrivate: true`: then its origin, whatever it is.
pub(super) fn build_guard(endpoint: &McpEndpoint, resolver: Arc<dyn Resolver>) -> AddressGuard {
    let origins = if endpoint.allow_private {
        vec![endpoint.url.origin()]
    } else {
        Vec::new()
    };
    AddressGuard::new(
        AddressPolicy {
            origins,
            ..AddressPolicy::default()
        },
        resolver,
    )
}

impl GuardedSender {
    pub(super) fn new(guard: AddressGuard, settings: &McpConfig, clock: Arc<dyn Clock>) -> Self {
        let longest = settings.timeout.max(settings.start_timeout) + DEADLINE_MARGIN;
        Self {
            guard,
            clock,
            limits: FetchLimits {
                deadline: longest,
                // A reply in JSON begins when the tool is done.
                headers: longest,
                wire_bytes: MAX_REPLY_BYTES,
                decoded_bytes: 4 * MAX_MESSAGE,
                ..FetchLimits::default()
            },
        }
    }
}

impl McpHttpSender for GuardedSender {
    fn send<'a>(
        &'a self,
        asking: GuardedRequest<'a>,
        hops: &'a dyn HopObserver,
    ) -> BoxFuture<'a, Result<McpHttpReply, FetchError>> {
        Box::pin(async move {
            let page = self
                .guard
                .send(&asking, &self.clock, self.limits, hops)
                .await?;
            let header = |name: &str| page.header(name).map(str::to_owned);
            let reply = |body| McpHttpReply {
                status: page.status,
                content_type: header("content-type"),
                session: header("mcp-session-id"),
                location: header("location"),
                body,
            };
            let head = reply(stream::empty().boxed());
            let chunks = page.into_stream(self.limits.deadline, MAX_REPLY_BYTES)?;
            // After an error there is nothing more.
            let body = stream::unfold(Some(chunks), |chunks| async {
                let mut chunks = chunks?;
                match chunks.next_chunk().await {
                    Ok(Some(bytes)) => Some((Ok(bytes), Some(chunks))),
                    Ok(None) => None,
                    Err(error) => Some((Err(error), None)),
                }
            });
            Ok(McpHttpReply {
                body: body.boxed(),
                ..head
            })
        })
    }
}
