//! The built program when things go wrong: readers that leave, kills, full disks, wrong turns.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::{NAMES_A_RELEASE, PASSES, POLITE, TestDir, judged_by, of_type, rows, text};
use crate::support::wire::{Pause, Reply, WireServer};

/// So many transcripts that name no release.
fn transcripts(n: usize) -> String {
    let line = |i| {
        format!(
            "{{\"id\":\"t{i}\",\"messages\":[{{\"role\":\"assistant\",\"content\":\"no {i}\"}}]}}\n"
        )
    };
    (0..n).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn closed_output_pipe_does_not_stop_the_recording() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let many = transcripts(5000);
    test_dir.write("t.jsonl", &many);
    let mut child = test_dir
        .command(&["run", "-q", "--format", "jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut first).expect("one line");
    drop(stdout);
    assert_eq!(
        child.wait().expect("ends").code(),
        Some(1),
        "by the outcome"
    );
    let show_output = test_dir.dicta(&["show", "@", "--format", "jsonl"]);
    assert_eq!(rows(&show_output).last().expect("a summary")["cells"], 5000);
}

#[test]
fn first_result_is_printed_while_the_second_one_of_its_transcript_is_judged() {
    const FAILS: &str = r#"{"citations":[],"reasoning":"It is rude.","passed":false,"score":0.1}"#;
    let two = "  - { id: one, type: llm_judge, params: { criteria: Is it kind? } }\n  \
               - { id: two, type: llm_judge, params: { criteria: Is it short? } }\n";
    for (format, to_file) in [
        (&["--format", "jsonl"][..], false),
        (&["--format", "jsonl"], true),
        (&["-q", "--format", "jsonl"], false),
        (&["-q", "--format", "jsonl"], true),
        (&["-q", "--format", "csv"], false),
        (&["--format", "human"], false),
        (&["-q", "--format", "human"], true),
        (&["-q", "--format", "github"], false),
    ] {
        let test_dir = TestDir::new();
        let never = Reply::text(FAILS).pause_before(0, &Pause::new());
        let server = WireServer::openai(vec![Reply::text(FAILS), never]);
        test_dir.workspace(&judged_by(&server), two);
        test_dir.write("t.jsonl", &transcripts(1));
        test_dir.write("results", "");
        let mut command = test_dir.command(&["run", "-j", "1"]);
        command.args(format).stderr(Stdio::null());
        let mut reader = None;
        if to_file {
            let results = test_dir.path().join("results");
            let file = std::fs::OpenOptions::new().append(true).open(&results);
            command.stdout(file.expect("a file"));
            // It reports what a file receives, without a wait.
            let mut tail = Command::new("tail");
            tail.args(["-n", "+1", "-f"]).arg(&results);
            reader = Some(tail.stdout(Stdio::piped()).spawn().expect("tail starts"));
        } else {
            command.stdout(Stdio::piped());
        }
        let mut child = command.spawn().expect("starts");
        let source = reader.as_mut().unwrap_or(&mut child);
        let stdout = source.stdout.take().expect("piped");
        let printed = BufReader::new(stdout)
            .lines()
            .map(|line| line.expect("text"))
            .find(|line| {
                line.contains("/one") || line.contains("\"one\"") || line.contains(",one,")
            });
        assert!(printed.is_some(), "{format:?}, to a file: {to_file}");
        for mut child in [Some(child), reader].into_iter().flatten() {
            child.kill().expect("kill -9");
            child.wait().expect("gone");
        }
    }
}

#[test]
fn run_with_a_damaged_plan_is_not_resumed_without_the_lost_transcript() {
    let server = WireServer::openai(vec![
        Reply::text(PASSES),
        Reply::text(PASSES),
        Reply::text(PASSES),
    ]);
    let test_dir = TestDir::new();
    test_dir.workspace(&judged_by(&server), POLITE);
    let run = test_dir.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let runs = std::fs::read_dir(test_dir.path().join("runs")).expect("runs");
    let mut logs = runs.map(|entry| entry.expect("an entry").path().join("events.jsonl"));
    let log = logs.find(|log| log.is_file()).expect("a log");
    let whole = std::fs::read_to_string(&log).expect("a log");
    // The end is lost, and a bit of the first plan.
    let damaged = whole.replacen("cells_planned", "cells_plannee", 1);
    let kept = damaged
        .lines()
        .filter(|line| !line.contains("run_finished"));
    let kept: Vec<&str> = kept.collect();
    std::fs::write(&log, kept.join("\n") + "\n").expect("written");
    let refused = test_dir.dicta(&["run", "-q", "--resume", "@"]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(why.contains("lost a part of the plan"), "{why}");
    // A new run has a result for each transcript.
    let again = test_dir.dicta(&["run", "-q", "--format", "jsonl"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(of_type(&rows(&again), "result").len(), 2);
}

#[test]
fn run_that_lost_its_last_plan_is_not_called_finished() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    test_dir.dicta(&["run", "-q"]);
    let runs = std::fs::read_dir(test_dir.path().join("runs")).expect("runs");
    let mut logs = runs.map(|entry| entry.expect("an entry").path().join("events.jsonl"));
    let log = logs.find(|log| log.is_file()).expect("a log");
    let mut text_of_log = std::fs::read_to_string(&log).expect("a log");
    let last = text_of_log.rfind("cells_planned").expect("a plan");
    text_of_log.replace_range(last..last + "cells_planned".len(), "cells_plannee");
    std::fs::write(&log, text_of_log).expect("written");
    let name = log.parent().and_then(Path::to_str).expect("UTF-8");
    let refused = test_dir.dicta(&["run", "-q", "--resume", name]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(why.contains("lost a part of the plan"), "{why}");
}

#[test]
fn resume_reports_results_that_it_cannot_check() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    test_dir.dicta(&["run", "-q"]);
    let runs = std::fs::read_dir(test_dir.path().join("runs")).expect("runs");
    let mut logs = runs.map(|entry| entry.expect("an entry").path().join("events.jsonl"));
    let log = logs.find(|log| log.is_file()).expect("a log");
    let whole = std::fs::read_to_string(&log).expect("a log");
    let without_end = |text: &str| {
        let lines = text.lines().filter(|line| !line.contains("run_finished"));
        let lines: Vec<&str> = lines.collect();
        std::fs::write(&log, lines.join("\n") + "\n").expect("written");
    };
    without_end(&whole);
    let own = test_dir.dicta(&["run", "--resume", "@"]);
    assert!(!text(&own.stderr).contains("cannot check"));
    // Another installation has another secret.
    let secret = test_dir.path().join(".data/secret");
    std::fs::remove_file(secret).expect("a secret");
    let name = log.parent().and_then(Path::to_str).expect("UTF-8");
    let foreign = test_dir.dicta(&["run", "--resume", name]);
    let note = text(&foreign.stderr);
    assert_eq!(foreign.status.code(), Some(1), "{note}");
    assert!(note.contains("recorded elsewhere"), "{note}");
    assert!(note.contains("cannot check"), "{note}");
}

#[test]
fn killed_run_keeps_its_printed_results_and_resumes() {
    let test_dir = TestDir::new();
    // The second request is never answered; the third is the resumed run's.
    let never = Reply::text(PASSES).pause_before(0, &Pause::new());
    let server = WireServer::openai(vec![Reply::text(PASSES), never, Reply::text(PASSES)]);
    test_dir.workspace(&judged_by(&server), POLITE);
    let mut child = test_dir
        .command(&["run", "-q", "-j", "1", "--format", "jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut printed = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut printed).expect("one result");
    child.kill().expect("kill -9");
    child.wait().expect("gone");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("nothing more");
    let show_output = test_dir.dicta(&["show", "@", "--format", "jsonl"]);
    assert!(
        text(&show_output.stdout).starts_with(&printed),
        "what was printed is recorded"
    );
    let summary = rows(&show_output).pop().expect("a summary");
    assert_eq!(
        (&summary["interrupted"], &summary["pending"]),
        (&true.into(), &1.into())
    );
    assert!(text(&test_dir.dicta(&["runs"]).stdout).contains("interrupted"));

    let resumed = test_dir.dicta(&["run", "-q", "--resume", "@", "--format", "jsonl"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    let cached: Vec<Value> = rows(&resumed)
        .iter()
        .filter(|r| r["type"] == "result")
        .map(|r| r["cached"].clone())
        .collect();
    assert_eq!(
        cached,
        [Value::from(true), Value::from(false)],
        "settled verdicts are carried"
    );
}

#[test]
fn full_disk_exits_with_74_and_loses_no_printed_result() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let many = transcripts(20_000);
    test_dir.write("t.jsonl", &many);
    // A limit on file sizes replaces the full disk: write(2) fails with EFBIG.
    let script = format!(
        "ulimit -f 256; exec '{}' run -q --format jsonl",
        env!("CARGO_BIN_EXE_dicta")
    );
    let mut command = Command::new("bash");
    command
        .args(["-c", &script])
        .current_dir(test_dir.path())
        .stdin(Stdio::null());
    command.env("DICTA_DATA_DIR", test_dir.path().join(".data"));
    // A pipe: the limit is on files.
    let run = command.output().expect("bash is here");
    assert_eq!(run.status.code(), Some(74), "{}", text(&run.stderr));
    assert!(
        text(&run.stderr).contains("recording failed"),
        "{}",
        text(&run.stderr)
    );
    let show_output = test_dir.dicta(&["show", "@", "--format", "jsonl"]);
    let recorded = text(&show_output.stdout);
    for line in text(&run.stdout)
        .lines()
        .filter(|l| l.contains("\"result\""))
    {
        assert!(recorded.contains(line), "printed but not recorded: {line}");
    }
}

#[test]
fn unwritable_results_file_exits_with_74_and_keeps_the_recording() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    test_dir.write(
        "t.jsonl",
        r#"{"messages":[{"role":"assistant","content":"no"}]}"#,
    );
    let full = || std::fs::File::options().write(true).open("/dev/full");
    let Ok(_) = full() else {
        return; // not on this system
    };
    for args in [
        &["run", "-q", "--format", "jsonl"][..],
        &["show", "@", "--format", "jsonl"],
    ] {
        let ended = test_dir
            .command(args)
            .stdout(full().expect("opened before"))
            .output()
            .expect("starts");
        assert_eq!(ended.status.code(), Some(74), "{args:?}");
        let stderr_text = text(&ended.stderr);
        assert!(
            stderr_text.contains("standard output: No space left"),
            "{stderr_text}"
        );
    }
    let show_output = test_dir.dicta(&["show", "@", "--format", "jsonl"]);
    assert_eq!(rows(&show_output).last().expect("a summary")["pending"], 0);
}

#[test]
fn command_that_cannot_write_its_file_exits_with_74() {
    let test_dir = TestDir::new();
    test_dir.workspace("judge: rules\n", NAMES_A_RELEASE);
    test_dir.dicta(&["run", "-q"]);
    for args in [
        &["init", "new"][..],
        &["init", "around", "--from", "t.jsonl"],
        &["trust", "."],
        &["history", "--baseline", "@"],
        &["run", "-q"],
        &["label", "one/r/names", "pass"],
        &["import", "t.jsonl", "-o", "out.jsonl"],
        &["export", "@", "-o", "out.html"],
        &["demo", "--reset"],
    ] {
        let ended = test_dir.dicta_on_full_disk(args);
        let why = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(74), "{args:?}: {why}");
        assert!(why.contains("File too large"), "{args:?}: {why}");
    }
}

#[test]
fn command_that_cannot_write_the_secret_of_the_installation_exits_with_74() {
    let test_dir = TestDir::new();
    let example =
        "examples: [{ text: Good day, expect: pass }], params: { criteria: mentions day }";
    test_dir.workspace(
        "judge: rules\n",
        &format!("  - {{ id: polite, type: llm_judge, {example} }}\n"),
    );
    for args in [
        &["check", "--examples"][..],
        &["prompt", "one/r/polite"],
        &["run", "-q"],
        &["run", "--dry-run"],
    ] {
        let ended = test_dir.dicta_on_full_disk(args);
        let why = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(74), "{args:?}: {why}");
        assert!(
            why.contains("secret: File too large"),
            "{args:?} names the file: {why}"
        );
    }
}

#[test]
fn full_standard_output_of_any_command_exits_with_74() {
    let test_dir = TestDir::new();
    test_dir.workspace("judge: rules\n", NAMES_A_RELEASE);
    test_dir.dicta(&["run", "-q"]);
    test_dir.workspace("judge: rules\n", &NAMES_A_RELEASE.replace("d+", "d{2}"));
    test_dir.dicta(&["run", "-q"]);
    for args in [
        &["runs"][..],
        &["check"],
        &["compare", "@2", "@"],
        &["replay", "@", "--print", "--speed", "0"],
        &["run", "--dry-run"],
        &["judges"],
        &["schema", "rubric"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ] {
        let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
            return; // not on this system
        };
        let ended = test_dir.command(args).stdout(full).output();
        let ended = ended.expect("starts");
        let stderr_text = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(74), "{args:?}: {stderr_text}");
        assert!(
            stderr_text.contains("dicta: standard output: No space left"),
            "{args:?}: {stderr_text}"
        );
        // A reader that closes its pipe is not an error.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = test_dir.command(args).stdout(writer).output();
        let ended = ended.expect("starts");
        assert_eq!(ended.status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn run_without_writable_folder_does_not_begin() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    test_dir.write(
        "t.jsonl",
        r#"{"messages":[{"role":"assistant","content":"no"}]}"#,
    );
    test_dir.write("runs", "a file, where the folder should be");
    let ended = test_dir.dicta(&["run", "-q", "--format", "jsonl"]);
    assert_eq!(ended.status.code(), Some(74));
    assert!(
        text(&ended.stderr).contains("can't record the run"),
        "{}",
        text(&ended.stderr)
    );
    assert!(ended.stdout.is_empty());
}

#[test]
fn two_runs_of_one_workspace_do_not_interfere() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let spawn = || {
        test_dir
            .command(&["run", "-q"])
            .stdout(Stdio::null())
            .spawn()
            .expect("starts")
    };
    let (mut one, mut two) = (spawn(), spawn());
    assert_eq!(one.wait().expect("ends").code(), Some(1));
    assert_eq!(two.wait().expect("ends").code(), Some(1));
    assert_eq!(
        text(&test_dir.dicta(&["runs"]).stdout)
            .lines()
            .filter(|l| l.contains("finished"))
            .count(),
        2
    );
}

#[test]
fn wrong_arguments_are_explained() {
    let cases: [(&str, &str, &[&str], &[&str]); 9] = [
        ("", "", &["run", "--where", "nonsense:x"], &["nonsense"]),
        (
            "",
            "",
            &["show", "@"],
            &["there is no state yet", "dicta run"],
        ),
        ("", "", &["run", "--judge", "nobody"], &["nobody"]),
        (
            "judge: g\njudges: { g: { provider: gemini, model: x } }\n",
            POLITE,
            &["run"],
            &["GEMINI_API_KEY", "`g`"],
        ),
        ("judge: nobody\n", "", &["run"], &["dicta.yaml:4", "nobody"]),
        (
            "judges: { m: { provider: openai, api_key: sk-very-secret-1 } }\n",
            "",
            &["check"],
            &["api_key_env"],
        ),
        (
            "",
            "  - { id: a, type: regexp, params: { pattern: x } }\n",
            &["check"],
            &["r.yaml:3", "`regex`"],
        ),
        (
            "",
            "  - { id: a, type: regex, params: { patern: x } }\n",
            &["check"],
            &["patern", "pattern"],
        ),
        ("labels: none.csv\n", "", &["check"], &["none.csv"]),
    ];
    for (config, evals, args, stderr_text) in cases {
        let test_dir = TestDir::new();
        test_dir.workspace(
            config,
            if evals.is_empty() {
                NAMES_A_RELEASE
            } else {
                evals
            },
        );
        let output = test_dir.dicta(args);
        let error_text = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error_text}");
        for part in stderr_text {
            assert!(
                error_text.contains(part),
                "{args:?} should name {part}: {error_text}"
            );
        }
        assert!(
            !error_text.contains("sk-very-secret-1"),
            "a key is never echoed: {error_text}"
        );
    }
}

#[test]
fn unreachable_server_is_a_judge_error_and_the_run_continues() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "judge: m\njudges:\n  m: { provider: openai, base_url: 'http://127.0.0.1:1/v1', model: m, timeout_s: 1 }\n",
        &format!("{NAMES_A_RELEASE}{POLITE}"),
    );
    let run = test_dir.dicta(&["run", "-q", "--format", "jsonl"]);
    let rows = rows(&run);
    assert_eq!(
        run.status.code(),
        Some(1),
        "the deterministic eval failed once"
    );
    let outcomes: Vec<&Value> = of_type(&rows, "result")
        .iter()
        .map(|r| &r["outcome"])
        .collect();
    assert!(
        outcomes
            .iter()
            .any(|o| *o == "judge_error" || *o == "timeout"),
        "{outcomes:?}"
    );
    assert!(outcomes.iter().any(|o| *o == "pass"), "{outcomes:?}");
}
