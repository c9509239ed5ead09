//! Gemini's shapes, each as its fixture has it.

use proptest::prelude::*;

use super::super::testing::{assert_matches_expected, assert_survives_damage, describe_file};

const FILES: [&str; 3] = [
    "gemini/history.json",
    "gemini/reply.json",
    "gemini/requests.jsonl",
];

#[test]
fn every_fixture_is_read_as_expected() {
    for name in FILES {
        assert_matches_expected(name);
    }
}

#[test]
fn camel_case_and_snake_case_give_the_same_transcript() {
    let both = describe_file("gemini/requests.jsonl");
    let calls: Vec<&str> = both
        .lines()
        .filter(|line| line.contains("weather-1"))
        .collect();
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[..2], calls[2..]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn parser_does_not_panic_on_any_bytes(ix in 0..FILES.len(), cut in any::<usize>(), at in any::<usize>(), byte in any::<u8>()) {
        assert_survives_damage(FILES[ix], cut, at, byte);
    }
}
