//! Assigns calls to expected calls in any order, as a maximum bipartite matching.
//!
//! Fills as many of the required expected calls as possible. At the same time, it places as many as possible of the
//! calls that need a place.
//!
//! There are two rounds of augmenting paths. The first fills the expected calls. The second finds places, and may
//! take one from a call that needs none, but never empties a filled one. Both maxima hold at once by the theorem of
//! Mendelsohn and Dulmage. A greedy assignment would fail if two calls fit the same two expected calls.

use std::collections::VecDeque;

use super::fit_table::CallFitTable;

/// The largest number of steps of the search.
const MAX_STEPS: usize = 50_000_000;

/// The number of calls that an expected call takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotCapacity {
    /// This many must be assigned.
    pub(super) min: usize,
    /// No more than this fit.
    pub(super) max: usize,
}

/// The result of an assignment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    /// By call: the expected call that it is assigned to.
    pub(super) expected_by_call: Vec<Option<usize>>,
    /// By expected call: the number of calls assigned to it.
    pub(super) call_counts: Vec<usize>,
}

/// Assigns calls. `must` marks the calls that need a place. Returns `None` if the search takes too many steps.
pub(super) fn assign(
    table: &CallFitTable,
    places: &[SlotCapacity],
    must: &[bool],
) -> Option<Assignment> {
    let mut search = AssignmentSearch::new(table, places);
    // The first round: fill each expected call up to its minimum.
    for (expected, capacity) in places.iter().enumerate() {
        while search.call_counts[expected] < capacity.min && search.fill_expected(expected)? {}
    }
    // The first round's marks are no longer valid: the second round searches from the calls.
    search.start_epoch();
    // The second round: find a place for each call that needs one.
    for call in (0..must.len()).filter(|call| must[*call]) {
        if search.expected_by_call[call].is_none() {
            search.place_call(call, must)?;
        }
    }
    Some(Assignment {
        expected_by_call: search.expected_by_call,
        call_counts: search.call_counts,
    })
}

struct AssignmentSearch<'t> {
    table: &'t CallFitTable,
    capacities: &'t [SlotCapacity],
    /// By expected call: the calls that fit.
    fitting: Vec<Vec<usize>>,
    expected_by_call: Vec<Option<usize>>,
    call_counts: Vec<usize>,
    /// The round in which an expected call, or a call, was last reached. A failed search leads nowhere from there
    /// until another search succeeds.
    reached_expected: Vec<u32>,
    reached_calls: Vec<u32>,
    epoch: u32,
    steps: usize,
}

impl<'t> AssignmentSearch<'t> {
    fn new(table: &'t CallFitTable, capacities: &'t [SlotCapacity]) -> Self {
        let mut fitting = vec![Vec::new(); capacities.len()];
        // The table is by call; the first round needs it by expected call.
        for call in 0..table.0.len() {
            for expected in table.matching_expected(call) {
                fitting[expected].push(call);
            }
        }
        Self {
            table,
            capacities,
            fitting,
            expected_by_call: vec![None; table.0.len()],
            call_counts: vec![0; capacities.len()],
            reached_expected: vec![0; capacities.len()],
            reached_calls: vec![0; table.0.len()],
            // From 1, because 0 in the marks means "never reached".
            epoch: 1,
            steps: 0,
        }
    }

    fn start_epoch(&mut self) {
        self.epoch += 1;
    }

    fn count_step(&mut self) -> Option<()> {
        // Counted in both rounds together, so that the bound holds for the whole search.
        self.steps += 1;
        (self.steps <= MAX_STEPS).then_some(())
    }

    /// Assigns one more call to an expected call, from the free calls or by moving others. Returns `false` if that is
    /// impossible.
    fn fill_expected(&mut self, expected: usize) -> Option<bool> {
        // By expected call: the call that it would lose, and the expected call that it would lose it to.
        // Breadth-first: finds the shortest path of moves.
        let mut loses = vec![None; self.capacities.len()];
        let mut queue = VecDeque::from([expected]);
        self.reached_expected[expected] = self.epoch;
        while let Some(at) = queue.pop_front() {
            for nth in 0..self.fitting[at].len() {
                self.count_step()?;
                let call = self.fitting[at][nth];
                // Another path has already reached this call.
                if self.reached_calls[call] == self.epoch {
                    continue;
                }
                self.reached_calls[call] = self.epoch;
                match self.expected_by_call[call] {
                    None => {
                        // A free call: the path ends here, and every call on it moves.
                        self.shift_calls(at, call, &loses);
                        self.call_counts[expected] += 1;
                        self.start_epoch();
                        return Some(true);
                    }
                    Some(holder) if self.reached_expected[holder] != self.epoch => {
                        // The call is taken: its holder may find another one.
                        self.reached_expected[holder] = self.epoch;
                        loses[holder] = Some((call, at));
                        queue.push_back(holder);
                    }
                    Some(_) => {}
                }
            }
        }
        Some(false)
    }

    /// Assigns `call` to `to`. Each expected call on the path passes its own call on, back to the first.
    fn shift_calls(&mut self, mut to: usize, mut call: usize, loses: &[Option<(usize, usize)>]) {
        loop {
            self.expected_by_call[call] = Some(to);
            let Some((lost, taker)) = loses[to] else {
                return;
            };
            (call, to) = (lost, taker);
        }
    }

