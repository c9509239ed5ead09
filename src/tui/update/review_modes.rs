//! The reading screen: groups of notes, questions about modes, and drafts of evals.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::notices::push_info;
use super::review_undo::report_unkept;
use super::review_write::{
    begin_write, change_groups, read_again, step, type_text, update_groups, write_files,
};
use crate::model::pluralize;
use crate::review::{
    DraftHits, GroupingChange, GroupingWrite, NoteOutcome, ReviewNote, UndoStep,
    default_rubric_name, draft_evals, rank_drafts,
};
use crate::tui::effect::{Effect, WrittenReviewEval};
use crate::tui::history_view::Shared;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::review::{
    DraftList, ModesSide, ReviewText, ReviewView, ReviewWriteKind, SuggestedGroup,
};
use crate::tui::task_failure::TaskFailure;

pub(super) fn move_selection(app: &mut App, rows: i64) {
    match app.review.modes.side {
        ModesSide::Notes => {
            let notes = app.review.listed_notes().len();
            let view = &mut app.review.modes;
            view.selected_note = step(view.selected_note, rows, notes);
        }
        ModesSide::Modes => move_mode(app, rows),
    }
}

/// Moves the selection among the modes.
pub(super) fn move_mode(app: &mut App, rows: i64) {
    let modes = app.review.session.as_ref();
    let modes = modes.map_or(0, |session| session.book.modes.modes.len());
    let view = &mut app.review.modes;
    view.selected_mode = step(view.selected_mode, rows, modes);
}

