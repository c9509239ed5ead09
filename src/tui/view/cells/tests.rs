//! Tests of the cells pane's text.

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use crate::event::{CellPhase, CellState};
use crate::model::{CellIx, CellResult, Label, Millis, Outcome, RunId};
use crate::theme::Theme;
use crate::tui::click_target::ClickTarget;
use crate::tui::state::cells::tests::{board, header, keys, outline, row, transcript};
use crate::tui::state::runs::{RunStage, RunTicket, TrackedRun};
use crate::tui::state::{App, OpenedItem};
use crate::tui::view::Canvas;
use crate::tui::widget::canvas::HitArea;

const EVALS: &[&str] = &["names-a-version", "grounded?"];

fn empty_app() -> App {
    let theme = Theme::bundled("dark").expect("a theme");
    App::new(OpenedItem::Recording, Size::new(80, 24), theme)
}

fn draw(app: &App, width: u16, height: u16) -> (Vec<String>, Vec<HitArea<ClickTarget>>) {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    let mut canvas = Canvas::new(&mut buffer, &app.ui.theme);
    super::draw(&mut canvas, area, app);
    let hits = canvas.hits.0;
    let line = |y| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    ((0..height).map(line).collect(), hits)
}

/// The lines inside the frame.
fn inside(app: &App, width: u16, height: u16) -> Vec<String> {
    let (lines, _) = draw(app, width, height);
    let inner = |line: &String| {
        let mut chars = line.chars();
        chars.next();
        chars.next_back();
        chars.as_str().trim_end().to_owned()
    };
    lines[1..lines.len() - 1].iter().map(inner).collect()
}

fn label(transcript: &str, passed: bool) -> Label {
    Label {
        transcript: transcript.into(),
        rubric: None,
        eval: "names-a-version".into(),
        passed: Some(passed),
        score: None,
        by: None,
        at: None,
        note: None,
        ..Label::default()
    }
}

fn judged_app() -> App {
    let mut app = empty_app();
    let cells = &mut app.live_session.cells;
    outline(cells, &["refund-01", "refund-02", "refund-03"], EVALS, "v1");
    cells.replace_labels(crate::model::Labels::new([
        label("refund-01", true),
        label("refund-02", true),
    ]));
    cells.apply_newest_verdicts(&board(&[
        ("refund-01/r/names-a-version", Outcome::Pass),
        ("refund-02/r/names-a-version", Outcome::Fail),
        ("refund-03/r/names-a-version", Outcome::CheckError),
        ("refund-01/r/grounded~one", Outcome::Pass),
    ]));
    cells.update_shown();
    app
}

#[test]
fn failures_come_first_and_show_their_labels() {
    let app = judged_app();
    assert_eq!(
        inside(&app, 40, 9),
        [
            " ▾ names-a-version        ✓ 1 ✗ 1 ! 1",
            "   ✗ refund-02              ≠ label ✓",
            "   ! refund-03",
            "   ✓ refund-01              = label ✓",
            " ▾ grounded                   ✓ 1 ○ 2",
            // The cursor begins on a cell that a judge judged.
            "▌  ✓ refund-01",
            "   ○ refund-02",
        ]
    );
    let (_, hits) = draw(&app, 40, 9);
    let b = row(&app.live_session.cells, "refund-02/r/names-a-version");
    for (y, target) in [(2, ClickTarget::Row(b)), (1, ClickTarget::Group(0))] {
        let area = Rect::new(1, y, 38, 1);
        assert!(hits.contains(&HitArea { area, target }));
    }
}

#[test]
fn narrow_group_keeps_its_failures_and_shows_that_counts_are_hidden() {
    let app = judged_app();
    for (width, expected) in [
        (40, "names-a-version        ✓ 1 ✗ 1 ! 1"),
        (26, "… ✗ 1 ! 1"),
        (24, "… ✗ 1"),
    ] {
        let group = inside(&app, width, 9)[0].clone();
        assert!(group.ends_with(expected), "{width}: {group}");
    }
}

