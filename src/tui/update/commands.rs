//! The action of each command in the command table.
//!
//! Does not read keys: `keys` and `mouse` find the command.

use super::notices::push_info;
use super::{
    blind, copy, edits, example_edit, figures, focus, footer_input, label_moves, label_notes,
    label_queues, labels, opened_item, overlay, panes, pauses, progress, quit, repeats, replay,
    replayed_evidence, review, runs, saves, step_edits, trace_screen, variants,
};
use crate::tui::command::{self, UiCommand};
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::CellsEntry;
use crate::tui::state::pane::Pane;

/// Runs a command, or shows why it can't be used now.
pub(super) fn run_command(app: &mut App, command: UiCommand) -> Vec<Effect> {
    let usable = command::find_spec(command).map_or(Ok(()), |spec| spec.check_usable(app));
    match usable {
        Ok(()) => dispatch_command(app, command),
        // People type a word after `/` without a look at the footer, and its letters are keys here.
        Err(_) if command == UiCommand::Search => {
            let reason = command::explain_no_search(app);
            footer_input::open_refused(app, reason)
        }
        Err(why) => push_info(app, why),
    }
}

/// Runs the action of a command. The match has no wildcard, so the compiler reports a missing command.
fn dispatch_command(app: &mut App, command: UiCommand) -> Vec<Effect> {
    // The progress screen has its own meaning of movement and focus.
    if app.shows_progress()
        && let Some(effects) = progress::run_shared_command(app, command)
    {
        return effects;
    }
    if app.shows_review()
        && let Some(effects) = review::run_shared_command(app, command)
    {
        return effects;
    }
    if app.shows_trace_screen()
        && let Some(effects) = trace_screen::run_shared_command(app, command)
    {
        return effects;
    }
    match command {
        UiCommand::Enter if opens_trace(app) => trace_screen::open(app),
        UiCommand::Quit => quit::quit(app),
        UiCommand::Cancel => quit::cancel_or_quit(app),
        UiCommand::Suspend => vec![Effect::Suspend],
        UiCommand::Redraw => vec![Effect::Redraw],
        UiCommand::Help => overlay::open_help(app),
        UiCommand::Log => overlay::open_log(app),
        UiCommand::Statistics => overlay::open_statistics(app),
        UiCommand::Themes => overlay::open_themes(app),
        UiCommand::TourHide => hide_tour(app),
        UiCommand::Back => step_back(app),
        UiCommand::NextPane => panes::cycle_focus(app, true),
        UiCommand::PreviousPane => panes::cycle_focus(app, false),
        UiCommand::PaneLeft => panes::focus_neighbour(app, false),
        UiCommand::PaneRight => panes::focus_neighbour(app, true),
        UiCommand::Pane1 => panes::focus_pane(app, Pane::Cells),
        UiCommand::Pane2 => panes::focus_pane(app, Pane::Prompt),
        UiCommand::Pane3 => panes::focus_pane(app, Pane::FunctionCall),
        UiCommand::Pane4 => panes::focus_pane(app, Pane::FetchedContent),
        UiCommand::Pane5 => panes::focus_pane(app, Pane::Verdict),
        UiCommand::Pane6 => panes::focus_pane(app, Pane::Transcript),
        UiCommand::Pane7 => {
            app.saves.changes_closed = false;
            panes::focus_pane(app, Pane::Changes)
        }
        UiCommand::ToggleChanges => edits::toggle_changes(app),
        UiCommand::Zoom => panes::toggle_zoom(app),
        UiCommand::Up => panes::move_focused_by(app, -1),
        UiCommand::Down => panes::move_focused_by(app, 1),
        UiCommand::PageUp => panes::move_by_page(app, -1, 1),
        UiCommand::PageDown => panes::move_by_page(app, 1, 1),
        UiCommand::HalfUp => panes::move_by_page(app, -1, 2),
        UiCommand::HalfDown => panes::move_by_page(app, 1, 2),
        UiCommand::Top => panes::move_to_end(app, false),
        UiCommand::Bottom => panes::move_to_end(app, true),
        UiCommand::Enter => panes::enter_selection(app),
        UiCommand::NextProblem => panes::select_next_problem(app, true),
        UiCommand::PreviousProblem => panes::select_next_problem(app, false),
        UiCommand::Search => footer_input::open_input(app),
        UiCommand::NextMatch => panes::find_next_match(app, app.ui.focus, true),
        UiCommand::PreviousMatch => panes::find_next_match(app, app.ui.focus, false),
        UiCommand::Sort => panes::cycle_sort(app),
        UiCommand::LabelPass => labels::set_label(app, Some(true)),
        UiCommand::LabelFail => labels::set_label(app, Some(false)),
        UiCommand::LabelUnsure => labels::set_label(app, None),
        UiCommand::LabelConfirm => labels::confirm_label(app),
        UiCommand::LabelRemove => labels::remove_label(app),
        UiCommand::LabelBack => labels::undo_label(app),
        UiCommand::NextUnlabelled => label_queues::select_next(app),
        UiCommand::LabelNote => label_notes::open_note(app),
        UiCommand::LabelQueues => label_queues::open_queues(app),
        UiCommand::LabelAdvance => label_queues::toggle_advance(app),
        UiCommand::LabelClose => label_notes::open_closing(app),
        UiCommand::Agreement => figures::open_agreement(app),
        UiCommand::Variants => variants::open(app),
        UiCommand::LabelMove => label_moves::move_labels(app),
        UiCommand::Blind => blind::toggle_blind(app),
        UiCommand::Run => runs::run_focused(app),
        UiCommand::RunAll => runs::run_all(app),
        UiCommand::Edit => edit_focused(app),
        UiCommand::SaveExample => example_edit::save_as_example(app),
        UiCommand::Auto => saves::toggle_auto_judging(app),
        UiCommand::Pages => replayed_evidence::toggle_replayed_evidence(app),
        UiCommand::Judges => overlay::open_judges(app),
        UiCommand::Repeat => repeats::ask_count(app),
        UiCommand::Replay => replay::open_focused_run(app),
        UiCommand::MakeWorkspace => opened_item::make_workspace(app),
        UiCommand::PreviousStep => focus::move_step_by(app, -1),
        UiCommand::NextStep => focus::move_step_by(app, 1),
        UiCommand::Citation => focus::go_to_next_reference(app),
        UiCommand::NextMessage => focus::move_message_by(app, 1),
        UiCommand::PreviousMessage => focus::move_message_by(app, -1),
        UiCommand::Raw => focus::toggle_raw(app),
        UiCommand::Source => focus::show_source(app),
        UiCommand::CopyValue => copy::copy_pane_text(app),
        UiCommand::CopyRaw => copy::copy_raw_pane_text(app),
        UiCommand::CopyMessage => copy::copy_message(app),
        UiCommand::CopyName => copy::copy_cell_name(app),
        UiCommand::CopyCommand => copy::copy_command_line(app),
        UiCommand::TraceUnfold
        | UiCommand::TraceFold
        | UiCommand::TraceCompare
        | UiCommand::TraceAsk
        | UiCommand::TraceWhatIf
        | UiCommand::TraceWhatIfArguments
        | UiCommand::TraceBranch => trace_screen::run_command(app, command),
        UiCommand::Breakpoints => pauses::open_breakpoints(app),
        UiCommand::PauseStep
        | UiCommand::PauseContinue
        | UiCommand::PauseContinueAll
        | UiCommand::PauseSkip => pauses::run_command(app, command),
        UiCommand::PauseEdit => step_edits::edit_pause(app),
        UiCommand::Review => review::toggle(app),
        UiCommand::ReviewNoFailure
        | UiCommand::ReviewNote
        | UiCommand::ReviewUnsure
        | UiCommand::ReviewSkip
        | UiCommand::ReviewPrevious
        | UiCommand::ReviewNext
        | UiCommand::ReviewUndo
        | UiCommand::ReviewMore
        | UiCommand::ReviewCounts
        | UiCommand::ModesCounts
        | UiCommand::CountsOpen
        | UiCommand::CountsEval
        | UiCommand::ReviewModes
        | UiCommand::ModesMark
        | UiCommand::ModesAssign
        | UiCommand::ModesCreate
        | UiCommand::ModesRename
        | UiCommand::ModesDefine
        | UiCommand::ModesMerge
        | UiCommand::ModesSplit
        | UiCommand::ModesUngroup
        | UiCommand::ModesUndo
        | UiCommand::ModesNearer
        | UiCommand::ModesFurther
        | UiCommand::ModesAskJudge
        | UiCommand::ModesAccept
        | UiCommand::ModesDiscard
        | UiCommand::ModesAnswers
        | UiCommand::ModesEval
        | UiCommand::DraftWrite
        | UiCommand::AnswerYes
        | UiCommand::AnswerNo
        | UiCommand::AnswerNext
        | UiCommand::AnswerPrevious
        | UiCommand::AnswerUndo
        | UiCommand::DraftUndo => review::run_command(app, command),
        UiCommand::Progress => progress::toggle(app),
        UiCommand::ProgressOpen
        | UiCommand::ProgressRuns
        | UiCommand::ProgressCompare
        | UiCommand::ProgressBaseline
        | UiCommand::ProgressReplay
        | UiCommand::ProgressRestore
        | UiCommand::ProgressExport
        | UiCommand::ProgressUndo
        | UiCommand::NextEval
        | UiCommand::PreviousEval
        | UiCommand::RaiseThreshold
        | UiCommand::LowerThreshold
        | UiCommand::RaiseThresholdFinely
        | UiCommand::LowerThresholdFinely => progress::run_command(app, command),
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
        | UiCommand::NextFailure => replay::run_replay_command(app, command),
    }
}

