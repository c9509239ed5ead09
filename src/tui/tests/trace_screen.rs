//! The trace screen, driven by keys: the list of steps, their details, the claims of the verdict, two traces side by
//! side, and repeats of one cell.

use std::sync::Arc;

use super::keys::{TONE, asking};
use super::look::rows;
use super::looks::same;
use super::server::{Server, ServerReply};
use super::{go_to, judged, last_notice, point, rubric};
use crate::event::{RunHeader, StepPart};
use crate::judge::BranchChange;
use crate::model::Millis;
use crate::run::BranchOrder;
use crate::tui::effect::Effect;
use crate::tui::msg::{MouseAction, MouseInput, Msg};
use crate::tui::state::OpenedItem;
use crate::tui::state::cells::RowSlotState;
use crate::tui::state::judge_trace::{StepSelection, find_shown_call, find_shown_turn};
use crate::tui::state::pane::Pane;
use crate::tui::state::shown_cell::resolve_shown_cell;
use crate::tui::state::step_list::{StepList, find_step_of_claim};
use crate::tui::testing::TestWorkbench;
use crate::tui::update::update;

const CELL: &str = "beam-release/beamline/newest";

/// Returns the rows of the screen without the times of the steps: on a busy machine the clock advances.
fn steady(app: &TestWorkbench) -> String {
    let time = regex::Regex::new(r" *\b[\d.]+ m?s ┃").expect("a pattern");
    let zero = |found: &regex::Captures<'_>| {
        let width = found[0].chars().count();
        format!("{:>width$}", "0 ms ┃")
    };
    // The marker of the prompt differs between installations.
    let marker = regex::Regex::new(r"this message: [0-9a-f]{16}").expect("a pattern");
    let shown = rows(app);
    let shown = time.replace_all(&shown, zero);
    let shown = marker.replace_all(&shown, "this message: 0000000000000000");
    shown.into_owned()
}

/// Opens the trace screen of a judged cell of the demo.
fn opened(width: u16, height: u16) -> TestWorkbench {
    let mut app = judged(width, height);
    go_to(&mut app, CELL);
    app.keys("1 enter").settle();
    assert!(app.event_loop.app.shows_trace_screen());
    app
}

fn step_ids(app: &TestWorkbench) -> Vec<String> {
    let app = &app.event_loop.app;
    let shown = resolve_shown_cell(app).expect("a cell");
    let list = StepList::new(&app.session().trace_screen, &shown);
    list.steps.iter().map(|step| step.id.to_string()).collect()
}

fn selected_step(app: &TestWorkbench) -> String {
    let app = &app.event_loop.app;
    let shown = resolve_shown_cell(app).expect("a cell");
    let screen = &app.session().trace_screen;
    let list = StepList::new(screen, &shown);
    let at = screen.find_selected(&list.steps).expect("a step");
    list.steps[at].id.to_string()
}

#[test]
fn trace_screen_shows_the_whole_story_in_one_list() {
    let mut app = opened(120, 40);
    same("trace_screen_120x40", &steady(&app));
    let ids = step_ids(&app);
    assert_eq!(ids.first().map(String::as_str), Some("1.prompt"));
    assert!(ids.iter().any(|id| id == "1.call.1"), "{ids:?}");
    assert!(
        ids.last().is_some_and(|id| id.ends_with(".verdict")),
        "{ids:?}"
    );
    app.keys("g").settle();
    assert_eq!(selected_step(&app), "1.prompt");
    same("trace_screen_prompt_120x40", &steady(&app));
    app.keys("z z").settle();
    same("trace_screen_frame_120x40", &steady(&app));
    app.resize(80, 24).settle();
    same("trace_screen_80x24", &steady(&app));
    app.resize(200, 60).settle();
    same("trace_screen_200x60", &steady(&app));
    app.resize(40, 12).settle();
    same("trace_screen_40x12", &steady(&app));
}

