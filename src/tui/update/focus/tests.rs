//! Tests over recorded samples. Every effect is answered at once, unless a test withholds the answer.

mod more;

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use super::*;
use crate::event::{DeltaPart, EventKind, RunEvent, StoredText, ToolFact, TurnFact};
use crate::model::{CallIx, CellIx, TurnIx};
use crate::record::RecordedRun;
use crate::theme::Theme;
use crate::tui::msg::Msg;
use crate::tui::reads;
use crate::tui::state::OpenedItem as Opened;
use crate::tui::state::pane::Pane;
use crate::tui::state::runs::RunTicket;
use crate::tui::state::text_cache::BlobState as Blobs;
use crate::tui::update::update;

pub(crate) fn sample(name: &str) -> RecordedRun {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("sample-runs/runs")
        .join(name);
    RecordedRun {
        id: RunId(name.to_owned()),
        dir,
    }
}

const PAGE: &str = "20261022T090000Z-page";
const BUSY: &str = "20261023T140500Z-busy";
const VOTE: &str = "20261024T101500Z-vote";

/// A workbench over one recorded run, with the effects that are not answered yet.
struct Bench {
    model: App,
    log: Vec<RunEvent>,
    asked: Vec<Effect>,
}

impl Bench {
    fn on(name: &str) -> Self {
        let theme = Theme::bundled("dark").expect("a bundled theme");
        let mut app = App::new(Opened::Recording, Size::new(200, 60), theme);
        let run = sample(name);
        let log = run.read_log().expect("a sample is readable").events;
        let ticket = app.next_ticket();
        let mut bench = Self {
            model: app,
            log,
            asked: Vec::new(),
        };
        bench.tell(Msg::RunStarted {
            ticket,
            run: run.id,
            dir: run.dir,
        });
        bench
    }

    fn tell(&mut self, msg: Msg) {
        let asked = update(&mut self.model, msg);
        self.asked.extend(asked);
    }

    /// Feeds the first events of the log.
    fn play(&mut self, to: usize) {
        let events = Arc::new(self.log[..to].to_vec());
        let ticket = RunTicket(1);
        self.tell(Msg::RunEvents { ticket, events });
    }

    fn whole(name: &str) -> Self {
        let mut bench = Self::on(name);
        bench.play(bench.log.len());
        bench
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
        self.tell(Msg::TimePassed);
    }

    /// Answers all effects as the runtime does.
    fn settle(&mut self) {
        for _ in 0..20 {
            for effect in std::mem::take(&mut self.asked) {
                self.answer(effect);
            }
        }
        assert!(
            self.asked.is_empty(),
            "it never stops asking: {:?}",
            self.asked
        );
    }

