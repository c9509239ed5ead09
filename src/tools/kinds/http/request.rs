//! The conversion of a call's values to a request: path, query, headers and body. Pure.
//!
//! No value leaves the place that its parameter declares. A value in a path is percent-encoded and may neither be
//! empty nor step out of the path. A value inside a text of a JSON body is escaped. A body template that is not JSON is
//! the exception: values in it are inserted as written, and dicta warns about it.

use std::fmt::Write as _;

use indexmap::IndexMap;
use serde_json::value::RawValue;
use url::{Url, form_urlencoded};

use crate::model::RawJson;
use crate::tools::params::{BodyTemplate, Template};

/// A request without its values.
#[derive(Debug)]
pub(super) struct RequestPlan {
    /// The method in upper case.
    pub(super) method: String,
    /// The source's base URL, without query and fragment.
    pub(super) base: Url,
    pub(super) path: Template,
    /// The query parameters that the source adds to every request.
    pub(super) fixed_query: Vec<(String, String)>,
    /// The names of the values in the query.
    pub(super) query_params: Vec<String>,
    /// The names of the values in the body, if the tool has no template for it.
    pub(super) body: Vec<String>,
    /// The names of the values in headers.
    pub(super) header_params: Vec<String>,
    /// The headers of the source and the tool.
    pub(super) headers: Vec<(String, String)>,
    pub(super) request_body: Option<BodyTemplate>,
    /// The place of values that no list and no template names.
    pub(super) unmapped: UnmappedValues,
    /// True if `null` means that a value is absent (parameters), and not a value of its own (a schema).
    pub(super) null_means_absent: bool,
}

/// The place of values that no list and no template names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnmappedValues {
    /// The body, as a JSON object.
    Body,
    /// The query.
    Query,
    /// No place: the tool has no such values.
    Nowhere,
}

/// A request that is ready to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BuiltRequest {
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<String>,
}

type RequestValues = IndexMap<String, Box<RawValue>>;

impl RequestPlan {
    /// Builds the request for these values. The error names the value that does not fit, and the reason.
    pub(super) fn build(&self, given: &RawJson) -> Result<BuiltRequest, String> {
        let mut values: RequestValues =
            serde_json::from_str(given.get()).map_err(|e| e.to_string())?;
        // The toolbox sends no value for a null.
        if self.null_means_absent {
            values.retain(|_, value| value.get() != "null");
        }
        let mut query = self.fixed_query.clone();
        for name in &self.query_params {
            if let Some(value) = values.get(name) {
                push_query_value(&mut query, name, value);
            }
        }
        let mut headers = self.headers.clone();
        for name in &self.header_params {
            if let Some(value) = values.get(name) {
                set_header(&mut headers, name, to_plain_text(value));
            }
        }
        let mut body = self.build_body(&values, given)?;
        match self.unmapped {
            UnmappedValues::Nowhere => {}
            UnmappedValues::Query => {
                for (name, value) in self.unmapped_values(&values) {
                    // A model must not override or duplicate a parameter that the source sets, such as an API key.
                    if self.fixed_query.iter().any(|(fixed, _)| fixed == name) {
                        return Err(format!("`{name}` is set by the source"));
                    }
                    push_query_value(&mut query, name, value);
                }
            }
            UnmappedValues::Body => body = Some(to_json_object(self.unmapped_values(&values))),
        }
        if let Some(body) = &body
            && !headers
                .iter()
                .any(|(name, _)| is_same_header(name, "content-type"))
            // A template may produce another format; then the tool must set the header itself.
            && serde_json::from_str::<&RawValue>(body).is_ok()
        {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        Ok(BuiltRequest {
            url: self.build_url(given, &query)?,
            headers,
            body,
        })
    }

    /// Returns the values that no template names.
    fn unmapped_values<'v>(&self, values: &'v RequestValues) -> Vec<(&'v String, &'v RawValue)> {
        let named = |name: &str| self.path.names().any(|n| n == name);
        let left = values.iter().filter(|(name, _)| !named(name));
        left.map(|(name, value)| (name, &**value)).collect()
    }

