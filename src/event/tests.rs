//! Tests of facts that this version does not know, of invalid facts that it does know, and of decisions.

use super::*;
use crate::model::{Ballot, CellVote, Outcome};

#[test]
fn an_unknown_kind_survives_a_round_trip() {
    let line = r#"{"seq":7,"at":12,"kind":{"moon_rose":{"phase":0.50}}}"#;
    let event: RunEvent = serde_json::from_str(line).expect("a newer minor is read");
    assert!(matches!(event.kind, EventKind::Unknown(_)));
    assert_eq!(
        serde_json::to_string(&event).expect("and written back"),
        line
    );
}

#[test]
fn broken_event_of_a_known_kind_is_an_error() {
    let line = r#"{"seq":7,"at":12,"kind":{"cell_started":{"cell":"x"}}}"#;
    assert!(serde_json::from_str::<RunEvent>(line).is_err());
}

#[test]
fn raw_json_keeps_big_numbers_as_written() {
    let fact = ToolFact::Validated {
        values: RawJson::parse(r#"{"n":12345678901234567890123}"#).expect("valid"),
        coerced: Vec::new(),
    };
    let kind = EventKind::Tool {
        cell: CellIx(0),
        turn: TurnIx(0),
        call: CallIx(0),
        fact,
    };
    let json = kind.to_json().expect("serialises");
    assert!(json.contains("12345678901234567890123"));
    assert_eq!(EventKind::from_json(&json).expect("reads"), kind);
}

#[test]
fn request_at_a_pause_is_unsent_until_the_turn_starts() {
    let mut state = RunState::default();
    state.cells.push(CellState::default());
    let (cell, turn) = (CellIx(0), TurnIx(0));
    let request = vec![StoredText::Text("{}".to_owned())];
    let event = |kind| RunEvent {
        seq: 0,
        at: Millis(5),
        kind,
    };
    let pending = PendingPart::Request(PendingRequest {
        turn,
        request: request.clone(),
    });
    state.apply(&event(EventKind::Paused {
        cell,
        at: GatePoint::BeforeTurn,
        pending: Some(Box::new(pending)),
    }));
    assert!(state.cells[0].judge_trace[0].unsent);
    let dropped = Vec::new();
    let fact = TurnFact::Started { request, dropped };
    state.apply(&event(EventKind::Turn { cell, turn, fact }));
    assert!(!state.cells[0].judge_trace[0].unsent);
}

#[test]
fn one_cell_without_a_panel_decides_as_a_vote_of_one() {
    let eval = EvalSpec::new(0, "grounded", "regex", Digest::hash_bytes(b""));
    let key = CellKey {
        eval: 0,
        message: None,
        judge: None,
        repeat: None,
    };
    for outcome in Outcome::ALL {
        let result = CellResult {
            score: Some(0.25),
            ..CellResult::new(outcome, "")
        };
        let vote = CellVote {
            judge: None,
            repeat: None,
            ballot: Some(Ballot::from(&result)),
        };
        let expected = eval.vote_params().decide(&[vote]);
        assert_eq!(expected.as_ref().map(|one| one.outcome), Some(outcome));
        assert_eq!(eval.decide([(&key, Some(&result))]), expected);
    }
    assert_eq!(eval.decide([(&key, None)]), None);
    assert_eq!(eval.decide([]), None);
}
