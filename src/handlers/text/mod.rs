//! Checks over the agent's answers: words, patterns, length, JSON.
//!
//! Responsible for lower-casing, compiling patterns and extracting JSON; other families use these parts too.

pub(super) mod contains;
pub(super) mod exact_match;
pub(super) mod field_presence;
pub(super) mod json;
pub(super) mod json_extraction;
pub(super) mod json_path;
pub(super) mod length;
pub(super) mod lowercase;
pub(super) mod patterns;
#[cfg(test)]
mod recipe;
pub(super) mod regexp;
pub(super) mod regexp_matcher;
pub(super) mod sentences;
