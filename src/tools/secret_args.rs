//! The secrets in the arguments of a program and in URLs, and in place of the name of a variable.

use std::ops::Range;

use crate::model::{MIN_UNNAMED_SECRET_LEN, strip_auth_scheme};

/// The names of settings in connection strings and cookies whose values are often ordinary words.
const PUBLIC_SETTINGS: &[&str] = &[
    "app",
    "application_name",
    "applicationname",
    "catalog",
    "charset",
    "client_encoding",
    "database",
    "db",
    "dbname",
    "domain",
    "driver",
    "encrypt",
    "expires",
    "host",
    "id",
    "lang",
    "language",
    "locale",
    "name",
    "options",
    "path",
    "port",
    "region",
    "samesite",
    "schema",
    "search_path",
    "server",
    "sslmode",
    "sslrootcert",
    "theme",
    "timezone",
    "uid",
    "user",
    "username",
];

/// Returns the range of the secret in an argument: after `--token=`, `API_KEY=` or `Authorization:`, or the password
/// of a URL.
///
/// The secret ends at the end of the argument, because values such as base64 may contain `=`. The name may follow
/// another one: `--env=API_KEY=abc`.
pub(super) fn find_argument_secret(
    arg: &str,
    is_secret_name: impl Fn(&str) -> bool,
) -> Option<Range<usize>> {
    let mut name_start = 0;
    for (at, separator) in arg.match_indices(['=', ':']) {
        let name = &arg[name_start..at];
        // `@author/server:1.0` and `https://` are not assignments.
        let assigns = separator == "=" || !name.contains(['/', '@']);
        if assigns && is_secret_name(name) {
            let blanks = arg[at + 1..].len() - arg[at + 1..].trim_start().len();
            return Some(at + 1 + blanks..arg.len());
        }
        name_start = at + 1;
    }
    find_url_password(arg)
}

/// Returns the secrets in an argument: what [`find_argument_secret`] finds, its parts, and the secrets of further
/// assignments in it, such as `password=abc token=def`.
pub(super) fn list_argument_secrets(
    arg: &str,
    is_secret_name: impl Fn(&str) -> bool,
) -> Vec<String> {
    let Some(range) = find_argument_secret(arg, &is_secret_name) else {
        return Vec::new();
    };
    let whole = &arg[range];
    let mut found = vec![whole.to_owned()];
    found.extend(list_secret_parts(whole));
    for part in whole.split(ends_assignment).skip(1) {
        let range = find_argument_secret(part, &is_secret_name);
        found.extend(range.map(|range| part[range].to_owned()));
    }
    found.retain(|secret| !secret.is_empty());
    found
}

/// Returns the parts of a secret that a program or a server may repeat alone, without short ones, which are often words.
///
/// They are its first value, the password in it, the parts between its equals signs, and the values of further settings
/// that are not public. Each of these contains `abc` in another way: `me:abc@tcp(h)`, `sid=abc; theme=dark`, `abc dbname=d`,
/// `TOKEN=name=abc`.
pub(super) fn list_secret_parts(secret: &str) -> Vec<String> {
    let value = strip_auth_scheme(secret.trim()).trim_start_matches(['"', '\'']);
    let is_end = |c: char| ends_assignment(c) || "\"'}])".contains(c);
    let first = value.split(is_end).next().unwrap_or(value);
    let rest = &value[first.len()..];
    // A word of a passphrase may occur in every transcript, so only the whole phrase is a secret.
    let is_phrase = rest.starts_with(char::is_whitespace)
        && rest.contains(char::is_alphanumeric)
        && !rest.contains(['=', ':']);
    if is_phrase {
        return Vec::new();
    }
    // The host of an address may follow the login.
    let login = first.rsplit_once('@').map_or(first, |(login, _)| login);
    let password = login.split_once(':').map(|(_user, password)| password);
    let is_public = |name: &str| PUBLIC_SETTINGS.contains(&&*name.to_ascii_lowercase());
    let own = first.split_once('=').filter(|(name, _)| !is_public(name));
    let own = own.into_iter().flat_map(|_| first.split('='));
    let further = rest
        .split(ends_assignment)
        .filter_map(|part| part.split_once('='));
    let further = further.filter(|(name, _)| !is_public(name));
    let assigned = own.chain(further.map(|(_, text)| text));
    let mut parts: Vec<String> = Vec::new();
    for part in std::iter::once(first).chain(password).chain(assigned) {
        let is_part = part.len() >= MIN_UNNAMED_SECRET_LEN && part.len() < secret.len();
        if is_part && !parts.iter().any(|known| known == part) {
            parts.push(part.to_owned());
        }
    }
    parts
}

