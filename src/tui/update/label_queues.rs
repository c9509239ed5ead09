//! The queues of what to label: the choice, the draw, and the next decision.

use std::collections::HashMap;
use std::path::Path;

use super::blind;
use super::notices::push_info;
use super::panes::{focus_pane, keep_selection_visible};
use crate::compare::{LabelQueue, QueueEval, QueueLabel, StratumProperty};
use crate::model::{CellName, RecordedDraw, pluralize};
use crate::tui::effect::Effect;
use crate::tui::history_view::Shared;
use crate::tui::state::App;
use crate::tui::state::cells::RowId;
use crate::tui::state::labelling::{ActiveQueue, WaitingQueue};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::pane::Pane;
use crate::tui::state::queue_options::{
    DEFAULT_QUEUE_SIZE, LabelPurpose, QUEUE_SIZES, QueueChoice, QueueOption,
};
use crate::tui::task_failure::TaskFailure;

/// `Q`: lists the queues of the selected eval.
pub(super) fn open_queues(app: &mut App) -> Vec<Effect> {
    let Some(eval) = app.selected_eval() else {
        return push_info(app, "select an eval or one of its cells first (j, k)");
    };
    let options = list_options(app, eval);
    app.overlays.push(Overlay::LabelQueues {
        eval,
        options,
        selected: 0,
        size: DEFAULT_QUEUE_SIZE,
    });
    request_draws(app)
}

/// Orders the draws of the workspace's labels file, once.
pub(super) fn request_draws(app: &mut App) -> Vec<Effect> {
    let file = app
        .workspace()
        .map(|workspace| workspace.labels_file_path());
    let draws = &mut app.labelling.draws;
    if file.is_none() || draws.requested == file {
        return Vec::new();
    }
    draws.requested.clone_from(&file);
    draws.list = None;
    file.map(|file| Effect::ReadDraws { file })
        .into_iter()
        .collect()
}

/// Stores the draws. A file that dicta cannot read has none, and the figures say why.
pub(super) fn handle_draws_read(
    app: &mut App,
    file: &Path,
    read: Result<Shared<Vec<RecordedDraw>>, TaskFailure>,
) -> Vec<Effect> {
    let draws = &mut app.labelling.draws;
    if draws.requested.as_deref() != Some(file) {
        return Vec::new();
    }
    draws.problem = read.as_ref().err().map(ToString::to_string);
    draws.list = Some(read.unwrap_or_default());
    refresh_options(app);
    Vec::new()
}

/// Lists the options again after the draws were read, or after more rows were listed.
pub(super) fn refresh_options(app: &mut App) {
    let shown = app.overlays.iter().rev().find_map(|overlay| match overlay {
        Overlay::LabelQueues { eval, .. } => Some(*eval),
        _ => None,
    });
    let Some(eval) = shown else { return };
    let new = list_options(app, eval);
    for overlay in &mut app.overlays {
        if let Overlay::LabelQueues {
            options, selected, ..
        } = overlay
        {
            // The cursor stays on its option, because a draw to continue may appear above it. On the first line, the
            // user did not choose yet.
            let chosen = options.get(*selected).map(|option| option.title.clone());
            options.clone_from(&new);
            let at = options
                .iter()
                .position(|option| Some(&option.title) == chosen.as_ref());
            *selected = at.filter(|_| *selected > 0).unwrap_or(0);
        }
    }
}

