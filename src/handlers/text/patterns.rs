//! Many patterns in one pass over a text, case-insensitively: what the `contains` family searches with.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem;

use super::fold::{fold, unfold};
use crate::handlers::Said;
use crate::handlers::registry::problem;
use crate::rubric::ParamProblem;

/// More patterns than this are refused.
const MAX_PATTERNS: usize = 10_000;
/// After so many hits that say nothing new, the missing patterns are looked for one by one: patterns that overlap
/// everywhere must not make a long text quadratic.
const MAX_HITS: usize = 1_000_000;

/// Compiled patterns.
#[derive(Debug)]
pub(in crate::handlers) struct Patterns {
    /// As written, for explanations.
    pub(in crate::handlers) written: Vec<String>,
    folded: Vec<String>,
    search: AhoCorasick,
    /// Only whole words count.
    words: bool,
}

/// Where a pattern was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::handlers) struct Hit {
    /// Which pattern.
    pub(in crate::handlers) pattern: usize,
    /// Bytes of the text as it stands.
    pub(in crate::handlers) bytes: Range<usize>,
}

impl Patterns {
    /// Compiles; problems are about the param of this name.
    pub(in crate::handlers) fn new(
        written: Vec<String>,
        param: &str,
    ) -> Result<Self, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if written.is_empty() {
            problems.push(problem(format!("/{param}"), "needs at least one text"));
        }
        if written.len() > MAX_PATTERNS {
            let count = written.len();
            problems.push(problem(
                format!("/{param}"),
                format!("holds {count}, more than {MAX_PATTERNS}"),
            ));
        }
        for (at, _) in written.iter().enumerate().filter(|(_, p)| p.is_empty()) {
            problems.push(problem(
                format!("/{param}/{at}"),
                "is empty, and would be found in every text",
            ));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let folded: Vec<String> = written.iter().map(|p| fold(p).into_owned()).collect();
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(&folded)
            .map_err(|why| {
                vec![problem(
                    format!("/{param}"),
                    format!("cannot be compiled: {why}"),
                )]
            })?;
        Ok(Self {
            written,
            folded,
            search,
            words: false,
        })
    }

    /// Only whole words count: a pattern is no part of a longer word. Where it begins or ends with a sign, as in `C++`,
    /// that end needs no boundary.
    #[must_use]
    pub(in crate::handlers) fn whole_words(mut self, words: bool) -> Self {
        self.words = words;
        self
    }

    /// The first hit of each pattern in lower-cased text, by pattern.
    pub(in crate::handlers) fn each(&self, text: &str) -> Vec<Option<Range<usize>>> {
        let mut hits: Vec<Option<Range<usize>>> = vec![None; self.folded.len()];
        let mut missing = hits.len();
        for (count, found) in self.search.find_overlapping_iter(text).enumerate() {
            let hit = &mut hits[found.pattern().as_usize()];
            if hit.is_none() && self.counts(text, &found.range()) {
                *hit = Some(found.range());
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
            if count == MAX_HITS {
                self.one_by_one(text, &mut hits);
                break;
            }
        }
        hits
    }

    fn one_by_one(&self, text: &str, hits: &mut [Option<Range<usize>>]) {
        for (pattern, hit) in self.folded.iter().zip(hits) {
            if hit.is_none() {
                let mut all = memmem::find_iter(text.as_bytes(), pattern.as_bytes())
                    .map(|at| at..at + pattern.len());
                *hit = all.find(|range| self.counts(text, range));
            }
        }
    }

    /// The first hits of any pattern, at most `room`.
    pub(in crate::handlers) fn some(&self, said: &Said<'_>, room: usize) -> Vec<Hit> {
        let text = said.folded();
        let hit = |(pattern, range): (usize, Range<usize>)| Hit {
            pattern,
            bytes: unfold(&said.text, &range),
        };
        if self.words {
            let each = self.each(text).into_iter().enumerate();
            let hits = each.filter_map(|(pattern, range)| Some((pattern, range?)));
            let mut hits: Vec<_> = hits.collect();
            hits.sort_by_key(|(_, range)| range.start);
            return hits.into_iter().take(room).map(hit).collect();
        }
        let hits = self.search.find_iter(text);
        hits.take(room)
            .map(|found| hit((found.pattern().as_usize(), found.range())))
            .collect()
    }

    /// Whether a hit is one: with words, nothing of a word may stand beside it.
    fn counts(&self, text: &str, at: &Range<usize>) -> bool {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let hit = &text[at.clone()];
        let starts_amid =
            || is_word(hit.chars().next()) && is_word(text[..at.start].chars().next_back());
        let ends_amid =
            || is_word(hit.chars().next_back()) && is_word(text[at.end..].chars().next());
        !self.words || (!starts_amid() && !ends_amid())
    }
}
