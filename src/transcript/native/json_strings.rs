//! The texts of JSON strings.
//!
//! Responsible for escapes. A raw value is valid JSON, so most strings need no parser.

use std::fmt;

use serde::de::{Deserializer as _, Visitor};
use serde_json::value::RawValue;

use crate::model::SourceText;

/// Returns the text of a JSON string; `None` for any other value.
///
/// Half of a surrogate pair stays as written (`\ud83d`). Programs in JavaScript and Python write it if they cut a text.
/// A reader that took such a string for absent would lose the whole text.
pub(in crate::transcript) fn json_string(raw: &RawValue) -> Option<SourceText<'_>> {
    let escaped = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', escaped.as_bytes()).is_none() {
        return Some(SourceText::from(escaped));
    }
    let text = decode_escapes(escaped).or_else(|| decode_lone_halves(raw.get()));
    text.map(SourceText::from)
}

/// Decodes the escapes of a JSON string without its quotes; `None` if it contains half of a surrogate pair.
fn decode_escapes(escaped: &str) -> Option<String> {
    // A text is never longer than its escapes, so one allocation is enough. A parser makes several.
    let mut text = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        let (character, length) = decode_escape(escape)?;
        text.push(character);
        rest = escape.get(length..)?;
    }
    text.push_str(rest);
    Some(text)
}

/// Decodes the escape at the beginning of a text. Returns the character and the length of the escape in bytes.
fn decode_escape(text: &str) -> Option<(char, usize)> {
    let character = match text.as_bytes().get(1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return decode_unicode_escape(text),
        // A quotation mark, a backslash or a slash.
        other => char::from(*other),
    };
    Some((character, 2))
}

/// Decodes `\u` with four digits, or two of them with the halves of a surrogate pair.
fn decode_unicode_escape(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| u16::from_str_radix(text.get(at..at + 4)?, 16).ok();
    let first = unit(2)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some((character, 6));
    }
    let second = text.get(6..8).filter(|next| *next == "\\u");
    let second = second.and_then(|_| unit(8))?;
    let character = char::decode_utf16([first, second]).next()?.ok()?;
    Some((character, 12))
}

/// Decodes a JSON string with halves of surrogate pairs, which stay as their escapes.
fn decode_lone_halves(json: &str) -> Option<String> {
    struct HalvesVisitor;
    impl Visitor<'_> for HalvesVisitor {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
            Ok(bytes.to_owned())
        }
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    // As bytes, serde_json writes a half as if it were a character: ED, then A0 or more.
    let bytes = reader.deserialize_bytes(HalvesVisitor).ok()?;
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = &bytes[..];
    while let Some((first, after)) = rest.split_first() {
        if let (0xED, [second @ 0xA0..=0xBF, third, after @ ..]) = (first, after) {
            let half = 0xD000 | (u32::from(second & 0x3F) << 6) | u32::from(third & 0x3F);
            text.extend_from_slice(format!("\\u{half:04x}").as_bytes());
            rest = after;
        } else {
            text.push(*first);
            rest = after;
        }
    }
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;

    /// Returns the text that the parser of `serde_json` reads.
    fn parse(json: &str) -> Option<String> {
        serde_json::from_str(json).ok()
    }

    fn text(json: &str) -> Option<String> {
        let raw: &RawValue = serde_json::from_str(json).expect("valid JSON");
        json_string(raw).map(|text| text.0.into_owned())
    }

    #[test]
    fn only_a_string_without_escapes_is_borrowed() {
        for (json, is_borrowed) in [(r#""""#, true), (r#""a é""#, true), (r#""a\n""#, false)] {
            let raw: &RawValue = serde_json::from_str(json).expect("valid JSON");
            let text = json_string(raw).expect("a string");
            assert_eq!(matches!(text.0, Cow::Borrowed(_)), is_borrowed, "{json}");
        }
        for json in ["1", "null", r#"["a"]"#, r#"{"a":"b"}"#] {
            assert_eq!(text(json), None, "{json}");
        }
    }

    #[test]
    fn every_escape_is_decoded() {
        let json = r#""\"\\\/\b\f\n\r\t\u0000\u00e9\u20AC\ud83d\ude00 \\u0041""#;
        let expected = "\"\\/\u{8}\u{c}\n\r\t\0é€😀 \\u0041";
        assert_eq!(text(json).as_deref(), Some(expected));
        assert_eq!(parse(json).as_deref(), Some(expected));
    }

    #[test]
    fn half_of_a_surrogate_pair_stays_as_written() {
        for (json, expected) in [
            (r#""a\ud83d""#, r"a\ud83d"),
            (r#""\ude00\nb""#, "\\ude00\nb"),
            (r#""\ud83dx\ud83d\u0041""#, r"\ud83dx\ud83dA"),
            (r#""\ud83d\ud83d\ude00""#, "\\ud83d😀"),
        ] {
            assert_eq!(text(json).as_deref(), Some(expected), "{json}");
        }
    }

    proptest! {
        #[test]
        fn decoded_text_is_that_of_the_parser(
            content in r#"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}|\\ud83[cd]\\ude[0-9a-f]{2}){0,12}"#,
        ) {
            let json = format!("\"{content}\"");
            // The parser refuses half of a surrogate pair, which stays as written.
            if let Some(expected) = parse(&json) {
                prop_assert_eq!(text(&json), Some(expected));
            } else {
                prop_assert!(text(&json).is_some());
            }
        }
    }
}
