//! Recognition of names that denote secrets: of headers, environment variables and keys in files.

/// Words that mark a name as secret, at any position in it.
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

/// Returns true if the value of this name is a credential that dicta must not record: `Authorization`, `X-Api-Key`,
/// `DB_PASSWORD`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word)) || name == "pass" || name.ends_with("_pass")
}

#[cfg(test)]
mod tests {
    use super::is_secret_name;

    #[test]
    fn secret_names_are_recognized_in_any_spelling() {
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
