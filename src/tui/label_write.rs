//! The order to change the file of labels, and its result.
//!
//! Holds data only: `runtime::labels` writes the file, `update::labels` creates orders and handles results.

use std::path::PathBuf;

use crate::model::{CellName, Label};

/// A label to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelWriteOrder {
    /// Counts up.
    pub(crate) number: u64,
    pub(crate) file: PathBuf,
    pub(crate) change: LabelChange,
}

/// What of a file of labels is to be changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LabelChange {
    /// This is said of it now; `None`: unsure.
    Set(CellName, Option<bool>),
    /// Nothing is.
    Remove(CellName),
    /// What the order of that number changed is taken back.
    Undo(u64),
}

/// What became of a file of labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrittenLabel {
    /// The line as it is now; `None`: it is gone.
    pub(crate) label: Option<Label>,
    /// Stand for the file's text before and after: what the watcher reads is known again by them.
    pub(crate) text_before: u64,
    pub(crate) text_after: u64,
}
