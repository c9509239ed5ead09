//! The panes and their layout.

mod layout;
#[cfg(test)]
mod tests;

use ratatui::layout::{Position, Rect, Size};

/// A pane. Its number is its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Pane {
    /// 1: the list of cells.
    #[default]
    Cells,
    /// 2: the rendered prompt of the shown turn.
    Prompt,
    /// 3: the tool call of the shown turn.
    FunctionCall,
    /// 4: the tool response.
    FetchedContent,
    /// 5: the verdict.
    Verdict,
    /// 6: the judged transcript.
    Transcript,
    /// 7: the changes of the last save or run.
    Changes,
    /// The steps of the trace screen.
    Steps,
    /// The details of the selected step on the trace screen.
    Details,
}

impl Pane {
    /// The panes of the trace screen in the order of `tab`.
    pub(crate) const TRACE_SCREEN: [Self; 3] = [Self::Steps, Self::Details, Self::Transcript];

    /// The panes of the home screen in the order of their numbers.
    pub(crate) const ALL: [Self; 7] = [
        Self::Cells,
        Self::Prompt,
        Self::FunctionCall,
        Self::FetchedContent,
        Self::Verdict,
        Self::Transcript,
        Self::Changes,
    ];

    /// Returns the title.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Prompt => "prompt",
            Self::FunctionCall => "function call",
            Self::FetchedContent => "fetched content",
            Self::Verdict => "verdict",
            Self::Transcript => "transcript",
            Self::Changes => "changes",
            Self::Steps => "trace",
            Self::Details => "step",
        }
    }

    /// Returns the title for narrow places.
    pub(crate) const fn short_title(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Prompt => "prompt",
            Self::FunctionCall => "call",
            Self::FetchedContent => "page",
            Self::Verdict => "verdict",
            Self::Transcript => "talk",
            Self::Changes => "diff",
            Self::Steps => "trace",
            Self::Details => "step",
        }
    }

    /// Returns the number, from 1.
    pub(crate) const fn number(self) -> usize {
        self as usize + 1
    }

    /// Returns true if the pane shows a step of the focused trace; the turn strip belongs to it.
    pub(crate) const fn is_trace_pane(self) -> bool {
        matches!(
            self,
            Self::Prompt | Self::FunctionCall | Self::FetchedContent | Self::Verdict
        )
    }
}

impl Pane {
    /// Returns the area of the text inside the border. A wide pane keeps one column free at both sides.
    pub(crate) fn pad_area(self, inside: Rect) -> Rect {
        // A narrow pane needs its columns for text.
        const ROOM: u16 = 24;
        let is_padded = self.is_trace_pane() || matches!(self, Self::Steps | Self::Details);
        if !is_padded || inside.width < ROOM {
            return inside;
        }
        Rect {
            x: inside.x + 1,
            width: inside.width - 2,
            ..inside
        }
    }
}

/// The panes that have something to show. The cells are always shown, and the changes if there are any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FilledPanes {
    pub(crate) prompt: bool,
    pub(crate) function_call: bool,
    pub(crate) fetched_content: bool,
    pub(crate) verdict: bool,
    pub(crate) transcript: bool,
    /// True if the turn strip has a cell to name.
    pub(crate) turn_strip: bool,
    /// True if the trace screen is visible.
    pub(crate) trace_screen: bool,
}

impl FilledPanes {
    /// All panes.
    #[cfg(test)]
    pub(crate) const ALL: Self = Self {
        prompt: true,
        function_call: true,
        fetched_content: true,
        verdict: true,
        transcript: true,
        turn_strip: true,
        trace_screen: false,
    };
    /// The panes of a transcript without a rubric.
    pub(crate) const TRANSCRIPT: Self = Self {
        prompt: false,
        function_call: false,
        fetched_content: false,
        verdict: false,
        transcript: true,
        turn_strip: false,
        trace_screen: false,
    };

    /// Returns true if the pane has something to show.
    pub(crate) const fn contains(self, pane: Pane) -> bool {
        match pane {
            Pane::Cells | Pane::Changes => true,
            Pane::Prompt => self.prompt,
            Pane::FunctionCall => self.function_call,
            Pane::FetchedContent => self.fetched_content,
            Pane::Verdict => self.verdict,
            Pane::Transcript => self.transcript,
            Pane::Steps | Pane::Details => self.trace_screen,
        }
    }

    /// Returns true if one of the panes of a judge trace has something to show.
    pub(crate) const fn has_trace(self) -> bool {
        self.prompt || self.function_call || self.fetched_content || self.verdict
    }

    /// Returns the pane, or the most useful one that has something to show.
    pub(crate) const fn or_filled(self, pane: Pane) -> Option<Pane> {
        if self.contains(pane) {
            Some(pane)
        } else if self.verdict {
            Some(Pane::Verdict)
        } else if self.transcript {
            Some(Pane::Transcript)
        } else {
            None
        }
    }
}

/// A border that can be dragged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PaneDivider {
    /// Between the cells and the trace.
    Main,
    /// Between the cells and the trace at 180 columns and more, where the transcript has its own column.
    WideMain,
    /// Between the cells and the transcript under them.
    CellsTranscript,
    /// Between the trace and the transcript's column.
    TranscriptColumn,
    /// The vertical one between the four panes of a trace.
    TraceVertical,
    /// The horizontal one between the four panes of a trace.
    TraceHorizontal,
    /// Above the changes.
    Changes,
}

/// The positions of the dividers in thousandths of the divided area.
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

impl PaneSplits {
    /// The smallest and the largest part. A border can't hide a pane: each side keeps at least a tenth.
    pub(crate) const LIMITS: std::ops::RangeInclusive<u16> = 100..=900;

