//! What may be asked for, judged on the text and the parts of a URL, before any name is looked up.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::refusal::{Refusal, Rule};

/// Longest URL taken, in bytes.
const MAX_URL: usize = 2048;

/// The only port, unless a host is allowed another.
const HTTPS: u16 = 443;

/// Names that never are public hosts: themselves and everything below.
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

/// Public-looking names of clouds' metadata services.
const METADATA_NAMES: [&str; 5] = [
    "metadata.goog",
    "metadata.azure.com",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
];

/// `host` or `host:port`, normalised as a URL's host is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostRule {
    /// Lower case, Punycode, no trailing dot; an IPv6 address without brackets.
    pub host: String,
    /// `None`: as written, without one.
    pub port: Option<u16>,
}

impl HostRule {
    /// Reads `host`, `host:port`, `10.0.0.1:8443`, `[::1]`, `[::1]:8443` or `::1`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("`{text}` is no host ({why}); write `host` or `host:port`");
        if text.contains("//")
            || text.contains(['/', '@', '*', '?', '#'])
            || text.contains(char::is_whitespace)
        {
            return Err(bad("a URL, pattern or path cannot stand here"));
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self {
                host: ip.to_string(),
                port: None,
            });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((_, port)) if port.ends_with(']') => (text, None),
            Some((host, port)) => {
                let port = port.parse::<u16>().ok().filter(|p| *p > 0);
                (
                    host,
                    Some(port.ok_or_else(|| bad("the port is a number from 1 to 65535"))?),
                )
            }
            None => (text, None),
        };
        let host = Host::parse(host).map_err(|error| bad(&error.to_string()))?;
        Ok(Self {
            host: host_name(&host),
            port,
        })
    }

    fn covers(&self, name: &str) -> bool {
        let below = name.strip_suffix(self.host.as_str());
        below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&label(&self.host, self.port.unwrap_or(HTTPS)))
    }
}

/// A host as rules and [`crate::tools::Seen`] compare it: without brackets and without the trailing dot.
pub fn host_name<S: AsRef<str>>(host: &Host<S>) -> String {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref();
            name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
        }
        Host::Ipv4(ip) => ip.to_string(),
        Host::Ipv6(ip) => ip.to_string(),
    }
}

/// What a user allows and denies beyond the fixed rules.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Exactly these may be private, local by name, or on another port (443 where none is written).
    pub allow: Vec<HostRule>,
    /// These and everything below them are refused (on that port, where one is written). Stronger than `allow`.
    pub deny: Vec<HostRule>,
    /// These origins may be http, private, local by name and on any port: a source says `allowPrivate: true` for its own.
    pub origins: Vec<url::Origin>,
}

/// A URL that passed everything that needs no lookup.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Without fragment.
    pub(super) url: Url,
    /// As [`host_name`] gives it.
    pub(super) name: String,
    /// The address, where the host is one.
    pub(super) literal: Option<IpAddr>,
    pub(super) port: u16,
    /// Whether `allow` names exactly this host and port, or `origins` its origin: its addresses need not be public.
    pub(super) exempt: bool,
}

impl Target {
    /// `host`, or `host:port` where the port is not 443.
    pub(super) fn label(&self) -> String {
        label(&self.name, self.port)
    }

    /// Whether that URL is of the same origin.
    pub(super) fn is_origin_of(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|other| other.origin() == self.url.origin())
    }
}

fn label(name: &str, port: u16) -> String {
    match (port, name.contains(':')) {
        (HTTPS, _) => name.to_owned(),
        (_, true) => format!("[{name}]:{port}"),
        (_, false) => format!("{name}:{port}"),
    }
}

