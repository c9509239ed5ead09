//! A person comes with files: they are mapped, checked, imported and judged.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{TestDir, of_type, rows, text};

const CSV: &str = "\u{feff}conversation_id;Customer question;Agent answer;latency_ms;human_ok\r\n\
    c-1;\"Which\nrelease?\";It is 2.69;120;yes\r\n\
    c-2;Hello;Good day;80;no\r\n\
    c-2;Bye;\"See \"\"you\"\" \u{1b}[31m\";40;\r\n\
    short;row\r\n";

/// A workspace whose transcripts are a table, by the map that `dicta map` printed.
fn mapped() -> TestDir {
    let test_dir = TestDir::new();
    test_dir.write("data.csv", CSV);
    let guess = test_dir.dicta(&["map", "data.csv"]);
    assert_eq!(guess.status.code(), Some(0), "{}", text(&guess.stderr));
    let entry = text(&guess.stdout);
    assert!(
        entry.contains("# by its name"),
        "every line says why: {entry}"
    );
    test_dir.write(
        "dicta.yaml",
        &format!(
            "{}rubrics: [r.yaml]\nruns: runs\n",
            entry
                .replace("\n      # ", "\n      ")
                .replace("eval: CHANGE", "eval: names")
        ),
    );
    test_dir.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: names, type: regex, params: { pattern: '\\d\\.\\d+' } }\n  - { id: quick, type: latency_budget, params: { max_ms: 100 } }\n",
    );
    test_dir
}

