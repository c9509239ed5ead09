//! The secrets in configured HTTP headers and request bodies.

use serde_json::Value;

use super::{is_secret_name, visit_children};

/// The length in bytes from which a value counts as a secret although its name does not denote one. Shorter values
/// are often ordinary words, which also occur in transcripts.
pub const MIN_UNNAMED_SECRET_LEN: usize = 8;

/// Headers that describe a message and never identify a sender.
const PUBLIC_HEADERS: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "anthropic-version",
    "content-type",
];

/// The first words of a header value that name a scheme, so that only the rest is secret.
const AUTH_SCHEMES: &[&str] = &[
    "apikey",
    "basic",
    "bearer",
    "bot",
    "digest",
    "key",
    "negotiate",
    "token",
];

/// Returns the part of a header's value after the scheme, such as `Bearer`; the whole value if it names none.
pub fn strip_auth_scheme(value: &str) -> &str {
    match value.split_once(' ') {
        Some((scheme, rest)) if is_auth_scheme(scheme) => rest.trim_start(),
        _ => value,
    }
}

fn is_auth_scheme(word: &str) -> bool {
    AUTH_SCHEMES.contains(&word.to_ascii_lowercase().as_str())
}

/// Returns the secret texts in a header: its value, the part after the scheme, and the values of cookies.
pub fn list_header_secrets(name: &str, value: &str) -> Vec<String> {
    if PUBLIC_HEADERS.iter().any(|h| h.eq_ignore_ascii_case(name)) {
        return Vec::new();
    }
    let mut secrets = vec![value];
    if let Some((scheme, rest)) = value.split_once(' ')
        && (is_secret_name(name) || is_auth_scheme(scheme))
    {
        secrets.push(rest.trim());
    }
    if name.to_ascii_lowercase().contains("cookie") {
        // A server may repeat one cookie without the others.
        let cookies = value.split(';').filter_map(|cookie| cookie.split_once('='));
        secrets.extend(cookies.map(|(_, value)| value.trim()));
    }
    let min = if is_secret_name(name) {
        1
    } else {
        MIN_UNNAMED_SECRET_LEN
    };
    secrets.retain(|secret| secret.len() >= min);
    secrets.into_iter().map(str::to_owned).collect()
}

/// Returns the JSON pointers of the values in a request body whose keys denote secrets.
pub fn find_body_secrets(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_body_secrets(body, false, &mut String::new(), &mut found);
    found
}

fn collect_body_secrets(value: &Value, named: bool, at: &mut String, found: &mut Vec<String>) {
    match value {
        Value::String(text) if named && !text.is_empty() => found.push(at.clone()),
        // A short number is a count, such as `max_tokens`, and not a key.
        Value::Number(number) if named && number.to_string().len() >= MIN_UNNAMED_SECRET_LEN => {
            found.push(at.clone());
        }
        _ => visit_children(value, at, |key, child, at| {
            let named = named || key.is_some_and(is_secret_name);
            collect_body_secrets(child, named, at, found);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn header_of_any_name_is_secret_except_public_ones() {
        let list = |name, value| list_header_secrets(name, value).join("|");
        assert_eq!(list("X-Portal", "portal-123"), "portal-123");
        assert_eq!(
            list("Authorization", "Bearer abc-def"),
            "Bearer abc-def|abc-def"
        );
        assert_eq!(
            list("X-Gate", "Token abc-def-1"),
            "Token abc-def-1|abc-def-1"
        );
        assert_eq!(list("X-Note", "two words"), "two words");
        assert_eq!(
            list("Cookie", "a=1; session=hush-hush"),
            "a=1; session=hush-hush|session=hush-hush|1|hush-hush"
        );
        assert_eq!(list("X-Mode", "strict"), "");
        assert_eq!(list("Accept", "application/json"), "");
    }

    #[test]
    fn secrets_of_a_body_are_found_by_key_at_any_depth() {
        let body = json!({
            "api_key": "hush", "user": "me", "max_tokens": 100,
            "gateway": {"auth": {"kind": "basic", "pins": [12_345_678, "p"]}},
        });
        assert_eq!(
            find_body_secrets(&body),
            [
                "/api_key",
                "/gateway/auth/kind",
                "/gateway/auth/pins/0",
                "/gateway/auth/pins/1"
            ]
        );
    }
}
