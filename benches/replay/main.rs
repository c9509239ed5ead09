//! Measures the index of a large log: how long a run of 1,000,000 events takes to open, to seek in, and to show one cell.
//!
//! ```text
//! cargo bench --bench replay
//! ```
//!
//! The program exits with 1 if a time is above its limit. The first opening builds the index, which has no limit.

#![expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dicta::clock::SystemClock;
use dicta::event::{
    CellKey, DeltaPart, EvalSpec, EventKind, JudgeSpec, RecordedToolResponse, Redactor, RubricSpec,
    RunHeader, RunState, RunTotals, StoredText, ToolFact, ToolResponseSource, TurnFact,
};
use dicta::model::{
    CallIx, CellIx, CellResult, Digest, JudgeConfig, Millis, ModelReply, Outcome, ProviderKind,
    RawJson, RunId, TokenUsage, TranscriptRef, TurnIx, WallTime,
};
use dicta::record::{RecordKey, RecordedRun, Recorder, StartedRecording};

/// A run of 1,000,000 events.
#[derive(Debug, Clone, Copy)]
struct RunShape {
    /// The number of judged cells.
    cells: u32,
    /// The number of deltas of each of the two turns of a cell.
    deltas: usize,
}

/// Few cells whose replies are streamed in many deltas, and many cells with few deltas.
const SHAPES: [RunShape; 2] = [
    RunShape {
        cells: 12_500,
        deltas: 34,
    },
    RunShape {
        cells: 59_000,
        deltas: 2,
    },
];

impl RunShape {
    /// Returns the number of events of a cell, without its plan.
    fn events_per_cell(self) -> usize {
        12 + 2 * self.deltas
    }
}

/// The number of cells that judges work on at one time.
const LIVE_CELLS: u32 = 32;
/// The secret of the installation.
const SECRET: [u8; 32] = [7; 32];
/// The number of positions that are sought.
const SEEKS: usize = 40;
const OPEN_LIMIT: Duration = Duration::from_millis(500);
const SEEK_LIMIT: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    // Each shape is measured, also after one that is too slow.
    let slow = SHAPES.into_iter().filter(|shape| !measure(*shape)).count();
    if slow == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints the times of a run. Returns true if all are below their limits.
fn measure(shape: RunShape) -> bool {
    println!(
        "{} cells of {} events",
        shape.cells,
        shape.events_per_cell() + 1
    );
    let home = tempfile::tempdir().expect("a folder");
    write_workspace(home.path());
    let run = record_run(&home.path().join("runs"), shape);
    let begin = Instant::now();
    let index = run.open_index().expect("a regular log");
    println!(
        "{:<52} {:>9.1} ms",
        format!("{} events: build the index", index.len()),
        begin.elapsed().as_secs_f64() * 1000.0
    );
    assert!(index.len() >= 1_000_000, "{} events", index.len());
    drop(index);
    let size = |name: &str| {
        let meta = std::fs::metadata(run.dir.join(name));
        meta.map_or(0, |meta| meta.len()) / 1_000_000
    };
    println!(
        "log {} MB, index {} MB",
        size("events.jsonl"),
        size("events.index")
    );
    let mut is_fast = true;
    let times = times_of(9, |_| {
        let index = run.open_index().expect("an index");
        let state = index.read_lean_state(index.len()).expect("a state");
        assert_eq!(state.cells.len(), shape.cells as usize);
    });
    is_fast &= report("open at the end, with an index", &times, OPEN_LIMIT);
    let index = run.open_index().expect("an index");
    let times = times_of(SEEKS, |nth| {
        let position = index.len() * (nth * 7 % SEEKS) / SEEKS;
        let at = index.read_state_at(position).expect("a state");
        let mut state = RunState::default();
        for event in index.outline()[..at.outline_len]
            .iter()
            .chain(&at.live_events)
        {
            state.apply_without_stats(event);
        }
        at.complete(&mut state);
        assert_eq!(state.last.map_or(0, |last| last.seq + 1), position as u64);
    });
    is_fast &= report("seek to a position", &times, SEEK_LIMIT);
    let times = times_of(SEEKS, |nth| {
        let cell = CellIx(u32::try_from(nth).expect("small") * 311 % shape.cells);
        let trace = index.read_cell_log(cell).expect("a trace");
        assert_eq!(trace.len(), 2 + shape.events_per_cell());
    });
    is_fast &= report("read the trace of a cell", &times, SEEK_LIMIT);
    let full = Instant::now();
    let state = run.read_state().expect("a state");
    println!(
        "{:<52} {:>9.1} ms",
        "for comparison: the fold of the whole log",
        full.elapsed().as_secs_f64() * 1000.0
    );
    drop(state);
    let times = times_of(5, |_| show_cell(home.path(), &run));
    is_fast &= report("`dicta show RUN CELL`, the program", &times, OPEN_LIMIT);
    is_fast
}

