//! A person labels 100 transcripts blind, with notes, on a small screen. The program is killed several times.

use std::collections::BTreeMap;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::pty::Pty;
use crate::cli::TestDir;

const COUNT: usize = 100;

/// The numbers of labels on the screen at which the program is killed.
const KILLS: [usize; 4] = [1, 7, 40, 83];

fn open(test_dir: &TestDir) -> Pty {
    let mut pty = Pty::small(&[], |command| {
        command.cwd(test_dir.path());
        command.env("DICTA_DATA_DIR", test_dir.path().join(".data"));
    });
    pty.until_shown("1 cells");
    // The failures come first.
    pty.until_shown("t001");
    pty
}

/// Returns the progress in the first row: `12 of 100`. It counts a label when the file has it.
fn progress(pty: &Pty) -> Option<usize> {
    let screen = pty.contents();
    let head = screen.lines().next()?;
    let before = head
        .split(" of 100")
        .next()
        .filter(|before| *before != head)?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Waits until the file has this many labels. Each label is a separate write that waits for the disk. So each one may take
/// the longest wait: up to 60 of them together can take longer on a busy machine.
fn wait_for_labels(pty: &mut Pty, least: usize) {
    loop {
        let before = progress(pty);
        if before >= Some(least) {
            return;
        }
        pty.until("the next label", |pty| progress(pty) > before);
    }
}

fn read_labels(test_dir: &TestDir) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(test_dir.path().join("labels.jsonl")).expect("labels");
    let labels = text.lines().map(|line| {
        let label: Value = serde_json::from_str(line).expect("a label");
        (
            label["transcript"].as_str().expect("an id").to_owned(),
            label,
        )
    });
    let all: Vec<(String, Value)> = labels.collect();
    let by_id: BTreeMap<String, Value> = all.iter().cloned().collect();
    assert_eq!(by_id.len(), all.len(), "no decision has two labels: {text}");
    by_id
}

#[test]
fn blind_labels_with_notes_survive_a_kill_at_any_moment() {
    let test_dir = TestDir::new();
    let lines = (0..COUNT).map(|at| {
        let answer = if at % 3 == 0 { "Use 2.69." } else { "No." };
        let line = json!({"id": format!("t{at:03}"), "messages": [
            {"role": "user", "content": "Which?"},
            {"role": "assistant", "content": answer},
        ]});
        line.to_string() + "\n"
    });
    test_dir.write("t.jsonl", &lines.collect::<String>());
    test_dir.write("labels.jsonl", "");
    test_dir.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: names, type: contains, params: { patterns: ['2.69'] } }\n",
    );
    test_dir.write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\nlabels: labels.jsonl\n",
    );
    let run = test_dir.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(1), "some cells fail");
    let mut pty = open(&test_dir);
    // Blind, then a random draw of 100: `l` three times raises the number from 20.
    pty.type_in("jB").until_shown("BLIND");
    pty.type_in("1Q").until_shown("stratified by verdict");
    pty.type_in("lll").until_shown("100 decisions");
    pty.type_in("\r").until_shown("random 0 of 100");
    let mut confirmed = 0;
    for until in KILLS.into_iter().chain([COUNT]) {
        for at in confirmed..until {
            let key = if at % 2 == 0 { "p" } else { "f" };
            // Every fourth decision gets a note before its label.
            if at % 4 == 0 {
                pty.type_in(&format!("icase {at}\r"));
            }
            pty.type_in(key);
        }
        // The last labels of a burst may still be on their way when the program is killed.
        let least = if until == COUNT {
            COUNT
        } else {
            until.div_ceil(2).max(confirmed)
        };
        wait_for_labels(&mut pty, least);
        let shown = progress(&pty).expect("a number");
        if until < COUNT {
            // With the last label, every verdict may be shown.
            let screen = pty.contents();
            assert!(!screen.contains('✓') && !screen.contains('✗'), "{screen}");
        }
        kill_process(pty.id(), Signal::KILL).expect("sent");
        pty.ended();
        confirmed = read_labels(&test_dir).len();
        assert!(
            confirmed >= shown,
            "{shown} on the screen, {confirmed} in the file"
        );
        if until == COUNT {
            break;
        }
        pty = open(&test_dir);
        // The draw goes on as it was labelled: blind.
        pty.type_in("j1Q").until_shown("continue random");
        let resumed = format!("random {confirmed} of 100");
        pty.type_in("\r").until_shown(&resumed).until_shown("BLIND");
    }
    let labels = read_labels(&test_dir);
    assert_eq!(labels.len(), COUNT);
    for label in labels.values() {
        assert_eq!(label["blind"], json!(true), "{label}");
        assert_eq!(
            label["sample"],
            json!({"plan": "random", "p": 1.0}),
            "{label}"
        );
    }
    // Before `B`, the list showed the verdicts of its first rows.
    let unseen = labels.values().filter(|label| label["seen"] == "none");
    assert!(unseen.count() >= COUNT / 2, "{labels:?}");
    let noted = labels.values().filter(|label| label["note"].is_string());
    // A killed program may lose a label, and with it the note of that label.
    assert!(noted.count() >= COUNT / 4 - KILLS.len(), "{labels:?}");
}
