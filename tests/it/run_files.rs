//! `dicta run PATH…` and `-C DIR` through the built program: which files a run judges, and where paths begin.

use std::process::Output;

use crate::cli::{NAMES_A_RELEASE, TestDir, of_type, rows, text};

const SECOND: &str = "id: second\nevals:\n  - { id: says, type: min_length, params: { min: 1 } }\n";
const JUDGED: &str = "id: judged\njudge: rules\nevals:\n  - { id: e, type: llm_judge, params: { criteria: 'The answer mentions \"It\".' } }\n";
const LINE: &str = r#"{"id":"ID","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"It is 3.1"}]}"#;

/// A workspace with two rubrics and two transcript files.
fn workspace() -> TestDir {
    let test_dir = TestDir::new();
    test_dir.write(
        "w/dicta.yaml",
        "transcripts: [t/*.jsonl]\nrubrics: [rubrics/*.yaml]\nruns: runs\n",
    );
    test_dir.write(
        "w/rubrics/first.yaml",
        &format!("id: first one\nevals:\n{NAMES_A_RELEASE}"),
    );
    test_dir.write("w/rubrics/second.yaml", SECOND);
    for name in ["a", "b"] {
        test_dir.write(&format!("w/t/{name}.jsonl"), &LINE.replace("ID", name));
    }
    test_dir
}

/// Returns the names of the judged cells.
fn cells(output: &Output) -> Vec<String> {
    let all = rows(output);
    let results = of_type(&all, "result").into_iter();
    results
        .filter_map(|row| row["cell"].as_str().map(str::to_owned))
        .collect()
}

fn run(test_dir: &TestDir, args: &[&str]) -> Output {
    let all = [&["run", "-q", "--format", "jsonl"], args].concat();
    test_dir.dicta(&all)
}

fn refusal(test_dir: &TestDir, args: &[&str]) -> String {
    let refused = run(test_dir, args);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{args:?}: {why}");
    why
}

#[test]
fn named_files_limit_the_run() {
    let test_dir = workspace();
    let cases: [(&[&str], &[&str]); 5] = [
        (
            &["w"],
            &[
                "a/first one/names",
                "a/second/says",
                "b/first one/names",
                "b/second/says",
            ],
        ),
        (
            &["w/rubrics/second.yaml"],
            &["a/second/says", "b/second/says"],
        ),
        (&["w/t/b.jsonl"], &["b/first one/names", "b/second/says"]),
        (
            &["w/t/b.jsonl", "w/rubrics/first.yaml", "w"],
            &["b/first one/names"],
        ),
        (
            &[
                "w/rubrics/first.yaml",
                "w/t/../t/a.jsonl",
                "--where",
                "names",
            ],
            &["a/first one/names"],
        ),
    ];
    for (args, expected) in cases {
        let output = run(&test_dir, args);
        assert_eq!(
            cells(&output),
            expected,
            "{args:?}: {}",
            text(&output.stderr)
        );
        assert!(!text(&output.stderr).contains("is not among"));
    }
}

#[test]
fn recording_of_a_limited_run_shows_resumes_and_compares() {
    let test_dir = workspace();
    let judged = run(&test_dir, &["w/rubrics/first.yaml", "w/t/b.jsonl"]);
    assert_eq!(cells(&judged), ["b/first one/names"]);
    let show = test_dir.dicta(&["show", "@", "-w", "w", "--format", "jsonl"]);
    assert_eq!(cells(&show), ["b/first one/names"]);
    let resumed = run(&test_dir, &["w", "--resume", "@"]);
    assert_eq!(
        cells(&resumed),
        ["b/first one/names"],
        "{}",
        text(&resumed.stderr)
    );
    // A second run of the same revision makes no new state, so the runs are compared by name.
    let again = run(&test_dir, &["w/rubrics/first.yaml", "w/t/b.jsonl"]);
    let [first, second] = [&judged, &again].map(|output| {
        let rows = rows(output);
        let id = rows.last().expect("a summary")["run"].as_str();
        id.expect("an id").to_owned()
    });
    let compared = test_dir.dicta(&["compare", &first, &second, "-w", "w"]);
    let same = text(&compared.stdout);
    assert_eq!(
        compared.status.code(),
        Some(0),
        "{}",
        text(&compared.stderr)
    );
    assert!(
        !same.contains("rubrics/") && same.contains("0 removed, 1 unchanged"),
        "{same}"
    );
    let why = refusal(&test_dir, &["w/t/a.jsonl", "--resume", "@"]);
    assert!(
        why.contains("leave out the rubric and transcript files"),
        "{why}"
    );
}

