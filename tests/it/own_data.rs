//! A person comes with files: they are mapped, checked, imported and judged.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{Bench, of_type, rows, text};

const CSV: &str = "\u{feff}conversation_id;Customer question;Agent answer;latency_ms;human_ok\r\n\
    c-1;\"Which\nrelease?\";It is 2.69;120;yes\r\n\
    c-2;Hello;Good day;80;no\r\n\
    c-2;Bye;\"See \"\"you\"\" \u{1b}[31m\";40;\r\n\
    short;row\r\n";

/// A workspace whose transcripts are a table, by the map that `dicta map` printed.
fn mapped() -> Bench {
    let bench = Bench::new();
    bench.write("data.csv", CSV);
    let guess = bench.dicta(&["map", "data.csv"]);
    assert_eq!(guess.status.code(), Some(0), "{}", text(&guess.stderr));
    let entry = text(&guess.stdout);
    assert!(
        entry.contains("# by its name"),
        "every line says why: {entry}"
    );
    bench.write(
        "dicta.yaml",
        &format!(
            "{}rubrics: [r.yaml]\nruns: runs\n",
            entry
                .replace("\n      # ", "\n      ")
                .replace("eval: CHANGE", "eval: names")
        ),
    );
    bench.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: names, type: regex, params: { pattern: '\\d\\.\\d+' } }\n  - { id: quick, type: latency_budget, params: { max_ms: 100 } }\n",
    );
    bench
}

#[test]
fn guessed_mapping_of_a_table_passes_check_and_run() {
    let bench = mapped();
    let refused = Bench::new();
    refused.write("data.csv", CSV);
    let alone = refused.dicta(&["check", "data.csv"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(
        text(&alone.stderr).contains("`dicta map data.csv` prints a guess"),
        "{}",
        text(&alone.stderr)
    );

    let file = bench.dicta(&["check", "data.csv"]);
    let said = text(&file.stdout);
    assert_eq!(file.status.code(), Some(0), "{said}");
    assert!(
        said.starts_with("data.csv: 3 of 4 records understood (a table, read by a map), 3 transcripts, 6 messages, 0 tool calls\n"),
        "{said}"
    );
    assert!(
        said.contains("2 labels") && said.contains("user: Which release?"),
        "{said}"
    );
    assert!(text(&file.stderr).contains("record 4: it has 2 cells, and the table 5 columns"));
    let strict = bench.dicta(&["check", "--strict", "data.csv"]);
    assert_eq!(strict.status.code(), Some(2));

    let whole = bench.dicta(&["check"]);
    let said = text(&whole.stdout);
    assert_eq!(
        whole.status.code(),
        Some(0),
        "{said}{}",
        text(&whole.stderr)
    );
    for line in [
        "1 file: 3 of 4 records understood (a table, read by a map), 3 transcripts\n",
        "the first transcript of data.csv:\n    id c-1\n    user: Which release?\n    assistant: It is 2.69\n",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }

    let run = bench.dicta(&["run", "-q", "--format", "jsonl"]);
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
    let bench = mapped();
    bench.write(
        "t.json",
        "[\n  {\"messages\": [{\"role\": \"user\",\n \"content\": \"a\\nb\"}], \"extra\": 1},\n  {\"id\": \"c-1\", \"messages\": [], \"id2\": [1,\n2]},\n  {\"id\": 3}\n]\n",
    );
    let import = bench.dicta(&[
        "import",
        "data.csv",
        "t.json",
        "-o",
        "out.jsonl",
        "--labels",
        "labels.jsonl",
    ]);
    let told = text(&import.stderr);
    assert_eq!(import.status.code(), Some(0), "{told}");
    assert_eq!(text(&import.stdout), "");
    assert!(
        told.ends_with("5 transcripts from 2 files, 2 skipped: bad records, 2 renamed: duplicate ids; written to out.jsonl; 2 labels to labels.jsonl\n"),
        "{told}"
    );
    let read = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(bench.path().join(name)).expect("written");
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
    let check = bench.dicta(&["check", "--strict", "out.jsonl"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stdout));
    let again = bench.dicta(&["import", "out.jsonl"]);
    let before = fs::read(bench.path().join("out.jsonl")).expect("there");
    assert_eq!(again.stdout, before);
}

#[test]
fn import_reads_a_mapping_from_the_command_line_and_reports_its_errors() {
    let bench = Bench::new();
    bench.write("a.jsonl", "{\"q\": \"x\", \"a\": \"y\"}\n{\"q\": \"x\"}\n");
    let import = bench.dicta(&["import", "a.jsonl", "--map", "input: q, output: a"]);
    assert_eq!(import.status.code(), Some(0), "{}", text(&import.stderr));
    assert_eq!(
        text(&import.stdout),
        "{\"id\":\"a:1\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":\"y\"}]}\n"
    );
    let told = text(&import.stderr);
    assert!(
        told.contains("record 2: `output` (a) finds nothing"),
        "{told}"
    );
    for (map, why) in [
        ("input: q, outptu: a", "did you mean `output`"),
        ("output: 'a['", "output is not a JMESPath expression"),
        ("output: [", "not valid YAML"),
    ] {
        let refused = bench.dicta(&["import", "a.jsonl", "--map", map]);
        assert_eq!(refused.status.code(), Some(2), "{map}");
        assert!(
            text(&refused.stderr).contains(why),
            "{}",
            text(&refused.stderr)
        );
    }
}

#[test]
fn import_names_unreadable_files_and_overwrites_nothing() {
    let bench = Bench::new();
    bench.write("good.jsonl", "{\"id\":\"a\",\"messages\":[]}\n");
    bench.write("bad.jsonl", "{\"messages\": 3}\n{\"messages\": [\n");
    bench.write("empty.jsonl", "");
    bench.write("prose.txt", "Hello\nworld\n");
    fs::create_dir(bench.path().join("folder")).expect("a folder");
    std::os::unix::fs::symlink("good.jsonl", bench.path().join("link.jsonl")).expect("a link");
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
        (&["import", "none.jsonl"], "none.jsonl: No such file"),
        (&["map", "none.jsonl"], "none.jsonl: No such file"),
        (
            &["import", "good.jsonl", "prose.txt"],
            "prose.txt holds no transcripts",
        ),
        (
            &["import", "bad.jsonl", "-o", "x.jsonl"],
            "found no transcripts; x.jsonl was not written",
        ),
        (
            &["import", "good.jsonl", "-o", "good.jsonl"],
            "good.jsonl is an input; choose another output file",
        ),
        (
            &["import", "good.jsonl", "-o", "link.jsonl"],
            "link.jsonl is the input good.jsonl",
        ),
        (
            &["import", "good.jsonl", "-o", "folder"],
            "folder is a folder",
        ),
        (
            &["import", "good.jsonl", "-o", "x", "--labels", "x"],
            "name the same file",
        ),
    ] {
        let refused = bench.dicta(args);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains(why), "{args:?}: {told}");
        assert_eq!(text(&refused.stdout), "", "{args:?}");
    }
    let kept = fs::read_to_string(bench.path().join("good.jsonl")).expect("kept");
    assert_eq!(kept, "{\"id\":\"a\",\"messages\":[]}\n");
    let left: Vec<String> = fs::read_dir(bench.path())
        .expect("the folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.contains("import") || name.starts_with('x'))
        .collect();
    assert_eq!(left, [""; 0], "nothing half written is left");
    let map = bench.dicta(&["map", "good.jsonl"]);
    assert_eq!(map.status.code(), Some(0));
    assert!(
        text(&map.stdout).contains("needs no field mapping"),
        "{}",
        text(&map.stdout)
    );
}

const DOCS: &str = include_str!("../../docs/transcripts.md");

/// The block of the docs in this language that begins so.
fn shown(language: &str, begin: &str) -> &'static str {
    let fence = format!("```{language}\n");
    let after: Vec<&'static str> = DOCS.split(fence.as_str()).skip(1).collect();
    let mut blocks = after
        .into_iter()
        .filter_map(|rest| rest.split("```").next());
    let found = blocks.find(|block| block.starts_with(begin));
    found.unwrap_or_else(|| panic!("docs/transcripts.md has no block of {language} with {begin}"))
}

