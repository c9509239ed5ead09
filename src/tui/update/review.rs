//! The reading screen: its keys, what it reads, and what it writes.
//!
//! A note is on disk before the screen goes on. Keys that are pressed meanwhile wait.

use std::sync::Arc;

use super::notices::push_info;
use super::review_modes as modes;
use super::review_suggest as suggest;
use super::review_write::{change_groups, read_again, step, type_text, update_groups, write_files};
use crate::model::WallTime;
use crate::review::{
    GroupingChange, GroupingWrite, NoteOutcome, ReviewNote, ReviewPlace, ReviewSession,
};
use crate::tui::command::UiCommand;
use crate::tui::effect::{Effect, ReviewWriteOrder};
use crate::tui::history_view::Shared;
use crate::tui::state::document::{DocumentState, TranscriptDocument};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::review::{
    ModesSide, ModesView, NoteUndo, ReviewLoading, ReviewScreen, ReviewText, ReviewView,
    ReviewWriteKind,
};
use crate::tui::state::{App, OpenedItem};
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::flow::{BlockPosition, ScrollState};

/// The number of transcripts that `+` adds to the sample.
const MORE: usize = 20;
/// The rows of a page, if the size of the text is not known yet.
const PAGE: i64 = 10;

/// `V`: opens the screen, or closes it.
pub(super) fn toggle(app: &mut App) -> Vec<Effect> {
    if app.review.open {
        app.review.open = false;
        return Vec::new();
    }
    open(app, None)
}

/// Opens the screen. `more` extends the sample.
pub(super) fn open(app: &mut App, more: Option<usize>) -> Vec<Effect> {
    let place = match (&app.review.place, &app.opened) {
        (Some(place), OpenedItem::TranscriptFile(_)) => Some(place.clone()),
        // The workspace may have been loaded again since.
        (Some(place), OpenedItem::Workspace(workspace)) => {
            let mut now = ReviewPlace::of_workspace(workspace);
            now.transcripts
                .retain(|path| place.transcripts.contains(path) || place.workspace.is_none());
            Some(now)
        }
        (None, OpenedItem::Workspace(workspace)) => Some(ReviewPlace::of_workspace(workspace)),
        (None, OpenedItem::TranscriptFile(file)) => {
            ReviewPlace::of_files(std::slice::from_ref(file)).ok()
        }
        (_, OpenedItem::Recording) => None,
    };
    let Some(place) = place else {
        return push_info(
            app,
            "a recording has no transcripts to review: open its workspace",
        );
    };
    let screen = &mut app.review;
    screen.open = true;
    screen.number += 1;
    screen.loading = ReviewLoading::Reading;
    screen.rereads_since = None;
    vec![Effect::OpenReview {
        number: screen.number,
        place: place.into(),
        more,
    }]
}

/// The review was read.
pub(super) fn handle_opened(
    app: &mut App,
    number: u64,
    opened: Result<Shared<ReviewSession>, Vec<String>>,
    at: WallTime,
) -> Vec<Effect> {
    let screen = &mut app.review;
    if screen.number != number {
        return Vec::new();
    }
    let session = match opened {
        Ok(session) => session,
        Err(problems) => {
            screen.loading = ReviewLoading::Failed(problems);
            return Vec::new();
        }
    };
    screen.loading = ReviewLoading::Idle;
    screen.opened_at = Some(at);
    let session = Arc::try_unwrap(session.0).unwrap_or_else(|shared| (*shared).clone());
    if let Some(since) = screen.rereads_since.take() {
        // A note that was written meanwhile may be missing in what was read.
        if screen.writing.is_some() || screen.last_write != since {
            return read_again(app);
        }
        screen.session = Some(Box::new(session));
        update_progress(screen);
        return update_groups(app);
    }
    screen.at = session.first_unread().unwrap_or(0);
    screen.session = Some(Box::new(session));
    screen.view = ReviewView::Reading;
    screen.modes = ModesView::default();
    screen.shown = None;
    update_progress(screen);
    Vec::new()
}

