//! A guarded reply as an answer: its body as text within the caps, kept raw as evidence; what is not for reading as type
//! and size. Shared by everything that asks the web.

use super::page;
use crate::clock::{BoxFuture, Clock};
use crate::event::{CallCx, ToolFact};
use crate::model::{CallIx, Hop, Millis, ToolResponse};
use crate::net::{FetchError, FetchReply, HopObserver};

/// Of a body, so much is kept as evidence, in bytes.
const RAW_MAX: usize = 2 << 20;

/// Turning HTML into text gets at least this long, however late the body came.
const PATIENCE: Millis = Millis(500);

/// Reads the body as text of at most `max` bytes, within what is left of the reply's deadline.
pub(super) async fn read(
    reply: FetchReply,
    max: usize,
    cx: &CallCx,
) -> Result<ToolResponse, FetchError> {
    let content_type = reply.header("content-type").map(str::to_owned);
    let announced = reply.announced_size();
    let url = reply.url.clone();
    let ends = cx.clock.now() + reply.time_left();
    if page::Kind::of(content_type.as_deref()) == page::Kind::Binary
        && let Some(size) = announced
    {
        return Ok(described(content_type, size, false));
    }
    let body = reply.read_body().await?;
    let size = body.bytes.len();
    let stored = cx.out.store_blob(&body.bytes[..size.min(RAW_MAX)]).await;
    let patience = (ends - cx.clock.now()).max(PATIENCE);
    let clock: &dyn Clock = &*cx.clock;
    let kind = content_type.as_deref();
    let Some(shown) = page::read(body.bytes, kind, &url, max, clock, patience).await else {
        return Ok(ToolResponse {
            raw: Some(stored),
            ..described(content_type, size as u64, body.truncated)
        });
    };
    let (text, truncated) = page::cut(shown.text, max, body.truncated.then_some(size));
    Ok(ToolResponse {
        text,
        is_error: false,
        bytes: size as u64,
        truncated,
        raw: Some(stored),
        content_type,
        hidden: shown.hidden,
        transient: false,
    })
}

/// A body that is not for reading, as its type and size.
fn described(content_type: Option<String>, size: u64, cut: bool) -> ToolResponse {
    let kind = content_type
        .as_deref()
        .map_or_else(|| "no content type".to_owned(), page::essence);
    let more = if cut { "more than " } else { "" };
    let text = format!("[{kind}, {more}{size} bytes: not shown, only text, JSON and XML are]");
    ToolResponse {
        bytes: size,
        truncated: cut,
        content_type,
        ..ToolResponse::ok(text)
    }
}

/// Whether a status says that the same request may succeed later.
pub(super) fn is_transient(status: u16) -> bool {
    status == 429 || (500..600).contains(&status)
}

/// Tells hops as facts of a call.
pub(super) struct Facts<'a> {
    pub(super) cx: &'a CallCx,
    pub(super) call: CallIx,
}

impl HopObserver for Facts<'_> {
    fn record_hop(&self, hop: Hop) -> BoxFuture<'_, ()> {
        Box::pin(self.cx.emit_tool_fact(self.call, ToolFact::Hop(hop)))
    }
}
