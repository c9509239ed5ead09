//! The way out for URLs that a model, a page or a schema named. Every hop is judged, resolved once, judged again by
//! address, and dialled at exactly the address that was judged.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use thiserror::Error;

use super::asking::{Asking, Request, redirect};
use super::error::classify;
use super::page::{Deadline, Page};
use super::pinned;
use super::policy::{Policy, Target};
use super::refusal::{Refusal, Rule};
use super::resolve::Resolver;
use super::{NetError, Wait, tls};
use crate::clock::{BoxFuture, Clock};
use crate::model::{Hop, Millis};

/// At most so many addresses of a name are tried.
const MAX_DIALS: usize = 4;

/// How long and how much one guarded fetch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// For the whole: names, hops, body.
    pub deadline: Millis,
    /// For the lookup of a hop.
    pub lookup: Millis,
    /// For an address to connect, TLS included.
    pub connect: Millis,
    /// For a hop's headers, from the first dial.
    pub headers: Millis,
    /// Redirects followed.
    pub redirects: u8,
    /// Body bytes read from the wire; more is cut.
    pub wire: u64,
    /// Body bytes after decoding; more is cut.
    pub decoded: usize,
    /// How many bytes one wire byte may become.
    pub ratio: u64,
    /// Names and values of a reply's headers together.
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
            wire: 2 << 20,
            decoded: 8 << 20,
            ratio: 100,
            header_bytes: 64 << 10,
        }
    }
}

/// Why a fetch failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FetchError {
    /// The guard said no; nothing was dialled for that hop.
    #[error("{0}")]
    Refused(Refusal),
    /// The deadline of the whole passed.
    #[error("timeout")]
    Timeout,
    /// One part of it took too long.
    #[error("timeout after {after} waiting for {what}")]
    Slow {
        /// A few words.
        what: &'static str,
        /// How long it was given.
        after: Millis,
    },
    /// The exchange failed.
    #[error("{0}")]
    Net(#[from] NetError),
    /// The body expands beyond the ratio.
    #[error("the body expands more than {0}-fold")]
    Bomb(u64),
    /// The body is not what its content-encoding says.
    #[error("the body is not valid gzip")]
    Broken,
    /// A content-encoding that was not asked for.
    #[error("content-encoding `{0}` was not asked for")]
    Encoding(String),
}

impl FetchError {
    /// Whether the same request could succeed later: no connection, a reset, no answer. Not where the deadline of the
    /// whole passed: it is one for all there is to it, and another try would double it.
    pub fn is_transient(&self) -> bool {
        match self {
            FetchError::Slow { .. } => true,
            FetchError::Net(error) => error.is_transient(),
            _ => false,
        }
    }
}

/// Is told every hop as it ends, refused ones included.
pub trait HopSink: Send + Sync {
    /// Takes a hop.
    fn hop(&self, hop: Hop) -> BoxFuture<'_, ()>;
}

/// Asks what others named.
///
/// https on port 443 at public addresses, unless [`Policy::allow`] names the host or [`Policy::origins`] the origin. No
/// proxy, cookie, referrer, credential or connection of another hop; HTTP/1.1; one deadline.
pub struct Guard {
    policy: Policy,
    resolver: Arc<dyn Resolver>,
    roots: Vec<CertificateDer<'static>>,
    config: Arc<OnceLock<Result<ClientConfig, String>>>,
}

impl Guard {
    /// A guard with the system's roots.
    pub fn new(policy: Policy, resolver: Arc<dyn Resolver>) -> Self {
        Self {
            policy,
            resolver,
            roots: Vec::new(),
            config: Arc::default(),
        }
    }

    /// The same, trusting the certificates of a PEM text as well.
    pub fn with_ca(mut self, pem: &[u8]) -> Result<Self, String> {
        self.roots = tls::certificates(pem)?;
        Ok(self)
    }

