//! Tests of saves: the effects that each one orders.

use ratatui::layout::Size;

use super::*;
use crate::diag::Diagnostic;
use crate::handlers::EvalTypeRegistry;
use crate::model::Millis;
use crate::model::{Outcome, RunId};
use crate::run::{JudgePreview, RunPreview};
use crate::theme::Theme;
use crate::tui::run_order::RunOrder;
use crate::tui::state::cells::RunCellIx;
use crate::tui::state::cells::{
    CellsRow, EvalInfo, FlipSide, RowFlip, RowId, RowSlot, RowSlotState, VerdictInputs,
};
use crate::tui::state::runs::RunTicket;
use crate::tui::update::replayed_evidence;
use crate::tui::update::save_runs::handle_time_passed;
use crate::tui::update::{cost_consent, cost_estimate};
use crate::workspace::{Env, load};

mod waiting;

const CHECK: &str = "  - id: says\n    type: contains\n    params: { patterns: [hello] }\n";

fn judged(extra: &str) -> String {
    format!("  - id: tone\n    type: llm_judge_session\n    params: {{ criteria: kind{extra} }}\n")
}

fn workspace(evals: &[&str], judge: &str) -> Arc<Workspace> {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |file: &str, text: &str| {
        std::fs::write(dir.path().join(file), text).expect("a file");
    };
    write("t.jsonl", "{\"messages\":[]}\n");
    write("beam.yaml", &format!("evals:\n{}", evals.concat()));
    write(
        "dicta.yaml",
        &format!("transcripts: [t.jsonl]\nrubrics: [beam.yaml]\nruns: runs\n{judge}"),
    );
    let loaded = load(dir.path(), &Env::default(), &EvalTypeRegistry::builtin());
    let loaded = loaded.expect("the workspace loads");
    // Each version is loaded from its own folder. These paths make them one workspace.
    Arc::new(Workspace {
        transcripts: vec!["t.jsonl".into()],
        runs: "runs".into(),
        ..loaded
    })
}

const FREE: &str = "judge: rules\n";
const COSTS: &str =
    "judge: paid\njudges:\n  paid: { provider: gemini, model: m, api_key_env: K }\n";

fn app_with(workspace: Arc<Workspace>) -> App {
    let theme = Theme::bundled("dark").expect("a theme");
    App::new(OpenedItem::Workspace(workspace), Size::new(120, 40), theme)
}

fn current_workspace(app: &App) -> Arc<Workspace> {
    Arc::clone(app.workspace().expect("a workspace is open"))
}

fn save(app: &mut App, workspace: Arc<Workspace>) -> Vec<Effect> {
    handle_reloaded(app, workspace, &["beam.yaml".into()])
}

fn advance_to(app: &mut App, at: u64) -> Vec<Effect> {
    app.now = Millis(at);
    handle_time_passed(app)
}

/// Returns the effects that each save with changed cells orders first. The past verdicts are decided by `old`.
fn outline_effects(app: &App, old: &Arc<Workspace>) -> Vec<Effect> {
    vec![
        Effect::CheckKeys(current_workspace(app)),
        Effect::ComputeOutline {
            generation: app.generation,
            workspace: current_workspace(app),
        },
        Effect::ReadNewestVerdicts {
            generation: app.generation,
            workspace: current_workspace(app),
            decided_by: Arc::clone(old),
            renames: Vec::new(),
        },
    ]
}

/// Returns an order over everything, with the last ticket.
fn newest_order(app: &App) -> RunOrder {
    RunOrder {
        ticket: RunTicket(app.last_ticket),
        workspace: current_workspace(app),
        only: None,
        filter: None,
        except: None,
        judge: None,
        cache: CachePolicy::Use,
        replayed_evidence: None,
        recorded_only: false,
        branch: None,
        repeat: None,
        parent: None,
        measures_noise: false,
        is_of_save: true,
    }
}

/// Returns the newest order as a run over one eval.
fn eval_run(app: &App, filter: &str, cache: CachePolicy) -> Effect {
    Effect::StartRun(RunOrder {
        filter: Some(filter.to_owned()),
        cache,
        ..newest_order(app)
    })
}

