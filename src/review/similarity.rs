//! Groups of similar notes: average linkage over TF-IDF.

use super::note::ReviewNote;
use super::outliers::round;
use super::terms::{Vocabulary, distance, split_words, weigh_terms};

/// The mean distance above which groups stay apart.
pub const DEFAULT_CUT: f64 = 0.75;

/// A group of similar notes.
#[derive(Debug, Clone, PartialEq)]
pub struct NoteGroup {
    /// A name from the words that most notes of the group share.
    pub name: String,
    /// The ids of the notes, sorted.
    pub notes: Vec<String>,
}

/// Groups notes by their words: merges the two groups with the least mean distance until it exceeds `cut`. Notes
/// without a similar one stay out. The result depends on nothing but the notes.
pub fn suggest_groups(notes: &[&ReviewNote], cut: f64) -> Vec<NoteGroup> {
    let mut sorted: Vec<&ReviewNote> = notes.to_vec();
    // The order of the file must not decide between equal distances.
    sorted.sort_by(|a, b| a.id.cmp(&b.id));
    let mut vocabulary = Vocabulary::default();
    let texts: Vec<_> = sorted
        .iter()
        .map(|note| vocabulary.count(note.text().unwrap_or_default()))
        .collect();
    let vectors = weigh_terms(&texts);
    let n = sorted.len();
    // The sums of distances between the notes of two groups.
    let mut sums = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..i {
            let apart = distance(&vectors[i], &vectors[j]);
            sums[i][j] = apart;
            sums[j][i] = apart;
        }
    }
    let mut groups: Vec<Option<Vec<usize>>> = (0..n).map(|at| Some(vec![at])).collect();
    while let Some((i, j)) = find_nearest_pair(&groups, &sums, cut) {
        let Some(joined) = groups[j].take() else {
            break;
        };
        if let Some(group) = &mut groups[i] {
            group.extend(joined);
        }
        let joined_sums: Vec<f64> = sums[i].iter().zip(&sums[j]).map(|(a, b)| a + b).collect();
        for (row, sum) in sums.iter_mut().zip(&joined_sums) {
            row[i] = *sum;
        }
        sums[i] = joined_sums;
    }
    let groups = groups.into_iter().flatten().filter(|group| group.len() > 1);
    let mut groups: Vec<NoteGroup> = groups
        .map(|group| {
            let members: Vec<&ReviewNote> = group.iter().map(|at| sorted[*at]).collect();
            let mut ids: Vec<String> = members.iter().map(|note| note.id.clone()).collect();
            ids.sort_unstable();
            NoteGroup {
                name: name_group(&members),
                notes: ids,
            }
        })
        .collect();
    groups.sort_by(|a, b| (b.notes.len(), &a.notes).cmp(&(a.notes.len(), &b.notes)));
    groups
}

fn find_nearest_pair(
    groups: &[Option<Vec<usize>>],
    sums: &[Vec<f64>],
    cut: f64,
) -> Option<(usize, usize)> {
    let mut best: Option<(f64, usize, usize)> = None;
    for (i, left) in groups.iter().enumerate() {
        let Some(left) = left else { continue };
        for (j, right) in groups.iter().enumerate().skip(i + 1) {
            let Some(right) = right else { continue };
            let mean = round(sums[i][j] / (left.len() * right.len()) as f64);
            if mean <= cut && best.is_none_or(|(least, ..)| mean < least) {
                best = Some((mean, i, j));
            }
        }
    }
    best.map(|(_, i, j)| (i, j))
}

/// Returns the words that most notes share, in the order of the first note that has them.
fn name_group(notes: &[&ReviewNote]) -> String {
    /// Words that name nothing.
    const FILLERS: [&str; 24] = [
        "the", "an", "is", "it", "its", "of", "to", "in", "on", "and", "or", "for", "was", "are",
        "that", "this", "with", "but", "has", "as", "at", "be", "by", "from",
    ];
    let mut words: Vec<(String, usize)> = Vec::new();
    for note in notes {
        let mut own = split_words(note.text().unwrap_or_default());
        let mut seen = std::collections::HashSet::new();
        own.retain(|word| !FILLERS.contains(&word.as_str()) && seen.insert(word.clone()));
        for word in own {
            match words.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => words.push((word, 1)),
            }
        }
    }
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(words[*at].1), *at));
    order.truncate(3);
    order.sort_unstable();
    let chosen: Vec<&str> = order.iter().map(|at| words[*at].0.as_str()).collect();
    chosen.join(" ")
}
