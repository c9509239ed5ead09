//! The attempts of one model call: it waits for the limits, sends, waits and sends again, and records each attempt.

use super::retry::{FailedAttempt, RetryAction, choose_retry_action};
use super::{CompletedReply, ExchangeInfo, Provider, ProviderError, RequestBody};
use crate::event::{CallCx, TurnFact};
use crate::model::{Millis, TokenUsage};

/// The longest delay that an error states as a number: a year.
const ABSURD_DELAY: Millis = Millis::from_secs(365 * 86_400);

/// The wait before the next attempt.
struct RetryWait {
    wait: Millis,
    reason: String,
}

/// Sends a body with retries by the table of [`super::retry`], at most [`Provider::max_attempts`] times.
///
/// Returns the reply and the number of the attempt that succeeded, from 1. Emits `held`, `attempt_started`, `delta`
/// and `attempt_failed`; the caller emits `started` and `finished`. Waits use the clock of `cx`.
///
/// If the server refuses a setting, the next attempt omits it and follows at once, once for each setting; these
/// attempts don't count. If it is cancelled during a wait, it returns [`ProviderError::Cancelled`]. If the provider is
/// stopped during a wait ([`Provider::wait_until_stopped`]), it returns the last error.
pub async fn call_with_retries(
    provider: &dyn Provider,
    body: &RequestBody,
    cx: &CallCx,
) -> Result<(u8, CompletedReply), ProviderError> {
    let mut state = CallAttempts {
        provider,
        cx,
        attempt: 0,
        counted_attempts: 0,
        waited: Millis(0),
        left_out: Vec::new(),
    };
    // The body without refused settings, once a server refused one.
    let mut shorter_body: Option<RequestBody> = None;
    loop {
        // Check before each attempt, so that a cancelled cell sends nothing more.
        if cx.cancel.is_cancelled() {
            return Err(ProviderError::Cancelled);
        }
        let body = shorter_body.as_ref().unwrap_or(body);
        let error = match state.send(body).await {
            Ok(finished) => return Ok((state.attempt, finished)),
            Err(error) => error,
        };
        // The headers of the failed attempt: advice about retries and the rate limits.
        let exchange_info = provider.last_exchange(cx.cell).unwrap_or_default();
        provider.forget_exchange(cx.cell);
        // Before the retry rules: after a refused setting, dicta neither waits nor gives up.
        if let Some(shorter) = state.without_refused_setting(body, &error) {
            let what = shorter.dropped.last().map_or("it", |d| d.what.as_str());
            let why = format!("{error}; asking again without `{what}`");
            let retry = Some(RetryWait {
                wait: Millis(0),
                reason: format!("without `{what}`"),
            });
            state.emit_failed(&error, why, &exchange_info, retry).await;
            shorter_body = Some(shorter);
            continue;
        }
        let (error, retry) = state.plan_wait(error, &exchange_info);
        let wait = retry.as_ref().map(|retry| retry.wait);
        state
            .emit_failed(&error, error.to_string(), &exchange_info, retry)
            .await;
        let Some(wait) = wait else {
            return Err(error);
        };
        tokio::select! {
            biased;
            // `biased` checks for cancellation first, so that a zero wait can't win over it.
            () = cx.cancel.cancelled() => return Err(ProviderError::Cancelled),
            () = provider.wait_until_stopped() => return Err(error),
            () = cx.clock.sleep(wait) => {}
        }
        state.waited = state.waited + wait;
    }
}

/// The state of one call.
struct CallAttempts<'a> {
    provider: &'a dyn Provider,
    cx: &'a CallCx,
    /// The number of the last attempt, from 1.
    attempt: u8,
    /// The attempts that count against the limit.
    counted_attempts: u8,
    waited: Millis,
    /// The settings that this call omitted.
    left_out: Vec<String>,
}

