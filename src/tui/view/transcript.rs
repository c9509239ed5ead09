//! Draws the transcript pane.

use ratatui::layout::Rect;

use super::trace::draw_text_pane;
use crate::theme::Role;
use crate::tui::state::App;
use crate::tui::state::pane::Pane;
use crate::tui::view::Canvas;
use crate::tui::widget::styled_row::{StyledRow, elide_middle};

/// The narrowest transcript id in the title, in columns.
const MIN_ID_WIDTH: usize = 12;

/// Draws the pane.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let pane = Pane::Transcript;
    // The title: the number, the name and three blanks. The corners and a blank at each side take 4 more columns.
    let used = format!("{} {}  ", pane.number(), app.pane_title(pane)).len() + 4;
    let room = usize::from(area.width).saturating_sub(used);
    let subtitle = pane_subtitle(app, room, canvas.glyphs().ellipsis);
    draw_text_pane(canvas, pane, area, app, subtitle);
}

/// Returns the transcript's id, the number of messages, and the judged message. An id that is wider than the room keeps
/// both of its ends, because ids often differ only there.
fn pane_subtitle(app: &App, room: usize, ellipsis: &str) -> String {
    let session = app.session();
    let Some(transcript) = &session.transcript_pane.transcript else {
        return String::new();
    };
    let width = |text: &str| StyledRow::new(text, Role::Muted).width();
    let Some(doc) = session.transcript_pane.loaded_document() else {
        return elide_middle(&transcript.id, room.max(MIN_ID_WIDTH), ellipsis).into_owned();
    };
    let judged = session
        .trace_panes
        .row
        .and_then(|row| session.cells.row(row)?.message);
    let judged = judged.map_or(String::new(), |message| {
        format!(" · judges message {message}")
    });
    let messages = crate::model::pluralize(doc.first_pieces.len() as u64, "message");
    let rest = format!(" · {messages}{judged}");
    if width(&transcript.id) <= room {
        return format!("{}{rest}", transcript.id);
    }
    let id_room = room.saturating_sub(width(&rest)).max(MIN_ID_WIDTH);
    let id = elide_middle(&transcript.id, id_room, ellipsis);
    format!("{id}{rest}")
}
