//! The keys of a `postgres` source: server, user, and connection security.
//!
//! Without `sslmode`, dicta verifies the certificate of a remote host. libpq's default, `prefer`, accepts any certificate
//! and then sends a password in clear text if the server asks for it. On this machine, that default stays.

use std::net::IpAddr;
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
    /// True if the source doesn't set `sslmode`, so that dicta chose [`Self::tls`].
    pub(super) is_default_tls: bool,
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
    /// TLS with a certificate for this host, from an authority of the system or of this file. The default for a remote
    /// host.
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
        // A missing host is an error already.
        let default_mode = if host.as_deref().is_none_or(is_on_this_machine) {
            SslModeSetting::Prefer
        } else {
            SslModeSetting::VerifyFull
        };
        let more = match fields.mapping("queryParams") {
            Some(params) => QueryParamsConfig::read(params, folder, default_mode)?,
            None => QueryParamsConfig::new(default_mode),
        };
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
            is_default_tls: more.is_default_tls,
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

/// Returns true for a socket folder, `localhost` and loopback addresses. The data then does not leave the machine.
fn is_on_this_machine(host: &str) -> bool {
    let name = host.trim_start_matches('[').trim_end_matches([']', '.']);
    host.starts_with('/')
        || name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
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
    is_default_tls: bool,
    connect_timeout: Millis,
    application_name: String,
    options: Vec<String>,
}

impl QueryParamsConfig {
    fn new(default_mode: SslModeSetting) -> Self {
        Self {
            tls: match default_mode {
                SslModeSetting::VerifyFull => TlsPolicy::Verified(None),
                _ => TlsPolicy::Prefer,
            },
            is_default_tls: true,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            application_name: "dicta".to_owned(),
            options: Vec::new(),
        }
    }

    fn read(
        mut fields: MappingDecoder<'_>,
        folder: &Path,
        default_mode: SslModeSetting,
    ) -> Option<Self> {
        let mut more = Self::new(default_mode);
        more.is_default_tls = !fields.has("sslmode");
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
        let tls = match sslmode.unwrap_or(default_mode) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diag::yaml::{DiagnosticCollector, read_document};

    fn read_tls(host: &str, params: &Value) -> TlsPolicy {
        let keys = json!({"host": host, "user": "u", "database": "d", "queryParams": params});
        let text = keys.to_string().into();
        let doc = read_document(&text, Path::new("tools.yaml")).expect("JSON is YAML");
        let problems = DiagnosticCollector::from_doc(&doc);
        let mut fields = MappingDecoder::new(&doc, "", &problems);
        let config = PostgresConfig::read(&mut fields, Path::new("/w")).expect("valid keys");
        config.tls
    }

    #[test]
    fn remote_host_is_verified_unless_the_source_sets_sslmode() {
        let verified = TlsPolicy::Verified(None);
        for remote in [
            "db.example",
            "10.0.0.7",
            "192.168.1.5",
            "2001:db8::7",
            "localhost.example",
            "127.0.0.1.example",
        ] {
            assert_eq!(read_tls(remote, &json!({})), verified, "{remote}");
            for (mode, expected) in [
                ("prefer", TlsPolicy::Prefer),
                ("require", TlsPolicy::Require),
                ("disable", TlsPolicy::Off),
            ] {
                let params = json!({"sslmode": mode});
                assert_eq!(read_tls(remote, &params), expected, "{remote} {mode}");
            }
        }
        let roots = json!({"sslrootcert": "ca.pem", "application_name": "x"});
        let expected = TlsPolicy::Verified(Some("/w/ca.pem".into()));
        assert_eq!(read_tls("db.example", &roots), expected);
    }

    #[test]
    fn loopback_host_and_socket_keep_the_default_of_libpq() {
        for local in [
            "localhost",
            "LOCALHOST.",
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
        ] {
            assert_eq!(read_tls(local, &json!({})), TlsPolicy::Prefer, "{local}");
        }
        assert_eq!(read_tls("/var/run/postgresql", &json!({})), TlsPolicy::Off);
        let verify = json!({"sslmode": "verify-full"});
        assert_eq!(read_tls("localhost", &verify), TlsPolicy::Verified(None));
    }
}
