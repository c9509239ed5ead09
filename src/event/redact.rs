//! The redaction of secrets in texts, before they leave the emitter.
//!
//! Responsible for finding secrets in all their spellings. Does not decide which texts are secret.

mod spellings;

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use aho_corasick::{AhoCorasick, Input, MatchKind};

use spellings::{list_line_spellings, list_spellings};

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// The shortest secret. Shorter texts would match ordinary words.
const MIN_SECRET_LEN: usize = 6;

/// The marks with which dicta ends texts that it cut, also inside JSON.
const CUT_MARKS: [&str; 3] = ["…", "\n\n[truncated at ", "\\n\\n[truncated at "];

/// The known secrets of a run, and their replacement.
///
/// Finds raw, JSON-escaped, HTML-escaped, percent-encoded, hexadecimal and base64 spellings. Some servers escape `/` as
/// `\/` or `\u002f`, and some put JSON inside a JSON string. ASCII case does not matter, so `%2F` and `%2f` are equal.
///
/// A secret may become known during the run, such as a fetched token: pass it to [`Redactor::add_secrets`] before it is
/// used.
#[derive(Default)]
pub struct Redactor(RwLock<KnownSecrets>);

/// The secrets so far. No output shows them, not even debug output.
#[derive(Default)]
struct KnownSecrets {
    secrets: Vec<String>,
    /// The spellings in lower case, sorted, so that a search finds the spellings that begin with a text.
    spellings: Vec<String>,
    /// The first bytes of the spellings. Most bytes of a text begin no spelling.
    first_bytes: Vec<u8>,
    /// The length of the longest spelling.
    longest: usize,
    matcher: Option<AhoCorasick>,
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

    /// Returns the text without secrets; `None` if it contains none. The beginning of a secret before `…` counts as
    /// one, because dicta cuts some texts of servers before it redacts them. The same applies to other marks of a cut.
    pub fn redact(&self, text: &str) -> Option<String> {
        let known = self.read_known();
        let find = known.matcher.as_ref()?;
        let clean = find
            .is_match(text)
            .then(|| find.replace_all(text, &vec![REDACTED; known.spellings.len()]));
        let without_cuts = known.redact_cut_secrets(clean.as_deref().unwrap_or(text));
        without_cuts.or(clean)
    }

    /// As [`Redactor::redact`], for bytes.
    pub fn redact_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return self.redact(text).map(String::into_bytes);
        }
        let known = self.read_known();
        let find = known.matcher.as_ref()?;
        find.is_match(bytes).then(|| {
            find.replace_all_bytes(bytes, &vec![REDACTED.as_bytes(); known.spellings.len()])
        })
    }

    /// Moves the beginning of a stream's text to the result, without secrets. Leaves the end of the text in place if
    /// it could be the beginning of a secret.
    fn take_safe_text(&self, text: &mut String) -> String {
        let known = self.read_known();
        let Some(find) = &known.matcher else {
            return std::mem::take(text);
        };
        let mut safe = String::with_capacity(text.len());
        let mut from = 0;
        loop {
            let open = known.find_open_spelling(text, from);
            let found = find.find(Input::new(text.as_str()).span(from..text.len()));
            match found {
                // At or after `open`, a longer spelling may begin, so such a match is not final.
                Some(found) if found.start() < open => {
                    safe.push_str(&text[from..found.start()]);
                    safe.push_str(REDACTED);
                    from = found.end();
                }
                _ => {
                    safe.push_str(&text[from..open]);
                    text.drain(..open);
                    return safe;
                }
            }
        }
    }
}

impl KnownSecrets {
    fn add_secrets(&mut self, secrets: &[&str]) {
        for secret in secrets {
            self.secrets.push((*secret).to_owned());
            self.spellings.extend(list_spellings(secret));
            self.spellings.extend(list_line_spellings(secret));
        }
        // The matcher ignores ASCII case, so spellings that differ only in case are one.
        for spelling in &mut self.spellings {
            spelling.make_ascii_lowercase();
        }
        self.spellings.sort_unstable();
        self.spellings.dedup();
        self.first_bytes = self.spellings.iter().map(|s| s.as_bytes()[0]).collect();
        self.first_bytes.dedup();
        self.longest = self.spellings.iter().map(String::len).max().unwrap_or(0);
        // The matcher cannot be extended, so it is built again with all spellings.
        let find = AhoCorasick::builder()
            // One spelling may contain another; the longest match leaves no rest of a secret.
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(&self.spellings)
            .expect("a few needles always build");
        self.matcher = Some(find);
    }

