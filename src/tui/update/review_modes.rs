//! The reading screen: groups of notes, questions about modes, and drafts of evals.

use super::notices::push_info;
use super::review_write::{step, type_text, write_files};
use crate::model::pluralize;
use crate::review::{
    GroupingChange, GroupingWrite, NoteOutcome, ReviewNote, draft_evals, suggest_groups,
};
use crate::tui::effect::Effect;
use crate::tui::history_view::Shared;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::review::{
    DraftList, ModesSide, NoteUndo, ReviewText, ReviewView, ReviewWriteKind,
};
use crate::tui::task_failure::TaskFailure;

/// The step of the cut between groups.
const CUT_STEP: f64 = 0.05;

pub(super) fn move_selection(app: &mut App, rows: i64) {
    let notes = app.review.listed_notes().len();
    let modes = app.review.session.as_ref();
    let modes = modes.map_or(0, |session| session.book.modes.modes.len());
    let view = &mut app.review.modes;
    match view.side {
        ModesSide::Notes => view.selected_note = step(view.selected_note, rows, notes),
        ModesSide::Modes => view.selected_mode = step(view.selected_mode, rows, modes),
    }
}

/// `m`: opens the view of modes with suggested groups.
pub(super) fn open_modes(app: &mut App) -> Vec<Effect> {
    app.review.view = ReviewView::Modes;
    update_groups(app);
    Vec::new()
}

pub(super) fn update_groups(app: &mut App) {
    let screen = &mut app.review;
    if let Some(session) = &screen.session {
        screen.modes.groups = suggest_groups(&session.book.ungrouped(), screen.modes.cut);
    }
}

/// `<` and `>`: suggests smaller or larger groups.
pub(super) fn change_cut(app: &mut App, is_larger: bool) -> Vec<Effect> {
    let by = if is_larger { CUT_STEP } else { -CUT_STEP };
    let cut = (app.review.modes.cut + by).clamp(CUT_STEP, 1.0);
    app.review.modes.cut = cut;
    update_groups(app);
    let groups = pluralize(app.review.modes.groups.len() as u64, "group");
    push_info(app, format!("{groups} with a distance up to {cut:.2}"))
}

pub(super) fn mark_note(app: &mut App) -> Vec<Effect> {
    let listed = app.review.listed_notes();
    let Some(id) = listed
        .get(app.review.modes.selected_note)
        .map(|note| note.id.clone())
    else {
        return Vec::new();
    };
    let view = &mut app.review.modes;
    if !view.marked.remove(&id) {
        view.marked.insert(id);
    }
    move_selection(app, 1);
    Vec::new()
}

/// `a` marks the suggested group of the selected note; `enter` on a note adds the chosen notes to the selected mode, on
/// a mode lists its notes.
pub(super) fn assign_or_open(app: &mut App) -> Vec<Effect> {
    let Some(mode) = app.review.selected_mode().map(str::to_owned) else {
        return push_info(
            app,
            "there is no mode yet: c creates one with the chosen notes",
        );
    };
    if let Some(into) = app.review.modes.merges.take() {
        let change = GroupingChange::Merge {
            from: into,
            into: mode,
        };
        return change_groups(app, &change);
    }
    if app.review.modes.side == ModesSide::Modes {
        let view = &mut app.review.modes;
        view.opened = Some(mode);
        view.side = ModesSide::Notes;
        view.selected_note = 0;
        view.marked.clear();
        return Vec::new();
    }
    let notes = app.review.chosen_notes();
    change_groups(app, &GroupingChange::Group { notes, mode })
}

/// Returns the name of the group that the selected note belongs to; marks the group.
pub(super) fn suggested_name(app: &mut App) -> String {
    let screen = &mut app.review;
    if !screen.modes.marked.is_empty() || screen.modes.opened.is_some() {
        return String::new();
    }
    let listed = screen.listed_notes();
    let note = listed
        .get(screen.modes.selected_note)
        .map(|note| note.id.clone());
    let group = note.and_then(|id| screen.group_of(&id).map(|(_, group)| group.clone()));
    let Some(group) = group else {
        return String::new();
    };
    screen.modes.marked.extend(group.notes);
    group.name
}

pub(super) fn edit_mode(app: &mut App, defines: bool) -> Vec<Effect> {
    let Some(id) = app.review.selected_mode().map(str::to_owned) else {
        return push_info(app, "there is no mode yet: c creates one");
    };
    let mode = app
        .review
        .session
        .as_ref()
        .and_then(|one| one.book.modes.find(&id));
    let Some(mode) = mode else {
        return Vec::new();
    };
    let (text, purpose) = if defines {
        (mode.definition.clone(), ReviewText::Define(id))
    } else {
        (mode.name.clone(), ReviewText::Rename(id))
    };
    type_text(app, purpose, text)
}

pub(super) fn merge(app: &mut App) -> Vec<Effect> {
    let Some(mode) = app.review.selected_mode().map(str::to_owned) else {
        return push_info(app, "there is no mode yet: c creates one");
    };
    let view = &mut app.review.modes;
    view.merges = Some(mode);
    view.side = ModesSide::Modes;
    push_info(app, "select the mode that takes it in, then press enter")
}

pub(super) fn split(app: &mut App) -> Vec<Effect> {
    match app.review.modes.opened.clone() {
        Some(mode) => type_text(app, ReviewText::Split(mode), String::new()),
        None => push_info(
            app,
            "open a mode first: enter on it lists its notes; mark those that leave",
        ),
    }
}

