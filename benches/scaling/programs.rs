//! Commands of the built program without a terminal: running, resuming and comparing.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::measure::add_program_time;
use crate::pty::read_processor_time;
use crate::{Case, Work};

/// The cases of commands.
pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "resume, checks of the messages of one transcript".to_owned(),
            unit: 1000,
            prepare: Box::new(prepare_resume),
        },
        Case {
            name: "run, evals of one rubric".to_owned(),
            unit: 500,
            prepare: Box::new(|n| {
                let dir = tempfile::tempdir().expect("a folder");
                write_evals(dir.path(), n);
                Box::new(move || {
                    measure_program(dir.path(), &["run", "-q"]);
                    // The next measurement finds no earlier run either.
                    std::fs::remove_dir_all(dir.path().join("runs")).map_or(0, |()| 1)
                })
            }),
        },
        Case {
            name: "compare junit, evals of two files of results".to_owned(),
            unit: 500,
            prepare: Box::new(prepare_compare),
        },
    ]
}

/// Writes a workspace whose rubric has `n` evals.
fn write_evals(dir: &Path, n: usize) {
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
    write(
        "t.jsonl",
        "{\"id\":\"t\",\"messages\":[{\"role\":\"assistant\",\"content\":\"message\"}]}\n",
    );
    let mut rubric = "id: r\nevals:\n".to_owned();
    for number in 0..n {
        let _infallible = writeln!(
            rubric,
            "  - {{ id: eval-{number}, type: contains, params: {{ patterns: [message] }} }}"
        );
    }
    write("r.yaml", &rubric);
    write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n",
    );
}

/// Writes two equal files of the results of `n` evals. The work compares them, outside their workspace.
fn prepare_compare(n: usize) -> Work {
    let workspace = tempfile::tempdir().expect("a folder");
    write_evals(workspace.path(), n);
    run_program(workspace.path(), &["run", "-q", "-o", "before.jsonl"]);
    let dir = tempfile::tempdir().expect("a folder");
    for name in ["before.jsonl", "after.jsonl"] {
        let results = workspace.path().join("before.jsonl");
        std::fs::copy(results, dir.path().join(name)).expect("copied");
    }
    Box::new(move || {
        measure_program(
            dir.path(),
            &[
                "compare",
                "before.jsonl",
                "after.jsonl",
                "--format",
                "junit",
            ],
        );
        n
    })
}

/// Runs the program and adds its time to the measurement.
fn measure_program(dir: &Path, arguments: &[&str]) {
    let before = ended_program_time();
    run_program(dir, arguments);
    add_program_time(ended_program_time().saturating_sub(before));
}

/// Records a run over a transcript with `n` judged messages, and removes the end of its log. The work resumes it.
fn prepare_resume(n: usize) -> Work {
    let dir = tempfile::tempdir().expect("a folder");
    let messages = (0..n * 2).map(|at| {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        json!({"role": role, "content": format!("message {at}")})
    });
    let messages: Vec<_> = messages.collect();
    let transcript = json!({"id": "long", "messages": messages});
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("written");
    };
    write("t.jsonl", &format!("{transcript}\n"));
    let mut rubric = "id: r\nevals:\n".to_owned();
    for word in ["m", "e", "s", "a"] {
        let _infallible = writeln!(
            rubric,
            "  - {{ id: {word}, type: contains, trigger: every_turn, params: {{ patterns: [{word}] }} }}"
        );
    }
    write("r.yaml", &rubric);
    write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n",
    );
    run_program(dir.path(), &["run", "-q"]);
    let run = list_runs(dir.path()).pop().expect("a run was recorded");
    let log = dir.path().join("runs").join(&run).join("events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    let end = text.trim_end().rfind('\n').expect("several events");
    std::fs::write(&log, &text[..=end]).expect("written");
    Box::new(move || {
        measure_program(dir.path(), &["run", "-q", "--resume", &run]);
        // The next measurement resumes the same run.
        let mut new = list_runs(dir.path());
        new.retain(|one| *one != run);
        for run in &new {
            std::fs::remove_dir_all(dir.path().join("runs").join(run)).expect("removed");
        }
        new.len()
    })
}

fn list_runs(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("runs")).expect("runs");
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    folders
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn run_program(dir: &Path, arguments: &[&str]) {
    let status = Command::new(env!("CARGO_BIN_EXE_dicta"))
        .args(arguments)
        .current_dir(dir)
        .env("DICTA_DATA_DIR", dir.join("data"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("dicta starts");
    assert!(status.success(), "{arguments:?}: {status}");
}

/// Returns the time on the processor of the programs that ended, from the fields `cutime` and `cstime`.
fn ended_program_time() -> Duration {
    read_processor_time("self", 13)
}
