//! Auth services of tools.yaml: the verification of tokens and their claims.
//!
//! Responsible for verifying the signature, issuer, audience and times with keys from a file or URL. A token comes
//! from the environment or a file and appears in no event, log or error. Does not accept symmetric algorithms,
//! because anyone who can verify such a signature can also create one.

mod crypto_provider;
mod jwks;
mod service_reader;
mod token;
mod verify;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::model::Rejection;

pub use service_reader::AuthCx;
pub use verify::verify_auth_services;

use jwks::JwksSource;

/// An auth service as its file declares it.
pub struct AuthService {
    /// The service's name.
    pub name: String,
    /// The accepted values of `iss`; empty if the discovery document of the service names the issuer.
    issuers: Vec<String>,
    /// The required value of `aud`.
    audience: String,
    keys: JwksSource,
    token: TokenSource,
}

/// The place of a token.
enum TokenSource {
    /// An environment variable.
    Env {
        variable: String,
        /// Its value when the file was read; `None` if it was not set.
        token: Option<String>,
    },
    /// A file, which is read for each verification.
    File(PathBuf),
}

impl AuthService {
    /// Returns the texts that dicta must never record.
    pub fn secrets(&self) -> Vec<String> {
        match &self.token {
            TokenSource::Env { token, .. } => token.iter().cloned().collect(),
            // A file's token is read for each verification and is never kept.
            TokenSource::File(_) => Vec::new(),
        }
    }

    /// Returns the origin of the server that publishes the service's keys; `None` if a file contains them.
    pub fn keys_address(&self) -> Option<String> {
        let url = match &self.keys {
            JwksSource::File(_) => return None,
            JwksSource::Url(url) | JwksSource::Discover(url) => url,
        };
        let url = url::Url::parse(url).ok()?;
        Some(url.origin().ascii_serialization())
    }

    /// Returns the file of the service's keys, if it has one. Who can write it can make tokens.
    pub fn key_file(&self) -> Option<&Path> {
        match &self.keys {
            JwksSource::File(path) => Some(path),
            JwksSource::Url(_) | JwksSource::Discover(_) => None,
        }
    }

    /// Returns the files that the service reads. No output of dicta may replace them.
    pub fn input_files(&self) -> Vec<PathBuf> {
        let token = match &self.token {
            TokenSource::File(path) => Some(path.as_path()),
            TokenSource::Env { .. } => None,
        };
        let files = self.key_file().into_iter().chain(token);
        files.map(Path::to_owned).collect()
    }

    /// Explains how a user supplies a token.
    pub fn explain_token_setup(&self) -> String {
        match &self.token {
            TokenSource::Env { variable, .. } => format!("put one into {variable}"),
            TokenSource::File(path) => format!("write one to {}", path.display()),
        }
    }
}

impl fmt::Debug for AuthService {
    /// Formats the service without its token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthService")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The claims of verified tokens, by auth service. Services without a verified token are absent.
///
/// With a clock, an expired token counts as absent ([`Self::get`]). [`Self::for_services`] selects some services.
#[derive(Clone, Default)]
pub struct VerifiedClaims {
    /// The claims by the names of their services.
    pub by_service: IndexMap<String, Map<String, Value>>,
    /// The clock that decides whether a token has expired; `None` ignores the expiry.
    pub clock: Option<Arc<dyn Clock>>,
}

impl VerifiedClaims {
    /// Returns the claims of these services only.
    #[must_use]
    pub fn for_services(&self, services: &[&str]) -> Self {
        // The clock stays, so that the selected claims expire as well.
        let mut selected = self.clone();
        selected
            .by_service
            .retain(|name, _| services.contains(&name.as_str()));
        selected
    }

    /// Returns the claims of a service's token if it was verified and has not expired.
    pub fn get(&self, service: &str) -> Option<&Map<String, Value>> {
        let claims = self.by_service.get(service)?;
        let now = self
            .clock
            .as_ref()
            .map(|clock| verify::now_in_seconds(&**clock));
        // An unreadable clock counts as expired: it must not extend a token.
        let expired = match (now, claims.get("exp").and_then(Value::as_f64)) {
            (Some(now), Some(exp)) => !now.is_some_and(|now| exp > now),
            _ => false,
        };
        (!expired).then_some(claims)
    }

    /// Checks the `authRequired` of a tool: one verified service is enough, and an empty list requires none.
    pub fn authorize_tool(&self, tool: &str, required: &[String]) -> Result<(), Rejection> {
        if required.is_empty() || required.iter().any(|name| self.get(name).is_some()) {
            return Ok(());
        }
        Err(Rejection {
            rule: "auth".to_owned(),
            text: format!(
                "Error calling `{tool}`: missing or invalid authentication; one of these services is required: {}",
                required.join(", ")
            ),
        })
    }
}

impl From<IndexMap<String, Map<String, Value>>> for VerifiedClaims {
    /// Creates claims that never expire.
    fn from(claims: IndexMap<String, Map<String, Value>>) -> Self {
        Self {
            by_service: claims,
            clock: None,
        }
    }
}

impl fmt::Debug for VerifiedClaims {
    /// Formats only the names of services, because claims are personal data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.by_service.keys()).finish()
    }
}

#[cfg(test)]
mod tests;
