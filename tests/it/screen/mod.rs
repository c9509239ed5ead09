//! The workbench in a real terminal: a few stories of the built binary. Everything else is tested in memory.

mod evening;
mod labelling;
mod pauses;
mod pty;
mod review;

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use pty::Pty;
use rustix::process::{Signal, kill_process};

use crate::cli::{NAMES_A_RELEASE, PASSES, POLITE, TestDir, judged_by};
use crate::support::wire::{Dialect, Pause, Reply, WireServer};

/// A text of the demo's first screen.
const FIRST: &str = "names-a-version";

/// Runs the evals of a workspace in the workbench, opens a judge trace and its panes, and returns the whole
/// output.
#[cfg(all(feature = "mcp", feature = "postgres"))]
pub(crate) fn run_and_browse(workspace: &std::path::Path, env: &[(String, String)]) -> String {
    let mut pty = Pty::with(&[], |command| {
        command.cwd(workspace);
        // The data folder of the test's other commands, which knows that the workspace is trusted.
        command.env("DICTA_DATA_DIR", workspace.join(".data"));
        for (name, value) in env {
            command.env(name, value);
        }
    });
    pty.until_shown("by-m").type_in("R").until_run();
    let mut seen = pty.contents();
    // Open a judge trace, and go through its panes.
    pty.type_in("\r").until_shown("verdict");
    seen.push_str(&pty.contents());
    for key in ["\t", "j", " ", "\t", "j", "\t", "j", "]", "\t"] {
        pty.type_in(key);
    }
    kill_process(pty.id(), Signal::TERM).expect("sent");
    pty.ended();
    seen + &pty.contents() + &String::from_utf8_lossy(&pty.written)
}

fn assert_restored(pty: &Pty, modes: &str) {
    assert!(!pty.alternate(), "the normal screen is back");
    assert!(!pty.cursor_hidden(), "the cursor is back");
    assert_eq!(pty.unbalanced(), Vec::<String>::new());
    assert_eq!(pty.modes(), modes);
}

#[test]
fn paid_run_asks_on_the_terminal_and_no_records_nothing() {
    let server = WireServer::answering(Dialect::Openai, |_| Reply::text(PASSES));
    let test_dir = TestDir::new();
    let judge =
        judged_by(&server).replace("model: m }", "model: m, prices: { input: 1, output: 10 } }");
    let run = |config: &str, options: &[&str]| {
        test_dir.workspace(&format!("{judge}{config}"), POLITE);
        Pty::with(
            &[&["run", "-q", "--refresh"], options].concat(),
            |command| {
                command.cwd(test_dir.path());
                command.env("DICTA_DATA_DIR", test_dir.path().join(".data"));
            },
        )
    };
    // The estimate is below $0.10, so only a lower limit of the workspace leads to a question.
    let low = "limits: { confirm_usd: 0.001 }\n";
    let mut no = run(low, &[]);
    no.until_shown("2 cells by m, 2 model calls, about $0.")
        .until_shown("[y/N]")
        .type_in("\r");
    assert_eq!(no.ended().code, 2);
    assert!(
        no.contents().contains("nothing is recorded"),
        "{}",
        no.contents()
    );
    assert_eq!(server.requests().len(), 0);
    assert!(!test_dir.path().join("runs").exists());
    let mut yes = run(low, &[]);
    yes.until_shown("[y/N]").type_in("y\r");
    assert_eq!(yes.ended().code, 0);
    assert_eq!(server.requests().len(), 2);
    let below = run("", &[]).ended();
    let allowed = run(low, &["--yes"]).ended();
    assert_eq!((below.code, allowed.code), (0, 0));
    assert_eq!(server.requests().len(), 6);
}

