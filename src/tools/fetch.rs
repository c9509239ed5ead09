//! The tool `fetch_url`: opens a web page for a judge, through the address guard.
//!
//! Its texts follow evalbench's where evalbench has them (`Error: timeout after 10s fetching <url>`). A refusal also
//! names the setting that would allow the request.

use std::sync::Arc;

use serde_json::json;
use url::Url;

use super::fetch_config::{FETCH_URL, FetchUrlConfig, FetchUrlError, SeenRule};
use super::http_response::{self, CallHopSink};
use super::{SeenUrls, Tool, ValidatedCall, check_schema};
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{
    CallIx, Digest, JudgeTool, Millis, RawJson, Rejection, ToolDeclaration, ToolResponse,
};
use crate::net::{
    AddressGuard, FetchError, FetchLimits, GuardRule, HopRefusal, Resolver, normalize_host,
};
use crate::schema::CompiledSchema;
use crate::storage::{MAX_CERTIFICATES, read_regular_file};

/// Returns the tool's declaration. It names the addresses that the rule refuses, so that no turn is lost to them.
pub(super) fn fetch_url_decl(seen: SeenRule) -> ToolDeclaration {
    let refused = match seen {
        SeenRule::Url => "; other addresses are refused",
        SeenRule::Host => "; other hosts are refused",
        SeenRule::Off => "",
    };
    ToolDeclaration {
        name: FETCH_URL.to_owned(),
        description: format!(
            "Fetches a web page over https and returns it as text. Use it to check facts against a source that the \
             conversation, the criteria or an earlier page names{refused}. Long pages are cut."
        ),
        schema: json!({
            "type": "object",
            "properties": { "url": { "type": "string", "minLength": 1, "description": "The full https URL." } },
            "required": ["url"],
            "additionalProperties": false
        }),
    }
}

/// The tool `fetch_url` with a judge's settings.
pub struct FetchUrl {
    decl: ToolDeclaration,
    schema: CompiledSchema,
    config: FetchUrlConfig,
    guard: AddressGuard,
}

impl FetchUrl {
    /// Builds the tool from a judge's `tools:` entry. Reads `ca_file`. Returns all problems at once.
    pub fn new(entry: &JudgeTool, resolver: Arc<dyn Resolver>) -> Result<Self, Vec<FetchUrlError>> {
        // The settings decide what the guard allows.
        let settings = FetchUrlConfig::read(&entry.settings)?;
        let mut guard = AddressGuard::new(settings.policy.clone(), resolver);
        // The file is read when the tool is built, so that a missing file is an error before the run.
        if let Some(path) = &settings.ca_file {
            let pem = read_regular_file(path, MAX_CERTIFICATES).map_err(|source| {
                let path = path.clone();
                vec![FetchUrlError::UnreadableCaFile { path, source }]
            })?;
            guard = guard.with_ca(&pem).map_err(|source| {
                let path = path.clone();
                vec![FetchUrlError::InvalidCaFile { path, source }]
            })?;
        }
        let decl = fetch_url_decl(settings.seen_rule);
        let schema = CompiledSchema::compile(&decl.schema).map_err(|error| vec![error.into()])?;
        Ok(Self {
            decl,
            schema,
            config: settings,
            guard,
        })
    }

    async fn fetch(&self, url: &str, call: CallIx, cx: &CallCx) -> ToolResponse {
        let limits = FetchLimits {
            deadline: self.config.timeout,
            ..FetchLimits::default()
        };
        // Each hop becomes an event, so that a recording shows where a judge connected.
        let facts = CallHopSink { cx, call };
        // A status other than 2xx is an error for the model, without the body, which is not the page.
        match self.guard.get(url, &cx.clock, limits, &facts).await {
            Ok(page) if (200..300).contains(&page.status) => {
                match http_response::read_tool_response(page, self.config.max_bytes, cx).await {
                    Ok(answer) => answer,
                    Err(error) => self.fetch_error_response(url, &error),
                }
            }
            Ok(page) => ToolResponse {
                transient: http_response::is_transient_status(page.status),
                ..ToolResponse::error(format_args!("HTTP {} fetching {url}", page.status))
            },
            Err(error) => self.fetch_error_response(url, &error),
        }
    }

