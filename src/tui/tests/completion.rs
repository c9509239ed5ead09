//! The list of keys and values under the filter, driven by keys.

use super::look::{look, rows};
use super::looks::same;
use super::{demo, judged, workbench};
use crate::tui::msg::{MouseAction, MouseInput, Msg};
use crate::tui::state::FooterInput;
use crate::tui::testing::TestWorkbench;

/// Returns the typed filter and the texts of the list.
fn typed(app: &TestWorkbench) -> (String, Vec<String>) {
    match &app.event_loop.app.ui.footer_input {
        Some(FooterInput::Filter {
            input, completion, ..
        }) => {
            let offers = completion.offers.iter();
            (
                input.text.clone(),
                offers.map(|offer| offer.text.clone()).collect(),
            )
        }
        _ => (String::new(), Vec::new()),
    }
}

fn filter(app: &TestWorkbench) -> &str {
    &app.event_loop.app.live_session.cells.filter
}

#[test]
fn tab_completes_a_key_then_a_value_and_applies_it() {
    let mut app = judged(120, 40);
    let all = app.event_loop.app.live_session.cells.matching;
    app.keys("/").type_in("ou").keys("tab");
    let (text, offers) = typed(&app);
    assert_eq!(text, "outcome:");
    assert!(offers.contains(&"fail".to_owned()), "{offers:?}");
    app.keys("down down");
    assert_eq!(typed(&app).0, "outcome:fail");
    assert_eq!(filter(&app), "outcome:fail");
    let failed = app.event_loop.app.live_session.cells.matching;
    assert!(0 < failed && failed < all, "{failed} of {all}");
    app.keys("shift-tab");
    assert_eq!(typed(&app).0, "outcome:pass");
    app.keys("up");
    assert_ne!(typed(&app).0, "outcome:pass", "the list has no end");
    app.keys("down enter");
    assert_eq!(filter(&app), "outcome:pass");
    assert!(app.event_loop.app.ui.footer_input.is_none());
}

#[test]
fn wide_screen_shows_the_description_of_each_outcome_in_full() {
    let mut app = judged(200, 60);
    app.keys("/").type_in("outcome:");
    let screen = app.screen();
    let Some(FooterInput::Filter { completion, .. }) = &app.event_loop.app.ui.footer_input else {
        panic!("no filter is typed: {screen}");
    };
    assert!(completion.offers.len() > 5, "{screen}");
    for offer in &completion.offers {
        assert!(screen.contains(offer.note), "{}: {screen}", offer.note);
    }
}

#[test]
fn enter_on_a_chosen_key_lists_its_values() {
    let mut app = judged(120, 40);
    app.keys("/ tab tab");
    assert_eq!(typed(&app).0, "is:");
    app.keys("enter");
    assert!(typed(&app).1.contains(&"stale".to_owned()));
    app.type_in("fl").keys("tab enter");
    assert_eq!(filter(&app), "is:flip");
}

#[test]
fn esc_after_a_choice_restores_the_filter_before() {
    let mut app = judged(120, 40);
    app.keys("/").type_in("outcome:fail").keys("enter");
    app.keys("/").type_in(" eval:").keys("tab");
    assert_ne!(filter(&app), "outcome:fail");
    app.keys("esc");
    assert_eq!(filter(&app), "outcome:fail");
}

#[test]
fn invalid_filter_is_reported_when_enter_closes_the_list() {
    let mut app = judged(120, 40);
    app.keys("/").type_in("outcome:fai");
    assert!(!app.screen().contains("is not an outcome"));
    app.keys("enter");
    assert!(
        app.screen().contains("is not an outcome"),
        "{}",
        app.screen()
    );
    app.type_in("l").keys("enter");
    assert_eq!(filter(&app), "outcome:fail");
}

#[test]
fn unknown_id_is_explained_with_the_nearest_one() {
    let mut app = judged(120, 40);
    app.keys("/").type_in("eval:tome");
    let screen = app.screen();
    assert!(screen.contains("no eval is called `tome`"), "{screen}");
    // The sentence is wrapped.
    assert!(screen.contains("`tone`?"), "{screen}");
    app.keys("enter");
    assert!(app.screen().contains("`tone`?"));
}

