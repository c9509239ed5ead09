//! Recognition of names that denote secrets: of headers, parameters, environment variables and keys in files.
//!
//! Names are compared word by word. A part of a word does not count: `keyword`, `X-Author` and `monkey` contain `key`
//! and `auth`, and their values are ordinary data that belong to digests and recordings.

/// Words that mark a name as secret, at any position in it.
const SECRET_WORDS: &[&str] = &[
    "apikey",
    "auth",
    "authentication",
    "authn",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "creds",
    "dsn",
    "jwt",
    "key",
    "oauth",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "pat",
    "pwd",
    "secret",
    "secrets",
    "sid",
    "sig",
    "signature",
    "token",
];

/// Words that mark a name as secret at its end: `DB_PASS` and `X-Session`, but not `pass_rate` or `session_type`.
const SECRET_LAST_WORDS: &[&str] = &["pass", "session"];

/// The ends of secret words that are written together: `PGPASSWORD`, `githubtoken`. No common word ends in one of
/// them.
const SECRET_WORD_ENDS: &[&str] = &[
    "apikey",
    "accesskey",
    "authkey",
    "cookie",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretkey",
    "sessionid",
    "sharedkey",
    "signingkey",
    "subscriptionkey",
    "token",
];

/// Words before `keys` and `tokens` that make the plural secret: `API_KEYS`, but not `max_tokens`.
const SECRET_PLURAL_OWNERS: &[&str] = &[
    "access", "api", "auth", "bearer", "private", "refresh", "secret", "service", "signing",
];

/// Words before `key` for keys that only identify data: `prompt_cache_key`, `primary_key`.
const DATA_KEY_OWNERS: &[&str] = &[
    "cache",
    "foreign",
    "group",
    "idempotency",
    "order",
    "partition",
    "primary",
    "public",
    "sort",
];

/// Last words of names that describe a secret without holding it: `token_limit`, `auth_type`.
const DESCRIBING_WORDS: &[&str] = &[
    "algorithm",
    "count",
    "kind",
    "length",
    "limit",
    "method",
    "mode",
    "scheme",
    "size",
    "timeout",
    "ttl",
    "type",
];

/// Returns true if the value of this name is a credential that dicta must not record: `Authorization`, `X-Api-Key`,
/// `DB_PASSWORD`, `githubToken`.
///
/// It compares whole words. A word ends at every character that is not a letter or a digit, and at a change of case.
pub fn is_secret_name(name: &str) -> bool {
    let words = split_words(name);
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    if DESCRIBING_WORDS.contains(&last.as_str()) {
        return false;
    }
    // `pass` and `session` are ordinary words, except as the whole secret.
    let is_session_id = before.last().is_some_and(|word| word == "session") && last == "id";
    if SECRET_LAST_WORDS.contains(&last.as_str()) || is_session_id {
        return true;
    }
    words.iter().enumerate().any(|(at, word)| {
        let owner = at.checked_sub(1).map(|before| words[before].as_str());
        match (word.as_str(), owner) {
            ("key", Some(owner)) if DATA_KEY_OWNERS.contains(&owner) => false,
            ("keys" | "tokens", owner) => {
                owner.is_some_and(|owner| SECRET_PLURAL_OWNERS.contains(&owner))
            }
            (word, _) => {
                SECRET_WORDS.contains(&word)
                    || SECRET_WORD_ENDS.iter().any(|end| word.ends_with(end))
            }
        }
    })
}

/// Returns true if a key of a configuration file has a secret as its value. `tokenEnv` and `keyFile` contain only the
/// place of a secret.
pub fn is_secret_key(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    let names_a_place = ["env", "file", "url", "uri", "header"]
        .iter()
        .any(|end| lower.ends_with(end));
    is_secret_name(key) && !names_a_place
}

/// Returns true if the name is that of an API key itself: `Authorization`, `api_key`, `x-goog-api-key`.
pub fn is_api_key_name(name: &str) -> bool {
    let words: String = split_words(name).concat();
    let bare = words.strip_prefix('x').unwrap_or(&words);
    matches!(
        bare,
        "apikey" | "googapikey" | "authorization" | "proxyauthorization"
    )
}

