//! Average linkage: merges the two groups with the least mean distance until it exceeds a cut.
//!
//! The result is the one of the plain definition, ties included: the smallest pair of positions merges first. The crate
//! `kodama` breaks ties by its own order, so a cut could give other groups. Memory grows with the square of the items;
//! so does the time for usual texts, because a row of distances is read again only when it can hold the least one.

use super::outliers::round;

/// The nearest later group of a group.
#[derive(Debug, Clone, Copy)]
struct Nearest {
    /// The mean distance; a lower bound of it if `is_exact` is false.
    mean: f64,
    /// The position of the other group.
    at: usize,
    is_exact: bool,
}

/// Groups under construction. A group has the position of its first member.
struct Linkage {
    /// The sums of distances between the members of groups `i < j`, row by row.
    sums: Vec<f64>,
    /// The number of members; 0 for a group that was merged into another.
    sizes: Vec<usize>,
    /// The nearest later group of each group, if there is one.
    nearest: Vec<Option<Nearest>>,
}

/// Returns the groups of `count` items, each with its members in ascending order.
pub(super) fn link_average(
    count: usize,
    cut: f64,
    distance: impl Fn(usize, usize) -> f64,
) -> Vec<Vec<usize>> {
    let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
    let mut linkage = Linkage {
        sums: pairs.map(|(i, j)| distance(i, j)).collect(),
        sizes: vec![1; count],
        nearest: vec![None; count],
    };
    for i in 0..count {
        linkage.nearest[i] = linkage.find_nearest(i);
    }
    let mut groups: Vec<Vec<usize>> = (0..count).map(|at| vec![at]).collect();
    while let Some((i, j)) = linkage.merge_nearest(cut) {
        let joined = std::mem::take(&mut groups[j]);
        groups[i].extend(joined);
    }
    groups.retain(|group| !group.is_empty());
    for group in &mut groups {
        group.sort_unstable();
    }
    groups
}

impl Linkage {
    /// Returns the position of the sum of two groups.
    fn place(&self, one: usize, other: usize) -> usize {
        let (i, j) = (one.min(other), one.max(other));
        let count = self.sizes.len();
        i * (2 * count - i - 1) / 2 + (j - i - 1)
    }

    /// Returns the nearest later group; of several, the first one.
    fn find_nearest(&self, i: usize) -> Option<Nearest> {
        let count = self.sizes.len();
        if i + 1 >= count {
            return None;
        }
        let from = self.place(i, i + 1);
        let row = self.sums[from..].iter().zip(&self.sizes[i + 1..]);
        let mut nearest: Option<Nearest> = None;
        for (at, (sum, size)) in (i + 1..).zip(row).filter(|(_, (_, size))| **size > 0) {
            let mean = round(sum / (self.sizes[i] * size) as f64);
            if nearest.is_none_or(|known| mean < known.mean) {
                nearest = Some(Nearest {
                    mean,
                    at,
                    is_exact: true,
                });
            }
        }
        nearest
    }

    /// Merges the nearest pair of groups, and returns their positions; `None` if all are farther apart than `cut`.
    fn merge_nearest(&mut self, cut: f64) -> Option<(usize, usize)> {
        loop {
            let mut best: Option<(usize, Nearest)> = None;
            for (i, nearest) in self.nearest.iter().enumerate() {
                if let Some(nearest) = nearest
                    && best.is_none_or(|(_, known)| nearest.mean < known.mean)
                {
                    best = Some((i, *nearest));
                }
            }
            let (i, nearest) = best.filter(|(_, nearest)| nearest.mean <= cut)?;
            if nearest.is_exact {
                self.merge(i, nearest.at);
                return Some((i, nearest.at));
            }
            self.nearest[i] = self.find_nearest(i);
        }
    }

    /// Merges the group `j` into the group `i`, which is before it.
    fn merge(&mut self, i: usize, j: usize) {
        self.sizes[i] += self.sizes[j];
        self.sizes[j] = 0;
        self.nearest[j] = None;
        for k in (0..self.sizes.len()).filter(|k| *k != i) {
            if self.sizes[k] > 0 {
                let (kept, joined) = (self.place(i, k), self.place(j, k));
                self.sums[kept] += self.sums[joined];
            }
        }
        self.nearest[i] = self.find_nearest(i);
        // The mean distance to a merged group is at least the smaller one to its parts, so it stays a lower bound.
        for nearest in self.nearest[..j].iter_mut().flatten() {
            if nearest.at == i || nearest.at == j {
                nearest.is_exact = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Merges by the definition: compares every two groups before each merge.
    fn link_by_definition(
        count: usize,
        cut: f64,
        distance: impl Fn(usize, usize) -> f64,
    ) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = (0..count).map(|at| vec![at]).collect();
        loop {
            let mut best: Option<(f64, usize, usize)> = None;
            for (i, left) in groups.iter().enumerate() {
                for (j, right) in groups.iter().enumerate().skip(i + 1) {
                    let pairs = left
                        .iter()
                        .flat_map(|a| right.iter().map(move |b| (*a, *b)));
                    let sum: f64 = pairs.map(|(a, b)| distance(a, b)).sum();
                    let mean = round(sum / (left.len() * right.len()) as f64);
                    if mean <= cut && best.is_none_or(|(least, ..)| mean < least) {
                        best = Some((mean, i, j));
                    }
                }
            }
            let Some((_, i, j)) = best else {
                return groups;
            };
            let joined = groups.remove(j);
            groups[i].extend(joined);
            groups[i].sort_unstable();
        }
    }

    proptest! {
        /// Quarters make many ties, and their sums are exact.
        #[test]
        fn groups_are_those_of_the_definition_also_with_ties(
            count in 0_usize..14,
            quarters in prop::collection::vec(0_u8..=4, 14 * 14),
            cut in 0_u8..=8,
        ) {
            let distance = |a: usize, b: usize| {
                f64::from(quarters[a.min(b) * 14 + a.max(b)]) / 4.0
            };
            let cut = f64::from(cut) / 8.0;
            prop_assert_eq!(
                link_average(count, cut, distance),
                link_by_definition(count, cut, distance)
            );
        }
    }
}
