//! The rendered prompt of the shown turn: what was sent, readable; raw on request.

use crate::tui::model::Model;
use crate::tui::widget::flow::Source;

/// The pane's text.
pub(super) fn source(_model: &Model) -> Box<dyn Source + '_> {
    Box::new(Vec::new())
}
