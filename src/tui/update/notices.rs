//! Notices that a command shows instead of an effect.

use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;

/// Shows the answer to a key that wrote files: the notice of the reload is added to it. Returns no effects.
pub(super) fn push_written(app: &mut App, text: impl Into<String>) -> Vec<Effect> {
    app.notices.push_written(app.now, NoticeLevel::Info, text);
    Vec::new()
}

/// Shows a notice. Returns no effects, so that a command can end with it.
pub(super) fn push_info(app: &mut App, text: impl Into<String>) -> Vec<Effect> {
    app.notices.push(app.now, NoticeLevel::Info, text);
    Vec::new()
}