#[test]
fn guessed_mapping_of_a_table_passes_check_and_run() {
    let test_dir = mapped();
    let refused = TestDir::new();
    refused.write("data.csv", CSV);
    let alone = refused.dicta(&["check", "data.csv"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(
        text(&alone.stderr).contains("`dicta map data.csv` prints a guess"),
        "{}",
        text(&alone.stderr)
    );

    let file = test_dir.dicta(&["check", "data.csv"]);
    let stdout_text = text(&file.stdout);
    assert_eq!(file.status.code(), Some(0), "{stdout_text}");
    assert!(
        stdout_text.starts_with("data.csv: 3 of 4 records understood (a table, read by a map), 3 transcripts, 6 messages, 0 tool calls\n"),
        "{stdout_text}"
    );
    assert!(
        stdout_text.contains("2 labels") && stdout_text.contains("user: Which release?"),
        "{stdout_text}"
    );
    assert!(text(&file.stderr).contains("record 4: it has 2 cells, and the table 5 columns"));
    let strict = test_dir.dicta(&["check", "--strict", "data.csv"]);
    assert_eq!(strict.status.code(), Some(2));

    let whole = test_dir.dicta(&["check"]);
    let stdout_text = text(&whole.stdout);
    assert_eq!(
        whole.status.code(),
        Some(0),
        "{stdout_text}{}",
        text(&whole.stderr)
    );
    for line in [
        "1 file: 3 of 4 records understood (a table, read by a map), 3 transcripts\n",
        "the first transcript of data.csv:\n    id c-1\n    user: Which release?\n    assistant: It is 2.69\n",
    ] {
        assert!(stdout_text.contains(line), "{line}{stdout_text}");
    }

    let run = test_dir.dicta(&["run", "-q", "--format", "jsonl"]);
    let rows = rows(&run);
    let outcome = |transcript: &str, eval: &str| {
        let all = of_type(&rows, "result");
        let row = all
            .iter()
            .find(|row| row["transcript"] == transcript && row["eval"] == eval);
        row.map_or(Value::Null, |row| row["outcome"].clone())
    };
    assert_eq!(outcome("c-1", "names"), "pass", "{rows:?}");
    assert_eq!(outcome("c-2", "names"), "fail");
    assert_eq!(outcome("c-2~2", "quick"), "pass");
    assert_eq!(outcome("c-1", "quick"), "fail", "120 ms: {rows:?}");
}

#[test]
fn import_merges_several_formats_into_one_native_file() {
    let test_dir = mapped();
    test_dir.write(
        "t.json",
        "[\n  {\"messages\": [{\"role\": \"user\",\n \"content\": \"a\\nb\"}], \"extra\": 1},\n  {\"id\": \"c-1\", \"messages\": [], \"id2\": [1,\n2]},\n  {\"id\": 3}\n]\n",
    );
    let import = test_dir.dicta(&[
        "import",
        "data.csv",
        "t.json",
        "-o",
        "out.jsonl",
        "--labels",
        "labels.jsonl",
    ]);
    let stderr_text = text(&import.stderr);
    assert_eq!(import.status.code(), Some(0), "{stderr_text}");
    assert_eq!(text(&import.stdout), "");
    assert!(
        stderr_text.ends_with("5 transcripts from 2 files, 2 skipped: bad records, 2 renamed: duplicate ids; written to out.jsonl; 2 labels to labels.jsonl\n"),
        "{stderr_text}"
    );
    let read = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(test_dir.path().join(name)).expect("written");
        let parse = |line: &str| serde_json::from_str(line).expect("a line is JSON");
        text.lines().map(parse).collect()
    };
    let out = read("out.jsonl");
    let ids: Vec<&Value> = out.iter().map(|line| &line["id"]).collect();
    assert_eq!(ids, ["c-1", "c-2", "c-2~2", "t:1", "c-1~2"]);
    assert_eq!(out[0]["metadata"]["latency_ms"], 120);
    assert_eq!(out[3]["extra"], 1, "what is not ours stays");
    assert_eq!(out[4]["id2"], json!([1, 2]));
    assert_eq!(
        read("labels.jsonl"),
        [
            json!({"transcript": "c-1", "eval": "names", "passed": true}),
            json!({"transcript": "c-2", "eval": "names", "passed": false}),
        ]
    );
    // What was imported is read as it is, and importing it again changes nothing.
    let check = test_dir.dicta(&["check", "--strict", "out.jsonl"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stdout));
    let again = test_dir.dicta(&["import", "out.jsonl"]);
    let before = fs::read(test_dir.path().join("out.jsonl")).expect("there");
    assert_eq!(again.stdout, before);
}

#[test]
fn import_reads_a_mapping_from_the_command_line_and_reports_its_errors() {
    let test_dir = TestDir::new();
    test_dir.write("a.jsonl", "{\"q\": \"x\", \"a\": \"y\"}\n{\"q\": \"x\"}\n");
    let import = test_dir.dicta(&["import", "a.jsonl", "--map", "input: q, output: a"]);
    assert_eq!(import.status.code(), Some(0), "{}", text(&import.stderr));
    assert_eq!(
        text(&import.stdout),
        "{\"id\":\"a:1\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":\"y\"}]}\n"
    );
    let stderr_text = text(&import.stderr);
    assert!(
        stderr_text.contains("record 2: `output` (a) finds nothing"),
        "{stderr_text}"
    );
    for (map, why) in [
        ("input: q, outptu: a", "did you mean `output`"),
        ("output: 'a['", "output is not a JMESPath expression"),
        ("output: [", "not valid YAML"),
    ] {
        let refused = test_dir.dicta(&["import", "a.jsonl", "--map", map]);
        assert_eq!(refused.status.code(), Some(2), "{map}");
        assert!(
            text(&refused.stderr).contains(why),
            "{}",
            text(&refused.stderr)
        );
    }
}

#[test]
fn commands_name_unreadable_files_and_overwrite_nothing() {
    let test_dir = TestDir::new();
    test_dir.write("good.jsonl", "{\"id\":\"a\",\"messages\":[]}\n");
    test_dir.write("bad.jsonl", "{\"messages\": 3}\n{\"messages\": [\n");
    test_dir.write("empty.jsonl", "");
    test_dir.write("prose.txt", "Hello\nworld\n");
    fs::create_dir(test_dir.path().join("folder")).expect("a folder");
    std::os::unix::fs::symlink("good.jsonl", test_dir.path().join("link.jsonl")).expect("a link");
    for (args, why) in [
        (
            &["import", "folder"][..],
            "folder is a directory, not a file of transcripts; pass its files instead: folder/*.jsonl",
        ),
        (
            &["map", "folder/"],
            "pass its files instead: folder/*.jsonl",
        ),
        (
            &["import", "empty.jsonl"],
            "empty.jsonl holds no transcripts: it is empty",
        ),
        (&["map", "empty.jsonl"], "it is empty"),
        (&["check", "empty.jsonl"], "it is empty"),
        (
            &["review", "report", "empty.jsonl"],
            "empty.jsonl holds no transcripts: it is empty",
        ),
        (
            &["review", "report", "bad.jsonl"],
            "bad.jsonl` lists the problems",
        ),
        (&["import", "none.jsonl"], "none.jsonl does not exist"),
        (&["map", "none.jsonl"], "none.jsonl does not exist"),
        (
            &["import", "bad.jsonl", "-o", "x.jsonl"],
            "found no transcripts; x.jsonl was not written",
        ),
        (
            &["import", "good.jsonl", "-o", "good.jsonl"],
            "-o good.jsonl: this is good.jsonl, which dicta reads; choose another output file",
        ),
        (
            &["import", "good.jsonl", "-o", "link.jsonl"],
            "-o link.jsonl: this is good.jsonl, which dicta reads",
        ),
        (
            &["import", "good.jsonl", "-o", "folder"],
            "-o folder: it is a folder",
        ),
        (
            &["import", "good.jsonl", "-o", "x", "--labels", "x"],
            "--labels x: another option names the same file",
        ),
    ] {
        let refused = test_dir.dicta(args);
        let stderr_text = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {stderr_text}");
        assert!(stderr_text.contains(why), "{args:?}: {stderr_text}");
        assert_eq!(text(&refused.stdout), "", "{args:?}");
    }
    // A file that can't be read does not stop the others.
    let skipped = test_dir.dicta(&["import", "good.jsonl", "prose.txt"]);
    let stderr_text = text(&skipped.stderr);
    assert_eq!(skipped.status.code(), Some(3), "{stderr_text}");
    assert!(
        stderr_text.contains("prose.txt holds no transcripts"),
        "{stderr_text}"
    );
    assert!(stderr_text.contains("1 file skipped"), "{stderr_text}");
    let kept = fs::read_to_string(test_dir.path().join("good.jsonl")).expect("kept");
    assert_eq!(kept, "{\"id\":\"a\",\"messages\":[]}\n");
    let left: Vec<String> = fs::read_dir(test_dir.path())
        .expect("the folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.contains("import") || name.starts_with('x'))
        .collect();
    assert_eq!(left, [""; 0], "nothing half written is left");
    let map = test_dir.dicta(&["map", "good.jsonl"]);
    assert_eq!(map.status.code(), Some(0));
    assert!(
        text(&map.stdout).contains("needs no field mapping"),
        "{}",
        text(&map.stdout)
    );
}

const DOCS: &str = include_str!("../../docs/reference/transcript-formats.md");

/// The block of the docs in this language that begins so.
fn documented_block(language: &str, begin: &str) -> &'static str {
    let fence = format!("```{language}\n");
    let after: Vec<&'static str> = DOCS.split(fence.as_str()).skip(1).collect();
    let mut blocks = after
        .into_iter()
        .filter_map(|rest| rest.split("```").next());
    let found = blocks.find(|block| block.starts_with(begin));
    found.unwrap_or_else(|| {
        panic!("docs/reference/transcript-formats.md has no block of {language} with {begin}")
    })
}

#[test]
fn documented_table_imports_as_documented() {
    let test_dir = TestDir::new();
    test_dir.write("support.csv", documented_block("csv", "conversation_id"));
    let guess = test_dir.dicta(&["map", "support.csv"]);
    let (command, printed) = documented_block("console", "$ dicta map")
        .split_once('\n')
        .expect("lines");
    assert_eq!(command, "$ dicta map support.csv");
    assert_eq!(text(&guess.stdout), printed);

    test_dir.write(
        "dicta.yaml",
        documented_block("yaml", "transcripts:\n  - path: support.csv"),
    );
    test_dir.write(
        "rubrics/support.yaml",
        documented_block("yaml", "id: support"),
    );
    let import = test_dir.dicta(&["import", "support.csv", "--labels", "labels.jsonl"]);
    assert_eq!(
        text(&import.stdout),
        documented_block("json", "{\"id\":\"c-1\"")
    );
    let labels = fs::read_to_string(test_dir.path().join("labels.jsonl")).expect("written");
    assert_eq!(labels, documented_block("json", "{\"transcript\""));

    let check = test_dir.dicta(&["check", "--strict"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
    let run = test_dir.dicta(&["run"]);
    let counts = "says-when  2 labelled: 1 true pass, 0 false passes, 1 true fail, 0 false fails";
    assert!(text(&run.stdout).contains(counts), "{}", text(&run.stdout));
    assert!(DOCS.contains(&format!("`{counts}`")));
}

#[test]
fn documented_native_lines_import_unchanged() {
    let test_dir = TestDir::new();
    for (name, begin) in [
        ("a.jsonl", "{\"id\":\"order-17\""),
        ("b.jsonl", "{\"id\":\"parts\""),
    ] {
        test_dir.write(name, documented_block("json", begin));
        let check = test_dir.dicta(&["check", "--strict", name]);
        assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
        let import = test_dir.dicta(&["import", name]);
        assert_eq!(text(&import.stdout), documented_block("json", begin));
    }
}

/// A workspace with one file that dicta reads, an empty one, one without records, and one that it reads in part.
fn workspace_with_broken_files() -> TestDir {
    let test_dir = TestDir::new();
    test_dir.write(
        "dicta.yaml",
        "transcripts: [logs/*.jsonl]\nrubrics: [r.yaml]\n",
    );
    test_dir.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: a, type: contains, params: { patterns: [hi] } }\n",
    );
    let said = r#"{"role":"assistant","content":"hi"}"#;
    test_dir.write("logs/a.jsonl", &format!("{{\"messages\":[{said}]}}\n"));
    test_dir.write("logs/empty.jsonl", "");
    test_dir.write("logs/prose.jsonl", "Hello\n");
    let unread =
        r#"{"role":"assistant","content":[{"type":"hologram","n":1},{"type":"text","text":"hi"}]}"#;
    test_dir.write(
        "logs/parts.jsonl",
        &format!("{{\"messages\":[{unread}]}}\n{{\"messages\":[{said}]}}\n{{\"messages\":7}}\n"),
    );
    test_dir
}

#[test]
fn broken_files_do_not_stop_a_run_unless_it_is_strict() {
    let test_dir = workspace_with_broken_files();
    let run = test_dir.dicta(&["run", "--format", "jsonl"]);
    let notes = text(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{notes}");
    assert!(notes.contains("logs/empty.jsonl is skipped"), "{notes}");
    assert!(notes.contains("logs/prose.jsonl is skipped"), "{notes}");
    let summary: Value = text(&run.stdout)
        .lines()
        .last()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .expect("a summary");
    assert_eq!(
        (&summary["pass"], &summary["broken_files"]),
        (&json!(3), &json!(2))
    );
    let shown = test_dir.dicta(&["run"]);
    assert!(
        text(&shown.stdout).contains("2 broken files"),
        "{}",
        text(&shown.stdout)
    );
    // They cause the exit code, so a quiet run names them too. It prints no other note.
    let quiet = test_dir.dicta(&["run", "-q"]);
    let errors = text(&quiet.stderr);
    assert!(errors.contains("logs/empty.jsonl is skipped: "), "{errors}");
    assert!(errors.contains("logs/prose.jsonl is skipped: "), "{errors}");
    assert!(!errors.contains("hologram"), "{errors}");
    let strict = test_dir.dicta(&["run", "--strict"]);
    assert_eq!(strict.status.code(), Some(2));
    assert!(text(&strict.stderr).contains("it is empty"));
    // A failed decision is more important than a broken file.
    test_dir.write("logs/fails.jsonl", "{\"messages\":[]}\n");
    assert_eq!(test_dir.dicta(&["run"]).status.code(), Some(1));
}

/// Copies the files of a folder and of its folders into one folder, each under a name of its own.
fn copy_samples(from: &std::path::Path, to: &TestDir, prefix: &str) {
    for entry in std::fs::read_dir(from).expect("the samples") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            copy_samples(&path, to, &format!("{name}-"));
        } else if !name.ends_with(".expected") {
            std::fs::copy(&path, to.path().join("samples").join(name)).expect("copied");
        }
    }
}