    fn answer(&mut self, effect: Effect) {
        match effect {
            Effect::ReadBlob { dir, blob } => {
                let text = reads::read_text(&dir, &blob);
                self.tell(Msg::BlobRead { blob, text });
            }
            Effect::ReadRequest {
                key,
                dir,
                request,
                before,
            } => {
                let read = reads::read_request(dir.as_deref(), key.clone(), &request, &before);
                let request = read.map(Arc::new);
                self.tell(Msg::RequestRead { key, request });
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
                self.tell(Msg::DocumentRead { id, doc });
            }
            Effect::Highlight { key, lang, text } => {
                let spans = crate::theme::highlight(&text, lang);
                self.tell(Msg::Highlighted { key, spans });
            }
            Effect::ReadTrace { row, run, cell, .. } => {
                let recorded = reads::read_recorded_cell(&sample(&run.0), &cell, &|| false)
                    .expect("nothing newer")
                    .map(Arc::new);
                self.tell(Msg::TraceRead { row, recorded });
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
        for (range, _) in block.spans.iter() {
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

fn at(bench: &Bench, wanted: impl Fn(&EventKind) -> bool) -> usize {
    let found = bench.log.iter().position(|event| wanted(&event.kind));
    found.expect("the sample holds it") + 1
}

#[test]
fn a_trace_is_shown_in_all_its_panes_and_nothing_is_asked_twice() {
    let mut bench = Bench::whole(PAGE);
    bench.select("beam-upgrade", "newest");
    bench.settle();
    let prompt = bench.lines(Pane::Prompt);
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
    let call = bench.lines(Pane::FunctionCall);
    // The duration differs in every recording.
    let took = |line: &str| line.starts_with("✓ answered in ") && line.ends_with(" ms: 78.6 KB");
    assert_eq!(call[0], "2 calls in this turn: , and . move");
    assert!(call[1].starts_with("1 fetch_url ✓ "), "{call:?}");
    assert!(call[2].starts_with("▌2 fetch_url ✓ "), "{call:?}");
    assert_eq!(call[4], "fetch_url");
    assert!(took(&call[5]), "{call:?}");
    assert_eq!(call[7], "as received, and canonical");
    assert_eq!(
        call[8],
        "{\n  \"url\": \"https://releases.beamline.example/changelog\"\n}"
    );
    let fetched = bench.lines(Pane::FetchedContent);
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
    let verdict = bench.lines(Pane::Verdict);
    assert_eq!(verdict[0], "✓ pass 1.00");
    assert_eq!(
        verdict[1..5],
        [
            "2.11.0 leads both pages. The changelog was cut at its end, which is the oldest part.",
            "“Current release: Beamline 2.11.0” fetch 1 found",
            "“Beamline 2.11.0 is the newest” message 9 found",
            "c goes to the next citation",
        ]
    );
    let screen = bench.screen();
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
    bench.tell(Msg::TimePassed);
    assert!(bench.asked.is_empty(), "{:?}", bench.asked);
}

#[test]
fn steps_move_through_the_trace_and_past_the_last_one_the_newest_is_followed() {
    let mut bench = Bench::whole(PAGE);
    bench.select("beam-upgrade", "newest");
    bench.settle();
    let mut seen = Vec::new();
    for _ in 0..5 {
        move_step_by(&mut bench.model, -1);
        seen.push(bench.model.live_session.trace_panes.step);
        bench.tell(Msg::TimePassed);
        bench.settle();
    }
    assert_eq!(
        seen,
        [1, 0, 0, 0, 0].map(StepSelection::Position),
        "the second call was shown: back from there"
    );
    let mut seen = Vec::new();
    for _ in 0..5 {
        move_step_by(&mut bench.model, 1);
        seen.push(bench.model.live_session.trace_panes.step);
    }
    let ahead = [1, 2, 3, 4].map(StepSelection::Position);
    assert_eq!(seen[..4], ahead, "two calls, turn 2, the verdict's call");
    assert_eq!(seen[4], StepSelection::Newest);
    select_step(&mut bench.model, 0);
    bench.tell(Msg::TimePassed);
    bench.settle();
    assert!(
        bench
            .lines(Pane::Prompt)
            .iter()
            .any(|line| line == "system"),
        "the first turn is whole"
    );
    select_step(&mut bench.model, 1);
    bench.tell(Msg::TimePassed);
    assert_eq!(bench.lines(Pane::FetchedContent)[0], "fetch 1 · fetch_url");
    for _ in 0..5 {
        move_step_by(&mut bench.model, 1);
    }
    assert_eq!(
        bench.model.live_session.trace_panes.step,
        StepSelection::Newest
    );
}

#[test]
fn a_citation_is_gone_to_in_the_transcript_and_in_the_fetched_page() {
    let mut bench = Bench::whole(PAGE);
    bench.select("beam-upgrade", "newest");
    bench.settle();
    go_to_next_reference(&mut bench.model);
    bench.tell(Msg::TimePassed);
    bench.settle();
    let (turn, call, range) = bench
        .model
        .live_session
        .trace_panes
        .selected_quote
        .clone()
        .expect("gone to");
    assert_eq!((turn, call), (0, 0));
    let page = bench.lines(Pane::FetchedContent).pop().expect("the text");
    assert_eq!(&page[range], "Current release: Beamline 2.11.0");
    go_to_next_reference(&mut bench.model);
    let document = &bench.model.live_session.transcript_pane;
    let (piece, range) = document.selected_quote.clone().expect("gone to");
    let doc = document.loaded_document().expect("read");
    assert_eq!(doc.pieces[piece].message, 9);
    assert_eq!(
        &doc.text_of(&doc.pieces[piece])[range],
        "Beamline 2.11.0 is the newest"
    );
    assert_eq!(document.quotes.len(), 1, "marked before one goes there");
    // A verdict with a quote that occurs nowhere shows that.
    let cells = &mut bench.model.live_session.runs.by_ticket[0].state.cells;
    let result = cells[2].result.as_mut().expect("ended");
    let verdict = result.verdict.as_mut().expect("a verdict");
    verdict.citations = vec![crate::model::Citation {
        source: "message 1".into(),
        quote: "made up \u{1b}[2J".into(),
        found: false,
    }];
    go_to_next_reference(&mut bench.model);
    let toast = bench.model.notices.log.last().expect("told");
    assert_eq!(toast.text, "“made up ␛[2J” was not found in message 1");
}

#[test]
fn answers_for_another_row_are_ignored() {
    let mut bench = Bench::whole(PAGE);
    bench.asked.clear();
    bench.select("beam-upgrade", "newest");
    let late = std::mem::take(&mut bench.asked);
    bench.select("beam-outdated", "newest");
    for effect in late {
        bench.answer(effect);
    }
    assert!(matches!(
        bench.model.live_session.trace_panes.request,
        RequestState::Loading(_)
    ));
    assert!(matches!(
        bench.model.live_session.transcript_pane.document,
        Read::Loading
    ));
    bench.settle();
    let doc = bench
        .model
        .live_session
        .transcript_pane
        .loaded_document()
        .expect("read");
    assert_eq!(doc.id, "beam-outdated");
    let fetched = bench.lines(Pane::FetchedContent).join("\n");
    assert!(!fetched.contains("reading"), "{fetched}");
}

#[test]
fn a_blob_that_cannot_be_read_says_so_and_is_not_asked_for_again() {
    let mut bench = Bench::whole(PAGE);
    bench.select("beam-upgrade", "newest");
    let blobs = |effects: &[Effect]| {
        effects
            .iter()
            .filter(|e| matches!(e, Effect::ReadBlob { .. }))
            .count()
    };
    assert_eq!(blobs(&bench.asked), 1);
    for effect in std::mem::take(&mut bench.asked) {
        match effect {
            Effect::ReadBlob { blob, .. } => bench.tell(Msg::BlobRead {
                blob,
                text: Err("50028 bytes cannot be read: gone".into()),
            }),
            Effect::ReadRequest { key, .. } => bench.tell(Msg::RequestRead {
                key,
                request: Err("gone, too".into()),
            }),
            Effect::ReadDocument { transcript, .. } => bench.tell(Msg::DocumentRead {
                id: transcript.id,
                doc: Err("gone as well".into()),
            }),
            _ => {}
        }
    }
    assert!(matches!(
        bench.model.texts.blobs.values().next(),
        Some(Blobs::Failed(_))
    ));
    assert_eq!(
        bench.lines(Pane::FetchedContent)[4],
        "50028 bytes cannot be read: gone"
    );
    assert!(bench.lines(Pane::Prompt).contains(&"gone, too".to_owned()));
    assert_eq!(
        bench.lines(Pane::Transcript),
        ["dicta can't read the transcript", "gone as well"]
    );
    bench.tell(Msg::TimePassed);
    assert_eq!(blobs(&bench.asked), 0);
}

#[test]
fn a_stream_is_followed_and_its_end_shows_the_verdict() {
    let mut bench = Bench::on(BUSY);
    let backing = at(&bench, |kind| {
        matches!(
            kind,
            EventKind::Turn {
                fact: TurnFact::AttemptFailed { .. },
                ..
            }
        )
    });
    bench.play(backing);
    bench.select("beam-release", "faithful");
    bench.settle();
    let first = &bench.lines(Pane::Verdict)[0];
    assert!(
        first.starts_with("backing off ") && first.ends_with(": 429"),
        "{first}"
    );
    assert!(
        bench.lines(Pane::Prompt)[0].starts_with("attempt 1 failed: 429 from"),
        "{:?}",
        bench.lines(Pane::Prompt)
    );
    let args = at(&bench, |kind| {
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
    bench.play(args + 2);
    assert_eq!(
        bench.lines(Pane::FunctionCall)[0],
        "receiving the arguments …"
    );
    assert!(
        bench.model.live_session.trace_panes.call.follow
            && bench.model.live_session.trace_panes.verdict.follow
    );
    let ended = at(&bench, |kind| {
        matches!(kind, EventKind::CellFinished { .. })
    });
    bench.play(ended);
    assert_eq!(bench.lines(Pane::Verdict)[0], "✓ pass 1.00");
    assert!(
        !bench.model.live_session.trace_panes.verdict.follow,
        "the verdict's line is on top"
    );
}

#[test]
fn refusals_and_unread_verdicts_are_told_as_what_they_are() {
    let mut bench = Bench::whole(BUSY);
    let unparsed = bench.log.iter().find_map(|event| match &event.kind {
        EventKind::Turn {
            cell,
            fact: TurnFact::VerdictUnparsed { .. },
            ..
        } => Some(*cell),
        _ => None,
    });
    assert_eq!(unparsed, Some(CellIx(2)));
    bench.select("beam-outdated", "faithful");
    bench.settle();
    let verdict = bench.lines(Pane::Verdict);
    assert_eq!(
        verdict[..2],
        ["! unparsed", "the last reply does not call submit_verdict"]
    );
    assert!(
        verdict.iter().any(|line| line == "no valid verdict"),
        "{verdict:?}"
    );
    bench.select("beam-quote", "faithful");
    bench.settle();
    select_step(&mut bench.model, 1);
    let call = bench.lines(Pane::FunctionCall);
    assert!(
        call.contains(
            &"! refused by rule parse (the arguments are not a JSON object): message for the model"
                .to_owned()
        ),
        "{call:?}"
    );
    assert_eq!(call[1], "! rejected: it never ran");
}
