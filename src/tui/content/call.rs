//! The tool call of the shown step: its arguments as they form, then raw and canonical, what was repaired or refused.

use crate::tui::model::Model;
use crate::tui::widget::flow::Source;

/// The pane's text.
pub(super) fn source(_model: &Model) -> Box<dyn Source + '_> {
    Box::new(Vec::new())
}