/// Returns the newest order as a run that judges nothing and records the revision.
fn record_run(app: &App) -> Effect {
    Effect::StartRun(RunOrder {
        only: Some(Arc::new(Vec::new())),
        cache: CachePolicy::SkipUncached,
        ..newest_order(app)
    })
}

const CHECK_FILTER: &str = "rubric:\"beam\" eval:\"says\"";
const JUDGED_FILTER: &str = "rubric:\"beam\" eval:\"tone\"";

#[test]
fn broken_save_keeps_last_good_rubric() {
    let good = workspace(&[CHECK], FREE);
    let mut app = app_with(Arc::clone(&good));
    let problem = Diagnostic::error("x", "rubrics/beam.yaml", "no");
    assert_eq!(handle_reload_failed(&mut app, vec![problem]), []);
    assert!(Arc::ptr_eq(app.workspace().expect("one"), &good));
    // The file is as before: the diagnostics disappear, and nothing is judged.
    assert_eq!(handle_reloaded(&mut app, good, &[]), []);
    assert_eq!(app.saves.problems, []);
    let notice = &app.notices.newest.as_ref().expect("a notice").text;
    assert_eq!(notice, "rubrics/beam.yaml loads again");
}

#[test]
fn comment_save_judges_nothing() {
    let mut app = app_with(workspace(&[CHECK], FREE));
    let commented = workspace(&["  # why\n", CHECK], FREE);
    assert_eq!(save(&mut app, commented), []);
    assert_eq!(
        summarize(app.saves.report.as_ref().expect("a report")),
        "saved beam.yaml: nothing to judge again: only comments or layout changed"
    );
    assert_eq!(app.saves.next_wake(), None);
    let log: Vec<&str> = app
        .notices
        .log
        .iter()
        .map(|notice| notice.text.as_str())
        .collect();
    assert_eq!(
        log,
        ["saved beam.yaml: nothing to judge again: only comments or layout changed"]
    );
}

#[test]
fn changed_file_of_a_join_reads_the_transcripts_again() {
    let mut app = app_with(workspace(&[CHECK], FREE));
    let old = current_workspace(&app);
    let effects = handle_reloaded(&mut app, workspace(&[CHECK], FREE), &["q.csv".into()]);
    assert_eq!(effects, outline_effects(&app, &old));
    assert_eq!(
        summarize(app.saves.report.as_ref().expect("a report")),
        "saved q.csv: transcripts are read again: R judges what they are now"
    );
}

#[test]
fn file_that_returns_does_not_report_its_evals_as_gone() {
    let both = workspace(&[CHECK, &judged("")], FREE);
    let mut app = app_with(Arc::clone(&both));
    with_row(&mut app, RowSlotState::NeverRun);
    let tone = &mut app.live_session.cells;
    tone.evals[0].id = "tone".into();
    tone.rows[0].decision =
        crate::model::decide_cells(&[crate::model::CellResult::new(Outcome::Pass, "")]);
    save(&mut app, workspace(&[CHECK], FREE));
    // The eval has its verdict, so it needs no judging.
    save(&mut app, both);
    assert_eq!(
        summarize(app.saves.report.as_ref().expect("a report")),
        "saved beam.yaml: the evals are back, nothing to judge again"
    );
}

#[test]
fn removed_eval_is_reported_as_gone() {
    let mut app = app_with(workspace(&[CHECK, &judged("")], FREE));
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[CHECK], FREE));
    assert_eq!(saved, outline_effects(&app, &old));
    assert_eq!(
        summarize(app.saves.report.as_ref().expect("a report")),
        "saved beam.yaml: 1 eval is gone, nothing to judge again"
    );
}

#[test]
fn touched_check_runs_at_once_and_alone() {
    let mut app = app_with(workspace(&[CHECK, &judged("")], FREE));
    let changed = CHECK.replace("hello", "bye");
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&changed, &judged("")], FREE));
    let mut expected = outline_effects(&app, &old);
    expected.push(eval_run(&app, CHECK_FILTER, CachePolicy::Use));
    assert_eq!(saved, expected);
    assert_eq!(app.saves.pending_judging, None);
    assert_eq!(
        advance_to(&mut app, 300),
        [],
        "the check records the revision"
    );
}

