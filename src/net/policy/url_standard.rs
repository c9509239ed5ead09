//! The tests of the URL standard: the host that the guard checks is the host that the standard defines and that a
//! client connects to.

use serde::Deserialize;

use super::*;

/// One case a line; `tests/campaign/corpora/README.md` names the origin.
const CASES: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/campaign/corpora/url.jsonl"
));

#[derive(Deserialize, Clone)]
struct Case {
    input: String,
    /// The URL of the page that redirects, if `input` is the address of a redirect.
    base: Option<String>,
    /// The host, or `None` if the standard refuses the URL.
    hostname: Option<String>,
}

impl Case {
    /// Returns the case with https in the place of http, which has the same host. A case with both schemes tests their
    /// difference.
    fn over_https(&self) -> Self {
        let texts = [Some(&self.input), self.base.as_ref()];
        let mut texts = texts.into_iter().flatten();
        if texts.any(|text| text.to_ascii_lowercase().contains("https")) {
            return self.clone();
        }
        let replace = |text: &String| match text.get(..5) {
            Some(scheme) if scheme.eq_ignore_ascii_case("http:") => format!("https:{}", &text[5..]),
            _ => text.clone(),
        };
        Self {
            input: replace(&self.input),
            base: self.base.as_ref().map(replace),
            hostname: self.hostname.clone(),
        }
    }

    /// Returns the text that the guard gets: a URL, or a redirect's address below its page.
    fn text(&self) -> Option<String> {
        match &self.base {
            None => Some(self.input.clone()),
            Some(base) => {
                let page = Url::parse(base).ok()?;
                Some(page.join(&self.input).ok()?.into())
            }
        }
    }
}

/// Returns a host in the form of [`normalize_host`].
fn normalize(hostname: &str) -> String {
    let bare = hostname.trim_start_matches('[').trim_end_matches(']');
    bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()
}

#[test]
fn checked_host_is_the_host_of_the_url_standard() {
    let cases: Vec<Case> = CASES
        .lines()
        .map(|line| serde_json::from_str(line).expect("a case"))
        .collect();
    assert_eq!(cases.len(), 891);
    let (mut connected, mut refused, mut invalid, mut stricter) = (0, 0, 0, Vec::new());
    for case in cases
        .iter()
        .flat_map(|case| [case.clone(), case.over_https()])
    {
        let Some(text) = case.text() else {
            // The crate `url` refuses some redirects that the standard allows. They are never connected.
            stricter.extend(case.hostname.is_some().then(|| case.input.clone()));
            invalid += 1;
            continue;
        };
        let opened = Url::parse(&text).map(|url| url.origin());
        let open = AddressPolicy {
            origins: opened.into_iter().collect(),
            ..AddressPolicy::default()
        };
        for policy in [AddressPolicy::default(), open] {
            let expected = case.hostname.as_deref().map(normalize);
            match policy.check_url(&text) {
                Ok(checked) => {
                    connected += 1;
                    assert_eq!(Some(&checked.name), expected.as_ref(), "{text:?}");
                    let client = checked.url.host().map(|host| normalize_host(&host));
                    assert_eq!(client, expected, "{text:?}");
                    let literal = checked.literal.map(|ip| ip.to_string());
                    assert!(literal.is_none() || literal == expected, "{text:?}");
                }
                Err(refusal) => {
                    refused += 1;
                    let Some(host) = refusal.host else { continue };
                    let expected = expected.expect("the standard refuses a URL with this host");
                    let label = host.rsplit_once("]:").map_or(&*host, |(host, _)| host);
                    let label = match label.rsplit_once(':') {
                        Some((name, port))
                            if !name.contains(':') && port.parse::<u16>().is_ok() =>
                        {
                            name
                        }
                        _ => label,
                    };
                    // A backslash ends no host in a scheme that is not of the web; the crate `url` takes it for a
                    // slash there. Nothing opens such a scheme.
                    if text.starts_with("foo:") {
                        continue;
                    }
                    assert_eq!(label.trim_start_matches('['), expected, "{text:?}");
                }
            }
        }
    }
    assert!(connected > 500 && refused > 2000 && invalid > 100);
    let slashes = stricter.iter().all(|input| input.starts_with("///"));
    assert!(slashes && stricter.len() == 14, "{stricter:?}");
}
