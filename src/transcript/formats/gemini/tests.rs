//! Gemini's shapes, each as its fixture has it.

use proptest::prelude::*;

use super::super::testing::{as_expected, survives, told};

const FILES: [&str; 3] = [
    "gemini/history.json",
    "gemini/reply.json",
    "gemini/requests.jsonl",
];

#[test]
fn every_shape_is_read_as_it_is_expected() {
    for name in FILES {
        as_expected(name);
    }
}

#[test]
fn camel_case_and_snake_case_say_the_same() {
    let both = told("gemini/requests.jsonl");
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
    fn no_bytes_make_it_panic(ix in 0..FILES.len(), cut in any::<usize>(), at in any::<usize>(), byte in any::<u8>()) {
        survives(FILES[ix], cut, at, byte);
    }
}
