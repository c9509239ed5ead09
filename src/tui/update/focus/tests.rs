//! Tests over recorded samples. Every effect is answered at once, unless a test withholds the answer.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use super::*;
use crate::event::{CallRejection, DeltaPart, EventKind, RunEvent, StoredText, ToolFact, TurnFact};
use crate::model::{CallIx, CellIx, CellName, Digest, TurnIx};
use crate::record::RecordedRun;
use crate::theme::Theme;
use crate::tui::msg::Msg;
use crate::tui::reads::{self, LastIndex};
use crate::tui::state::OpenedItem;
use crate::tui::state::cells::hash_digest;
use crate::tui::state::judge_trace::{CallPosition, NamedCell, ResponseQuote};
use crate::tui::state::pane::Pane;
use crate::tui::state::piece_range::PieceRange;
use crate::tui::state::runs::RunTicket;
use crate::tui::state::text_cache::BlobState;
use crate::tui::update::update;

mod steps;

pub(crate) fn sample(name: &str) -> RecordedRun {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("sample-runs/runs")
        .join(name);
    RecordedRun {
        id: RunId(name.to_owned()),
        dir,
        key: None,
    }
}

const PAGE: &str = "20261022T090000Z-page";
const BUSY: &str = "20261023T140500Z-busy";
const VOTE: &str = "20261024T101500Z-vote";

/// A workbench over one recorded run, with the effects that are not answered yet.
struct TestApp {
    model: App,
    log: Vec<RunEvent>,
    pending_effects: Vec<Effect>,
}

impl TestApp {
    fn with_run(name: &str) -> Self {
        let theme = Theme::bundled("dark").expect("a bundled theme");
        let mut app = App::new(OpenedItem::Recording, Size::new(200, 60), theme);
        let run = sample(name);
        let log = run.read_log().expect("a sample is readable").events;
        let ticket = app.next_ticket();
        let mut app = Self {
            model: app,
            log,
            pending_effects: Vec::new(),
        };
        app.send_msg(Msg::RunStarted {
            ticket,
            run: run.id,
            dir: run.dir,
        });
        app
    }

    fn send_msg(&mut self, msg: Msg) {
        let effects = update(&mut self.model, msg);
        self.pending_effects.extend(effects);
    }

    /// Feeds the first events of the log.
    fn play(&mut self, to: usize) {
        let events = Arc::new(self.log[..to].to_vec());
        let ticket = RunTicket(1);
        self.send_msg(Msg::RunEvents { ticket, events });
    }

    fn with_full_log(name: &str) -> Self {
        let mut app = Self::with_run(name);
        app.play(app.log.len());
        app
    }

    /// Selects the row of a transcript and eval.
    fn select(&mut self, transcript: &str, eval: &str) {
        let cells = &self.model.live_session.cells;
        let row = cells.rows.iter().position(|row| {
            cells.transcripts[row.transcript as usize].id == transcript
                && cells.evals[row.eval as usize].id == eval
        });
        let row = RowId(u32::try_from(row.expect("such a row")).expect("small"));
        assert!(self.model.live_session.cells.select_row(row));
        self.send_msg(Msg::TimePassed);
    }

    /// Answers all effects as the runtime does.
    fn settle(&mut self) {
        for _ in 0..20 {
            for effect in std::mem::take(&mut self.pending_effects) {
                self.answer(effect);
            }
        }
        assert!(
            self.pending_effects.is_empty(),
            "it never stops asking: {:?}",
            self.pending_effects
        );
    }

