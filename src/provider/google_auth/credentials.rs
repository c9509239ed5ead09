//! The content of a credentials file. Errors name the file and the problem, never the content.

use std::fmt;

use ring::signature::RsaKeyPair;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// The URL for tokens, if the file names none.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// The metadata server of a machine in Google's cloud.
const METADATA_HOST: &str = "metadata.google.internal";
/// The shortest line of a private key that the redactor hides.
const MIN_SECRET_LINE: usize = 32;

/// A credentials file that dicta can't use. The message never quotes the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the Google credentials in {file} {problem}")]
pub struct GoogleCredentialsError {
    /// The name of the file.
    pub file: String,
    /// The problem, beginning with a verb.
    pub problem: String,
}

/// The credentials of a judge at Google.
pub struct GoogleCredentials {
    pub(super) kind: CredentialsKind,
    /// The source of the credentials, for messages.
    pub(super) origin: String,
    project: Option<String>,
    quota_project: Option<String>,
}

pub(super) enum CredentialsKind {
    ServiceAccount(Box<ServiceAccount>),
    User(UserCredentials),
    /// The host, with its port if it has one.
    Metadata(String),
}

pub(super) struct ServiceAccount {
    pub(super) email: String,
    pub(super) key_id: Option<String>,
    pub(super) key: RsaKeyPair,
    /// The key as written, for the redactor.
    pem: String,
    pub(super) token_uri: String,
}

pub(super) struct UserCredentials {
    pub(super) client_id: String,
    pub(super) client_secret: String,
    pub(super) refresh_token: String,
    pub(super) token_uri: String,
}

impl fmt::Debug for GoogleCredentials {
    /// Omits the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("from", &self.origin)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct RawCredentialsFile {
    #[serde(rename = "type")]
    kind: Option<String>,
    project_id: Option<String>,
    quota_project_id: Option<String>,
    client_email: Option<String>,
    private_key: Option<String>,
    private_key_id: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    refresh_token: Option<String>,
    token_uri: Option<String>,
}

impl GoogleCredentials {
    /// Parses a credentials file; `from` names it in errors.
    pub fn parse(text: &str, from: &str) -> Result<Self, GoogleCredentialsError> {
        let refused = |problem: &str| GoogleCredentialsError {
            file: from.to_owned(),
            problem: problem.to_owned(),
        };
        // serde's own messages could quote the file's content.
        let value: Value =
            serde_json::from_str(text).map_err(|_| refused("cannot be read: they are not JSON"))?;
        let file: RawCredentialsFile = serde_json::from_value(value)
            .map_err(|_| refused("cannot be read: the file must be a mapping of texts"))?;
        let needs = |value: Option<String>, key: &str| {
            // An empty field is as useless as a missing one, and its error is clearer here.
            let value = value.filter(|value| !value.trim().is_empty());
            value.ok_or_else(|| refused(&format!("lack `{key}`")))
        };
        let token_uri = file.token_uri.unwrap_or_else(|| TOKEN_URI.to_owned());
        let kind = match file.kind.as_deref() {
            Some("service_account") => {
                let pem = needs(file.private_key, "private_key")?;
                CredentialsKind::ServiceAccount(Box::new(ServiceAccount {
                    email: needs(file.client_email, "client_email")?,
                    key_id: file.private_key_id,
                    key: parse_key_pair(&pem).map_err(refused)?,
                    pem,
                    token_uri: check_token_uri(token_uri).map_err(refused)?,
                }))
            }
            Some("authorized_user") => CredentialsKind::User(UserCredentials {
                client_id: needs(file.client_id, "client_id")?,
                client_secret: needs(file.client_secret, "client_secret")?,
                refresh_token: needs(file.refresh_token, "refresh_token")?,
                token_uri: check_token_uri(token_uri).map_err(refused)?,
            }),
            Some(
                // Known kinds that need other protocols get a message of their own.
                other @ ("external_account"
                | "external_account_authorized_user"
                | "impersonated_service_account"
                | "gdch_service_account"),
            ) => {
                return Err(refused(&format!(
                    "are of the kind `{other}`, which dicta does not read; use a service account's key, or \
                     `gcloud auth application-default login` without impersonation"
                )));
            }
            _ => {
                return Err(refused(
                    "have an unknown type: `type` must be service_account or authorized_user",
                ));
            }
        };
        let text = |value: Option<String>| value.filter(|value| !value.is_empty());
        Ok(Self {
            kind,
            origin: from.to_owned(),
            project: text(file.project_id),
            quota_project: text(file.quota_project_id),
        })
    }

    /// The credentials of the machine that dicta runs on, from its metadata server. `host` is `GCE_METADATA_HOST`.
    pub fn from_metadata_server(host: Option<&str>) -> Self {
        let host = host.unwrap_or(METADATA_HOST).to_owned();
        Self {
            origin: format!("the metadata server {host}"),
            kind: CredentialsKind::Metadata(host),
            project: None,
            quota_project: None,
        }
    }

    /// The project that the file belongs to, if it names one.
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// The project that is billed for requests, if the file names one.
    pub fn quota_project(&self) -> Option<&str> {
        self.quota_project.as_deref()
    }

    /// Bills this project instead (`GOOGLE_CLOUD_QUOTA_PROJECT`).
    #[must_use]
    pub fn with_quota_project(mut self, project: Option<&str>) -> Self {
        if let Some(project) = project {
            self.quota_project = Some(project.to_owned());
        }
        self
    }

    /// The texts that must never be recorded. A private key is split into lines, so that a part of it is found too.
    pub fn secrets(&self) -> Vec<&str> {
        match &self.kind {
            CredentialsKind::ServiceAccount(account) => account
                .pem
                .lines()
                .map(str::trim)
                // A short last line would make the redactor hide ordinary words.
                .filter(|line| line.len() >= MIN_SECRET_LINE && !line.starts_with("-----"))
                .collect(),
            CredentialsKind::User(user) => vec![&user.refresh_token, &user.client_secret],
            CredentialsKind::Metadata(_) => Vec::new(),
        }
    }
}

fn parse_key_pair(pem: &str) -> Result<RsaKeyPair, &'static str> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| "have a private_key that is not a PKCS#8 key in PEM form")?;
    RsaKeyPair::from_pkcs8(der.secret_pkcs8_der())
        .map_err(|_| "have a private_key that is not an RSA key of 2048 bits or more")
}

/// Checks the URL for tokens. A refresh token or a signed request goes there, so it must use TLS or be this machine.
fn check_token_uri(token_uri: String) -> Result<String, &'static str> {
    const UNSAFE: &str =
        "name a token_uri that is not https: the secrets sent there would not be encrypted";
    let url = url::Url::parse(&token_uri).map_err(|_| "name a token_uri that is not a URL")?;
    let is_loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" if url.has_host() => Ok(token_uri),
        "http" if is_loopback => Ok(token_uri),
        _ => Err(UNSAFE),
    }
}
