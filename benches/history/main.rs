//! Measures the history of edits: how long it takes to open, to compare two states, and to move a threshold.
//!
//! ```text
//! cargo bench --bench history                  all cases; the runs take a minute to record
//! cargo bench --bench history -- compare       the cases whose names contain a word: open, compare, threshold
//! ```
//!
//! The program exits with 1 if a time is above its limit. Linux drops its file cache only for root, so without root the
//! case of an empty file cache prints why it was skipped.

#![expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dicta::compare::{ThresholdPreview, compare_states};
use dicta::event::{EvalSpec, RubricSpec, RunHeader};
use dicta::model::{Digest, Label, Labels, Outcome, RunId, WallTime};
use dicta::record::{
    DecisionStanding, EvalDecisions, History, RunStore, State, StateDecision, StateTranscript,
};

/// The number of recorded runs.
const RUNS: usize = 1000;
/// The number of transcripts that each run judges.
const TRANSCRIPTS: usize = 20;
/// The number of evals, so that a run decides 100 cells.
const EVALS: usize = 5;
/// The number of runs between two edits of the rubric.
const RUNS_PER_EDIT: usize = 5;
/// The number of decisions of a compared state.
const COMPARED: usize = 240_000;
/// The number of scores under the threshold.
const SCORES: usize = 10_000;
/// The number of measurements of a case. The median counts.
const TIMES: usize = 9;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    let mut is_fast = true;
    if is_wanted("open") {
        is_fast &= measure_open();
    }
    if is_wanted("compare") {
        is_fast &= measure_compare();
    }
    if is_wanted("threshold") {
        is_fast &= measure_threshold();
    }
    if is_fast {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints a case with the median of its times. Returns true if it is below the limit.
fn report(name: &str, mut times: Vec<Duration>, limit: Duration) -> bool {
    times.sort_unstable();
    let median = times[times.len() / 2];
    let is_fast = median < limit;
    let end = if is_fast { "" } else { "   TOO SLOW" };
    println!(
        "{name:<64} {:>9.2} ms   limit {} ms{end}",
        median.as_secs_f64() * 1000.0,
        limit.as_millis()
    );
    is_fast
}

/// Measures a piece of work several times.
fn times_of(mut work: impl FnMut()) -> Vec<Duration> {
    let measure = |_| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    };
    (0..TIMES).map(measure).collect()
}

/// Records the runs with the built program, and edits the rubric in between.
fn record_runs(dir: &Path) {
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
    write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudge: rules\n",
    );
    let mut lines = String::new();
    for number in 0..TRANSCRIPTS {
        let _infallible = writeln!(
            lines,
            "{{\"id\":\"t{number}\",\"messages\":[{{\"role\":\"user\",\"content\":\"q\"}},\
             {{\"role\":\"assistant\",\"content\":\"answer {number}\"}}]}}"
        );
    }
    write("t.jsonl", &lines);
    for run in 0..RUNS {
        if run % RUNS_PER_EDIT == 0 {
            // An edit changes one eval. The others keep their text.
            let edit = run / RUNS_PER_EDIT;
            let mut rubric = "id: r\nevals:\n".to_owned();
            for eval in 0..EVALS {
                let version = (edit + EVALS - 1 - eval) / EVALS;
                let _infallible = writeln!(
                    rubric,
                    "  - id: e{eval}\n    type: llm_judge\n    params: {{ criteria: \"The answer contains \
                     `{version}`.\" }}"
                );
            }
            write("r.yaml", &rubric);
        }
        let status = Command::new(env!("CARGO_BIN_EXE_dicta"))
            .args(["run", "-q"])
            .current_dir(dir)
            .env("HOME", dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("dicta starts");
        assert!(matches!(status.code(), Some(0 | 1)), "run {run}: {status}");
    }
}

/// Drops the system's file cache. Returns the reason if it can't.
fn drop_file_cache() -> Result<(), String> {
    let path = "/proc/sys/vm/drop_caches";
    Command::new("sync")
        .status()
        .map_err(|error| format!("sync: {error}"))?;
    std::fs::write(path, "3").map_err(|error| format!("{path}: {error}"))
}

