//! A tool of an http source: the reader of its keys, and its calls.

use std::collections::HashSet;
use std::sync::Arc;

use super::request::{RequestPlan, UnmappedValues, has_dot_segment, set_header};
use super::{HttpSource, MAX_MAX_BYTES, read_text_pairs};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, ToolResponse, is_secret_name};
use crate::net::{FetchError, GuardRule, GuardedRequest, HopRefusal, is_connection_header};
use crate::tools::ValidatedCall;
use crate::tools::http_response::{self, CallHopSink};
use crate::tools::params::{BodyTemplate, KnownName, REQUEST_PARAM_KEYS, Template, ValueSpec};
use crate::tools::source::{
    ToolExecutor, ToolInput, ToolSource as _, hash_without_secrets, list_parts_with_secrets,
};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The length at which the body of a failed request is cut, in bytes, unless the source asks for all of it.
const MAX_ERROR_BODY_BYTES: usize = 1000;

/// One request of an API.
pub(super) struct HttpTool {
    source: Arc<HttpSource>,
    plan: RequestPlan,
    max_bytes: usize,
    read_only: bool,
}

/// Reads the keys of a tool.
pub(super) fn read_http_tool(
    source: Arc<HttpSource>,
    fields: &mut MappingDecoder<'_>,
    input: &ToolInput,
) -> Option<HttpTool> {
    if fields.value("templateParameters").is_some() {
        let message =
            "templateParameters are for statements; a path or requestBody names any parameter";
        fields.error("templateParameters", "unsupported", message);
    }
    // All keys are read before the first early return, so that one pass reports all problems.
    let method = read_method(fields);
    let own_headers = read_text_pairs(fields, "headers");
    let max_bytes = read_max_bytes(fields).unwrap_or(source.max_bytes);
    // The reader of the common keys reports errors in the parameters; only the names matter here.
    let declared = read_param_names(fields, "parameters");
    let lists = REQUEST_PARAM_KEYS.map(|key| read_param_names(fields, key));
    let known: Vec<KnownName<'_>> = lists
        .iter()
        .flatten()
        .chain(&declared)
        .map(|name| KnownName {
            name,
            spec: find_param_spec(input, name),
        })
        .collect();
    // With a schema, the argument names are not known here, so templates may use any name.
    let known = matches!(input, ToolInput::Parameters(_)).then_some(&*known);
    let path = fields.text_or_empty("path").unwrap_or_default();
    let path = read_path(fields, &path, known);
    let request_body = match fields.text_or_empty("requestBody") {
        None => Some(None),
        Some(text) => match BodyTemplate::parse(&text, known) {
            Ok(body) => {
                for message in body.lint(known) {
                    fields.warning("requestBody", "template", message);
                }
                Some(Some(body))
            }
            Err(why) => {
                fields.error("requestBody", "template", format!("requestBody: {why}"));
                None
            }
        },
    };
    // The reader of the common keys checks the annotations; only this hint matters here.
    let read_only_hint = fields
        .value("annotations")
        .and_then(|hints| hints.get("readOnlyHint")?.as_bool());
    let (method, path, request_body, own_headers) = (method?, path?, request_body?, own_headers?);
    let [in_path, query, body, header] = lists;
    // The tool's headers override those of the source.
    let mut headers = source.headers.clone();
    for (name, value) in own_headers {
        set_header(&mut headers, &name, value);
    }
    // With a body template or parameter lists, every value has a fixed place.
    let has_placed_values =
        request_body.is_some() || REQUEST_PARAM_KEYS[1..].iter().any(|key| fields.has(key));
    let by_schema = matches!(input, ToolInput::Schema(_));
    // Without them, the method decides where the arguments go.
    let unmapped = match method.as_str() {
        _ if has_placed_values => UnmappedValues::Nowhere,
        "POST" | "PUT" | "PATCH" if by_schema || !declared.is_empty() => UnmappedValues::Body,
        "POST" | "PUT" | "PATCH" => UnmappedValues::Nowhere,
        _ => UnmappedValues::Query,
    };
    let read_only = read_only_hint.unwrap_or(matches!(method.as_str(), "GET" | "HEAD"));
    let plan = RequestPlan {
        method,
        base: source.base.clone(),
        path,
        fixed_query: source.fixed_query.clone(),
        query_params: query,
        body,
        header_params: header,
        headers,
        request_body,
        unmapped,
        // With a schema, the model's `null` is a value of its own.
        null_means_absent: !by_schema,
    };
    check_value_targets(fields, &plan, &in_path, &declared, by_schema).then(|| HttpTool {
        source,
        plan,
        max_bytes,
        read_only,
    })
}

