//! Focus, zoom, moving and scrolling.

use crate::tui::effect::Effect;
use crate::tui::model::Model;

/// The terminal has another size: everything flows anew, the focused item stays in view.
pub(super) fn resized(_model: &mut Model, _width: u16, _height: u16) -> Vec<Effect> {
    Vec::new()
}

/// A moment came: toasts end, marks turn.
pub(super) fn time_passed(_model: &mut Model) {}
