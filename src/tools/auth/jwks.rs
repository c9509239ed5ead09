//! The public keys of an auth service: from a JWKS file, a URL, or the address in the discovery document.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonwebtoken::jwk::Jwk;
use serde_json::Value;

use crate::clock::{BoxFuture, Clock};
use crate::model::Hop;
use crate::net::{AddressGuard, FetchLimits, HopObserver};
use crate::storage::read_regular_text;

/// The size limit of a key file, in bytes. Real ones have a few kilobytes.
const MAX_KEY_FILE: usize = 1 << 20;

/// The place of the keys.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JwksSource {
    File(PathBuf),
    Url(String),
    /// An authorization server, without a slash at the end.
    Discover(String),
}

impl JwksSource {
    /// Loads the keys and skips those of an unknown type.
    pub(super) async fn load_keys(
        &self,
        guard: &AddressGuard,
        clock: &Arc<dyn Clock>,
    ) -> Result<Vec<Jwk>, String> {
        match self {
            Self::File(path) => read_key_file(path),
            Self::Url(url) => parse_key_set(&fetch_json(url, guard, clock).await?, url),
            Self::Discover(server) => {
                let url = format!("{server}/.well-known/openid-configuration");
                let document = fetch_json(&url, guard, clock).await?;
                let issuer = document["issuer"].as_str().unwrap_or_default();
                // OpenID Connect Discovery 4.3 requires the same issuer, so that one server cannot speak for
                // another.
                if issuer.trim_end_matches('/') != server {
                    return Err(format!("{url} is about another issuer"));
                }
                let at = document["jwks_uri"]
                    .as_str()
                    .ok_or_else(|| format!("{url} names no jwks_uri"))?;
                parse_key_set(&fetch_json(at, guard, clock).await?, at)
            }
        }
    }
}

fn read_key_file(path: &Path) -> Result<Vec<Jwk>, String> {
    let name = path.display().to_string();
    let bad = |why: &dyn std::fmt::Display| format!("its keys cannot be read: {name}: {why}");
    let text = read_regular_text(path, MAX_KEY_FILE as u64).map_err(|why| bad(&why))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| bad(&error))?;
    parse_key_set(&value, &name)
}

fn parse_key_set(value: &Value, from: &str) -> Result<Vec<Jwk>, String> {
    let listed = value["keys"]
        .as_array()
        .ok_or_else(|| format!("{from} is not a JWKS: it has no list `keys`"))?;
    // Keys of unknown types are skipped, because a service may publish keys for other uses.
    let known = listed
        .iter()
        .filter_map(|key| serde_json::from_value(key.clone()).ok());
    Ok(known.collect())
}

async fn fetch_json(
    url: &str,
    guard: &AddressGuard,
    clock: &Arc<dyn Clock>,
) -> Result<Value, String> {
    // The guard's own limits are for pages; a key set is small.
    let limits = FetchLimits {
        wire_bytes: MAX_KEY_FILE as u64,
        decoded_bytes: MAX_KEY_FILE,
        ..FetchLimits::default()
    };
    let bad = |why: &dyn std::fmt::Display| format!("its keys cannot be fetched: {url}: {why}");
    let page = guard
        .get(url, clock, limits, &IgnoredKeyHops)
        .await
        .map_err(|error| bad(&error))?;
    if page.status != 200 {
        return Err(bad(&format!("status {}", page.status)));
    }
    let body = page.read_body().await.map_err(|error| bad(&error))?;
    serde_json::from_slice(&body.bytes).map_err(|error| bad(&error))
}

/// An observer that drops hops: a request for keys belongs to no tool call.
struct IgnoredKeyHops;

impl HopObserver for IgnoredKeyHops {
    fn record_hop(&self, _: Hop) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
