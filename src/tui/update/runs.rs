//! Runs: ordered, fed, ended. Live and replayed events take the same way in.

use std::path::PathBuf;
use std::sync::Arc;

use crate::event::{Kind, RunEvent};
use crate::model::RunId;
use crate::record::Board;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::cells::Flip;
use crate::tui::model::desk::Desk;
use crate::tui::model::runs::Ticket;

/// More of the outline.
pub(super) fn outlined(_model: &mut Model, _generation: u64, _facts: Vec<Kind>) -> Vec<Effect> {
    Vec::new()
}

/// All of the outline.
pub(super) fn outline_ended(
    _model: &mut Model,
    _generation: u64,
    _problem: Option<String>,
) -> Vec<Effect> {
    Vec::new()
}

/// The board of past runs.
pub(super) fn board_read(
    _model: &mut Model,
    _generation: u64,
    _board: &Arc<Board>,
    _problems: Vec<String>,
) -> Vec<Effect> {
    Vec::new()
}

/// A run has an id.
pub(super) fn started(
    _model: &mut Model,
    _ticket: Ticket,
    _run: RunId,
    _dir: PathBuf,
) -> Vec<Effect> {
    Vec::new()
}

/// A run could not begin.
pub(super) fn refused(_model: &mut Model, _ticket: Ticket, _why: String) -> Vec<Effect> {
    Vec::new()
}

/// More of a live run.
pub(super) fn events(_model: &mut Model, _ticket: Ticket, _events: &[RunEvent]) -> Vec<Effect> {
    Vec::new()
}

/// A live run ended.
pub(super) fn ended(_model: &mut Model, _ticket: Ticket, _problem: Option<String>) -> Vec<Effect> {
    Vec::new()
}

/// Feeds events to a desk; the flips they made. The one way in, for live and replayed runs.
pub(super) fn feed(_desk: &mut Desk, _ticket: Ticket, _events: &[RunEvent]) -> Vec<Flip> {
    Vec::new()
}