    fn answer(&mut self, effect: Effect) {
        match effect {
            Effect::ReadBlob { dir, blob } => {
                let text = reads::read_text(&dir, &blob);
                self.send_msg(Msg::BlobRead { blob, text });
            }
            Effect::ReadRequest {
                key,
                dir,
                request,
                before,
            } => {
                let read = reads::read_request(dir.as_deref(), key.clone(), &request, &before);
                let request = read.map(Arc::new);
                self.send_msg(Msg::RequestRead { key, request });
            }
            Effect::ReadDocument {
                transcript,
                run_dir,
                map,
            } => {
                // The workspace of the samples does not exist, so the copy in the run is used.
                let doc = reads::read_document(&transcript, run_dir.as_deref(), map.as_ref())
                    .map(Arc::new);
                let id = transcript.id;
                self.send_msg(Msg::DocumentRead { id, doc });
            }
            Effect::Highlight { key, lang, text } => {
                let spans = crate::theme::highlight(&text, lang);
                self.send_msg(Msg::Highlighted { key, spans });
            }
            Effect::ReadTrace { row, run, cell, .. } => {
                let recorded = reads::read_recorded_cell(
                    &sample(&run.0),
                    &cell,
                    &LastIndex::default(),
                    &|| false,
                )
                .expect("nothing newer")
                .map(Arc::new);
                self.send_msg(Msg::TraceRead { row, recorded });
            }
            _ => {}
        }
    }

    fn lines(&self, pane: Pane) -> Vec<String> {
        lines(&self.model, pane)
    }

    fn screen(&self) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 60));
        let _hits = crate::tui::view::draw_app(&self.model, &mut buffer);
        let row = |y| {
            (0..200)
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
        };
        (0..60).map(row).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the text of a pane, one block per line.
pub(crate) fn lines(app: &App, pane: Pane) -> Vec<String> {
    let source = content::pane_source(app, pane);
    let mut lines = Vec::new();
    for at in 0..source.len() {
        let block = source.block(at);
        let mut end = 0;
        for StyledSpan { range, .. } in block.spans.iter() {
            assert!(
                end <= range.start && range.start <= range.end,
                "{:?}",
                block.spans
            );
            assert!(
                block.text.get(range.clone()).is_some(),
                "{range:?} of {:?}",
                block.text
            );
            end = range.end;
        }
        lines.push(format!("{}{}", block.lead, block.text));
    }
    lines
}

fn at(app: &TestApp, wanted: impl Fn(&EventKind) -> bool) -> usize {
    let found = app.log.iter().position(|event| wanted(&event.kind));
    found.expect("the sample holds it") + 1
}

#[test]
fn trace_fills_all_panes_and_orders_nothing_twice() {
    let mut app = TestApp::with_full_log(PAGE);
    app.select("beam-upgrade", "newest");
    app.settle();
    let prompt = app.lines(Pane::Prompt);
    assert!(
        prompt[0].starts_with("model: scripted · temperature: 0.0"),
        "{prompt:?}"
    );
    assert_eq!(prompt[1], "tools: fetch_url, submit_verdict");
    assert_eq!(
        prompt[2],
        "… 2 earlier items, unchanged from the previous turn (x shows all)"
    );
    assert_eq!(prompt[4], "assistant");
    let call = app.lines(Pane::FunctionCall);
    // The duration differs in every recording.
    let took = |line: &str| line.starts_with("✓ answered in ") && line.ends_with(" ms: 78.6 KB");
    assert_eq!(call[0], "2 calls in this turn: , and . move");
    assert!(call[1].starts_with("1 fetch_url ✓ "), "{call:?}");
    assert!(call[2].starts_with("▌2 fetch_url ✓ "), "{call:?}");
    assert_eq!(call[4], "fetch_url");
    assert!(took(&call[5]), "{call:?}");
    assert_eq!(call[7], "raw arguments, also canonical");
    assert_eq!(
        call[8],
        "{\n  \"url\": \"https://releases.beamline.example/changelog\"\n}"
    );
    let fetched = app.lines(Pane::FetchedContent);
    assert_eq!(
        fetched[..2],
        [
            "fetch 2 · fetch_url",
            "https://releases.beamline.example/changelog at 127.0.0.77 · ✓ allowed by the address guard · 200 [allowed by \
             settings: loopback (127.0.0.0/8)]",
        ]
    );
    let sizes = "50.0 KB of 78.6 KB shown, cut · text/html; charset=utf-8 · live, in ";
    assert!(fetched[2].starts_with(sizes), "{}", fetched[2]);
    assert_eq!(fetched[3], "");
    assert_eq!(fetched[4].len(), 50_028, "the blob is here");
    let verdict = app.lines(Pane::Verdict);
    assert_eq!(verdict[0], "✓ pass 1.00");
    assert_eq!(
        verdict[1..5],
        [
            "2.11.0 leads both pages. The changelog was cut at its end, which is the oldest part.",
            "“Current release: Beamline 2.11.0” found in fetch 1",
            "“Beamline 2.11.0 is the newest” found in message 9",
            "c goes to the next citation",
        ]
    );
    let screen = app.screen();
    for part in [
        "① prompt",
        "fetch_url 992 B",
        "fetch_url 78.6 KB",
        "② prompt",
        "✓ 1.00",
        "turn 2 of 2 · scripted",
    ] {
        assert!(screen.contains(part), "{part} in\n{screen}");
    }
    // Everything is loaded, so an update orders nothing.
    app.send_msg(Msg::TimePassed);
    assert!(app.pending_effects.is_empty(), "{:?}", app.pending_effects);
}

