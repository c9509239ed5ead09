//! The guard: it fetches URLs that a model, a page or a schema names.
//!
//! Responsible for every hop of such a fetch: it checks the URL, resolves the name once, checks each address, and
//! dials exactly a checked address. Does not dial what the user configured: `llm` and `dial` do.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

use super::deadline::FetchDeadline;
use super::error::classify_error;
use super::fetch::{FetchError, FetchLimits};
use super::guarded_request::{GuardedRequest, PreparedRequest, RefusedRedirect, find_redirect};
use super::page::FetchReply;
use super::pinned_client;
use super::policy::{AddressPolicy, CheckedUrl};
use super::refusal::{GuardRule, HopRefusal};
use super::resolve::Resolver;
use super::tls::{self, TlsConfigError};
use super::{NetError, WaitPhase};
use crate::clock::{BoxFuture, Clock};
use crate::model::{Hop, Millis};

/// The largest number of a name's addresses that are tried.
const MAX_DIALS: usize = 4;

/// An observer of hops. It gets every hop when the hop ends, refused hops included.
pub trait HopObserver: Send + Sync {
    /// Records one hop.
    fn record_hop(&self, hop: Hop) -> BoxFuture<'_, ()>;
}

/// Fetches URLs that were not written by the user.
///
/// Allows https on port 443 at public addresses, unless [`AddressPolicy::allow`] names the host or
/// [`AddressPolicy::origins`] the origin. Uses no proxy, cookie, referrer, credential or connection of another hop;
/// HTTP/1.1; one deadline.
pub struct AddressGuard {
    policy: AddressPolicy,
    resolver: Arc<dyn Resolver>,
    roots: Vec<CertificateDer<'static>>,
    config: Arc<OnceLock<Result<ClientConfig, TlsConfigError>>>,
}

impl AddressGuard {
    /// Creates a guard that trusts the system's roots.
    pub fn new(policy: AddressPolicy, resolver: Arc<dyn Resolver>) -> Self {
        Self {
            policy,
            resolver,
            roots: Vec::new(),
            config: Arc::default(),
        }
    }

    /// Returns the guard, trusting the certificates of a PEM text as well.
    pub fn with_ca(mut self, pem: &[u8]) -> Result<Self, TlsConfigError> {
        self.roots = tls::parse_certificates(pem)?;
        Ok(self)
    }

