//! Breakpoints and paused judge traces, driven by keys against a model server.

use serde_json::json;

use super::keys::asking;
use super::server::{Server, ServerReply};
use super::{last_notice, outcome, point};
use crate::event::{CallState, CellPhase, GatePoint, StoredText};
use crate::judge::PausedAt;
use crate::model::{CellIx, Outcome, RawJson};
use crate::tui::effect::Effect;
use crate::tui::msg::Msg;
use crate::tui::state::App;
use crate::tui::state::pane::Pane;
use crate::tui::state::pauses::EditTarget;
use crate::tui::state::runs::{RunTicket, TrackedRun};
use crate::tui::testing::TestWorkbench;

const CELL: &str = "t/r/tone";
const TOOLS: &str = ", tools: [{ fetch_url: { seen: \"off\" } }]";

/// Starts a server whose model fetches a page and then fails the answer.
fn fetching() -> Server {
    Server::new(|n| {
        if n.is_multiple_of(2) {
            ServerReply::Call("fetch_url", json!({"url": "http://127.0.0.1:9/a"}))
        } else {
            let verdict =
                json!({"citations": [], "reasoning": "rude", "passed": false, "score": 0.0});
            ServerReply::Call("submit_verdict", verdict)
        }
    })
}

/// Returns the stop at which the shown trace waits for a decision.
fn waits_at(app: &App) -> Option<GatePoint> {
    let at = app.shown_pause()?;
    app.find_pause(at).map(|pause| pause.point)
}

/// Opens a workspace whose judge calls this server.
fn opened(server: &Server, width: u16, height: u16) -> TestWorkbench {
    let mut app = asking(server, TOOLS, width, height);
    point(&mut app, CELL);
    app
}

/// Sets the breakpoint, judges the cell, and opens its trace when it is paused.
fn paused(server: &Server, breakpoint: &str, (width, height): (u16, u16)) -> TestWorkbench {
    let mut app = opened(server, width, height);
    app.keys("!").type_in(breakpoint).keys("enter");
    assert_eq!(app.event_loop.app.breakpoints.len(), 1);
    app.keys("r")
        .settle_until(|app| waits_at(app).is_some())
        .keys("enter");
    assert!(app.event_loop.app.shows_paused_trace(), "{}", app.screen());
    app
}

/// Continues until the shown trace waits at another stop.
fn next_stop(app: &mut TestWorkbench, keys: &str) -> GatePoint {
    app.keys(keys);
    assert_eq!(waits_at(&app.event_loop.app), None, "it was released");
    app.settle_until(|app| waits_at(app).is_some());
    waits_at(&app.event_loop.app).expect("it waits")
}

/// Returns the first tool call of the newest run.
fn first_call(app: &TestWorkbench) -> CallState {
    let state = &app.event_loop.app;
    let run = state.runs().by_ticket.values().next_back().expect("a run");
    run.state.cells[0].judge_trace[0].calls[0].clone()
}

fn is_edited(app: &TestWorkbench) -> bool {
    let cells = &app.event_loop.app.live_session.cells;
    let row = cells.find_row(&CELL.parse().expect("a name"));
    let row = row.and_then(|row| cells.row(row)).expect("a row");
    row.slots.iter().any(|slot| slot.by_human)
}