#[test]
fn bundle_opens_in_the_workbench_without_its_workspace() {
    let server = WireServer::answering(Dialect::Openai, |_| Reply::text(PASSES));
    let test_dir = TestDir::new();
    test_dir.workspace(&judged_by(&server), POLITE);
    for args in [
        &["run", "-q"][..],
        &["export", "@", "--format", "bundle", "-o", "run.dicta"],
    ] {
        assert_eq!(test_dir.dicta(args).status.code(), Some(0), "{args:?}");
    }
    let elsewhere = TestDir::new();
    let bundle = test_dir.path().join("run.dicta").display().to_string();
    let mut pty = Pty::with(&["open", &bundle], |command| {
        command.cwd(elsewhere.path());
        command.env("DICTA_DATA_DIR", elsewhere.path().join(".data"));
    });
    pty.until_shown("REPLAY").until_shown("polite");
    kill_process(pty.id(), Signal::TERM).expect("sent");
    pty.ended();
    assert_eq!(server.requests().len(), 2, "the bundle calls no judge");
}

#[test]
fn verdict_edited_at_a_breakpoint_decides_and_is_marked() {
    let server = WireServer::answering(Dialect::Openai, |_| Reply::text(PASSES));
    let test_dir = TestDir::new();
    test_dir.workspace(&judged_by(&server), POLITE);
    let args = ["run", "--where", "transcript:one", "--break", "verdict"];
    let mut pty = Pty::with(&args, |command| {
        command.cwd(test_dir.path());
        command.env("DICTA_DATA_DIR", test_dir.path().join(".data"));
        command.env("EDITOR", "sed -i s/true/false/");
    });
    pty.until_shown("paused: one/r/polite~m at the verdict pass: It greets.")
        .type_in("e\r");
    assert_eq!(pty.ended().code, 1, "{}", pty.contents());
    let shown = pty.contents();
    assert!(
        shown.contains("edited by hand: it enters no history"),
        "{shown}"
    );
    let history = test_dir.dicta(&["history", "--format", "jsonl"]);
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(!history.contains("\"fail\":1"), "{history}");
}

#[test]
fn workbench_runs_the_demo_and_restores_the_terminal() {
    let mut pty = Pty::start(&[]);
    let modes = pty.first_modes().to_owned();
    pty.until_shown(FIRST);
    assert!(pty.alternate());
    // The demo has no recorded run, so opening it judges it.
    pty.until_run().type_in("q");
    assert_eq!(pty.ended().code, 0);
    assert_restored(&pty, &modes);
    assert!(
        pty.contents().contains("is recorded in"),
        "{}",
        pty.contents()
    );
}

#[test]
fn partial_save_is_not_an_error_and_the_full_save_flips_a_verdict() {
    let mut pty = Pty::start(&[]);
    pty.until_shown(FIRST).until_run();
    let path = pty.demo().join("rubrics/beamline.yaml");
    let rubric = std::fs::read_to_string(&path).expect("a rubric");
    let edited = rubric.replace(r"\d\.\d\b", r"\d+\.\d+");
    assert_ne!(edited, rubric);
    let half = edited.len() / 2;
    std::fs::write(&path, "").expect("truncated");
    std::fs::write(&path, &edited[..half]).expect("half of it");
    std::fs::write(&path, &edited).expect("written");
    pty.until_shown("towards your labels");
    // `y` answers the question that appears if judges of the save are still active.
    pty.type_in("qy");
    assert_eq!(pty.ended().code, 0);
}

#[test]
fn editor_gets_the_terminal_and_returns_it() {
    let home = tempfile::tempdir().expect("a folder");
    let editor = home.path().join("ed.sh");
    let script = "#!/bin/sh\nprintf 'editing %s\\n' \"$1\"\nsed -i 's/A reader must/Every reader must/' \"$1\"\nread -r go\nexit $go\n";
    std::fs::write(&editor, script).expect("written");
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).expect("set");
    let mut pty = Pty::with(&[], |command| {
        command.env("EDITOR", &editor);
    });
    let modes = pty.first_modes().to_owned();
    pty.until_shown(FIRST).type_in("e");
    pty.until("the editor", |pty| {
        !pty.alternate() && pty.contents().contains("editing ")
    });
    assert_eq!(pty.modes(), modes, "the editor has the terminal as it was");
    pty.type_in("3\n")
        .until("the screen again", Pty::alternate)
        .until_shown("exit status: 3")
        .until_shown(FIRST);
    pty.type_in("q");
    assert_eq!(pty.ended().code, 0);
    assert_restored(&pty, &modes);
    // The last lines are below those of the editor, and overwrite nothing.
    let lines = pty.contents();
    let below = lines.split_once("editing ").map(|(_, below)| below);
    assert!(
        below.is_some_and(|below| below.contains("dicta: ")),
        "{lines}"
    );
}