/// Returns the words of a name in lower case, without the digits at their ends: `githubToken2` becomes `github`,
/// `token`.
pub fn split_words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split(|c: char| !c.is_alphanumeric()) {
        let chars: Vec<char> = part.chars().collect();
        let mut start = 0;
        for at in 1..chars.len() {
            let (before, here) = (chars[at - 1], chars[at]);
            let next_is_lower = chars.get(at + 1).is_some_and(|c| c.is_lowercase());
            // `githubToken` has a border before `T`; `APIKey` has one before `K`, the last capital.
            if here.is_uppercase() && (!before.is_uppercase() || next_is_lower) {
                words.push(chars[start..at].iter().collect::<String>());
                start = at;
            }
        }
        words.push(chars[start..].iter().collect());
    }
    words
        .into_iter()
        .map(|word| {
            let word = word.to_lowercase();
            word.trim_end_matches(|c: char| c.is_ascii_digit())
                .to_owned()
        })
        .filter(|word| !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_recognized_in_any_spelling() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "x-api-key",
            "X-Api-Key",
            "apikey",
            "APIKey",
            "API_KEY2",
            "api.key",
            "Ocp-Apim-Subscription-Key",
            "x-functions-key",
            "Cookie",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PWD",
            "githubToken",
            "githubtoken",
            "GITHUB_TOKEN_1",
            "accessToken",
            "access_tokens",
            "API_KEYS",
            "DB_PASS",
            "pass",
            "clientSecret",
            "client_secret",
            "CLIENTSECRET",
            "X-Session",
            "sessionId",
            "session_id",
            "sig",
            "X-Amz-Signature",
            "GH_PAT",
            "SENTRY_DSN",
            "OAuthToken",
            "basic_auth",
            "--api-key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn part_of_a_word_makes_no_name_secret() {
        for name in [
            "",
            "Accept",
            "DB_HOST",
            "baseUrl",
            "bypass",
            "passage",
            "user",
            "keyword",
            "keywords",
            "keyspace",
            "monkey",
            "X-Author",
            "author",
            "authority",
            "X-AuthorName",
            "max_tokens",
            "maxTokens",
            "max_output_tokens",
            "token_limit",
            "session_type",
            "sessionType",
            "pass_rate",
            "tokenizer",
            "secretary",
            "PATH",
            "pattern",
            "design",
            "inside",
            "prompt_cache_key",
            "primaryKey",
            "sort_keys",
            "auth_type",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn only_the_id_of_a_session_is_secret() {
        assert!(is_secret_name("session_id") && is_secret_name("userSessionId"));
        for name in ["user_id", "id", "session_flow", "id_session_flow"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn name_is_split_at_each_change_of_case() {
        for (name, words) in [
            ("githubToken2", &["github", "token"][..]),
            ("APIKey", &["api", "key"]),
            ("HTTPServerKeys", &["http", "server", "keys"]),
            ("parseABC", &["parse", "abc"]),
            ("ABCd", &["ab", "cd"]),
            ("abCD", &["ab", "cd"]),
            ("aBc", &["a", "bc"]),
            ("X-Own_name.part", &["x", "own", "name", "part"]),
            ("2__", &[]),
        ] {
            assert_eq!(split_words(name), words, "{name}");
        }
    }

    #[test]
    fn key_of_a_file_is_secret_unless_it_names_a_place() {
        for key in ["token", "apiKey", "client_secret", "password"] {
            assert!(is_secret_key(key), "{key}");
        }
        for key in [
            "tokenEnv",
            "keyFile",
            "token_url",
            "authUri",
            "api_key_header",
            "name",
            "file",
        ] {
            assert!(!is_secret_key(key), "{key}");
        }
    }

    #[test]
    fn api_key_name_is_recognized_and_other_secrets_are_not() {
        for name in [
            "Authorization",
            "api_key",
            "apiKey",
            "x-api-key",
            "X-Goog-Api-Key",
            "API-KEY",
        ] {
            assert!(is_api_key_name(name), "{name}");
        }
        for name in [
            "X-Tenant-Token",
            "key",
            "Cookie",
            "X-Author",
            "tenant_api_key",
        ] {
            assert!(!is_api_key_name(name), "{name}");
        }
    }
}
