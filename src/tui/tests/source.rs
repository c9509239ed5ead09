//! The source of a transcript: its metadata, its source verdicts, and the record behind it.

use super::{last_notice, point, workbench};
use crate::tui::testing::TestWorkbench;

const DICTA: &str = "transcripts: [out.json, t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n";
const RUBRIC: &str = "evals:\n  - { id: says, type: contains, params: { patterns: [refund] } }\n";
const NATIVE: &str = "{\"id\":\"own\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"a refund\",\"metadata\":{\"latency_ms\":420}}]}\n";
const RESULTS: &str = r#"{"evalId":"eval-1","results":{"version":3,"results":[
{"id":"row-1","testIdx":0,"promptIdx":0,"prompt":{"raw":"hello","label":"greet"},"vars":{"name":"A"},"provider":{"id":"echo"},
 "response":{"output":"a refund","cost":0.02,"tokenUsage":{"prompt":300,"completion":45,"total":345}},"latencyMs":1234,"success":false,"score":0.5,
 "gradingResult":{"pass":false,"score":0.5,"reason":"\u001b[2J no","componentResults":[{"pass":false,"score":0.5,"reason":"no","assertion":{"type":"equals","value":"x","metric":"exact"}}]}},
{"note":"no result"}]},"config":{}}"#;

fn opened(width: u16, height: u16) -> TestWorkbench {
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
fn source_metadata_is_shown_above_and_next_to_messages() {
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
    // The metadata does not count as a message.
    assert!(screen.contains("[0] user"), "{screen}");
    point(&mut app, "own/r/says");
    app.settle();
    let screen = app.screen();
    assert!(screen.contains("assistant · 420 ms"), "{screen}");
    assert!(!screen.contains("from "), "its author knows:\n{screen}");
}

#[test]
fn one_key_shows_record_of_transcript() {
    let mut app = opened(120, 40);
    point(&mut app, "row-1/r/says");
    app.settle().keys("O").settle();
    let screen = app.screen();
    for part in [
        "source  row-1",
        "promptfoo results",
        "1 of the file's 2 records was not understood",
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
    // After the file was removed, the screen shows the reason.
    std::fs::remove_file(app.root.join("out.json")).expect("removed");
    app.keys("O").settle();
    assert!(
        app.screen().contains("the record cannot be read"),
        "{}",
        app.screen()
    );
    app.keys("esc");
    assert!(!last_notice(&app).contains("panic"));
}

#[test]
fn row_of_an_eval_shows_no_record_of_an_earlier_cell() {
    let mut app = opened(80, 24);
    point(&mut app, "own/r/says");
    app.settle().keys("1 g").settle();
    for keys in ["O", "y m"] {
        app.keys(keys).settle();
        assert_eq!(
            last_notice(&app),
            "an eval has a summary only: j and k go to its cells",
            "{keys}"
        );
    }
    assert!(app.event_loop.app.overlays.is_empty());
    assert!(app.event_loop.screen.copied.is_empty());
}
