//! A request that a tool makes, of any method, through the guard: what of it goes where.

use bytes::Bytes;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};

use super::NetError;
use super::llm::build_header_map;
use super::policy::{CheckedUrl, check_raw_text, has_userinfo};
use super::refusal::{AddressRefusal, GuardRule};

/// What is sent. Headers and body go to the origin of `url` alone: a redirect elsewhere goes without them, and so does
/// all that follows it, a way back included.
#[derive(Debug, Clone, Copy)]
pub struct GuardedRequest<'a> {
    /// `GET`, `POST` …
    pub method: &'a str,
    /// Where to.
    pub url: &'a str,
    /// By name; may hold secrets.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: Option<&'a [u8]>,
}

/// What a fetch says it can read, where its caller says nothing else.
const ACCEPT: HeaderValue = HeaderValue::from_static(
    "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.8, */*;q=0.1",
);

/// An [`Asking`] in the client's words.
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
            .filter(|m| *m != Method::CONNECT && *m != Method::TRACE)
            .ok_or_else(|| bad(format!("`{}` is no method to send", asking.method)))?;
        let mut headers = build_header_map(asking.headers)?;
        // What belongs to the connection decides where a request ends, and `host` whom it is for: never a caller's.
        if let Some(name) = CONNECTION_HEADERS
            .iter()
            .find(|name| headers.contains_key(**name))
        {
            return Err(bad(format!("the header `{name}` is not a caller's to set")));
        }
        headers.entry(header::ACCEPT).or_insert(ACCEPT);
        // Events are read as they come, which a decoder would hold back.
        let events = headers
            .get_all(header::ACCEPT)
            .iter()
            .any(|v| String::from_utf8_lossy(v.as_bytes()).contains("text/event-stream"));
        let encoding = if events { "identity" } else { "gzip" };
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(encoding));
        Ok(Self {
            method,
            headers,
            body: asking.body.map(Bytes::copy_from_slice),
        })
    }

    /// Whether redirects are followed: what changes something is not sent to where a reply points.
    pub(super) fn follows_redirects(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Forgets what is for the first origin alone.
    pub(super) fn drop_headers_and_body(&mut self) {
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

/// Headers of a connection, lower case.
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

/// Whether a header's name is one that [`super::Guard::send`] refuses.
pub fn is_connection_header(name: &str) -> bool {
    CONNECTION_HEADERS
        .iter()
        .any(|c| c.eq_ignore_ascii_case(name))
}

/// Where a reply sends us: the full URL, or why not (with the URL as far as it could be read).
pub(super) fn find_redirect(
    from: &CheckedUrl,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<Result<String, (String, AddressRefusal)>> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers.get(header::LOCATION)?;
    let text = String::from_utf8_lossy(location.as_bytes()).into_owned();
    if let Err(refusal) = check_raw_text(&text) {
        return Some(Err((text, refusal)));
    }
    // Joining forgets an empty user name, so look before.
    if has_userinfo(&text) {
        let refusal = AddressRefusal::new(
            GuardRule::Userinfo,
            "user names and passwords in URLs are refused",
        );
        return Some(Err((text, refusal)));
    }
    Some(match from.url.join(&text) {
        Ok(url) => Ok(url.into()),
        Err(error) => Err((
            text,
            AddressRefusal::new(GuardRule::Parse, error.to_string()),
        )),
    })
}
