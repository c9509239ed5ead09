//! The limit on the bytes of one judge trace, so that a judge that reads page after page can't exhaust the memory.
//!
//! Limits the sum of all replies and tool responses, and the size of one request, which contains the whole history.
//! The providers limit a single reply, and the tools limit a single response.

use crate::model::{CellResult, Outcome};
use crate::provider::{CompletedReply, RequestBody};

/// The most bytes of replies and tool responses in a trace.
const MAX_RECEIVED: usize = 64 << 20;
/// The most bytes of a request.
const MAX_REQUEST: usize = 32 << 20;

/// The bytes that a trace has received so far.
#[derive(Debug, Default)]
pub(super) struct TraceSize {
    reply_bytes: usize,
    result_bytes: usize,
}

impl TraceSize {
    /// Adds a reply.
    pub(super) fn add_reply(&mut self, finished: &CompletedReply) {
        self.reply_bytes += finished.native.iter().map(|n| n.get().len()).sum::<usize>();
    }

    /// Adds a tool response.
    pub(super) fn add_result(&mut self, text: &str) {
        self.result_bytes += text.len();
    }

    /// Checks that the trace may send this request; the error is the result of the ended cell.
    #[expect(
        clippy::result_large_err,
        reason = "an end of the trace, as everywhere in it"
    )]
    pub(super) fn check_request(&self, body: &RequestBody) -> Result<(), CellResult> {
        self.check_bytes(body.pieces.iter().map(|piece| piece.len()).sum())
    }

    #[expect(
        clippy::result_large_err,
        reason = "an end of the trace, as everywhere in it"
    )]
    fn check_bytes(&self, request: usize) -> Result<(), CellResult> {
        let mib = |bytes: usize| bytes.div_ceil(1 << 20);
        // What was received so far comes first: it explains why the request grew.
        let why = if self.reply_bytes + self.result_bytes > MAX_RECEIVED {
            format!(
                "the trace took in more than {} MiB ({} MiB of replies, {} MiB of tool results)",
                mib(MAX_RECEIVED),
                mib(self.reply_bytes),
                mib(self.result_bytes)
            )
        } else if request > MAX_REQUEST {
            format!(
                "the next request would have {} MiB, and dicta sends at most {} MiB",
                mib(request),
                mib(MAX_REQUEST)
            )
        } else {
            return Ok(());
        };
        Err(CellResult::from_error(Outcome::Truncated, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_that_grows_too_large_is_truncated_with_the_reason() {
        let mut session = TraceSize::default();
        assert_eq!(session.check_bytes(MAX_REQUEST), Ok(()));
        let sent = session.check_bytes(MAX_REQUEST + 1).expect_err("too large");
        let why = "the next request would have 33 MiB, and dicta sends at most 32 MiB";
        assert_eq!(sent.error.as_deref(), Some(why));
        for _ in 0..16 {
            session.add_result(&"x".repeat(4 << 20));
        }
        assert_eq!(session.check_bytes(0), Ok(()));
        session.add_result("one more");
        let ended = session.check_bytes(0).expect_err("too large");
        assert_eq!(ended.outcome, Outcome::Truncated);
        assert_eq!((ended.verdict.is_none(), ended.score), (true, None));
        let why = "the trace took in more than 64 MiB (0 MiB of replies, 65 MiB of tool results)";
        assert_eq!(ended.error.as_deref(), Some(why));
    }
}
