//! What a trace has seen: hosts and URLs in transcript, rubric and fetched pages, which `fetch_url` may open.

use std::sync::LazyLock;

use regex::Regex;

use crate::handlers::JudgeRequest;
use crate::model::Part;
use crate::tools::Seen;

/// The hosts and URLs of a cell's transcript, rubric and named metadata.
pub(super) fn of(ask: &JudgeRequest) -> Seen {
    let mut seen = Seen::default();
    learn(&mut seen, &ask.params.criteria);
    learn(&mut seen, &ask.params.guide);
    for (_, value) in &ask.metadata {
        learn(&mut seen, value.get());
    }
    let end = ask.end.min(ask.transcript.messages.len());
    for part in ask.transcript.messages[..end].iter().flat_map(|m| &m.parts) {
        match part {
            Part::Text(text) | Part::Reasoning(text) => learn(&mut seen, text),
            Part::ToolCall(call) => learn(&mut seen, &call.arguments),
            Part::ToolResult(result) => learn(&mut seen, &result.content),
            Part::Media { .. } | Part::Other(_) => {}
        }
    }
    seen
}

/// Adds the hosts and URLs of a text: full `http(s)` URLs, and names that look like hosts (`beam.apache.org`).
pub(super) fn learn(seen: &mut Seen, text: &str) {
    static URL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?i)\bhttps?://[^\s<>"'`\\{}|^]+"#).expect("a valid pattern")
    });
    static HOST: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}\b")
            .expect("a valid pattern")
    });
    for found in URL.find_iter(text) {
        let url = found.as_str();
        let bare = url.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '*', '_']);
        for spelling in [url, bare] {
            if let Ok(parsed) = url::Url::parse(spelling)
                && let Some(host) = parsed.host_str()
            {
                seen.hosts.insert(host.to_ascii_lowercase());
                seen.urls.insert(spelling.to_owned());
            }
        }
    }
    for found in HOST.find_iter(text) {
        seen.hosts.insert(found.as_str().to_ascii_lowercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_bare_hosts_are_seen() {
        let mut seen = Seen::default();
        learn(
            &mut seen,
            "See https://Beam.apache.org/downloads/). Or docs.rs, not v2.69.0 nor e.g. this",
        );
        assert!(seen.urls.contains("https://Beam.apache.org/downloads/"));
        assert!(seen.hosts.contains("beam.apache.org") && seen.hosts.contains("docs.rs"));
        assert!(!seen.hosts.iter().any(|h| h.contains("69")));
    }
}
