//! The settings of `fetch_url` in a judge's `tools:` entry, read strictly.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde_json::Value;
use thiserror::Error;

use crate::diag::find_nearest;
use crate::model::{JudgeTool, Millis};
use crate::net::{AddressPolicy, HostRule, HostSyntaxError, TlsConfigError};
use crate::schema::SchemaError;

/// The tool's name.
pub const FETCH_URL: &str = "fetch_url";

/// The seen rule: the URLs that a judge may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeenRule {
    /// URLs that occur in the transcript, the rubric or a fetched page. The default, because a URL that a model writes can
    /// carry text to its server.
    Url,
    /// URLs whose host occurs there.
    Host,
    /// All URLs.
    Off,
}

impl SeenRule {
    /// Returns the value in files.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Host => "host",
            Self::Off => "off",
        }
    }

    fn parse(value: &Value) -> Option<Self> {
        match value {
            // YAML 1.1 readers convert a bare `off` to false.
            Value::Bool(false) => Some(Self::Off),
            Value::String(text) => [Self::Url, Self::Host, Self::Off]
                .into_iter()
                .find(|rule| rule.as_str() == text),
            _ => None,
        }
    }

    /// Returns a warning if the rule allows URLs that a model writes.
    pub(super) const fn warning(self) -> Option<&'static str> {
        match self {
            Self::Url => None,
            Self::Host => Some(
                "`seen: host`: the judge may write any path and query of a host that it has seen",
            ),
            Self::Off => Some("`seen: off`: the judge may open any public address"),
        }
    }
}

/// Returns the loosened seen rule of a judge's `fetch_url` as written, such as `seen: host`. `None` if no such setting
/// exists.
pub fn loosened_seen_rule(tools: &[JudgeTool]) -> Option<String> {
    let fetch = tools.iter().find(|tool| tool.name == FETCH_URL)?;
    let rule = SeenRule::parse(fetch.settings.get("seen")?)?;
    rule.warning()?;
    Some(format!("seen: {}", rule.as_str()))
}

/// The settings of `fetch_url`.
#[derive(Debug, Clone)]
pub(super) struct FetchUrlConfig {
    /// The limit of the text that the language model gets, in bytes.
    pub(super) max_bytes: usize,
    /// The time limit of the whole fetch.
    pub(super) timeout: Millis,
    pub(super) policy: AddressPolicy,
    pub(super) seen_rule: SeenRule,
    /// A file with certificates to trust in addition to the system's.
    pub(super) ca_file: Option<PathBuf>,
    /// The number of calls that one judge trace may make.
    pub(super) max_calls: u32,
}

impl Default for FetchUrlConfig {
    fn default() -> Self {
        Self {
            max_bytes: 50_000,
            timeout: Millis::from_secs(10),
            policy: AddressPolicy::default(),
            seen_rule: SeenRule::Url,
            ca_file: None,
            max_calls: 20,
        }
    }
}

const KNOWN_KEYS: [&str; 7] = [
    "max_bytes",
    "timeout_s",
    "allow_hosts",
    "deny_hosts",
    "seen",
    "ca_file",
    "max_calls",
];

/// The upper limit of `timeout`, in seconds.
const MAX_TIMEOUT_S: f64 = 600.0;

/// The upper limit of `max_bytes`.
const MAX_MAX_BYTES: u64 = 2 << 20;

/// A reason why `fetch_url` cannot be built from a judge's settings.
#[derive(Debug, Error)]
pub enum FetchUrlError {
    /// The setting has a value that it does not accept.
    #[error("fetch_url: {key} must be {expected} (got {got})")]
    InvalidValue {
        /// The setting.
        key: String,
        /// The values that it accepts.
        expected: &'static str,
        /// The value as JSON.
        got: Value,
    },
    /// A host of the setting is not a text.
    #[error("fetch_url: {key} must hold hosts as text (got {got})")]
    HostNotText {
        /// The setting.
        key: String,
        /// The value as JSON.
        got: Value,
    },
    /// A host of the setting is malformed.
    #[error("fetch_url: {key}: {source}")]
    InvalidHost {
        /// The setting.
        key: String,
        /// The problem of the host.
        source: HostSyntaxError,
    },
    /// The tool has no such setting.
    #[error("fetch_url: unknown setting `{key}`; {hint}")]
    UnknownSetting {
        /// The setting as written.
        key: String,
        /// The nearest setting as a question, or a list of all settings.
        hint: String,
    },
    /// The file of `ca_file` cannot be read.
    #[error("fetch_url: ca_file {}: {source}", path.display())]
    UnreadableCaFile {
        /// The path as written.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file of `ca_file` contains no usable certificates.
    #[error("fetch_url: ca_file {}: {source}", path.display())]
    InvalidCaFile {
        /// The path as written.
        path: PathBuf,
        /// The problem of the file.
        source: TlsConfigError,
    },
    /// The tool's own schema does not compile.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl FetchUrlConfig {
    /// Reads the settings of a judge's `tools:` entry. Returns all problems at once.
    pub(super) fn read(settings: &IndexMap<String, Value>) -> Result<Self, Vec<FetchUrlError>> {
        // All problems are collected, so that a user can fix them at once.
        let mut read = Self::default();
        let mut problems = Vec::new();
        for (key, value) in settings {
            let bad = |expected: &'static str| FetchUrlError::InvalidValue {
                key: key.clone(),
                expected,
                got: value.clone(),
            };
            match key.as_str() {
                "max_bytes" => match value
                    .as_u64()
                    .filter(|n| (1..=MAX_MAX_BYTES).contains(n))
                    .map(usize::try_from)
                {
                    Some(Ok(n)) => read.max_bytes = n,
                    _ => problems.push(bad("a number of bytes from 1 to 2097152")),
                },
                "timeout_s" => match value.as_f64().filter(|s| *s > 0.0 && *s <= MAX_TIMEOUT_S) {
                    // A timeout below one millisecond would round to zero and always expire.
                    Some(secs) => read.timeout = Millis::from_secs_f64(secs).max(Millis(1)),
                    None => problems.push(bad("a number of seconds above 0, at most 600")),
                },
                "allow_hosts" => read.policy.allow = parse_host_rules(key, value, &mut problems),
                "deny_hosts" => read.policy.deny = parse_host_rules(key, value, &mut problems),
                "seen" => match SeenRule::parse(value) {
                    Some(rule) => read.seen_rule = rule,
                    None => problems.push(bad("url, host or off")),
                },
                "ca_file" => match value.as_str().filter(|s| !s.is_empty()) {
                    Some(path) => read.ca_file = Some(path.into()),
                    None => problems.push(bad("the path of a PEM file")),
                },
                "max_calls" => match value.as_u64().map(u32::try_from) {
                    Some(Ok(n @ 1..=1000)) => read.max_calls = n,
                    _ => problems.push(bad("a number of calls from 1 to 1000")),
                },
                unknown => {
                    let hint = match find_nearest(unknown, KNOWN_KEYS) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("it has {}", KNOWN_KEYS.join(", ")),
                    };
                    problems.push(FetchUrlError::UnknownSetting {
                        key: unknown.to_owned(),
                        hint,
                    });
                }
            }
        }
        if problems.is_empty() {
            Ok(read)
        } else {
            Err(problems)
        }
    }
}

