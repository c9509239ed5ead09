//! The output formats of the built program, and how much it prints.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::cli::{NAMES_A_RELEASE, PASSES, POLITE, TestDir, judged_by, of_type, rows, text};
use crate::support::wire::{Dialect, Pause, Reply, WireServer};

const RULES: &str = "judge: quick\njudges: {quick: {provider: rules}}\n";
const JUDGED: &str = "  - { id: brief, type: llm_judge, params: { criteria: \"The answer has at most 1 sentence.\" } }\n";
/// Two people who disagree.
const LABELS: &str = concat!(
    r#"{"transcript":"one","rubric":"r","eval":"brief","passed":true,"by":"ann"}"#,
    "\n",
    r#"{"transcript":"one","rubric":"r","eval":"brief","passed":false,"by":"bo"}"#,
    "\n",
);
const FAILS: &str =
    r#"{"citations":[],"reasoning":"It is rude.\nVery rude.","passed":false,"score":0.1}"#;

/// A workspace with two runs, so that every listing has content.
fn judged_workspace() -> TestDir {
    let test_dir = TestDir::new();
    for evals in [
        NAMES_A_RELEASE.replace("d+", "d{2}"),
        NAMES_A_RELEASE.to_owned(),
    ] {
        test_dir.workspace(RULES, &format!("{evals}{JUDGED}"));
        let run = test_dir.dicta(&["run", "-q"]);
        assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    }
    test_dir
}

#[test]
fn every_listing_prints_one_json_document_or_one_object_per_line() {
    let test_dir = judged_workspace();
    test_dir.write("table.csv", "question,answer\nWhich?,2.69\n");
    test_dir.write("labels.jsonl", LABELS);
    test_dir.write("theirs.jsonl", LABELS);
    for args in [
        &["run"][..],
        &["run", "--dry-run"],
        &["show", "@"],
        &["show", "@", "one/r/brief~quick"],
        &["show", "@", "--thresholds"],
        &["runs"],
        &["label", "plan"],
        &["labels", "drift"],
        &["labels", "raters"],
        &["labels", "merge", "theirs.jsonl"],
        &[
            "labels",
            "confirm",
            "--all",
            "--without-digest",
            "--dry-run",
        ],
        &["review", "--list"],
        &["compare", "@2", "@"],
        &["check"],
        &["check", "r.yaml"],
        &["check", "t.jsonl"],
        &["eval-types"],
        &["eval-types", "regex"],
        &["judges"],
        &["tools"],
        &["keys"],
        &["themes"],
        &["schema", "rubric"],
        &["prompt", "one/r/brief~quick"],
        &["trust", "--list"],
        &["paths"],
        &["demo"],
        &["demo", "--reset"],
        &["map", "table.csv"],
        &["map", "t.jsonl"],
        &["import", "t.jsonl", "-o", "all.jsonl"],
    ] {
        let document = test_dir.dicta(&[args, &["--format", "json"]].concat());
        let parsed = serde_json::from_slice::<Value>(&document.stdout);
        let parsed = parsed.unwrap_or_else(|error| {
            panic!(
                "{args:?}: {error}: {}{}",
                text(&document.stdout),
                text(&document.stderr)
            )
        });
        assert!(
            parsed.is_object() || parsed.is_array(),
            "{args:?}: {parsed}"
        );
        let lines = test_dir.dicta(&[args, &["--format", "jsonl"]].concat());
        assert!(rows(&lines).iter().all(Value::is_object), "{args:?}");
        // A list of trusted workspaces is empty here; everything else has content.
        assert_eq!(rows(&lines).is_empty(), args[0] == "trust", "{args:?}");
    }
}