/// Returns true for a character that separates the assignments of a query, a cookie or a connection string.
fn ends_assignment(c: char) -> bool {
    c.is_whitespace() || "&;,".contains(c)
}

/// Returns the range of the password in a URL, or of its user if it has no password.
pub(super) fn find_url_password(text: &str) -> Option<Range<usize>> {
    let start = text.find("://")? + "://".len();
    let rest = &text[start..];
    let end = rest
        .find(|c: char| "/?#\"'".contains(c) || c.is_whitespace())
        .unwrap_or(rest.len());
    let (userinfo, _) = rest[..end].rsplit_once('@')?;
    // A user without a password is often a token: `https://TOKEN@host`.
    let password = userinfo
        .split_once(':')
        .map_or(0, |(user, _)| user.len() + 1);
    Some(start + password..start + userinfo.len())
}

/// Returns true if a text can be the name of an environment variable. Otherwise it is probably a key.
pub fn is_variable_name(text: &str) -> bool {
    let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // Google's API keys begin with `AIza`. Keys of other providers are long random letters and digits, such as `gsk_…`.
    let last_part = text.rsplit('_').next().unwrap_or(text);
    let is_random = last_part.len() >= 28
        && last_part.chars().any(|c| c.is_ascii_digit())
        && last_part.chars().any(|c| c.is_ascii_lowercase());
    is_word
        && !is_random
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.len() <= 100
        && !text.starts_with("AIza")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::is_secret_name;

    #[test]
    fn parts_of_an_assigned_value_are_secrets_too() {
        let list = |arg| list_argument_secrets(arg, is_secret_name).join("|");
        assert_eq!(
            list("TOKEN=b=hush-hush=="),
            "b=hush-hush==|hush-hush",
            "short parts are words"
        );
        assert_eq!(list("--token=hush-hush"), "hush-hush");
        assert_eq!(list("A=b"), "");
    }

    #[test]
    fn value_of_each_kind_of_setting_is_a_secret_without_the_settings_after_it() {
        let list = |arg| list_argument_secrets(arg, is_secret_name);
        for arg in [
            "host=h user=me password=hush-hush dbname=d",
            "https://h/mcp?api_key=hush-hush&page=2",
            "postgresql://h/db?user=me&password=hush-hush&sslmode=require",
            "Server=tcp:h,1433;User ID=me;Password=hush-hush;Encrypt=true",
            r#"{"apiKey": "hush-hush", "other": 1}"#,
            "Cookie: sid=hush-hush; theme=dark",
            "Authorization: Basic me:hush-hush",
            "--dsn=me:hush-hush@tcp(h)/db",
            "password=other-one token=hush-hush",
        ] {
            let found = list(arg);
            assert!(found.contains(&"hush-hush".to_owned()), "{arg}: {found:?}");
            assert!(!found.iter().any(String::is_empty), "{arg}: {found:?}");
        }
        assert_eq!(
            list("Authorization: Bearer hush-hush"),
            ["Bearer hush-hush", "hush-hush"],
            "a scheme alone is not a secret"
        );
    }

    #[test]
    fn ordinary_words_next_to_a_secret_are_not_secrets() {
        let list = |arg| list_argument_secrets(arg, is_secret_name);
        for (arg, word) in [
            (
                "password=hush-hush dbname=d application_name=assistant",
                "assistant",
            ),
            (
                "Password=hush-hush;Database=production;Encrypt=true",
                "production",
            ),
            ("Cookie: language=portuguese; sid=hush-hush", "portuguese"),
        ] {
            let found = list(arg);
            assert!(found.contains(&"hush-hush".to_owned()), "{arg}: {found:?}");
            assert!(!found.contains(&word.to_owned()), "{arg}: {found:?}");
        }
        assert_eq!(
            list("PASSPHRASE=mountain lakes are deep"),
            ["mountain lakes are deep"]
        );
    }

    #[test]
    fn secret_of_an_argument_keeps_its_equals_signs() {
        for (arg, expected) in [
            ("API_KEY=c2VjcmV0==", Some("c2VjcmV0==")),
            ("--token=A=b=c", Some("A=b=c")),
            ("--env=API_KEY=abc=", Some("abc=")),
            ("Authorization: Bearer abc", Some("Bearer abc")),
            ("https://h/mcp?api_key=abc", Some("abc")),
            ("postgres://me:p%40w@h/db", Some("p%40w")),
            ("https://tok@h/", Some("tok")),
            ("A=b=c", None),
            ("@key/server:1.0", None),
            ("https://h/a@b", None),
        ] {
            let found = find_argument_secret(arg, is_secret_name);
            assert_eq!(found.map(|part| &arg[part]), expected, "{arg}");
        }
    }
}
