//! Tests of reading logs that are cut, damaged or written by other programs.

use std::io::Cursor;
use std::path::Path;

use super::samples::{end, planned, record, settled};
use crate::event::{EventKind, EventTag, RunEvent};
use crate::model::{CellIx, Outcome};
use crate::record::lines::{LineParts, finish_line};
use crate::record::seal::{LogIntegrity, LogOrigin, RecordKey, RecordMac};
use crate::record::{
    EVENTS_FILE, LogEnding, MAX_FACT_BYTES, RecordError, RecordedRun, RunLog, parse_log,
};

const ID: &str = "20260101T000000Z-kvqa";

fn read(bytes: impl Into<Vec<u8>>) -> Result<RunLog, RecordError> {
    parse_log(Cursor::new(bytes.into()), Path::new("log"))
}

/// Returns a recorded log with its events.
async fn log_of(notes: usize) -> (Vec<u8>, Vec<RunEvent>, RecordedRun, tempfile::TempDir) {
    let runs = tempfile::tempdir().expect("a folder");
    let mut kinds = vec![planned("t", 0), settled(0, Outcome::Pass)];
    kinds.extend((0..notes).map(|n| EventKind::Note {
        cell: Some(CellIx(0)),
        text: format!("nötè {n}\n\u{202e}"),
    }));
    kinds.push(end());
    let (run, shown) = record(runs.path(), ID, kinds).await;
    let bytes = std::fs::read(run.dir.join(EVENTS_FILE)).expect("a log");
    (bytes, shown, run, runs)
}

/// Returns the lines with correct checksums and without keyed ones, as another program could write them.
pub(super) fn seal(text: &str) -> String {
    let mut out = Vec::new();
    for line in text.lines() {
        let parts = LineParts::split(line.as_bytes(), RecordMac::DIGITS);
        let body = match parts.is_intact {
            Some(_) => parts.body,
            None => &line.as_bytes()[..line.len() - 1],
        };
        let start = out.len();
        out.extend_from_slice(body);
        finish_line(&mut out, start, None::<RecordMac>);
    }
    String::from_utf8(out).expect("text")
}

/// Returns the lines with correct checksums and with the keyed ones that they have.
pub(super) fn reseal(text: &str) -> String {
    let mut out = Vec::new();
    for line in text.lines() {
        let parts = LineParts::split(line.as_bytes(), RecordMac::DIGITS);
        let start = out.len();
        out.extend_from_slice(parts.body);
        finish_line(&mut out, start, parts.mac.and_then(RecordMac::parse));
    }
    String::from_utf8(out).expect("text")
}

fn breaks(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

fn with_line(bytes: &[u8], at: usize, line: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    lines.insert(at, line);
    lines.concat()
}

#[tokio::test]
async fn a_log_cut_at_any_byte_gives_its_whole_records() {
    let (bytes, events, ..) = log_of(20).await;
    for cut in 0..=bytes.len() {
        let whole = breaks(&bytes[..cut]);
        // A record that is cut right before its line break is still whole.
        let whole = whole + usize::from(bytes.get(cut) == Some(&b'\n'));
        let torn = cut > 0
            && bytes[cut - 1] != b'\n'
            && bytes.get(cut) != Some(&b'\n')
            && cut < bytes.len();
        let log = read(&bytes[..cut]).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        assert_eq!(log.events, events[..whole], "cut at {cut}");
        assert_eq!(
            log.warnings.len(),
            usize::from(torn),
            "cut at {cut}: {:?}",
            log.warnings
        );
        assert_eq!(log.interrupted, whole < events.len(), "cut at {cut}");
    }
}

#[tokio::test]
async fn event_after_a_torn_line_is_recovered() {
    let (bytes, events, ..) = log_of(2).await;
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    for cut in 1..lines[2].len() - 1 {
        let torn = [lines[0], lines[1], &lines[2][..cut], lines[3], lines[4]].concat();
        let log = read(torn).expect("readable");
        assert_eq!(
            log.events,
            [&events[..2], &events[3..5]].concat(),
            "cut at {cut}"
        );
        assert_eq!(
            log.warnings,
            [format!(
                "line 3: skipped {cut} bytes of a torn record before a whole one"
            )]
        );
    }
}

#[tokio::test]
async fn foreign_line_is_skipped_with_a_warning() {
    let (bytes, events, ..) = log_of(1).await;
    let huge = [
        b"[\"",
        "x".repeat(MAX_FACT_BYTES + 600).as_bytes(),
        b"\"]\n",
    ]
    .concat();
    let deep = [&b"[".repeat(100_000)[..], b"\n"].concat();
    for (line, told) in [
        (&b"hello\n"[..], "line 2: left out: it isn't an event"),
        (
            b"{\"seq\":1}\n",
            "line 2: left out: it has no checksum, so it is damaged",
        ),
        (b"\xff\xfe{}\n", "line 2: left out: it is not UTF-8"),
        (b"\0\0\0\0\n", "line 2: left out: it isn't an event"),
        (&deep, "line 2: left out: it isn't an event"),
        (
            &huge,
            "line 2: left out: it is longer than the 16 MiB of a record",
        ),
    ] {
        let log = read(with_line(&bytes, 1, line)).expect("readable");
        assert_eq!(log.events, events, "{told}");
        assert_eq!(log.warnings.len(), 1, "{:?}", log.warnings);
        assert!(log.warnings[0].starts_with(told), "{:?}", log.warnings);
    }
    let log = read(with_line(&bytes, 1, b" \r\n")).expect("readable");
    assert_eq!((log.events, log.warnings.len()), (events, 0));
}

#[tokio::test]
async fn damaged_byte_affects_only_its_event() {
    let (bytes, events, ..) = log_of(3).await;
    let line_of = |at: usize| breaks(&bytes[..at]);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x01;
        let Ok(log) = read(damaged) else {
            assert_eq!(line_of(at), 0, "only a header's version can refuse a log");
            continue;
        };
        let line = line_of(at);
        // No record is read with other content than it was written with.
        for event in &log.events {
            assert!(
                events.contains(event),
                "byte {at} changed event {}",
                event.seq
            );
        }
        assert!(!log.warnings.is_empty(), "byte {at} is not reported");
        // A lost line break damages the two records around it; other damage affects one record.
        let near = |event: &RunEvent| event.seq == line as u64 || event.seq == line as u64 + 1;
        for event in events.iter().filter(|event| !near(event)) {
            assert!(
                log.events.contains(event),
                "byte {at} took event {}",
                event.seq
            );
        }
    }
}

