//! No output replaces a file that dicta reads, and no failure loses an old output.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::cli::{NAMES_A_RELEASE, TestDir, rows, text};

const LABELS: &str = "{\"transcript\":\"one\",\"eval\":\"names\",\"passed\":true}\n";
const TOOLS: &str = "kind: source\nname: db\ntype: sqlite\ndatabase: facts.db\n";

/// A workspace with a file of each kind that dicta reads.
fn test_dir() -> TestDir {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "labels: labels.jsonl\ntools: [tools.yaml]\njudges:\n  m: { provider: openai, model: m, api_key_file: key.txt }\n",
        NAMES_A_RELEASE,
    );
    test_dir.write("labels.jsonl", LABELS);
    test_dir.write("tools.yaml", TOOLS);
    test_dir.write("facts.db", "");
    let key = test_dir.write("key.txt", "sk-1\n");
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).expect("mode");
    test_dir
}

fn list(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("entries");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn run_output_never_replaces_a_file_that_dicta_reads() {
    let test_dir = test_dir();
    let recorded = test_dir.dicta(&["run", "-q"]);
    assert_eq!(
        recorded.status.code(),
        Some(1),
        "{}",
        text(&recorded.stderr)
    );
    let run = list(&test_dir.path().join("runs")).remove(0);
    for input in [
        "t.jsonl",
        "labels.jsonl",
        "dicta.yaml",
        "r.yaml",
        "tools.yaml",
        "facts.db",
        "key.txt",
    ] {
        let name = input.replace('.', "-");
        // The extension decides the format, so the input gets names that dicta accepts.
        symlink(input, test_dir.path().join(format!("soft-{name}.jsonl"))).expect("linked");
        fs::hard_link(
            test_dir.path().join(input),
            test_dir.path().join(format!("hard-{name}.md")),
        )
        .expect("linked");
        let before = fs::read(test_dir.path().join(input)).expect("read");
        for output in [format!("soft-{name}.jsonl"), format!("hard-{name}.md")] {
            let refused = test_dir.dicta(&["run", "-o", &output]);
            let stderr_text = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{output}: {stderr_text}");
            assert!(
                stderr_text.contains("which dicta reads"),
                "{output}: {stderr_text}"
            );
            let after = fs::read(test_dir.path().join(input)).expect("read");
            assert_eq!(after, before, "{output}");
        }
    }
    for (output, why) in [
        ("t.jsonl".to_owned(), "which dicta reads"),
        (
            format!("runs/{run}/events.jsonl"),
            "belongs to a recorded run",
        ),
        (
            format!("runs/{run}/blobs/new.txt"),
            "belongs to a recorded run",
        ),
    ] {
        let refused = test_dir.dicta(&["run", "-o", &output]);
        let stderr_text = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{output}: {stderr_text}");
        assert!(stderr_text.contains(why), "{output}: {stderr_text}");
    }
    let twice = test_dir.dicta(&["run", "-o", "a.md", "-o", "./a.md"]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(
        text(&twice.stderr).contains("another option names the same file"),
        "{}",
        text(&twice.stderr)
    );
    assert_eq!(
        list(&test_dir.path().join("runs")),
        [run],
        "no run was started"
    );
}

/// A certificate of an authority that only this test uses.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBLjCB4aADAgECAhQotaMXCqjmmJ3mPJFmbVXoOFDd3zAFBgMrZXAwDDEKMAgG
A1UEAwwBeDAgFw0yNjExMjkwMzQwNTJaGA8yMTI2MTEwNTAzNDA1MlowDDEKMAgG
A1UEAwwBeDAqMAUGAytlcAMhAMlHewNJmaBDE60JOOQZShvcfYUK9T7C7x8p6uaw
68pPo1MwUTAdBgNVHQ4EFgQUApaFIrrPKqrGF3CAoS7oqAsGq0QwHwYDVR0jBBgw
FoAUApaFIrrPKqrGF3CAoS7oqAsGq0QwDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD
QQB+k8MyzAKE4YtmDoAZW2rAGBdTz75gHYYkMuGboarmktYVIyVAZlyvdjJXdtzl
ep1kdNzWVxx5ND0wAYvhTlkC
-----END CERTIFICATE-----
";

#[test]
fn run_output_replaces_no_certificate_program_log_of_a_database_or_second_file_of_labels() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "labels: [labels.jsonl, sheet.csv]\nallow_scripts: true\ntools: [tools.yaml]\njudges:\n  m: { provider: openai, model: m, api_key_env: null, base_url: \"http://127.0.0.1:1/v1\", tools: [{ fetch_url: { ca_file: fetch.pem } }] }\n",
        "  - { id: checked, type: script, params: { command: [./check.bin] } }\n",
    );
    test_dir.write("labels.jsonl", "");
    test_dir.write("sheet.csv", "transcript,eval,verdict\none,checked,pass\n");
    test_dir.write("fetch.pem", AUTHORITY);
    test_dir.write("api.pem", AUTHORITY);
    test_dir.write(
        "tools.yaml",
        "sources:\n  api: { kind: http, baseUrl: \"https://api.example.com\", caFile: api.pem }\n  shop: { kind: sqlite, database: shop.db }\n",
    );
    test_dir.write("shop.db", "");
    test_dir.write("shop.db-wal", "changes that are not in the file yet");
    // A program that is not a text is not kept in the recording.
    let program = test_dir.path().join("check.bin");
    fs::write(&program, b"\x7fELF\xff\xfe").expect("written");
    for input in [
        "sheet.csv",
        "fetch.pem",
        "api.pem",
        "check.bin",
        "shop.db-wal",
    ] {
        let before = fs::read(test_dir.path().join(input)).expect("read");
        let refused = test_dir.dicta(&["run", "-q", "-o", &format!("json={input}")]);
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{input}: {why}");
        assert!(
            why.contains(&format!("{input}, which dicta reads")),
            "{input}: {why}"
        );
        let after = fs::read(test_dir.path().join(input)).expect("read");
        assert_eq!(after, before, "{input}");
    }
}

