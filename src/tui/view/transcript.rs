//! Draws the transcript pane.

use ratatui::layout::Rect;

use super::trace::draw_text_pane;
use crate::tui::state::App;
use crate::tui::state::pane::Pane;
use crate::tui::view::Canvas;

/// Draws the pane.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    draw_text_pane(canvas, Pane::Transcript, area, app, pane_subtitle(app));
}

/// Returns the transcript's id and the judged message.
fn pane_subtitle(app: &App) -> String {
    let session = app.session();
    let Some(transcript) = &session.transcript_pane.transcript else {
        return String::new();
    };
    let Some(doc) = session.transcript_pane.loaded_document() else {
        return transcript.id.clone();
    };
    let judged = session
        .trace_panes
        .row
        .and_then(|row| session.cells.row(row)?.message);
    let judged = judged.map_or(String::new(), |message| {
        format!(" · judges message {message}")
    });
    let messages = crate::model::pluralize(doc.first_pieces.len() as u64, "message");
    format!("{} · {messages}{judged}", transcript.id)
}
