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
    /// The cell at which the last search of a panel's decision ended. All earlier cells of the decision have results, so
    /// the next search begins here.
    searched_to: Option<(PlanPosition, usize)>,
}

impl UnemittedCells {
    /// Adds cells, of which the first has the number `first`.
    pub(super) fn extend(&mut self, first: usize, keys: &[CellKey]) {
        for (number, key) in (first..).zip(keys) {
            let cell = (plan_position(key), number);
            self.in_order.insert(cell);
            // A further cell can precede those that were searched.
            self.searched_to = self.searched_to.map(|searched| searched.min(cell));
        }
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
        let first = *self.in_order.first()?;
        let ((eval, message, ..), number) = first;
        let from = self.searched_to.take().unwrap_or(first);
        if is_panel(eval) {
            let cells = self.in_order.range(from..);
            for cell in cells.take_while(|((e, m, ..), _)| (*e, *m) == (eval, message)) {
                self.searched_to = Some(*cell);
                if !has_result(cell.1) {
                    return None;
                }
            }
        } else if !has_result(number) {
            return None;
        }
        self.in_order.remove(&first);
        Some(number)
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
    fn each_result_of_a_jury_asks_only_for_the_cells_after_it() {
        let mut unemitted = UnemittedCells::default();
        unemitted.extend(0, &jury_cells(100));
        let asked = Cell::new(0);
        for newest in 0..99 {
            let has_result = |at: usize| {
                asked.set(asked.get() + 1);
                at <= newest
            };
            assert_eq!(unemitted.take_next(|_| true, has_result), None);
        }
        assert!(asked.get() < 200, "{}", asked.get());
        asked.set(0);
        let has_result = |_| {
            asked.set(asked.get() + 1);
            true
        };
        let taken = std::iter::from_fn(|| unemitted.take_next(|_| true, has_result));
        assert_eq!(taken.collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        assert!(asked.get() < 200, "{}", asked.get());
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
