//! The status of a recorded run, in one word for every list of runs.
//!
//! Responsible for the words and for their meaning. Does not read logs: [`super::EventReader`] finds the ending.

use serde::{Deserialize, Serialize};

use super::LogEnding;

/// The status of a recorded run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunStatus {
    /// The log has an end, and the run was not cancelled.
    #[default]
    Finished,
    /// The log has an end, and the run was cancelled, for example with `ctrl-c` or by `--fail-fast`.
    Cancelled,
    /// The log has no end, and no process records the run.
    Interrupted,
    /// The log has no end, and a process records the run.
    Running,
}

impl RunStatus {
    /// Returns the status of a run by the ending of its log. `was_cancelled` is the statement of its last event.
    pub const fn new(ending: LogEnding, was_cancelled: bool) -> Self {
        match (ending, was_cancelled) {
            (LogEnding::Running, _) => Self::Running,
            (LogEnding::Interrupted, _) => Self::Interrupted,
            (LogEnding::Finished, true) => Self::Cancelled,
            (LogEnding::Finished, false) => Self::Finished,
        }
    }

    /// Returns the status as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Running => "running",
        }
    }

    /// Returns the status as a word; `None` for a finished run, which needs no mark.
    pub fn mark(self) -> Option<&'static str> {
        (!self.is_finished()).then(|| self.name())
    }

    /// Returns `true` if the run reached its end.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Finished)
    }

    /// Returns `true` if the run ended before it reached its end.
    pub const fn ended_early(self) -> bool {
        matches!(self, Self::Cancelled | Self::Interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_log_with_an_end_tells_whether_the_run_was_cancelled() {
        for (ending, was_cancelled, word, mark) in [
            (LogEnding::Finished, false, "finished", None),
            (LogEnding::Finished, true, "cancelled", Some("cancelled")),
            (
                LogEnding::Interrupted,
                false,
                "interrupted",
                Some("interrupted"),
            ),
            (LogEnding::Running, false, "running", Some("running")),
        ] {
            let status = RunStatus::new(ending, was_cancelled);
            assert_eq!((status.name(), status.mark()), (word, mark));
        }
    }
}
