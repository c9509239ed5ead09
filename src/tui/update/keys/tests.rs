//! Tests of keys over an app without files.

use ratatui::layout::Size;

use super::*;
use crate::model::Millis;
use crate::theme::Theme;
use crate::tui::keymap;
use crate::tui::msg::{MouseAction, MouseInput, Msg};
use crate::tui::state::cells::tests::outlined;
use crate::tui::state::notices::Notice;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::pane::Pane;
use crate::tui::state::runs::{RunTicket, TrackedRun};
use crate::tui::state::{FooterInput, OpenedItem};
use crate::tui::update::update;

fn model(width: u16, height: u16) -> App {
    let theme = Theme::bundled("dark").expect("bundled");
    let place = OpenedItem::TranscriptFile("a.jsonl".into());
    App::new(place, Size::new(width, height), theme)
}

/// Returns an app with a judged cell that was never run: its verdict and its transcript have something to show.
fn with_cell(width: u16, height: u16) -> App {
    let mut app = model(width, height);
    app.opened = OpenedItem::Recording;
    app.live_session.cells = outlined(&["a"], &["x?"]);
    update(&mut app, Msg::TimePassed);
    app
}

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let chords = keymap::parse_chords(keys).expect("keys");
    let all = chords.into_iter().map(|chord| update(app, Msg::Key(chord)));
    all.collect::<Vec<_>>().concat()
}

fn last_notice(app: &App) -> Option<&str> {
    app.notices
        .log
        .last()
        .map(|Notice { text, .. }| text.as_str())
}

#[test]
fn unknown_key_names_help() {
    let mut app = model(80, 24);
    press(&mut app, "%");
    assert_eq!(
        last_notice(&app),
        Some("`%` does nothing here: ? lists the keys")
    );
    press(&mut app, "y z");
    assert_eq!(
        last_notice(&app),
        Some("`y z` does nothing here: ? lists the keys")
    );
}

#[test]
fn key_of_another_part_names_that_part_and_the_way_to_it() {
    let mut app = with_cell(120, 40);
    for (key, text) in [
        ("C", "`C` does nothing here, but in: replay (v)"),
        ("}", "`}` does nothing here, but in: transcript (6)"),
        (
            "z",
            "`z` does nothing here, but in: trace screen (enter on a judged cell)",
        ),
        (
            "t",
            "`t` does nothing here, but in: replay (v), reading screen (V)",
        ),
    ] {
        press(&mut app, key);
        assert_eq!(last_notice(&app), Some(text));
    }
    // The key leads there.
    press(&mut app, "6 }");
    assert_ne!(
        last_notice(&app),
        Some("`}` does nothing here, but in: transcript (6)")
    );
}

#[test]
fn unusable_key_shows_reason() {
    let mut app = model(80, 24);
    press(&mut app, "R");
    let why = "no rubric yet: press W to create a workspace around this file";
    assert_eq!(last_notice(&app), Some(why));
    press(&mut app, "n");
    let why = "n works only in texts; in the cells, / filters the list";
    assert_eq!(last_notice(&app), Some(why));
}

#[test]
fn numbers_focus_and_esc_steps_back_but_never_quits() {
    let mut app = model(80, 24);
    press(&mut app, "6 +");
    assert_eq!((app.ui.focus, app.ui.zoomed), (Pane::Transcript, true));
    press(&mut app, "esc");
    assert_eq!((app.ui.focus, app.ui.zoomed), (Pane::Transcript, false));
    press(&mut app, "esc");
    assert_eq!(app.ui.focus, Pane::Cells);
    press(&mut app, "esc");
    assert_eq!(app.exit_code, None);
}

