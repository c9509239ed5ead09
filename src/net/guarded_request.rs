//! A request that a tool sends through the guard: its method, headers and body, and the part that a redirect keeps.

use bytes::Bytes;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};

use super::NetError;
use super::llm::build_header_map;
use super::policy::{CheckedUrl, check_raw_text, has_userinfo};
use super::refusal::{GuardRule, HopRefusal};

/// A request. Its headers and body go only to the origin of `url`. A redirect to another origin, and every hop after
/// it, goes without them, even a hop back to the first origin.
#[derive(Debug, Clone, Copy)]
pub struct GuardedRequest<'a> {
    /// The method: `GET`, `POST` …
    pub method: &'a str,
    /// The URL.
    pub url: &'a str,
    /// Headers by name; the values may be secrets.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: Option<&'a [u8]>,
}

/// The `Accept` header of a fetch whose caller sets none.
const ACCEPT: HeaderValue = HeaderValue::from_static(
    "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.8, */*;q=0.1",
);

/// A [`GuardedRequest`] in reqwest's types.
pub(super) struct PreparedRequest {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
}

impl PreparedRequest {
    pub(super) fn prepare(asking: &GuardedRequest<'_>) -> Result<Self, NetError> {
        let bad = |why: String| NetError::BadUrl { why };
        let method = Method::from_bytes(asking.method.as_bytes())
            .ok()
            // CONNECT would open a tunnel past the guard, and TRACE echoes the headers with their secrets.
            .filter(|m| *m != Method::CONNECT && *m != Method::TRACE)
            .ok_or_else(|| bad(format!("the method `{}` is not supported", asking.method)))?;
        let mut headers = build_header_map(asking.headers)?;
        // These headers decide where a request ends and which host it is for, so a caller could smuggle a second
        // request.
        if let Some(name) = CONNECTION_HEADERS
            .iter()
            .find(|name| headers.contains_key(**name))
        {
            return Err(bad(format!(
                "the header `{name}` cannot be set: it belongs to the connection"
            )));
        }
        // A server may choose the format by this header; a source's own header has priority.
        headers.entry(header::ACCEPT).or_insert(ACCEPT);
        // Server-sent events are read as they arrive, and a gzip decoder would hold them back.
        let events = headers
            .get_all(header::ACCEPT)
            .iter()
            .any(|v| String::from_utf8_lossy(v.as_bytes()).contains("text/event-stream"));
        let encoding = if events { "identity" } else { "gzip" };
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(encoding));
        Ok(Self {
            method,
            headers,
            // A redirect sends the body again, so the request owns it.
            body: asking.body.map(Bytes::copy_from_slice),
        })
    }

    /// Returns `true` if dicta follows redirects. A request that may change something is not sent to an address that
    /// a reply names.
    pub(super) fn follows_redirects(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Removes the headers and the body, which are only for the first origin.
    pub(super) fn drop_headers_and_body(&mut self) {
        // The only header that stays: the decoder depends on it.
        let encoding = self.headers.remove(header::ACCEPT_ENCODING);
        self.headers.clear();
        self.headers.insert(header::ACCEPT, ACCEPT);
        if let Some(encoding) = encoding {
            self.headers.insert(header::ACCEPT_ENCODING, encoding);
        }
        self.body = None;
    }

    pub(super) fn build(
        &self,
        client: &reqwest::Client,
        to: &CheckedUrl,
    ) -> reqwest::RequestBuilder {
        let building = client
            .request(self.method.clone(), to.url.clone())
            .headers(self.headers.clone());
        match &self.body {
            Some(body) => building.body(body.clone()),
            None => building,
        }
    }
}

/// The headers that belong to a connection, in lower case.
const CONNECTION_HEADERS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns `true` if [`super::AddressGuard::send`] refuses a header of this name.
pub fn is_connection_header(name: &str) -> bool {
    CONNECTION_HEADERS
        .iter()
        .any(|c| c.eq_ignore_ascii_case(name))
}

/// A redirect that the guard does not follow.
pub(super) struct RefusedRedirect {
    /// The target as far as it is readable.
    pub(super) url: String,
    pub(super) refusal: HopRefusal,
}

/// Returns the full URL that a reply redirects to, or the refusal with the URL as far as it is readable. `None` if
/// the reply is not a redirect.
pub(super) fn find_redirect(
    from: &CheckedUrl,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<Result<String, RefusedRedirect>> {
    // 304 and 300 have no target to follow.
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers.get(header::LOCATION)?;
    let text = String::from_utf8_lossy(location.as_bytes()).into_owned();
    // The same check as for a model's URL, because the server's text is untrusted too.
    if let Err(refusal) = check_raw_text(&text) {
        return Some(Err(RefusedRedirect { url: text, refusal }));
    }
    // Joining drops an empty user name, so the check comes first.
    if has_userinfo(&text) {
        let refusal = HopRefusal::new(
            GuardRule::Userinfo,
            "user names and passwords in URLs are refused",
        );
        return Some(Err(RefusedRedirect { url: text, refusal }));
    }
    Some(match from.url.join(&text) {
        Ok(url) => Ok(url.into()),
        Err(error) => Err(RefusedRedirect {
            url: text,
            refusal: HopRefusal::new(GuardRule::Parse, error.to_string()),
        }),
    })
}
