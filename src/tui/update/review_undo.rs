//! The reading screen: `U` undoes the last change, in every view and also after a restart.

use std::sync::Arc;

use super::notices::{push_info, push_written};
use super::review_suggest::undo_discard;
use super::review_write::{begin_write, write_undo};
use crate::model::make_visible;
use crate::review::UndoStep;
use crate::tui::effect::{Effect, UndoFailure};
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::review::{ReviewView, ReviewWriteKind};

/// `U`: undoes the last change.
pub(super) fn undo_last(app: &mut App) -> Vec<Effect> {
    if undo_discard(app) {
        return push_info(app, "the discarded group is back");
    }
    let Some(session) = &app.review.session else {
        return Vec::new();
    };
    let Some(step) = app.review.undo.last().cloned() else {
        return push_info(app, "there is nothing to undo");
    };
    let files = session.place.files.clone();
    if step.eval.is_some() {
        let Some(workspace) = app.workspace().map(Arc::clone) else {
            return push_info(app, "open the workspace of the eval to take it back");
        };
        app.review.undo.pop();
        begin_write(app, ReviewWriteKind::Undo);
        let step = Box::new(step);
        return vec![Effect::UndoEval {
            workspace,
            files,
            step,
        }];
    }
    let write = step.reverse(&session.book);
    app.review.undo.pop();
    match write {
        Ok(write) => write_undo(app, write, step),
        Err(why) => {
            report_lost(app, &step, &why.to_string());
            vec![Effect::ForgetUndo {
                files,
                step: Box::new(step),
            }]
        }
    }
}

fn report_lost(app: &mut App, step: &UndoStep, why: &str) {
    let what = make_visible(&step.what, false);
    let why = make_visible(why, false);
    let text = format!("{what} stays: {why}; U undoes the change before it");
    // The reload of the file that someone edited must not hide it.
    app.notices
        .push_written(app.now, NoticeLevel::Warning, text);
}

/// A change was undone: goes to what it was about, and names it.
pub(super) fn show_undone(app: &mut App, step: &UndoStep) -> Vec<Effect> {
    let screen = &mut app.review;
    let queue = screen
        .session
        .as_ref()
        .map(|session| Arc::clone(&session.queue));
    let transcript = step.transcript();
    let at = queue.zip(transcript).and_then(|(queue, transcript)| {
        let mut queue = queue.iter();
        queue.position(|item| item.transcript == transcript)
    });
    screen.at = at.unwrap_or(screen.at);
    if screen.view == ReviewView::Answers {
        show_question(app, step);
    }
    let what = make_visible(&step.what, false);
    // The reload of rubrics and labels follows an undone eval.
    push_written(app, format!("undone: {what}"))
}

/// Shows the question again whose answer was undone. Another undone change can open or close questions.
fn show_question(app: &mut App, step: &UndoStep) {
    let screen = &mut app.review;
    let place = |questions: &[(String, String)]| {
        let mut questions = questions.iter();
        questions.position(|one| Some(one) == step.question.as_ref())
    };
    let known = place(&screen.questions);
    if known.is_none() {
        let session = screen.session.as_ref();
        screen.questions = session.map_or_else(Vec::new, |one| one.book.open_questions());
    }
    match known.or_else(|| place(&screen.questions)) {
        Some(at) => screen.question = at,
        None => screen.question = 0,
    }
    if screen.questions.is_empty() {
        screen.view = ReviewView::Modes;
    }
}

/// An eval was taken back, or not.
pub(super) fn handle_eval_undone(
    app: &mut App,
    step: UndoStep,
    done: Result<(), UndoFailure>,
    unkept: Option<String>,
) -> Vec<Effect> {
    app.review.writing = None;
    report_unkept(app, unkept);
    match done {
        Ok(()) => {
            app.review.modes.written = None;
            show_undone(app, &step);
            // Labels and draws changed, which no save announces.
            vec![Effect::RescanFiles]
        }
        Err(failure) if failure.can_retry => {
            let why = make_visible(&failure.why, false);
            let text = format!("nothing was undone: {why}");
            app.notices.push(app.now, NoticeLevel::Error, text);
            app.review.undo.push(step);
            Vec::new()
        }
        Err(failure) => {
            report_lost(app, &step, &failure.why);
            Vec::new()
        }
    }
}

/// Warns that an undo ends with the program.
pub(super) fn report_unkept(app: &mut App, unkept: Option<String>) {
    if let Some(why) = unkept {
        let why = make_visible(&why, false);
        let text = format!("U works only until dicta ends, because it can't be recorded: {why}");
        if !app.notices.contains(&text) {
            app.notices.push(app.now, NoticeLevel::Warning, text);
        }
    }
}
