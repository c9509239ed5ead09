//! Keys → commands → what they do.
//!
//! The line being typed takes a key first, then the topmost overlay, then the command table. A key that does nothing now
//! says why.

use super::{copy, files, focus, frozen, labels, overlay, panes, replay, runs, saves, typing};
use crate::tui::command::{self, Command};
use crate::tui::effect::Effect;
use crate::tui::keymap::{self, Chord, Meaning};
use crate::tui::model::Model;
use crate::tui::model::notices::Level;
use crate::tui::model::overlay::Overlay;
use crate::tui::model::pane::Pane;
use crate::tui::model::runs::Stage;

/// A key.
pub(super) fn pressed(model: &mut Model, chord: Chord) -> Vec<Effect> {
    model.notices.dismiss();
    if model.ui.typing.is_some() {
        return typing::pressed(model, chord);
    }
    if !model.overlays.is_empty() {
        return overlay::pressed(model, chord);
    }
    if !model.ui.pending.is_empty() && chord == Chord::plain(crossterm::event::KeyCode::Esc) {
        model.ui.pending.clear();
        return Vec::new();
    }
    model.ui.pending.push(chord);
    let pressed = std::mem::take(&mut model.ui.pending);
    match keymap::resolve(keymap::scopes(model), &pressed) {
        Meaning::Command(command) => run(model, command),
        Meaning::Begun => {
            if pressed.len() == 1 {
                model.ui.pending_since = model.now;
            }
            model.ui.pending = pressed;
            Vec::new()
        }
        Meaning::Nothing => {
            let keys: Vec<String> = pressed.iter().map(Chord::to_string).collect();
            let keys = keys.join(" ");
            told(
                model,
                format!("`{keys}` does nothing here: ? lists the keys"),
            )
        }
    }
}

/// Tells something, and that is all.
pub(super) fn told(model: &mut Model, text: impl Into<String>) -> Vec<Effect> {
    model.notices.tell(model.now, Level::Info, text);
    Vec::new()
}

/// Runs a command if it does something now; says why not, if it does not.
pub(super) fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    let usable = command::spec(command).map_or(Ok(()), |spec| spec.usable(model));
    match usable {
        Ok(()) => obey(model, command),
        Err(why) => told(model, why),
    }
}

/// What each command does; no wildcard, so that none is forgotten.
fn obey(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::Quit => quit(model),
        Command::Cancel => cancel(model),
        Command::Suspend => vec![Effect::Suspend],
        Command::Redraw => vec![Effect::Redraw],
        Command::Help => overlay::help(model),
        Command::Log => overlay::log(model),
        Command::Statistics => overlay::statistics(model),
        Command::Themes => overlay::themes(model),
        Command::TourHide => hide_tour(model),
        Command::Back => back(model),
        Command::NextPane => panes::cycle(model, true),
        Command::PreviousPane => panes::cycle(model, false),
        Command::PaneLeft => panes::beside(model, false),
        Command::PaneRight => panes::beside(model, true),
        Command::Pane1 => panes::focus(model, Pane::Cells),
        Command::Pane2 => panes::focus(model, Pane::Prompt),
        Command::Pane3 => panes::focus(model, Pane::FunctionCall),
        Command::Pane4 => panes::focus(model, Pane::FetchedContent),
        Command::Pane5 => panes::focus(model, Pane::Verdict),
        Command::Pane6 => panes::focus(model, Pane::Transcript),
        Command::Pane7 => panes::focus(model, Pane::Changes),
        Command::Zoom => panes::zoom(model),
        Command::Up => panes::move_by(model, -1),
        Command::Down => panes::move_by(model, 1),
        Command::PageUp => panes::page(model, -1, 1),
        Command::PageDown => panes::page(model, 1, 1),
        Command::HalfUp => panes::page(model, -1, 2),
        Command::HalfDown => panes::page(model, 1, 2),
        Command::Top => panes::end(model, false),
        Command::Bottom => panes::end(model, true),
        Command::Enter => panes::enter(model),
        Command::NextProblem => panes::problem(model, true),
        Command::PreviousProblem => panes::problem(model, false),
        Command::Search => typing::begin(model),
        Command::NextMatch => panes::seek(model, model.ui.focus, true),
        Command::PreviousMatch => panes::seek(model, model.ui.focus, false),
        Command::Sort => panes::sort(model),
        Command::LabelPass => labels::say(model, Some(true)),
        Command::LabelFail => labels::say(model, Some(false)),
        Command::LabelUnsure => labels::say(model, None),
        Command::LabelRemove => labels::remove(model),
        Command::LabelBack => labels::take_back(model),
        Command::NextUnlabelled => labels::next(model),
        Command::Blind => labels::blind(model),
        Command::Run => runs::run_focused(model),
        Command::RunAll => runs::run_all(model),
        Command::Edit => edit(model),
        Command::Auto => saves::toggle_auto(model),
        Command::Pages => frozen::toggle(model),
        Command::Judges => overlay::judges(model),
        Command::Replay => replay::open(model),
        Command::MakeWorkspace => files::make_workspace(model),
        Command::PreviousStep => focus::step_by(model, -1),
        Command::NextStep => focus::step_by(model, 1),
        Command::Citation => focus::next_citation(model),
        Command::NextMessage => focus::message_by(model, 1),
        Command::PreviousMessage => focus::message_by(model, -1),
        Command::Raw => focus::toggle_raw(model),
        Command::Source => focus::show_source(model),
        Command::CopyValue => copy::value(model),
        Command::CopyMessage => copy::message(model),
        Command::CopyName => copy::name(model),
        Command::CopyCommand => copy::command(model),
        Command::PlayPause
        | Command::StepEvent
        | Command::StepTurn
        | Command::StepCell
        | Command::StepBack
        | Command::Slower
        | Command::Faster
        | Command::SeekBack
        | Command::SeekOn
        | Command::SeekTo
        | Command::NextFailure => replay::command(model, command),
    }
}

