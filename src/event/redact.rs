//! Takes secrets out of text before it leaves the emitter: nothing downstream ever holds one.

use aho_corasick::{AhoCorasick, MatchKind};

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Texts shorter than this are not looked for: they would hit ordinary words.
const SHORTEST: usize = 6;

/// Knows the secrets of a run and replaces them, in the spellings in which they travel: raw, JSON-escaped and
/// percent-encoded.
#[derive(Debug, Default)]
pub struct Redactor {
    find: Option<AhoCorasick>,
    needles: Vec<String>,
}

impl Redactor {
    /// A redactor for these secrets; ones under 6 characters are ignored.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut needles = Vec::new();
        for secret in secrets {
            let secret = secret.trim();
            if secret.len() < SHORTEST {
                continue;
            }
            let json = serde_json::Value::from(secret).to_string();
            let percent: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            for spelling in [secret, &json[1..json.len() - 1], &percent] {
                if !needles.iter().any(|n| n == spelling) {
                    needles.push(spelling.to_owned());
                }
            }
        }
        let find = (!needles.is_empty()).then(|| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(&needles)
                .expect("a few short needles always build")
        });
        Self { find, needles }
    }

    /// The text without secrets, or `None` where it holds none.
    pub fn redact(&self, text: &str) -> Option<String> {
        let find = self.find.as_ref()?;
        find.is_match(text)
            .then(|| find.replace_all(text, &vec![REDACTED; self.needles.len()]))
    }

    /// As [`Redactor::redact`], for bytes.
    pub fn redact_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let find = self.find.as_ref()?;
        find.is_match(bytes)
            .then(|| find.replace_all_bytes(bytes, &vec![REDACTED.as_bytes(); self.needles.len()]))
    }

    /// How many bytes at the end of `text` could be the beginning of a secret.
    fn unsure(&self, text: &str) -> usize {
        let mut longest = 0;
        for needle in &self.needles {
            for len in (longest + 1..needle.len().min(text.len() + 1)).rev() {
                if needle.is_char_boundary(len) && text.ends_with(&needle[..len]) {
                    longest = len;
                    break;
                }
            }
        }
        longest
    }
}

/// Redacts a stream whose secrets may be split over chunks: what could be the beginning of one is held back.
#[derive(Debug, Default)]
pub struct StreamRedactor {
    held: String,
}

impl StreamRedactor {
    /// Takes a chunk and returns what is safe to pass on.
    pub fn push(&mut self, redactor: &Redactor, chunk: &str) -> String {
        if redactor.find.is_none() {
            return chunk.to_owned();
        }
        self.held.push_str(chunk);
        let clean = redactor
            .redact(&self.held)
            .unwrap_or_else(|| std::mem::take(&mut self.held));
        let keep = redactor.unsure(&clean);
        clean[clean.len() - keep..].clone_into(&mut self.held);
        clean[..clean.len() - keep].to_owned()
    }

    /// What was held back, at the end of the stream.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "sk-live-4711-abcdef";

    #[test]
    fn every_spelling_of_a_secret_goes() {
        let redactor = Redactor::new(["pa\"ss word+1"]);
        for text in [
            "x pa\"ss word+1 y",
            r#"{"k":"pa\"ss word+1"}"#,
            "?key=pa%22ss+word%2B1",
        ] {
            let clean = redactor.redact(text).expect("a hit");
            assert!(
                clean.contains(REDACTED)
                    && !clean.contains("word+1")
                    && !clean.contains("word%2B1"),
                "{clean}"
            );
        }
        assert_eq!(redactor.redact("nothing here"), None);
    }

    #[test]
    fn short_texts_are_no_secrets() {
        assert_eq!(Redactor::new(["abc", ""]).redact("abcabc"), None);
    }

    proptest! {
        #[test]
        fn a_secret_split_anywhere_never_passes(before in "[a-z-]{0,12}", after in "[a-z-]{0,12}", cuts in prop::collection::vec(0usize..60, 0..5)) {
            let redactor = Redactor::new([KEY]);
            let whole = format!("{before}{KEY}{after}");
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|c| *c <= whole.len()).collect();
            cuts.sort_unstable();
            cuts.push(whole.len());
            let (mut stream, mut out, mut from) = (StreamRedactor::default(), String::new(), 0);
            for cut in cuts {
                out.push_str(&stream.push(&redactor, &whole[from..cut]));
                from = cut;
            }
            out.push_str(&stream.finish());
            prop_assert!(!out.contains(KEY));
            prop_assert_eq!(out, redactor.redact(&whole).expect("a hit"));
        }
    }
}
