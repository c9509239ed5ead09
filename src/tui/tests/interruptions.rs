//! Judge traces that a killed process left without a result, the branches of an opened recording, and a deleted file.

use serde_json::json;

use super::keys::asking;
use super::server::{Server, ServerReply};
use super::{judged, last_notice, outcome, point};
use crate::model::{Millis, Outcome};
use crate::tui::state::App;
use crate::tui::state::cells::CellsRow;
use crate::tui::testing::TestWorkbench;

const CELL: &str = "t/r/tone";
const TOOLS: &str = ", tools: [{ fetch_url: { seen: \"off\" } }]";

/// Opens a workspace whose judge fetches a page and then fails the answer. Points at its cell.
fn opened() -> TestWorkbench {
    let server = Server::new(|n| {
        if n.is_multiple_of(2) {
            ServerReply::Call("fetch_url", json!({"url": "http://127.0.0.1:9/a"}))
        } else {
            let verdict =
                json!({"citations": [], "reasoning": "rude", "passed": false, "score": 0.0});
            ServerReply::Call("submit_verdict", verdict)
        }
    });
    let mut app = asking(&server, TOOLS, 120, 40);
    point(&mut app, CELL);
    app
}

fn is_paused(app: &App) -> bool {
    app.runs()
        .by_ticket
        .values()
        .any(|run| !run.paused.is_empty())
}

fn row(app: &App) -> &CellsRow {
    let cells = &app.session().cells;
    let row = cells.find_row(&CELL.parse().expect("a name"));
    row.and_then(|row| cells.row(row)).expect("a row")
}

/// Opens the trace screen of the cell.
fn show_trace(app: &mut TestWorkbench) -> String {
    point(app, CELL);
    app.keys("1 enter").settle();
    app.screen()
}

