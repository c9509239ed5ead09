//! The reading screen: the table of modes. Counting reads all answers, so a background task does it.

use super::review_modes::open_notes_of_mode;
use crate::tui::effect::Effect;
use crate::tui::history_view::Shared;
use crate::tui::state::App;
use crate::tui::state::review::{CountedModes, ReviewView};
use crate::tui::task_failure::TaskFailure;

/// `t`: shows the table of modes.
pub(super) fn open_counts(app: &mut App) -> Vec<Effect> {
    let screen = &mut app.review;
    let Some(session) = &screen.session else {
        return Vec::new();
    };
    let counts = &mut screen.counts;
    counts.number += 1;
    counts.counted = None;
    counts.came_from = screen.view;
    screen.view = ReviewView::Counts;
    vec![Effect::CountModes {
        number: counts.number,
        session: Shared::from((**session).clone()),
    }]
}

/// Takes the table.
pub(super) fn handle_counted(
    app: &mut App,
    number: u64,
    counted: Result<Box<CountedModes>, TaskFailure>,
) {
    let counts = &mut app.review.counts;
    // The notes may have changed since an older order.
    if counts.number == number {
        counts.counted = Some(counted.map_err(|why| why.as_str().to_owned()));
    }
}

/// `enter`: lists the notes of the selected mode.
pub(super) fn open_selected(app: &mut App) -> Vec<Effect> {
    if let Some(mode) = app.review.selected_mode().map(str::to_owned) {
        app.review.view = ReviewView::Modes;
        open_notes_of_mode(app, mode);
    }
    Vec::new()
}
