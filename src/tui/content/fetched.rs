//! What the tool answered: status, hops, addresses, bytes, truncation, and the text.

use crate::tui::model::Model;
use crate::tui::widget::flow::Source;

/// The pane's text.
pub(super) fn source(_model: &Model) -> Box<dyn Source + '_> {
    Box::new(Vec::new())
}
