//! Tests of facts that this version does not know, and of invalid facts that it does know.

use super::*;

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
