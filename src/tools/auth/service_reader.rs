//! The reader of one entry of `authServices`.

use std::path::{Path, PathBuf};

use super::jwks::JwksSource;
use super::{AuthService, TokenSource};
use crate::diag::find_nearest;
use crate::diag::yaml::MappingDecoder;
use crate::tools::secret_args::is_variable_name;

/// The context in which an auth service is read.
pub struct AuthCx<'a> {
    /// The folder of the file, which relative paths start from.
    pub folder: &'a Path,
    /// Looks up an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// The address at which Google publishes its keys.
const GOOGLE_KEYS: &str = "https://www.googleapis.com/oauth2/v3/certs";
/// The issuers that Google uses.
const GOOGLE_ISSUERS: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];

/// The keys of the toolbox that dicta does not support.
const UNSUPPORTED_KEYS: [&str; 4] = [
    "mcpEnabled",
    "scopesRequired",
    "introspectionEndpoint",
    "introspectionMethod",
];

impl AuthService {
    /// Reads an entry of `authServices`, after the caller took `kind` (`type` in the flat form) and `name`. Returns
    /// `None` after it reported a problem.
    pub fn read(
        name: &str,
        kind: &str,
        fields: &mut MappingDecoder<'_>,
        cx: &AuthCx<'_>,
    ) -> Option<Self> {
        for key in UNSUPPORTED_KEYS {
            // `false` asks for nothing, so it is accepted.
            if fields.has(key) && fields.value(key) != Some(&serde_json::Value::Bool(false)) {
                let why =
                    format!("{key} is not supported: dicta verifies tokens and serves no requests");
                fields.error_at_key(key, "unsupported", why);
            }
        }
        // Both readers run before the first early return, so that one pass reports all problems.
        let token = read_token_source(name, fields, cx);
        let keys = read_keys(fields, cx);
        match kind {
            "google" => {
                let audience = read_required_text(fields, "clientId")?;
                Some(Self {
                    name: name.to_owned(),
                    issuers: GOOGLE_ISSUERS.map(str::to_owned).to_vec(),
                    audience,
                    keys: keys?.unwrap_or_else(|| JwksSource::Url(GOOGLE_KEYS.to_owned())),
                    token: token?,
                })
            }
            "generic" => read_generic_service(name, fields, keys?, token?),
            other => {
                let hint = find_nearest(other, ["google", "generic"])
                    .map_or("there are google and generic".to_owned(), |near| {
                        format!("did you mean `{near}`?")
                    });
                let why = format!("unknown kind of auth service `{other}`; {hint}");
                fields.error_at_mapping("value", why);
                None
            }
        }
    }
}

fn read_generic_service(
    name: &str,
    fields: &mut MappingDecoder<'_>,
    keys: Option<JwksSource>,
    token: TokenSource,
) -> Option<AuthService> {
    let audience = read_required_text(fields, "audience");
    let issuer = fields.text("issuer");
    // Read before the required key returns, so that the decoder knows the key.
    let server = fields.text("authorizationServer");
    let audience = audience?;
    let server = server.map(|server| server.trim_end_matches('/').to_owned());
    // The keys decide what counts as a valid token, so they must not travel unencrypted.
    if let Some(server) = &server
        && !server.starts_with("https://")
    {
        fields.error(
            "authorizationServer",
            "value",
            "authorizationServer must begin with https://",
        );
        return None;
    }
    // Accept the issuer with and without the last slash: some servers differ from their own documents in it.
    let issuers = match (&issuer, &server) {
        (Some(issuer), _) => vec![issuer.clone()],
        (None, Some(server)) => vec![server.clone(), format!("{server}/")],
        (None, None) => {
            fields.error_at_mapping(
                "missing",
                "an auth service needs issuer or authorizationServer",
            );
            return None;
        }
    };
    let keys = match (keys, server) {
        (Some(keys), _) => keys,
        (None, Some(server)) => JwksSource::Discover(server),
        (None, None) => {
            let why = "without authorizationServer an auth service needs jwks, a file or https URL of its keys";
            fields.error_at_mapping("missing", why);
            return None;
        }
    };
    Some(AuthService {
        name: name.to_owned(),
        issuers,
        audience,
        keys,
        token,
    })
}

fn read_required_text(fields: &mut MappingDecoder<'_>, key: &'static str) -> Option<String> {
    if !fields.has(key) {
        fields.error_at_mapping("missing", format!("{key} is missing"));
    }
    fields.text(key)
}

/// Reads the optional `jwks`. Returns `None` if its value is invalid.
#[expect(
    clippy::option_option,
    reason = "wrong, absent and given are three things"
)]
fn read_keys(fields: &mut MappingDecoder<'_>, cx: &AuthCx<'_>) -> Option<Option<JwksSource>> {
    if !fields.has("jwks") {
        // Makes the key known to the decoder, so that it is in the suggestions for a misspelled one.
        fields.value("jwks");
        return Some(None);
    }
    let written = fields.text("jwks")?;
    if written.starts_with("https://") {
        Some(Some(JwksSource::Url(written)))
    } else if written.contains("://") {
        fields.error(
            "jwks",
            "value",
            "jwks must be a file or a URL that begins with https://",
        );
        None
    } else {
        Some(Some(JwksSource::File(cx.folder.join(written))))
    }
}

fn read_token_source(
    name: &str,
    fields: &mut MappingDecoder<'_>,
    cx: &AuthCx<'_>,
) -> Option<TokenSource> {
    let (env, file) = (fields.text("tokenEnv"), fields.text("tokenFile"));
    if env.is_some() && file.is_some() {
        fields.error(
            "tokenFile",
            "value",
            "a token comes from tokenEnv or from tokenFile, not both",
        );
        return None;
    }
    if let Some(file) = file {
        let path: PathBuf = cx.folder.join(file);
        return Some(TokenSource::File(path));
    }
    if env.as_deref().is_some_and(|env| !is_variable_name(env)) {
        let message = "tokenEnv must be the name of an environment variable, not a token";
        fields.error("tokenEnv", "secret", message);
        return None;
    }
    let env = env.unwrap_or_else(|| token_variable_name(name));
    // A value from a file or shell often ends with a line break.
    let value = (cx.env)(&env).map(|token| token.trim().to_owned());
    Some(TokenSource::Env {
        variable: env,
        token: value.filter(|token| !token.is_empty()),
    })
}

/// Returns the environment variable for a service's token: `my-google` becomes `MY_GOOGLE_TOKEN`. The toolbox's HTTP
/// header has the same name.
fn token_variable_name(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    let word: String = upper
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format!("{word}_TOKEN")
}