#[tokio::test]
async fn many_foreign_lines_are_counted_in_one_warning() {
    let (bytes, ..) = log_of(0).await;
    let mut bytes = bytes;
    bytes.extend(b"?\n".repeat(1000));
    let log = read(bytes).expect("readable");
    assert_eq!(log.warnings.len(), 21);
    assert_eq!(log.warnings[20], "980 more lines like these");
}

#[tokio::test]
async fn missing_event_causes_a_warning() {
    let (bytes, ..) = log_of(2).await;
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    let log = read([&lines[..2], &lines[3..]].concat().concat()).expect("readable");
    assert_eq!(log.warnings, ["line 3: found event 3 instead of event 2"]);
    let log = read(lines[1..].concat()).expect("readable");
    assert_eq!(
        log.warnings[0],
        "line 1: the log does not begin with its header"
    );
}

#[tokio::test]
async fn newer_major_version_is_refused_and_newer_minor_is_read() {
    let (bytes, events, ..) = log_of(0).await;
    let text = String::from_utf8(bytes).expect("text");
    let newer = text.replacen(r#""major":1"#, r#""shape":{},"major":2"#, 1);
    assert!(matches!(
        read(seal(&newer)),
        Err(RecordError::NewerFormat {
            major: 2,
            known: 1,
            ..
        })
    ));
    let garbled = r#"{"seq":0,"at":0,"kind":{"run_started":{"format":{"major":9,"minor":0}}}}"#;
    assert!(matches!(
        read(garbled),
        Err(RecordError::NewerFormat { major: 9, .. })
    ));

    let minor = text.replacen(r#""minor":4"#, r#""minor":7"#, 1).replacen(
        r#""demo":"#,
        r#""moon":"full","demo":"#,
        1,
    );
    let moon = b"{\"seq\":1,\"at\":0,\"kind\":{\"moon_rose\":{\"phase\":0.5}}}\n";
    let minor = with_line(minor.as_bytes(), 1, moon);
    let minor = seal(std::str::from_utf8(&minor).expect("text"));
    let log = read(minor).expect("readable");
    assert!(
        matches!(&log.events[1].kind, EventKind::Unknown(raw) if raw.get().contains("moon_rose"))
    );
    assert_eq!(log.events.len(), events.len() + 1);
}

#[tokio::test]
async fn file_without_events_is_not_a_run() {
    let error = |text: &str| read(text).expect_err("no log").to_string();
    assert!(error("# notes\nmore\n").contains("no line of its log is an event"));
    let empty = read("").expect("killed before the header");
    assert!(empty.interrupted && empty.events.is_empty());

    let dir = tempfile::tempdir().expect("a folder");
    let run = RecordedRun {
        id: crate::model::RunId(ID.to_owned()),
        dir: dir.path().to_owned(),
        key: None,
    };
    assert!(matches!(run.read_log(), Err(RecordError::Io { .. })));
    std::fs::write(dir.path().join(EVENTS_FILE), "").expect("written");
    let error = run.read_header().expect_err("empty").to_string();
    assert!(error.contains("its log is empty"), "{error}");
    let note = r#"{"seq":0,"at":0,"kind":{"note":{"cell":null,"text":"x"}}}"#;
    std::fs::write(dir.path().join(EVENTS_FILE), note).expect("written");
    assert!(matches!(
        run.read_header(),
        Err(RecordError::NotARun { .. })
    ));
    let log = run
        .read_log()
        .expect("events without a header are still shown");
    assert_eq!(log.events.len(), 1);
}

#[tokio::test]
async fn unwanted_tags_are_skipped_without_other_changes() {
    let (_, events, run, _dir) = log_of(5).await;
    let mut some = run
        .events_with_tags(&[EventTag::RunStarted, EventTag::CellsSettled])
        .expect("a log");
    let read: Vec<RunEvent> = (&mut some).map(|e| e.expect("readable")).collect();
    assert_eq!(read, [&events[..1], &events[2..3]].concat());
    assert_eq!(some.warnings(), [""; 0], "passing over is no gap");
    assert_eq!(
        some.ending(),
        LogEnding::Finished,
        "the end is seen all the same"
    );
}

#[tokio::test]
async fn changed_result_of_this_installation_is_kept_and_reported() {
    let (bytes, events, run, _dir) = log_of(1).await;
    let own = LogIntegrity {
        origin: LogOrigin::Own,
        damaged: 0,
        altered: 0,
    };
    assert_eq!(run.read_log().expect("a log").integrity, own);
    assert_eq!((own.mark(), own.explain()), (None, None));
    let text = String::from_utf8(bytes).expect("text");
    let forged = text.replacen(r#""outcome":"pass""#, r#""outcome":"fail""#, 1);
    assert_ne!(forged, text);
    let log_path = run.dir.join(EVENTS_FILE);

    std::fs::write(&log_path, &forged).expect("written");
    let log = run.read_log().expect("a log");
    assert_eq!(log.events, [&events[..2], &events[3..]].concat());
    assert_eq!(
        log.warnings,
        ["line 3: left out: its checksum does not match, so it is damaged"]
    );
    assert_eq!(log.integrity, LogIntegrity { damaged: 1, ..own });
    assert_eq!(log.integrity.mark(), Some("damaged"));

    std::fs::write(&log_path, reseal(&forged)).expect("written");
    let log = run.read_log().expect("a log");
    assert_eq!(log.events.len(), events.len(), "it stays readable");
    let mut reader = run.events().expect("a log");
    let mut changed = Vec::new();
    while let Some(event) = reader.next() {
        if reader.is_changed_event() {
            changed.push(event.expect("readable").seq);
        }
    }
    assert_eq!(changed, [2]);
    assert_eq!(
        log.warnings,
        ["line 3: it was changed after dicta recorded it; the cache does not use it"]
    );
    assert_eq!(log.integrity, LogIntegrity { altered: 1, ..own });
    assert_eq!(log.integrity.mark(), Some("changed"));

    // Without the keyed checksum, a result is as suspicious as with a wrong one.
    let unsigned: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(at, line)| {
            if at == 2 {
                seal(line)
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    std::fs::write(&log_path, unsigned.concat()).expect("written");
    let log = run.read_log().expect("a log");
    assert_eq!(log.integrity, LogIntegrity { altered: 1, ..own });
}

#[tokio::test]
async fn log_of_another_installation_and_of_an_earlier_version_is_marked_and_readable() {
    let (bytes, events, run, _dir) = log_of(1).await;
    let text = String::from_utf8(bytes).expect("text");
    let integrity = |text: &str, key: Option<RecordKey>| {
        std::fs::write(run.dir.join(EVENTS_FILE), text).expect("written");
        let run = RecordedRun { key, ..run.clone() };
        let log = run.read_log().expect("a log");
        assert_eq!(log.events.len(), events.len());
        // Only a changed record is a problem; the origin is a mark.
        assert_eq!(log.warnings.len() as u64, log.integrity.altered);
        log.integrity
    };
    let other = RecordKey::derive(&[6; 32]);
    for key in [Some(other), None] {
        let found = integrity(&text, key);
        assert_eq!((found.origin, found.altered), (LogOrigin::Elsewhere, 0));
        assert_eq!(found.mark(), Some("recorded elsewhere"));
    }
    let found = integrity(&seal(&text), run.key.clone());
    assert_eq!((found.origin, found.altered), (LogOrigin::Unsigned, 0));
    // The lines as versions before 1.4 wrote them.
    let bare: Vec<String> = text
        .lines()
        .map(|line| {
            let parts = LineParts::split(line.as_bytes(), RecordMac::DIGITS);
            format!("{}}}\n", std::str::from_utf8(parts.body).expect("text"))
        })
        .collect();
    let bare = bare.concat();
    let found = integrity(&bare, run.key.clone());
    assert_eq!(found.mark(), Some("changed"), "this format has checksums");
    let old = bare.replacen(r#""minor":5"#, r#""minor":3"#, 1);
    let found = integrity(&old, run.key.clone());
    assert_eq!(found.mark(), Some("earlier version"));
    assert!(
        found
            .explain()
            .is_some_and(|why| why.contains("earlier version"))
    );
}