/// `q`: what is open on top first; with a run under way it asks.
fn quit(model: &mut Model) -> Vec<Effect> {
    if model.ui.zoom {
        return panes::zoom(model);
    }
    if model.replay.as_ref().is_some_and(|replay| !replay.alone) {
        return replay::leave(model);
    }
    if model.live.runs.live().next().is_some() {
        model.overlays.push(Overlay::QuitWhileRunning);
        return Vec::new();
    }
    if model.labels.writes() && !model.labels.leaving {
        // A moment's work; pressed again it ends at once.
        model.labels.leaving = true;
        return told(model, "a label is being written, then dicta ends");
    }
    end(model, 0)
}

/// Ends the program.
pub(super) fn end(model: &mut Model, code: u8) -> Vec<Effect> {
    model.quitting = Some(code);
    vec![Effect::Quit]
}

/// `ctrl-c`: cancels what runs; only then, and if it is pressed again while that takes its time, quits.
pub(super) fn cancel(model: &mut Model) -> Vec<Effect> {
    let waits = model.saves.waiting.take().is_some();
    let runs = model
        .live
        .runs
        .live()
        .any(|(_, run)| run.stage != Stage::Cancelling);
    if runs {
        return runs::cancel(model);
    }
    if waits {
        return told(
            model,
            "cancelled: what the save touched is not judged again",
        );
    }
    end(model, 0)
}

/// A signal to end.
pub(super) fn signalled(model: &mut Model, number: i32) -> Vec<Effect> {
    let code = u8::try_from(number.saturating_add(128)).unwrap_or(1);
    end(model, code)
}

/// A pasted text: into the line being typed, and nowhere else.
pub(super) fn pasted(model: &mut Model, text: &str) -> Vec<Effect> {
    if typing::pasted(model, text) || overlay::pasted(model, text) {
        return Vec::new();
    }
    told(model, "pasted text runs nothing: / and ? take it as words")
}

/// `esc`: one step back, never the end.
fn back(model: &mut Model) -> Vec<Effect> {
    let pane = model.ui.focus;
    if panes::forget_search(model, pane) {
        return Vec::new();
    }
    if model.ui.zoom {
        return panes::zoom(model);
    }
    if !model.desk().cells.filter.is_empty() {
        // An empty filter is no error.
        let _cleared = model.desk_mut().cells.set_filter("");
        return Vec::new();
    }
    if pane != Pane::Cells {
        return panes::focus(model, Pane::Cells);
    }
    if model.replay.as_ref().is_some_and(|replay| !replay.alone) {
        return replay::leave(model);
    }
    told(model, "nothing to go back from: q quits")
}

fn hide_tour(model: &mut Model) -> Vec<Effect> {
    if let Some(tour) = &mut model.tour {
        tour.hidden = !tour.hidden;
    }
    Vec::new()
}

/// `e`: the rubric at the focused eval, at its example where one misses; the first rubric, where none is focused.
fn edit(model: &mut Model) -> Vec<Effect> {
    let Some(workspace) = model.workspace() else {
        return Vec::new();
    };
    if let Some(trial) = model.missed_here() {
        return vec![Effect::Edit {
            path: workspace.root.join(&trial.path),
            line: trial.line,
            column: trial.column,
        }];
    }
    let cells = &model.live.cells;
    let focused = match cells.list.selected {
        Some(crate::tui::model::cells::Entry::Group(eval)) => Some(eval),
        _ => cells
            .selected()
            .and_then(|row| cells.row(row))
            .map(|row| row.eval),
    };
    let info = focused.and_then(|eval| cells.evals.get(eval as usize));
    let rubric = info
        .and_then(|info| workspace.rubrics.iter().find(|r| r.id == info.rubric))
        .or(workspace.rubrics.first());
    let Some(rubric) = rubric else {
        return told(model, "there is no rubric to edit: write one into rubrics/");
    };
    let at = info
        .and_then(|info| rubric.evals.iter().find(|eval| eval.id == info.id))
        .map(|eval| (eval.span.line.max(1), eval.span.column.max(1)));
    let (line, column) = at.unwrap_or((1, 1));
    vec![Effect::Edit {
        path: workspace.root.join(&rubric.path),
        line,
        column,
    }]
}

#[cfg(test)]
mod tests;