    /// Returns a warning for the screen if the policy opens more than the fixed rules.
    pub fn policy_warning(&self) -> Option<String> {
        // The warning appears next to the tool, so it names each exception in words that a user set.
        let hosts: Vec<String> = self.policy.allow.iter().map(ToString::to_string).collect();
        let mut parts = Vec::new();
        for origin in &self.policy.origins {
            let origin = origin.ascii_serialization();
            let plain = if origin.starts_with("http:") {
                ", without encryption"
            } else {
                ""
            };
            parts.push(format!("{origin} may be private{plain}"));
        }
        if !hosts.is_empty() {
            parts.push(format!("{} may be private", hosts.join(", ")));
        }
        if !self.roots.is_empty() {
            parts.push("trusts your certificate file".to_owned());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Fetches a URL and follows its redirects. Returns when the headers of the last reply have arrived, whatever its
    /// status.
    pub async fn get(
        &self,
        url: &str,
        clock: &Arc<dyn Clock>,
        limits: FetchLimits,
        hops: &dyn HopObserver,
    ) -> Result<FetchReply, FetchError> {
        let asking = GuardedRequest {
            method: "GET",
            url,
            headers: &[],
            body: None,
        };
        self.send(&asking, clock, limits, hops).await
    }

    /// Like [`AddressGuard::get`], with a method, headers and a body. Follows redirects of GET and HEAD; for any
    /// other method a 3xx is a reply.
    pub async fn send(
        &self,
        asking: &GuardedRequest<'_>,
        clock: &Arc<dyn Clock>,
        limits: FetchLimits,
        hops: &dyn HopObserver,
    ) -> Result<FetchReply, FetchError> {
        let deadline = FetchDeadline {
            clock: Arc::clone(clock),
            at: clock.now() + limits.deadline,
        };
        // Prepared before the first hop, because an invalid header must not cause a connection.
        let mut request = PreparedRequest::prepare(asking)?;
        let mut next = asking.url.to_owned();
        // Each hop runs through all checks again: a public page may redirect to a private address.
        let mut redirects: u8 = 0;
        loop {
            // One round per hop: check, resolve, dial, and record the hop.
            let mut hop = new_hop(&next);
            // The counter is checked before the request, so the refused hop is recorded but not dialled.
            let ended = if redirects > limits.redirects {
                let why = format!("more than {}", limits.redirects);
                Err(FetchError::Refused(HopRefusal::new(
                    GuardRule::Redirects,
                    why,
                )))
            } else {
                self.request_hop(&next, &request, &deadline, limits, &mut hop)
                    .await
            };
            if let Err(FetchError::Refused(refusal)) = &ended {
                hop.refused = Some(refusal.to_string());
                // An address that the guard refused is more useful in the record than one that it dialled.
                hop.address = refusal.address.or(hop.address);
            }
            hops.record_hop(hop).await;
            let (target, reply) = ended?;
            // A write is not repeated at another address; the caller gets the redirect as the reply.
            let to = if request.follows_redirects() {
                find_redirect(&target, reply.status(), reply.headers())
            } else {
                None
            };
            match to {
                None => {
                    return Ok(FetchReply {
                        url: next,
                        status: reply.status().as_u16(),
                        host: target.host_label(),
                        reply,
                        deadline,
                        limits,
                    });
                }
                Some(Ok(to)) => {
                    // Another origin must not receive the secrets of this one.
                    if !target.is_origin_of(&to) {
                        request.drop_headers_and_body();
                    }
                    next = to;
                    redirects = redirects.saturating_add(1);
                }
                Some(Err(RefusedRedirect { url, refusal })) => {
                    let refused = Some(refusal.to_string());
                    hops.record_hop(Hop {
                        refused,
                        ..new_hop(&url)
                    })
                    .await;
                    return Err(FetchError::Refused(refusal));
                }
            }
        }
    }

    async fn request_hop(
        &self,
        text: &str,
        request: &PreparedRequest,
        deadline: &FetchDeadline,
        limits: FetchLimits,
        hop: &mut Hop,
    ) -> Result<(CheckedUrl, reqwest::Response), FetchError> {
        let target = self.policy.check_url(text).map_err(FetchError::Refused)?;
        let addresses = self
            .resolve_addresses(&target, deadline, limits.lookup)
            .await?;
        // One private address refuses the whole name, so that a rebinding name cannot mix public and private
        // ones.
        for ip in &addresses {
            self.policy
                .check_address(&target, *ip)
                .map_err(FetchError::Refused)?;
        }
        let dialling = self.dial_addresses(&target, request, &addresses, deadline, limits, hop);
        let waited = deadline.run_phase(limits.headers, "the reply's headers", dialling);
        let reply = waited.await??;
        hop.status = Some(reply.status().as_u16());
        // The limit guards the memory of the caller; hyper has its own limit on the number of headers.
        let size: usize = reply
            .headers()
            .iter()
            .map(|(k, v)| k.as_str().len() + v.len())
            .sum();
        if size > limits.header_bytes {
            return Err(FetchError::Net(NetError::TooLarge {
                host: target.host_label(),
                limit: limits.header_bytes as u64,
            }));
        }
        Ok((target, reply))
    }

    /// Looks up the addresses of a hop's host, once. An address literal needs no lookup.
    async fn resolve_addresses(
        &self,
        target: &CheckedUrl,
        deadline: &FetchDeadline,
        limit: Millis,
    ) -> Result<Vec<IpAddr>, FetchError> {
        if let Some(ip) = target.literal {
            return Ok(vec![ip]);
        }
        let lookup = self.resolver.lookup(&target.name, target.port);
        let looked_up = deadline.run_phase(limit, "the name's addresses", lookup);
        let why = match looked_up.await? {
            Ok(mut found) if !found.is_empty() => {
                // Some resolvers repeat an address, and each repetition would use up one of the dials.
                let mut known = std::collections::HashSet::new();
                found.retain(|ip| known.insert(*ip));
                return Ok(found);
            }
            Ok(_) => "the name has no address".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(FetchError::Refused(HopRefusal {
            host: Some(target.host_label()),
            ..HopRefusal::new(GuardRule::Resolve, why)
        }))
    }

    /// Tries the checked addresses in order. Each client can reach one address only.
    async fn dial_addresses(
        &self,
        target: &CheckedUrl,
        request: &PreparedRequest,
        addresses: &[IpAddr],
        deadline: &FetchDeadline,
        limits: FetchLimits,
        hop: &mut Hop,
    ) -> Result<reqwest::Response, FetchError> {
        let config = self.tls_config(target).await?;
        let tries = addresses.len().min(MAX_DIALS);
        let mut failed = FetchError::Timeout;
        for (done, ip) in addresses.iter().take(tries).enumerate() {
            hop.address = Some(*ip);
            // The time left is divided among the remaining addresses, so that one dead address cannot use all
            // of it.
            let left = deadline.time_left();
            let connect = Millis(left.0 / (tries - done) as u64).min(limits.connect);
            // A new client per address, because a client could otherwise choose another address by itself.
            let client = pinned_client::build_pinned_client(
                target,
                *ip,
                config.clone(),
                &deadline.clock,
                connect,
            )?;
            let sending = request.build(&client, target).send();
            let error = match deadline.run_until(sending).await? {
                Ok(reply) if reply.remote_addr().is_none_or(|a| a.ip() == *ip) => return Ok(reply),
                // This cannot happen while the client is pinned. If it ever does, dicta uses nothing of the reply.
                Ok(_) => {
                    let why = format!("the connection went elsewhere than {ip}");
                    return Err(FetchError::Refused(HopRefusal::new(
                        GuardRule::Address,
                        why,
                    )));
                }
                Err(error) => classify_error(&error, &target.host_label()),
            };
            // Only an address that was never reached is worth another one; the server may already act on a
            // sent request.
            let unreached = matches!(
                error,
                NetError::Connect { .. }
                    | NetError::Timeout {
                        what: WaitPhase::Connect,
                        ..
                    }
            );
            failed = match error {
                NetError::Timeout { after, .. } if deadline.time_left() > Millis(0) => {
                    let what = "a connection";
                    FetchError::PhaseTimeout { what, after }
                }
                NetError::Timeout { .. } => FetchError::Timeout,
                other => FetchError::Net(other),
            };
            if !unreached {
                break;
            }
        }
        Err(failed)
    }

    async fn tls_config(&self, target: &CheckedUrl) -> Result<ClientConfig, FetchError> {
        // The policy has already opened this origin for http.
        if target.url.scheme() == "http" {
            return Ok(tls::config_without_roots());
        }
        // The closure outlives this call, so it owns its copies.
        let ready = Arc::clone(&self.config);
        let roots = self.roots.clone();
        let build = move || {
            ready
                .get_or_init(|| {
                    let config = if roots.is_empty() {
                        tls::system_config()
                    } else {
                        tls::system_config_with(&roots)
                    };
                    // A resumed session would link a judge's requests to earlier ones.
                    config.map(tls::without_resumption)
                })
                .clone()
        };
        let config = match self.config.get() {
            Some(config) => config.clone(),
            // Reads the system's roots the first time, which blocks.
            None => tokio::task::spawn_blocking(build)
                .await
                .unwrap_or_else(|error| Err(error.into())),
        };
        config.map_err(|error| {
            FetchError::Net(NetError::Tls {
                host: target.host_label(),
                why: error.to_string(),
            })
        })
    }
}

fn new_hop(url: &str) -> Hop {
    Hop {
        url: url.to_owned(),
        address: None,
        status: None,
        refused: None,
    }
}
