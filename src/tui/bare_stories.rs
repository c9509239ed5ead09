//! A bare file of transcripts, over the whole workbench: shown, then a workspace around it, judged.

use std::path::PathBuf;

use ratatui::layout::Size;
use tempfile::TempDir;

use super::model::Place;
use super::testing::Driven;
use crate::workspace::Env;

const TWO: &str = concat!(
    r#"{"id":"order-1","messages":[{"role":"user","content":"Where is it?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"lookup","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"shipped on 2026-10-05"},{"role":"assistant","content":"It was shipped on 2026-10-05, all of it."}]}"#,
    "\n",
    r#"{"id":"order-2","messages":[{"role":"user","content":"And mine?"},{"role":"assistant","content":"It comes on 2026-12-24."}]}"#,
    "\n"
);

fn opened(name: &str, text: &str) -> (Driven, PathBuf) {
    let data = TempDir::new().expect("a folder");
    let file = data.path().join(name);
    std::fs::write(&file, text).expect("written");
    let dir = data.path().display().to_string();
    let env = Env([("DICTA_DATA_DIR".to_owned(), dir)].into());
    let root = data.path().to_owned();
    let size = Size::new(120, 40);
    let place = Place::Bare(file.clone());
    let mut driven = Driven::on(place, size, None, (env, data, root), Vec::new());
    driven.settle();
    (driven, file)
}

fn said(driven: &Driven) -> String {
    let last = driven.app.model.notices.log.last();
    last.map_or_else(String::new, |notice| notice.text.clone())
}

#[test]
fn a_bare_file_is_shown_and_one_key_makes_a_workspace_that_judges_it() {
    let (mut driven, file) = opened("orders.jsonl", TWO);
    let screen = driven.screen();
    for part in ["order-1", "order-2", "Where is it?", "makes a workspace"] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    driven.keys("r");
    assert!(
        said(&driven).contains("W makes a workspace"),
        "{}",
        said(&driven)
    );

    driven.keys("W").settle();
    assert!(said(&driven).contains("R judges it"), "{}", said(&driven));
    let folder = file.with_file_name("orders-rubrics");
    assert!(folder.join("rubrics/first.yaml").is_file());
    driven.keys("R").settle();
    let total = driven.app.model.live.cells.total;
    assert!(total.pass > 0 && total.fail > 0, "{total:?}");

    driven.keys("W");
    assert!(said(&driven).contains("a workspace is open already"));
    driven.keys("e");
    assert_eq!(driven.errands.len(), 1, "an editor is asked for");
}

#[test]
fn a_file_that_holds_no_transcripts_says_why_in_the_pane() {
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
        // The message in the footer goes away with the next key.
        driven.keys("tab tab 1");
        let screen = driven.screen();
        assert!(screen.contains(why), "{why}:\n{screen}");
        driven.keys("W").settle();
        assert!(said(&driven).starts_with("no workspace can be made around this file"));
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
