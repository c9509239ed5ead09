//! Which call stands for which expected call, in any order: a matching that fills as many of the calls that must come and
//! places as many of the calls that must have a place as can be, both at once.
//!
//! Two rounds of augmenting paths. The first fills the expected calls; the second finds places, and may take one from a
//! call that needs none, but never empties what is filled. That both maxima hold at once is the theorem of Mendelsohn and
//! Dulmage. Never greedy: two calls that fit the same two expected calls in different ways are sorted out.

use std::collections::VecDeque;

use super::table::Table;

/// How many steps the search may take.
const MOST_STEPS: usize = 50_000_000;

/// How many calls an expected call stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// So many must be filled.
    pub(super) least: usize,
    /// More do not fit.
    pub(super) most: usize,
}

/// Who stands for what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    /// By call: the expected call it stands for.
    pub(super) of_call: Vec<Option<usize>>,
    /// By expected call: how many stand for it.
    pub(super) used: Vec<usize>,
}

/// Assigns. `must`: calls that must have a place. `None`: it took too long.
pub(super) fn assign(table: &Table, places: &[Places], must: &[bool]) -> Option<Assigned> {
    let mut search = Search::new(table, places);
    for (expected, own) in places.iter().enumerate() {
        while search.used[expected] < own.least && search.fill(expected)? {}
    }
    search.forget();
    for call in (0..must.len()).filter(|call| must[*call]) {
        if search.of_call[call].is_none() {
            search.place(call, must)?;
        }
    }
    Some(Assigned {
        of_call: search.of_call,
        used: search.used,
    })
}

struct Search<'t> {
    table: &'t Table,
    places: &'t [Places],
    /// By expected call: the calls that fit.
    fitting: Vec<Vec<usize>>,
    of_call: Vec<Option<usize>>,
    used: Vec<usize>,
    /// When an expected call, or a call, was last reached: what a failed search reached leads nowhere until one succeeds.
    reached: Vec<u32>,
    tried: Vec<u32>,
    now: u32,
    steps: usize,
}

impl<'t> Search<'t> {
    fn new(table: &'t Table, places: &'t [Places]) -> Self {
        let mut fitting = vec![Vec::new(); places.len()];
        for call in 0..table.0.len() {
            for expected in table.fitting(call) {
                fitting[expected].push(call);
            }
        }
        Self {
            table,
            places,
            fitting,
            of_call: vec![None; table.0.len()],
            used: vec![0; places.len()],
            reached: vec![0; places.len()],
            tried: vec![0; table.0.len()],
            now: 1,
            steps: 0,
        }
    }

