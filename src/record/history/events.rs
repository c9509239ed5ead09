//! The events of a run that has a given state.
//!
//! Responsible for the order of the events: header, then plan and results of each transcript. Reports of runs read them,
//! so every report of a run exists for a state.

use std::collections::HashMap;
use std::path::PathBuf;

use super::{History, HistoryEntry, RecordedCell, State, StateDecision};
use crate::event::{CellKey, EventKind, RunEvent, SettledCell};
use crate::model::{CellIx, CellResult, Millis, Outcome, ScoreBounds, TranscriptRef};
use crate::record::newest_verdicts::decide_under;

/// Returns the events of a run with the state of an entry.
pub(super) fn state_events(history: &History, entry: &HistoryEntry) -> Vec<RunEvent> {
    let state = &*entry.state;
    let cells = state.decisions().flat_map(|one| one.cells.iter().copied());
    let results = history.read_results(cells);
    let mut events = EventList::default();
    let header = (*state.header).clone();
    events.push(EventKind::RunStarted(Box::new(header)));
    for (transcript, decisions) in group_by_transcript(state) {
        push_transcript(
            history,
            state,
            transcript,
            &decisions,
            &results,
            &mut events,
        );
    }
    events.list
}

#[derive(Default)]
struct EventList {
    list: Vec<RunEvent>,
    next_cell: u32,
}

impl EventList {
    fn push(&mut self, kind: EventKind) {
        self.list.push(RunEvent {
            seq: self.list.len() as u64,
            at: Millis(0),
            kind,
        });
    }
}

/// Returns the decisions of each transcript, in plan order: by eval, then message.
fn group_by_transcript(state: &State) -> Vec<(u32, Vec<&StateDecision>)> {
    let mut groups: Vec<Vec<&StateDecision>> = vec![Vec::new(); state.transcripts.len()];
    for decision in state.decisions() {
        groups[decision.transcript as usize].push(decision);
    }
    (0..)
        .zip(groups)
        .filter(|(_, group)| !group.is_empty())
        .collect()
}

fn push_transcript(
    history: &History,
    state: &State,
    transcript: u32,
    decisions: &[&StateDecision],
    results: &HashMap<RecordedCell, CellResult>,
    events: &mut EventList,
) {
    let named = &state.transcripts[transcript as usize];
    let reference = match history.records.get(&named.digest) {
        Some(record) => TranscriptRef {
            id: named.id.to_string(),
            ..(**record).clone()
        },
        // No run of the history has read the transcript yet.
        None => TranscriptRef {
            id: named.id.to_string(),
            path: PathBuf::new(),
            offset: 0,
            len: 0,
            part: 0,
            digest: named.digest.clone(),
        },
    };
    let first = CellIx(events.next_cell);
    let (mut keys, mut settled) = (Vec::new(), Vec::new());
    for decision in decisions {
        let spec = state.eval(decision);
        let bounds = ScoreBounds::from_decision_settings(&spec.decision_settings);
        let key = |judge, repeat| CellKey {
            eval: decision.eval,
            message: decision.message,
            judge,
            repeat,
        };
        if decision.cells.is_empty() {
            // A pending decision has a planned cell without a result.
            let first_judge = spec
                .panel
                .as_ref()
                .and_then(|panel| panel.judges.first().copied());
            let repeat = (spec.repeat > 1).then_some(1);
            keys.push(key(spec.judge.or(first_judge), repeat));
            continue;
        }
        for (cell, slot) in decision.cells.iter().zip(&decision.slots) {
            let number = CellIx(events.next_cell + u32::try_from(keys.len()).unwrap_or(u32::MAX));
            keys.push(key(slot.judge, slot.repeat));
            if let Some(result) = results.get(cell) {
                let is_single = decision.cells.len() == 1;
                let outcome = decision.outcome().filter(|_| is_single);
                let mut result = result_under(result, bounds, outcome);
                // The state names the run of each verdict that its last run did not give.
                let run = &history.run_of(*cell).id;
                if *run != state.header.run {
                    result.cached.get_or_insert_with(|| run.clone());
                }
                settled.push(SettledCell::new(number, result));
            }
        }
    }
    events.next_cell += u32::try_from(keys.len()).unwrap_or(u32::MAX);
    events.push(EventKind::CellsPlanned {
        transcript: reference,
        first,
        keys,
    });
    if !settled.is_empty() {
        events.push(EventKind::CellsSettled(settled));
    }
}

/// Returns a result with its outcome under the bounds of the revision. `outcome` is that of the decision, if the cell is
/// its only one.
fn result_under(result: &CellResult, bounds: ScoreBounds, outcome: Option<Outcome>) -> CellResult {
    CellResult {
        outcome: outcome.unwrap_or_else(|| decide_under(result, bounds)),
        ..result.clone()
    }
}