fn update_progress(screen: &mut ReviewScreen) {
    let Some(session) = &screen.session else {
        return;
    };
    screen.visited = session.visited();
    screen.saturation = session.saturation();
}

/// Requests the document of the shown transcript. Called after every update.
pub(super) fn request_shown(app: &mut App) -> Vec<Effect> {
    let screen = &mut app.review;
    if !screen.open || screen.current_transcript() == screen.shown.as_deref() {
        return Vec::new();
    }
    let wanted = screen.current_transcript().map(str::to_owned);
    screen.shown.clone_from(&wanted);
    screen.document = DocumentState::Unloaded;
    screen.scroll = ScrollState::top();
    screen.message = screen
        .current_note()
        .and_then(|note| note.message)
        .unwrap_or(0);
    let (Some(id), Some(session)) = (wanted, &screen.session) else {
        return Vec::new();
    };
    let Some(entry) = session.catalog.find(&id) else {
        return Vec::new();
    };
    screen.document = DocumentState::Loading;
    let map = session
        .place
        .maps
        .by_path
        .get(&entry.reference.path)
        .cloned();
    vec![Effect::ReadDocument {
        transcript: entry.reference.clone(),
        run_dir: None,
        map,
    }]
}

/// Takes a document, if the screen waits for it.
pub(super) fn handle_document_read(
    app: &mut App,
    id: &str,
    doc: &Result<Arc<TranscriptDocument>, TaskFailure>,
) {
    let screen = &mut app.review;
    if screen.shown.as_deref() != Some(id) || !matches!(screen.document, DocumentState::Loading) {
        return;
    }
    screen.document = match doc {
        Ok(doc) => DocumentState::Loaded(Arc::clone(doc)),
        Err(why) => DocumentState::Failed(why.as_str().to_owned()),
    };
    reveal_message(app);
}

fn document(app: &App) -> Option<&Arc<TranscriptDocument>> {
    match &app.review.document {
        DocumentState::Loaded(doc) => Some(doc),
        _ => None,
    }
}

/// Scrolls so that the focused message is at the top.
fn reveal_message(app: &mut App) {
    let message = app.review.message as usize;
    let piece = document(app).and_then(|doc| doc.first_pieces.get(message).copied());
    if let Some(piece) = piece {
        app.review.scroll.follow = false;
        app.review.scroll.top = BlockPosition {
            block: piece as usize,
            byte: 0,
        };
    }
}

fn move_message(app: &mut App, delta: i64) {
    let screen = &app.review;
    // The catalog knows the number of messages before the text is read.
    let entry = screen.session.as_ref().zip(screen.shown.as_deref());
    let entry = entry.and_then(|(session, id)| session.catalog.find(id));
    let last = entry
        .map_or(0, |entry| i64::from(entry.messages) - 1)
        .max(0);
    let next = (i64::from(app.review.message) + delta).clamp(0, last);
    app.review.message = u32::try_from(next).unwrap_or(0);
    reveal_message(app);
}

/// Scrolls the text without a change of the focused message.
pub(super) fn scroll_by(app: &mut App, rows: i64) {
    let Some(doc) = document(app).map(Arc::clone) else {
        return;
    };
    let size = app.review_text_size();
    let source = crate::tui::content::review::ReviewSource::new(&doc, None, app.ui.theme.glyphs());
    app.review.scroll.scroll_rows(&source, size, rows);
}

