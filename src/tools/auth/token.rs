//! The verification of one token: signature, issuer, audience and times. Its errors never contain the token's
//! content.

use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::crypto_provider;

/// The size limit of a token, in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// The tolerance for a machine whose clock is ahead of this one, in seconds. It does not extend an expired token.
const CLOCK_LEEWAY_S: f64 = 60.0;
const SUPPORTED_ALGORITHMS: &str = "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA";

/// The values that a token must match.
pub(super) struct ExpectedClaims<'a> {
    pub(super) issuers: &'a [String],
    pub(super) audience: &'a str,
    /// The current time in seconds since 1970.
    pub(super) now: f64,
}

/// Verifies a token and returns its claims, or describes the problem.
pub(super) fn verify_token_claims(
    token: &str,
    keys: &[Jwk],
    expected: &ExpectedClaims<'_>,
) -> Result<Map<String, Value>, String> {
    // The JWT crate panics without a provider.
    crypto_provider::install_crypto_provider();
    // The length comes first, because the parser decodes the whole text.
    if token.len() > MAX_TOKEN {
        return Err(format!("it is longer than {MAX_TOKEN} bytes"));
    }
    let header = decode_header(token).map_err(|error| match error.kind() {
        ErrorKind::Json(_) => {
            format!("its header cannot be read, or names no algorithm that is taken ({SUPPORTED_ALGORITHMS})")
        }
        _ => "it is not a signed JWT: three parts with dots between them".to_owned(),
    })?;
    // RFC 7515 requires a verifier to refuse critical extensions that it does not know.
    if header.crit.is_some() {
        return Err("it asks for extensions (`crit`) that are unknown here".to_owned());
    }
    let algorithm = header.alg;
    // Refused before any key is used, so that a public key cannot serve as an HMAC secret.
    if algorithm.family() == AlgorithmFamily::Hmac {
        return Err(format!(
            "{algorithm:?} is not supported, because anyone who can verify such a signature can create one; supported: {SUPPORTED_ALGORITHMS}"
        ));
    }
    // Without `kid`, each key of the service is a candidate.
    let named = |key: &&Jwk| header.kid.is_none() || key.common.key_id == header.kid;
    let named: Vec<&Jwk> = keys.iter().filter(named).collect();
    if named.is_empty() {
        return Err(match header.kid {
            Some(_) => "the service's keys hold none of the token's `kid`".to_owned(),
            None => "the service has no keys".to_owned(),
        });
    }
    let fitting: Vec<&Jwk> = named
        .into_iter()
        .filter(|key| is_key_for_algorithm(key, algorithm))
        .collect();
    if fitting.is_empty() {
        return Err(format!("the service has no key for {algorithm:?}"));
    }
    // A service may publish several keys of one kind while it replaces them.
    let mut why = String::new();
    for key in fitting {
        match verify_signature(token, key, algorithm, expected) {
            Ok(claims) => return check_token_times(&claims, expected.now).map(|()| claims),
            Err(error) => why = explain_token_error(&error),
        }
    }
    Err(why)
}

/// Returns true if a key is meant for an algorithm. The key decides, because an attacker controls the token's header.
fn is_key_for_algorithm(key: &Jwk, algorithm: Algorithm) -> bool {
    let of_kind = match &key.algorithm {
        AlgorithmParameters::RSA(_) => algorithm.family() == AlgorithmFamily::Rsa,
        AlgorithmParameters::EllipticCurve(params) => match params.curve {
            EllipticCurve::P256 => algorithm == Algorithm::ES256,
            EllipticCurve::P384 => algorithm == Algorithm::ES384,
            _ => false,
        },
        AlgorithmParameters::OctetKeyPair(params) => {
            params.curve == EllipticCurve::Ed25519 && algorithm == Algorithm::EdDSA
        }
        _ => false,
    };
    // RFC 7517: `alg` and `use` of a key are optional restrictions.
    let named = key.common.key_algorithm.as_ref();
    of_kind
        && named.is_none_or(|named| named.to_string() == format!("{algorithm:?}"))
        && !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption))
}

fn verify_signature(
    token: &str,
    key: &Jwk,
    algorithm: Algorithm,
    expected: &ExpectedClaims<'_>,
) -> Result<Map<String, Value>, Error> {
    let mut validation = Validation::new(algorithm);
    // This module checks the times itself with dicta's clock; the crate would use the system's clock.
    validation.validate_exp = false;
    // `exp` is required, because a token that never expires would stay valid after a leak.
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(expected.issuers);
    validation.set_audience(&[expected.audience]);
    let key = DecodingKey::from_jwk(key)?;
    Ok(decode::<Map<String, Value>>(token, &key, &validation)?.claims)
}

fn check_token_times(claims: &Map<String, Value>, now: f64) -> Result<(), String> {
    let seconds = |name: &str| claims.get(name).and_then(Value::as_f64);
    // No leeway for `exp`: an expired token is refused at once.
    match seconds("exp") {
        None => return Err("its `exp` is not a time".to_owned()),
        Some(exp) if exp <= now => return Err("it has expired".to_owned()),
        Some(_) => {}
    }
    // Leeway for `nbf`, because the clocks of the issuer and this machine differ.
    if claims.contains_key("nbf") && seconds("nbf").is_none_or(|from| from > now + CLOCK_LEEWAY_S) {
        return Err("it is not valid yet".to_owned());
    }
    Ok(())
}

fn explain_token_error(error: &Error) -> String {
    match error.kind() {
        ErrorKind::InvalidSignature => "its signature is not the service's".to_owned(),
        ErrorKind::InvalidIssuer => "`iss` names another issuer".to_owned(),
        ErrorKind::InvalidAudience => "`aud` names another audience".to_owned(),
        ErrorKind::MissingRequiredClaim(name) => format!("it has no `{name}`"),
        ErrorKind::Json(_) => "its claims are not a JSON object".to_owned(),
        ErrorKind::Base64(_) => "the service's key, or the token, is not base64".to_owned(),
        _ => "the service's key cannot be used".to_owned(),
    }
}
