//! The short texts that a command shows instead of an effect, or next to it.

use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;

/// Tells something, and that is all.
pub(super) fn push_info(app: &mut App, text: impl Into<String>) -> Vec<Effect> {
    app.notices.push(app.now, NoticeLevel::Info, text);
    Vec::new()
}
