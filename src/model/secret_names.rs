//! Which names stand for secrets: of headers, of variables, of keys in a file.

/// Words that make a name one of a secret, wherever they stand in it.
const SECRET_WORDS: &[&str] = &[
    "auth",
    "key",
    "token",
    "secret",
    "cookie",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "pwd",
];

/// Whether what has this name must not be recorded, and says who asks rather than what is asked: `Authorization`,
/// `X-Api-Key`, `DB_PASSWORD`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word)) || name == "pass" || name.ends_with("_pass")
}

#[cfg(test)]
mod tests {
    use super::is_secret_name;

    #[test]
    fn names_of_secrets_are_known_however_they_are_written() {
        for name in [
            "Authorization",
            "x-api-key",
            "Cookie",
            "DB_PASSWORD",
            "PGPASSWORD",
            "githubToken",
            "DB_PASS",
            "clientSecret",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["Accept", "DB_HOST", "baseUrl", "bypass", "passage", "user"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