/// Reads `maxBytes`, the limit of the shown body in bytes.
pub(super) fn read_max_bytes(fields: &mut MappingDecoder<'_>) -> Option<usize> {
    let max = fields.integer("maxBytes", 1..=MAX_MAX_BYTES)?;
    usize::try_from(max).ok()
}

fn read_method(fields: &mut MappingDecoder<'_>) -> Option<String> {
    if !fields.has("method") {
        fields.error_at_mapping("missing", "an http tool needs a method");
    }
    let method = fields.text("method")?.to_ascii_uppercase();
    if !METHODS.contains(&method.as_str()) {
        let message = format!(
            "method must be one of {} (got `{method}`)",
            METHODS.join(", ")
        );
        fields.error("method", "value", message);
        return None;
    }
    Some(method)
}

fn read_path(
    fields: &MappingDecoder<'_>,
    text: &str,
    known: Option<&[KnownName<'_>]>,
) -> Option<Template> {
    let bad = |why: &str| {
        fields.error("path", "value", format!("path: {why}"));
        None
    };
    let template = match Template::parse_request(text, known) {
        Ok(template) => template,
        Err(why) => return bad(&why),
    };
    // The checks use a sample value without slashes or dots, since encoding removes those of real values.
    let literal = template.sample_text();
    if literal.starts_with("//") || literal.contains("://") {
        return bad("it counts from the source's baseUrl and names no host");
    }
    if literal.contains(['#', '\\']) || literal.contains(char::is_whitespace) {
        return bad("it holds a `#`, a backslash or a blank");
    }
    let before_query = literal.split('?').next().unwrap_or_default();
    // `..` would leave the base URL, which is the limit of what a judge may call.
    if has_dot_segment(before_query) {
        return bad("it steps upwards; a path stays below the source's baseUrl");
    }
    Some(template)
}

/// Returns the rules of a declared parameter; `None` if its declaration has errors, which are reported elsewhere.
fn find_param_spec<'i>(input: &'i ToolInput, name: &str) -> Option<&'i ValueSpec> {
    let ToolInput::Parameters(params) = input else {
        return None;
    };
    let found = params.all_params().find(|param| param.name == name);
    found.map(|param| &param.spec)
}

/// Returns the names of the parameters in a list. The parameter reader reports their other errors.
fn read_param_names(fields: &mut MappingDecoder<'_>, key: &'static str) -> Vec<String> {
    let items = fields.list(key).unwrap_or_default();
    let name = |item: &serde_json::Value| Some(item.get("name")?.as_str()?.to_owned());
    items.iter().filter_map(|(_, item)| name(item)).collect()
}

/// Checks that every value has a place in the request and every place has a value. Reports problems through `fields`.
fn check_value_targets(
    fields: &MappingDecoder<'_>,
    plan: &RequestPlan,
    in_path: &[String],
    declared: &[String],
    by_schema: bool,
) -> bool {
    let mut fine = true;
    let mut bad = |key: &str, message: String| {
        fields.error(key, "value", message);
        fine = false;
    };
    if by_schema {
        for key in REQUEST_PARAM_KEYS.iter().filter(|key| fields.has(key)) {
            let message = format!(
                "{key} and inputSchema exclude each other: the schema declares all there is"
            );
            bad(key, message);
        }
    }
    let lists = [
        in_path,
        &plan.query_params,
        &plan.body,
        &plan.header_params,
        declared,
    ];
    // A name in two places would send a value twice.
    let mut known = HashSet::new();
    for (key, names) in REQUEST_PARAM_KEYS
        .iter()
        .chain(["parameters"].iter())
        .zip(lists)
    {
        for name in names.iter().filter(|name| !known.insert(name.as_str())) {
            bad(key, format!("{key}: `{name}` is declared twice"));
        }
    }
    let body_template = plan.request_body.as_ref().map(BodyTemplate::template);
    let body_names: Vec<&str> = body_template.iter().flat_map(|t| t.names()).collect();
    for name in in_path
        .iter()
        .filter(|name| !plan.path.names().any(|n| n == name.as_str()))
    {
        bad(
            "pathParams",
            format!("pathParams: `{name}` does not appear in path"),
        );
    }
    let placed = |name: &str| {
        plan.path
            .names()
            .chain(body_names.iter().copied())
            .any(|n| n == name)
    };
    if plan.unmapped == UnmappedValues::Nowhere {
        for name in declared.iter().filter(|name| !placed(name)) {
            bad(
                "parameters",
                format!(
                    "parameters: `{name}` goes nowhere; name it in path or requestBody, or declare it in queryParams, bodyParams or headerParams"
                ),
            );
        }
    }
    if plan.request_body.is_some() {
        for name in plan
            .body
            .iter()
            .filter(|name| !body_names.contains(&name.as_str()))
        {
            bad(
                "bodyParams",
                format!("bodyParams: `{name}` does not appear in requestBody"),
            );
        }
    }
    // The source's own parameters may be secrets; a model must not override them.
    for name in &plan.query_params {
        if plan.fixed_query.iter().any(|(fixed, _)| fixed == name) {
            bad(
                "queryParams",
                format!("queryParams: the source sets `{name}` already"),
            );
        }
    }
    for name in &plan.header_params {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        // The characters of a token in RFC 9110.
        if name.is_empty() || !name.chars().all(token) || is_connection_header(name) {
            bad(
                "headerParams",
                format!("headerParams: `{name}` is not a header that a tool may set"),
            );
        }
    }
    fine
}