#[test]
fn documented_table_imports_as_documented() {
    let bench = Bench::new();
    bench.write("support.csv", shown("csv", "conversation_id"));
    let guess = bench.dicta(&["map", "support.csv"]);
    let (command, printed) = shown("console", "$ dicta map")
        .split_once('\n')
        .expect("lines");
    assert_eq!(command, "$ dicta map support.csv");
    assert_eq!(text(&guess.stdout), printed);

    bench.write(
        "dicta.yaml",
        shown("yaml", "transcripts:\n  - path: support.csv"),
    );
    bench.write("rubrics/support.yaml", shown("yaml", "id: support"));
    let import = bench.dicta(&["import", "support.csv", "--labels", "labels.jsonl"]);
    assert_eq!(text(&import.stdout), shown("json", "{\"id\":\"c-1\""));
    let labels = fs::read_to_string(bench.path().join("labels.jsonl")).expect("written");
    assert_eq!(labels, shown("json", "{\"transcript\""));

    let check = bench.dicta(&["check", "--strict"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
    let run = bench.dicta(&["run"]);
    let counts = "says-when  2 labelled: 1 true pass, 0 false passes, 1 true fail, 0 false fails";
    assert!(text(&run.stdout).contains(counts), "{}", text(&run.stdout));
    assert!(DOCS.contains(&format!("`{counts}`")));
}

#[test]
fn documented_native_lines_import_unchanged() {
    let bench = Bench::new();
    for (name, begin) in [
        ("a.jsonl", "{\"id\":\"order-17\""),
        ("b.jsonl", "{\"id\":\"parts\""),
    ] {
        bench.write(name, shown("json", begin));
        let check = bench.dicta(&["check", "--strict", name]);
        assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
        let import = bench.dicta(&["import", name]);
        assert_eq!(text(&import.stdout), shown("json", begin));
    }
}
