//! The reading screen: the steps that its views share.

use std::sync::Arc;

use super::notices::push_info;
use crate::review::{GroupingChange, GroupingWrite, UndoStep, plan_change};
use crate::tui::effect::{Effect, ReviewWriteOrder};
use crate::tui::state::review::{ReviewText, ReviewWriteKind};
use crate::tui::state::{App, FooterInput};
use crate::tui::widget::line_input::LineInput;

pub(super) fn step(from: usize, rows: i64, len: usize) -> usize {
    let last = i64::try_from(len.saturating_sub(1)).unwrap_or(i64::MAX);
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    usize::try_from(from.saturating_add(rows).clamp(0, last)).unwrap_or(0)
}

/// Opens a line in the footer. A text that was typed for the same purpose and canceled comes back.
pub(super) fn type_text(app: &mut App, purpose: ReviewText, text: String) -> Vec<Effect> {
    let kept = &mut app.review.kept_texts;
    let place = kept.iter().position(|(known, _)| *known == purpose);
    let text = place.map_or(text, |at| kept.remove(at).1);
    app.ui.footer_input = Some(FooterInput::Review {
        input: LineInput::new(text),
        purpose,
    });
    Vec::new()
}

/// Keeps the text of a canceled line, or of a write that failed.
pub(super) fn keep_text(app: &mut App, purpose: ReviewText, text: &str) {
    let kept = &mut app.review.kept_texts;
    kept.retain(|(known, _)| *known != purpose);
    if purpose.is_kept() && !text.trim().is_empty() {
        kept.push((purpose, text.to_owned()));
    }
}

/// Orders a write that `step` undoes.
pub(super) fn write_files(
    app: &mut App,
    write: GroupingWrite,
    kind: ReviewWriteKind,
    step: UndoStep,
) -> Vec<Effect> {
    order_write(app, write, kind, Some(step), None)
}

/// Orders a write that undoes `step`.
pub(super) fn write_undo(app: &mut App, write: GroupingWrite, step: UndoStep) -> Vec<Effect> {
    order_write(app, write, ReviewWriteKind::Undo, None, Some(step))
}

fn order_write(
    app: &mut App,
    write: GroupingWrite,
    kind: ReviewWriteKind,
    step: Option<UndoStep>,
    undoes: Option<UndoStep>,
) -> Vec<Effect> {
    let Some(number) = begin_write(app, kind) else {
        return Vec::new();
    };
    let Some(session) = &app.review.session else {
        return Vec::new();
    };
    vec![Effect::WriteReview(ReviewWriteOrder {
        number,
        files: session.place.files.clone(),
        modes_before: Arc::clone(&session.modes_text),
        modes: write.modes,
        notes: write.notes,
        step,
        undoes,
    })]
}

/// Marks a write as under way, so that keys wait for it. Returns its number; `None` without a review.
pub(super) fn begin_write(app: &mut App, kind: ReviewWriteKind) -> Option<u64> {
    let screen = &mut app.review;
    screen.session.as_ref()?;
    screen.last_write += 1;
    screen.writing = Some((screen.last_write, kind));
    Some(screen.last_write)
}

pub(super) fn change_groups(app: &mut App, change: &GroupingChange) -> Vec<Effect> {
    let screen = &app.review;
    let (Some(session), Some(at)) = (&screen.session, &screen.opened_at) else {
        return Vec::new();
    };
    match plan_change(&session.book, change, at) {
        Some(write) => {
            let write = without_times(write);
            let what = change.describe(&session.book.modes);
            let step = UndoStep::of_write(what, &session.book, &write);
            write_files(app, write, ReviewWriteKind::Groups, step)
        }
        None => push_info(app, "this changes nothing"),
    }
}

/// The runtime knows the time of the write.
fn without_times(mut write: GroupingWrite) -> GroupingWrite {
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
