//! The sealed test part: no command's output depends on the answer of a sealed label until `dicta agree --unseal`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use regex::Regex;
use serde_json::{Value, json};

use crate::cli::{TestDir, rows, text};

const COUNT: usize = 16;
const SPLIT: &str =
    "judge: rules\nlabels: { path: labels.jsonl, split: { test: 0.5, by: group, seed: 1 } }\n";
const EVALS: &str = "  - { id: judged, type: llm_judge, repeat: 2, reference: code, params: { criteria: 'The answer mentions \"2.69\".' } }\n  - { id: code, type: contains, params: { patterns: [\"2.69\"] } }\n";

/// The commands of the test, in the order in which they run. `ID` is a visible and `SEALED` a sealed decision.
const COVERED: &[&[&str]] = &[
    &["check"],
    &["check", "--strict"],
    &["check", "--format", "json"],
    &["agree"],
    &["agree", "-v"],
    &["agree", "--format", "json"],
    &["agree", "--format", "markdown"],
    &[
        "agree",
        "--population",
        "transcript:t0*",
        "--format",
        "jsonl",
    ],
    &["agree", "--fail-on", "tpr-lower-below=0.2,labels-below=3"],
    &["history"],
    &["history", "--format", "json"],
    &["compare", "@2", "@"],
    &["compare", "@2", "@", "--format", "json"],
    &["compare", "@2", "@", "--format", "markdown"],
    &["show", "@"],
    &["show", "@", "--format", "jsonl"],
    &["show", "@", "SEALED"],
    &["show", "@", "--thresholds"],
    &["export", "@", "-o", "out/page.html"],
    &["export", "@2", "-o", "out/page.csv"],
    &["show", "@", "--format", "markdown"],
    &["show", "@", "--format", "junit"],
    &["show", "@", "--format", "csv"],
    &["show", "@", "--format", "github"],
    &["compare", "@2", "@", "--format", "html"],
    &["compare", "@2", "@", "--format", "junit"],
    &["history", "--format", "markdown"],
    &["replay", "@", "--print", "--speed", "0"],
    &["runs"],
    &["prompt", "SEALED"],
    &["run", "--dry-run", "--where", "label:pass"],
    &["run", "--dry-run", "--where", "label:any,confirm"],
    &["run", "--dry-run", "--where", "!label:disagrees"],
    &[
        "label", "--queue", "random", "--eval", "judged", "--size", "3", "--seed", "1",
    ],
    &[
        "label",
        "--queue",
        "stratified",
        "--eval",
        "judged",
        "--size",
        "3",
        "--seed",
        "2",
    ],
    &["label", "--queue", "disagreements", "--eval", "judged"],
    &["label", "--queue", "unsure", "--eval", "judged"],
    &["label", "--queue", "noise", "--eval", "judged"],
    &["label", "plan", "--eval", "judged"],
    &["label", "SEALED", "pass"],
    &["label", "VISIBLE", "fail"],
    &["labels", "drift"],
    &[
        "labels",
        "confirm",
        "--all",
        "--without-digest",
        "--dry-run",
    ],
    &["labels", "confirm", "--all"],
    &["labels", "raters"],
    &["labels", "merge", "other.jsonl"],
    &["labels", "close", "SEALED", "rubric"],
    &["labels", "close", "VISIBLE", "rubric"],
    &["labels", "rename", "r/judged", "r/code"],
    &["labels", "rename", "r/code", "r/judged"],
    &["labels", "prune", "--yes"],
    &["run", "--format", "human"],
    &["run", "--format", "json"],
    &["run", "--format", "jsonl"],
    &["run", "--format", "csv"],
    &["run", "--format", "markdown"],
    &["run", "--format", "junit"],
    &["run", "--format", "github"],
    &["run", "-q", "--where", "judged", "-o", "out/report.md"],
    &["compare", "@", "@"],
    &["robustness", "rules", "--dry-run"],
    &["variants", "v.yaml", "--dry-run"],
    &["improve", "judged", "--judge", "other", "--dry-run"],
    &[
        "migrate", "--from", "rules", "--to", "other", "--format", "json",
    ],
    &[
        "import",
        "t.jsonl",
        "-o",
        "out/native.jsonl",
        "--labels",
        "out/found.jsonl",
    ],
];

