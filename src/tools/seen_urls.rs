//! The seen rule: which hosts and URLs occur in what a judge has read.
//!
//! A URL counts in each way in which texts write it: with and without a scheme, between brackets, in escaped JSON and in
//! escaped HTML. `http` and `https` count as the same, because `fetch_url` opens only `https`. Path and query must be the
//! same: what a model adds to them is a message of the model.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;

use url::{Host, Url};

use crate::net::normalize_host;

/// The length limit of a URL in bytes. The address guard refuses longer ones.
const MAX_URL: usize = 2048;

/// The most URLs that one word may contain. Without it, a word of nested URLs would need memory for the square of its
/// length.
const MAX_URLS_PER_WORD: usize = 8;

/// The hosts and URLs that occur in the transcript, the rubric and tool responses. `fetch_url` may open only these by
/// default.
#[derive(Debug, Clone, Default)]
pub struct SeenUrls {
    /// Host names in lower case, as a URL parser normalizes them.
    pub hosts: HashSet<String>,
    /// URLs as a URL parser writes them, with `https` and without fragment.
    pub urls: HashSet<String>,
    /// The URLs that the judge wrote into arguments before it read them.
    written: WrittenUrls,
}

/// The URLs that a judge wrote into the arguments of its calls, without punctuation at their ends.
///
/// A tool may repeat them in a sentence, with an addition, or in the response to a later call. They stay messages of the
/// judge.
#[derive(Debug, Clone, Default)]
struct WrittenUrls {
    /// URLs with a path or a query. What begins with one of them contains it.
    whole: BTreeSet<String>,
    /// URLs of whole hosts. A tool may list pages of the host.
    of_hosts: HashSet<String>,
}

impl WrittenUrls {
    fn insert(&mut self, url: &str) {
        let end = without_end(url).to_owned();
        let is_host = url.find("://").is_some_and(|at| {
            let rest = &url[at + 3..];
            rest.find('/').is_none_or(|slash| slash + 1 == rest.len())
        });
        if is_host {
            self.of_hosts.insert(end);
        } else {
            self.whole.insert(end);
        }
    }

    /// Returns true if a URL is one of these, or begins with one that has a path or a query.
    fn contain(&self, url: &str) -> bool {
        if self.of_hosts.contains(without_end(url)) {
            return true;
        }
        let mut bound = url;
        loop {
            let before = (Bound::Unbounded, Bound::Included(bound));
            let Some(nearest) = self.whole.range::<str, _>(before).next_back() else {
                return false;
            };
            if url.starts_with(nearest.as_str()) {
                return true;
            }
            // Any other beginning of the URL is before the nearest one, so it is a beginning of what both share.
            let same = url.bytes().zip(nearest.bytes());
            let shared = same.take_while(|(a, b)| a == b).count();
            bound = &url[..url.floor_char_boundary(shared)];
        }
    }
}

