//! Tests of runs: late results, cancels, flips, votes, costs, and the work for a large number of rows.

use std::sync::Arc;

use ratatui::layout::Size;

use super::*;
use crate::event::{CellKey, RunEvent, RunTotals, SettledCell};
use crate::model::{JudgeConfig, Millis, ProviderKind};
use crate::run::CachePolicy;
use crate::theme::Theme;
use crate::tui::state::OpenedItem;
use crate::tui::state::cells::tests::{board, header, keys, outline, row, transcript};
use crate::tui::state::cells::{RowSlotState, RowStatus};
use crate::tui::state::edit_report::EditReport;
use crate::workspace::{Workspace, WorkspaceLimits};

const EVALS: &[&str] = &["x", "y?"];

fn workspace(judges: Vec<JudgeConfig>) -> Workspace {
    Workspace {
        field_maps: crate::transcript::FieldMappings::default(),
        root: "/w".into(),
        name: "test".into(),
        is_demo: false,
        transcripts: Vec::new(),
        rubrics: Vec::new(),
        judges: judges.into_iter().map(|j| (j.name.clone(), j)).collect(),
        judge: Some("one".into()),
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
        limits: WorkspaceLimits {
            concurrency: 2,
            budgets: crate::model::RunAndCellBudgets::default(),
            requests_per_minute: None,
            confirm_usd: 0.1,
        },
        files: Vec::new(),
        unkept_files: Vec::new(),
        warnings: Vec::new(),
        permissions: std::collections::BTreeSet::new(),
    }
}

fn model() -> App {
    let free = JudgeConfig::new("one", ProviderKind::Rules);
    let place = OpenedItem::Workspace(Arc::new(workspace(vec![free])));
    let theme = Theme::bundled("dark").expect("a theme");
    let mut app = App::new(place, Size::new(80, 24), theme);
    outline(&mut app.live_session.cells, &["a", "b"], EVALS, "v1");
    app
}

/// The facts of one run, with numbers.
struct Log {
    ticket: RunTicket,
    seq: u64,
}

impl Log {
    fn new(app: &mut App, letters: &str) -> Self {
        let ticket = app.next_ticket();
        let mut log = Self { ticket, seq: 0 };
        let run = header(&format!("20261121T000000Z-{letters}"), EVALS, "v1");
        log.send_msg(app, vec![EventKind::RunStarted(Box::new(run))]);
        log
    }

    fn send_msg(&mut self, app: &mut App, kinds: Vec<EventKind>) {
        let events: Vec<RunEvent> = kinds
            .into_iter()
            .map(|kind| {
                self.seq += 1;
                let at = Millis(self.seq * 10);
                RunEvent {
                    seq: self.seq - 1,
                    at,
                    kind,
                }
            })
            .collect();
        events_of(app, self.ticket, &events);
    }

    fn plan(&mut self, app: &mut App, id: &str, first: u32, keys: Vec<CellKey>) {
        let transcript = transcript(id);
        self.send_msg(
            app,
            vec![EventKind::CellsPlanned {
                transcript,
                first: CellIx(first),
                keys,
            }],
        );
    }

    fn finish(&mut self, app: &mut App, cell: u32, outcome: Outcome) {
        let result = Arc::new(CellResult::new(outcome, "said now"));
        let cell = CellIx(cell);
        self.send_msg(app, vec![EventKind::CellFinished { cell, result }]);
    }

    fn settle(&mut self, app: &mut App, cell: u32, outcome: Outcome) {
        let result = CellResult::new(outcome, "checked now");
        self.send_msg(
            app,
            vec![EventKind::CellsSettled(vec![SettledCell::new(
                CellIx(cell),
                result,
            )])],
        );
    }
}

fn events_of(app: &mut App, ticket: RunTicket, all: &[RunEvent]) {
    assert!(handle_run_events(app, ticket, all).is_empty());
}

fn mark(app: &App, name: &str) -> RowStatus {
    let cells = &app.live_session.cells;
    cells.row(row(cells, name)).expect("a row").status()
}

