//! The conditions of commands: each returns Ok, or a sentence on what to do first. They run for every row in every
//! frame, so they must be cheap and must not read files.

use super::super::content;
use super::super::state::cells::{CellsEntry, CellsRow, LabelValue, RowSlotState};
use super::super::state::document::DocumentState;
use super::super::state::pane::Pane;
use super::super::state::progress::ProgressPane;
use super::super::state::review::ReviewView;
use super::super::state::shown_cell::resolve_shown_cell;
use super::super::state::{App, OpenedItem};
use super::{CommandScope, CommandSpec, UiCommand};
use crate::event::JudgeSpec;
use crate::judge::PausedAt;

/// Ok if the command can run, else the sentence that the screen shows.
type EnabledResult = Result<(), &'static str>;

const NOT_HERE: &str = "not on the progress screen: esc goes back to the cells";
const NO_CELL: &str = "select a cell first (j, k)";
const NOT_LISTED: &str = "the filter matches no cell, so none is selected: / changes the filter";

fn fail_if(hindered: bool, why: &'static str) -> EnabledResult {
    if hindered { Err(why) } else { Ok(()) }
}

/// Returns the reason why the visible view of the reading screen has no such key, with the keys that it has.
const fn name_review_view(view: ReviewView) -> &'static str {
    match view {
        ReviewView::Reading => "not while you read: V goes back to the workbench",
        ReviewView::Modes => {
            "not with notes and modes: esc goes back to the transcripts, V to the workbench"
        }
        ReviewView::Answers => {
            "not with a question about a mode: y and n answer, esc goes back to the modes"
        }
        ReviewView::Drafts => {
            "not with drafts of an eval: enter writes one, esc goes back to the modes"
        }
        ReviewView::Counts => {
            "not with the table of modes: enter lists the notes of a mode, esc goes back"
        }
    }
}

/// Returns Ok if the scope is active.
pub(crate) fn check_scope(app: &App, scope: CommandScope) -> EnabledResult {
    match scope {
        CommandScope::Global => Ok(()),
        CommandScope::Review => fail_if(
            !shows_review(app, ReviewView::Reading),
            "works only on the reading screen: press V to open it",
        ),
        CommandScope::Modes => fail_if(
            !shows_review(app, ReviewView::Modes),
            "works only with notes and modes: press V, then m",
        ),
        CommandScope::Answers => fail_if(
            !shows_review(app, ReviewView::Answers),
            "works only with questions about modes: press V, m, A",
        ),
        CommandScope::Drafts => fail_if(
            !shows_review(app, ReviewView::Drafts),
            "works only with drafts of an eval: press V, m, E",
        ),
        CommandScope::Counts => fail_if(
            !shows_review(app, ReviewView::Counts),
            "works only with the table of modes: press V, then t",
        ),
        CommandScope::Progress => fail_if(
            !app.shows_progress(),
            "works only on the progress screen: press H to open it",
        ),
        CommandScope::Trace => fail_if(
            !app.shows_trace_screen(),
            "works only on the trace screen: enter on a judged cell opens it",
        ),
        CommandScope::Paused if !app.shows_paused_trace() && !app.list_paused().is_empty() => {
            Err("works on the trace screen: enter on a paused cell opens it")
        }
        CommandScope::Paused => fail_if(
            !app.shows_paused_trace(),
            "works only on a paused trace: ! sets the breakpoints at which traces pause",
        ),
        // The panes are hidden.
        CommandScope::Cells | CommandScope::Verdicts | CommandScope::Transcript
            if app.shows_review() =>
        {
            Err(name_review_view(app.review.view))
        }
        CommandScope::Cells | CommandScope::Verdicts | CommandScope::Transcript
            if app.shows_progress() =>
        {
            Err(NOT_HERE)
        }
        CommandScope::Replay if app.shows_state() => {
            Err("a state has no time line: v on the progress screen replays a run")
        }
        CommandScope::Cells => fail_if(
            app.ui.focus != Pane::Cells,
            "works only in the cells: press 1 to go there",
        ),
        CommandScope::Verdicts => fail_if(
            !matches!(app.ui.focus, Pane::Cells | Pane::Verdict),
            "works only in the cells and the verdict: press 1 or 5",
        ),
        CommandScope::Transcript => fail_if(
            app.ui.focus != Pane::Transcript,
            "works only in the transcript: press 6 to go there",
        ),
        CommandScope::Replay => fail_if(
            app.replay.is_none(),
            "no replay is open: press v to replay the focused cell's run",
        ),
    }
}

