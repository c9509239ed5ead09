//! Searches a text in steps with a limited budget, so that no key press waits for a large text.

use std::ops::Range;

use ratatui::layout::Size;
use regex::{Regex, RegexBuilder};

use super::row_walker::visible_rows;
use super::{BlockPosition, ScrollState, SearchOutcome, TextMatch, TextSource};

/// The number of bytes that one call searches: a few milliseconds.
pub(super) const SEARCH_BUDGET_BYTES: usize = 2 * 1024 * 1024;
/// The cost of a block in addition to its bytes.
const BLOCK_COST: usize = 64;
/// The number of bytes in one backward step.
const BACKWARD_STEP_BYTES: usize = 64 * 1024;
/// The longest needle in bytes.
const MAX_NEEDLE_BYTES: usize = 1024;

/// The state of an unfinished search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingSearch {
    needle: String,
    forward: bool,
    /// The position where the search began.
    origin: BlockPosition,
    /// Forward, the next match is here or later; backward, before it.
    next: BlockPosition,
    wrapped: bool,
}

/// A needle prepared for searching.
pub(super) struct SearchNeedle {
    regex: Regex,
    /// The longest match in bytes, because characters of other letter case can be longer.
    longest: usize,
}

impl SearchNeedle {
    /// Prepares a needle. Returns None if it is empty.
    pub(super) fn new(needle: &str) -> Option<Self> {
        if needle.is_empty() || needle.len() > MAX_NEEDLE_BYTES {
            return None;
        }
        let regex = RegexBuilder::new(&regex::escape(needle))
            // Smart case, as in vim and ripgrep.
            .case_insensitive(!needle.chars().any(char::is_uppercase))
            .build()
            // An escaped needle is a valid regex; only a size limit could reject it.
            .ok()?;
        Some(Self {
            regex,
            // A UTF-8 character has at most 4 bytes.
            longest: needle.chars().count() * 4,
        })
    }

    /// Returns the matches that overlap a part of a text.
    pub(super) fn find_touching(&self, text: &str, part: Range<usize>) -> Vec<Range<usize>> {
        // A match can begin before the part and end after it, so search a margin of one match length on both
        // sides.
        let from = text.floor_char_boundary(part.start.saturating_sub(self.longest));
        let to = text.floor_char_boundary(part.end.saturating_add(self.longest));
        self.regex
            .find_iter(&text[from..to])
            .map(|found| from + found.start()..from + found.end())
            .collect()
    }

    /// Returns the first match that begins in a part.
    fn find_first(&self, text: &str, part: Range<usize>) -> Option<Range<usize>> {
        let to = text.floor_char_boundary(part.end.saturating_add(self.longest));
        let found = self.regex.find(&text[part.start..to])?;
        let found = part.start + found.start()..part.start + found.end();
        (found.start < part.end).then_some(found)
    }

    /// Returns the last match that begins in a part.
    fn find_last(&self, text: &str, part: Range<usize>) -> Option<Range<usize>> {
        // A match that begins in this part may end in the next one.
        let to = text.floor_char_boundary(part.end.saturating_add(self.longest));
        self.regex
            .find_iter(&text[part.start..to])
            .map(|found| part.start + found.start()..part.start + found.end())
            .take_while(|found| found.start < part.end)
            .last()
    }
}

/// The result of a search step.
enum SearchStep {
    Found(TextMatch),
    /// The budget is used up; the search continues here.
    Pause(BlockPosition),
    End,
}

/// Implements [`ScrollState::seek_match`].
pub(super) fn seek_match(
    scroll: &mut ScrollState,
    source: &dyn TextSource,
    area: Size,
    forward: bool,
    budget: usize,
) -> SearchOutcome {
    let Some((find, needle)) = scroll
        .search
        .as_ref()
        .and_then(|find| Some((find, SearchNeedle::new(&find.needle)?)))
    else {
        scroll.pending_search = None;
        return SearchOutcome::NotFound;
    };
    let mut seeking = match scroll.pending_search.take() {
        Some(seeking) if seeking.needle == find.needle && seeking.forward == forward => seeking,
        _ => {
            let origin = match find.current_match {
                // Continue after the current match, so that pressing n again does not find it again.
                Some(TextMatch { start, len }) if forward => BlockPosition {
                    byte: start.byte + len.max(1),
                    ..start
                },
                Some(TextMatch { start, .. }) => start,
                None => visible_rows(source, area, scroll)
                    .map_or_else(BlockPosition::default, |(top, _)| top.position()),
            };
            PendingSearch {
                needle: find.needle.clone(),
                forward,
                origin,
                next: origin,
                wrapped: false,
            }
        }
    };
    let mut budget = budget;
    loop {
        let until = seeking.wrapped.then_some(seeking.origin);
        let step = if forward {
            search_forward(source, &needle, seeking.next, until, &mut budget)
        } else {
            search_backward(source, &needle, seeking.next, until, &mut budget)
        };
        match step {
            SearchStep::Found(found) => {
                if let Some(find) = &mut scroll.search {
                    find.current_match = Some(found);
                }
                let place = found.start;
                scroll.reveal(source, area, place);
                return if seeking.wrapped {
                    SearchOutcome::Wrapped(place)
                } else {
                    SearchOutcome::At(place)
                };
            }
            SearchStep::Pause(next) => {
                seeking.next = next;
                scroll.pending_search = Some(seeking);
                return SearchOutcome::Pending;
            }
            SearchStep::End if seeking.wrapped => return SearchOutcome::NotFound,
            SearchStep::End => {
                seeking.wrapped = true;
                // No match up to the end, so search the other part, from the opposite end to the origin.
                seeking.next = if forward {
                    BlockPosition::default()
                } else {
                    BlockPosition {
                        block: usize::MAX,
                        byte: usize::MAX,
                    }
                };
            }
        }
    }
}