/// Runs a command that has its own meaning on this screen. `None` for the others.
pub(super) fn run_shared_command(app: &mut App, command: UiCommand) -> Option<Vec<Effect>> {
    let page = i64::from(app.review_text_size().height).max(PAGE) - 1;
    let rows = match command {
        UiCommand::Back => {
            step_back(app);
            return Some(Vec::new());
        }
        UiCommand::NextPane
        | UiCommand::PreviousPane
        | UiCommand::PaneLeft
        | UiCommand::PaneRight => {
            let modes = &mut app.review.modes;
            modes.side = match modes.side {
                ModesSide::Notes => ModesSide::Modes,
                ModesSide::Modes => ModesSide::Notes,
            };
            return Some(Vec::new());
        }
        UiCommand::Up => -1,
        UiCommand::Down => 1,
        UiCommand::PageUp => -page,
        UiCommand::PageDown => page,
        UiCommand::HalfUp => -(page / 2).max(1),
        UiCommand::HalfDown => (page / 2).max(1),
        UiCommand::Top => i64::MIN / 4,
        UiCommand::Bottom => i64::MAX / 4,
        _ => return None,
    };
    match app.review.view {
        ReviewView::Reading | ReviewView::Answers => match command {
            UiCommand::Up | UiCommand::Down => move_message(app, rows),
            UiCommand::Top => app.review.scroll.scroll_to_start(),
            UiCommand::Bottom => app.review.scroll.scroll_to_end(),
            _ => scroll_by(app, rows),
        },
        ReviewView::Modes => modes::move_selection(app, rows),
        ReviewView::Drafts => {
            let drafts = &mut app.review.drafts;
            drafts.selected = step(drafts.selected, rows, drafts.drafts.len());
        }
    }
    Some(Vec::new())
}

/// `esc`: goes one step back: the drafts, the questions, a started merge, the opened mode, the modes, the screen.
fn step_back(app: &mut App) {
    let screen = &mut app.review;
    match screen.view {
        ReviewView::Drafts | ReviewView::Answers => screen.view = ReviewView::Modes,
        ReviewView::Modes if screen.modes.merges.take().is_some() => {}
        ReviewView::Modes if screen.modes.opened.take().is_some() => {
            screen.modes.selected_note = 0;
            screen.modes.marked.clear();
        }
        ReviewView::Modes => screen.view = ReviewView::Reading,
        ReviewView::Reading => screen.open = false,
    }
}

/// Runs a command of the screen.
pub(super) fn run_command(app: &mut App, command: UiCommand) -> Vec<Effect> {
    match command {
        UiCommand::ReviewNoFailure => set_outcome(app, NoteOutcome::NoFailure, None),
        UiCommand::ReviewUnsure => set_outcome(app, NoteOutcome::Unsure, None),
        UiCommand::ReviewSkip => set_outcome(app, NoteOutcome::Skipped, None),
        UiCommand::ReviewNote => open_note(app),
        UiCommand::ReviewPrevious => go_by(app, -1),
        UiCommand::ReviewNext => go_by(app, 1),
        UiCommand::ReviewUndo => undo_note(app),
        UiCommand::ReviewMore => open(app, Some(MORE)),
        UiCommand::ReviewModes => modes::open_modes(app),
        UiCommand::ModesMark => modes::mark_note(app),
        UiCommand::ModesAssign => modes::assign_or_open(app),
        UiCommand::ModesCreate => {
            let name = modes::suggested_name(app);
            type_text(app, ReviewText::NewMode, name)
        }
        UiCommand::ModesRename => modes::edit_mode(app, false),
        UiCommand::ModesDefine => modes::edit_mode(app, true),
        UiCommand::ModesMerge => modes::merge(app),
        UiCommand::ModesSplit => modes::split(app),
        UiCommand::ModesUngroup => modes::ungroup(app),
        UiCommand::ModesUndo => modes::undo_groups(app),
        UiCommand::ModesNearer => suggest::change_cut(app, false),
        UiCommand::ModesFurther => suggest::change_cut(app, true),
        UiCommand::ModesAskJudge => suggest::open_judge_line(app),
        UiCommand::ModesAccept => suggest::accept_group(app),
        UiCommand::ModesDiscard => suggest::discard_group(app),
        UiCommand::ModesAnswers => modes::open_answers(app),
        UiCommand::ModesEval => modes::open_drafts(app),
        UiCommand::DraftWrite => modes::write_draft(app),
        UiCommand::AnswerYes => modes::answer(app, true),
        UiCommand::AnswerNo => modes::answer(app, false),
        UiCommand::AnswerNext => modes::go_to_question(app, 1),
        UiCommand::AnswerPrevious => modes::go_to_question(app, -1),
        _ => Vec::new(),
    }
}

