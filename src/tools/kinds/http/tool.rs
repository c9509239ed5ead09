//! A tool of an http source, read from its own keys, and its calls.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::{Source as _, Work};
use super::request::{Plan, Rest, has_dots, set};
use super::{MAX_SHOWN, Source, is_secret, pairs};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, ToolResponse};
use crate::net::{AddressRefusal, FetchError, GuardRule, GuardedRequest, is_connection_header};
use crate::tools::Prepared;
use crate::tools::params::{Known, Shape, Template};
use crate::tools::reply::{self, Facts};
use crate::tools::toolbox::Input;

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Lists of parameters, by where they go.
const LISTS: [&str; 4] = ["pathParams", "queryParams", "bodyParams", "headerParams"];

/// Of a failed request's body, so much is shown where the source does not ask for all of it.
const ERROR_SHOWN: usize = 1000;

/// What a tool does.
pub(super) struct Ask {
    source: Arc<Source>,
    plan: Plan,
    max_bytes: usize,
    read_only: bool,
}

/// Reads a tool's own keys.
pub(super) fn read_ask(
    source: Arc<Source>,
    fields: &mut MappingDecoder<'_>,
    input: &Input,
) -> Option<Ask> {
    if fields.value("templateParameters").is_some() {
        let message =
            "templateParameters are for statements; a path or requestBody names any parameter";
        fields.error("templateParameters", "unsupported", message);
    }
    let method = read_method(fields);
    let own = pairs(fields, "headers");
    let max_bytes = max_bytes(fields).unwrap_or(source.max_bytes);
    let declared = names(fields, "parameters");
    let lists = LISTS.map(|key| names(fields, key));
    let known: Vec<Known<'_>> = lists
        .iter()
        .flatten()
        .chain(&declared)
        .map(|name| (name.as_str(), shape_of(input, name)))
        .collect();
    // What a schema lets through is not known here.
    let known = matches!(input, Input::Parameters(_)).then_some(&*known);
    let path = fields.text_or_empty("path").unwrap_or_default();
    let path = read_path(fields, &path, known);
    let request_body = match fields.text_or_empty("requestBody") {
        None => Some(None),
        Some(text) => match Template::of_request(&text, known) {
            Ok(template) => Some(Some(template)),
            Err(why) => {
                fields.error("requestBody", "template", format!("requestBody: {why}"));
                None
            }
        },
    };
    // Their other hints, and what is wrong with them, are read by whoever reads what all tools have.
    let read_only_hint = fields
        .value("annotations")
        .and_then(|hints| hints.get("readOnlyHint")?.as_bool());
    let (method, path, request_body, own) = (method?, path?, request_body?, own?);
    let [in_path, query, body, header] = lists;
    let mut headers = source.headers.clone();
    for (name, value) in own {
        set(&mut headers, &name, value);
    }
    let is_four = request_body.is_some() || LISTS[1..].iter().any(|key| fields.has(key));
    let by_schema = matches!(input, Input::Schema(_));
    let rest = match method.as_str() {
        _ if is_four => Rest::Nowhere,
        "POST" | "PUT" | "PATCH" if by_schema || !declared.is_empty() => Rest::Body,
        "POST" | "PUT" | "PATCH" => Rest::Nowhere,
        _ => Rest::Query,
    };
    let read_only = read_only_hint.unwrap_or(matches!(method.as_str(), "GET" | "HEAD"));
    let plan = Plan {
        method,
        base: source.base.clone(),
        path,
        fixed: source.query.clone(),
        query,
        body,
        header,
        headers,
        request_body,
        rest,
        null_is_nothing: !by_schema,
    };
    check(fields, &plan, &in_path, &declared, by_schema).then(|| Ask {
        source,
        plan,
        max_bytes,
        read_only,
    })
}

/// How much of a body is shown, in bytes.
pub(super) fn max_bytes(fields: &mut MappingDecoder<'_>) -> Option<usize> {
    let max = fields.integer("maxBytes", 1..=MAX_SHOWN)?;
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
    known: Option<&[Known<'_>]>,
) -> Option<Template> {
    let bad = |why: &str| {
        fields.error("path", "value", format!("path: {why}"));
        None
    };
    let template = match Template::of_request(text, known) {
        Ok(template) => template,
        Err(why) => return bad(&why),
    };
    let literal = template.literal();
    if literal.starts_with("//") || literal.contains("://") {
        return bad("it counts from the source's baseUrl and names no host");
    }
    if literal.contains(['#', '\\']) || literal.contains(char::is_whitespace) {
        return bad("it holds a `#`, a backslash or a blank");
    }
    let before_query = literal.split('?').next().unwrap_or_default();
    if has_dots(before_query) {
        return bad("it steps upwards; a path stays below the source's baseUrl");
    }
    Some(template)
}

/// What a declared parameter holds; `None` where its declaration is at fault, which is told elsewhere.
fn shape_of<'i>(input: &'i Input, name: &str) -> Option<&'i Shape> {
    let Input::Parameters(params) = input else {
        return None;
    };
    let found = params.all().find(|param| param.name == name);
    found.map(|param| &param.shape)
}

/// Names of the parameters that a list declares. What else is wrong with them is told by whoever reads parameters.
fn names(fields: &mut MappingDecoder<'_>, key: &'static str) -> Vec<String> {
    let items = fields.list(key).unwrap_or_default();
    let name = |item: &serde_json::Value| Some(item.get("name")?.as_str()?.to_owned());
    items.iter().filter_map(|(_, item)| name(item)).collect()
}

