//! The eight wishes of a user who debugs a judge trace, and the page that did not load. Each takes at most three keys from
//! the verdict on the trace screen, without typed text.

use serde_json::json;

use super::server::{Server, ServerReply};
use super::{last_notice, outcome, point, workbench};
use crate::event::{GatePoint, RunHeader};
use crate::model::Outcome;
use crate::tui::msg::Msg;
use crate::tui::state::App;
use crate::tui::state::cells::CellsRow;
use crate::tui::state::overlay::AvailableJudge;
use crate::tui::testing::TestWorkbench;

const CELL: &str = "t/r/tone";
/// `E` adds an example to this layout; a rubric on one line has no place for it.
const RUBRIC: &str = "evals:\n  - id: tone\n    type: llm_judge\n    params: { criteria: kind }\n";
/// The address of the tool calls: nothing listens there.
const PAGE: &str = "http://127.0.0.1:9/a";

/// The keys of one wish.
struct Wish<'a> {
    app: &'a mut TestWorkbench,
    keys: usize,
}

impl<'a> Wish<'a> {
    fn new(app: &'a mut TestWorkbench) -> Self {
        Self { app, keys: 0 }
    }

    /// Presses keys and counts them.
    fn press(&mut self, keys: &str) -> &mut Self {
        self.keys += keys.split_whitespace().count();
        assert!(self.keys <= 3, "{} keys, the last ones: {keys}", self.keys);
        self.app.keys(keys);
        self
    }

    /// Presses keys, counts them, and waits until nothing is left to do.
    fn finish(&mut self, keys: &str) -> String {
        self.press(keys);
        self.app.settle();
        self.app.screen()
    }
}

/// Returns a reply with a verdict as a tool call.
fn submit(passed: bool) -> ServerReply {
    let verdict = json!({"citations": [], "reasoning": "so it is", "passed": passed,
        "score": f64::from(u8::from(passed))});
    ServerReply::Call("submit_verdict", verdict)
}

/// Opens the trace of a cell whose judge fetched a page that did not load. The n-th request fetches if `fetches(n)`.
fn opened(fetches: impl Fn(usize) -> bool + Send + Sync + 'static) -> TestWorkbench {
    let server = Server::new(move |n| match n {
        10 => ServerReply::Text("Because of the second sentence.".to_owned()),
        _ if fetches(n) => ServerReply::Call("fetch_url", json!({ "url": PAGE })),
        _ => submit(false),
    });
    let tools = ", tools: [{ fetch_url: { seen: \"off\" } }]";
    let dicta = format!(
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\njudge: wire\njudges:\n  wire: {}\n  second: {}\n",
        server.judge(tools),
        server.judge(tools)
    );
    let arguments = json!({ "url": PAGE }).to_string();
    let transcript = json!({"id": "t", "messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "fetch_url", "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "{\"total\": 195.25}"},
        {"role": "assistant", "content": "go away"},
    ]});
    let mut app = workbench(
        120,
        40,
        &[
            ("dicta.yaml", &dicta),
            ("t.jsonl", &format!("{transcript}\n")),
            ("r.yaml", RUBRIC),
        ],
    );
    app.settle();
    point(&mut app, CELL);
    app.keys("r").settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
    app.keys("1 enter").settle();
    app
}

fn row(app: &TestWorkbench) -> &CellsRow {
    let cells = &app.event_loop.app.live_session.cells;
    let row = cells.find_row(&CELL.parse().expect("a name"));
    row.and_then(|row| cells.row(row)).expect("a row")
}

/// Returns the header of the newest run.
fn newest_header(app: &App) -> Option<&RunHeader> {
    let run = app.runs().by_ticket.values().next_back()?;
    run.state.header.as_deref()
}

fn waits_at(app: &App) -> Option<GatePoint> {
    let pause = app.find_pause(app.shown_pause()?)?;
    Some(pause.point)
}

