//! Groups of similar notes: average linkage over TF-IDF.

use indexmap::IndexMap;

use super::block_groups::group_in_blocks;
use super::note::ReviewNote;
use super::terms::{Vocabulary, split_words, weigh_terms};

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
    let mut groups: Vec<NoteGroup> = group_in_blocks(&vectors, cut)
        .into_iter()
        .map(|group| {
            let members: Vec<&ReviewNote> = group.iter().map(|at| sorted[*at]).collect();
            NoteGroup {
                name: name_group(&members),
                // The notes are sorted by id, and so are the members of a group.
                notes: members.iter().map(|note| note.id.clone()).collect(),
            }
        })
        .collect();
    groups.sort_by(|a, b| (b.notes.len(), &a.notes).cmp(&(a.notes.len(), &b.notes)));
    groups
}

/// Returns the words that most notes share, in the order of the first note that has them.
fn name_group(notes: &[&ReviewNote]) -> String {
    /// Words that name nothing.
    const FILLERS: [&str; 24] = [
        "the", "an", "is", "it", "its", "of", "to", "in", "on", "and", "or", "for", "was", "are",
        "that", "this", "with", "but", "has", "as", "at", "be", "by", "from",
    ];
    let mut words: IndexMap<String, usize> = IndexMap::new();
    for note in notes {
        let mut own = split_words(note.text().unwrap_or_default());
        let mut seen = std::collections::HashSet::new();
        own.retain(|word| !FILLERS.contains(&word.as_str()) && seen.insert(word.clone()));
        for word in own {
            *words.entry(word).or_default() += 1;
        }
    }
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(words[*at]), *at));
    order.truncate(3);
    order.sort_unstable();
    let chosen = order.iter().filter_map(|at| words.get_index(*at));
    let chosen: Vec<&str> = chosen.map(|(word, _)| word.as_str()).collect();
    chosen.join(" ")
}
