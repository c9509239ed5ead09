//! The parts that the SQL sources share: a tool's statement with its parameters, rows as JSON, failures.
//!
//! Responsible for the assignment of values to the parameters of a statement ([`SqlQuery`]) and for the text of a
//! response ([`JsonRows`]). Does not know drivers; `sqlite` and `postgres` do. Values are bound and never inserted
//! into a statement, except for template parameters, which have their own rules ([`crate::tools::params`]).

mod query;
mod rows;

use std::sync::{Mutex, PoisonError, Weak};

use serde_json::Value;

use super::go_duration::parse_go_duration;
use crate::diag::yaml::{MappingDecoder, describe_value};
use crate::model::{Millis, ToolResponse};
use crate::tools::ProbeError;

pub(super) use query::{SqlQuery, SqlValues};
#[cfg(feature = "postgres")]
pub(super) use rows::MAX_ROWS_BYTES;
pub(super) use rows::{JsonRows, SqlCell};

/// The default time limit of a statement.
const DEFAULT_TIMEOUT: Millis = Millis::from_secs(10);
const MAX_TIMEOUT: Millis = Millis::from_secs(600);

/// The reason why a statement has no rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SqlFailure {
    /// A failure that a retry cannot avoid.
    Permanent(String),
    /// A failure that a retry may avoid.
    Transient(String),
}

impl SqlFailure {
    pub(super) fn permanent(why: impl Into<String>) -> Self {
        Self::Permanent(why.into())
    }

    pub(super) fn timeout(after: Millis) -> Self {
        let secs = after.0 as f64 / 1000.0;
        Self::Transient(format!("the statement was stopped after {secs} s"))
    }

    pub(super) fn cancelled() -> Self {
        Self::permanent("the call was cancelled")
    }

    pub(super) fn message(&self) -> &str {
        match self {
            Self::Permanent(why) | Self::Transient(why) => why,
        }
    }
}

impl From<SqlFailure> for ToolResponse {
    fn from(failure: SqlFailure) -> Self {
        match failure {
            SqlFailure::Permanent(why) => Self::error(why),
            SqlFailure::Transient(why) => Self::error(why).transient(),
        }
    }
}

/// The tools of a source, for its probe. The references are weak, because the tools hold the source.
#[derive(Default)]
pub(super) struct ToolQueries(Mutex<Vec<(String, Weak<SqlQuery>)>>);

impl ToolQueries {
    pub(super) fn add(&self, name: String, query: Weak<SqlQuery>) {
        // A weak reference, so that a probe skips tools that no longer exist.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((name, query));
    }

    /// Returns the names and statements of the tools whose statement has no template.
    pub(super) fn fixed_queries(&self) -> Vec<(String, std::sync::Arc<SqlQuery>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .filter_map(|(name, query)| Some((name.clone(), query.upgrade()?)))
            // A template has no statement that could be checked without values.
            .filter(|(_, query)| query.fixed_statement().is_some())
            .collect()
    }
}

/// Reads a source's `timeout`: a number of seconds, or a duration as in the toolbox (`30s`, `1m30s`).
pub(super) fn read_timeout(fields: &mut MappingDecoder<'_>) -> Option<Millis> {
    let Some(written) = fields.value("timeout") else {
        return Some(DEFAULT_TIMEOUT);
    };
    let millis = match written {
        Value::Number(seconds) => seconds.as_f64().map(|seconds| seconds * 1000.0),
        Value::String(text) => parse_go_duration(text).map(|millis| millis.0 as f64),
        _ => None,
    };
    match millis {
        // Below one millisecond, every statement would time out.
        Some(millis) if millis >= 1.0 && millis <= MAX_TIMEOUT.0 as f64 => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 1 and LONGEST"
            )]
            let millis = millis.round() as u64;
            Some(Millis(millis))
        }
        _ => {
            let got = describe_value(written);
            fields.error(
                "timeout",
                "range",
                format!("timeout must be a time up to 10 minutes, as in `10s` (got {got})"),
            );
            None
        }
    }
}

/// Combines a summary of the server with the problems of its tools.
pub(super) fn probe_result(summary: String, rejections: Vec<String>) -> Result<String, ProbeError> {
    if rejections.is_empty() {
        return Ok(summary);
    }
    Err(ProbeError::RejectedTools {
        summary,
        rejections,
    })
}
