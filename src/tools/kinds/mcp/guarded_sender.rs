//! The sender of MCP requests over HTTP, through the address guard.

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

/// The size limit of one reply with all its events, in bytes: progress messages and the result.
const MAX_REPLY_BYTES: u64 = 4 * MAX_MESSAGE as u64;
/// The time added to a call's own limit, so that the call reports its timeout first.
const DEADLINE_MARGIN: Millis = Millis::from_secs(5);

/// The address guard with the limits of a source.
pub(super) struct GuardedSender {
    guard: AddressGuard,
    clock: Arc<dyn Clock>,
    limits: FetchLimits,
}

/// Builds the address guard: https, port 443 and public addresses. `allowPrivate: true` allows the endpoint's own
/// origin instead.
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
                // A JSON reply begins only when the tool is done, so its headers may take as long as the call.
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
            // The body takes `page`, so the other parts are read first.
            let head = reply(stream::empty().boxed());
            let chunks = page.into_stream(self.limits.deadline, MAX_REPLY_BYTES)?;
            // After an error, the stream ends.
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
