//! A list of any length, one row an item: the selection is an item, not a position; only visible rows are asked for.
//!
//! Call [`List::keep`] after every change of the items. What fits is worked out when it is drawn, for the height it has then.

use std::ops::Range;

/// A list's place: which item is selected and which position is on top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<Id> {
    /// The selected item.
    pub(crate) selected: Option<Id>,
    /// The position of the selected item when it was last known, so that a vanished one has a neighbour.
    pub(crate) near: usize,
    /// The position on the first visible row, but for what [`List::visible`] mends.
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

impl<Id: Clone + PartialEq> List<Id> {
    /// Where an item stands; looks through the items only if it is not where the selected one was.
    pub(crate) fn find(&self, ids: &[Id], wanted: &Id) -> Option<usize> {
        if ids.get(self.near) == Some(wanted) {
            return Some(self.near);
        }
        ids.iter().position(|id| id == wanted)
    }

    /// After the items changed: selects what stands at a position now, on the same line of the screen where that is
    /// possible; `None`: what was selected is gone, and its neighbour is selected.
    pub(crate) fn keep(&mut self, ids: &[Id], position: Option<usize>) {
        let Some(last) = ids.len().checked_sub(1) else {
            // `near` stays: what comes back finds the cursor where it was.
            self.selected = None;
            self.top = 0;
            return;
        };
        let line = self.near.saturating_sub(self.top);
        self.near = position.unwrap_or(self.near).min(last);
        self.selected = ids.get(self.near).cloned();
        self.top = self.near.saturating_sub(line);
    }

    /// Selects by position, such as the row that was clicked; not beyond the end.
    pub(crate) fn go(&mut self, ids: &[Id], height: usize, position: usize) {
        let Some(last) = ids.len().checked_sub(1) else {
            return;
        };
        self.near = position.min(last);
        self.selected = ids.get(self.near).cloned();
        self.top = self.visible(ids.len(), height).start;
    }

    /// The positions that a pane of some height shows: the selection among them, no room below the end.
    pub(crate) fn visible(&self, len: usize, height: usize) -> Range<usize> {
        let room = height.max(1);
        let top = self
            .top
            .min(len.saturating_sub(room))
            .min(self.near)
            .max((self.near + 1).saturating_sub(room))
            .min(len);
        top..top.saturating_add(height).min(len)
    }
}

#[cfg(test)]
mod tests;
