//! What one looks at: cells, their runs, the focused trace and transcript. The live workspace is one; a replay has its own.

use super::cells::{CellsState, RunIndexMap};
use super::document::TranscriptPane;
use super::follow::FollowState;
use super::judge_trace::TracePanes;
use super::runs::TrackedRuns;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SessionView {
    pub(crate) cells: CellsState,
    pub(crate) runs: TrackedRuns,
    pub(crate) trace_panes: TracePanes,
    pub(crate) transcript_pane: TranscriptPane,
    /// What the outline's numbers mean.
    pub(crate) outline_indices: RunIndexMap,
    /// Whether it goes with the judge at work.
    pub(crate) follow: FollowState,
}
