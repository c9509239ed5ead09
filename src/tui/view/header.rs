//! The first row: what is open, what runs, counts, cost, time left.

use crate::tui::model::Model;
use crate::tui::model::pane::Layout;
use crate::tui::widget::canvas::Canvas;

/// Draws it.
pub(super) fn draw(_canvas: &mut Canvas<'_>, _layout: &Layout, _model: &Model) {}
