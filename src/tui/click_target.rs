//! The parts of the screen that a click can hit. Views register them; `update` maps a click to an action.

use super::command::UiCommand;
use super::state::cells::RowId;
use super::state::pane::Pane;
use super::state::progress::ProgressPane;

/// A part of the screen that a click can hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClickTarget {
    /// A pane.
    Pane(Pane),
    /// A row of the cells pane.
    Row(RowId),
    /// A group of the cells pane, by position.
    Group(u32),
    /// A step of the turn strip.
    Step(usize),
    /// A hint that runs a command.
    Command(UiCommand),
    /// A line of the topmost overlay, by position.
    OverlayLine(usize),
    /// A key or value in the list of the filter, by position.
    FilterOffer(usize),
    /// A flip in the changes pane, by position.
    Flip(usize),
    /// A part of the progress screen.
    ProgressPane(ProgressPane),
    /// A row of its list, by position.
    ProgressItem(usize),
    /// A flip on the progress screen, by position.
    StateFlip(usize),
    /// The progress bar of the replay. Its width represents the whole recording.
    Progress,
    /// An area without an action, such as a popup. It covers what lies under it.
    Nothing,
}

impl ClickTarget {
    /// Returns the row of the cells pane.
    pub(crate) const fn row(&self) -> Option<RowId> {
        match self {
            Self::Row(row) => Some(*row),
            _ => None,
        }
    }
}
