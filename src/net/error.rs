//! The errors of a network exchange. Their texts name a host, never a whole URL, a header or a key.

use std::error::Error as StdError;
use std::io;

use thiserror::Error;

use crate::model::Millis;

/// The part of an exchange that a deadline interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPhase {
    /// A connection (TLS included).
    Connect,
    /// The first byte of the reply.
    FirstByte,
    /// The next byte of the reply.
    NextByte,
    /// The whole exchange.
    Whole,
}

impl WaitPhase {
    fn as_str(self) -> &'static str {
        match self {
            WaitPhase::Connect => "a connection",
            WaitPhase::FirstByte => "the first byte of the reply",
            WaitPhase::NextByte => "the next byte of the reply",
            WaitPhase::Whole => "the whole reply",
        }
    }
}

/// The reason why an exchange failed below HTTP. A status of 4xx or 5xx is a reply and not an error here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NetError {
    /// Not an http or https URL with a host.
    #[error("cannot send to this address: {why}")]
    BadUrl {
        /// A short reason.
        why: String,
    },
    /// A header that HTTP does not allow. The text does not contain its value, which may be a secret.
    #[error("header `{name}` holds characters that HTTP does not allow")]
    BadHeader {
        /// The name of the header.
        name: String,
    },
    /// No connection: unknown name, refused, unreachable.
    #[error("cannot connect to {host}: {why}")]
    Connect {
        /// `host:port`.
        host: String,
        /// The system's words.
        why: String,
    },
    /// No trust, or no common protocol.
    #[error("no secure connection to {host}: {why}")]
    Tls {
        /// `host:port`.
        host: String,
        /// rustls's words.
        why: String,
    },
    /// The connection ended before the reply did.
    #[error("{host} closed the connection early: {why}")]
    Reset {
        /// `host:port`.
        host: String,
        /// The system's words.
        why: String,
    },
    /// The server's bytes are not HTTP.
    #[error("{host} did not answer in proper HTTP: {why}")]
    Protocol {
        /// `host:port`.
        host: String,
        /// hyper's words.
        why: String,
    },
    /// A deadline passed.
    #[error("{host}: waited {after} for {}", .what.as_str())]
    Timeout {
        /// `host:port`.
        host: String,
        /// The part of the exchange that took too long.
        what: WaitPhase,
        /// The time dicta waited.
        after: Millis,
    },
    /// More than the cap allows.
    #[error("{host} sent more than {limit} bytes")]
    TooLarge {
        /// `host:port`.
        host: String,
        /// The cap in bytes.
        limit: u64,
    },
}

impl NetError {
    /// Returns `true` if the same request could succeed later: no connection, a reset, a deadline.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            NetError::Connect { .. } | NetError::Reset { .. } | NetError::Timeout { .. }
        )
    }
}

/// The error of a connect attempt whose deadline passed. It travels through reqwest's error chain.
#[derive(Debug, Error)]
#[error("the connect deadline passed")]
pub(super) struct ConnectTimedOut(pub(super) Millis);

/// Converts a reqwest error, by the most specific cause in its chain. `host` is the host that the text names.
pub(super) fn classify_error(error: &reqwest::Error, host: &str) -> NetError {
    // reqwest's own text contains the whole URL, so only causes below it are used.
    classify_cause(error.source(), error.is_connect(), host)
}

/// Converts the causes of an error. `is_connect` is true if there was no connection.
pub(super) fn classify_cause(
    cause: Option<&(dyn StdError + 'static)>,
    is_connect: bool,
    host: &str,
) -> NetError {
    let host = host.to_owned();
    let mut innermost = String::new();
    let mut protocol = false;
    let mut link = cause;
    while let Some(cause) = link {
        // The connect deadline first: reqwest reports it as an ordinary connect error.
        if let Some(ConnectTimedOut(after)) = cause.downcast_ref() {
            return NetError::Timeout {
                host,
                what: WaitPhase::Connect,
                after: *after,
            };
        }
        // A TLS error before its I/O wrapper, because it names the cause more exactly.
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return NetError::Tls {
                host,
                why: tls.to_string(),
            };
        }
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            if let Some(tls) = find_tls_error(io) {
                return NetError::Tls {
                    host,
                    why: tls.to_string(),
                };
            }
            // hyper reports a broken chunk or header as one of these kinds.
            protocol |= matches!(
                io.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            );
        }
        if let Some(http) = cause.downcast_ref::<hyper::Error>() {
            protocol |= http.is_parse();
        }
        innermost = cause.to_string();
        link = cause.source();
    }
    let why = innermost;
    if is_connect {
        // The order matters: a failed connect can also contain an I/O error of these kinds.
        NetError::Connect { host, why }
    } else if protocol {
        NetError::Protocol { host, why }
    } else {
        NetError::Reset { host, why }
    }
}

/// Returns the TLS error that an i/o error wraps, through any number of i/o errors. Connectors wrap it more than
/// once, and `source()` skips the wrapped error.
fn find_tls_error(io: &io::Error) -> Option<&rustls::Error> {
    let mut io = io;
    loop {
        let inner = io.get_ref()?;
        if let Some(tls) = inner.downcast_ref() {
            return Some(tls);
        }
        io = inner.downcast_ref()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_tls_error_is_found() {
        let tls = || rustls::Error::General("no trust".to_owned());
        let once = io::Error::new(io::ErrorKind::InvalidData, tls());
        assert_eq!(find_tls_error(&once), Some(&tls()));
        let twice = io::Error::other(once);
        assert_eq!(find_tls_error(&twice), Some(&tls()));
        assert_eq!(find_tls_error(&io::Error::other("broken pipe")), None);
        assert_eq!(find_tls_error(&io::ErrorKind::BrokenPipe.into()), None);
    }

    #[test]
    fn only_temporary_errors_are_transient() {
        let host = || "a.test:443".to_owned();
        let why = String::new;
        assert!(
            NetError::Connect {
                host: host(),
                why: why()
            }
            .is_transient()
        );
        assert!(
            NetError::Reset {
                host: host(),
                why: why()
            }
            .is_transient()
        );
        assert!(
            !NetError::Tls {
                host: host(),
                why: why()
            }
            .is_transient()
        );
        assert!(
            !NetError::Protocol {
                host: host(),
                why: why()
            }
            .is_transient()
        );
    }
}
