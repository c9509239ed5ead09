//! The row at several widths.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use super::*;
use crate::event::{CellState, EventKind, RunEvent};
use crate::model::{CellIx, CellResult, Outcome, ProviderKind, RunId, TokenUsage};
use crate::theme::Theme;
use crate::tui::state::cells::tests::{board, keys, outline, transcript};
use crate::tui::state::label_edits::LabelEdit;
use crate::tui::state::replay::ReplayState;
use crate::tui::state::runs::RunTicket;

fn row(app: &App, width: u16) -> String {
    let area = Rect::new(0, 0, width, 1);
    let mut buffer = Buffer::empty(area);
    let mut canvas = Canvas::new(&mut buffer, &app.ui.theme);
    let layout = ScreenLayout {
        header: area,
        ..ScreenLayout::default()
    };
    super::draw(&mut canvas, &layout, app);
    (0..width).map(|x| buffer[(x, 0)].symbol()).collect()
}

fn demo_app() -> App {
    let workspace = crate::workspace::Workspace {
        field_maps: crate::transcript::FieldMappings::default(),
        root: "/w".into(),
        name: "beam-agents".into(),
        is_demo: true,
        transcripts: Vec::new(),
        rubrics: Vec::new(),
        judges: indexmap::IndexMap::new(),
        judge: Some("quick".into()),
        labels: Vec::new(),
        label_places: Vec::new(),
        label_author: None,
        sealed: None,
        pair_preferences: Vec::new(),
        label_problems: Vec::new(),
        judge_problems: Vec::new(),
        labels_file: None,
        runs: "/w/runs".into(),
        tools: std::sync::Arc::default(),
        secrets: Vec::new(),
        extra_run_folders: Vec::new(),
        replayed_evidence_run: None,
        allow_scripts: false,
        limits: crate::workspace::WorkspaceLimits {
            concurrency: 1,
            budgets: crate::model::RunAndCellBudgets::default(),
            requests_per_minute: None,
            confirm_usd: 0.1,
        },
        files: Vec::new(),
        unkept_files: Vec::new(),
        warnings: Vec::new(),
        permissions: std::collections::BTreeSet::new(),
    };
    let theme = Theme::bundled("dark").expect("a theme");
    let place = OpenedItem::Workspace(std::sync::Arc::new(workspace));
    let mut app = App::new(place, Size::new(80, 24), theme);
    let cells = &mut app.live_session.cells;
    outline(cells, &["a", "b", "c"], &["x"], "v1");
    cells.apply_newest_verdicts(&board(&[
        ("a/r/x", Outcome::Pass),
        ("b/r/x", Outcome::Fail),
        ("c/r/x", Outcome::JudgeError),
    ]));
    let mut run = TrackedRun {
        stage: RunStage::Running,
        began_at: Some(Millis(0)),
        judge_started: 6,
        judged: 3,
        finished_cells: 41,
        judging_since: Some(Millis(0)),
        ..TrackedRun::default()
    };
    run.state.cells = vec![CellState::default(); 60];
    run.state.stats = stats_with_cost(Some(0.12));
    app.live_session.runs.by_ticket.insert(RunTicket(1), run);
    app.now = Millis(3000);
    app
}

/// Statistics of a run of which one paid cell has ended, after two calls.
fn stats_with_cost(usd: Option<f64>) -> crate::event::RunStats {
    let mut header = crate::tui::state::cells::tests::header("k3f9", &["x?"], "v1");
    header.judges[0].config.provider = ProviderKind::Openai;
    header.judges[0].config.prices = None;
    let mut result = CellResult::new(Outcome::Pass, "");
    result.cost_usd = usd;
    result.usage = Some(TokenUsage {
        calls: 2,
        ..TokenUsage::default()
    });
    result.bill = usd.is_none().then_some(Cost {
        usd: 0.12,
        unknown: 2,
    });
    let mut stats = crate::event::RunStats::default();
    let kinds = [
        EventKind::RunStarted(Box::new(header)),
        EventKind::CellsPlanned {
            transcript: transcript("a"),
            first: CellIx(0),
            keys: keys(&["x?"]),
        },
        EventKind::CellFinished {
            cell: CellIx(0),
            result: Arc::new(result),
        },
    ];
    for (seq, kind) in (0..).zip(kinds) {
        let at = Millis(0);
        stats.apply(&RunEvent { seq, at, kind });
    }
    stats
}

