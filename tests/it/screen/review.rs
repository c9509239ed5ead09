//! A person reads 100 transcripts without a workspace and notes failures, on a small screen. The program is killed
//! several times.

use std::collections::BTreeMap;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::pty::Pty;
use crate::cli::TestDir;

const COUNT: usize = 100;

/// The number of kills before the last one.
const KILLS: usize = 4;

/// Returns random numbers of typed notes after which the program is killed, smallest first.
fn choose_kills(seed: u64) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut all: Vec<usize> = (1..COUNT).collect();
    random.shuffle(&mut all);
    all.truncate(KILLS);
    all.sort_unstable();
    all
}

fn open(test_dir: &TestDir) -> Pty {
    let mut pty = Pty::small(&["review", "t.jsonl"], |command| {
        command.cwd(test_dir.path());
        command.env("DICTA_DATA_DIR", test_dir.path().join(".data"));
        command.env("USER", "ana");
    });
    pty.until("the progress", |pty| progress(pty).is_some());
    pty
}

/// Returns the progress in the second row: `review  12 of 100`. It counts a note when the file has it.
fn progress(pty: &Pty) -> Option<usize> {
    pty.contents().lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix("review")?;
        let (written, _) = rest.split_once(" of 100")?;
        written.trim().parse().ok()
    })
}

/// Returns the newest record of each transcript.
fn read_notes(test_dir: &TestDir) -> BTreeMap<String, Value> {
    let file = test_dir.path().join("t-rubrics/notes.jsonl");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // A kill can leave a part of a line, which was never shown as saved.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let notes = whole.lines().map(|line| {
        let note: Value = serde_json::from_str(line).expect("a note");
        (note["transcript"].as_str().expect("an id").to_owned(), note)
    });
    notes.collect()
}

#[test]
fn confirmed_notes_survive_a_kill_at_any_moment() {
    let test_dir = TestDir::new();
    let lines = (0..COUNT).map(|at| {
        let line = json!({"id": format!("t{at:03}"), "messages": [
            {"role": "user", "content": format!("Question {at}?")},
            {"role": "assistant", "content": "Use 2.69."},
        ]});
        line.to_string() + "\n"
    });
    test_dir.write("t.jsonl", &lines.collect::<String>());
    let seed = fastrand::u64(..);
    // The output of a failed test names its seed.
    println!("seed of the kills: {seed}");
    let mut pty = open(&test_dir);
    let mut confirmed: usize = 0;
    for until in choose_kills(seed).into_iter().chain([COUNT]) {
        for at in confirmed..until {
            match at % 4 {
                0 => pty.type_in("p"),
                1 => pty.type_in(&format!("jnwrong release in case {at}\r")),
                2 => pty.type_in("u"),
                _ => pty.type_in("s"),
            };
        }
        // The last notes of a burst may still be on their way when the program is killed.
        let least = if until == COUNT {
            COUNT
        } else {
            until.div_ceil(2).max(confirmed)
        };
        pty.until("the notes", |pty| progress(pty) >= Some(least));
        let shown = progress(&pty).expect("a number");
        kill_process(pty.id(), Signal::KILL).expect("sent");
        pty.ended();
        confirmed = read_notes(&test_dir).len();
        assert!(
            confirmed >= shown,
            "{shown} on the screen, {confirmed} in the file"
        );
        if until == COUNT {
            break;
        }
        pty = open(&test_dir);
        // The review goes on where it stopped, with the same sample.
        pty.until("the progress", |pty| progress(pty) == Some(confirmed));
    }
    let notes = read_notes(&test_dir);
    assert_eq!(notes.len(), COUNT);
    // The undo of the last note survives the kill, too.
    let mut pty = open(&test_dir);
    pty.until("the progress", |pty| progress(pty) == Some(COUNT));
    pty.type_in("U");
    pty.until("the undo", |pty| progress(pty) == Some(COUNT - 1));
    let is_removed = |note: &&Value| note["outcome"] == "removed";
    assert_eq!(read_notes(&test_dir).values().filter(is_removed).count(), 1);
    for note in notes.values() {
        assert_eq!(note["by"], json!("ana"), "{note}");
        assert_eq!(note["sample"]["p"], json!(1.0), "{note}");
        assert!(note["digest"].is_string(), "{note}");
        if note["outcome"] == "failure" {
            assert_eq!(note["message"], json!(1), "{note}");
            let text = note["note"].as_str().expect("a text");
            assert!(text.starts_with("wrong release in case "), "{note}");
        }
    }
    let failures = notes.values().filter(|note| note["outcome"] == "failure");
    // A kill can interrupt the typing of a note.
    assert!(failures.count() + KILLS >= COUNT / 4);
}
