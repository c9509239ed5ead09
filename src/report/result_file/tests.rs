//! Files of result lines: written by the reports, read back, and broken in every way.

use std::convert::Infallible;

use super::*;
use crate::event::RunState;
use crate::model::{LabelQuery, PanelRule};
use crate::report::{EvalPlaces, ReportFormat, ReportRow, RowBuilder, TextStyle};

const OLD_LINES: &str = concat!(
    r#"{"type":"result","cell":"a/r/tone","transcript":"a","rubric":"r","eval":"tone","kind":"regex","message":null,"judge":null,"repeat":null,"outcome":"pass","passed":true,"score":null,"explanation":"yes","error":null}"#,
    "\n\n",
    r#"{"type":"result","cell":"b/r/tone","transcript":"b","rubric":"r","eval":"tone","kind":"regex","message":null,"judge":null,"repeat":null,"outcome":"fail","passed":false,"score":null,"explanation":"no","error":null,"label":true}"#,
    "\n",
    r#"{"type":"tool","tool":"fetch_url","calls":3,"repaired":1,"errors":0}"#,
    "\n",
    r#"{"type":"summary","run":"20260101T000000Z-abcd","interrupted":false}"#,
    "\n",
);

fn parse(text: &str) -> Result<ResultFile, String> {
    parse_result_file(Path::new("old.jsonl"), text.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn result_file_above_the_limit_or_without_an_end_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("old.jsonl");
    std::fs::write(&path, OLD_LINES).expect("written");
    let size = OLD_LINES.len() as u64;
    let read = read_limited_result_file(&path, size).expect("as large as the limit");
    assert!(!read.events.is_empty());
    let why = read_limited_result_file(&path, size - 1).expect_err("too large");
    let expected = format!("{}: larger than {} bytes", path.display(), size - 1);
    assert_eq!(why.to_string(), expected);
    let why = read_result_file(Path::new("/dev/zero")).expect_err("a device");
    assert_eq!(why.to_string(), "/dev/zero: not a file");
}

fn write_lines(events: &[RunEvent]) -> String {
    let mut out = Vec::new();
    {
        let mut writer = ReportFormat::Jsonl.writer(
            Box::new(&mut out),
            TextStyle::default(),
            &EvalPlaces::new(),
        );
        let mut rows = RowBuilder::default();
        let mut emit = |row: &ReportRow<'_>| -> Result<(), Infallible> {
            writer.write_row(row).expect("a Vec takes everything");
            Ok(())
        };
        for event in events {
            let Ok(()) = rows.apply(event, &mut emit);
        }
        let Ok(_) = rows.finish(&mut emit);
        writer.finish().expect("a Vec takes everything");
    }
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// A run of a jury with a cascade's margin, bounds and repeats.
fn judged_run() -> Vec<RunEvent> {
    let started = WallTime("2026-01-01T00:00:00Z".to_owned());
    let mut header = RunHeader::new(RunId("run-abcd".to_owned()), started, "/w".into());
    header.rubrics = vec![RubricSpec {
        id: "r".to_owned(),
        path: "r.yaml".into(),
        threshold: None,
    }];
    header.judges = ["one", "two"]
        .map(|name| {
            let config = JudgeConfig::new(name, ProviderKind::Rules);
            JudgeSpec::new(config, Digest::hash_bytes(name.as_bytes()))
        })
        .into();
    let mut tone = EvalSpec::new(0, "tone", "llm_judge", Digest::hash_bytes(b"tone"));
    tone.decision_settings
        .insert("min_score".to_owned(), 0.5.into());
    tone.judge = Some(1);
    tone.judged = true;
    let mut jury = EvalSpec::new(0, "jury", "llm_judge", Digest::hash_bytes(b"jury"));
    jury.judged = true;
    jury.panel = Some(Panel {
        rule: PanelRule::Cascade { margin: 0.2 },
        judges: vec![0, 1],
    });
    header.evals = vec![tone, jury];
    let key = |eval, judge| CellKey {
        eval,
        message: None,
        judge: Some(judge),
        repeat: None,
    };
    let result = |outcome, score| CellResult {
        score: Some(score),
        ..CellResult::new(outcome, "because")
    };
    let kinds = [
        EventKind::RunStarted(Box::new(header)),
        EventKind::CellsPlanned {
            transcript: TranscriptRef {
                id: "a".to_owned(),
                path: "t.jsonl".into(),
                offset: 0,
                len: 1,
                part: 0,
                digest: Digest::hash_bytes(b"a"),
            },
            first: CellIx(0),
            keys: vec![key(0, 1), key(1, 0), key(1, 1)],
        },
        EventKind::CellsSettled(vec![
            SettledCell::new(CellIx(0), result(Outcome::Pass, 0.7)),
            SettledCell::new(CellIx(1), result(Outcome::Pass, 0.6)),
            SettledCell::new(CellIx(2), result(Outcome::Fail, 0.1)),
        ]),
        EventKind::RunFinished(Box::default()),
    ];
    let events = kinds.into_iter().zip(0..).map(|(kind, seq)| RunEvent {
        seq,
        at: Millis(0),
        kind,
    });
    events.collect()
}

#[test]
fn written_lines_have_the_digests_and_settings_of_their_run() {
    let events = judged_run();
    let lines = write_lines(&events);
    let file = parse(&lines).expect("the lines of a run");
    assert!(file.has_digests && file.is_complete);
    let (before, after) = (RunState::fold(&events), RunState::fold(&file.events));
    let (old, new) = (
        before.header.as_deref().expect("a header"),
        after.header.as_deref().expect("a header"),
    );
    assert_eq!(new.revision, Some(old.revision_digest()));
    for (old, new) in old.evals.iter().zip(&new.evals) {
        assert_eq!((&old.id, &old.digest), (&new.id, &new.digest));
        assert_eq!(old.decision_settings, new.decision_settings);
        assert_eq!(
            old.panel.as_ref().map(|panel| panel.rule),
            new.panel.as_ref().map(|panel| panel.rule)
        );
    }
    assert_eq!(new.judges.len(), old.judges.len());
    assert_eq!(
        before.transcripts[0].source.digest,
        after.transcripts[0].source.digest
    );
    let results = |state: &RunState| -> Vec<_> {
        let cells = (0..3).map(CellIx);
        cells
            .map(|cell| {
                let result = state.cells[cell.index()].result.as_ref().expect("a result");
                let name = state.cell_name(cell).expect("a name").to_string();
                (name, result.outcome, result.score)
            })
            .collect()
    };
    assert_eq!(results(&before), results(&after));
    let decision = file.decisions.values().next().expect("the cascade");
    assert_eq!(decision.outcome, Outcome::Fail);
}

#[test]
fn renamed_eval_has_the_same_digest_in_its_line() {
    let mut events = judged_run();
    let digest = |events: &[RunEvent]| {
        let lines = write_lines(events);
        let line: Value =
            serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
        (line["digest"].clone(), line["digests"].clone())
    };
    let before = digest(&events);
    if let EventKind::RunStarted(header) = &mut events[0].kind {
        header.evals[0].id = "manner".to_owned();
    }
    assert_eq!(digest(&events), before);
    if let EventKind::RunStarted(header) = &mut events[0].kind {
        header.evals[0].digest = Digest::hash_bytes(b"another question");
    }
    assert_ne!(digest(&events), before);
}

#[test]
fn file_of_an_earlier_version_has_results_and_labels_without_digests() {
    let file = parse(OLD_LINES).expect("old lines");
    assert!(!file.has_digests);
    assert!(file.is_complete);
    let state = RunState::fold(&file.events);
    assert_eq!(state.cells.len(), 2);
    assert_eq!(
        state.cell_name(CellIx(1)).map(|name| name.to_string()),
        Some("b/r/tone".to_owned())
    );
    let label = file.labels.find(&LabelQuery {
        transcript: "b",
        transcript_digest: None,
        rubric: "r",
        eval: "tone",
        question: None,
        later_name: None,
        is_shot: false,
    });
    let label = label.expect("a label");
    assert_eq!(label.passed, Some(true));
}

#[test]
fn broken_file_is_reported_with_its_line() {
    let first = OLD_LINES.lines().next().expect("a line");
    for (text, part) in [
        (String::new(), "old.jsonl:1: no result lines"),
        (format!("{first}\n\n{{\"type\":\"res"), "old.jsonl:3:"),
        (
            format!("{first}\nhello\n"),
            "old.jsonl:2:1: not a result line",
        ),
        (
            format!("{first}\n{first}\n"),
            "old.jsonl:2: the cell `a/r/tone` is on line 1 too",
        ),
        (
            first.replace("\"transcript\":\"a\",", ""),
            "old.jsonl:1: a result line has no `transcript`",
        ),
        (
            first.replace("\"outcome\":\"pass\"", "\"outcome\":\"maybe\""),
            "old.jsonl:1:",
        ),
        (
            first.replace("\"outcome\":\"pass\",", ""),
            "a result line has no `outcome`",
        ),
        ("[1]\n".to_owned(), "old.jsonl:1:"),
        (
            "{\"type\":\"summary\",\"run\":\"x\"}\n".to_owned(),
            "no result lines",
        ),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.contains(part), "{text}: {error}");
    }
    let mut bytes = first.as_bytes().to_vec();
    bytes.extend(b"\n{\"type\":\"\xff\"}\n");
    let error = parse_result_file(Path::new("old.jsonl"), &bytes).expect_err("not UTF-8");
    assert!(error.to_string().starts_with("old.jsonl:2:"), "{error}");
}

#[test]
fn file_without_a_complete_summary_is_incomplete() {
    let first = OLD_LINES.lines().next().expect("a line");
    assert!(!parse(first).expect("a line").is_complete);
    let cut = format!("{first}\n{{\"type\":\"summary\",\"run\":\"x\",\"interrupted\":true}}\n");
    assert!(!parse(&cut).expect("lines").is_complete);
}
