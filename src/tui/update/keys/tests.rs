//! Keys as stories, over a model without a file behind it.

use ratatui::layout::Size;

use super::*;
use crate::model::Millis;
use crate::theme::Theme;
use crate::tui::keymap;
use crate::tui::msg::{MouseAction, MouseInput, Msg};
use crate::tui::state::notices::Notice;
use crate::tui::state::runs::{RunTicket, TrackedRun};
use crate::tui::state::{FooterInput, OpenedItem};
use crate::tui::update::update;

fn model(width: u16, height: u16) -> App {
    let theme = Theme::bundled("dark").expect("bundled");
    let place = OpenedItem::TranscriptFile("a.jsonl".into());
    App::new(place, Size::new(width, height), theme)
}

fn press(model: &mut App, keys: &str) -> Vec<Effect> {
    let chords = keymap::parse_chords(keys).expect("keys");
    let all = chords
        .into_iter()
        .map(|chord| update(model, Msg::Key(chord)));
    all.collect::<Vec<_>>().concat()
}

fn told_last(model: &App) -> Option<&str> {
    model
        .notices
        .log
        .last()
        .map(|Notice { text, .. }| text.as_str())
}

#[test]
fn a_key_without_meaning_says_where_the_others_stand() {
    let mut model = model(80, 24);
    press(&mut model, "%");
    assert_eq!(
        told_last(&model),
        Some("`%` does nothing here: ? lists the keys")
    );
    press(&mut model, "y z");
    assert_eq!(
        told_last(&model),
        Some("`y z` does nothing here: ? lists the keys")
    );
}

#[test]
fn a_key_that_does_nothing_now_says_why() {
    let mut model = model(80, 24);
    press(&mut model, "R");
    let why = "there is no rubric yet: W makes a workspace around this file";
    assert_eq!(told_last(&model), Some(why));
    press(&mut model, "n");
    let why = "in the cells / filters: what is listed matches";
    assert_eq!(told_last(&model), Some(why));
}

#[test]
fn numbers_focus_and_esc_steps_back_but_never_quits() {
    let mut model = model(80, 24);
    press(&mut model, "6 +");
    assert_eq!((model.ui.focus, model.ui.zoomed), (Pane::Transcript, true));
    press(&mut model, "esc");
    assert_eq!((model.ui.focus, model.ui.zoomed), (Pane::Transcript, false));
    press(&mut model, "esc");
    assert_eq!(model.ui.focus, Pane::Cells);
    press(&mut model, "esc");
    assert_eq!(model.exit_code, None);
}

#[test]
fn tab_goes_round_and_l_to_the_right() {
    let mut model = model(120, 40);
    // A bare file has no judging to show beside its transcript.
    model.opened = OpenedItem::Recording;
    press(&mut model, "tab");
    assert_eq!(model.ui.focus, Pane::Prompt);
    press(&mut model, "l");
    assert_eq!(model.ui.focus, Pane::FunctionCall);
    press(&mut model, "h h");
    assert_eq!(model.ui.focus, Pane::Cells);
    press(&mut model, "shift-tab");
    assert_eq!(model.ui.focus, Pane::Transcript);
}

#[test]
fn q_closes_what_is_on_top_first_and_asks_while_something_runs() {
    let mut model = model(80, 24);
    model
        .live_session
        .runs
        .by_ticket
        .insert(RunTicket(1), TrackedRun::default());
    press(&mut model, "L q");
    assert!(model.overlays.is_empty());
    press(&mut model, "q");
    assert!(matches!(model.overlays[..], [Overlay::QuitWhileRunning]));
    press(&mut model, "n");
    assert_eq!((model.overlays.len(), model.exit_code), (0, None));
    press(&mut model, "q q");
    assert_eq!(model.exit_code, Some(0));
}

#[test]
fn ctrl_c_cancels_what_runs_and_only_then_quits() {
    let mut model = model(80, 24);
    model
        .live_session
        .runs
        .by_ticket
        .insert(RunTicket(7), TrackedRun::default());
    let effects = press(&mut model, "ctrl-c");
    assert!(matches!(effects[..], [Effect::CancelRun(RunTicket(7))]));
    assert_eq!(model.exit_code, None);
    press(&mut model, "ctrl-c");
    assert_eq!(model.exit_code, Some(0));
}

#[test]
fn pasted_text_runs_nothing() {
    let mut model = model(80, 24);
    update(&mut model, Msg::Pasted("q\nR".into()));
    assert_eq!(model.exit_code, None);
    press(&mut model, "/");
    update(&mut model, Msg::Pasted("tone\nq".into()));
    assert_eq!(model.session().cells.filter, "tone q");
    press(&mut model, "esc");
    assert_eq!(model.session().cells.filter, "");
}

#[test]
fn a_line_that_is_no_filter_is_not_kept() {
    let mut model = model(80, 24);
    press(&mut model, "/ o u t c o m e : z enter");
    let problem = match &model.ui.footer_input {
        Some(FooterInput::Filter { problem, .. }) => problem.clone(),
        _ => None,
    };
    assert!(problem.is_some());
    press(&mut model, "esc");
    assert!(model.ui.footer_input.is_none());
}

#[test]
fn a_prefix_waits_and_esc_leaves_it() {
    let mut model = model(80, 24);
    model.now = Millis(1000);
    press(&mut model, "y");
    assert_eq!(
        (model.ui.pending_keys.len(), model.ui.pending_since),
        (1, Millis(1000))
    );
    press(&mut model, "esc");
    assert!(model.ui.pending_keys.is_empty());
    assert!(model.notices.log.is_empty());
}

#[test]
fn help_is_searched_and_runs_what_is_selected() {
    let mut model = model(80, 24);
    press(&mut model, "? t h e m e s enter");
    assert!(matches!(model.overlays[..], [Overlay::Themes { .. }]));
    press(&mut model, "j");
    assert_eq!(model.ui.theme.name, "light");
    press(&mut model, "esc");
    assert_eq!(model.ui.theme.name, "dark");
}

#[test]
fn a_border_is_dragged_and_a_click_focuses() {
    let mut model = model(120, 40);
    // A bare file has no judging to show beside its transcript.
    model.opened = OpenedItem::Recording;
    let mouse = |did, column, row| {
        Msg::Mouse(MouseInput {
            action: did,
            column,
            row,
        })
    };
    update(&mut model, mouse(MouseAction::Pressed, 40, 10));
    update(&mut model, mouse(MouseAction::Dragged, 60, 10));
    update(&mut model, mouse(MouseAction::Released, 60, 10));
    let cells = model.layout().pane_area(Pane::Cells).expect("shown");
    assert_eq!((cells.width, model.ui.drag), (60, None));
    update(&mut model, mouse(MouseAction::Pressed, 100, 30));
    assert_eq!(model.ui.focus, Pane::Verdict);
}
