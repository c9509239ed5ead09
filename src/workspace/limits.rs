//! `limits:` of dicta.yaml: what a run may take, and each of its cells.

use super::WorkspaceLimits;
use crate::diag::yaml::MappingDecoder;
use crate::model::{BudgetConfig, BudgetLimits};

/// Judge cells at once, where dicta.yaml does not say.
const DEFAULT_CONCURRENCY: usize = 8;

impl WorkspaceLimits {
    /// What dicta.yaml says; a fault is told there.
    pub(super) fn read(mut fields: MappingDecoder<'_>) -> Self {
        let concurrency = fields.integer("concurrency", 1..=1000);
        let run = read_caps(&mut fields);
        let per_minute = fields.integer("requests_per_minute", 1..=i64::from(u32::MAX));
        let share = |x| x > 0.0 && x <= 1.0;
        let soft = fields.number("soft", "a share above 0, at most 1", share);
        let cell = fields.mapping("cell").map(|mut fields| {
            let caps = read_caps(&mut fields);
            fields.finish();
            caps
        });
        fields.finish();
        let usual = BudgetConfig::default();
        WorkspaceLimits {
            concurrency: concurrency
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(DEFAULT_CONCURRENCY),
            budgets: BudgetConfig {
                run,
                cell: cell.unwrap_or_default(),
                soft_limit_share: soft.unwrap_or(usual.soft_limit_share),
            },
            requests_per_minute: per_minute.and_then(|n| u32::try_from(n).ok()),
        }
    }
}

fn read_caps(fields: &mut MappingDecoder<'_>) -> BudgetLimits {
    let amount = |x: f64| x >= 0.0 && x.is_finite();
    let whole = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    BudgetLimits {
        max_cost_usd: fields.number("max_cost_usd", "0 or more", amount),
        max_tokens: whole(fields.integer("max_tokens", 0..=i64::MAX)),
        max_calls: whole(fields.integer("max_calls", 0..=i64::MAX)),
        max_minutes: fields.number("max_minutes", "0 or more", amount),
    }
}

impl Default for WorkspaceLimits {
    /// What holds where dicta.yaml has no `limits:`.
    fn default() -> Self {
        Self {
            concurrency: DEFAULT_CONCURRENCY,
            budgets: BudgetConfig::default(),
            requests_per_minute: None,
        }
    }
}