#[test]
fn citation_opens_transcript_or_fetched_page() {
    let mut app = TestApp::with_full_log(PAGE);
    app.select("beam-upgrade", "newest");
    app.settle();
    go_to_next_reference(&mut app.model);
    app.send_msg(Msg::TimePassed);
    app.settle();
    let ResponseQuote { position, range } = app
        .model
        .live_session
        .trace_panes
        .selected_quote
        .clone()
        .expect("gone to");
    assert_eq!(position, CallPosition { turn: 0, call: 0 });
    let page = app.lines(Pane::FetchedContent).pop().expect("the text");
    assert_eq!(&page[range], "Current release: Beamline 2.11.0");
    go_to_next_reference(&mut app.model);
    let document = &app.model.live_session.transcript_pane;
    let PieceRange { piece, range } = document.selected_quote.clone().expect("gone to");
    let doc = document.loaded_document().expect("read");
    assert_eq!(doc.pieces[piece].message, 9);
    assert_eq!(
        &doc.text_of(&doc.pieces[piece])[range],
        "Beamline 2.11.0 is the newest"
    );
    assert_eq!(document.quotes.len(), 1, "marked before one goes there");
    // A verdict with a quote that occurs nowhere shows that.
    let cells = &mut app.model.live_session.runs.by_ticket[0].state.cells;
    let result = Arc::make_mut(cells[2].result.as_mut().expect("ended"));
    let verdict = result.verdict.as_mut().expect("a verdict");
    verdict.citations = vec![crate::model::Citation {
        source: "message 1".into(),
        quote: "made up \u{1b}[2J".into(),
        found: false,
    }];
    go_to_next_reference(&mut app.model);
    let toast = app.model.notices.newest.as_ref().expect("told");
    assert_eq!(toast.text, "“made up ␛[2J” was not found in message 1");
}

#[test]
fn results_for_another_row_are_ignored() {
    let mut app = TestApp::with_full_log(PAGE);
    app.pending_effects.clear();
    app.select("beam-upgrade", "newest");
    let late = std::mem::take(&mut app.pending_effects);
    app.select("beam-outdated", "newest");
    for effect in late {
        app.answer(effect);
    }
    assert!(matches!(
        app.model.live_session.trace_panes.request,
        RequestState::Loading(_)
    ));
    assert!(matches!(
        app.model.live_session.transcript_pane.document,
        DocumentState::Loading
    ));
    app.settle();
    let doc = app
        .model
        .live_session
        .transcript_pane
        .loaded_document()
        .expect("read");
    assert_eq!(doc.id, "beam-outdated");
    let fetched = app.lines(Pane::FetchedContent).join("\n");
    assert!(!fetched.contains("reading"), "{fetched}");
}

