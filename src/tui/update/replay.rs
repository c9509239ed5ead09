//! A recording that plays.

use std::path::PathBuf;
use std::sync::Arc;

use crate::event::RunEvent;
use crate::model::RunId;
use crate::tui::effect::Effect;
use crate::tui::model::Model;

/// A recording is here.
pub(super) fn read(
    _model: &mut Model,
    _run: RunId,
    _dir: PathBuf,
    _log: Result<Arc<Vec<RunEvent>>, String>,
    _warnings: Vec<String>,
) -> Vec<Effect> {
    Vec::new()
}

/// A moment came: what is due is shown.
pub(super) fn time_passed(_model: &mut Model) -> Vec<Effect> {
    Vec::new()
}
