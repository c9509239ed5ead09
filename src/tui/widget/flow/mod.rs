//! Long texts: any number of blocks, any length, wrapped only where they are seen.
//!
//! No index over the whole text exists: a place is a block and a byte, rows are found by wrapping from the nearest fixed
//! point before it (a line's start, or every few kilobytes of a line that is longer). So a jump, a resize and an appended
//! piece cost what is visible, whatever the size. A pane follows its tail until the user scrolls up.

mod draw;
mod seek;
mod walk;
mod wrap;

use std::borrow::Cow;
use std::ops::Range;

use ratatui::layout::{Rect, Size};

use self::seek::Seeking;
use self::walk::{Walker, window};
use super::canvas::Canvas;
use crate::theme::Role;

/// Rows one move may go: further, [`Scroll::home`], [`Scroll::end`] and [`Scroll::show`] go without walking.
const FAR: u64 = 10_000;

/// A piece of a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block<'a> {
    /// Raw text; `\n` ends a line. Marks for hostile characters are made while drawing.
    pub(crate) text: Cow<'a, str>,
    /// What it is, where no span says otherwise.
    pub(crate) role: Role,
    /// What byte ranges of it are: sorted, not overlapping.
    pub(crate) spans: Cow<'a, [(Range<usize>, Role)]>,
    /// Columns left free before each row.
    pub(crate) indent: u16,
    /// A mark in the indent of the first row, such as `[3]`.
    pub(crate) lead: Cow<'a, str>,
}

impl<'a> Block<'a> {
    /// A block of one role.
    pub(crate) fn new(text: impl Into<Cow<'a, str>>, role: Role) -> Self {
        Self {
            text: text.into(),
            role,
            ..Self::default()
        }
    }
}

/// Something to scroll through. `block` must be cheap: no wrapping, no highlighting, no copy of a large text.
pub(crate) trait Source {
    /// How many blocks.
    fn len(&self) -> usize;
    /// One of them. An empty text takes one empty row.
    fn block(&self, at: usize) -> Block<'_>;
}

impl Source for Vec<Block<'_>> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn block(&self, at: usize) -> Block<'_> {
        self[at].clone()
    }
}

/// A place in a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Which block.
    pub(crate) block: usize,
    /// Which byte of its text.
    pub(crate) byte: usize,
}

/// Where a pane stands in its source.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scroll {
    /// A place in the topmost visible row; means nothing while it follows ([`Scroll::row`] tells).
    pub(crate) top: Place,
    /// Shows the end, and goes with it.
    pub(crate) follow: bool,
    /// What is searched for, and the match last gone to.
    pub(crate) find: Option<Find>,
    /// A search that is not finished; set to `None` to give it up.
    pub(crate) seeking: Option<Seeking>,
}

/// A search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Find {
    /// As typed; letter case matters only if it holds a capital.
    pub(crate) needle: String,
    /// The match gone to: where, and how many bytes.
    pub(crate) at: Option<(Place, usize)>,
}

/// How a search went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// At this place.
    At(Place),
    /// At this place, past the end and on from the other one.
    Around(Place),
    /// Nowhere.
    Nowhere,
    /// Not yet: a large text is searched piece by piece; ask again.
    NotYet,
}

impl Scroll {
    /// At the top.
    pub(crate) fn top() -> Self {
        Self::default()
    }

    /// At the end, going with it.
    pub(crate) fn tail() -> Self {
        Self {
            follow: true,
            ..Self::default()
        }
    }

    /// Moves by rows; at the end it follows again, upwards it stops following.
    pub(crate) fn by(&mut self, source: &dyn Source, area: Size, rows: i64) {
        let Some((mut top, mut bottom)) = window(source, area, self) else {
            return;
        };
        let count = rows.unsigned_abs().min(FAR);
        if rows > 0 {
            self.follow = !(0..count).all(|_| bottom.down() && top.down()) || !bottom.has_next();
        } else if rows < 0 {
            for _ in 0..count {
                if !top.up() {
                    break;
                }
            }
            self.follow = false;
        }
        self.top = top.place();
    }

    /// To the first row.
    pub(crate) fn home(&mut self) {
        self.top = Place::default();
        self.follow = false;
    }

    /// To the last row, following.
    pub(crate) fn end(&mut self) {
        self.follow = true;
    }

    /// Makes a place visible, a third from the top unless it is visible already.
    pub(crate) fn show(&mut self, source: &dyn Source, area: Size, place: Place) {
        let rows = window(source, area, self).zip(Walker::new(source, area.width, place));
        let Some(((top, bottom), mut row)) = rows else {
            // Nothing to measure with yet: the place is shown as soon as there is.
            self.top = place;
            self.follow = false;
            return;
        };
        if (top.place()..=bottom.place()).contains(&row.place()) {
            return;
        }
        for _ in 0..area.height / 3 {
            if !row.up() {
                break;
            }
        }
        self.top = row.place();
        self.follow = false;
    }

    /// Goes to the next (or previous) match of [`Scroll::find`]; without one gone to before, from what is visible on.
    /// Looks at 2 MB at most: on [`Found::NotYet`] call again with the same direction.
    pub(crate) fn seek(&mut self, source: &dyn Source, area: Size, forward: bool) -> Found {
        seek::seek(self, source, area, forward, seek::BUDGET)
    }

    /// Where the row begins that is drawn so many rows below the top; `None` where no row is.
    pub(crate) fn row(&self, source: &dyn Source, area: Size, below: u16) -> Option<Place> {
        let (mut top, _) = window(source, area, self)?;
        (0..below).all(|_| top.down()).then(|| top.place())
    }
}

/// What was drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Drawn {
    /// The place of each end of what is visible, as parts of the whole (0–1).
    pub(crate) from: f64,
    /// See `from`.
    pub(crate) to: f64,
    /// Whether there is more below.
    pub(crate) more_below: bool,
}

/// Draws what is visible.
pub(crate) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    source: &dyn Source,
    scroll: &Scroll,
) -> Drawn {
    draw::draw(canvas, area, source, scroll)
}

#[cfg(test)]
mod tests;
