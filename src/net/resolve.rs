//! Name resolution, once per hop. It is a trait, so that tests and `--resolve` can replace the answers.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use super::policy::{HostRule, HostSyntaxError};
use crate::clock::BoxFuture;

/// A resolver of host names.
pub trait Resolver: Send + Sync {
    /// Returns all addresses of a name, in the order to try them. A name without addresses is an error or an empty
    /// list.
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, port)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// One entry of `--resolve`: a fixed address of a host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOverride {
    /// The normalized host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address that replaces the resolver's answer.
    pub address: IpAddr,
}

/// Fixed addresses for some names, and another resolver for the rest. The guard checks fixed addresses as well.
#[derive(Clone)]
pub struct OverridingResolver {
    fixed: HashMap<HostPort, Vec<IpAddr>>,
    fallback: Arc<dyn Resolver>,
}

/// A normalized host name and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HostPort {
    host: String,
    port: u16,
}

impl OverridingResolver {
    /// Creates overrides from `--resolve` entries as [`parse_resolve_entry`] returns them. Entries of one host and
    /// port accumulate.
    pub fn new(entries: &[HostOverride], fallback: Arc<dyn Resolver>) -> Self {
        let mut fixed: HashMap<HostPort, Vec<IpAddr>> = HashMap::new();
        for entry in entries {
            let rule = HostRule::parse(&entry.host);
            // The guard asks for normalized names, so an entry that is not normalized would never match.
            let host = rule.map_or_else(|_| entry.host.clone(), |rule| rule.host);
            let key = HostPort {
                host,
                port: entry.port,
            };
            fixed.entry(key).or_default().push(entry.address);
        }
        Self { fixed, fallback }
    }
}

impl Resolver for OverridingResolver {
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let key = HostPort {
            host: host.to_owned(),
            port,
        };
        match self.fixed.get(&key) {
            Some(found) => Box::pin(std::future::ready(Ok(found.clone()))),
            None => self.fallback.lookup(host, port),
        }
    }
}

/// Parses curl's `HOST:PORT:ADDRESS`. Brackets around the address are optional, and HOST is normalized like the host
/// of a URL. Commas separate several addresses, as in curl.
pub fn parse_resolve_entry(text: &str) -> Result<Vec<HostOverride>, HostSyntaxError> {
    let bad = || HostSyntaxError::BadResolveEntry {
        text: text.to_owned(),
    };
    // An IPv6 address in brackets contains colons, so its end is searched first.
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => inner.split_once("]:").ok_or_else(bad)?,
        None => text.split_once(':').ok_or_else(bad)?,
    };
    let (port, addresses) = rest.split_once(':').ok_or_else(bad)?;
    let port = port.parse::<u16>().map_err(|_| bad())?;
    let rule = HostRule::parse(host).map_err(|_| bad())?;
    // The port follows the host as its own part, so the host must not have a second one.
    if rule.port.is_some() {
        return Err(bad());
    }
    addresses
        .split(',')
        .map(|address| {
            let address = address.trim();
            let unbracketed = address
                .strip_prefix('[')
                .and_then(|a| a.strip_suffix(']'))
                .unwrap_or(address);
            let address = unbracketed.parse().map_err(|_| bad())?;
            Ok(HostOverride {
                host: rule.host.clone(),
                port,
                address,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolve_entries_are_parsed_as_in_curl() {
        let one = |t: &str| {
            parse_resolve_entry(t).map(|v| {
                v.into_iter()
                    .map(|entry| (entry.host, entry.port, entry.address.to_string()))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(
            one("Beam.Apache.ORG.:443:10.0.0.1"),
            Ok(vec![("beam.apache.org".into(), 443, "10.0.0.1".into())])
        );
        assert_eq!(
            one("a.test:8443:[::1]"),
            Ok(vec![("a.test".into(), 8443, "::1".into())])
        );
        assert_eq!(
            one("a.test:8443:::1"),
            Ok(vec![("a.test".into(), 8443, "::1".into())])
        );
        assert_eq!(one("a.test:443:10.0.0.1,10.0.0.2").map(|v| v.len()), Ok(2));
        for bad in [
            "",
            "a.test",
            "a.test:443",
            "a.test:x:1.1.1.1",
            "a.test:443:b.test",
            "a/b:443:1.1.1.1",
        ] {
            assert!(parse_resolve_entry(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn overrides_accumulate_per_host_and_port() {
        struct Nothing;
        impl Resolver for Nothing {
            fn lookup<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
                Box::pin(std::future::ready(Ok(vec![])))
            }
        }
        let entries =
            [("A.test", "1.1.1.1"), ("a.test", "1.0.0.1")].map(|(host, address)| HostOverride {
                host: host.to_owned(),
                port: 443,
                address: address.parse().unwrap(),
            });
        let resolver = OverridingResolver::new(&entries, Arc::new(Nothing));
        assert_eq!(resolver.lookup("a.test", 443).await.unwrap().len(), 2);
        assert_eq!(resolver.lookup("a.test", 8443).await.unwrap().len(), 0);
        assert_eq!(resolver.lookup("b.test", 443).await.unwrap().len(), 0);
    }
}