#[test]
fn signal_ends_the_workbench_and_keeps_the_recording() {
    let mut pty = Pty::start(&[]);
    let modes = pty.first_modes().to_owned();
    pty.until_shown(FIRST).until_shown(" live");
    kill_process(pty.id(), Signal::TERM).expect("sent");
    let ended = pty.ended();
    assert_eq!(ended.code, 143);
    assert!(ended.after < Duration::from_secs(2), "{ended:?}");
    assert_restored(&pty, &modes);
    let line = pty.contents();
    assert!(line.contains("is recorded in"), "{line}");
}

#[test]
fn core_dump_signal_restores_the_terminal() {
    let mut pty = Pty::start(&[]);
    let modes = pty.first_modes().to_owned();
    pty.until_shown(FIRST);
    kill_process(pty.id(), Signal::QUIT).expect("sent");
    assert_eq!(pty.ended().code, 131);
    assert_restored(&pty, &modes);
}

#[test]
fn terminal_modes_of_a_crashed_editor_are_reset() {
    let home = tempfile::tempdir().expect("a folder");
    let editor = home.path().join("ed.sh");
    let script = "#!/bin/sh\nstty raw -echo\nprintf '\\033[?1003h\\033[?7l'\nread -r go\n";
    std::fs::write(&editor, script).expect("written");
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).expect("set");
    let mut pty = Pty::with(&[], |command| {
        command.env("EDITOR", &editor);
    });
    let modes = pty.first_modes().to_owned();
    pty.until_shown(FIRST).type_in("e");
    pty.until("the editor", |pty| !pty.alternate())
        .type_in("\n")
        .until("the screen again", Pty::alternate);
    pty.type_in("q");
    assert_eq!(pty.ended().code, 0);
    assert_restored(&pty, &modes);
    let last = |mode: &[u8]| pty.written.windows(mode.len()).rposition(|at| at == mode);
    assert!(last(b"\x1b[?1003l") > last(b"\x1b[?1003h"));
    assert!(last(b"\x1b[?7h") > last(b"\x1b[?7l"));
}

#[test]
fn keys_typed_during_a_resize_arrive() {
    let mut pty = Pty::start(&[]);
    pty.until_shown(FIRST).type_in("/").until_shown("filter: ");
    let text = "abcdefghijklmnopqrstuvwxyz0123456789";
    for (at, key) in text.char_indices() {
        let columns = if at % 2 == 0 { 119 } else { 120 };
        pty.resize(columns).type_in(key.encode_utf8(&mut [0; 4]));
    }
    // The last key arrives, too, although no other key follows it.
    pty.until_shown(text);
    // The program may read each half of a bracketed paste separately.
    pty.type_in("\x1b[200~, pa").type_in("sted\x1b[201~");
    pty.until_shown(&format!("{text}, pasted"));
    // A single escape byte is the key `esc`, and not the start of a sequence.
    pty.type_in("\x1b")
        .until("the line's end", |pty| !pty.contents().contains(text));
    pty.type_in("q");
    assert_eq!(pty.ended().code, 0);
}

#[test]
fn closed_terminal_ends_the_workbench() {
    for ignoring in [false, true] {
        let mut pty = if ignoring {
            Pty::through("trap '' HUP")
        } else {
            Pty::start(&[])
        };
        pty.until_shown(FIRST);
        pty.hang_up();
        let ended = pty.ended();
        assert!(ended.after < Duration::from_secs(3), "{ended:?}");
        assert_eq!(ended.code, 129);
    }
}

