//! The line that is typed in the footer: a filter of the cells, applied with every key, a search in a text, or a text
//! about a label.

use crossterm::event::KeyCode;

use super::{follow_ups, label_notes, panes, review, review_write, step_edits};
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::key_chord::KeyChord;
use crate::tui::state::cells::completion::FilterCompletion;
use crate::tui::state::pane::Pane;
use crate::tui::state::review::ReviewText;
use crate::tui::state::{App, FooterInput};
use crate::tui::widget::flow::TextSearch;
use crate::tui::widget::line_input::LineInput;

/// `/`: opens a filter in the cells pane and a search in any other pane.
pub(super) fn open_input(app: &mut App) -> Vec<Effect> {
    let pane = app.ui.focus;
    app.ui.footer_input = Some(if pane == Pane::Cells {
        let before = app.session().cells.filter.clone();
        FooterInput::Filter {
            completion: app.session().cells.complete_filter(&before, before.len()),
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

/// `/` where nothing can be searched: opens a line that takes the typed text and does nothing with it.
pub(super) fn open_refused(app: &mut App, reason: &'static str) -> Vec<Effect> {
    app.ui.footer_input = Some(FooterInput::Refused {
        input: LineInput::default(),
        reason,
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
        KeyCode::Up | KeyCode::Down if is_review_note(app) => {
            review::move_message(app, if chord.code == KeyCode::Up { -1 } else { 1 });
            Vec::new()
        }
        KeyCode::Tab | KeyCode::Down => choose_offer(app, |list| list.choose_next(true)),
        KeyCode::BackTab | KeyCode::Up => choose_offer(app, |list| list.choose_next(false)),
        _ => {
            let took = match &mut app.ui.footer_input {
                Some(typing) => typing.input_mut().handle_key(chord),
                None => false,
            };
            if took {
                apply_input(app);
            }
            Vec::new()
        }
    }
}

/// Returns true while a note on a message is typed.
fn is_review_note(app: &App) -> bool {
    let input = app.ui.footer_input.as_ref();
    input.is_some_and(|input| {
        matches!(
            input,
            FooterInput::Review {
                purpose: ReviewText::Note(_),
                ..
            }
        )
    })
}

/// Chooses an offer of the filter's list, and applies the filter with it.
fn choose_offer(
    app: &mut App,
    choose: impl FnOnce(&mut FilterCompletion) -> Option<(String, usize)>,
) -> Vec<Effect> {
    // Taken out, because applying it changes the app.
    let Some(mut typing) = app.ui.footer_input.take() else {
        return Vec::new();
    };
    if let FooterInput::Filter {
        input,
        problem,
        completion,
        ..
    } = &mut typing
        && let Some((text, cursor)) = choose(completion)
    {
        *input = LineInput::new(text);
        input.cursor = cursor;
        let cells = &mut app.session_mut().cells;
        *problem = cells.set_filter(&input.text).err();
        // A list of one has no other choice, so the list continues with what can follow.
        if completion.offers.len() == 1 {
            *completion = cells.complete_filter(&input.text, input.cursor);
        }
    }
    app.ui.footer_input = Some(typing);
    Vec::new()
}

/// Chooses the offer that was clicked.
pub(super) fn click_offer(app: &mut App, at: usize) -> Vec<Effect> {
    choose_offer(app, |list| list.choose(at));
    // A click is a final choice.
    list_what_follows(app);
    Vec::new()
}

/// Lists what can follow the typed text.
fn list_what_follows(app: &mut App) {
    let completion = match &app.ui.footer_input {
        Some(FooterInput::Filter { input, .. }) => {
            let cells = &app.session().cells;
            cells.complete_filter(&input.text, input.cursor)
        }
        _ => return,
    };
    if let Some(FooterInput::Filter {
        completion: list, ..
    }) = &mut app.ui.footer_input
    {
        *list = completion;
    }
}

/// Pastes a text into the line; returns false if no line is open.
pub(super) fn handle_paste(app: &mut App, text: &str) -> bool {
    match &mut app.ui.footer_input {
        Some(typing) => typing.input_mut().paste(text),
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
        FooterInput::Filter {
            input,
            problem,
            completion,
            ..
        } => {
            let cells = &mut app.session_mut().cells;
            // An invalid filter keeps the rows and shows its problem while the user types.
            *problem = cells.set_filter(&input.text).err();
            *completion = cells.complete_filter(&input.text, input.cursor);
        }
        FooterInput::Search { input, pane, .. } => highlight_matches(app, *pane, &input.text),
        // These texts take effect with enter.
        FooterInput::Note { .. }
        | FooterInput::Clause { .. }
        | FooterInput::Review { .. }
        | FooterInput::FollowUp { .. }
        | FooterInput::Refused { .. } => {}
        // The reason was about the text before.
        FooterInput::StepEdit { problem, .. } => *problem = None,
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

/// `enter`: keeps the filter, or goes to the first match after the visible position. If a key was chosen from the list,
/// lists its values.
fn accept_input(app: &mut App) -> Vec<Effect> {
    if let Some(FooterInput::Filter { completion, .. }) = &app.ui.footer_input
        && completion.chosen_offer().is_some_and(|offer| offer.is_key)
    {
        list_what_follows(app);
        return Vec::new();
    }
    match app.ui.footer_input.take() {
        Some(FooterInput::Filter {
            problem: Some(why),
            input,
            previous: before,
            ..
        }) => {
            // An invalid filter stays open, so that the user can fix it. Without the list, the problem is visible.
            app.ui.footer_input = Some(FooterInput::Filter {
                input,
                previous: before,
                problem: Some(why),
                completion: FilterCompletion::default(),
            });
            Vec::new()
        }
        Some(FooterInput::Search { input, pane, .. }) if !input.text.is_empty() => {
            panes::find_next_match(app, pane, true)
        }
        Some(FooterInput::Note { input, row }) => label_notes::accept_note(app, row, &input.text),
        Some(FooterInput::Review { input, purpose }) => {
            review::accept_text(app, purpose, &input.text)
        }
        Some(FooterInput::FollowUp { input, target }) => {
            follow_ups::accept_question(app, *target, &input.text)
        }
        Some(FooterInput::StepEdit { input, target, .. }) => {
            step_edits::accept_line(app, target, input)
        }
        Some(FooterInput::Clause { input, row, cause }) => {
            label_notes::accept_clause(app, row, cause, &input.text)
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
        Some(FooterInput::Review { input, purpose }) => {
            review_write::keep_text(app, purpose, &input.text);
        }
        Some(
            FooterInput::Note { .. }
            | FooterInput::Clause { .. }
            | FooterInput::FollowUp { .. }
            | FooterInput::StepEdit { .. }
            | FooterInput::Refused { .. },
        )
        | None => {}
    }
    Vec::new()
}