    /// Removes beginnings of secrets before the mark of a cut; `None` if there are none.
    fn redact_cut_secrets(&self, text: &str) -> Option<String> {
        let mut clean = String::new();
        let (mut copied, mut from) = (0, 0);
        let marks = CUT_MARKS.iter().flat_map(|mark| text.match_indices(*mark));
        let mut marks: Vec<(usize, &str)> = marks.collect();
        marks.sort_unstable();
        for (cut, mark) in marks {
            // Each part is searched once, so many marks cost no more than one.
            let open = from + self.find_open_spelling(&text[from..cut], 0);
            from = cut + mark.len();
            if cut - open >= MIN_SECRET_LEN {
                clean.push_str(&text[copied..open]);
                clean.push_str(REDACTED);
                copied = cut;
            }
        }
        (copied > 0).then(|| clean + &text[copied..])
    }

    /// Returns the first position from which the rest of the text is the beginning of a longer spelling; the end of
    /// the text if there is none.
    fn find_open_spelling(&self, text: &str, from: usize) -> usize {
        // Only a rest that is shorter than the longest spelling can be the beginning of one.
        let tail_start = from.max(text.len().saturating_sub(self.longest));
        let tail = text.as_bytes()[tail_start..].to_ascii_lowercase();
        let open = (0..tail.len()).find(|at| {
            // Spellings begin at a character boundary, so a match of the first byte is at one too.
            let rest = &tail[*at..];
            if self.first_bytes.binary_search(&rest[0]).is_err() {
                return false;
            }
            // Longer spellings with this beginning follow it in the order.
            let after = self.spellings.partition_point(|s| s.as_bytes() <= rest);
            let next = self.spellings.get(after);
            next.is_some_and(|spelling| spelling.as_bytes().starts_with(rest))
        });
        open.map_or(text.len(), |at| tail_start + at)
    }
}

/// Redacts a stream whose secrets may be split between chunks. It holds back text that could be the beginning of a
/// secret, so that the result does not depend on the chunks.
#[derive(Debug, Default)]
pub struct StreamRedactor {
    pending: String,
}

impl StreamRedactor {
    /// Adds a chunk and returns the text that is safe to send.
    pub fn push(&mut self, redactor: &Redactor, chunk: &str) -> String {
        self.pending.push_str(chunk);
        redactor.take_safe_text(&mut self.pending)
    }

