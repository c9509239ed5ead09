//! Checks over recorded numbers: how long it took, what it cost, how near its meaning is.
//!
//! Owns where the numbers come from ([`source`]). Refuses to estimate: what was not recorded is missing.

pub(super) mod cosine;
pub(super) mod cost;
pub(super) mod latency;
mod recorded_metrics;
