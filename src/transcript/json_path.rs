//! A search for a value deep in a large JSON file by its keys, without the file in memory.
//!
//! Responsible for files that are one object with a list of records at some path, such as promptfoo's `results.results`
//! and Inspect's `samples`. It reads the file once, a block at a time, and skips other values by their brackets and
//! strings. Does not check the grammar of JSON.

use super::TranscriptError;
use super::source::{BLOCK_SIZE, SourceFile};

/// The number of bytes of a key that the search compares. A longer key cannot match a path.
const MAX_KEY_BYTES: usize = 256;

/// Returns the offset after the opening bracket of the array at `path`. `start` is the offset of the value that
/// contains it; white space and a byte order mark may come first. Returns `None` if the path leads to no array, or the
/// file ends before it. If a key occurs twice, the one with an array counts.
pub(super) fn find_array_offset(
    source: &SourceFile,
    start: u64,
    path: &[&str],
) -> Result<Option<u64>, TranscriptError> {
    let mut search = JsonPathSearch::new(path);
    let mut pos = start;
    let mut block = Vec::new();
    loop {
        block.clear();
        let ended = source.fill_buffer(pos, &mut block, BLOCK_SIZE)?;
        match search.feed(&block, b'[') {
            SearchProgress::At(at) => return Ok(Some(pos + at as u64 + 1)),
            SearchProgress::Never => return Ok(None),
            SearchProgress::NotYet if ended => return Ok(None),
            SearchProgress::NotYet => pos += block.len() as u64,
        }
    }
}

/// Returns the offset in `bytes` of the value at `path`, if its first byte is `first` (`[`, `{`, `"`).
pub(super) fn find_value_offset(bytes: &[u8], path: &[&str], first: u8) -> Option<usize> {
    match JsonPathSearch::new(path).feed(bytes, first) {
        SearchProgress::At(at) => Some(at),
        SearchProgress::NotYet | SearchProgress::Never => None,
    }
}

/// Returns the text at `path`, if `bytes` contains all of it.
pub(super) fn find_text(bytes: &[u8], path: &[&str]) -> Option<String> {
    let rest = &bytes[find_value_offset(bytes, path, b'"')?..];
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
    values.next()?.ok()
}

/// The result of a step of the search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SearchProgress {
    /// The value begins at this offset in the bytes of the step.
    At(usize),
    /// The search needs more bytes.
    NotYet,
    /// The outer value has ended without a match.
    Never,
}

/// The next token in the object that the path leads through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedToken {
    Key,
    Colon,
    Value,
    Rest,
}

/// The state of a search, fed in pieces.
#[derive(Debug)]
pub(super) struct JsonPathSearch {
    path: Vec<String>,
    /// The number of open brackets.
    depth: usize,
    /// The number of open brackets that belong to the path.
    matched_depth: usize,
    expect: ExpectedToken,
    /// True if the last key is the next key of the path.
    key_matches: bool,
    in_string: bool,
    escaped: bool,
    /// The bytes so far of the key that the search reads; `None` in any other string.
    key: Option<Vec<u8>>,
}

impl JsonPathSearch {
    /// Returns a search that begins before the outer value.
    pub(super) fn new(path: &[&str]) -> Self {
        Self::with_path(path.iter().map(|key| (*key).to_owned()).collect())
    }

    /// Begins again, for another outer value.
    pub(super) fn restart(&mut self) {
        *self = Self::with_path(std::mem::take(&mut self.path));
    }

    fn with_path(path: Vec<String>) -> Self {
        Self {
            path,
            depth: 0,
            matched_depth: 0,
            expect: ExpectedToken::Value,
            key_matches: true,
            in_string: false,
            escaped: false,
            key: None,
        }
    }

