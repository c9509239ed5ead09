//! Votes, recordings, messages, and what is broken or hostile.

use super::*;
use crate::event::CallRejection;

#[test]
fn the_cells_of_a_vote_are_stepped_through() {
    let mut bench = Bench::whole(VOTE);
    let cells = &bench.model.live_session.cells;
    let row = cells
        .rows
        .iter()
        .position(|row| row.slots.len() == 3)
        .expect("three repeats");
    let (transcript, eval) = (cells.rows[row].transcript, cells.rows[row].eval);
    let transcript = cells.transcripts[transcript as usize].id.clone();
    let eval = cells.evals[eval as usize].id.clone();
    bench.select(&transcript, &eval);
    bench.settle();
    let votes = |bench: &Bench| bench.lines(Pane::Verdict)[1..5].join("\n");
    assert!(votes(&bench).starts_with("by vote"), "{}", votes(&bench));
    assert!(votes(&bench).contains("▌#1"), "{}", votes(&bench));
    for _ in 0..20 {
        move_step_by(&mut bench.model, 1);
        bench.tell(Msg::TimePassed);
    }
    assert_eq!(bench.model.live_session.trace_panes.slot, 2);
    assert!(bench.screen().contains("▌#3"), "{}", bench.screen());
}

#[test]
fn a_recorded_cell_is_read_alone_by_number_and_by_name() {
    let run = sample(PAGE);
    let state = run.read_state().expect("a sample folds");
    for (number, whole) in (0..).map(CellIx).zip(&state.cells) {
        let named = CellRef::Name(state.cell_name(number).expect("planned"));
        for which in [CellRef::Ix(number), named] {
            let read = reads::read_recorded_cell(&run, &which, &|| false)
                .expect("nothing newer")
                .expect("it is there");
            assert_eq!(read.cell, number);
            assert_eq!(
                (&read.state.judge_trace, &read.state.result),
                (&whole.judge_trace, &whole.result)
            );
        }
    }
    let nowhere = reads::read_recorded_cell(&run, &CellRef::Ix(CellIx(99)), &|| false)
        .expect("nothing newer");
    assert_eq!(
        nowhere.expect_err("no such cell"),
        "run page has no cell number 99"
    );
}

#[test]
fn messages_are_jumped_over_and_the_ends_hold() {
    let mut bench = Bench::whole(PAGE);
    bench.select("beam-upgrade", "newest");
    bench.settle();
    let top = |bench: &Bench| {
        let document = &bench.model.live_session.transcript_pane;
        let doc = document.loaded_document().expect("read");
        doc.pieces[document.scroll.top.block].message
    };
    let mut seen = BTreeMap::new();
    for _ in 0..20 {
        move_message_by(&mut bench.model, 1);
        *seen.entry(top(&bench)).or_insert(0) += 1;
    }
    assert_eq!(
        seen.keys().copied().collect::<Vec<_>>(),
        (1..=9).collect::<Vec<_>>()
    );
    move_message_by(&mut bench.model, -1);
    assert_eq!(top(&bench), 8);
    move_message_by(&mut bench.model, -100);
    assert_eq!(top(&bench), 0);
}

#[test]
fn hostile_text_in_every_field_neither_panics_nor_breaks_a_span() {
    let hostile = "\u{1b}]0;x\u{7}\u{202e}\u{200b}é\u{0}\n\r\u{e0041}";
    let mut bench = Bench::whole(PAGE);
    bench.select("beam-upgrade", "newest");
    bench.settle();
    let run = &mut bench.model.live_session.runs.by_ticket[0];
    let state = &mut run.state.cells[2];
    for turn in &mut state.judge_trace {
        for call in &mut turn.calls {
            call.name = hostile.into();
            call.raw = hostile.repeat(3);
            call.rejected = Some(CallRejection {
                rule: hostile.into(),
                text: hostile.into(),
            });
            for hop in &mut call.hops {
                hop.url = hostile.into();
                hop.refused = Some(hostile.into());
            }
            if let Some(finished) = &mut call.finished {
                finished.response.text = StoredText::Text(hostile.into());
                finished.response.content_type = Some(hostile.into());
            }
        }
        if let Some(verdict) = &mut turn.verdict {
            verdict.reasoning = hostile.into();
        }
    }
    if let Some(verdict) = state
        .result
        .as_mut()
        .and_then(|result| result.verdict.as_mut())
    {
        verdict.reasoning = hostile.into();
        verdict.contradiction = Some(hostile.into());
        verdict.parts = vec![crate::model::VerdictPart {
            text: hostile.into(),
            reasoning: hostile.into(),
            met: false,
            count: Some(2),
            ..crate::model::VerdictPart::default()
        }];
        for citation in &mut verdict.citations {
            citation.source = hostile.into();
            citation.quote = hostile.into();
        }
    }
    for _ in 0..8 {
        move_step_by(&mut bench.model, -1);
        go_to_next_reference(&mut bench.model);
        toggle_raw(&mut bench.model);
        bench.tell(Msg::TimePassed);
        bench.settle();
        for pane in Pane::ALL {
            let _spans_are_checked = bench.lines(pane);
        }
        let screen = bench.screen();
        let marks = |c: char| c != '\n' && (c.is_control() || crate::model::is_invisible(c));
        assert!(!screen.contains(marks), "{screen}");
    }
}

#[test]
fn each_part_of_a_verdict_is_shown_with_its_reason() {
    let mut bench = Bench::whole(PAGE);
    bench.select("beam-upgrade", "newest");
    bench.settle();
    let result = &mut bench.model.live_session.runs.by_ticket[0].state.cells[2].result;
    let result = result.as_mut().expect("it is done");
    let verdict = result.verdict.as_mut().expect("a verdict");
    let part = |text: &str, met, count| crate::model::VerdictPart {
        text: text.to_owned(),
        reasoning: format!("because of {text}"),
        met,
        count,
        ..crate::model::VerdictPart::default()
    };
    verdict.parts = vec![part("names it", true, None), part("slips", false, Some(2))];
    result.explanation = "1 of 2, told as a text".to_owned();
    let lines = bench.lines(Pane::Verdict);
    let at = |text: &str| lines.iter().position(|line| line.contains(text));
    let order = [
        at("✓ 1. names it"),
        at("because of names it"),
        at("✗ 2. slips × 2"),
        at("because of slips"),
    ];
    assert!(
        order.iter().all(Option::is_some) && order.is_sorted(),
        "{lines:#?}"
    );
    assert_eq!(at("told as a text"), None, "the parts are not told twice");
}

#[test]
fn a_call_in_a_turn_that_was_never_told_of_is_no_reason_to_panic() {
    let mut bench = Bench::on(PAGE);
    bench.play(4);
    let lost = RunEvent {
        seq: 4,
        at: crate::model::Millis(9),
        kind: EventKind::Tool {
            cell: CellIx(0),
            turn: TurnIx(3),
            call: CallIx(2),
            fact: ToolFact::Started,
        },
    };
    bench.log.truncate(4);
    bench.log.push(lost);
    let events = Arc::new(bench.log[4..].to_vec());
    bench.tell(Msg::RunEvents {
        ticket: RunTicket(1),
        events,
    });
    bench.select("shop-headphones", "grounded");
    bench.settle();
    for pane in Pane::ALL {
        let _no_panic = bench.lines(pane);
    }
    let _no_panic = bench.screen();
}