    fn fetch_error_response(&self, url: &str, error: &FetchError) -> ToolResponse {
        let secs = |time: Millis| time.0 as f64 / 1000.0;
        let answer = match error {
            FetchError::Refused(refusal) => ToolResponse::error(explain_refusal(url, refusal)),
            FetchError::Timeout => {
                let secs = secs(self.config.timeout);
                ToolResponse::error(format_args!("timeout after {secs}s fetching {url}"))
            }
            FetchError::PhaseTimeout { what, after } => {
                let secs = secs(*after);
                ToolResponse::error(format_args!(
                    "timeout after {secs}s fetching {url} (waiting for {what})"
                ))
            }
            other => ToolResponse::error(format_args!("URL error fetching {url}: {other}")),
        };
        ToolResponse {
            transient: error.is_transient(),
            ..answer
        }
    }

    fn check_seen(&self, url: &str, seen: &SeenUrls) -> Result<(), Rejection> {
        // The address guard reports a text that is not a URL or has no host.
        let Some(host) = Url::parse(url)
            .ok()
            .and_then(|u| u.host().map(|h| normalize_host(&h)))
        else {
            return Ok(());
        };
        let text = match self.config.seen_rule {
            SeenRule::Host if !seen.has_host(&host) => format!(
                "Error: refusing to fetch '{host}' (no transcript, rubric or fetched page names this host); allowed are \
                 addresses on hosts that these name; fetch_url's setting `seen: off` would admit it"
            ),
            SeenRule::Url if !seen.has_url(url) => format!(
                "Error: refusing to fetch {url} (no transcript, rubric or fetched page names this URL); allowed are only \
                 addresses that appear there, copied without a change of path or query; fetch_url's setting `seen: {}` \
                 would admit it",
                // The strictest setting that would allow the URL.
                if seen.has_host(&host) { "host" } else { "off" }
            ),
            _ => return Ok(()),
        };
        Err(Rejection {
            rule: "seen".to_owned(),
            text,
        })
    }
}

impl Tool for FetchUrl {
    fn decl(&self) -> &ToolDeclaration {
        &self.decl
    }

    fn digest(&self) -> Digest {
        // The seen rule changes the description and no response, and `call_rule` has it, so the cache key still determines
        // the description. Responses that earlier versions recorded have this digest.
        fetch_url_decl(SeenRule::Host).digest()
    }

    fn max_calls(&self) -> Option<u32> {
        Some(self.config.max_calls)
    }

    fn call_rule(&self) -> Option<&'static str> {
        Some(self.config.seen_rule.as_str())
    }

    fn badge(&self) -> Option<String> {
        let seen = self.config.seen_rule.warning().map(str::to_owned);
        let warnings: Vec<String> = self
            .guard
            .policy_warning()
            .into_iter()
            .chain(seen)
            .collect();
        (!warnings.is_empty()).then(|| format!("fetch_url: {}", warnings.join("; ")))
    }

    fn prepare(&self, canonical: &RawJson, seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        check_schema(FETCH_URL, &self.schema, canonical)?;
        let url = parse_url_argument(canonical).unwrap_or_default();
        self.check_seen(&url, seen)?;
        Ok(ValidatedCall::unchanged(FETCH_URL, canonical))
    }

    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(async move {
            let Some(url) = parse_url_argument(&prepared.values) else {
                return ToolResponse::error("missing required arg 'url' (string)");
            };
            tokio::select! {
                // Cancellation first, so that a cancelled run does not wait for a ready page.
                biased;
                () = cx.cancel.cancelled() => ToolResponse::error(format_args!("cancelled while fetching {url}")),
                answer = self.fetch(&url, call, cx) => answer,
            }
        })
    }
}

/// Returns the URL in arguments that passed the schema.
fn parse_url_argument(values: &RawJson) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Values {
        url: String,
    }
    let values: Values = serde_json::from_str(values.get()).ok()?;
    Some(values.url)
}