fn list_options(app: &App, eval: u32) -> Vec<QueueOption> {
    let cells = &app.live_session.cells;
    let Some(found) = cells.queue_rows(eval, None) else {
        return Vec::new();
    };
    let unread = Vec::new();
    let draws = app.labelling.draws.list.as_deref().unwrap_or(&unread);
    let items = &found.eval;
    let mut options = Vec::new();
    let mut push = |choice, title: String, note: String| {
        options.push(QueueOption {
            choice,
            title,
            note,
        });
    };
    // These labels count nowhere until someone confirms them, so they come before everything else.
    let to_confirm = items.choose(LabelQueue::ToConfirm, usize::MAX).len();
    if to_confirm > 0 {
        let queue = LabelQueue::ToConfirm;
        let note = pluralize(to_confirm as u64, "decision");
        push(QueueChoice::Choose(queue), queue.as_str().to_owned(), note);
    }
    // A draw is only worth its name if all of it is labelled, so an unfinished one comes first.
    if let Some((draw, done)) = find_unfinished(items, draws) {
        let name = match &draw.by {
            Some(by) => format!("continue {} by {by}", draw.plan),
            None => format!("continue {}", draw.plan),
        };
        let note = format!("{done} of {} labelled", draw.drawn.len());
        push(QueueChoice::Resume(draw.clone()), name, note);
    }
    let eligible = items.eligible(draws).iter().filter(|one| **one).count();
    let all = items.items.len();
    let from = if eligible == all {
        format!("from all {}", pluralize(all as u64, "decision"))
    } else {
        format!(
            "from {eligible} of {all}; {} measure already",
            all - eligible
        )
    };
    push(QueueChoice::Draw(None), "random".to_owned(), from.clone());
    let stratified = |by: &StratumProperty| format!("stratified by {}", by.name());
    let by = StratumProperty::Verdict;
    push(
        QueueChoice::Draw(Some(by.clone())),
        stratified(&by),
        from.clone(),
    );
    if items
        .items
        .iter()
        .any(|item| item.judges_differ || item.repeats_differ)
    {
        let by = StratumProperty::Disagreement;
        push(
            QueueChoice::Draw(Some(by.clone())),
            stratified(&by),
            from.clone(),
        );
    }
    for (tag, count) in cells.list_queue_tags(eval) {
        let by = StratumProperty::Tag(tag);
        let note = format!("{count} with the tag");
        push(QueueChoice::Draw(Some(by.clone())), stratified(&by), note);
    }
    for queue in [
        LabelQueue::Disagreements,
        LabelQueue::Unsure,
        LabelQueue::Noise,
        LabelQueue::ToConfirm,
    ] {
        let count = items.choose(queue, usize::MAX).len();
        let is_listed = match queue {
            // Only repeats show noise.
            LabelQueue::Noise => count > 0,
            // It is the first option if it has decisions.
            LabelQueue::ToConfirm => count == 0,
            _ => true,
        };
        if !is_listed {
            continue;
        }
        let note = pluralize(count as u64, "decision");
        push(QueueChoice::Choose(queue), queue.as_str().to_owned(), note);
    }
    if app.labelling.queue.is_some() {
        let note = "leaves the queue".to_owned();
        push(QueueChoice::ByHand, "by hand".to_owned(), note);
    }
    options
}

/// Returns the newest draw of an eval of which some decisions have no label, and the number of those that have one.
fn find_unfinished<'d>(
    items: &QueueEval,
    draws: &'d [RecordedDraw],
) -> Option<(&'d RecordedDraw, usize)> {
    let labelled: HashMap<&str, bool> = items
        .items
        .iter()
        .map(|item| {
            let is_labelled = matches!(item.label, QueueLabel::Counted(_) | QueueLabel::Sealed);
            (item.transcript.as_str(), is_labelled)
        })
        .collect();
    let own: Vec<&RecordedDraw> = items.own_draws(draws).collect();
    own.into_iter().rev().find_map(|draw| {
        let known = draw.drawn.iter().filter_map(|id| labelled.get(id.as_str()));
        let (mut done, mut open) = (0, 0);
        for is_labelled in known {
            if *is_labelled {
                done += 1;
            } else {
                open += 1;
            }
        }
        (open > 0).then_some((draw, done))
    })
}

/// Reports that the queue which waited does not begin, because the user went on.
pub(super) fn report_dropped(app: &mut App) {
    let text = "the queue did not begin: Q lists the queues again";
    app.notices.push(app.now, NoticeLevel::Info, text);
}

/// Begins the queue that waited, once all rows are listed.
pub(super) fn accept_waiting(app: &mut App) -> Vec<Effect> {
    if app.past_verdict_wait.is_waiting() {
        return Vec::new();
    }
    match app.labelling.waiting_queue.take() {
        Some(WaitingQueue { eval, option, size }) => accept_queue(app, eval, option, size),
        None => Vec::new(),
    }
}

