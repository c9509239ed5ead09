//! OpenAI Responses.

use std::sync::Arc;

use super::client::{Dialect, Omit, Reader};
use super::refusal::Param;
use super::{ProviderError, TurnRequest};
use crate::model::{JudgeConfig, TurnIx};

/// The dialect of one judge.
pub(super) struct Responses {
    url: String,
}

impl Responses {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        Err(ProviderError::Request(format!(
            "judge `{}`: OpenAI Responses is not in this version yet",
            config.name
        )))
    }
}

impl Dialect for Responses {
    fn url(&self) -> &str {
        &self.url
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn params(&self) -> &'static [Param] {
        &[]
    }

    fn pieces(&self, _: &TurnRequest<'_>, _: &Omit) -> Result<Vec<Arc<str>>, ProviderError> {
        Ok(Vec::new())
    }

    fn reader(&self, _: TurnIx) -> Box<dyn Reader> {
        unreachable!("it is never built")
    }
}