/// Returns a URL up to its last letter or digit.
fn without_end(url: &str) -> &str {
    url.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

impl SeenUrls {
    /// Adds every URL and host of a text, also hosts without a scheme (`see beam.apache.org`).
    ///
    /// Is generous about the end of a name. The rule must prevent invented hosts, not hosts that a text contains.
    pub fn add_text(&mut self, text: &str) {
        self.add_urls(text);
        if let Cow::Owned(plain) = unescape_text(text) {
            self.add_urls(&plain);
        }
        // A host may appear without a scheme, as in `docs.example.org`.
        for word in text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '.' | '_'))) {
            let word = word.trim_matches(['.', '-', '_']);
            if is_host_like(word)
                && let Ok(host) = Host::parse(word)
            {
                self.hosts.insert(normalize_host(&host));
            }
        }
    }

    /// Adds a tool response, except what it repeats of the call's arguments, and URLs that the arguments of this call or
    /// of earlier ones invented. Otherwise a tool that echoes its arguments would admit an invented host or URL.
    pub fn add_response(&mut self, text: &str, arguments: &str) {
        let mut in_arguments = Self::default();
        in_arguments.add_text(arguments);
        // A JSON escape spells the same character in another way, so compare the decoded texts too.
        if let Ok(plain) = serde_json::from_str::<serde_json::Value>(arguments) {
            in_arguments.add_text(&plain.to_string());
        }
        let mut found = Self::default();
        found.add_text(text);
        let new = found.hosts.difference(&in_arguments.hosts).cloned();
        self.hosts.extend(new);
        for url in in_arguments.urls.difference(&self.urls) {
            self.written.insert(url);
        }
        let new = found.urls.into_iter();
        self.urls
            .extend(new.filter(|url| !self.written.contain(url)));
    }

    /// Adds the URLs of a text, also those without a scheme.
    fn add_urls(&mut self, text: &str) {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            if ends_word(text, at, c) {
                self.add_word(&text[start..at]);
                start = at + c.len_utf8();
            }
        }
        self.add_word(&text[start..]);
    }

    fn add_word(&mut self, word: &str) {
        let parts = split_url_list(word);
        for part in parts.filter(|part| part.contains('.') || part.contains("://")) {
            let mut rest = part;
            for _ in 0..MAX_URLS_PER_WORD {
                let Some(at) = rest.find("://") else { break };
                let scheme = rest[..at].len()
                    - rest[..at]
                        .trim_end_matches(|c: char| c.is_ascii_alphanumeric())
                        .len();
                let (scheme, candidate) = (&rest[at - scheme..at], &rest[at - scheme..]);
                if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http") {
                    self.add_candidate(candidate);
                }
                rest = &rest[at + 3..];
            }
            self.add_url_without_scheme(part);
        }
    }

    /// Adds `docs.example.org/guide`, also behind an opening bracket or in a Markdown link.
    fn add_url_without_scheme(&mut self, word: &str) {
        let start = word.rfind("](").map_or(word, |at| &word[at + 2..]);
        let start = start.trim_start_matches(|c: char| !c.is_alphanumeric());
        let host = &start[..start.find(['/', '?', '#', ':']).unwrap_or(start.len())];
        let name = without_trailing_punctuation(host);
        // An e-mail address is not the address of a page.
        let is_plain = name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'));
        if is_plain && is_host_like(name) {
            self.add_candidate(&format!("https://{start}"));
        }
    }

    fn add_candidate(&mut self, candidate: &str) {
        if candidate.len() <= MAX_URL {
            // Both forms: the last character may belong to the URL or to the sentence.
            self.add_url(candidate);
            self.add_url(without_trailing_punctuation(candidate));
        }
    }

    /// Adds a text that is one URL.
    pub fn add_url(&mut self, text: &str) {
        let Ok(url) = Url::parse(text) else { return };
        if let Some(host) = url.host() {
            self.hosts.insert(normalize_host(&host));
        }
        self.urls.insert(normalize_url(url));
    }

    /// Returns true if the host occurred. A text that is not a URL has no host; the address guard then reports it.
    pub fn has_host(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }

    /// Returns true if the URL occurred as the same request; a fragment is never sent.
    pub fn has_url(&self, text: &str) -> bool {
        Url::parse(text).is_ok_and(|url| self.urls.contains(&normalize_url(url)))
    }
}

/// Returns true if the character at `at` can't be part of a URL in a text. An apostrophe can: `/wiki/Rubik's_Cube`.
fn ends_word(text: &str, at: usize, c: char) -> bool {
    match c {
        '\'' => {
            let before = text[..at].chars().next_back();
            let after = text[at + 1..].chars().next();
            ![before, after]
                .iter()
                .all(|c| c.is_some_and(char::is_alphanumeric))
        }
        '"' | '<' | '>' | '`' | '\\' | '|' | '^' | '{' | '}' => true,
        c => c.is_whitespace() || c.is_control(),
    }
}

fn normalize_url(mut url: Url) -> String {
    url.set_fragment(None);
    if url.scheme() == "http" {
        // Both are schemes of the web, so the change is always allowed.
        let _allowed = url.set_scheme("https");
    }
    url.into()
}

/// Splits `https://a.example,https://b.example`. A comma alone may belong to a URL.
fn split_url_list(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(word);
    std::iter::from_fn(move || {
        let word = rest?;
        let at = word.match_indices([',', ';']).map(|(at, _)| at);
        let end = at.into_iter().find(|at| word[at + 1..].starts_with("http"));
        rest = end.map(|at| &word[at + 1..]);
        Some(end.map_or(word, |at| &word[..at]))
    })
}

