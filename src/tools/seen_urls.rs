//! The seen rule: which hosts and URLs occur in what a judge has read.

use std::collections::HashSet;

use url::{Host, Url};

use crate::net::normalize_host;

/// The length limit of a URL in bytes. The address guard refuses longer ones.
const MAX_URL: usize = 2048;

/// The hosts and URLs that occur in the transcript, the rubric and tool responses. `fetch_url` may open only these by
/// default.
#[derive(Debug, Clone, Default)]
pub struct SeenUrls {
    /// Host names in lower case, as a URL parser normalizes them.
    pub hosts: HashSet<String>,
    /// URLs as written, and as a URL parser writes them.
    pub urls: HashSet<String>,
}

impl SeenUrls {
    /// Adds every URL and host of a text, also hosts without a scheme (`see beam.apache.org`).
    ///
    /// Is generous about the end of a name. The rule must prevent invented hosts, not hosts that a text contains.
    pub fn add_text(&mut self, text: &str) {
        self.add_urls(text);
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

    /// Adds a tool response, except what it repeats of the call's arguments. Otherwise a tool that echoes its
    /// arguments would admit an invented host.
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
        let new = found.urls.difference(&in_arguments.urls).cloned();
        self.urls.extend(new);
    }

    fn add_urls(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find("://") {
            let scheme = rest[..at].len()
                - rest[..at]
                    .trim_end_matches(|c: char| c.is_ascii_alphanumeric())
                    .len();
            let from = &rest[at - scheme..];
            let ends = |c: char| {
                c.is_whitespace()
                    || c.is_control()
                    || matches!(
                        c,
                        '"' | '\'' | '<' | '>' | '`' | '\\' | '|' | '^' | '{' | '}'
                    )
            };
            let candidate = &from[..from.find(ends).unwrap_or(from.len())];
            let scheme = candidate.get(..scheme).unwrap_or_default();
            let is_web =
                scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
            if is_web && candidate.len() <= MAX_URL {
                // Both forms: the last character may belong to the URL or to the sentence.
                self.add_url(candidate);
                self.add_url(without_trailing_punctuation(candidate));
            }
            rest = &rest[at + 3..];
        }
    }

    fn add_url(&mut self, text: &str) {
        let Ok(url) = Url::parse(text) else { return };
        if let Some(host) = url.host() {
            self.hosts.insert(normalize_host(&host));
        }
        self.urls.insert(text.to_owned());
        self.urls.insert(without_fragment(url));
    }

    /// Returns true if the host occurred. A text that is not a URL has no host; the address guard then reports it.
    pub fn has_host(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }

    /// Returns true if the URL occurred as written, or as the same request; a fragment is never sent.
    pub fn has_url(&self, text: &str) -> bool {
        self.urls.contains(text)
            || Url::parse(text).is_ok_and(|url| self.urls.contains(&without_fragment(url)))
    }
}

fn without_fragment(mut url: Url) -> String {
    url.set_fragment(None);
    url.into()
}

/// Removes punctuation that ends a sentence but may also end a URL: `(see https://a.example/b).`
fn without_trailing_punctuation(url: &str) -> &str {
    let mut url = url;
    loop {
        let closes = |open: char, close: char| {
            url.ends_with(close) && url.matches(close).count() > url.matches(open).count()
        };
        // Sentences end after URLs, and brackets may surround them.
        let shorter = if url.ends_with(['.', ',', ';', ':', '!', '?', '*', '_', '…', '”', '’', '»'])
            || closes('(', ')')
            || closes('[', ']')
        {
            let mut chars = url.chars();
            chars.next_back();
            chars.as_str()
        } else {
            // Markdown: [text](https://a.example/b)[1]
            match url.find("](") {
                Some(at) => &url[..at],
                None => return url,
            }
        };
        url = shorter;
    }
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
    fn unusual_spellings_are_normalized_to_their_host() {
        assert!(seen("https://0x7f000001/").has_host("127.0.0.1"));
        assert!(seen("https://good.example@evil.example/").has_host("evil.example"));
        assert!(seen("HTTPS://UPPER.example./x").has_host("upper.example"));
    }
}
