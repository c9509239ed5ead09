//! Searching: piece by piece, so that no key press waits for a whole text.

use std::ops::Range;

use ratatui::layout::Size;
use regex::{Regex, RegexBuilder};

use super::walk::window;
use super::{Found, Place, Scroll, Source};

/// Bytes looked at in one call: a few milliseconds' work.
pub(super) const BUDGET: usize = 2 * 1024 * 1024;
/// What a block costs besides its bytes.
const BLOCK: usize = 64;
/// Bytes looked at in one step backwards.
const STEP: usize = 64 * 1024;
/// Bytes a needle may have; nobody types more.
const NEEDLE: usize = 1024;

/// Where a search that was not finished goes on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seeking {
    needle: String,
    forward: bool,
    /// Where it began.
    origin: Place,
    /// Forward: matches from here on; backward: before it.
    next: Place,
    around: bool,
}

/// A needle made ready.
pub(super) struct Needle {
    regex: Regex,
    /// Bytes a match may take at most: other case may be longer.
    longest: usize,
}

impl Needle {
    /// `None`: nothing to search for.
    pub(super) fn new(needle: &str) -> Option<Self> {
        if needle.is_empty() || needle.len() > NEEDLE {
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
    pub(super) fn within(&self, text: &str, part: Range<usize>) -> Vec<Range<usize>> {
        let from = text.floor_char_boundary(part.start.saturating_sub(self.longest));
        let to = text.floor_char_boundary(part.end.saturating_add(self.longest));
        self.regex
            .find_iter(&text[from..to])
            .map(|found| from + found.start()..from + found.end())
            .collect()
    }

    /// The first match that begins in a part.
    fn first(&self, text: &str, part: Range<usize>) -> Option<Range<usize>> {
        let to = text.floor_char_boundary(part.end.saturating_add(self.longest));
        let found = self.regex.find(&text[part.start..to])?;
        let found = part.start + found.start()..part.start + found.end();
        (found.start < part.end).then_some(found)
    }

    /// The last match that begins in a part.
    fn last(&self, text: &str, part: Range<usize>) -> Option<Range<usize>> {
        let to = text.floor_char_boundary(part.end.saturating_add(self.longest));
        self.regex
            .find_iter(&text[part.start..to])
            .map(|found| part.start + found.start()..part.start + found.end())
            .take_while(|found| found.start < part.end)
            .last()
    }
}

/// What a bounded search came to.
enum Step {
    Found(Place, usize),
    /// The budget is used up; it goes on here.
    Pause(Place),
    End,
}

/// See [`Scroll::seek`].
pub(super) fn seek(
    scroll: &mut Scroll,
    source: &dyn Source,
    area: Size,
    forward: bool,
    budget: usize,
) -> Found {
    let Some((find, needle)) = scroll
        .find
        .as_ref()
        .and_then(|find| Some((find, Needle::new(&find.needle)?)))
    else {
        scroll.seeking = None;
        return Found::Nowhere;
    };
    let mut seeking = match scroll.seeking.take() {
        Some(seeking) if seeking.needle == find.needle && seeking.forward == forward => seeking,
        _ => {
            let origin = match find.at {
                Some((at, len)) if forward => Place {
                    byte: at.byte + len.max(1),
                    ..at
                },
                Some((at, _)) => at,
                None => {
                    window(source, area, scroll).map_or_else(Place::default, |(top, _)| top.place())
                }
            };
            Seeking {
                needle: find.needle.clone(),
                forward,
                origin,
                next: origin,
                around: false,
            }
        }
    };
    let mut budget = budget;
    loop {
        let until = seeking.around.then_some(seeking.origin);
        let step = if forward {
            on(source, &needle, seeking.next, until, &mut budget)
        } else {
            back(source, &needle, seeking.next, until, &mut budget)
        };
        match step {
            Step::Found(place, len) => {
                if let Some(find) = &mut scroll.find {
                    find.at = Some((place, len));
                }
                scroll.show(source, area, place);
                return if seeking.around {
                    Found::Around(place)
                } else {
                    Found::At(place)
                };
            }
            Step::Pause(next) => {
                seeking.next = next;
                scroll.seeking = Some(seeking);
                return Found::NotYet;
            }
            Step::End if seeking.around => return Found::Nowhere,
            Step::End => {
                seeking.around = true;
                seeking.next = if forward {
                    Place::default()
                } else {
                    Place {
                        block: usize::MAX,
                        byte: usize::MAX,
                    }
                };
            }
        }
    }
}

/// The first match from a place on (and before another).
fn on(
    source: &dyn Source,
    needle: &Needle,
    from: Place,
    until: Option<Place>,
    budget: &mut usize,
) -> Step {
    let mut at = from;
    while at.block < source.len() && until.is_none_or(|until| at < until) {
        if *budget < BLOCK {
            return Step::Pause(at);
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
            if let Some(found) = needle.first(text, from..to) {
                return found_at(at.block, &found);
            }
            *budget = budget.saturating_sub(to - from);
            // `limit` may lie within a character: what is left then is less than one.
            if limit - to >= 4 {
                return Step::Pause(Place { byte: to, ..at });
            }
        }
        *budget = budget.saturating_sub(BLOCK);
        at = Place {
            block: at.block + 1,
            byte: 0,
        };
    }
    Step::End
}

/// The last match before a place (and from another on).
fn back(
    source: &dyn Source,
    needle: &Needle,
    from: Place,
    until: Option<Place>,
    budget: &mut usize,
) -> Step {
    let Some(last) = source.len().checked_sub(1) else {
        return Step::End;
    };
    let until = until.unwrap_or_default();
    let mut at = if from.block > last {
        Place {
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
            if *budget < BLOCK {
                return Step::Pause(Place { byte: to, ..at });
            }
            let from = text.floor_char_boundary(to.saturating_sub(STEP)).max(limit);
            if let Some(found) = needle.last(text, from..to) {
                return found_at(at.block, &found);
            }
            *budget = budget.saturating_sub(to - from);
            to = from;
        }
        *budget = budget.saturating_sub(BLOCK);
        let Some(block) = at.block.checked_sub(1) else {
            break;
        };
        at = Place {
            block,
            byte: usize::MAX,
        };
        if *budget < BLOCK && at.block >= until.block {
            return Step::Pause(at);
        }
    }
    Step::End
}

fn found_at(block: usize, found: &Range<usize>) -> Step {
    let place = Place {
        block,
        byte: found.start,
    };
    Step::Found(place, found.len())
}
