//! The refusals of the guard. The first rule that refuses is reported; the order of [`GuardRule`] is the order of the
//! checks.

use std::fmt;
use std::net::IpAddr;

/// The rule that refuses a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuardRule {
    /// Characters and shapes that parsers read differently, on the text as given.
    RawText,
    /// Not a URL.
    Parse,
    /// The scheme is not https.
    Scheme,
    /// `user:password@`, an empty one included.
    Userinfo,
    /// A local or metadata name, a single label, a name in `deny_hosts`.
    Name,
    /// The port is not 443.
    Port,
    /// The name has no address.
    Resolve,
    /// An address that is not public.
    Address,
    /// More redirects than allowed.
    Redirects,
}

impl GuardRule {
    /// Returns the rule's name in reasons.
    pub fn as_str(self) -> &'static str {
        match self {
            GuardRule::RawText => "raw text",
            GuardRule::Parse => "parse",
            GuardRule::Scheme => "scheme",
            GuardRule::Userinfo => "userinfo",
            GuardRule::Name => "name",
            GuardRule::Port => "port",
            GuardRule::Resolve => "unresolvable",
            GuardRule::Address => "address",
            GuardRule::Redirects => "redirects",
        }
    }
}

/// A refusal of one hop. Nothing was dialled for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopRefusal {
    /// The rule that refused.
    pub rule: GuardRule,
    /// The reason in a few words: `10.0.0.1 is private (10.0.0.0/8)`.
    pub why: String,
    /// The normalized host, if the text had one, with its port if that is not 443.
    pub host: Option<String>,
    /// The address that was refused.
    pub address: Option<IpAddr>,
    /// `true` if an `allow_hosts` entry for `host` would allow it.
    pub allowable: bool,
}

impl HopRefusal {
    pub(super) fn new(rule: GuardRule, why: impl Into<String>) -> Self {
        Self {
            rule,
            why: why.into(),
            host: None,
            address: None,
            allowable: false,
        }
    }
}

impl fmt::Display for HopRefusal {
    /// Writes the text of a hop's `refused` field: `unresolvable`, or `address: 10.0.0.1 is private (10.0.0.0/8)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            GuardRule::Resolve => f.write_str(self.rule.as_str()),
            rule => write!(f, "{}: {}", rule.as_str(), self.why),
        }
    }
}
