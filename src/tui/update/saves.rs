//! A save: the rubric is swapped, what it touched is judged again, what flipped is told.

use std::path::PathBuf;
use std::sync::Arc;

use crate::diag::Diagnostic;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::workspace::Workspace;

/// Everything loads again.
pub(super) fn reloaded(
    _model: &mut Model,
    _workspace: Arc<Workspace>,
    _changed: &[PathBuf],
) -> Vec<Effect> {
    Vec::new()
}

/// Something does not load: the last good state stays.
pub(super) fn failed(_model: &mut Model, _problems: Vec<Diagnostic>) -> Vec<Effect> {
    Vec::new()
}

/// A moment came: judge cells that waited for quiet start.
pub(super) fn time_passed(_model: &mut Model) -> Vec<Effect> {
    Vec::new()
}

/// The editor was left.
pub(super) fn editor_closed(_model: &mut Model, _how: Result<(), String>) -> Vec<Effect> {
    Vec::new()
}

/// `A`: whether a save judges again.
pub(super) fn toggle_auto(_model: &mut Model) -> Vec<Effect> {
    Vec::new()
}