#[test]
fn counts_of_check_import_and_run_agree_for_the_sample_of_each_format() {
    let test_dir = TestDir::new();
    std::fs::create_dir(test_dir.path().join("samples")).expect("a folder");
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/foreign");
    copy_samples(&fixtures, &test_dir, "");
    test_dir.write(
        "dicta.yaml",
        "transcripts: [samples/*]\nrubrics: [r.yaml]\n",
    );
    test_dir.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: short, type: max_length, params: { max: 1000000 } }\n",
    );
    let json = |args: &[&str]| -> Value {
        let output = test_dir.dicta(args);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {}", text(&output.stderr)))
    };
    let run = json(&["run", "--format", "json"]);
    let run = &run["summary"];
    let check = json(&["check", "--format", "json"]);
    let check = &check["summary"]["counts"];
    assert_eq!(run["transcripts"], check["transcripts"]);
    assert_eq!(
        run["records_not_understood"],
        check["records_not_understood"]
    );
    let files: Vec<String> = std::fs::read_dir(test_dir.path().join("samples"))
        .expect("the samples")
        .map(|entry| {
            format!(
                "samples/{}",
                entry.expect("a file").file_name().to_string_lossy()
            )
        })
        .collect();
    assert!(files.len() > 40);
    let mut import: Vec<&str> = files.iter().map(String::as_str).collect();
    import.insert(0, "import");
    let imported = test_dir.dicta(&import);
    let lines = text(&imported.stdout).lines().count();
    assert_eq!(
        Some(lines as u64),
        run["transcripts"].as_u64(),
        "{}",
        text(&imported.stderr)
    );
    let notes = text(&imported.stderr);
    let missed = format!("{} not understood", run["records_not_understood"]);
    assert!(notes.contains(&missed), "{missed}: {notes}");
}

