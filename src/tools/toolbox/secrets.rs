//! The detection of secrets in a tools file by their position.

use serde_json::Value;

use crate::model::{escape_pointer_step, is_secret_name};

/// A value of a file that contains secrets.
pub(super) struct FoundSecret {
    /// The JSON pointer of the value.
    pub(super) pointer: String,
    /// The secret texts in it.
    pub(super) secrets: Vec<String>,
}

/// The parts of a tool or source that are schemas or texts for the language model. A key named `key` in them is not a
/// secret.
const NON_SECRET_KEYS: &[&str] = &["inputSchema", "annotations", "description", "statement"];

/// Finds all secrets of an entry.
pub(super) fn find_secrets(entry: &Value) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    collect_secrets(entry, &mut String::new(), None, &mut found);
    found
}

fn collect_secrets(
    value: &Value,
    at: &mut String,
    key: Option<&str>,
    found: &mut Vec<FoundSecret>,
) {
    let depth = at.len();
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if NON_SECRET_KEYS.contains(&key.as_str()) {
                    continue;
                }
                at.push('/');
                at.push_str(&escape_pointer_step(key));
                collect_secrets(value, at, Some(key), found);
                at.truncate(depth);
            }
        }
        Value::Array(items) => {
            let mut flag = None;
            for (index, item) in items.iter().enumerate() {
                at.push('/');
                at.push_str(&index.to_string());
                collect_secrets(item, at, flag.take(), found);
                at.truncate(depth);
                // `--token abc`, the argument after an option of a child process.
                flag = item
                    .as_str()
                    .filter(|text| text.starts_with('-') && !text.contains('='));
            }
        }
        Value::String(text) => {
            let secrets = find_secrets_in_text(text, key);
            if !secrets.is_empty() {
                found.push(FoundSecret {
                    pointer: at.clone(),
                    secrets,
                });
            }
        }
        // A password may look like a number.
        Value::Number(number) if key.is_some_and(is_secret_key) => {
            found.push(FoundSecret {
                pointer: at.clone(),
                secrets: vec![number.to_string()],
            });
        }
        _ => {}
    }
}

/// Returns true if values of this key are secret. `tokenEnv` and `keyFile` contain only the place of a secret.
fn is_secret_key(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    let names_a_place = ["env", "file", "url", "uri", "header"]
        .iter()
        .any(|end| lower.ends_with(end));
    is_secret_name(key) && !names_a_place
}

fn find_secrets_in_text(text: &str, key: Option<&str>) -> Vec<String> {
    let mut secrets = Vec::new();
    if key.is_some_and(is_secret_key) {
        secrets.push(text.to_owned());
        // `Bearer x`: the scheme is not a secret.
        let last_word = text.split_whitespace().next_back();
        secrets.extend(last_word.filter(|word| *word != text).map(str::to_owned));
    }
    if let Some((flag, value)) = text.split_once('=')
        && flag.starts_with('-')
        && is_secret_key(flag)
    {
        secrets.push(value.to_owned());
    }
    secrets.extend(url_password(text));
    secrets.retain(|secret| !secret.trim().is_empty());
    secrets
}

/// Returns the password in a URL, or its user if it has no password.
fn url_password(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let end = rest
        .find(|c: char| "/?#\"'".contains(c) || c.is_whitespace())
        .unwrap_or(rest.len());
    let (user, _) = rest[..end].rsplit_once('@')?;
    // A user without a password is often a token: `https://TOKEN@host`.
    let secret = user.split_once(':').map_or(user, |(_, password)| password);
    Some(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_found_by_their_position() {
        let entry = json!({
            "host": "h", "user": "me", "password": "pw-1", "tokenEnv": "MY_TOKEN", "keyFile": "/k",
            "headers": {"Authorization": "Bearer abc", "Accept": "text/plain"},
            "baseUrl": "https://me:pw-2@h/x", "pin": {"password": 1234},
            "args": ["--verbose", "--token", "tok", "--api-key=k1", "x"],
            "inputSchema": {"properties": {"key": "no secret"}},
            "parameters": [{"name": "token", "description": "a token"}],
        });
        let found: Vec<String> = find_secrets(&entry)
            .into_iter()
            .map(|found| format!("{} {}", found.pointer, found.secrets.join("|")))
            .collect();
        assert_eq!(
            found,
            [
                "/password pw-1",
                "/headers/Authorization Bearer abc|abc",
                "/baseUrl pw-2",
                "/pin/password 1234",
                "/args/2 tok",
                "/args/3 k1",
            ]
        );
    }
}
