//! The reading screen: groups that dicta suggests, from similar words in the background or from a judge's model.
//!
//! A suggestion changes nothing before the user accepts its group.

use super::notices::push_info;
use super::review_write::{change_groups, type_text, update_groups};
use crate::model::{make_visible, pluralize};
use crate::review::{JudgeSuggestions, NoteGroup, SuggestionOrder};
use crate::run::PaidCalls;
use crate::tui::effect::Effect;
use crate::tui::history_view::Shared;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::review::ReviewText;
use crate::tui::task_failure::TaskFailure;

/// The step of the cut between groups.
const CUT_STEP: f64 = 0.05;

/// The groups of similar words are known.
pub(super) fn handle_groups(
    app: &mut App,
    number: u64,
    groups: Result<Vec<NoteGroup>, TaskFailure>,
) -> Vec<Effect> {
    let modes = &mut app.review.modes;
    if number != modes.groups_number {
        return Vec::new();
    }
    modes.is_grouping = false;
    match groups {
        Ok(groups) => modes.groups = groups,
        Err(why) => {
            let text = format!("dicta cannot group the notes: {why}");
            app.notices.push(app.now, NoticeLevel::Error, text);
        }
    }
    Vec::new()
}

/// `<` and `>`: suggests smaller or larger groups.
pub(super) fn change_cut(app: &mut App, is_larger: bool) -> Vec<Effect> {
    let groups = app.review.suggested_groups();
    if groups.first().is_some_and(|group| group.judge.is_some()) {
        return push_info(
            app,
            "a judge suggests these groups: accept (a) or discard (D) them first",
        );
    }
    let by = if is_larger { CUT_STEP } else { -CUT_STEP };
    let cut = (app.review.modes.cut + by).clamp(CUT_STEP, 1.0);
    app.review.modes.cut = cut;
    push_info(app, format!("groups with a distance up to {cut:.2}"));
    update_groups(app)
}

/// `J`: asks for the name of a judge; stops a question under way.
pub(super) fn open_judge_line(app: &mut App) -> Vec<Effect> {
    if app.review.judged.asking.take().is_some() {
        app.review.judged.number += 1;
        push_info(
            app,
            "the question was stopped; its cost may still be billed",
        );
        return vec![Effect::StopSuggestions];
    }
    let Some(session) = &app.review.session else {
        return Vec::new();
    };
    let Some(workspace) = &session.place.workspace else {
        return push_info(
            app,
            "a judge needs a workspace: esc to the file, then W creates one around it",
        );
    };
    if session.book.ungrouped().len() < 2 {
        return push_info(app, "a judge needs at least two notes without a mode");
    }
    let is_model = |name: &&String| {
        let judge = workspace.judges.get(*name);
        judge.is_some_and(|judge| judge.provider.is_model())
    };
    let default = workspace.judge.as_ref().filter(is_model);
    let first = default.or_else(|| workspace.judges.keys().find(is_model));
    match first.cloned() {
        Some(name) => type_text(app, ReviewText::AskJudge, name),
        None => push_info(
            app,
            "dicta.yaml has no judge with a language model: add one under judges:",
        ),
    }
}

/// The user named a judge: its cost is estimated first.
pub(super) fn ask_judge(app: &mut App, name: &str) -> Vec<Effect> {
    let screen = &mut app.review;
    let Some(session) = &screen.session else {
        return Vec::new();
    };
    let workspace = session.place.workspace.as_ref();
    let judge = workspace.and_then(|workspace| workspace.judges.get(name));
    let Some(judge) = judge.cloned() else {
        let judges = workspace.into_iter().flat_map(|one| one.judges.keys());
        let names: Vec<&str> = judges.map(String::as_str).collect();
        let text = format!(
            "the workspace has no judge `{name}`; it has {}",
            names.join(", ")
        );
        return push_info(app, text);
    };
    screen.judged.number += 1;
    screen.judged.asking = Some((judge.name.clone(), "its cost is estimated".to_owned()));
    vec![Effect::EstimateSuggestions {
        number: screen.judged.number,
        session: Shared::from((**session).clone()),
        judge: Box::new(judge),
    }]
}

