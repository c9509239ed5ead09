//! The fold of a run, the comparison of two runs, and every report.

use std::ops::Range;
use std::sync::Arc;

use dicta::compare::{RaterTally, ThresholdPreview, compare_runs};
use dicta::event::{
    BlobSource, CellKey, DeltaPart, EvalSpec, EventKind, RubricSpec, RunEvent, RunHeader, RunState,
    SettledCell, SnapshotFile, TurnFact,
};
use dicta::model::{
    Ballot, Blob, CellIx, CellResult, CellVote, Digest, Label, Labels, Millis, Outcome, PanelRule,
    RunId, TranscriptRef, TurnIx, VoteParams, WallTime,
};
use dicta::record::{
    DecisionStanding, EvalDecisions, FolderBlobs, State, StateDecision, StateTranscript,
};
use dicta::report::{
    DecisionOrder, EvalPlaces, Narrator, QuotePlaces, ReportFormat, ReportRow, RowBuilder,
    TextStyle, format_judge_trace,
};

use dicta::handlers::EvalTypeRegistry;
use dicta::review::{DEFAULT_CUT, NoteOutcome, ReviewNote, suggest_groups};
use dicta::workspace::Env;

use crate::text::text;
use crate::{Case, Work};

/// The number of evals of each transcript.
const EVALS: u32 = 4;

/// A function that returns the events of a run with `n` elements.
type MakeEvents = fn(usize) -> Vec<RunEvent>;

/// Writes a workspace with `n` labels of known origin. The work loads and indexes them.
fn prepare_labels(n: usize, sealed: bool) -> Work {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("written");
    };
    let split = if sealed {
        "labels: { path: labels.jsonl, split: { test: 0.3 } }\n"
    } else {
        ""
    };
    write(
        "dicta.yaml",
        &format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\n{split}"),
    );
    let transcripts = (0..n).map(|at| format!("{{\"id\":\"transcript-{at}\",\"messages\":[]}}\n"));
    write("t.jsonl", &transcripts.collect::<String>());
    write(
        "r.yaml",
        "id: r\nevals:\n  - {id: hello, type: contains, params: {patterns: [hello]}}\n",
    );
    let digest = Digest::hash_bytes(b"text");
    let lines = (0..n).map(|at| {
        let label = Label {
            rubric: Some("r".to_owned()),
            by: Some("ann".to_owned()),
            blind: Some(true),
            transcript_digest: Some(digest.clone()),
            question_digest: Some(digest.clone()),
            ..Label::new(&format!("transcript-{at}"), "hello", Some(at % 2 == 0))
        };
        serde_json::to_string(&label).expect("JSON") + "\n"
    });
    write("labels.jsonl", &lines.collect::<String>());
    let registry = EvalTypeRegistry::builtin();
    Box::new(move || {
        let loaded = dicta::workspace::load(dir.path(), &Env::default(), &registry);
        let workspace = loaded.expect("a workspace");
        assert!(!workspace.index_labels().is_empty(), "labels were read");
        workspace.labels.len() + workspace.count_sealed()
    })
}

/// Writes a workspace with `n` rubrics. The work loads it, and masks the files that a run records.
fn prepare_rubrics(n: usize) -> Work {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("written");
    };
    write("t.jsonl", "{\"messages\":[]}\n");
    write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r-*.yaml]\n",
    );
    for at in 0..n {
        write(
            &format!("r-{at}.yaml"),
            &format!(
                "id: r-{at}\nevals:\n  - {{id: a, type: contains, params: {{patterns: [word-{at}]}}}}\n"
            ),
        );
    }
    let registry = EvalTypeRegistry::builtin();
    Box::new(move || {
        let loaded = dicta::workspace::load(dir.path(), &Env::default(), &registry);
        loaded.expect("a workspace").masked_files().len()
    })
}

