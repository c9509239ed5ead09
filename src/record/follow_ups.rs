//! Follow-up questions about a recorded verdict, next to the log of its run.
//!
//! They are in a file of their own, which no fold reads: an answer can't change a result. Does not ask judges.

use std::io;

use serde::{Deserialize, Serialize};

use super::RecordedRun;
use crate::model::{CellIx, TokenUsage, WallTime};
use crate::storage::{MAX_GROWING_FILE, append_lines, read_regular_text};

/// The file in a run's folder.
pub(super) const FOLLOW_UPS_FILE: &str = "followups.jsonl";

/// A question that a person asked a judge after its verdict, and the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FollowUp {
    /// The cell of the run.
    pub cell: CellIx,
    /// The time of the answer.
    pub at: WallTime,
    /// The judge.
    pub judge: String,
    /// Its model.
    pub model: String,
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: String,
    /// The tokens.
    pub usage: TokenUsage,
}

impl RecordedRun {
    /// Records a question with its answer. Returns once it survives a loss of power.
    pub fn add_follow_up(&self, follow_up: &FollowUp) -> io::Result<()> {
        let line = serde_json::to_string(follow_up)?;
        let ends_at = |bytes: &[u8]| {
            bytes
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1)
        };
        append_lines(&self.dir.join(FOLLOW_UPS_FILE), &line, ends_at)
    }

    /// Returns the questions about a cell, oldest first. A line that can't be read is left out.
    pub fn read_follow_ups(&self, cell: CellIx) -> Vec<FollowUp> {
        // A run without questions has no file.
        let text = read_regular_text(&self.dir.join(FOLLOW_UPS_FILE), MAX_GROWING_FILE)
            .unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<FollowUp>(line).ok())
            .filter(|one| one.cell == cell)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RunId;

    #[test]
    fn questions_are_read_by_cell_and_an_interrupted_one_is_replaced() {
        let dir = tempfile::tempdir().expect("a folder");
        let run = RecordedRun {
            id: RunId("r".to_owned()),
            dir: dir.path().to_owned(),
            key: None,
        };
        assert_eq!(run.read_follow_ups(CellIx(0)), []);
        let ask = |cell, question: &str| FollowUp {
            cell: CellIx(cell),
            at: WallTime("2026-11-24T00:00:00Z".to_owned()),
            judge: "house".to_owned(),
            model: "m".to_owned(),
            question: question.to_owned(),
            answer: "so".to_owned(),
            usage: TokenUsage::default(),
        };
        run.add_follow_up(&ask(0, "why?")).expect("written");
        let path = dir.path().join(FOLLOW_UPS_FILE);
        let mut text = std::fs::read_to_string(&path).expect("read");
        text.push_str("{\"cell\":0,\"at");
        std::fs::write(&path, text).expect("written");
        run.add_follow_up(&ask(1, "how?")).expect("written");
        run.add_follow_up(&ask(0, "which?")).expect("written");
        let questions: Vec<String> = run
            .read_follow_ups(CellIx(0))
            .into_iter()
            .map(|one| one.question)
            .collect();
        assert_eq!(questions, ["why?", "which?"]);
    }
}
