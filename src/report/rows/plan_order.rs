//! The plan order of a transcript's cells, and the cells of a transcript that have no row yet.
//!
//! Responsible for the rule which result may appear next. Does not know results: callers report which cells have one.

use std::collections::BTreeSet;

use crate::event::CellKey;

/// The position of a cell in plan order: eval, message, judge, repeat.
pub(super) type PlanPosition = (u32, Option<u32>, Option<u32>, Option<u32>);

/// Returns the position of a cell in plan order.
pub(super) fn plan_position(key: &CellKey) -> PlanPosition {
    (key.eval, key.message, key.judge, key.repeat)
}

/// The cells of a transcript that have no row yet, each by its number in the transcript.
#[derive(Debug, Default)]
pub(super) struct UnemittedCells {
    in_order: BTreeSet<(PlanPosition, usize)>,
    /// A cell without a result that holds back all others. Asked first, so that most results need no search.
    blocked_by: Option<usize>,
    /// A panel's decision whose cells all have results. Kept, so that its cells are searched once and not once per cell.
    complete: Option<(u32, Option<u32>)>,
}

impl UnemittedCells {
    /// Adds cells, of which the first has the number `first`.
    pub(super) fn extend(&mut self, first: usize, keys: &[CellKey]) {
        self.complete = None;
        let numbered = (first..).zip(keys);
        self.in_order
            .extend(numbered.map(|(number, key)| (plan_position(key), number)));
    }

    /// Returns the cells in plan order.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> {
        self.in_order.iter().map(|(_, number)| *number)
    }

    /// Takes the next cell in plan order, if it has a result.
    ///
    /// The cells of a panel's decision wait for each other: a further member or repeat may precede them in plan order.
    pub(super) fn take_next(
        &mut self,
        is_panel: impl Fn(u32) -> bool,
        has_result: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if self.blocked_by.is_some_and(|number| !has_result(number)) {
            return None;
        }
        let &((eval, message, judge, repeat), first) = self.in_order.first()?;
        let decision = (eval, message);
        if self.complete != Some(decision) {
            let is_panel = is_panel(eval);
            let width = if is_panel { usize::MAX } else { 1 };
            let mut waits_for = self
                .in_order
                .iter()
                .take(width)
                .take_while(|((eval, message, ..), _)| (*eval, *message) == decision)
                .map(|(_, number)| *number);
            self.blocked_by = waits_for.find(|number| !has_result(*number));
            if self.blocked_by.is_some() {
                return None;
            }
            self.complete = is_panel.then_some(decision);
        }
        self.in_order
            .remove(&((eval, message, judge, repeat), first));
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn jury_cells(members: u32) -> Vec<CellKey> {
        let member = |judge| CellKey {
            eval: 0,
            message: None,
            judge: Some(judge),
            repeat: None,
        };
        (0..members).map(member).collect()
    }

    #[test]
    fn results_of_a_finished_jury_are_asked_for_once_per_cell() {
        let mut unemitted = UnemittedCells::default();
        unemitted.extend(0, &jury_cells(100));
        let asked = Cell::new(0);
        let has_result = |_| {
            asked.set(asked.get() + 1);
            true
        };
        let taken = std::iter::from_fn(|| unemitted.take_next(|_| true, has_result));
        assert_eq!(taken.collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        assert_eq!(asked.get(), 100);
    }

    #[test]
    fn further_member_of_a_finished_jury_holds_back_the_rest() {
        let mut unemitted = UnemittedCells::default();
        let cells = jury_cells(3);
        unemitted.extend(0, &cells[..2]);
        assert_eq!(unemitted.take_next(|_| true, |_| true), Some(0));
        unemitted.extend(2, &cells[2..]);
        assert_eq!(unemitted.take_next(|_| true, |at| at != 2), None);
        assert_eq!(unemitted.take_next(|_| true, |_| true), Some(1));
        assert_eq!(unemitted.take_next(|_| true, |_| true), Some(2));
    }
}
