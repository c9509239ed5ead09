//! The state of one run, so that a run or a result file can be compared with a state of the history.
//!
//! Responsible for the decisions of a folded run. Does not read logs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::{CellKey, RunHeader, RunState};
use crate::model::{CellIx, RunId, WallTime};
use crate::record::{
    CellSlot, DecisionStanding, EvalDecisions, RecordedCell, State, StateDecision, StateTranscript,
};

/// The cells of one decision, by number.
type CellGroups = HashMap<DecisionKey, Vec<GroupedCell>>;

/// The decision of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct DecisionKey {
    eval: u32,
    transcript: u32,
    message: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct GroupedCell {
    key: CellKey,
    cell: CellIx,
}

/// Returns every decision that a run planned. `run` is the number that the cells of the run get.
pub fn state_of_run(folded: &RunState, run: u32) -> State {
    let header = folded.header.as_deref().cloned().unwrap_or_else(|| {
        // A run without a header has no cells with names either.
        RunHeader::new(RunId(String::new()), WallTime(String::new()), "".into())
    });
    let mut transcripts: Vec<StateTranscript> = Vec::new();
    // A run plans later repeats of a transcript separately, so a transcript may occur several times.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let places: Vec<u32> = folded
        .transcripts
        .iter()
        .map(|planned| {
            *numbers.entry(&planned.source.id).or_insert_with(|| {
                transcripts.push(StateTranscript {
                    id: planned.source.id.as_str().into(),
                    digest: planned.source.digest.clone(),
                });
                u32::try_from(transcripts.len() - 1).unwrap_or(u32::MAX)
            })
        })
        .collect();
    // Step: group the cells by decision.
    let mut groups = CellGroups::new();
    for (cell, number) in folded.cells.iter().zip(0..) {
        let Some(planned) = cell.planned else {
            continue;
        };
        let Some(transcript) = places.get(planned.transcript as usize) else {
            continue;
        };
        let key = DecisionKey {
            eval: planned.key.eval,
            transcript: *transcript,
            message: planned.key.message,
        };
        groups.entry(key).or_default().push(GroupedCell {
            key: planned.key,
            cell: CellIx(number),
        });
    }
    // Step: decide each group.
    let mut evals = vec![EvalDecisions::default(); header.evals.len()];
    for (key, mut cells) in groups {
        let (Some(spec), Some(decisions)) = (
            header.evals.get(key.eval as usize),
            evals.get_mut(key.eval as usize),
        ) else {
            continue;
        };
        cells.sort_by_key(|one| (one.key.judge, one.key.repeat));
        let result = |one: &GroupedCell| folded.cells[one.cell.index()].result.as_deref();
        let decision = spec.decide(cells.iter().map(|one| (&one.key, result(one))));
        let standing = decision.map_or(DecisionStanding::Pending, |decision| {
            DecisionStanding::Decided {
                outcome: decision.outcome,
                score: decision.score,
            }
        });
        // A pending decision has no cells to rest on.
        if standing == DecisionStanding::Pending {
            cells.clear();
        }
        decisions.decisions.push(StateDecision {
            transcript: key.transcript,
            eval: key.eval,
            message: key.message,
            standing,
            cells: cells
                .iter()
                .map(|one| RecordedCell {
                    run,
                    cell: one.cell,
                })
                .collect(),
            slots: cells
                .iter()
                .map(|one| CellSlot {
                    judge: one.key.judge,
                    repeat: one.key.repeat,
                })
                .collect(),
            failed_rerun: None,
            edited: cells
                .iter()
                .any(|one| folded.cells[one.cell.index()].by_human),
        });
    }
    for eval in &mut evals {
        eval.decisions
            .sort_unstable_by_key(|one| (one.transcript, one.message));
    }
    State {
        header: Arc::new(header),
        transcripts: Arc::new(transcripts),
        evals: evals.into_iter().map(Arc::new).collect(),
        identities: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EvalSpec, EventKind, RubricSpec, RunEvent, SettledCell};
    use crate::model::{CellResult, Digest, Millis, Outcome, TranscriptRef};

    fn event(kind: EventKind) -> RunEvent {
        RunEvent {
            seq: 0,
            at: Millis(0),
            kind,
        }
    }

    fn planned(id: &str, first: u32, keys: Vec<CellKey>) -> RunEvent {
        event(EventKind::CellsPlanned {
            transcript: TranscriptRef {
                id: id.to_owned(),
                path: "t.jsonl".into(),
                offset: 0,
                len: 0,
                part: 0,
                digest: Digest::hash_bytes(id.as_bytes()),
            },
            first: CellIx(first),
            keys,
        })
    }

    fn key(repeat: Option<u32>) -> CellKey {
        CellKey {
            eval: 0,
            message: None,
            judge: None,
            repeat,
        }
    }

    #[test]
    fn late_repeats_belong_to_the_decision_of_their_transcript() {
        let started = WallTime("2026-01-01T00:00:00Z".to_owned());
        let mut header = RunHeader::new(RunId("r".to_owned()), started, "/w".into());
        header.rubrics = vec![RubricSpec {
            id: "r".to_owned(),
            path: "r.yaml".into(),
            threshold: None,
        }];
        let mut eval = EvalSpec::new(0, "tone", "llm_judge", Digest::hash_bytes(b"tone"));
        eval.repeat = 3;
        header.evals = vec![eval];
        let settled = |cell, outcome| {
            let result = CellResult::new(outcome, "");
            event(EventKind::CellsSettled(vec![SettledCell::new(
                CellIx(cell),
                result,
            )]))
        };
        let events = [
            event(EventKind::RunStarted(Box::new(header))),
            planned("a", 0, vec![key(Some(1)), key(Some(2))]),
            planned("b", 2, vec![key(Some(1))]),
            planned("a", 3, vec![key(Some(3))]),
            settled(0, Outcome::Pass),
            settled(1, Outcome::Fail),
            settled(3, Outcome::Fail),
        ];
        let state = state_of_run(&RunState::fold(&events), 7);
        assert_eq!(state.transcripts.len(), 2);
        let decided: Vec<_> = state.decisions().collect();
        assert_eq!(decided.len(), 2);
        assert_eq!(decided[0].outcome(), Some(Outcome::Fail));
        let cells: Vec<u32> = decided[0].cells.iter().map(|cell| cell.cell.0).collect();
        assert_eq!(cells, [0, 1, 3]);
        assert!(decided[0].cells.iter().all(|cell| cell.run == 7));
        assert_eq!(decided[1].outcome(), None, "the repeat of b has no result");
        assert!(decided[1].cells.is_empty());
        assert!(state.find(0, 1, None).is_some());
    }

    #[test]
    fn edited_decision_keeps_its_outcome_and_enters_no_statistics() {
        let started = WallTime("2026-01-01T00:00:00Z".to_owned());
        let mut header = RunHeader::new(RunId("r".to_owned()), started, "/w".into());
        let digest = Digest::hash_bytes(b"tone");
        header.evals = vec![EvalSpec::new(0, "tone", "llm_judge", digest)];
        let settled = |cell, by_human| {
            let mut result = CellResult::new(Outcome::Pass, "");
            result.by_human = by_human;
            event(EventKind::CellsSettled(vec![SettledCell::new(
                CellIx(cell),
                result,
            )]))
        };
        let events = [
            event(EventKind::RunStarted(Box::new(header))),
            planned("a", 0, vec![key(None)]),
            planned("b", 1, vec![key(None)]),
            settled(0, true),
            settled(1, false),
        ];
        let state = state_of_run(&RunState::fold(&events), 0);
        let facts: Vec<_> = state
            .decisions()
            .map(|one| {
                let has_label = state.label_query(one).is_some();
                (one.passed(), one.edited, one.judged_verdict(), has_label)
            })
            .collect();
        assert_eq!(
            facts,
            [
                (Some(true), true, None, false),
                (Some(true), false, Some(true), true)
            ]
        );
    }
}
