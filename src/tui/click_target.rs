//! The parts of the screen that a click can hit. Views register them; `update` maps a click to an action.

use super::command::UiCommand;
use super::state::cells::RowId;
use super::state::pane::Pane;

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
    /// A flip in the changes pane, by position.
    Flip(usize),
    /// The progress bar of the replay. Its width represents the whole recording.
    Progress,
    /// An area without an action, such as a popup. It covers what lies under it.
    Nothing,
}