/// Returns Ok if the visible screen has the command. The progress screen hides the panes, so it has only the global
/// commands that do not need them.
pub(crate) fn check_screen(app: &App, spec: &CommandSpec) -> EnabledResult {
    let elsewhere = spec.scope == CommandScope::Global && !works_without_panes(spec.command);
    if app.shows_review() {
        // A run would show verdicts to a person who reads first.
        let elsewhere =
            elsewhere || spec.command == UiCommand::RunAll || spec.command == UiCommand::Progress;
        return fail_if(elsewhere, name_review_view(app.review.view));
    }
    fail_if(elsewhere && app.shows_progress(), NOT_HERE)
}

/// Returns the reason why the visible screen can't search, as the footer shows it.
pub(crate) fn explain_no_search(app: &App) -> &'static str {
    if !app.overlays.is_empty() {
        "no search in this window"
    } else if app.shows_progress() {
        "no search on the progress screen"
    } else if app.shows_review() {
        "no search on the reading screen"
    } else {
        "no search here"
    }
}

const fn works_without_panes(command: UiCommand) -> bool {
    matches!(
        command,
        UiCommand::Quit
            | UiCommand::Cancel
            | UiCommand::Suspend
            | UiCommand::Redraw
            | UiCommand::Help
            | UiCommand::Log
            | UiCommand::Statistics
            | UiCommand::Themes
            | UiCommand::Back
            | UiCommand::NextPane
            | UiCommand::PreviousPane
            | UiCommand::Up
            | UiCommand::Down
            | UiCommand::PageUp
            | UiCommand::PageDown
            | UiCommand::HalfUp
            | UiCommand::HalfDown
            | UiCommand::Top
            | UiCommand::Bottom
            | UiCommand::RunAll
            | UiCommand::Progress
            | UiCommand::Review
    )
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the table needs one function type, and other conditions can fail"
)]
pub(super) fn always(_: &App) -> EnabledResult {
    Ok(())
}

/// Judging and editing need the live session: a replay shows recorded data that can't change.
fn require_live(app: &App) -> EnabledResult {
    match &app.replay {
        Some(replay) if replay.quits_on_leave => {
            Err("unavailable in a replay: dicta judges and edits nothing here (q quits)")
        }
        Some(_) if app.shows_state() => Err("an opened state is read only: press q to go back"),
        Some(_) => Err("unavailable in a replay: press q to go back"),
        None => Ok(()),
    }
}

fn require_workspace(app: &App) -> EnabledResult {
    // A replay has no workspace that could be judged, so it is checked first.
    require_live(app)?;
    match &app.opened {
        OpenedItem::Workspace(_) => Ok(()),
        OpenedItem::TranscriptFile(_) => {
            Err("no rubric yet: press W to create a workspace around this file")
        }
        OpenedItem::Recording => Err("no workspace is open: run `dicta open DIR`"),
    }
}

fn focused_row(app: &App) -> Result<&CellsRow, &'static str> {
    let cells = &app.session().cells;
    cells
        .selected_row()
        .and_then(|row| cells.row(row))
        .ok_or(NO_CELL)
}

/// Returns the selected row for a command that changes it or judges it. Such a command needs a row that the list shows,
/// because a filter can match nothing while the panes still show the last row.
fn listed_row(app: &App) -> Result<&CellsRow, &'static str> {
    let row = focused_row(app)?;
    require_listed(app)?;
    Ok(row)
}

fn require_listed(app: &App) -> EnabledResult {
    // The trace screen has no list: it shows the cell alone.
    let is_unlisted = app.session().cells.cursor_position().is_none();
    fail_if(is_unlisted && !app.shows_trace_screen(), NOT_LISTED)
}

pub(super) fn prompt(app: &App) -> EnabledResult {
    app.check_filled(Pane::Prompt)
}

pub(super) fn function_call(app: &App) -> EnabledResult {
    app.check_filled(Pane::FunctionCall)
}

pub(super) fn fetched_content(app: &App) -> EnabledResult {
    app.check_filled(Pane::FetchedContent)
}

pub(super) fn verdict(app: &App) -> EnabledResult {
    app.check_filled(Pane::Verdict)
}

pub(super) fn transcript_pane(app: &App) -> EnabledResult {
    app.check_filled(Pane::Transcript)
}