    /// Returns every part with its stable name.
    pub(crate) fn named_parts_mut(&mut self) -> [(&'static str, &mut u16); 7] {
        [
            ("main", &mut self.main),
            ("wide_main", &mut self.wide_main),
            ("cells_transcript", &mut self.cells_transcript),
            ("transcript_column", &mut self.transcript_column),
            ("trace_vertical", &mut self.trace_vertical),
            ("trace_horizontal", &mut self.trace_horizontal),
            ("changes", &mut self.changes),
        ]
    }
}

impl PaneDivider {
    /// Returns true if the divider is vertical, so that it is dragged left and right.
    pub(crate) const fn is_vertical(self) -> bool {
        matches!(
            self,
            Self::Main | Self::WideMain | Self::TranscriptColumn | Self::TraceVertical
        )
    }
}

impl PaneSplits {
    /// Moves a divider to the pointer within the area it divides.
    pub(crate) fn drag_divider(&mut self, divider: PaneDivider, area: Rect, column: u16, row: u16) {
        let (at, length) = if divider.is_vertical() {
            (column.saturating_sub(area.x), area.width)
        } else {
            (row.saturating_sub(area.y), area.height)
        };
        let length = u32::from(length.max(1));
        // Half of the length rounds to the nearest thousandth.
        let part = (u32::from(at) * 1000 + length / 2) / length;
        let part = u16::try_from(part).unwrap_or(u16::MAX);
        let part = part.clamp(*Self::LIMITS.start(), *Self::LIMITS.end());
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

/// A divider of the current layout with its areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DividerArea {
    pub(crate) divider: PaneDivider,
    /// The area where a drag can start.
    pub(crate) grab_area: Rect,
    /// The area that the divider divides.
    pub(crate) divided_area: Rect,
}

/// The area of a visible pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaneArea {
    pub(crate) pane: Pane,
    /// The outer area, borders included.
    pub(crate) area: Rect,
}

/// The areas of all parts of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScreenLayout {
    /// True if the screen is too small; then it shows one line that asks for more room.
    pub(crate) too_small: bool,
    /// One row: the opened item, counts, cost, time left.
    pub(crate) header: Rect,
    /// The visible panes in drawing order.
    pub(crate) panes: Vec<PaneArea>,
    /// One row of tabs if not all panes are visible; otherwise empty.
    pub(crate) tabs: Rect,
    /// The turn strip; empty if there is no room.
    pub(crate) turn_strip: Rect,
    /// Diagnostics of a broken save; empty if there are none.
    pub(crate) problems: Rect,
    /// The replay's bar; empty without a replay.
    pub(crate) replay: Rect,
    /// One row for the tour; empty if the screen is too small or the tour is off.
    pub(crate) tour: Rect,
    /// One row: hints, or the open line.
    pub(crate) footer: Rect,
    pub(crate) dividers: Vec<DividerArea>,
    /// The panes that have something to show, visible or not.
    pub(crate) filled: FilledPanes,
    /// True if the transcript and the criteria have the screen.
    pub(crate) labelling: bool,
}

/// The inputs of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayoutParams {
    pub(crate) size: Size,
    pub(crate) focus: Pane,
    /// The pane shown next to the cells, or instead of them, if there is room for one.
    pub(crate) tab_pane: Pane,
    pub(crate) zoomed: bool,
    pub(crate) splits: PaneSplits,
    /// The number of rows for diagnostics.
    pub(crate) problems: u16,
    pub(crate) replay: bool,
    /// True if the tour is on.
    pub(crate) tour: bool,
    /// True if the changes pane has content.
    pub(crate) changes: bool,
    /// The panes that have something to show; the others get no room.
    pub(crate) filled: FilledPanes,
    /// True if the transcript and the criteria get the screen.
    pub(crate) labelling: bool,
    /// The number of rows of the question that the person labels.
    pub(crate) question_rows: u16,
    /// True if the trace screen shows two traces side by side.
    pub(crate) compares_traces: bool,
}

impl ScreenLayout {
    /// Computes the layout. Pure.
    pub(crate) fn from_params(params: &LayoutParams) -> Self {
        layout::compute_layout(params)
    }

    /// Returns a layout with header and footer only, for a screen that has its own parts between them.
    pub(crate) fn without_panes(size: Size) -> Self {
        layout::compute_bars(size)
    }

    /// Returns the area between header and footer.
    pub(crate) fn middle(&self) -> Rect {
        let top = self.header.bottom();
        Rect {
            y: top,
            height: self.footer.y.saturating_sub(top),
            ..self.header
        }
    }

    /// Returns the divider at a position.
    pub(crate) fn divider_at(&self, column: u16, row: u16) -> Option<&DividerArea> {
        let position = Position::new(column, row);
        self.dividers
            .iter()
            .find(|one| one.grab_area.contains(position))
    }

    /// Returns the pane at a position.
    pub(crate) fn pane_at(&self, column: u16, row: u16) -> Option<Pane> {
        let position = Position::new(column, row);
        self.panes
            .iter()
            // The last drawn pane is on top.
            .rev()
            .find(|shown| shown.area.contains(position))
            .map(|shown| shown.pane)
    }

    /// Returns the outer area of a pane, if it is visible.
    pub(crate) fn pane_area(&self, pane: Pane) -> Option<Rect> {
        self.panes
            .iter()
            .find(|shown| shown.pane == pane)
            .map(|shown| shown.area)
    }

    /// Returns the size of the text inside a pane; 0×0 if it is hidden.
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