/// Decodes the escapes of JSON and HTML that can occur in a URL: `\/`, `\u0026`, `&amp;`.
///
/// Transcripts contain the JSON of tool calls and the source of pages. A judge reads them and writes the plain URL.
fn unescape_text(text: &str) -> Cow<'_, str> {
    if !text.contains("\\/") && !text.contains("\\u00") && !text.contains("&amp;") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = rest.strip_prefix("\\u00").and_then(|hex| hex.get(..2));
        let decoded = unit.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (plain, length) = if let Some(byte) = decoded.filter(u8::is_ascii_graphic) {
            (char::from(byte), 6)
        } else if rest.starts_with("\\/") {
            ('/', 2)
        } else if rest.starts_with("&amp;") {
            ('&', 5)
        } else {
            (char::from(rest.as_bytes()[0]), 1)
        };
        out.push(plain);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Removes punctuation that ends a sentence but may also end a URL: `(see https://a.example/b).`
fn without_trailing_punctuation(url: &str) -> &str {
    // Markdown: [text](https://a.example/b)[1]
    let mut url = url.find("](").map_or(url, |at| &url[..at]);
    // Count the brackets once, so that the time is linear.
    let count = |bracket: char| url.matches(bracket).count();
    let mut unopened_round = count(')').saturating_sub(count('('));
    let mut unopened_square = count(']').saturating_sub(count('['));
    while let Some(last) = url.chars().next_back() {
        // Sentences end after URLs, and brackets may surround them.
        match last {
            '.' | ',' | ';' | ':' | '!' | '?' | '*' | '_' | '…' | '”' | '’' | '»' => {}
            ')' if unopened_round > 0 => unopened_round -= 1,
            ']' if unopened_square > 0 => unopened_square -= 1,
            _ => break,
        }
        url = &url[..url.len() - last.len_utf8()];
    }
    url
}

