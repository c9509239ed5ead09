//! The progress screen, driven by keys: with states made by hand, and with a real history.

use std::sync::Arc;

use serde_json::json;

use super::look::rows;
use super::looks::same;
use super::{demo, go_to, judged, last_notice, rubric, workbench};
use crate::event::{EvalSpec, RubricSpec, RunHeader};
use crate::model::{CellIx, Cost, Digest, Label, Millis, Outcome, RunId, ScoreBounds, WallTime};
use crate::record::{
    DecisionStanding, EntryRun, EvalDecisions, EvalEdit, EvalEditKind, HistoryEntry, RecordedCell,
    RunStatus, State, StateDecision, StateTranscript,
};
use crate::tui::history_view::HistoryView;
use crate::tui::msg::Msg;
use crate::tui::state::OpenedItem;
use crate::tui::state::progress::{ProgressPane, describe_edits};
use crate::tui::testing::TestWorkbench;

/// The scores of the transcripts of the made history.
const SCORES: [f64; 15] = [
    0.1, 0.2, 0.2, 0.3, 0.3, 0.4, 0.5, 0.6, 0.7, 0.7, 0.7, 0.8, 0.8, 0.9, 1.0,
];

/// Returns a state in which `min_score` decides the scores of one eval.
fn state(min: f64, eval: &str, name: &dyn Fn(usize) -> String) -> State {
    let mut header = RunHeader::new(
        RunId("19700101T000000Z-aaaa".into()),
        WallTime("2026-11-22T21:04:00Z".into()),
        "/w".into(),
    );
    header.rubrics.push(RubricSpec {
        id: "support".into(),
        path: "rubrics/support.yaml".into(),
        threshold: None,
    });
    let mut spec = EvalSpec::new(0, eval, "llm_judge", Digest::unread());
    spec.judged = true;
    spec.decision_settings
        .insert("min_score".into(), json!(min));
    header.evals.push(spec);
    let number = |at: usize| u32::try_from(at).expect("few");
    let transcripts = (0..SCORES.len()).map(|at| StateTranscript {
        id: name(at).into(),
        digest: Digest::hash_bytes(&[u8::try_from(at).expect("few")]),
    });
    let decisions = SCORES.iter().enumerate().map(|(at, score)| StateDecision {
        transcript: number(at),
        eval: 0,
        message: None,
        standing: DecisionStanding::Decided {
            outcome: Outcome::from_passed(*score >= min),
            score: Some(*score),
        },
        cells: Box::new([RecordedCell {
            run: 0,
            cell: CellIx(number(at)),
        }]),
        slots: Box::default(),
        failed_rerun: None,
        edited: false,
    });
    State {
        header: Arc::new(header),
        identities: Vec::new(),
        transcripts: Arc::new(transcripts.collect()),
        evals: vec![Arc::new(EvalDecisions {
            decisions: decisions.collect(),
        })],
    }
}

fn entry(number: usize, min: f64, edits: Vec<EvalEdit>, state: State) -> HistoryEntry {
    let run = |at: usize| EntryRun {
        id: RunId(format!("19700101T00000{at}Z-run{at}")),
        started: WallTime(format!("2026-11-22T21:{:02}:00Z", 4 + number % 50)),
        judged: if at == 0 { 22 } else { 0 },
        cells: 116,
        cost: Cost::ZERO,
        status: if at == 1 {
            RunStatus::Cancelled
        } else {
            RunStatus::Finished
        },
        unfinished: 0,
        is_whole: true,
    };
    HistoryEntry {
        number,
        revision: Digest::hash_bytes(min.to_string().as_bytes()),
        same_as: None,
        started: WallTime(format!("2026-11-22T21:{:02}:00Z", 4 + number % 50)),
        edits,
        runs: vec![run(0), run(1)],
        judged: if number == 1 { 116 } else { 0 },
        cost: Cost {
            usd: if number == 1 { 0.21 } else { 0.0 },
            ..Cost::ZERO
        },
        state: Arc::new(state),
    }
}

fn bounds(from: f64, to: f64, eval: &str) -> Vec<EvalEdit> {
    let min = |at| ScoreBounds {
        min: Some(at),
        max: None,
    };
    vec![EvalEdit {
        rubric: "support".into(),
        eval: eval.into(),
        kind: EvalEditKind::Bounds {
            from: min(from),
            to: min(to),
        },
    }]
}