/// Returns true if a cell with a judge trace is selected in the cells.
fn opens_trace(app: &App) -> bool {
    let is_row = matches!(app.session().cells.list.selected, Some(CellsEntry::Row(_)));
    app.ui.focus == Pane::Cells && is_row && app.check_trace().is_ok()
}

/// `esc`: goes one step back. It never quits.
fn step_back(app: &mut App) -> Vec<Effect> {
    let pane = app.ui.focus;
    // One press takes back one thing, the innermost first: search, zoom, filter, focus, replay.
    if panes::clear_search(app, pane) {
        return Vec::new();
    }
    if app.ui.zoomed {
        return panes::toggle_zoom(app);
    }
    if app.shows_trace_screen() {
        return trace_screen::step_back(app);
    }
    if !app.session().cells.filter.is_empty() {
        // An empty filter always parses.
        let _cleared = app.session_mut().cells.set_filter("");
        return Vec::new();
    }
    if pane != Pane::Cells {
        return panes::focus_pane(app, Pane::Cells);
    }
    // Leaving a replay that `dicta replay` opened would quit, so esc does not leave it.
    if app
        .replay
        .as_ref()
        .is_some_and(|replay| !replay.quits_on_leave)
    {
        return replay::leave_replay(app);
    }
    push_info(app, "nothing to go back from: q quits")
}