/// Returns the first match from a position on, and before the limit.
fn search_forward(
    source: &dyn TextSource,
    needle: &SearchNeedle,
    from: BlockPosition,
    until: Option<BlockPosition>,
    budget: &mut usize,
) -> SearchStep {
    let mut at = from;
    while at.block < source.len() && until.is_none_or(|until| at < until) {
        if *budget < BLOCK_COST {
            return SearchStep::Pause(at);
        }
        let block = source.block(at.block);
        let text = &*block.text;
        let limit = match until {
            Some(until) if until.block == at.block => until.byte.min(text.len()),
            _ => text.len(),
        };
        let from = text.floor_char_boundary(at.byte);
        if from < limit {
            // Search only as many bytes as the budget allows.
            let to = text.floor_char_boundary(limit.min(from + *budget));
            if let Some(found) = needle.find_first(text, from..to) {
                return found_step(at.block, &found);
            }
            *budget = budget.saturating_sub(to - from);
            // `limit` can be inside a character. Fewer than 4 bytes are then the rest of that character, not
            // searchable text.
            if limit - to >= 4 {
                return SearchStep::Pause(BlockPosition { byte: to, ..at });
            }
        }
        // Each block costs something even if it is empty, or a million empty blocks would exceed the budget.
        *budget = budget.saturating_sub(BLOCK_COST);
        at = BlockPosition {
            block: at.block + 1,
            byte: 0,
        };
    }
    SearchStep::End
}

/// Returns the last match before a position, and from the limit on.
fn search_backward(
    source: &dyn TextSource,
    needle: &SearchNeedle,
    from: BlockPosition,
    until: Option<BlockPosition>,
    budget: &mut usize,
) -> SearchStep {
    let Some(last) = source.len().checked_sub(1) else {
        return SearchStep::End;
    };
    let until = until.unwrap_or_default();
    // A position past the end means the end of the last block.
    let mut at = if from.block > last {
        BlockPosition {
            block: last,
            byte: usize::MAX,
        }
    } else {
        from
    };
    while at.block >= until.block {
        let block = source.block(at.block);
        let text = &*block.text;
        let limit = if until.block == at.block {
            text.floor_char_boundary(until.byte)
        } else {
            0
        };
        let mut to = text.floor_char_boundary(at.byte);
        while to > limit {
            if *budget < BLOCK_COST {
                return SearchStep::Pause(BlockPosition { byte: to, ..at });
            }
            // A regex searches forward only, so go back in steps and take the last match of each.
            let from = text
                .floor_char_boundary(to.saturating_sub(BACKWARD_STEP_BYTES))
                .max(limit);
            if let Some(found) = needle.find_last(text, from..to) {
                return found_step(at.block, &found);
            }
            *budget = budget.saturating_sub(to - from);
            to = from;
        }
        *budget = budget.saturating_sub(BLOCK_COST);
        let Some(block) = at.block.checked_sub(1) else {
            break;
        };
        at = BlockPosition {
            block,
            byte: usize::MAX,
        };
        // The loop above checks the budget only for blocks with text, so check it here for empty ones.
        if *budget < BLOCK_COST && at.block >= until.block {
            return SearchStep::Pause(at);
        }
    }
    SearchStep::End
}

fn found_step(block: usize, found: &Range<usize>) -> SearchStep {
    let start = BlockPosition {
        block,
        byte: found.start,
    };
    SearchStep::Found(TextMatch {
        start,
        len: found.len(),
    })
}