#[test]
fn each_wish_of_the_walkthrough_takes_at_most_three_keys() {
    // Requests 0 and 1 judge, 2 is the branch, 3 and 4 the second judge, 5 to 9 the repeats, 10 the question.
    let mut app = opened(|n| matches!(n, 0 | 3 | 11));

    // 1: change the tool's response, and let the judge go on.
    Wish::new(&mut app).press("w");
    app.keys("ctrl-u").type_in("{\"total\": 190.25}");
    let screen = Wish::new(&mut app).finish("enter");
    assert!(row(&app).second_opinions[0].by_human, "{screen}");
    // The line is wrapped in the pane.
    for part in [
        "branch from 1.response.1, answer ",
        "changed, edited by hand: doesn't count",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }

    // 4: compare the evidence of the judge with what the agent saw. The verdict shows it, two keys show the fields.
    assert!(
        screen.contains("≠ total 190.25  fetch 1, but the agent got 195.25 in"),
        "{screen}"
    );
    let screen = Wish::new(&mut app).finish(", k");
    assert!(screen.contains("1 field with other values"), "{screen}");

    // 2: two judges next to each other.
    let mut wish = Wish::new(&mut app);
    wish.finish("J");
    wish.finish("enter");
    let screen = wish.finish("d");
    assert!(screen.contains("second, second opinion ✗"), "{screen}");
    assert!(
        app.event_loop
            .app
            .session()
            .trace_screen
            .other_slot
            .is_some()
    );
    app.keys("esc");

    // 3: is the verdict stable?
    let screen = Wish::new(&mut app).finish("* enter");
    assert!(screen.contains("5 repeats: 0 pass, 5 fail"), "{screen}");

    // 5: a question after the verdict.
    Wish::new(&mut app).press("a");
    app.type_in("Which sentence?");
    let screen = Wish::new(&mut app).finish("enter");
    assert!(
        screen.contains("Because of the second sentence."),
        "{screen}"
    );

    // 6: stop before a tool call of this judge.
    app.event_loop.app.live_session.trace_panes.slot = 0;
    app.send_msg(crate::tui::msg::Msg::TimePassed).settle();
    Wish::new(&mut app).press("! enter r");
    app.settle_until(|app| waits_at(app).is_some());
    assert_eq!(waits_at(&app.event_loop.app), Some(GatePoint::Call));
    app.keys("A").settle();

    // 8: filter by cause.
    app.keys("esc esc");
    Wish::new(&mut app).press("/");
    app.type_in("is:fetch-error");
    let screen = Wish::new(&mut app).finish("enter");
    assert!(screen.contains("/is:fetch-error"), "{screen}");
    let shown = app.event_loop.app.session().cells.filtered_rows();
    assert_eq!(shown.map(|rows| rows.len()), Some(1), "{screen}");

    // 7: keep the message as an example.
    point(&mut app, CELL);
    Wish::new(&mut app).finish("f E");
    let rubric = std::fs::read_to_string(app.root.join("r.yaml")).expect("a rubric");
    assert!(
        rubric.contains("expect: fail"),
        "{rubric} {}",
        last_notice(&app)
    );
}

