//! Google credentials: which kind a file holds, and access tokens made of it.
//!
//! Owns reading a credentials file's text, signing, asking for tokens, and when a token is too old. Refuses to know where
//! such a file lies (that is the workspace's) and what a token is used for. A token enters a request's header and the
//! redactors, and no other place; a private key and a refresh token enter the request for a token and the redactors.
//!
//! Kinds: a service account's key, gcloud's user file, and the metadata server of a machine in Google's cloud. The
//! others (workload identity and its like) are named and refused.

mod credentials;
mod token_request;
mod tokens;

pub use credentials::GoogleCredentials;
pub use tokens::GoogleTokens;

#[cfg(test)]
mod tests;