#[test]
fn breakpoints_are_set_and_removed_by_key_and_by_text() {
    let server = fetching();
    let mut app = opened(&server, 80, 24);
    app.keys("!");
    let screen = app.screen();
    assert!(
        screen.contains("[ ] turn") && screen.contains("before each model call"),
        "{screen}"
    );
    // Space keeps the list open.
    app.keys("down space down down space space up up");
    app.type_in("call:fetch_url:9/a").keys("enter");
    let names = |app: &TestWorkbench| -> Vec<String> {
        let points = app.event_loop.app.breakpoints.iter();
        points.map(ToString::to_string).collect()
    };
    assert_eq!(names(&app), ["call", "call:fetch_url:9/a"]);
    app.keys("!");
    let screen = app.screen();
    assert!(screen.contains("[x] call:fetch_url:9/a"), "{screen}");
    // A text that is none stays in the line, with the reason.
    app.type_in("calls").keys("enter");
    assert!(
        last_notice(&app).contains("is not a breakpoint; write turn"),
        "{}",
        last_notice(&app)
    );
    assert!(app.screen().contains("add: calls"), "{}", app.screen());
    app.keys("esc");
    assert!(app.screen().contains("2 breakpoints"), "{}", app.screen());
    // The same text again removes it.
    app.keys("!").type_in("call").keys("enter");
    assert_eq!(names(&app), ["call:fetch_url:9/a"]);
    assert!(
        app.screen().contains("break call:fetch_url:9/a"),
        "{}",
        app.screen()
    );
}

#[test]
fn pause_that_arrives_before_the_plan_of_its_run_names_its_cell() {
    let server = fetching();
    let mut app = opened(&server, 120, 40);
    let ticket = RunTicket(900);
    let runs = &mut app.event_loop.app.live_session.runs;
    runs.by_ticket.insert(ticket, TrackedRun::default());
    app.send_msg(Msg::TracePaused {
        ticket,
        cell: CellIx(0),
        name: format!("{CELL}~wire#2").parse().ok().map(Box::new),
        point: GatePoint::Ended,
        at: Box::new(PausedAt::Ended(Outcome::Pass)),
    });
    let notice = last_notice(&app);
    assert!(notice.starts_with("paused t/r/tone "), "{notice}");
}

#[test]
fn paused_trace_is_visible_in_the_list_and_on_its_screen_at_three_sizes() {
    let server = fetching();
    for size in [(80, 24), (120, 40), (200, 60)] {
        let mut app = paused(&server, "call", size);
        let screen = app.screen();
        assert!(screen.contains("‖ paused before a tool call"), "{screen}");
        assert!(
            screen.contains("S skip") && screen.contains("A all"),
            "{screen}"
        );
        assert!(
            screen.contains("s step  space continue  e edit"),
            "{screen}"
        );
        assert!(screen.contains("‖ 1 paused"), "{screen}");
        app.keys("esc");
        let list = app.screen();
        assert!(list.contains("‖ t"), "{list}");
        assert!(list.contains("paused"), "{list}");
        app.keys("enter A").settle();
        assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
        assert!(!app.screen().contains("paused before"), "{}", app.screen());
        assert!(!is_edited(&app), "continuing is not an edit");
    }
}

#[test]
fn keys_of_a_paused_trace_name_the_way_to_its_screen() {
    let server = fetching();
    let mut app = opened(&server, 120, 40);
    app.keys("!").type_in("call").keys("enter");
    app.keys("r").settle_until(|app| waits_at(app).is_some());
    let notice = last_notice(&app);
    // The pause may arrive before the plan of the run, which shows that its cell is on the screen.
    let ways = [
        "; enter opens the trace, where s and space continue it",
        "; ] goes to paused traces",
    ];
    assert!(ways.iter().any(|way| notice.ends_with(way)), "{notice}");
    app.keys("5 +");
    let hint = "enter opens the trace; s and space continue it there";
    assert!(app.screen().contains(hint), "{}", app.screen());
    app.keys("+ 1 space");
    let notice = last_notice(&app);
    assert!(
        notice.contains("paused trace (enter on a paused cell)"),
        "{notice}"
    );
    app.keys("enter");
    assert!(app.event_loop.app.shows_paused_trace(), "{}", app.screen());
    assert!(!app.screen().contains(hint), "{}", app.screen());
}

