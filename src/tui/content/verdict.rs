//! What was decided: the reasoning as it streams, then the verdict with its citations, and the human's label beside it.

use crate::tui::model::Model;
use crate::tui::widget::flow::Source;

/// The pane's text.
pub(super) fn source(_model: &Model) -> Box<dyn Source + '_> {
    Box::new(Vec::new())
}