/// The commands that read no label.
const WITHOUT_LABELS: &[&str] = &[
    "open",
    "demo",
    "init",
    "trust",
    "map",
    "paths",
    "eval-types",
    "judges",
    "tools",
    "tool",
    "schema",
    "keys",
    "themes",
    // It repeats calls, and its figures have no label.
    "noise",
    // It prints the verdict of a judge trace.
    "branch",
    // It reads notes and answers about failure modes.
    "review",
    "completions",
    "man",
    "help",
];

/// The subcommands that read no label.
const SUBCOMMANDS_WITHOUT_LABELS: &[&str] = &[
    "runs pin",
    "runs unpin",
    "runs prune",
    // It reads choices between transcripts, which a split does not seal.
    "labels pairs",
    "labels choose",
    "label help",
    "labels help",
    "runs help",
];

/// Returns a workspace with two states: the rubric changed between two runs.
fn workspace() -> TestDir {
    let test_dir = TestDir::new();
    test_dir.workspace(SPLIT, &EVALS.replace("2.69", "2.70"));
    let lines = (0..COUNT).map(|at| {
        let answer = if at % 3 == 0 { "Use 2.69." } else { "Use 2.70." };
        json!({"id": format!("t{at:02}"), "metadata": {"group": format!("g{}", at / 2)}, "messages": [
            {"role": "user", "content": "Which?"},
            {"role": "assistant", "content": answer},
        ]})
        .to_string()
            + "\n"
    });
    test_dir.write("t.jsonl", &lines.collect::<String>());
    test_dir.write("labels.jsonl", "");
    test_dir.write("v.yaml", "eval: judged\nvariants: [{ name: base }]\n");
    let first = test_dir.dicta(&["run", "-q"]);
    assert_eq!(first.status.code(), Some(1), "{}", text(&first.stderr));
    test_dir.write("r.yaml", &format!("id: r\nevals:\n{EVALS}"));
    let second = test_dir.dicta(&["run", "-q"]);
    assert_eq!(second.status.code(), Some(1), "{}", text(&second.stderr));
    test_dir
}

/// Returns the ids of the sealed transcripts.
fn sealed(test_dir: &TestDir) -> BTreeSet<String> {
    let parts = std::fs::read_to_string(test_dir.path().join("labels.split.jsonl"));
    let parts = parts.expect("dicta stored the parts");
    let lines = parts
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let test = lines.filter(|line| line["part"] == "test");
    test.filter_map(|line| line["transcript"].as_str().map(str::to_owned))
        .collect()
}

/// Returns random labels: of two people, some without a rubric, some for an older question, some of no transcript.
/// `answer` may replace the answer of a label.
fn labels(random: &mut fastrand::Rng, answer: &dyn Fn(&str, Value) -> Value) -> String {
    let mut out = String::new();
    for by in ["ann", "bo"] {
        for at in 0..COUNT + 2 {
            let id = format!("t{at:02}");
            let passed = answer(&id, json!(random.bool()));
            let mut label = json!({"transcript": id, "eval": "judged", "passed": passed, "by": by});
            if passed.is_boolean() {
                label["note"] = json!(format!("a note about {passed}"));
                label["score"] = json!(if passed == true { 0.9 } else { 0.1 });
            }
            if random.bool() {
                label["rubric"] = json!("r");
            }
            if random.u8(0..4) == 0 {
                label["question_digest"] = json!("0123456789abcdef");
            }
            if random.u8(0..3) > 0 {
                let _infallible = writeln!(out, "{label}");
            }
        }
    }
    out
}

