//! Strategies for events, and the laws of the fold. The laws that need a recorder are in `record`.

mod facts;
mod nouns;
mod traces;

use proptest::prelude::*;

use super::{AttemptReply, EventKind, RunEvent, RunState, TurnFact};
use crate::model::{CallIx, CellIx};

use facts::garbage;
pub(crate) use facts::kind;
use nouns::header;
pub(crate) use traces::{numbered, run};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_fact_round_trips(kind in kind()) {
        let json = kind.to_json().expect("facts serialise");
        prop_assert!(!json.contains('\n'), "one record, one line");
        if let Some(tag) = kind.tag() {
            prop_assert!(json.starts_with(&format!("{{\"{}\":", tag.as_str())), "{json}");
        }
        prop_assert_eq!(EventKind::from_json(&json).expect("and read"), kind);
    }

    #[test]
    fn header_round_trips(header in header()) {
        let kind = EventKind::RunStarted(Box::new(header));
        let json = kind.to_json().expect("serialises");
        prop_assert_eq!(EventKind::from_json(&json).expect("and reads"), kind);
    }

    #[test]
    fn folding_any_events_in_any_order_never_panics(events in garbage()) {
        let mut state = RunState::default();
        for event in &events {
            state.apply(event);
        }
        for cell in 0..8 {
            let _no_panic = state.cell_name(CellIx(cell));
        }
    }

    #[test]
    fn unknown_kinds_survive_and_are_counted(kinds in proptest::collection::vec(kind(), 0..30)) {
        let unknown = kinds.iter().filter(|k| matches!(k, EventKind::Unknown(_))).count() as u64;
        let events = numbered(kinds);
        prop_assert_eq!(RunState::fold(&events).unknown, unknown);
        let lines: Vec<String> = events.iter().map(|e| serde_json::to_string(e).expect("serialises")).collect();
        for (line, event) in lines.iter().zip(&events) {
            let read: RunEvent = serde_json::from_str(line).expect("reads");
            prop_assert_eq!(&read, event);
            prop_assert_eq!(&serde_json::to_string(&read).expect("serialises"), line);
        }
    }

    #[test]
    fn the_deltas_of_a_finished_attempt_concatenate_to_its_reply(kinds in run(), header in header()) {
        let start = EventKind::RunStarted(Box::new(header));
        let events = numbered(std::iter::once(start).chain(kinds));
        let state = RunState::fold(&events);
        prop_assert_eq!(state.stray, 0);
        let finished = events.iter().filter(|e| matches!(&e.kind, EventKind::Turn { fact: TurnFact::Finished { .. }, .. })).count();
        let mut seen = 0;
        for turn in state.cells.iter().flat_map(|cell| &cell.judge_trace) {
            let Some(AttemptReply { attempt, reply }) = &turn.finished else { continue };
            seen += 1;
            let attempt_state = &turn.attempts[attempt];
            prop_assert_eq!(&attempt_state.text, &reply.text);
            prop_assert_eq!(&attempt_state.thought, &reply.thought);
            for (call, made) in (0..).map(CallIx).zip(&reply.calls) {
                prop_assert_eq!(attempt_state.args.get(&call).map_or("", String::as_str), &made.raw);
            }
            for (_, failed) in turn.attempts.iter().filter(|(n, _)| *n != attempt) {
                prop_assert!(failed.failed.is_some(), "deltas of other attempts are void");
            }
        }
        prop_assert_eq!(seen, finished, "every finished turn was looked at");
    }

    #[test]
    fn every_prefix_folds_and_the_rest_continues_it(kinds in run()) {
        let events = numbered(kinds);
        let whole = RunState::fold(&events);
        for cut in 0..=events.len() {
            let mut state = RunState::fold(&events[..cut]);
            events[cut..].iter().for_each(|event| state.apply(event));
            prop_assert_eq!(&state, &whole);
        }
    }
}
