//! What a person said of a transcript.

use serde::{Deserialize, Serialize};

use super::WallTime;

/// A human's verdict on a transcript × eval. Never shown to a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The transcript's id.
    pub transcript: String,
    /// The rubric's id; absent: any rubric with that eval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// The eval's id.
    pub eval: String,
    /// The human's verdict.
    pub passed: bool,
    /// A score, where given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<WallTime>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