/// Formats a refusal for the language model, in evalbench's words where evalbench has them.
fn explain_refusal(url: &str, refusal: &HopRefusal) -> String {
    let why = &refusal.why;
    let host = refusal.host.as_deref();
    match refusal.rule {
        GuardRule::Scheme => why.clone(),
        GuardRule::Redirects => format!("too many redirects fetching {url} ({why})"),
        GuardRule::Resolve => format!(
            "refusing to fetch '{}' (unresolvable: {why})",
            host.unwrap_or(url)
        ),
        // The setting appears only if it would help: some refusals have no exception.
        rule => {
            let admit = match host {
                Some(host) if refusal.allowable => {
                    format!("; fetch_url's setting `allow_hosts: [\"{host}\"]` would admit it")
                }
                _ => String::new(),
            };
            format!(
                "refusing to fetch '{}' ({}: {why}){admit}",
                host.unwrap_or(url),
                rule.as_str()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::SystemResolver;

    fn tool(settings: &serde_json::Value) -> FetchUrl {
        let entry = JudgeTool {
            name: FETCH_URL.to_owned(),
            settings: serde_json::from_value(settings.clone()).expect("settings"),
        };
        FetchUrl::new(&entry, Arc::new(SystemResolver)).expect("valid settings")
    }

    fn seen() -> SeenUrls {
        let mut seen = SeenUrls::default();
        seen.add_text("See https://docs.example/guide?v=2 and files.example.");
        seen
    }

    fn prepare(tool: &FetchUrl, url: &str) -> Result<(), Rejection> {
        let arguments = RawJson::from_serializable(&json!({"url": url})).expect("JSON");
        tool.prepare(&arguments, &seen()).map(|_| ())
    }

    #[test]
    fn description_names_the_refused_addresses_and_the_digest_is_that_of_earlier_versions() {
        let start = "Fetches a web page over https and returns it as text. Use it to check facts against a source that the \
                     conversation, the criteria or an earlier page names";
        // Without the digest of `host`, recorded responses are lost. Other words for a rule need another `call_rule` or
        // parser version, because cache keys have the digest and the rule, and no description.
        let earlier = format!("{start}; other hosts are refused. Long pages are cut.");
        for (settings, rule, description) in [
            (
                json!({}),
                "url",
                format!("{start}; other addresses are refused. Long pages are cut."),
            ),
            (json!({"seen": "host"}), "host", earlier.clone()),
            (
                json!({"seen": "off"}),
                "off",
                format!("{start}. Long pages are cut."),
            ),
        ] {
            let tool = tool(&settings);
            assert_eq!(tool.decl().description, description);
            assert_eq!(tool.call_rule(), Some(rule));
            let recorded = ToolDeclaration {
                description: earlier.clone(),
                ..tool.decl().clone()
            };
            assert_eq!(tool.digest(), recorded.digest(), "{rule}");
        }
    }

    #[test]
    fn by_default_only_addresses_that_the_judge_has_read_may_be_opened() {
        let tool = tool(&json!({}));
        for url in [
            "https://docs.example/guide?v=2",
            "https://docs.example/guide?v=2#part",
            "https://files.example/",
        ] {
            prepare(&tool, url).unwrap_or_else(|why| panic!("{}", why.text));
        }
        let composed = (0..100).map(|n| match n % 4 {
            0 => format!("https://docs.example/guide?v=2&secret={n}"),
            1 => format!("https://docs.example/{n}"),
            2 => format!("https://s{n}.docs.example/guide?v=2"),
            _ => format!("https://evil.example/?q={n}"),
        });
        for url in composed {
            let why = prepare(&tool, &url).expect_err(&url);
            assert_eq!(why.rule, "seen");
            let part = "allowed are only addresses that appear there, copied without a change";
            assert!(why.text.contains(part), "{}", why.text);
        }
    }

    #[test]
    fn looser_seen_rule_is_a_setting_with_a_badge_and_another_call_rule() {
        let (url, host) = (tool(&json!({})), tool(&json!({"seen": "host"})));
        prepare(&host, "https://docs.example/other?q=1").expect("its host was read");
        let why = prepare(&host, "https://evil.example/").expect_err("not read");
        let part = "allowed are addresses on hosts that these name";
        assert!(why.text.contains(part), "{}", why.text);
        assert_eq!(url.badge(), None);
        let badge = host.badge().expect("a badge");
        assert!(badge.starts_with("fetch_url: `seen: host`"), "{badge}");
        let off = tool(&json!({"seen": "off", "allow_hosts": ["wiki.corp"]}));
        let badge = off.badge().expect("a badge");
        assert!(
            badge.contains("wiki.corp") && badge.contains("`seen: off`"),
            "{badge}"
        );
        assert_ne!(url.call_rule(), host.call_rule());
        // A recorded response is the same page under each rule.
        assert_eq!(url.digest(), host.digest());
    }
}
