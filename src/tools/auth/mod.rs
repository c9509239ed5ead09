//! Auth services of tools.yaml: whose tokens are taken, and what verified ones claim.
//!
//! Owns the verification (signature, issuer, audience, times) with keys from a file or URL. A token comes from the
//! environment or a file, and appears in no event, log or error. Refuses symmetric algorithms: whoever knows such a key
//! can also sign.

mod crypto_provider;
mod jwks;
mod service_reader;
mod token;
mod verify;

use std::fmt;
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
    /// Its name.
    pub name: String,
    /// One of them stands in `iss`; empty where the service's discovery document says which.
    issuers: Vec<String>,
    /// Stands in `aud`.
    audience: String,
    keys: JwksSource,
    token: TokenSource,
}

/// Where a token comes from.
enum TokenSource {
    /// A variable, its value where it is set.
    Env(String, Option<String>),
    File(std::path::PathBuf),
}

impl AuthService {
    /// What of it must never be recorded.
    pub fn secrets(&self) -> Vec<String> {
        match &self.token {
            TokenSource::Env(_, Some(token)) => vec![token.clone()],
            TokenSource::Env(_, None) | TokenSource::File(_) => Vec::new(),
        }
    }

    /// How somebody gives it a token.
    pub fn explain_token_setup(&self) -> String {
        match &self.token {
            TokenSource::Env(name, _) => format!("put one into {name}"),
            TokenSource::File(path) => format!("write one to {}", path.display()),
        }
    }
}

impl fmt::Debug for AuthService {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthService")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What the verified tokens claim, by auth service; services without a verified token are not in it.
///
/// With a clock, a token that has expired since counts as none ([`Claims::of`]); a part of them is [`Claims::only`].
#[derive(Clone, Default)]
pub struct VerifiedClaims(
    pub IndexMap<String, Map<String, Value>>,
    pub Option<Arc<dyn Clock>>,
);

impl VerifiedClaims {
    /// The claims of some services.
    #[must_use]
    pub fn for_services(&self, services: &[&str]) -> Self {
        let mut own = self.clone();
        own.0.retain(|name, _| services.contains(&name.as_str()));
        own
    }

    /// What the service's token claims, if one was verified and has not expired.
    pub fn get(&self, service: &str) -> Option<&Map<String, Value>> {
        let claims = self.0.get(service)?;
        let now = self
            .1
            .as_ref()
            .map(|clock| verify::now_in_seconds(&**clock));
        let expired = match (now, claims.get("exp").and_then(Value::as_f64)) {
            (Some(now), Some(exp)) => !now.is_some_and(|now| exp > now),
            _ => false,
        };
        (!expired).then_some(claims)
    }

    /// Whether a tool with this `authRequired` may be called: one verified service is enough, none named asks for none.
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
    /// Claims that never expire.
    fn from(claims: IndexMap<String, Map<String, Value>>) -> Self {
        Self(claims, None)
    }
}

impl fmt::Debug for VerifiedClaims {
    /// Names of services: claims are about a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests;