#[test]
fn lists_of_labels_have_the_facts_that_people_read() {
    let test_dir = judged_workspace();
    test_dir.write("labels.jsonl", LABELS);
    let stray = r#"{"transcript":"gone","rubric":"r","eval":"brief","passed":true,"by":"ann"}"#;
    test_dir.write("theirs.jsonl", &format!("{LABELS}{stray}\n"));
    let list = |args: &[&str]| rows(&test_dir.dicta(&[args, &["--format", "jsonl"]].concat()));
    let raters = list(&["labels", "raters"]);
    assert_eq!(of_type(&raters, "rater").len(), 2);
    let people = of_type(&raters, "people");
    assert_eq!(
        (&people[0]["common"], &people[0]["same"]),
        (&json!(1), &json!(0))
    );
    let conflict = of_type(&raters, "conflict");
    assert_eq!(conflict[0]["answers"], json!({"ann": true, "bo": false}));
    let merged = list(&["labels", "merge", "theirs.jsonl"]);
    assert_eq!(of_type(&merged, "merge")[0]["labels"], 1);
    assert_eq!(of_type(&merged, "conflict"), conflict);
    assert_eq!(of_type(&merged, "refused").len(), 1, "the stray label");
    let plan = list(&["label", "plan", "--eval", "brief"]);
    assert_eq!(
        (&plan[0]["eval"], &plan[0]["tpr"]["value"]),
        (&json!("brief"), &Value::Null)
    );
    assert!(plan[0]["missing_label_passes"].as_u64() > Some(0));
    let drawn = list(&["label", "plan", "--eval", "brief", "--draw"]);
    assert!(!of_type(&drawn, "queued").is_empty(), "{drawn:?}");
    // A dry run and the deletion list the same labels.
    let would_go = list(&["labels", "prune", "--dry-run"]);
    let listed = text(&test_dir.dicta(&["labels", "prune", "--dry-run"]).stderr);
    assert!(listed.contains("1 label without a match:\n"), "{listed}");
    let gone = list(&["labels", "prune", "--yes"]);
    for (rows, deleted) in [(&would_go, false), (&gone, true)] {
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["deleted"], deleted);
        assert_eq!(rows[0]["label"]["transcript"], "gone");
    }
    let nothing = test_dir.dicta(&["labels", "prune", "--format", "json"]);
    assert_eq!(text(&nothing.stdout), "[]\n");
}

#[test]
fn list_of_runs_to_delete_is_a_table() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    for _ in 0..4 {
        test_dir.dicta(&["run", "-q"]);
    }
    let prune = |keep, format| {
        let args = [
            "runs",
            "prune",
            "--keep",
            keep,
            "--dry-run",
            "--format",
            format,
        ];
        test_dir.dicta(&args)
    };
    let listed = rows(&prune("1", "jsonl"));
    assert!(!listed.is_empty());
    assert!(listed.iter().all(|run| run["deleted"] == false));
    let table = text(&prune("1", "csv").stdout);
    assert_eq!(table.lines().count(), listed.len() + 1, "{table}");
    assert!(
        table.starts_with("type,run,letters,bytes,age_ms,deleted\n"),
        "{table}"
    );
    assert_eq!(text(&prune("9", "json").stdout), "[]\n");
    let gone = test_dir.dicta(&["runs", "prune", "--keep", "1", "--yes", "--format", "jsonl"]);
    let gone = rows(&gone);
    assert_eq!(gone.len(), listed.len());
    assert!(gone.iter().all(|run| run["deleted"] == true), "{gone:?}");
}

#[test]
fn document_of_a_run_has_the_objects_of_its_lines() {
    let test_dir = judged_workspace();
    let document = test_dir.dicta(&["show", "@", "--format", "json"]);
    let document: Value = serde_json::from_slice(&document.stdout).expect("one document");
    let lines = rows(&test_dir.dicta(&["show", "@", "--format", "jsonl"]));
    let results: Vec<Value> = of_type(&lines, "result").into_iter().cloned().collect();
    assert_eq!(document["results"], Value::from(results));
    assert_eq!(Some(&document["summary"]), lines.last());
    assert_eq!(document["decisions"], Value::Array(Vec::new()));
}

#[test]
fn unsupported_format_is_a_usage_error_that_lists_the_supported_ones() {
    let test_dir = judged_workspace();
    for (args, supported) in [
        (&["runs"][..], "[possible values: human, json, jsonl, csv]"),
        (&["judges"], "[possible values: human, json, jsonl]"),
        (&["run", "--dry-run"], "use --format human, json or jsonl"),
        (
            &["show", "@", "--thresholds"],
            "use --format human, json, jsonl or csv",
        ),
        (&["themes", "dark"], ""),
    ] {
        let refused = test_dir.dicta(&[args, &["--format", "junit"]].concat());
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        let why = text(&refused.stderr);
        assert!(why.contains(supported), "{args:?}: {why}");
        assert_eq!(text(&refused.stdout), "", "{args:?}");
    }
}

#[test]
fn former_spellings_of_formats_still_work() {
    let test_dir = TestDir::new();
    let former = test_dir.dicta(&["keys", "--markdown"]);
    let now = test_dir.dicta(&["keys", "--format", "markdown"]);
    assert!(text(&now.stdout).starts_with("| keys | where | do |"));
    assert_eq!(former.stdout, now.stdout);
}