pub(super) fn ungroup(app: &mut App) -> Vec<Effect> {
    match app.review.modes.opened.clone() {
        Some(mode) => {
            let notes = app.review.chosen_notes();
            change_groups(app, &GroupingChange::Ungroup { notes, mode })
        }
        None => push_info(app, "open a mode first: enter on it lists its notes"),
    }
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

pub(super) fn undo_groups(app: &mut App) -> Vec<Effect> {
    let Some(at) = app.review.opened_at.clone() else {
        return Vec::new();
    };
    match app.review.modes.changes.undo(&at) {
        Some(write) => write_files(app, without_times(write), ReviewWriteKind::UndoGroups),
        None => push_info(app, "there is nothing to undo"),
    }
}

/// The runtime knows the time of the write.
pub(super) fn without_times(mut write: GroupingWrite) -> GroupingWrite {
    for note in &mut write.notes {
        note.at = None;
    }
    write
}

/// `A`: asks yes or no for every transcript and mode without an answer.
pub(super) fn open_answers(app: &mut App) -> Vec<Effect> {
    let Some(session) = &app.review.session else {
        return Vec::new();
    };
    let questions = session.book.open_questions();
    if questions.is_empty() {
        return push_info(
            app,
            "every mode has an answer for every transcript that was read",
        );
    }
    app.review.questions = questions;
    app.review.question = 0;
    app.review.view = ReviewView::Answers;
    Vec::new()
}

pub(super) fn go_to_question(app: &mut App, delta: i64) -> Vec<Effect> {
    let screen = &mut app.review;
    let is_last = screen.question + 1 >= screen.questions.len();
    if delta > 0 && is_last {
        screen.view = ReviewView::Modes;
        let open = screen.session.as_ref();
        let open = open.map_or(0, |session| session.book.open_questions().len());
        return push_info(app, format!("{} open", pluralize(open as u64, "question")));
    }
    screen.question = step(screen.question, delta, screen.questions.len());
    Vec::new()
}

pub(super) fn answer(app: &mut App, occurs: bool) -> Vec<Effect> {
    let screen = &mut app.review;
    let question = screen.questions.get(screen.question).cloned();
    let (Some((transcript, mode)), Some(session)) = (question, &screen.session) else {
        return Vec::new();
    };
    let reader = session.reader.as_deref();
    let before = session.book.own_note(&transcript, reader).cloned();
    let digest = session.catalog.find(&transcript);
    let digest = digest.map(|entry| entry.reference.digest.clone());
    let mut note = before
        .clone()
        .unwrap_or_else(|| ReviewNote::new("", &transcript, NoteOutcome::Answered));
    if before.is_none() {
        note.digest = digest;
        note.by.clone_from(&session.reader);
        note.sample = Some(session.sample_of(&transcript));
    }
    note.modes.insert(mode, occurs);
    note.at = None;
    screen.undo.push(NoteUndo {
        transcript,
        id: note.id.clone(),
        before,
    });
    let write = GroupingWrite {
        modes: None,
        notes: vec![note],
    };
    write_files(app, write, ReviewWriteKind::Answer)
}

/// `E`: lists evals that could check for the selected mode.
pub(super) fn open_drafts(app: &mut App) -> Vec<Effect> {
    let Some(id) = app.review.selected_mode().map(str::to_owned) else {
        return push_info(app, "there is no mode yet: c creates one");
    };
    let Some(session) = &app.review.session else {
        return Vec::new();
    };
    if session.place.workspace.is_none() {
        return push_info(
            app,
            "an eval needs a rubric: esc to the file, then W creates a workspace around it",
        );
    }
    let Some(mode) = session.book.modes.find(&id) else {
        return Vec::new();
    };
    let drafts = draft_evals(&session.book, mode);
    let order = Effect::CountDraftHits {
        mode: id.clone(),
        session: Shared::from((**session).clone()),
        drafts: drafts.clone(),
    };
    app.review.drafts = DraftList {
        mode: id,
        hits: vec![None; drafts.len()],
        drafts,
        selected: 0,
    };
    app.review.view = ReviewView::Drafts;
    vec![order]
}

/// The hits of all drafts were counted.
pub(super) fn handle_hits(
    app: &mut App,
    mode: &str,
    hits: Vec<Result<Option<crate::review::DraftHits>, String>>,
) -> Vec<Effect> {
    let list = &mut app.review.drafts;
    if list.mode == mode {
        list.hits = hits.into_iter().map(Some).collect();
    }
    Vec::new()
}

pub(super) fn write_draft(app: &mut App) -> Vec<Effect> {
    let screen = &mut app.review;
    let list = &screen.drafts;
    let Some(draft) = list.drafts.get(list.selected).cloned() else {
        return Vec::new();
    };
    if list.hits.get(list.selected).is_none_or(Option::is_none) {
        return push_info(app, "dicta still counts the hits of this check");
    }
    let Some(session) = &screen.session else {
        return Vec::new();
    };
    vec![Effect::WriteEval {
        session: Shared::from((**session).clone()),
        draft,
    }]
}

/// An eval was written.
pub(super) fn handle_eval_written(
    app: &mut App,
    written: Result<String, TaskFailure>,
) -> Vec<Effect> {
    match written {
        Ok(text) => {
            app.review.view = ReviewView::Modes;
            app.notices.push(app.now, NoticeLevel::Info, text);
            // Draws and labels are new files, which no save announces.
            vec![Effect::RescanFiles]
        }
        Err(why) => {
            let text = why.as_str().to_owned();
            app.notices.push(app.now, NoticeLevel::Error, text);
            Vec::new()
        }
    }
}