#[test]
fn step_goes_from_stop_to_stop_and_continue_to_the_next_breakpoint() {
    let server = fetching();
    let mut app = paused(&server, "turn", (120, 40));
    assert_eq!(waits_at(&app.event_loop.app), Some(GatePoint::BeforeTurn));
    assert_eq!(server.asked(), 0, "the request waits");
    // The request is shown, and its record precedes what a person sees.
    app.settle_until(|app| app.runs().by_ticket[0].state.cells[0].judge_trace.len() == 1);
    let screen = app.screen();
    assert!(!screen.contains("no step yet"), "{screen}");
    assert_eq!(next_stop(&mut app, "s"), GatePoint::Call);
    assert_eq!(next_stop(&mut app, "s"), GatePoint::Answered);
    assert_eq!(server.asked(), 1);
    assert_eq!(next_stop(&mut app, "space"), GatePoint::BeforeTurn);
    app.keys("space").settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
    assert_eq!(server.asked(), 2);
    assert!(!is_edited(&app));
}

#[test]
fn a_key_between_two_steps_runs_no_other_command() {
    let server = fetching();
    let mut app = paused(&server, "turn", (120, 40));
    app.keys("s s e");
    assert!(app.event_loop.app.ui.footer_input.is_none());
    assert!(
        app.terminal_effects.is_empty(),
        "{:?}",
        app.terminal_effects
    );
    assert!(last_notice(&app).contains("goes on to its next stop"));
    app.settle_until(|app| waits_at(app).is_some());
    app.keys("A").settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
}

#[test]
fn skipped_call_is_answered_with_an_error_and_marks_the_verdict() {
    let server = fetching();
    let mut app = paused(&server, "call:fetch_url", (120, 40));
    app.keys("S").settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
    assert!(is_edited(&app));
    assert!(app.screen().contains("edited by hand"), "{}", app.screen());
    app.keys("esc");
    assert!(app.screen().contains("✎"), "{}", app.screen());
    // Such a verdict is not a baseline for flips.
    let cells = &app.event_loop.app.live_session.cells;
    let row = cells
        .find_row(&CELL.parse().expect("a name"))
        .expect("a row");
    assert!(cells.row(row).expect("a row").verdict.is_none());
}

#[test]
fn arguments_are_edited_in_the_footer_and_checked_first() {
    let server = fetching();
    let mut app = paused(&server, "call", (120, 40));
    app.keys("e");
    let typed = |app: &mut TestWorkbench| {
        let line = app.event_loop.app.ui.footer_input.as_mut();
        line.map(|line| line.input_mut().text.clone())
    };
    assert_eq!(
        typed(&mut app).as_deref(),
        Some("{\"url\":\"http://127.0.0.1:9/a\"}")
    );
    // The end of the object is missing.
    app.keys("backspace enter");
    assert!(typed(&mut app).is_some(), "the line stays open");
    assert!(
        app.screen().contains("the edited text is not JSON"),
        "{}",
        app.screen()
    );
    assert_eq!(waits_at(&app.event_loop.app), Some(GatePoint::Call));
    // The name of the parameter is wrong.
    app.keys("ctrl-u")
        .type_in("{\"link\":\"http://127.0.0.1:9/a\"}")
        .keys("enter");
    assert!(
        app.screen().contains("does not accept the edited"),
        "{}",
        app.screen()
    );
    app.keys("ctrl-u")
        .type_in("{\"url\":\"http://127.0.0.1:9/a");
    app.keys("backspace")
        .type_in("abc\"}")
        .keys("enter")
        .settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
    assert!(is_edited(&app));
    let arguments = first_call(&app).canonical.expect("arguments");
    assert!(arguments.get().contains("127.0.0.1:9/abc"), "{arguments:?}");
}

#[test]
fn unchanged_edit_keeps_the_trace_paused() {
    let server = fetching();
    let mut app = paused(&server, "call", (120, 40));
    app.keys("e enter");
    assert!(last_notice(&app).contains("nothing was changed"));
    assert_eq!(waits_at(&app.event_loop.app), Some(GatePoint::Call));
    app.keys("space").settle();
    assert!(!is_edited(&app));
}