/// The cases of folds and reports.
pub(crate) fn cases() -> Vec<Case> {
    let runs: [(&str, usize, MakeEvents); 3] = [
        ("transcripts in order", 2000, |n| {
            run_events(n, Order::Planned)
        }),
        ("slow first transcript", 2000, |n| {
            run_events(n, Order::FirstLast)
        }),
        ("repeats of one transcript", 8000, repeated_cells),
    ];
    let mut cases = Vec::new();
    for (name, unit, make) in runs {
        // A fold is fast, and a smaller run fits into the caches of the processor.
        cases.push(fold_case(name, unit * 4, make));
        for format in [
            ReportFormat::Human,
            ReportFormat::Json,
            ReportFormat::Jsonl,
            ReportFormat::Junit,
            ReportFormat::Markdown,
            ReportFormat::Csv,
            ReportFormat::Github,
        ] {
            cases.push(report_case(name, unit, make, format));
        }
    }
    // Each transcript has rubrics of its own, so most evals skip it.
    cases.push(report_case(
        "skipped decisions of many evals",
        500,
        skipped_decisions,
        ReportFormat::Human,
    ));
    // The middle size is 10,000 scores: a key on the progress screen must take less than 16 ms.
    cases.push(Case {
        name: "threshold, 20 keys over the scores of an eval".to_owned(),
        unit: 2500,
        prepare: Box::new(|n| {
            let state = scored_state(n);
            let preview = ThresholdPreview::collect(&state, 0, &Labels::default());
            let preview = preview.expect("the eval has scores");
            Box::new(move || {
                let keys = (0..20).map(|key| Some(f64::from(key) / 20.0));
                let flips = keys.map(|at| preview.count_at(at).flips.total() + 1);
                usize::try_from(flips.sum::<u64>()).expect("it fits")
            })
        }),
    });
    cases.push(Case {
        name: "groups of similar notes".to_owned(),
        unit: 2000,
        prepare: Box::new(|n| {
            let notes = (0..n).map(|at| ReviewNote {
                note: Some(text(at)),
                ..ReviewNote::new(format!("note-{at}"), "transcript", NoteOutcome::Failure)
            });
            let notes: Vec<ReviewNote> = notes.collect();
            Box::new(move || {
                let notes: Vec<&ReviewNote> = notes.iter().collect();
                suggest_groups(&notes, DEFAULT_CUT).len()
            })
        }),
    });
    cases.push(Case {
        name: "decision of a large jury".to_owned(),
        unit: 4000,
        prepare: Box::new(|n| {
            let judges: Vec<u32> = (0..u32::try_from(n).expect("it fits")).collect();
            let ballot = Ballot::from(&result(1));
            let cells = judges.iter().map(|judge| CellVote {
                judge: Some(*judge),
                repeat: None,
                ballot: Some(ballot),
            });
            let cells: Vec<CellVote> = cells.collect();
            Box::new(move || {
                let jury = VoteParams {
                    rule: Some(PanelRule::Unanimity),
                    judges: &judges,
                    ..VoteParams::single_judge()
                };
                let next = jury.needed_cells(&cells[..cells.len() / 2]);
                next.len() + usize::from(jury.decide(&cells).is_some())
            })
        }),
    });
    // Each rater has one label, so the number of raters of a decision grows with the number of labels.
    cases.push(Case {
        name: "agreement of many raters".to_owned(),
        unit: 2000,
        prepare: Box::new(|n| {
            let names: Vec<String> = (0..n).map(|number| format!("rater {number}")).collect();
            Box::new(move || {
                let mut tally = RaterTally::default();
                for decision in names.chunks(n.div_ceil(40)) {
                    let answers: Vec<(&str, bool)> = decision
                        .iter()
                        .map(|name| (name.as_str(), name.ends_with('1')))
                        .collect();
                    tally.add(&answers);
                }
                tally.finish().raters.len()
            })
        }),
    });
    cases.push(Case {
        name: "rubrics, loaded and masked for a recording".to_owned(),
        unit: 400,
        prepare: Box::new(prepare_rubrics),
    });
    // The largest size is 100,000 labels, which must load in 0.3 s.
    cases.push(Case {
        name: "labels, loaded with their workspace".to_owned(),
        unit: 6250,
        prepare: Box::new(|n| prepare_labels(n, false)),
    });
    // The first load reads the transcripts and stores their parts; each later one, as here, reads the stored parts.
    cases.push(Case {
        name: "labels with a split, loaded with their workspace".to_owned(),
        unit: 6250,
        prepare: Box::new(|n| {
            let mut load = prepare_labels(n, true);
            load();
            load
        }),
    });
    cases.push(fold_case("deltas of one reply", 20_000, deltas));
    cases.push(narration_case("deltas of one reply", 10_000, deltas));
    cases.push(narration_case("transcripts in order", 16_000, |n| {
        run_events(n, Order::Planned)
    }));
    cases.push(Case {
        name: "log, parsed and folded".to_owned(),
        unit: 2000,
        prepare: Box::new(|n| {
            let mut log = String::new();
            for event in run_events(n, Order::Planned) {
                log += &event.kind.to_json().expect("JSON");
                log.push('\n');
            }
            Box::new(move || {
                let mut state = RunState::default();
                for (seq, line) in (0..).zip(log.lines()) {
                    let kind = EventKind::from_json(line).expect("an event");
                    state.apply(&RunEvent {
                        seq,
                        at: Millis(seq),
                        kind,
                    });
                }
                state.cells.len()
            })
        }),
    });
    cases.push(Case {
        name: "compare, two runs".to_owned(),
        unit: 3000,
        prepare: Box::new(|n| {
            let before = RunState::fold(&run_events(n, Order::Planned));
            let after = RunState::fold(&run_events(n + n / 8, Order::Planned));
            let blobs = FolderBlobs::new(std::path::Path::new("/nonexistent"));
            Box::new(move || {
                let compared = compare_runs((&before, &blobs), (&after, &blobs));
                compared.unchanged + compared.added.len()
            })
        }),
    });
    cases.push(Case {
        name: "compare, a large file that changed".to_owned(),
        unit: 500,
        prepare: Box::new(|n| {
            let (texts, before, after) = changed_file(n);
            Box::new(move || {
                let compared = compare_runs((&before, &texts), (&after, &texts));
                compared.files.iter().map(|file| file.diff.len()).sum()
            })
        }),
    });
    cases.push(Case {
        name: "report of one judge trace".to_owned(),
        unit: 20_000,
        prepare: Box::new(|n| {
            let state = RunState::fold(&deltas(n));
            let blobs = FolderBlobs::new(std::path::Path::new("/nonexistent"));
            let places = QuotePlaces::new();
            Box::new(move || {
                format_judge_trace("t/r/eval-0", &state.cells[0], &blobs, &places).len()
            })
        }),
    });
    cases
}