#[test]
fn tool_response_shows_next_to_the_list() {
    let mut app = opened(120, 40);
    app.keys("g j j").settle();
    while !selected_step(&app).contains("response") {
        app.keys("j").settle();
    }
    same("trace_screen_response_120x40", &steady(&app));
    app.keys("x").settle();
    assert!(app.screen().contains("raw"), "{}", app.screen());
}

#[test]
fn leaving_the_trace_screen_keeps_its_turn_in_the_panes() {
    let mut app = opened(120, 40);
    app.keys("g j").settle();
    app.keys("esc").settle();
    let state = &app.event_loop.app;
    assert!(!state.shows_trace_screen());
    assert_eq!(state.ui.focus, Pane::Cells);
    let shown = resolve_shown_cell(state).expect("a cell");
    assert_eq!(
        find_shown_turn(&state.session().trace_panes, shown.turns()),
        Some(0)
    );
}

#[test]
fn fold_key_hides_and_shows_the_text_of_a_step() {
    let mut app = opened(120, 40);
    app.keys("g j").settle();
    let before = app.screen();
    app.keys("enter").settle();
    let toggled = app.screen();
    assert_ne!(before, toggled);
    app.keys("enter").settle();
    assert_eq!(app.screen(), before);
}

#[test]
fn click_selects_the_step_in_its_row() {
    let mut app = opened(120, 40);
    app.keys("g").settle();
    let click = |app: &mut TestWorkbench, text: &str| {
        let screen = app.screen();
        let row = screen.lines().position(|line| line.contains(text));
        let row = u16::try_from(row.expect(text)).expect("few rows");
        app.send_msg(Msg::Mouse(MouseInput {
            action: MouseAction::Pressed,
            column: 10,
            row,
        }));
        app.settle();
    };
    click(&mut app, "■ verdict");
    assert!(selected_step(&app).ends_with(".verdict"));
    click(&mut app, "▸ ① prompt");
    assert_eq!(selected_step(&app), "1.prompt");
    // A claim is selected, and its place is shown.
    let claim = app
        .event_loop
        .app
        .session()
        .trace_screen
        .claims
        .claims
        .len();
    assert!(claim > 0);
    app.keys("G").settle();
    let screen = app.screen();
    let heading = screen
        .lines()
        .position(|line| line.contains("rests on   c next"));
    let row = u16::try_from(heading.expect("claims") + 1).expect("few rows");
    app.send_msg(Msg::Mouse(MouseInput {
        action: MouseAction::Pressed,
        column: 10,
        row,
    }));
    let screen = &app.event_loop.app.session().trace_screen;
    assert_eq!(screen.selected_claim, Some(0));
}

#[test]
fn citation_key_goes_from_claim_to_place() {
    let mut app = opened(120, 40);
    let claims = app
        .event_loop
        .app
        .session()
        .trace_screen
        .claims
        .claims
        .clone();
    assert!(!claims.is_empty());
    for claim in &claims {
        app.keys("c").settle();
        let screen = &app.event_loop.app.session().trace_screen;
        let at = screen.selected_claim.expect("a claim");
        assert_eq!(screen.claims.claims[at].text, claim.text);
        match claim.places.first() {
            Some(place) if find_step_of_claim(place).is_some() => {
                assert_eq!(screen.selected, find_step_of_claim(place));
            }
            Some(_) | None => {}
        }
    }
}

#[test]
fn comma_never_goes_forward_on_the_home_screen() {
    let mut app = judged(120, 40);
    go_to(&mut app, CELL);
    let mut last = (usize::MAX, usize::MAX);
    loop {
        let state = &app.event_loop.app;
        let trace = &state.session().trace_panes;
        let shown = resolve_shown_cell(state).expect("a cell");
        let turn = find_shown_turn(trace, shown.turns()).expect("a turn");
        let call = find_shown_call(trace, shown.turns()).map_or(turn, |call| call.turn);
        assert!(
            turn <= last.0 && call <= last.1,
            "{turn} {call} after {last:?}"
        );
        last = (turn, call);
        if trace.step == StepSelection::Position(0) {
            break;
        }
        app.keys(",").settle();
    }
}