#[test]
fn two_workbenches_that_label_into_one_file_lose_no_label() {
    const COUNT: usize = 20;
    let shared = tempfile::tempdir().expect("a folder");
    let labels = shared.path().join("labels.jsonl");
    std::fs::write(&labels, "").expect("written");
    let start = |name: &str| {
        let root = shared.path().join(name);
        std::fs::create_dir(&root).expect("made");
        let lines = (0..COUNT).map(|at| {
            format!(
                r#"{{"id":"{name}-{at:02}","messages":[{{"role":"user","content":"x"}},{{"role":"assistant","content":"y"}}]}}"#
            ) + "\n"
        });
        for (file, text) in [
            ("t.jsonl", lines.collect::<String>()),
            (
                "r.yaml",
                "id: r\nevals:\n  - { id: e, type: contains, params: { patterns: [y] } }\n"
                    .to_owned(),
            ),
            (
                "dicta.yaml",
                "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\nlabels: ../labels.jsonl\n"
                    .to_owned(),
            ),
        ] {
            std::fs::write(root.join(file), text).expect("written");
        }
        let mut pty = Pty::with(&["open", root.to_str().expect("a path")], |_| {});
        pty.until_shown(&format!("{name}-{:02}", COUNT - 1));
        pty
    };
    let (mut one, mut two) = (start("one"), start("two"));
    let keys = "pj".repeat(COUNT);
    one.type_in(&keys);
    two.type_in(&keys);
    one.type_in("q");
    two.type_in("q");
    assert_eq!(one.ended().code, 0);
    assert_eq!(two.ended().code, 0);
    let text = std::fs::read_to_string(&labels).expect("read");
    let transcripts: std::collections::BTreeSet<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a label"))
        .map(|label| label["transcript"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(transcripts.len(), 2 * COUNT, "{text}");
}

#[test]
fn hidden_characters_of_arguments_do_not_reach_the_terminal() {
    let osc = "\u{1b}]52;c;cm0gLXJmIH4K\u{7}";
    for args in [
        vec!["import".to_owned(), format!("--Z{osc}.jsonl")],
        vec![format!("fo\u{1b}[31mo\u{9b}\u{202e}")],
        vec!["run".to_owned(), "--format".to_owned(), osc.to_owned()],
        vec!["run".to_owned(), "--limit".to_owned(), osc.to_owned()],
        vec!["schema".to_owned(), osc.to_owned()],
        vec!["completions".to_owned(), osc.to_owned()],
    ] {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut pty = Pty::start(&words);
        assert_eq!(pty.ended().code, 2, "{args:?}");
        let written = String::from_utf8_lossy(&pty.written).into_owned();
        assert!(written.contains('␛'), "{args:?}: {written:?}");
        for hidden in ["\u{1b}]52", "\u{1b}[31m", "\u{9b}", "\u{202e}", "\u{7}"] {
            assert!(!written.contains(hidden), "{args:?}: {written:?}");
        }
    }
}

#[test]
fn imported_record_does_not_reach_the_terminal_raw() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.jsonl");
    let record =
        "{\"id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"\u{9b}31m\u{202e}\"}]}\n";
    std::fs::write(&path, record).expect("written");
    let mut pty = Pty::start(&["import", path.to_str().expect("a path")]);
    assert_eq!(pty.ended().code, 0);
    let written = String::from_utf8_lossy(&pty.written).into_owned();
    assert!(written.contains(r"\u009b31m\u202e"), "{written:?}");
    assert!(!written.contains(['\u{9b}', '\u{202e}']), "{written:?}");
}

#[test]
fn run_on_a_terminal_asks_before_a_variable_goes_to_a_new_address() {
    let verdict =
        || Reply::verdict(serde_json::from_str::<serde_json::Value>(PASSES).expect("JSON"));
    let server = WireServer::openai(vec![verdict(), verdict()]);
    let test_dir = TestDir::new();
    test_dir.workspace(
        &format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m, api_key_env: LOCAL_KEY }}\n",
            server.base_url()
        ),
        POLITE,
    );
    let path = test_dir.path().to_str().expect("Unicode");
    for (answer, code, requests) in [("\n", 2, 0), ("n\n", 2, 0), ("y\n", 0, 2)] {
        let mut pty = Pty::with(&["run", "-q", path], |command| {
            command.env("LOCAL_KEY", "local-secret-4711");
        });
        pty.until_shown("send LOCAL_KEY to http://127.0.0.1:")
            .until_shown("[y/N]")
            .type_in(answer);
        assert_eq!(pty.ended().code, code, "{}", pty.contents());
        assert_eq!(server.requests().len(), requests, "after {answer:?}");
    }
}

