//! Searches a text for many patterns in one pass, case-insensitively, for the `contains` family.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem;

use super::lowercase::{to_lowercase, to_original_range};
use crate::handlers::MessageText;
use crate::handlers::eval_type::param_problem;
use crate::rubric::ParamProblem;

/// The largest number of patterns.
const MAX_PATTERNS: usize = 10_000;
/// After this many repeated hits, dicta searches the missing patterns one by one. Otherwise patterns that overlap
/// everywhere would make a long text quadratic.
const MAX_HITS: usize = 1_000_000;

/// Compiled patterns.
#[derive(Debug)]
pub(in crate::handlers) struct PatternSet {
    /// The patterns as written, for explanations.
    pub(in crate::handlers) written: Vec<String>,
    lowercase: Vec<String>,
    search: AhoCorasick,
    /// `true` if only whole words count.
    whole_words_only: bool,
}

/// A hit of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::handlers) struct PatternHit {
    /// The index of the pattern.
    pub(in crate::handlers) pattern: usize,
    /// The bytes in the original text.
    pub(in crate::handlers) bytes: Range<usize>,
}

impl PatternSet {
    /// Compiles patterns. Problems name the param `name`.
    pub(in crate::handlers) fn new(
        written: Vec<String>,
        param: &str,
    ) -> Result<Self, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if written.is_empty() {
            problems.push(param_problem(
                format!("/{param}"),
                "needs at least one text",
            ));
        }
        if written.len() > MAX_PATTERNS {
            let count = written.len();
            problems.push(param_problem(
                format!("/{param}"),
                format!("has {count} entries, more than {MAX_PATTERNS}"),
            ));
        }
        // An empty pattern would be a hit everywhere.
        for (at, _) in written.iter().enumerate().filter(|(_, p)| p.is_empty()) {
            problems.push(param_problem(
                format!("/{param}/{at}"),
                "is empty: every text contains it",
            ));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        // Lower case on both sides, so that case does not matter.
        let folded: Vec<String> = written
            .iter()
            .map(|p| to_lowercase(p).into_owned())
            .collect();
        let search = AhoCorasick::builder()
            // `Standard` is the only match kind that supports overlapping hits.
            .match_kind(MatchKind::Standard)
            .build(&folded)
            .map_err(|why| {
                vec![param_problem(
                    format!("/{param}"),
                    format!("cannot be compiled: {why}"),
                )]
            })?;
        Ok(Self {
            written,
            lowercase: folded,
            search,
            whole_words_only: false,
        })
    }

    /// Counts only whole words: a pattern inside a longer word is not a hit. An end of a pattern that is a sign, as
    /// in `C++`, needs no boundary.
    #[must_use]
    pub(in crate::handlers) fn whole_words(mut self, words: bool) -> Self {
        self.whole_words_only = words;
        self
    }

    /// Returns the first hit of each pattern in lower-cased text, by pattern.
    pub(in crate::handlers) fn find_first_of_each(&self, text: &str) -> Vec<Option<Range<usize>>> {
        let mut hits: Vec<Option<Range<usize>>> = vec![None; self.lowercase.len()];
        let mut missing = hits.len();
        // Overlapping hits, because a pattern inside another one must also be found.
        for (count, found) in self.search.find_overlapping_iter(text).enumerate() {
            let hit = &mut hits[found.pattern().as_usize()];
            if hit.is_none() && self.is_hit(text, &found.range()) {
                *hit = Some(found.range());
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
            // The limit on repeated hits; see `MAX_HITS`.
            if count == MAX_HITS {
                self.find_one_by_one(text, &mut hits);
                break;
            }
        }
        hits
    }

    fn find_one_by_one(&self, text: &str, hits: &mut [Option<Range<usize>>]) {
        for (pattern, hit) in self.lowercase.iter().zip(hits) {
            if hit.is_none() {
                let mut all = memmem::find_iter(text.as_bytes(), pattern.as_bytes())
                    .map(|at| at..at + pattern.len());
                *hit = all.find(|range| self.is_hit(text, range));
            }
        }
    }

    /// Returns the first hits of any pattern, at most `room`.
    pub(in crate::handlers) fn find_hits(
        &self,
        message_text: &MessageText<'_>,
        room: usize,
    ) -> Vec<PatternHit> {
        let text = message_text.lowercase();
        let hit = |(pattern, range): (usize, Range<usize>)| PatternHit {
            pattern,
            bytes: to_original_range(&message_text.text, &range),
        };
        // Whole words need overlapping hits, because a hit inside a longer word may hide the one that counts.
        if self.whole_words_only {
            let each = self.find_first_of_each(text).into_iter().enumerate();
            let hits = each.filter_map(|(pattern, range)| Some((pattern, range?)));
            let mut hits: Vec<_> = hits.collect();
            hits.sort_by_key(|(_, range)| range.start);
            return hits.into_iter().take(room).map(hit).collect();
        }
        // Hits without overlap are enough if any hit counts, and their search is linear.
        let hits = self.search.find_iter(text);
        hits.take(room)
            .map(|found| hit((found.pattern().as_usize(), found.range())))
            .collect()
    }

    /// Returns `true` if a hit counts: in whole-word mode, no word character may be next to it.
    fn is_hit(&self, text: &str, at: &Range<usize>) -> bool {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        // Closures: the characters next to a hit are only read in whole-word mode.
        let hit = &text[at.clone()];
        let starts_amid =
            || is_word(hit.chars().next()) && is_word(text[..at.start].chars().next_back());
        let ends_amid =
            || is_word(hit.chars().next_back()) && is_word(text[at.end..].chars().next());
        !self.whole_words_only || (!starts_amid() && !ends_amid())
    }
}
