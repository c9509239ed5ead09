//! The secrets in the arguments of a program and in URLs.

use std::ops::Range;

use crate::model::MIN_UNNAMED_SECRET_LEN;

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

/// Returns the secrets in an argument: what [`find_argument_secret`] finds, and its parts between equals signs. A server
/// may repeat one part of `TOKEN=name=abc`.
pub(super) fn list_argument_secrets(
    arg: &str,
    is_secret_name: impl Fn(&str) -> bool,
) -> Vec<String> {
    let Some(range) = find_argument_secret(arg, is_secret_name) else {
        return Vec::new();
    };
    let whole = &arg[range];
    let parts = whole.split('=').filter(|part| part.len() < whole.len());
    let parts = parts.filter(|part| part.len() >= MIN_UNNAMED_SECRET_LEN);
    std::iter::once(whole)
        .chain(parts)
        .map(str::to_owned)
        .collect()
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