/// The cost is known: asks for consent if it needs one, else asks the judge.
pub(super) fn handle_estimated(
    app: &mut App,
    number: u64,
    estimated: Result<(Shared<SuggestionOrder>, PaidCalls), TaskFailure>,
) -> Vec<Effect> {
    if number != app.review.judged.number {
        return Vec::new();
    }
    let (order, calls) = match estimated {
        Ok(estimated) => estimated,
        Err(why) => {
            app.review.judged.asking = None;
            let text = format!("no judge was asked: {why}");
            app.notices.push(app.now, NoticeLevel::Error, text);
            return Vec::new();
        }
    };
    if calls.needs_confirmation(order.workspace.limits.confirm_usd) {
        app.overlays
            .push(Overlay::ConfirmSuggestion { order, calls });
        return Vec::new();
    }
    let cost = if calls.is_empty() {
        "free".to_owned()
    } else {
        calls.describe("question")
    };
    let name = make_visible(&order.judge.name, false).into_owned();
    push_info(app, format!("{name} is asked for groups: {cost}"));
    if let Some(text) = order.prompt.describe_left_out() {
        push_info(app, text);
    }
    send(app, order)
}

/// The user allows the cost, or needs not.
pub(super) fn send(app: &mut App, order: Shared<SuggestionOrder>) -> Vec<Effect> {
    let judged = &mut app.review.judged;
    judged.asking = Some((order.judge.name.clone(), "asked".to_owned()));
    vec![Effect::AskForSuggestions {
        number: judged.number,
        order,
    }]
}

/// The user refuses the cost.
pub(super) fn decline(app: &mut App) {
    app.review.judged.asking = None;
    push_info(app, "no judge was asked");
}

pub(super) fn handle_progress(app: &mut App, number: u64, phrase: String) -> Vec<Effect> {
    let judged = &mut app.review.judged;
    if number == judged.number
        && let Some((_, progress)) = &mut judged.asking
    {
        *progress = phrase;
    }
    Vec::new()
}

/// The judge answered.
pub(super) fn handle_made(
    app: &mut App,
    number: u64,
    made: Result<JudgeSuggestions, TaskFailure>,
) -> Vec<Effect> {
    let judged = &mut app.review.judged;
    if number != judged.number {
        return Vec::new();
    }
    judged.asking = None;
    match made {
        Ok(answer) => {
            let name = make_visible(&answer.judge, false);
            let text = format!(
                "{name} suggests {} ({}): a accepts the group of the selected note, D discards it",
                pluralize(answer.groups.len() as u64, "group"),
                answer.effort
            );
            let dropped = describe_dropped(&answer.dropped);
            judged.answer = Some(answer);
            judged.discarded.clear();
            app.review.modes.selected_note = 0;
            push_info(app, text);
            if let Some(text) = dropped {
                app.notices.push(app.now, NoticeLevel::Error, text);
            }
            Vec::new()
        }
        Err(why) => {
            let text = format!("the judge suggests no groups: {why}");
            app.notices.push(app.now, NoticeLevel::Error, text);
            Vec::new()
        }
    }
}

/// Returns a sentence about the parts of the reply that were left out, if there are some.
fn describe_dropped(dropped: &[String]) -> Option<String> {
    let first = dropped.first()?;
    let more = match dropped.len() - 1 {
        0 => String::new(),
        more => format!(
            " (and {}: see notes.suggestions.jsonl)",
            pluralize(more as u64, "further part")
        ),
    };
    Some(format!(
        "left out of the reply: {}{more}",
        make_visible(first, false)
    ))
}

/// `a`: accepts the suggested group of the selected note.
pub(super) fn accept_group(app: &mut App) -> Vec<Effect> {
    let screen = &app.review;
    let (Some(group), Some(session)) = (screen.selected_group(), &screen.session) else {
        return push_info(app, "the selected note has no suggested group");
    };
    let suggestion = group.to_suggestion();
    let change = session.book.accept_suggestion(&suggestion);
    change_groups(app, &change)
}

/// `D`: discards the judge's group of the selected note. `U` takes it back.
pub(super) fn discard_group(app: &mut App) -> Vec<Effect> {
    let group = app.review.selected_group();
    let number = group.filter(|group| group.judge.is_some());
    let Some(number) = number.map(|group| group.number) else {
        return push_info(app, "no judge suggests a group for the selected note");
    };
    let undoable = app.review.undo.len();
    let judged = &mut app.review.judged;
    let Some(answer) = &mut judged.answer else {
        return Vec::new();
    };
    let group = answer.groups.remove(number);
    let text = format!("discarded: {}", make_visible(&group.name, false));
    judged.discarded.push((undoable, number, group));
    push_info(app, text)
}

/// Takes the last discarded group back, if that was the last change. Returns false if it was not.
pub(super) fn undo_discard(app: &mut App) -> bool {
    let undoable = app.review.undo.len();
    let judged = &mut app.review.judged;
    let is_last = |discarded: &mut (usize, usize, _)| discarded.0 >= undoable;
    let Some((_, number, group)) = judged.discarded.pop_if(is_last) else {
        return false;
    };
    if let Some(answer) = &mut judged.answer {
        let at = number.min(answer.groups.len());
        answer.groups.insert(at, group);
    }
    true
}
