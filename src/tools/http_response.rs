//! Conversion of a guarded HTTP reply to a tool response.
//!
//! Responsible for the body as text within the limits, and for the raw bytes that dicta keeps. A body that is not
//! text becomes its type and size. Every tool that sends HTTP requests uses it.

use super::page_text;
use crate::clock::{BoxFuture, Clock};
use crate::event::{CallCx, ToolFact};
use crate::model::{CallIx, Hop, Millis, ToolResponse};
use crate::net::{FetchError, FetchReply, HopObserver};

/// The limit of the raw body that dicta keeps, in bytes.
const MAX_RAW_BYTES: usize = 2 << 20;

/// The least time for converting HTML to text, even if the body arrives at the deadline.
const MIN_EXTRACT_TIME: Millis = Millis(500);

/// Reads the body as text of at most `max` bytes, within the rest of the reply's deadline. The wait for a thread that
/// converts HTML is not part of it.
pub(super) async fn read_tool_response(
    reply: FetchReply,
    max: usize,
    cx: &CallCx,
) -> Result<ToolResponse, FetchError> {
    let content_type = reply.header("content-type").map(str::to_owned);
    let announced = reply.announced_size();
    let url = reply.url.clone();
    let ends = cx.clock.now() + reply.time_left();
    // An announced binary body is not read at all.
    if page_text::BodyKind::from_content_type(content_type.as_deref())
        == page_text::BodyKind::Binary
        && let Some(size) = announced
    {
        return Ok(describe_unreadable_body(content_type, size, false));
    }
    let body = reply.read_body().await?;
    let size = body.bytes.len();
    // The raw body is stored with the run, even if the judge receives only a part of it.
    let stored = cx
        .out
        .store_blob(&body.bytes[..size.min(MAX_RAW_BYTES)])
        .await;
    // At least a short time for the conversion, even if the download used up the deadline.
    let patience = (ends - cx.clock.now()).max(MIN_EXTRACT_TIME);
    let clock: &dyn Clock = &*cx.clock;
    let kind = content_type.as_deref();
    let Some(shown) =
        page_text::extract_page_text(body.bytes, kind, &url, max, clock, patience).await
    else {
        return Ok(ToolResponse {
            raw: Some(stored),
            ..describe_unreadable_body(content_type, size as u64, body.truncated)
        });
    };
    let (text, truncated) =
        // A body that was cut on the wire ends with a notice as well.
        page_text::truncate_body(shown.text, max, body.truncated.then_some(size));
    Ok(ToolResponse {
        text,
        is_error: false,
        bytes: size as u64,
        truncated,
        raw: Some(stored),
        content_type,
        hidden: shown.hidden_chars,
        data_version: None,
        transient: false,
    })
}

/// Describes a body that is not text by its type and size.
fn describe_unreadable_body(content_type: Option<String>, size: u64, cut: bool) -> ToolResponse {
    let kind = content_type
        .as_deref()
        .map_or_else(|| "no content type".to_owned(), page_text::media_type);
    let more = if cut { "more than " } else { "" };
    let text = format!("[{kind}, {more}{size} bytes: not shown, only text, JSON and XML are]");
    ToolResponse {
        bytes: size,
        truncated: cut,
        content_type,
        ..ToolResponse::ok(text)
    }
}

/// Returns true if the same request may succeed later.
pub(super) fn is_transient_status(status: u16) -> bool {
    status == 429 || (500..600).contains(&status)
}

/// A sink that emits hops as facts of a call.
pub(super) struct CallHopSink<'a> {
    pub(super) cx: &'a CallCx,
    pub(super) call: CallIx,
}

impl HopObserver for CallHopSink<'_> {
    fn record_hop(&self, hop: Hop) -> BoxFuture<'_, ()> {
        Box::pin(self.cx.emit_tool_fact(self.call, ToolFact::Hop(hop)))
    }
}
