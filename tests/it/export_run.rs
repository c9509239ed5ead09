//! `dicta export` of recordings: bundles that open anywhere, spans that the official decoder accepts, and screens.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::cli::{TestDir, text};
use crate::support::wire::{Dialect, Reply, WireServer};

const GROUNDED: &str =
    "  - { id: grounded, type: llm_judge, params: { criteria: The amount is on file. } }\n";

/// The text of a transcript that a page and a terminal must not execute.
const HOSTILE: &str = "</pre><script>alert(1)</script>";

/// Looks the order up, then decides.
fn judging() -> WireServer {
    WireServer::answering(Dialect::Openai, |request| {
        if request.mentions("It is the order file") {
            let verdict = json!({"citations": [], "reasoning": "As <b>on file</b>.", "passed": true, "score": 1.0});
            return Reply::verdict(verdict);
        }
        Reply::call("order", json!({"number": "TF-4107"})).thinking("I look the order up.")
    })
}

/// A judged workspace, and the same judged again, so that the second run reuses all verdicts.
fn judged() -> TestDir {
    let server = judging();
    let shop = WireServer::answering(Dialect::Gemini, |_| {
        Reply::raw(r#"{"note":"It is the order file","total":190.25}"#)
    });
    let test_dir = TestDir::new();
    let (url, shop_url) = (server.base_url(), shop.base_url());
    test_dir.workspace(
        &format!(
            "tools: [tools.yaml]\njudge: m\njudges:\n  m: {{ provider: openai, base_url: '{url}', model: m, tools: [order] }}\n"
        ),
        GROUNDED,
    );
    test_dir.write(
        "tools.yaml",
        &format!(
            "sources:\n  shop: {{kind: http, baseUrl: '{shop_url}', allowPrivate: true}}\ntools:\n  order:\n    kind: http\n    \
             source: shop\n    method: GET\n    path: /orders\n    description: Looks an order up.\n    queryParams:\n      \
             - {{name: number, type: string, description: The number.}}\n"
        ),
    );
    test_dir.write(
        "t.jsonl",
        &format!(
            "{}\n",
            json!({"id": "one", "messages": [{"role": "user", "content": "Which amount?"},
                {"role": "assistant", "content": format!("It is 190.25 {HOSTILE}")}]})
        ),
    );
    test_dir.trust();
    for _ in 0..2 {
        let run = test_dir.dicta(&["run", "-q"]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    }
    test_dir
}

fn export(test_dir: &TestDir, args: &[&str]) -> String {
    let mut all = vec!["export"];
    all.extend(args);
    let output = test_dir.dicta(&all);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?} {err}");
    err
}

/// Returns the names of runs, newest first.
fn runs(test_dir: &TestDir) -> Vec<String> {
    let runs = std::fs::read_dir(test_dir.path().join("runs")).expect("runs");
    let mut names: Vec<String> = runs
        .flatten()
        .filter(|run| run.path().is_dir())
        .map(|run| run.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.reverse();
    names
}

/// Returns the run that reused the verdict of the other one.
fn reusing_run(test_dir: &TestDir) -> String {
    let reuses = |name: &String| {
        let log = test_dir.path().join("runs").join(name).join("events.jsonl");
        let log = std::fs::read_to_string(log).expect("a log");
        log.contains("\"cached\":\"2")
    };
    let all = runs(test_dir);
    let found = all.iter().find(|name| reuses(name));
    found.unwrap_or_else(|| panic!("{all:?}")).clone()
}

#[test]
fn bundle_opens_anywhere_with_the_runs_whose_verdicts_it_reuses() {
    let test_dir = judged();
    let run = reusing_run(&test_dir);
    let note = export(&test_dir, &[&run, "--format", "bundle", "-o", "b.dicta"]);
    assert!(note.contains("1 run whose verdicts it reuses"), "{note}");
    // The sources are gone, and the folder is another one.
    let elsewhere = TestDir::new();
    let file = elsewhere.path().join("b.dicta");
    std::fs::rename(test_dir.path().join("b.dicta"), &file).expect("moved");
    drop(test_dir);
    let shown = elsewhere.dicta(&["show", "b.dicta", "one/r/grounded"]);
    let out = text(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    for part in ["190.25", "order", "As <b>on file</b>.", "prompt, turn 2"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let all = elsewhere.dicta(&["show", "b.dicta", "--format", "jsonl"]);
    assert!(text(&all.stdout).contains("\"outcome\":\"pass\""));
    // A comparison names the way: the results as a file.
    let refused = elsewhere.dicta(&["compare", "b.dicta", "b.dicta"]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(
        why.contains("dicta show b.dicta --format jsonl > run.jsonl"),
        "{why}"
    );
    elsewhere.write("run.jsonl", &text(&all.stdout));
    let compared = elsewhere.dicta(&["compare", "run.jsonl", "run.jsonl"]);
    assert!(
        text(&compared.stdout).contains("0 flips"),
        "{}",
        text(&compared.stderr)
    );
    let replayed = elsewhere.dicta(&["replay", "b.dicta", "--print", "--speed", "0"]);
    let played = text(&replayed.stdout);
    assert_eq!(
        replayed.status.code(),
        Some(0),
        "{}",
        text(&replayed.stderr)
    );
    assert!(played.contains("one/r/grounded"), "{played}");
    // Nothing of it stays unpacked.
    let data = std::fs::read_dir(elsewhere.path().join(".data"));
    let names: Vec<String> = data
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        !names.iter().any(|name| name.starts_with("bundle-")),
        "{names:?}"
    );
    // An ordinary tar program lists it.
    if let Ok(listed) = Command::new("tar").arg("-tf").arg(&file).output() {
        let listed = text(&listed.stdout);
        assert!(listed.starts_with("dicta-bundle.json\nruns/"), "{listed}");
        assert_eq!(listed.matches("/events.jsonl").count(), 2, "{listed}");
    }
}

#[test]
fn name_of_a_state_means_a_run_of_that_state_in_every_format() {
    let test_dir = TestDir::new();
    let line = json!({"id": "one", "messages": [{"role": "assistant", "content": "hello"}]});
    test_dir.write("t.jsonl", &format!("{line}\n"));
    let run = |max: u32| {
        let eval = format!("  - {{ id: short, type: max_length, params: {{ max: {max} }} }}\n");
        test_dir.workspace("judge: rules\n", &eval);
        let run = test_dir.dicta(&["run", "-q"]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    };
    run(90);
    let first = runs(&test_dir).remove(0);
    // The newest state has two runs, so the second newest run is one of it, too.
    run(80);
    run(80);
    let letters = &first[first.len() - 4..];
    for (format, file) in [("bundle", "s.dicta"), ("cast", "s.cast")] {
        let note = export(&test_dir, &["@2", "--format", format, "-o", file]);
        assert!(
            note.contains(&format!("of run {letters};")),
            "{format}: {note}"
        );
        export(&test_dir, &["@", "--format", format, "-o", file]);
    }
    let baseline = test_dir.dicta(&["history", "--baseline", "@2"]);
    assert_eq!(
        baseline.status.code(),
        Some(0),
        "{}",
        text(&baseline.stderr)
    );
    let note = export(&test_dir, &["@baseline", "-o", "s.dicta"]);
    assert!(note.contains(&format!("of run {letters};")), "{note}");
}

#[test]
fn bundle_of_one_cell_has_nothing_of_the_others() {
    let test_dir = judged();
    // A second transcript, whose secret must not leave with the first one.
    let transcripts = test_dir.path().join("t.jsonl");
    let mut lines = std::fs::read_to_string(&transcripts).expect("read");
    let other = json!({"id": "two", "messages": [{"role": "user", "content": "My code is 4711-private."},
        {"role": "assistant", "content": "Noted."}]});
    lines.push_str(&other.to_string());
    lines.push('\n');
    std::fs::write(&transcripts, lines).expect("written");
    // The judge's server is gone, so the second transcript gets an error after its request was recorded.
    let run = test_dir.dicta(&["run", "-q", "--yes"]);
    assert_eq!(run.status.code(), Some(3), "{}", text(&run.stderr));
    let has_both = |name: &String| {
        let log = test_dir.path().join("runs").join(name).join("events.jsonl");
        std::fs::read_to_string(log).is_ok_and(|log| log.contains("\"two\""))
    };
    let run = runs(&test_dir).into_iter().find(has_both);
    let run = run.expect("a run of both transcripts");
    let args = [
        &run,
        "one/r/grounded",
        "--format",
        "bundle",
        "-o",
        "b.dicta",
    ];
    let note = export(&test_dir, &args);
    assert!(note.contains("1 cell, and 1 run"), "{note}");
    let bytes = std::fs::read(test_dir.path().join("b.dicta")).expect("a bundle");
    let content = String::from_utf8_lossy(&bytes);
    assert!(
        !content.contains("4711-private"),
        "the other transcript is in it"
    );
    assert!(
        !content.contains("\"two\""),
        "the other transcript is named in it"
    );
    let elsewhere = TestDir::new();
    std::fs::rename(
        test_dir.path().join("b.dicta"),
        elsewhere.path().join("b.dicta"),
    )
    .expect("moved");
    let shown = elsewhere.dicta(&["show", "b.dicta", "one/r/grounded"]);
    let out = text(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    for part in ["190.25", "order", "As <b>on file</b>.", "prompt, turn 2"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let replayed = elsewhere.dicta(&["replay", "b.dicta", "--print", "--speed", "0"]);
    assert_eq!(
        replayed.status.code(),
        Some(0),
        "{}",
        text(&replayed.stderr)
    );
}

#[test]
fn page_of_a_run_that_reuses_a_verdict_has_the_trace_of_the_judging_run() {
    let test_dir = judged();
    let run = reusing_run(&test_dir);
    export(&test_dir, &[&run, "one/r/grounded", "-o", "trace.html"]);
    let page = std::fs::read_to_string(test_dir.path().join("trace.html")).expect("a page");
    for part in ["prompt, turn 1", "TF-4107", "prompt, turn 2"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn damaged_bundle_is_refused_with_a_sentence() {
    let test_dir = judged();
    export(&test_dir, &["@", "-o", "b.dicta"]);
    let path = test_dir.path().join("b.dicta");
    let bytes = std::fs::read(&path).expect("read");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("written");
    let shown = test_dir.dicta(&["show", "b.dicta"]);
    assert_eq!(shown.status.code(), Some(2));
    let why = text(&shown.stderr);
    assert!(
        why.contains("is not a valid bundle: the file ends early"),
        "{why}"
    );
}

#[test]
fn export_refuses_what_it_cannot_do() {
    let test_dir = judged();
    for (args, why) in [
        (
            &[
                "@",
                "nothing/r/grounded",
                "--format",
                "otlp",
                "-o",
                "x.json",
            ][..],
            "no cell matches",
        ),
        (&["@", "-o", "x.json"][..], "the extension names no format"),
        (&["@", "-o", "pdf=x.json"], "write ./pdf=x.json for a file"),
        (&["@", "-o", "csv="], "the file is missing"),
        (
            &["@", "--format", "csv", "-o", "html=x.json"],
            "--format names another format",
        ),
        (
            &["@", "--format", "bundle", "-o", "t.jsonl"][..],
            "which dicta reads",
        ),
    ] {
        let mut all = vec!["export"];
        all.extend(args);
        let output = test_dir.dicta(&all);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?} {err}");
        assert!(err.contains(why), "{args:?} {err}");
        assert!(!test_dir.path().join("x.json").exists());
    }
}

#[test]
fn format_before_the_file_selects_it_as_for_a_run() {
    let test_dir = judged();
    for (output, file, begins) in [
        ("html=page", "page", "<!"),
        ("csv=table.html", "table.html", "transcript,rubric,eval"),
        ("./csv=page.html", "csv=page.html", "<!"),
    ] {
        export(&test_dir, &["@", "-o", output]);
        let text = std::fs::read_to_string(test_dir.path().join(file)).expect("the file");
        assert!(text.starts_with(begins), "{output}: {text:.40}");
    }
}

#[test]
fn page_of_one_cell_has_its_whole_trace_escaped() {
    let test_dir = judged();
    export(&test_dir, &["@", "one/r/grounded", "-o", "trace.html"]);
    let page = std::fs::read_to_string(test_dir.path().join("trace.html")).expect("a page");
    assert!(
        !page.contains("<script>") && !page.contains("<b>on file"),
        "escaped"
    );
    for part in [
        "prompt, turn 1",
        "TF-4107",
        "prompt, turn 2",
        "As &lt;b&gt;on file&lt;/b&gt;.",
        "&lt;script&gt;",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn screen_is_recorded_for_asciinema() {
    let test_dir = judged();
    let oldest = runs(&test_dir).pop().expect("a run");
    for cell in [None, Some("one/r/grounded")] {
        let mut args = vec![oldest.as_str()];
        args.extend(cell);
        args.extend(["-o", "screen.cast"]);
        export(&test_dir, &args);
        let cast = std::fs::read_to_string(test_dir.path().join("screen.cast")).expect("a file");
        let mut lines = cast
            .lines()
            .map(|line| -> Value { serde_json::from_str(line).expect("each line is JSON") });
        let header = lines.next().expect("a header");
        assert_eq!(
            (&header["version"], &header["width"], &header["height"]),
            (&json!(2), &json!(120), &json!(40))
        );
        let side = |length| std::num::NonZero::new(length).expect("not 0");
        let mut screen = vt100::Parser::new(side(40), side(120), 0);
        let mut before = 0.0;
        let mut frames = 0;
        for frame in lines {
            let at = frame[0].as_f64().expect("a time");
            assert!(at >= before && frame[1] == "o", "{frame}");
            before = at;
            frames += 1;
            screen.process(frame[2].as_str().expect("a text").as_bytes());
        }
        let end = screen.screen().contents();
        assert!(frames > 2 && end.contains("REPLAY"), "{frames} {end}");
        assert!(end.contains("one"), "{end}");
        if cell.is_some() {
            assert!(end.contains("verdict") && end.contains("order"), "{end}");
        }
    }
}

/// Decodes the file with the official package. It refuses unknown fields. Ids are hexadecimal in OTLP, and Base64 in the
/// JSON encoding of Protobuf.
const DECODER: &str = r#"
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
document = json.load(open(sys.argv[1]))
for resource in document["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
request = json_format.ParseDict(document, ExportTraceServiceRequest())
for resource in request.resource_spans:
    for scope in resource.scope_spans:
        for span in scope.spans:
            assert len(span.trace_id) == 16 and len(span.span_id) == 8, span
            assert span.end_time_unix_nano >= span.start_time_unix_nano > 0, span
            print(span.name, len(span.parent_span_id), span.status.code)
            for event in span.events:
                attributes = {one.key: one.value for one in event.attributes}
                score = attributes["gen_ai.evaluation.score.value"].double_value
                label = attributes["gen_ai.evaluation.score.label"].string_value
                print("event", event.name, score, label)
"#;

/// Returns a Python that has the package: of the system, or of the folder `DICTA_TEST_PYTHON` names.
fn find_python() -> Option<String> {
    let named = std::env::var("DICTA_TEST_PYTHON").ok();
    let mut all = named.into_iter().chain(["python3".to_owned()]);
    all.find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import opentelemetry.proto.trace.v1.trace_pb2"]);
        command.output().is_ok_and(|output| output.status.success())
    })
}

#[test]
fn spans_are_accepted_by_the_official_decoder() {
    let test_dir = judged();
    let run = reusing_run(&test_dir);
    export(&test_dir, &[&run, "--format", "otlp", "-o", "spans.json"]);
    let path = test_dir.path().join("spans.json");
    check_spans(&path);
    let Some(python) = find_python() else {
        // Printed, so that a person sees that the official decoder did not run.
        eprintln!(
            "skipped: no python3 with opentelemetry-proto; `pip install opentelemetry-proto` in a venv, and set \
             DICTA_TEST_PYTHON to its python, as .ci/run does"
        );
        return;
    };
    let script = test_dir.write("decode.py", DECODER);
    let output = Command::new(python).arg(script).arg(&path).output();
    let output = output.expect("python runs");
    let out = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(
        out,
        "judge grounded 0 0\nevent gen_ai.evaluation.result 1.0 pass\nchat m 8 0\nexecute_tool order 8 0\nchat m 8 0\n"
    );
}

/// Checks the spans without the decoder.
fn check_spans(path: &Path) {
    let text = std::fs::read_to_string(path).expect("a file");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let spans = &document["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let spans = spans.as_array().expect("spans");
    let names: Vec<&str> = spans
        .iter()
        .filter_map(|span| span["name"].as_str())
        .collect();
    assert_eq!(
        names,
        ["judge grounded", "chat m", "execute_tool order", "chat m"]
    );
    let ids: std::collections::HashSet<&str> = spans
        .iter()
        .filter_map(|span| span["spanId"].as_str())
        .collect();
    assert_eq!(ids.len(), spans.len());
    let event = &spans[0]["events"][0];
    assert_eq!(event["name"], "gen_ai.evaluation.result");
    let attributes = event["attributes"].as_array().expect("attributes");
    let score = attributes
        .iter()
        .find(|one| one["key"] == "gen_ai.evaluation.score.value");
    assert_eq!(
        score.expect("a score")["value"],
        json!({"doubleValue": 1.0})
    );
}

#[test]
fn keys_in_transcripts_are_reported_at_export_and_stay() {
    let key = format!("gh{}{}", "p_", "aB3dE5fG7h".repeat(4))
        .chars()
        .take(40)
        .collect::<String>();
    let test_dir = TestDir::new();
    // The recording of a judged eval has the prompt, and with it the transcript.
    test_dir.workspace(
        "judge: rules\n",
        "  - { id: names, type: llm_judge, params: { criteria: \"The answer contains `day`.\" } }\n",
    );
    for (content, is_key) in [
        (format!("Good day, my key is {key}"), true),
        ("Good day".to_owned(), false),
    ] {
        let record = json!({"id": "one", "messages": [{"role": "user", "content": "Hello"},
            {"role": "assistant", "content": content}]});
        test_dir.write("t.jsonl", &format!("{record}\n"));
        test_dir.dicta(&["run", "-q"]);
        // A screen breaks a long key into rows.
        for name in ["page.html", "run.dicta"] {
            let export = test_dir.dicta(&["export", "@", "-o", name, "-q"]);
            let stderr = text(&export.stderr);
            assert_eq!(export.status.code(), Some(0), "{stderr}");
            let file = text(&std::fs::read(test_dir.path().join(name)).expect("exported"));
            assert_eq!(
                file.contains(&key),
                is_key,
                "{name}: the text stays as it is"
            );
            let warning = format!("warning: {name} contains texts that look like keys: GitHub (");
            assert_eq!(stderr.contains(&warning), is_key, "{name}: {stderr}");
        }
    }
}