#[test]
fn live_cell_shows_its_phase() {
    let mut app = judged_app();
    let run = RunId("20261121T000000Z-live".into());
    let cells = &mut app.live_session.cells;
    let names = cells.register_header(&header(&run.0, EVALS, "v1"), true);
    cells.register_run(&run, 1);
    let places = cells.start_cells(
        &run,
        &names,
        &transcript("refund-02"),
        CellIx(0),
        &keys(EVALS)[1..],
    );
    // A group opens where a judge begins.
    for place in places.into_iter().flatten() {
        cells.mark_judge_started(place);
    }
    cells.update_shown();
    let mut known = TrackedRun {
        id: Some(run),
        stage: RunStage::Running,
        began_at: Some(Millis(0)),
        ..TrackedRun::default()
    };
    known.state.cells = vec![CellState {
        phase: CellPhase::BackingOff {
            until: Millis(4000),
        },
        ..CellState::default()
    }];
    app.live_session.runs.by_ticket.insert(RunTicket(1), known);
    app.now = Millis(1200);
    let lines = inside(&app, 44, 12);
    assert!(
        lines
            .iter()
            .any(|line| line.ends_with("◐ refund-02            backing off 3 s")),
        "{lines:#?}"
    );
}

#[test]
fn long_names_are_shortened_and_control_characters_marked() {
    let mut app = empty_app();
    let long = "support-conversation-about-a-refund-number-0042";
    outline(
        &mut app.live_session.cells,
        &[long, "evil\u{1b}[2J\u{202e}"],
        &["x"],
        "v1",
    );
    let lines = inside(&app, 30, 5);
    assert_eq!(lines[1], "▌  ○ support-co…umber-0042");
    assert!(lines[2].contains("␛[2J‹U+202E›"), "{lines:?}");
}

#[test]
fn empty_pane_explains_how_to_fill_it() {
    let mut app = judged_app();
    app.live_session
        .cells
        .set_filter("outcome:timeout")
        .expect("a filter");
    let (lines, _) = draw(&app, 44, 6);
    assert!(lines[0].contains("1 cells /outcome:timeout"), "{lines:#?}");
    assert!(
        lines[1].contains("No cell matches the filter."),
        "{lines:#?}"
    );
    assert!(lines[2].contains("esc clears it"), "{lines:#?}");
    assert!(lines[5].contains("0/6"), "{lines:#?}");
    app.live_session
        .cells
        .set_filter("outcome:failed")
        .expect_err("bad");
    assert!(inside(&app, 60, 6)[0].contains("did you mean `fail`?"));
    let empty = self::empty_app();
    assert!(inside(&empty, 44, 6)[0].contains("Reading the transcripts"));
}

#[test]
fn no_size_panics() {
    let app = judged_app();
    for width in 1..12 {
        for height in 1..8 {
            let _drawn = draw(&app, width, height);
        }
    }
}

#[test]
fn only_visible_rows_are_drawn() {
    let mut app = empty_app();
    let ids: Vec<String> = (0..20_000).map(|n| format!("t{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    outline(&mut app.live_session.cells, &ids, &["x"], "v1");
    app.live_session.cells.select_last(20);
    let (lines, hits) = draw(&app, 30, 22);
    assert_eq!(hits.len(), 21, "the pane and its rows");
    assert!(lines[20].contains("t19999"), "{lines:#?}");
}

#[test]
fn votes_of_repeats_are_next_to_the_decision() {
    let mut app = empty_app();
    outline(&mut app.live_session.cells, &["a"], &["y?"], "v1");
    let run = RunId("20261121T000000Z-vote".into());
    let cells = &mut app.live_session.cells;
    let names = cells.register_header(&header(&run.0, &["y?"], "v1"), true);
    cells.register_run(&run, 1);
    let key = |n| crate::event::CellKey {
        repeat: Some(n),
        ..keys(&["y?"])[0]
    };
    let places = cells.start_cells(
        &run,
        &names,
        &transcript("a"),
        CellIx(0),
        &[key(1), key(2), key(3)],
    );
    for (at, (cell, outcome)) in
        places
            .iter()
            .flatten()
            .zip([(0, Outcome::Pass), (1, Outcome::Pass), (2, Outcome::Fail)])
    {
        cells.finish_cell(*at, &run, CellIx(cell), &CellResult::new(outcome, ""));
    }
    cells.update_shown();
    let a = row(&app.live_session.cells, "a/r/y");
    assert!(app.live_session.cells.select_row(a));
    assert!(inside(&app, 30, 5)[1].ends_with("✓✓✗"));
}
