//! Notes on labels, and the causes of closed disagreements.

use super::label_queues::advance;
use super::labels::{annotate, find_noted_label};
use super::notices::{push_info, push_written};
use crate::model::DisagreementCause;
use crate::tui::effect::Effect;
use crate::tui::state::cells::RowId;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::{App, FooterInput};
use crate::tui::widget::line_input::LineInput;
use crate::workspace::label_edit::AnnotationContent;

/// `i`: opens the line for a note.
pub(super) fn open_note(app: &mut App) -> Vec<Effect> {
    let cells = &app.live_session.cells;
    let Some(row) = cells.selected_row() else {
        return Vec::new();
    };
    let draft = app.labelling.draft_notes.get(&row).cloned();
    let note = draft.or_else(|| find_noted_label(cells, row)?.note.clone());
    app.ui.footer_input = Some(FooterInput::Note {
        input: LineInput::new(note.unwrap_or_default()),
        row,
    });
    Vec::new()
}

/// Saves a note: with its label now, or together with the label that follows.
pub(super) fn accept_note(app: &mut App, row: RowId, text: &str) -> Vec<Effect> {
    let note = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let is_labelled = app
        .live_session
        .cells
        .row(row)
        .is_some_and(|row| row.label.is_some());
    if is_labelled {
        let saved = note.is_some();
        let effects = annotate(app, row, AnnotationContent::Note(note));
        let notice = if saved {
            "note saved (U takes it back)"
        } else {
            "note removed (U takes it back)"
        };
        push_written(app, notice);
        return effects;
    }
    let drafts = &mut app.labelling.draft_notes;
    let Some(note) = note else {
        drafts.remove(&row);
        return Vec::new();
    };
    drafts.insert(row, note);
    push_info(
        app,
        "the note is saved with the label: p pass, f fail, u unsure",
    )
}

/// `D`: asks for the cause of the disagreement.
pub(super) fn open_closing(app: &mut App) -> Vec<Effect> {
    if let Some(row) = app.live_session.cells.selected_row() {
        app.overlays
            .push(Overlay::CloseDisagreement { row, selected: 0 });
    }
    Vec::new()
}

/// Asks for the clause after the cause was chosen.
pub(super) fn accept_cause(app: &mut App, row: RowId, selected: usize) -> Vec<Effect> {
    let Some(cause) = DisagreementCause::ALL.get(selected).copied() else {
        return Vec::new();
    };
    app.ui.footer_input = Some(FooterInput::Clause {
        input: LineInput::default(),
        row,
        cause,
    });
    Vec::new()
}

/// Closes the disagreement.
pub(super) fn accept_clause(
    app: &mut App,
    row: RowId,
    cause: DisagreementCause,
    text: &str,
) -> Vec<Effect> {
    let settled_by = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let effects = annotate(app, row, AnnotationContent::Cause(cause, settled_by));
    let moved = advance(app, row);
    let notice = format!(
        "closed with the cause {}{} (U takes it back)",
        cause.as_str(),
        moved.unwrap_or_default()
    );
    push_written(app, notice);
    effects
}
