//! The reading screen: its keys, what it reads, and what it writes.
//!
//! A note is on disk before the screen goes on. Keys that are pressed meanwhile wait.

use std::sync::Arc;

use super::notices::push_info;
use super::review_counts as counts;
use super::review_modes as modes;
use super::review_suggest as suggest;
use super::review_undo;
use super::review_write::{
    change_groups, keep_text, read_again, step, type_text, update_groups, write_files,
};
use crate::model::{WallTime, pluralize};
use crate::review::{
    GroupingChange, GroupingWrite, NoteOutcome, ReviewNote, ReviewPlace, ReviewSession, UndoStep,
};
use crate::tui::command::UiCommand;
use crate::tui::content::review::text_size;
use crate::tui::effect::{Effect, ReviewWriteOrder, WrittenReview};
use crate::tui::history_view::Shared;
use crate::tui::state::document::{DocumentState, TranscriptDocument};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::review::{
    ModesSide, ModesView, ReviewLoading, ReviewScreen, ReviewText, ReviewView, ReviewWriteKind,
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
            now.picks.clone_from(&place.picks);
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
    let sample = screen.session.as_ref().map(|session| session.queue.len());
    screen.size_before_draw = more.and(sample);
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
    undo: Vec<UndoStep>,
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
    let before = screen.size_before_draw.take();
    let is_same_sample = before.is_some_and(|size| session.queue.len() <= size);
    let all = pluralize(session.catalog.entries.len() as u64, "transcript");
    screen.undo = undo;
    screen.judged.discarded.clear();
    screen.at = if is_same_sample {
        step(screen.at, 0, session.queue.len())
    } else {
        session.first_unread().unwrap_or(0)
    };
    screen.session = Some(Box::new(session));
    screen.view = ReviewView::Reading;
    screen.modes = ModesView::default();
    screen.shown = None;
    update_progress(screen);
    if is_same_sample {
        return push_info(app, format!("the sample has all {all} already"));
    }
    Vec::new()
}