    fn build_body(
        &self,
        values: &RequestValues,
        given: &RawJson,
    ) -> Result<Option<String>, String> {
        if let Some(template) = &self.request_body {
            let body = template.render(given);
            return body
                .map(Some)
                .map_err(|why| format!("the request's body: {why}"));
        }
        // The order of the declaration, not that of the model's arguments.
        let given = self
            .body
            .iter()
            .filter_map(|name| values.get_key_value(name));
        let given: Vec<_> = given.map(|(name, value)| (name, &**value)).collect();
        Ok((!self.body.is_empty()).then(|| to_json_object(given)))
    }

    fn build_url(&self, given: &RawJson, query: &[(String, String)]) -> Result<String, String> {
        let encoded = self.path.render_with(given, |before, name, text| {
            // After the question mark, a value is encoded like a form field.
            if before.contains('?') {
                return Ok(form_urlencoded::byte_serialize(text.as_bytes()).collect());
            }
            encode_path_value(name, &text)
        });
        let path = encoded.map_err(|why| format!("the request's path: {why}"))?;
        let mut text = self.base.as_str().trim_end_matches('/').to_owned();
        // The path may be empty, a query alone, or have a slash at its beginning or not.
        match path.strip_prefix('/') {
            Some(below) => text = text + "/" + below,
            None if path.is_empty() => self.base.as_str().clone_into(&mut text),
            None if path.starts_with('?') => text += &path,
            None => text = text + "/" + &path,
        }
        let mut url = Url::parse(&text).map_err(|error| format!("the request's URL: {error}"))?;
        let base = self.base.path().trim_end_matches('/');
        let below = url.path().strip_prefix(base);
        // The URL parser resolves dots and may change the host, so check its result too.
        if url.origin() != self.base.origin()
            || !below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            || has_dot_segment(path.split('?').next().unwrap_or_default())
        {
            return Err("the request's path leaves the source's".to_owned());
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url.into())
    }
}

/// Returns true if a path segment is one or two dots in any spelling. Such segments step up.
pub(super) fn has_dot_segment(path: &str) -> bool {
    path.split(['/', '\\']).any(|segment| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        matches!(plain.as_str(), "." | "..")
    })
}

/// Encodes a value for a path, so that it stays within one segment.
fn encode_path_value(name: &str, text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err(format!("`{name}` is empty"));
    }
    // A server that decodes before it splits the path would step up.
    if has_dot_segment(text) {
        return Err(format!("`{name}` would leave it"));
    }
    let mut path = String::new();
    // Only the unreserved characters of RFC 3986 stay as they are.
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            path.push(char::from(byte));
        } else {
            let _infallible = write!(path, "%{byte:02X}");
        }
    }
    Ok(path)
}

/// Returns a text unchanged, and any other value as JSON.
fn to_plain_text(value: &RawValue) -> String {
    serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// Adds a value to the query: each item of a list, an object as JSON, and nothing for `null`.
fn push_query_value(query: &mut Vec<(String, String)>, name: &str, value: &RawValue) {
    if value.get() == "null" {
        return;
    }
    // A list becomes one parameter per item.
    match serde_json::from_str::<Vec<&RawValue>>(value.get()) {
        Ok(items) => query.extend(
            items
                .into_iter()
                .map(|v| (name.to_owned(), to_plain_text(v))),
        ),
        Err(_) => query.push((name.to_owned(), to_plain_text(value))),
    }
}

/// Sets a header and replaces one of the same name.
pub(super) fn set_header(headers: &mut Vec<(String, String)>, name: &str, value: String) {
    headers.retain(|(known, _)| !is_same_header(known, name));
    headers.push((name.to_owned(), value));
}

fn is_same_header(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// Builds a JSON object of values as they were written.
fn to_json_object<'v>(values: impl IntoIterator<Item = (&'v String, &'v RawValue)>) -> String {
    let mut out = String::from("{");
    for (at, (name, value)) in values.into_iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let name = serde_json::Value::from(name.as_str());
        // The value is copied as text, so that a number keeps its digits.
        let _infallible = write!(out, "{comma}{name}:{}", value.get());
    }
    out + "}"
}
