//! The reading screen: the steps that its views share.

use std::sync::Arc;

use super::notices::push_info;
use crate::review::{GroupingChange, GroupingWrite};
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

pub(super) fn change_groups(app: &mut App, change: &GroupingChange) -> Vec<Effect> {
    let screen = &mut app.review;
    let (Some(session), Some(at)) = (&screen.session, &screen.opened_at) else {
        return Vec::new();
    };
    let write = screen.modes.changes.apply(&session.book, change, at);
    match write {
        Some(write) => write_files(app, without_times(write), ReviewWriteKind::Groups),
        None => push_info(app, "this changes nothing"),
    }
}

/// The runtime knows the time of the write.
pub(super) fn without_times(mut write: GroupingWrite) -> GroupingWrite {
    for note in &mut write.notes {
        note.at = None;
    }
    write
}

/// Orders the groups of similar words.
pub(super) fn update_groups(app: &mut App) -> Vec<Effect> {
    let screen = &mut app.review;
    let Some(session) = &screen.session else {
        return Vec::new();
    };
    screen.modes.groups_number += 1;
    screen.modes.is_grouping = true;
    vec![Effect::SuggestGroups {
        number: screen.modes.groups_number,
        notes: session.book.ungrouped().into_iter().cloned().collect(),
        cut: screen.modes.cut,
    }]
}

/// Reads the files again and keeps the view, so that the notes and modes of another reader appear.
pub(super) fn read_again(app: &mut App) -> Vec<Effect> {
    let screen = &mut app.review;
    let Some(session) = &screen.session else {
        return Vec::new();
    };
    screen.number += 1;
    // A write under way may be half done when the files are read, so that result does not count.
    let done = screen.last_write - u64::from(screen.writing.is_some());
    screen.rereads_since = Some(done);
    vec![Effect::OpenReview {
        number: screen.number,
        place: session.place.clone().into(),
        more: None,
    }]
}