#[test]
fn unlisted_files_take_part_with_a_note() {
    let test_dir = workspace();
    test_dir.write("w/drafts/third.yaml", &SECOND.replace("second", "third"));
    test_dir.write("elsewhere/c.jsonl", &LINE.replace("ID", "c"));
    let draft = run(&test_dir, &["w/drafts/third.yaml", "w/t/a.jsonl"]);
    assert_eq!(cells(&draft), ["a/third/says"], "{}", text(&draft.stderr));
    let note = text(&draft.stderr);
    assert!(
        note.contains("w/drafts/third.yaml is not among the `rubrics` of")
            && note.contains("it judges in this run only"),
        "{note}"
    );
    let resumed = run(&test_dir, &["w", "--resume", "@"]);
    assert_eq!(
        cells(&resumed),
        ["a/third/says"],
        "{}",
        text(&resumed.stderr)
    );
    // A transcript outside every workspace needs the folder of one, or a workspace here.
    let outside = run(&test_dir, &["w", "elsewhere/c.jsonl"]);
    assert_eq!(cells(&outside), ["c/first one/names", "c/second/says"]);
    assert!(text(&outside.stderr).contains("is not among the `transcripts` of"));
    let here = run(&test_dir, &["-C", "w", "../elsewhere/c.jsonl"]);
    assert_eq!(cells(&here), cells(&outside), "{}", text(&here.stderr));
    let why = refusal(&test_dir, &["elsewhere/c.jsonl"]);
    assert!(why.contains("no dicta.yaml here or above"), "{why}");
    assert!(
        why.contains("`dicta init DIR --from elsewhere/c.jsonl`"),
        "{why}"
    );
    // A rubric alone needs transcripts.
    test_dir.write("elsewhere/r.yaml", SECOND);
    for args in [["run", "elsewhere/r.yaml"], ["open", "elsewhere/r.yaml"]] {
        let refused = test_dir.dicta(&args);
        assert_eq!(refused.status.code(), Some(2));
        let why = text(&refused.stderr);
        assert!(
            why.contains("`dicta init DIR --from elsewhere/r.yaml TRANSCRIPTS`"),
            "{args:?}: {why}"
        );
    }
    let both = refusal(&test_dir, &["elsewhere/r.yaml", "elsewhere/c.jsonl"]);
    let command = "`dicta init DIR --from elsewhere/r.yaml elsewhere/c.jsonl`";
    assert!(both.contains(command), "{both}");
}

#[test]
fn wrong_paths_are_explained_and_judge_nothing() {
    let test_dir = workspace();
    test_dir.write(
        "v/dicta.yaml",
        "transcripts: [x.jsonl]\nrubrics: [r.yaml]\n",
    );
    test_dir.write("v/x.jsonl", &LINE.replace("ID", "x"));
    test_dir.write("v/r.yaml", SECOND);
    test_dir.write("w/copy.yaml", SECOND);
    let cases: [(&[&str], &str); 7] = [
        (&["w/t"], "is not a workspace but a folder inside"),
        (&["w", "v"], "a run judges one workspace"),
        (&["w/t/a.jsonl", "v/x.jsonl"], "are in different workspaces"),
        (&["w/t/none.jsonl"], "w/t/none.jsonl does not exist"),
        (&["w/copy.yaml"], "the rubric id `second` is used by"),
        (
            &["--demo", "w/t/a.jsonl"],
            "`--demo` selects the demo's workspace",
        ),
        // An input of the workspace cannot be an output, also if the run does not read it.
        (&["w/t/a.jsonl", "-o", "w/t/b.jsonl"], "w/t/b.jsonl"),
    ];
    for (args, expected) in cases {
        let why = refusal(&test_dir, args);
        assert!(why.contains(expected), "{args:?}: {why}");
    }
    assert!(!test_dir.path().join("w/runs").exists());
}

/// Every command with relative paths in its arguments, if it takes any.
const COMMANDS: &[&[&str]] = &[
    &[
        "run",
        "-q",
        "--format",
        "jsonl",
        "-o",
        "report.md",
        "t/a.jsonl",
    ],
    &["check"],
    &["check", "rubrics/first.yaml"],
    &["check", "t/a.jsonl"],
    &["check", "--examples"],
    &["check", "--connect"],
    &["run", "--dry-run", "rubrics/second.yaml"],
    &["robustness", "rules", "rubrics/judged.yaml", "--dry-run"],
    &["noise", "a/*", "--repeat", "2"],
    &["branch", "@", "a/r/e", "--at", "1.prompt"],
    &["variants", "variants.yaml", "--dry-run"],
    &["improve", "judged", "--judge", "rules", "--dry-run"],
    &["migrate", "--from", "rules", "--to", "rules"],
    &[
        "import",
        "t/a.jsonl",
        "-o",
        "native.jsonl",
        "--labels",
        "found.jsonl",
    ],
    &["map", "table.csv"],
    &["review", "--list", "--seed", "1"],
    &["open", "t/a.jsonl"],
    &["demo", "--reset"],
    &["init", "fresh"],
    &["trust", "."],
    &["runs"],
    &["runs", "-w", "."],
    &["label", "a/second/says", "pass"],
    &["labels", "pairs"],
    &["labels", "choose", "q1", "a"],
    &["labels", "prune", "--yes"],
    &["paths"],
    &["show", "@"],
    &["compare", "@", "@"],
    &["history"],
    &["agree"],
    &["export", "@", "-o", "page.html"],
    &["replay", "@", "--print", "--speed", "0"],
    &["prompt", "a/second/says"],
    &["judges"],
    &["tools"],
    &[
        "tool",
        "read_message",
        "{\"message\": 1}",
        "--transcript",
        "t/a.jsonl",
    ],
    &["eval-types"],
    &["schema"],
    &["themes"],
    &["keys"],
    &["completions", "bash"],
    &["man"],
];