#[test]
fn two_saves_within_300_ms_start_one_judged_run() {
    let mut app = app_with(workspace(&[&judged("")], FREE));
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&judged(" and short")], FREE));
    assert_eq!(saved, outline_effects(&app, &old));
    assert_eq!(advance_to(&mut app, 200), []);
    save(&mut app, workspace(&[&judged(" and brief")], FREE));
    assert_eq!(advance_to(&mut app, 300), []);
    let started = advance_to(&mut app, 500);
    assert_eq!(started, [eval_run(&app, JUDGED_FILTER, CachePolicy::Use)]);
    assert_eq!(advance_to(&mut app, 900), []);
}

#[test]
fn cells_of_a_free_judge_do_not_wait_for_a_key_while_the_save_judges_them() {
    let mut app = app_with(workspace(&[&judged(""), CHECK], FREE));
    with_row(&mut app, RowSlotState::NeverRun);
    let changed = CHECK.replace("hello", "bye");
    save(&mut app, workspace(&[&judged(" a"), &changed], FREE));
    let end_run = |app: &mut App| {
        let report = app.saves.report.as_mut().expect("a report");
        report.judged = 1;
        let ticket = *report.running_runs.last().expect("a run");
        crate::tui::update::edits::remove_from_report(app, ticket);
    };
    // The check ends while the judge cells still wait for their delay.
    assert!(app.saves.pending_judging.is_some());
    end_run(&mut app);
    assert_eq!(not_judged_text(&app), None);
    // The run of the judge ends without a verdict.
    advance_to(&mut app, 300);
    end_run(&mut app);
    assert_eq!(not_judged_text(&app), Some("1 cell waits for R"));
}

#[test]
fn run_without_model_call_is_superseded() {
    let mut app = app_with(workspace(&[&judged("")], FREE));
    save(&mut app, workspace(&[&judged(" a")], FREE));
    advance_to(&mut app, 300);
    let ticket = *app
        .live_session
        .runs
        .by_ticket
        .keys()
        .next()
        .expect("a run");
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&judged(" b")], FREE));
    let mut expected = outline_effects(&app, &old);
    expected.push(Effect::WithdrawEvals {
        ticket,
        evals: vec![EvalName {
            rubric: "beam".into(),
            eval: "tone".into(),
        }],
    });
    expected.push(Effect::CancelRun(ticket));
    assert_eq!(saved, expected);
    advance_to(&mut app, 600);
    let newest = *app
        .live_session
        .runs
        .by_ticket
        .keys()
        .last()
        .expect("a run");
    let run = app
        .live_session
        .runs
        .by_ticket
        .get_mut(&newest)
        .expect("it is known");
    let mut cell = crate::event::CellState::default();
    cell.judge_trace.push(crate::event::TurnState::default());
    run.state.cells.push(cell);
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&judged(" c")], FREE));
    // The verdicts of a run that called a model are kept. It judges no further cell of the replaced question.
    let mut expected = outline_effects(&app, &old);
    expected.push(Effect::WithdrawEvals {
        ticket: newest,
        evals: vec![EvalName {
            rubric: "beam".into(),
            eval: "tone".into(),
        }],
    });
    assert_eq!(saved, expected);
}

#[test]
fn a_paused_save_judges_nothing_and_is_counted() {
    let mut app = app_with(workspace(&[CHECK], FREE));
    app.saves.paused = true;
    let changed = CHECK.replace("hello", "bye");
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&changed], FREE));
    assert_eq!(saved, outline_effects(&app, &old));
    assert_eq!(app.saves.unjudged_saves, 1);
}

