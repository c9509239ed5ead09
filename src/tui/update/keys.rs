//! Keys and pasted texts. They go to the line in the footer first, then to the topmost overlay, then to the command
//! table.
//!
//! A key without an effect shows the reason.

use super::commands::run_command;
use super::notices::push_info;
use super::{footer_input, overlay_input, review};
use crate::tui::command::CommandScope;
use crate::tui::effect::Effect;
use crate::tui::key_chord::KeyChord;
use crate::tui::keymap::{self, KeyMeaning};
use crate::tui::state::App;

/// The largest number of places that the answer to a key without a command names.
const MAX_NAMED_PLACES: usize = 2;

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
            let text = explain_unbound_keys(app, &pressed);
            push_info(app, text)
        }
    }
}

/// Explains keys without a command: where they have one, with the key that leads there.
fn explain_unbound_keys(app: &App, pressed: &[KeyChord]) -> String {
    let keys: Vec<String> = pressed.iter().map(KeyChord::to_string).collect();
    let keys = keys.join(" ");
    // Other screens hide the cells and have other keys for the way back.
    let shows_cells = !app.shows_review() && !app.shows_progress() && app.replay.is_none();
    let places: Vec<String> = keymap::find_scopes(pressed)
        .into_iter()
        .filter_map(|scope| Some(format!("{} ({})", scope.as_str(), find_way(scope, app)?)))
        .take(MAX_NAMED_PLACES)
        .collect();
    if places.is_empty() || !shows_cells {
        return format!("`{keys}` does nothing here: ? lists the keys");
    }
    format!("`{keys}` does nothing here, but in: {}", places.join(", "))
}

/// Returns the key that leads from the cells to a part of the screen. `None` for a part inside another one.
fn find_way(scope: CommandScope, app: &App) -> Option<&'static str> {
    match scope {
        CommandScope::Cells => Some("1"),
        CommandScope::Verdicts => Some("5"),
        CommandScope::Transcript => Some("6"),
        CommandScope::Replay => Some("v"),
        CommandScope::Trace => Some("enter on a judged cell"),
        CommandScope::Paused if !app.list_paused().is_empty() => Some("enter on a paused cell"),
        CommandScope::Progress => Some("H"),
        CommandScope::Review => Some("V"),
        CommandScope::Global
        | CommandScope::Paused
        | CommandScope::Modes
        | CommandScope::Answers
        | CommandScope::Drafts
        | CommandScope::Counts => None,
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
