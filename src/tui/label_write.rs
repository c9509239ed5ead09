//! The order to change the file of labels, and its result.
//!
//! Holds data only: `runtime::labels` writes the file, `update::labels` creates orders and handles results.

use std::path::PathBuf;

use crate::model::{CellName, Label};
use crate::workspace::label_edit::{LabelAnnotation, LabelOrigin, RenamedLine};

/// An order to change the file of labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelWriteOrder {
    /// The number of the order; it increases.
    pub(crate) number: u64,
    pub(crate) file: PathBuf,
    pub(crate) change: LabelChange,
}

/// A change of the file of labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LabelChange {
    /// Sets a label.
    Set {
        cell: CellName,
        /// Pass or fail; `None` is unsure.
        passed: Option<bool>,
        /// The verdicts that the person saw, and the texts that the label is about.
        origin: Box<LabelOrigin>,
    },
    /// Adds a note or a cause to the label.
    Annotate(LabelAnnotation),
    /// Removes the label.
    Remove(CellName),
    /// Undoes the order with this number.
    Undo(u64),
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrittenLabel {
    /// The label as the file has it now; `None` if it was removed.
    pub(crate) label: Option<Label>,
    /// Hashes of the file's text before and after the write. They identify our own write when the watcher reports it.
    pub(crate) text_before: u64,
    pub(crate) text_after: u64,
}

/// The labels that `M` moved to the new names of their evals.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MovedLabels {
    /// The changed lines of each file.
    pub(crate) files: Vec<(PathBuf, Vec<RenamedLine>)>,
    /// The changed lines of the file of draws, which are no labels.
    pub(crate) draws: Vec<(PathBuf, Vec<RenamedLine>)>,
}

impl MovedLabels {
    /// Returns the number of labels.
    pub(crate) fn count(&self) -> u64 {
        self.files.iter().map(|(_, lines)| lines.len() as u64).sum()
    }
}
