//! A file of transcripts without a workspace: shown, then a workspace is created around it and judged.

use std::path::PathBuf;

use ratatui::layout::Size;
use tempfile::TempDir;

use crate::tui::state::OpenedItem;
use crate::tui::testing::TestWorkbench;
use crate::workspace::Env;

const TWO: &str = concat!(
    r#"{"id":"order-1","messages":[{"role":"user","content":"Where is it?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"lookup","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"shipped on 2026-10-05"},{"role":"assistant","content":"It was shipped on 2026-10-05, all of it."}]}"#,
    "\n",
    r#"{"id":"order-2","messages":[{"role":"user","content":"And mine?"},{"role":"assistant","content":"It comes on 2026-12-24."}]}"#,
    "\n"
);

fn opened(name: &str, text: &str) -> (TestWorkbench, PathBuf) {
    let data = TempDir::new().expect("a folder");
    let file = data.path().join(name);
    std::fs::write(&file, text).expect("written");
    let dir = data.path().display().to_string();
    let env = Env([("DICTA_DATA_DIR".to_owned(), dir)].into());
    let root = data.path().to_owned();
    let size = Size::new(120, 40);
    let place = OpenedItem::TranscriptFile(file.clone());
    let mut driven = TestWorkbench::on(place, size, None, (env, data, root), Vec::new());
    driven.settle();
    (driven, file)
}

fn last_notice(driven: &TestWorkbench) -> String {
    let last = driven.event_loop.app.notices.newest.as_ref();
    last.map_or_else(String::new, |notice| notice.text.clone())
}

#[test]
fn transcript_file_is_listed_and_one_key_creates_workspace() {
    let (mut driven, file) = opened("orders.jsonl", TWO);
    let screen = driven.screen();
    for part in ["order-1", "order-2", "Where is it?", "creates a workspace"] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    driven.keys("r");
    assert!(
        last_notice(&driven).contains("W to create a workspace"),
        "{}",
        last_notice(&driven)
    );

    driven.keys("W").settle();
    assert!(
        last_notice(&driven).contains("R judges it"),
        "{}",
        last_notice(&driven)
    );
    let folder = file.with_file_name("orders-rubrics");
    assert!(folder.join("rubrics/first.yaml").is_file());
    driven.keys("R").settle();
    let total = driven.event_loop.app.live_session.cells.total;
    assert!(total.pass > 0 && total.fail > 0, "{total:?}");

    driven.keys("W");
    assert!(last_notice(&driven).contains("a workspace is already open"));
    driven.keys("e");
    assert_eq!(driven.terminal_effects.len(), 1, "an editor is asked for");
}

#[test]
fn table_without_field_mapping_gets_one_with_its_workspace() {
    let table = "ticket;Customer question;Agent answer\n1;Where is it?;\"It ships; on Monday, promise.\"\n2;Refund?;No.\n";
    let (mut driven, file) = opened("support.csv", table);
    driven.keys("tab tab 1");
    let screen = driven.screen();
    assert!(screen.contains("dicta map"), "{screen}");
    assert!(screen.contains("W creates a workspace with"), "{screen}");
    driven.keys("W").settle();
    assert!(
        last_notice(&driven).contains("R judges it"),
        "{}",
        last_notice(&driven)
    );
    assert!(file.with_file_name("support-rubrics").is_dir());
    driven.keys("R").settle();
    assert!(driven.event_loop.app.live_session.cells.total.pass > 0);
    driven.keys("j").settle();
    driven.keys("O").settle();
    let screen = driven.screen();
    assert!(screen.contains("a table, read by a map"), "{screen}");
    let is_record = screen.contains("Where is it?;") || screen.contains("2;Refund?;No.");
    assert!(is_record, "{screen}");
}

#[test]
fn source_verdicts_and_skipped_records_are_reported() {
    let results = r#"{"evalId":"eval-1","results":{"version":3,"results":[
{"id":"row-1","testIdx":0,"promptIdx":0,"prompt":{"raw":"hello","label":"greet"},"vars":{},"provider":{"id":"echo"},
 "response":{"output":"a refund of all of it"},"success":false,"score":0.5,
 "gradingResult":{"pass":false,"score":0.5,"reason":"no","componentResults":[{"pass":false,"score":0.5,"reason":"no","assertion":{"type":"equals","value":"x","metric":"exact"}}]}},
{"note":"no result"}]},"config":{}}"#;
    let (mut driven, file) = opened("out.json", results);
    let screen = driven.screen();
    assert!(screen.contains("promptfoo said: exact fail"), "{screen}");
    assert!(
        last_notice(&driven).contains("some records not understood (L says which)"),
        "{}",
        last_notice(&driven)
    );
    let log = &driven.event_loop.app.notices.log;
    let log: Vec<&str> = log.iter().map(|notice| notice.text.as_str()).collect();
    assert!(
        log.iter()
            .any(|text| text.contains("1 of the file's 2 records was not understood")),
        "{log:?}"
    );
    // The screen shows no empty pane and no key without an effect.
    assert!(!screen.contains("2 prompt ─"), "{screen}");
    driven.keys("6");
    let screen = driven.screen();
    assert!(screen.contains("O raw record"), "{screen}");
    assert!(!screen.contains("next problem"), "{screen}");
    driven.keys("5");
    assert!(driven.screen().contains("no rubric for this file yet"));
    driven.keys("W").settle();
    assert!(
        file.with_file_name("out-rubrics/rubrics/promptfoo.yaml")
            .is_file()
    );
    driven.keys("R").settle();
    let cells = &driven.event_loop.app.live_session.cells;
    let name = "row-1/promptfoo/exact".parse().expect("a name");
    let row = cells.find_row(&name).expect("what was there is a decision");
    assert!(cells.row(row).is_some());
    assert!(cells.total.fail >= 2, "{:?}", cells.total);
}

#[test]
fn file_without_transcripts_shows_reason_in_pane() {
    for (name, text, why) in [
        ("nothing.jsonl", "", "empty"),
        (
            "log.json",
            r#"{"version":2,"status":"success","eval":{"task":"x"},"samples":[]}"#,
            "Inspect",
        ),
        ("junk.txt", "hello\n\u{1b}[2J", "neither"),
    ] {
        let (mut driven, file) = opened(name, text);
        // The next key hides the notice in the footer.
        driven.keys("tab tab 1");
        let screen = driven.screen();
        assert!(screen.contains(why), "{why}:\n{screen}");
        driven.keys("W").settle();
        assert!(last_notice(&driven).starts_with("no workspace can be made around this file"));
        assert!(
            !file
                .with_file_name(format!(
                    "{}-rubrics",
                    name.split('.').next().expect("a stem")
                ))
                .exists()
        );
    }
}

#[test]
fn workspace_without_cells_says_what_is_missing() {
    const TRANSCRIPTS: &str = "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n";
    let config = "prompts: [p]\nproviders: [x]\ntests: [{ vars: { q: hi } }]\n";
    let narrow = "applies_to: { ids: [no-such-id] }\nevals:\n  - { id: says, type: contains, params: { patterns: [x] } }\n";
    for (rubric, wanted) in [
        (config, "No rubric has an eval."),
        (narrow, "change applies_to: of the rubric"),
    ] {
        let files = [
            ("dicta.yaml", TRANSCRIPTS),
            ("r.yaml", rubric),
            ("t.jsonl", TWO),
        ];
        let mut driven = super::workbench(120, 40, &files);
        driven.settle();
        let screen = driven.screen();
        assert!(screen.contains(wanted), "{wanted}:\n{screen}");
    }
}