impl HttpTool {
    #[cfg(test)]
    pub(super) fn plan(&self) -> &RequestPlan {
        &self.plan
    }

    /// Returns the request as messages name it: without the query, which may contain a key.
    fn request_label(&self, url: &str) -> String {
        // The query may contain secrets, so messages show the URL without it.
        let without_query = url.split('?').next().unwrap_or_default();
        format!("{} {without_query}", self.plan.method)
    }

    async fn send_request(
        &self,
        prepared: &ValidatedCall,
        call: CallIx,
        cx: &CallCx,
    ) -> ToolResponse {
        let built = match self.plan.build(&prepared.values) {
            Ok(built) => built,
            Err(why) => return ToolResponse::error(why),
        };
        let label = self.request_label(&built.url);
        let asking = GuardedRequest {
            method: &self.plan.method,
            url: &built.url,
            headers: &built.headers,
            body: built.body.as_deref().map(str::as_bytes),
        };
        let facts = CallHopSink { cx, call };
        let limits = self.source.fetch_limits();
        let sent = self.source.guard.send(&asking, &cx.clock, limits, &facts);
        let reply = match sent.await {
            Ok(reply) => reply,
            Err(error) => return self.fetch_error_response(&label, &error),
        };
        let status = reply.status;
        let location = reply.header("location").map(str::to_owned);
        // `returnFullError: false`: the body of an error may contain internal data.
        if status >= 400 && self.source.show_full_error == Some(false) {
            return status_error_response(status, &label, "");
        }
        // Without the setting, an error body is shortened.
        let max = if status >= 400 && self.source.show_full_error.is_none() {
            MAX_ERROR_BODY_BYTES.min(self.max_bytes)
        } else {
            self.max_bytes
        };
        let answer = match http_response::read_tool_response(reply, max, cx).await {
            Ok(answer) => answer,
            // The status is more useful than the error of reading the body.
            Err(_) if status >= 400 => return status_error_response(status, &label, ""),
            Err(error) => return self.fetch_error_response(&label, &error),
        };
        match status {
            200..300 if answer.text.is_empty() => ToolResponse {
                text: format!("[HTTP {status}, an empty body]"),
                ..answer
            },
            200..300 => answer,
            // The guard follows the redirects of GET and HEAD only.
            300..400 => {
                let to = location.map_or_else(String::new, |to| {
                    format!(": the redirect to {to} is not followed")
                });
                ToolResponse {
                    text: status_error_response(status, &label, "").text + &to,
                    is_error: true,
                    ..answer
                }
            }
            _ => {
                let failure = status_error_response(status, &label, &answer.text);
                ToolResponse {
                    text: failure.text,
                    is_error: true,
                    transient: failure.transient,
                    ..answer
                }
            }
        }
    }

