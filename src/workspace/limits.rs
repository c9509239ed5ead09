//! `limits:` of dicta.yaml: what a run may take.

use super::Limits;
use crate::diag::yaml::Fields;

/// Judge cells at once, where dicta.yaml does not say.
const CONCURRENCY: usize = 8;

impl Limits {
    /// What dicta.yaml says; a fault is told there.
    pub(super) fn read(mut fields: Fields<'_>) -> Self {
        let concurrency = fields.integer("concurrency", 1..=1000);
        let max_cost_usd =
            fields.number("max_cost_usd", "0 or more", |x| x >= 0.0 && x.is_finite());
        let per_minute = fields.integer("requests_per_minute", 1..=i64::from(u32::MAX));
        fields.finish();
        Limits {
            concurrency: concurrency
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(CONCURRENCY),
            max_cost_usd,
            requests_per_minute: per_minute.and_then(|n| u32::try_from(n).ok()),
        }
    }
}

impl Default for Limits {
    /// What holds where dicta.yaml has no `limits:`.
    fn default() -> Self {
        Self {
            concurrency: CONCURRENCY,
            max_cost_usd: None,
            requests_per_minute: None,
        }
    }
}
