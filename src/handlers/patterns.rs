//! Many patterns in one pass over a text, case-insensitively: what the `contains` family searches with.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::fold::{fold, unfold};
use super::registry::problem;
use super::subject::Said;
use crate::rubric::ParamProblem;

/// More patterns than this are refused.
const MAX_PATTERNS: usize = 10_000;
/// After so many hits that say nothing new, the missing patterns are looked for one by one: patterns that overlap
/// everywhere must not make a long text quadratic.
const MAX_HITS: usize = 1_000_000;

/// Compiled patterns.
#[derive(Debug)]
pub(super) struct Patterns {
    /// As written, for explanations.
    pub(super) written: Vec<String>,
    folded: Vec<String>,
    search: AhoCorasick,
}

/// Where a pattern was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    /// Which pattern.
    pub(super) pattern: usize,
    /// Bytes of the text as it stands.
    pub(super) bytes: Range<usize>,
}

impl Patterns {
    /// Compiles; problems are about `/patterns`.
    pub(super) fn new(written: Vec<String>) -> Result<Self, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if written.is_empty() {
            problems.push(problem("/patterns", "needs at least one pattern"));
        }
        if written.len() > MAX_PATTERNS {
            let count = written.len();
            problems.push(problem(
                "/patterns",
                format!("holds {count}, more than {MAX_PATTERNS}"),
            ));
        }
        for (at, _) in written.iter().enumerate().filter(|(_, p)| p.is_empty()) {
            problems.push(problem(
                format!("/patterns/{at}"),
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
            .map_err(|why| vec![problem("/patterns", format!("cannot be compiled: {why}"))])?;
        Ok(Self {
            written,
            folded,
            search,
        })
    }

    /// The first hit of each pattern, by pattern.
    pub(super) fn each(&self, said: &Said<'_>) -> Vec<Option<Hit>> {
        let text = said.folded();
        let mut hits: Vec<Option<Range<usize>>> = vec![None; self.folded.len()];
        let mut missing = hits.len();
        for (count, found) in self.search.find_overlapping_iter(text).enumerate() {
            let hit = &mut hits[found.pattern().as_usize()];
            if hit.is_none() {
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
        let place = |(pattern, range): (usize, Option<Range<usize>>)| {
            range.map(|range| Hit {
                pattern,
                bytes: unfold(&said.text, &range),
            })
        };
        hits.into_iter().enumerate().map(place).collect()
    }

    fn one_by_one(&self, text: &str, hits: &mut [Option<Range<usize>>]) {
        for (pattern, hit) in self.folded.iter().zip(hits) {
            if hit.is_none() {
                let at = memchr::memmem::find(text.as_bytes(), pattern.as_bytes());
                *hit = at.map(|at| at..at + pattern.len());
            }
        }
    }

    /// The first hit of any pattern.
    pub(super) fn any(&self, said: &Said<'_>) -> Option<Hit> {
        let found = self.search.find(said.folded())?;
        Some(Hit {
            pattern: found.pattern().as_usize(),
            bytes: unfold(&said.text, &found.range()),
        })
    }
}
