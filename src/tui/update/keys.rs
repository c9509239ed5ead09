//! Keys → commands → what they do.
//!
//! The line being typed takes a key first, then the topmost overlay, then the command table. A key that does nothing now
//! says why.

use super::{
    copy, focus, footer_input, labels, opened_item, overlay, panes, replay, replayed_evidence,
    runs, saves,
};
use crate::tui::command::{self, UiCommand};
use crate::tui::effect::Effect;
use crate::tui::keymap::{self, KeyChord, KeyMeaning};
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::pane::Pane;
use crate::tui::state::runs::RunStage;

/// A key.
pub(super) fn handle_key(model: &mut App, chord: KeyChord) -> Vec<Effect> {
    model.notices.dismiss();
    if model.ui.footer_input.is_some() {
        return footer_input::handle_key(model, chord);
    }
    if !model.overlays.is_empty() {
        return overlay::handle_key(model, chord);
    }
    if !model.ui.pending_keys.is_empty() && chord == KeyChord::plain(crossterm::event::KeyCode::Esc)
    {
        model.ui.pending_keys.clear();
        return Vec::new();
    }
    model.ui.pending_keys.push(chord);
    let pressed = std::mem::take(&mut model.ui.pending_keys);
    match keymap::resolve_keys(keymap::active_scopes(model), &pressed) {
        KeyMeaning::Command(command) => run_command(model, command),
        KeyMeaning::Prefix => {
            if pressed.len() == 1 {
                model.ui.pending_since = model.now;
            }
            model.ui.pending_keys = pressed;
            Vec::new()
        }
        KeyMeaning::Nothing => {
            let keys: Vec<String> = pressed.iter().map(KeyChord::to_string).collect();
            let keys = keys.join(" ");
            push_info(
                model,
                format!("`{keys}` does nothing here: ? lists the keys"),
            )
        }
    }
}

/// Tells something, and that is all.
pub(super) fn push_info(model: &mut App, text: impl Into<String>) -> Vec<Effect> {
    model.notices.push(model.now, NoticeLevel::Info, text);
    Vec::new()
}

/// Runs a command if it does something now; says why not, if it does not.
pub(super) fn run_command(model: &mut App, command: UiCommand) -> Vec<Effect> {
    let usable = command::find_spec(command).map_or(Ok(()), |spec| spec.check_usable(model));
    match usable {
        Ok(()) => dispatch_command(model, command),
        Err(why) => push_info(model, why),
    }
}