#[test]
fn csv_has_a_header_and_one_row_per_cell() {
    let test_dir = judged_workspace();
    let table = text(&test_dir.dicta(&["show", "@", "--format", "csv"]).stdout);
    assert!(
        table.starts_with(
            "cell,transcript,rubric,eval,eval_type,message,judge,repeat,outcome,passed,"
        ),
        "{table}"
    );
    assert!(
        table.contains("\none/r/names,one,r,names,regex,,,,pass,true,,"),
        "{table}"
    );
    assert!(
        table.contains("\ntwo/r/names,two,r,names,regex,,,,fail,false,,"),
        "{table}"
    );
    let runs = text(&test_dir.dicta(&["runs", "--format", "csv"]).stdout);
    assert_eq!(runs.lines().count(), 3, "a header and two runs: {runs}");
}

#[test]
fn annotations_point_at_the_line_of_the_eval() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let run = test_dir.dicta(&["run", "--format", "github"]);
    let lines = text(&run.stdout);
    assert!(
        lines.contains("::error file=r.yaml,line=3,title=fail%3A two/r/names::"),
        "{lines}{}",
        text(&run.stderr)
    );
    assert!(lines.contains("::1 pass, 1 fail\n"), "{lines}");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert_eq!(
        text(&test_dir.dicta(&["show", "@", "--format", "github"]).stdout),
        lines
    );

    // The repository may begin above the folder in which dicta runs.
    let parent = test_dir.path().parent().expect("a parent");
    let mut command = test_dir.command(&["show", "@", "--format", "github"]);
    let above = command
        .env("GITHUB_WORKSPACE", parent)
        .output()
        .expect("runs");
    let folder = test_dir.path().file_name().expect("a name");
    let file = format!("::error file={}/r.yaml,line=3,", folder.to_string_lossy());
    assert!(
        text(&above.stdout).starts_with(&file),
        "{}",
        text(&above.stdout)
    );
}

#[test]
fn reason_of_rules_begins_with_a_clause_in_annotations_and_markdown() {
    let test_dir = TestDir::new();
    let criteria = "The answer has at most 0 sentences.";
    let eval = JUDGED.replace("The answer has at most 1 sentence.", criteria);
    test_dir.workspace(RULES, &eval);
    for format in ["github", "markdown"] {
        let run = test_dir.dicta(&["run", "-q", "--format", format]);
        let printed = text(&run.stdout);
        assert!(printed.contains("1. ✗ The answer has"), "{printed}");
        assert!(
            !printed.contains("rules, a checker and not a model"),
            "{printed}"
        );
    }
}

#[test]
fn check_reports_diagnostics_for_programs() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "",
        "  - { id: names, type: regexx, params: { pattern: a } }\n",
    );
    let check = test_dir.dicta(&["check", "--format", "github"]);
    assert_eq!(check.status.code(), Some(2));
    let lines = text(&check.stdout);
    assert!(
        lines.starts_with("::error file=r.yaml,line=3,col="),
        "{lines}"
    );
    let check = test_dir.dicta(&["check", "--format", "json"]);
    let document: Value = serde_json::from_slice(&check.stdout).expect("one document");
    let first = &document["diagnostics"][0];
    assert_eq!(
        (&first["severity"], &first["line"]),
        (&"error".into(), &3.into())
    );
    assert_eq!(document["summary"]["exit_code"], 2);
    assert_eq!(document["summary"]["errors"], 1);
    // A file that can't be read has no diagnostic, so the summary has the reason.
    let lines = rows(&test_dir.dicta(&["-C", "/", "check", "--format", "jsonl"]));
    let error = lines[0]["error"].as_str().expect("a message");
    assert!(error.contains("dicta.yaml"), "{error}");
}

