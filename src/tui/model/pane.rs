//! The panes, and where they stand at each size.

mod arrange;
#[cfg(test)]
mod tests;

use ratatui::layout::{Position, Rect, Size};

/// A pane; its number is its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Pane {
    /// 1: the cells, as decisions.
    #[default]
    Cells,
    /// 2: the rendered prompt of the shown turn.
    Prompt,
    /// 3: the tool call of the shown turn.
    FunctionCall,
    /// 4: what the tool answered.
    FetchedContent,
    /// 5: what was decided.
    Verdict,
    /// 6: the judged transcript.
    Transcript,
    /// 7: what the last save or run moved.
    Changes,
}

impl Pane {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 7] = [
        Self::Cells,
        Self::Prompt,
        Self::FunctionCall,
        Self::FetchedContent,
        Self::Verdict,
        Self::Transcript,
        Self::Changes,
    ];

    /// The title, literally.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Prompt => "prompt",
            Self::FunctionCall => "function call",
            Self::FetchedContent => "fetched content",
            Self::Verdict => "verdict",
            Self::Transcript => "transcript",
            Self::Changes => "changes",
        }
    }

    /// The title where there is no room for it.
    pub(crate) const fn short(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Prompt => "prompt",
            Self::FunctionCall => "call",
            Self::FetchedContent => "page",
            Self::Verdict => "verdict",
            Self::Transcript => "talk",
            Self::Changes => "diff",
        }
    }

    /// From 1.
    pub(crate) const fn number(self) -> usize {
        self as usize + 1
    }

    /// Whether it shows a step of the focused trace: the strip belongs to it.
    pub(crate) const fn is_trace(self) -> bool {
        matches!(
            self,
            Self::Prompt | Self::FunctionCall | Self::FetchedContent | Self::Verdict
        )
    }
}

impl Pane {
    /// Where the text stands inside the border: what is wrapped has a column to breathe at both sides, where there is room.
    pub(crate) fn padded(self, inside: Rect) -> Rect {
        const ROOM: u16 = 24;
        if !self.is_trace() || inside.width < ROOM {
            return inside;
        }
        Rect {
            x: inside.x + 1,
            width: inside.width - 2,
            ..inside
        }
    }
}

/// A border that can be dragged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Divider {
    /// Between the cells' column and the trace.
    Main,
    /// The same at 180 columns and more, where the transcript has a column of its own.
    WideMain,
    /// Between the cells and the transcript under them.
    Left,
    /// Between the trace and the transcript's column.
    Third,
    /// Between prompt | function call and fetched content | verdict: the upright one.
    TraceUpright,
    /// The level one.
    TraceLevel,
    /// Above the changes.
    Changes,
}

/// Where the dividers stand, as thousandths of what they divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Splits {
    pub(crate) main: u16,
    pub(crate) wide_main: u16,
    pub(crate) left: u16,
    pub(crate) third: u16,
    pub(crate) upright: u16,
    pub(crate) level: u16,
    pub(crate) changes: u16,
}

impl Default for Splits {
    fn default() -> Self {
        Self {
            main: 330,
            wide_main: 250,
            left: 600,
            third: 600,
            upright: 500,
            level: 500,
            changes: 650,
        }
    }
}

impl Divider {
    /// Whether it stands upright: dragged to the left and right.
    pub(crate) const fn upright(self) -> bool {
        matches!(
            self,
            Self::Main | Self::WideMain | Self::Third | Self::TraceUpright
        )
    }
}

impl Splits {
    /// Puts a divider where a pointer is, within the area it divides.
    pub(crate) fn drag(&mut self, divider: Divider, area: Rect, column: u16, row: u16) {
        let (at, length) = if divider.upright() {
            (column.saturating_sub(area.x), area.width)
        } else {
            (row.saturating_sub(area.y), area.height)
        };
        let length = u32::from(length.max(1));
        let part = (u32::from(at) * 1000 + length / 2) / length;
        let part = u16::try_from(part.clamp(100, 900)).unwrap_or(500);
        match divider {
            Divider::Main => self.main = part,
            Divider::WideMain => self.wide_main = part,
            Divider::Left => self.left = part,
            Divider::Third => self.third = part,
            Divider::TraceUpright => self.upright = part,
            Divider::TraceLevel => self.level = part,
            Divider::Changes => self.changes = part,
        }
    }
}

/// What stands where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Too small for anything but a polite line.
    pub(crate) too_small: bool,
    /// One row: what is open, counts, cost, time left.
    pub(crate) header: Rect,
    /// Panes with their outer areas (borders included), in drawing order.
    pub(crate) panes: Vec<(Pane, Rect)>,
    /// One row of tabs, where not all panes are shown; empty else.
    pub(crate) tabs: Rect,
    /// The turn strip; empty where there is no room.
    pub(crate) strip: Rect,
    /// Diagnostics of a broken save; empty if there are none.
    pub(crate) problems: Rect,
    /// The replay's bar; empty if none plays.
    pub(crate) replay: Rect,
    /// One row: the tour, where there is room for one of its own; empty else.
    pub(crate) tour: Rect,
    /// One row: hints, or the typed line.
    pub(crate) footer: Rect,
    /// Dividers that can be dragged: where to take hold of them, and the areas they divide.
    pub(crate) dividers: Vec<(Divider, Rect, Rect)>,
}

/// What the layout depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) size: Size,
    pub(crate) focus: Pane,
    /// The pane shown beside (or instead of) the cells where only one is.
    pub(crate) tab: Pane,
    pub(crate) zoom: bool,
    pub(crate) splits: Splits,
    /// Rows of diagnostics wanted.
    pub(crate) problems: u16,
    pub(crate) replay: bool,
    /// Whether the tour is on.
    pub(crate) tour: bool,
    /// Whether there is anything to show in the changes pane.
    pub(crate) changes: bool,
    /// Nothing is judged yet: the transcript has the room, and no empty trace.
    pub(crate) bare: bool,
}

impl Layout {
    /// The layout for a wish. Pure.
    pub(crate) fn of(wish: &Wish) -> Self {
        arrange::arrange(wish)
    }

    /// The divider at a position, with the area it divides.
    pub(crate) fn divider_at(&self, column: u16, row: u16) -> Option<(Divider, Rect)> {
        let position = Position::new(column, row);
        self.dividers
            .iter()
            .find(|(_, hold, _)| hold.contains(position))
            .map(|(divider, _, area)| (*divider, *area))
    }

    /// The pane at a position.
    pub(crate) fn pane_at(&self, column: u16, row: u16) -> Option<Pane> {
        let position = Position::new(column, row);
        self.panes
            .iter()
            .rev()
            .find(|(_, area)| area.contains(position))
            .map(|(pane, _)| *pane)
    }

    /// A pane's outer area, if it is shown.
    pub(crate) fn area(&self, pane: Pane) -> Option<Rect> {
        self.panes
            .iter()
            .find(|(p, _)| *p == pane)
            .map(|(_, area)| *area)
    }

    /// The room for text inside a pane's border; 0×0 if it is not shown.
    pub(crate) fn inside(&self, pane: Pane) -> Size {
        self.area(pane).map_or(Size::default(), |area| {
            let inside = Rect {
                width: area.width.saturating_sub(2),
                height: area.height.saturating_sub(2),
                ..area
            };
            pane.padded(inside).as_size()
        })
    }
}
