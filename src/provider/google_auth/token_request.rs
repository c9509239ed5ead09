//! One request for an access token: its content for each kind of credentials, and the meaning of the reply.

use ring::rand::SystemRandom;
use ring::signature::RSA_PKCS1_SHA256;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{ProviderError, server_error};
use super::credentials::{CredentialsKind, GoogleCredentials, ServiceAccount, UserCredentials};
use crate::clock::Clock;
use crate::event::Redactor;
use crate::model::Millis;
use crate::net::{LlmClient, LlmResponse, NetError, ReplyLimits};

/// All of Google's cloud, as Google's own libraries request it. The account's permissions narrow it.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The lifetime of a signed request for a token, in seconds.
const ASSERTION_LIFETIME: i64 = 3600;
/// The most bytes of a reply.
const MAX_RESPONSE_BYTES: u64 = 256 << 10;
/// The lifetime of a token that doesn't state one.
const DEFAULT_TOKEN_LIFETIME: Millis = Millis(300_000);
/// The longest lifetime that dicta believes.
const MAX_TOKEN_LIFETIME: Millis = Millis(24 * 3_600_000);

/// The limits for a token server.
const TOKEN_SERVER_LIMITS: ReplyLimits = ReplyLimits {
    connect: Millis(5000),
    first_byte: Millis(20_000),
    idle: Millis(20_000),
    total_bytes: MAX_RESPONSE_BYTES,
};
/// The limits for the metadata server, which is either very close or absent.
const METADATA_SERVER_LIMITS: ReplyLimits = ReplyLimits {
    connect: Millis(1000),
    first_byte: Millis(3000),
    idle: Millis(3000),
    total_bytes: MAX_RESPONSE_BYTES,
};

/// A token with its lifetime.
pub(super) struct GrantedToken {
    pub(super) token: String,
    pub(super) lifetime: Millis,
}

#[derive(Deserialize)]
struct RawTokenGrant {
    access_token: String,
    expires_in: Option<f64>,
}

/// Requests a token once.
pub(super) async fn request_token(
    credentials: &GoogleCredentials,
    http: &LlmClient,
    clock: &dyn Clock,
) -> Result<GrantedToken, ProviderError> {
    match &credentials.kind {
        CredentialsKind::Metadata(host) => request_from_metadata_server(host, http).await,
        CredentialsKind::ServiceAccount(account) => {
            let signed = sign_assertion(account, clock)?;
            let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
            let form = [("grant_type", grant), ("assertion", &signed)];
            request_from_token_server(credentials, &account.token_uri, &form, http).await
        }
        CredentialsKind::User(user) => {
            let UserCredentials {
                client_id,
                client_secret,
                refresh_token,
                token_uri,
            } = user;
            let form = [
                ("grant_type", "refresh_token"),
                ("client_id", client_id),
                ("client_secret", client_secret),
                ("refresh_token", refresh_token),
            ];
            request_from_token_server(credentials, token_uri, &form, http).await
        }
    }
}

async fn request_from_token_server(
    credentials: &GoogleCredentials,
    uri: &str,
    form: &[(&str, &str)],
    http: &LlmClient,
) -> Result<GrantedToken, ProviderError> {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let headers = [
        (
            "content-type".to_owned(),
            "application/x-www-form-urlencoded".to_owned(),
        ),
        ("accept".to_owned(), "application/json".to_owned()),
    ];
    let sent = http
        .post(uri, &headers, body.into_bytes(), TOKEN_SERVER_LIMITS)
        .await;
    let unreachable = |error: &NetError| ProviderError::Connect {
        url: uri.to_owned(),
        why: format!("no Google access token: {error}"),
    };
    let response = sent.map_err(|error| unreachable(&error))?;
    let status = response.status;
    let answer = read_text(response)
        .await
        .map_err(|error| unreachable(&error))?;
    if (200..300).contains(&status) {
        return parse_token(&answer);
    }
    // A server may repeat the secrets that it received.
    let sent = form.iter().skip(1).map(|(_, value)| *value);
    let redactor = Redactor::new(sent.chain(credentials.secrets()));
    let message = describe_oauth_error(&answer);
    let message = server_error::truncate_text(&redactor.redact(&message).unwrap_or(message));
    Err(refused_token_error(credentials, uri, status, &message))
}

/// Converts a refusal: the retry policy handles temporary failures, the user must fix all others.
fn refused_token_error(
    credentials: &GoogleCredentials,
    uri: &str,
    status: u16,
    server_message: &str,
) -> ProviderError {
    // Temporary failures keep their status, so that the usual retry rules apply.
    if matches!(status, 408 | 429 | 500..=599) {
        return ProviderError::Status {
            status,
            url: uri.to_owned(),
            message: format!("no Google access token: {server_message}"),
            retry_after: None,
            terminal: false,
        };
    }
    let fix = match &credentials.kind {
        CredentialsKind::User(_) => "run `gcloud auth application-default login` again",
        CredentialsKind::ServiceAccount(_) => {
            "check that the service account's key is still valid and that this machine's clock is right"
        }
        CredentialsKind::Metadata(_) => "check that this machine has a service account",
    };
    ProviderError::Request(format!(
        "no Google access token for {}: {uri} answered {status}: {server_message}; {fix}",
        credentials.origin
    ))
}