#[test]
fn unreadable_blob_shows_reason_and_is_not_ordered_again() {
    let mut app = TestApp::with_full_log(PAGE);
    app.select("beam-upgrade", "newest");
    let blobs = |effects: &[Effect]| {
        effects
            .iter()
            .filter(|e| matches!(e, Effect::ReadBlob { .. }))
            .count()
    };
    assert_eq!(blobs(&app.pending_effects), 1);
    for effect in std::mem::take(&mut app.pending_effects) {
        match effect {
            Effect::ReadBlob { blob, .. } => app.send_msg(Msg::BlobRead {
                blob,
                text: Err("50028 bytes cannot be read: gone".into()),
            }),
            Effect::ReadRequest { key, .. } => app.send_msg(Msg::RequestRead {
                key,
                request: Err("gone, too".into()),
            }),
            Effect::ReadDocument { transcript, .. } => app.send_msg(Msg::DocumentRead {
                id: transcript.id,
                doc: Err("gone as well".into()),
            }),
            _ => {}
        }
    }
    assert!(matches!(
        app.model.texts.blobs.values().next(),
        Some(BlobState::Failed(_))
    ));
    assert_eq!(
        app.lines(Pane::FetchedContent)[4],
        "50028 bytes cannot be read: gone"
    );
    assert!(app.lines(Pane::Prompt).contains(&"gone, too".to_owned()));
    assert_eq!(
        app.lines(Pane::Transcript),
        ["dicta can't read the transcript", "gone as well"]
    );
    app.send_msg(Msg::TimePassed);
    assert_eq!(blobs(&app.pending_effects), 0);
}

#[test]
fn stream_is_followed_until_verdict() {
    let mut app = TestApp::with_run(BUSY);
    let backing = at(&app, |kind| {
        matches!(
            kind,
            EventKind::Turn {
                fact: TurnFact::AttemptFailed { .. },
                ..
            }
        )
    });
    app.play(backing);
    app.select("beam-release", "faithful");
    app.settle();
    let first = &app.lines(Pane::Verdict)[0];
    assert!(
        first.starts_with("backing off ") && first.ends_with(": 429"),
        "{first}"
    );
    assert!(
        app.lines(Pane::Prompt)[0].starts_with("attempt 1 failed: 429 from"),
        "{:?}",
        app.lines(Pane::Prompt)
    );
    let args = at(&app, |kind| {
        matches!(
            kind,
            EventKind::Turn {
                fact: TurnFact::Delta {
                    part: DeltaPart::Args(_),
                    ..
                },
                ..
            }
        )
    });
    app.play(args + 2);
    assert_eq!(
        app.lines(Pane::FunctionCall)[0],
        "receiving the arguments …"
    );
    assert!(
        app.model.live_session.trace_panes.call.follow
            && app.model.live_session.trace_panes.verdict.follow
    );
    let ended = at(&app, |kind| matches!(kind, EventKind::CellFinished { .. }));
    app.play(ended);
    assert_eq!(app.lines(Pane::Verdict)[0], "✓ pass 1.00");
    assert!(
        !app.model.live_session.trace_panes.verdict.follow,
        "the verdict's line is on top"
    );
}

#[test]
fn refusals_and_unparsed_verdicts_are_described() {
    let mut app = TestApp::with_full_log(BUSY);
    let unparsed = app.log.iter().find_map(|event| match &event.kind {
        EventKind::Turn {
            cell,
            fact: TurnFact::VerdictUnparsed { .. },
            ..
        } => Some(*cell),
        _ => None,
    });
    assert_eq!(unparsed, Some(CellIx(2)));
    app.select("beam-outdated", "faithful");
    app.settle();
    let verdict = app.lines(Pane::Verdict);
    assert_eq!(
        verdict[..2],
        ["! unparsed", "the last reply does not call submit_verdict"]
    );
    assert!(
        verdict.iter().any(|line| line == "no valid verdict"),
        "{verdict:?}"
    );
    app.select("beam-quote", "faithful");
    app.settle();
    select_step(&mut app.model, 1);
    let call = app.lines(Pane::FunctionCall);
    assert!(
        call.contains(
            &"! rejected by rule parse (the arguments are not a JSON object): message for the model"
                .to_owned()
        ),
        "{call:?}"
    );
    assert_eq!(call[1], "! rejected: it never ran");
}

