//! Tests of recording into real folders.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use super::samples::{end, header, knows, planned, record, settled};
use crate::clock::{Clock, FakeClock};
use crate::event::{EventKind, ToolFact};
use crate::model::{CellIx, Millis, Outcome, RawJson};
use crate::record::{
    EVENTS_FILE, MAX_FACT_BYTES, RecordError, Recorder, RunStore, StartedRecording,
};

const ID: &str = "20260101T000000Z-kvqa";

fn start(runs: &Path, id: &str) -> Result<StartedRecording, RecordError> {
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    Recorder::start(runs, header(id), Arc::default(), clock)
}

fn note(text: impl Into<String>) -> EventKind {
    EventKind::Note {
        cell: Some(CellIx(3)),
        text: text.into(),
    }
}

#[tokio::test]
async fn sent_events_equal_the_log() {
    let runs = tempfile::tempdir().expect("a folder");
    let kinds = vec![planned("t", 0), settled(0, Outcome::Pass), end()];
    let (run, shown) = record(runs.path(), ID, kinds.clone()).await;
    let log = run.read_log().expect("a log");
    assert_eq!(log.events, shown);
    assert_eq!(log.warnings, [""; 0]);
    assert!(!log.interrupted && !log.running);
    assert_eq!(
        log.events.iter().map(|e| e.seq).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    assert_eq!(run.read_header().expect("a header"), header(ID));
    let recorded: Vec<EventKind> = log.events.into_iter().skip(1).map(|e| e.kind).collect();
    assert_eq!(recorded, kinds);
}

#[tokio::test]
async fn recorded_folders_and_files_are_private() {
    let parent = tempfile::tempdir().expect("a folder");
    let runs = parent.path().join("made/runs");
    let begun = start(&runs, ID).expect("starts");
    let blob = begun.emitter.store_blob(b"a page").await;
    drop((begun.emitter, begun.events));
    begun.recorder.finish().await.expect("recorded");
    let mode = |path: &Path| {
        let meta = std::fs::symlink_metadata(path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        meta.permissions().mode() & 0o777
    };
    let blobs = begun.dir.join("blobs");
    for (path, wanted) in [
        (&runs, 0o700),
        (&begun.dir, 0o700),
        (&blobs, 0o700),
        (&begun.dir.join(EVENTS_FILE), 0o600),
        (&begun.dir.join("lock"), 0o600),
        (&blobs.join(&blob.hash.0), 0o600),
    ] {
        assert_eq!(mode(path), wanted, "{}", path.display());
    }
}

#[tokio::test]
async fn symlink_existing_run_and_world_writable_folder_are_refused() {
    let runs = tempfile::tempdir().expect("a folder");
    let elsewhere = tempfile::tempdir().expect("a folder");
    symlink(elsewhere.path(), runs.path().join(ID)).expect("planted");
    assert!(matches!(
        start(runs.path(), ID),
        Err(RecordError::Io { .. })
    ));
    let planted = std::fs::read_dir(elsewhere.path())
        .expect("a folder")
        .count();
    assert_eq!(planted, 0, "nothing is written through the link");

    record(runs.path(), "20260101T000000Z-aaaa", vec![note("mine")]).await;
    let before = std::fs::read(runs.path().join("20260101T000000Z-aaaa").join(EVENTS_FILE));
    assert!(start(runs.path(), "20260101T000000Z-aaaa").is_err());
    let after = std::fs::read(runs.path().join("20260101T000000Z-aaaa").join(EVENTS_FILE));
    assert_eq!(before.expect("a log"), after.expect("the same"));

    for name in ["../x", "a/b", "", ".hidden", "a\nb"] {
        assert!(start(runs.path(), name).is_err(), "{name:?} is no name");
    }

    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(elsewhere.path(), open).expect("opened");
    let error = start(elsewhere.path(), ID)
        .err()
        .expect("refused")
        .to_string();
    assert!(error.contains("chmod o-w"), "{error}");
}

#[tokio::test]
async fn run_is_running_until_its_recorder_finishes() {
    let runs = tempfile::tempdir().expect("a folder");
    let mut begun = start(runs.path(), ID).expect("starts");
    begun.events.recv().await.expect("the header");
    let store = RunStore {
        dir: runs.path().to_owned(),
        extra_dirs: Vec::new(),
        key: None,
    };
    let run = store.resolve("@").expect("the run");
    let log = run.read_log().expect("a log");
    assert!(log.running && !log.interrupted);
    let error = start(runs.path(), ID).err().expect("locked");
    let pid = std::process::id();
    assert!(
        matches!(error, RecordError::Locked { pid: p, .. } if p == pid),
        "{error}"
    );

    drop(begun.emitter);
    begun.recorder.finish().await.expect("recorded");
    let log = run.read_log().expect("a log");
    assert!(!log.running && log.interrupted, "no end was recorded");
}

#[tokio::test]
async fn closing_the_stream_early_keeps_recording() {
    let runs = tempfile::tempdir().expect("a folder");
    let begun = start(runs.path(), ID).expect("starts");
    drop(begun.events);
    for n in 0..1000 {
        begun.emitter.send(note(n.to_string())).await;
    }
    drop(begun.emitter);
    begun.recorder.finish().await.expect("recorded");
    assert!(!begun.failed.is_cancelled());
    let log = start_log(runs.path());
    assert_eq!(log, 1001);
}

fn start_log(runs: &Path) -> usize {
    let store = RunStore {
        dir: runs.to_owned(),
        extra_dirs: Vec::new(),
        key: None,
    };
    let run = store.resolve("@").expect("the run");
    run.read_log().expect("a log").events.len()
}

#[tokio::test]
async fn oversized_fact_becomes_a_note() {
    let runs = tempfile::tempdir().expect("a folder");
    let kinds = vec![note("x".repeat(MAX_FACT_BYTES)), note("small"), end()];
    let (run, shown) = record(runs.path(), ID, kinds).await;
    assert_eq!(
        shown[1].kind,
        note("a fact of 16 MiB was left out: a record has at most 16 MiB")
    );
    assert_eq!(run.read_log().expect("a log").events, shown);
}

#[tokio::test]
async fn raw_json_over_several_lines_stays_one_record() {
    let runs = tempfile::tempdir().expect("a folder");
    let values = RawJson::parse("{\n  \"a\": \"b\\nc\",\r\n  \"n\": 1.50\n}").expect("valid");
    let kind = super::samples::tool(
        0,
        0,
        ToolFact::Validated {
            values,
            coerced: Vec::new(),
        },
    );
    let (run, shown) = record(runs.path(), ID, vec![kind, end()]).await;
    let log = run.read_log().expect("a log");
    assert_eq!(log.warnings, [""; 0]);
    assert_eq!(log.events, shown);
    let text = std::fs::read_to_string(run.dir.join(EVENTS_FILE)).expect("a log");
    assert!(text.contains(r#""a": "b\nc",    "n": 1.50"#), "{text}");
}

#[tokio::test]
async fn a_secret_never_reaches_the_disk() {
    const KEY: &str = "sk-live-4711-abcdef";
    let runs = tempfile::tempdir().expect("a folder");
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let mut header = header(ID);
    header.judges[0]
        .config
        .headers
        .insert("x-key".to_owned(), KEY.to_owned());
    let begun = Recorder::start(runs.path(), header, knows(KEY), clock).expect("starts");
    begun.emitter.send(note(format!("failed with {KEY}"))).await;
    begun
        .emitter
        .store_text(&format!("{} {KEY}", "page ".repeat(1000)))
        .await;
    drop((begun.emitter, begun.events));
    begun.recorder.finish().await.expect("recorded");
    let mut files = 0;
    for entry in walkdir::WalkDir::new(runs.path()) {
        let entry = entry.expect("readable");
        if entry.file_type().is_file() {
            files += 1;
            let bytes = std::fs::read(entry.path()).expect("readable");
            let found = memchr::memmem::find(&bytes, KEY.as_bytes());
            assert_eq!(found, None, "{}", entry.path().display());
        }
    }
    assert_eq!(files, 3, "log, lock and one blob");
}

#[tokio::test]
async fn event_times_start_at_zero_and_never_decrease() {
    let runs = tempfile::tempdir().expect("a folder");
    let clock = FakeClock::new();
    clock.advance(Millis(5000));
    let on: Arc<dyn Clock> = Arc::new(clock.clone());
    let mut begun = Recorder::start(runs.path(), header(ID), Arc::default(), on).expect("starts");
    let mut times = vec![begun.events.recv().await.expect("the header")[0].at];
    for _ in 0..3 {
        clock.advance(Millis(7));
        begun.emitter.send(note("tick")).await;
        times.push(begun.events.recv().await.expect("recorded")[0].at);
    }
    assert_eq!(times, [0, 7, 14, 21].map(Millis));
    drop(begun.emitter);
    begun.recorder.finish().await.expect("recorded");
}

#[tokio::test]
async fn two_recorders_do_not_mix_their_events() {
    let runs = tempfile::tempdir().expect("a folder");
    let kinds = |who: &str| {
        (0..1000)
            .map(|n| note(format!("{who} {n}")))
            .collect::<Vec<_>>()
    };
    let (a, b) = tokio::join!(
        record(runs.path(), "20260101T000000Z-aaaa", kinds("a")),
        record(runs.path(), "20260101T000000Z-bbbb", kinds("b")),
    );
    for (run, shown) in [a, b] {
        let log = run.read_log().expect("a log");
        assert_eq!((log.events.len(), log.warnings.len()), (1001, 0));
        assert_eq!(log.events, shown);
    }
}