#[test]
fn loosened_seen_rule_of_any_judge_has_a_badge_at_every_width() {
    let with = |settings: &[&str]| {
        let mut app = demo_app();
        let OpenedItem::Workspace(workspace) = &mut app.opened else {
            panic!("a workspace is open");
        };
        let workspace = std::sync::Arc::make_mut(workspace);
        for (nth, seen) in settings.iter().enumerate() {
            let mut judge = JudgeConfig::new(format!("j{nth}"), ProviderKind::Openai);
            let settings = indexmap::IndexMap::from([("seen".to_owned(), (*seen).into())]);
            let name = "fetch_url".to_owned();
            judge.tools = vec![crate::model::JudgeTool { name, settings }];
            workspace.judges.insert(judge.name.clone(), judge);
        }
        app
    };
    for width in [40, 80, 200] {
        let shown = row(&with(&["url", "host"]), width);
        assert!(shown.contains(" seen: host "), "{shown}");
        let shown = row(&with(&["off", "host"]), width);
        assert!(shown.contains(" seen: off "), "{shown}");
        assert!(!row(&with(&["url"]), width).contains("seen"));
    }
}

#[test]
fn least_important_items_are_left_out_and_badges_stay() {
    let app = demo_app();
    assert_eq!(
        row(&app, 120).trim_end(),
        " dicta  DEMO  beam-agents · judge quick · auto: on                     ◐ 3 live  41/60  ✓ 1  ✗ 1  ! 1  $0.12  19 s left"
    );
    assert_eq!(
        row(&app, 80).trim_end(),
        "  DEMO  beam-agents            ◐ 3 live  41/60  ✓ 1  ✗ 1  ! 1  $0.12  19 s left"
    );
    assert_eq!(
        row(&app, 40).trim_end(),
        "  DEMO          ◐ 3 live  ✓ 1  ✗ 1  ! 1"
    );
    assert!(row(&app, 200).contains("auto: on"));
    for width in 1..30 {
        let _drawn = row(&app, width);
    }
    let mut unknown = demo_app();
    let (_, run) = unknown
        .live_session
        .runs
        .by_ticket
        .first_mut()
        .expect("a run");
    run.state.stats = stats_with_cost(None);
    assert!(row(&unknown, 160).contains("$0.12 + unknown for 2 calls"));
    let mut ended = demo_app();
    ended.live_session.runs.by_ticket.clear();
    assert!(!row(&ended, 120).contains("live"));
    assert!(row(&ended, 120).contains("✗ 1"));
}

#[test]
fn live_run_counts_the_ordered_cells_before_it_plans_them() {
    let mut app = demo_app();
    let run = &mut app.live_session.runs.by_ticket[&RunTicket(1)];
    run.ordered_cells = 85;
    let shown = row(&app, 120);
    assert!(shown.contains("41/85"), "{shown}");
    assert!(!shown.contains("left"), "{shown}");
    let run = &mut app.live_session.runs.by_ticket[&RunTicket(1)];
    // The run may plan more cells than the screen ordered, because a file changed.
    run.ordered_cells = 50;
    assert!(row(&app, 120).contains("41/60"));
}

#[test]
fn workspace_without_decisions_counts_cells_not_run() {
    let mut app = demo_app();
    app.live_session.runs.by_ticket.clear();
    app.live_session.cells = crate::tui::state::cells::CellsState::default();
    outline(&mut app.live_session.cells, &["a"], &["x"], "v1");
    assert_eq!(
        row(&app, 80).trim_end(),
        " dicta  DEMO  beam-agents · judge quick · auto: on                  ○ 1 not run"
    );
    app.saves.paused = true;
    app.saves.unjudged_saves = 2;
    assert!(row(&app, 120).contains("auto: paused, 2 skipped"));
}

