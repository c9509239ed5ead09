//! A list of any length, one row an item: the selection is an item, not a position; only visible rows are asked for.

/// A list's place: which item is selected and which position is on top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<Id> {
    /// The selected item.
    pub(crate) selected: Option<Id>,
    /// The position of the selected item when it was last known, so that a vanished one has a neighbour.
    pub(crate) near: usize,
    /// The position on the first visible row.
    pub(crate) top: usize,
}

impl<Id> Default for List<Id> {
    fn default() -> Self {
        Self {
            selected: None,
            near: 0,
            top: 0,
        }
    }
}