/// Subcommands that need pairs of transcripts, which this workspace lacks.
const NEED_PAIRS: [&str; 2] = ["pairs", "choose"];
/// Commands that fail in this workspace or without a terminal.
const FAILING: [&str; 6] = ["open", "prompt", "variants", "improve", "migrate", "branch"];

#[test]
fn every_command_resolves_relative_paths_in_the_named_folder() {
    // The commands share a workspace, because a process costs time.
    let outcomes = |inside: bool| -> Vec<(Option<i32>, usize, Vec<String>)> {
        let test_dir = workspace();
        let folder = test_dir.path().join("w");
        test_dir.write("w/rubrics/judged.yaml", JUDGED);
        test_dir.write("w/table.csv", "id,question,answer\n1,Hi,Yes\n");
        let outcome = |args: &&[&str]| {
            let output = if inside {
                let mut command = test_dir.command(args);
                command.current_dir(&folder).output()
            } else {
                test_dir.command(&[&["-C", "w"], *args].concat()).output()
            };
            let output = output.expect("the program runs");
            let why = text(&output.stderr);
            let code = output.status.code();
            assert_eq!(
                code == Some(2),
                // The workspace has no pairs.
                FAILING.contains(&args[0])
                    || args.get(1).is_some_and(|one| NEED_PAIRS.contains(one)),
                "{args:?}: {why}"
            );
            let entries = std::fs::read_dir(&folder).expect("the workspace");
            let names = entries.map(|entry| entry.expect("a file").file_name());
            let mut files: Vec<String> = names
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            files.sort();
            (code, output.stdout.len().min(1), files)
        };
        let all = COMMANDS.iter().map(outcome).collect();
        let outside = std::fs::read_dir(test_dir.path()).expect("the folder");
        assert_eq!(outside.count(), 2, "commands write only into w and .data");
        all
    };
    let (there, here) = (outcomes(false), outcomes(true));
    for ((args, there), here) in COMMANDS.iter().zip(there).zip(here) {
        assert_eq!(there, here, "{args:?}");
    }
}

#[test]
fn every_command_is_tried_in_another_folder() {
    let help = text(&TestDir::new().dicta(&["help"]).stdout);
    let listed = help.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split_whitespace().next()?;
        // Options begin with a dash, and continued lines are indented further.
        (name.starts_with(|c: char| c.is_ascii_lowercase()) && !line.starts_with("   "))
            .then_some(name)
    });
    let listed: Vec<&str> = listed.filter(|name| *name != "help").collect();
    assert!(listed.len() > 15, "{help}");
    for name in listed {
        assert!(COMMANDS.iter().any(|args| args[0] == name), "{name}");
    }
}

#[test]
fn resume_of_the_demo_takes_no_recorded_sample() {
    let test_dir = TestDir::new();
    let run = test_dir.dicta(&["run", "--demo", "-q"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let resumed = test_dir.dicta(&["run", "--demo", "--resume", "@"]);
    let note = text(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(1), "{note}");
    assert!(note.contains("nothing is left to do"), "{note}");
    let sample = test_dir.dicta(&["run", "--demo", "--resume", "vote"]);
    let why = text(&sample.stderr);
    assert_eq!(sample.status.code(), Some(2), "{why}");
    assert!(why.contains("`dicta replay vote --demo` plays it"), "{why}");
}

#[test]
fn run_in_another_folder_is_resumed() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let run = test_dir.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    std::fs::rename(test_dir.path().join("runs"), test_dir.path().join("moved")).expect("moved");
    let mut moved = std::fs::read_dir(test_dir.path().join("moved")).expect("a folder");
    let run = moved.find_map(|entry| {
        let path = entry.expect("an entry").path();
        path.join("events.jsonl").is_file().then_some(path)
    });
    let run = run.expect("a run");
    let resumed = test_dir.dicta(&["run", "--resume", run.to_str().expect("UTF-8")]);
    let note = text(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(1), "{note}");
    assert!(note.contains("nothing is left to do"), "{note}");
}