#[test]
fn output_files_take_their_format_from_the_option_or_the_extension() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let run = test_dir.dicta(&[
        "run",
        "-q",
        "-o",
        "junit=results",
        "-o",
        "all.json",
        "-o",
        "md=./report",
        "-o",
        "all.txt",
    ]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let read = |name: &str| std::fs::read_to_string(test_dir.path().join(name)).expect(name);
    assert!(read("results").starts_with("<?xml"));
    let document: Value = serde_json::from_str(&read("all.json")).expect("one document");
    assert_eq!(document["results"].as_array().map(Vec::len), Some(2));
    assert!(read("report").starts_with("## dicta run "));
    // A file for people has the passes, too.
    assert!(
        read("all.txt").contains("✓ pass       one/r/names\n"),
        "{}",
        read("all.txt")
    );
    assert!(
        !text(&run.stdout).contains("one/r/names"),
        "{}",
        text(&run.stdout)
    );
    let refused = test_dir.dicta(&["run", "-o", "html=out.md"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("unknown format html; use one of human, json,"));
}

#[test]
fn demo_prints_failures_and_a_summary_that_fit_on_two_screens() {
    let test_dir = TestDir::new();
    let normal = test_dir.dicta(&["run", "--demo"]);
    let (out, err) = (text(&normal.stdout), text(&normal.stderr));
    let lines = out.lines().count() + err.lines().count();
    assert!(lines < 80, "{lines} lines: {err}{out}");
    assert!(
        out.contains("\njudge quick is `rules`, a built-in checker of clauses and not a model\n"),
        "{out}"
    );
    assert!(out.contains("✗ fail       beam-release/beamline/names-a-version  [label ✓]\n    no match in message 6\n"), "{out}");
    assert!(!out.contains("✓ pass  "), "{out}");
    assert!(
        !err.contains('▸') && err.contains("run ") && err.contains(" started"),
        "{err}"
    );

    let verbose = text(&test_dir.dicta(&["run", "--demo", "-v"]).stdout);
    assert!(
        verbose.contains("✓ pass       beam-release/beamline/opened-a-page\n"),
        "{verbose}"
    );
    assert!(
        verbose.contains("\nrubric tool-work on flaky-test: passed, 1.00\n"),
        "{verbose}"
    );

    let quiet = test_dir.dicta(&["run", "--demo", "-q"]);
    assert_eq!(text(&quiet.stderr), "");
    let quiet = text(&quiet.stdout);
    assert!(quiet.contains("no match in message 6"), "{quiet}");
    assert!(
        quiet.contains("\n✓ 57 pass   ✗ 22 fail") && !quiet.contains("\njudge quick: "),
        "{quiet}"
    );

    let both = test_dir.dicta(&["run", "--demo", "-q", "-v"]);
    assert_eq!(both.status.code(), Some(2), "one or the other");
}

#[test]
fn streamed_turns_and_results_never_share_a_block() {
    let test_dir = TestDir::new();
    let path = test_dir.path().join("both.txt");
    let file = File::create(&path).expect("a file");
    let mut command = test_dir.command(&["run", "--demo", "--stream", "-v"]);
    let status = command
        .stdout(file.try_clone().expect("the same file"))
        .stderr(file)
        .status();
    assert_eq!(status.expect("it runs").code(), Some(1));
    let written = std::fs::read_to_string(&path).expect("text");
    let (mut in_block, mut turns) = (false, 0);
    for line in written.lines() {
        if line.starts_with('▸') {
            in_block = true;
        } else if line.starts_with("  ") && !line.starts_with("    ") {
            assert!(in_block, "{line:?} has no heading in:\n{written}");
            turns += usize::from(line.starts_with("  · turn "));
        } else if !line.starts_with(' ') {
            in_block = false;
        }
    }
    assert!(turns > 40, "{turns} turns: {written}");
}

#[test]
fn fail_fast_cancels_the_other_cells_and_the_run_can_be_resumed() {
    let test_dir = TestDir::new();
    let is_resumed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_resumed);
    let server = WireServer::answering(Dialect::Openai, move |request| {
        if request.mentions("Which release?") {
            Reply::text(FAILS)
        } else if flag.load(Ordering::SeqCst) {
            Reply::text(PASSES)
        } else {
            // This cell ends only if dicta cancels it.
            Reply::text(PASSES).pause_before(0, &Pause::new())
        }
    });
    let free = "model: m, prices: { input: 0, output: 0 } }";
    test_dir.workspace(&judged_by(&server).replace("model: m }", free), POLITE);
    let run = test_dir.dicta(&["run", "--fail-fast", "--format", "jsonl"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let stderr_text = text(&run.stderr);
    assert!(
        stderr_text.contains("--fail-fast: a decision failed"),
        "{stderr_text}"
    );
    let lines = rows(&run);
    let summary = lines.last().expect("a summary");
    assert_eq!((&summary["fail"], &summary["pass"]), (&1.into(), &0.into()));
    assert_eq!(summary["interrupted"], true);
    // Every list names the status with the same word.
    for (command, shown) in [
        (&["runs"][..], "  cancelled "),
        (&["history"], " (cancelled)"),
        (&["show", "@"], " · CANCELLED"),
        (&["show", "@"], "\nended early: "),
    ] {
        let listed = test_dir.dicta(command);
        let listed = text(&listed.stdout);
        assert!(listed.contains(shown), "{command:?}: {listed}");
    }
    let states = rows(&test_dir.dicta(&["history", "--format", "jsonl"]));
    let run = &states[0]["runs"][0];
    assert_eq!(
        (&run["state"], &run["interrupted"]),
        (&"cancelled".into(), &true.into())
    );

    is_resumed.store(true, Ordering::SeqCst);
    let resumed = test_dir.dicta(&["run", "-q", "--resume", "@", "--format", "jsonl"]);
    let lines = rows(&resumed);
    let summary = lines.last().expect("a summary");
    assert_eq!((&summary["fail"], &summary["pass"]), (&1.into(), &1.into()));
    assert_eq!(
        (&summary["pending"], &summary["interrupted"]),
        (&0.into(), &false.into())
    );
}

#[test]
fn run_without_fail_fast_judges_everything() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "",
        "  - { id: never, type: contains, params: { patterns: [nothing] } }\n",
    );
    let run = test_dir.dicta(&["run", "--format", "jsonl"]);
    let lines = rows(&run);
    let summary = lines.last().expect("a summary");
    assert_eq!(
        (&summary["fail"], &summary["interrupted"]),
        (&2.into(), &false.into())
    );
    let notes = text(&run.stderr);
    assert!(notes.contains(" started\n"), "{notes}");
    assert!(
        notes.contains(" ended: 0 pass, 2 fail; 2 cells in "),
        "{notes}"
    );
}

