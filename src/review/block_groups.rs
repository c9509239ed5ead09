//! Groups of any number of texts: average linkage in blocks, so that the time grows with the number of texts.
//!
//! The texts of one block are compared with each other. Later texts and groups join the nearest group so far, if their
//! mean distance to its first members is at most the cut. Texts that share their rarest word are in the same block, so
//! few similar texts stay apart.

use std::collections::HashMap;

use super::linkage::link_average;
use super::outliers::round;
use super::terms::{TermVector, distance, sum_vectors};

/// The largest number of texts that are compared with each other. Twice as many take four times as long.
const BLOCK: usize = 500;

/// The largest number of groups that later texts and groups can join. It limits the time for each text.
const MAX_JOINABLE: usize = 1000;

/// Returns the groups of at least two texts, each with its members in ascending order.
pub(super) fn group_in_blocks(vectors: &[TermVector], cut: f64) -> Vec<Vec<usize>> {
    let mut grouping = BlockGrouping {
        vectors,
        cut,
        groups: Vec::new(),
        terms: HashMap::new(),
        lone: Vec::new(),
    };
    let mut block = Vec::new();
    for at in order_by_rarest_term(vectors) {
        if !grouping.join_nearest(&vectors[at], &[at]) {
            block.push(at);
        }
        if block.len() == BLOCK {
            grouping.link_block(std::mem::take(&mut block));
        }
    }
    grouping.link_block(block);
    // A group of a later block can be near to a text of an earlier one. The groups of one block have no such text.
    if vectors.len() > BLOCK {
        for at in std::mem::take(&mut grouping.lone) {
            grouping.join_nearest(&vectors[at], &[at]);
        }
    }
    let mut groups = grouping.groups;
    for group in &mut groups {
        group.sort_unstable();
    }
    groups
}

/// Groups under construction.
struct BlockGrouping<'v> {
    vectors: &'v [TermVector],
    cut: f64,
    groups: Vec<Vec<usize>>,
    /// The first [`MAX_JOINABLE`] groups with each term, and the mean weight of the term in their first members.
    terms: HashMap<u32, Vec<(usize, f64)>>,
    /// The texts of earlier blocks that have no group.
    lone: Vec<usize>,
}

impl BlockGrouping<'_> {
    /// Adds `members` with the mean `vector` to the nearest group. Returns false if all groups are farther than the cut.
    fn join_nearest(&mut self, vector: &TermVector, members: &[usize]) -> bool {
        let mut similarities = vec![0.0; self.groups.len().min(MAX_JOINABLE)];
        for (term, weight) in vector {
            for (group, mean) in self.terms.get(term).into_iter().flatten() {
                similarities[*group] += weight * mean;
            }
        }
        let mut nearest: Option<(usize, f64)> = None;
        for (group, similarity) in similarities.into_iter().enumerate() {
            let mean: f64 = round(1.0 - similarity);
            if mean <= self.cut && nearest.is_none_or(|(_, least)| mean < least) {
                nearest = Some((group, mean));
            }
        }
        if let Some((group, _)) = nearest {
            self.groups[group].extend_from_slice(members);
        }
        nearest.is_some()
    }

    /// Compares the texts of a block with each other. Their groups join earlier ones, or are new ones.
    fn link_block(&mut self, mut block: Vec<usize>) {
        // The order of the texts decides between equal distances.
        block.sort_unstable();
        let vectors = self.vectors;
        let linked = link_average(block.len(), self.cut, |a, b| {
            distance(&vectors[block[a]], &vectors[block[b]])
        });
        let mut added = Vec::new();
        for places in linked {
            let members: Vec<usize> = places.into_iter().map(|place| block[place]).collect();
            if let [lone] = members[..] {
                self.lone.push(lone);
                continue;
            }
            let mut mean = sum_vectors(members.iter().map(|at| &vectors[*at]));
            for (_, weight) in &mut mean {
                *weight /= members.len() as f64;
            }
            // The groups of one block are farther apart than the cut, so they join only those of earlier blocks.
            if !self.join_nearest(&mean, &members) {
                added.push((mean, members));
            }
        }
        for (mean, members) in added {
            self.add_group(&mean, members);
        }
    }

    fn add_group(&mut self, mean: &TermVector, members: Vec<usize>) {
        let group = self.groups.len();
        if group < MAX_JOINABLE {
            for (term, weight) in mean {
                self.terms.entry(*term).or_default().push((group, *weight));
            }
        }
        self.groups.push(members);
    }
}

/// Returns the positions of the texts, ordered by the rarest term that each shares with another text.
fn order_by_rarest_term(vectors: &[TermVector]) -> Vec<usize> {
    let mut counts: HashMap<u32, u32> = HashMap::new();
    for (term, _) in vectors.iter().flatten() {
        *counts.entry(*term).or_default() += 1;
    }
    let find_rarest = |at: &usize| {
        let shared = vectors[*at].iter().filter_map(|(term, _)| {
            let count = counts.get(term).copied().unwrap_or_default();
            (count > 1).then_some((count, *term))
        });
        // Of equally rare terms, the first one.
        shared.min()
    };
    let mut order: Vec<usize> = (0..vectors.len()).collect();
    // The sort is stable, so the position decides between equal terms.
    order.sort_by_cached_key(find_rarest);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::DEFAULT_CUT;
    use crate::review::terms::{Vocabulary, weigh_terms};

    /// Returns the vectors of `count` texts in `modes` modes. Each text has eight words of its mode and one of its own.
    fn vectors_of_modes(count: usize, modes: usize) -> Vec<TermVector> {
        let mut vocabulary = Vocabulary::default();
        let texts: Vec<_> = (0..count)
            .map(|at| {
                let words = (0..8).map(|word| format!("mode{}word{word}", at % modes));
                let words: Vec<String> = words.collect();
                vocabulary.count(&format!("the agent {} own{at}", words.join(" ")))
            })
            .collect();
        weigh_terms(&texts)
    }

    #[test]
    fn texts_of_many_blocks_are_in_the_group_of_their_mode() {
        const COUNT: usize = 6 * BLOCK;
        const MODES: usize = 3;
        let groups = group_in_blocks(&vectors_of_modes(COUNT, MODES), DEFAULT_CUT);
        assert_eq!(groups.len(), MODES);
        for group in groups {
            assert_eq!(group.len(), COUNT / MODES);
            assert!(group.iter().all(|at| at % MODES == group[0] % MODES));
        }
    }

    #[test]
    fn pairs_of_many_blocks_are_found_by_their_rare_words() {
        const PAIRS: usize = 2 * BLOCK;
        let groups = group_in_blocks(&vectors_of_modes(2 * PAIRS, PAIRS), DEFAULT_CUT);
        assert_eq!(groups.len(), PAIRS);
        assert!(groups.iter().all(|group| group[1] == group[0] + PAIRS));
    }

    #[test]
    fn texts_of_one_block_are_grouped_by_average_linkage() {
        let vectors = vectors_of_modes(60, 7);
        let mut expected = link_average(vectors.len(), 0.6, |a, b| {
            distance(&vectors[a], &vectors[b])
        });
        expected.retain(|group| group.len() > 1);
        assert_eq!(group_in_blocks(&vectors, 0.6), expected);
    }
}
