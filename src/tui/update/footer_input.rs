//! The line that is typed in the footer: a filter of the cells, applied with every key, or a search in a text.

use crossterm::event::KeyCode;

use super::panes;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::key_chord::KeyChord;
use crate::tui::state::pane::Pane;
use crate::tui::state::{App, FooterInput};
use crate::tui::widget::flow::TextSearch;
use crate::tui::widget::line_input::LineInput;

/// `/`: opens a filter in the cells pane and a search in any other pane.
pub(super) fn open_input(app: &mut App) -> Vec<Effect> {
    let pane = app.ui.focus;
    app.ui.footer_input = Some(if pane == Pane::Cells {
        let before = app.session().cells.filter.clone();
        FooterInput::Filter {
            input: LineInput::new(before.clone()),
            previous: before,
            problem: None,
        }
    } else {
        // The search before is kept, so that esc can restore it.
        let before = content::pane_scroll(app, pane).and_then(|scroll| scroll.search.clone());
        FooterInput::Search {
            input: LineInput::default(),
            pane,
            previous: before,
        }
    });
    Vec::new()
}

/// Handles a key.
pub(super) fn handle_key(app: &mut App, chord: KeyChord) -> Vec<Effect> {
    let cancel = chord.to_string() == "ctrl-c";
    match chord.code {
        KeyCode::Enter => accept_input(app),
        KeyCode::Esc => cancel_input(app),
        _ if cancel => cancel_input(app),
        _ => {
            let took = match &mut app.ui.footer_input {
                Some(FooterInput::Filter { input, .. } | FooterInput::Search { input, .. }) => {
                    input.handle_key(chord)
                }
                None => false,
            };
            if took {
                apply_input(app);
            }
            Vec::new()
        }
    }
}

/// Pastes a text into the line; returns false if no line is open.
pub(super) fn handle_paste(app: &mut App, text: &str) -> bool {
    match &mut app.ui.footer_input {
        Some(FooterInput::Filter { input, .. } | FooterInput::Search { input, .. }) => {
            input.paste(text);
        }
        None => return false,
    }
    apply_input(app);
    true
}

/// Applies the line to the screen at once.
fn apply_input(app: &mut App) {
    // Taken out, because applying it changes the app.
    let Some(mut typing) = app.ui.footer_input.take() else {
        return;
    };
    match &mut typing {
        FooterInput::Filter { input, problem, .. } => {
            // An invalid filter keeps the rows and shows its problem while the user types.
            *problem = app.session_mut().cells.set_filter(&input.text).err();
        }
        FooterInput::Search { input, pane, .. } => highlight_matches(app, *pane, &input.text),
    }
    app.ui.footer_input = Some(typing);
}

fn highlight_matches(app: &mut App, pane: Pane, needle: &str) {
    if let Some(scroll) = content::pane_scroll_mut(app, pane) {
        scroll.search = (!needle.is_empty()).then(|| TextSearch {
            needle: needle.to_owned(),
            current_match: None,
        });
    }
}

/// `enter`: keeps the filter, or goes to the first match after the visible position.
fn accept_input(app: &mut App) -> Vec<Effect> {
    match app.ui.footer_input.take() {
        Some(FooterInput::Filter {
            problem: Some(why),
            input,
            previous: before,
        }) => {
            // An invalid filter stays open, so that the user can fix it.
            app.ui.footer_input = Some(FooterInput::Filter {
                input,
                previous: before,
                problem: Some(why),
            });
            Vec::new()
        }
        Some(FooterInput::Search { input, pane, .. }) if !input.text.is_empty() => {
            panes::find_next_match(app, pane, true)
        }
        _ => Vec::new(),
    }
}

/// `esc`: restores the filter or search from before.
fn cancel_input(app: &mut App) -> Vec<Effect> {
    match app.ui.footer_input.take() {
        Some(FooterInput::Filter {
            previous: before, ..
        }) => {
            // The old filter was valid, so it parses again.
            let _was_good = app.session_mut().cells.set_filter(&before);
        }
        Some(FooterInput::Search {
            pane,
            previous: before,
            ..
        }) => {
            if let Some(scroll) = content::pane_scroll_mut(app, pane) {
                scroll.search = before;
            }
        }
        None => {}
    }
    Vec::new()
}
