//! The transcript pane.

use ratatui::layout::Rect;

use super::trace::text_pane;
use crate::tui::model::Model;
use crate::tui::model::pane::Pane;
use crate::tui::widget::canvas::Canvas;

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, model: &Model) {
    text_pane(canvas, Pane::Transcript, area, model, subtitle(model));
}

/// Whose transcript, and where in it.
fn subtitle(model: &Model) -> String {
    let desk = model.desk();
    let Some(of) = &desk.document.of else {
        return String::new();
    };
    let Some(doc) = desk.document.here() else {
        return of.id.clone();
    };
    let judged = desk.trace.row.and_then(|row| desk.cells.row(row)?.message);
    let judged = judged.map_or(String::new(), |message| {
        format!(" · judges message {message}")
    });
    let messages = crate::model::pluralize(doc.messages.len() as u64, "message");
    format!("{} · {messages}{judged}", of.id)
}
