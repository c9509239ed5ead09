//! The point of a recorded judge trace from which a run continues, as its header stores it.
//!
//! Responsible for the JSON of the `branch` entry in [`RunHeader::plan`]. Does not read the recorded trace.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunHeader;

/// The point from which a branch continues, and the part that it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchPoint {
    /// The step: `2.prompt`.
    pub step: String,
    /// The number of turns whose replies come from the recording.
    pub turns: usize,
    /// The changed part: `answer`, `arguments`, `prompt`, `criteria` or `refetch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The number of turns that the judge received as a text and not as its own messages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub text_turns: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

impl BranchPoint {
    const PLAN_KEY: &str = "branch";

    /// Returns the key and the value for [`RunHeader::plan`].
    pub fn to_plan_entry(&self) -> Option<(String, Value)> {
        let value = serde_json::to_value(self).ok()?;
        Some((Self::PLAN_KEY.to_owned(), value))
    }

    /// Returns the point in words: `2.prompt`, or `1.response.1, answer changed`.
    pub fn describe(&self) -> String {
        let change = match self.set.as_deref() {
            None => "",
            Some("refetch") => ", fetched again",
            Some("answer") => ", answer changed",
            Some("arguments") => ", arguments changed",
            Some("prompt") => ", prompt changed",
            Some(_) => ", criteria changed",
        };
        let form = if self.text_turns > 0 {
            ", earlier turns sent as text"
        } else {
            ""
        };
        format!("{}{change}{form}", self.step)
    }
}

impl RunHeader {
    /// Returns the point from which the run continues a recorded judge trace; `None` if it is not a branch.
    pub fn branch_point(&self) -> Option<BranchPoint> {
        let recorded = self.plan.get(BranchPoint::PLAN_KEY)?;
        serde_json::from_value(recorded.clone()).ok()
    }
}