/// Returns a history whose threshold goes through these values.
fn made_history(thresholds: &[f64], eval: &str, name: &dyn Fn(usize) -> String) -> HistoryView {
    let entries = thresholds.iter().zip(1..).map(|(min, number)| {
        let edits = match number {
            1 => Vec::new(),
            _ => bounds(thresholds[number - 2], *min, eval),
        };
        entry(number, *min, edits, state(*min, eval, name))
    });
    HistoryView {
        entries: entries.collect(),
        baseline: Some(2).filter(|_| thresholds.len() > 2),
        ..HistoryView::default()
    }
}

fn transcript(at: usize) -> String {
    format!("sup-{at:02}-refund")
}

/// Labels the transcripts from the sixth on as pass, and the others as fail, up to `many` transcripts.
fn label(app: &mut TestWorkbench, eval: &str, many: usize, name: &dyn Fn(usize) -> String) {
    let OpenedItem::Workspace(workspace) = &mut app.event_loop.app.opened else {
        panic!("a workspace is open");
    };
    let labels = (0..many).map(|at| Label {
        transcript: name(at),
        rubric: None,
        eval: eval.into(),
        passed: Some(at >= 6),
        score: None,
        by: None,
        at: None,
        note: None,
        ..Label::default()
    });
    Arc::make_mut(workspace).labels = labels.map(Arc::new).collect();
}

/// Opens the screen on a made history.
fn progress_on(width: u16, height: u16, view: HistoryView, eval: &str) -> TestWorkbench {
    let mut app = demo(width, height);
    label(&mut app, eval, SCORES.len(), &transcript);
    app.keys("H").settle();
    let number = app.event_loop.app.progress.number;
    app.event_loop.app.notices.dismiss();
    app.send_msg(Msg::HistoryRead {
        number,
        view: Ok(view.into()),
    });
    app.settle();
    app
}

fn made(width: u16, height: u16) -> TestWorkbench {
    let view = made_history(&[0.75, 0.5, 0.65, 0.75], "grounded", &transcript);
    progress_on(width, height, view, "grounded")
}

#[test]
fn progress_screen_fits_three_sizes() {
    let mut app = made(120, 40);
    same("progress_120x40", &rows(&app));
    app.keys(". l l").settle();
    same("progress_threshold_120x40", &rows(&app));
    app.resize(200, 60).settle();
    same("progress_200x60", &rows(&app));
    app.keys("esc esc , space").resize(80, 24).settle();
    same("progress_80x24", &rows(&app));
    app.keys(". h").settle();
    same("progress_scores_80x24", &rows(&app));
    app.resize(40, 12).settle();
    same("progress_40x12", &rows(&app));
}

#[test]
fn each_part_has_the_same_name_in_its_frame_and_in_the_tabs() {
    let wide = made(120, 40).screen();
    let narrow = made(80, 24).screen();
    let tabs = narrow
        .lines()
        .find_map(|row| row.split_once("tab "))
        .expect("tabs")
        .1;
    for pane in ProgressPane::ALL {
        let name = pane.title();
        // The history has its own frame above the part with the tabs.
        let is_tab = tabs.contains(&format!(" {name} "));
        assert_eq!(is_tab, pane != ProgressPane::Entries, "{name}: {tabs}");
        // The frame of the flips has the states and the number of flips.
        let is_titled = match pane {
            ProgressPane::Flips => wide.contains("┌ 3 → 4: 3 flips,"),
            _ => ["┏", "┌"]
                .iter()
                .any(|corner| wide.contains(&format!("{corner} {name}"))),
        };
        assert!(is_titled, "{name}: {wide}");
    }
}

#[test]
fn many_removed_evals_are_counted_in_the_row() {
    let removed = |eval: &str| EvalEdit {
        rubric: "support".into(),
        eval: eval.into(),
        kind: EvalEditKind::Removed,
    };
    let edits = |evals: &[&str]| {
        let mut edits: Vec<EvalEdit> = evals.iter().map(|eval| removed(eval)).collect();
        edits.extend(bounds(0.5, 0.75, "grounded"));
        let edited = entry(2, 0.75, edits, state(0.75, "grounded", &transcript));
        describe_edits(&edited, None)
    };
    assert_eq!(
        edits(&["short", "polite", "safe"]),
        "3 removed evals, grounded: min_score 0.50 → 0.75"
    );
    assert_eq!(
        edits(&["short"]),
        "removed eval short, grounded: min_score 0.50 → 0.75"
    );
}

#[test]
fn narrow_history_names_both_kinds_of_wrong_verdicts() {
    let app = made(80, 24);
    assert!(app.screen().contains(" f.pass f.fail "), "{}", app.screen());
}

