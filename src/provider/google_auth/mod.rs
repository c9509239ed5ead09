//! Google credentials: parsing a credentials file, and fetching access tokens with it.
//!
//! Responsible for parsing the file's text, signing, requesting tokens, and their expiry. Does not know where the
//! file is (the workspace does) or what a token is used for. A token enters only a request's header and the
//! redactors. A private key or a refresh token enters only the request for a token and the redactors.
//!
//! Supported are a service account's key, gcloud's user file, and the metadata server of a machine in Google's cloud.
//! Other kinds (workload identity and similar) are rejected by name.

mod credentials;
mod token_request;
mod tokens;

pub use credentials::{GoogleCredentials, GoogleCredentialsError};
pub use tokens::GoogleTokens;

#[cfg(test)]
mod tests;
