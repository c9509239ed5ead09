//! The beginning and the end of a label queue, and the way from it to the answer.

use super::labelling::{begin, labelled, read_back, select_eval, selected};
use crate::model::Millis;
use crate::tui::msg::Msg;
use crate::tui::testing::TestWorkbench;

const BLIND_END: &str = "the queue is done: B shows the verdicts, then I the agreement";
const OPEN_END: &str = "the queue is done: I shows the agreement";

/// Labels all decisions of the queue, and waits until no notice is shown.
fn label_all(app: &mut TestWorkbench, count: usize) {
    for _ in 0..count {
        let key = if selected(app).as_str() < "t05" {
            "p"
        } else {
            "f"
        };
        app.keys(key);
    }
    read_back(app);
    app.pass(Millis(60_000));
}

#[test]
fn end_of_a_blind_queue_shows_the_keys_to_the_answer_until_the_user_presses_them() {
    let mut app = labelled(80, 24, "");
    select_eval(&mut app);
    app.keys("B").settle();
    begin(&mut app, "random");
    app.pass(Millis(60_000));
    assert!(
        !app.last_row().contains("the queue is done"),
        "{}",
        app.screen()
    );
    label_all(&mut app, 12);
    assert!(app.last_row().contains(BLIND_END), "{}", app.screen());
    // Moving through the cells is not the answer.
    app.keys("1 g j").settle();
    app.pass(Millis(60_000));
    assert!(app.last_row().contains(BLIND_END), "{}", app.screen());
    app.keys("B").settle();
    app.pass(Millis(60_000));
    assert!(app.last_row().contains(OPEN_END), "{}", app.screen());
    app.keys("I").settle();
    app.keys("esc").settle();
    app.pass(Millis(60_000));
    assert!(
        !app.last_row().contains("the queue is done"),
        "{}",
        app.screen()
    );
}

#[test]
fn undone_label_and_another_queue_take_the_end_of_the_queue_back() {
    let mut app = labelled(80, 24, "");
    select_eval(&mut app);
    begin(&mut app, "random");
    label_all(&mut app, 12);
    assert!(app.last_row().contains(OPEN_END), "{}", app.screen());
    app.keys("s").settle();
    let notice = super::last_notice(&app);
    assert!(
        notice.contains(OPEN_END) && notice.contains("Q chooses another queue"),
        "{notice}"
    );
    app.keys("U");
    read_back(&mut app);
    app.pass(Millis(60_000));
    assert!(
        !app.last_row().contains("the queue is done"),
        "{}",
        app.screen()
    );
    label_all(&mut app, 1);
    assert!(app.last_row().contains(OPEN_END), "{}", app.screen());
    begin(&mut app, "by hand");
    app.pass(Millis(60_000));
    assert!(
        !app.last_row().contains("the queue is done"),
        "{}",
        app.screen()
    );
}

/// Returns a workbench whose user chose a queue before all rows were listed.
fn with_waiting_queue() -> TestWorkbench {
    let mut app = labelled(80, 24, "");
    select_eval(&mut app);
    app.event_loop.app.past_verdict_wait.begin();
    begin(&mut app, "random");
    app
}

/// Lists the rest of the rows. The next message begins a queue that waits.
fn list_all_rows(app: &mut TestWorkbench) {
    app.event_loop.app.past_verdict_wait.end_reading();
    app.send_msg(Msg::FocusGained).settle();
}

/// A draw from the rows that are listed so far would be no sample of all.
#[test]
fn queue_chosen_before_all_rows_are_listed_begins_when_they_are() {
    let mut app = with_waiting_queue();
    assert_eq!(app.event_loop.app.labelling.queue, None);
    let notice = super::last_notice(&app);
    assert!(notice.contains("when all decisions are listed"), "{notice}");
    list_all_rows(&mut app);
    assert!(app.screen().contains("random 0 of 12"), "{}", app.screen());
}

#[test]
fn next_key_drops_the_queue_that_waits() {
    let mut app = with_waiting_queue();
    app.keys("j").settle();
    let notice = super::last_notice(&app);
    assert!(notice.contains("Q lists the queues again"), "{notice}");
    list_all_rows(&mut app);
    assert_eq!(app.event_loop.app.labelling.queue, None);
}

#[test]
fn list_of_queues_says_what_each_number_counts() {
    let mut app = labelled(80, 24, "");
    select_eval(&mut app);
    app.keys("Q").settle();
    let screen = app.screen();
    assert!(
        screen.contains("at most 20 decisions;") && screen.contains("from all 12 decisions"),
        "{screen}"
    );
    app.keys("h j enter").settle();
    app.keys("p p p");
    read_back(&mut app);
    app.keys("Q").settle();
    let screen = app.screen();
    assert!(
        screen.contains("from 9 of 12; 3 measure already"),
        "{screen}"
    );
}

#[test]
fn agreement_names_what_its_limits_are_about() {
    let mut app = labelled(120, 60, "");
    select_eval(&mut app);
    begin(&mut app, "random");
    label_all(&mut app, 12);
    app.keys("I").settle();
    let screen = app.screen();
    for text in [
        "of these 12 decisions; all have a label, so the figures are exact for them:",
        "of further transcripts like these, with 95% limits; the answer and gates use them:",
        "further    TPR 0.",
    ] {
        assert!(screen.contains(text), "{text} in\n{screen}");
    }
}
