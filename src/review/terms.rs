//! Texts as weighted words: TF-IDF without a list of stop words.
//!
//! A word has at least two letters or digits, in the form of [`normalize_words`]. tf = 1 + ln count,
//! idf = ln((1 + n) / (1 + df)) + 1. Vectors have the length 1.

use std::collections::HashMap;

use crate::model::normalize_words;

/// The number of bytes of a text that are read. The rest of a very long transcript adds little to its vocabulary.
const MAX_TEXT_BYTES: usize = 1 << 16;

/// The words of several texts, as numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary(HashMap<String, u32>);

/// The words of one text with their counts, sorted by number.
pub(super) type TermCounts = Vec<(u32, u32)>;

impl Vocabulary {
    /// Counts the words of a text.
    pub(super) fn count(&mut self, text: &str) -> TermCounts {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let mut counts: HashMap<u32, u32> = HashMap::new();
        for word in split_words(text) {
            let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
            let number = *self.0.entry(word).or_insert(next);
            *counts.entry(number).or_default() += 1;
        }
        let mut counts: TermCounts = counts.into_iter().collect();
        counts.sort_unstable();
        counts
    }
}

/// Returns the normalized words of a text that have at least two letters or digits.
pub(super) fn split_words(text: &str) -> Vec<String> {
    let normal = normalize_words(text);
    let words = normal.split_ascii_whitespace();
    let long = words.filter(|word| word.chars().nth(1).is_some());
    long.map(str::to_owned).collect()
}

/// A vector of length 1, sorted by number; empty for a text without words.
pub(super) type TermVector = Vec<(u32, f64)>;

/// Returns the vectors of texts.
pub(super) fn weigh_terms(texts: &[TermCounts]) -> Vec<TermVector> {
    let mut documents: HashMap<u32, u32> = HashMap::new();
    for (term, _) in texts.iter().flatten() {
        *documents.entry(*term).or_default() += 1;
    }
    let n = texts.len() as f64;
    let weigh = |counts: &TermCounts| -> TermVector {
        let weighted = counts.iter().map(|(term, count)| {
            let df = f64::from(documents.get(term).copied().unwrap_or_default());
            let idf = ((1.0 + n) / (1.0 + df)).ln() + 1.0;
            (*term, (1.0 + f64::from(*count).ln()) * idf)
        });
        let mut vector: TermVector = weighted.collect();
        normalize(&mut vector);
        vector
    };
    texts.iter().map(weigh).collect()
}

fn normalize(vector: &mut TermVector) {
    let length = vector.iter().map(|(_, w)| w * w).sum::<f64>().sqrt();
    if length > 0.0 {
        for (_, weight) in vector {
            *weight /= length;
        }
    }
}

/// Returns 1 − cosine. A text without words has the distance 1 to all others.
pub(super) fn distance(a: &TermVector, b: &TermVector) -> f64 {
    let (mut dot, mut i, mut j) = (0.0, 0, 0);
    while let (Some((left, x)), Some((right, y))) = (a.get(i), b.get(j)) {
        match left.cmp(right) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                dot += x * y;
                i += 1;
                j += 1;
            }
        }
    }
    (1.0 - dot).clamp(0.0, 1.0)
}

/// Returns the sum of vectors, sorted by number.
pub(super) fn sum_vectors<'v>(vectors: impl IntoIterator<Item = &'v TermVector>) -> TermVector {
    let mut sums: HashMap<u32, f64> = HashMap::new();
    for (term, weight) in vectors.into_iter().flatten() {
        *sums.entry(*term).or_default() += weight;
    }
    let mut sum: TermVector = sums.into_iter().collect();
    sum.sort_unstable_by_key(|(term, _)| *term);
    sum
}

/// Returns the mean of vectors, with length 1.
pub(super) fn mean_vector(vectors: &[TermVector]) -> TermVector {
    let mut mean = sum_vectors(vectors);
    normalize(&mut mean);
    mean
}
