//! The limits of one guarded fetch, and the errors with which it ends.
//!
//! Does not send anything: `guard` does.

use thiserror::Error;

use super::NetError;
use super::refusal::HopRefusal;
use crate::model::Millis;

/// The limits on time and size of one guarded fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// For the whole fetch: names, hops, body.
    pub deadline: Millis,
    /// For the lookup of a hop's name.
    pub lookup: Millis,
    /// For connecting to one address, TLS included.
    pub connect: Millis,
    /// For a hop's headers, from the first dial.
    pub headers: Millis,
    /// The largest number of redirects that dicta follows.
    pub redirects: u8,
    /// Body bytes read from the wire; the rest is cut.
    pub wire_bytes: u64,
    /// Body bytes after decoding; the rest is cut.
    pub decoded_bytes: usize,
    /// The largest number of bytes that one wire byte may become.
    pub max_expansion: u64,
    /// Bytes of all names and values of a reply's headers together.
    pub header_bytes: usize,
}

impl Default for FetchLimits {
    /// 10 s (5 s for a lookup, 5 s to connect, 10 s for headers), 5 redirects, 2 MiB, 8 MiB, 100:1, 64 KiB.
    fn default() -> Self {
        Self {
            deadline: Millis::from_secs(10),
            lookup: Millis::from_secs(5),
            connect: Millis::from_secs(5),
            headers: Millis::from_secs(10),
            redirects: 5,
            // The wire limit counts compressed bytes, so the decoded limit is higher.
            wire_bytes: 2 << 20,
            decoded_bytes: 8 << 20,
            max_expansion: 100,
            header_bytes: 64 << 10,
        }
    }
}

/// The reason why a fetch failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FetchError {
    /// The guard refused a hop and dialled nothing for it.
    #[error("{0}")]
    Refused(HopRefusal),
    /// The deadline of the whole fetch passed.
    #[error("timeout")]
    Timeout,
    /// One phase took too long.
    #[error("timeout after {after} waiting for {what}")]
    PhaseTimeout {
        /// The phase, in a few words.
        what: &'static str,
        /// The limit of the phase.
        after: Millis,
    },
    /// The exchange failed.
    #[error("{0}")]
    Net(#[from] NetError),
    /// The body expands beyond the ratio.
    #[error("the body expands more than {0}-fold")]
    DecompressionBomb(u64),
    /// The body is not what its content-encoding says.
    #[error("the body is not valid gzip")]
    InvalidGzip,
    /// A content-encoding that dicta did not offer.
    #[error("content-encoding `{0}` was not asked for")]
    UnsupportedEncoding(String),
}

impl FetchError {
    /// Returns `true` if the same request could succeed later: no connection, a reset, no reply. A fetch that used up
    /// its whole deadline is not temporary, because a retry would double the deadline.
    pub fn is_transient(&self) -> bool {
        match self {
            FetchError::PhaseTimeout { .. } => true,
            FetchError::Net(error) => error.is_transient(),
            // The whole deadline and every refusal stay the same on a second try.
            _ => false,
        }
    }
}
