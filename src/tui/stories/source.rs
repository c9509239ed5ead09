//! Where a transcript comes from: what is told of it, what its source decided, and the record behind it, one key away.

use super::{point, told, workbench};
use crate::tui::testing::Driven;

const DICTA: &str = "transcripts: [out.json, t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n";
const RUBRIC: &str = "evals:\n  - { id: says, type: contains, params: { patterns: [refund] } }\n";
const NATIVE: &str = "{\"id\":\"own\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"a refund\",\"metadata\":{\"latency_ms\":420}}]}\n";
const RESULTS: &str = r#"{"evalId":"eval-1","results":{"version":3,"results":[
{"id":"row-1","testIdx":0,"promptIdx":0,"prompt":{"raw":"hello","label":"greet"},"vars":{"name":"A"},"provider":{"id":"echo"},
 "response":{"output":"a refund","cost":0.02,"tokenUsage":{"prompt":300,"completion":45,"total":345}},"latencyMs":1234,"success":false,"score":0.5,
 "gradingResult":{"pass":false,"score":0.5,"reason":"\u001b[2J no","componentResults":[{"pass":false,"score":0.5,"reason":"no","assertion":{"type":"equals","value":"x","metric":"exact"}}]}},
{"note":"no result"}]},"config":{}}"#;

fn opened(width: u16, height: u16) -> Driven {
    let files = [
        ("dicta.yaml", DICTA),
        ("r.yaml", RUBRIC),
        ("t.jsonl", NATIVE),
        ("out.json", RESULTS),
    ];
    let mut app = workbench(width, height, &files);
    app.settle().keys("R").settle();
    app
}

#[test]
fn what_a_source_told_stands_above_the_messages_and_beside_them() {
    let mut app = opened(200, 60);
    point(&mut app, "row-1/r/says");
    app.settle();
    let screen = app.screen();
    for part in [
        "from promptfoo",
        "promptfoo said: exact fail 0.5 · overall fail 0.5",
        "assistant · 1.2 s · 345 tokens · $0.0200",
    ] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    // The first message is still number 0.
    assert!(screen.contains("[0] user"), "{screen}");
    point(&mut app, "own/r/says");
    app.settle();
    let screen = app.screen();
    assert!(screen.contains("assistant · 420 ms"), "{screen}");
    assert!(!screen.contains("from "), "its author knows:\n{screen}");
}

#[test]
fn the_record_behind_a_transcript_is_one_key_away() {
    let mut app = opened(120, 40);
    point(&mut app, "row-1/r/says");
    app.settle().keys("O").settle();
    let screen = app.screen();
    for part in [
        "source  row-1",
        "promptfoo results",
        "1 of the file's 2 records were not understood",
        "\"evalId\"",
        "\"testIdx\": 0,",
    ] {
        let there = screen.contains(part);
        assert_eq!(there, part != "\"evalId\"", "{part}:\n{screen}");
    }
    assert!(
        !screen.contains('\u{1b}'),
        "nothing reaches the terminal raw"
    );
    let shown: Vec<&str> = screen
        .lines()
        .filter(|line| !line.contains("out.json"))
        .collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!("record_120x40", shown.join("\n")));
    app.keys("G");
    assert!(
        app.screen().contains("\"metric\": \"exact\""),
        "{}",
        app.screen()
    );
    app.keys("esc");
    assert!(!app.screen().contains("source  row-1"));
    // Gone since: the screen says so, and why.
    std::fs::remove_file(app.root.join("out.json")).expect("removed");
    app.keys("O").settle();
    assert!(
        app.screen().contains("the record cannot be read"),
        "{}",
        app.screen()
    );
    app.keys("esc");
    assert!(!told(&app).contains("panic"));
}