#[test]
fn summary_of_an_import_counts_its_records_and_never_mixes_with_transcripts() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let run = test_dir.dicta(&["import", "t.jsonl", "-o", "all.jsonl", "--format", "json"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let summary: Value = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!(summary["type"], "import");
    assert_eq!(summary["transcripts"], 2);
    assert_eq!(summary["output"], "all.jsonl");
    let mixed = test_dir.dicta(&["import", "t.jsonl", "--format", "json"]);
    assert_eq!(mixed.status.code(), Some(2));
    assert_eq!(text(&mixed.stdout), "");
    assert!(
        text(&mixed.stderr).contains("need `-o FILE`"),
        "{}",
        text(&mixed.stderr)
    );
}

#[test]
fn annotation_has_visible_marks_for_hidden_characters_of_a_judge() {
    const HOSTILE: &str =
        r#"{"citations":[],"reasoning":"It is \u001b[31mrude\u202e.","passed":false,"score":0.1}"#;
    let test_dir = TestDir::new();
    let server = WireServer::answering(Dialect::Openai, |_| Reply::text(HOSTILE));
    let free = "model: m, prices: { input: 0, output: 0 } }";
    test_dir.workspace(&judged_by(&server).replace("model: m }", free), POLITE);
    let run = test_dir.dicta(&["run", "-q", "--format", "github", "-o", "github=a.txt"]);
    let file = std::fs::read_to_string(test_dir.path().join("a.txt")).expect("the file");
    for annotations in [text(&run.stdout), file] {
        assert!(annotations.contains("‹U+202E›"), "{annotations}");
        assert!(
            !annotations.contains(['\u{1b}', '\u{202e}']),
            "{annotations}"
        );
    }
}

#[test]
fn log_of_a_github_workflow_executes_no_text_of_a_judge() {
    const HOSTILE: &str = r#"{"citations":[],"reasoning":"It is rude.\n::error::owned\n  ::add-mask::a\nand ##[error]owned","passed":false,"score":0.1}"#;
    let test_dir = TestDir::new();
    let server = WireServer::answering(Dialect::Openai, |_| Reply::text(HOSTILE));
    let free = "model: m, prices: { input: 0, output: 0 } }";
    test_dir.workspace(&judged_by(&server).replace("model: m }", free), POLITE);
    let execute = |args: &[&str]| {
        let mut command = test_dir.command(args);
        command.env("GITHUB_ACTIONS", "true");
        let output = command.output().expect("the program runs");
        text(&output.stdout) + &text(&output.stderr)
    };
    let mut shown = 0;
    for args in [
        &["run", "-v"][..],
        &["run", "--refresh", "--stream"],
        &["show", "@"],
        &["show", "@", "one/r/polite"],
        &["replay", "@", "--print"],
        &["compare", "@2", "@"],
        &["runs"],
        &["check", "a\n::error::owned"],
        &["a\n::error::owned"],
    ] {
        let log = execute(args);
        shown += usize::from(log.contains("owned"));
        for line in log.lines() {
            assert!(!line.trim_start().starts_with("::"), "{args:?}: {log}");
            assert!(!line.contains("##["), "{args:?}: {log}");
        }
    }
    assert!(shown >= 7, "{shown}");
    // What dicta itself asks of GitHub still is a command.
    let annotations = execute(&["run", "-q", "--format", "github"]);
    assert!(annotations.starts_with("::error "), "{annotations}");
    // Elsewhere, the text is as the judge wrote it.
    let elsewhere = text(&test_dir.dicta(&["show", "@", "one/r/polite"]).stdout);
    assert!(elsewhere.contains("::error::owned"), "{elsewhere}");
}
