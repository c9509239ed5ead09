//! The tour ticks itself off.

use crate::tui::model::Model;

/// After every update: which step is done now.
pub(super) fn tick(_model: &mut Model) {}
