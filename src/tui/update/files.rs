//! What is open: a workspace, a bare file, a recording.

use std::sync::Arc;

use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::workspace::Workspace;

/// What is asked for when the workbench opens, or opens something else.
pub(super) fn opened(_model: &mut Model) -> Vec<Effect> {
    Vec::new()
}

/// A workspace was made around a bare file.
pub(super) fn made(_model: &mut Model, _made: Result<Arc<Workspace>, String>) -> Vec<Effect> {
    Vec::new()
}
