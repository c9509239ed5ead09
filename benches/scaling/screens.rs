//! The screens of the built program on a terminal: opening, filtering, deciding and scrolling.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use crate::measure::add_program_time;
use crate::pty::Terminal;
use crate::text::text;
use crate::{Case, Work};

/// The number of evals of the rubric.
const EVALS: usize = 2;

/// The actions of a case between two readings of the program's time.
struct Script {
    /// The keys before the first reading, and the text on the screen after them.
    before: Vec<(&'static str, String)>,
    /// The measured keys, and the text on the screen after them.
    measured: Vec<(&'static str, String)>,
}

/// The cases of all screens.
pub(crate) fn cases() -> Vec<Case> {
    let cells = |n: usize| (n * EVALS).to_string();
    let decided = |n: usize| format!("✓ {}", n * EVALS);
    vec![
        board_case("screen, opening of a workspace", 1000, move |n| Script {
            before: Vec::new(),
            measured: vec![("", cells(n))],
        }),
        board_case("screen, filter of the cells", 1000, move |n| Script {
            before: vec![("", cells(n)), ("1/", "filter".to_owned())],
            measured: vec![
                ("transcript:t00001", "transcript:t00001".to_owned()),
                ("\r", "t00001".to_owned()),
            ],
        }),
        board_case("screen, checks of all cells", 500, move |n| Script {
            before: vec![("", cells(n))],
            measured: vec![("R", decided(n))],
        }),
        rubric_case("screen, opening of a rubric with many evals", |n| Script {
            before: Vec::new(),
            measured: vec![("", n.to_string())],
        }),
        rubric_case("screen, checks of many evals", |n| Script {
            before: vec![("", n.to_string())],
            measured: vec![("R", format!("✓ {n}"))],
        }),
        Case {
            name: "screen, ends of a long transcript".to_owned(),
            unit: 4000,
            prepare: Box::new(|n| {
                let last = format!("message number {} ", n - 1);
                let first = || "message number 0 ".to_owned();
                let script = Script {
                    before: vec![("", first()), ("6+", "message number 9 ".to_owned())],
                    measured: vec![("G", last.clone()), ("g", first()), ("G", last)],
                };
                let dir = tempfile::tempdir().expect("a folder");
                write_long_transcript(dir.path(), n);
                screen_work(dir, &["open", "long.jsonl"], script)
            }),
        },
    ]
}

fn board_case(name: &str, unit: usize, script: impl Fn(usize) -> Script + 'static) -> Case {
    Case {
        name: name.to_owned(),
        unit,
        prepare: Box::new(move |n| {
            let dir = tempfile::tempdir().expect("a folder");
            write_workspace(dir.path(), n);
            screen_work(dir, &[], script(n))
        }),
    }
}

fn rubric_case(name: &str, script: fn(usize) -> Script) -> Case {
    Case {
        name: name.to_owned(),
        unit: 500,
        prepare: Box::new(move |n| {
            let dir = tempfile::tempdir().expect("a folder");
            write_workspace(dir.path(), 1);
            let evals = (0..n).map(|number| {
                format!("  - {{ id: eval-{number}, type: contains, params: {{ patterns: [Message] }} }}\n")
            });
            let evals: Vec<String> = evals.collect();
            let rubric = format!("evals:\n{}", evals.concat());
            std::fs::write(dir.path().join("r.yaml"), rubric).expect("written");
            screen_work(dir, &[], script(n))
        }),
    }
}

fn write_workspace(dir: &Path, transcripts: usize) {
    let mut lines = String::new();
    for at in 0..transcripts {
        let transcript = json!({"id": format!("t{at:06}"), "messages": [
            {"role": "user", "content": text(at)}, {"role": "assistant", "content": text(at + 1)}]});
        let _infallible = writeln!(lines, "{transcript}");
    }
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
    write("t.jsonl", &lines);
    write(
        "r.yaml",
        "evals:\n  - { id: a, type: contains, params: { patterns: [Message] } }\n  \
         - { id: b, type: contains, params: { patterns: [\"Message \"] } }\n",
    );
    write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n",
    );
}

fn write_long_transcript(dir: &Path, messages: usize) {
    let messages: Vec<_> = (0..messages)
        .map(|at| {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            json!({"role": role, "content": format!("message number {at} {}", text(at))})
        })
        .collect();
    let transcript = json!({"id": "long", "messages": messages});
    std::fs::write(dir.join("long.jsonl"), format!("{transcript}\n")).expect("written");
}

/// Starts the program for each measurement, because a second opening finds what the first one recorded.
fn screen_work(dir: tempfile::TempDir, arguments: &'static [&'static str], script: Script) -> Work {
    Box::new(move || {
        // Runs of an earlier measurement would be read too.
        let _none = std::fs::remove_dir_all(dir.path().join("runs"));
        let mut terminal = Terminal::start(arguments, dir.path(), 160, 48);
        press_all(&mut terminal, &script.before);
        // The start of the program does not depend on the size, so only the opening of a workspace includes it.
        let start = if script.before.is_empty() {
            std::time::Duration::ZERO
        } else {
            terminal.took().0
        };
        press_all(&mut terminal, &script.measured);
        add_program_time(terminal.took().0.saturating_sub(start));
        script.measured.len()
    })
}

fn press_all(terminal: &mut Terminal, keys: &[(&str, String)]) {
    for (keys, wanted) in keys {
        terminal.press(keys);
        terminal.until(|screen| screen.contains(wanted.as_str()));
    }
}
