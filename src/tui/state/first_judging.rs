//! The judging of a workspace without a recorded run, when it opens.

/// The state of a workspace that may be judged on opening. It is judged after the first frame, when its cells are
/// known and no run of it is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FirstJudging {
    /// True if the recorded runs were read and contain no verdict.
    pub(crate) nothing_recorded: bool,
}