    /// Reads `bytes`. `first` is the first byte of the value at the end of the path.
    pub(super) fn feed(&mut self, bytes: &[u8], first: u8) -> SearchProgress {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at += self.read_string(&bytes[at..]);
                continue;
            }
            let byte = bytes[at];
            let is_on_path = self.depth == self.matched_depth;
            // Only tokens on the path change the state of the search; others just move the depth.
            match byte {
                b'"' | b'{' | b'['
                    if is_on_path && self.expect == ExpectedToken::Value && self.key_matches =>
                {
                    let is_target = self.matched_depth == self.path.len();
                    if is_target && byte == first {
                        return SearchProgress::At(at);
                    }
                    // Not the target: the value is skipped, or entered if the path leads through it.
                    self.key_matches = false;
                    self.expect = ExpectedToken::Rest;
                    match byte {
                        b'"' => self.in_string = true,
                        _ => self.depth += 1,
                    }
                    // Only an object can contain the next key of the path.
                    if byte == b'{' && !is_target {
                        self.matched_depth += 1;
                        self.expect = ExpectedToken::Key;
                    }
                }
                b'"' => {
                    self.in_string = true;
                    // Only keys are compared, so other strings are not collected.
                    self.key = (is_on_path && self.expect == ExpectedToken::Key).then(Vec::new);
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    if is_on_path {
                        self.matched_depth = self.matched_depth.saturating_sub(1);
                        self.expect = ExpectedToken::Rest;
                    }
                    self.depth = self.depth.saturating_sub(1);
                    // The end of the outer value: nothing after it can match.
                    if self.matched_depth == 0 {
                        return SearchProgress::Never;
                    }
                }
                b':' if is_on_path && self.expect == ExpectedToken::Colon => {
                    self.expect = ExpectedToken::Value;
                }
                // The next key decides again whether the path matches. Outside of the outer value there are no keys.
                b',' if is_on_path && self.depth > 0 => {
                    self.expect = ExpectedToken::Key;
                    self.key_matches = false;
                }
                _ => {}
            }
            at += 1;
        }
        SearchProgress::NotYet
    }

    /// Reads inside a string and returns the number of bytes read, with the closing quote.
    fn read_string(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let end = if self.escaped {
                at + 1
            } else {
                // The search jumps from one quote or backslash to the next, because strings are long.
                match memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                    None => bytes.len(),
                    Some(0) if bytes[at] == b'"' => {
                        self.in_string = false;
                        self.close_key();
                        return at + 1;
                    }
                    Some(0) => at + 1,
                    Some(hit) => at + hit,
                }
            };
            self.escaped = !self.escaped && bytes[at] == b'\\';
            if let Some(key) = &mut self.key
                && key.len() <= MAX_KEY_BYTES
            {
                // One byte above the limit is enough to show that the key is too long.
                key.extend_from_slice(&bytes[at..end.min(at + MAX_KEY_BYTES + 1)]);
            }
            at = end;
        }
        at
    }

    fn close_key(&mut self) {
        let Some(key) = self.key.take() else { return };
        self.expect = ExpectedToken::Colon;
        let path_key = &self.path[self.matched_depth - 1];
        self.key_matches = key == path_key.as_bytes()
            // Escapes in keys are rare, so the bytes are compared first.
            || (key.contains(&b'\\') && unescape_key(&key).is_some_and(|key| key == *path_key));
    }
}

fn unescape_key(key: &[u8]) -> Option<String> {
    let quoted = [b"\"", key, b"\""].concat();
    serde_json::from_slice(&quoted).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str, path: &[&str]) -> Option<usize> {
        find_value_offset(text.as_bytes(), path, b'[')
    }

    #[test]
    fn array_at_path_is_found_next_to_other_values() {
        for text in [
            r#"{"results":{"results":[1]}}"#,
            r#"{"a":{"results":[0],"b":"\"results\":["},"results":{"x":[[]],"results":[1]}}"#,
            r#" { "results" : 3, "x":"results", "results" : { "results" : { }, "results" : [1] } }"#,
            "\u{feff}{\"results\":{\"r\\u0065sults\":[1]}}",
            r#"{"c":"\\","results":{"results":[1],"results":[2]}}"#,
            r#"{"results":{"y":1},"results":{"results":[1]}}"#,
        ] {
            let found = at(text, &["results", "results"]).expect(text);
            assert!(text[found..].starts_with("[1]"), "{text} at {found}");
        }
        for text in [
            "",
            "[]",
            "3",
            r#""results""#,
            r#"{"results":[1]}"#,
            r#"{"results":{}} {"results":{"results":[1]}}"#,
            r#"{"x":{"results":{"results":[1]}}}"#,
            r#"[{"results":{"results":[1]}}]"#,
            r#"{"results":{"results"#,
            "}}]]",
            r#"3,"results":[1]"#,
        ] {
            assert_eq!(at(text, &["results", "results"]), None, "{text}");
        }
    }

    #[test]
    fn text_at_path_is_found_if_complete() {
        let text = br#"{"evalId":"eval-\u00e9","x":1"#;
        assert_eq!(find_text(text, &["evalId"]).as_deref(), Some("eval-é"));
        assert_eq!(find_text(br#"{"evalId":"eval-"#, &["evalId"]), None);
        assert_eq!(find_text(br#"{"evalId":null}"#, &["evalId"]), None);
    }

    proptest! {
        #[test]
        fn search_in_pieces_finds_the_same_offset(text in r#"[{}\[\]":,ab\\]{0,40}"#, cut in 0usize..40) {
            let nested = format!("{{\"b\":{text}}}");
            let bytes = nested.as_bytes();
            let cut = cut.min(bytes.len());
            let path = ["b", "a"];
            let mut search = JsonPathSearch::new(&path);
            let pieces = match search.feed(&bytes[..cut], b'[') {
                SearchProgress::NotYet => match search.feed(&bytes[cut..], b'[') {
                    SearchProgress::At(at) => SearchProgress::At(at + cut),
                    other => other,
                },
                found => found,
            };
            prop_assert_eq!(pieces, JsonPathSearch::new(&path).feed(bytes, b'['));
        }
    }
}