/// What each command does; no wildcard, so that none is forgotten.
fn dispatch_command(model: &mut App, command: UiCommand) -> Vec<Effect> {
    match command {
        UiCommand::Quit => quit(model),
        UiCommand::Cancel => cancel_or_quit(model),
        UiCommand::Suspend => vec![Effect::Suspend],
        UiCommand::Redraw => vec![Effect::Redraw],
        UiCommand::Help => overlay::open_help(model),
        UiCommand::Log => overlay::open_log(model),
        UiCommand::Statistics => overlay::open_statistics(model),
        UiCommand::Themes => overlay::open_themes(model),
        UiCommand::TourHide => hide_tour(model),
        UiCommand::Back => step_back(model),
        UiCommand::NextPane => panes::cycle_focus(model, true),
        UiCommand::PreviousPane => panes::cycle_focus(model, false),
        UiCommand::PaneLeft => panes::focus_neighbour(model, false),
        UiCommand::PaneRight => panes::focus_neighbour(model, true),
        UiCommand::Pane1 => panes::focus_pane(model, Pane::Cells),
        UiCommand::Pane2 => panes::focus_pane(model, Pane::Prompt),
        UiCommand::Pane3 => panes::focus_pane(model, Pane::FunctionCall),
        UiCommand::Pane4 => panes::focus_pane(model, Pane::FetchedContent),
        UiCommand::Pane5 => panes::focus_pane(model, Pane::Verdict),
        UiCommand::Pane6 => panes::focus_pane(model, Pane::Transcript),
        UiCommand::Pane7 => panes::focus_pane(model, Pane::Changes),
        UiCommand::Zoom => panes::toggle_zoom(model),
        UiCommand::Up => panes::move_focused_by(model, -1),
        UiCommand::Down => panes::move_focused_by(model, 1),
        UiCommand::PageUp => panes::move_by_page(model, -1, 1),
        UiCommand::PageDown => panes::move_by_page(model, 1, 1),
        UiCommand::HalfUp => panes::move_by_page(model, -1, 2),
        UiCommand::HalfDown => panes::move_by_page(model, 1, 2),
        UiCommand::Top => panes::move_to_end(model, false),
        UiCommand::Bottom => panes::move_to_end(model, true),
        UiCommand::Enter => panes::enter_selection(model),
        UiCommand::NextProblem => panes::select_next_problem(model, true),
        UiCommand::PreviousProblem => panes::select_next_problem(model, false),
        UiCommand::Search => footer_input::open_input(model),
        UiCommand::NextMatch => panes::find_next_match(model, model.ui.focus, true),
        UiCommand::PreviousMatch => panes::find_next_match(model, model.ui.focus, false),
        UiCommand::Sort => panes::cycle_sort(model),
        UiCommand::LabelPass => labels::set_label(model, Some(true)),
        UiCommand::LabelFail => labels::set_label(model, Some(false)),
        UiCommand::LabelUnsure => labels::set_label(model, None),
        UiCommand::LabelRemove => labels::remove_label(model),
        UiCommand::LabelBack => labels::undo_label(model),
        UiCommand::NextUnlabelled => labels::select_next_unlabelled(model),
        UiCommand::Blind => labels::toggle_blind(model),
        UiCommand::Run => runs::run_focused(model),
        UiCommand::RunAll => runs::run_all(model),
        UiCommand::Edit => edit_focused(model),
        UiCommand::Auto => saves::toggle_auto_judging(model),
        UiCommand::Pages => replayed_evidence::toggle_replayed_evidence(model),
        UiCommand::Judges => overlay::open_judges(model),
        UiCommand::Replay => replay::open_focused_run(model),
        UiCommand::MakeWorkspace => opened_item::make_workspace(model),
        UiCommand::PreviousStep => focus::move_step_by(model, -1),
        UiCommand::NextStep => focus::move_step_by(model, 1),
        UiCommand::Citation => focus::go_to_next_reference(model),
        UiCommand::NextMessage => focus::move_message_by(model, 1),
        UiCommand::PreviousMessage => focus::move_message_by(model, -1),
        UiCommand::Raw => focus::toggle_raw(model),
        UiCommand::Source => focus::show_source(model),
        UiCommand::CopyValue => copy::copy_pane_text(model),
        UiCommand::CopyMessage => copy::copy_message(model),
        UiCommand::CopyName => copy::copy_cell_name(model),
        UiCommand::CopyCommand => copy::copy_command_line(model),
        UiCommand::PlayPause
        | UiCommand::StepEvent
        | UiCommand::StepTurn
        | UiCommand::StepCell
        | UiCommand::StepBack
        | UiCommand::Slower
        | UiCommand::Faster
        | UiCommand::SeekBack
        | UiCommand::SeekOn
        | UiCommand::SeekTo
        | UiCommand::NextFailure => replay::run_replay_command(model, command),
    }
}

/// `q`: what is open on top first; with a run under way it asks.
fn quit(model: &mut App) -> Vec<Effect> {
    if model.ui.zoomed {
        return panes::toggle_zoom(model);
    }
    if model
        .replay
        .as_ref()
        .is_some_and(|replay| !replay.quits_on_leave)
    {
        return replay::leave_replay(model);
    }
    if model.live_session.runs.live().next().is_some() {
        model.overlays.push(Overlay::QuitWhileRunning);
        return Vec::new();
    }
    if model.label_edits.has_unwritten() && !model.label_edits.quit_when_written {
        // A moment's work; pressed again it ends at once.
        model.label_edits.quit_when_written = true;
        return push_info(model, "a label is being written, then dicta ends");
    }
    quit_with_code(model, 0)
}

