//! The family of an opened recording: the traces that it continues, and the later branches of its traces.

use std::collections::BTreeSet;

use crate::event::{EventKind, RunHeader};
use crate::model::RunId;
use crate::tui::effect::{Effect, FamilyOrder};
use crate::tui::state::App;
use crate::tui::state::cells::RecordedFamily;
use crate::tui::state::replay::ReplayState;
use crate::tui::state::runs::RunTicket;

/// Orders the results of the other runs. A recording knows the trace that it continues, but not its later branches.
pub(super) fn request_family(app: &App, replay: &ReplayState) -> Effect {
    let log = replay.player.log();
    let mut runs = BTreeSet::from([&replay.run]);
    // The trace of a reused verdict is in the run that judged it, and so are its branches.
    for event in log.outline() {
        match &event.kind {
            EventKind::CellFinished { result, .. } => runs.extend(&result.cached),
            EventKind::CellsSettled(all) => {
                runs.extend(all.iter().filter_map(|one| one.result.cached.as_ref()));
            }
            _ => {}
        }
    }
    // The cells of a state come from several runs.
    let state_cells = replay
        .session
        .state_cells
        .iter()
        .flat_map(|cells| cells.values());
    runs.extend(state_cells.flatten().map(|cell| &cell.run));
    let parent = log.header().and_then(RunHeader::forked_cell);
    Effect::ReadFamily(FamilyOrder {
        ticket: replay.ticket,
        runs: runs.into_iter().cloned().collect::<Vec<RunId>>(),
        parent,
        workspace: app.workspace().cloned(),
        dir: replay.dir.clone(),
    })
}

/// Shows the other traces of the family, if the recording is still open.
pub(in crate::tui::update) fn handle_family_read(
    app: &mut App,
    ticket: RunTicket,
    family: &RecordedFamily,
) -> Vec<Effect> {
    if let Some(replay) = app.replay.as_mut().filter(|replay| replay.ticket == ticket) {
        replay.add_family(family);
    }
    Vec::new()
}
