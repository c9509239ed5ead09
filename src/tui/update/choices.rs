//! Remembers the choices on the screen for the next start.

use crate::tui::effect::Effect;
use crate::tui::state::App;

/// Orders the write of choices that changed since the last write. Called after every update.
pub(super) fn remember_changes(app: &mut App) -> Option<Effect> {
    let saved = app.ui.saved_choices.as_ref()?;
    let changes = app.ui.choices.changes_since(saved)?;
    app.ui.saved_choices = Some(app.ui.choices.clone());
    Some(Effect::RememberChoices(changes))
}
