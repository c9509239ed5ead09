//! Recordings of every minor version of the event format open, show and replay as they did.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use dicta::event::{EventKind, FORMAT, RunState};
use dicta::model::RunId;
use dicta::record::{Player, RecordedRun, StepUnit};

use crate::cli::{TestDir, text};

/// Returns the folders of all samples.
fn samples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all: Vec<PathBuf> = ["sample-runs/runs", "tests/fixtures/recordings"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("samples"))
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("events.jsonl").is_file())
        .collect();
    all.sort();
    all
}

fn open(dir: &Path) -> RecordedRun {
    let name = dir.file_name().expect("a name").to_string_lossy();
    RecordedRun {
        id: RunId(name.into_owned()),
        dir: dir.to_owned(),
        key: None,
    }
}

#[test]
fn every_minor_format_has_a_sample_that_folds_and_replays() {
    let mut minors = BTreeSet::new();
    for sample in samples() {
        let shown = sample.display();
        let run = open(&sample);
        let log = run.read_log().expect("a log");
        assert_eq!(log.warnings, [""; 0], "{shown}");
        assert!(!log.interrupted, "{shown}");
        let state = RunState::fold(&log.events);
        assert_eq!((state.stray, state.unknown), (0, 0), "{shown}");
        let header = state.header.as_ref().expect("a header");
        minors.insert(header.format.minor);
        let judged = |cell: &&dicta::event::CellState| !cell.judge_trace.is_empty();
        assert!(
            state.cells.iter().any(|cell| judged(&cell)),
            "{shown}: a judge trace"
        );
        // Step by step, the replay ends in the same state.
        let mut player = Player::new(log.events.clone());
        let mut replayed = RunState::default();
        while !player.is_finished() {
            for event in &log.events[player.step(StepUnit::Turn)] {
                replayed.apply(event);
            }
        }
        assert_eq!(replayed, state, "{shown}");
        // Each fact is written back as it was read.
        for event in &log.events {
            let json = event.kind.to_json().expect("JSON");
            let again = EventKind::from_json(&json).expect("a fact");
            assert_eq!(again, event.kind, "{shown}");
        }
    }
    let all: BTreeSet<u16> = (0..=FORMAT.minor).collect();
    assert_eq!(minors, all, "tests/fixtures/recordings lacks a version");
}

#[test]
fn samples_of_every_minor_format_are_shown_and_replayed_by_the_program() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "judge: rules\n",
        "  - { id: e, type: contains, params: { patterns: [a] } }\n",
    );
    for sample in samples() {
        let path = sample.display().to_string();
        for args in [
            vec!["show", path.as_str()],
            vec!["replay", path.as_str(), "--print", "--speed", "0"],
        ] {
            let output = test_dir.dicta(&args);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{args:?} {}",
                text(&output.stderr)
            );
            assert!(text(&output.stdout).contains("pass"), "{args:?}");
        }
    }
}