async fn request_from_metadata_server(
    host: &str,
    http: &LlmClient,
) -> Result<GrantedToken, ProviderError> {
    let path = "computeMetadata/v1/instance/service-accounts/default/token";
    let url = format!("http://{host}/{path}");
    // The server refuses requests without this header, so that a forwarded request gets no token.
    let headers = [("Metadata-Flavor".to_owned(), "Google".to_owned())];
    let none = |why: &str| {
        ProviderError::Request(format!(
            "no Google credentials: {why}; set credentials_file or GOOGLE_APPLICATION_CREDENTIALS, or run \
             `gcloud auth application-default login`"
        ))
    };
    let absent = |error: &NetError| {
        none(&format!(
            "there is no file, and no metadata server at {host} ({error})"
        ))
    };
    let response = http.get(&url, &headers, METADATA_SERVER_LIMITS).await;
    let response = response.map_err(|error| absent(&error))?;
    if response.header("metadata-flavor") != Some("Google") {
        // A captive portal or a proxy sent this, so the content is not a token.
        return Err(none(&format!(
            "the server at {host} is not Google's metadata server"
        )));
    }
    let status = response.status;
    let answer = read_text(response).await.map_err(|error| absent(&error))?;
    match status {
        200..=299 => parse_token(&answer),
        404 => Err(none(&format!(
            "the machine that {host} serves has no service account"
        ))),
        _ => {
            let credentials = GoogleCredentials::from_metadata_server(Some(host));
            Err(refused_token_error(
                &credentials,
                &url,
                status,
                &server_error::truncate_text(&describe_oauth_error(&answer)),
            ))
        }
    }
}

async fn read_text(mut response: LlmResponse) -> Result<String, NetError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.next_chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses a token. The error doesn't quote the reply, which may contain a token.
fn parse_token(answer: &str) -> Result<GrantedToken, ProviderError> {
    let grant: RawTokenGrant = serde_json::from_str(answer).map_err(|_| {
        ProviderError::Malformed("Google's token server gave no access token".to_owned())
    })?;
    // A line break in the token would let the server add headers to dicta's requests.
    let fits =
        !grant.access_token.is_empty() && grant.access_token.bytes().all(|b| b.is_ascii_graphic());
    if !fits {
        return Err(ProviderError::Malformed(
            "Google's token server gave an access token that no header can carry".to_owned(),
        ));
    }
    // A lifetime of 0 or less is a mistake of the server, so the default applies.
    let lives = grant.expires_in.filter(|secs| *secs > 0.0);
    Ok(GrantedToken {
        token: grant.access_token,
        lifetime: lives
            .map_or(DEFAULT_TOKEN_LIFETIME, Millis::from_secs_f64)
            .min(MAX_TOKEN_LIFETIME),
    })
}

/// Describes OAuth's error, `{"error": "invalid_grant", "error_description": "…"}`, or any other error body.
fn describe_oauth_error(answer: &str) -> String {
    let parsed: Value = serde_json::from_str(answer).unwrap_or(Value::Null);
    let word = |key: &str| parsed.get(key).and_then(Value::as_str);
    match (word("error"), word("error_description")) {
        (Some(error), Some(more)) => format!("{error}: {more}"),
        _ => server_error::parse_error_body(answer).message,
    }
}

/// A service account's signed request for a token (RFC 7523).
fn sign_assertion(account: &ServiceAccount, clock: &dyn Clock) -> Result<String, ProviderError> {
    let now = clock.wall_time().0.parse::<jiff::Timestamp>();
    let now = now
        .map_err(|_| ProviderError::Request("this machine's clock cannot be read".to_owned()))?
        .as_second();
    // A JWT: header, claims and signature, each in Base64, joined by points.
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(id) = &account.key_id {
        header["kid"] = json!(id);
    }
    let claims = json!({"iss": account.email, "scope": SCOPE, "aud": account.token_uri,
        "iat": now, "exp": now + ASSERTION_LIFETIME});
    let mut text = encode_base64url(header.to_string().as_bytes());
    text.push('.');
    text.push_str(&encode_base64url(claims.to_string().as_bytes()));
    let mut signature = vec![0; account.key.public().modulus_len()];
    account
        .key
        .sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            text.as_bytes(),
            &mut signature,
        )
        .map_err(|_| ProviderError::Request("the service account's key cannot sign".to_owned()))?;
    text.push('.');
    text.push_str(&encode_base64url(&signature));
    Ok(text)
}

/// Base64 with the alphabet of URLs, without padding (RFC 4648 5).
pub(super) fn encode_base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    // Three bytes make four characters of six bits each.
    for three in bytes.chunks(3) {
        let word = three.iter().enumerate().fold(0_u32, |word, (at, byte)| {
            word | u32::from(*byte) << (16 - 8 * at)
        });
        // An incomplete group has one character more than bytes.
        for at in 0..=three.len() {
            let six = (word >> (18 - 6 * at)) & 63;
            out.push(char::from(ALPHABET[six as usize]));
        }
    }
    out
}
