//! Why a command does nothing now: sentences that say what to do first. Cheap: asked for every row with every frame.

use super::super::content;
use super::super::state::cells::{CellsRow, RowSlotState};
use super::super::state::document::DocumentState;
use super::super::state::pane::Pane;
use super::super::state::{App, OpenedItem};
use super::CommandScope;

type EnabledResult = Result<(), &'static str>;

const NO_CELL: &str = "select a cell first (j, k)";

fn fail_if(hindered: bool, why: &'static str) -> EnabledResult {
    if hindered { Err(why) } else { Ok(()) }
}

/// Whether a scope is in force.
pub(crate) fn check_scope(app: &App, scope: CommandScope) -> EnabledResult {
    match scope {
        CommandScope::Global => Ok(()),
        CommandScope::Cells => fail_if(
            app.ui.focus != Pane::Cells,
            "this works in the cells: 1 goes there",
        ),
        CommandScope::Verdicts => fail_if(
            !matches!(app.ui.focus, Pane::Cells | Pane::Verdict),
            "this works in the cells and the verdict: 1 and 5 go there",
        ),
        CommandScope::Transcript => fail_if(
            app.ui.focus != Pane::Transcript,
            "this works in the transcript: 6 goes there",
        ),
        CommandScope::Replay => fail_if(
            app.replay.is_none(),
            "nothing is replayed: v plays the focused cell's run",
        ),
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a row of the table takes what the others can also refuse"
)]
pub(super) fn always(_: &App) -> EnabledResult {
    Ok(())
}

/// Judging and editing are for what is live.
fn require_live(app: &App) -> EnabledResult {
    match &app.replay {
        Some(replay) if replay.quits_on_leave => {
            Err("this is a replay: nothing is judged or edited here (q ends it)")
        }
        Some(_) => Err("this is a replay: q goes back"),
        None => Ok(()),
    }
}

fn require_workspace(app: &App) -> EnabledResult {
    require_live(app)?;
    match &app.opened {
        OpenedItem::Workspace(_) => Ok(()),
        OpenedItem::TranscriptFile(_) => {
            Err("there is no rubric yet: W makes a workspace around this file")
        }
        OpenedItem::Recording => Err("no workspace is open: `dicta open DIR` opens one"),
    }
}

fn focused_row(app: &App) -> Result<&CellsRow, &'static str> {
    let cells = &app.session().cells;
    cells
        .selected_row()
        .and_then(|row| cells.row(row))
        .ok_or(NO_CELL)
}

pub(super) fn cell(app: &App) -> EnabledResult {
    focused_row(app).map(|_| ())
}

/// A cell whose verdict may be looked at.
pub(super) fn verdict_visible(app: &App) -> EnabledResult {
    let row = focused_row(app)?;
    fail_if(
        row.hidden,
        "hidden until you label it: p pass, f fail, u unsure",
    )
}

/// A decision that can be labelled.
pub(super) fn label(app: &App) -> EnabledResult {
    require_workspace(app)?;
    let row = focused_row(app)?;
    fail_if(
        row.message.is_some(),
        "a label is about a whole transcript: this decision is about one message",
    )
}

pub(super) fn labelled(app: &App) -> EnabledResult {
    label(app)?;
    let row = focused_row(app)?;
    fail_if(
        row.label.is_none(),
        "there is no label to remove: p, f and u set one",
    )
}

pub(super) fn label_back(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(
        app.label_edits.undo_stack.is_empty(),
        "no label was changed here: p, f, u and x do",
    )
}

pub(super) fn blind(app: &App) -> EnabledResult {
    require_workspace(app)
}

pub(super) fn run(app: &App) -> EnabledResult {
    require_workspace(app)?;
    cell(app)
}

pub(super) fn run_all(app: &App) -> EnabledResult {
    require_workspace(app)
}

pub(super) fn edit(app: &App) -> EnabledResult {
    require_workspace(app)?;
    fail_if(
        app.workspace().is_some_and(|w| w.rubrics.is_empty()),
        "there is no rubric to edit: write one into rubrics/",
    )
}

pub(super) fn auto(app: &App) -> EnabledResult {
    require_workspace(app)
}

pub(super) fn judges(app: &App) -> EnabledResult {
    require_workspace(app)?;
    let row = focused_row(app)?;
    let eval = app.session().cells.evals.get(row.eval as usize);
    fail_if(
        eval.is_some_and(|eval| !eval.judged),
        "this eval asks no judge: select a judged one",
    )
}

pub(super) fn replay(app: &App) -> EnabledResult {
    fail_if(app.replay.is_some(), "this is a replay already")?;
    fail_if(
        app.live_session.cells.blind,
        "a replay would show the hidden verdicts: B shows them",
    )?;
    let row = focused_row(app)?;
    fail_if(
        !row.slots.iter().any(|slot| slot.run_cell.is_some()),
        "no run to replay yet: R runs everything",
    )?;
    fail_if(
        row.slots
            .iter()
            .any(|slot| matches!(slot.state, RowSlotState::Live)),
        "this cell is being judged: replay it when it ended",
    )
}

pub(super) fn make_workspace(app: &App) -> EnabledResult {
    require_live(app)?;
    fail_if(
        !matches!(app.opened, OpenedItem::TranscriptFile(_)),
        "this is no bare file: a workspace is open already",
    )
}

pub(super) fn problems(app: &App) -> EnabledResult {
    if app.shows_unjudged_file() {
        require_workspace(app)?;
    }
    fail_if(
        app.session().cells.rows.is_empty(),
        "there are no cells yet",
    )
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
        "no transcript is shown: select a cell (j, k)",
    )
}

pub(super) fn matches(app: &App) -> EnabledResult {
    let Some(scroll) = content::pane_scroll(app, app.ui.focus) else {
        return Err("in the cells / filters: what is listed matches");
    };
    fail_if(
        scroll.search.is_none(),
        "nothing is searched for: / searches",
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
    fail_if(app.tour.is_none(), "the tour belongs to the demo")
}

pub(super) fn enter(app: &App) -> EnabledResult {
    match app.ui.focus {
        Pane::Cells => fail_if(
            app.session().cells.list.selected.is_none(),
            "nothing is selected: j and k move",
        ),
        Pane::Changes => fail_if(
            count_flips(app) == 0,
            "no verdict moved: there is no cell to go to",
        ),
        _ => Ok(()),
    }
}

/// How many flips the changes pane lists.
pub(crate) fn count_flips(app: &App) -> usize {
    app.visible_report().map_or(0, |report| report.flips.len())
}