fn judged() -> Vec<CellKey> {
    keys(EVALS).split_off(1)
}

fn last_notice(app: &App) -> &str {
    app.notices
        .newest
        .as_ref()
        .map_or("", |notice| &notice.text)
}

use Outcome::{Fail, JudgeError, Pass};

#[test]
fn late_result_of_older_run_is_ignored() {
    let mut app = model();
    let mut old = Log::new(&mut app, "oldr");
    old.plan(&mut app, "a", 0, keys(EVALS));
    let mut new = Log::new(&mut app, "newr");
    new.plan(&mut app, "a", 0, judged());
    new.finish(&mut app, 0, Pass);
    old.finish(&mut app, 1, Fail);
    assert_eq!(mark(&app, "a/r/y"), RowStatus::Decided(Pass));
    // An older run that reaches a transcript after a newer one does not take its cells.
    old.plan(&mut app, "b", 2, keys(EVALS));
    new.plan(&mut app, "b", 1, judged());
    old.settle(&mut app, 2, Pass);
    old.finish(&mut app, 3, Fail);
    assert_eq!(mark(&app, "b/r/x"), RowStatus::Decided(Pass), "its alone");
    assert_eq!(mark(&app, "b/r/y"), RowStatus::Live);
}

#[test]
fn cancelled_run_restores_unjudged_rows() {
    let mut app = model();
    app.live_session
        .cells
        .apply_newest_verdicts(&board(&[("a/r/y~one", Fail)]));
    let mut log = Log::new(&mut app, "cncl");
    log.plan(&mut app, "a", 0, keys(EVALS));
    log.plan(&mut app, "b", 2, keys(EVALS));
    assert_eq!(mark(&app, "a/r/y"), RowStatus::Live);
    assert_eq!(cancel_all(&mut app).len(), 1);
    log.finish(&mut app, 3, Outcome::Cancelled);
    handle_run_ended(&mut app, log.ticket, None);
    assert_eq!(
        mark(&app, "a/r/y"),
        RowStatus::Decided(Fail),
        "yesterday's verdict"
    );
    assert_eq!(mark(&app, "b/r/y"), RowStatus::Decided(Outcome::Cancelled));
    assert_eq!(mark(&app, "b/r/x"), RowStatus::NeverRun);
    let row_of = row(&app.live_session.cells, "b/r/x");
    let slots = &app.live_session.cells.row(row_of).expect("a row").slots;
    assert_eq!(slots[0].state, RowSlotState::NeverRun);
    assert!(cancel_all(&mut app).is_empty(), "nothing is live");
}

#[test]
fn flip_compares_with_newest_verdict_despite_errors() {
    let mut app = model();
    app.live_session
        .cells
        .apply_newest_verdicts(&board(&[("a/r/y~one", Fail)]));
    app.live_session
        .cells
        .replace_labels(crate::model::Labels::new([crate::model::Label {
            transcript: "a".into(),
            rubric: None,
            eval: "y".into(),
            passed: Some(true),
            score: None,
            by: None,
            at: None,
            note: None,
            ..crate::model::Label::default()
        }]));
    let mut first = Log::new(&mut app, "aaaa");
    first.plan(&mut app, "a", 0, judged());
    first.finish(&mut app, 0, JudgeError);
    assert!(app.saves.report.is_none(), "an error is no flip");
    let mut second = Log::new(&mut app, "bbbb");
    second.plan(&mut app, "a", 0, judged());
    second.finish(&mut app, 0, Pass);
    let report = app.saves.report.clone().expect("a report");
    assert_eq!((report.number, report.judged), (0, 1));
    let flip = &report.flips[0];
    assert_eq!((flip.before.outcome, flip.after.outcome), (Fail, Pass));
    assert_eq!(
        (&*flip.before.explanation, &*flip.after.explanation),
        ("said then", "said now")
    );
    assert_eq!(flip.agrees_with_label, Some(true));
    assert_eq!(app.live_session.cells.total.flipped, 1);
    let mut third = Log::new(&mut app, "cccc");
    third.plan(&mut app, "a", 0, judged());
    third.finish(&mut app, 0, Pass);
    assert_eq!(
        app.live_session.cells.total.flipped, 1,
        "the same verdict again leaves the flip"
    );
}