#[test]
fn counts_of_check_import_and_run_agree() {
    let test_dir = workspace_with_broken_files();
    let count_of = |args: &[&str], name: &str| {
        let output = test_dir.dicta(args);
        let last: Value = text(&output.stdout)
            .lines()
            .last()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .expect("a last line");
        last[name].as_u64().unwrap_or(u64::MAX)
    };
    let run = ["run", "--format", "jsonl"];
    assert_eq!(count_of(&run, "records"), 4);
    assert_eq!(count_of(&run, "records_not_understood"), 2);
    assert_eq!(count_of(&run, "bad_records"), 1);
    let check = test_dir.dicta(&["check", "logs/parts.jsonl"]);
    let check = text(&check.stdout);
    assert!(check.contains("1 of 3 records understood"), "{check}");
    assert!(
        check.contains("not understood: 1 a part of the type `hologram`"),
        "{check}"
    );
    let import = test_dir.dicta(&["import", "logs/parts.jsonl"]);
    let notes = text(&import.stderr);
    assert!(
        notes.contains("1 skipped: bad records, 1 not understood"),
        "{notes}"
    );
    // The import contains what dicta did not read, so a check of it counts the same parts.
    test_dir.write("again.jsonl", &text(&import.stdout));
    let again = test_dir.dicta(&["check", "again.jsonl"]);
    let again = text(&again.stdout);
    assert!(again.contains("1 of 2 records understood"), "{again}");
}