#[test]
fn run_output_replaces_no_file_that_a_reader_opens_next_to_a_transcript_file() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    test_dir.write(
        "dicta.yaml",
        "transcripts: [bench/model_answer/m.jsonl, goose.db]\nrubrics: [r.yaml]\nruns: runs\n",
    );
    test_dir.write(
        "bench/model_answer/m.jsonl",
        "{\"question_id\":1,\"answer_id\":\"x\",\"model_id\":\"m\",\"choices\":[{\"index\":0,\"turns\":[\"2.69\"]}],\"tstamp\":1.0}\n",
    );
    test_dir.write(
        "bench/question.jsonl",
        "{\"question_id\":1,\"category\":\"w\",\"turns\":[\"which?\"]}\n",
    );
    test_dir.write("bench/model_judgment/g_single.jsonl", "");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sqlite/goose.db");
    fs::copy(fixture, test_dir.path().join("goose.db")).expect("copied");
    test_dir.write("goose.db-wal", "");
    for input in [
        "bench/question.jsonl",
        "bench/model_judgment/g_single.jsonl",
        "goose.db-wal",
    ] {
        let before = fs::read(test_dir.path().join(input)).expect("read");
        let option = format!("json={input}");
        for args in [
            vec!["run", "-q", "-o", &*option],
            vec![
                "run",
                "-q",
                "bench/model_answer/m.jsonl",
                "goose.db",
                "-o",
                &*option,
            ],
            vec![
                "import",
                "bench/model_answer/m.jsonl",
                "goose.db",
                "-o",
                input,
            ],
        ] {
            let refused = test_dir.dicta(&args);
            let why = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{args:?}: {why}");
            assert!(
                why.contains(&format!("{input}, which dicta reads")),
                "{args:?}: {why}"
            );
            let after = fs::read(test_dir.path().join(input)).expect("read");
            assert_eq!(after, before, "{args:?}");
        }
    }
}

