//! The attempts of one model call: waits for the limits, sends, waits, sends again, and tells each as a fact.

use super::retry::{Failed, Next, after};
use super::{Body, Finished, Provider, ProviderError, Told};
use crate::event::{CallCx, TurnFact};
use crate::model::{Millis, TokenUsage};

/// What is done after a failed attempt: how long to wait and why, `None` if there is no further one.
type Wait = Option<(Millis, String)>;

/// Sends a body with retries: one [`Provider::send`] an attempt, each told as a fact, the waits on the clock of `cx`.
/// Emits `held`, `attempt_started`, `delta`, `attempt_failed`; the caller emits `started` and `finished`.
///
/// [`Provider::max_attempts`] in all, by the table of [`super::retry`]. Where the server says that it does not take a
/// setting, the next attempt goes out at once without it ([`Provider::without`]), once for each setting; those do not
/// count. Returns which attempt succeeded, from 1. Cancelled at any wait it returns [`ProviderError::Cancelled`] and
/// leaves nothing behind.
pub async fn call(
    provider: &dyn Provider,
    body: &Body,
    cx: &CallCx,
) -> Result<(u8, Finished), ProviderError> {
    let mut state = Attempts {
        provider,
        cx,
        attempt: 0,
        counted: 0,
        waited: Millis(0),
        said: None,
        left_out: Vec::new(),
    };
    let mut less: Option<Body> = None;
    loop {
        if cx.cancel.is_cancelled() {
            return Err(ProviderError::Cancelled);
        }
        let body = less.as_ref().unwrap_or(body);
        let error = match state.send(body).await {
            Ok(finished) => return Ok((state.attempt, finished)),
            Err(error) => error,
        };
        let told = provider.told(cx.cell).unwrap_or_default();
        provider.forget(cx.cell);
        if let Some(shorter) = state.shorter(body, &error) {
            let what = shorter.dropped.last().map_or("it", |d| d.what.as_str());
            let why = format!("{error}; asking again without `{what}`");
            let wait = Some((Millis(0), format!("without `{what}`")));
            state.failed(&error, why, &told, wait).await;
            less = Some(shorter);
            continue;
        }
        let (error, wait) = state.decide(error, &told);
        let next = wait.as_ref().map(|(wait, _)| *wait);
        state.failed(&error, error.to_string(), &told, wait).await;
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
struct Attempts<'a> {
    provider: &'a dyn Provider,
    cx: &'a CallCx,
    /// The number of the last one begun, from 1.
    attempt: u8,
    /// Those that count against the most there may be.
    counted: u8,
    waited: Millis,
    /// How the last one failed, in words.
    said: Option<String>,
    /// Settings that were left out in this call.
    left_out: Vec<String>,
}

impl Attempts<'_> {
    /// One attempt, once the limits let it begin.
    async fn send(&mut self, body: &Body) -> Result<Finished, ProviderError> {
        self.attempt = self.attempt.saturating_add(1);
        self.counted = self.counted.saturating_add(1);
        let attempt = self.attempt;
        let pass = self.provider.admit(body, self.cx).await;
        self.cx.turn(TurnFact::AttemptStarted { attempt }).await;
        let _held = pass?;
        self.provider.send(body, attempt, self.cx).await
    }

    /// The body without a setting that the refusal names; once for each, so that a server that wants a setting both
    /// ways ends the call.
    fn shorter(&mut self, body: &Body, error: &ProviderError) -> Option<Body> {
        let shorter = self.provider.without(body, error)?;
        let what = shorter.dropped.last()?.what.clone();
        if self.left_out.contains(&what) {
            return None;
        }
        self.left_out.push(what);
        self.counted = self.counted.saturating_sub(1);
        Some(shorter)
    }

    /// How long to wait before the next attempt, if there is one; an error that more patience might have mended says
    /// so.
    fn decide(&mut self, error: ProviderError, told: &Told) -> (ProviderError, Wait) {
        let said = error.to_string();
        let cx = self.cx;
        let next = after(&Failed {
            error: &error,
            attempt: self.counted,
            most: self.provider.max_attempts(),
            waited: self.waited,
            left: self.provider.time_left(),
            told: told.should_retry,
            same: self.said.as_ref() == Some(&said),
            chance: chance(cx.cell.0, cx.turn.0, self.attempt),
        });
        self.said = Some(said);
        let more = match next {
            Next::Retry { wait, asked } => {
                let why = if asked {
                    "the server's own delay"
                } else {
                    "back-off"
                };
                return (error, Some((wait, why.to_owned())));
            }
            Next::Stop => return (error, None),
            Next::Same => "it says so twice, so it is about the request".to_owned(),
            Next::TooLong(asked) => format!(
                "limited until {}: the server asks to wait {asked}, longer than a call waits",
                at(cx, asked)
            ),
            Next::NoTime(wait) => format!(
                "not tried again: the next attempt would begin in {wait}, after the cell's deadline"
            ),
        };
        (error.and(&more), None)
    }

    async fn failed(&self, error: &ProviderError, why: String, told: &Told, wait: Wait) {
        let (retry_in, wait_why) = wait.unzip();
        let known = Told::default();
        self.cx
            .turn(TurnFact::AttemptFailed {
                attempt: self.attempt,
                status: error.status(),
                why,
                retry_in,
                billed: error.billed(),
                wait_why,
                exchange: (*told != known).then(|| told.exchange.clone()),
            })
            .await;
    }
}

/// The moment that is this far ahead, to the second.
fn at(cx: &CallCx, ahead: Millis) -> String {
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
pub(super) fn chance(cell: u32, turn: u16, attempt: u8) -> f64 {
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
    pub fn billed(&self) -> Option<TokenUsage> {
        match self {
            ProviderError::Cut { billed, .. } => *billed,
            _ => None,
        }
    }

    /// The same, its words with more to say.
    fn and(mut self, more: &str) -> Self {
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