/// Returns true for dotted labels with letters or Punycode at the end, and for four numbers. This excludes versions
/// and decimal numbers.
fn is_host_like(word: &str) -> bool {
    let Some((_, top)) = word.rsplit_once('.') else {
        return false;
    };
    // 253 characters is the limit of DNS.
    if word.len() > 253 || word.split('.').any(str::is_empty) {
        return false;
    }
    // A top-level domain is letters only, so `1.5` and `file.v2` are not hosts.
    let is_name = top.chars().count() >= 2
        && (top.chars().all(char::is_alphabetic) || top.starts_with("xn--"));
    is_name || word.parse::<std::net::Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> SeenUrls {
        let mut seen = SeenUrls::default();
        seen.add_text(text);
        seen
    }

    #[test]
    fn hosts_are_found_with_and_without_a_scheme() {
        let seen = seen(
            "See Beam.Apache.org. Or (https://docs.example.com:8443/a_(b)), bücher.example, 10.1.2.3 — version 2.69.0, e.g. [x](https://[2606:4700::1111]/q)",
        );
        for host in [
            "beam.apache.org",
            "docs.example.com",
            "xn--bcher-kva.example",
            "10.1.2.3",
            "2606:4700::1111",
        ] {
            assert!(seen.has_host(host), "{host} of {:?}", seen.hosts);
        }
        for no in ["apache.org", "2.69.0", "e.g", "evil.example"] {
            assert!(!seen.has_host(no), "{no}");
        }
    }

    #[test]
    fn urls_are_found_verbatim_in_prose_markdown_and_json() {
        let seen = seen(concat!(
            "Read https://a.example/one. Then (https://a.example/two), [here](https://a.example/three) ",
            r#"{"url":"https://a.example/four?x=1#frag","y":"https://a.example/five\nnext"} <https://A.example>"#,
            " https://en.example/Foo_(bar)"
        ));
        for url in [
            "https://a.example/one",
            "https://a.example/two",
            "https://a.example/three",
            "https://a.example/four?x=1",
            "https://a.example/four?x=1#frag",
            "https://a.example/four?x=1#other",
            "https://a.example/five",
            "https://a.example",
            "https://a.example/",
            "https://en.example/Foo_(bar)",
        ] {
            assert!(seen.has_url(url), "{url} of {:?}", seen.urls);
        }
        for no in [
            "https://a.example/four",
            "https://a.example/six",
            "https://a.example/one?leak=1",
        ] {
            assert!(!seen.has_url(no), "{no}");
        }
    }

    #[test]
    fn urls_are_found_without_scheme_in_escaped_json_and_in_html() {
        let seen = seen(concat!(
            "See beam.apache.org, (docs.example.org/guide?x=1), [api](api.example.org/v1) or ann@mail.example. ",
            "http://plain.example/a http://port.example:80/b ",
            r#"{"url":"https:\/\/json.example\/a","next":"https://go.example/a?x=1\u0026y=2"}"#,
            " <a href=\"https://html.example/a?x=1&amp;y=2\"> https://one.example/a,https://two.example/b,c",
            " 'https://wiki.example/Rubik's_Cube'"
        ));
        for url in [
            "https://beam.apache.org",
            "https://beam.apache.org/",
            "https://docs.example.org/guide?x=1",
            "https://api.example.org/v1",
            "https://plain.example/a",
            "https://port.example/b",
            "https://json.example/a",
            "https://go.example/a?x=1&y=2",
            "https://html.example/a?x=1&y=2",
            "https://one.example/a",
            "https://two.example/b,c",
            "https://wiki.example/Rubik's_Cube",
        ] {
            assert!(seen.has_url(url), "{url} of {:?}", seen.urls);
        }
        for no in [
            "https://beam.apache.org/releases",
            "https://docs.example.org/guide",
            "https://docs.example.org/guide?x=1&leak=2",
            "https://mail.example/",
            "https://api.example.org/",
        ] {
            assert!(!seen.has_url(no), "{no}");
        }
    }

    #[test]
    fn word_of_nested_urls_takes_memory_in_proportion_to_its_length() {
        let nested = "https://a.example/".repeat(100);
        let words: Vec<String> = (0..100).map(|n| format!("{nested}{n}.")).collect();
        let text = words.join(" ");
        let urls = seen(&text).urls;
        let bytes: usize = urls.iter().map(String::len).sum();
        assert!(urls.len() >= 100 && bytes < 20 * text.len(), "{bytes}");
    }

    #[test]
    fn response_adds_new_hosts_but_not_echoed_ones() {
        let mut seen = seen("see a.example");
        let asked = r#"{"q":"https:\/\/\u0065vil.example/leak a.example"}"#;
        let answer = "nothing for https://evil.example/leak at a.example, but see b.example";
        seen.add_response(answer, asked);
        assert!(!seen.has_host("evil.example"));
        assert!(!seen.has_url("https://evil.example/leak"));
        assert!(seen.has_host("a.example") && seen.has_host("b.example"));
    }

    #[test]
    fn invented_url_stays_unseen_whatever_a_tool_adds_to_it() {
        let mut seen = seen("read https://a.example/guide");
        let asked = r#"{"q":"https://evil.example/?d=secret https://secret.evil.example https://a.example/guide"}"#;
        let answers = [
            "Nothing found for https://evil.example/?d=secret.",
            "Did you mean https://evil.example/?d=secret?! Or (https://evil.example/?d=secret/)…",
            r#"{"next":"https://evil.example/?d=secret&page=2","self":"http://evil.example/?d=secret#a"}"#,
            "Tried https://secret.evil.example. and https://secret.evil.example./",
        ];
        for answer in answers {
            seen.add_response(answer, asked);
        }
        // A later call without arguments returns what an earlier one stored.
        seen.add_response("1. https://evil.example/?d=secret;", "{}");
        let urls: Vec<&String> = seen.urls.iter().collect();
        assert_eq!(urls, ["https://a.example/guide"]);
        // What the tool found is new, also on hosts and below pages that the judge named.
        seen.add_response(
            "https://secret.evil.example/page https://a.example/guide/1 https://evil.example/other",
            "{}",
        );
        for url in [
            "https://secret.evil.example/page",
            "https://a.example/guide/1",
            "https://evil.example/other",
        ] {
            assert!(seen.has_url(url), "{url}");
        }
    }

    #[test]
    fn written_url_is_found_among_others_with_the_same_beginning() {
        let mut written = WrittenUrls::default();
        for url in [
            "https://a.example/b",
            "https://a.example/bcd/e",
            "https://a.example/bcx",
            "https://b.example/",
        ] {
            written.insert(url);
        }
        for inside in [
            "https://a.example/bcd/f",
            "https://a.example/b",
            "https://b.example/.",
        ] {
            assert!(written.contain(inside), "{inside}");
        }
        for outside in [
            "https://a.example/",
            "https://a.example/a",
            "https://b.example/c",
        ] {
            assert!(!written.contain(outside), "{outside}");
        }
        assert!(!WrittenUrls::default().contain("https://a.example/b"));
    }

    #[test]
    fn unusual_spellings_are_normalized_to_their_host() {
        assert!(seen("https://0x7f000001/").has_host("127.0.0.1"));
        assert!(seen("https://good.example@evil.example/").has_host("evil.example"));
        assert!(seen("HTTPS://UPPER.example./x").has_host("upper.example"));
    }
}
