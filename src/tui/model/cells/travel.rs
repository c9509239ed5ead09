//! Moving the cursor. It stands on an identity, not on a position: what is sorted or filtered anew takes it along.

use super::{Cells, Entry, Row, RowId};

impl Cells {
    /// Where the cursor stands in [`Cells::shown`].
    pub(crate) fn position(&self) -> Option<usize> {
        let selected = self.list.selected?;
        self.find_shown(selected)
    }

    fn find_shown(&self, entry: Entry) -> Option<usize> {
        self.list.find(&self.shown, &entry)
    }

    /// Which positions a pane of some height shows; the cursor is among them.
    pub(crate) fn visible(&self, height: usize) -> std::ops::Range<usize> {
        self.list.visible(self.shown.len(), height)
    }

    /// After the shown entries changed: the cursor stays on what it was on, on the same line of the screen; else on what
    /// is nearest. Until the user moves it, it goes to the first thing to look at.
    pub(super) fn place(&mut self) {
        if self.shown.is_empty() {
            // What is selected is wished for again when there is something to select.
            self.list.top = 0;
            return;
        }
        let wish = self.order.wish.and_then(|wish| self.find_shown(wish));
        let known = match wish {
            Some(at) => Some(at),
            None if !self.order.touched => Some(self.first_worth()),
            None => self.position().or_else(|| self.group_of_selected()),
        };
        self.list.keep(&self.shown, known);
        if !self.order.touched {
            self.list.top = 0;
        }
    }

    fn group_of_selected(&self) -> Option<usize> {
        let row = self.row(self.selected()?)?;
        self.find_shown(Entry::Group(row.eval))
    }

    /// The first problem, else the first row, else the first line.
    fn first_worth(&self) -> usize {
        // While cells are judged nothing jumps to what they turn out as; one trace is watched to its end, and its verdict.
        let watched = self
            .order
            .watches
            .filter(|_| self.total.live > 0)
            .and_then(|entry| self.find_shown(entry));
        if let Some(at) = watched {
            return at;
        }
        if self.total.live > 0
            && let Some(at) = self.position()
        {
            return at;
        }
        let mut first = None;
        for (at, entry) in self.shown.iter().enumerate() {
            if let Entry::Row(id) = entry {
                first.get_or_insert(at);
                if self.row(*id).is_some_and(Row::is_problem) {
                    return at;
                }
            }
        }
        first.unwrap_or(0)
    }

    /// The cursor goes to a row because its judge is watched; it stays there until the user moves it.
    pub(crate) fn watch(&mut self, entry: Entry) {
        self.order.watches = Some(entry);
        self.list.selected = Some(entry);
        self.settle_cursor();
    }

    /// Whether the user chose where the cursor stands.
    pub(crate) fn is_touched(&self) -> bool {
        self.order.touched
    }

    /// The cursor is nobody's choice any more.
    pub(crate) fn release(&mut self) {
        self.order.touched = false;
        self.order.wish = None;
        self.order.watches = self.list.selected;
    }

    fn settle_cursor(&mut self) {
        if let Some(at) = self.position() {
            self.list.near = at;
        }
    }

    fn go(&mut self, at: usize, height: usize) {
        let Some(entry) = self.shown.get(at) else {
            return;
        };
        self.list.go(&self.shown, height, at);
        self.order.touched = true;
        self.order.wish = Some(*entry);
    }

    /// Moves by rows, on a pane of some height.
    pub(crate) fn move_by(&mut self, delta: isize, height: usize) {
        let last = self.shown.len().saturating_sub(1);
        let at = self.position().unwrap_or(0);
        self.go(at.saturating_add_signed(delta).min(last), height);
    }

    /// To the first row.
    pub(crate) fn first(&mut self, height: usize) {
        self.go(0, height);
    }

    /// To the last row.
    pub(crate) fn last(&mut self, height: usize) {
        self.go(self.shown.len().saturating_sub(1), height);
    }

    /// Puts the cursor on a line of the pane.
    pub(crate) fn select_entry(&mut self, entry: Entry, height: usize) {
        if let Some(at) = self.find_shown(entry) {
            self.go(at, height);
        }
    }

