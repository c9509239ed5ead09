//! The redaction of secrets in texts, before they leave the emitter.
//!
//! Responsible for finding secrets in all their spellings. Does not decide which texts are secret.

use std::fmt::Write as _;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use aho_corasick::{AhoCorasick, MatchKind};

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// The shortest secret. Shorter texts would match ordinary words.
const MIN_SECRET_LEN: usize = 6;

/// The known secrets of a run, and their replacement.
///
/// Finds raw, JSON-escaped and percent-encoded spellings. Some servers escape `/` as `\/` or `\u002f`, and some put
/// JSON inside a JSON string. ASCII case does not matter, so `%2F` and `%2f` are equal.
///
/// A secret may become known during the run, such as a fetched token: pass it to [`Redactor::add_secrets`] before it is
/// used.
#[derive(Default)]
pub struct Redactor(RwLock<KnownSecrets>);

/// The secrets so far. No output shows them, not even debug output.
#[derive(Default)]
struct KnownSecrets {
    secrets: Vec<String>,
    matcher: Option<AhoCorasick>,
    spellings: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// Creates a redactor for these secrets. Ignores secrets under 6 characters.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let redactor = Self::default();
        redactor.add_secrets(secrets);
        redactor
    }

    /// Adds secrets. Known ones need only a lookup.
    pub fn add_secrets<'s>(&self, secrets: impl IntoIterator<Item = &'s str>) {
        let mut new: Vec<&str> = Vec::new();
        {
            let known = self.read_known();
            for secret in secrets {
                // A secret from the environment or a file may have a line break at its end.
                let secret = secret.trim();
                let is_new = !known.secrets.iter().any(|s| s == secret) && !new.contains(&secret);
                if secret.len() >= MIN_SECRET_LEN && is_new {
                    new.push(secret);
                }
            }
        }
        if !new.is_empty() {
            // Nearly all calls add nothing, so the write lock is taken only for new secrets.
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            known.add_secrets(&new);
        }
    }

    fn read_known(&self) -> RwLockReadGuard<'_, KnownSecrets> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text without secrets; `None` if it contains none.
    pub fn redact(&self, text: &str) -> Option<String> {
        let known = self.read_known();
        let find = known.matcher.as_ref()?;
        find.is_match(text)
            .then(|| find.replace_all(text, &vec![REDACTED; known.spellings.len()]))
    }

    /// As [`Redactor::redact`], for bytes.
    pub fn redact_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let known = self.read_known();
        let find = known.matcher.as_ref()?;
        find.is_match(bytes).then(|| {
            find.replace_all_bytes(bytes, &vec![REDACTED.as_bytes(); known.spellings.len()])
        })
    }

    fn is_empty(&self) -> bool {
        self.read_known().matcher.is_none()
    }

    /// Returns the number of bytes at the end of `text` that could be the beginning of a secret.
    fn partial_secret_len(&self, text: &str) -> usize {
        let mut longest = 0;
        for needle in &self.read_known().spellings {
            // Longer beginnings first: the first hit for a needle is its longest.
            for len in (longest + 1..needle.len().min(text.len() + 1)).rev() {
                if needle.is_char_boundary(len)
                    && text.is_char_boundary(text.len() - len)
                    && text[text.len() - len..].eq_ignore_ascii_case(&needle[..len])
                {
                    longest = len;
                    break;
                }
            }
        }
        longest
    }
}

impl KnownSecrets {
    fn add_secrets(&mut self, secrets: &[&str]) {
        for secret in secrets {
            self.secrets.push((*secret).to_owned());
            for spelling in secret_spellings(secret) {
                // A text that contains the secret may be escaped again before it leaves, so add that spelling.
                for needle in [escape_json(&spelling), spelling] {
                    if !self.spellings.contains(&needle) {
                        self.spellings.push(needle);
                    }
                }
            }
        }
        // The matcher cannot be extended, so it is built again with all spellings.
        let find = AhoCorasick::builder()
            // One spelling may contain another; the longest match leaves no rest of a secret.
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(&self.spellings)
            .expect("a few needles always build");
        self.matcher = Some(find);
    }
}