/// Begins the chosen queue. It waits until all rows are listed.
pub(super) fn accept_queue(
    app: &mut App,
    eval: u32,
    option: QueueOption,
    size: usize,
) -> Vec<Effect> {
    let needs_rows = !matches!(option.choice, QueueChoice::ByHand);
    if needs_rows && app.past_verdict_wait.is_waiting() {
        app.labelling.waiting_queue = Some(WaitingQueue { eval, option, size });
        return push_info(app, "the queue begins when all decisions are listed");
    }
    app.labelling.waiting_queue = None;
    let size = QUEUE_SIZES.get(size).copied().unwrap_or(20);
    match option.choice {
        QueueChoice::ByHand => {
            app.labelling.queue = None;
            push_info(
                app,
                "no queue: labels of cells that you pick only help to debug",
            )
        }
        QueueChoice::Resume(draw) => {
            // After a restart, the screen shows the verdicts.
            let shows = !app.live_session.cells.blind;
            let mut effects = Vec::new();
            if shows && was_labelled_blind(app, eval, &draw) {
                effects.extend(blind::toggle_blind(app));
            }
            effects.extend(begin_draw(app, eval, &draw));
            effects
        }
        QueueChoice::Choose(queue) => {
            let Some(found) = app.live_session.cells.queue_rows(eval, None) else {
                return Vec::new();
            };
            let size = if queue == LabelQueue::ToConfirm {
                usize::MAX
            } else {
                size
            };
            let chosen = found.eval.choose(queue, size);
            if chosen.is_empty() {
                return push_info(app, queue.describe_empty());
            }
            let rows: Vec<RowId> = chosen.into_iter().map(|at| found.rows[at]).collect();
            begin(app, queue, None, rows)
        }
        QueueChoice::Draw(by) => {
            let tag = match &by {
                Some(StratumProperty::Tag(tag)) => Some(tag.as_str()),
                _ => None,
            };
            let found = app.live_session.cells.queue_rows(eval, tag);
            let file = app
                .workspace()
                .map(|workspace| workspace.labels_file_path());
            match (found, file) {
                (Some(found), Some(file)) => vec![Effect::DrawLabels {
                    file,
                    eval,
                    items: found.eval.into(),
                    by,
                    size,
                }],
                _ => Vec::new(),
            }
        }
    }
}

/// Returns true if the last label of a draw was given blind.
fn was_labelled_blind(app: &App, eval: u32, draw: &RecordedDraw) -> bool {
    let info = app.live_session.cells.evals.get(eval as usize);
    let Some((info, workspace)) = info.zip(app.workspace()) else {
        return false;
    };
    let mut newest_first = workspace.labels.iter().rev();
    let last = newest_first.find(|label| {
        label.sample.is_some() && label.eval == info.id && draw.drawn.contains(&label.transcript)
    });
    last.is_some_and(|label| label.blind == Some(true))
}

