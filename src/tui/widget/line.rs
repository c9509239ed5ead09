//! One row of text made of pieces, each with a role.

use std::borrow::Cow;

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::theme::Role;

/// A row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row<'a>(pub(crate) Vec<(Cow<'a, str>, Role)>);

impl<'a> Row<'a> {
    /// Adds a piece.
    #[must_use]
    pub(crate) fn with(mut self, text: impl Into<Cow<'a, str>>, role: Role) -> Self {
        self.0.push((text.into(), role));
        self
    }

    /// Columns it takes, marks for hostile characters included.
    pub(crate) fn width(&self) -> usize {
        0
    }
}

/// Draws a row from the left edge, cut with an ellipsis; `over` is laid over every piece (selection). Returns the columns used.
pub(crate) fn draw(
    _canvas: &mut Canvas<'_>,
    _area: Rect,
    _row: &Row<'_>,
    _over: Option<Role>,
) -> u16 {
    0
}