#[test]
fn repeats_show_their_spread_and_compare_side_by_side() {
    let mut app = opened(120, 40);
    let before = format!("{:?}", app.event_loop.app.live_session.cells.total);
    app.keys("*").settle();
    app.keys("enter").settle();
    let state = &app.event_loop.app;
    let row = state.session().trace_panes.row.expect("a row");
    let row = state.session().cells.row(row).expect("a row");
    assert_eq!(row.second_opinions.len(), 5, "{}", last_notice(&app));
    assert_eq!(format!("{:?}", state.live_session.cells.total), before);
    assert!(state.notices.contains("judging 1 cell 5 times, free"));
    assert!(app.screen().contains("5 repeats: "), "{}", app.screen());
    app.keys("d").settle();
    same("trace_screen_pair_120x40", &steady(&app));
    assert!(app.screen().contains("no step differs"), "{}", app.screen());
    app.keys("esc").settle();
    assert!(app.event_loop.app.shows_trace_screen());
    assert_eq!(app.event_loop.app.session().trace_screen.other_slot, None);
}

#[test]
fn trace_is_compared_with_the_one_before_the_edit() {
    let server = Server::new(|n| ServerReply::verdict(n > 0, &format!("answer {n}")));
    let mut app = asking(&server, "", 120, 40);
    point(&mut app, "t/r/tone");
    app.keys("R").settle();
    app.keys("1 enter").settle();
    app.keys("d");
    let other = |app: &TestWorkbench| app.event_loop.app.session().trace_screen.other_slot;
    assert_eq!(other(&app), None, "nothing was edited yet");
    app.keys("esc");
    app.save("r.yaml", &TONE.replace("kind", "kind and calm"))
        .settle();
    app.keys("1 enter d").settle();
    assert!(other(&app).is_some(), "{}", app.screen());
    let screen = app.screen();
    assert!(screen.contains("before the edit wire ✗"), "{screen}");
    assert!(screen.contains("first difference"), "{screen}");
    assert!(
        screen.contains("answer 0") && screen.contains("answer 1"),
        "{screen}"
    );
    // Judging again without an edit keeps that pair.
    app.keys("esc esc r").settle();
    app.keys("1 enter d").settle();
    assert!(app.screen().contains("before the edit"), "{}", app.screen());
    // The next session has the pair from the history.
    let mut next = app.reopen();
    point(&mut next, "t/r/tone");
    next.keys("1 enter d").settle();
    let screen = next.screen();
    assert!(screen.contains("before the edit wire ✗"), "{screen}");
    assert!(screen.contains("answer 0"), "{screen}");
}

/// Selects the last step of a tool call with an answer.
fn select_response(app: &mut TestWorkbench) -> String {
    app.keys("g").settle();
    let ids = step_ids(app);
    let at = ids.iter().rposition(|id| id.contains(".response."));
    for _ in 0..at.expect("a tool response") {
        app.keys("j").settle();
    }
    selected_step(app)
}

/// Returns the branch that `b` orders. Nothing runs.
fn ordered_branch(app: &mut TestWorkbench) -> BranchOrder {
    let key = Msg::Key("b".parse().expect("a key"));
    let effects = update(&mut app.event_loop.app, key);
    let order = effects.into_iter().find_map(|effect| match effect {
        Effect::StartRun(order) | Effect::PreviewRun(order) => order.branch,
        _ => None,
    });
    (*order.expect("an order")).clone()
}

/// Opens the workspace as it is without `replay_tools`.
fn drop_replay_tools(app: &mut TestWorkbench) {
    let state = &mut app.event_loop.app;
    let mut open = (**state.workspace().expect("a workspace")).clone();
    open.replayed_evidence_run = None;
    state.opened = OpenedItem::Workspace(Arc::new(open));
}