impl Policy {
    /// Judges a URL as text and parts, in the order raw text, parse, scheme, userinfo, name, port.
    pub(super) fn check(&self, text: &str) -> Result<Target, Refusal> {
        raw_text(text)?;
        let mut url =
            Url::parse(text).map_err(|error| Refusal::new(Rule::Parse, error.to_string()))?;
        // Exactly these: another spelling of the host, such as one with a trailing dot, is another origin.
        let opened = self.origins.contains(&url.origin());
        if url.scheme() != "https" && !opened {
            let why = format!(
                "only https URLs are allowed (got scheme '{}')",
                url.scheme()
            );
            let host = url.host().map(|h| host_name(&h));
            return Err(Refusal {
                host,
                ..Refusal::new(Rule::Scheme, why)
            });
        }
        let host = url
            .host()
            .map(|h| h.to_owned())
            .ok_or_else(|| Refusal::new(Rule::Parse, "URL has no hostname"))?;
        let name = host_name(&host);
        let port = url.port_or_known_default().unwrap_or(HTTPS);
        let refuse = |rule, why: String, allowable| Refusal {
            host: Some(label(&name, port)),
            allowable,
            ..Refusal::new(rule, why)
        };
        if has_userinfo(text) || !url.username().is_empty() || url.password().is_some() {
            return Err(refuse(
                Rule::Userinfo,
                "user names and passwords in URLs are refused".to_owned(),
                false,
            ));
        }
        let allowed = |r: &HostRule| r.host == name && r.port.unwrap_or(HTTPS) == port;
        let exempt = opened || self.allow.iter().any(allowed);
        let denied = |r: &&HostRule| r.covers(&name) && r.port.is_none_or(|p| p == port);
        if let Some(rule) = self.deny.iter().find(denied) {
            return Err(refuse(
                Rule::Name,
                format!("`{}` stands in deny_hosts", rule.host),
                false,
            ));
        }
        if let (Host::Domain(domain), false) = (&host, exempt)
            && let Some(why) = why_not_a_public_name(&name, domain)
        {
            return Err(refuse(Rule::Name, why, true));
        }
        if port != HTTPS && !exempt {
            return Err(refuse(Rule::Port, format!("{port} is not 443"), true));
        }
        let literal = match host {
            Host::Domain(_) => None,
            Host::Ipv4(ip) => Some(IpAddr::V4(ip)),
            Host::Ipv6(ip) => Some(IpAddr::V6(ip)),
        };
        url.set_fragment(None);
        Ok(Target {
            url,
            name,
            literal,
            port,
            exempt,
        })
    }

    /// Judges an address that was looked up or written: public, not this machine's own, not denied.
    pub(super) fn check_address(&self, target: &Target, ip: IpAddr) -> Result<(), Refusal> {
        let refuse = |why: String, allowable| Refusal {
            host: Some(target.label()),
            address: Some(ip),
            allowable,
            ..Refusal::new(Rule::Address, why)
        };
        let text = super::address::unwrap_embedded(ip).to_string();
        if self
            .deny
            .iter()
            .any(|r| r.host == text && r.port.is_none_or(|p| p == target.port))
        {
            return Err(refuse(format!("{ip} stands in deny_hosts"), false));
        }
        if target.exempt {
            return Ok(());
        }
        if let Some(why) = super::address::why_closed(ip) {
            return Err(refuse(format!("{ip} is {why}"), true));
        }
        if [ip, super::address::unwrap_embedded(ip)]
            .into_iter()
            .any(super::address::is_own)
        {
            return Err(refuse(format!("{ip} is this machine's own"), true));
        }
        Ok(())
    }
}

/// Refuses on the text what parsers silently drop, fold or read differently.
pub(super) fn raw_text(text: &str) -> Result<(), Refusal> {
    let refuse = |why: String| Err(Refusal::new(Rule::RawText, why));
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
        if is_invisible(c) {
            return refuse(format!("invisible character U+{code:04X}"));
        }
    }
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

/// What IDNA drops or people do not see: more than a terminal hides, since a URL has no use for any of it.
fn is_invisible(c: char) -> bool {
    crate::model::is_invisible(c) || matches!(c, '\u{fe0f}' | '\u{fff0}'..='\u{fff8}')
}

/// Whether the authority of a full or scheme-relative URL holds an `@`. Parsing forgets an empty one.
pub(super) fn has_userinfo(text: &str) -> bool {
    let authority = match (text.strip_prefix("//"), text.split_once("://")) {
        (Some(rest), _) => rest,
        (None, Some((scheme, rest))) if !scheme.contains(['/', '?', '#']) => rest,
        _ => return false,
    };
    let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
    authority[..end].contains('@')
}