/// Adds a row of the judged eval with a recorded verdict.
fn with_row(app: &mut App, state: RowSlotState) {
    let rubric = &app.workspace().expect("one").rubrics[0];
    let eval = &rubric.evals[0];
    let info = EvalInfo {
        question: None,
        part_of: None,
        shots: std::collections::HashSet::new(),
        rubric: rubric.id.clone(),
        id: eval.id.clone(),
        eval_type: eval.eval_type.clone(),
        digest: eval.digest.clone(),
        judged: true,
        groups: Vec::new(),
        decision_rule: std::sync::Arc::default(),
    };
    let cells = &mut app.live_session.cells;
    cells.evals = vec![info];
    let slot = RowSlot {
        judge: Some(0),
        repeat: None,
        run_cell: None,
        inputs: VerdictInputs::default(),
        state,
        ..RowSlot::default()
    };
    cells.rows.push(CellsRow {
        slots: vec![slot],
        ..CellsRow::default()
    });
}

#[test]
fn decide_only_change_costs_no_call() {
    let mut app = app_with(workspace(&[&judged("")], COSTS));
    with_row(&mut app, RowSlotState::NeverRun);
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&judged(", min_score: 0.5")], COSTS));
    assert_eq!(
        saved,
        outline_effects(&app, &old),
        "nothing is recorded, so nothing is decided"
    );
    app.live_session.cells.rows[0].verdict = Some(side(Outcome::Pass));
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&judged(", min_score: 0.7")], COSTS));
    let mut expected = outline_effects(&app, &old);
    expected.push(eval_run(&app, JUDGED_FILTER, CachePolicy::SkipUncached));
    assert_eq!(saved, expected, "from past verdicts alone");
    // A stale verdict holds again and is decided by the current settings.
    save(
        &mut app,
        workspace(&[&judged(" and short, min_score: 0.7")], COSTS),
    );
    let saved = save(&mut app, workspace(&[&judged(", min_score: 0.7")], COSTS));
    // The save also orders a preview, which takes the ticket after that of the run.
    let decides = |effect: &Effect| {
        matches!(effect, Effect::StartRun(order)
            if order.cache == CachePolicy::SkipUncached && order.filter.as_deref() == Some(JUDGED_FILTER))
    };
    assert!(saved.iter().any(decides), "{saved:?}");
}

#[test]
fn bounds_of_a_judge_that_replays_are_decided_by_replaying_again() {
    const REPLAYS: &str =
        "judge: recorded\njudges:\n  recorded: { provider: replay, run: runs/x }\n";
    let mut app = app_with(workspace(&[&judged(", min_score: 0.5")], REPLAYS));
    with_row(&mut app, RowSlotState::NeverRun);
    app.live_session.cells.rows[0].verdict = Some(side(Outcome::Pass));
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&judged(", min_score: 0.7")], REPLAYS));
    // Its verdicts have no cache key, so a run that only takes from the cache would decide nothing.
    assert_eq!(saved, outline_effects(&app, &old));
    let waiting = app.saves.pending_judging.as_ref().expect("it is judged");
    assert_eq!(waiting.evals.len(), 1);
}

fn side(outcome: Outcome) -> FlipSide {
    FlipSide {
        outcome,
        score: None,
        explanation: "".into(),
    }
}

fn not_judged_text(app: &App) -> Option<&str> {
    app.saves.report.as_ref()?.not_judged.as_deref()
}

#[test]
fn paid_judge_gets_only_cost_estimate() {
    let mut app = app_with(workspace(&[&judged("")], COSTS));
    with_row(&mut app, RowSlotState::NeverRun);
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&judged(" and short")], COSTS));
    let mut expected = outline_effects(&app, &old);
    expected.push(Effect::PreviewRun(newest_order(&app)));
    assert_eq!(saved, expected);
    assert_eq!(
        not_judged_text(&app),
        Some("nothing is judged by itself: paid may cost, R asks first")
    );
    let due = advance_to(&mut app, 1000);
    assert_eq!(due, [record_run(&app)], "the history gets an entry");
    let preview = |cells, cached, cost_usd| JudgePreview {
        cells,
        cached,
        cost_with_all_calls: cost_usd,
        ..JudgePreview::default()
    };
    let judges = [
        ("paid".to_owned(), preview(14, 2, Some(0.0433))),
        ("other".to_owned(), preview(9, 0, Some(7.0))),
    ];
    let preview = RunPreview {
        judges: judges.into(),
        ..RunPreview::default()
    };
    assert!(cost_estimate::handle_preview(&mut app, Ok(preview)).is_empty());
    assert_eq!(
        not_judged_text(&app),
        Some("12 cells of paid wait for R: about $0.04")
    );
}

