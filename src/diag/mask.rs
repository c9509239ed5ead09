//! The masking of secrets that a user wrote into a file, before dicta shows a line of it.

use std::ops::Range;
use std::sync::Arc;

use crate::model::is_secret_key;

/// Keys of a mapping whose values would be secrets.
pub const SECRET_KEYS: &[&str] = &[
    "api_key",
    "apikey",
    "api-key",
    "key",
    "token",
    "secret",
    "password",
    "access_token",
    "authorization",
];

/// Masks everything in a file's text that looks like a secret, byte for byte, so that places stay valid. Snippets are
/// cut from the result.
pub fn mask_secrets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match find_secret_start(line) {
            Some(at) => {
                out.push_str(&line[..at]);
                out.extend(line[at..].chars().map(|c| {
                    if c.is_whitespace() {
                        c.to_string()
                    } else {
                        // One star per byte keeps the byte positions.
                        "*".repeat(c.len_utf8())
                    }
                }));
            }
            None => out.push_str(line),
        }
    }
    out
}

/// Returns a text with stars in place of these byte ranges, byte for byte, so that places stay valid. Blanks and line
/// breaks stay, so that line numbers of later problems are right.
pub fn mask_ranges(text: &str, ranges: impl IntoIterator<Item = Range<usize>>) -> Arc<str> {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        for byte in bytes.get_mut(range).into_iter().flatten() {
            if !byte.is_ascii_whitespace() {
                *byte = b'*';
            }
        }
    }
    // The parser's spans begin and end between characters. If one does not, the result is empty, because the text may
    // contain a key.
    String::from_utf8(bytes).map_or_else(|_| Arc::from(""), Arc::from)
}

/// Returns true if the values of a key are masked: of every key with a secret, and of every other one that ends in
/// `key`. A snippet loses little by a masked `cache_key`, and a wrong guess would show a secret.
fn is_masked_key(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    // `pass` is a key of many rubrics, and its value there is a criterion.
    (is_secret_key(key) && lower != "pass")
        || SECRET_KEYS.contains(&lower.as_str())
        || lower.ends_with("_key")
        || lower.ends_with("-key")
}

/// Returns the position where a line's secret begins: after `api_key:`, `?api_key=` or a similar key, or at the user
/// part of a URL.
fn find_secret_start(line: &str) -> Option<usize> {
    // ASCII lower case keeps the byte positions of the line.
    let lower = line.to_ascii_lowercase();
    // A key may be anywhere in the line, because YAML also has mappings in braces.
    let after_key = lower.match_indices([':', '=']).find_map(|(mark, _)| {
        // As written, because a change of case separates words.
        let head = line[..mark].trim_end().trim_end_matches(['"', '\'']);
        let word = head
            .rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
            .next()
            .unwrap_or("");
        // The first secret key counts: everything after it is masked to the end of the line.
        is_masked_key(word).then_some(mark + 1)
    });
    let user = lower.match_indices("://").find_map(|(at, _)| {
        // A URL may hold a password: `https://user:password@host`.
        let host = &lower[at + 3..];
        let end = host
            .find(['/', ' ', '"', '\'', ',', '}'])
            .unwrap_or(host.len());
        host[..end].contains('@').then_some(at + 3)
    });
    match (after_key, user) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_name_of_the_former_rule_is_still_masked() {
        let ends = ["-key", "-token", "_token", "_secret", "-secret", "_key"];
        let owners = ["api", "cache", "primary", "my", "x", "max", "type"];
        let suffixed = ends
            .iter()
            .flat_map(|end| owners.iter().map(move |owner| format!("{owner}{end}")));
        let exact = SECRET_KEYS.iter().map(|key| (*key).to_owned());
        for key in suffixed.chain(exact) {
            for key in [key.clone(), key.to_ascii_uppercase()] {
                assert_eq!(mask_secrets(&format!("{key}: v\n")), format!("{key}: *\n"));
            }
        }
    }

    #[test]
    fn secrets_are_masked_byte_for_byte() {
        let cases = [
            ("  api_key: sk-é1\n", "  api_key: ******\n"),
            (
                "j: {provider: x, \"api_key\": sk-1}\n",
                "j: {provider: x, \"api_key\": *****\n",
            ),
            (
                "  base_url: https://me:pw@host/v1\n",
                "  base_url: https://*************\n",
            ),
            (
                "  a: {base_url: http://a/v1}, b: {base_url: https://me:pw@b/v1}\n",
                "  a: {base_url: http://a/v1}, b: {base_url: https://***********\n",
            ),
            (
                "  base_url: https://host/v1?v=2&apiKey=sk-1#x\n",
                "  base_url: https://host/v1?v=2&apiKey=******\n",
            ),
            ("  args: [--token=abc]\n", "  args: [--token=****\n"),
            (
                "  args: host=a password = abc\n",
                "  args: host=a password = ***\n",
            ),
            (
                "  url: https://host/?page=2&q=abc\n",
                "  url: https://host/?page=2&q=abc\n",
            ),
            ("  X-Api-Key: abc\n", "  X-Api-Key: ***\n"),
            (
                "  api_key_env: GEMINI_API_KEY\n",
                "  api_key_env: GEMINI_API_KEY\n",
            ),
            ("  api_key_file: ~/k\n", "  api_key_file: ~/k\n"),
            ("  max_output_tokens: 5\n", "  max_output_tokens: 5\n"),
            ("  DB_PASSWORD: hunter2\n", "  DB_PASSWORD: *******\n"),
            ("  githubToken: ghp_1\n", "  githubToken: *****\n"),
            ("  {Cookie: a=b}\n", "  {Cookie: ****\n"),
            ("  client_credentials: abc\n", "  client_credentials: ***\n"),
            ("  cache_key: abc\n", "  cache_key: ***\n"),
            ("  keyword: abc\n", "  keyword: abc\n"),
            ("  X-Author: ann\n", "  X-Author: ann\n"),
            ("  pass: it is kind\n", "  pass: it is kind\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(mask_secrets(text), expected);
            assert_eq!(mask_secrets(text).len(), text.len());
        }
    }
}
