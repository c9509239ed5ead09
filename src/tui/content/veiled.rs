//! What stands in the panes of a trace while its verdict is hidden: nothing of it, but what is asked, so that a person can
//! say it themselves.

use super::{Ink, asked, gap, rich};
use crate::theme::Role;
use crate::tui::model::Model;
use crate::tui::model::cells::SlotState;
use crate::tui::model::pane::Pane;
use crate::tui::widget::flow::Block;

/// In the strip, and wherever there is little room.
pub(crate) const HIDDEN: &str = "hidden until you label it";

/// Whether the focused cell has something to hide. A trace holds its verdict long before it ends.
pub(crate) fn hides(model: &Model) -> bool {
    let desk = model.desk();
    let row = desk.trace.row.and_then(|row| desk.cells.row(row));
    row.is_some_and(|row| {
        let mut slots = row.all_slots();
        row.veiled && slots.any(|(_, slot)| slot.state != SlotState::Never)
    })
}

/// The text of one of the four panes.
pub(super) fn source<'a>(ink: &mut Ink<'a>, pane: Pane) -> Vec<Block<'a>> {
    let mut out = vec![rich([
        (format!("{HIDDEN}: ").as_str(), Role::Muted),
        ("p", Role::Key),
        (" pass, ", Role::Muted),
        ("f", Role::Key),
        (" fail, ", Role::Muted),
        ("u", Role::Key),
        (" unsure", Role::Muted),
    ])];
    let desk = ink.model.desk();
    let row = desk.trace.row.and_then(|row| desk.cells.row(row));
    if let (Pane::Verdict, Some(row)) = (pane, row) {
        out.push(gap());
        out.push(rich([
            ("6", Role::Key),
            (" the transcript, ", Role::Muted),
            ("s", Role::Key),
            (" the next unlabelled, ", Role::Muted),
            ("B", Role::Key),
            (" shows all verdicts", Role::Muted),
        ]));
        out.extend(asked::asked(ink, row.eval));
    }
    out
}