pub(super) fn cell(app: &App) -> EnabledResult {
    focused_row(app).map(|_| ())
}

/// Needs a cell whose verdict is not hidden by blind labelling.
pub(super) fn verdict_visible(app: &App) -> EnabledResult {
    let row = focused_row(app)?;
    fail_if(
        row.hidden,
        "hidden until you label it: press p (pass), f (fail) or u (unsure)",
    )
}

/// Needs a decision that can have a label.
pub(super) fn label(app: &App) -> EnabledResult {
    require_workspace(app)?;
    let row = listed_row(app)?;
    // A label's subject is a transcript and an eval; it has no message.
    fail_if(
        row.message.is_some(),
        "labels apply to whole transcripts; this decision is about one message",
    )
}

/// Needs an eval with cells that can be labelled.
pub(super) fn label_queues(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(
        app.selected_eval().is_none(),
        "select an eval or one of its cells first (j, k)",
    )
}

/// Needs a label that differs from the verdict or from another person's label.
pub(super) fn disagreement(app: &App) -> EnabledResult {
    label(app)?;
    verdict_visible(app)?;
    let row = focused_row(app)?;
    fail_if(
        row.label.is_none(),
        "no label to close: p, f and u set a label",
    )?;
    let cells = &app.live_session.cells;
    let people_differ = || {
        let row = cells.selected_row();
        row.is_some_and(|row| cells.people_differ(row))
    };
    fail_if(
        row.agrees_with_label() != Some(false) && !people_differ(),
        "no disagreement: the label equals the verdict and all other labels",
    )
}

/// Needs evals. The figures would reveal hidden verdicts.
pub(super) fn agreement(app: &App) -> EnabledResult {
    // Figures change nothing, so an opened state has them, too.
    if !app.shows_state() {
        require_workspace(app)?;
    }
    fail_if(
        app.live_session.cells.blind,
        "the figures would show the hidden verdicts: press B first to show them",
    )?;
    fail_if(app.live_session.cells.rows.is_empty(), "no cells yet")
}

/// Needs a workspace.
pub(super) fn variants(app: &App) -> EnabledResult {
    require_workspace(app)
}

/// Needs a label whose question or transcript changed.
pub(super) fn label_to_confirm(app: &App) -> EnabledResult {
    label(app)?;
    let row = focused_row(app)?;
    fail_if(
        row.to_confirm.is_none(),
        "no label to confirm: the question and the transcript are as they were",
    )
}

pub(super) fn labelled(app: &App) -> EnabledResult {
    label(app)?;
    let row = focused_row(app)?;
    fail_if(
        row.sealed,
        "the label is sealed until `dicta agree --unseal`: p, f and u set another one",
    )?;
    fail_if(
        row.label.is_none() && row.to_confirm.is_none(),
        "no label to remove: p, f and u set a label",
    )
}

pub(super) fn label_back(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(
        !app.label_edits.can_undo(),
        "no label change to undo: p, f, u, x and M change labels",
    )
}

/// Needs labels of a renamed eval.
pub(super) fn label_move(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(
        app.movable_labels().is_empty(),
        "no renamed eval has labels under its old name",
    )
}

/// Needs an edit to close or to show.
pub(super) fn changes(app: &App) -> EnabledResult {
    fail_if(
        app.saves.report.is_none() || app.replay.is_some(),
        "no edit is shown: save a rubric first",
    )
}

pub(super) fn blind(app: &App) -> EnabledResult {
    require_workspace(app)?;
    let paused = app
        .live_session
        .runs
        .live()
        .any(|(_, run)| !run.paused.is_empty());
    fail_if(
        paused && !app.live_session.cells.blind,
        "a trace is paused: continue it first, because its verdict would be hidden",
    )
}

/// Needs a cell, or the row of an eval.
pub(super) fn run(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(app.session().cells.list.selected.is_none(), NO_CELL)?;
    require_listed(app)
}

pub(super) fn run_all(app: &App) -> EnabledResult {
    require_workspace(app)
}

pub(super) fn edit(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(
        app.workspace().is_some_and(|w| w.rubrics.is_empty()),
        "no rubric to edit: create one in rubrics/",
    )
}

pub(super) fn auto(app: &App) -> EnabledResult {
    require_workspace(app)
}

