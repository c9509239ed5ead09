//! Checks over what the agent said: words and patterns in it, its length, its shape as JSON.
//!
//! Owns how texts are folded, how patterns are compiled and how JSON is taken out of a text; other families use these.

pub(super) mod contains;
pub(super) mod exact_match;
pub(super) mod field_presence;
pub(super) mod json;
pub(super) mod json_extraction;
pub(super) mod json_path;
pub(super) mod length;
pub(super) mod lowercase;
pub(super) mod patterns;
pub(super) mod regexp;
pub(super) mod regexp_matcher;
pub(super) mod sentences;
