//! Keys → commands → what they do.

use crate::tui::effect::Effect;
use crate::tui::keymap::Chord;
use crate::tui::model::Model;

/// A key: the line being typed takes it, else the topmost overlay, else the command table.
pub(super) fn pressed(_model: &mut Model, _chord: Chord) -> Vec<Effect> {
    Vec::new()
}

/// A pasted text: into the line being typed, and nowhere else.
pub(super) fn pasted(_model: &mut Model, _text: &str) -> Vec<Effect> {
    Vec::new()
}

/// A signal to end.
pub(super) fn signalled(_model: &mut Model, _number: i32) -> Vec<Effect> {
    Vec::new()
}