pub(super) fn judges(app: &App) -> EnabledResult {
    require_workspace(app)?;
    let row = listed_row(app)?;
    let eval = app.session().cells.evals.get(row.eval as usize);
    // Code decides such an eval, so another judge could not be asked.
    fail_if(
        eval.is_some_and(|eval| !eval.judged),
        "this eval has no judge: select a judged eval",
    )
}

/// Needs a label with pass or fail, which the example expects.
pub(super) fn save_example(app: &App) -> EnabledResult {
    require_workspace(app)?;
    let row = listed_row(app)?;
    let passed = row.label.and_then(LabelValue::passed);
    fail_if(
        passed.is_none(),
        "label it first: p (pass) or f (fail) is what the example expects",
    )?;
    transcript(app)
}

/// Needs a judged eval, or a judged cell whose eval does not repeat its judge itself.
pub(super) fn repeat(app: &App) -> EnabledResult {
    let cells = &app.session().cells;
    if let Some(CellsEntry::Group(eval)) = cells.list.selected {
        require_workspace(app)?;
        require_listed(app)?;
        let eval = cells.evals.get(eval as usize);
        return fail_if(
            eval.is_none_or(|eval| !eval.judged),
            "this eval has no judge: select a judged eval",
        );
    }
    judges(app)?;
    let row = focused_row(app)?;
    fail_if(
        row.slots.iter().any(|slot| slot.repeat.is_some()),
        "this eval repeats its judge already (repeat: in the rubric): its marks show the spread",
    )
}

/// A branch is a run: it needs a workspace, and the end of the trace that it continues.
pub(super) fn branch(app: &App) -> EnabledResult {
    fail_if(
        app.replay.is_some(),
        "this is a replay: q goes back, then it can be branched",
    )?;
    fail_if(app.workspace().is_none(), "no workspace is open")?;
    let shown = resolve_shown_cell(app);
    let shown = shown.ok_or(NO_CELL)?;
    fail_if(
        shown.trace.is_none_or(|trace| trace.judge_trace.is_empty()),
        "this cell has no judge trace to branch from",
    )?;
    fail_if(
        shown.is_live(),
        "the judge is at work: branch from its trace when it has ended",
    )
}

/// A question needs a verdict of a judge with a model, and a workspace that allows its address.
pub(super) fn ask(app: &App) -> EnabledResult {
    require_workspace(app)?;
    let shown = resolve_shown_cell(app).ok_or(NO_CELL)?;
    fail_if(
        shown.is_live() || shown.result.is_none(),
        "no verdict yet: ask when the trace has ended",
    )?;
    let is_model = |judge: &JudgeSpec| judge.config.provider.is_model();
    fail_if(
        !shown.judge_spec().is_some_and(is_model),
        "this judge is built in and answers no questions",
    )
}

/// Breakpoints stop traces of runs.
pub(super) fn breakpoints(app: &App) -> EnabledResult {
    require_workspace(app)?;
    // A paused trace shows its verdict, and could not be released while it is hidden.
    fail_if(
        app.live_session.cells.blind && app.breakpoints.is_empty(),
        "a paused trace would show the hidden verdicts: press B first to show them",
    )
}

/// Needs a trace that is paused before a tool call.
pub(super) fn skip_call(app: &App) -> EnabledResult {
    let pause = app.shown_pause().and_then(|at| app.find_pause(at));
    fail_if(
        !matches!(
            pause.map(|pause| &pause.at),
            Some(PausedAt::Call { .. }) | None
        ),
        "only a tool call can be skipped: this trace is paused elsewhere",
    )
}

pub(super) fn replay(app: &App) -> EnabledResult {
    fail_if(app.replay.is_some(), "a replay is already open")?;
    // A recording shows all verdicts, also those that the blind screen hides.
    fail_if(
        app.live_session.cells.blind,
        "a replay would show the hidden verdicts: press B first to show them",
    )?;
    let row = listed_row(app)?;
    fail_if(
        !row.all_slots().any(|(_, slot)| slot.run_cell.is_some()),
        "no run to replay yet: press R to run everything",
        // A recording in progress has no end, so its replay would be incomplete.
    )?;
    fail_if(
        row.slots
            .iter()
            .any(|slot| matches!(slot.state, RowSlotState::Live)),
        "this cell is running: replay it after it ends",
    )
}

pub(super) fn make_workspace(app: &App) -> EnabledResult {
    require_live(app)?;
    fail_if(
        !matches!(app.opened, OpenedItem::TranscriptFile(_)),
        "a workspace is already open",
    )
}

