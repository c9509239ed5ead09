//! Paused judge traces in a real terminal: an edit in the user's editor, and a process that is killed at a pause.

use serde_json::json;

use super::pty::Pty;
use crate::cli::{TestDir, judged_by, text};
use crate::support::wire::{Dialect, Reply, WireServer};

const EVALS: &str =
    "  - { id: polite, type: llm_judge, params: { criteria: The answer is polite. } }\n";

fn judging() -> WireServer {
    WireServer::answering(Dialect::Openai, |_| {
        let verdict = json!({"citations": [], "reasoning": "It greets as rudely as a goat.", "passed": false, "score": 0.0});
        Reply::text(verdict.to_string())
    })
}

fn workspace(server: &WireServer) -> TestDir {
    let test_dir = TestDir::new();
    test_dir.workspace(&judged_by(server), EVALS);
    test_dir.trust();
    test_dir
}

/// Opens the workspace, which is judged once, and judges a cell again until it is paused at its verdict.
fn paused(test_dir: &TestDir) -> Pty {
    let root = test_dir.path().to_str().expect("a path");
    let mut pty = Pty::with(&["open", root], |command| {
        command.env("DICTA_DATA_DIR", test_dir.path().join(".data"));
        command.env("EDITOR", "sed -i -e s/false/true/ -e s/0.0/1.0/");
    });
    pty.until_shown("not run");
    pty.type_in("R").until_run();
    // The first cell that fails.
    pty.type_in("]");
    pty.type_in("!").until_shown("before each model call");
    pty.type_in("verdict\r").until_shown("break verdict");
    pty.type_in("r").until_shown("1 paused");
    pty.type_in("\r").until_shown("space continue");
    pty
}

/// Returns the log of the newest run.
fn newest_log(test_dir: &TestDir) -> String {
    let runs = std::fs::read_dir(test_dir.path().join("runs")).expect("runs");
    let mut logs: Vec<_> = runs
        .flatten()
        .map(|run| run.path().join("events.jsonl"))
        .filter(|log| log.is_file())
        .collect();
    logs.sort_by_key(|log| std::fs::metadata(log).and_then(|meta| meta.modified()).ok());
    std::fs::read_to_string(logs.last().expect("a log")).expect("read")
}

#[test]
fn killed_at_a_pause_everything_that_was_shown_is_recorded() {
    let server = judging();
    let test_dir = workspace(&server);
    let mut pty = paused(&test_dir);
    pty.until_shown("It greets as rudely");
    rustix::process::kill_process(pty.id(), rustix::process::Signal::KILL).expect("killed");
    pty.ended();
    let log = newest_log(&test_dir);
    let events: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("no line is torn"))
        .collect();
    assert!(log.contains("rudely as a goat"), "{log}");
    // Another thread records what the revision plans, at times after the pause.
    let mut kinds = events.iter().rev().map(|event| &event["kind"]);
    let last = kinds.find(|kind| kind["revision_planned"].is_null());
    let last = last.expect("events").to_string();
    assert!(
        last.contains("paused") && last.contains("verdict"),
        "{last}"
    );
    // After a restart, the screen shows the trace again.
    let root = test_dir.path().to_str().expect("a path");
    let mut pty = Pty::with(&["open", root], |command| {
        command.env("DICTA_DATA_DIR", test_dir.path().join(".data"));
    });
    pty.until_shown("+‖");
    pty.type_in("]").type_in("\r");
    pty.until_shown("interrupted at a pause after the verdict");
    // The screen reads the recorded trace on another thread.
    pty.until_shown("It greets as rudely");
    pty.type_in("q").ended();
    // The run is interrupted, and its cell can be judged again.
    let resumed = test_dir.dicta(&["run", "--resume", "@", "--format", "jsonl"]);
    let code = resumed.status.code();
    assert_eq!(code, Some(1), "{}", text(&resumed.stderr));
    assert!(text(&resumed.stdout).contains("rudely as a goat"));
}

#[test]
fn verdict_is_edited_in_the_editor_of_the_user() {
    let server = judging();
    let test_dir = workspace(&server);
    let mut pty = paused(&test_dir);
    pty.type_in("e").until_shown("edited by hand");
    pty.until("the end of the trace", |pty| {
        !pty.contents().contains("1 paused")
    });
    let log = newest_log(&test_dir);
    assert!(log.contains("\"by_human\":true"), "{log}");
    let left: Vec<_> = std::fs::read_dir(test_dir.path().join(".data"))
        .expect("the data folder")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("edit-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    pty.type_in("q").ended();
    // Such a verdict never enters the history: the state still has the first one.
    let shown = test_dir.dicta(&["show", "@", "--format", "jsonl"]);
    let shown = text(&shown.stdout);
    assert!(!shown.contains("\"outcome\":\"pass\""), "{shown}");
}