#[test]
fn verdict_is_edited_in_the_editor_and_an_unusable_text_is_kept() {
    let server = fetching();
    let mut app = paused(&server, "verdict:fail", (120, 40));
    app.keys("e");
    let opened = |app: &mut TestWorkbench| {
        let effect = app.terminal_effects.pop();
        match effect {
            Some(Effect::EditText { target, text }) => (target, text),
            other => panic!("{other:?}"),
        }
    };
    let (target, text) = opened(&mut app);
    assert!(text.contains("rude"), "{text}");
    let broken = text.replace("\"rude\"", "rude");
    app.send_msg(Msg::TextEdited {
        target: Box::new(target.clone()),
        edited: Ok(Some(broken.clone())),
    });
    assert!(
        last_notice(&app).contains("the edited text is not a verdict"),
        "{}",
        last_notice(&app)
    );
    assert_eq!(waits_at(&app.event_loop.app), Some(GatePoint::Verdict));
    // The next edit opens the text of the last one.
    app.keys("e");
    assert_eq!(opened(&mut app).1, broken);
    let passed = text
        .replace("\"passed\": false", "\"passed\": true")
        .replace("\"score\": 0.0", "\"score\": 1.0");
    app.send_msg(Msg::TextEdited {
        target: Box::new(target),
        edited: Ok(Some(passed)),
    })
    .settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Pass));
    assert!(is_edited(&app));
    let state = &app.event_loop.app;
    let run = state.runs().by_ticket.values().next_back().expect("a run");
    let cell = &run.state.cells[0];
    assert!(cell.by_human && cell.phase == CellPhase::Done);
}

#[test]
fn tool_response_and_request_can_be_edited() {
    let server = fetching();
    let mut app = paused(&server, "answer", (120, 40));
    let at = app.event_loop.app.shown_pause().expect("a pause");
    let state = &app.event_loop.app;
    let pause = state.find_pause(at).expect("it waits");
    assert!(matches!(pause.at, PausedAt::Answered(_)), "{:?}", pause.at);
    app.send_msg(Msg::TextEdited {
        target: Box::new(EditTarget::Pause(at)),
        edited: Ok(Some("the page says: be kind".to_owned())),
    });
    app.settle();
    assert!(is_edited(&app));
    let response = first_call(&app).finished.expect("a response").response;
    let written = StoredText::Text("the page says: be kind".to_owned());
    assert_eq!(response.text, written);
    // A request opens as its texts, and the headings between them must stay.
    let server = fetching();
    let mut app = paused(&server, "turn", (120, 40));
    let at = app.event_loop.app.shown_pause().expect("a pause");
    app.send_msg(Msg::TextEdited {
        target: Box::new(EditTarget::Pause(at)),
        edited: Ok(Some("[]".to_owned())),
    });
    assert!(
        last_notice(&app).contains("is missing: keep the headings"),
        "{}",
        last_notice(&app)
    );
    assert_eq!(server.asked(), 0);
    app.keys("A").settle();
}

#[test]
fn problem_key_goes_to_the_paused_trace_first() {
    let server = fetching();
    let mut app = paused(&server, "call", (120, 40));
    app.keys("esc g");
    let before = app.event_loop.app.session().cells.selected_row();
    app.keys("]");
    let state = &app.event_loop.app;
    assert!(state.session().cells.selected_row().is_some());
    assert!(state.shown_pause().is_some(), "{before:?} {}", app.screen());
    app.keys("enter space").settle();
    assert_eq!(app.event_loop.app.ui.focus, Pane::Steps);
}

#[test]
fn cancelled_run_leaves_no_pause() {
    let server = fetching();
    let mut app = paused(&server, "call", (120, 40));
    app.keys("ctrl-c").settle();
    let state = &app.event_loop.app;
    assert!(state.list_paused().is_empty() && state.shown_pause().is_none());
    let runs = state.runs().by_ticket.values();
    assert!(runs.into_iter().all(|run| run.pauses.is_empty()));
}

