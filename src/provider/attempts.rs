//! The attempts of one model call: sends, waits, sends again, and tells each as a fact.

use super::retry::{MAX_ATTEMPTS, Next, after};
use super::{Body, Finished, Provider, ProviderError};
use crate::event::{CallCx, TurnFact};
use crate::model::{Millis, Usage};

/// Sends a body with retries: one [`Provider::send`] an attempt, each told as a fact, the waits on the clock of `cx`.
/// Emits `attempt_started`, `delta`, `attempt_failed`; the caller emits `started` and `finished`.
///
/// Four attempts in all, by the table of [`super::retry`]. Where the server says that it does not take a setting, the
/// next attempt goes out at once without it ([`Provider::without`]). Returns which attempt succeeded, from 1.
/// Cancelled at any wait it returns [`ProviderError::Cancelled`] and leaves nothing behind.
pub async fn call(
    provider: &dyn Provider,
    body: &Body,
    cx: &CallCx,
) -> Result<(u8, Finished), ProviderError> {
    let mut less: Option<Body> = None;
    let mut waited = Millis(0);
    let mut attempt = 1;
    loop {
        if cx.cancel.is_cancelled() {
            return Err(ProviderError::Cancelled);
        }
        cx.turn(TurnFact::AttemptStarted { attempt }).await;
        let body = less.as_ref().unwrap_or(body);
        let error = match provider.send(body, attempt, cx).await {
            Ok(finished) => return Ok((attempt, finished)),
            Err(error) => error,
        };
        let (error, wait) = match provider.without(body, &error) {
            Some(shorter) if attempt < MAX_ATTEMPTS => {
                let what = shorter.dropped.last().map_or("it", |d| d.what.as_str());
                let why = format!("{error}; asking again without `{what}`");
                failed(cx, attempt, &error, why, Some(Millis(0))).await;
                less = Some(shorter);
                attempt += 1;
                continue;
            }
            _ => decide(error, attempt, waited, cx),
        };
        failed(cx, attempt, &error, error.to_string(), wait).await;
        let Some(wait) = wait else {
            return Err(error);
        };
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ProviderError::Cancelled),
            () = cx.clock.sleep(wait) => {}
        }
        waited = waited + wait;
        attempt += 1;
    }
}

/// How long to wait before the next attempt, if there is one; an error we are too impatient for says so.
fn decide(
    mut error: ProviderError,
    attempt: u8,
    waited: Millis,
    cx: &CallCx,
) -> (ProviderError, Option<Millis>) {
    match after(
        &error,
        attempt,
        waited,
        chance(cx.cell.0, cx.turn.0, attempt),
    ) {
        Next::Retry(wait) => (error, Some(wait)),
        Next::Stop => (error, None),
        Next::TooLong(asked) => {
            if let ProviderError::Status { message, .. } = &mut error {
                use std::fmt::Write as _;
                let _infallible = write!(
                    message,
                    " (limited: the server asks to wait {asked}, longer than a call waits)"
                );
            }
            (error, None)
        }
    }
}

async fn failed(
    cx: &CallCx,
    attempt: u8,
    error: &ProviderError,
    why: String,
    retry_in: Option<Millis>,
) {
    cx.turn(TurnFact::AttemptFailed {
        attempt,
        status: error.status(),
        why,
        retry_in,
        billed: error.billed(),
    })
    .await;
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
    pub fn billed(&self) -> Option<Usage> {
        match self {
            ProviderError::Cut { billed, .. } => *billed,
            _ => None,
        }
    }
}
