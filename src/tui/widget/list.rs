//! A list of any length, one row an item: the selection is an item, not a position; only visible rows are asked for.
//!
//! Call [`List::place`] after every change of the items or the height; moving does it by itself.

use std::ops::Range;

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

impl<Id: Clone + PartialEq> List<Id> {
    /// Finds the selected item again after the items or the height changed, on the same line of the screen where that is
    /// possible; if it is gone, its neighbour is selected. Looks through the items only if the selected one has moved.
    pub(crate) fn place(&mut self, ids: &[Id], height: usize) {
        let known = self.near;
        let found = self.selected.as_ref().and_then(|selected| {
            if ids.get(known) == Some(selected) {
                return Some(known);
            }
            ids.iter().position(|id| id == selected)
        });
        self.place_at(ids, height, found);
    }

    /// The same for a caller who knows where the selected item is; `None`: gone.
    pub(crate) fn place_at(&mut self, ids: &[Id], height: usize, position: Option<usize>) {
        let Some(last) = ids.len().checked_sub(1) else {
            // `near` stays: what comes back finds the cursor where it was.
            self.selected = None;
            self.top = 0;
            return;
        };
        let line = self.near.saturating_sub(self.top);
        let position = position.unwrap_or(self.near).min(last);
        self.near = position;
        self.selected = ids.get(position).cloned();
        self.top = position.saturating_sub(line);
        self.fit(ids.len(), height);
    }

    /// Moves the selection, not beyond the ends.
    pub(crate) fn move_by(&mut self, ids: &[Id], height: usize, delta: i64) {
        self.place(ids, height);
        let by = usize::try_from(delta.unsigned_abs()).unwrap_or(usize::MAX);
        let to = if delta < 0 {
            self.near.saturating_sub(by)
        } else {
            self.near.saturating_add(by)
        };
        self.go(ids, height, to);
    }

    /// Moves by pages; what was on screen last stays as the first row.
    pub(crate) fn page(&mut self, ids: &[Id], height: usize, delta: i64) {
        let rows = i64::try_from(height.saturating_sub(1).max(1)).unwrap_or(i64::MAX);
        self.move_by(ids, height, delta.saturating_mul(rows));
    }

    /// Selects the first item.
    pub(crate) fn first(&mut self, ids: &[Id], height: usize) {
        self.go(ids, height, 0);
    }

    /// Selects the last item.
    pub(crate) fn last(&mut self, ids: &[Id], height: usize) {
        self.go(ids, height, usize::MAX);
    }

    /// Selects an item; [`List::place`] brings it into view.
    pub(crate) fn select(&mut self, id: Id) {
        self.selected = Some(id);
    }

    /// Selects by position, such as the row that was clicked.
    pub(crate) fn go(&mut self, ids: &[Id], height: usize, position: usize) {
        let Some(last) = ids.len().checked_sub(1) else {
            self.place_at(ids, height, None);
            return;
        };
        self.near = position.min(last);
        self.selected = ids.get(self.near).cloned();
        self.fit(ids.len(), height);
    }

    /// The positions on screen.
    pub(crate) fn visible(&self, ids: &[Id], height: usize) -> Range<usize> {
        let top = self.top.min(ids.len());
        top..top.saturating_add(height).min(ids.len())
    }

    /// Which part of the whole is on screen, for the scrollbar.
    pub(crate) fn parts(&self, ids: &[Id], height: usize) -> (f64, f64) {
        if ids.is_empty() {
            return (0.0, 1.0);
        }
        let seen = self.visible(ids, height);
        let whole = ids.len() as f64;
        (seen.start as f64 / whole, seen.end as f64 / whole)
    }

    /// Moves the top as little as it takes to see the selection, without room below the end.
    fn fit(&mut self, len: usize, height: usize) {
        let room = height.max(1);
        self.top = self
            .top
            .min(len.saturating_sub(room))
            .min(self.near)
            .max((self.near + 1).saturating_sub(room));
    }
}

#[cfg(test)]
mod tests;
