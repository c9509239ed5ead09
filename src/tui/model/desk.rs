//! What one looks at: cells, their runs, the focused trace and transcript. The live workspace is one; a replay has its own.

use super::cells::{Cells, Names};
use super::document::Document;
use super::follow::Follow;
use super::runs::Runs;
use super::trace::Trace;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) cells: Cells,
    pub(crate) runs: Runs,
    pub(crate) trace: Trace,
    pub(crate) document: Document,
    /// What the outline's numbers mean.
    pub(crate) outline: Names,
    /// Whether it goes with the judge at work.
    pub(crate) follow: Follow,
}