#[test]
fn paid_judge_judges_only_focused_cell() {
    let mut app = app_with(workspace(&[&judged("")], COSTS));
    with_row(&mut app, RowSlotState::NeverRun);
    app.live_session.cells.transcripts = vec![crate::model::TranscriptRef {
        part: 0,
        id: "t".into(),
        path: "t.jsonl".into(),
        offset: 0,
        len: 1,
        digest: crate::model::Digest::hash_bytes(b"t"),
    }];
    app.live_session.cells.list.selected =
        Some(crate::tui::state::cells::CellsEntry::Row(RowId(0)));
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&judged(" and short")], COSTS));
    let mut expected = outline_effects(&app, &old);
    expected.push(Effect::PreviewRun(RunOrder {
        except: Some("t/beam/tone".to_owned()),
        ..newest_order(&app)
    }));
    assert_eq!(saved, expected);
    // A preview that failed has no figures.
    assert!(cost_estimate::handle_preview(&mut app, Err("no".into())).is_empty());
    assert_eq!(
        not_judged_text(&app),
        Some("only the focused cell is judged again: paid may cost, R asks first")
    );
    let started = advance_to(&mut app, 300);
    let order = RunOrder {
        ticket: RunTicket(app.last_ticket - 1),
        only: Some(Arc::new(vec!["t/beam/tone".to_owned()])),
        ..newest_order(&app)
    };
    assert_eq!(
        started,
        [Effect::PreviewRun(order.clone()), record_run(&app)]
    );
    // Without paid calls, for example because all verdicts are recorded, the run starts without a question.
    let ticket = order.ticket;
    let started = cost_consent::handle_preview(&mut app, ticket, Ok(RunPreview::default()));
    assert_eq!(started, [Effect::StartRun(order)]);
    assert_eq!(
        app.live_session.runs.by_ticket[&ticket].save_number,
        Some(app.saves.number)
    );
}

#[test]
fn save_runs_replay_evidence_unless_turned_off() {
    const TOOLS: &str = "judge: rules\njudges:\n  free: { provider: rules, tools: [fetch_url] }\n";
    let replayed_runs = |app: &mut App, at| {
        app.now = Millis(at);
        let orders = handle_time_passed(app)
            .into_iter()
            .map(|effect| match effect {
                Effect::StartRun(order) => order.replayed_evidence,
                other => panic!("{other:?}"),
            });
        orders.collect::<Vec<_>>()
    };
    let mut app = app_with(workspace(&[&judged("")], TOOLS));
    with_row(&mut app, RowSlotState::NeverRun);
    let id = |letters: &str| RunId(format!("20261121T000000Z-{letters}"));
    let cells = &mut app.live_session.cells;
    cells.runs = vec![id("aaaa"), id("bbbb")];
    cells.rows[0].slots[0].run_cell = Some(RunCellIx {
        run: 0,
        cell: crate::model::CellIx(0),
    });
    let mut other = cells.rows[0].clone();
    other.slots[0].run_cell = Some(RunCellIx {
        run: 1,
        cell: crate::model::CellIx(0),
    });
    cells.rows.push(other);
    save(&mut app, workspace(&[&judged(" and short")], TOOLS));
    let both = "20261121T000000Z-bbbb,20261121T000000Z-aaaa";
    assert_eq!(
        replayed_runs(&mut app, 300),
        [Some(both.to_owned())],
        "newest first"
    );

    replayed_evidence::toggle_replayed_evidence(&mut app);
    let notice = &app.notices.newest.as_ref().expect("a notice").text;
    assert!(notice.contains("fetch their pages again"), "{notice}");
    save(&mut app, workspace(&[&judged(" and clear")], TOOLS));
    assert_eq!(replayed_runs(&mut app, 600), [None]);

    // A run that dicta.yaml names has priority.
    replayed_evidence::toggle_replayed_evidence(&mut app);
    let named = format!("{TOOLS}frozen: kvqa\n");
    save(&mut app, workspace(&[&judged(" and calm")], &named));
    let orders = replayed_runs(&mut app, 900);
    assert!(orders.iter().all(Option::is_none), "{orders:?}");
}

