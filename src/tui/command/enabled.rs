//! The conditions of commands: each returns Ok, or a sentence on what to do first. They run for every row in every
//! frame, so they must be cheap and must not read files.

use super::super::content;
use super::super::state::cells::{CellsRow, RowSlotState};
use super::super::state::document::DocumentState;
use super::super::state::pane::Pane;
use super::super::state::{App, OpenedItem};
use super::CommandScope;

/// Ok if the command can run, else the sentence that the screen shows.
type EnabledResult = Result<(), &'static str>;

const NO_CELL: &str = "select a cell first (j, k)";

fn fail_if(hindered: bool, why: &'static str) -> EnabledResult {
    if hindered { Err(why) } else { Ok(()) }
}

/// Returns Ok if the scope is active.
pub(crate) fn check_scope(app: &App, scope: CommandScope) -> EnabledResult {
    match scope {
        CommandScope::Global => Ok(()),
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
    let row = focused_row(app)?;
    // A label's subject is a transcript and an eval; it has no message.
    fail_if(
        row.message.is_some(),
        "labels apply to whole transcripts; this decision is about one message",
    )
}

pub(super) fn labelled(app: &App) -> EnabledResult {
    label(app)?;
    let row = focused_row(app)?;
    fail_if(
        row.label.is_none(),
        "no label to remove: p, f and u set a label",
    )
}

pub(super) fn label_back(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(
        app.label_edits.undo_stack.is_empty(),
        "no label change to undo: p, f, u and x change labels",
    )
}

pub(super) fn blind(app: &App) -> EnabledResult {
    require_workspace(app)
}

/// Needs a cell, or the row of an eval.
pub(super) fn run(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(app.session().cells.list.selected.is_none(), NO_CELL)
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
    let row = focused_row(app)?;
    let eval = app.session().cells.evals.get(row.eval as usize);
    // Code decides such an eval, so another judge could not be asked.
    fail_if(
        eval.is_some_and(|eval| !eval.judged),
        "this eval has no judge: select a judged eval",
    )
}

pub(super) fn replay(app: &App) -> EnabledResult {
    fail_if(app.replay.is_some(), "a replay is already open")?;
    // A recording shows all verdicts, also those that the blind screen hides.
    fail_if(
        app.live_session.cells.blind,
        "a replay would show the hidden verdicts: press B first to show them",
    )?;
    let row = focused_row(app)?;
    fail_if(
        !row.slots.iter().any(|slot| slot.run_cell.is_some()),
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
        Pane::Cells => fail_if(
            app.session().cells.list.selected.is_none(),
            "nothing is selected: press j or k to move",
        ),
        Pane::Changes => fail_if(
            count_flips(app) == 0,
            "no verdict changed, so the list is empty",
        ),
        _ => Ok(()),
    }
}

/// Returns the number of flips in the changes pane.
pub(crate) fn count_flips(app: &App) -> usize {
    // The errors of a file take the place of the flips.
    if app.shows_load_errors() {
        return 0;
    }
    app.visible_report().map_or(0, |report| report.flips.len())
}
