//! Checks over what the agent said: words and patterns in it, its length, its shape as JSON.
//!
//! Owns how texts are folded, how patterns are compiled and how JSON is taken out of a text; other families use these.

pub(super) mod contains;
pub(super) mod exact;
pub(super) mod fields;
pub(super) mod fold;
pub(super) mod json;
pub(super) mod json_path;
pub(super) mod length;
pub(super) mod patterns;
pub(super) mod regexp;
pub(super) mod regexp_matcher;
pub(super) mod sentences;
pub(super) mod wrapped;
