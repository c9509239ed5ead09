//! Overlays: opening, answering, closing.

use crate::run::Preview;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::cells::RowId;
use crate::tui::model::overlay::AtHand;
use crate::tui::model::runs::Ticket;

/// What an order would take is known: ask if it costs, else start it.
pub(super) fn previewed(
    _model: &mut Model,
    _ticket: Ticket,
    _preview: Result<Preview, String>,
) -> Vec<Effect> {
    Vec::new()
}

/// Judges at hand are known.
pub(super) fn judges_found(_model: &mut Model, _row: RowId, _judges: Vec<AtHand>) -> Vec<Effect> {
    Vec::new()
}