fn update_progress(screen: &mut ReviewScreen) {
    let Some(session) = &screen.session else {
        return;
    };
    screen.visited = session.visited();
    screen.saturation = session.saturation();
    screen.open_questions = session.book.open_questions().len();
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
    screen.message = first_focus(screen);
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

/// Returns the message that is focused first: that of the reader's note, else the first answer of the agent, because a
/// user seldom fails.
fn first_focus(screen: &ReviewScreen) -> u32 {
    let entry = screen.session.as_ref().zip(screen.current_transcript());
    let Some(entry) = entry.and_then(|(session, id)| session.catalog.find(id)) else {
        return 0;
    };
    let noted = screen.current_note().and_then(|note| note.message);
    // A transcript that changed may have lost the message of the note.
    let last = entry.messages.saturating_sub(1);
    noted.unwrap_or(entry.first_reply).min(last)
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
    // Reading begins at the top. A note is read at its message.
    let has_note = app
        .review
        .current_note()
        .is_some_and(|note| note.message.is_some());
    if has_note {
        reveal_message(app);
    }
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

/// Moves the focus to another message.
pub(super) fn move_message(app: &mut App, delta: i64) {
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
    let size = text_size(app);
    let source = crate::tui::content::review::ReviewSource::new(&doc, None, app.ui.theme.glyphs());
    app.review.scroll.scroll_rows(&source, size, rows);
}

/// Runs a command that has its own meaning on this screen. `None` for the others.
pub(super) fn run_shared_command(app: &mut App, command: UiCommand) -> Option<Vec<Effect>> {
    let page = i64::from(text_size(app).height).max(PAGE) - 1;
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
        ReviewView::Counts => modes::move_mode(app, rows),
        ReviewView::Drafts => {
            let drafts = &mut app.review.drafts;
            drafts.selected = step(drafts.selected, rows, drafts.drafts.len());
            drafts.has_moved = true;
        }
    }
    Some(Vec::new())
}

/// `esc`: goes one step back: the drafts, the questions, a started merge, the opened mode, the modes, the screen.
fn step_back(app: &mut App) {
    let screen = &mut app.review;
    match screen.view {
        ReviewView::Drafts | ReviewView::Answers => screen.view = ReviewView::Modes,
        ReviewView::Counts => screen.view = screen.counts.came_from,
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
        UiCommand::ReviewUndo
        | UiCommand::ModesUndo
        | UiCommand::AnswerUndo
        | UiCommand::DraftUndo => review_undo::undo_last(app),
        UiCommand::ReviewMore => open(app, Some(MORE)),
        UiCommand::ReviewModes => modes::open_modes(app),
        UiCommand::ModesMark => modes::mark_note(app),
        UiCommand::ModesAssign => modes::assign_or_open(app),
        UiCommand::ModesCreate => {
            let name = modes::suggested_name(app);
            let notes = app.review.chosen_notes();
            type_text(app, ReviewText::NewMode(notes), name)
        }
        UiCommand::ModesRename => modes::edit_mode(app, false),
        UiCommand::ModesDefine => modes::edit_mode(app, true),
        UiCommand::ModesMerge => modes::merge(app),
        UiCommand::ModesSplit => modes::split(app),
        UiCommand::ModesUngroup => modes::ungroup(app),
        UiCommand::ModesNearer => suggest::change_cut(app, false),
        UiCommand::ModesFurther => suggest::change_cut(app, true),
        UiCommand::ModesAskJudge => suggest::open_judge_line(app),
        UiCommand::ModesAccept => suggest::accept_group(app),
        UiCommand::ModesDiscard => suggest::discard_group(app),
        UiCommand::ModesAnswers => modes::open_answers(app),
        UiCommand::ReviewCounts | UiCommand::ModesCounts => counts::open_counts(app),
        UiCommand::CountsOpen => counts::open_selected(app),
        UiCommand::ModesEval | UiCommand::CountsEval => modes::open_drafts(app),
        UiCommand::DraftWrite => modes::write_draft(app),
        UiCommand::AnswerYes => modes::answer(app, true),
        UiCommand::AnswerNo => modes::answer(app, false),
        UiCommand::AnswerNext => modes::go_to_question(app, 1),
        UiCommand::AnswerPrevious => modes::go_to_question(app, -1),
        _ => Vec::new(),
    }
}

fn open_note(app: &mut App) -> Vec<Effect> {
    let Some(transcript) = app.review.current_transcript().map(str::to_owned) else {
        return push_info(app, "no transcript is left: + draws more");
    };
    let note = app.review.current_note();
    let text = note.and_then(|note| note.note.clone()).unwrap_or_default();
    type_text(app, ReviewText::Note(transcript), text)
}

/// Takes a typed text.
pub(super) fn accept_text(app: &mut App, purpose: ReviewText, text: &str) -> Vec<Effect> {
    let text = text.trim();
    if text.is_empty() {
        return push_info(app, "nothing was typed, so nothing changes");
    }
    let text = text.to_owned();
    match purpose {
        ReviewText::Note(_) => set_outcome(app, NoteOutcome::Failure, Some(text)),
        ReviewText::NewMode(notes) => {
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
    let write = GroupingWrite {
        modes: None,
        notes: vec![note],
    };
    let what = format!("{} on {}", outcome.title(), item.transcript);
    let step = UndoStep::of_write(what, &session.book, &write);
    write_files(app, write, ReviewWriteKind::Note, step)
}

/// A write ended: the screen goes on, and the keys that waited count.
pub(super) fn handle_written(
    app: &mut App,
    order: ReviewWriteOrder,
    written: Result<WrittenReview, TaskFailure>,
) -> Vec<Effect> {
    let Some((expected, kind)) = app.review.writing else {
        return Vec::new();
    };
    if expected != order.number {
        return Vec::new();
    }
    app.review.writing = None;
    match written {
        Ok(written) => {
            review_undo::report_unkept(app, written.unkept.clone());
            go_on(app, order, kind, written)
        }
        Err(why) => explain_failed_write(app, order, kind, &why),
    }
}

/// Explains a write that failed. What the user typed or took back stays for another try.
fn explain_failed_write(
    app: &mut App,
    order: ReviewWriteOrder,
    kind: ReviewWriteKind,
    why: &TaskFailure,
) -> Vec<Effect> {
    app.review.undo.extend(order.undoes);
    // Keys that were meant for the next transcript must not reach this one.
    app.review.held.clear();
    if matches!(kind, ReviewWriteKind::Groups | ReviewWriteKind::Undo) {
        let text = format!("nothing was changed: {why}; the files are read again");
        app.notices.push(app.now, NoticeLevel::Error, text);
        return read_again(app);
    }
    if let Some(note) = order.notes.first()
        && let Some(text) = note.text()
    {
        keep_text(app, ReviewText::Note(note.transcript.clone()), text);
    }
    let text = format!("the note is not saved: {why}");
    app.notices.push(app.now, NoticeLevel::Error, text);
    Vec::new()
}

fn go_on(
    app: &mut App,
    order: ReviewWriteOrder,
    kind: ReviewWriteKind,
    written: WrittenReview,
) -> Vec<Effect> {
    let screen = &mut app.review;
    if let Some(mut step) = order.step {
        step.set_written(&written.notes);
        screen.undo.push(step);
    }
    if let Some(session) = &mut screen.session {
        let mut modes = None;
        if let (Some(text), Some(new)) = (written.modes_text, order.modes) {
            // The notes that follow usually belong to the new mode, so it is selected.
            if kind == ReviewWriteKind::Groups && new.modes.len() > session.book.modes.modes.len() {
                screen.modes.selected_mode = new.modes.len() - 1;
            }
            session.modes_text = text;
            modes = Some(new);
        }
        session.add_written(&written.notes, modes);
    }
    update_progress(screen);
    match kind {
        ReviewWriteKind::Note => advance(app),
        ReviewWriteKind::Answer => drop(modes::go_to_question(app, 1)),
        ReviewWriteKind::Groups | ReviewWriteKind::Undo => {
            screen.modes.marked.clear();
            let notes = screen.listed_notes().len();
            screen.modes.selected_note = step(screen.modes.selected_note, 0, notes);
            let modes = screen.session.as_ref();
            let modes = modes.map_or(0, |session| session.book.modes.modes.len());
            screen.modes.selected_mode = step(screen.modes.selected_mode, 0, modes);
        }
        ReviewWriteKind::Eval => {}
    }
    if let Some(undone) = &order.undoes {
        return review_undo::show_undone(app, undone);
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
    let whole = if session.has_drawn_all() {
        "the whole sample is read: m groups the notes"
    } else {
        "the whole sample is read: m groups the notes, + draws more"
    };
    let after = (screen.at + 1..session.queue.len()).find(is_open);
    match after.or_else(|| (0..session.queue.len()).find(is_open)) {
        Some(next) => screen.at = next,
        None => {
            push_info(app, whole);
        }
    }
}

fn go_by(app: &mut App, delta: i64) -> Vec<Effect> {
    let queue = app.review.session.as_ref();
    let queue = queue.map_or(0, |session| session.queue.len());
    app.review.at = step(app.review.at, delta, queue);
    Vec::new()
}
