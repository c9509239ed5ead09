//! The rules for a URL, applied to its text and its parts before its name is looked up, and to its addresses after.
//!
//! Responsible for the fixed rules and the user's `allow_hosts` and `deny_hosts`. Does not resolve or dial.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;
use url::{Host, Url};

use super::refusal::{GuardRule, HopRefusal};

/// The largest length of a URL, in bytes.
const MAX_URL: usize = 2048;

/// The only port, unless the policy allows another for the host.
const HTTPS_PORT: u16 = 443;

/// Names that are never public hosts: these and everything below them.
const LOCAL_NAMES: [&str; 13] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "onion",
    "svc",
    "alt",
];

/// Names of metadata services of clouds that look public.
const METADATA_NAMES: [&str; 5] = [
    "metadata.goog",
    "metadata.azure.com",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
];

/// The reason why a text does not name a host or its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostSyntaxError {
    /// The text contains characters of a URL, a pattern or a path.
    #[error(
        "`{text}` is not a host (a URL, a pattern or a path is not allowed here); write `host` or `host:port`"
    )]
    NotOnlyHost {
        /// The text as written.
        text: String,
    },
    /// The port is not a number from 1 to 65535.
    #[error(
        "`{text}` is not a host (the port is a number from 1 to 65535); write `host` or `host:port`"
    )]
    BadPort {
        /// The text as written.
        text: String,
    },
    /// The host cannot be part of a URL.
    #[error("`{text}` is not a host ({source}); write `host` or `host:port`")]
    BadHost {
        /// The text as written.
        text: String,
        /// The reason of the URL parser.
        source: url::ParseError,
    },
    /// The text is not an entry of `--resolve`.
    #[error("`{text}` must be HOST:PORT:ADDRESS, for example beam.apache.org:443:151.101.2.132")]
    BadResolveEntry {
        /// The text as written.
        text: String,
    },
}

/// `host` or `host:port`, normalized like the host of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostRule {
    /// Lower case, Punycode, no trailing dot; an IPv6 address without brackets.
    pub host: String,
    /// The port, if it is written.
    pub port: Option<u16>,
}

impl HostRule {
    /// Parses `host`, `host:port`, `10.0.0.1:8443`, `[::1]`, `[::1]:8443` or `::1`.
    pub fn parse(text: &str) -> Result<Self, HostSyntaxError> {
        // A host pattern or URL here is a misunderstanding, so it is an error and not a rule that never
        // matches.
        if text.contains(|c: char| "/@*?#".contains(c) || c.is_whitespace()) {
            return Err(HostSyntaxError::NotOnlyHost {
                text: text.to_owned(),
            });
        }
        // An IPv6 address contains colons, so it comes before the search for a port.
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self {
                host: ip.to_string(),
                port: None,
            });
        }
        let (host, port) = match text.rsplit_once(':') {
            // The brackets belong to the host: `[::1]` has no port.
            Some((_, port)) if port.ends_with(']') => (text, None),
            Some((host, port)) => {
                let port = port.parse::<u16>().ok().filter(|p| *p > 0);
                (
                    host,
                    Some(port.ok_or_else(|| HostSyntaxError::BadPort {
                        text: text.to_owned(),
                    })?),
                )
            }
            None => (text, None),
        };
        let host = Host::parse(host).map_err(|source| HostSyntaxError::BadHost {
            text: text.to_owned(),
            source,
        })?;
        Ok(Self {
            host: normalize_host(&host),
            port,
        })
    }

    fn covers(&self, name: &str) -> bool {
        let below = name.strip_suffix(self.host.as_str());
        // A rule for `example.org` also covers its subdomains, but not `badexample.org`.
        below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_host_label(
            &self.host,
            self.port.unwrap_or(HTTPS_PORT),
        ))
    }
}

/// Returns a host in the form that rules compare: lower case, without brackets and without the trailing dot.
pub fn normalize_host<S: AsRef<str>>(host: &Host<S>) -> String {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref();
            // A trailing dot names the same host in DNS.
            name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
        }
        Host::Ipv4(ip) => ip.to_string(),
        Host::Ipv6(ip) => ip.to_string(),
    }
}

/// The hosts that a user allows and denies beyond the fixed rules.
#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    /// Exactly these hosts may be private, have a local name, or use another port (443 without a port).
    pub allow: Vec<HostRule>,
    /// These hosts and everything below them are refused (on the rule's port, if it has one). Overrides `allow`.
    pub deny: Vec<HostRule>,
    /// These origins may use http, private addresses, local names and any port. A tool source with `allowPrivate:
    /// true` adds its own origin.
    pub origins: Vec<url::Origin>,
}

