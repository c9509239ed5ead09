//! How an exchange fails, in our words: no server, a refusal, and what its headers say beside it.

use super::super::{Told, delay, refusal};
use super::{CallCx, Client, ProviderError};
use crate::model::Millis;
use crate::net::{LlmResponse, NetError, WaitPhase};

/// Longest error body that is read, in bytes; the text shown of it is far shorter.
const MAX_ERROR_BODY: usize = 256 << 10;
/// How long is waited for all of an error body.
const ERROR_BODY: Millis = Millis(10_000);
/// Longest name of a request that is kept, in characters.
const MAX_REQUEST_ID: usize = 200;
/// Where servers put their name for a request.
const REQUEST_IDS: [&str; 6] = [
    "x-request-id",
    "request-id",
    "x-generation-id",
    "apim-request-id",
    "x-goog-request-id",
    "cf-ray",
];

impl Client {
    /// No reply at all.
    pub(super) fn unreachable(&self, error: &NetError, told: &mut Told) -> ProviderError {
        let why = self.clean(&error.to_string());
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
    pub(super) async fn refused(
        &self,
        mut response: LlmResponse,
        cx: &CallCx,
        told: &mut Told,
    ) -> ProviderError {
        let status = response.status;
        let mut bytes = Vec::new();
        let mut late = cx.clock.sleep(ERROR_BODY);
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
        let said = refusal::read(&String::from_utf8_lossy(&bytes));
        let header = |name: &str| response.header(name);
        let asked = delay::asked_by_headers(header, now(cx));
        let mut message = self.clean(&said.message);
        if let Some(to) = header("location").filter(|_| (300..400).contains(&status)) {
            message = self.clean(&format!(
                "it redirects to {to}; set base_url to where it answers"
            ));
        }
        if let Some(keyless) = self
            .keyless
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
                .or_else(|| delay::asked_by_details(&said.error))
                .or_else(|| told.quota.exhausted()),
            terminal: delay::quota_is_used_up(&said.error) || told.should_retry == Some(false),
        }
    }

    /// What the reply's head says beside its status.
    pub(super) fn note_head(&self, response: &LlmResponse, told: &mut Told, cx: &CallCx) {
        let header = |name: &str| response.header(name);
        let id = REQUEST_IDS.iter().find_map(|name| header(name));
        told.exchange.request_id = id
            .map(|id| self.clean(&id.chars().take(MAX_REQUEST_ID).collect::<String>()))
            .filter(|id| !id.is_empty());
        told.should_retry = match header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        told.quota = delay::quota(header, now(cx));
    }
}

fn now(cx: &CallCx) -> Option<i64> {
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

pub(super) fn shown(url: &str) -> String {
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
