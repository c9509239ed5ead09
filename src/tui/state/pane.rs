//! The panes, and where they stand at each size.

mod layout;
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
    pub(crate) const fn short_title(self) -> &'static str {
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
    pub(crate) const fn is_trace_pane(self) -> bool {
        matches!(
            self,
            Self::Prompt | Self::FunctionCall | Self::FetchedContent | Self::Verdict
        )
    }
}

impl Pane {
    /// Where the text stands inside the border: what is wrapped has a column to breathe at both sides, where there is room.
    pub(crate) fn pad_area(self, inside: Rect) -> Rect {
        const ROOM: u16 = 24;
        if !self.is_trace_pane() || inside.width < ROOM {
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
pub(crate) enum PaneDivider {
    /// Between the cells' column and the trace.
    Main,
    /// The same at 180 columns and more, where the transcript has a column of its own.
    WideMain,
    /// Between the cells and the transcript under them.
    CellsTranscript,
    /// Between the trace and the transcript's column.
    TranscriptColumn,
    /// Between prompt | function call and fetched content | verdict: the upright one.
    TraceVertical,
    /// The level one.
    TraceHorizontal,
    /// Above the changes.
    Changes,
}

/// Where the dividers stand, as thousandths of what they divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaneSplits {
    pub(crate) main: u16,
    pub(crate) wide_main: u16,
    pub(crate) cells_transcript: u16,
    pub(crate) transcript_column: u16,
    pub(crate) trace_vertical: u16,
    pub(crate) trace_horizontal: u16,
    pub(crate) changes: u16,
}

impl Default for PaneSplits {
    fn default() -> Self {
        Self {
            main: 330,
            wide_main: 250,
            cells_transcript: 600,
            transcript_column: 600,
            trace_vertical: 500,
            trace_horizontal: 500,
            changes: 650,
        }
    }
}

impl PaneDivider {
    /// Whether it stands upright: dragged to the left and right.
    pub(crate) const fn is_vertical(self) -> bool {
        matches!(
            self,
            Self::Main | Self::WideMain | Self::TranscriptColumn | Self::TraceVertical
        )
    }
}

impl PaneSplits {
    /// Puts a divider where a pointer is, within the area it divides.
    pub(crate) fn drag_divider(&mut self, divider: PaneDivider, area: Rect, column: u16, row: u16) {
        let (at, length) = if divider.is_vertical() {
            (column.saturating_sub(area.x), area.width)
        } else {
            (row.saturating_sub(area.y), area.height)
        };
        let length = u32::from(length.max(1));
        let part = (u32::from(at) * 1000 + length / 2) / length;
        let part = u16::try_from(part.clamp(100, 900)).unwrap_or(500);
        match divider {
            PaneDivider::Main => self.main = part,
            PaneDivider::WideMain => self.wide_main = part,
            PaneDivider::CellsTranscript => self.cells_transcript = part,
            PaneDivider::TranscriptColumn => self.transcript_column = part,
            PaneDivider::TraceVertical => self.trace_vertical = part,
            PaneDivider::TraceHorizontal => self.trace_horizontal = part,
            PaneDivider::Changes => self.changes = part,
        }
    }
}

/// What stands where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScreenLayout {
    /// Too small for anything but a polite line.
    pub(crate) too_small: bool,
    /// One row: what is open, counts, cost, time left.
    pub(crate) header: Rect,
    /// Panes with their outer areas (borders included), in drawing order.
    pub(crate) panes: Vec<(Pane, Rect)>,
    /// One row of tabs, where not all panes are shown; empty else.
    pub(crate) tabs: Rect,
    /// The turn strip; empty where there is no room.
    pub(crate) turn_strip: Rect,
    /// Diagnostics of a broken save; empty if there are none.
    pub(crate) problems: Rect,
    /// The replay's bar; empty if none plays.
    pub(crate) replay: Rect,
    /// One row: the tour, where there is room for one of its own; empty else.
    pub(crate) tour: Rect,
    /// One row: hints, or the typed line.
    pub(crate) footer: Rect,
    /// Dividers that can be dragged: where to take hold of them, and the areas they divide.
    pub(crate) dividers: Vec<(PaneDivider, Rect, Rect)>,
}

/// What the layout depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayoutParams {
    pub(crate) size: Size,
    pub(crate) focus: Pane,
    /// The pane shown beside (or instead of) the cells where only one is.
    pub(crate) tab_pane: Pane,
    pub(crate) zoomed: bool,
    pub(crate) splits: PaneSplits,
    /// Rows of diagnostics wanted.
    pub(crate) problems: u16,
    pub(crate) replay: bool,
    /// Whether the tour is on.
    pub(crate) tour: bool,
    /// Whether there is anything to show in the changes pane.
    pub(crate) changes: bool,
    /// Nothing is judged yet: the transcript has the room, and no empty trace.
    pub(crate) hide_trace: bool,
}

impl ScreenLayout {
    /// The layout for a wish. Pure.
    pub(crate) fn from_params(wish: &LayoutParams) -> Self {
        layout::compute_layout(wish)
    }

    /// The divider at a position, with the area it divides.
    pub(crate) fn divider_at(&self, column: u16, row: u16) -> Option<(PaneDivider, Rect)> {
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
    pub(crate) fn pane_area(&self, pane: Pane) -> Option<Rect> {
        self.panes
            .iter()
            .find(|(p, _)| *p == pane)
            .map(|(_, area)| *area)
    }

    /// The room for text inside a pane's border; 0×0 if it is not shown.
    pub(crate) fn inner_size(&self, pane: Pane) -> Size {
        self.pane_area(pane).map_or(Size::default(), |area| {
            let inside = Rect {
                width: area.width.saturating_sub(2),
                height: area.height.saturating_sub(2),
                ..area
            };
            pane.pad_area(inside).as_size()
        })
    }
}