/// The files that dicta keeps next to the labels and for a review.
const KEPT: [&str; 8] = [
    "notes.jsonl",
    "modes.yaml",
    "notes.draws.jsonl",
    "notes.suggestions.jsonl",
    "labels.draws.jsonl",
    "labels.split.jsonl",
    "labels.proposals.jsonl",
    "labels.unsealings.jsonl",
];

#[test]
fn no_output_replaces_a_file_that_dicta_keeps_for_labels_and_reviews() {
    let test_dir = test_dir();
    assert_eq!(test_dir.dicta(&["run", "-q"]).status.code(), Some(1));
    for kept in KEPT {
        let old = if kept == "modes.yaml" { "[]\n" } else { "" };
        let output = format!("jsonl={kept}");
        for exists in [false, true] {
            if exists {
                test_dir.write(kept, old);
            }
            for args in [
                &["run", "-q", "-o", &output][..],
                &["export", "@", "--format", "csv", "-o", kept],
                &["export", "@", "--format", "bundle", "-o", kept],
                &["import", "t.jsonl", "-o", kept],
            ] {
                let refused = test_dir.dicta(args);
                let why = text(&refused.stderr);
                assert_eq!(refused.status.code(), Some(2), "{args:?}: {why}");
                assert!(why.contains("which dicta reads"), "{args:?}: {why}");
                let now = fs::read_to_string(test_dir.path().join(kept)).ok();
                assert_eq!(now.as_deref(), exists.then_some(old), "{args:?}");
            }
        }
        let labels = ["import", "t.jsonl", "-o", "x.jsonl", "--labels", kept];
        let refused = test_dir.dicta(&labels);
        assert_eq!(refused.status.code(), Some(2), "{kept}");
    }
}

/// Returns the files in a folder and below it, as paths relative to `root`.
fn list_files_below(root: &Path, folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    for name in list(&root.join(folder)) {
        let path = format!("{folder}/{name}");
        if root.join(&path).is_dir() {
            files.extend(list_files_below(root, &path));
        } else {
            files.push(path);
        }
    }
    files
}

#[test]
fn no_output_replaces_a_file_that_dicta_keeps_for_itself() {
    let test_dir = test_dir();
    let root = test_dir.path();
    // Two workspaces, so that the data directory has the runs of another one.
    test_dir.write(
        "other/dicta.yaml",
        "transcripts: [../t.jsonl]\nrubrics: [../r.yaml]\n",
    );
    for args in [
        &["run", "-q"][..],
        &["history", "--baseline", "@"],
        &["trust", "."],
        &["run", "-q", "other"],
        &["history", "--baseline", "@", "-w", "other"],
    ] {
        let done = test_dir.dicta(args);
        let code = done.status.code();
        assert!(
            matches!(code, Some(0 | 1)),
            "{args:?}: {}",
            text(&done.stderr)
        );
    }
    for kept in [
        "copied-abcd.txt",
        "edit-12.json",
        "screen.json",
        "review-undo/ab.jsonl",
    ] {
        test_dir.write(&format!(".data/{kept}"), "kept");
    }
    let mut owned = list_files_below(root, ".data");
    owned.extend(list_files_below(root, "runs"));
    for name in ["trust.json", "runs/.baselines.json"] {
        assert!(
            owned.iter().any(|path| path.ends_with(name)),
            "{name}: {owned:?}"
        );
    }
    assert!(
        owned
            .iter()
            .filter(|path| path.contains(".history-"))
            .count()
            >= 2,
        "{owned:?}"
    );
    // The name of a file that does not exist yet is refused, too.
    let missing = ".data/screen.lock";
    assert!(!root.join(missing).exists());
    owned.push(missing.to_owned());
    symlink(root.join(".data/trust.json"), root.join("soft.csv")).expect("linked");
    fs::hard_link(root.join(".data/trust.json"), root.join("hard.csv")).expect("linked");
    owned.extend(["soft.csv".to_owned(), "hard.csv".to_owned()]);
    for path in owned {
        let before = fs::read(root.join(&path)).ok();
        let output = format!("jsonl={path}");
        for args in [
            &["run", "-q", "-o", &output][..],
            &["export", "@", "--format", "csv", "-o", &path],
            &["import", "t.jsonl", "-o", &path],
        ] {
            let refused = test_dir.dicta(args);
            let why = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{args:?}: {why}");
            assert!(
                why.contains("which dicta reads") || why.contains("belongs to a recorded run"),
                "{args:?}: {why}"
            );
            assert_eq!(fs::read(root.join(&path)).ok(), before, "{args:?}");
        }
    }
}

