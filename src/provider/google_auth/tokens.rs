//! Access tokens: kept while they are good, asked for once however many wait for one.

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

/// A token is not used in the last of its time: a request takes a while, and clocks differ. As in Google's libraries.
const EXPIRY_MARGIN: Millis = Millis(225_000);

/// One judge's tokens.
pub struct GoogleTokens {
    credentials: GoogleCredentials,
    http: LlmClient,
    clock: Arc<dyn Clock>,
    cache: Mutex<TokenCache>,
    /// Requests for a token that have ended, so that who waited through one that failed does not ask again at once.
    finished_requests: AtomicU64,
}

#[derive(Default)]
struct TokenCache {
    token: Option<CachedToken>,
    /// The last failure, and which request it was.
    failed: Option<(u64, ProviderError)>,
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
    /// Tokens made of these credentials. Asks for none yet.
    pub fn new(credentials: GoogleCredentials, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            credentials,
            http: LlmClient::new(Arc::clone(&clock)),
            clock,
            cache: Mutex::default(),
            finished_requests: AtomicU64::new(0),
        })
    }

    /// What they are made of.
    pub fn credentials(&self) -> &GoogleCredentials {
        &self.credentials
    }

    /// A token that is good for a while yet, and is not `refused`. One request at a time: the others wait for its
    /// outcome. Whoever uses the token teaches it to its redactors first.
    pub(in crate::provider) async fn get(
        &self,
        refused: Option<&str>,
    ) -> Result<Arc<str>, ProviderError> {
        let came = self.finished_requests.load(Ordering::SeqCst);
        let mut held = self.cache.lock().await;
        if let Some(token) = &held.token
            && self.clock.now() < token.expires_at
            && refused != Some(&*token.text)
        {
            return Ok(Arc::clone(&token.text));
        }
        if let Some((request, error)) = &held.failed
            && *request > came
        {
            return Err(error.clone());
        }
        // From before it is asked for: it lives from when it was made.
        let now = self.clock.now();
        let answer =
            token_request::request_token(&self.credentials, &self.http, &*self.clock).await;
        let request = self.finished_requests.fetch_add(1, Ordering::SeqCst) + 1;
        match answer {
            Ok(granted) => {
                let text: Arc<str> = granted.token.as_str().into();
                // One that lives for less than twice the margin would be asked for at every use.
                let margin = EXPIRY_MARGIN.min(Millis(granted.lifetime.0 / 2));
                held.failed = None;
                held.token = Some(CachedToken {
                    text: Arc::clone(&text),
                    expires_at: now + granted.lifetime - margin,
                });
                Ok(text)
            }
            Err(error) => {
                held.token = None;
                held.failed = Some((request, error.clone()));
                Err(error)
            }
        }
    }
}
