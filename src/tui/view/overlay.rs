//! What stands on top.

use crate::tui::model::Model;
use crate::tui::widget::canvas::Canvas;

/// Draws the overlays, the topmost last.
pub(super) fn draw(_canvas: &mut Canvas<'_>, _model: &Model) {}
