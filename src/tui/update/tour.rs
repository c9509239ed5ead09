//! The tour ticks itself off.

use crate::model::Outcome;
use crate::tui::model::cells::Stale;
use crate::tui::model::pane::Pane;
use crate::tui::model::runs::Stage;
use crate::tui::model::tour::{LOOKED, TourStep};
use crate::tui::model::{Model, Place};

/// After every update: which step is done now.
pub(super) fn tick(model: &mut Model) {
    let Some(mut tour) = model.tour.take() else {
        return;
    };
    let live = &model.live;
    let row = live.cells.selected();
    if !tour.done[TourStep::Run as usize] {
        let ended = |run: &crate::tui::model::runs::Run| {
            run.save.is_none() && run.stage == Stage::Ended(None)
        };
        if live.runs.map.values().any(ended) {
            tour.tick(TourStep::Run);
            tour.from = row;
        }
    } else if !tour.done[TourStep::LookAtFailure as usize] {
        let failed = row.and_then(|row| live.cells.row(row)).is_some_and(|row| {
            let decided = row.seen().map(|decision| decision.outcome);
            decided == Some(Outcome::Fail) && row.stale != Some(Stale::Eval)
        });
        let went = row != tour.from || model.ui.focus == Pane::Verdict;
        if failed && went && model.layout().area(Pane::Verdict).is_some() {
            tour.tick(TourStep::LookAtFailure);
        }
    }
    let saved = model
        .saves
        .report
        .as_ref()
        .filter(|report| report.number > 0);
    if saved.is_some_and(|report| !report.files.is_empty()) {
        tour.tick(TourStep::ChangeALine);
    }
    if saved.is_some_and(|report| !report.flips.is_empty()) {
        let since = *tour.flipped.get_or_insert(model.now);
        if model.ui.focus == Pane::Changes || model.now >= since + LOOKED {
            tour.tick(TourStep::WatchTheFlip);
        }
    }
    if model.replay.is_some() {
        tour.tick(TourStep::Replay);
    }
    if !matches!(&model.place, Place::Workspace(workspace) if workspace.is_demo) {
        tour.tick(TourStep::UseYourOwn);
    }
    model.tour = Some(tour);
}