fn open_note(app: &mut App) -> Vec<Effect> {
    let note = app.review.current_note();
    let text = note.and_then(|note| note.note.clone()).unwrap_or_default();
    type_text(app, ReviewText::Note, text)
}

/// Takes a typed text.
pub(super) fn accept_text(app: &mut App, purpose: ReviewText, text: &str) -> Vec<Effect> {
    let text = text.trim();
    if text.is_empty() {
        return push_info(app, "nothing was typed, so nothing changes");
    }
    let text = text.to_owned();
    match purpose {
        ReviewText::Note => set_outcome(app, NoteOutcome::Failure, Some(text)),
        ReviewText::NewMode => {
            let notes = app.review.chosen_notes();
            let change = GroupingChange::Create {
                name: text,
                definition: String::new(),
                notes,
            };
            change_groups(app, &change)
        }
        ReviewText::Rename(mode) => {
            change_groups(app, &GroupingChange::Rename { mode, name: text })
        }
        ReviewText::Define(mode) => change_groups(
            app,
            &GroupingChange::Define {
                mode,
                definition: text,
            },
        ),
        ReviewText::Split(mode) => {
            let notes = app.review.chosen_notes();
            let change = GroupingChange::Split {
                mode,
                notes,
                name: text,
            };
            change_groups(app, &change)
        }
        ReviewText::AskJudge => suggest::ask_judge(app, &text),
        ReviewText::EvalRubric => modes::write_draft_into(app, text),
    }
}

/// Writes the answer about the shown transcript. The screen goes on once it is on disk.
fn set_outcome(app: &mut App, outcome: NoteOutcome, text: Option<String>) -> Vec<Effect> {
    let screen = &mut app.review;
    let (Some(item), Some(session)) = (screen.current_item().cloned(), &screen.session) else {
        return push_info(app, "no transcript is left: + draws more");
    };
    let before = screen.current_note().cloned();
    let digest = session.catalog.find(&item.transcript);
    let digest = digest.map(|entry| entry.reference.digest.clone());
    let mut note = before
        .clone()
        // The runtime gives a new note its id.
        .unwrap_or_else(|| ReviewNote::new("", &item.transcript, outcome));
    note.outcome = outcome;
    note.digest = digest;
    note.message = text.is_some().then_some(screen.message);
    note.note = text;
    note.by.clone_from(&session.reader);
    note.sample = Some(item.sample);
    if outcome == NoteOutcome::NoFailure {
        // Earlier answers "yes" contradict it.
        note.modes.retain(|_, occurs| !*occurs);
    }
    note.at = None;
    screen.undo.push(NoteUndo {
        transcript: item.transcript,
        id: note.id.clone(),
        before,
    });
    let write = GroupingWrite {
        modes: None,
        notes: vec![note],
    };
    write_files(app, write, ReviewWriteKind::Note)
}

fn undo_note(app: &mut App) -> Vec<Effect> {
    let Some(undo) = app.review.undo.pop() else {
        return push_info(app, "there is nothing to undo");
    };
    let Some(session) = &app.review.session else {
        return Vec::new();
    };
    let mut queue = session.queue.iter();
    let at = queue.position(|item| item.transcript == undo.transcript);
    let Some(written) = session.book.find(&undo.id).cloned() else {
        return push_info(app, "the note is gone already");
    };
    let mut note = undo.before.unwrap_or(ReviewNote {
        outcome: NoteOutcome::Removed,
        ..written
    });
    note.at = None;
    app.review.at = at.unwrap_or(app.review.at);
    let write = GroupingWrite {
        modes: None,
        notes: vec![note],
    };
    write_files(app, write, ReviewWriteKind::Undo)
}