#[test]
fn save_written_in_pieces_is_one_report() {
    let mut app = app_with(workspace(&[CHECK, &judged("")], FREE));
    with_row(&mut app, RowSlotState::NeverRun);
    let tone = &mut app.live_session.cells;
    tone.evals[0].id = "tone".into();
    tone.rows[0].decision =
        crate::model::decide_cells(&[crate::model::CellResult::new(Outcome::Pass, "")]);
    let changed = CHECK.replace("hello", "bye");
    // The first piece of the file loads without the last eval.
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&changed], FREE));
    let mut expected = outline_effects(&app, &old);
    expected.push(eval_run(&app, CHECK_FILTER, CachePolicy::Use));
    assert_eq!(saved, expected);
    let report = app.saves.report.as_mut().expect("a report");
    report.add_flip(RowFlip {
        row: RowId(0),
        before: side(Outcome::Fail),
        after: side(Outcome::Pass),
        agrees_with_label: Some(true),
        arithmetic: None,
    });
    app.now = Millis(300);
    let old = current_workspace(&app);
    let saved = save(&mut app, workspace(&[&changed, &judged("")], FREE));
    assert_eq!(
        saved,
        outline_effects(&app, &old),
        "the restored eval is as it was"
    );
    assert_eq!(app.saves.pending_judging, None);
    assert_eq!(
        summarize(app.saves.report.as_ref().expect("a report")),
        "saved beam.yaml: 1 flip ✗→✓, towards your label"
    );
    // A comment belongs to the edit: it moves no verdict.
    app.now = Millis(60_000);
    save(
        &mut app,
        workspace(&["  # why\n", &changed, &judged("")], FREE),
    );
    assert_eq!(
        summarize(app.saves.report.as_ref().expect("a report")),
        "saved beam.yaml: 1 flip ✗→✓, towards your label"
    );
    let notice = &app.notices.newest.as_ref().expect("a notice").text;
    assert_eq!(
        notice,
        "saved beam.yaml: nothing to judge again: only comments or layout changed"
    );
}

#[test]
fn removed_pending_eval_is_not_judged() {
    let mut app = app_with(workspace(&[CHECK, &judged("")], FREE));
    save(&mut app, workspace(&[CHECK, &judged(" and short")], FREE));
    assert!(app.saves.next_wake().is_some());
    save(&mut app, workspace(&[CHECK], FREE));
    let due = advance_to(&mut app, 1000);
    assert_eq!(due, [record_run(&app)]);
}

#[test]
fn auto_off_drops_pending_judging() {
    let mut app = app_with(workspace(&[&judged("")], FREE));
    save(&mut app, workspace(&[&judged(" and short")], FREE));
    toggle_auto_judging(&mut app);
    let due = advance_to(&mut app, 1000);
    assert_eq!(due, [record_run(&app)], "only the revision is recorded");
    assert_eq!(app.saves.unjudged_saves, 1);
    toggle_auto_judging(&mut app);
    let notice = &app.notices.newest.as_ref().expect("a notice").text;
    assert_eq!(
        notice,
        "auto is on; 1 save came meanwhile: R judges what is stale"
    );
    save(&mut app, workspace(&[&judged(" and brief")], FREE));
    assert!(app.saves.next_wake().is_some());
}

#[test]
fn deleted_rubric_is_reported_as_deleted() {
    let mut app = app_with(workspace(&[CHECK], FREE));
    let mut without = Workspace::clone(&workspace(&[CHECK], FREE));
    without.rubrics.clear();
    without
        .files
        .retain(|file| !file.path.ends_with("beam.yaml"));
    save(&mut app, Arc::new(without));
    assert_eq!(
        summarize(app.saves.report.as_ref().expect("a report")),
        "deleted beam.yaml: 1 eval is gone, nothing to judge again"
    );
}
