//! Recorded tool responses: after an edit of the rubric, judges get the same pages as before.

use serde_json::json;

use super::keys::{TONE, asking};
use super::server::{Server, ServerReply};
use super::{outcome, point};
use crate::event::ToolResponseSource;
use crate::model::Outcome;
use crate::tui::testing::TestWorkbench;

/// Starts a server whose model fetches a page and then decides. The address guard rejects the page, which counts as a
/// tool response.
fn fetching() -> Server {
    Server::new(|n| {
        if n.is_multiple_of(2) {
            ServerReply::Call("fetch_url", json!({"url": "http://127.0.0.1:9/a"}))
        } else {
            let verdict =
                json!({"citations": [], "reasoning": "kind", "passed": true, "score": 1.0});
            ServerReply::Call("submit_verdict", verdict)
        }
    })
}

/// Returns the source of the tool response in the newest run.
fn source(app: &TestWorkbench) -> Option<ToolResponseSource> {
    let run = app.event_loop.app.runs().by_ticket.values().next_back()?;
    let calls = run.state.cells.iter().flat_map(|cell| &cell.judge_trace);
    let mut calls = calls.flat_map(|turn| &turn.calls);
    let finished = calls
        .find(|call| call.name == "fetch_url")?
        .finished
        .clone()?;
    Some(finished.source)
}

#[test]
fn edited_rubric_is_judged_on_recorded_pages() {
    let server = fetching();
    let tools = ", tools: [{ fetch_url: { seen: \"off\" } }]";
    let mut app = asking(&server, tools, 120, 40);
    point(&mut app, "t/r/tone");
    app.keys("R").settle();
    assert_eq!(outcome(&app, "t/r/tone"), Some(Outcome::Pass));
    assert_eq!(source(&app), Some(ToolResponseSource::Live));

    app.save("r.yaml", &TONE.replace("kind", "kind and calm"))
        .settle();
    assert_eq!(server.asked(), 4);
    assert!(
        matches!(source(&app), Some(ToolResponseSource::Frozen { .. })),
        "{:?}",
        source(&app)
    );
    app.keys("7");
    let screen = app.screen();
    assert!(
        screen.contains("judged on the same pages: 1 page of run "),
        "{screen}"
    );

    // With replay off, the page is fetched again.
    app.keys("P");
    app.save("r.yaml", &TONE.replace("kind", "kind and short"))
        .settle();
    assert_eq!(server.asked(), 6);
    assert_eq!(source(&app), Some(ToolResponseSource::Live));
    assert!(
        !app.screen().contains("the same pages: 1 page"),
        "{}",
        app.screen()
    );
}
