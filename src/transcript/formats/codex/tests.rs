//! Rollouts and event streams, each as its fixture has it.

use proptest::prelude::*;

use super::super::testing::{as_expected, fixture, read, survives, told};

const FILES: [&str; 4] = [
    "codex/rollout.jsonl",
    "codex/together.jsonl",
    "codex/bare.jsonl",
    "codex/exec.jsonl",
];

#[test]
fn every_version_is_read_as_it_is_expected() {
    for name in FILES {
        as_expected(name);
    }
}

#[test]
fn turns_that_were_taken_back_are_gone_and_events_repeat_nothing() {
    let told = told("codex/rollout.jsonl");
    assert!(!told.contains("And wrong?") && !told.contains("Wrong."));
    assert_eq!(told.matches("Please use tools").count(), 1);
}

#[test]
fn a_fork_repeats_the_heads_of_those_it_comes_from() {
    let (_, all, unknown) = read(&fixture("codex/together.jsonl"));
    let ids: Vec<String> = all
        .iter()
        .map(|got| got.as_ref().expect("a session").id.to_string())
        .collect();
    assert_eq!(ids, ["s-1", "s-2", "s-3"]);
    let metadata = all[1].as_ref().ok().and_then(|t| t.metadata.as_ref());
    let metadata = metadata.expect("metadata").get();
    assert!(
        metadata.contains(r#""parent":{"transcript":"s-1"}"#),
        "{metadata}"
    );
    assert!(
        unknown
            .iter()
            .any(|(kind, n)| kind == "a line that is not JSON" && *n == 1)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_make_it_panic(ix in 0..FILES.len(), cut in any::<usize>(), at in any::<usize>(), byte in any::<u8>()) {
        survives(FILES[ix], cut, at, byte);
    }
}
