//! A list of any length with one row per item. Keeps the selected item, not its position, and reads only visible
//! rows.
//!
//! Call [`ListState::keep_selection`] after every change of the items. The visible part is computed when the list is
//! drawn.

use std::ops::Range;

/// The state of a list: the selected item and the position at the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListState<Id> {
    /// The selected item.
    pub(crate) selected: Option<Id>,
    /// The last known position of the selected item. If the item disappears, its neighbor is selected.
    pub(crate) last_position: usize,
    /// The position in the first visible row, before [`ListState::visible_positions`] corrects it.
    pub(crate) top: usize,
}

impl<Id> Default for ListState<Id> {
    fn default() -> Self {
        Self {
            selected: None,
            last_position: 0,
            top: 0,
        }
    }
}

impl<Id: Clone + PartialEq> ListState<Id> {
    /// Returns the position of an item. Tries the last known position before it searches the list.
    pub(crate) fn find_position(&self, ids: &[Id], id: &Id) -> Option<usize> {
        if ids.get(self.last_position) == Some(id) {
            return Some(self.last_position);
        }
        ids.iter().position(|listed| listed == id)
    }

    /// Updates the selection after a change of the items. Selects the item at `position`, if possible on the same
    /// screen line. With None, the selected item is gone, and its neighbor is selected.
    pub(crate) fn keep_selection(&mut self, ids: &[Id], position: Option<usize>) {
        let Some(last) = ids.len().checked_sub(1) else {
            // `last_position` stays, so that the cursor returns to its place when items come back.
            self.selected = None;
            self.top = 0;
            return;
        };
        // Keep the selection on its screen line, so that the list does not jump when rows above it change.
        let line = self.last_position.saturating_sub(self.top);
        self.last_position = position.unwrap_or(self.last_position).min(last);
        self.selected = ids.get(self.last_position).cloned();
        self.top = self.last_position.saturating_sub(line);
    }

    /// Selects the item at a position, such as a clicked row, or the last item.
    pub(crate) fn select_position(&mut self, ids: &[Id], height: usize, position: usize) {
        let Some(last) = ids.len().checked_sub(1) else {
            return;
        };
        self.last_position = position.min(last);
        self.selected = ids.get(self.last_position).cloned();
        self.top = self.visible_positions(ids.len(), height).start;
    }

    /// Returns the positions that a pane of some height shows: with the selection, and without empty rows below the
    /// end.
    pub(crate) fn visible_positions(&self, len: usize, height: usize) -> Range<usize> {
        let room = height.max(1);
        // The limits for the selection come last, because it must be visible in any case.
        let top = self
            .top
            .min(len.saturating_sub(room))
            .min(self.last_position)
            .max((self.last_position + 1).saturating_sub(room))
            .min(len);
        top..top.saturating_add(height).min(len)
    }
}

#[cfg(test)]
mod tests;
