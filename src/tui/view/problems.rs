//! What does not load, beside the last good state.

use ratatui::layout::Rect;

use crate::tui::model::Model;
use crate::tui::widget::canvas::Canvas;

/// Draws it.
pub(super) fn draw(_canvas: &mut Canvas<'_>, _area: Rect, _model: &Model) {}