fn times_of(times: usize, mut work: impl FnMut(usize)) -> Vec<Duration> {
    let measure = |nth| {
        let begin = Instant::now();
        work(nth);
        begin.elapsed()
    };
    (0..times).map(measure).collect()
}

/// Prints a case with the median and the longest of its times. Returns true if the longest is below the limit.
fn report(name: &str, times: &[Duration], limit: Duration) -> bool {
    let mut times = times.to_vec();
    times.sort_unstable();
    let longest = times.last().copied().unwrap_or_default();
    let is_fast = longest < limit;
    println!(
        "{name:<52} {:>9.1} ms   longest {:>7.1}   limit {}{}",
        times[times.len() / 2].as_secs_f64() * 1000.0,
        longest.as_secs_f64() * 1000.0,
        limit.as_millis(),
        if is_fast { "" } else { "   TOO SLOW" }
    );
    is_fast
}

/// Writes a workspace whose runs are the recorded ones, and the secret that signs them.
fn write_workspace(dir: &Path) {
    let write = |name: &str, text: &[u8]| std::fs::write(dir.join(name), text).expect("written");
    write(
        "dicta.yaml",
        b"transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudge: rules\n",
    );
    write(
        "t.jsonl",
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}\n",
    );
    write(
        "r.yaml",
        b"id: r\nevals:\n  - id: asked\n    type: llm_judge\n    params: { criteria: \"The answer contains `a`.\" }\n",
    );
    let private = std::fs::Permissions::from_mode(0o700);
    std::fs::create_dir(dir.join("data")).expect("made");
    std::fs::set_permissions(dir.join("data"), private).expect("set");
    write("data/secret", &SECRET);
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.join("data/secret"), private).expect("set");
}