/// Copies a folder.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder");
    // Private folders stay private.
    let mode = std::fs::metadata(from).expect("a folder").permissions();
    std::fs::set_permissions(to, mode).expect("set");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Replaces what differs between two equal runs: names of runs, times and durations.
fn normalize(output: &str, test_dir: &TestDir) -> String {
    let mut text = output.to_owned();
    for run in std::fs::read_dir(test_dir.path().join("runs")).expect("runs") {
        let name = run
            .expect("a run")
            .file_name()
            .to_string_lossy()
            .into_owned();
        let letters = name.rsplit('-').next().unwrap_or_default();
        text = text.replace(&name, "RUN");
        let word = Regex::new(&format!(r"\b{letters}\b")).expect("a pattern");
        text = word.replace_all(&text, "LETTERS").into_owned();
    }
    for (pattern, with) in [
        (
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?",
            "TIME",
        ),
        (r"\b\d\d:\d\d(:\d\d)?\b", "TIME"),
        (r"\d+(\.\d+)?\s?(ms|s|min)\b", "DURATION"),
        (
            r#""(ms|\w+_ms|seconds|elapsed|at|time)":\s*[0-9.]+"#,
            "DURATION",
        ),
        (r#"(time|timestamp)="[^"]*""#, "DURATION"),
        (r"\b\d+(\.\d+)? ?(B|kB|KB|MB|KiB|MiB)\b", "SIZE"),
        (r"(just now|\d+ (second|minute)s? ago)", "TIME"),
    ] {
        let pattern = Regex::new(pattern).expect("a pattern");
        text = pattern.replace_all(&text, with).into_owned();
    }
    text
}

/// Runs all covered commands. Returns each with its exit code and outputs, also the files that it wrote to `out`.
fn outputs(test_dir: &TestDir, visible: &str, hidden: &str) -> Vec<String> {
    let outcome = |args: &&[&str]| {
        let _none = std::fs::remove_dir_all(test_dir.path().join("out"));
        std::fs::create_dir_all(test_dir.path().join("out")).expect("a folder");
        let args: Vec<&str> = args
            .iter()
            .map(|arg| match *arg {
                "SEALED" => hidden,
                "VISIBLE" => visible,
                other => other,
            })
            .collect();
        let output = test_dir.dicta(&args);
        let mut all = format!(
            "{args:?} {:?}\n{}\n{}",
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr)
        );
        assert!(
            !all.contains("unexpected argument") && !all.contains("invalid value"),
            "{all}"
        );
        let written = std::fs::read_dir(test_dir.path().join("out")).expect("a folder");
        for file in written {
            all += &std::fs::read_to_string(file.expect("a file").path()).expect("text");
        }
        normalize(&all, test_dir)
    };
    COVERED.iter().map(outcome).collect()
}

#[test]
fn no_output_depends_on_the_answer_of_a_sealed_label() {
    let test_dir = workspace();
    let sealed = sealed(&test_dir);
    assert!(sealed.len() > 2 && sealed.len() < COUNT - 2, "{sealed:?}");
    let name = |id: &str| format!("{id}/r/judged");
    let hidden = name(sealed.first().expect("one"));
    let ids = (0..COUNT).map(|at| format!("t{at:02}"));
    let visible = name(&ids.clone().find(|id| !sealed.contains(id)).expect("one"));
    let saved = TestDir::new();
    copy(test_dir.path(), saved.path());
    let seed = 18;
    let run = |answer: &dyn Fn(&str, Value) -> Value| {
        std::fs::remove_dir_all(test_dir.path()).expect("removed");
        copy(saved.path(), test_dir.path());
        let mut random = fastrand::Rng::with_seed(seed);
        test_dir.write("labels.jsonl", &labels(&mut random, answer));
        test_dir.write("other.jsonl", &labels(&mut random, answer));
        outputs(&test_dir, &visible, &hidden)
    };
    // Transcripts that do not exist are sealed, too, or visible by their own id.
    let is_sealed = |id: &str| sealed.contains(id);
    let written = run(&|_, passed| passed);
    let flipped = run(&|id, passed| {
        if is_sealed(id) {
            json!(passed != true)
        } else {
            passed
        }
    });
    let removed = run(&|id, passed| if is_sealed(id) { Value::Null } else { passed });
    for ((written, flipped), removed) in written.iter().zip(&flipped).zip(&removed) {
        assert_eq!(written, flipped);
        assert_eq!(written, removed);
    }
    // The comparison could not fail if no command showed a label.
    let visible_flipped = run(&|id, passed| {
        if is_sealed(id) {
            passed
        } else {
            json!(passed != true)
        }
    });
    let differing = written.iter().zip(&visible_flipped);
    let differing = differing.filter(|(one, other)| one != other).count();
    assert!(differing > 10, "{differing} commands show labels");
}

