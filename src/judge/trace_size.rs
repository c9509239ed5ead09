//! How much one trace may take in and send: a judge that reads page after page must not take all memory with it.
//!
//! A reply, a line and an event have their own caps (`provider`), a tool's answer its tool's. This is their sum over a
//! trace, and the size of one request, which holds the whole history.

use crate::model::{CellResult, Outcome};
use crate::provider::{CompletedReply, RequestBody};

/// Most bytes of replies and tool results that a trace takes in.
const MAX_RECEIVED: usize = 64 << 20;
/// Most bytes of a request.
const MAX_REQUEST: usize = 32 << 20;

/// What a trace has taken in so far.
#[derive(Debug, Default)]
pub(super) struct TraceSize {
    reply_bytes: usize,
    result_bytes: usize,
}

impl TraceSize {
    /// A reply came.
    pub(super) fn add_reply(&mut self, finished: &CompletedReply) {
        self.reply_bytes += finished.native.iter().map(|n| n.get().len()).sum::<usize>();
    }

    /// A tool answered.
    pub(super) fn add_result(&mut self, text: &str) {
        self.result_bytes += text.len();
    }

    /// Whether the trace may go on with this request.
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
        let why = if self.reply_bytes + self.result_bytes > MAX_RECEIVED {
            format!(
                "the trace took in more than {} MiB ({} MiB of replies, {} MiB of tool results)",
                mib(MAX_RECEIVED),
                mib(self.reply_bytes),
                mib(self.result_bytes)
            )
        } else if request > MAX_REQUEST {
            format!(
                "the next request would be {} MiB, and {} MiB is the most that is sent",
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
    fn a_trace_that_grows_too_large_is_truncated_and_says_of_what() {
        let mut session = TraceSize::default();
        assert_eq!(session.check_bytes(MAX_REQUEST), Ok(()));
        let sent = session.check_bytes(MAX_REQUEST + 1).expect_err("too large");
        let why = "the next request would be 33 MiB, and 32 MiB is the most that is sent";
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