#[test]
fn branch_from_a_call_of_the_demo_reads_the_recorded_page_and_keeps_the_verdict() {
    let mut app = opened(120, 40);
    let response = select_response(&mut app);
    app.keys("b").settle();
    let state = &app.event_loop.app;
    assert!(
        state
            .notices
            .contains_beginning("the branch reads the recorded response")
    );
    let row = state.session().trace_panes.row.expect("a row");
    let row = state.session().cells.row(row).expect("a row");
    let decided = row.slots.first().map(|slot| &slot.state);
    let branched = row.second_opinions.first().map(|slot| &slot.state);
    let pick = |state: Option<&RowSlotState>| match state {
        Some(RowSlotState::Done { outcome, .. }) => Some(*outcome),
        _ => None,
    };
    assert!(pick(branched).is_some(), "{}", last_notice(&app));
    assert_eq!(pick(branched), pick(decided));
    let shown = resolve_shown_cell(state).expect("the branch");
    let point = shown.header.and_then(RunHeader::branch_point);
    assert_eq!(point.expect("a branch").step, response);
}

#[test]
fn branch_key_calls_the_selected_tool_again_and_other_steps_unchanged() {
    let mut app = opened(120, 40);
    drop_replay_tools(&mut app);
    let response = select_response(&mut app);
    let order = ordered_branch(&mut app);
    assert_eq!(order.at.to_string(), response);
    assert_eq!(order.change, Some(BranchChange::Refetch));
    app.keys("g").settle();
    let order = ordered_branch(&mut app);
    assert_eq!(
        (order.at.to_string(), order.change),
        ("1.prompt".to_owned(), None)
    );
    // The verdict is not a tool call.
    app.keys("G").settle();
    assert_eq!(ordered_branch(&mut app).change, None);
}

#[test]
fn branch_is_shown_next_to_the_original_and_decides_nothing() {
    let mut app = opened(120, 40);
    let before = format!("{:?}", app.event_loop.app.live_session.cells.total);
    app.keys("g b").settle();
    let state = &app.event_loop.app;
    let row = state.session().trace_panes.row.expect("a row");
    let row = state.session().cells.row(row).expect("a row");
    assert_eq!(row.second_opinions.len(), 1, "{}", last_notice(&app));
    assert_eq!(format!("{:?}", state.live_session.cells.total), before);
    assert!(
        state
            .notices
            .contains("continuing the trace as a branch, free")
    );
    let shown = resolve_shown_cell(state).expect("the branch");
    let point = shown.header.and_then(RunHeader::branch_point);
    assert_eq!(point.expect("a branch").step, "1.prompt");
    // Another branch replaces nothing.
    app.keys("G b").settle();
    let state = &app.event_loop.app;
    let row = state.session().trace_panes.row.expect("a row");
    let row = state.session().cells.row(row).expect("a row");
    assert_eq!(row.second_opinions.len(), 2, "{}", last_notice(&app));
    app.keys("d").settle();
    let screen = app.screen();
    assert!(screen.contains("branch from 2.verdict"), "{screen}");
    assert!(screen.contains("no step differs"), "{screen}");
    assert!(!screen.contains("prompts are not compared"), "{screen}");
}

#[test]
fn branch_of_a_trace_from_before_an_edit_makes_no_verdict_stale() {
    let mut app = judged(120, 40);
    let (_, edited) = rubric(&app);
    app.save("rubrics/beamline.yaml", &edited).settle();
    go_to(&mut app, CELL);
    app.keys("1 enter").settle();
    app.keys("g b").settle();
    let cells = &app.event_loop.app.live_session.cells;
    let row = cells.find_row(&CELL.parse().expect("a name"));
    let row = row.and_then(|row| cells.row(row)).expect("the cell");
    assert_eq!(row.second_opinions.len(), 1, "{}", last_notice(&app));
    // The header of the branch has the eval `names-a-version` from before the edit.
    assert_eq!(cells.total.stale, 0, "{}", app.screen());
}

