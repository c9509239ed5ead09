//! What stands in the panes of a trace while its verdict is hidden: nothing of it, but what is asked, so that a person can
//! say it themselves.

use super::{ContentCx, empty_row, eval_definition, styled_line};
use crate::theme::Role;
use crate::tui::state::App;
use crate::tui::state::cells::RowSlotState;
use crate::tui::state::pane::Pane;
use crate::tui::widget::flow::TextBlock;

/// In the strip, and wherever there is little room.
pub(crate) const HIDDEN: &str = "hidden until you label it";

/// Whether the focused cell has something to hide. A trace holds its verdict long before it ends.
pub(crate) fn hides_verdict(app: &App) -> bool {
    let session = app.session();
    let row = session
        .trace_panes
        .row
        .and_then(|row| session.cells.row(row));
    row.is_some_and(|row| {
        let mut slots = row.all_slots();
        row.hidden && slots.any(|(_, slot)| slot.state != RowSlotState::NeverRun)
    })
}

/// The text of one of the four panes.
pub(super) fn build_source<'a>(ink: &mut ContentCx<'a>, pane: Pane) -> Vec<TextBlock<'a>> {
    let mut out = vec![styled_line([
        (format!("{HIDDEN}: ").as_str(), Role::Muted),
        ("p", Role::Key),
        (" pass, ", Role::Muted),
        ("f", Role::Key),
        (" fail, ", Role::Muted),
        ("u", Role::Key),
        (" unsure", Role::Muted),
    ])];
    let session = ink.app.session();
    let row = session
        .trace_panes
        .row
        .and_then(|row| session.cells.row(row));
    if let (Pane::Verdict, Some(row)) = (pane, row) {
        out.push(empty_row());
        out.push(styled_line([
            ("6", Role::Key),
            (" the transcript, ", Role::Muted),
            ("s", Role::Key),
            (" the next unlabelled, ", Role::Muted),
            ("B", Role::Key),
            (" shows all verdicts", Role::Muted),
        ]));
        out.extend(eval_definition::eval_definition(ink, row.eval));
    }
    out
}
