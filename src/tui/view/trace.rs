//! The four panes of a trace, and the strip of its turns.

use ratatui::layout::Rect;

use crate::tui::model::Model;
use crate::tui::model::pane::Pane;
use crate::tui::widget::canvas::Canvas;

/// Draws one of the four.
pub(super) fn draw(_canvas: &mut Canvas<'_>, _pane: Pane, _area: Rect, _model: &Model) {}

/// Draws the strip.
pub(super) fn strip(_canvas: &mut Canvas<'_>, _area: Rect, _model: &Model) {}