/// Returns a secret in all spellings of JSON and URL writers.
fn secret_spellings(secret: &str) -> [String; 7] {
    let by_char = |spell: &dyn Fn(char) -> String| secret.chars().map(spell).collect::<String>();
    let plain = |c: char| c.is_ascii_alphanumeric();
    let as_is = |c: char, other: &dyn Fn(char) -> String| {
        if plain(c) { c.to_string() } else { other(c) }
    };
    [
        secret.to_owned(),
        escape_json(secret),
        escape_json(secret).replace('/', "\\/"),
        by_char(&|c| as_is(c, &escape_unicode)),
        by_char(&escape_unicode),
        url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        by_char(&|c| as_is(c, &escape_percent)),
    ]
}

/// Returns a text as it appears inside a JSON string.
fn escape_json(text: &str) -> String {
    // The first and last bytes are the quotes.
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn escape_unicode(c: char) -> String {
    let mut out = String::new();
    // JSON escapes characters above U+FFFF as two UTF-16 units.
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _infallible = write!(out, "\\u{unit:04x}");
    }
    out
}

fn escape_percent(c: char) -> String {
    let mut out = String::new();
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        let _infallible = write!(out, "%{byte:02X}");
    }
    out
}

/// Redacts a stream whose secrets may be split between chunks. It holds back text that could be the beginning of a
/// secret.
#[derive(Debug, Default)]
pub struct StreamRedactor {
    pending: String,
}

impl StreamRedactor {
    /// Adds a chunk and returns the text that is safe to send.
    pub fn push(&mut self, redactor: &Redactor, chunk: &str) -> String {
        // Most runs have no secret in a stream; this path avoids a copy into the buffer.
        if self.pending.is_empty() && redactor.is_empty() {
            return chunk.to_owned();
        }
        self.pending.push_str(chunk);
        let clean = redactor
            .redact(&self.pending)
            .unwrap_or_else(|| std::mem::take(&mut self.pending));
        let keep = redactor.partial_secret_len(&clean);
        clean[clean.len() - keep..].clone_into(&mut self.pending);
        clean[..clean.len() - keep].to_owned()
    }

    /// Returns the text that was held back, at the end of the stream.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "sk-live-4711-abcdef";

    #[test]
    fn every_spelling_of_a_secret_is_redacted() {
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
    fn spellings_of_servers_are_redacted() {
        let redactor = Redactor::new(["sk/live-4711+ab=="]);
        for text in [
            r"php: sk\/live-4711+ab==",
            r"go: sk/live-4711\u002bab\u003d\u003d sk\u002flive\u002d4711\u002Bab\u003D\u003D",
            "a proxy: sk%2flive%2d4711%2bab%3d%3d, sk%2Flive-4711%2Bab%3D%3D",
            "a shout: SK/LIVE-4711+AB==",
        ] {
            let clean = redactor.redact(text).expect("a hit");
            assert!(clean.contains(REDACTED), "{clean}");
            assert!(
                !clean.contains("4711+") && !clean.contains("4711%"),
                "{clean}"
            );
            let quoted = serde_json::Value::from(text).to_string();
            let clean = redactor.redact(&quoted).expect("a hit inside JSON");
            assert!(
                !clean.contains("4711+") && !clean.contains("4711%"),
                "{clean}"
            );
        }
    }

    #[test]
    fn short_texts_are_not_secrets() {
        assert_eq!(Redactor::new(["abc", ""]).redact("abcabc"), None);
    }

    #[test]
    fn later_secret_is_redacted() {
        let redactor = Redactor::new(["sk-first-1"]);
        assert_eq!(redactor.redact("ya29.later"), None);
        redactor.add_secrets(["ya29.later", "sk-first-1", "abc"]);
        assert_eq!(
            redactor.redact("sk-first-1 ya29.later abc").as_deref(),
            Some("[redacted] [redacted] abc")
        );
        assert!(!format!("{redactor:?}").contains("later"));
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