#[test]
fn progress_screen_in_ascii_has_no_other_characters() {
    let mut app = made(120, 40);
    let ui = &mut app.event_loop.app.ui;
    ui.theme = Arc::new(
        crate::theme::Theme::bundled("ansi")
            .expect("bundled")
            .in_ascii(),
    );
    app.keys(". h j").settle();
    let shown = rows(&app);
    assert!(shown.is_ascii(), "{shown}");
    same("progress_ascii_120x40", &shown);
}

#[test]
fn threshold_keys_count_flips_without_a_run() {
    let mut app = made(120, 40);
    assert!(app.screen().contains("10/15"), "{}", app.screen());
    app.keys(". h h h h h").settle();
    let screen = app.screen();
    assert!(screen.contains("0.75 → 0.50"), "{screen}");
    assert!(screen.contains("5 flips, 5 now agree"), "{screen}");
    assert!(screen.contains("15/15 agree"), "{screen}");
    assert_eq!(app.event_loop.runtime.made().len(), 0);
    app.keys("esc").settle();
    assert!(
        app.screen().contains("min_score 0.75   "),
        "{}",
        app.screen()
    );
}

#[test]
fn mark_compares_any_two_states_and_esc_removes_it() {
    let mut app = made(120, 40);
    assert!(app.screen().contains("3 → 4:"), "{}", app.screen());
    app.keys("= j j").settle();
    assert!(app.screen().contains("2 → 4:"), "{}", app.screen());
    app.keys("esc").settle();
    assert!(app.screen().contains("1 → 2:"), "{}", app.screen());
    app.keys("esc").settle();
    assert!(!app.event_loop.app.progress.open);
}

#[test]
fn keys_of_the_panes_explain_that_they_are_not_here() {
    let mut app = made(80, 24);
    app.keys("p");
    assert!(last_notice(&app).contains("not on the progress screen"));
    app.keys("h");
    assert!(last_notice(&app).contains("choose one eval first"));
    app.keys("U");
    assert!(last_notice(&app).contains("nothing to undo"));
}

#[test]
fn line_and_rows_show_where_other_labels_count() {
    let mut view = made_history(&[0.75, 0.5, 0.65, 0.75], "grounded", &transcript);
    let question = |text: &str| Digest::hash_bytes(text.as_bytes());
    for entry in &mut view.entries {
        let changed = if entry.number > 2 { "new" } else { "old" };
        let state = Arc::make_mut(&mut entry.state);
        Arc::make_mut(&mut state.header).evals[0].question = Some(question(changed));
    }
    let again = view.clone();
    let mut app = progress_on(120, 40, view, "grounded");
    assert!(!app.screen().contains('|'), "{}", app.screen());
    let OpenedItem::Workspace(workspace) = &mut app.event_loop.app.opened else {
        panic!("a workspace is open");
    };
    // Ten people answered the old question.
    for label in &mut Arc::make_mut(workspace).labels[..10] {
        Arc::make_mut(label).question_digest = Some(question("old"));
    }
    app.keys("H H").settle();
    let view = Ok(again.into());
    let number = app.event_loop.app.progress.number;
    app.send_msg(Msg::HistoryRead { number, view }).settle();
    let screen = app.screen();
    let row = |number: &str| {
        let found = screen.lines().find(|row| row.contains(number));
        found.unwrap_or_default().to_owned()
    };
    assert!(row("21:07 ").contains("|5/5"), "{screen}");
    assert!(!row("21:08 ").contains('|'), "{screen}");
    assert!(screen.contains("| other labels than before"), "{screen}");
    assert!(
        screen.contains("a gap in the line: its sides count other labels"),
        "{screen}"
    );
    app.keys("j").settle();
    assert!(
        app.screen()
            .contains("other labels than state 2: 10 labels to confirm"),
        "{}",
        app.screen()
    );
}

#[test]
fn blind_labelling_closes_the_way_to_the_verdicts() {
    let mut app = demo(80, 24);
    app.keys("B H").settle();
    assert!(!app.event_loop.app.progress.open);
    assert!(last_notice(&app).contains("press B first"));
}

#[test]
fn history_without_runs_says_what_to_do() {
    let mut app = progress_on(80, 24, HistoryView::default(), "grounded");
    let screen = app.screen();
    assert!(screen.contains("R judges them"), "{screen}");
    app.keys("enter");
    assert!(last_notice(&app).contains("no state yet"));
    app.keys("space = * v t . tab j k G g").settle();
    assert!(app.event_loop.app.progress.open);
}

