//! The attempts of one model call: waits for the limits, sends, waits, sends again, and tells each as a fact.

use super::retry::{FailedAttempt, RetryAction, choose_retry_action};
use super::{CompletedReply, ExchangeInfo, Provider, ProviderError, RequestBody};
use crate::event::{CallCx, TurnFact};
use crate::model::{Millis, TokenUsage};

/// What is done after a failed attempt: how long to wait and why, `None` if there is no further one.
type RetryWait = Option<(Millis, String)>;

/// Sends a body with retries: one [`Provider::send`] an attempt, each told as a fact, the waits on the clock of `cx`.
/// Emits `held`, `attempt_started`, `delta`, `attempt_failed`; the caller emits `started` and `finished`.
///
/// [`Provider::max_attempts`] in all, by the table of [`super::retry`]. Where the server says that it does not take a
/// setting, the next attempt goes out at once without it ([`Provider::without`]), once for each setting; those do not
/// count. Returns which attempt succeeded, from 1. Cancelled at any wait it returns [`ProviderError::Cancelled`] and
/// leaves nothing behind.
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
        last_error: None,
        left_out: Vec::new(),
    };
    let mut less: Option<RequestBody> = None;
    loop {
        if cx.cancel.is_cancelled() {
            return Err(ProviderError::Cancelled);
        }
        let body = less.as_ref().unwrap_or(body);
        let error = match state.send(body).await {
            Ok(finished) => return Ok((state.attempt, finished)),
            Err(error) => error,
        };
        let told = provider.last_exchange(cx.cell).unwrap_or_default();
        provider.forget_exchange(cx.cell);
        if let Some(shorter) = state.without_refused_setting(body, &error) {
            let what = shorter.dropped.last().map_or("it", |d| d.what.as_str());
            let why = format!("{error}; asking again without `{what}`");
            let wait = Some((Millis(0), format!("without `{what}`")));
            state.emit_failed(&error, why, &told, wait).await;
            less = Some(shorter);
            continue;
        }
        let (error, wait) = state.plan_wait(error, &told);
        let next = wait.as_ref().map(|(wait, _)| *wait);
        state
            .emit_failed(&error, error.to_string(), &told, wait)
            .await;
        let Some(wait) = next else {
            return Err(error);
        };
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ProviderError::Cancelled),
            () = cx.clock.sleep(wait) => {}
        }
        state.waited = state.waited + wait;
    }
}

/// One call under way.
struct CallAttempts<'a> {
    provider: &'a dyn Provider,
    cx: &'a CallCx,
    /// The number of the last one begun, from 1.
    attempt: u8,
    /// Those that count against the most there may be.
    counted_attempts: u8,
    waited: Millis,
    /// How the last one failed, in words.
    last_error: Option<String>,
    /// Settings that were left out in this call.
    left_out: Vec<String>,
}

impl CallAttempts<'_> {
    /// One attempt, once the limits let it begin.
    async fn send(&mut self, body: &RequestBody) -> Result<CompletedReply, ProviderError> {
        self.attempt = self.attempt.saturating_add(1);
        self.counted_attempts = self.counted_attempts.saturating_add(1);
        let attempt = self.attempt;
        let pass = self.provider.wait_for_permit(body, self.cx).await;
        self.cx.turn(TurnFact::AttemptStarted { attempt }).await;
        let _held = pass?;
        self.provider.send(body, attempt, self.cx).await
    }

    /// The body without a setting that the refusal names; once for each, so that a server that wants a setting both
    /// ways ends the call.
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
        self.counted_attempts = self.counted_attempts.saturating_sub(1);
        Some(shorter)
    }

    /// How long to wait before the next attempt, if there is one; an error that more patience might have mended says
    /// so.
    fn plan_wait(
        &mut self,
        error: ProviderError,
        told: &ExchangeInfo,
    ) -> (ProviderError, RetryWait) {
        let said = error.to_string();
        let cx = self.cx;
        let next = choose_retry_action(&FailedAttempt {
            error: &error,
            attempt: self.counted_attempts,
            max_attempts: self.provider.max_attempts(),
            waited: self.waited,
            time_left: self.provider.time_left(),
            server_advice: told.should_retry,
            is_same_error: self.last_error.as_ref() == Some(&said),
            jitter: derive_jitter(cx.cell.0, cx.turn.0, self.attempt),
        });
        self.last_error = Some(said);
        let more = match next {
            RetryAction::Retry {
                wait,
                server_asked: asked,
            } => {
                let why = if asked {
                    "the server's own delay"
                } else {
                    "back-off"
                };
                return (error, Some((wait, why.to_owned())));
            }
            RetryAction::Stop => return (error, None),
            RetryAction::SameError => "it says so twice, so it is about the request".to_owned(),
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
        told: &ExchangeInfo,
        wait: RetryWait,
    ) {
        let (retry_in, wait_why) = wait.unzip();
        let known = ExchangeInfo::default();
        self.cx
            .turn(TurnFact::AttemptFailed {
                attempt: self.attempt,
                status: error.status(),
                why,
                retry_in,
                billed: error.billed_usage(),
                wait_why,
                exchange: (*told != known).then(|| told.exchange.clone()),
            })
            .await;
    }
}

/// The moment that is this far ahead, to the second.
fn format_moment_ahead(cx: &CallCx, ahead: Millis) -> String {
    let now: Option<jiff::Timestamp> = cx.clock.wall_time().0.parse().ok();
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

/// A number from 0 to 1 that is the same for the same attempt of the same cell, and spread over cells: waits differ
/// between judges and a test can foretell them.
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
    /// The HTTP status, if there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            ProviderError::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// What the failed attempt cost, where the server said so.
    pub fn billed_usage(&self) -> Option<TokenUsage> {
        match self {
            ProviderError::Cut { billed, .. } => *billed,
            _ => None,
        }
    }

    /// The same, its words with more to say.
    fn append_message(mut self, more: &str) -> Self {
        use std::fmt::Write as _;
        let words = match &mut self {
            ProviderError::Status { message, .. } | ProviderError::InStream { message, .. } => {
                message
            }
            ProviderError::Connect { why, .. }
            | ProviderError::Cut { why, .. }
            | ProviderError::Malformed(why)
            | ProviderError::Request(why) => why,
            ProviderError::Cancelled => return self,
        };
        let _infallible = write!(words, " ({more})");
        self
    }
}