#[test]
fn tags_of_transcripts_are_offered_and_filter_the_cells() {
    let transcript = |id: &str, tags: &str| {
        format!(
            "{{\"id\":\"{id}\",\"tags\":[{tags}],\"messages\":[{{\"role\":\"assistant\",\"content\":\"hi\"}}]}}\n"
        )
    };
    let lines = transcript("one", "\"vip\",\"refund\"") + &transcript("two", "");
    let mut app = workbench(
        120,
        40,
        &[
            ("dicta.yaml", "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n"),
            ("t.jsonl", &lines),
            (
                "r.yaml",
                "evals:\n  - { id: a, type: contains, params: { patterns: [x] } }\n",
            ),
        ],
    );
    app.settle();
    app.keys("/").type_in("tag:");
    assert_eq!(typed(&app).1, ["refund", "vip"]);
    app.keys("tab enter").settle();
    assert_eq!(filter(&app), "tag:refund");
    assert_eq!(app.event_loop.app.live_session.cells.matching, 1);
    // A replay and a state of the history have the tags of the open workspace.
    app.keys("esc R").settle();
    let matching = |app: &TestWorkbench| {
        let replay = app.event_loop.app.replay.as_ref();
        replay.map(|replay| replay.session.cells.matching)
    };
    app.keys("v")
        .settle_until(|model| model.replay.is_some())
        .keys("/")
        .type_in("tag:vip")
        .keys("enter")
        .settle();
    assert_eq!(matching(&app), Some(1), "{}", app.screen());
    app.keys("esc q H")
        .settle()
        .keys("enter")
        .settle_until(|model| model.replay.is_some())
        .keys("/")
        .type_in("tag:vip")
        .keys("enter")
        .settle();
    assert_eq!(matching(&app), Some(1), "{}", app.screen());
}

#[test]
fn term_without_a_value_hides_no_cell() {
    let mut app = judged(120, 40);
    let count = |app: &TestWorkbench| app.event_loop.app.live_session.cells.matching;
    let all = count(&app);
    app.keys("/").type_in("eval:");
    assert_eq!(count(&app), all);
    // The terms before it select.
    app.type_in("names-a-version label:");
    let some = count(&app);
    assert!(some > 0 && some < all, "{some} of {all}");
    app.keys("esc").settle();
    assert_eq!(count(&app), all);
}

#[test]
fn click_on_an_offer_inserts_it() {
    let mut app = judged(120, 40);
    app.keys("/").type_in("label:").draw();
    let screen = app.screen();
    let line = |text: &str| screen.lines().position(|line| line.contains(text));
    let row = line("disagrees with the label").expect("it is listed");
    let column = screen.lines().nth(row).expect("a row").find("disagrees");
    // Columns are characters; the frame before the text is not ASCII.
    let before = &screen.lines().nth(row).expect("a row")[..column.expect("listed")];
    app.send_msg(Msg::Mouse(MouseInput {
        action: MouseAction::Pressed,
        column: u16::try_from(before.chars().count()).expect("a column"),
        row: u16::try_from(row).expect("a row"),
    }));
    assert_eq!(typed(&app).0, "label:disagrees");
    app.keys("enter");
    assert_eq!(filter(&app), "label:disagrees");
}

#[test]
fn the_list_at_three_sizes() {
    let mut app = judged(80, 24);
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        app.resize(width, height);
        if width > 80 {
            // The prompt contains a marker that differs between test runs, so only the cells are shown.
            app.keys("1 +");
        }
        app.keys("/").settle();
        let size = format!("{width}x{height}");
        same(&format!("completion_keys_{size}"), &rows(&app));
        app.type_in("outcome:").keys("down down").settle();
        same(&format!("completion_values_{size}"), &look(&app));
        app.keys("ctrl-u").type_in("transcript:refund").settle();
        same(&format!("completion_ids_{size}"), &rows(&app));
        app.keys("ctrl-u").type_in("eval:tome").settle();
        same(&format!("completion_unknown_{size}"), &rows(&app));
        app.keys("esc").settle();
        if width > 80 {
            app.keys("+");
        }
    }
}

#[test]
fn the_list_on_a_tiny_screen_keeps_a_row_of_cells() {
    let mut app = demo(40, 12);
    app.keys("/").settle();
    assert!(app.screen().contains("outcome:"), "{}", app.screen());
    app.resize(30, 8).settle();
    assert!(app.screen().contains("filter:"), "{}", app.screen());
}
