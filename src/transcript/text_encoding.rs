//! The encoding of a file's text, `encoding:` of a field mapping.
//!
//! Responsible for the conversion of a record's bytes to text. Accepts only encodings in which ASCII characters keep
//! their bytes, because dicta finds the records in the bytes of the file.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

/// The encoding of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextEncoding(&'static Encoding);

impl Default for TextEncoding {
    fn default() -> Self {
        Self(UTF_8)
    }
}

impl TextEncoding {
    /// Returns the encoding with this name, as the WHATWG standard lists them. The error is a sentence fragment.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let name = name.trim();
        // Python writes `latin_1`, `mac_roman` and `cp1252`, which the standard does not list.
        let common = match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "mac" | "mac-roman" | "macroman" => "macintosh".to_owned(),
            "latin-1" | "latin1" => "iso-8859-1".to_owned(),
            other => other.to_owned(),
        };
        match Encoding::for_label(common.as_bytes()) {
            Some(found) if found.is_ascii_compatible() => Ok(Self(found)),
            Some(found) => Err(format!(
                "{} is not supported; save the file as UTF-8 and leave `encoding` out",
                found.name()
            )),
            None => Err(
                "the name is unknown; write for example windows-1252, macintosh or iso-8859-2"
                    .to_owned(),
            ),
        }
    }

    /// Returns bytes as text. The error is a sentence fragment.
    pub(super) fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, String> {
        if self.0 == UTF_8 {
            return std::str::from_utf8(bytes)
                .map(Cow::Borrowed)
                .map_err(|why| format!("not UTF-8 at byte {}", why.valid_up_to()));
        }
        match self.0.decode_without_bom_handling(bytes) {
            (text, false) => Ok(text),
            (_, true) => Err(format!("not {}", self.0.name())),
        }
    }

    /// Returns the encoding that bytes outside of UTF-8 most likely have; `None` for UTF-8. Bytes from 0x80 to 0x9f
    /// are letters in Mac Roman, and punctuation in Windows-1252, where it seldom follows a letter and precedes one.
    pub(super) fn guess(bytes: &[u8]) -> Option<&'static str> {
        let broken = match std::str::from_utf8(bytes) {
            Ok(_) => return None,
            // The end of the bytes may cut a character.
            Err(why) if why.error_len().is_none() => return None,
            Err(why) => why.valid_up_to(),
        };
        let is_letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
        let high = (broken..bytes.len()).filter(|at| bytes[*at] >= 0x80);
        let (mut mac, mut windows) = (0_u32, 0_u32);
        for at in high {
            let is_inside = at > 0 && is_letter(at - 1) && is_letter(at + 1);
            match bytes[at] {
                // The apostrophes of both: `don’t`.
                0x92 if is_inside => windows += 1,
                0xd5 | 0x80..=0x9f if is_inside => mac += 1,
                0xd0..=0xd3 if !is_inside => mac += 1,
                _ => windows += 1,
            }
        }
        Some(if mac > windows {
            "macintosh"
        } else {
            "windows-1252"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_python_names_the_same_encoding() {
        let encode = |name| TextEncoding::parse(name).expect("known").decode(b"caf\x8e");
        assert_eq!(encode("mac_roman").as_deref(), Ok("café"));
        assert_eq!(encode("macintosh").as_deref(), Ok("café"));
        assert_eq!(encode("utf-8"), Err("not UTF-8 at byte 3".to_owned()));
        let latin = TextEncoding::parse("latin-1").expect("known");
        assert_eq!(latin.decode(b"caf\xe9").as_deref(), Ok("café"));
    }

    #[test]
    fn encoding_without_ascii_is_refused() {
        for name in ["utf-16", "iso-2022-jp", "klingon"] {
            assert!(TextEncoding::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn apostrophe_distinguishes_two_encodings() {
        assert_eq!(TextEncoding::guess(b"I don\x92t"), Some("windows-1252"));
        assert_eq!(TextEncoding::guess(b"I don\xd5t"), Some("macintosh"));
        assert_eq!(TextEncoding::guess("I don’t".as_bytes()), None);
        let cut = &"café".as_bytes()[..4];
        assert_eq!(TextEncoding::guess(cut), None);
    }
}