#[test]
fn killed_at_a_pause_the_steps_are_on_the_screen_after_a_restart() {
    let mut app = opened();
    app.keys("r").settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
    // The times of both runs differ.
    app.pass(Millis(2000));
    app.keys("!").type_in("answer").keys("enter r");
    app.settle_until(is_paused);

    let mut next = app.kill();
    let screen = next.screen();
    assert!(screen.contains("+‖"), "the list marks the row: {screen}");
    assert_eq!(
        outcome(&next, CELL),
        Some(Outcome::Fail),
        "the verdict stays"
    );
    let screen = show_trace(&mut next);
    for part in [
        "→ fetch_url",
        "← fetch_url not sent to the judge",
        // The line is wrapped.
        "‖ interrupted at a pause after an answer",
        "earlier verdict: ✗ fail",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    // The response that the person saw is there, too.
    assert!(
        screen.contains("interrupted before the judge got this"),
        "{screen}"
    );
    assert!(screen.contains("only https URLs are allowed"), "{screen}");
    // The verdict is one key away, and names the attempt.
    next.keys("g ,").settle();
    let screen = next.screen();
    assert!(
        screen.contains("the last attempt was interrupted: #2"),
        "{screen}"
    );

    // The run says it in the list of runs.
    next.keys("esc H").settle();
    next.keys("space").settle();
    let screen = next.screen();
    assert!(
        screen.contains("interrupted, 1 trace unfinished"),
        "{screen}"
    );
    next.keys("esc esc").settle();

    // A new verdict ends the interruption.
    point(&mut next, CELL);
    next.keys("r").settle();
    let slots = &row(&next.event_loop.app).second_opinions;
    assert!(slots.is_empty(), "{slots:?} {}", last_notice(&next));
}

#[test]
fn killed_before_any_verdict_the_cell_opens_at_its_steps() {
    let mut app = opened();
    app.keys("!").type_in("verdict").keys("enter r");
    app.settle_until(is_paused);
    let mut next = app.kill();
    assert_eq!(outcome(&next, CELL), None);
    let screen = show_trace(&mut next);
    for part in [
        "→ submit_verdict",
        "‖ interrupted at a pause after the verdict",
        "earlier verdict: none",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    // The next problem is the interrupted trace, and a branch continues it.
    next.keys("esc g ]").settle();
    assert_eq!(
        next.event_loop
            .app
            .session()
            .cells
            .selected_row()
            .map(|row| row.0),
        Some(0)
    );
    next.keys("enter g b").settle();
    let slots = &row(&next.event_loop.app).second_opinions;
    assert_eq!(slots.len(), 2, "{}", last_notice(&next));
    assert!(slots[1].branch.is_some(), "{slots:?}");
}

#[test]
fn killed_at_the_pause_of_a_branch_the_branch_is_listed_with_its_origin() {
    let mut app = opened();
    app.keys("r").settle();
    app.keys("!").type_in("verdict").keys("enter 1 enter b");
    app.settle_until(is_paused);
    let mut next = app.kill();
    let screen = show_trace(&mut next);
    // The verdict comes first, because the branch decides nothing.
    assert!(screen.contains("verdict ✗ fail"), "{screen}");
    let slots = &row(&next.event_loop.app).second_opinions;
    assert!(slots.len() == 1 && slots[0].is_interrupted(), "{slots:?}");
    assert!(slots[0].branch.is_some(), "{slots:?}");
    assert!(screen.contains("branch from"), "{screen}");
}

#[test]
fn opened_recording_lists_its_later_branches_as_a_tree() {
    let mut app = opened();
    app.keys("r").settle();
    app.keys("1 enter b").settle();
    app.keys("b").settle();
    assert_eq!(row(&app.event_loop.app).second_opinions.len(), 2);
    // The recording of the first trace: it is older than its branches.
    app.event_loop.app.live_session.trace_panes.slot = 0;
    app.keys("esc v").settle();
    app.keys("C").settle();
    let replay = app.event_loop.app.replay.as_ref().expect("a replay");
    let family = &row(&app.event_loop.app).family;
    assert_eq!((family.len(), replay.session.trace_panes.slot), (2, 0));
    app.keys("1 enter G").settle();
    let screen = app.screen();
    let at = |number: &str| {
        let line = screen.lines().find(|line| line.contains(number));
        let line = line.unwrap_or_else(|| panic!("{number}: {screen}"));
        let before = line.split(number).next().unwrap_or_default();
        before.chars().count()
    };
    assert!(at("#2 wire") > at("#1 wire"), "{screen}");
    assert!(at("#3 wire") > at("#2 wire"), "{screen}");
    // Both traces, side by side.
    app.keys("d").settle();
    let screen = app.screen();
    assert!(screen.contains(", branch from"), "{screen}");
    // The title of the details names the selected pair.
    app.keys("g").settle();
    let screen = app.screen();
    assert!(screen.contains("step  1.prompt"), "{screen}");
    app.keys("esc esc esc").settle();

    // The recording of a branch lists the trace that it continues, and its sibling or branch.
    let slots: Vec<u16> = row(&app.event_loop.app)
        .all_slots()
        .map(|(at, _)| at)
        .collect();
    app.event_loop.app.live_session.trace_panes.slot = slots[1];
    app.keys("v").settle();
    app.keys("C").settle();
    assert_eq!(row(&app.event_loop.app).family.len(), 2, "{}", app.screen());
    app.keys("1 enter G").settle();
    let screen = app.screen();
    assert!(screen.contains("the recorded trace that the"), "{screen}");
}

#[test]
fn deleted_transcript_file_stops_a_run_with_the_way_to_go_on() {
    let mut app = judged(120, 40);
    std::fs::remove_file(app.root.join("transcripts/support.jsonl")).expect("it was there");
    app.keys("R").settle();
    let notice = last_notice(&app);
    for part in [
        "nothing was started",
        "support.jsonl does not exist",
        "restore the file, or start dicta again",
    ] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
}