/// Returns the names in a list of commands: two spaces, then a word in lower case.
fn listed(help: &str) -> Vec<&str> {
    let names = help.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split_whitespace().next()?;
        let is_command = name.starts_with(|c: char| c.is_ascii_lowercase());
        (is_command && !line.starts_with("   ")).then_some(name)
    });
    names.collect()
}

#[test]
fn every_command_is_covered_or_reads_no_label() {
    let test_dir = TestDir::new();
    let help = text(&test_dir.dicta(&["help"]).stdout);
    let commands = listed(&help);
    assert!(commands.len() > 15, "{help}");
    for name in commands {
        let is_covered = COVERED.iter().any(|args| args[0] == name);
        assert!(
            is_covered || WITHOUT_LABELS.contains(&name),
            "add `{name}` to COVERED of this test, or to WITHOUT_LABELS"
        );
    }
    for parent in ["label", "labels", "runs"] {
        let help = text(&test_dir.dicta(&[parent, "--help"]).stdout);
        let (_, subcommands) = help.split_once("Commands:\n").expect("subcommands");
        let subcommands = subcommands.split("\n\n").next().unwrap_or_default();
        for name in listed(subcommands) {
            let is_covered = COVERED.iter().any(|args| args.starts_with(&[parent, name]));
            let full = format!("{parent} {name}");
            assert!(
                is_covered || SUBCOMMANDS_WITHOUT_LABELS.contains(&&*full),
                "add `{full}` to COVERED of this test, or to SUBCOMMANDS_WITHOUT_LABELS"
            );
        }
    }
}

