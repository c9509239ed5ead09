//! Searching: piece by piece, so that no key press waits for a whole text.

use std::ops::Range;

use ratatui::layout::Size;
use regex::{Regex, RegexBuilder};

use super::row_walker::visible_rows;
use super::{BlockPosition, ScrollState, SearchOutcome, TextSource};

/// Bytes looked at in one call: a few milliseconds' work.
pub(super) const SEARCH_BUDGET_BYTES: usize = 2 * 1024 * 1024;
/// What a block costs besides its bytes.
const BLOCK_COST: usize = 64;
/// Bytes looked at in one step backwards.
const BACKWARD_STEP_BYTES: usize = 64 * 1024;
/// Bytes a needle may have; nobody types more.
const MAX_NEEDLE_BYTES: usize = 1024;

/// Where a search that was not finished goes on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingSearch {
    needle: String,
    forward: bool,
    /// Where it began.
    origin: BlockPosition,
    /// Forward: matches from here on; backward: before it.
    next: BlockPosition,
    wrapped: bool,
}

/// A needle made ready.
pub(super) struct SearchNeedle {
    regex: Regex,
    /// Bytes a match may take at most: other case may be longer.
    longest: usize,
}

impl SearchNeedle {
    /// `None`: nothing to search for.
    pub(super) fn new(needle: &str) -> Option<Self> {
        if needle.is_empty() || needle.len() > MAX_NEEDLE_BYTES {
            return None;
        }
        let regex = RegexBuilder::new(&regex::escape(needle))
            .case_insensitive(!needle.chars().any(char::is_uppercase))
            .build()
            .ok()?;
        Some(Self {
            regex,
            longest: needle.chars().count() * 4,
        })
    }

    /// Matches that touch a part of a text.
    pub(super) fn find_touching(&self, text: &str, part: Range<usize>) -> Vec<Range<usize>> {
        let from = text.floor_char_boundary(part.start.saturating_sub(self.longest));
        let to = text.floor_char_boundary(part.end.saturating_add(self.longest));
        self.regex
            .find_iter(&text[from..to])
            .map(|found| from + found.start()..from + found.end())
            .collect()
    }

    /// The first match that begins in a part.
    fn find_first(&self, text: &str, part: Range<usize>) -> Option<Range<usize>> {
        let to = text.floor_char_boundary(part.end.saturating_add(self.longest));
        let found = self.regex.find(&text[part.start..to])?;
        let found = part.start + found.start()..part.start + found.end();
        (found.start < part.end).then_some(found)
    }

    /// The last match that begins in a part.
    fn find_last(&self, text: &str, part: Range<usize>) -> Option<Range<usize>> {
        let to = text.floor_char_boundary(part.end.saturating_add(self.longest));
        self.regex
            .find_iter(&text[part.start..to])
            .map(|found| part.start + found.start()..part.start + found.end())
            .take_while(|found| found.start < part.end)
            .last()
    }
}

/// What a bounded search came to.
enum SearchStep {
    Found(BlockPosition, usize),
    /// The budget is used up; it goes on here.
    Pause(BlockPosition),
    End,
}

/// See [`Scroll::seek`].
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
                Some((at, len)) if forward => BlockPosition {
                    byte: at.byte + len.max(1),
                    ..at
                },
                Some((at, _)) => at,
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
            SearchStep::Found(place, len) => {
                if let Some(find) = &mut scroll.search {
                    find.current_match = Some((place, len));
                }
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

/// The first match from a place on (and before another).
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
            let to = text.floor_char_boundary(limit.min(from + *budget));
            if let Some(found) = needle.find_first(text, from..to) {
                return found_step(at.block, &found);
            }
            *budget = budget.saturating_sub(to - from);
            // `limit` may lie within a character: what is left then is less than one.
            if limit - to >= 4 {
                return SearchStep::Pause(BlockPosition { byte: to, ..at });
            }
        }
        *budget = budget.saturating_sub(BLOCK_COST);
        at = BlockPosition {
            block: at.block + 1,
            byte: 0,
        };
    }
    SearchStep::End
}

/// The last match before a place (and from another on).
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
        if *budget < BLOCK_COST && at.block >= until.block {
            return SearchStep::Pause(at);
        }
    }
    SearchStep::End
}

fn found_step(block: usize, found: &Range<usize>) -> SearchStep {
    let place = BlockPosition {
        block,
        byte: found.start,
    };
    SearchStep::Found(place, found.len())
}