#[test]
fn recorded_cell_is_read_by_number_and_by_name() {
    let run = sample(PAGE);
    let state = run.read_state().expect("a sample folds");
    for (number, whole) in (0..).map(CellIx).zip(&state.cells) {
        let named = CellRef::Named(Box::new(NamedCell {
            name: state.cell_name(number).expect("planned"),
            eval: None,
            eval_hash: None,
            judge: None,
        }));
        // The eval was renamed and edited since.
        let name = state.cell_name(number).expect("planned");
        let key = whole.planned.expect("planned").key;
        let header = state.header.as_deref().expect("a header");
        let renamed = CellRef::Named(Box::new(NamedCell {
            name: CellName {
                eval: "another name".to_owned(),
                ..name
            },
            eval: Some(Digest::hash_bytes(b"edited")),
            eval_hash: Some(hash_digest(&header.evals[key.eval as usize].digest)),
            judge: None,
        }));
        for which in [CellRef::Ix(number), named, renamed] {
            let read = reads::read_recorded_cell(&run, &which, &LastIndex::default(), &|| false)
                .expect("nothing newer")
                .expect("it is there");
            assert_eq!(read.cell, number);
            assert_eq!(
                (&read.state.judge_trace, &read.state.result),
                (&whole.judge_trace, &whole.result)
            );
        }
    }
    let nowhere = reads::read_recorded_cell(
        &run,
        &CellRef::Ix(CellIx(99)),
        &LastIndex::default(),
        &|| false,
    )
    .expect("nothing newer");
    assert_eq!(
        nowhere.expect_err("no such cell").as_str(),
        "run page has no cell number 99"
    );
}

#[test]
fn hostile_text_in_every_field_breaks_no_span() {
    let hostile = "\u{1b}]0;x\u{7}\u{202e}\u{200b}é\u{0}\n\r\u{e0041}";
    let mut app = TestApp::with_full_log(PAGE);
    app.select("beam-upgrade", "newest");
    app.settle();
    let run = &mut app.model.live_session.runs.by_ticket[0];
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
    if let Some(result) = &mut state.result
        && let Some(verdict) = &mut Arc::make_mut(result).verdict
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
        move_step_by(&mut app.model, -1);
        go_to_next_reference(&mut app.model);
        toggle_raw(&mut app.model);
        app.send_msg(Msg::TimePassed);
        app.settle();
        for pane in Pane::ALL {
            let _spans_are_checked = app.lines(pane);
        }
        let screen = app.screen();
        let marks = |c: char| c != '\n' && (c.is_control() || crate::model::is_invisible(c));
        assert!(!screen.contains(marks), "{screen}");
    }
}

#[test]
fn each_part_of_a_verdict_is_shown_with_its_reason() {
    let mut app = TestApp::with_full_log(PAGE);
    app.select("beam-upgrade", "newest");
    app.settle();
    let result = &mut app.model.live_session.runs.by_ticket[0].state.cells[2].result;
    let result = Arc::make_mut(result.as_mut().expect("it is done"));
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
    let lines = app.lines(Pane::Verdict);
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
fn call_of_unknown_turn_does_not_panic() {
    let mut app = TestApp::with_run(PAGE);
    app.play(4);
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
    app.log.truncate(4);
    app.log.push(lost);
    let events = Arc::new(app.log[4..].to_vec());
    app.send_msg(Msg::RunEvents {
        ticket: RunTicket(1),
        events,
    });
    app.select("shop-headphones", "grounded");
    app.settle();
    for pane in Pane::ALL {
        let _no_panic = app.lines(pane);
    }
    let _no_panic = app.screen();
}
