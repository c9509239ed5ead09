//! `limits:` of dicta.yaml: the limits of a run and of each of its cells.

use serde_json::{Value, json};

use super::WorkspaceLimits;
use crate::diag::yaml::{ConfigKey, MappingDecoder, properties_schema};
use crate::model::{BudgetLimits, RunAndCellBudgets};

/// The default number of judge cells that run at once.
const DEFAULT_CONCURRENCY: usize = 8;
/// The estimated cost in USD from which dicta asks before it calls paid judges. A workspace may come from someone else,
/// so dicta.yaml can only lower it.
const MAX_CONFIRM_USD: f64 = 0.10;

/// The keys of `limits:`.
#[rustfmt::skip]
const LIMIT_KEYS: &[ConfigKey] = &[
    ConfigKey::new("concurrency", "The number of judge cells that run at once.", |doc| {
        json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": DEFAULT_CONCURRENCY, "description": doc})
    }),
    ConfigKey::new("max_cost_usd", "The maximum cost of a run in USD. Judges without known prices then need `prices:`.", amount_schema),
    ConfigKey::new("confirm_usd", "dicta asks before calls whose estimated cost in USD is higher. This file can only lower the default.", |doc| {
        json!({"type": "number", "minimum": 0, "maximum": MAX_CONFIRM_USD, "default": MAX_CONFIRM_USD, "description": doc})
    }),
    ConfigKey::new("max_tokens", "The maximum number of tokens per run, prompts and replies together.", count_schema),
    ConfigKey::new("max_calls", "The maximum number of model calls per run, failed attempts included.", count_schema),
    ConfigKey::new("max_minutes", "The number of minutes after which a run begins no call.", amount_schema),
    ConfigKey::new("soft", "The share of a limit from which dicta asks judges to conclude.", |doc| {
        json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.8, "description": doc})
    }),
    ConfigKey::new("cell", "The same limits for each cell.", |doc| {
        json!({
            "type": "object",
            "description": doc,
            "properties": properties_schema(CELL_LIMIT_KEYS),
            "additionalProperties": false,
        })
    }),
    ConfigKey::new("requests_per_minute", "The maximum number of requests per minute, over all judges.", |doc| {
        json!({"type": "integer", "minimum": 1, "description": doc})
    }),
];

/// The keys of `limits.cell`.
const CELL_LIMIT_KEYS: &[ConfigKey] = &[
    ConfigKey::new(
        "max_cost_usd",
        "The maximum cost of a cell in USD.",
        amount_schema,
    ),
    ConfigKey::new(
        "max_tokens",
        "The maximum number of tokens per cell.",
        count_schema,
    ),
    ConfigKey::new(
        "max_calls",
        "The maximum number of model calls per cell.",
        count_schema,
    ),
    ConfigKey::new(
        "max_minutes",
        "The maximum number of minutes per cell.",
        amount_schema,
    ),
];

fn amount_schema(doc: &str) -> Value {
    json!({"type": "number", "minimum": 0, "description": doc})
}

fn count_schema(doc: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": doc})
}

/// Returns the JSON Schema of `limits:`.
pub(super) fn limits_schema() -> Value {
    json!({
        "type": "object",
        "properties": properties_schema(LIMIT_KEYS),
        "additionalProperties": false,
    })
}

impl WorkspaceLimits {
    /// Reads the limits. Reports problems at their place in dicta.yaml.
    pub(super) fn read(fields: MappingDecoder<'_>) -> Self {
        let mut fields = fields.accepting(LIMIT_KEYS);
        let concurrency = fields.integer("concurrency", 1..=1000);
        let run = read_caps(&mut fields);
        let per_minute = fields.integer("requests_per_minute", 1..=i64::from(u32::MAX));
        let confirm_usd = fields.number(
            "confirm_usd",
            "an amount from 0 to 0.1, because this file can only lower the default",
            |usd| (0.0..=MAX_CONFIRM_USD).contains(&usd),
        );
        let share = |x| x > 0.0 && x <= 1.0;
        let soft = fields.number("soft", "a share above 0, at most 1", share);
        let cell = fields.mapping("cell").map(|fields| {
            let mut fields = fields.accepting(CELL_LIMIT_KEYS);
            let caps = read_caps(&mut fields);
            fields.finish();
            caps
        });
        fields.finish();
        let usual = RunAndCellBudgets::default();
        WorkspaceLimits {
            concurrency: concurrency
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(DEFAULT_CONCURRENCY),
            budgets: RunAndCellBudgets {
                run,
                cell: cell.unwrap_or_default(),
                soft_limit_share: soft.unwrap_or(usual.soft_limit_share),
            },
            requests_per_minute: per_minute.and_then(|n| u32::try_from(n).ok()),
            confirm_usd: confirm_usd.unwrap_or(MAX_CONFIRM_USD),
        }
    }
}

fn read_caps(fields: &mut MappingDecoder<'_>) -> BudgetLimits {
    let amount = |x: f64| x >= 0.0 && x.is_finite();
    let to_count = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    BudgetLimits {
        max_cost_usd: fields.number("max_cost_usd", "0 or more", amount),
        max_tokens: to_count(fields.integer("max_tokens", 0..=i64::MAX)),
        max_calls: to_count(fields.integer("max_calls", 0..=i64::MAX)),
        max_minutes: fields.number("max_minutes", "0 or more", amount),
    }
}

impl Default for WorkspaceLimits {
    /// Returns the limits of a workspace without `limits:`.
    fn default() -> Self {
        Self {
            concurrency: DEFAULT_CONCURRENCY,
            budgets: RunAndCellBudgets::default(),
            requests_per_minute: None,
            confirm_usd: MAX_CONFIRM_USD,
        }
    }
}
