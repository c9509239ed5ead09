//! The last row: the typed line, the toast, the tour, or the keys that work now. And the tabs.

use crate::tui::model::Model;
use crate::tui::model::pane::Layout;
use crate::tui::widget::canvas::Canvas;

/// Draws it.
pub(super) fn draw(_canvas: &mut Canvas<'_>, _layout: &Layout, _model: &Model) {}