#[test]
fn summary_of_a_save_leaves_room_for_the_keys_of_the_trace_screen() {
    for (width, height, has_summary) in [(80, 24, false), (120, 40, true)] {
        let mut app = judged(width, height);
        let (_, edited) = rubric(&app);
        app.save("rubrics/beamline.yaml", &edited).settle();
        go_to(&mut app, CELL);
        app.keys("1 enter").settle();
        app.pass(Millis(60_000));
        let row = app.last_row();
        for key in [" w what if ", " c next citation ", " r run ", " esc back "] {
            assert!(row.contains(key), "{width}: {row}");
        }
        assert_eq!(row.contains("3 flips"), has_summary, "{width}: {row}");
    }
}

#[test]
fn footer_of_the_trace_screen_names_the_key_that_goes_back() {
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let mut app = opened(width, height);
        app.pass(Millis(60_000));
        assert!(app.last_row().contains(" esc back "), "{}", app.screen());
    }
}

#[test]
fn search_and_copy_work_on_the_trace_screen() {
    let mut app = opened(120, 40);
    app.keys("tab").settle();
    assert_eq!(app.event_loop.app.ui.focus, Pane::Details);
    app.keys("/").type_in("verdict").keys("enter").settle();
    let screen = &app.event_loop.app.session().trace_screen;
    assert!(screen.details.search.is_some());
}

#[test]
fn trace_screen_stays_open_for_the_next_problem() {
    let mut app = opened(120, 40);
    app.keys("]").settle();
    let state = &app.event_loop.app;
    let judged = state.check_trace().is_ok();
    assert_eq!(state.shows_trace_screen(), judged);
    let shown = resolve_shown_cell(state).expect("a cell");
    let list = StepList::new(&state.session().trace_screen, &shown);
    assert!(
        !judged
            || list
                .steps
                .iter()
                .any(|step| step.id.part == StepPart::Verdict)
    );
}

#[test]
fn question_after_the_verdict_is_answered_recorded_and_changes_nothing() {
    let server = Server::new(|n| match n {
        0 => ServerReply::verdict(false, "It is rude."),
        1 => ServerReply::Text("Because it says go away.".to_owned()),
        _ => ServerReply::Refuse(400, "", "{}".to_owned()),
    });
    let mut app = asking(&server, "", 120, 40);
    point(&mut app, "t/r/tone");
    app.keys("R").settle();
    app.keys("1 enter").settle();
    let before = format!("{:?}", app.event_loop.app.live_session.cells.total);
    app.keys("a").type_in("Which words are rude?").keys("enter");
    assert!(
        app.screen().contains("the judge answers"),
        "{}",
        app.screen()
    );
    app.settle();
    let screen = app.screen();
    assert!(screen.contains("Which words are rude?"), "{screen}");
    assert!(screen.contains("Because it says go away."), "{screen}");
    let state = &app.event_loop.app;
    assert_eq!(format!("{:?}", state.live_session.cells.total), before);
    assert_eq!(state.runs().by_ticket.len(), 1, "a question is not a run");
    assert_eq!(server.asked(), 2);
    // The next visit reads it from the folder of the run.
    app.keys("esc esc");
    let state = &mut app.event_loop.app;
    state.session_mut().trace_screen = state.session().trace_screen.for_another_cell();
    app.keys("1 enter").settle();
    assert!(
        app.screen().contains("Because it says go away."),
        "{}",
        app.screen()
    );
    // A failure is not an answer.
    app.keys("a").type_in("Why?").keys("enter").settle();
    assert!(
        last_notice(&app).contains("the question was not answered"),
        "{}",
        last_notice(&app)
    );
    let follow_ups = &app.event_loop.app.session().trace_screen.follow_ups;
    assert_eq!((follow_ups.list.len(), &follow_ups.asking), (1, &None));
}

#[test]
fn built_in_judge_answers_no_questions() {
    let mut app = opened(120, 40);
    app.keys("a");
    assert!(
        last_notice(&app).contains("built in"),
        "{}",
        last_notice(&app)
    );
    assert!(app.event_loop.app.ui.footer_input.is_none());
}
