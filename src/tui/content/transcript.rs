//! The judged transcript: messages by number, calls joined with their results.

use crate::tui::model::Model;
use crate::tui::widget::flow::Source;

/// The pane's text.
pub(super) fn source(_model: &Model) -> Box<dyn Source + '_> {
    Box::new(Vec::new())
}