/// The texts of files by digest.
struct Texts(Vec<(Blob, String)>);

impl BlobSource for Texts {
    fn get(&self, hash: &Digest) -> std::io::Result<Vec<u8>> {
        let mut all = self.0.iter();
        let found = all.find(|(blob, _)| blob.hash == *hash);
        found
            .map(|(_, text)| text.clone().into_bytes())
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

/// Returns two runs whose rubric has `n` lines, of which no two are equal.
fn changed_file(n: usize) -> (Texts, RunState, RunState) {
    let file = |from: usize| -> String { (from..from + n).map(|at| text(at) + "\n").collect() };
    let texts = [file(0), file(n)].map(|text| (Blob::from_bytes(text.as_bytes()), text));
    let [before, after] = [0, 1].map(|at: usize| {
        let mut kind = header(1);
        if let EventKind::RunStarted(header) = &mut kind {
            header.snapshots = vec![SnapshotFile {
                path: "r.yaml".into(),
                blob: texts[at].0.clone(),
            }];
        }
        RunState::fold(&number_events(vec![kind]))
    });
    (Texts(texts.into()), before, after)
}

fn fold_case(name: &str, unit: usize, make: MakeEvents) -> Case {
    Case {
        name: format!("fold, {name}"),
        unit,
        prepare: Box::new(move |n| {
            let events = make(n);
            Box::new(move || RunState::fold(&events).cells.len())
        }),
    }
}

pub(crate) fn report_case(name: &str, unit: usize, make: MakeEvents, format: ReportFormat) -> Case {
    Case {
        name: format!("report {format:?}, {name}").to_lowercase(),
        unit,
        prepare: Box::new(move |n| report_work(make(n), Labels::default(), format)),
    }
}

/// Returns the work that reports a run.
pub(crate) fn report_work(events: Vec<RunEvent>, labels: Labels, format: ReportFormat) -> Work {
    Box::new(move || {
        let mut out = Vec::new();
        let mut writer =
            format.writer(Box::new(&mut out), TextStyle::default(), &EvalPlaces::new());
        let order = format.needs_decisions().then_some(DecisionOrder::AsDecided);
        let mut builder = RowBuilder::with_labels(labels.clone()).with_decisions(order);
        let mut write = |row: &ReportRow<'_>| writer.write_row(row);
        for event in &events {
            builder.apply(event, &mut write).expect("written");
        }
        builder.finish(&mut write).expect("written");
        writer.finish().expect("written");
        drop(writer);
        out.len()
    })
}

fn narration_case(name: &str, unit: usize, make: MakeEvents) -> Case {
    Case {
        name: format!("narration, {name}"),
        unit,
        prepare: Box::new(move |n| {
            let events = make(n);
            Box::new(move || {
                let mut out = Vec::new();
                let mut narrator = Narrator::new(&mut out, TextStyle::default());
                for event in &events {
                    narrator.narrate_event(event).expect("written");
                }
                narrator.finish().expect("written");
                drop(narrator);
                out.len() + events.len()
            })
        }),
    }
}

/// The order of the results of a run.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// The order of the plan.
    Planned,
    /// The first transcript ends last and holds back all others.
    FirstLast,
}

pub(crate) fn number_events(kinds: Vec<EventKind>) -> Vec<RunEvent> {
    (0..)
        .zip(kinds)
        .map(|(seq, kind)| RunEvent {
            seq,
            at: Millis(seq),
            kind,
        })
        .collect()
}

pub(crate) fn header(repeat: u32) -> EventKind {
    let eval = |number: u32| EvalSpec {
        required: number == 0,
        weighted: true,
        repeat,
        ..EvalSpec::new(
            0,
            format!("eval-{number}"),
            "contains".to_owned(),
            Digest::hash_bytes(&number.to_le_bytes()),
        )
    };
    EventKind::RunStarted(Box::new(RunHeader {
        rubrics: vec![RubricSpec {
            id: "r".to_owned(),
            path: "r.yaml".into(),
            threshold: Some(0.5),
        }],
        evals: (0..EVALS).map(eval).collect(),
        ..RunHeader::new(
            RunId("20260101T000000Z-benc".to_owned()),
            WallTime("2026-01-01T00:00:00Z".to_owned()),
            "/w".into(),
        )
    }))
}

pub(crate) fn transcript(number: usize) -> TranscriptRef {
    TranscriptRef {
        part: 0,
        id: format!("t{number:06}"),
        path: "transcripts.jsonl".into(),
        offset: number as u64 * 100,
        len: 99,
        digest: Digest::hash_bytes(&number.to_le_bytes()),
    }
}

pub(crate) fn cell(number: usize) -> CellIx {
    CellIx(u32::try_from(number).expect("few cells"))
}

pub(crate) fn result(number: usize) -> CellResult {
    let outcome = if number.is_multiple_of(7) {
        Outcome::Fail
    } else {
        Outcome::Pass
    };
    CellResult::new(outcome, text(number))
}

pub(crate) fn key(eval: u32, repeat: Option<u32>) -> CellKey {
    CellKey {
        eval,
        message: None,
        judge: None,
        repeat,
    }
}

/// A run over `n` transcripts. All are planned first, as if the slow ones were still running.
fn run_events(n: usize, order: Order) -> Vec<RunEvent> {
    let per_transcript = EVALS as usize;
    let mut kinds = vec![header(1)];
    for number in 0..n {
        kinds.push(EventKind::CellsPlanned {
            transcript: transcript(number),
            first: cell(number * per_transcript),
            keys: (0..EVALS).map(|eval| key(eval, None)).collect(),
        });
        if order == Order::Planned {
            kinds.push(settled(number));
        }
    }
    if order == Order::FirstLast {
        kinds.extend((0..n).rev().map(settled));
    }
    number_events(kinds)
}

fn settled(transcript: usize) -> EventKind {
    let per_transcript = EVALS as usize;
    settle_all(transcript * per_transcript..(transcript + 1) * per_transcript)
}

/// Returns the results of these cells.
pub(crate) fn settle_all(cells: Range<usize>) -> EventKind {
    EventKind::CellsSettled(
        cells
            .map(|number| SettledCell::new(cell(number), result(number)))
            .collect(),
    )
}

/// A run of `n` evals over a few transcripts, which all evals skip.
fn skipped_decisions(n: usize) -> Vec<RunEvent> {
    let mut started = header(1);
    let evals = u32::try_from(n).expect("few evals");
    if let EventKind::RunStarted(header) = &mut started {
        let first = header.evals[0].clone();
        let named = |number: u32| EvalSpec {
            id: format!("eval-{number}"),
            ..first.clone()
        };
        header.evals = (0..evals).map(named).collect();
    }
    let mut kinds = vec![started];
    for number in 0..4 {
        let cells = number * n..(number + 1) * n;
        kinds.push(EventKind::CellsPlanned {
            transcript: transcript(number),
            first: cell(cells.start),
            keys: (0..evals).map(|eval| key(eval, None)).collect(),
        });
        let skipped = || CellResult::new(Outcome::Skipped, "its precondition is not met");
        let settled = cells.map(|number| SettledCell::new(cell(number), skipped()));
        kinds.push(EventKind::CellsSettled(settled.collect()));
    }
    number_events(kinds)
}

/// A run that plans one repeat of one transcript after the other.
fn repeated_cells(n: usize) -> Vec<RunEvent> {
    let repeats = u32::try_from(n).expect("few repeats");
    let mut kinds = vec![header(repeats)];
    for number in 0..repeats {
        kinds.push(EventKind::CellsPlanned {
            transcript: transcript(0),
            first: CellIx(number),
            keys: vec![key(0, Some(number + 1))],
        });
    }
    for number in 0..n {
        kinds.push(EventKind::CellFinished {
            cell: cell(number),
            result: Arc::new(result(number)),
        });
    }
    number_events(kinds)
}

/// A reply of `n` pieces.
fn deltas(n: usize) -> Vec<RunEvent> {
    let mut kinds = vec![
        header(1),
        EventKind::CellsPlanned {
            transcript: transcript(0),
            first: CellIx(0),
            keys: vec![key(0, None)],
        },
        EventKind::CellStarted {
            cell: CellIx(0),
            key: None,
        },
    ];
    let turn = |fact| EventKind::Turn {
        cell: CellIx(0),
        turn: TurnIx(0),
        fact,
    };
    kinds.push(turn(TurnFact::AttemptStarted { attempt: 1 }));
    for at in 0..n {
        kinds.push(turn(TurnFact::Delta {
            attempt: 1,
            part: DeltaPart::Text,
            text: if at % 8 == 7 {
                format!("word {at}\n")
            } else {
                format!("word {at} ")
            },
        }));
    }
    number_events(kinds)
}

/// Returns a state with `n` scores of one eval, which `min_score: 0.5` decides.
fn scored_state(n: usize) -> State {
    let mut header = RunHeader::new(RunId("r".into()), WallTime(String::new()), "/w".into());
    header.rubrics.push(RubricSpec {
        id: "r".into(),
        path: "r.yaml".into(),
        threshold: None,
    });
    let mut eval = EvalSpec::new(0, "e", "llm_judge", Digest::unread());
    eval.decision_settings
        .insert("min_score".into(), serde_json::json!(0.5));
    header.evals.push(eval);
    let numbers = 0..u32::try_from(n).expect("few");
    let decisions = numbers.clone().map(|transcript| {
        let score = f64::from(transcript % 101) / 100.0;
        StateDecision {
            transcript,
            eval: 0,
            message: None,
            standing: DecisionStanding::Decided {
                outcome: Outcome::from_passed(score >= 0.5),
                score: Some(score),
            },
            cells: Box::default(),
            slots: Box::default(),
            failed_rerun: None,
            edited: false,
        }
    });
    let transcripts = numbers.map(|at| StateTranscript {
        id: format!("t{at}").into(),
        digest: Digest::unread(),
    });
    State {
        header: Arc::new(header),
        identities: Vec::new(),
        transcripts: Arc::new(transcripts.collect()),
        evals: vec![Arc::new(EvalDecisions {
            decisions: decisions.collect(),
        })],
    }
}