fn parse_host_rules(key: &str, value: &Value, problems: &mut Vec<FetchUrlError>) -> Vec<HostRule> {
    let Value::Array(items) = value else {
        problems.push(FetchUrlError::InvalidValue {
            key: key.to_owned(),
            expected: "a list of hosts",
            got: value.clone(),
        });
        return Vec::new();
    };
    let mut rules = Vec::with_capacity(items.len());
    for item in items {
        match item.as_str().map(HostRule::parse) {
            Some(Ok(rule)) => rules.push(rule),
            Some(Err(source)) => problems.push(FetchUrlError::InvalidHost {
                key: key.to_owned(),
                source,
            }),
            None => problems.push(FetchUrlError::HostNotText {
                key: key.to_owned(),
                got: item.clone(),
            }),
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(yaml_as_json: Value) -> Result<FetchUrlConfig, Vec<FetchUrlError>> {
        FetchUrlConfig::read(&serde_json::from_value(yaml_as_json).unwrap())
    }

    #[test]
    fn settings_override_the_default_policy() {
        let plain = read(serde_json::json!({})).unwrap();
        assert_eq!(
            (plain.max_bytes, plain.timeout, plain.seen_rule),
            (50_000, Millis(10_000), SeenRule::Url)
        );
        let set = read(serde_json::json!({"max_bytes": 10, "timeout_s": 1.5, "seen": "host", "allow_hosts": ["127.0.0.1:8443"], "deny_hosts": ["a.b"], "ca_file": "ca.pem"})).unwrap();
        assert_eq!(
            (set.max_bytes, set.timeout, set.seen_rule),
            (10, Millis(1500), SeenRule::Host)
        );
        assert_eq!(
            set.policy.allow,
            [HostRule {
                host: "127.0.0.1".into(),
                port: Some(8443)
            }]
        );
    }

    #[test]
    fn only_a_loosened_seen_rule_is_named() {
        let tool = |settings: Value| {
            let settings = serde_json::from_value(settings).unwrap();
            let name = FETCH_URL.to_owned();
            [JudgeTool { name, settings }]
        };
        for (settings, expected) in [
            (serde_json::json!({}), None),
            (serde_json::json!({"seen": "url"}), None),
            (serde_json::json!({"seen": "host"}), Some("seen: host")),
            (serde_json::json!({"seen": "off"}), Some("seen: off")),
            (serde_json::json!({"seen": false}), Some("seen: off")),
        ] {
            assert_eq!(loosened_seen_rule(&tool(settings)).as_deref(), expected);
        }
        assert_eq!(loosened_seen_rule(&[]), None);
    }

    #[test]
    fn all_setting_problems_are_reported_with_suggestions() {
        let problems = read(serde_json::json!({"timeout": 3, "max_bytes": 0, "seen": "maybe", "allow_hosts": "a.b", "deny_hosts": ["https://x", 3], "zzz": 1})).unwrap_err();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "fetch_url: unknown setting `timeout`; did you mean `timeout_s`?",
                "fetch_url: max_bytes must be a number of bytes from 1 to 2097152 (got 0)",
                "fetch_url: seen must be url, host or off (got \"maybe\")",
                "fetch_url: allow_hosts must be a list of hosts (got \"a.b\")",
                "fetch_url: deny_hosts: `https://x` is not a host (a URL, a pattern or a path is not allowed here); write `host` or `host:port`",
                "fetch_url: deny_hosts must hold hosts as text (got 3)",
                "fetch_url: unknown setting `zzz`; it has max_bytes, timeout_s, allow_hosts, deny_hosts, seen, ca_file, max_calls",
            ]
        );
    }
}
