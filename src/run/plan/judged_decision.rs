//! A judged decision of a plan and its cells, each named by its judge and repeat.
//!
//! Responsible for the keys of these cells. Does not plan, judge or count.

use crate::event::CellKey;

/// The value in place of a judge's position for a check that waits for a program. No judge decides such a cell.
pub(in crate::run) const NO_JUDGE: u32 = u32::MAX;

/// A judged cell of a decision: its judge and its repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::run) struct JudgeRepeat {
    /// Position of the judge, or [`NOBODY`].
    pub(in crate::run) judge: u32,
    /// From 1, only with repeats.
    pub(in crate::run) repeat: Option<u32>,
}

impl JudgeRepeat {
    /// The judge's position in a cell's key.
    pub(in crate::run) fn judge_position(self) -> Option<u32> {
        (self.judge != NO_JUDGE).then_some(self.judge)
    }

    /// Returns the judge and repeat of a cell key.
    pub(in crate::run) fn from_key(key: &CellKey) -> Self {
        Self {
            judge: key.judge.unwrap_or(NO_JUDGE),
            repeat: key.repeat,
        }
    }
}

/// The cells of one judged decision: whose, and at most how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::run) struct JudgedDecision {
    /// Position of the eval.
    pub(in crate::run) eval: u32,
    /// The judged message.
    pub(in crate::run) message: Option<u32>,
    /// Position of the judge, of several the first one's; or [`NOBODY`].
    pub(in crate::run) judge: u32,
    /// At most so many cells a judge.
    pub(in crate::run) repeat: u32,
}

impl JudgedDecision {
    /// Whether a check decides that waits for a program.
    pub(in crate::run) fn is_program_check(&self) -> bool {
        self.judge == NO_JUDGE
    }

    /// The key of one of its cells.
    pub(in crate::run) fn cell_key(&self, post: JudgeRepeat) -> CellKey {
        CellKey {
            eval: self.eval,
            message: self.message,
            judge: post.judge_position(),
            repeat: post.repeat,
        }
    }
}