    /// A warning for the screen, where more is open than the fixed policy.
    pub fn badge(&self) -> Option<String> {
        let hosts: Vec<String> = self.policy.allow.iter().map(ToString::to_string).collect();
        let mut parts = Vec::new();
        for origin in &self.policy.origins {
            let origin = origin.ascii_serialization();
            let plain = if origin.starts_with("http:") {
                ", and is asked without encryption"
            } else {
                ""
            };
            parts.push(format!("{origin} may be private{plain}"));
        }
        if !hosts.is_empty() {
            parts.push(format!("{} may be private", hosts.join(", ")));
        }
        if !self.roots.is_empty() {
            parts.push("trusts a certificate file of yours".to_owned());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Fetches a URL and follows its redirects. Returns once the last reply's headers are here, whatever its status.
    pub async fn get(
        &self,
        url: &str,
        clock: &Arc<dyn Clock>,
        limits: FetchLimits,
        hops: &dyn HopSink,
    ) -> Result<Page, FetchError> {
        let asking = Asking {
            method: "GET",
            url,
            headers: &[],
            body: None,
        };
        self.send(&asking, clock, limits, hops).await
    }

    /// As [`Guard::get`], with a method, headers and a body. Redirects of GET and HEAD are followed, a 3xx to any other
    /// method is a reply.
    pub async fn send(
        &self,
        asking: &Asking<'_>,
        clock: &Arc<dyn Clock>,
        limits: FetchLimits,
        hops: &dyn HopSink,
    ) -> Result<Page, FetchError> {
        let deadline = Deadline {
            clock: Arc::clone(clock),
            at: clock.now() + limits.deadline,
        };
        let mut request = Request::of(asking)?;
        let mut next = asking.url.to_owned();
        let mut redirects: u8 = 0;
        loop {
            let mut hop = hop_to(&next);
            let ended = if redirects > limits.redirects {
                let why = format!("more than {}", limits.redirects);
                Err(FetchError::Refused(Refusal::new(Rule::Redirects, why)))
            } else {
                self.hop(&next, &request, &deadline, limits, &mut hop).await
            };
            if let Err(FetchError::Refused(refusal)) = &ended {
                hop.refused = Some(refusal.to_string());
                hop.address = refusal.address.or(hop.address);
            }
            hops.hop(hop).await;
            let (target, reply) = ended?;
            let to = if request.follows() {
                redirect(&target, reply.status(), reply.headers())
            } else {
                None
            };
            match to {
                None => {
                    return Ok(Page {
                        url: next,
                        status: reply.status().as_u16(),
                        host: target.label(),
                        reply,
                        deadline,
                        limits,
                    });
                }
                Some(Ok(to)) => {
                    if !target.is_origin_of(&to) {
                        request.strip();
                    }
                    next = to;
                    redirects = redirects.saturating_add(1);
                }
                Some(Err((written, refusal))) => {
                    let refused = Some(refusal.to_string());
                    hops.hop(Hop {
                        refused,
                        ..hop_to(&written)
                    })
                    .await;
                    return Err(FetchError::Refused(refusal));
                }
            }
        }
    }

    async fn hop(
        &self,
        text: &str,
        request: &Request,
        deadline: &Deadline,
        limits: FetchLimits,
        hop: &mut Hop,
    ) -> Result<(Target, reqwest::Response), FetchError> {
        let target = self.policy.check(text).map_err(FetchError::Refused)?;
        let addresses = self.addresses(&target, deadline, limits.lookup).await?;
        for ip in &addresses {
            self.policy
                .check_address(&target, *ip)
                .map_err(FetchError::Refused)?;
        }
        let dialling = self.dial(&target, request, &addresses, deadline, limits, hop);
        let waited = deadline.phase(limits.headers, "the reply's headers", dialling);
        let reply = waited.await??;
        hop.status = Some(reply.status().as_u16());
        let size: usize = reply
            .headers()
            .iter()
            .map(|(k, v)| k.as_str().len() + v.len())
            .sum();
        if size > limits.header_bytes {
            return Err(FetchError::Net(NetError::TooLarge {
                host: target.label(),
                limit: limits.header_bytes as u64,
            }));
        }
        Ok((target, reply))
    }

    /// The one lookup of a hop. None for a literal.
    async fn addresses(
        &self,
        target: &Target,
        deadline: &Deadline,
        limit: Millis,
    ) -> Result<Vec<IpAddr>, FetchError> {
        if let Some(ip) = target.literal {
            return Ok(vec![ip]);
        }
        let lookup = self.resolver.lookup(&target.name, target.port);
        let looked_up = deadline.phase(limit, "the name's addresses", lookup);
        let why = match looked_up.await? {
            Ok(mut found) if !found.is_empty() => {
                let mut known = std::collections::HashSet::new();
                found.retain(|ip| known.insert(*ip));
                return Ok(found);
            }
            Ok(_) => "the name has no address".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(FetchError::Refused(Refusal {
            host: Some(target.label()),
            ..Refusal::new(Rule::Resolve, why)
        }))
    }

    /// Tries the judged addresses in turn; each client can reach one address only.
    async fn dial(
        &self,
        target: &Target,
        request: &Request,
        addresses: &[IpAddr],
        deadline: &Deadline,
        limits: FetchLimits,
        hop: &mut Hop,
    ) -> Result<reqwest::Response, FetchError> {
        let config = self.tls(target).await?;
        let tries = addresses.len().min(MAX_DIALS);
        let mut failed = FetchError::Timeout;
        for (done, ip) in addresses.iter().take(tries).enumerate() {
            hop.address = Some(*ip);
            let left = deadline.left();
            let connect = Millis(left.0 / (tries - done) as u64).min(limits.connect);
            let client = pinned::client(target, *ip, config.clone(), &deadline.clock, connect)?;
            let sending = request.build(&client, target).send();
            let error = match deadline.run(sending).await? {
                Ok(reply) if reply.remote_addr().is_none_or(|a| a.ip() == *ip) => return Ok(reply),
                // Cannot happen while the client is pinned; if it ever does, nothing of the reply is used.
                Ok(_) => {
                    let why = format!("the connection went elsewhere than {ip}");
                    return Err(FetchError::Refused(Refusal::new(Rule::Address, why)));
                }
                Err(error) => classify(&error, &target.label()),
            };
            let unreached = matches!(
                error,
                NetError::Connect { .. }
                    | NetError::Timeout {
                        what: Wait::Connect,
                        ..
                    }
            );
            failed = match error {
                NetError::Timeout { after, .. } if deadline.left() > Millis(0) => {
                    let what = "a connection";
                    FetchError::Slow { what, after }
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

    async fn tls(&self, target: &Target) -> Result<ClientConfig, FetchError> {
        if target.url.scheme() == "http" {
            return Ok(tls::none());
        }
        let ready = Arc::clone(&self.config);
        let roots = self.roots.clone();
        let build = move || {
            ready
                .get_or_init(|| {
                    let config = if roots.is_empty() {
                        tls::system()
                    } else {
                        tls::system_and(&roots)
                    };
                    config.map(tls::without_resumption)
                })
                .clone()
        };
        let config = match self.config.get() {
            Some(config) => config.clone(),
            // Reads the system's roots the first time.
            None => tokio::task::spawn_blocking(build)
                .await
                .unwrap_or_else(|e| Err(e.to_string())),
        };
        config.map_err(|why| {
            FetchError::Net(NetError::Tls {
                host: target.label(),
                why,
            })
        })
    }
}

fn hop_to(url: &str) -> Hop {
    Hop {
        url: url.to_owned(),
        address: None,
        status: None,
        refused: None,
    }
}
