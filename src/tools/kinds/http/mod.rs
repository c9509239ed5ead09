//! HTTP APIs: source `http` is the base URL of an API, a tool is one of its requests.
//!
//! Requests go through [`crate::net::AddressGuard`]: https to public addresses. `allowPrivate: true` opens the
//! source's own origin and no other. `disableSslVerification` is not supported; `caFile` names a certificate
//! authority instead.
//!
//! Keys in addition to the toolbox's: `allowPrivate`, `caFile`, `maxBytes`. A path is appended to the base (`…/v1`
//! and `/items` give `…/v1/items`). A list becomes one query parameter per item. A tool without `queryParams`,
//! `bodyParams`, `headerParams` and `requestBody` sends its values as a JSON object (POST, PUT, PATCH) or as the
//! query.

mod http_tool;
mod request;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::go_duration::parse_go_duration;
use crate::clock::BoxFuture;
use crate::diag::yaml::{MappingDecoder, describe_value};
use crate::event::{CallCx, Redactor};
use crate::model::{Hop, Millis, is_secret_name};
use crate::net::{
    AddressGuard, AddressPolicy, FetchLimits, GuardedRequest, HopObserver, HopRefusal,
    is_connection_header,
};
use crate::storage::{MAX_CERTIFICATES, read_regular_file};
use crate::tools::ProbeError;
use crate::tools::source::{SourceAddress, SourceCx, ToolExecutor, ToolInput, ToolSource};

/// The default time limit, which is that of the toolbox.
const DEFAULT_TIMEOUT: Millis = Millis::from_secs(30);

/// The upper limit of `timeout`.
const MAX_TIMEOUT: Millis = Millis::from_secs(600);

/// The default limit of the shown body, in bytes.
const DEFAULT_MAX_BYTES: usize = 50_000;

/// The upper limit of `maxBytes`.
const MAX_MAX_BYTES: i64 = 2 << 20;

/// An API as a source.
struct HttpSource {
    name: String,
    base: Url,
    headers: Vec<(String, String)>,
    fixed_query: Vec<(String, String)>,
    timeout: Millis,
    allow_private: bool,
    max_bytes: usize,
    /// Shows the whole body of a failed request (`true`), none of it (`false`), or its start (`None`).
    show_full_error: Option<bool>,
    guard: AddressGuard,
    /// The file of `caFile`.
    ca_path: Option<PathBuf>,
    /// The texts that recorded digests omit, whatever the names of their keys are.
    env_secrets: Redactor,
}

/// Reads a source.
pub(super) fn read(
    fields: &mut MappingDecoder<'_>,
    cx: &SourceCx<'_>,
) -> Option<Arc<dyn ToolSource>> {
    let source = read_source(fields, cx)?;
    Some(source)
}

fn read_source(fields: &mut MappingDecoder<'_>, cx: &SourceCx<'_>) -> Option<Arc<HttpSource>> {
    if !fields.has("baseUrl") {
        fields.error_at_mapping("missing", "an http source needs a baseUrl");
    }
    let written = fields.text("baseUrl");
    let headers = read_text_pairs(fields, "headers");
    let query = read_text_pairs(fields, "queryParams");
    let timeout = match fields.value("timeout") {
        None => Some(DEFAULT_TIMEOUT),
        Some(value) => read_timeout(fields, value),
    };
    // Read for its own message: the toolbox accepts the key.
    if fields.boolean("disableSslVerification") == Some(true) {
        let message = "disableSslVerification is not supported: whoever is in between could answer; name the \
                       certificate's authority in caFile";
        fields.error("disableSslVerification", "unsupported", message);
    }
    let full_error = fields.boolean("returnFullError");
    let allow_private = fields.boolean("allowPrivate").unwrap_or(false);
    let max_bytes = http_tool::read_max_bytes(fields).unwrap_or(DEFAULT_MAX_BYTES);
    let ca = match fields.text("caFile") {
        None => Some(None),
        Some(path) => {
            let file = cx.folder.join(&path);
            match read_regular_file(&file, MAX_CERTIFICATES) {
                Ok(pem) => Some(Some((file, pem))),
                Err(error) => {
                    fields.error("caFile", "file", format!("caFile {path}: {error}"));
                    None
                }
            }
        }
    };
    // Only after all keys were read, so that one pass reports all problems.
    let (base, policy) = read_base(fields, &written?, allow_private)?;
    let mut guard = AddressGuard::new(policy, Arc::clone(cx.resolver));
    let mut ca_path = None;
    if let Some((file, pem)) = ca? {
        guard = match guard.with_ca(&pem) {
            Ok(guard) => guard,
            Err(why) => {
                fields.error("caFile", "file", format!("caFile: {why}"));
                return None;
            }
        };
        ca_path = Some(file);
    }
    Some(Arc::new(HttpSource {
        name: cx.name.to_owned(),
        base,
        headers: headers?,
        fixed_query: query?,
        timeout: timeout?,
        allow_private,
        max_bytes,
        show_full_error: full_error,
        guard,
        ca_path,
        env_secrets: Redactor::new(cx.secrets.iter().map(String::as_str)),
    }))
}

