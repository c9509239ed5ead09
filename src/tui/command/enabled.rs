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
pub(crate) fn check_scope(model: &App, scope: CommandScope) -> EnabledResult {
    match scope {
        CommandScope::Global => Ok(()),
        CommandScope::Cells => fail_if(
            model.ui.focus != Pane::Cells,
            "this works in the cells: 1 goes there",
        ),
        CommandScope::Verdicts => fail_if(
            !matches!(model.ui.focus, Pane::Cells | Pane::Verdict),
            "this works in the cells and the verdict: 1 and 5 go there",
        ),
        CommandScope::Transcript => fail_if(
            model.ui.focus != Pane::Transcript,
            "this works in the transcript: 6 goes there",
        ),
        CommandScope::Replay => fail_if(
            model.replay.is_none(),
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
fn require_live(model: &App) -> EnabledResult {
    match &model.replay {
        Some(replay) if replay.quits_on_leave => {
            Err("this is a replay: nothing is judged or edited here (q ends it)")
        }
        Some(_) => Err("this is a replay: q goes back"),
        None => Ok(()),
    }
}

fn require_workspace(model: &App) -> EnabledResult {
    require_live(model)?;
    match &model.opened {
        OpenedItem::Workspace(_) => Ok(()),
        OpenedItem::TranscriptFile(_) => {
            Err("there is no rubric yet: W makes a workspace around this file")
        }
        OpenedItem::Recording => Err("no workspace is open: `dicta open DIR` opens one"),
    }
}

fn focused_row(model: &App) -> Result<&CellsRow, &'static str> {
    let cells = &model.session().cells;
    cells
        .selected_row()
        .and_then(|row| cells.row(row))
        .ok_or(NO_CELL)
}

pub(super) fn cell(model: &App) -> EnabledResult {
    focused_row(model).map(|_| ())
}

/// A cell whose verdict may be looked at.
pub(super) fn verdict_visible(model: &App) -> EnabledResult {
    let row = focused_row(model)?;
    fail_if(
        row.hidden,
        "hidden until you label it: p pass, f fail, u unsure",
    )
}

/// A decision that can be labelled.
pub(super) fn label(model: &App) -> EnabledResult {
    require_workspace(model)?;
    let row = focused_row(model)?;
    fail_if(
        row.message.is_some(),
        "a label is about a whole transcript: this decision is about one message",
    )
}

pub(super) fn labelled(model: &App) -> EnabledResult {
    label(model)?;
    let row = focused_row(model)?;
    fail_if(
        row.label.is_none(),
        "there is no label to remove: p, f and u set one",
    )
}

pub(super) fn label_back(model: &App) -> EnabledResult {
    require_workspace(model)?;
    fail_if(
        model.label_edits.undo_stack.is_empty(),
        "no label was changed here: p, f, u and x do",
    )
}

pub(super) fn blind(model: &App) -> EnabledResult {
    require_workspace(model)
}

pub(super) fn run(model: &App) -> EnabledResult {
    require_workspace(model)?;
    cell(model)
}

pub(super) fn run_all(model: &App) -> EnabledResult {
    require_workspace(model)
}

pub(super) fn edit(model: &App) -> EnabledResult {
    require_workspace(model)?;
    fail_if(
        model.workspace().is_some_and(|w| w.rubrics.is_empty()),
        "there is no rubric to edit: write one into rubrics/",
    )
}

pub(super) fn auto(model: &App) -> EnabledResult {
    require_workspace(model)
}

pub(super) fn judges(model: &App) -> EnabledResult {
    require_workspace(model)?;
    let row = focused_row(model)?;
    let eval = model.session().cells.evals.get(row.eval as usize);
    fail_if(
        eval.is_some_and(|eval| !eval.judged),
        "this eval asks no judge: select a judged one",
    )
}

pub(super) fn replay(model: &App) -> EnabledResult {
    fail_if(model.replay.is_some(), "this is a replay already")?;
    fail_if(
        model.live_session.cells.blind,
        "a replay would show the hidden verdicts: B shows them",
    )?;
    let row = focused_row(model)?;
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

pub(super) fn make_workspace(model: &App) -> EnabledResult {
    require_live(model)?;
    fail_if(
        !matches!(model.opened, OpenedItem::TranscriptFile(_)),
        "this is no bare file: a workspace is open already",
    )
}

pub(super) fn problems(model: &App) -> EnabledResult {
    if model.shows_unjudged_file() {
        require_workspace(model)?;
    }
    fail_if(
        model.session().cells.rows.is_empty(),
        "there are no cells yet",
    )
}

pub(super) fn step(model: &App) -> EnabledResult {
    cell(model)
}

pub(super) fn transcript(model: &App) -> EnabledResult {
    fail_if(
        !matches!(
            model.session().transcript_pane.document,
            DocumentState::Loaded(_)
        ),
        "no transcript is shown: select a cell (j, k)",
    )
}

pub(super) fn matches(model: &App) -> EnabledResult {
    let Some(scroll) = content::pane_scroll(model, model.ui.focus) else {
        return Err("in the cells / filters: what is listed matches");
    };
    fail_if(
        scroll.search.is_none(),
        "nothing is searched for: / searches",
    )
}

pub(super) fn text(model: &App) -> EnabledResult {
    if model.ui.focus == Pane::Cells {
        cell(model)
    } else {
        Ok(())
    }
}

pub(super) fn tour(model: &App) -> EnabledResult {
    fail_if(model.tour.is_none(), "the tour belongs to the demo")
}

pub(super) fn enter(model: &App) -> EnabledResult {
    match model.ui.focus {
        Pane::Cells => fail_if(
            model.session().cells.list.selected.is_none(),
            "nothing is selected: j and k move",
        ),
        Pane::Changes => fail_if(
            count_flips(model) == 0,
            "no verdict moved: there is no cell to go to",
        ),
        _ => Ok(()),
    }
}

/// How many flips the changes pane lists.
pub(crate) fn count_flips(model: &App) -> usize {
    model
        .visible_report()
        .map_or(0, |report| report.flips.len())
}
