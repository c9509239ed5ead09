//! Stories of the whole workbench, driven by keys.

use crate::model::Millis;
use crate::tui::effect::Effect;
use crate::tui::msg::Msg;
use crate::tui::testing::Driven;

#[test]
fn a_storm_of_resizes_breaks_nothing() {
    let mut app = Driven::demo(80, 24);
    app.settle();
    let mut random = fastrand::Rng::with_seed(7);
    app.resize(1, 1);
    for round in 0..1000 {
        app.resize(random.u16(1..=220), random.u16(1..=70));
        if round % 50 == 0 {
            app.keys("tab + j");
        }
    }
    app.resize(80, 24).settle();
    let before = app.screen();
    app.tell(Msg::Key("ctrl-l".parse().expect("a key")));
    assert_eq!(app.screen().lines().count(), before.lines().count());
}

#[test]
fn an_idle_workbench_asks_for_no_moment() {
    let mut app = Driven::demo(80, 24);
    app.settle();
    app.pass(Millis::from_secs(60));
    assert_eq!(app.app.model.next_wake(), None);
}

#[test]
fn a_text_that_is_too_large_for_the_clipboard_is_a_file() {
    let mut app = Driven::demo(80, 24);
    app.settle();
    app.effect(Effect::Copy {
        what: "the page".to_owned(),
        text: "x".repeat(80_000),
    });
    app.settle();
    assert!(app.app.screen.copied.is_empty());
    let told = &app.app.model.notices.log.last().expect("a notice").text;
    let path = told.split(" it is in ").nth(1).expect("where it is");
    assert_eq!(std::fs::read(path).expect("it is there").len(), 80_000);
    app.effect(Effect::Copy {
        what: "the name".to_owned(),
        text: "a/b/c".to_owned(),
    });
    assert_eq!(app.app.screen.copied, ["a/b/c"]);
}

#[test]
fn leaving_at_once_says_that_nothing_was_run() {
    let mut app = Driven::demo(80, 24);
    app.settle();
    assert_eq!(app.close(), "dicta: nothing was run");
}
