//! The tool `fetch_url`: opens a web page for a judge, through the address guard.
//!
//! Its texts follow evalbench's where evalbench has them (`Error: timeout after 10s fetching <url>`). A refusal also
//! names the setting that would allow the request.

use std::sync::Arc;

use serde_json::json;
use url::Url;

use super::fetch_config::{FetchUrlConfig, SeenRule};
use super::http_response::{self, CallHopSink};
use super::{SeenUrls, Tool, ValidatedCall, check_schema};
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{CallIx, JudgeTool, Millis, RawJson, Rejection, ToolDeclaration, ToolResponse};
use crate::net::{
    AddressGuard, FetchError, FetchLimits, GuardRule, HopRefusal, Resolver, normalize_host,
};
use crate::schema::CompiledSchema;

/// The tool's name.
pub const FETCH_URL: &str = "fetch_url";

/// Returns the tool's declaration.
pub(super) fn fetch_url_decl() -> ToolDeclaration {
    ToolDeclaration {
        name: FETCH_URL.to_owned(),
        description: "Fetches a web page over https and returns it as text. Use it to check facts against a source that \
                      the conversation, the criteria or an earlier page names; other hosts are refused. Long pages are cut."
            .to_owned(),
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
    /// Builds the tool from a judge's `tools:` entry. Reads `ca_file`. Returns all problems at once, as sentences.
    pub fn new(entry: &JudgeTool, resolver: Arc<dyn Resolver>) -> Result<Self, Vec<String>> {
        // The settings decide what the guard allows.
        let settings = FetchUrlConfig::read(&entry.settings)?;
        let mut guard = AddressGuard::new(settings.policy.clone(), resolver);
        // The file is read when the tool is built, so that a missing file is an error before the run.
        if let Some(path) = &settings.ca_file {
            let bad = |why: String| vec![format!("fetch_url: ca_file {}: {why}", path.display())];
            let pem = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
            guard = guard
                .with_ca(&pem)
                .map_err(|error| bad(error.to_string()))?;
        }
        let decl = fetch_url_decl();
        let schema =
            CompiledSchema::compile(&decl.schema).map_err(|error| vec![error.to_string()])?;
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
                "Error: refusing to fetch '{host}' (no transcript, rubric or fetched page names this host); \
                 fetch_url's setting `seen: off` would admit it"
            ),
            SeenRule::Url if !seen.has_url(url) => format!(
                "Error: refusing to fetch {url} (no transcript, rubric or fetched page names this URL); \
                 fetch_url's setting `seen: {}` would admit it",
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

    fn max_calls(&self) -> Option<u32> {
        Some(self.config.max_calls)
    }

    fn badge(&self) -> Option<String> {
        self.guard
            .policy_warning()
            .map(|badge| format!("fetch_url: {badge}"))
    }

    fn prepare(&self, canonical: &RawJson, seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        check_schema(FETCH_URL, &self.schema, canonical)?;
        let url = parse_url_argument(canonical).unwrap_or_default();
        self.check_seen(&url, seen)?;
        Ok(ValidatedCall {
            tool: FETCH_URL.to_owned(),
            canonical: canonical.clone(),
            values: canonical.clone(),
            coerced: Vec::new(),
        })
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
