//! Lone halves of surrogate pairs in JSON texts, as in `"\ud83d"`.
//!
//! Models and servers write one if they cut a text between the two halves of a character. `serde_json` rejects it. This
//! module finds such halves in a JSON text that may be broken, and replaces them. It changes no other byte.

use std::borrow::Cow;

/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;
/// The escape that takes the place of a lone half. Decoders use the same character.
pub const REPLACEMENT: &str = "\\ufffd";

/// Half of a surrogate pair without the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoneHalf<'j> {
    /// The position of its backslash.
    pub at: usize,
    /// The escape: `\ud83d`.
    pub escape: &'j str,
    /// The key of the string.
    pub key: &'j str,
    /// `true` for the first half of a pair.
    pub is_first: bool,
    /// `true` for a first half at the end of its string, and a second half at its beginning.
    pub is_joinable: bool,
}

/// Returns a JSON text with U+FFFD in place of each lone half.
pub fn replace_lone_halves(json: &str) -> Cow<'_, str> {
    let halves = find_lone_halves(json);
    if halves.is_empty() {
        return json.into();
    }
    replace_each(json, &halves, |_| REPLACEMENT.to_owned()).into()
}

/// Replaces each half. `replacement` gets the number of the half, from 0.
pub fn replace_each(
    json: &str,
    halves: &[LoneHalf<'_>],
    replacement: impl Fn(usize) -> String,
) -> String {
    let mut out = String::with_capacity(json.len() + ESCAPE * halves.len());
    let mut copied = 0;
    for (nth, half) in halves.iter().enumerate() {
        out.push_str(&json[copied..half.at]);
        out.push_str(&replacement(nth));
        copied = half.at + ESCAPE;
    }
    out.push_str(&json[copied..]);
    out
}

/// Finds the lone halves in the strings of a JSON text, which may be broken.
pub fn find_lone_halves(json: &str) -> Vec<LoneHalf<'_>> {
    let mut found = Vec::new();
    // Nearly all texts end here.
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return found;
    }
    let bytes = json.as_bytes();
    let mut key = "";
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', &bytes[at..]) {
        let start = at + quote + 1;
        at = start;
        let first_of_string = found.len();
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    let code = read_escape(bytes, at);
                    let is_first = code.is_some_and(|code| (0xD800..0xDC00).contains(&code));
                    let is_second = code.is_some_and(|code| (0xDC00..0xE000).contains(&code));
                    let next = read_escape(bytes, at + ESCAPE);
                    if is_first && next.is_some_and(|code| (0xDC00..0xE000).contains(&code)) {
                        at += 2 * ESCAPE;
                    } else if is_first || is_second {
                        found.push(LoneHalf {
                            at,
                            escape: &json[at..at + ESCAPE],
                            key,
                            is_first,
                            is_joinable: if is_first {
                                bytes.get(at + ESCAPE) == Some(&b'"')
                            } else {
                                at == start
                            },
                        });
                        at += ESCAPE;
                    } else {
                        at += 2;
                    }
                }
                Some(_) => at += 1,
                None => return found,
            }
        }
        let end = at;
        at += 1;
        let after = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
        if after == Some(&b':') {
            key = &json[start..end];
            // The halves of a key join with nothing.
            for half in &mut found[first_of_string..] {
                half.is_joinable = false;
            }
        }
    }
    found
}

/// Reads `\uXXXX` at a position.
fn read_escape(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    // `from_str_radix` accepts a sign, which an escape can't contain.
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn lone_half_in_a_document_is_replaced() {
        for (json, expected) in [
            (r#"{"a":"x\ud83d"}"#, r#"{"a":"x\ufffd"}"#),
            (
                r#"{"a":"\uDE80y\uD83D","b":"\ud83d\ude80"}"#,
                r#"{"a":"\ufffdy\ufffd","b":"\ud83d\ude80"}"#,
            ),
            (r#"["\ud83d\ud83d\ude80"]"#, r#"["\ufffd\ud83d\ude80"]"#),
            (
                r#"["\\ud83d \u00e9 \\\ud83d"]"#,
                r#"["\\ud83d \u00e9 \\\ufffd"]"#,
            ),
            (r#"{"\ud83d":1}"#, r#"{"\ufffd":1}"#),
            (r#"{"a":"\ud83"#, r#"{"a":"\ud83"#),
            (r#"{"a":"\ud+3d"}"#, r#"{"a":"\ud+3d"}"#),
            ("é\\ud83d", "é\\ud83d"),
        ] {
            assert_eq!(replace_lone_halves(json), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_stays_readable_json(strings in prop::collection::vec("(\\\\ud83d|\\\\ude80|\\\\n|x|\\\\\\\\){0,6}", 0..4)) {
            let json = format!("[{}]", strings.iter().map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(","));
            let replaced = replace_lone_halves(&json);
            prop_assert!(serde_json::from_str::<Value>(&replaced).is_ok(), "{json} {replaced}");
        }
    }
}