/// A URL that passed every check that needs no lookup.
#[derive(Debug, Clone)]
pub(super) struct CheckedUrl {
    /// The URL without its fragment.
    pub(super) url: Url,
    /// The host, as [`normalize_host`] returns it.
    pub(super) name: String,
    /// The address, if the host is an address literal.
    pub(super) literal: Option<IpAddr>,
    pub(super) port: u16,
    /// `true` if `allow` names exactly this host and port, or `origins` its origin. Its addresses then need not be
    /// public.
    pub(super) exempt: bool,
}

impl CheckedUrl {
    /// Returns `host`, or `host:port` if the port is not 443.
    pub(super) fn host_label(&self) -> String {
        format_host_label(&self.name, self.port)
    }

    /// Returns `true` if the other URL has the same origin.
    pub(super) fn is_origin_of(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|other| other.origin() == self.url.origin())
    }
}

fn format_host_label(name: &str, port: u16) -> String {
    match (port, name.contains(':')) {
        (HTTPS_PORT, _) => name.to_owned(),
        (_, true) => format!("[{name}]:{port}"),
        (_, false) => format!("{name}:{port}"),
    }
}

impl AddressPolicy {
    /// Checks the text and the parts of a URL in this order: raw text, parse, scheme, userinfo, name, port.
    pub(super) fn check_url(&self, text: &str) -> Result<CheckedUrl, HopRefusal> {
        // The raw text comes first, because the URL parser drops characters that hide the real host.
        check_raw_text(text)?;
        let mut url = Url::parse(text)
            .map_err(|error| HopRefusal::new(GuardRule::Parse, error.to_string()))?;
        // Compared exactly: another spelling of the host, such as one with a trailing dot, is another origin.
        let opened = self.origins.contains(&url.origin());
        if url.scheme() != "https" && !opened {
            let why = format!(
                "only https URLs are allowed (got scheme '{}')",
                url.scheme()
            );
            let host = url.host().map(|h| normalize_host(&h));
            return Err(HopRefusal {
                host,
                ..HopRefusal::new(GuardRule::Scheme, why)
            });
        }
        let host = url
            .host()
            .map(|h| h.to_owned())
            .ok_or_else(|| HopRefusal::new(GuardRule::Parse, "URL has no hostname"))?;
        // The rules by order of strength: user info, deny list, local names, port.
        let name = normalize_host(&host);
        // Only http and https reach this line, and both have a default port.
        let port = url.port_or_known_default().unwrap_or(HTTPS_PORT);
        let refuse = |rule, why: String, allowable| HopRefusal {
            host: Some(format_host_label(&name, port)),
            allowable,
            ..HopRefusal::new(rule, why)
        };
        // The raw text is checked too, because the parser drops an empty user name.
        if has_userinfo(text) || !url.username().is_empty() || url.password().is_some() {
            return Err(refuse(
                GuardRule::Userinfo,
                "user names and passwords in URLs are refused".to_owned(),
                false,
            ));
        }
        // A rule without a port allows port 443 only.
        let allowed = |r: &HostRule| r.host == name && r.port.unwrap_or(HTTPS_PORT) == port;
        let exempt = opened || self.allow.iter().any(allowed);
        // A deny rule without a port covers all ports.
        let denied = |r: &&HostRule| r.covers(&name) && r.port.is_none_or(|p| p == port);
        if let Some(rule) = self.deny.iter().find(denied) {
            return Err(refuse(
                GuardRule::Name,
                format!("`{}` is in deny_hosts", rule.host),
                false,
            ));
        }
        // Refused before the lookup: a local name is closed, whatever address it resolves to.
        if let (Host::Domain(domain), false) = (&host, exempt)
            && let Some(why) = explain_local_name(&name, domain)
        {
            return Err(refuse(GuardRule::Name, why, true));
        }
        if port != HTTPS_PORT && !exempt {
            return Err(refuse(GuardRule::Port, format!("{port} is not 443"), true));
        }
        let literal = match host {
            Host::Domain(_) => None,
            Host::Ipv4(ip) => Some(IpAddr::V4(ip)),
            Host::Ipv6(ip) => Some(IpAddr::V6(ip)),
        };
        // The fragment stays with the client and is never sent.
        url.set_fragment(None);
        Ok(CheckedUrl {
            url,
            name,
            literal,
            port,
            exempt,
        })
    }

