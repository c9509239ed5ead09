//! An HTTP client that can reach one address only, the one that the guard checked.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustls::ClientConfig;

use super::NetError;
use super::deadline::ConnectDeadline;
use super::llm::USER_AGENT;
use super::policy::CheckedUrl;
use crate::clock::Clock;
use crate::model::Millis;

/// Builds a client for one request to one address.
pub(super) fn build_pinned_client(
    target: &CheckedUrl,
    ip: IpAddr,
    config: ClientConfig,
    clock: &Arc<dyn Clock>,
    connect: Millis,
) -> Result<reqwest::Client, NetError> {
    // Each setting removes a way in which the client could reach another address than the checked one.
    reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .https_only(target.url.scheme() == "https")
        // A proxy from the environment would resolve the name itself.
        .no_proxy()
        // The guard follows redirects itself, with all checks for each hop.
        .redirect(reqwest::redirect::Policy::none())
        // A retry by the client would not appear as a hop.
        .retry(reqwest::retry::never())
        .referer(false)
        // HTTP/2 could reuse the connection for another host of the same certificate.
        .http1_only()
        .http1_max_headers(100)
        // No idle connections: the next request needs its own check.
        .pool_max_idle_per_host(0)
        .user_agent(USER_AGENT)
        .dns_resolver(PinnedResolver {
            host: target.url.host_str().unwrap_or_default().to_owned(),
            ip,
        })
        .connector_layer(ConnectDeadline {
            clock: Arc::clone(clock),
            limit: connect,
        })
        .build()
        .map_err(|error| NetError::Tls {
            host: target.host_label(),
            why: error.to_string(),
        })
}

/// A resolver that returns the checked address for one name. A second lookup could return another address (DNS
/// rebinding). reqwest does not call it for address literals.
struct PinnedResolver {
    host: String,
    ip: IpAddr,
}

impl reqwest::dns::Resolve for PinnedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let answer = if name.as_str().eq_ignore_ascii_case(&self.host) {
            // Port 0: reqwest uses the URL's port.
            Ok(Box::new(std::iter::once(SocketAddr::new(self.ip, 0))) as reqwest::dns::Addrs)
        } else {
            Err(Box::new(io::Error::other("another name than the one judged")) as _)
        };
        Box::pin(std::future::ready(answer))
    }
}
