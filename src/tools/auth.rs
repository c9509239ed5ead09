//! Auth services of tools.yaml: whose tokens are taken, and what verified ones claim.
//!
//! Owns the verification (signature, issuer, audience, times) with keys from a file or URL. A token comes from the
//! environment or a file, and appears in no event, log or error.

use indexmap::IndexMap;
use serde_json::{Map, Value};

/// An auth service as its file declares it.
#[derive(Debug)]
pub struct AuthService {
    /// Its name.
    pub name: String,
}

/// What the verified tokens claim, by auth service; services without a verified token are not in it.
#[derive(Debug, Clone, Default)]
pub struct Claims(pub IndexMap<String, Map<String, Value>>);
