//! Snapshots of the screen. `INSTA_UPDATE=always cargo test --lib tui::tests::looks` updates them; review the diff
//! before you commit.

use std::sync::Arc;

use ratatui::layout::Size;

use super::look::{look, rows};
use super::{demo, files, go_to, judged, rubric, workbench};
use crate::model::Millis;
use crate::theme::Theme;
use crate::tui::effect::Effect;
use crate::tui::state::OpenedItem;
use crate::tui::state::overlay::{AvailableJudge, Overlay};
use crate::tui::testing::TestWorkbench;
use crate::workspace::Env;

pub(super) fn same(name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let shown = without_durations(shown);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

/// Replaces durations: on a busy machine the clock advances while a run works. Later text keeps its column, and no
/// space remains at the end of a row.
pub(super) fn without_durations(shown: &str) -> String {
    let took = regex::Regex::new(r"cells, [\d.]+ m?s\b").expect("a pattern");
    let none = "cells, 0 ms";
    let steady = took.replace_all(shown, |found: &regex::Captures<'_>| {
        format!("{none:<width$}", width = found[0].len())
    });
    let rows: Vec<&str> = steady.split('\n').map(str::trim_end).collect();
    rows.join("\n")
}

#[test]
fn slow_run_leaves_no_blank_at_the_end_of_a_row() {
    let rows = " run aaaa: 82 cells, 1.4 s\n│ 82 cells, 12 ms │\n";
    let steady = " run aaaa: 82 cells, 0 ms\n│ 82 cells, 0 ms  │\n";
    assert_eq!(without_durations(rows), steady);
}

/// Changes the theme.
fn use_theme(app: &mut TestWorkbench, theme: &str, change: fn(Theme) -> Theme) {
    let theme = change(Theme::bundled(theme).expect("it is bundled"));
    let ui = &mut app.event_loop.app.ui;
    ui.theme = Arc::new(theme);
}

#[test]
fn home_screen_before_a_run_looks_as_recorded() {
    let mut app = demo(120, 40);
    // The path of the demo depends on the machine, and so does the line break in the notice with the path.
    app.event_loop.app.notices.dismiss();
    app.pass(Millis(1));
    same("board_120x40", &look(&app));
    app.resize(80, 24);
    same("board_80x24", &look(&app));
    app.resize(40, 12);
    same("board_40x12", &rows(&app));
    app.resize(200, 60);
    same("board_200x60", &rows(&app));
    app.resize(24, 5);
    same("too_small_24x5", &rows(&app));
}

#[test]
fn home_screen_after_a_run_looks_as_recorded() {
    let mut app = judged(120, 40);
    same("judged_120x40", &look(&app));
    app.resize(80, 24);
    same("judged_80x24", &look(&app));
    app.resize(40, 12);
    same("judged_40x12", &rows(&app));
    app.resize(200, 60);
    same("judged_200x60", &rows(&app));
}

#[test]
fn trace_with_a_fetched_page_looks_as_recorded() {
    let mut app = judged(200, 60);
    go_to(&mut app, "beam-release/beamline/newest");
    same("trace_200x60", &look(&app));
    app.resize(120, 40).settle();
    same("trace_120x40", &rows(&app));
    app.keys(",").settle();
    same("trace_call_120x40", &rows(&app));
    app.resize(80, 24).settle();
    for (key, name) in [
        ("2", "prompt"),
        ("3", "call"),
        ("4", "fetched"),
        ("5", "verdict"),
    ] {
        app.keys(key).settle();
        same(&format!("trace_{name}_80x24"), &rows(&app));
    }
    app.resize(40, 12).settle();
    same("trace_verdict_40x12", &rows(&app));
    app.resize(80, 24).keys("6").settle();
    same("transcript_80x24", &rows(&app));
}

#[test]
fn save_that_does_not_load_looks_as_recorded() {
    let mut app = judged(80, 24);
    let (text, _) = rubric(&app);
    app.save(
        "rubrics/beamline.yaml",
        &text.replace("type: regex", "type: regexx"),
    );
    app.settle();
    same("failed_save_80x24", &look(&app));
    app.resize(120, 40);
    same("failed_save_120x40", &rows(&app));
    app.resize(40, 12);
    same("failed_save_40x12", &rows(&app));
}

#[test]
fn flip_is_shown_with_its_diff() {
    let mut app = judged(120, 40);
    let (_, edited) = rubric(&app);
    app.save("rubrics/beamline.yaml", &edited).settle();
    same("flip_120x40", &look(&app));
    app.resize(80, 24);
    same("flip_80x24", &rows(&app));
    app.keys("7");
    same("flip_changes_80x24", &rows(&app));
    app.resize(200, 60);
    same("flip_200x60", &rows(&app));
}

#[test]
fn replay_is_shown_with_its_bar() {
    let mut app = judged(80, 24);
    app.keys("v").settle_until(|model| model.replay.is_some());
    // Paused at the end, because the position while playing depends on the duration of the run.
    app.keys("@").type_in("100%").keys("enter").settle();
    same("replay_80x24", &look(&app));
    app.resize(120, 40);
    same("replay_120x40", &rows(&app));
}