#[test]
fn import_replaces_no_notes_about_files_without_a_workspace() {
    let test_dir = TestDir::new();
    test_dir.write(
        "chats.jsonl",
        "{\"id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n",
    );
    test_dir.write("chats-rubrics/notes.jsonl", "");
    let output = "chats-rubrics/notes.jsonl";
    let refused = test_dir.dicta(&["import", "chats.jsonl", "-o", output]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

#[test]
fn missing_labels_file_is_not_an_output_of_a_run() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let refused = test_dir.dicta(&["run", "-o", "labels.jsonl"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(!test_dir.path().join("labels.jsonl").exists());
}

#[test]
fn run_without_results_keeps_the_old_report() {
    let test_dir = test_dir();
    for report in ["rep.md", "rep.xml", "rep.jsonl", "rep.txt"] {
        let path = test_dir.write(report, "the old report");
        for args in [
            ["run", "--judge", "nosuch", "-o", report],
            ["run", "--where", "transcript:none", "-o", report],
        ] {
            let failed = test_dir.dicta(&args);
            assert_eq!(
                failed.status.code(),
                Some(2),
                "{args:?}: {}",
                text(&failed.stderr)
            );
            let kept = fs::read_to_string(&path).expect("read");
            assert_eq!(kept, "the old report", "{args:?}");
        }
    }
    let left: Vec<String> = list(test_dir.path());
    assert!(!left.iter().any(|name| name.contains(".tmp")), "{left:?}");
}

#[test]
fn report_is_replaced_through_its_link_and_keeps_its_mode() {
    let test_dir = test_dir();
    for report in ["rep.md", "rep.xml", "rep.jsonl", "rep.txt"] {
        let real = test_dir.write(&format!("reports/{report}"), "the old report");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("mode");
        symlink(format!("reports/{report}"), test_dir.path().join(report)).expect("linked");
        let run = test_dir.dicta(&["run", "-q", "-o", report]);
        assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
        assert!(test_dir.path().join(report).is_symlink());
        let new = fs::read_to_string(&real).expect("read");
        assert!(
            new.contains("two/r/names") || new.contains("names"),
            "{new}"
        );
        assert!(!new.contains("the old report"), "{new}");
        let mode = fs::metadata(&real).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
    let mut reports = list(&test_dir.path().join("reports"));
    reports.sort();
    assert_eq!(reports, ["rep.jsonl", "rep.md", "rep.txt", "rep.xml"]);
}

fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo ran").success());
}

#[test]
fn outputs_reach_pipes_and_standard_output() {
    let test_dir = test_dir();
    let pipe = test_dir.path().join("pipe.jsonl");
    make_pipe(&pipe);
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut lines = String::new();
            fs::File::open(pipe)
                .and_then(|mut file| file.read_to_string(&mut lines))
                .expect("read");
            lines
        }
    });
    let run = test_dir.dicta(&["run", "-q", "-o", "pipe.jsonl"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let lines = reader.join().expect("no panic");
    assert!(lines.contains("\"type\":\"summary\""), "{lines}");
    // The tests' standard output is a pipe; `>` in a shell makes it a file, whose earlier lines must stay.
    symlink("/dev/stdout", test_dir.path().join("out.jsonl")).expect("linked");
    let shown = test_dir.dicta(&["import", "t.jsonl", "-o", "out.jsonl"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    assert_eq!(text(&shown.stdout).lines().count(), 2);
    let file = fs::File::options()
        .append(true)
        .create(true)
        .open(test_dir.path().join("log.txt"))
        .expect("a file");
    fs::write(test_dir.path().join("log.txt"), "first\n").expect("written");
    let appended = test_dir
        .command(&["import", "t.jsonl", "-o", "/dev/stdout"])
        .stdout(file)
        .status()
        .expect("it ran");
    assert_eq!(appended.code(), Some(0));
    let log = fs::read_to_string(test_dir.path().join("log.txt")).expect("read");
    assert!(log.starts_with("first\n{\"id\":\"one\""), "{log}");
    assert_eq!(log.lines().count(), 3);
}

#[test]
fn output_is_no_terminal() {
    let test_dir = test_dir();
    // The controlling side of a new terminal, which is a terminal, too.
    let refused = test_dir.dicta(&["run", "-q", "-o", "csv=/dev/ptmx"]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(why.contains("a terminal is not a file"), "{why}");
}

#[test]
fn import_replaces_no_labels_and_no_rubric_of_a_workspace() {
    let test_dir = test_dir();
    test_dir.write("other.csv", "id,input,output,passed\na,hi,hello,pass\n");
    let map = "id: id, input: input, output: output, label: { eval: names, passed: passed }";
    let convert = |more: &[&str]| {
        let args = [&["import", "other.csv", "--map", map], more].concat();
        test_dir.dicta(&args)
    };
    for (more, why) in [
        (
            ["-o", "x.jsonl", "--labels", "labels.jsonl"],
            "labels.jsonl, which dicta reads",
        ),
        (
            ["-o", "x.jsonl", "--labels", "t.jsonl"],
            "t.jsonl, which dicta reads",
        ),
        (
            ["-o", "r.yaml", "--labels", "y.jsonl"],
            "r.yaml, which dicta reads",
        ),
        (
            ["-o", "labels.jsonl", "--labels", "y.jsonl"],
            "labels.jsonl, which dicta reads",
        ),
    ] {
        let refused = convert(&more);
        let stderr_text = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{more:?}: {stderr_text}");
        assert!(stderr_text.contains(why), "{more:?}: {stderr_text}");
    }
    let kept = fs::read_to_string(test_dir.path().join("labels.jsonl")).expect("read");
    assert_eq!(kept, LABELS);
    // A later import of the same source replaces its own transcripts, if an option requests it.
    let transcripts = || fs::read_to_string(test_dir.path().join("t.jsonl")).expect("read");
    let before = transcripts();
    symlink("t.jsonl", test_dir.path().join("soft.jsonl")).expect("linked");
    for name in ["t.jsonl", "./t.jsonl", "soft.jsonl"] {
        let refused = convert(&["-o", name]);
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{name}: {why}");
        assert!(why.contains("replace it with --replace"), "{name}: {why}");
        assert_eq!(transcripts(), before, "{name}");
    }
    let again = convert(&["-o", "t.jsonl", "--replace"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert!(transcripts().contains("hello"), "{}", transcripts());
    for (more, why) in [
        (["-o", "r.yaml"], "r.yaml, which dicta reads"),
        (["-o", "other.csv"], "other.csv, which dicta reads"),
    ] {
        let refused = convert(&[more[0], more[1], "--replace"]);
        let stderr_text = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{more:?}: {stderr_text}");
        assert!(stderr_text.contains(why), "{more:?}: {stderr_text}");
    }
    // A workspace that does not load keeps its files, too.
    test_dir.write("r.yaml", "evals: {");
    let refused = convert(&["-o", "x.jsonl", "--labels", "labels.jsonl"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

#[test]
fn pipe_in_place_of_a_file_of_variants_does_not_block() {
    let test_dir = test_dir();
    make_pipe(&test_dir.path().join("variants.yaml"));
    let refused = test_dir.dicta(&["variants", "variants.yaml"]);
    assert_eq!(refused.status.code(), Some(2));
    let why = text(&refused.stderr);
    assert!(why.contains("variants.yaml is a named pipe"), "{why}");
}

#[test]
fn no_output_replaces_a_file_of_another_workspace_of_a_broken_one_or_the_shown_bundle() {
    let (test_dir, other) = (test_dir(), TestDir::new());
    assert_eq!(test_dir.dicta(&["run", "-q"]).status.code(), Some(1));
    other.workspace("", NAMES_A_RELEASE);
    other.write("labels.jsonl", "");
    let bundled = test_dir.dicta(&["export", "@", "-o", "run.dicta"]);
    assert_eq!(bundled.status.code(), Some(0), "{}", text(&bundled.stderr));
    let refuse = |test_dir: &TestDir, args: &[&str], file: &Path| {
        let before = fs::read(file).expect("read");
        let refused = test_dir.dicta(args);
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {why}");
        assert!(why.contains("which dicta reads"), "{args:?}: {why}");
        assert_eq!(fs::read(file).expect("read"), before, "{args:?}");
    };
    let bundle = test_dir.path().join("run.dicta");
    let name = bundle.to_str().expect("Unicode");
    let labels = other.path().join("labels.jsonl");
    let written = format!("csv={}", labels.display());
    for args in [
        &["run", "-q", "-o", &written][..],
        &["export", "@", "-o", &written],
        &["export", name, "-o", &written],
    ] {
        refuse(&test_dir, args, &labels);
    }
    let page = format!("html={name}");
    refuse(&test_dir, &["export", name, "-o", &page], &bundle);
    // The rubric is broken, so the labels are known only from dicta.yaml and from their usual name.
    let runs = rows(&test_dir.dicta(&["runs", "--format", "jsonl"]));
    let run = runs[0]["letters"].as_str().expect("its name");
    test_dir.write("r.yaml", "evals: {");
    let labels = test_dir.path().join("labels.jsonl");
    let args = ["export", run, "-o", "bundle=labels.jsonl"];
    refuse(&test_dir, &args, &labels);
}

#[test]
fn broken_rubric_lets_no_output_replace_the_files_that_the_workspace_names() {
    let test_dir = test_dir();
    test_dir.write("guide.md", "Be polite.\n");
    test_dir.write("facts.db-wal", "a commit\n");
    test_dir.write(
        "r.yaml",
        "evals: [{ id: e, type: llm_judge, params: { criteria: guide.md } }, { id: q, type: nosuch }]\n",
    );
    for input in ["guide.md", "facts.db", "facts.db-wal", "tools.yaml"] {
        let before = fs::read(test_dir.path().join(input)).expect("read");
        let refused = test_dir.dicta(&["import", "t.jsonl", "-o", input]);
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{input}: {why}");
        assert!(why.contains("which dicta reads"), "{input}: {why}");
        let after = fs::read(test_dir.path().join(input)).expect("read");
        assert_eq!(after, before, "{input}");
    }
    let other = test_dir.dicta(&["import", "t.jsonl", "-o", "new.jsonl"]);
    assert_eq!(other.status.code(), Some(0), "{}", text(&other.stderr));
}

#[test]
fn link_outside_of_a_workspace_lets_no_output_replace_its_files() {
    let (test_dir, outside) = (test_dir(), TestDir::new());
    let transcripts = fs::read_to_string(test_dir.path().join("t.jsonl")).expect("read");
    outside.write("in.jsonl", &transcripts);
    symlink(
        test_dir.path().join("labels.jsonl"),
        outside.path().join("link"),
    )
    .expect("linked");
    symlink(
        test_dir.path().join("labels.split.jsonl"),
        outside.path().join("open"),
    )
    .expect("linked");
    fs::create_dir(test_dir.path().join("deep")).expect("made");
    symlink(test_dir.path().join("deep"), outside.path().join("deep")).expect("linked");
    symlink("../r.yaml", test_dir.path().join("deep/rubric")).expect("linked");
    for output in ["link", "open", "deep/rubric"] {
        let refused = outside.dicta(&["import", "in.jsonl", "-o", output]);
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{output}: {why}");
        assert!(why.contains("which dicta reads"), "{output}: {why}");
    }
    let kept = fs::read_to_string(test_dir.path().join("labels.jsonl")).expect("read");
    assert_eq!(kept, LABELS);
}