/// Ends the program.
pub(super) fn quit_with_code(model: &mut App, code: u8) -> Vec<Effect> {
    model.exit_code = Some(code);
    vec![Effect::Quit]
}

/// `ctrl-c`: cancels what runs; only then, and if it is pressed again while that takes its time, quits.
pub(super) fn cancel_or_quit(model: &mut App) -> Vec<Effect> {
    let waits = model.saves.pending_judging.take().is_some();
    let runs = model
        .live_session
        .runs
        .live()
        .any(|(_, run)| run.stage != RunStage::Cancelling);
    if runs {
        return runs::cancel_all(model);
    }
    if waits {
        return push_info(
            model,
            "cancelled: what the save touched is not judged again",
        );
    }
    quit_with_code(model, 0)
}

/// A signal to end.
pub(super) fn handle_signal(model: &mut App, number: i32) -> Vec<Effect> {
    let code = u8::try_from(number.saturating_add(128)).unwrap_or(1);
    quit_with_code(model, code)
}

/// A pasted text: into the line being typed, and nowhere else.
pub(super) fn handle_paste(model: &mut App, text: &str) -> Vec<Effect> {
    if footer_input::handle_paste(model, text) || overlay::handle_paste(model, text) {
        return Vec::new();
    }
    push_info(model, "pasted text runs nothing: / and ? take it as words")
}

/// `esc`: one step back, never the end.
fn step_back(model: &mut App) -> Vec<Effect> {
    let pane = model.ui.focus;
    if panes::clear_search(model, pane) {
        return Vec::new();
    }
    if model.ui.zoomed {
        return panes::toggle_zoom(model);
    }
    if !model.session().cells.filter.is_empty() {
        // An empty filter is no error.
        let _cleared = model.session_mut().cells.set_filter("");
        return Vec::new();
    }
    if pane != Pane::Cells {
        return panes::focus_pane(model, Pane::Cells);
    }
    if model
        .replay
        .as_ref()
        .is_some_and(|replay| !replay.quits_on_leave)
    {
        return replay::leave_replay(model);
    }
    push_info(model, "nothing to go back from: q quits")
}

fn hide_tour(model: &mut App) -> Vec<Effect> {
    if let Some(tour) = &mut model.tour {
        tour.hidden = !tour.hidden;
    }
    Vec::new()
}

/// `e`: the rubric at the focused eval, at its example where one misses; the first rubric, where none is focused.
fn edit_focused(model: &mut App) -> Vec<Effect> {
    let Some(workspace) = model.workspace() else {
        return Vec::new();
    };
    if let Some(trial) = model.focused_example_miss() {
        return vec![Effect::OpenEditor {
            path: workspace.root.join(&trial.path),
            line: trial.line,
            column: trial.column,
        }];
    }
    let cells = &model.live_session.cells;
    let focused = match cells.list.selected {
        Some(crate::tui::state::cells::CellsEntry::Group(eval)) => Some(eval),
        _ => cells
            .selected_row()
            .and_then(|row| cells.row(row))
            .map(|row| row.eval),
    };
    let info = focused.and_then(|eval| cells.evals.get(eval as usize));
    let rubric = info
        .and_then(|info| workspace.rubrics.iter().find(|r| r.id == info.rubric))
        .or(workspace.rubrics.first());
    let Some(rubric) = rubric else {
        return push_info(model, "there is no rubric to edit: write one into rubrics/");
    };
    let at = info
        .and_then(|info| rubric.evals.iter().find(|eval| eval.id == info.id))
        .map(|eval| (eval.span.line.max(1), eval.span.column.max(1)));
    let (line, column) = at.unwrap_or((1, 1));
    vec![Effect::OpenEditor {
        path: workspace.root.join(&rubric.path),
        line,
        column,
    }]
}

#[cfg(test)]
mod tests;
