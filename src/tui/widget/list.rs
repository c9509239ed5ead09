//! A list of any length, one row an item: the selection is an item, not a position; only visible rows are asked for.
//!
//! Call [`List::keep`] after every change of the items. What fits is worked out when it is drawn, for the height it has then.

use std::ops::Range;

/// A list's place: which item is selected and which position is on top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListState<Id> {
    /// The selected item.
    pub(crate) selected: Option<Id>,
    /// The position of the selected item when it was last known, so that a vanished one has a neighbour.
    pub(crate) last_position: usize,
    /// The position on the first visible row, but for what [`List::visible`] mends.
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
    /// Where an item stands; looks through the items only if it is not where the selected one was.
    pub(crate) fn find_position(&self, ids: &[Id], wanted: &Id) -> Option<usize> {
        if ids.get(self.last_position) == Some(wanted) {
            return Some(self.last_position);
        }
        ids.iter().position(|id| id == wanted)
    }

    /// After the items changed: selects what stands at a position now, on the same line of the screen where that is
    /// possible; `None`: what was selected is gone, and its neighbour is selected.
    pub(crate) fn keep_selection(&mut self, ids: &[Id], position: Option<usize>) {
        let Some(last) = ids.len().checked_sub(1) else {
            // `near` stays: what comes back finds the cursor where it was.
            self.selected = None;
            self.top = 0;
            return;
        };
        let line = self.last_position.saturating_sub(self.top);
        self.last_position = position.unwrap_or(self.last_position).min(last);
        self.selected = ids.get(self.last_position).cloned();
        self.top = self.last_position.saturating_sub(line);
    }

    /// Selects by position, such as the row that was clicked; not beyond the end.
    pub(crate) fn select_position(&mut self, ids: &[Id], height: usize, position: usize) {
        let Some(last) = ids.len().checked_sub(1) else {
            return;
        };
        self.last_position = position.min(last);
        self.selected = ids.get(self.last_position).cloned();
        self.top = self.visible_positions(ids.len(), height).start;
    }

    /// The positions that a pane of some height shows: the selection among them, no room below the end.
    pub(crate) fn visible_positions(&self, len: usize, height: usize) -> Range<usize> {
        let room = height.max(1);
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
