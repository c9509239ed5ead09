//! The failures of an exchange in dicta's words: no server, a refusal, and the headers of a reply.

use super::super::{ExchangeInfo, server_error, server_limits};
use super::{CallCx, ProviderClient, ProviderError};
use crate::model::Millis;
use crate::model::surrogates::replace_lone_halves;
use crate::net::{LlmResponse, NetError, WaitPhase};

/// The most bytes read of an error body; the text shown of it is far shorter.
const MAX_ERROR_BODY: usize = 256 << 10;
/// The longest wait for the rest of an error body.
const ERROR_BODY_TIMEOUT: Millis = Millis(10_000);
/// The most characters kept of a request's id.
const MAX_REQUEST_ID: usize = 200;
/// The headers in which servers send a request's id.
const REQUEST_ID_HEADERS: [&str; 6] = [
    "x-request-id",
    "request-id",
    "x-generation-id",
    "apim-request-id",
    "x-goog-request-id",
    "cf-ray",
];

impl ProviderClient {
    /// Converts an error without a reply.
    pub(super) fn connection_error(
        &self,
        error: &NetError,
        exchange_info: &mut ExchangeInfo,
    ) -> ProviderError {
        let why = self.redact(&error.to_string());
        // A wrong address or certificate stays wrong, so retries are useless.
        if !error.is_transient() {
            exchange_info.should_retry = Some(false);
        }
        // Only these errors prove that no request reached the server.
        let never_sent = matches!(
            error,
            NetError::BadUrl { .. }
                | NetError::BadHeader { .. }
                | NetError::Connect { .. }
                | NetError::Tls { .. }
                | NetError::Timeout {
                    what: WaitPhase::Connect,
                    ..
                }
        );
        exchange_info.exchange.cost_unknown = !never_sent;
        match error {
            NetError::BadUrl { .. } | NetError::BadHeader { .. } => ProviderError::Request(why),
            _ => ProviderError::Connect {
                url: self.shown_url.clone(),
                why,
            },
        }
    }

    /// Converts a status that is not a success.
    pub(super) async fn status_error(
        &self,
        mut response: LlmResponse,
        cx: &CallCx,
        exchange_info: &mut ExchangeInfo,
    ) -> ProviderError {
        let status = response.status;
        let mut bytes = Vec::new();
        let mut late = cx.clock.sleep(ERROR_BODY_TIMEOUT);
        while bytes.len() < MAX_ERROR_BODY {
            let chunk = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return ProviderError::Cancelled,
                chunk = response.next_chunk() => chunk,
                () = &mut late => break,
            };
            // A reason that breaks off is still useful: the status is what counts.
            let Ok(Some(chunk)) = chunk else { break };
            bytes.extend_from_slice(&chunk);
        }
        exchange_info.exchange.bytes = bytes.len() as u64;
        let body = String::from_utf8_lossy(&bytes);
        let error = server_error::parse_error_body(&replace_lone_halves(&body));
        let header = |name: &str| response.header(name);
        // The delay, by preference: headers, the error's details, then the rate limits.
        let asked = server_limits::delay_from_headers(header, wall_clock_seconds(cx));
        let mut message = self.redact(&error.message);
        // The client follows no redirect, so the message names the new address.
        if let Some(to) = header("location").filter(|_| (300..400).contains(&status)) {
            message = self.redact(&format!(
                "it redirects to {to}; set base_url to that server"
            ));
        }
        // 401 and 403 have a simple explanation if dicta had no key to send.
        if let Some(keyless) = self
            .missing_key_reason
            .as_ref()
            .filter(|_| matches!(status, 401 | 403))
        {
            message = format!("{message} ({keyless})");
        }
        ProviderError::Status {
            status,
            url: self.shown_url.clone(),
            message,
            retry_after: asked
                .or_else(|| server_limits::delay_from_details(&error.error))
                .or_else(|| exchange_info.rate_limits.time_until_refill()),
            terminal: server_limits::is_quota_exhausted(&error.error)
                || exchange_info.should_retry == Some(false),
        }
    }

    /// Records the details in the reply's headers.
    pub(super) fn read_response_headers(
        &self,
        response: &LlmResponse,
        exchange_info: &mut ExchangeInfo,
        cx: &CallCx,
    ) {
        let header = |name: &str| response.header(name);
        // The first header in the list that is present, so the order is by preference.
        let id = REQUEST_ID_HEADERS.iter().find_map(|name| header(name));
        exchange_info.exchange.request_id = id
            // Redacted before the cut, which could leave the beginning of a secret.
            .map(|id| {
                self.redact(id)
                    .chars()
                    .take(MAX_REQUEST_ID)
                    .collect::<String>()
            })
            .filter(|id| !id.is_empty());
        exchange_info.should_retry = match header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        exchange_info.rate_limits =
            server_limits::rate_limits_from_headers(header, wall_clock_seconds(cx));
    }
}

fn wall_clock_seconds(cx: &CallCx) -> Option<i64> {
    let now = cx.clock.wall_time().0.parse::<jiff::Timestamp>().ok();
    now.map(jiff::Timestamp::as_second)
}

impl ProviderError {
    /// Returns whether the model may have written something that is billed, although there is no reply.
    pub(super) fn may_be_billed(&self) -> bool {
        matches!(
            self,
            ProviderError::Cut { .. }
                | ProviderError::InStream { .. }
                | ProviderError::Malformed(_)
                | ProviderError::WrongProtocol(_)
                | ProviderError::Cancelled
        )
    }
}

/// Returns a URL without userinfo and query.
pub(super) fn display_url(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut url) => {
            // Only a URL without a host refuses these, and it has no userinfo.
            let _none = url.set_username("");
            let _none = url.set_password(None);
            url.set_query(None);
            url.into()
        }
        Err(_) => "the configured address".to_owned(),
    }
}