#[test]
fn selected_call_offers_its_own_breakpoint_first() {
    let server = fetching();
    let mut app = opened(&server, 120, 40);
    app.keys("r").settle();
    app.keys("enter g j");
    app.settle();
    let found = |app: &App| app.list_breakpoints()[0].breakpoint.to_string();
    while found(&app.event_loop.app) != "call:fetch_url" {
        let before = app.event_loop.app.session().trace_screen.selected;
        app.keys("j");
        assert_ne!(app.event_loop.app.session().trace_screen.selected, before);
    }
    app.keys("! enter");
    assert_eq!(app.event_loop.app.breakpoints.len(), 1);
    assert_eq!(
        app.event_loop.app.breakpoints[0].to_string(),
        "call:fetch_url"
    );
}

#[test]
fn what_if_key_branches_with_edited_arguments_in_three_keys() {
    // Only the first request fetches, so that the edited call is the last call of the branch.
    let server = Server::new(|n| {
        if n == 0 {
            ServerReply::Call("fetch_url", json!({"url": "http://127.0.0.1:9/a"}))
        } else {
            let verdict =
                json!({"citations": [], "reasoning": "rude", "passed": false, "score": 0.0});
            ServerReply::Call("submit_verdict", verdict)
        }
    });
    let mut app = opened(&server, 120, 40);
    app.keys("r").settle();
    app.keys("enter").settle();
    app.keys("g j w");
    let line = app.event_loop.app.ui.footer_input.as_mut();
    let line = line.map(|line| line.input_mut().text.clone());
    assert_eq!(
        line.as_deref(),
        Some("{\"url\":\"http://127.0.0.1:9/a\"}"),
        "{}",
        app.screen()
    );
    // Arguments are an object.
    app.keys("backspace enter");
    assert!(app.screen().contains("are not JSON"), "{}", app.screen());
    app.keys("backspace").type_in("b\"}").keys("enter").settle();
    let state = &app.event_loop.app;
    let cells = &state.live_session.cells;
    let row = cells.find_row(&CELL.parse().expect("a name"));
    let row = row.and_then(|row| cells.row(row)).expect("a row");
    assert_eq!(row.second_opinions.len(), 1, "{}", last_notice(&app));
    assert!(
        row.second_opinions[0].by_human,
        "a changed branch is marked"
    );
    let call = first_call(&app);
    let used = call
        .canonical
        .as_ref()
        .map_or(call.raw.as_str(), RawJson::get);
    assert!(used.contains("127.0.0.1:9/ab"), "{call:?}");
    // On the verdict, the keys edit the last call and its response.
    app.keys("G W");
    let line = app.event_loop.app.ui.footer_input.as_mut();
    let line = line.map(|line| line.input_mut().text.clone());
    assert!(
        line.as_deref() == Some("{\"url\":\"http://127.0.0.1:9/ab\"}"),
        "{}",
        app.screen()
    );
    app.keys("esc");
    let key = Msg::Key("w".parse().expect("a key"));
    let effects = crate::tui::update::update(&mut app.event_loop.app, key);
    let opened = effects
        .iter()
        .any(|effect| matches!(effect, Effect::EditText { text, .. } if text.contains("Error")));
    let is_short = app.event_loop.app.ui.footer_input.is_some();
    assert!(opened || is_short, "{effects:?} {}", last_notice(&app));
}

#[test]
fn verdicts_are_not_hidden_while_a_trace_is_paused() {
    let server = fetching();
    let mut app = paused(&server, "call", (120, 40));
    app.keys("esc B");
    assert!(!app.event_loop.app.live_session.cells.blind);
    assert!(
        last_notice(&app).contains("a trace is paused"),
        "{}",
        last_notice(&app)
    );
    app.keys("enter A").settle();
    app.keys("esc !").type_in("call").keys("enter B !");
    assert!(app.event_loop.app.live_session.cells.blind);
    assert!(
        last_notice(&app).contains("would show the hidden verdicts"),
        "{}",
        last_notice(&app)
    );
}