#[test]
fn first_state_explains_that_neither_flips_nor_a_difference_exist() {
    let view = made_history(&[0.75], "grounded", &transcript);
    let mut app = progress_on(200, 60, view, "grounded");
    let why = "nothing before the first state: = marks a state to compare with";
    assert_eq!(app.screen().matches(why).count(), 2, "{}", app.screen());
    app.resize(80, 24).keys("tab tab").settle();
    assert!(app.screen().contains(why), "{}", app.screen());
}

#[test]
fn thousand_revisions_show_the_newest_and_the_oldest() {
    let thresholds: Vec<f64> = (0..1000).map(|at| f64::from(at % 20) / 20.0).collect();
    let view = made_history(&thresholds, "grounded", &transcript);
    let mut app = progress_on(120, 40, view, "grounded");
    assert!(app.screen().contains(" 1000"), "{}", app.screen());
    app.keys("G").settle();
    assert!(app.screen().contains("first state"), "{}", app.screen());
    app.keys("pageup space").settle();
    assert!(app.screen().contains("run run1"), "{}", app.screen());
}

#[test]
fn hostile_names_and_reasons_cannot_control_the_screen() {
    let evil = "A\u{1b}[2J\u{202e}\u{200b}\r\n\u{9b}31m";
    let name = |at: usize| format!("{evil}{at}");
    let view = made_history(&[0.75, 0.5, 0.65], evil, &name);
    let mut app = demo(120, 40);
    label(&mut app, evil, SCORES.len(), &name);
    app.keys("H").settle();
    let number = app.event_loop.app.progress.number;
    app.send_msg(Msg::HistoryRead {
        number,
        view: Ok(view.into()),
    });
    app.settle();
    let cells: Vec<RecordedCell> = app
        .event_loop
        .app
        .progress
        .reasons
        .keys()
        .copied()
        .collect();
    assert!(!cells.is_empty());
    let reasons = cells.into_iter().map(|cell| (cell, evil.to_owned()));
    app.send_msg(Msg::ReasonsRead {
        number,
        reasons: reasons.collect(),
    });
    for keys in ["", "tab", "space", ". h", "tab"] {
        app.keys(keys).settle();
        for cell in &app.buffer().content {
            let hidden = |c: char| c.is_control() || crate::model::is_invisible(c);
            assert!(!cell.symbol().contains(hidden), "{:?}", cell.symbol());
        }
    }
}

#[test]
fn saved_edit_becomes_a_row_with_its_flips_and_the_state_opens() {
    let mut app = judged(120, 40);
    let (_, fixed) = rubric(&app);
    app.save("rubrics/beamline.yaml", &fixed).settle();
    app.keys("R").settle();
    app.keys("H").settle();
    let progress = &app.event_loop.app.progress;
    assert_eq!(progress.view.entries.len(), 2, "{}", app.screen());
    let screen = app.screen();
    assert!(screen.contains("1 → 2:"), "{screen}");
    assert!(!progress.shown_flips.is_empty(), "{screen}");
    assert!(
        screen.contains("Beamline \\d+"),
        "the diff is shown: {screen}"
    );
    // The older state opens with its verdicts, read only.
    app.keys("j enter").settle();
    let screen = app.screen();
    assert!(app.event_loop.app.shows_state(), "{screen}");
    assert!(screen.contains("STATE 1"), "{screen}");
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("p");
    let notice = last_notice(&app);
    assert!(notice.contains("an opened state is read only"), "{notice}");
    // The figures of any state are one key away.
    app.keys("I").settle();
    let screen = app.screen();
    assert!(screen.contains("good enough in state 1?"), "{screen}");
    assert!(!screen.contains("computing the figures"), "{screen}");
    assert!(screen.contains("what the words mean"), "{screen}");
    app.keys("esc");
    app.keys("esc").settle();
    assert!(app.event_loop.app.shows_progress());
    // A run of the revision plays.
    app.keys("v").settle_until(|app| app.replay.is_some());
    assert!(app.screen().contains("REPLAY"));
}

#[test]
fn rubrics_of_a_revision_are_restored_after_a_question_and_undone() {
    let mut app = judged(120, 40);
    let (broken, fixed) = rubric(&app);
    app.save("rubrics/beamline.yaml", &fixed).settle();
    app.keys("R").settle();
    app.keys("H").settle();
    app.keys("j t").settle();
    let screen = app.screen();
    assert!(
        screen.contains("restore the rubrics of state 1?"),
        "{screen}"
    );
    assert!(screen.contains("writes rubrics/beamline.yaml"), "{screen}");
    let read = |app: &TestWorkbench| {
        std::fs::read_to_string(app.root.join("rubrics/beamline.yaml")).expect("it is there")
    };
    app.keys("n").settle();
    assert_eq!(read(&app), fixed);
    app.keys("t").settle();
    app.keys("y").settle();
    assert_eq!(read(&app), broken);
    // The new row names the revision that it restores.
    app.settle_for(|model| model.saves.number == 2);
    app.pass(Millis(1000)).settle();
    // The line of the selected row has the whole text.
    app.keys("g").settle();
    assert!(app.screen().contains("as state 1"), "{}", app.screen());
    app.keys("U").settle();
    assert_eq!(read(&app), fixed);
}