/// Measures how long it takes to open the history of many runs.
fn measure_open() -> bool {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().canonicalize().expect("a path");
    record_runs(&root);
    let store = RunStore {
        dir: root.join("runs"),
        extra_dirs: Vec::new(),
        key: None,
    };
    // The first reading writes the index.
    let begin = Instant::now();
    let first = History::read(&store, &root);
    println!(
        "{:<64} {:>9.2} ms",
        "open, 1,000 runs, without an index",
        begin.elapsed().as_secs_f64() * 1000.0
    );
    assert_eq!(first.runs().len(), RUNS, "{:?}", first.problems());
    assert_eq!(first.entries().len(), RUNS / RUNS_PER_EDIT);
    let read = || assert_eq!(History::read(&store, &root).runs().len(), RUNS);
    let mut is_fast = report(
        "open, 1,000 runs and 100,000 decisions, in the file cache",
        times_of(read),
        Duration::from_millis(50),
    );
    let name = "open, 1,000 runs and 100,000 decisions, empty file cache";
    let mut cold = Vec::new();
    for _ in 0..TIMES {
        if let Err(why) = drop_file_cache() {
            println!("{name:<64} skipped: {why}");
            return is_fast;
        }
        let begin = Instant::now();
        read();
        cold.push(begin.elapsed());
    }
    is_fast &= report(name, cold, Duration::from_millis(300));
    is_fast
}

/// Returns a state with decisions of several evals. `change` shifts the scores of every tenth transcript.
fn state(decisions: usize, evals: u32, change: bool) -> State {
    let mut header = RunHeader::new(RunId("r".into()), WallTime(String::new()), "/w".into());
    header.rubrics.push(RubricSpec {
        id: "r".into(),
        path: "r.yaml".into(),
        threshold: None,
    });
    for number in 0..evals {
        let digest = Digest::hash_bytes(&number.to_le_bytes());
        let mut eval = EvalSpec::new(0, format!("e{number}"), "llm_judge", digest);
        eval.decision_settings
            .insert("min_score".into(), serde_json::json!(0.5));
        header.evals.push(eval);
    }
    let per_eval = u32::try_from(decisions).expect("few") / evals;
    let list = |eval: u32| {
        let decision = |transcript: u32| {
            let shift = if change && transcript.is_multiple_of(10) {
                50
            } else {
                0
            };
            let score = f64::from((transcript + shift) % 101) / 100.0;
            StateDecision {
                transcript,
                eval,
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
        };
        Arc::new(EvalDecisions {
            decisions: (0..per_eval).map(decision).collect(),
        })
    };
    let transcripts = (0..per_eval).map(|at| StateTranscript {
        id: format!("t{at}").into(),
        digest: Digest::hash_bytes(&at.to_le_bytes()),
    });
    State {
        header: Arc::new(header),
        identities: Vec::new(),
        transcripts: Arc::new(transcripts.collect()),
        evals: (0..evals).map(list).collect(),
    }
}

/// Measures a comparison of two states that share no list of decisions.
fn measure_compare() -> bool {
    let before = state(COMPARED, 3, false);
    let after = state(COMPARED, 3, true);
    let flips = compare_states(&before, &after).flips.len();
    println!("compare: {flips} flips");
    assert!(flips > 0, "the comparison finds flips");
    let work = || assert_eq!(compare_states(&before, &after).flips.len(), flips);
    report(
        "compare, two states of 240,000 decisions",
        times_of(work),
        Duration::from_secs(1),
    )
}

/// Measures one key on the threshold.
fn measure_threshold() -> bool {
    let state = state(SCORES, 1, false);
    // Every score has a label, so a key counts the flips, the table and the agreement.
    let labels = (0..SCORES).map(|at| Label::new(&format!("t{at}"), "e0", Some(at % 3 == 0)));
    let labels = Labels::new(labels);
    let preview = ThresholdPreview::collect(&state, 0, &labels);
    let preview = preview.expect("the eval has scores");
    let mut at = 0.5;
    let work = || {
        at += 0.01;
        let counts = preview.count_at(Some(at));
        let labelled = usize::try_from(counts.agreement.total()).expect("few");
        assert!(labelled == SCORES && counts.flips.total() > 0, "{counts:?}");
    };
    report(
        "threshold, one key at 10,000 scores",
        times_of(work),
        Duration::from_millis(16),
    )
}
