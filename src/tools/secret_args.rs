//! The secrets in the arguments of a program and in URLs.

use std::ops::Range;

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