/// A write ended: the screen goes on, and the keys that waited count.
pub(super) fn handle_written(
    app: &mut App,
    order: ReviewWriteOrder,
    written: Result<(Vec<ReviewNote>, Option<Arc<str>>), TaskFailure>,
) -> Vec<Effect> {
    let Some((expected, kind)) = app.review.writing else {
        return Vec::new();
    };
    if expected != order.number {
        return Vec::new();
    }
    app.review.writing = None;
    let (notes, modes_text) = match written {
        Ok(written) => written,
        Err(why) => {
            match kind {
                ReviewWriteKind::Note | ReviewWriteKind::Answer => drop(app.review.undo.pop()),
                ReviewWriteKind::Groups => app.review.modes.changes.forget_last(),
                ReviewWriteKind::Undo | ReviewWriteKind::UndoGroups => {}
            }
            // Keys that were meant for the next transcript must not reach this one.
            app.review.held.clear();
            if matches!(kind, ReviewWriteKind::Groups | ReviewWriteKind::UndoGroups) {
                let text = format!("nothing was changed: {why}; the files are read again");
                app.notices.push(app.now, NoticeLevel::Error, text);
                return read_again(app);
            }
            let text = format!("the note is not saved: {why}");
            app.notices.push(app.now, NoticeLevel::Error, text);
            return Vec::new();
        }
    };
    let screen = &mut app.review;
    if let Some(session) = &mut screen.session {
        if let (Some(text), Some(modes)) = (modes_text, order.modes) {
            // The notes that follow usually belong to the new mode, so it is selected.
            if kind == ReviewWriteKind::Groups && modes.modes.len() > session.book.modes.modes.len()
            {
                screen.modes.selected_mode = modes.modes.len() - 1;
            }
            session.modes_text = text;
            session.book.modes = modes;
        }
        session.book.add(&notes);
    }
    if let (Some(undo), Some(note)) = (screen.undo.last_mut(), notes.first())
        && matches!(kind, ReviewWriteKind::Note | ReviewWriteKind::Answer)
    {
        undo.id.clone_from(&note.id);
    }
    update_progress(screen);
    match kind {
        ReviewWriteKind::Note => advance(app),
        ReviewWriteKind::Answer => drop(modes::go_to_question(app, 1)),
        ReviewWriteKind::Undo => {
            push_info(app, "undone");
        }
        ReviewWriteKind::Groups | ReviewWriteKind::UndoGroups => {
            screen.modes.marked.clear();
            let notes = screen.listed_notes().len();
            screen.modes.selected_note = step(screen.modes.selected_note, 0, notes);
            let modes = screen.session.as_ref();
            let modes = modes.map_or(0, |session| session.book.modes.modes.len());
            screen.modes.selected_mode = step(screen.modes.selected_mode, 0, modes);
        }
    }
    Vec::new()
}

/// Goes to the next transcript that the reader has not visited; past the last one, stays.
fn advance(app: &mut App) {
    let screen = &mut app.review;
    let Some(session) = &screen.session else {
        return;
    };
    let reader = session.reader.as_deref();
    let is_open = |at: &usize| {
        let item = &session.queue[*at];
        !session.book.is_visited(&item.transcript, reader)
    };
    let after = (screen.at + 1..session.queue.len()).find(is_open);
    match after.or_else(|| (0..session.queue.len()).find(is_open)) {
        Some(next) => screen.at = next,
        None => {
            push_info(
                app,
                "the whole sample is read: m groups the notes, + draws more",
            );
        }
    }
}

fn go_by(app: &mut App, delta: i64) -> Vec<Effect> {
    let queue = app.review.session.as_ref();
    let queue = queue.map_or(0, |session| session.queue.len());
    app.review.at = step(app.review.at, delta, queue);
    Vec::new()
}