    fn forget(&mut self) {
        self.now += 1;
    }

    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= MOST_STEPS).then_some(())
    }

    /// One more call for an expected call, from those without a place or by moving others. `false`: there is none.
    fn fill(&mut self, expected: usize) -> Option<bool> {
        // By expected call: the call it would lose, to the one that reached it.
        let mut loses = vec![None; self.places.len()];
        let mut queue = VecDeque::from([expected]);
        self.reached[expected] = self.now;
        while let Some(at) = queue.pop_front() {
            for nth in 0..self.fitting[at].len() {
                self.step()?;
                let call = self.fitting[at][nth];
                if self.tried[call] == self.now {
                    continue;
                }
                self.tried[call] = self.now;
                match self.of_call[call] {
                    None => {
                        self.shift(at, call, &loses);
                        self.used[expected] += 1;
                        self.forget();
                        return Some(true);
                    }
                    Some(holder) if self.reached[holder] != self.now => {
                        self.reached[holder] = self.now;
                        loses[holder] = Some((call, at));
                        queue.push_back(holder);
                    }
                    Some(_) => {}
                }
            }
        }
        Some(false)
    }

    /// `call` goes to `to`, which gives up the call it loses to the one that reached it, and so on to the first.
    fn shift(&mut self, mut to: usize, mut call: usize, loses: &[Option<(usize, usize)>]) {
        loop {
            self.of_call[call] = Some(to);
            let Some((lost, taker)) = loses[to] else {
                return;
            };
            (call, to) = (lost, taker);
        }
    }

    /// A place for a call: a free one, one whose call can move, or one of a call that needs none.
    fn place(&mut self, call: usize, must: &[bool]) -> Option<()> {
        // By expected call: the call that wants in.
        let mut wants = vec![usize::MAX; self.places.len()];
        let mut queue = VecDeque::from([call]);
        while let Some(at) = queue.pop_front() {
            let all: Vec<usize> = self.table.fitting(at).collect();
            for expected in all {
                self.step()?;
                if self.reached[expected] == self.now {
                    continue;
                }
                self.reached[expected] = self.now;
                wants[expected] = at;
                if self.used[expected] < self.places[expected].most {
                    self.used[expected] += 1;
                    self.enter(expected, &wants);
                    return Some(());
                }
                for nth in 0..self.fitting[expected].len() {
                    self.step()?;
                    let held = self.fitting[expected][nth];
                    if self.of_call[held] != Some(expected) {
                        continue;
                    }
                    if !must[held] {
                        self.of_call[held] = None;
                        self.enter(expected, &wants);
                        return Some(());
                    }
                    queue.push_back(held);
                }
            }
        }
        Some(())
    }

    /// The call that wants in gets in; the place it leaves goes to the call that wants in there, and so on to the first.
    fn enter(&mut self, mut into: usize, wants: &[usize]) {
        loop {
            let call = wants[into];
            match self.of_call[call].replace(into) {
                None => break,
                Some(left) => into = left,
            }
        }
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::table::Pair;
    use super::*;

    fn table(fits: &[Vec<usize>]) -> Table {
        let pairs = |fits: &Vec<usize>| {
            let all = fits.iter();
            all.map(|&expected| Pair {
                expected,
                fits: true,
            })
            .collect()
        };
        Table(fits.iter().map(pairs).collect())
    }

    #[test]
    fn a_choice_made_early_is_taken_back() {
        // The first call fits both, the second only the first: greedy would leave one over.
        let once = [Places { least: 1, most: 1 }; 2];
        let found = assign(&table(&[vec![0, 1], vec![0]]), &once, &[true, true]).expect("quick");
        assert_eq!(found.of_call, [Some(1), Some(0)]);
        assert_eq!(found.used, [1, 1]);
    }

    #[test]
    fn a_call_that_needs_no_place_makes_room() {
        let once = [Places { least: 1, most: 1 }];
        let found = assign(&table(&[vec![0], vec![0]]), &once, &[false, true]).expect("quick");
        assert_eq!(found.of_call, [None, Some(0)]);
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
        fn both_sides_are_served_as_well_as_can_be(
            fits in prop::collection::vec(prop::collection::btree_set(0_usize..4, 0..4), 0..6),
            places in prop::collection::vec((0_usize..3, 0_usize..3), 4),
            must in prop::collection::vec(any::<bool>(), 6),
        ) {
            let fits: Vec<Vec<usize>> = fits.into_iter().map(|s| s.into_iter().collect()).collect();
            let must = &must[..fits.len()];
            let places: Vec<Places> =
                places.into_iter().map(|(least, more)| Places { least, most: least + more }).collect();
            let found = assign(&table(&fits), &places, must).expect("quick");
            for (at, own) in places.iter().enumerate() {
                let held = found.of_call.iter().filter(|of| **of == Some(at)).count();
                prop_assert_eq!(held, found.used[at]);
                prop_assert!(held <= own.most);
            }
            let filled: usize = places.iter().zip(&found.used).map(|(own, used)| own.least.min(*used)).sum();
            let mut room: Vec<usize> = places.iter().map(|own| own.least).collect();
            prop_assert_eq!(filled, most(&fits, &mut room, 0, &vec![false; fits.len()]));
            let placed = (0..fits.len()).filter(|&call| must[call] && found.of_call[call].is_some()).count();
            let mut room: Vec<usize> = places.iter().map(|own| own.most).collect();
            let skip: Vec<bool> = must.iter().map(|must| !must).collect();
            prop_assert_eq!(placed, most(&fits, &mut room, 0, &skip));
            for (call, of) in found.of_call.iter().enumerate() {
                prop_assert!(of.is_none_or(|of| fits[call].contains(&of)));
            }
        }
    }
}
