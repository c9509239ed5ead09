//! The detection of secrets in a tools file by their position.

use serde_json::Value;

use crate::model::{MIN_UNNAMED_SECRET_LEN, escape_pointer_step, is_secret_key, visit_children};
use crate::tools::secret_args::{
    find_url_password, is_variable_name, list_argument_secrets, list_secret_parts,
};

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
    match value {
        Value::Object(_) => visit_children(value, at, |key, child, at| {
            if key.is_none_or(|key| !NON_SECRET_KEYS.contains(&key)) {
                collect_secrets(child, at, key, found);
            }
        }),
        Value::Array(_) => {
            let mut flag: Option<&str> = None;
            // The arguments of a program; the first item of `command` is the program.
            let are_args = matches!(key, Some("args" | "command"));
            visit_children(value, at, |_, item, at| {
                let list_key = if are_args { key } else { None };
                let key = flag.take().filter(|flag| is_secret_key(flag)).or(list_key);
                collect_secrets(item, at, key, found);
                // `--token abc`, the argument after an option of a child process.
                flag = item
                    .as_str()
                    .filter(|text| text.starts_with('-') && !text.contains('='));
            });
        }
        Value::String(text) => {
            let mut secrets = find_secrets_in_text(text, key);
            // A variable of a program may be a connection string or a list of headers.
            if at.rsplit('/').nth(1) == Some("env") {
                secrets.extend(find_argument_texts(text));
            }
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

fn find_argument_texts(text: &str) -> Vec<String> {
    list_argument_secrets(text, is_secret_key)
}

fn find_secrets_in_text(text: &str, key: Option<&str>) -> Vec<String> {
    let mut secrets = Vec::new();
    if key.is_some_and(is_secret_key) {
        secrets.push(text.to_owned());
        // `Bearer x`: the scheme is not a secret.
        let last_word = text.split_whitespace().next_back();
        secrets.extend(last_word.filter(|word| *word != text).map(str::to_owned));
        secrets.extend(list_secret_parts(text));
    }
    match key {
        // The value of a key that names a variable is a token by mistake.
        Some("tokenEnv") if !is_variable_name(text) => secrets.push(text.to_owned()),
        Some("args") => secrets.extend(find_argument_texts(text)),
        // A command without `args` is split at blanks.
        Some("command") => {
            let words: Vec<&str> = text.split_whitespace().collect();
            secrets.extend(words.iter().flat_map(|word| find_argument_texts(word)));
            let values = words.windows(2).filter(|pair| {
                let (flag, value) = (pair[0], pair[1]);
                flag.starts_with('-') && is_secret_key(flag) && !value.starts_with('-')
            });
            secrets.extend(values.map(|pair| pair[1].to_owned()));
        }
        _ if text.starts_with('-') => secrets.extend(find_argument_texts(text)),
        _ => secrets.extend(find_url_password(text).map(|part| text[part].to_owned())),
    }
    secrets.retain(|secret| !secret.trim().is_empty());
    secrets
}

/// Keys whose values dicta shows and records: kinds, names and places. A variable in another key may hold a secret.
const PUBLIC_KEYS: &[&str] = &[
    "allow",
    "caFile",
    "cwd",
    "database",
    "host",
    "kind",
    "method",
    "name",
    "path",
    "port",
    "source",
    "sslmode",
    "sslrootcert",
    "startTimeout",
    "timeout",
    "tool",
    "type",
    "user",
];

/// Keys whose entries have names of their own, which may be equal to public keys.
const CONTAINER_KEYS: &[&str] = &["args", "env", "headers", "queryParams"];

/// The length from which a segment of a URL's path is probably a token.
const MIN_TOKEN_SEGMENT_LEN: usize = 16;

/// Returns all scalars of a file, each with its JSON pointer and text.
pub(super) fn list_scalars(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::Object(map) => open.extend(
                map.iter()
                    .map(|(key, value)| (format!("{at}/{}", escape_pointer_step(key)), value)),
            ),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(index, item)| (format!("{at}/{index}"), item)));
            }
            Value::String(text) => found.push((at, text.clone())),
            other => found.push((at, other.to_string())),
        }
    }
    found
}