/// Begins the queue of a draw that was recorded.
pub(super) fn handle_drawn(
    app: &mut App,
    eval: u32,
    drawn: Result<Option<Box<RecordedDraw>>, TaskFailure>,
) -> Vec<Effect> {
    let draw = match drawn {
        Ok(Some(draw)) => draw,
        Ok(None) => {
            return push_info(app, LabelQueue::Random.describe_empty());
        }
        Err(why) => {
            let why = format!("nothing was drawn: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
            return Vec::new();
        }
    };
    let list = app.labelling.draws.list.as_deref();
    let mut all = list.cloned().unwrap_or_default();
    all.push((*draw).clone());
    app.labelling.draws.list = Some(Shared::from(all));
    begin_draw(app, eval, &draw)
}

fn begin_draw(app: &mut App, eval: u32, draw: &RecordedDraw) -> Vec<Effect> {
    let cells = &app.live_session.cells;
    let Some(info) = cells.evals.get(eval as usize) else {
        return Vec::new();
    };
    let rows = draw.drawn.iter().filter_map(|id| {
        let name = CellName {
            transcript: id.clone(),
            rubric: info.rubric.clone(),
            eval: info.id.clone(),
            message: None,
            judge: None,
            repeat: None,
        };
        cells.find_row(&name)
    });
    let rows: Vec<RowId> = rows.collect();
    let queue = if draw.by.is_some() {
        LabelQueue::Stratified
    } else {
        LabelQueue::Random
    };
    begin(app, queue, draw.by.clone(), rows)
}

fn begin(app: &mut App, queue: LabelQueue, by: Option<String>, rows: Vec<RowId>) -> Vec<Effect> {
    let queue = ActiveQueue::new(queue, by, rows, &app.live_session.cells);
    let first = queue.next_open(None, &app.live_session.cells);
    // A label of a person who sees the verdict tends to agree with it, so it measures less.
    let shows_verdicts = !app.live_session.cells.blind;
    let keys = if queue.queue == LabelQueue::ToConfirm {
        "a confirms, p f u answer again, s skips"
    } else if queue.purpose() == LabelPurpose::Measure && shows_verdicts {
        "B hides the verdicts, p f u label, i adds a note, s skips"
    } else {
        "p f u label, i adds a note, s skips"
    };
    let notice = format!(
        "{}, {}: {keys}",
        pluralize(queue.len() as u64, "decision"),
        queue.name(),
    );
    app.labelling.queue = Some(queue);
    let Some(first) = first else {
        return push_info(app, "every decision of this queue has a label");
    };
    go_to(app, first);
    // A label is about the transcript, so a person reads it before anything else.
    focus_pane(app, Pane::Transcript);
    push_info(app, notice)
}

fn go_to(app: &mut App, row: RowId) {
    app.live_session.cells.select_row(row);
    keep_selection_visible(app);
}

/// Goes to the next decision of the queue after a label. Returns a text about the queue for the notice; `None` if the
/// selection stays.
pub(super) fn advance(app: &mut App, from: RowId) -> Option<String> {
    let queue = app.labelling.queue.as_mut()?;
    if !queue.contains(from) {
        return None;
    }
    queue.set_handled(from, true);
    let next = queue.next_open(Some(from), &app.live_session.cells);
    // The option is remembered; without a choice, labels advance.
    if app.ui.choices.advance == Some(false) {
        return None;
    }
    let Some(row) = next else {
        let end = describe_queue_end(app.live_session.cells.blind);
        return Some(format!("; {end}"));
    };
    go_to(app, row);
    Some(String::new())
}

/// Returns the text about a finished queue, with the keys to the answer.
const fn describe_queue_end(blind: bool) -> &'static str {
    if blind {
        "the queue is done: B shows the verdicts, then I the agreement"
    } else {
        "the queue is done: I shows the agreement"
    }
}

/// `s`: goes to the next decision of the queue, or without a queue to the next one without a label.
pub(super) fn select_next(app: &mut App) -> Vec<Effect> {
    if app.replay.is_none()
        && let Some(queue) = &app.labelling.queue
    {
        let cells = &app.live_session.cells;
        let from = cells.selected_row();
        let Some(row) = queue.next_open(from, cells) else {
            let is_open = from.is_some_and(|row| queue.next_open(None, cells) == Some(row));
            let notice = match describe_queue_end(cells.blind) {
                _ if is_open => "this is the last open decision of the queue".to_owned(),
                end => format!("{end}; Q chooses another queue"),
            };
            return push_info(app, notice);
        };
        go_to(app, row);
        return Vec::new();
    }
    if app.session_mut().cells.select_next_unlabelled() {
        keep_selection_visible(app);
        return Vec::new();
    }
    let rows = app.session().cells.rows.iter();
    let to_confirm = rows.filter(|row| row.to_confirm.is_some()).count();
    if to_confirm == 0 {
        return push_info(app, "everything that is listed is labelled");
    }
    let notice = format!(
        "everything that is listed is labelled; {} to confirm (Q, to confirm)",
        pluralize(to_confirm as u64, "label")
    );
    push_info(app, notice)
}

/// `K`: switches the advance to the next decision after a label.
pub(super) fn toggle_advance(app: &mut App) -> Vec<Effect> {
    let advances = app.ui.choices.advance == Some(false);
    app.ui.choices.advance = Some(advances);
    let notice = if advances {
        "a label goes to the next decision of the queue"
    } else {
        "a label stays on its decision; s goes to the next one"
    };
    push_info(app, notice)
}
