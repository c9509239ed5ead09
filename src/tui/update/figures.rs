//! Orders the figures of the shown eval again after something changed, and takes their results.
//!
//! Another thread computes, one eval at a time, so a long computation delays no key and never piles up.

use std::sync::Arc;

use crate::model::RecordedDraw;
use crate::record::EvalPath;
use crate::tui::effect::Effect;
use crate::tui::history_view::Shared;
use crate::tui::label_figures::{FiguresInput, StateFiguresInput};
use crate::tui::msg::Msg;
use crate::tui::state::App;
use crate::tui::state::cells::{CellsEntry, CellsState};
use crate::tui::state::labelling::{ScreenFigures, StateFigures};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::task_failure::TaskFailure;
use crate::tui::update::label_queues;
use crate::tui::update::notices::push_info;
use crate::tui::widget::flow::ScrollState;

/// Returns true if a message can change a verdict, a label or a draw. Labels that keys set count when they are set.
pub(super) fn changes_figures(msg: &Msg) -> bool {
    matches!(
        msg,
        Msg::OutlineExtended { .. }
            | Msg::OutlineEnded { .. }
            | Msg::NewestVerdictsRead { .. }
            | Msg::LabelsRenamed(_)
            | Msg::LabelMoveUndone { .. }
            | Msg::NoiseRead { .. }
            | Msg::Reloaded { .. }
            | Msg::RunEvents { .. }
            | Msg::RunEnded { .. }
            | Msg::LabelWritten { .. }
            | Msg::DrawsRead { .. }
            | Msg::LabelsDrawn { .. }
    )
}

/// `I`: shows the figures of the selected eval.
pub(super) fn open_agreement(app: &mut App) -> Vec<Effect> {
    let Some(eval) = app
        .selected_eval()
        .or_else(|| first_judged_eval(&app.session().cells))
    else {
        return push_info(app, "no eval yet: R judges the cells");
    };
    if app.shows_state() {
        return request_state_figures(app, eval);
    }
    let is_end = app.queue_end_step().is_some();
    if let Some(queue) = app.labelling.queue.as_mut().filter(|_| is_end) {
        queue.is_answered = true;
    }
    app.overlays.push(Overlay::Agreement {
        eval,
        scroll: ScrollState::top(),
    });
    Vec::new()
}

/// Shows the figures of an eval of the opened state, and orders them.
fn request_state_figures(app: &mut App, eval: u32) -> Vec<Effect> {
    let number = app.replay.as_ref().and_then(|replay| replay.state_number);
    let info = app.session().cells.evals.get(eval as usize);
    let (Some(number), Some(info)) = (number, info) else {
        return Vec::new();
    };
    let path = EvalPath {
        rubric: info.rubric.clone(),
        eval: info.id.clone(),
    };
    let progress = &app.progress;
    let entry = progress.view.entry(number);
    let (Some(entry), Some(workspace)) = (entry, app.workspace()) else {
        return push_info(app, "no workspace is open, so there are no labels");
    };
    let input = StateFiguresInput {
        number,
        position: eval,
        eval: path,
        state: Arc::clone(&entry.state),
        labels: progress.labels.clone(),
        noise: Arc::clone(&progress.view.noise),
        labels_file: workspace.labels_file_path(),
    };
    app.labelling.state_figures = Some(StateFigures {
        number,
        eval,
        computed: None,
    });
    app.overlays.push(Overlay::Agreement {
        eval,
        scroll: ScrollState::top(),
    });
    vec![Effect::ComputeStateFigures(input.into())]
}

/// Stores the figures of an opened state.
pub(super) fn handle_state_computed(
    app: &mut App,
    number: usize,
    eval: u32,
    figures: Result<Shared<ScreenFigures>, TaskFailure>,
) -> Vec<Effect> {
    // The user may have asked for others since.
    let asked = app.labelling.state_figures.as_mut();
    if let Some(asked) = asked.filter(|one| one.number == number && one.eval == eval) {
        asked.computed = Some(figures);
    }
    Vec::new()
}

/// Returns the first eval with a judge, for a selection without an eval.
fn first_judged_eval(cells: &CellsState) -> Option<u32> {
    let shown = cells.shown.iter().filter_map(|entry| match entry {
        CellsEntry::Group(eval) => Some(*eval),
        CellsEntry::Row(_) => None,
    });
    let is_judged = |eval: &u32| {
        let info = cells.evals.get(*eval as usize);
        info.is_some_and(|info| info.judged)
    };
    shown
        .clone()
        .find(is_judged)
        .or_else(|| shown.clone().next())
}

/// Orders the figures of the shown eval if they are out of date. Called after every update.
pub(super) fn request_figures(app: &mut App) -> Vec<Effect> {
    let Some(eval) = app.eval_with_figures() else {
        return Vec::new();
    };
    let mut effects = label_queues::request_draws(app);
    let Some(draws) = app.labelling.draws.list.clone() else {
        return effects;
    };
    let figures = &app.labelling.figures;
    let version = figures.version;
    let known = figures.computed.get(&eval).map(|(version, _)| *version);
    if figures.is_computing || known == Some(version) {
        return effects;
    }
    let cells = &app.live_session.cells;
    let Some(info) = cells.evals.get(eval as usize) else {
        return effects;
    };
    let reference = app.workspace().and_then(|workspace| {
        let (rubric, at) = workspace.find_eval(&info.rubric, &info.id)?;
        rubric.evals.get(at)?.reference.clone()
    });
    let reference_eval = reference.as_ref().and_then(|id| {
        let mut evals = cells.evals.iter().zip(0_u32..);
        let found = evals.find(|(other, _)| other.rubric == info.rubric && other.id == *id);
        found.map(|(_, at)| at)
    });
    let is_own = |draw: &RecordedDraw| draw.rubric == info.rubric && draw.eval == info.id;
    let input = match cells.whole_rows(eval) {
        // A part without labels has the figures of all parts together, which labels are about.
        Some(whole) => FiguresInput {
            rubric: info.rubric.clone(),
            eval: whole.id,
            decisions: whole.decisions,
            reference: None,
            draws,
            stale: whole.stale,
        },
        None => FiguresInput {
            rubric: info.rubric.clone(),
            eval: info.id.clone(),
            decisions: cells.figure_decisions(eval, draws.iter().any(is_own), reference_eval),
            reference,
            draws,
            stale: cells
                .groups
                .get(eval as usize)
                .map_or(0, |group| group.counts.stale as u64),
        },
    };
    app.labelling.figures.is_computing = true;
    effects.push(Effect::ComputeFigures {
        eval,
        version,
        input: input.into(),
    });
    effects
}

/// Stores the figures of an eval.
pub(super) fn handle_computed(
    app: &mut App,
    eval: u32,
    version: u64,
    figures: Result<Shared<ScreenFigures>, TaskFailure>,
) -> Vec<Effect> {
    let cache = &mut app.labelling.figures;
    cache.is_computing = false;
    let (figures, problem) = match figures {
        Ok(figures) => (Some(figures), None),
        Err(why) => (None, Some(why)),
    };
    // A failure has an entry too, or the same input would fail again and again.
    cache.computed.insert(eval, (version, figures));
    if let Some(why) = problem {
        let why = format!("dicta could not compute the agreement: {why}");
        app.notices.push(app.now, NoticeLevel::Error, why);
    }
    Vec::new()
}
