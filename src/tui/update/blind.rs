//! Hides verdicts from a person who labels, or shows them.

use super::notices::push_info;
use super::panes::{self, keep_selection_visible};
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::RowSort;
use crate::tui::state::pane::Pane;

/// `B`: hides verdicts until they are labelled, or shows them.
pub(super) fn toggle_blind(app: &mut App) -> Vec<Effect> {
    let cells = &mut app.live_session.cells;
    let blind = !cells.blind;
    if blind && cells.sort == RowSort::ProblemsFirst {
        // This order would reveal failed verdicts, because labelled failures move to the top.
        cells.sort = RowSort::FileOrder;
    }
    cells.set_blind(blind);
    let is_hidden = cells
        .selected_row()
        .and_then(|row| cells.row(row))
        .is_some_and(|row| row.hidden);
    // The screen belongs to the transcript and the criteria while the user reads.
    if blind && is_hidden {
        panes::focus_pane(app, Pane::Transcript);
    }
    keep_selection_visible(app);
    let notice = if blind {
        "blind: a verdict is hidden until you label it (p pass, f fail, u unsure; B shows all)"
    } else {
        "all verdicts are shown"
    };
    push_info(app, notice)
}
