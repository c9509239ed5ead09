//! Keys and pasted texts. They go to the line in the footer first, then to the topmost overlay, then to the command
//! table.
//!
//! A key without an effect shows the reason.

use super::commands::run_command;
use super::notices::push_info;
use super::{footer_input, overlay_input, review};
use crate::tui::effect::Effect;
use crate::tui::key_chord::KeyChord;
use crate::tui::keymap::{self, KeyMeaning};
use crate::tui::state::App;

/// Handles a key.
pub(super) fn handle_key(app: &mut App, chord: KeyChord) -> Vec<Effect> {
    // A key press means that the user has seen the notice.
    app.notices.dismiss();
    app.notices.end_written();
    // Open inputs get the key first: there, letters are text and no commands.
    // During a write, keys wait: they are about the next transcript.
    if app.shows_review() && app.review.writing.is_some() && chord.to_string() != "ctrl-c" {
        app.review.held.push_back(chord);
        return Vec::new();
    }
    if app.ui.footer_input.is_some() {
        return footer_input::handle_key(app, chord);
    }
    if !app.overlays.is_empty() {
        return overlay_input::handle_key(app, chord);
    }
    // Esc cancels an incomplete key sequence. It does not run the command of a lone esc.
    if !app.ui.pending_keys.is_empty() && chord == KeyChord::plain(crossterm::event::KeyCode::Esc) {
        app.ui.pending_keys.clear();
        return Vec::new();
    }
    app.ui.pending_keys.push(chord);
    let pressed = std::mem::take(&mut app.ui.pending_keys);
    match keymap::resolve_keys(keymap::active_scopes(app), &pressed) {
        KeyMeaning::Command(command) => run_command(app, command),
        KeyMeaning::Prefix => {
            // The waiting time of a sequence begins with its first key.
            if pressed.len() == 1 {
                app.ui.pending_since = app.now;
            }
            app.ui.pending_keys = pressed;
            Vec::new()
        }
        KeyMeaning::Nothing => {
            let keys: Vec<String> = pressed.iter().map(KeyChord::to_string).collect();
            let keys = keys.join(" ");
            push_info(app, format!("`{keys}` does nothing here: ? lists the keys"))
        }
    }
}

/// Handles the keys that waited for a write, until one of them writes again.
pub(super) fn handle_held(app: &mut App) -> Vec<Effect> {
    let mut effects = Vec::new();
    while app.review.writing.is_none()
        && let Some(chord) = app.review.held.pop_front()
    {
        effects.extend(handle_key(app, chord));
        effects.extend(review::request_shown(app));
    }
    effects
}

/// Pastes a text into the line that is being typed. Anywhere else it has no effect.
pub(super) fn handle_paste(app: &mut App, text: &str) -> Vec<Effect> {
    if footer_input::handle_paste(app, text) || overlay_input::handle_paste(app, text) {
        return Vec::new();
    }
    push_info(app, "pasted text runs nothing: / and ? take it as words")
}

#[cfg(test)]
mod tests;