/// A workspace whose first transcript fails at once. The second one passes when the test lets it.
fn half_paused_workspace(pause: &Pause) -> (TestDir, WireServer) {
    let held = pause.clone();
    let server = WireServer::answering(Dialect::Openai, move |request| {
        if request.mentions("Which release?") {
            Reply::text(r#"{"citations":[],"reasoning":"It is rude.","passed":false,"score":0.1}"#)
        } else {
            Reply::text(PASSES).pause_before(0, &held)
        }
    });
    let test_dir = TestDir::new();
    test_dir.workspace(
        &format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m, prices: {{ input: 0, output: 0 }} }}\n",
            server.base_url()
        ),
        POLITE,
    );
    (test_dir, server)
}

#[test]
fn progress_line_is_erased_before_every_other_output() {
    let pause = Pause::new();
    let (test_dir, _server) = half_paused_workspace(&pause);
    let path = test_dir.path().to_str().expect("Unicode");
    let mut pty = Pty::start(&["run", path]);
    pty.until_shown("1 of 2 cells · 1 failed");
    let screen = pty.contents();
    assert!(
        screen.contains("one/r/polite~m\n    It is rude.\n"),
        "the failure is printed before the run ends: {screen}"
    );
    pause.go();
    assert_eq!(pty.ended().code, 1, "{}", pty.contents());
    let screen = pty.contents();
    assert!(!screen.contains(" of 2 cells"), "{screen}");
    assert!(screen.contains("✓ 1 pass   ✗ 1 fail"), "{screen}");
    let written = String::from_utf8_lossy(&pty.written).into_owned();
    let lines: Vec<&str> = written
        .split('\n')
        .filter(|line| line.contains(" of 2 cells"))
        .collect();
    assert!(!lines.is_empty(), "{written:?}");
    for line in lines {
        let (_, after) = line.rsplit_once(" of 2 cells").expect("the last one");
        assert!(after.contains("\r\u{1b}[K"), "{line:?}");
    }
}

#[test]
fn quiet_run_on_a_terminal_has_no_progress_line_and_no_color_has_no_colors() {
    let pause = Pause::new();
    let (test_dir, _server) = half_paused_workspace(&pause);
    let path = test_dir.path().to_str().expect("Unicode");
    let mut pty = Pty::with(&["run", "-q", path], |command| command.env("NO_COLOR", "1"));
    pty.until_shown("It is rude.");
    pause.go();
    assert_eq!(pty.ended().code, 1, "{}", pty.contents());
    let written = String::from_utf8_lossy(&pty.written).into_owned();
    assert!(!written.contains('\u{1b}'), "{written:?}");
    assert!(!written.contains(" of 2 cells"), "{written:?}");
}

#[test]
fn lists_break_between_words_at_80_columns() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let folder = "a folder of runs whose name does not fit on one line of the screen";
    test_dir.write(
        "dicta.yaml",
        &format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: {folder}\n"),
    );
    let words = "many short words ".repeat(8);
    let path = test_dir.path();
    std::fs::write(
        path.join("long.jsonl"),
        format!("{{\"id\":\"{}\",\"messages\":[]}}\n", words.trim_end()),
    )
    .expect("written");
    for args in [
        &["runs"][..],
        &["themes"],
        &["review", "long.jsonl", "--list"],
        &["trust", "."],
    ] {
        let mut pty = Pty::small(args, |command| command.cwd(path));
        assert_eq!(pty.ended().code, 0, "{args:?}: {}", pty.contents());
        let written = String::from_utf8_lossy(&pty.written).into_owned();
        for line in written.lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
    }
}
