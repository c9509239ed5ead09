//! The secrets in a server's settings, and the display of settings without them.

use std::ops::Range;

use url::Url;

use super::config::{McpAddress, McpConfig, McpEndpoint, McpProgram};
use crate::model::is_secret_name;
use crate::tools::secret_args::{find_argument_secret, list_argument_secrets};

/// The headers whose values are not secret. Any other header may hold a secret, whatever its name is.
const HARMLESS_HEADERS: [&str; 4] = ["user-agent", "accept-language", "origin", "referer"];

/// A setting that changes what a server's tools return.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DigestedSetting<'c> {
    /// The place and the name: `env`, `TOKEN`.
    pub(super) name: [&'c str; 2],
    pub(super) value: DigestedValue<'c>,
}

/// The value of a setting.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DigestedValue<'c> {
    Public(&'c str),
    /// A value that may be secret. A recorded digest must omit it. A digest under the installation's secret may
    /// contain it.
    Secret(&'c str),
}

impl<'c> DigestedSetting<'c> {
    fn new(name: [&'c str; 2], value: &'c str, is_secret: bool) -> Self {
        let value = if is_secret {
            DigestedValue::Secret(value)
        } else {
            DigestedValue::Public(value)
        };
        Self { name, value }
    }
}

impl McpConfig {
    /// Returns the texts that dicta must never record.
    pub(super) fn secrets(&self) -> Vec<String> {
        let named = |(name, value): (&String, &String)| is_secret_name(name).then(|| value.clone());
        let mut found: Vec<String> = match &self.address {
            McpAddress::Program(program) => {
                let mut found: Vec<String> = program.env.iter().filter_map(named).collect();
                // The part after the first `=` of `--token=abc` is the secret, not the whole argument.
                for (arg, secret) in program.classify_args() {
                    let assigned = list_argument_secrets(arg, is_secret_name);
                    if assigned.is_empty() {
                        found.extend(secret.map(|secret| arg[secret].to_owned()));
                    }
                    found.extend(assigned);
                }
                found
            }
            McpAddress::Endpoint(endpoint) => {
                let headers = endpoint
                    .headers
                    .iter()
                    .filter(|(name, _)| !is_harmless_header(name));
                let query = endpoint.url.query_pairs();
                headers
                    .map(|(_, value)| value.clone())
                    .chain(
                        query
                            .filter(|(name, _)| is_secret_name(name))
                            .map(|(_, v)| v.into_owned()),
                    )
                    .collect()
            }
        };
        // In a header, the part after the scheme is the secret.
        let tokens: Vec<String> = found
            .iter()
            .filter_map(|value| value.split_once(' '))
            .filter(|(scheme, _)| {
                ["bearer", "basic", "token"].contains(&scheme.to_ascii_lowercase().as_str())
            })
            .map(|(_, rest)| rest.trim().to_owned())
            .collect();
        // Redact the whole header value and its token alone: either may appear in an error text.
        found.extend(tokens);
        found
    }

    /// Returns everything that the server receives and [`Self::redacted_address`] omits, with names: variables of its
    /// environment, headers, and secret arguments and query parameters.
    pub(super) fn secrets_outside_address(&self) -> Vec<(String, String)> {
        let named = self.named_values().into_iter();
        let mut found: Vec<(String, String)> = named
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        match &self.address {
            McpAddress::Program(program) => {
                let args = program.classify_args().into_iter().zip(0_usize..);
                let secret = args.filter(|((_, secret), _)| secret.is_some());
                found.extend(
                    secret.map(|((arg, _), at)| (format!("argument {at}"), arg.to_owned())),
                );
            }
            McpAddress::Endpoint(endpoint) => {
                let query = endpoint.url.query_pairs();
                let secret = query.filter(|(name, _)| is_secret_name(name));
                found.extend(secret.map(|(name, value)| (name.into_owned(), value.into_owned())));
            }
        }
        found
    }

    /// Returns what the server receives by name: the variables of a program, or the headers of an endpoint.
    fn named_values(&self) -> Vec<(&str, &str)> {
        match &self.address {
            McpAddress::Program(program) => {
                let env = program.env.iter();
                env.map(|(name, value)| (&**name, &**value)).collect()
            }
            McpAddress::Endpoint(endpoint) => {
                let headers = endpoint.headers.iter();
                headers.map(|(name, value)| (&**name, &**value)).collect()
            }
        }
    }

    /// Returns the settings, except the address, that change what the tools return, in a fixed order: the variables and
    /// the folder of a program, or the headers of an endpoint.
    pub(super) fn digested_settings(&self) -> Vec<DigestedSetting<'_>> {
        let named = self.named_values().into_iter();
        let mut all: Vec<DigestedSetting<'_>> = match &self.address {
            McpAddress::Program(program) => {
                let env = named.map(|(name, value)| {
                    DigestedSetting::new(["env", name], value, is_secret_name(name))
                });
                let cwd = DigestedSetting::new(["cwd", ""], &program.cwd_as_written, false);
                env.chain([cwd]).collect()
            }
            McpAddress::Endpoint(_) => named
                .map(|(name, value)| {
                    DigestedSetting::new(["header", name], value, !is_harmless_header(name))
                })
                .collect(),
        };
        // The order of variables and headers changes nothing.
        all.sort_unstable();
        all
    }

    /// Returns the address without secrets, for people and for digests.
    pub(super) fn redacted_address(&self) -> String {
        match &self.address {
            McpAddress::Program(program) => {
                let mut text = program.command.clone();
                for (arg, secret) in program.classify_args() {
                    text.push(' ');
                    match secret {
                        None => text.push_str(arg),
                        Some(secret) => {
                            text.push_str(&arg[..secret.start]);
                            text.push('…');
                            text.push_str(&arg[secret.end..]);
                        }
                    }
                }
                text
            }
            McpAddress::Endpoint(endpoint) => redact_url(&endpoint.url),
        }
    }
}

fn is_harmless_header(name: &str) -> bool {
    HARMLESS_HEADERS
        .iter()
        .any(|harmless| harmless.eq_ignore_ascii_case(name))
}

impl McpProgram {
    /// Returns the arguments, each with the range of its secret: in `--token=…`, or the argument after `--token`.
    fn classify_args(&self) -> Vec<(&str, Option<Range<usize>>)> {
        let mut follows = false;
        let mut all = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            // `--token abc` is a flag and its value; `TOKEN=abc` is an assignment without a dash.
            let flag = arg.starts_with('-');
            let secret = if follows && !flag {
                Some(0..arg.len())
            } else {
                find_argument_secret(arg, is_secret_name)
            };
            follows = flag && !arg.contains('=') && is_secret_name(arg);
            all.push((arg.as_str(), secret));
        }
        all
    }
}

impl std::fmt::Debug for McpEndpoint {
    /// Formats the endpoint without headers, which may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &redact_url(&self.url))
            .finish_non_exhaustive()
    }
}

/// Returns a URL without query parameters that may be secret.
pub(super) fn redact_url(url: &Url) -> String {
    // The fragment never reaches the server, so it does not belong to the address.
    let mut plain = url.clone();
    plain.set_fragment(None);
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| !is_secret_name(name))
        .map(|(n, v)| (n.into_owned(), v.into_owned()))
        .collect();
    plain.set_query(None);
    if !kept.is_empty() {
        plain.query_pairs_mut().extend_pairs(kept);
    }
    plain.into()
}
