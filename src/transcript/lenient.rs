//! Repair of JSON that strict parsers reject: `NaN`, `Infinity` and `-Infinity`, and text over many lines.
//!
//! Responsible for the replacement of such numbers by null, outside of strings, and for their count. Python's `json`
//! writes them, so logs of scores contain them. Does not parse.

use std::borrow::Cow;

use super::fields::compact_json;

use memchr::memmem;

/// Returns the text with null for every bare `NaN` and `Infinity`, and the number of replacements. Without one, nothing
/// is copied.
pub(super) fn replace_non_finite(text: &str) -> (Cow<'_, str>, u64) {
    let bytes = text.as_bytes();
    // Most files have none, and this search is much faster than the scan below.
    let any = memmem::find(bytes, b"NaN").is_some() || memmem::find(bytes, b"Infinity").is_some();
    if !any {
        return (Cow::Borrowed(text), 0);
    }
    let mut out = String::new();
    let mut count = 0;
    // The offset up to which `made` contains the text.
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at + 1),
            b'N' | b'I' | b'-' => match non_finite_len(&bytes[at..]) {
                Some(len) => {
                    out.push_str(&text[copied..at]);
                    out.push_str("null");
                    at += len;
                    copied = at;
                    count += 1;
                }
                None => at += 1,
            },
            _ => at += 1,
        }
    }
    if count == 0 {
        return (Cow::Borrowed(text), 0);
    }
    out.push_str(&text[copied..]);
    (Cow::Owned(out), count)
}

/// Returns the length of the non-finite number at the beginning of `bytes`, if there is one.
fn non_finite_len(bytes: &[u8]) -> Option<usize> {
    let words: [&[u8]; 4] = [b"NaN", b"Infinity", b"-Infinity", b"-NaN"];
    let word = words
        .into_iter()
        .find(|candidate| bytes.starts_with(candidate))?;
    // Letters after the word mean that it is part of a longer one, which is not valid JSON either.
    let is_delimited = bytes
        .get(word.len())
        .is_none_or(|next| !next.is_ascii_alphanumeric());
    is_delimited.then_some(word.len())
}

/// Returns the offset after the string whose content begins at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    loop {
        // A search for quotes and backslashes skips most bytes of a long string.
        match memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
            None => return bytes.len(),
            Some(hit) if bytes[at + hit] == b'"' => return at + hit + 1,
            Some(hit) => at += hit + 2,
        }
    }
}

/// Removes the white space of JSON on several lines, so that each part of it fits on a line. JSON on one line is
/// returned unchanged, without a copy.
pub(super) fn minify_multiline_json(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    compact_json(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minify_removes_white_space_between_tokens_only() {
        let text = "{\n  \"a b\": [1,\r\n 2.50, \"x \\\" \\n y\"],\n\t\"c\": true }\n";
        assert_eq!(
            minify_multiline_json(text),
            r#"{"a b":[1,2.50,"x \" \n y"],"c":true}"#
        );
        assert!(
            matches!(minify_multiline_json("{ \"a\": 1 }"), Cow::Borrowed(_)),
            "on one line already"
        );
    }

    #[test]
    fn non_finite_numbers_become_null_and_are_counted() {
        for (text, wanted, count) in [
            (r#"{"a":1}"#, r#"{"a":1}"#, 0),
            (
                r#"{"a":NaN,"b":[Infinity,-Infinity]}"#,
                r#"{"a":null,"b":[null,null]}"#,
                3,
            ),
            (r#"{"NaN":"NaN \" NaN"}"#, r#"{"NaN":"NaN \" NaN"}"#, 0),
            (r#"["\\",NaN]"#, r#"["\\",null]"#, 1),
            (r#"["é",-NaN,-1]"#, r#"["é",null,-1]"#, 1),
            // Words that are longer are no numbers: the parser says what is wrong.
            ("[NaNo]", "[NaNo]", 0),
            ("NaN", "null", 1),
            (r#"["NaN\"#, r#"["NaN\"#, 0),
        ] {
            assert_eq!(
                replace_non_finite(text),
                (Cow::Borrowed(wanted), count),
                "{text}"
            );
        }
    }
}