#[test]
fn flips_belong_to_the_edit_of_their_run() {
    let mut app = model();
    app.live_session
        .cells
        .apply_newest_verdicts(&board(&[("a/r/x", Fail), ("b/r/x", Fail)]));
    let ran = |app: &mut App, edit: u64, id: &str| {
        let mut log = Log::new(app, "save");
        app.live_session.runs.by_ticket[&log.ticket].save_number = Some(edit);
        app.live_session.runs.by_ticket[&log.ticket].edit = Some(edit);
        log.plan(app, id, 0, keys(&EVALS[..1]));
        log.settle(app, 0, Pass);
        handle_run_ended(app, log.ticket, None);
    };
    app.saves.report = Some(EditReport {
        number: 2,
        first_save: 2,
        edit: 2,
        ..EditReport::default()
    });
    ran(&mut app, 1, "a");
    ran(&mut app, 2, "b");
    let report = app.saves.report.as_ref().expect("a report");
    assert_eq!((report.flips.len(), report.judged), (1, 1));
    assert_eq!(report.flips[0].row, row(&app.live_session.cells, "b/r/x"));
    assert_eq!(app.notices.newest, None, "the changes pane reports a save");
    let lines = app.notices.log.iter().map(|n| n.text.as_str());
    let flips: Vec<&str> = lines.filter(|line| line.starts_with("flip ")).collect();
    assert_eq!(flips.len(), 2, "{flips:?}");
}

#[test]
fn threshold_saved_during_a_run_decides_the_cells_that_end_later() {
    let mut app = model();
    let mut log = Log::new(&mut app, "aaaa");
    log.plan(&mut app, "a", 0, judged());
    let mut saved = header("20261121T000001Z-bbbb", EVALS, "v1");
    saved.evals[1]
        .decision_settings
        .insert("min_score".to_owned(), 0.8.into());
    app.live_session.cells.register_header(&saved, true);
    let verdict = crate::model::Verdict {
        passed: Some(true),
        score: Some(0.7),
        ..crate::model::Verdict::default()
    };
    let result = Arc::new(CellResult {
        score: Some(0.7),
        verdict: Some(Box::new(verdict)),
        ..CellResult::new(Outcome::Pass, "good enough for the threshold before")
    });
    let cell = CellIx(0);
    log.send_msg(&mut app, vec![EventKind::CellFinished { cell, result }]);
    assert_eq!(mark(&app, "a/r/y"), RowStatus::Decided(Outcome::Fail));
}

#[test]
fn a_split_vote_is_decided_by_the_repeat_planned_for_it() {
    let mut app = model();
    let repeat = |n| CellKey {
        repeat: Some(n),
        ..judged()[0]
    };
    let mut log = Log::new(&mut app, "vote");
    log.plan(&mut app, "a", 0, vec![repeat(1), repeat(2)]);
    log.finish(&mut app, 0, Pass);
    log.plan(&mut app, "a", 2, vec![repeat(3)]);
    log.finish(&mut app, 1, Fail);
    assert_eq!(mark(&app, "a/r/y"), RowStatus::Live, "the vote is open");
    log.finish(&mut app, 2, Fail);
    let cells = &app.live_session.cells;
    let decided = cells.row(row(cells, "a/r/y")).expect("a row");
    let decision = decided.decision.as_ref().expect("decided");
    assert_eq!(
        (decision.outcome, decision.votes.pass, decision.votes.fail),
        (Fail, 1, 2)
    );
    // The next run needs only two cells, so the third of the old vote does not count.
    let mut next = Log::new(&mut app, "next");
    next.plan(&mut app, "a", 0, vec![repeat(1), repeat(2)]);
    next.finish(&mut app, 0, Pass);
    next.finish(&mut app, 1, Pass);
    assert_eq!(mark(&app, "a/r/y"), RowStatus::Decided(Pass));
    assert_eq!(
        app.live_session
            .cells
            .row(row(&app.live_session.cells, "a/r/y"))
            .expect("a row")
            .slots
            .len(),
        2
    );
}