    /// Finds a place for a call: a free place, one whose call can move, or one of a call that needs none.
    fn place_call(&mut self, call: usize, must: &[bool]) -> Option<()> {
        // By expected call: the call that wants its place.
        let mut wants = vec![usize::MAX; self.capacities.len()];
        let mut queue = VecDeque::from([call]);
        while let Some(at) = queue.pop_front() {
            // Collected, because the loop below changes `self`.
            let all: Vec<usize> = self.table.matching_expected(at).collect();
            for expected in all {
                self.count_step()?;
                if self.reached_expected[expected] == self.epoch {
                    continue;
                }
                self.reached_expected[expected] = self.epoch;
                wants[expected] = at;
                // A free place ends the path.
                if self.call_counts[expected] < self.capacities[expected].max {
                    self.call_counts[expected] += 1;
                    self.insert_call(expected, &wants);
                    return Some(());
                }
                // No free place: look for a call that can leave.
                for nth in 0..self.fitting[expected].len() {
                    self.count_step()?;
                    let held = self.fitting[expected][nth];
                    if self.expected_by_call[held] != Some(expected) {
                        continue;
                    }
                    if !must[held] {
                        // The second round may take this call's place, because the expected call stays filled.
                        self.expected_by_call[held] = None;
                        self.insert_call(expected, &wants);
                        return Some(());
                    }
                    queue.push_back(held);
                }
            }
        }
        // No place was found: the call stays unassigned, which is not an error.
        Some(())
    }

    /// Gives the place to the call that wants it. The place that this call leaves goes to the next call on the path,
    /// back to the first.
    fn insert_call(&mut self, mut into: usize, wants: &[usize]) {
        loop {
            let call = wants[into];
            match self.expected_by_call[call].replace(into) {
                None => break,
                Some(left) => into = left,
            }
        }
        self.start_epoch();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fit_table::CallPair;
    use super::*;

    fn table(fits: &[Vec<usize>]) -> CallFitTable {
        let pairs = |fits: &Vec<usize>| {
            let all = fits.iter();
            all.map(|&expected| CallPair {
                expected,
                fits: true,
            })
            .collect()
        };
        CallFitTable(fits.iter().map(pairs).collect())
    }

    #[test]
    fn early_assignment_is_moved_for_a_better_one() {
        // The first call fits both, the second only the first: greedy would leave one over.
        let once = [SlotCapacity { min: 1, max: 1 }; 2];
        let found = assign(&table(&[vec![0, 1], vec![0]]), &once, &[true, true]).expect("quick");
        assert_eq!(found.expected_by_call, [Some(1), Some(0)]);
        assert_eq!(found.call_counts, [1, 1]);
    }

    #[test]
    fn optional_call_gives_its_place_to_a_required_one() {
        let once = [SlotCapacity { min: 1, max: 1 }];
        let found = assign(&table(&[vec![0], vec![0]]), &once, &[false, true]).expect("quick");
        assert_eq!(found.expected_by_call, [None, Some(0)]);
    }

    /// Most calls that can be placed at once, tried out.
    fn most(fits: &[Vec<usize>], room: &mut [usize], from: usize, skip: &[bool]) -> usize {
        let Some(fit) = fits.get(from) else { return 0 };
        let mut best = most(fits, room, from + 1, skip);
        for &at in fit.iter().filter(|_| !skip[from]) {
            if room[at] > 0 {
                room[at] -= 1;
                best = best.max(1 + most(fits, room, from + 1, skip));
                room[at] += 1;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn assignment_is_maximal_for_calls_and_expected_calls(
            fits in prop::collection::vec(prop::collection::btree_set(0_usize..4, 0..4), 0..6),
            places in prop::collection::vec((0_usize..3, 0_usize..3), 4),
            must in prop::collection::vec(any::<bool>(), 6),
        ) {
            let fits: Vec<Vec<usize>> = fits.into_iter().map(|s| s.into_iter().collect()).collect();
            let must = &must[..fits.len()];
            let places: Vec<SlotCapacity> =
                places.into_iter().map(|(least, more)| SlotCapacity { min: least, max: least + more }).collect();
            let found = assign(&table(&fits), &places, must).expect("quick");
            for (at, capacity) in places.iter().enumerate() {
                let held = found.expected_by_call.iter().filter(|of| **of == Some(at)).count();
                prop_assert_eq!(held, found.call_counts[at]);
                prop_assert!(held <= capacity.max);
            }
            let filled: usize = places.iter().zip(&found.call_counts).map(|(capacity, used)| capacity.min.min(*used)).sum();
            let mut room: Vec<usize> = places.iter().map(|capacity| capacity.min).collect();
            prop_assert_eq!(filled, most(&fits, &mut room, 0, &vec![false; fits.len()]));
            let placed = (0..fits.len()).filter(|&call| must[call] && found.expected_by_call[call].is_some()).count();
            let mut room: Vec<usize> = places.iter().map(|capacity| capacity.max).collect();
            let skip: Vec<bool> = must.iter().map(|must| !must).collect();
            prop_assert_eq!(placed, most(&fits, &mut room, 0, &skip));
            for (call, of) in found.expected_by_call.iter().enumerate() {
                prop_assert!(of.is_none_or(|of| fits[call].contains(&of)));
            }
        }
    }
}
