//! The laws of the index, and its validation.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::event::laws::run as judged_run;
use crate::event::{EventKind, RunState};
use crate::model::Outcome;
use crate::record::tests::samples::{end, ended, key, planned, record, settled, started, tool};
use crate::record::{Player, RecordKey, RecordedLog, StepUnit};

const ID: &str = "20260101T000000Z-kvqa";

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(work)
}

fn record_run(dir: &Path, kinds: Vec<EventKind>) -> (RecordedRun, Vec<RunEvent>) {
    block_on(record(dir, ID, kinds))
}

fn load_all_traces(index: &LogIndex, state: &mut RunState) {
    for cell in (0..state.cells.len()).map(|at| CellIx(u32::try_from(at).expect("few cells"))) {
        index.load_trace(state, cell).expect("a trace");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn state_through_the_index_equals_the_full_fold(kinds in judged_run(), per_snapshot in 1..40_usize) {
        let runs = tempfile::tempdir().expect("a folder");
        let (run, events) = record_run(runs.path(), kinds);
        let built = build::build_index(&run, per_snapshot).expect("a regular log");
        let Some(file::StoredIndex::Whole(read)) = file::read_index(&run) else {
            panic!("the index was not stored");
        };
        for index in [&built, &*read] {
            prop_assert_eq!(index.len(), events.len());
            prop_assert_eq!(&index.read_events(0..usize::MAX).expect("events"), &events);
            for position in 0..=events.len() {
                let mut state = index.read_lean_state(position).expect("a state");
                load_all_traces(index, &mut state);
                prop_assert_eq!(&state, &RunState::fold(&events[..position]), "at {}", position);
            }
        }
    }

    #[test]
    fn player_of_an_index_moves_as_the_player_of_the_events(kinds in judged_run(), hands in proptest::collection::vec((0..4_u8, 0..400_u64), 0..30)) {
        let runs = tempfile::tempdir().expect("a folder");
        let (run, events) = record_run(runs.path(), kinds);
        let index = build::build_index(&run, 7).expect("a regular log");
        let mut all = Player::new(events);
        let mut indexed = Player::new(RecordedLog::Indexed(std::sync::Arc::new(index)));
        prop_assert_eq!(all.span(), indexed.span());
        prop_assert_eq!(all.log().has_end(), indexed.log().has_end());
        for (hand, n) in hands {
            for player in [&mut all, &mut indexed] {
                match hand {
                    0 => drop(player.step(StepUnit::Turn)),
                    1 => drop(player.step(StepUnit::Cell)),
                    2 => drop(player.seek(usize::try_from(n).expect("small"))),
                    _ => drop(player.seek_to_time(Millis(n))),
                }
            }
            prop_assert_eq!(all.position(), indexed.position());
            prop_assert_eq!(all.playback(), indexed.playback());
        }
    }
}

fn small_run() -> Vec<EventKind> {
    vec![
        planned("t", 0),
        settled(0, Outcome::Pass),
        started(1, "k"),
        tool(1, 0, crate::event::ToolFact::Started),
        ended(1, Outcome::Fail),
        end(),
    ]
}

#[test]
fn trace_of_a_cell_is_read_without_the_rest() {
    let runs = tempfile::tempdir().expect("a folder");
    let (run, events) = record_run(runs.path(), small_run());
    let index = run.open_index_above(0).expect("an index");
    let numbers = |cell| {
        let log = index.read_cell_log(CellIx(cell)).expect("a log");
        log.iter().map(|event| event.seq).collect::<Vec<_>>()
    };
    assert_eq!(numbers(0), [0, 1, 2]);
    assert_eq!(numbers(1), [0, 1, 3, 4, 5]);
    assert_eq!(index.outline_event(5), Some(&events[5]));
    assert_eq!(
        index.outline_event(4),
        None,
        "a tool call is not in the outline"
    );
}

#[test]
fn index_of_a_changed_log_or_of_another_installation_is_built_again() {
    let runs = tempfile::tempdir().expect("a folder");
    let (mut run, _) = record_run(runs.path(), small_run());
    let log = run.dir.join(EVENTS_FILE);
    let stored = |run: &RecordedRun| file::read_index(run).is_some();
    assert!(!stored(&run), "recording writes no index");
    assert!(run.open_index_above(u64::MAX).is_none(), "a small log");
    assert!(run.open_index_above(0).is_some());
    assert!(stored(&run));
    // Another length.
    let mut text = std::fs::read(&log).expect("a log");
    let whole = text.clone();
    text.truncate(text.len() - 1);
    std::fs::write(&log, &text).expect("written");
    assert!(!stored(&run));
    // The same length, other bytes.
    std::fs::write(&log, &whole).expect("written");
    assert!(run.open_index_above(0).is_some());
    assert!(stored(&run));
    let mut changed = whole.clone();
    let at = changed.len() / 2;
    changed[at] ^= 1;
    std::fs::write(&log, &changed).expect("written");
    assert!(!stored(&run));
    assert!(
        run.open_index_above(0).is_none(),
        "a damaged log is read as a whole"
    );
    assert!(stored(&run), "that is stored, too");
    assert!(run.open_index_above(0).is_none());
    // A planted index.
    std::fs::write(&log, &whole).expect("written");
    assert!(run.open_index_above(0).is_some());
    run.key = Some(RecordKey::derive(&[6; 32]));
    assert!(!stored(&run));
    run.key = None;
    assert!(!stored(&run));
    assert_eq!(run.open_index_above(0).expect("built in memory").len(), 7);
    run.key = Some(key());
    let path = run.dir.join(INDEX_FILE);
    let mut bytes = std::fs::read(&path).expect("an index");
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    assert!(!stored(&run), "a damaged index");
}

#[test]
fn index_is_used_on_a_file_system_without_modes() {
    let runs = tempfile::tempdir().expect("a folder");
    let (run, _) = record_run(runs.path(), small_run());
    assert!(run.open_index_above(0).is_some());
    let path = run.dir.join(INDEX_FILE);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("mode");
    assert!(
        file::read_index(&run).is_some(),
        "its checksum shows that this installation wrote it"
    );
}

#[test]
fn log_that_changes_under_an_index_is_reported() {
    let runs = tempfile::tempdir().expect("a folder");
    let (run, _) = record_run(runs.path(), small_run());
    let index = run.open_index_above(0).expect("an index");
    let log = run.dir.join(EVENTS_FILE);
    let mut text = std::fs::read(&log).expect("a log");
    let at = memchr::memmem::find(&text, b"\"fact\":\"started\"").expect("the tool call");
    text[at + 8] = b'S';
    std::fs::write(&log, &text).expect("written");
    let error = index
        .read_events(0..7)
        .expect_err("a changed line")
        .to_string();
    assert!(
        error.contains("the log changed while dicta read it, at event 4"),
        "{error}"
    );
}

#[test]
fn irregular_log_has_no_index() {
    let runs = tempfile::tempdir().expect("a folder");
    for (nth, kinds) in [
        // An event of a cell that no judge began, a second result, a late event.
        vec![planned("t", 0), tool(1, 0, crate::event::ToolFact::Started)],
        vec![
            planned("t", 0),
            settled(0, Outcome::Pass),
            settled(0, Outcome::Fail),
        ],
        vec![
            planned("t", 0),
            started(1, "k"),
            ended(1, Outcome::Pass),
            tool(1, 0, crate::event::ToolFact::Started),
        ],
        vec![planned("t", 0), settled(7, Outcome::Pass)],
    ]
    .into_iter()
    .enumerate()
    {
        let (run, _) = record_run(&runs.path().join(nth.to_string()), kinds);
        assert!(run.open_index_above(0).is_none(), "log {nth}");
    }
}
