//! The sending of a body with its authentication: a key in the headers, or a Google access token.
//!
//! A token is fetched before the request, and fetched again once if the server refuses it.

use std::sync::Arc;

use bytes::Bytes;

use super::{DOCUMENT_FIRST_BYTE_TIMEOUT, ProviderClient};
use crate::event::{CallCx, EventKind};
use crate::net::{LlmResponse, ReplyLimits};
use crate::provider::google_auth::GoogleTokens;
use crate::provider::{ExchangeInfo, ProviderError};

/// The header that names the Google Cloud project to bill.
const QUOTA_PROJECT: &str = "x-goog-user-project";

impl ProviderClient {
    /// Sends Google access tokens instead of a key, unless the user's own headers contain one.
    pub(in crate::provider) fn with_tokens(mut self, tokens: Arc<GoogleTokens>) -> Self {
        let has_header = |headers: &[(String, String)], name: &str| {
            headers
                .iter()
                .any(|(header, _)| header.eq_ignore_ascii_case(name))
        };
        if let Some(project) = tokens.credentials().quota_project()
            && !has_header(&self.headers, QUOTA_PROJECT)
        {
            self.headers
                .push((QUOTA_PROJECT.to_owned(), project.to_owned()));
        }
        self.redactor.add_secrets(tokens.credentials().secrets());
        if !has_header(&self.headers, "authorization") {
            self.tokens = Some(tokens);
        }
        self
    }

    /// Sends the body; sends it once more with a new token if the server refuses the first.
    pub(super) async fn post_with_auth(
        &self,
        body: &Bytes,
        exchange_info: &mut ExchangeInfo,
        cx: &CallCx,
    ) -> Result<LlmResponse, ProviderError> {
        let Some(tokens) = &self.tokens else {
            return self.post_once(None, body, exchange_info, cx).await;
        };
        let token = self.fetch_token(tokens, None, cx).await?;
        let response = self
            .post_once(Some(&token), body, exchange_info, cx)
            .await?;
        // Only 401 means an invalid token; 403 means missing permissions, which a new token doesn't fix.
        if response.status != 401 {
            return Ok(response);
        }
        // Free the connection before the next request.
        drop(response);
        // The refused token is named, so that other cells that wait get the new one too.
        let fresh = self.fetch_token(tokens, Some(&token), cx).await?;
        emit_note(
            cx,
            "the server refused the access token (401); trying again with a new one",
        )
        .await;
        self.post_once(Some(&fresh), body, exchange_info, cx).await
    }

    /// Fetches a token and adds it to every redactor before it is used.
    async fn fetch_token(
        &self,
        tokens: &GoogleTokens,
        refused: Option<&str>,
        cx: &CallCx,
    ) -> Result<Arc<str>, ProviderError> {
        let log = cx.out.redactor();
        log.add_secrets(tokens.credentials().secrets());
        let token = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ProviderError::Cancelled),
            token = tokens.get(refused) => token?,
        };
        // Both redactors, for events and for error texts, must know the token before any use.
        log.add_secrets([&*token]);
        self.redactor.add_secrets([&*token]);
        Ok(token)
    }

    async fn post_once(
        &self,
        token: Option<&str>,
        body: &Bytes,
        exchange_info: &mut ExchangeInfo,
        cx: &CallCx,
    ) -> Result<LlmResponse, ProviderError> {
        let mut limits = ReplyLimits::default();
        if !self.stream {
            // The whole reply arrives at once, after the model has written all of it.
            limits.first_byte = DOCUMENT_FIRST_BYTE_TIMEOUT;
        }
        // Declared here, because `headers` may borrow it.
        let signed: Vec<(String, String)>;
        let headers = match token {
            None => &self.headers,
            Some(token) => {
                let bearer = ("authorization".to_owned(), format!("Bearer {token}"));
                signed = [self.headers.as_slice(), &[bearer]].concat();
                &signed
            }
        };
        let posting = self
            .http
            .post(self.dialect.url(), headers, body.clone(), limits);
        let response = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ProviderError::Cancelled),
            response = posting => response.map_err(|error| self.connection_error(&error, exchange_info))?,
        };
        if response.was_resent() {
            let why = "the server had closed the reused connection; the request was sent again on a new one";
            emit_note(cx, why).await;
        }
        Ok(response)
    }
}

/// Records a note about one attempt.
pub(super) async fn emit_note(cx: &CallCx, text: &str) {
    let (cell, text) = (Some(cx.cell), text.to_owned());
    cx.out.send(EventKind::Note { cell, text }).await;
}

/// Returns the body with one more member; `None` if it isn't an object, because a person may have edited it.
pub(super) fn append_member(body: &str, member: &str) -> Option<String> {
    // Append as text: parsing and writing again could change other bytes.
    let open = body.trim_end().strip_suffix('}')?;
    let comma = if open.trim_end().ends_with('{') {
        ""
    } else {
        ","
    };
    Some(format!("{open}{comma}{member}}}"))
}
