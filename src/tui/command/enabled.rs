//! Why a command does nothing now: sentences that say what to do first. Cheap: asked for every row with every frame.

use super::super::content;
use super::super::model::cells::{Row, SlotState};
use super::super::model::document::Shown;
use super::super::model::pane::Pane;
use super::super::model::{Model, Place};
use super::Scope;

type Enabled = Result<(), &'static str>;

const NO_CELL: &str = "select a cell first (j, k)";

fn unless(hindered: bool, why: &'static str) -> Enabled {
    if hindered { Err(why) } else { Ok(()) }
}

/// Whether a scope is in force.
pub(crate) fn scope(model: &Model, scope: Scope) -> Enabled {
    match scope {
        Scope::Global => Ok(()),
        Scope::Cells => unless(
            model.ui.focus != Pane::Cells,
            "this works in the cells: 1 goes there",
        ),
        Scope::Verdicts => unless(
            !matches!(model.ui.focus, Pane::Cells | Pane::Verdict),
            "this works in the cells and the verdict: 1 and 5 go there",
        ),
        Scope::Transcript => unless(
            model.ui.focus != Pane::Transcript,
            "this works in the transcript: 6 goes there",
        ),
        Scope::Replay => unless(
            model.replay.is_none(),
            "nothing is replayed: v plays the focused cell's run",
        ),
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a row of the table takes what the others can also refuse"
)]
pub(super) fn always(_: &Model) -> Enabled {
    Ok(())
}

/// Judging and editing are for what is live.
fn live(model: &Model) -> Enabled {
    match &model.replay {
        Some(replay) if replay.alone => {
            Err("this is a replay: nothing is judged or edited here (q ends it)")
        }
        Some(_) => Err("this is a replay: q goes back"),
        None => Ok(()),
    }
}

fn workspace(model: &Model) -> Enabled {
    live(model)?;
    match &model.place {
        Place::Workspace(_) => Ok(()),
        Place::Bare(_) => Err("there is no rubric yet: W makes a workspace around this file"),
        Place::Recording => Err("no workspace is open: `dicta open DIR` opens one"),
    }
}

fn row(model: &Model) -> Result<&Row, &'static str> {
    let cells = &model.desk().cells;
    cells
        .selected()
        .and_then(|row| cells.row(row))
        .ok_or(NO_CELL)
}

pub(super) fn cell(model: &Model) -> Enabled {
    row(model).map(|_| ())
}

/// A cell whose verdict may be looked at.
pub(super) fn seen(model: &Model) -> Enabled {
    let row = row(model)?;
    unless(
        row.veiled,
        "hidden until you label it: p pass, f fail, u unsure",
    )
}

/// A decision that can be labelled.
pub(super) fn label(model: &Model) -> Enabled {
    workspace(model)?;
    let row = row(model)?;
    unless(
        row.message.is_some(),
        "a label is about a whole transcript: this decision is about one message",
    )
}

pub(super) fn labelled(model: &Model) -> Enabled {
    label(model)?;
    let row = row(model)?;
    unless(
        row.label.is_none(),
        "there is no label to remove: p, f and u set one",
    )
}

pub(super) fn label_back(model: &Model) -> Enabled {
    workspace(model)?;
    unless(
        model.labels.done.is_empty(),
        "no label was changed here: p, f, u and x do",
    )
}

pub(super) fn blind(model: &Model) -> Enabled {
    workspace(model)
}

pub(super) fn run(model: &Model) -> Enabled {
    workspace(model)?;
    cell(model)
}

pub(super) fn run_all(model: &Model) -> Enabled {
    workspace(model)
}

pub(super) fn edit(model: &Model) -> Enabled {
    workspace(model)?;
    unless(
        model.workspace().is_some_and(|w| w.rubrics.is_empty()),
        "there is no rubric to edit: write one into rubrics/",
    )
}

pub(super) fn auto(model: &Model) -> Enabled {
    workspace(model)
}

pub(super) fn judges(model: &Model) -> Enabled {
    workspace(model)?;
    let row = row(model)?;
    let eval = model.desk().cells.evals.get(row.eval as usize);
    unless(
        eval.is_some_and(|eval| !eval.judged),
        "this eval asks no judge: select a judged one",
    )
}

pub(super) fn replay(model: &Model) -> Enabled {
    unless(model.replay.is_some(), "this is a replay already")?;
    unless(
        model.live.cells.blind,
        "a replay would show the hidden verdicts: B shows them",
    )?;
    let row = row(model)?;
    unless(
        !row.slots.iter().any(|slot| slot.at.is_some()),
        "no run to replay yet: R runs everything",
    )?;
    unless(
        row.slots
            .iter()
            .any(|slot| matches!(slot.state, SlotState::Live)),
        "this cell is being judged: replay it when it ended",
    )
}

pub(super) fn make_workspace(model: &Model) -> Enabled {
    live(model)?;
    unless(
        !matches!(model.place, Place::Bare(_)),
        "this is no bare file: a workspace is open already",
    )
}

pub(super) fn problems(model: &Model) -> Enabled {
    if model.is_bare() {
        workspace(model)?;
    }
    unless(model.desk().cells.rows.is_empty(), "there are no cells yet")
}

pub(super) fn step(model: &Model) -> Enabled {
    cell(model)
}

pub(super) fn transcript(model: &Model) -> Enabled {
    unless(
        !matches!(model.desk().document.doc, Shown::Here(_)),
        "no transcript is shown: select a cell (j, k)",
    )
}

pub(super) fn matches(model: &Model) -> Enabled {
    let Some(scroll) = content::scroll(model, model.ui.focus) else {
        return Err("in the cells / filters: what is listed matches");
    };
    unless(scroll.find.is_none(), "nothing is searched for: / searches")
}

pub(super) fn text(model: &Model) -> Enabled {
    if model.ui.focus == Pane::Cells {
        cell(model)
    } else {
        Ok(())
    }
}

pub(super) fn tour(model: &Model) -> Enabled {
    unless(model.tour.is_none(), "the tour belongs to the demo")
}

pub(super) fn enter(model: &Model) -> Enabled {
    match model.ui.focus {
        Pane::Cells => unless(
            model.desk().cells.list.selected.is_none(),
            "nothing is selected: j and k move",
        ),
        Pane::Changes => unless(
            flips(model) == 0,
            "no verdict moved: there is no cell to go to",
        ),
        _ => Ok(()),
    }
}

/// How many flips the changes pane lists.
pub(crate) fn flips(model: &Model) -> usize {
    model.report().map_or(0, |report| report.flips.len())
}
