//! The way out for URLs that a model, a page or a schema named. Every hop is judged, resolved once, judged again by
//! address, and dialled at exactly the address that was judged.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use reqwest::header;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use thiserror::Error;

use super::body::{Body, BodyError, Collector, More};
use super::error::classify;
use super::model::USER_AGENT;
use super::policy::{Policy, Target, has_userinfo, raw_text};
use super::refusal::{Refusal, Rule};
use super::resolve::Resolver;
use super::wait::{ConnectDeadline, within};
use super::{NetError, Wait, tls};
use crate::clock::{Clock, Fut};
use crate::model::{Hop, Millis};

/// At most so many addresses of a name are tried.
const MAX_DIALS: usize = 4;

/// How long an address gets to connect while others are left.
const DIAL: Millis = Millis::from_secs(5);

/// How long and how much one guarded fetch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// For the whole: names, hops, body.
    pub deadline: Millis,
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
    /// 10 s, 5 redirects, 2 MiB, 8 MiB, 100:1, 64 KiB.
    fn default() -> Self {
        Self {
            deadline: Millis::from_secs(10),
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

/// Is told every hop as it ends, refused ones included.
pub trait HopSink: Send + Sync {
    /// Takes a hop.
    fn hop(&self, hop: Hop) -> Fut<'_, ()>;
}

/// Fetches what others named.
///
/// https on port 443 at public addresses, unless [`Policy::allow`] names the host. GET only; no proxy, cookie, referrer,
/// credential or connection of another hop; HTTP/1.1; one deadline.
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
        let deadline = Deadline {
            clock: Arc::clone(clock),
            at: clock.now() + limits.deadline,
        };
        let mut next = url.to_owned();
        let mut redirects: u8 = 0;
        loop {
            let mut hop = Hop {
                url: next.clone(),
                address: None,
                status: None,
                refused: None,
            };
            let ended = if redirects > limits.redirects {
                let why = format!("more than {}", limits.redirects);
                Err(FetchError::Refused(Refusal::new(Rule::Redirects, why)))
            } else {
                self.hop(&next, &deadline, limits, &mut hop).await
            };
            if let Err(FetchError::Refused(refusal)) = &ended {
                hop.refused = Some(refusal.to_string());
                hop.address = refusal.address.or(hop.address);
            }
            hops.hop(hop).await;
            let (target, reply) = ended?;
            match redirect(&target, &reply) {
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
                    next = to;
                    redirects = redirects.saturating_add(1);
                }
                Some(Err((written, refusal))) => {
                    let refused = Some(refusal.to_string());
                    hops.hop(Hop {
                        url: written,
                        address: None,
                        status: None,
                        refused,
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
        deadline: &Deadline,
        limits: FetchLimits,
        hop: &mut Hop,
    ) -> Result<(Target, reqwest::Response), FetchError> {
        let target = self.policy.check(text).map_err(FetchError::Refused)?;
        let addresses = self.addresses(&target, deadline).await?;
        for ip in &addresses {
            self.policy
                .check_address(&target, *ip)
                .map_err(FetchError::Refused)?;
        }
        let reply = self.dial(&target, &addresses, deadline, hop).await?;
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
    ) -> Result<Vec<IpAddr>, FetchError> {
        if let Some(ip) = target.literal {
            return Ok(vec![ip]);
        }
        let lookup = self.resolver.lookup(&target.name, target.port);
        let why = match deadline.run(lookup).await? {
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
        addresses: &[IpAddr],
        deadline: &Deadline,
        hop: &mut Hop,
    ) -> Result<reqwest::Response, FetchError> {
        let config = self.tls(target).await?;
        let tries = addresses.len().min(MAX_DIALS);
        let mut failed = FetchError::Timeout;
        for (done, ip) in addresses.iter().take(tries).enumerate() {
            hop.address = Some(*ip);
            let left = deadline.left();
            let last = done + 1 == tries;
            let connect = if last {
                left
            } else {
                Millis(left.0 / (tries - done) as u64).min(DIAL)
            };
            let client = client(target, *ip, config.clone(), &deadline.clock, connect)?;
            let request = client
                .get(target.url.clone())
                .header(header::ACCEPT, "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.8, */*;q=0.1")
                .header(header::ACCEPT_ENCODING, "gzip");
            let error = match deadline.run(request.send()).await? {
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

/// The last reply of a fetch, its body still to come.
pub struct Page {
    /// Where it came from, after redirects.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    host: String,
    reply: reqwest::Response,
    deadline: Deadline,
    limits: FetchLimits,
}

impl Page {
    /// A header's value, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.reply.headers().get(name)?.to_str().ok()
    }

    /// The size the server announced, in bytes on the wire.
    pub fn announced(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// How much of the deadline is left.
    pub fn left(&self) -> Millis {
        self.deadline.left()
    }

    /// Reads the body up to the caps, within what is left of the deadline.
    pub async fn body(mut self) -> Result<Body, FetchError> {
        let encodings: Vec<String> = self
            .reply
            .headers()
            .get_all(header::CONTENT_ENCODING)
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
            .collect();
        let encoding = (!encodings.is_empty()).then(|| encodings.join(", "));
        let mut body = Collector::new(encoding.as_deref(), self.limits.wire, self.limits.decoded)
            .ok_or_else(|| FetchError::Encoding(encoding.unwrap_or_default()))?;
        let sort = |error| match error {
            BodyError::Bomb => FetchError::Bomb(self.limits.ratio),
            BodyError::Broken => FetchError::Broken,
        };
        loop {
            match self.deadline.run(self.reply.chunk()).await? {
                Ok(None) => break,
                Ok(Some(chunk)) => {
                    if body.push(&chunk, self.limits.ratio).map_err(sort)? == More::No {
                        break;
                    }
                }
                Err(error) => return Err(classify(&error, &self.host).into()),
            }
        }
        body.finish().map_err(sort)
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("url", &self.url)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A moment on our clock by which everything must be over.
struct Deadline {
    clock: Arc<dyn Clock>,
    at: Millis,
}

impl Deadline {
    fn left(&self) -> Millis {
        self.at - self.clock.now()
    }

    async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, FetchError> {
        within(&*self.clock, self.left(), work)
            .await
            .ok_or(FetchError::Timeout)
    }
}

/// Where a reply sends us: the full URL, or why not (with the URL as far as it could be read).
fn redirect(from: &Target, reply: &reqwest::Response) -> Option<Result<String, (String, Refusal)>> {
    if !matches!(reply.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = reply.headers().get(header::LOCATION)?;
    let text = String::from_utf8_lossy(location.as_bytes()).into_owned();
    if let Err(refusal) = raw_text(&text) {
        return Some(Err((text, refusal)));
    }
    // Joining forgets an empty user name, so look before.
    if has_userinfo(&text) {
        let refusal = Refusal::new(
            Rule::Userinfo,
            "user names and passwords in URLs are refused",
        );
        return Some(Err((text, refusal)));
    }
    Some(match from.url.join(&text) {
        Ok(url) => Ok(url.into()),
        Err(error) => Err((text, Refusal::new(Rule::Parse, error.to_string()))),
    })
}

/// A client for one request to one address.
fn client(
    target: &Target,
    ip: IpAddr,
    config: ClientConfig,
    clock: &Arc<dyn Clock>,
    connect: Millis,
) -> Result<reqwest::Client, FetchError> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .https_only(true)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .http1_max_headers(100)
        .pool_max_idle_per_host(0)
        .user_agent(USER_AGENT)
        .dns_resolver(Pinned {
            host: target.url.host_str().unwrap_or_default().to_owned(),
            ip,
        })
        .connector_layer(ConnectDeadline {
            clock: Arc::clone(clock),
            limit: connect,
        })
        .build()
        .map_err(|error| {
            FetchError::Net(NetError::Tls {
                host: target.label(),
                why: error.to_string(),
            })
        })
}

/// Answers one name with the address that was judged, so that no second lookup can turn. Literals never ask it.
struct Pinned {
    host: String,
    ip: IpAddr,
}

impl reqwest::dns::Resolve for Pinned {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let answer = if name.as_str().eq_ignore_ascii_case(&self.host) {
            // Port 0: the URL's port wins.
            Ok(Box::new(std::iter::once(SocketAddr::new(self.ip, 0))) as reqwest::dns::Addrs)
        } else {
            Err(Box::new(io::Error::other("another name than the one judged")) as _)
        };
        Box::pin(std::future::ready(answer))
    }
}
