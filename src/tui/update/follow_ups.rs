//! `a`: a question to the judge about its verdict. The answer is shown below the trace and changes no result.

use super::notices::push_info;
use crate::model::{CellName, pluralize};
use crate::record::FollowUp;
use crate::run::PaidCalls;
use crate::tui::effect::Effect;
use crate::tui::state::follow_ups::{FollowUpKey, FollowUpOrder};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::session_view::SessionView;
use crate::tui::state::shown_cell::{ShownCell, resolve_shown_cell};
use crate::tui::state::{App, FooterInput};
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::line_input::LineInput;

/// Returns the cell that questions are about; `None` until the folder of its run is known.
fn find_key(shown: &ShownCell<'_>) -> Option<FollowUpKey> {
    Some(FollowUpKey {
        run: shown.run?.clone(),
        dir: shown.dir?.to_owned(),
        cell: shown.number,
    })
}

/// Orders the questions of the shown cell, once its trace has ended. Questions about another trace disappear.
pub(super) fn request(app: &mut App) -> Option<Effect> {
    let shown = resolve_shown_cell(app)?;
    let key = shown.result.and_then(|_| find_key(&shown));
    let known = &mut app.session_mut().trace_screen.follow_ups;
    if known.key == key {
        return None;
    }
    known.key.clone_from(&key);
    known.list.clear();
    known.asking = None;
    Some(Effect::ReadFollowUps(key?))
}

/// Opens the line for a question.
pub(super) fn open_question(app: &mut App) -> Vec<Effect> {
    let session = app.session();
    if session.trace_screen.follow_ups.asking.is_some() {
        return push_info(app, "the judge is still answering the last question");
    }
    let shown = resolve_shown_cell(app);
    let row = session.trace_panes.row;
    let name = row.and_then(|row| session.cells.decision_name(row));
    let found = shown.and_then(|shown| Some((find_key(&shown)?, shown.judge_spec()?)));
    let (Some((key, judge)), Some(workspace)) = (found, app.workspace()) else {
        return push_info(app, "the run of this trace is not known yet");
    };
    // The workspace has the current settings of the judge, such as its key.
    let known = workspace.judges.get(&judge.config.name);
    let target = FollowUpOrder {
        key,
        name: name.map_or_else(String::new, |name: CellName| name.to_string()),
        judge: known.unwrap_or(&judge.config).clone(),
        question: String::new(),
        workspace: workspace.clone(),
        is_confirmed: false,
    };
    app.ui.footer_input = Some(FooterInput::FollowUp {
        input: LineInput::default(),
        target: Box::new(target),
    });
    Vec::new()
}

/// Sends a question.
pub(super) fn accept_question(
    app: &mut App,
    mut order: FollowUpOrder,
    question: &str,
) -> Vec<Effect> {
    let question = question.trim();
    if question.is_empty() {
        return push_info(app, "nothing was asked");
    }
    question.clone_into(&mut order.question);
    for session in sessions_of(app, &order.key) {
        session.trace_screen.follow_ups.asking = Some(order.question.clone());
        session.trace_screen.steps.scroll_to_end();
    }
    vec![Effect::AskFollowUp(order)]
}

/// The question costs more than the limit: asks for consent first.
pub(super) fn handle_priced(
    app: &mut App,
    order: Box<FollowUpOrder>,
    calls: PaidCalls,
) -> Vec<Effect> {
    app.overlays.push(Overlay::ConfirmFollowUp { order, calls });
    Vec::new()
}

/// The user allows the cost.
pub(super) fn send(order: FollowUpOrder) -> Vec<Effect> {
    vec![Effect::AskFollowUp(FollowUpOrder {
        is_confirmed: true,
        ..order
    })]
}

/// The user refuses the cost.
pub(super) fn decline(app: &mut App, order: &FollowUpOrder) {
    for session in sessions_of(app, &order.key) {
        session.trace_screen.follow_ups.asking = None;
    }
    push_info(app, "the judge was not asked");
}

/// Returns the sessions that show the cell.
fn sessions_of<'a>(
    app: &'a mut App,
    key: &'a FollowUpKey,
) -> impl Iterator<Item = &'a mut SessionView> {
    let replayed = app.replay.as_mut().map(|replay| &mut replay.session);
    let all = std::iter::once(&mut app.live_session).chain(replayed);
    all.filter(move |session| session.trace_screen.follow_ups.key.as_ref() == Some(key))
}

/// Stores the questions of a cell.
pub(super) fn handle_read(app: &mut App, key: &FollowUpKey, list: &[FollowUp]) -> Vec<Effect> {
    for session in sessions_of(app, key) {
        session.trace_screen.follow_ups.list = list.to_vec();
    }
    Vec::new()
}

/// Shows an answer, or why there is none.
pub(super) fn handle_answered(
    app: &mut App,
    key: &FollowUpKey,
    answered: Result<Box<FollowUp>, TaskFailure>,
) -> Vec<Effect> {
    let mut is_shown = false;
    for session in sessions_of(app, key) {
        is_shown = true;
        let follow_ups = &mut session.trace_screen.follow_ups;
        follow_ups.asking = None;
        let answer = answered.as_ref().ok();
        follow_ups.list.extend(answer.map(|one| (**one).clone()));
        session.trace_screen.steps.scroll_to_end();
    }
    match answered {
        Err(why) => {
            let text = format!("the question was not answered: {why}");
            app.notices.push(app.now, NoticeLevel::Error, text);
            Vec::new()
        }
        Ok(answer) if !is_shown => {
            let words = answer.answer.split_whitespace().count();
            let text = format!(
                "{} answered in {}",
                answer.judge,
                pluralize(words as u64, "word")
            );
            push_info(app, text)
        }
        Ok(_) => Vec::new(),
    }
}
