//! Checks over recorded metrics: latency, cost, tokens, and similarity of embeddings.
//!
//! Responsible for the lookup of metrics in metadata ([`recorded_metrics`]). Does not estimate: a metric that is not
//! recorded is missing data.

pub(super) mod cosine;
pub(super) mod cost;
pub(super) mod latency;
mod recorded_metrics;

pub use recorded_metrics::RecordedEffort;
