//! Connections that are not HTTP, to servers that the user configured, such as a database.
//!
//! Dials private addresses as well, with one lookup and a deadline on dicta's clock. Does not dial what a model or a
//! page names: `guard` does.

use std::net::SocketAddr;

use rustls::ClientConfig;
use tokio::net::TcpStream;

use super::resolve::Resolver;
use super::tls::{self, TlsConfigError};
use super::{NetError, WaitPhase};
use crate::clock::{Clock, with_timeout};
use crate::model::Millis;

/// The largest number of a name's addresses that are tried.
const MAX_DIALS: usize = 4;

/// Connects to a host by name or address. Looks the name up once and tries its addresses in turn, all within `limit`.
pub async fn dial(
    host: &str,
    port: u16,
    resolver: &dyn Resolver,
    clock: &dyn Clock,
    limit: Millis,
) -> Result<TcpStream, NetError> {
    // An IPv6 address needs brackets before its port.
    let label = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let connecting = async {
        let found = match host.parse() {
            Ok(ip) => Ok(vec![ip]),
            Err(_) => resolver.lookup(host, port).await,
        };
        // The error of the last address that failed replaces those of the earlier ones.
        let mut why = "the name has no address".to_owned();
        match found {
            Err(error) => why = error.to_string(),
            Ok(found) => {
                for ip in found.into_iter().take(MAX_DIALS) {
                    match TcpStream::connect(SocketAddr::new(ip, port)).await {
                        Ok(stream) => {
                            // Queries are small and their sender waits for the reply, so Nagle's algorithm would only
                            // add delay.
                            let _best_effort = stream.set_nodelay(true);
                            return Ok(stream);
                        }
                        Err(error) => why = error.to_string(),
                    }
                }
            }
        }
        Err(NetError::Connect {
            host: label.clone(),
            why,
        })
    };
    // One limit covers the lookup and all addresses, because the caller waits for the whole.
    let connected = with_timeout(clock, limit, connecting).await;
    connected.unwrap_or_else(|| Err(connect_timeout_error(label, limit)))
}

/// Connects to a Unix socket file.
#[cfg(unix)]
pub async fn dial_unix(
    path: &std::path::Path,
    clock: &dyn Clock,
    limit: Millis,
) -> Result<tokio::net::UnixStream, NetError> {
    let host = path.display().to_string();
    match with_timeout(clock, limit, tokio::net::UnixStream::connect(path)).await {
        Some(connected) => connected.map_err(|error| NetError::Connect {
            host,
            why: error.to_string(),
        }),
        None => Err(connect_timeout_error(host, limit)),
    }
}

/// Returns a TLS configuration for such a connection: the system's roots, and the certificates of a PEM text if there
/// is one.
pub async fn dial_tls_config(ca_pem: Option<Vec<u8>>) -> Result<ClientConfig, TlsConfigError> {
    let read = move || {
        let mut config = match ca_pem {
            Some(pem) => tls::system_config_with(&tls::parse_certificates(&pem)?),
            None => tls::system_config(),
        }?;
        // A database does not speak HTTP, so the configuration offers no protocol (ALPN).
        config.alpn_protocols.clear();
        Ok(config)
    };
    // Reads the system's roots the first time, which blocks.
    let config = tokio::task::spawn_blocking(read).await;
    config.unwrap_or_else(|error| Err(error.into()))
}

fn connect_timeout_error(host: String, after: Millis) -> NetError {
    NetError::Timeout {
        host,
        what: WaitPhase::Connect,
        after,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;

    use super::*;
    use crate::clock::{BoxFuture, FakeClock};

    /// Answers every name with these, or never.
    struct Names(Option<Vec<IpAddr>>);

    impl Resolver for Names {
        fn lookup<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            match &self.0 {
                Some(found) => Box::pin(std::future::ready(Ok(found.clone()))),
                None => Box::pin(std::future::pending()),
            }
        }
    }

    #[tokio::test]
    async fn configured_host_is_dialled_at_each_address_in_turn() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // No server listens at the first one.
        let names = Names(Some(
            ["127.0.0.9", "127.0.0.1"]
                .map(|a| a.parse().unwrap())
                .into(),
        ));
        let clock = FakeClock::new();
        let limit = Millis::from_secs(5);
        for host in ["db.test", "127.0.0.1"] {
            let stream = dial(host, port, &names, &clock, limit).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap().ip().to_string(), "127.0.0.1");
        }
        let nowhere = dial("db.test", port, &Names(Some(vec![])), &clock, limit).await;
        let failure = nowhere.unwrap_err().to_string();
        assert!(failure.ends_with("the name has no address"), "{failure}");
    }

    #[tokio::test]
    async fn unresponsive_resolver_fails_at_the_time_limit() {
        let clock = FakeClock::new();
        let names = Names(None);
        let limit = Millis::from_secs(5);
        let dialling = dial("db.test", 5432, &names, &clock, limit);
        let over = async { clock.advance(limit) };
        let (ended, ()) = tokio::join!(dialling, over);
        let failure = ended.unwrap_err();
        assert!(failure.is_transient() && failure.to_string().contains("db.test:5432"));
    }
}
