//! How an exchange fails, in our words: no server, a refusal, and what its headers say beside it.

use super::super::{ExchangeInfo, server_error, server_limits};
use super::{CallCx, ProviderClient, ProviderError};
use crate::model::Millis;
use crate::net::{LlmResponse, NetError, WaitPhase};

/// Longest error body that is read, in bytes; the text shown of it is far shorter.
const MAX_ERROR_BODY: usize = 256 << 10;
/// How long is waited for all of an error body.
const ERROR_BODY_TIMEOUT: Millis = Millis(10_000);
/// Longest name of a request that is kept, in characters.
const MAX_REQUEST_ID: usize = 200;
/// Where servers put their name for a request.
const REQUEST_ID_HEADERS: [&str; 6] = [
    "x-request-id",
    "request-id",
    "x-generation-id",
    "apim-request-id",
    "x-goog-request-id",
    "cf-ray",
];

impl ProviderClient {
    /// No reply at all.
    pub(super) fn connection_error(
        &self,
        error: &NetError,
        told: &mut ExchangeInfo,
    ) -> ProviderError {
        let why = self.redact(&error.to_string());
        if !error.is_transient() {
            told.should_retry = Some(false);
        }
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
        told.exchange.cost_unknown = !never_sent;
        match error {
            NetError::BadUrl { .. } | NetError::BadHeader { .. } => ProviderError::Request(why),
            _ => ProviderError::Connect {
                url: self.shown_url.clone(),
                why,
            },
        }
    }

    /// A status that is no success.
    pub(super) async fn status_error(
        &self,
        mut response: LlmResponse,
        cx: &CallCx,
        told: &mut ExchangeInfo,
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
            // A reason that breaks off is still one: the status is what counts.
            let Ok(Some(chunk)) = chunk else { break };
            bytes.extend_from_slice(&chunk);
        }
        told.exchange.bytes = bytes.len() as u64;
        let said = server_error::parse_error_body(&String::from_utf8_lossy(&bytes));
        let header = |name: &str| response.header(name);
        let asked = server_limits::delay_from_headers(header, wall_clock_seconds(cx));
        let mut message = self.redact(&said.message);
        if let Some(to) = header("location").filter(|_| (300..400).contains(&status)) {
            message = self.redact(&format!(
                "it redirects to {to}; set base_url to where it answers"
            ));
        }
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
                .or_else(|| server_limits::delay_from_details(&said.error))
                .or_else(|| told.rate_limits.time_until_refill()),
            terminal: server_limits::is_quota_exhausted(&said.error)
                || told.should_retry == Some(false),
        }
    }

    /// What the reply's head says beside its status.
    pub(super) fn read_response_headers(
        &self,
        response: &LlmResponse,
        told: &mut ExchangeInfo,
        cx: &CallCx,
    ) {
        let header = |name: &str| response.header(name);
        let id = REQUEST_ID_HEADERS.iter().find_map(|name| header(name));
        told.exchange.request_id = id
            .map(|id| self.redact(&id.chars().take(MAX_REQUEST_ID).collect::<String>()))
            .filter(|id| !id.is_empty());
        told.should_retry = match header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        told.rate_limits = server_limits::rate_limits_from_headers(header, wall_clock_seconds(cx));
    }
}

fn wall_clock_seconds(cx: &CallCx) -> Option<i64> {
    let now = cx.clock.wall_time().0.parse::<jiff::Timestamp>().ok();
    now.map(jiff::Timestamp::as_second)
}

impl ProviderError {
    /// Whether the model may have written something that is billed, though there is no reply.
    pub(super) fn may_be_billed(&self) -> bool {
        matches!(
            self,
            ProviderError::Cut { .. }
                | ProviderError::InStream { .. }
                | ProviderError::Malformed(_)
                | ProviderError::Cancelled
        )
    }
}

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
