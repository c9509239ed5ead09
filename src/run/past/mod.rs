//! The results of earlier runs that a new run uses: cached verdicts, carried cells, tool responses, usage and outcomes.
//!
//! Responsible for finding them and for checking that they are still valid. Does not write recordings.

pub(super) mod branch;
pub(super) mod evidence;
pub(super) mod past_outcomes;
pub(super) mod rescore;
pub(super) mod resume;
pub(super) mod usage_history;
pub(super) mod verdict_cache;
pub(super) mod verdict_tally;
