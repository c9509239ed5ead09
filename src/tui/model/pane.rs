//! The panes, and where they stand at each size.

use ratatui::layout::{Rect, Size};

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

    /// From 1.
    pub(crate) const fn number(self) -> usize {
        self as usize + 1
    }
}

/// A border that can be dragged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Divider {
    /// Between the cells' column and the trace.
    Main,
    /// Between the cells and the transcript under them (or, at 200 columns, between trace and transcript).
    Left,
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
    pub(crate) left: u16,
    pub(crate) upright: u16,
    pub(crate) level: u16,
    pub(crate) changes: u16,
}

impl Default for Splits {
    fn default() -> Self {
        Self {
            main: 330,
            left: 600,
            upright: 500,
            level: 500,
            changes: 650,
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
    /// One row: hints, or the typed line.
    pub(crate) footer: Rect,
    /// Dividers that can be dragged, with the areas they divide.
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
    /// Whether there is anything to show in the changes pane.
    pub(crate) changes: bool,
}

impl Layout {
    /// The layout for a wish. Pure.
    pub(crate) fn of(_wish: &Wish) -> Self {
        Self::default()
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
            Size::new(area.width.saturating_sub(2), area.height.saturating_sub(2))
        })
    }
}
