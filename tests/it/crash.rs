//! The files after a kill: a readable log that contains everything that dicta showed.
//!
//! Failures at every single call are played through in `record::tests::faults`, where the file system is a fake; here
//! are real files, and real kills of a process that records.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use dicta::clock::{Clock, FakeClock};
use dicta::event::{EventKind, RunEvent, RunHeader};
use dicta::model::{CellIx, RunId, WallTime};
use dicta::record::{Recorder, RunStore, parse_log};

const ID: &str = "20260101T000000Z-kvqa";

fn header() -> RunHeader {
    RunHeader::new(
        RunId(ID.to_owned()),
        WallTime("1970-01-01T00:00:00.000+00:00".to_owned()),
        "/w".into(),
    )
}

/// Records notes until the log has about `size` bytes; the log's bytes and the events handed on.
async fn recorded(runs: &Path, size: usize) -> (Vec<u8>, Vec<RunEvent>) {
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let begun = Recorder::start(runs, header(), Arc::default(), clock).expect("starts");
    let (emitter, mut events) = (begun.emitter, begun.events);
    let sent = tokio::spawn(async move {
        for n in 0..size / 1000 {
            let text = format!("{n} zwölf \u{1f980} \"quoted\"\n").repeat(35);
            let cell = Some(CellIx(0));
            emitter.send(EventKind::Note { cell, text }).await;
        }
    });
    let mut shown = Vec::new();
    while let Some(batch) = events.recv().await {
        shown.extend(batch.iter().cloned());
    }
    sent.await.expect("sent");
    begun.recorder.finish().await.expect("recorded");
    let bytes = std::fs::read(begun.dir.join("events.jsonl")).expect("a log");
    (bytes, shown)
}

#[tokio::test]
async fn log_cut_at_any_byte_keeps_its_complete_records() {
    let runs = tempfile::tempdir().expect("a folder");
    let (bytes, shown) = recorded(runs.path(), 100_000).await;
    assert!(bytes.len() > 90_000, "{}", bytes.len());
    let breaks: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
    assert_eq!(breaks.len(), shown.len());
    for cut in 0..=bytes.len() {
        // The record before the cut is whole without its break, too.
        let whole = breaks.partition_point(|at| *at <= cut);
        let begun = whole.checked_sub(1).map_or(0, |last| breaks[last] + 1);
        let torn = cut > begun;
        // Only the last whole record and the tail are read again each time; the records before them are the same.
        let from = whole.checked_sub(2).map_or(0, |before| breaks[before] + 1);
        let kept = whole.saturating_sub(1);
        let tail = bytes[from..cut].to_vec();
        let log = parse_log(Cursor::new(tail), Path::new("log"))
            .unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        assert_eq!(log.events, shown[kept..whole], "cut at {cut}");
        let warned = log.warnings.iter().any(|warning| warning.contains("torn"));
        assert_eq!(warned, torn, "cut at {cut}: {:?}", log.warnings);
    }
}

#[tokio::test]
async fn cut_log_on_disk_is_an_interrupted_run() {
    let runs = tempfile::tempdir().expect("a folder");
    let (bytes, shown) = recorded(runs.path(), 20_000).await;
    let path = runs.path().join(ID).join("events.jsonl");
    std::fs::write(&path, &bytes[..bytes.len() - 10]).expect("cut");
    let store = RunStore {
        dir: runs.path().to_owned(),
        extra_dirs: Vec::new(),
        key: None,
    };
    let run = store.resolve("kvqa").expect("the letters name it");
    let log = run.read_log().expect("readable");
    assert!(log.interrupted && !log.running);
    assert_eq!(log.events, shown[..shown.len() - 1]);
    assert_eq!(log.warnings.len(), 1, "{:?}", log.warnings);
    assert_eq!(
        run.read_state().expect("folds").notes.len(),
        shown.len() - 2
    );
}

#[test]
fn killed_recorder_releases_its_lock_and_leaves_a_readable_log() {
    // The recorder is this test binary itself, asked to run the ignored test below.
    let runs = tempfile::tempdir().expect("a folder");
    let mut child = std::process::Command::new(std::env::current_exe().expect("a test binary"))
        .args([
            "--exact",
            "crash::records_until_it_is_killed",
            "--nocapture",
        ])
        .env("DICTA_TEST_RUNS", runs.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("starts");
    let shown = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut last = None;
    for line in std::io::BufRead::lines(shown) {
        let line = line.expect("text");
        if let Some(seq) = line
            .rsplit("shown ")
            .next()
            .and_then(|seq| seq.parse::<u64>().ok())
        {
            last = Some(seq);
            if seq == 300 {
                let store = store(runs.path());
                let log = store
                    .resolve("@")
                    .expect("the run")
                    .read_log()
                    .expect("readable");
                assert!(log.running, "the lock is held");
                child.kill().expect("killed"); // what it still printed is read to the end
            }
        }
    }
    child.wait().expect("reaped");
    let last = last.expect("it showed something");
    let log = store(runs.path())
        .resolve("@")
        .expect("the run")
        .read_log()
        .expect("readable");
    assert!(log.interrupted && !log.running, "the lock is free");
    assert!(
        log.events.len() as u64 > last,
        "{} recorded, {last} shown",
        log.events.len()
    );
    for (at, event) in (0..).zip(&log.events) {
        assert_eq!(event.seq, at);
    }
}

fn store(runs: &Path) -> RunStore {
    RunStore {
        dir: runs.to_owned(),
        extra_dirs: Vec::new(),
        key: None,
    }
}

#[tokio::test]
async fn records_until_it_is_killed() {
    // Run without that test, it has nothing to do.
    let Some(runs) = std::env::var_os("DICTA_TEST_RUNS") else {
        return;
    };
    let clock: Arc<dyn Clock> = Arc::new(dicta::clock::SystemClock::new());
    let begun = Recorder::start(Path::new(&runs), header(), Arc::default(), clock);
    let mut begun = begun.expect("starts");
    loop {
        let text = "x".repeat(500);
        begun
            .emitter
            .send(EventKind::Note { cell: None, text })
            .await;
        for event in begun.events.recv().await.expect("recorded").iter() {
            println!("shown {}", event.seq);
        }
    }
}
