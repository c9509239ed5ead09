//! The point of a recorded judge trace from which a run continues, as its header stores it.
//!
//! Responsible for the JSON of the `branch` entry in [`RunHeader::plan`]. Does not read the recorded trace.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ParentCause, RunHeader};
use crate::model::{CellIx, RunId};

/// The point from which a branch continues, and the part that it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The name of the judge, if it is another one than that of the recorded trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// The model of the judge, if the branch changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
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

    /// Returns the point in words: `2.prompt`, `1.response.1, answer changed`, or `2.prompt, judge strict, model m2`.
    /// The names may contain any character.
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
        let name = |what: &str, name: &Option<String>| {
            let name = name.as_ref();
            name.map_or_else(String::new, |name| format!(", {what} {name}"))
        };
        let (judge, model) = (name("judge", &self.judge), name("model", &self.model));
        format!("{}{change}{judge}{model}{form}", self.step)
    }
}

impl RunHeader {
    /// Returns the cell that the run continues; `None` if it is not a branch.
    pub fn forked_cell(&self) -> Option<(RunId, CellIx)> {
        let parent = self.parent.as_ref();
        let fork = parent.filter(|parent| parent.cause == ParentCause::Fork)?;
        Some((fork.run.clone(), fork.cell?))
    }

    /// Returns the point from which the run continues a recorded judge trace; `None` if it is not a branch.
    pub fn branch_point(&self) -> Option<BranchPoint> {
        let recorded = self.plan.get(BranchPoint::PLAN_KEY)?;
        serde_json::from_value(recorded.clone()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn point_names_each_change_and_old_recordings_have_none() {
        let old: BranchPoint =
            serde_json::from_str(r#"{"step":"2.prompt","turns":1}"#).expect("a point");
        assert_eq!(old.describe(), "2.prompt");
        let changed = BranchPoint {
            set: Some("answer".to_owned()),
            judge: Some("strict".to_owned()),
            model: Some("m2".to_owned()),
            text_turns: 1,
            ..old.clone()
        };
        assert_eq!(
            changed.describe(),
            "2.prompt, answer changed, judge strict, model m2, earlier turns sent as text"
        );
        let unchanged = serde_json::to_string(&old).expect("JSON");
        assert_eq!(unchanged, r#"{"step":"2.prompt","turns":1}"#);
    }
}
