//! Tests of the whole workbench, driven by keys.
//!
//! They use no terminal, no network except loopback, and only the fake clock.

mod blind;
mod calls;
mod completion;
mod consent;
mod edits;
mod examples;
mod first_hour;
mod first_judging;
mod footer;
mod hostile;
mod hurts;
mod interruptions;
mod judges;
mod keys;
mod labelling;
mod labels;
mod long_ids;
mod look;
mod looks;
mod noise;
mod notices;
mod pages;
mod panels;
mod pauses;
mod picture;
mod progress;
mod queue_end;
mod replay;
mod review;
mod review_answers;
mod safe_keys;
mod saves;
mod scrolled_texts;
mod sealed;
mod server;
mod source;
mod trace_screen;
mod unjudged_file;
mod variants;
mod wishes;

use std::path::Path;

use tempfile::TempDir;

use super::msg::Msg;
use super::testing::TestWorkbench;
use crate::model::Outcome;
use crate::workspace::demo;

/// Writes these files to a new folder.
fn files(all: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for (path, text) in all {
        let path = dir.path().join("w").join(path);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    dir
}

/// Opens a workbench on a workspace with these files.
fn workbench(width: u16, height: u16, all: &[(&str, &str)]) -> TestWorkbench {
    let dir = files(all);
    let root = dir.path().join("w");
    TestWorkbench::open(width, height, None, dir, &root)
}

/// Opens the demo and waits until nothing is left to do.
fn demo(width: u16, height: u16) -> TestWorkbench {
    let mut app = TestWorkbench::demo(width, height);
    app.settle();
    app
}

/// Opens the demo and judges it with `R`.
fn judged(width: u16, height: u16) -> TestWorkbench {
    let mut app = demo(width, height);
    app.keys("R").settle();
    app
}

/// Returns the demo's rubric with the planted mistake, and without it.
fn rubric(app: &TestWorkbench) -> (String, String) {
    let text =
        std::fs::read_to_string(app.root.join("rubrics/beamline.yaml")).expect("it is there");
    let edited = text.replace(r"Beamline \d\.\d\b", r"Beamline \d+\.\d+");
    assert_ne!(text, edited, "the planted bug is there");
    (text, edited)
}

/// Selects a cell by its name, and waits for the texts that it needs.
fn go_to(app: &mut TestWorkbench, name: &str) {
    point(app, name);
    app.settle();
}

/// Selects a cell by its name.
fn point(app: &mut TestWorkbench, name: &str) {
    let cells = &mut app.event_loop.app.session_mut().cells;
    let name = name.parse().expect("a name");
    let row = cells.find_row(&name).expect("there is such a cell");
    assert!(cells.select_row(row));
    // Any message makes the panes load the selected cell.
    app.send_msg(Msg::TimePassed);
}

/// Returns the outcome of a decision by its name.
fn outcome(app: &TestWorkbench, name: &str) -> Option<Outcome> {
    let cells = &app.event_loop.app.live_session.cells;
    let row = cells.find_row(&name.parse().expect("a name"))?;
    match cells.row(row)?.status() {
        super::state::cells::RowStatus::Decided(outcome) => Some(outcome),
        _ => None,
    }
}

/// Returns the newest notice.
fn last_notice(app: &TestWorkbench) -> &str {
    let newest = &app.event_loop.app.notices.newest;
    newest.as_ref().map_or("", |notice| &notice.text)
}

fn runs_in(store: &Path) -> usize {
    let entries = std::fs::read_dir(store).into_iter().flatten().flatten();
    // The index of the history is a file.
    entries.filter(|entry| entry.path().is_dir()).count()
}

fn demo_in(dir: &Path) -> std::path::PathBuf {
    demo::unpack(dir).expect("the demo is unpacked")
}