/// `m`: opens the view of modes with suggested groups, and reads what another reader wrote meanwhile.
pub(super) fn open_modes(app: &mut App) -> Vec<Effect> {
    app.review.view = ReviewView::Modes;
    // The keys of a guide work the second time, too.
    app.review.modes.side = ModesSide::Notes;
    let mut effects = update_groups(app);
    effects.extend(read_again(app));
    effects
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

/// `enter`: on a note, adds the chosen notes to the selected mode; on a mode, lists its notes.
pub(super) fn assign_or_open(app: &mut App) -> Vec<Effect> {
    let Some(mode) = app.review.selected_mode().map(str::to_owned) else {
        return push_info(
            app,
            "there is no mode yet: c creates one with the chosen notes",
        );
    };
    if let Some(from) = app.review.modes.merges.take() {
        if from == mode {
            app.review.modes.merges = Some(from);
            return push_info(
                app,
                "a mode cannot go into itself: select another one (j, k), or esc",
            );
        }
        return change_groups(app, &GroupingChange::Merge { from, into: mode });
    }
    if app.review.modes.side == ModesSide::Modes {
        open_notes_of_mode(app, mode);
        return Vec::new();
    }
    let notes = app.review.chosen_notes();
    if notes.is_empty() {
        return push_info(app, "no note is left here: tab goes to the modes");
    }
    change_groups(app, &GroupingChange::Group { notes, mode })
}

pub(super) fn open_notes_of_mode(app: &mut App, mode: String) {
    let view = &mut app.review.modes;
    view.opened = Some(mode);
    view.side = ModesSide::Notes;
    view.selected_note = 0;
    view.marked.clear();
}

/// Returns the name of the group that the selected note belongs to; marks the group.
pub(super) fn suggested_name(app: &mut App) -> String {
    let screen = &mut app.review;
    let marked = &screen.modes.marked;
    if !marked.is_empty() {
        let listed: HashSet<&str> = screen.listed_notes().iter().map(|note| &*note.id).collect();
        let groups = screen.suggested_groups();
        // The marks of a write that failed are those of a whole group, and its name is offered again.
        let is_marked = |group: &SuggestedGroup<'_>| {
            let open = group.notes.iter().filter(|id| listed.contains(id.as_str()));
            let open: BTreeSet<&String> = open.collect();
            open == marked.iter().collect()
        };
        let of_marked = groups.iter().find(|group| is_marked(group));
        return of_marked.map_or_else(String::new, |group| group.name.to_owned());
    }
    let Some(group) = screen.selected_group() else {
        return String::new();
    };
    let own: HashSet<String> = group.notes.iter().cloned().collect();
    let open: Vec<String> = screen
        .listed_notes()
        .into_iter()
        .map(|note| note.id.clone())
        .filter(|id| own.contains(id))
        .collect();
    let name = group.name.to_owned();
    screen.modes.marked.extend(open);
    name
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

/// `A`: asks yes or no for every transcript and mode without an answer.
pub(super) fn open_answers(app: &mut App) -> Vec<Effect> {
    let Some(session) = &app.review.session else {
        return Vec::new();
    };
    let questions = session.book.open_questions();
    if questions.is_empty() {
        let why = if session.book.modes.modes.is_empty() {
            "no mode yet, so A has nothing to ask: c creates one with the chosen notes"
        } else {
            "every mode has an answer for every transcript that was read"
        };
        return push_info(app, why);
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
        let open = screen.open_questions;
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
    let own = session.book.own_note(&transcript, reader);
    // A stale note is about an earlier text, so an answer about this text replaces it.
    let before = own.filter(|note| !session.book.is_stale(note)).cloned();
    let digest = session.catalog.find(&transcript);
    let digest = digest.map(|entry| entry.reference.digest.clone());
    let mut note = before.clone().unwrap_or_else(|| {
        let id = own.map_or("", |note| note.id.as_str());
        ReviewNote::new(id, &transcript, NoteOutcome::Answered)
    });
    if before.is_none() {
        note.digest = digest;
        note.by.clone_from(&session.reader);
        note.sample = Some(session.sample_of(&transcript));
    }
    let name = session.book.modes.find(&mode);
    let name = name.map_or(mode.as_str(), |mode| mode.name.as_str());
    let answer = if occurs { "yes" } else { "no" };
    let what = format!("{answer} to {name} in {transcript}");
    note.modes.insert(mode.clone(), occurs);
    note.at = None;
    let write = GroupingWrite {
        modes: None,
        notes: vec![note],
    };
    let step = UndoStep {
        question: Some((transcript, mode)),
        ..UndoStep::of_write(what, &session.book, &write)
    };
    write_files(app, write, ReviewWriteKind::Answer, step)
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
        has_moved: false,
    };
    app.review.view = ReviewView::Drafts;
    vec![order]
}

/// The hits of all drafts were counted.
pub(super) fn handle_hits(
    app: &mut App,
    mode: &str,
    hits: &[Result<Option<DraftHits>, String>],
) -> Vec<Effect> {
    let workspace = app.workspace().cloned();
    let list = &mut app.review.drafts;
    if list.mode != mode || hits.len() != list.drafts.len() {
        return Vec::new();
    }
    let known: Vec<Option<DraftHits>> = hits
        .iter()
        .map(|hits| hits.as_ref().ok().copied().flatten())
        .collect();
    let order = rank_drafts(&list.drafts, &known, workspace.as_deref());
    // The user may have selected a draft before its place is known; else the best one is selected.
    list.selected = order
        .iter()
        .position(|at| list.has_moved && *at == list.selected)
        .unwrap_or(0);
    list.drafts = order.iter().map(|at| list.drafts[*at].clone()).collect();
    list.hits = order.iter().map(|at| Some(hits[*at].clone())).collect();
    Vec::new()
}

/// `enter` on a draft: asks for the rubric that it goes into.
pub(super) fn write_draft(app: &mut App) -> Vec<Effect> {
    let screen = &app.review;
    let list = &screen.drafts;
    if list.drafts.is_empty() {
        return Vec::new();
    }
    if list.hits.get(list.selected).is_none_or(Option::is_none) {
        return push_info(app, "dicta still counts the hits of this check");
    }
    let name = app
        .workspace()
        .map(|workspace| default_rubric_name(workspace));
    type_text(app, ReviewText::EvalRubric, name.unwrap_or_default())
}

/// Writes the selected draft into a rubric.
pub(super) fn write_draft_into(app: &mut App, rubric: String) -> Vec<Effect> {
    let screen = &app.review;
    let list = &screen.drafts;
    let draft = list.drafts.get(list.selected).cloned();
    let (Some(draft), Some(session)) = (draft, &screen.session) else {
        return Vec::new();
    };
    let mut session = (**session).clone();
    // An eval that was written before changed the workspace, and the review keeps the one that it was opened with.
    if let Some(workspace) = app.workspace() {
        session.place.workspace = Some(Arc::clone(workspace));
    }
    begin_write(app, ReviewWriteKind::Eval);
    vec![Effect::WriteEval {
        session: Shared::from(session),
        draft,
        rubric,
    }]
}

/// An eval was written.
pub(super) fn handle_eval_written(
    app: &mut App,
    written: Result<Box<WrittenReviewEval>, TaskFailure>,
) -> Vec<Effect> {
    app.review.writing = None;
    match written {
        Ok(written) => {
            report_unkept(app, written.unkept);
            app.review.undo.push(written.step);
            app.review.view = ReviewView::Modes;
            app.review.modes.written = Some(written.text.clone());
            app.notices
                .push_written(app.now, NoticeLevel::Info, written.text);
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
