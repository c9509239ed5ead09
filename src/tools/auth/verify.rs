//! The verification of the available tokens, for all services at once.

use std::sync::Arc;

use futures_util::future::join_all;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::token::{self, ExpectedClaims};
use super::{AuthService, TokenSource, VerifiedClaims};
use crate::clock::Clock;
use crate::net::{AddressGuard, AddressPolicy, Resolver};
use crate::storage::read_regular_text;

/// The size limit of a token file, in bytes. Real ones have a few kilobytes.
const MAX_TOKEN_FILE: u64 = 64 << 10;

/// Returns the wall time in seconds since 1970.
pub(super) fn now_in_seconds(clock: &dyn Clock) -> Option<f64> {
    let now: jiff::Timestamp = clock.wall_time().0.parse().ok()?;
    Some(now.as_millisecond() as f64 / 1000.0)
}

/// Verifies every service's token. Returns the claims of valid tokens, and a warning for each invalid one. A service
/// without a token is absent from both.
pub async fn verify_auth_services(
    services: &IndexMap<String, Arc<AuthService>>,
    clock: &Arc<dyn Clock>,
    resolver: &Arc<dyn Resolver>,
) -> (VerifiedClaims, Vec<String>) {
    // The default policy: key servers are public, and no setting opens a private one.
    let guard = AddressGuard::new(AddressPolicy::default(), Arc::clone(resolver));
    verify_auth_services_with_guard(services, clock, &guard).await
}

/// Works like [`verify_auth_services`] with another address guard; tests use one that allows more.
pub(super) async fn verify_auth_services_with_guard(
    services: &IndexMap<String, Arc<AuthService>>,
    clock: &Arc<dyn Clock>,
    guard: &AddressGuard,
) -> (VerifiedClaims, Vec<String>) {
    // All services at once, because each may wait for its key server.
    let verifications = services.values().map(|service| async {
        (
            &service.name,
            verify_auth_service(service, clock, guard).await,
        )
    });
    let (mut verified, mut problems) = (IndexMap::new(), Vec::new());
    for (name, outcome) in join_all(verifications).await {
        match outcome {
            Ok(Some(claims)) => {
                verified.insert(name.clone(), claims);
            }
            Ok(None) => {}
            Err(why) => problems.push(format!("auth service `{name}`: {why}")),
        }
    }
    (
        VerifiedClaims {
            by_service: verified,
            clock: Some(Arc::clone(clock)),
        },
        problems,
    )
}

async fn verify_auth_service(
    service: &AuthService,
    clock: &Arc<dyn Clock>,
    guard: &AddressGuard,
) -> Result<Option<Map<String, Value>>, String> {
    // No token is not an error: the tools that need the service reject their calls.
    let Some(token) = service.token.read_token()? else {
        return Ok(None);
    };
    let keys = service.keys.load_keys(guard, clock).await?;
    let expected = ExpectedClaims {
        issuers: &service.issuers,
        audience: &service.audience,
        now: now_in_seconds(&**clock).ok_or("this machine's clock cannot be read")?,
    };
    let claims = token::verify_token_claims(&token, &keys, &expected);
    let from = &service.token;
    claims
        .map(Some)
        .map_err(|why| format!("the token from {from} was refused: {why}"))
}

impl TokenSource {
    fn read_token(&self) -> Result<Option<String>, String> {
        match self {
            Self::Env { token, .. } => Ok(token.clone()),
            Self::File(path) => {
                let text = read_regular_text(path, MAX_TOKEN_FILE).map_err(|why| {
                    format!("its token cannot be read: {}: {why}", path.display())
                })?;
                let token = text.trim();
                Ok((!token.is_empty()).then(|| token.to_owned()))
            }
        }
    }
}

impl std::fmt::Display for TokenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env { variable, .. } => f.write_str(variable),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