#[test]
fn tab_cycles_panes_and_l_moves_right() {
    let mut app = with_cell(120, 40);
    press(&mut app, "tab");
    assert_eq!(app.ui.focus, Pane::Verdict);
    press(&mut app, "tab");
    assert_eq!(app.ui.focus, Pane::Transcript);
    press(&mut app, "1 l");
    assert_eq!(app.ui.focus, Pane::Verdict);
    press(&mut app, "h");
    assert_eq!(app.ui.focus, Pane::Cells);
    press(&mut app, "shift-tab");
    assert_eq!(app.ui.focus, Pane::Transcript);
}

#[test]
fn q_closes_overlay_first_and_asks_during_run() {
    let mut app = model(80, 24);
    app.live_session
        .runs
        .by_ticket
        .insert(RunTicket(1), TrackedRun::default());
    press(&mut app, "L q");
    assert!(app.overlays.is_empty());
    press(&mut app, "q");
    assert!(matches!(app.overlays[..], [Overlay::QuitWhileRunning]));
    press(&mut app, "n");
    assert_eq!((app.overlays.len(), app.exit_code), (0, None));
    press(&mut app, "q q");
    assert_eq!(app.exit_code, Some(0));
}

#[test]
fn ctrl_c_cancels_runs_before_it_quits() {
    let mut app = model(80, 24);
    app.live_session
        .runs
        .by_ticket
        .insert(RunTicket(7), TrackedRun::default());
    let effects = press(&mut app, "ctrl-c");
    assert_eq!(effects, [Effect::CancelRun(RunTicket(7))]);
    assert_eq!(app.exit_code, None);
    press(&mut app, "ctrl-c");
    assert_eq!(app.exit_code, Some(0));
}

#[test]
fn pasted_text_runs_nothing() {
    let mut app = model(80, 24);
    update(&mut app, Msg::Pasted("q\nR".into()));
    assert_eq!(app.exit_code, None);
    press(&mut app, "/");
    update(&mut app, Msg::Pasted("tone\nq".into()));
    assert_eq!(app.session().cells.filter, "tone q");
    press(&mut app, "esc");
    assert_eq!(app.session().cells.filter, "");
}

#[test]
fn invalid_filter_is_not_kept() {
    let mut app = model(80, 24);
    press(&mut app, "/ o u t c o m e : z enter");
    let problem = match &app.ui.footer_input {
        Some(FooterInput::Filter { problem, .. }) => problem.clone(),
        _ => None,
    };
    assert!(problem.is_some());
    press(&mut app, "esc");
    assert!(app.ui.footer_input.is_none());
}

#[test]
fn key_prefix_waits_and_esc_cancels_it() {
    let mut app = model(80, 24);
    app.now = Millis(1000);
    press(&mut app, "y");
    assert_eq!(
        (app.ui.pending_keys.len(), app.ui.pending_since),
        (1, Millis(1000))
    );
    press(&mut app, "esc");
    assert!(app.ui.pending_keys.is_empty());
    assert!(app.notices.log.is_empty());
}

#[test]
fn help_runs_selected_command() {
    let mut app = model(80, 24);
    press(&mut app, "? t h e m e s enter");
    assert!(matches!(app.overlays[..], [Overlay::Themes { .. }]));
    press(&mut app, "j");
    assert_eq!(app.ui.theme.name, "light");
    press(&mut app, "esc");
    assert_eq!(app.ui.theme.name, "dark");
}

#[test]
fn border_drag_resizes_and_click_focuses() {
    let mut app = with_cell(120, 40);
    let mouse = |did, column, row| {
        Msg::Mouse(MouseInput {
            action: did,
            column,
            row,
        })
    };
    update(&mut app, mouse(MouseAction::Pressed, 40, 10));
    update(&mut app, mouse(MouseAction::Dragged, 60, 10));
    update(&mut app, mouse(MouseAction::Released, 60, 10));
    let cells = app.layout().pane_area(Pane::Cells).expect("shown");
    assert_eq!((cells.width, app.ui.drag), (60, None));
    update(&mut app, mouse(MouseAction::Pressed, 100, 30));
    assert_eq!(app.ui.focus, Pane::Verdict);
}