fn hide_tour(app: &mut App) -> Vec<Effect> {
    if let Some(tour) = &mut app.tour {
        tour.hidden = !tour.hidden;
        app.ui.choices.tour_ended = Some(tour.hidden);
    }
    Vec::new()
}

/// `e`: edits the file that does not load, the rubric at the focused eval, or its example that misses. If no eval is focused, opens the first
/// rubric.
fn edit_focused(app: &mut App) -> Vec<Effect> {
    let Some(workspace) = app.workspace() else {
        return Vec::new();
    };
    // A file that does not load comes first: until it is fixed, no other edit has an effect.
    if let Some(problem) = app.saves.problems.first() {
        let at = problem.span.as_ref();
        return vec![Effect::OpenEditor {
            path: workspace.root.join(&problem.file),
            line: at.map_or(1, |span| span.line.max(1)),
            column: at.map_or(1, |span| span.column.max(1)),
        }];
    }
    // A missed example is the most likely thing to fix, so it comes before the eval.
    if let Some(trial) = app.focused_example_miss() {
        return vec![Effect::OpenEditor {
            path: workspace.root.join(&trial.path),
            line: trial.line,
            column: trial.column,
        }];
    }
    let cells = &app.live_session.cells;
    let focused = match cells.list.selected {
        Some(CellsEntry::Group(eval)) => Some(eval),
        _ => cells
            .selected_row()
            .and_then(|row| cells.row(row))
            .map(|row| row.eval),
    };
    let info = focused.and_then(|eval| cells.evals.get(eval as usize));
    let rubric = info
        .and_then(|info| workspace.rubrics.iter().find(|r| r.id == info.rubric))
        // Without a focused eval, the first rubric is better than nothing to edit.
        .or(workspace.rubrics.first());
    let Some(rubric) = rubric else {
        return push_info(app, "there is no rubric to edit: write one into rubrics/");
    };
    let at = info
        .and_then(|info| rubric.evals.iter().find(|eval| eval.id == info.id))
        // A span of 0 is unknown, but editors count from 1.
        .map(|eval| (eval.span.line.max(1), eval.span.column.max(1)));
    let (line, column) = at.unwrap_or((1, 1));
    vec![Effect::OpenEditor {
        path: workspace.root.join(&rubric.path),
        line,
        column,
    }]
}