#[test]
fn several_missing_parts_of_one_transcript_are_counted_as_such() {
    let test_dir = TestDir::new();
    test_dir.write(
        "session/p/ses_1.json",
        "{\"id\":\"ses_1\",\"projectID\":\"p\",\"version\":\"1\",\"time\":{\"created\":1}}",
    );
    for at in [1, 2] {
        test_dir.write(
            &format!("message/ses_1/msg_{at}.json"),
            &format!("{{\"id\":\"msg_{at}\",\"sessionID\":\"ses_1\",\"role\":\"user\"}}"),
        );
    }
    let check = test_dir.dicta(&["check", "session/p/ses_1.json"]);
    let check = text(&check.stdout) + &text(&check.stderr);
    assert!(
        check.contains("(it has no folder `part/MESSAGE`): 2 times in 1 transcript\n"),
        "{check}"
    );
}

#[test]
fn format_of_which_no_transcript_is_read_is_uncertain() {
    let test_dir = TestDir::new();
    let span = |id: u32| {
        format!(
            "{{\"traceID\":\"a\",\"spanID\":\"{id}\",\"operationName\":\"GET\",\"references\":[],\"startTime\":1,\"duration\":1,\"tags\":[],\"logs\":[],\"processID\":\"p1\"}}"
        )
    };
    let trace = format!(
        "{{\"data\":[{{\"traceID\":\"a\",\"spans\":[{},{}],\"processes\":{{\"p1\":{{\"serviceName\":\"s\",\"tags\":[]}}}}}}]}}",
        span(1),
        span(2)
    );
    test_dir.write("trace.json", &trace);
    let check = test_dir.dicta(&["check", "trace.json"]);
    let check = text(&check.stdout) + &text(&check.stderr);
    assert!(!check.contains("high confidence"), "{check}");
    assert!(
        check.contains("format uncertain: no transcript was read"),
        "{check}"
    );
}