/// Prints the trace of one cell with the built program.
fn show_cell(home: &Path, run: &RecordedRun) {
    let status = Command::new(env!("CARGO_BIN_EXE_dicta"))
        .args(["show", run.id.letters(), "t6000/r/asked~j"])
        .current_dir(home)
        .env("HOME", home)
        .env("DICTA_DATA_DIR", home.join("data"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("dicta starts");
    assert!(status.success(), "{status}");
}

/// Records a run in which judges work on several cells at a time.
fn record_run(runs: &Path, shape: RunShape) -> RecordedRun {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let key = RecordKey::derive(&SECRET);
    let id = "20261124T120000Z-long";
    runtime.block_on(async {
        let StartedRecording {
            recorder,
            emitter,
            mut events,
            dir,
            ..
        } = Recorder::start_with_texts(
            runs,
            header(id),
            &[],
            Arc::new(Redactor::new([""; 0])),
            Arc::new(SystemClock::new()),
            Some(key.clone()),
        )
        .expect("a run");
        let reader = tokio::spawn(async move { while events.recv().await.is_some() {} });
        for cell in 0..shape.cells {
            emitter.send(planned(cell)).await;
        }
        // The events of neighbouring cells alternate, as those of judges at work do.
        for first in (0..shape.cells).step_by(LIVE_CELLS as usize) {
            let live: Vec<Vec<EventKind>> = (first..(first + LIVE_CELLS).min(shape.cells))
                .map(|cell| judged(cell, shape))
                .collect();
            for nth in 0..shape.events_per_cell() {
                for cell in &live {
                    emitter.send(cell[nth].clone()).await;
                }
            }
        }
        emitter
            .send(EventKind::RunFinished(Box::<RunTotals>::default()))
            .await;
        drop(emitter);
        reader.await.expect("the reader ends");
        recorder.finish().await.expect("recorded");
        RecordedRun {
            id: RunId(id.to_owned()),
            dir,
            key: Some(key),
        }
    })
}

fn header(id: &str) -> RunHeader {
    let eval = EvalSpec {
        judged: true,
        ..EvalSpec::new(0, "asked", "llm_judge", Digest::hash_bytes(b"asked"))
    };
    RunHeader {
        judges: vec![JudgeSpec::new(
            JudgeConfig::new("j", ProviderKind::Rules),
            Digest::hash_bytes(b"j"),
        )],
        rubrics: vec![RubricSpec {
            id: "r".to_owned(),
            path: "r.yaml".into(),
            threshold: None,
        }],
        evals: vec![eval],
        ..RunHeader::new(
            RunId(id.to_owned()),
            WallTime("2026-11-24T12:00:00Z".to_owned()),
            "/w".into(),
        )
    }
}

fn planned(cell: u32) -> EventKind {
    let id = format!("t{cell}");
    EventKind::CellsPlanned {
        transcript: TranscriptRef {
            part: 0,
            digest: Digest::hash_bytes(id.as_bytes()),
            id,
            path: "t.jsonl".into(),
            offset: 0,
            len: 1,
        },
        first: CellIx(cell),
        keys: vec![CellKey {
            eval: 0,
            message: None,
            judge: Some(0),
            repeat: None,
        }],
    }
}

/// Returns the events of a judged cell: two turns with text, and a tool call between them.
fn judged(number: u32, shape: RunShape) -> Vec<EventKind> {
    let cell = CellIx(number);
    let text = |text: &str| StoredText::Text(text.to_owned());
    let turn = |turn, fact| EventKind::Turn {
        cell,
        turn: TurnIx(turn),
        fact,
    };
    let tool = |fact| EventKind::Tool {
        cell,
        turn: TurnIx(0),
        call: CallIx(0),
        fact,
    };
    let usage = TokenUsage {
        input: Some(1900),
        output: Some(60),
        calls: 0,
        ..TokenUsage::default()
    };
    let finished = |part: &str| TurnFact::Finished {
        attempt: 1,
        native: vec![text(part)],
        resendable: true,
        reply: ModelReply {
            text: part.to_owned(),
            ..ModelReply::default()
        },
        usage,
        exchange: None,
    };
    let mut all = vec![EventKind::CellStarted { cell, key: None }];
    for nth in 0..2 {
        all.push(turn(
            nth,
            TurnFact::Started {
                request: vec![text(&"The request of this turn. ".repeat(40))],
                dropped: Vec::new(),
            },
        ));
        all.push(turn(nth, TurnFact::AttemptStarted { attempt: 1 }));
        for _ in 0..shape.deltas {
            let fact = TurnFact::Delta {
                attempt: 1,
                part: DeltaPart::Text,
                text: "some words of a reply ".to_owned(),
            };
            all.push(turn(nth, fact));
        }
        all.push(turn(
            nth,
            finished(&"some words of a reply ".repeat(shape.deltas)),
        ));
        if nth == 0 {
            let arguments = RawJson::parse("{\"number\":\"TF-4107\"}").expect("JSON");
            all.push(tool(ToolFact::Received {
                id: "c".to_owned(),
                name: "find_order".to_owned(),
                raw: arguments.get().to_owned(),
            }));
            all.push(tool(ToolFact::Validated {
                values: arguments,
                coerced: Vec::new(),
            }));
            all.push(tool(ToolFact::Started));
            all.push(tool(ToolFact::Finished {
                answer: RecordedToolResponse {
                    text: text("[{\"total\": 190.25}]"),
                    is_error: false,
                    bytes: 20,
                    truncated: false,
                    raw: None,
                    content_type: None,
                    hidden: 0,
                    data_version: None,
                },
                source: ToolResponseSource::Live,
                elapsed: Millis(1),
                retried: None,
            }));
        }
    }
    let outcome = if number.is_multiple_of(3) {
        Outcome::Fail
    } else {
        Outcome::Pass
    };
    all.push(EventKind::CellFinished {
        cell,
        result: Arc::new(CellResult::new(
            outcome,
            "A reason of a sentence. ".repeat(12),
        )),
    });
    assert_eq!(all.len(), shape.events_per_cell());
    all
}