#[test]
fn unsealing_measures_the_test_labels_and_is_recorded() {
    let test_dir = workspace();
    let sealed = sealed(&test_dir);
    let drawn = test_dir.dicta(&[
        "label", "--queue", "random", "--eval", "judged", "--size", "16",
    ]);
    assert_eq!(
        text(&drawn.stdout).lines().count(),
        COUNT,
        "{}",
        text(&drawn.stderr)
    );
    for name in text(&drawn.stdout).lines() {
        let output = test_dir.dicta(&["label", name, "pass"]);
        let id = name.split('/').next().expect("an id");
        let word = if sealed.contains(id) {
            "sealed"
        } else {
            "pass"
        };
        assert!(
            text(&output.stdout).contains(&format!(": {word} (")),
            "{}",
            text(&output.stdout)
        );
    }
    let figures = |args: &[&str]| {
        let output = test_dir.dicta(&[&["agree", "--format", "jsonl"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        rows(&output)
    };
    let before = figures(&[]);
    let visible = (COUNT - sealed.len()) as u64;
    assert_eq!(before[0]["labels"], visible);
    assert_eq!(before[0]["sealed"], sealed.len());
    assert_eq!(before[0]["missing_labels"], 0);
    assert!(before.iter().all(|row| row["type"] != "unsealing"));
    let unsealed = figures(&["--unseal"]);
    assert_eq!(unsealed[0]["labels"], sealed.len());
    assert_eq!(unsealed[0]["missing_labels"], 0);
    // The look is shown from then on, and the labels stay sealed.
    let after = figures(&[]);
    assert_eq!(after[0], before[0]);
    let look = after.last().expect("a row");
    assert_eq!(look["type"], "unsealing");
    assert_eq!(look["labels"], sealed.len());
    assert_eq!(look["figures"][0]["labels"], sealed.len());
    let human = text(&test_dir.dicta(&["agree"]).stdout);
    assert!(human.contains("were unsealed once"), "{human}");
}

#[test]
fn unsealing_needs_a_split_and_a_sealed_label() {
    let test_dir = workspace();
    let refused = test_dir.dicta(&["agree", "--unseal"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("nothing to unseal"),
        "{}",
        text(&refused.stderr)
    );
    test_dir.workspace("judge: rules\n", EVALS);
    let refused = test_dir.dicta(&["agree", "--unseal"]);
    assert!(
        text(&refused.stderr).contains("has no split"),
        "{}",
        text(&refused.stderr)
    );
    assert!(!test_dir.path().join("labels.unsealings.jsonl").exists());
}

#[test]
fn wrong_split_is_refused_with_its_place() {
    let test_dir = TestDir::new();
    for (split, problem) in [
        ("{ tset: 0.3 }", "unknown key `tset`; did you mean `test`?"),
        ("{ test: 3 }", "test must be a share between 0 and 1"),
        ("{ seed: 1 }", "split needs `test`"),
        ("{ test: 0.3, by: tag }", "by must be `group`"),
        (
            "{ train: 0.5, dev: 0.2, test: 0.4 }",
            "must have the sum 1 (got 1.100)",
        ),
        ("0.3", "split is a mapping, such as"),
    ] {
        let labels = format!("labels: {{ path: labels.jsonl, split: {split} }}\n");
        test_dir.workspace(&labels, EVALS);
        let output = test_dir.dicta(&["check", "--format", "human"]);
        let why = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{split}: {why}");
        assert!(
            why.contains(problem) && why.contains("dicta.yaml:4:"),
            "{split}: {why}"
        );
    }
    for split in [
        "{ train: 0.2, dev: 0.4, test: 0.4, by: group, seed: 1 }",
        "{ test: 0.3 }",
    ] {
        let labels = format!("judge: rules\nlabels: {{ path: labels.jsonl, split: {split} }}\n");
        test_dir.workspace(&labels, EVALS);
        let output = test_dir.dicta(&["check"]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{split}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn reference_that_is_no_check_is_refused_with_its_place() {
    let test_dir = TestDir::new();
    for (name, problem) in [
        (
            "cdoe",
            "is not an eval of this rubric; did you mean `code`?",
        ),
        ("judged", "is `judged` itself"),
        ("other", "has a judge"),
    ] {
        let evals = EVALS.replace("reference: code", &format!("reference: {name}"))
            + "  - { id: other, type: llm_judge, params: { criteria: 'The answer mentions \"x\".' } }\n";
        test_dir.workspace("judge: rules\n", &evals);
        let output = test_dir.dicta(&["check"]);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{why}");
        assert!(why.contains(problem) && why.contains("r.yaml:3:"), "{why}");
    }
}

#[test]
fn reference_verdicts_are_labels_in_their_own_row() {
    let test_dir = workspace();
    let output = test_dir.dicta(&["agree", "--format", "jsonl"]);
    let all = rows(&output);
    let row = all.iter().find(|row| row["type"] == "reference_agreement");
    let row = row.expect("the row of the reference");
    assert_eq!(
        (&row["eval"], &row["reference"]),
        (&json!("judged"), &json!("code"))
    );
    assert_eq!(row["agreement"]["labels"], COUNT);
    assert_eq!(row["agreement"]["value"], 1.0);
    assert!(
        all.iter()
            .any(|row| row["type"] == "agreement" && row["labels"] == 0)
    );
}
