//! The keys of a `postgres` source: server, user, and connection security.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::sql::read_timeout;
use crate::diag::yaml::{MappingDecoder, describe_value};
use crate::model::Millis;

const DEFAULT_PORT: u16 = 5432;
const DEFAULT_CONNECT_TIMEOUT: Millis = Millis::from_secs(10);

/// A `postgres` source as its file declares it.
pub(super) struct PostgresConfig {
    /// A host name, an address, or the folder of the server's socket.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Option<String>,
    pub(super) database: String,
    pub(super) tls: TlsPolicy,
    /// The time limit of name lookup, TCP, TLS and login together.
    pub(super) connect_timeout: Millis,
    pub(super) application_name: String,
    /// The settings of the session, in the syntax of the server's command line.
    pub(super) options: Vec<String>,
    pub(super) writable: bool,
    pub(super) timeout: Millis,
}

/// The value of `sslmode`, as in libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SslModeSetting {
    Disable,
    Prefer,
    Require,
    VerifyFull,
    VerifyCa,
    Allow,
}

/// The security of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TlsPolicy {
    Off,
    /// TLS if the server supports it, with any certificate.
    Prefer,
    /// TLS with any certificate.
    Require,
    /// TLS with a certificate for this host, from an authority of the system or of this file.
    Verified(Option<PathBuf>),
}

const SSL_MODES: &[(&str, SslModeSetting)] = &[
    ("disable", SslModeSetting::Disable),
    ("prefer", SslModeSetting::Prefer),
    ("require", SslModeSetting::Require),
    ("verify-full", SslModeSetting::VerifyFull),
    ("verify-ca", SslModeSetting::VerifyCa),
    ("allow", SslModeSetting::Allow),
];

impl PostgresConfig {
    /// Reads the keys. Returns `None` after it reported a problem.
    pub(super) fn read(fields: &mut MappingDecoder<'_>, folder: &Path) -> Option<Self> {
        // All missing keys are reported together.
        for key in ["host", "user", "database"] {
            if !fields.has(key) {
                fields.error_at_mapping("missing", format!("a postgres source needs `{key}`"));
            }
        }
        let host = fields.text("host");
        // Each key is read before the first early return, so that all problems appear at once.
        let port = read_port(fields);
        let user = fields.text("user");
        let password = fields.text_or_empty("password");
        let database = fields.text("database");
        let writable = fields.boolean("writable").unwrap_or(false);
        let timeout = read_timeout(fields);
        let mut more = QueryParamsConfig::default();
        if let Some(params) = fields.mapping("queryParams") {
            more = QueryParamsConfig::read(params, folder)?;
        }
        let host = host?;
        // A socket file needs no TLS: its data does not leave the machine.
        let tls = if host.starts_with('/') {
            TlsPolicy::Off
        } else {
            more.tls
        };
        Some(Self {
            host,
            port: port?,
            user: user?,
            // An empty password comes from a variable without a value and means none.
            password: password.filter(|password| !password.is_empty()),
            database: database?,
            tls,
            connect_timeout: more.connect_timeout,
            application_name: more.application_name,
            options: more.options,
            writable,
            timeout: timeout?,
        })
    }

    /// Returns the server's socket file if the host is a folder.
    pub(super) fn socket_path(&self) -> Option<PathBuf> {
        let folder = self.host.starts_with('/').then(|| Path::new(&self.host))?;
        Some(folder.join(format!(".s.PGSQL.{}", self.port)))
    }

    /// Returns the settings that responses depend on, without the password.
    pub(super) fn identity(&self) -> String {
        let Self {
            host,
            port,
            user,
            database,
            options,
            ..
        } = self;
        format!("{user}@{host}:{port}/{database} {}", options.join(" "))
    }
}

/// Reads the port; the toolbox allows a text or a number.
fn read_port(fields: &mut MappingDecoder<'_>) -> Option<u16> {
    let Some(written) = fields.value("port") else {
        return Some(DEFAULT_PORT);
    };
    let port = match written {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_u64().and_then(|n| u16::try_from(n).ok()),
        _ => None,
    };
    let port = port.filter(|port| *port > 0);
    if port.is_none() {
        let got = describe_value(written);
        fields.error(
            "port",
            "range",
            format!("port must be 1 to 65535 (got {got})"),
        );
    }
    port
}

/// The content of `queryParams`.
struct QueryParamsConfig {
    tls: TlsPolicy,
    connect_timeout: Millis,
    application_name: String,
    options: Vec<String>,
}

impl Default for QueryParamsConfig {
    fn default() -> Self {
        Self {
            tls: TlsPolicy::Prefer,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            application_name: "dicta".to_owned(),
            options: Vec::new(),
        }
    }
}

impl QueryParamsConfig {
    fn read(mut fields: MappingDecoder<'_>, folder: &Path) -> Option<Self> {
        let mut more = Self::default();
        let sslmode = fields.choice("sslmode", SSL_MODES);
        let roots = fields.text("sslrootcert").map(|path| folder.join(path));
        if let Some(name) = fields.text("application_name") {
            more.application_name = name;
        }
        if let Some(path) = fields.text("search_path") {
            // The server reads `options` like command-line flags, so spaces need a backslash.
            more.options
                .push(format!("-c search_path={}", escape_option(&path)));
        }
        if let Some(options) = fields.text("options") {
            more.options.push(options);
        }
        if let Some(written) = fields.value("connect_timeout") {
            match parse_seconds(written) {
                Some(limit) => more.connect_timeout = limit,
                None => fields.error(
                    "connect_timeout",
                    "range",
                    "connect_timeout must be 1 to 600 seconds",
                ),
            }
        }
        if fields.has("statement_timeout") {
            // A separate message: PostgreSQL knows the key, but `timeout` overrides it.
            fields.ignore_key("statement_timeout");
            let why = "the time of a statement is the source's `timeout`";
            fields.error_at_key("statement_timeout", "unknown-key", why);
        }
        let tls = match sslmode.unwrap_or(SslModeSetting::Prefer) {
            SslModeSetting::Disable => Some(TlsPolicy::Off),
            SslModeSetting::Prefer => Some(TlsPolicy::Prefer),
            SslModeSetting::Require => Some(TlsPolicy::Require),
            SslModeSetting::VerifyFull => Some(TlsPolicy::Verified(roots.clone())),
            SslModeSetting::VerifyCa | SslModeSetting::Allow => {
                let why =
                    "this sslmode is not supported; disable, prefer, require and verify-full are";
                fields.error("sslmode", "value", why);
                None
            }
        };
        // libpq would then check the authority but not the host name, which protects against nothing.
        if roots.is_some()
            && matches!(
                tls,
                Some(TlsPolicy::Off | TlsPolicy::Prefer | TlsPolicy::Require)
            )
        {
            let why = "sslrootcert is looked at with `sslmode: verify-full` alone";
            fields.error("sslrootcert", "value", why);
        }
        fields.finish();
        more.tls = tls?;
        Some(more)
    }
}

fn parse_seconds(written: &Value) -> Option<Millis> {
    let seconds = match written {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    seconds
        .filter(|n| (1..=600).contains(n))
        .map(Millis::from_secs)
}

/// Escapes spaces and backslashes for the server's command line.
fn escape_option(value: &str) -> String {
    value.replace('\\', "\\\\").replace(' ', "\\ ")
}
