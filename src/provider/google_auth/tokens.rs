//! Access tokens: cached until they expire, and requested once however many requests wait for one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::super::ProviderError;
use super::credentials::GoogleCredentials;
use super::token_request;
use crate::clock::Clock;
use crate::model::Millis;
use crate::net::LlmClient;

/// The time before its expiry in which a token isn't used, because a request takes time and clocks differ. As in
/// Google's libraries.
const EXPIRY_MARGIN: Millis = Millis(225_000);

/// The tokens of one judge.
pub struct GoogleTokens {
    credentials: GoogleCredentials,
    http: LlmClient,
    clock: Arc<dyn Clock>,
    cache: Mutex<TokenCache>,
    /// The number of finished requests for a token, so that a task that waited for a failed request doesn't repeat it
    /// at once.
    finished_requests: AtomicU64,
}

#[derive(Default)]
struct TokenCache {
    token: Option<CachedToken>,
    /// The last failure.
    failed: Option<FailedTokenRequest>,
}

struct FailedTokenRequest {
    /// The number of the request, from 1.
    number: u64,
    error: ProviderError,
}

struct CachedToken {
    text: Arc<str>,
    expires_at: Millis,
}

impl fmt::Debug for GoogleTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

impl GoogleTokens {
    /// Tokens for these credentials. Requests none yet.
    pub fn new(credentials: GoogleCredentials, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            credentials,
            http: LlmClient::new(Arc::clone(&clock)),
            clock,
            cache: Mutex::default(),
            finished_requests: AtomicU64::new(0),
        })
    }

    /// The credentials.
    pub fn credentials(&self) -> &GoogleCredentials {
        &self.credentials
    }

    /// Returns a token that is valid for a while and isn't `refused`. Only one request runs at a time; the others
    /// wait for its result.
    ///
    /// The caller adds the token to its redactors before it uses the token.
    pub(in crate::provider) async fn get(
        &self,
        refused: Option<&str>,
    ) -> Result<Arc<str>, ProviderError> {
        let finished_before = self.finished_requests.load(Ordering::SeqCst);
        // The lock is held during the request on purpose: other tasks wait for its result instead of sending
        // their own.
        let mut cache = self.cache.lock().await;
        if let Some(token) = &cache.token
            && self.clock.now() < token.expires_at
            && refused != Some(&*token.text)
        {
            return Ok(Arc::clone(&token.text));
        }
        // A request that failed while this task waited for the lock answers this task too.
        if let Some(failed) = &cache.failed
            && failed.number > finished_before
        {
            return Err(failed.error.clone());
        }
        // The time before the request: a token's lifetime begins when the server makes it.
        let now = self.clock.now();
        let answer =
            token_request::request_token(&self.credentials, &self.http, &*self.clock).await;
        let number = self.finished_requests.fetch_add(1, Ordering::SeqCst) + 1;
        match answer {
            Ok(granted) => {
                let text: Arc<str> = granted.token.as_str().into();
                // A token that lives for less than twice the margin would otherwise be requested for every
                // use.
                let margin = EXPIRY_MARGIN.min(Millis(granted.lifetime.0 / 2));
                cache.failed = None;
                cache.token = Some(CachedToken {
                    text: Arc::clone(&text),
                    expires_at: now + granted.lifetime - margin,
                });
                Ok(text)
            }
            Err(error) => {
                // After a failure an old token is useless: it expired, or the server refused it.
                cache.token = None;
                cache.failed = Some(FailedTokenRequest {
                    number,
                    error: error.clone(),
                });
                Err(error)
            }
        }
    }
}