    fn fetch_error_response(&self, label: &str, error: &FetchError) -> ToolResponse {
        let answer = match error {
            FetchError::Refused(refusal) => {
                ToolResponse::error(self.source.explain_refusal(refusal))
            }
            FetchError::Timeout => {
                let secs = self.source.timeout.0 as f64 / 1000.0;
                ToolResponse::error(format_args!("timeout after {secs}s, {label}"))
            }
            other => ToolResponse::error(format_args!("{label}: {other}")),
        };
        ToolResponse {
            transient: error.is_transient(),
            ..answer
        }
    }
}

fn status_error_response(status: u16, label: &str, body: &str) -> ToolResponse {
    let body = body.trim();
    let colon = if body.is_empty() { "" } else { ":\n" };
    ToolResponse {
        transient: http_response::is_transient_status(status),
        ..ToolResponse::error(format_args!("HTTP {status} from {label}{colon}{body}"))
    }
}

impl HttpTool {
    /// Returns the texts that determine the responses, without the values whose names denote secrets.
    fn digest_parts(&self) -> Vec<String> {
        let recorded_value = |name: &str, value: &str| {
            if is_secret_name(name) {
                String::new()
            } else {
                value.to_owned()
            }
        };
        let plan = &self.plan;
        let body_template = plan.request_body.as_ref().map(BodyTemplate::template);
        let mut parts = vec![
            "http".to_owned(),
            plan.method.clone(),
            plan.base.to_string(),
            // The debug format of the template contains its structure, so a changed path changes the digest.
            format!("{:?}", (&plan.path, body_template, plan.unmapped)),
            format!(
                "{:?}",
                (&plan.query_params, &plan.body, &plan.header_params)
            ),
            format!("{:?}", (self.max_bytes, self.source.show_full_error)),
        ];
        // Earlier versions did not escape these values, so their tool responses belong to another tool.
        if plan
            .request_body
            .as_ref()
            .is_some_and(BodyTemplate::escapes_texts)
        {
            parts.push("texts of the body are escaped".to_owned());
        }
        for (name, value) in &plan.fixed_query {
            // Two parts, because a parameter's name may contain `=`.
            parts.extend([name.clone(), recorded_value(name, value)]);
        }
        // A header must not pass for a query parameter. Tools without such parameters keep the digest that earlier
        // recordings have.
        if !plan.fixed_query.is_empty() {
            parts.push("headers".to_owned());
        }
        let to_part = |(name, value): &(String, String)| {
            let value = recorded_value(name, value);
            format!("{name}={value}")
        };
        parts.extend(plan.headers.iter().map(to_part));
        parts
    }
}

impl ToolExecutor for HttpTool {
    fn digest(&self) -> Digest {
        // Secrets stay out of the digest, because digests are recorded. `secrets_outside_digest` returns them.
        hash_without_secrets(self.digest_parts(), &self.source.env_secrets)
    }

    fn secrets_outside_digest(&self) -> Vec<(String, String)> {
        let plan = &self.plan;
        let secret = |(name, _): &&(String, String)| is_secret_name(name);
        let sent = plan.fixed_query.iter().chain(&plan.headers);
        let mut found: Vec<(String, String)> = sent.filter(secret).cloned().collect();
        // A value of the environment may be a secret under any name, also in the path and the body.
        let secrets = &self.source.env_secrets;
        found.extend(list_parts_with_secrets(self.digest_parts(), secrets));
        found
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => {
                    ToolResponse::error(format_args!("cancelled while asking {}", self.source.kind()))
                }
                answer = self.send_request(prepared, call, cx) => answer,
            }
        })
    }
}

impl HttpSource {
    /// Formats a refusal for the language model and the user.
    pub(super) fn explain_refusal(&self, refusal: &HopRefusal) -> String {
        let host = refusal.host.as_deref().unwrap_or("it");
        // Without `allowPrivate`, a base is https on port 443, so its own origin is the bare host. With it, that
        // origin is already open.
        let base = self.base.host_str().unwrap_or_default();
        let is_own = host.trim_matches(['[', ']']) == base.trim_matches(['[', ']']);
        let admit = if is_own && refusal.allowable && !self.allow_private {
            format!(
                "; `allowPrivate: true` on source `{}` would admit it",
                self.name
            )
        } else if refusal.allowable || refusal.rule == GuardRule::Scheme {
            format!(
                "; source `{}` may ask its own origin and public https, and no setting opens another",
                self.name
            )
        } else {
            String::new()
        };
        format!("refusing to ask '{host}' ({refusal}){admit}")
    }
}