#[test]
fn cells_do_not_count_as_not_run_before_the_earlier_verdicts_are_read() {
    let mut app = demo_app();
    app.live_session.runs.by_ticket.clear();
    app.live_session.cells = crate::tui::state::cells::CellsState::default();
    outline(&mut app.live_session.cells, &["a"], &["x"], "v1");
    app.past_verdict_wait.begin();
    let shown = row(&app, 80);
    assert!(
        shown.trim_end().ends_with("reading earlier verdicts"),
        "{shown}"
    );
    app.past_verdict_wait.end_reading();
    let _no_runs = app.past_verdict_wait.advance(true, true);
    assert!(row(&app, 80).trim_end().ends_with("○ 1 not run"));
}

#[test]
fn items_that_fit_without_a_right_end_are_not_cut() {
    let mut app = demo_app();
    app.live_session = crate::tui::state::session_view::SessionView::default();
    app.live_session.cells.blind = true;
    // Blind labelling has no item at the right.
    let badges =
        " dicta  DEMO   BLIND   to find errors: by hand  beam-agents · judge quick · auto: on";
    for width in 50..=120 {
        let shown = row(&app, width);
        let is_whole = badges.starts_with(shown.trim_end()) || !shown.contains('…');
        assert!(is_whole, "{width}: {shown}");
    }
    // One column at the right stays free, as between the two ends.
    let wide = u16::try_from(badges.chars().count() + 2).expect("short");
    assert_eq!(row(&app, wide).trim_end(), badges);
}

#[test]
fn warning_has_priority_over_the_purpose_of_labels_by_hand() {
    let mut app = demo_app();
    app.label_edits.undo_stack.push(LabelEdit {
        number: 1,
        name: "a/r/x".parse().expect("a name"),
        label: None,
        previous: None,
        written: true,
        undoes: None,
    });
    let badge = " to find errors: by hand ";
    assert!(row(&app, 120).contains(badge), "{}", row(&app, 120));
    let narrow = row(&app, 80);
    assert!(
        !narrow.contains(badge) && narrow.contains("beam-agents"),
        "{narrow}"
    );
    app.live_session.cells.blind = true;
    assert!(row(&app, 80).contains(badge), "{}", row(&app, 80));
}

#[test]
fn reruns_that_failed_are_counted_apart_from_cancelled_ones() {
    let total = |failed, cancelled, budget| RowCounts {
        failed_reruns: failed + cancelled + budget,
        cancelled_reruns: cancelled,
        budget_reruns: budget,
        ..RowCounts::default()
    };
    let shown = |total: RowCounts| {
        let (_, item) = rerun_item(&total, &Glyphs::UNICODE)?;
        Some(item.text.0[0].0.clone().into_owned())
    };
    for (total, expected) in [
        (total(5, 0, 0), Some("! 5 re-runs failed")),
        (total(1, 3, 0), Some("! 1 re-run failed, 3 cancelled")),
        (total(0, 8, 0), Some("! 8 re-runs cancelled")),
        (total(0, 0, 2), Some("! 2 re-runs stopped by a budget")),
        (total(0, 0, 0), None),
    ] {
        assert_eq!(shown(total).as_deref(), expected);
    }
}

#[test]
fn replay_of_a_marked_log_has_a_badge() {
    let mut app = demo_app();
    let mut replay = ReplayState::new(
        RunId("x-k3f9".to_owned()),
        "/r".into(),
        std::sync::Arc::default(),
        RunTicket(1),
        false,
        None,
    );
    replay.mark = Some("recorded elsewhere");
    app.replay = Some(replay);
    assert!(
        row(&app, 120).contains(" REPLAY  k3f9  RECORDED ELSEWHERE "),
        "{}",
        row(&app, 120)
    );
    app.replay.as_mut().expect("a replay").mark = None;
    assert!(!row(&app, 120).contains("ELSEWHERE"));
}