pub(super) fn problems(app: &App) -> EnabledResult {
    // A file without rubrics has rows but no verdicts, so no row can be a problem.
    if app.shows_unjudged_file() {
        require_workspace(app)?;
    }
    fail_if(app.session().cells.rows.is_empty(), "no cells yet")
}

pub(super) fn step(app: &App) -> EnabledResult {
    cell(app)
}

pub(super) fn transcript(app: &App) -> EnabledResult {
    // The row of an eval leaves the transcript of an earlier cell loaded.
    app.check_filled(Pane::Transcript)?;
    fail_if(
        !matches!(
            app.session().transcript_pane.document,
            DocumentState::Loaded(_)
        ),
        "no transcript is open: select a cell (j, k)",
    )
}

pub(super) fn matches(app: &App) -> EnabledResult {
    let Some(scroll) = content::pane_scroll(app, app.ui.focus) else {
        return Err("n works only in texts; in the cells, / filters the list");
    };
    fail_if(
        scroll.search.is_none(),
        "no search is active: press / to search",
    )
}

pub(super) fn text(app: &App) -> EnabledResult {
    if app.ui.focus == Pane::Cells {
        cell(app)
    } else {
        Ok(())
    }
}

pub(super) fn tour(app: &App) -> EnabledResult {
    fail_if(app.tour.is_none(), "only the demo has a tour")
}

pub(super) fn enter(app: &App) -> EnabledResult {
    match app.ui.focus {
        Pane::Cells => {
            fail_if(
                app.session().cells.list.selected.is_none(),
                "nothing is selected: press j or k to move",
            )?;
            require_listed(app)
        }
        Pane::Changes => fail_if(
            count_flips(app) == 0,
            "no verdict changed, so the list is empty",
        ),
        _ => Ok(()),
    }
}

/// Returns true if the reading screen shows a view.
fn shows_review(app: &App, view: ReviewView) -> bool {
    app.shows_review() && app.review.view == view
}

/// Needs transcripts.
pub(super) fn review(app: &App) -> EnabledResult {
    require_live(app)?;
    fail_if(
        matches!(app.opened, OpenedItem::Recording),
        "a recording has no transcripts to read: open its workspace",
    )
}

pub(super) fn progress(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(
        app.live_session.cells.blind,
        "the progress screen would show the hidden verdicts: press B first to show them",
    )
}

/// Needs a revision on the progress screen.
pub(super) fn progress_entry(app: &App) -> EnabledResult {
    if app.progress.selected_entry().is_some() {
        return Ok(());
    }
    let unread = app.progress.explain_unread();
    Err(unread.unwrap_or("no state yet: R judges, and each judged edit becomes a row"))
}

pub(super) fn progress_open(app: &App) -> EnabledResult {
    let screen = &app.progress;
    match screen.focus {
        ProgressPane::Flips => fail_if(
            screen.shown_flips.is_empty(),
            "no flip is listed: j and k select states in the history",
        ),
        ProgressPane::Scores => {
            progress_threshold(app)?;
            fail_if(
                screen.threshold.is_none(),
                "the threshold is as in the rubric: h and l move it",
            )
        }
        ProgressPane::Entries | ProgressPane::Diff | ProgressPane::Agreement => progress_entry(app),
    }
}

pub(super) fn progress_restore(app: &App) -> EnabledResult {
    progress_entry(app)?;
    fail_if(
        !app.saves.problems.is_empty(),
        "a file does not load: fix it first (esc, then e)",
    )
}

pub(super) fn progress_undo(app: &App) -> EnabledResult {
    fail_if(
        app.progress.undo_stack.is_empty(),
        "nothing to undo: this screen wrote no rubric",
    )
}

pub(super) fn progress_threshold(app: &App) -> EnabledResult {
    progress_entry(app)?;
    let screen = &app.progress;
    fail_if(
        screen.eval.is_none(),
        "choose one eval first: . and , go through the evals",
    )?;
    fail_if(
        screen.preview().is_err(),
        "this eval has no threshold to move: the scores pane says why",
    )
}

/// Returns the number of entries in the list of the changes pane.
pub(crate) fn count_flips(app: &App) -> usize {
    // The errors of a file take the place of the flips.
    if app.shows_load_errors() {
        return 0;
    }
    app.visible_report()
        .map_or(0, |report| report.count_entries())
}