impl CallAttempts<'_> {
    /// Waits for a permit, then makes one attempt.
    async fn send(&mut self, body: &RequestBody) -> Result<CompletedReply, ProviderError> {
        self.attempt = self.attempt.saturating_add(1);
        self.counted_attempts = self.counted_attempts.saturating_add(1);
        let attempt = self.attempt;
        let pass = self.provider.wait_for_permit(body, self.cx).await;
        // Record the start even if the permit failed, so that every failure has an attempt.
        self.cx.turn(TurnFact::AttemptStarted { attempt }).await;
        // The place at the server is held until this attempt has its reply.
        let _held = pass?;
        self.provider.send(body, attempt, self.cx).await
    }

    /// Returns the body without a refused setting, once for each setting.
    ///
    /// A server that refuses a setting both with and without it ends the call this way.
    fn without_refused_setting(
        &mut self,
        body: &RequestBody,
        error: &ProviderError,
    ) -> Option<RequestBody> {
        let shorter = self.provider.without_refused_setting(body, error)?;
        let what = shorter.dropped.last()?.what.clone();
        if self.left_out.contains(&what) {
            return None;
        }
        self.left_out.push(what);
        // `send` has counted the refused attempt already.
        self.counted_attempts = self.counted_attempts.saturating_sub(1);
        Some(shorter)
    }

    /// Plans the wait before the next attempt. If there is none because of a limit on waiting, the error says that.
    fn plan_wait(
        &mut self,
        error: ProviderError,
        exchange_info: &ExchangeInfo,
    ) -> (ProviderError, Option<RetryWait>) {
        let cx = self.cx;
        let next = choose_retry_action(&FailedAttempt {
            error: &error,
            attempt: self.counted_attempts,
            max_attempts: self.provider.max_attempts(),
            waited: self.waited,
            time_left: self.provider.time_left(),
            server_advice: exchange_info.should_retry,
            jitter: derive_jitter(cx.cell.0, cx.turn.0, self.attempt),
        });
        let more = match next {
            RetryAction::Retry {
                wait,
                server_asked: asked,
            } => {
                let reason = if asked {
                    "the server's own delay"
                } else {
                    "back-off"
                };
                let reason = reason.to_owned();
                return (error, Some(RetryWait { wait, reason }));
            }
            RetryAction::Stop => return (error, None),
            // Such a delay is a mistake of the server, and its moment can be after the last year of the calendar.
            RetryAction::WaitTooLong(asked) if asked > ABSURD_DELAY => {
                "limited: the server asks to wait more than a year, longer than a call waits"
                    .to_owned()
            }
            RetryAction::WaitTooLong(asked) => format!(
                "limited until {}: the server asks to wait {asked}, longer than a call waits",
                format_moment_ahead(cx, asked)
            ),
            RetryAction::NoTime(wait) => format!(
                "not tried again: the next attempt would begin in {wait}, after the cell's deadline"
            ),
        };
        (error.append_message(&more), None)
    }

    async fn emit_failed(
        &self,
        error: &ProviderError,
        why: String,
        exchange_info: &ExchangeInfo,
        retry: Option<RetryWait>,
    ) {
        let (retry_in, wait_why) = retry.map(|retry| (retry.wait, retry.reason)).unzip();
        let known = ExchangeInfo::default();
        self.cx
            .turn(TurnFact::AttemptFailed {
                attempt: self.attempt,
                status: error.status(),
                why,
                retry_in,
                billed: error.billed_usage(),
                wait_why,
                // An attempt without an answer has no details to record.
                exchange: (*exchange_info != known).then(|| exchange_info.exchange.clone()),
            })
            .await;
    }
}

/// Formats the moment that is this far ahead, to the second.
fn format_moment_ahead(cx: &CallCx, ahead: Millis) -> String {
    let now: Option<jiff::Timestamp> = cx.clock.wall_time().0.parse().ok();
    // Round up, so that the stated moment is never too early.
    let seconds = i64::try_from(ahead.0.div_ceil(1000)).unwrap_or(i64::MAX);
    let then = now.and_then(|now| {
        now.checked_add(jiff::SignedDuration::from_secs(seconds))
            .ok()
    });
    then.map_or_else(
        || "later".to_owned(),
        |then| then.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}

/// Returns a number from 0 to 1 that is the same for the same attempt of the same cell.
///
/// Waits differ between cells, so that refused requests don't return together, and tests can predict them.
pub(super) fn derive_jitter(cell: u32, turn: u16, attempt: u8) -> f64 {
    let mut seed = [0; 8];
    seed[..4].copy_from_slice(&cell.to_le_bytes());
    seed[4..6].copy_from_slice(&turn.to_le_bytes());
    seed[6] = attempt;
    let digest = blake3::hash(&seed);
    let mut word = [0; 4];
    word.copy_from_slice(&digest.as_bytes()[..4]);
    f64::from(u32::from_le_bytes(word)) / f64::from(u32::MAX)
}

impl ProviderError {
    /// The HTTP status, if the server sent one.
    pub fn status(&self) -> Option<u16> {
        match self {
            ProviderError::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The token counts of the failed attempt, if the server sent them.
    pub fn billed_usage(&self) -> Option<TokenUsage> {
        match self {
            ProviderError::Cut { billed, .. } => *billed,
            _ => None,
        }
    }

    /// Appends more text to the error's message.
    fn append_message(mut self, more: &str) -> Self {
        use std::fmt::Write as _;
        let words = match &mut self {
            ProviderError::Status { message, .. } | ProviderError::InStream { message, .. } => {
                message
            }
            ProviderError::Connect { why, .. }
            | ProviderError::Cut { why, .. }
            | ProviderError::Malformed(why)
            | ProviderError::WrongProtocol(why)
            | ProviderError::Request(why) => why,
            ProviderError::Cancelled => return self,
        };
        let _infallible = write!(words, " ({more})");
        self
    }
}