    /// Returns the text that was held back, at the end of the stream, without secrets.
    pub fn finish(&mut self, redactor: &Redactor) -> String {
        let rest = std::mem::take(&mut self.pending);
        // A shorter secret that is the beginning of a longer one is held back too.
        redactor.redact(&rest).unwrap_or(rest)
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
    fn secret_is_added_once() {
        let redactor = Redactor::new([KEY, KEY, " sk-live-4711-abcdef\n"]);
        redactor.add_secrets([KEY, "another-secret", "another-secret", "short"]);
        assert_eq!(redactor.read_known().secrets, [KEY, "another-secret"]);
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
    fn hex_and_base64_spellings_are_redacted_at_every_alignment() {
        let secret = "sk/live?4711~ab>";
        let redactor = Redactor::new([secret]);
        let hex: String = secret
            .bytes()
            .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        let upper = hex.to_ascii_uppercase();
        for text in [hex.as_str(), upper.as_str()] {
            assert_eq!(
                redactor.redact(&format!("<{text}>")).as_deref(),
                Some("<[redacted]>")
            );
        }
        for before in ["", "a", "ab", "abc", "user:"] {
            for after in ["", "z", "zz", "zzz"] {
                let whole = format!("{before}{secret}{after}");
                let standard = spellings::encode_base64(whole.as_bytes());
                let url = standard.replace('+', "-").replace('/', "_");
                let escaped = standard.replace('/', "\\/");
                let percent: String =
                    url::form_urlencoded::byte_serialize(standard.as_bytes()).collect();
                for text in [standard, url, escaped, percent] {
                    let clean = redactor.redact(&text).unwrap_or_else(|| panic!("{text}"));
                    let rest = clean.replace(REDACTED, "");
                    // At most one character on each side also depends on the neighbor's bits.
                    assert!(
                        rest.len()
                            <= before.len().div_ceil(3) * 4 + 4 + after.len().div_ceil(3) * 4,
                        "{text} {clean}"
                    );
                    let middle = &text[text.len() / 2 - 4..text.len() / 2 + 4];
                    assert!(!clean.contains(middle), "{text} {clean}");
                }
            }
        }
    }

    #[test]
    fn secret_that_begins_another_secret_leaves_no_rest_of_it() {
        let redactor = Redactor::new(["sk-abc123", "sk-abc123-and-more"]);
        let mut stream = StreamRedactor::default();
        let mut out = stream.push(&redactor, "key sk-abc123");
        assert_eq!(out, "key ", "the longer secret may follow");
        out.push_str(&stream.push(&redactor, "-and-mo"));
        out.push_str(&stream.push(&redactor, "re."));
        out.push_str(&stream.push(&redactor, " sk-abc123"));
        out.push_str(&stream.finish(&redactor));
        assert_eq!(out, "key [redacted]. [redacted]");
    }

    #[test]
    fn line_of_a_secret_with_several_lines_is_redacted_alone() {
        let redactor = Redactor::new([
            "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhki\nG9w0BAQEFAASCBKcw/\nshort\n-----END KEY-----",
        ]);
        assert_eq!(
            redactor.redact("MIIEvQIBADANBgkqhki / G9w0BAQEFAASCBKcw/ / short"),
            Some("[redacted] / [redacted] / short".to_owned())
        );
        assert_eq!(redactor.redact("-----BEGIN KEY-----"), None);
        let prompt = Redactor::new(["You are a helpful assistant.\nAnswer in short sentences."]);
        assert_eq!(prompt.redact("You are a helpful assistant."), None);
    }

    #[test]
    fn beginning_of_a_secret_before_a_cut_is_redacted() {
        let redactor = Redactor::new([KEY]);
        for (text, expected) in [
            (
                "401: bad key sk-live-47…; … sk-live-…",
                "401: bad key [redacted]…; … [redacted]…",
            ),
            ("a c2stbGl2ZS00Nz… b", "a [redacted]… b"),
            (
                "page sk-live-47\n\n[truncated at 15 bytes]",
                "page [redacted]\n\n[truncated at 15 bytes]",
            ),
        ] {
            assert_eq!(redactor.redact(text).as_deref(), Some(expected));
        }
        assert_eq!(redactor.redact("sk-li… sk-live-47 …"), None);
    }

    #[test]
    fn short_texts_are_not_secrets() {
        assert_eq!(Redactor::new(["abc", ""]).redact("abcabc"), None);
    }

    #[test]
    fn secret_in_bytes_is_redacted_whether_they_are_text_or_not() {
        let redactor = Redactor::new([KEY]);
        let bytes = |start: &[u8], key: &str| [start, key.as_bytes(), b"."].concat();
        for start in [&b"key "[..], b"\xff "] {
            let clean = redactor.redact_bytes(&bytes(start, KEY));
            assert_eq!(clean, Some(bytes(start, REDACTED)));
            assert_eq!(redactor.redact_bytes(start), None);
        }
        // Only text can be cut.
        let cut = |start: &[u8]| redactor.redact_bytes(&[start, "sk-live-47…".as_bytes()].concat());
        assert_eq!(cut(b""), Some("[redacted]…".into()));
        assert_eq!(cut(b"\xff"), None);
    }

    #[test]
    fn stream_without_secrets_passes_at_once() {
        let mut stream = StreamRedactor::default();
        assert_eq!(stream.push(&Redactor::default(), "sk-live"), "sk-live");
        assert_eq!(stream.finish(&Redactor::default()), "");
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
        assert_eq!(format!("{redactor:?}"), "Redactor { .. }");
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
            out.push_str(&stream.finish(&redactor));
            prop_assert!(!out.contains(KEY));
            prop_assert_eq!(out, redactor.redact(&whole).expect("a hit"));
        }

        #[test]
        fn stream_in_any_chunks_equals_the_redacted_whole(
            secrets in prop::collection::vec("[ab]{6,9}|[ab]{6}é[ab]{0,3}", 1..4),
            text in "[abABé=]{0,80}",
            cuts in prop::collection::vec(0usize..90, 0..12),
        ) {
            // Two letters make secrets that begin, end and contain each other.
            let redactor = Redactor::new(secrets.iter().map(String::as_str));
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|c| text.is_char_boundary(*c)).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let (mut stream, mut out, mut from) = (StreamRedactor::default(), String::new(), 0);
            for cut in cuts {
                out.push_str(&stream.push(&redactor, &text[from..cut]));
                from = cut;
            }
            out.push_str(&stream.finish(&redactor));
            prop_assert_eq!(out, redactor.redact(&text).unwrap_or(text));
        }

        #[test]
        fn stream_holds_back_less_than_the_longest_spelling(text in "[abAB=]{0,200}") {
            let redactor = Redactor::new(["abbaab", "babbab-more"]);
            let longest = redactor.read_known().longest;
            let mut stream = StreamRedactor::default();
            for at in 0..text.len() {
                stream.push(&redactor, &text[at..=at]);
                prop_assert!(stream.pending.len() < longest);
            }
        }
    }
}
