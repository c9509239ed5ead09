//! Tests of the movement through the steps of a trace, the cells of a vote and the messages.

use super::*;

#[test]
fn steps_move_through_trace_and_end_in_follow_mode() {
    let mut app = TestApp::with_full_log(PAGE);
    app.select("beam-upgrade", "newest");
    app.settle();
    let mut seen = Vec::new();
    for _ in 0..5 {
        move_step_by(&mut app.model, -1);
        seen.push(app.model.live_session.trace_panes.step);
        app.send_msg(Msg::TimePassed);
        app.settle();
    }
    assert_eq!(
        seen,
        [2, 1, 0, 0, 0].map(StepSelection::Position),
        "the second call was shown below the prompt of turn 2: back to the turn of the call"
    );
    let mut seen = Vec::new();
    for _ in 0..5 {
        move_step_by(&mut app.model, 1);
        seen.push(app.model.live_session.trace_panes.step);
    }
    let ahead = [1, 2, 3, 4].map(StepSelection::Position);
    assert_eq!(seen[..4], ahead, "two calls, turn 2, the verdict's call");
    assert_eq!(seen[4], StepSelection::Newest);
    select_step(&mut app.model, 0);
    app.send_msg(Msg::TimePassed);
    app.settle();
    assert!(
        app.lines(Pane::Prompt).iter().any(|line| line == "system"),
        "the first turn is whole"
    );
    select_step(&mut app.model, 1);
    app.send_msg(Msg::TimePassed);
    assert_eq!(app.lines(Pane::FetchedContent)[0], "fetch 1 · fetch_url");
    for _ in 0..5 {
        move_step_by(&mut app.model, 1);
    }
    assert_eq!(
        app.model.live_session.trace_panes.step,
        StepSelection::Newest
    );
}

#[test]
fn steps_move_through_cells_of_vote() {
    let mut app = TestApp::with_full_log(VOTE);
    let cells = &app.model.live_session.cells;
    let row = cells
        .rows
        .iter()
        .position(|row| row.slots.len() == 3)
        .expect("three repeats");
    let (transcript, eval) = (cells.rows[row].transcript, cells.rows[row].eval);
    let transcript = cells.transcripts[transcript as usize].id.clone();
    let eval = cells.evals[eval as usize].id.clone();
    app.select(&transcript, &eval);
    app.settle();
    let votes = |app: &TestApp| app.lines(Pane::Verdict)[1..5].join("\n");
    assert!(votes(&app).starts_with("by vote"), "{}", votes(&app));
    assert!(votes(&app).contains("▌#1"), "{}", votes(&app));
    for _ in 0..20 {
        move_step_by(&mut app.model, 1);
        app.send_msg(Msg::TimePassed);
    }
    assert_eq!(app.model.live_session.trace_panes.slot, 2);
    assert!(app.screen().contains("▌#3"), "{}", app.screen());
}

#[test]
fn message_keys_stop_at_both_ends() {
    let mut app = TestApp::with_full_log(PAGE);
    app.select("beam-upgrade", "newest");
    app.settle();
    let top = |app: &TestApp| {
        let document = &app.model.live_session.transcript_pane;
        let doc = document.loaded_document().expect("read");
        doc.pieces[document.scroll.top.block].message
    };
    let mut seen = BTreeMap::new();
    for _ in 0..20 {
        move_message_by(&mut app.model, 1);
        *seen.entry(top(&app)).or_insert(0) += 1;
    }
    assert_eq!(
        seen.keys().copied().collect::<Vec<_>>(),
        (1..=9).collect::<Vec<_>>()
    );
    move_message_by(&mut app.model, -1);
    assert_eq!(top(&app), 8);
    move_message_by(&mut app.model, -100);
    assert_eq!(top(&app), 0);
}