#[test]
fn row_judged_again_keeps_place_and_cursor() {
    let mut app = model();
    app.live_session
        .cells
        .apply_newest_verdicts(&board(&[("a/r/x", Pass), ("b/r/x", Fail)]));
    app.live_session.cells.update_shown();
    let b = row(&app.live_session.cells, "b/r/x");
    app.live_session.cells.select_row(b);
    assert_eq!(app.live_session.cells.cursor_position(), Some(1));
    let mut log = Log::new(&mut app, "jump");
    log.plan(&mut app, "b", 0, keys(&EVALS[..1]));
    assert_eq!(
        app.live_session.cells.cursor_position(),
        Some(1),
        "it stays while it is live"
    );
    log.settle(&mut app, 0, Fail);
    assert_eq!(app.live_session.cells.cursor_position(), Some(1));
    log.plan(&mut app, "a", 1, keys(&EVALS[..1]));
    log.settle(&mut app, 1, Fail);
    let cells = &app.live_session.cells;
    assert_eq!(
        (cells.selected_row(), cells.cursor_position()),
        (Some(b), Some(2)),
        "a flipped and leads"
    );
}

#[test]
fn focused_run_skips_cache_and_full_run_uses_it() {
    let mut app = model();
    let y = row(&app.live_session.cells, "a/r/y");
    app.live_session.cells.select_row(y);
    let effects = run_focused(&mut app);
    let [Effect::StartRun(order)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(order.cache, CachePolicy::Refresh);
    assert_eq!(order.only.as_deref(), Some(&vec!["a/r/y".to_owned()]));
    let effects = run_all(&mut app);
    let [Effect::StartRun(order)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(
        (order.cache, order.only.is_none()),
        (CachePolicy::Use, true)
    );
    assert!(run_all(&mut app).is_empty(), "it runs already");
    assert!(last_notice(&app).contains("already"));
    handle_run_refused(&mut app, order.ticket, "no key");
    assert_eq!(last_notice(&app), "nothing was started: no key");
    assert_eq!(run_all(&mut app).len(), 1, "a refused run is none");
}

#[test]
fn paid_run_shows_cost_before_start() {
    let mut app = model();
    let mut paid = JudgeConfig::new("one", ProviderKind::Openai);
    paid.model = "m".into();
    app.opened = OpenedItem::Workspace(Arc::new(workspace(vec![paid])));
    let effects = run_all(&mut app);
    assert!(
        matches!(&effects[..], [Effect::PreviewRun(_)]),
        "{effects:?}"
    );
    assert_eq!(
        (
            app.awaiting_preview.len(),
            app.live_session.runs.by_ticket.len()
        ),
        (1, 0)
    );
    let order = app.awaiting_preview.remove(0);
    let effect = start_run(&mut app, order, None);
    assert!(matches!(effect, Effect::StartRun(_)));
    let live = app.live_session.runs.live();
    let ordered: Vec<u64> = live.map(|(_, run)| run.ordered_cells).collect();
    assert_eq!(ordered, [2 * EVALS.len() as u64], "two transcripts");
}

#[test]
fn ended_run_shows_summary() {
    let mut app = model();
    let mut log = Log::new(&mut app, "k3f9");
    log.plan(&mut app, "a", 0, keys(EVALS));
    log.settle(&mut app, 0, Pass);
    log.finish(&mut app, 1, Fail);
    let totals = RunTotals {
        cells: 2,
        outcomes: [(Pass, 1), (Fail, 1)].into_iter().collect(),
        cost_usd: Some(0.12),
        duration_ms: Millis(4100),
        ..RunTotals::default()
    };
    log.send_msg(&mut app, vec![EventKind::RunFinished(Box::new(totals))]);
    handle_run_ended(&mut app, log.ticket, None);
    assert_eq!(
        last_notice(&app),
        "run k3f9: ✓ 1 ✗ 1, 2 cells, 4.1 s, $0.12"
    );
    let other = Log::new(&mut app, "brkn");
    handle_run_ended(&mut app, other.ticket, Some("the disk is full".into()));
    assert_eq!(
        last_notice(&app),
        "run brkn did not end well: the disk is full"
    );
    assert_eq!(
        app.notices.newest.as_ref().map(|n| n.level),
        Some(NoticeLevel::Error)
    );
}

#[test]
fn ended_runs_are_dropped_except_shown_one() {
    let mut app = model();
    let mut first = Log::new(&mut app, "frst");
    first.plan(&mut app, "a", 0, keys(EVALS));
    first.settle(&mut app, 0, Fail);
    handle_run_ended(&mut app, first.ticket, None);
    let x = row(&app.live_session.cells, "a/r/x");
    app.live_session.cells.select_row(x);
    for n in 0..20 {
        let log = Log::new(&mut app, &format!("r{n}"));
        handle_run_ended(&mut app, log.ticket, None);
    }
    assert_eq!(app.live_session.runs.by_ticket.len(), 8);
    assert!(app.live_session.runs.by_ticket.contains_key(&first.ticket));
}

#[test]
fn remaining_time_appears_after_enough_results() {
    let mut run = TrackedRun {
        began_at: Some(Millis(0)),
        ..TrackedRun::default()
    };
    run.state.cells = vec![crate::event::CellState::default(); 10];
    run.judging_since = Some(Millis(0));
    (run.judged, run.finished_cells) = (2, 2);
    assert_eq!(run.eta(Millis(4000)), None);
    (run.judged, run.finished_cells) = (4, 4);
    assert_eq!(run.eta(Millis(4000)), Some(Millis(6000)));
    assert_eq!(run.rate(Millis(4000)), Some(1.0));
}

#[test]
fn large_list_is_not_sorted_for_each_result() {
    let mut app = model();
    let ids: Vec<String> = (0..10_000).map(|n| format!("t{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let evals = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    app.live_session = SessionView::default();
    outline(&mut app.live_session.cells, &ids, &evals, "v1");
    assert_eq!(app.live_session.cells.total.rows, 100_000);
    let before = app.live_session.cells.rows_processed();
    let ticket = app.next_ticket();
    let start = EventKind::RunStarted(Box::new(header("20261121T000000Z-many", &evals, "v1")));
    let mut seq = 0;
    let mut event = |kind| {
        seq += 1;
        RunEvent {
            seq,
            at: Millis(0),
            kind,
        }
    };
    events_of(&mut app, ticket, &[event(start)]);
    for (id, first) in ids.iter().zip((0..).step_by(10)) {
        let planned = EventKind::CellsPlanned {
            transcript: transcript(id),
            first: CellIx(first),
            keys: keys(&evals),
        };
        let fail = |n| SettledCell::new(CellIx(first + n), CellResult::new(Fail, ""));
        let settled = EventKind::CellsSettled((0..10).map(fail).collect());
        // One batch per millisecond: ten seconds in all.
        app.now = app.now + Millis(1);
        events_of(&mut app, ticket, &[event(planned), event(settled)]);
    }
    let passes = (app.live_session.cells.rows_processed() - before) / 100_000;
    assert!(passes <= 42, "sorted {passes} times in ten seconds");
    handle_run_ended(&mut app, ticket, None);
    assert_eq!(app.live_session.cells.total.fail, 100_000);
    // The rest is ordered in batches, one per wake.
    for _ in 0..20 {
        handle_time_passed(&mut app);
    }
    assert_eq!(
        app.live_session.cells.next_order_update(),
        None,
        "nothing lags behind"
    );
}