/// Whether every value has a place and every place a value.
fn check(
    fields: &MappingDecoder<'_>,
    plan: &Plan,
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
        for key in LISTS.iter().filter(|key| fields.has(key)) {
            let message = format!(
                "{key} and inputSchema exclude each other: the schema declares all there is"
            );
            bad(key, message);
        }
    }
    let lists = [in_path, &plan.query, &plan.body, &plan.header, declared];
    let mut known = HashSet::new();
    for (key, names) in LISTS.iter().chain(["parameters"].iter()).zip(lists) {
        for name in names.iter().filter(|name| !known.insert(name.as_str())) {
            bad(key, format!("{key}: `{name}` is declared twice"));
        }
    }
    let body_names: Vec<&str> = plan.request_body.iter().flat_map(Template::names).collect();
    for name in in_path
        .iter()
        .filter(|name| !plan.path.names().any(|n| n == name.as_str()))
    {
        bad(
            "pathParams",
            format!("pathParams: `{name}` does not stand in path"),
        );
    }
    let placed = |name: &str| {
        plan.path
            .names()
            .chain(body_names.iter().copied())
            .any(|n| n == name)
    };
    if plan.rest == Rest::Nowhere {
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
                format!("bodyParams: `{name}` does not stand in requestBody"),
            );
        }
    }
    for name in &plan.query {
        if plan.fixed.iter().any(|(fixed, _)| fixed == name) {
            bad(
                "queryParams",
                format!("queryParams: the source sets `{name}` already"),
            );
        }
    }
    for name in &plan.header {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) || is_connection_header(name) {
            bad(
                "headerParams",
                format!("headerParams: `{name}` is no header a tool may set"),
            );
        }
    }
    fine
}

impl Ask {
    #[cfg(test)]
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is asked, as a message names it: without the query, which may hold a key.
    fn label(&self, url: &str) -> String {
        let bare = url.split('?').next().unwrap_or_default();
        format!("{} {bare}", self.plan.method)
    }

    async fn ask(&self, prepared: &Prepared, call: CallIx, cx: &CallCx) -> ToolResponse {
        let built = match self.plan.build(&prepared.values) {
            Ok(built) => built,
            Err(why) => return ToolResponse::error(why),
        };
        let label = self.label(&built.url);
        let asking = GuardedRequest {
            method: &self.plan.method,
            url: &built.url,
            headers: &built.headers,
            body: built.body.as_deref().map(str::as_bytes),
        };
        let facts = Facts { cx, call };
        let limits = self.source.limits();
        let sent = self.source.guard.send(&asking, &cx.clock, limits, &facts);
        let reply = match sent.await {
            Ok(reply) => reply,
            Err(error) => return self.failed(&label, &error),
        };
        let status = reply.status;
        let location = reply.header("location").map(str::to_owned);
        if status >= 400 && self.source.full_error == Some(false) {
            return status_error(status, &label, "");
        }
        let max = if status >= 400 && self.source.full_error.is_none() {
            ERROR_SHOWN.min(self.max_bytes)
        } else {
            self.max_bytes
        };
        let answer = match reply::read(reply, max, cx).await {
            Ok(answer) => answer,
            // A status says more than a body that cannot be read.
            Err(_) if status >= 400 => return status_error(status, &label, ""),
            Err(error) => return self.failed(&label, &error),
        };
        match status {
            200..300 if answer.text.is_empty() => ToolResponse {
                text: format!("[HTTP {status}, an empty body]"),
                ..answer
            },
            200..300 => answer,
            300..400 => {
                let to = location.map_or_else(String::new, |to| {
                    format!(": the redirect to {to} is not followed")
                });
                ToolResponse {
                    text: status_error(status, &label, "").text + &to,
                    is_error: true,
                    ..answer
                }
            }
            _ => {
                let told = status_error(status, &label, &answer.text);
                ToolResponse {
                    text: told.text,
                    is_error: true,
                    transient: told.transient,
                    ..answer
                }
            }
        }
    }

    fn failed(&self, label: &str, error: &FetchError) -> ToolResponse {
        let answer = match error {
            FetchError::Refused(refusal) => ToolResponse::error(self.source.refused(refusal)),
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

fn status_error(status: u16, label: &str, body: &str) -> ToolResponse {
    let body = body.trim();
    let colon = if body.is_empty() { "" } else { ":\n" };
    ToolResponse {
        transient: reply::is_transient(status),
        ..ToolResponse::error(format_args!("HTTP {status} from {label}{colon}{body}"))
    }
}

impl Work for Ask {
    fn digest(&self) -> Digest {
        // A secret decides nothing that an answer should depend on, and has no business in a digest.
        let shown = |(name, value): &(String, String)| {
            let value = if is_secret(name) { "" } else { value.as_str() };
            format!("{name}={value}")
        };
        let plan = &self.plan;
        let mut parts = vec![
            "http".to_owned(),
            plan.method.clone(),
            plan.base.to_string(),
            format!("{:?}", (&plan.path, &plan.request_body, plan.rest)),
            format!("{:?}", (&plan.query, &plan.body, &plan.header)),
            format!("{:?}", (self.max_bytes, self.source.full_error)),
        ];
        parts.extend(plan.fixed.iter().map(shown));
        parts.extend(plan.headers.iter().map(shown));
        Digest::hash_parts(parts.iter().map(String::as_bytes))
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn call<'a>(
        &'a self,
        prepared: &'a Prepared,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => {
                    ToolResponse::error(format_args!("cancelled while asking {}", self.source.kind()))
                }
                answer = self.ask(prepared, call, cx) => answer,
            }
        })
    }
}

impl Source {
    /// A refusal as the model and the user read it.
    pub(super) fn refused(&self, refusal: &AddressRefusal) -> String {
        let host = refusal.host.as_deref().unwrap_or("it");
        // Without `allowPrivate` a base is https on 443, so its own origin has the bare name; with it, it is open already.
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
