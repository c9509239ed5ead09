//! The reading screen: the steps that its views share.

use std::sync::Arc;

use crate::review::GroupingWrite;
use crate::tui::effect::{Effect, ReviewWriteOrder};
use crate::tui::state::review::{ReviewText, ReviewWriteKind};
use crate::tui::state::{App, FooterInput};
use crate::tui::widget::line_input::LineInput;

pub(super) fn step(from: usize, rows: i64, len: usize) -> usize {
    let last = i64::try_from(len.saturating_sub(1)).unwrap_or(i64::MAX);
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    usize::try_from(from.saturating_add(rows).clamp(0, last)).unwrap_or(0)
}

pub(super) fn type_text(app: &mut App, purpose: ReviewText, text: String) -> Vec<Effect> {
    app.ui.footer_input = Some(FooterInput::Review {
        input: LineInput::new(text),
        purpose,
    });
    Vec::new()
}

pub(super) fn write_files(
    app: &mut App,
    write: GroupingWrite,
    kind: ReviewWriteKind,
) -> Vec<Effect> {
    let screen = &mut app.review;
    let Some(session) = &screen.session else {
        return Vec::new();
    };
    screen.last_write += 1;
    screen.writing = Some((screen.last_write, kind));
    vec![Effect::WriteReview(ReviewWriteOrder {
        number: screen.last_write,
        files: session.place.files.clone(),
        modes_before: Arc::clone(&session.modes_text),
        modes: write.modes,
        notes: write.notes,
        notes_first: kind == ReviewWriteKind::UndoGroups,
    })]
}