#[test]
fn ids_are_paths_below_the_workspace_and_earlier_labels_match() {
    let test_dir = workspace_with_broken_files();
    let label = |id: &str| format!("{{\"transcript\":\"{id}\",\"eval\":\"a\",\"passed\":true}}\n");
    test_dir.write("labels.jsonl", &(label("a:1") + &label("logs.parts:2")));
    let transcripts = || {
        let run = test_dir.dicta(&["run", "--format", "jsonl"]);
        let lines: Vec<Value> = text(&run.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let summary = lines.last().cloned().expect("a summary");
        let ids: Vec<String> = lines
            .iter()
            .filter_map(|line| line["transcript"].as_str().map(str::to_owned))
            .collect();
        (ids, summary["labels"]["r/a"]["true_pass"].clone())
    };
    let (ids, agreed) = transcripts();
    assert_eq!(ids, ["logs.a:1", "logs.parts:1", "logs.parts:2"]);
    assert_eq!(agreed, json!(2));
    // Another file with the same name takes no id.
    test_dir.write(
        "dicta.yaml",
        "transcripts: [logs/*.jsonl, logs/old/*.jsonl]\nrubrics: [r.yaml]\n",
    );
    test_dir.write("logs/old/a.jsonl", "{\"messages\":[]}\n");
    let (ids, _) = transcripts();
    assert!(ids.contains(&"logs.old.a:1".to_owned()) && ids.contains(&"logs.a:1".to_owned()));
}
