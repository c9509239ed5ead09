//! Access tokens: kept while they are good, asked for once however many wait for one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::super::ProviderError;
use super::asking;
use super::file::Credentials;
use crate::clock::Clock;
use crate::model::Millis;
use crate::net::LlmClient;

/// A token is not used in the last of its time: a request takes a while, and clocks differ. As in Google's libraries.
const SKEW: Millis = Millis(225_000);

/// One judge's tokens.
pub struct Tokens {
    credentials: Credentials,
    http: LlmClient,
    clock: Arc<dyn Clock>,
    held: Mutex<Held>,
    /// Requests for a token that have ended, so that who waited through one that failed does not ask again at once.
    ended: AtomicU64,
}

#[derive(Default)]
struct Held {
    token: Option<Token>,
    /// The last failure, and which request it was.
    failed: Option<(u64, ProviderError)>,
}

struct Token {
    text: Arc<str>,
    good_until: Millis,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// Tokens made of these credentials. Asks for none yet.
    pub fn new(credentials: Credentials, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            credentials,
            http: LlmClient::new(Arc::clone(&clock)),
            clock,
            held: Mutex::default(),
            ended: AtomicU64::new(0),
        })
    }

    /// What they are made of.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// A token that is good for a while yet, and is not `refused`. One request at a time: the others wait for its
    /// outcome. Whoever uses the token teaches it to its redactors first.
    pub(in crate::provider) async fn get(
        &self,
        refused: Option<&str>,
    ) -> Result<Arc<str>, ProviderError> {
        let came = self.ended.load(Ordering::SeqCst);
        let mut held = self.held.lock().await;
        if let Some(token) = &held.token
            && self.clock.now() < token.good_until
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
        let answer = asking::ask(&self.credentials, &self.http, &*self.clock).await;
        let request = self.ended.fetch_add(1, Ordering::SeqCst) + 1;
        match answer {
            Ok(granted) => {
                let text: Arc<str> = granted.token.as_str().into();
                // One that lives for less than twice the margin would be asked for at every use.
                let margin = SKEW.min(Millis(granted.lives.0 / 2));
                held.failed = None;
                held.token = Some(Token {
                    text: Arc::clone(&text),
                    good_until: now + granted.lives - margin,
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