const RUBRIC: &str = "# Ours.\nevals:\n  - id: grounded   # strict\n    type: llm_judge\n    params:\n      criteria: It is true.\n      # since May\n      min_score: 0.75 # was 0.5\n";

#[test]
fn enter_writes_the_threshold_at_its_place_and_undo_restores_it() {
    let mut app = workbench(
        120,
        40,
        &[
            (
                "dicta.yaml",
                "transcripts: [t.jsonl]\nrubrics: [rubrics/*.yaml]\njudge: rules\n",
            ),
            ("t.jsonl", ""),
            ("rubrics/support.yaml", RUBRIC),
        ],
    );
    app.settle();
    label(&mut app, "grounded", SCORES.len(), &transcript);
    app.keys("H").settle();
    let number = app.event_loop.app.progress.number;
    let view = made_history(&[0.5, 0.75], "grounded", &transcript);
    app.send_msg(Msg::HistoryRead {
        number,
        view: Ok(view.into()),
    });
    app.settle();
    let file = app.root.join("rubrics/support.yaml");
    let read = || std::fs::read_to_string(&file).expect("it is there");
    app.keys(". h h left enter").settle();
    assert_eq!(read(), RUBRIC.replace("0.75", "0.64"));
    assert!(
        last_notice(&app).contains("U undoes it"),
        "{}",
        last_notice(&app)
    );
    app.keys("U").settle();
    assert_eq!(read(), RUBRIC);
    // A value that is not a plain number stays, and the notice says why.
    let quoted = RUBRIC.replace("0.75", "'0.75'");
    std::fs::write(&file, &quoted).expect("written");
    app.keys("h enter").settle();
    assert_eq!(read(), quoted);
    let notices = format!("{:?}", app.event_loop.app.notices.log);
    assert!(notices.contains("is not a plain number"), "{notices}");
}

#[test]
fn star_sets_the_baseline_and_removes_it_from_its_row() {
    let mut app = judged(120, 40);
    app.keys("H").settle();
    app.keys("*").settle();
    assert_eq!(app.event_loop.app.progress.view.baseline, Some(1));
    assert!(app.screen().contains("1★"), "{}", app.screen());
    app.keys("*").settle();
    assert_eq!(app.event_loop.app.progress.view.baseline, None);
    assert_eq!(
        last_notice(&app),
        "the baseline is removed: * on a state sets one"
    );
    assert!(!app.screen().contains("1★"), "{}", app.screen());
    // It is gone from the file, too.
    app.keys("H").settle().keys("H").settle();
    assert_eq!(app.event_loop.app.progress.view.baseline, None);
}

#[test]
fn export_key_writes_the_selected_state_and_reports_a_failure() {
    let mut app = TestWorkbench::demo(120, 40);
    app.settle().keys("R").settle().keys("H").settle();
    app.keys("x").settle();
    assert!(app.screen().contains("state-1.html"), "{}", app.screen());
    app.keys("enter").settle();
    let page = app.root.join("state-1.html");
    assert_eq!(
        std::fs::read_to_string(&page).expect("a page"),
        "state 1",
        "the exporter of the tests writes this text"
    );
    let notice = last_notice(&app).to_owned();
    assert!(notice.ends_with("state-1.html has state 1"), "{notice}");
    app.keys("x ctrl-u").settle();
    app.keys("enter").settle();
    assert!(
        last_notice(&app).starts_with("type the file"),
        "{}",
        last_notice(&app)
    );
    app.type_in("none/state.csv").keys("enter").settle();
    let notice = last_notice(&app).to_owned();
    assert!(notice.starts_with("nothing was exported: "), "{notice}");
    // The line is still open, so the next keys correct the name.
    app.keys("ctrl-u").type_in("l.htmlx").keys("enter").settle();
    assert!(last_notice(&app).starts_with("type the file"));
    app.keys("backspace enter").settle();
    assert!(app.root.join("l.html").exists());
    assert!(app.event_loop.app.overlays.is_empty());
}
