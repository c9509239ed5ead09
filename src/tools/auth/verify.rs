//! Verifies the tokens there are, all services at once.

use std::sync::Arc;

use futures_util::future::join_all;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::keys::text_of;
use super::token::{self, Expected};
use super::{AuthService, Claims, TokenFrom};
use crate::clock::Clock;
use crate::net::{AddressGuard, AddressPolicy, Resolver};

/// Token files have a few kilobytes.
const MAX_FILE: usize = 64 << 10;

/// Seconds since 1970.
pub(super) fn seconds(clock: &dyn Clock) -> Option<f64> {
    let now: jiff::Timestamp = clock.wall_time().0.parse().ok()?;
    Some(now.as_millisecond() as f64 / 1000.0)
}

/// Verifies every service's token. A service without one is just not among the claims; one whose token does not hold is
/// not either, and the sentences, warnings, say why.
pub async fn verify(
    services: &IndexMap<String, Arc<AuthService>>,
    clock: &Arc<dyn Clock>,
    resolver: &Arc<dyn Resolver>,
) -> (Claims, Vec<String>) {
    let guard = AddressGuard::new(AddressPolicy::default(), Arc::clone(resolver));
    verify_through(services, clock, &guard).await
}

/// The same, with a guard that may open more.
pub(super) async fn verify_through(
    services: &IndexMap<String, Arc<AuthService>>,
    clock: &Arc<dyn Clock>,
    guard: &AddressGuard,
) -> (Claims, Vec<String>) {
    let asked = services
        .values()
        .map(|service| async { (&service.name, one(service, clock, guard).await) });
    let (mut verified, mut problems) = (IndexMap::new(), Vec::new());
    for (name, outcome) in join_all(asked).await {
        match outcome {
            Ok(Some(claims)) => {
                verified.insert(name.clone(), claims);
            }
            Ok(None) => {}
            Err(why) => problems.push(format!("auth service `{name}`: {why}")),
        }
    }
    (Claims(verified, Some(Arc::clone(clock))), problems)
}

async fn one(
    service: &AuthService,
    clock: &Arc<dyn Clock>,
    guard: &AddressGuard,
) -> Result<Option<Map<String, Value>>, String> {
    let Some(token) = service.token.read()? else {
        return Ok(None);
    };
    let keys = service.keys.load(guard, clock).await?;
    let expected = Expected {
        issuers: &service.issuers,
        audience: &service.audience,
        now: seconds(&**clock).ok_or("this machine's clock cannot be read")?,
    };
    let claims = token::claims(&token, &keys, &expected);
    let from = &service.token;
    claims
        .map(Some)
        .map_err(|why| format!("the token from {from} was refused: {why}"))
}

impl TokenFrom {
    fn read(&self) -> Result<Option<String>, String> {
        match self {
            Self::Env(_, token) => Ok(token.clone()),
            Self::File(path) => {
                let text = text_of(path, MAX_FILE).map_err(|why| {
                    format!("its token cannot be read: {}: {why}", path.display())
                })?;
                let token = text.trim();
                Ok((!token.is_empty()).then(|| token.to_owned()))
            }
        }
    }
}

impl std::fmt::Display for TokenFrom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env(name, _) => f.write_str(name),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
