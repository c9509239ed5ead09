//! Notices in the last row: how long they stay, and what they leave free.

use super::{demo, judged, last_notice};
use crate::model::Millis;
use crate::tui::msg::{MouseAction, MouseInput, Msg};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::testing::TestWorkbench;

const TEXT: &str = "something happened";

/// Shows a notice on a workbench without another one.
fn show(app: &mut TestWorkbench, level: NoticeLevel, text: &str) {
    app.pass(Millis(60_000));
    let model = &mut app.event_loop.app;
    let now = model.now;
    model.notices.push(now, level, text);
    app.draw();
    assert_eq!(last_notice(app), text);
}

#[test]
fn notice_leaves_at_the_next_key_at_a_click_and_after_some_seconds() {
    let mut app = demo(80, 24);
    for (level, seconds) in [
        (NoticeLevel::Info, 4),
        (NoticeLevel::Warning, 7),
        (NoticeLevel::Error, 10),
    ] {
        show(&mut app, level, TEXT);
        assert!(app.last_row().contains(TEXT), "{}", app.screen());
        app.keys("j");
        assert!(!app.last_row().contains(TEXT), "{}", app.screen());

        show(&mut app, level, TEXT);
        app.send_msg(Msg::Mouse(MouseInput {
            action: MouseAction::Pressed,
            column: 5,
            row: 5,
        }));
        assert!(!app.last_row().contains(TEXT), "{}", app.screen());

        show(&mut app, level, TEXT);
        app.pass(Millis(seconds * 1000 - 1));
        assert!(app.last_row().contains(TEXT), "{}", app.screen());
        app.pass(Millis(1));
        let row = app.last_row();
        assert!(!row.contains(TEXT) && row.contains("? help"), "{row}");
    }
}

#[test]
fn notice_leaves_the_rest_of_the_row_for_keys() {
    let mut app = judged(120, 40);
    show(&mut app, NoticeLevel::Info, TEXT);
    let row = app.last_row();
    assert!(
        row.contains(TEXT) && row.contains(" r run ") && row.ends_with("? help"),
        "{row}"
    );
    // A longer notice leaves room for fewer keys. The last one is always help.
    let long = "word ".repeat(14);
    show(&mut app, NoticeLevel::Info, long.trim());
    let row = app.last_row();
    assert!(row.contains(long.trim()), "{row}");
    assert!(row.contains(" r run ") && row.ends_with("? help"), "{row}");
    let longer = "word ".repeat(22);
    show(&mut app, NoticeLevel::Info, longer.trim());
    let row = app.last_row();
    assert!(!row.contains("? help"), "{row}");
}

#[test]
fn long_notice_breaks_no_path_and_marks_what_it_cuts() {
    let mut app = demo(80, 24);
    let path = "/home/a-user/some-folder/with-hyphens/demo-175936fa/demo";
    let text = format!("this is the demo, unpacked at {path} (yours to edit)");
    show(&mut app, NoticeLevel::Info, &text);
    assert!(app.screen().contains(path), "{}", app.screen());
    show(&mut app, NoticeLevel::Info, &"word ".repeat(100));
    let row = app.last_row();
    assert!(row.contains("word") && row.ends_with('…'), "{row}");
}