    /// Puts the cursor on a row, opening its group; a filter that hides it is taken away. Whether there is such a row.
    pub(crate) fn select(&mut self, row: RowId) -> bool {
        let Some(eval) = self
            .row(row)
            .filter(|row| !row.keep.gone)
            .map(|row| row.eval)
        else {
            return false;
        };
        if !self.lets_through(row) {
            // An empty filter is no error.
            let _cleared = self.set_filter("");
        }
        self.order.touched = true;
        self.order.wish = Some(Entry::Row(row));
        if let Some(group) = self.groups.get_mut(eval as usize)
            && !group.open
        {
            group.chosen = Some(true);
        }
        self.hurry();
        self.settle();
        self.selected() == Some(row)
    }

    /// Opens or closes the group under the cursor, or the group of the row under it. Whether there was one.
    pub(crate) fn toggle_group(&mut self) -> bool {
        let eval = match self.list.selected {
            Some(Entry::Group(eval)) => eval,
            Some(Entry::Row(row)) => match self.row(row) {
                Some(row) => row.eval,
                None => return false,
            },
            None => return false,
        };
        let Some(group) = self.groups.get_mut(eval as usize) else {
            return false;
        };
        group.chosen = Some(!group.open);
        if group.open {
            // Its rows are about to go: the cursor stays on the group.
            self.list.selected = Some(Entry::Group(eval));
        }
        self.order.touched = true;
        self.order.wish = self.list.selected;
        self.hurry();
        self.settle();
        true
    }

    /// The rows of the group under the cursor that the filter lets through.
    pub(crate) fn group_rows(&self) -> Option<&[RowId]> {
        match self.list.selected {
            Some(Entry::Group(eval)) => Some(&self.groups.get(eval as usize)?.matching),
            _ => None,
        }
    }

    /// To the next row that failed, flipped or is in error (or the one before), round the end, opening its group. Whether
    /// there is one.
    pub(crate) fn next_problem(&mut self, forward: bool) -> bool {
        self.next_where(forward, Row::is_problem)
    }

    /// To the next row that nobody labelled, in the same way.
    pub(crate) fn next_unlabelled(&mut self) -> bool {
        self.next_where(true, Row::is_unlabelled)
    }

    fn next_where(&mut self, forward: bool, wanted: fn(&Row) -> bool) -> bool {
        self.hurry();
        self.settle();
        let all: Vec<(usize, &[RowId])> = self.matching_groups().collect();
        let (group, row) = match self.list.selected {
            Some(Entry::Group(eval)) => (self.group_at(eval), None),
            Some(Entry::Row(id)) => {
                let eval = self.row(id).map(|row| row.eval);
                let group = eval.and_then(|eval| self.group_at(eval));
                let at =
                    group.and_then(|group| all.get(group)?.1.iter().position(|one| *one == id));
                (group, at)
            }
            None => (None, None),
        };
        let is_wanted = |id: &&RowId| self.row(**id).is_some_and(wanted);
        let group = group.unwrap_or(0);
        let count = all.len();
        // The rest of this group, the others in turn, then this group from its other end.
        let mut found = None;
        for turn in 0..=count {
            let at = if forward {
                (group + turn) % count.max(1)
            } else {
                (group + count.max(1) * 2 - turn) % count.max(1)
            };
            let Some((_, rows)) = all.get(at) else { break };
            let rows: &[RowId] = match (turn, row, forward) {
                (0, Some(row), true) => &rows[row + 1..],
                (0, Some(row), false) => &rows[..row],
                (0, None, false) => &[],
                _ => rows,
            };
            found = if forward {
                rows.iter().find(is_wanted)
            } else {
                rows.iter().rev().find(is_wanted)
            };
            if found.is_some() {
                break;
            }
        }
        match found.copied() {
            Some(row) => self.select(row),
            None => false,
        }
    }

    fn matching_groups(&self) -> impl Iterator<Item = (usize, &[RowId])> {
        let groups = self.eval_order().iter().filter_map(|eval| {
            let group = self.groups.get(*eval as usize)?;
            (!group.matching.is_empty()).then_some(&group.matching[..])
        });
        groups.enumerate()
    }

    fn group_at(&self, eval: u32) -> Option<usize> {
        let shown = |eval: &&u32| {
            self.groups
                .get(**eval as usize)
                .is_some_and(|group| !group.matching.is_empty())
        };
        self.eval_order()
            .iter()
            .filter(shown)
            .position(|one| *one == eval)
    }
}