    /// Returns the refusal of a URL that needs no lookup; `None` if no rule refuses it so far.
    pub fn find_refusal(&self, url: &str) -> Option<HopRefusal> {
        let judged = self.check_url(url).and_then(|target| {
            let literal = target.literal;
            literal.map_or(Ok(()), |ip| self.check_address(&target, ip))
        });
        judged.err()
    }

    /// Checks an address: it must be public, not this machine's own, and not denied.
    pub(super) fn check_address(&self, target: &CheckedUrl, ip: IpAddr) -> Result<(), HopRefusal> {
        let refuse = |why: String, allowable| HopRefusal {
            host: Some(target.host_label()),
            address: Some(ip),
            allowable,
            ..HopRefusal::new(GuardRule::Address, why)
        };
        // A rule for an IPv4 address also covers it inside an IPv6 address.
        let text = super::address::unwrap_embedded_ipv4(ip).to_string();
        if self
            .deny
            .iter()
            .any(|r| r.host == text && r.port.is_none_or(|p| p == target.port))
        {
            return Err(refuse(format!("{ip} is in deny_hosts"), false));
        }
        // After the deny list, which overrides `allow`.
        if target.exempt {
            return Ok(());
        }
        if let Some(why) = super::address::find_closed_range(ip) {
            return Err(refuse(format!("{ip} is {why}"), true));
        }
        // A public address of this machine would reach local services that trust it.
        if [ip, super::address::unwrap_embedded_ipv4(ip)]
            .into_iter()
            .any(super::address::is_own_address)
        {
            return Err(refuse(format!("{ip} is this machine's own"), true));
        }
        Ok(())
    }
}

/// Refuses characters and shapes that URL parsers silently drop, fold or read differently.
pub(super) fn check_raw_text(text: &str) -> Result<(), HopRefusal> {
    let refuse = |why: String| Err(HopRefusal::new(GuardRule::RawText, why));
    if text.len() > MAX_URL {
        return refuse(format!("longer than {MAX_URL} bytes"));
    }
    for c in text.chars() {
        let code = c as u32;
        if c.is_control() {
            return refuse(format!("control character U+{code:04X}"));
        }
        if c.is_whitespace() {
            return refuse(format!("white space U+{code:04X}"));
        }
        if c == '\\' {
            return refuse("backslash".to_owned());
        }
        // IDNA drops some of these, and people see none of them.
        if crate::model::is_invisible(c) {
            return refuse(format!("invisible character U+{code:04X}"));
        }
    }
    // The URL parser repairs `https:host` and `https:///host`, so the text would hide its host from a reader.
    for scheme in ["https:", "http:"] {
        let Some(head) = text.get(..scheme.len()) else {
            continue;
        };
        if !head.eq_ignore_ascii_case(scheme) {
            continue;
        }
        let rest = &text[scheme.len()..];
        if !rest.starts_with("//") {
            return refuse(format!("`{head}` without `//`"));
        }
        if rest.starts_with("///") {
            return refuse(format!("`{head}///`"));
        }
    }
    Ok(())
}

/// Returns `true` if the authority of a full or scheme-relative URL contains an `@`. Parsing drops an empty user
/// name.
pub(super) fn has_userinfo(text: &str) -> bool {
    let authority = match (text.strip_prefix("//"), text.split_once("://")) {
        (Some(rest), _) => rest,
        (None, Some((scheme, rest))) if !scheme.contains(['/', '?', '#']) => rest,
        _ => return false,
    };
    let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
    authority[..end].contains('@')
}

fn explain_local_name(name: &str, written: &str) -> Option<String> {
    // The limits of DNS (RFC 1035): 253 characters for a name, 63 for a label.
    let long = name.len() > 253
        || name
            .split('.')
            .any(|label| label.is_empty() || label.len() > 63);
    if long {
        return Some(format!("`{written}` is not a host name"));
    }
    let is_below = |top: &str| {
        name.strip_suffix(top)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if let Some(top) = LOCAL_NAMES.iter().find(|top| is_below(top)) {
        return Some(format!("`{top}` names are local"));
    }
    if METADATA_NAMES.iter().any(|top| is_below(top)) {
        return Some("a cloud's metadata service".to_owned());
    }
    (!name.contains('.')).then(|| "single labels are local".to_owned())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod url_standard;