#[test]
fn overlays_look_as_recorded() {
    let mut app = judged(80, 24);
    for (keys, name) in [("?", "help"), ("T", "themes"), ("L", "log")] {
        app.keys(keys).settle();
        same(&format!("overlay_{name}_80x24"), &rows(&app));
        app.keys("esc");
    }
    go_to(&mut app, "refund-01/support/tone");
    same("not_applicable_80x24", &rows(&app));
    app.keys("J").settle();
    judges_found(&mut app, &[]);
    same("overlay_judges_none_80x24", &rows(&app));
    judges_found(&mut app, &["ready", "its server does not answer"]);
    same("overlay_judges_80x24", &rows(&app));
    app.keys("esc");
    app.keys("?").type_in("copy");
    same("overlay_help_search_80x24", &look(&app));
    app.keys("esc y").pass(Millis(400));
    same("which_key_80x24", &rows(&app));
    app.keys("esc /").type_in("outcome:bad");
    same("filter_problem_80x24", &rows(&app));
    app.keys("esc").settle();
    app.resize(40, 12).keys("?");
    same("overlay_help_40x12", &rows(&app));
}

/// Sets the available judges, because the real ones depend on the machine.
fn judges_found(app: &mut TestWorkbench, notes: &[&str]) {
    let at_hand = |note: &&str| AvailableJudge {
        title: "gemini · gemini-2.5-flash · key in GEMINI_API_KEY".to_owned(),
        judge: None,
        note: (*note).to_owned(),
    };
    if let Some(Overlay::Judges { judges: found, .. }) = app.event_loop.app.overlays.last_mut() {
        *found = Some(notes.iter().map(at_hand).collect());
    }
    app.pass(Millis(1));
}

#[test]
fn empty_screens_look_as_recorded() {
    let mut app = judged(80, 24);
    app.keys("/").type_in("nosuchword").keys("enter").settle();
    same("filtered_out_80x24", &rows(&app));
    let mut app = workbench(
        80,
        24,
        &[
            ("dicta.yaml", "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n"),
            ("t.jsonl", ""),
            (
                "r.yaml",
                "evals:\n  - { id: a, type: contains, params: { patterns: [x] } }\n",
            ),
        ],
    );
    app.settle();
    // The line break in a path depends on the machine.
    let why = "transcripts cannot be read:\n  t.jsonl: it is empty".to_owned();
    app.event_loop.app.live_session.cells.outline_error = Some(why);
    app.keys("1");
    same("no_transcripts_80x24", &rows(&app));
}

#[test]
fn file_without_a_workspace_looks_as_recorded() {
    let dir = files(&[(
        "t.jsonl",
        "{\"id\":\"one\",\"messages\":[{\"role\":\"user\",\"content\":\"What is new?\"},{\"role\":\"assistant\",\"content\":\"Nothing.\"}]}\n{\"messages\":[]}\nno json\n",
    )]);
    let file = dir.path().join("w/t.jsonl");
    let mut app = TestWorkbench::on(
        OpenedItem::TranscriptFile(file),
        Size::new(80, 24),
        None,
        (Env::default(), dir, "/nowhere".into()),
        Vec::<Effect>::new(),
    );
    app.settle();
    same("bare_80x24", &look(&app));
    app.resize(40, 12);
    same("bare_40x12", &rows(&app));
}

#[test]
fn screens_without_colors_look_as_recorded() {
    let mut app = judged(120, 40);
    use_theme(&mut app, "dark", Theme::without_color);
    go_to(&mut app, "beam-release/beamline/newest");
    same("nocolour_trace_120x40", &look(&app));
    let (text, edited) = rubric(&app);
    app.save("rubrics/beamline.yaml", &edited).settle();
    app.resize(80, 24).settle();
    same("nocolour_flip_80x24", &look(&app));
    app.save("rubrics/beamline.yaml", &text.replace("evals:", "evels:"))
        .settle();
    same("nocolour_failed_save_80x24", &look(&app));
    app.keys("?");
    same("nocolour_help_80x24", &look(&app));
}

#[test]
fn screens_in_ascii_look_as_recorded() {
    let mut app = judged(80, 24);
    use_theme(&mut app, "ansi", Theme::in_ascii);
    app.settle();
    app.keys("1");
    let shown = rows(&app);
    same("ascii_80x24", &look(&app));
    assert!(shown.is_ascii(), "{shown}");
    app.resize(200, 60);
    go_to(&mut app, "beam-release/beamline/newest");
    same("ascii_trace_200x60", &rows(&app));
}

#[test]
fn no_theme_sets_colors_when_colors_are_off() {
    let mut app = judged(120, 40);
    for name in crate::theme::bundled_names() {
        use_theme(&mut app, name, Theme::without_color);
        app.keys("j k").settle();
        for cell in &app.buffer().content {
            let (fg, bg) = (cell.fg, cell.bg);
            let none = ratatui::style::Color::Reset;
            assert_eq!((fg, bg), (none, none), "{name}: {cell:?}");
        }
    }
}
