//! A judged decision of a plan and its cells, each named by its judge and repeat.
//!
//! Responsible for the keys of these cells. Does not plan, judge or count.

use crate::event::CellKey;

/// A judged cell of a decision: its judge and its repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::run) struct JudgeRepeat {
    /// The position of the judge; `None` for a check that waits for a program.
    pub(in crate::run) judge: Option<u32>,
    /// The repeat, from 1; `None` without repeats.
    pub(in crate::run) repeat: Option<u32>,
}

impl JudgeRepeat {
    /// Returns the judge and repeat of a cell key.
    pub(in crate::run) fn from_key(key: &CellKey) -> Self {
        Self {
            judge: key.judge,
            repeat: key.repeat,
        }
    }
}

/// A judged decision: its eval, message, judge and number of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::run) struct JudgedDecision {
    /// The position of the eval.
    pub(in crate::run) eval: u32,
    /// The judged message.
    pub(in crate::run) message: Option<u32>,
    /// The position of the judge; of a panel, the first member; `None` for a check that waits for a program.
    pub(in crate::run) judge: Option<u32>,
    /// The largest number of cells per judge.
    pub(in crate::run) repeat: u32,
}

impl JudgedDecision {
    /// Returns `true` if a check that waits for a program decides.
    pub(in crate::run) fn is_program_check(&self) -> bool {
        self.judge.is_none()
    }

    /// Returns the key of one of its cells.
    pub(in crate::run) fn cell_key(&self, judge_repeat: JudgeRepeat) -> CellKey {
        CellKey {
            eval: self.eval,
            message: self.message,
            judge: judge_repeat.judge,
            repeat: judge_repeat.repeat,
        }
    }
}