/// Returns the secrets in the value of a variable that is part of the scalar `text` at a JSON pointer.
pub(super) fn find_env_secrets(pointer: &str, text: &str, value: &str) -> Vec<String> {
    let keys: Vec<&str> = pointer.split('/').skip(1).collect();
    let has = |known: &[&str]| keys.iter().any(|key| known.contains(key));
    // A list item belongs to the key of its list.
    let is_name = |key: &&&str| !key.bytes().all(|b| b.is_ascii_digit());
    let last = keys.iter().rev().find(is_name).copied().unwrap_or_default();
    // The whole value, and the secrets in it if it is a connection string or an address.
    let list_all = || {
        let mut all = vec![value.to_owned()];
        all.extend(find_argument_texts(value));
        all
    };
    if has(CONTAINER_KEYS) {
        return list_all();
    }
    if has(NON_SECRET_KEYS) || PUBLIC_KEYS.contains(&last) {
        return Vec::new();
    }
    if matches!(last, "baseUrl" | "url") {
        return find_url_secrets(text, value);
    }
    list_all()
}

/// Returns the secrets in a part of a URL. The scheme, host and port are public.
fn find_url_secrets(url: &str, part: &str) -> Vec<String> {
    let authority = url.find("://").map_or(0, |at| at + "://".len());
    let path = url[authority..].find(['/', '?', '#']);
    let path = path.map_or(url.len(), |at| authority + at);
    match url.find(part) {
        Some(at) if at >= path => vec![part.to_owned()],
        // The variable holds a whole URL: short segments such as `v1` are names.
        Some(at) if at + part.len() > path => {
            let (path, query) = url[path..at + part.len()]
                .split_once('?')
                .unwrap_or((&url[path..at + part.len()], ""));
            let segments = path.split('/').filter(|s| s.len() >= MIN_TOKEN_SEGMENT_LEN);
            let values = query.split('&').filter_map(|pair| pair.split_once('='));
            let values = values.map(|(_, value)| value);
            let values = values.filter(|value| value.len() >= MIN_UNNAMED_SECRET_LEN);
            segments.chain(values).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
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
            "args": ["--verbose", "--token", "tok", "--api-key=k1", "x", "-e", "API_KEY=c2Vj=="],
            "command": "serve --auth-token t1 API_KEY=k2= postgres://me:pw-3@h/",
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
                "/args/6 c2Vj==",
                "/command k2=|pw-3|t1",
            ]
        );
    }

    #[test]
    fn secrets_in_a_cookie_a_connection_string_and_the_name_of_a_variable_are_found() {
        let entry = json!({
            "headers": {"Cookie": "sid=hush-hush-1; theme=dark"},
            "env": {"CONNECTION": "host=h password=hush-hush-2 dbname=d"},
            "tokenEnv": "hush-hush-3",
        });
        let found = find_secrets(&entry);
        let all: Vec<&String> = found.iter().flat_map(|found| &found.secrets).collect();
        for n in 1..=3 {
            assert!(all.contains(&&format!("hush-hush-{n}")), "{n}: {all:?}");
        }
        let value = "postgres://me:hush-hush@h/db";
        let found = find_env_secrets("/sources/s/env/DATABASE_URL", value, value);
        assert_eq!(found, [value, "hush-hush"]);
    }

    #[test]
    fn variable_is_secret_unless_its_place_is_public() {
        let value = "hush-hush-hush-hush";
        let url = format!("https://h.example/v1/{value}?a=other-hush");
        let list = |at: &str, text: &str, value: &str| find_env_secrets(at, text, value).join("|");
        for at in [
            "/sources/s/headers/host",
            "/sources/s/queryParams/sig",
            "/sources/s/env/path",
            "/sources/s/args/0",
            "/sources/s/command",
            "/tools/t/requestBody",
            "/queryParams/appid",
        ] {
            assert_eq!(list(at, value, value), value, "{at}");
        }
        for at in [
            "/sources/s/host",
            "/sources/s/allow/0",
            "/tools/t/statement",
            "/tools/t/description",
        ] {
            assert_eq!(list(at, value, value), "", "{at}");
        }
        let host = format!("https://{value}/v1");
        assert_eq!(list("/sources/s/baseUrl", &host, value), "");
        assert_eq!(list("/sources/s/url", &url, value), value);
        assert_eq!(
            list("/sources/s/url", &url, &url),
            format!("{value}|other-hush")
        );
    }
}