fn why_not_a_public_name(name: &str, written: &str) -> Option<String> {
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
mod tests {
    use super::*;

    fn rule(text: &str) -> Option<Rule> {
        Policy::default().check(text).err().map(|r| r.rule)
    }

    #[test]
    fn the_first_rule_that_refuses_names_itself() {
        let cases = [
            ("https://a b.example.org/", Rule::RawText),
            ("https:\\\\example.org/", Rule::RawText),
            ("https:example.org", Rule::RawText),
            ("HTTPS:///example.org", Rule::RawText),
            ("http:/example.org", Rule::RawText),
            ("https://exam\u{ad}ple.org/", Rule::RawText),
            ("beam.apache.org", Rule::Parse),
            ("https://", Rule::Parse),
            ("https://[::1/", Rule::Parse),
            ("https://example.org:99999/", Rule::Parse),
            ("http://user@localhost:80/", Rule::Scheme),
            ("file:///etc/passwd", Rule::Scheme),
            ("ftp://example.org/", Rule::Scheme),
            ("data:text/plain,x", Rule::Scheme),
            ("https://user:pw@localhost/", Rule::Userinfo),
            ("https://@example.org/", Rule::Userinfo),
            ("https://:@example.org/", Rule::Userinfo),
            ("https://localhost:8443/", Rule::Name),
            ("https://localhost./", Rule::Name),
            ("https://a.LOCALHOST/", Rule::Name),
            ("https://printer.local/", Rule::Name),
            ("https://metadata.google.internal/", Rule::Name),
            ("https://metadata/", Rule::Name),
            ("https://metadata.goog./", Rule::Name),
            ("https://router/", Rule::Name),
            ("https://x.home.arpa/", Rule::Name),
            ("https://example.org:8443/", Rule::Port),
            ("https://10.0.0.1:80/", Rule::Port),
            ("https://example.org:0/", Rule::Port),
        ];
        for (text, expected) in cases {
            assert_eq!(rule(text), Some(expected), "{text}");
        }
        for text in [
            "https://beam.apache.org/x?y=a@b#z",
            "https://example.org:443/",
            "HTTPS://Example.ORG./",
            "https://10.0.0.1/",
        ] {
            assert_eq!(rule(text), None, "{text}");
        }
    }

    #[test]
    fn an_allowed_host_opens_exactly_its_port() {
        let policy = Policy {
            allow: [
                "127.0.0.1:8443",
                "localhost:9000",
                "wiki.corp",
                "[::1]:8443",
            ]
            .map(|t| HostRule::parse(t).unwrap())
            .into(),
            deny: vec![],
            origins: vec![],
        };
        for open in [
            "https://127.0.0.1:8443/",
            "https://LOCALHOST.:9000/",
            "https://wiki.corp/",
            "https://0x7f000001:8443/",
            "https://[::1]:8443/",
        ] {
            assert!(policy.check(open).is_ok_and(|t| t.exempt), "{open}");
        }
        for shut in [
            "https://127.0.0.1:8444/",
            "https://localhost/",
            "https://wiki.corp:8443/",
            "https://a.wiki.corp/",
            "http://wiki.corp/",
        ] {
            assert!(policy.check(shut).is_err(), "{shut}");
        }
        let plain = policy
            .check("https://127.0.0.1/")
            .expect("a literal passes until its address is judged");
        let refusal = policy
            .check_address(&plain, plain.literal.unwrap())
            .unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "address: 127.0.0.1 is loopback (127.0.0.0/8)"
        );
    }

    #[test]
    fn denied_hosts_cover_what_is_below_them_and_their_addresses() {
        let policy = Policy {
            allow: vec![HostRule::parse("evil.example").unwrap()],
            deny: ["evil.example", "93.184.216.34"]
                .map(|t| HostRule::parse(t).unwrap())
                .into(),
            origins: vec![],
        };
        for text in ["https://evil.example/", "https://a.evil.example/"] {
            assert_eq!(policy.check(text).unwrap_err().rule, Rule::Name, "{text}");
        }
        let fine = policy
            .check("https://notevil.example/")
            .expect("another name");
        for ip in ["93.184.216.34", "::ffff:93.184.216.34"] {
            assert!(
                policy.check_address(&fine, ip.parse().unwrap()).is_err(),
                "{ip}"
            );
        }
    }

    #[test]
    fn host_rules_read_every_spelling_of_a_host_and_nothing_else() {
        let parsed = |t: &str| HostRule::parse(t).map(|r| (r.host, r.port));
        assert_eq!(
            parsed("Beam.Apache.org."),
            Ok(("beam.apache.org".into(), None))
        );
        assert_eq!(
            parsed("bücher.example:8443"),
            Ok(("xn--bcher-kva.example".into(), Some(8443)))
        );
        assert_eq!(parsed("[::1]:8443"), Ok(("::1".into(), Some(8443))));
        assert_eq!(parsed("::1"), Ok(("::1".into(), None)));
        assert_eq!(parsed("127.1:80"), Ok(("127.0.0.1".into(), Some(80))));
        for bad in [
            "",
            "https://a.b",
            "*.a.b",
            "a.b/c",
            "a.b:0",
            "a.b:x",
            "u@a.b",
        ] {
            assert!(HostRule::parse(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_asked_for_only_https_on_443_passes(
            text in r"(https?:)?[/\\]{0,3}[a-z0-9.@:%\[\]x\u{ad}\u{ff0e}-]{0,24}[/?#]?\PC{0,8}"
        ) {
            if let Ok(target) = Policy::default().check(&text) {
                proptest::prop_assert_eq!((target.url.scheme(), target.port), ("https", 443));
                proptest::prop_assert!(target.url.username().is_empty() && !target.exempt);
                proptest::prop_assert!(target.literal.is_some() || target.name.contains('.'));
            }
        }
    }
}
