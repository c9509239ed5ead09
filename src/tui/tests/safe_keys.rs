//! Keys that must not write: a word typed after `/` on a screen without a search, and labels of cells that no list shows.
//! The footer names the key that leaves a screen without quitting dicta.

use super::{go_to, judged, last_notice, review};
use crate::model::Millis;
use crate::tui::state::cells::LabelValue;
use crate::tui::state::overlay::Overlay;
use crate::tui::testing::TestWorkbench;

/// Returns every file of the workspace with its text.
fn files(app: &TestWorkbench) -> Vec<(String, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(&app.root).sort_by_file_name();
    let files = entries.into_iter().flatten();
    let files = files.filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| {
            let text = std::fs::read(entry.path()).expect("read");
            (entry.path().display().to_string(), text)
        })
        .collect()
}

#[test]
fn word_typed_after_slash_on_the_progress_screen_changes_nothing() {
    let mut app = judged(80, 24);
    // An eval with scores: its threshold moves with h and l, and enter writes it.
    app.keys("H").settle();
    while app.event_loop.app.progress.preview().is_err() {
        app.keys(".").settle();
    }
    app.keys("tab tab tab tab").settle();
    let before = files(&app);
    app.keys("/").type_in("hello t*").settle();
    let screen = app.screen();
    assert!(
        screen.contains("no search on the progress screen: hello t*"),
        "{screen}"
    );
    app.keys("enter").settle();
    let progress = &app.event_loop.app.progress;
    assert_eq!((progress.threshold, progress.view.baseline), (None, None));
    assert!(app.event_loop.app.overlays.is_empty());
    assert_eq!(files(&app), before);
    // The line is closed, and keys are keys again.
    app.keys("l").settle();
    assert!(app.event_loop.app.progress.threshold.is_some());
}

#[test]
fn word_typed_after_slash_answers_no_question_and_labels_nothing() {
    let mut app = judged(120, 40);
    app.keys("S").type_in("/quit").settle();
    assert!(matches!(
        app.event_loop.app.overlays.last(),
        Some(Overlay::Statistics { .. })
    ));
    assert!(app.screen().contains("no search in this window: quit"));
    app.keys("esc q").settle();
    assert!(app.event_loop.app.overlays.is_empty());
    assert_eq!(app.end(), None);
    let (mut reading, file) = review::opened(3, ratatui::layout::Size::new(120, 40));
    let folder = file.parent().expect("a folder");
    let count = || std::fs::read_dir(folder).expect("listed").count();
    let current = |app: &TestWorkbench| {
        let review = &app.event_loop.app.review;
        review.current_transcript().map(str::to_owned)
    };
    let before = (count(), current(&reading));
    reading.keys("/").type_in("nuos").keys("enter").settle();
    // No note is written, and the same transcript waits for one.
    assert_eq!((count(), current(&reading)), before);
}

#[test]
fn label_goes_only_to_a_cell_that_the_list_shows() {
    const CELL: &str = "beam-upgrade/beamline/newest";
    let mut app = judged(120, 40);
    go_to(&mut app, CELL);
    app.keys("1 /")
        .type_in("tag:nowhere")
        .keys("enter")
        .settle();
    assert!(app.event_loop.app.session().cells.shown.is_empty());
    let before = files(&app);
    for key in ["p", "f", "u", "x", "a", "i", "E", "r", "J", "*", "v"] {
        app.keys(key).settle();
        let notice = last_notice(&app);
        assert!(
            notice.starts_with("the filter matches no cell"),
            "{key}: {notice}"
        );
        assert!(app.event_loop.app.overlays.is_empty(), "{key}");
    }
    assert_eq!(files(&app), before);
    // With the cell in the list again, the key labels it.
    app.keys("esc").settle();
    go_to(&mut app, CELL);
    app.keys("1 p").settle();
    let cells = &app.event_loop.app.live_session.cells;
    let row = cells
        .find_row(&CELL.parse().expect("a name"))
        .expect("a row");
    let label = cells.row(row).and_then(|row| row.label);
    assert_eq!(label, Some(LabelValue::Pass));
}

#[test]
fn progress_screen_names_the_key_that_goes_back() {
    let mut app = judged(120, 40);
    app.keys("H").settle();
    app.event_loop.app.notices.dismiss();
    app.pass(Millis(1));
    let footer = app.last_row();
    assert!(footer.contains("esc back"), "{footer}");
    app.keys("esc").settle();
    assert!(!app.event_loop.app.progress.open);
    assert_eq!(app.end(), None, "dicta still runs");
}