/// Reads the base URL and builds the address policy for it.
fn read_base(
    fields: &MappingDecoder<'_>,
    text: &str,
    allow_private: bool,
) -> Option<(Url, AddressPolicy)> {
    let bad = |why: String| {
        fields.error("baseUrl", "url", format!("baseUrl {why}"));
        None
    };
    let url = match Url::parse(text) {
        // The address guard checks the scheme again; this check gives a better message.
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
        Ok(_) => return bad("must be an http or https URL with a host".to_owned()),
        Err(error) => return bad(format!("is not a URL: {error}")),
    };
    if url.query().is_some() || url.fragment().is_some() {
        return bad(
            "must not contain a query or fragment; put fixed parameters into queryParams"
                .to_owned(),
        );
    }
    let policy = AddressPolicy {
        // Only the base URL's own origin is opened, not every private address.
        origins: if allow_private {
            vec![url.origin()]
        } else {
            Vec::new()
        },
        ..AddressPolicy::default()
    };
    // The guard's rules for a text apply to the source as well, before any call.
    match policy.find_refusal(text) {
        None => Some((url, policy)),
        Some(HopRefusal { why, allowable, .. }) => {
            let admit = if !allow_private && (allowable || url.scheme() == "http") {
                "; `allowPrivate: true` opens this origin"
            } else {
                ""
            };
            bad(format!("is refused: {why}{admit}"))
        }
    }
}

fn read_timeout(fields: &MappingDecoder<'_>, value: &Value) -> Option<Millis> {
    let read = match value {
        Value::Number(n) => n.as_f64().map(Millis::from_secs_f64),
        Value::String(text) => parse_go_duration(text),
        _ => None,
    };
    let fits = read.filter(|t| (Millis(1)..=MAX_TIMEOUT).contains(t));
    if fits.is_none() {
        let got = describe_value(value);
        let message = format!(
            "timeout must be a duration above 0 and at most 10m, such as 30s or 1m30s (got {got})"
        );
        fields.error("timeout", "value", message);
    }
    fits
}

/// Reads a mapping of names to texts; numbers and booleans count as texts. Returns `None` after it reported a
/// problem.
fn read_text_pairs(
    fields: &mut MappingDecoder<'_>,
    key: &'static str,
) -> Option<Vec<(String, String)>> {
    let value = match fields.value(key) {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(value) => value,
    };
    let Value::Object(map) = value else {
        fields.error(
            key,
            "type",
            format!("{key} must be a mapping (got {})", describe_value(value)),
        );
        return None;
    };
    let mut read = Vec::with_capacity(map.len());
    let mut fine = true;
    for (name, value) in map {
        // YAML reads `1` and `true` as other types than text.
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => {
                let message = format!("{key}: {name} must be text (got {})", describe_value(value));
                fields.error_at(
                    &format!("{key}/{}", crate::model::escape_pointer_step(name)),
                    "type",
                    message,
                );
                fine = false;
                continue;
            }
        };
        // These headers belong to the HTTP client and decide where a request ends.
        if key == "headers" && is_connection_header(name) {
            let message = format!("headers: `{name}` belongs to the connection and cannot be set");
            fields.error_at(
                &format!("{key}/{}", crate::model::escape_pointer_step(name)),
                "value",
                message,
            );
            fine = false;
        }
        read.push((name.clone(), text));
    }
    fine.then_some(read)
}

impl HttpSource {
    fn fetch_limits(&self) -> FetchLimits {
        FetchLimits {
            deadline: self.timeout,
            // A slow API may use the whole time for its headers.
            headers: self.timeout,
            ..FetchLimits::default()
        }
    }
}

impl ToolSource for HttpSource {
    fn kind(&self) -> &'static str {
        "http"
    }

    fn address(&self) -> SourceAddress {
        SourceAddress::Server(self.base.origin().ascii_serialization())
    }

    fn badge(&self) -> Option<String> {
        self.guard.policy_warning()
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn authority_files(&self) -> Vec<PathBuf> {
        self.ca_path.iter().cloned().collect()
    }

    fn secrets(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, value) in self.headers.iter().chain(&self.fixed_query) {
            if !is_secret_name(name) || value.is_empty() {
                continue;
            }
            // `Bearer abc…`: the part after the scheme is the secret. A part of a few characters is ignored, because
            // redacting it would hit ordinary text.
            if let Some((_, bare)) = value.split_once(' ').filter(|(_, bare)| bare.len() >= 6) {
                found.push(bare.to_owned());
            }
            found.push(value.clone());
            // The value as it appears in a URL.
            let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
            if encoded != *value {
                found.push(encoded);
            }
        }
        found
    }

    fn read_tool(
        self: Arc<Self>,
        _: &str,
        fields: &mut MappingDecoder<'_>,
        input: &ToolInput,
    ) -> Option<Arc<dyn ToolExecutor>> {
        let tool = http_tool::read_http_tool(self, fields, input)?;
        Some(Arc::new(tool))
    }

    fn probe<'a>(&'a self, cx: &'a CallCx) -> BoxFuture<'a, Result<String, ProbeError>> {
        Box::pin(async move {
            let mut url = self.base.clone();
            if !self.fixed_query.is_empty() {
                url.query_pairs_mut().extend_pairs(&self.fixed_query);
            }
            let asking = GuardedRequest {
                method: "GET",
                url: url.as_str(),
                headers: &self.headers,
                body: None,
            };
            let sent = self
                .guard
                .send(&asking, &cx.clock, self.fetch_limits(), &IgnoredProbeHops);
            match sent.await {
                Ok(reply) => Ok(format!("reachable, HTTP {}", reply.status)),
                Err(crate::net::FetchError::Refused(refusal)) => {
                    Err(ProbeError::unusable(self.explain_refusal(&refusal)))
                }
                Err(error) => Err(ProbeError::unusable(error.to_string())),
            }
        })
    }
}

/// An observer that drops hops: a probe is not a tool call.
struct IgnoredProbeHops;

impl HopObserver for IgnoredProbeHops {
    fn record_hop(&self, _: Hop) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests;