#[test]
fn page_that_did_not_load_is_fetched_again_in_three_keys() {
    let mut app = opened(|n| n == 0);
    assert!(app.screen().contains("✗ error"), "{}", app.screen());
    app.keys("esc");
    // From the list of cells: open the trace, branch at the fetch that failed. It is fetched again and continued.
    let screen = Wish::new(&mut app).finish("enter b");
    let state = &app.event_loop.app;
    let header = newest_header(state).expect("a branch");
    let point = header.branch_point().expect("a branch");
    assert_eq!(
        (point.step.as_str(), point.set.as_deref()),
        ("1.response.1", Some("refetch"))
    );
    assert_eq!(row(&app).second_opinions.len(), 1, "{}", last_notice(&app));
    // The branch is below its origin, with what it did. The line is wrapped in the pane.
    for part in ["branch from 1.response.1, fetched ", "again: doesn't count"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    // A branch of the branch is one level deeper.
    let screen = Wish::new(&mut app).finish("b");
    assert!(indent(&screen, "#2") > indent(&screen, "#1"), "{screen}");
    assert!(indent(&screen, "#3") > indent(&screen, "#2"), "{screen}");
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
}

/// Returns the words of the pane at the right, without line breaks.
fn details(screen: &str) -> String {
    let lines = screen.lines().filter_map(|line| line.rsplit('│').nth(1));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

/// Returns the column of a cell in the verdict's list of cells.
fn indent(screen: &str, number: &str) -> usize {
    let line = screen
        .lines()
        .find(|line| line.contains(&format!("{number} wire ✗")));
    let line = line.unwrap_or_else(|| panic!("{number}\n{screen}"));
    // A column, because the lines have marks of several bytes.
    let before = line.split(number).next().unwrap_or_default();
    before.chars().count()
}

#[test]
fn family_of_a_cell_is_shown_after_a_restart() {
    let mut app = opened(|n| n == 0);
    // A branch, a branch of it, and a second opinion.
    app.keys("b").settle();
    app.keys("b").settle();
    app.keys("J").settle();
    app.keys("enter").settle();
    let before = row(&app).second_opinions.clone();
    assert_eq!(before.len(), 3, "{}", last_notice(&app));

    let mut next = app.reopen();
    point(&mut next, CELL);
    next.keys("1 enter").settle();
    let screen = next.screen();
    assert!(indent(&screen, "#2") > indent(&screen, "#1"), "{screen}");
    assert!(indent(&screen, "#3") > indent(&screen, "#2"), "{screen}");
    assert_eq!(outcome(&next, CELL), Some(Outcome::Fail), "{screen}");
    let restored = &row(&next).second_opinions;
    let facts = |slots: &[crate::tui::state::cells::RowSlot]| -> Vec<String> {
        let facts = slots.iter().map(|slot| {
            format!(
                "{:?} {:?} {:?} {}",
                slot.branch, slot.state, slot.repeat, slot.by_human
            )
        });
        facts.collect()
    };
    assert_eq!(facts(restored), facts(&before));
    // Parent and branch, side by side.
    next.keys("d").settle();
    let screen = next.screen();
    assert!(screen.contains(", branch from 1.response.1"), "{screen}");
    // The replay of a branch shows the trace that it continues.
    next.keys("esc");
    let slots: Vec<u16> = row(&next).all_slots().map(|(at, _)| at).collect();
    next.event_loop.app.live_session.trace_panes.slot = slots[1];
    next.keys("v").settle();
    next.keys("C").settle();
    assert!(next.event_loop.app.replay.is_some(), "{}", next.screen());
    let screen = next.screen();
    let origin = "the recorded trace that the branch continues";
    assert!(details(&screen).contains(origin), "{screen}");
    assert!(indent(&screen, "#4") > indent(&screen, "#2"), "{screen}");
    next.keys("esc esc").settle();
    // Another read of the recordings, after a save, adds nothing twice.
    next.save("r.yaml", &RUBRIC.replace("kind", "kind, min_score: 0.5"));
    next.settle();
    assert_eq!(facts(&row(&next).second_opinions), facts(&before));
}

#[test]
fn branch_continues_with_another_judge_or_model() {
    let mut app = opened(|n| n == 0);
    app.keys("J").settle();
    assert!(app.screen().contains("b branch"), "{}", app.screen());
    app.keys("b").settle();
    let header = newest_header(&app.event_loop.app).expect("a branch");
    let judge = &header.judges[0].config;
    assert_eq!((judge.name.as_str(), judge.model.as_str()), ("second", "m"));
    let point = header.branch_point().expect("a branch");
    assert!(point.describe().ends_with(", judge second"), "{point:?}");
    app.keys("J").settle();
    app.keys("m");
    assert!(
        app.screen().contains("branch with model: m"),
        "{}",
        app.screen()
    );
    app.type_in("2").keys("enter").settle();
    let header = newest_header(&app.event_loop.app).expect("a branch");
    assert_eq!(header.judges[0].config.model, "m2");
    let point = header.branch_point().expect("a branch");
    assert!(point.describe().contains(", model m2"), "{point:?}");
    // The tree of branches names both.
    app.keys("G").settle();
    let screen = app.screen();
    assert!(details(&screen).contains(", judge second"), "{screen}");
    assert_eq!(row(&app).second_opinions.len(), 2);
    // The original stays.
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
    // Only the trace screen has a selected step, from which a branch continues.
    app.keys("esc J").settle();
    app.keys("b");
    assert!(
        last_notice(&app).contains("needs the trace screen"),
        "{}",
        last_notice(&app)
    );
}

#[test]
fn branch_continues_with_a_found_judge_that_the_workspace_lacks() {
    let mut app = opened(|n| n == 0);
    // The first answer counts: that of the search comes later.
    app.keys("J");
    let state = &app.event_loop.app;
    let mut judge = state.workspace().expect("a workspace").judges["second"].clone();
    judge.name = "found".to_owned();
    let row = state.session().trace_panes.row.expect("a row");
    let found = AvailableJudge {
        title: "found".to_owned(),
        judge: Some(judge),
        note: String::new(),
    };
    app.send_msg(Msg::JudgesFound {
        row,
        judges: Ok(vec![found]),
    });
    app.keys("b").settle();
    let header = newest_header(&app.event_loop.app).expect("a branch");
    assert_eq!(
        header.judges[0].config.name,
        "found",
        "{}",
        last_notice(&app)
    );
}

#[test]
fn whole_prompt_is_edited_for_a_branch() {
    let mut app = opened(|n| n == 0);
    app.keys("g W");
    let text = app.terminal_effects.pop();
    let Some(crate::tui::effect::Effect::EditText { target, text }) = text else {
        panic!("{text:?} {}", last_notice(&app));
    };
    assert!(text.contains("go away") && text.contains("kind"), "{text}");
    let edited = text.replace("go away", "welcome");
    app.send_msg(Msg::TextEdited {
        target: Box::new(target),
        edited: Ok(Some(edited)),
    });
    app.settle();
    let header = newest_header(&app.event_loop.app).expect("a branch");
    let point = header.branch_point().expect("a branch");
    assert_eq!(point.describe(), "1.prompt, prompt changed");
}

#[test]
fn typed_number_replaces_the_suggested_repeats() {
    let mut app = opened(|n| n == 0);
    app.keys("*").type_in("3").keys("enter").settle();
    assert_eq!(row(&app).second_opinions.len(), 3);
}

#[test]
fn edited_verdict_of_a_new_run_does_not_replace_the_verdict() {
    let mut app = opened(|n| n == 0 || n == 2);
    let total = format!("{:?}", app.event_loop.app.live_session.cells.total);
    app.keys("!").type_in("verdict").keys("enter r");
    app.settle_until(|app| waits_at(app).is_some());
    app.keys("e");
    let Some(crate::tui::effect::Effect::EditText { target, text }) = app.terminal_effects.pop()
    else {
        panic!("{}", last_notice(&app));
    };
    let passed = text
        .replace("\"passed\": false", "\"passed\": true")
        .replace("\"score\": 0.0", "\"score\": 1.0");
    app.send_msg(Msg::TextEdited {
        target: Box::new(target),
        edited: Ok(Some(passed)),
    });
    app.settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail), "{}", app.screen());
    assert_eq!(
        format!("{:?}", app.event_loop.app.live_session.cells.total),
        total
    );
    let edited = &row(&app).second_opinions;
    assert!(edited.len() == 1 && edited[0].by_human, "{edited:?}");
    // The screen stays on the edited trace, with its mark.
    let screen = app.screen();
    assert!(screen.contains("✓ pass 1.00  edited by hand"), "{screen}");
    assert!(screen.contains("edited by hand: doesn't count"), "{screen}");
}

#[test]
fn paused_response_is_shown_with_the_agents_call() {
    let mut app = opened(|n| n == 0 || n == 2);
    app.keys("!").type_in("answer").keys("enter r");
    app.settle_until(|app| waits_at(app).is_some());
    app.draw();
    let screen = app.screen();
    assert!(
        screen.contains("paused: the judge gets this response next"),
        "{screen}"
    );
    assert!(!screen.contains("waiting for the response"), "{screen}");
    app.keys("A").settle();
}
