//! The tool calls of a judge on the screen: repaired, coerced, completed, rejected, answered once, tried again. Also
//! their responses with hops, hidden text and raw body. Uses a recorded run with replaced tool calls.

use std::sync::Arc;

use ratatui::layout::Size;

use super::look::{look, rows};
use super::looks::same;
use crate::event::{
    EventKind, RecordedToolResponse, RunEvent, StoredText, ToolFact, ToolResponseSource,
};
use crate::model::{ArgumentChange, CallIx, CellIx, Hop, Millis, RawJson, RunId, TurnIx};
use crate::record::RecordedRun;
use crate::tui::effect::Effect;
use crate::tui::msg::Msg;
use crate::tui::state::OpenedItem;
use crate::tui::state::pane::Pane;
use crate::tui::state::runs::RunTicket;
use crate::tui::testing::TestWorkbench;
use crate::workspace::Env;

const PAGE: &str = "20261022T090000Z-page";
const ORDERS: &str = "20261025T083000Z-orders";

/// Opens the workbench on the recorded pages. Facts in `replacements` replace the calls of the first turn of `beam-upgrade ×
/// newest`.
fn calls(width: u16, height: u16, replacements: &[(u16, u64, ToolFact)]) -> TestWorkbench {
    recorded(PAGE, (width, height), replacements)
}

fn recorded(
    run: &str,
    (width, height): (u16, u16),
    replacements: &[(u16, u64, ToolFact)],
) -> TestWorkbench {
    let dir = tempfile::tempdir().expect("a folder");
    let mut app = TestWorkbench::on(
        OpenedItem::Recording,
        Size::new(width, height),
        None,
        (Env::default(), dir, "/nowhere".into()),
        Vec::<Effect>::new(),
    );
    let runs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-runs/runs");
    let run = RecordedRun {
        id: RunId(run.to_owned()),
        dir: runs.join(run),
        key: None,
    };
    let log = run.read_log().expect("a sample is readable").events;
    let cell = CellIx(2);
    let is_told = |event: &RunEvent| matches!(&event.kind, EventKind::Tool { cell: of, turn, .. } if *of == cell && *turn == TurnIx(0));
    let first = log.iter().position(is_told).expect("it calls something");
    let at = log[first].at;
    let mut events = log[..first].to_vec();
    events.extend(replacements.iter().map(|(call, later, fact)| RunEvent {
        seq: 0,
        at: at + Millis(*later),
        kind: EventKind::Tool {
            cell,
            turn: TurnIx(0),
            call: CallIx(*call),
            fact: fact.clone(),
        },
    }));
    let rest = log[first..]
        .iter()
        .filter(|event| replacements.is_empty() || !is_told(event));
    // If the calls have not ended, the recording ends there.
    let ends = replacements
        .iter()
        .any(|(.., fact)| matches!(fact, ToolFact::Finished { .. }));
    events.extend(rest.filter(|_| ends || replacements.is_empty()).cloned());
    let ticket = app.event_loop.app.next_ticket();
    app.send_msg(Msg::RunStarted {
        ticket,
        run: run.id,
        dir: run.dir,
    });
    app.send_msg(Msg::RunEvents {
        ticket: RunTicket(1),
        events: Arc::new(events),
    });
    app
}

fn go_to(app: &mut TestWorkbench, transcript: &str, eval: &str) {
    let cells = &mut app.event_loop.app.session_mut().cells;
    let row = cells.rows.iter().position(|row| {
        cells.transcripts[row.transcript as usize].id == transcript
            && cells.evals[row.eval as usize].id == eval
    });
    let row = u32::try_from(row.expect("such a row")).expect("few");
    assert!(cells.select_row(crate::tui::state::cells::RowId(row)));
    app.send_msg(Msg::TimePassed).settle();
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text).expect("it is JSON")
}

fn change(path: &str, what: &str) -> ArgumentChange {
    ArgumentChange {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

fn received(name: &str, raw: &str) -> ToolFact {
    ToolFact::Received {
        id: "c".to_owned(),
        name: name.to_owned(),
        raw: raw.to_owned(),
    }
}

fn finished(
    text: &str,
    is_error: bool,
    source: ToolResponseSource,
    retried: Option<&str>,
) -> ToolFact {
    ToolFact::Finished {
        answer: RecordedToolResponse {
            text: StoredText::Text(text.to_owned()),
            is_error,
            bytes: text.len() as u64,
            truncated: false,
            raw: None,
            content_type: None,
            hidden: 0,
            data_version: None,
        },
        source,
        elapsed: Millis(320),
        retried: retried.map(str::to_owned),
    }
}

const ROWS: &str = r#"[{"order":"NW-50031","status":"delivered","total":169.0,"note":null},{"order":"NW-50032","status":"open","total":12.5,"note":"gift"}]"#;

/// Returns one call that is repaired, coerced, completed and tried again, an equal one, one out of order, and one
/// that the address guard rejected.
fn several() -> Vec<(u16, u64, ToolFact)> {
    let canonical = r#"{"order":"NW-50031","limit":"5"}"#;
    let hop = |url: &str, address: [u8; 4], status, refused: Option<&str>| {
        ToolFact::Hop(Hop {
            url: url.to_owned(),
            address: Some(address.into()),
            status,
            refused: refused.map(str::to_owned),
        })
    };
    vec![
        (
            0,
            0,
            received("order_status", "{'order': 'NW-50031', limit: \"5\",}"),
        ),
        (1, 0, received("order_status", canonical)),
        (2, 0, received("create_return", r#"{"order": "NW-50031"}"#)),
        (
            3,
            0,
            received(
                "fetch_url",
                r#"{"url":"https://shop.northwind.example/old"}"#,
            ),
        ),
        (
            0,
            0,
            ToolFact::Repaired {
                canonical: json(canonical),
                changes: vec![
                    change("/order", "single quotes became double quotes"),
                    change("/limit", "quoted a key"),
                    change("", "dropped a trailing comma"),
                ],
            },
        ),
        (
            0,
            1200,
            ToolFact::Validated {
                values: json(r#"{"order":"NW-50031","limit":5,"shop":"northwind"}"#),
                coerced: vec![change("/limit", "read the text \"5\" as the integer 5")],
            },
        ),
        (0, 1200, ToolFact::Started),
        (
            0,
            1520,
            finished(
                ROWS,
                false,
                ToolResponseSource::Live,
                Some("Error: the database is locked"),
            ),
        ),
        (1, 1520, ToolFact::Started),
        (
            1,
            1520,
            finished(
                ROWS,
                false,
                ToolResponseSource::SameTrace {
                    turn: TurnIx(0),
                    call: CallIx(0),
                },
                None,
            ),
        ),
        (
            2,
            1520,
            ToolFact::Rejected {
                rule: "after".to_owned(),
                text: "Error: `create_return` comes after `check_policy`, which was not called yet"
                    .to_owned(),
            },
        ),
        (3, 1520, ToolFact::Started),
        (
            3,
            1600,
            hop(
                "https://shop.northwind.example/old",
                [93, 184, 216, 34],
                Some(302),
                None,
            ),
        ),
        (
            3,
            1600,
            hop(
                "https://intranet.northwind.example/returns",
                [10, 20, 30, 40],
                None,
                Some("private (10.0.0.0/8)"),
            ),
        ),
        (
            3,
            1600,
            finished(
                "Error: refusing to fetch 'intranet.northwind.example' (private address)",
                true,
                ToolResponseSource::Live,
                None,
            ),
        ),
    ]
}

/// Selects the first call of the turn.
fn first_call(app: &mut TestWorkbench) {
    go_to(app, "beam-upgrade", "newest");
    app.event_loop.app.session_mut().trace_panes.step =
        crate::tui::state::judge_trace::StepSelection::Position(1);
    app.send_msg(Msg::TimePassed).settle();
}

#[test]
fn repaired_call_looks_as_recorded() {
    let mut app = calls(80, 24, &several());
    first_call(&mut app);
    app.keys("3").settle();
    same("call_repaired_80x24", &rows(&app));
    app.keys("+").settle();
    same("call_columns_80x24", &rows(&app));
    app.resize(120, 40).settle();
    same("call_columns_120x40", &look(&app));
    app.keys("x").settle();
    same("call_raw_120x40", &rows(&app));
    app.keys("x +").resize(200, 60).settle();
    same("call_repaired_200x60", &rows(&app));
    app.keys("+").settle();
    let text = rows(&app);
    for part in [
        "raw arguments",
        "'order': 'NW-50031',",
        "≠",
        "repaired: quoted a key at /limit",
        "coerced: read the text \"5\" as the integer 5 at /limit",
        "filled in: shop",
        "retried after: Error: the database is locked",
        "answered in 320 ms: ",
        "after waiting 1.2 s",
        "4 calls in this turn: , and . move",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn without_colors_signs_mark_differences() {
    let mut app = calls(120, 40, &several());
    let theme = crate::theme::Theme::bundled("dark").expect("it is bundled");
    app.event_loop.app.ui.theme = Arc::new(theme.without_color().in_ascii());
    first_call(&mut app);
    app.keys("3 +").settle();
    let text = rows(&app);
    assert!(text.contains("'order': 'NW-50031',"), "{text}");
    assert!(
        text.lines()
            .any(|row| row.contains("'NW-50031'") && row.contains(" ! ")),
        "{text}"
    );
}

#[test]
fn snapshots_of_other_calls_of_turn() {
    let mut app = calls(120, 40, &several());
    first_call(&mut app);
    app.keys(".").settle();
    let text = rows(&app);
    assert!(text.contains("same response as"), "{text}");
    app.keys(".").settle();
    same("call_out_of_order_120x40", &rows(&app));
    app.keys(".").settle();
    same("call_refused_hop_120x40", &rows(&app));
    app.resize(80, 24).keys("4").settle();
    same("fetched_refused_hop_80x24", &rows(&app));
}

#[test]
fn database_rows_look_as_recorded() {
    let mut app = calls(120, 40, &several());
    first_call(&mut app);
    app.keys("4 +").settle();
    let text = rows(&app);
    assert!(text.contains("\"status\": \"delivered\","), "{text}");
    same("fetched_rows_120x40", &look(&app));
}

/// Returns the text of a pane, one block per line.
fn lines(app: &TestWorkbench, pane: Pane) -> Vec<String> {
    let source = crate::tui::content::pane_source(&app.event_loop.app, pane);
    let line = |at| source.block(at).text.into_owned();
    (0..source.len()).map(line).collect()
}

#[test]
fn waiting_and_running_calls_show_their_duration() {
    let replacements: Vec<_> = several()
        .into_iter()
        .filter(|(call, later, _)| *call == 0 && *later < 1000)
        .chain([
            (1, 0, received("order_status", "{}")),
            (1, 100, ToolFact::Started),
        ])
        .collect();
    let mut app = calls(120, 40, &replacements);
    first_call(&mut app);
    let waits = lines(&app, Pane::FunctionCall);
    assert!(
        waits
            .iter()
            .any(|line| line.starts_with("not started, waiting for ")),
        "{waits:#?}"
    );
    app.keys(".").settle();
    let runs = lines(&app, Pane::FunctionCall);
    assert!(
        runs.iter().any(|line| line.starts_with("running for ")),
        "{runs:#?}"
    );
}

#[test]
fn snapshots_of_page_with_hidden_text() {
    let mut app = calls(80, 24, &[]);
    go_to(&mut app, "shop-headphones", "grounded");
    app.keys("4").settle();
    same("fetched_hidden_80x24", &rows(&app));
    app.keys("+").resize(120, 40).settle();
    same("fetched_hidden_120x40", &look(&app));
    app.keys("x").settle();
    let text = rows(&app);
    assert!(text.contains("<!doctype html>"), "{text}");
    same("fetched_raw_120x40", &rows(&app));
    app.keys("x +").resize(200, 60).settle();
    same("fetched_hidden_200x60", &rows(&app));
}

#[test]
fn citation_opens_text_although_raw_body_was_shown() {
    let mut app = calls(120, 40, &[]);
    go_to(&mut app, "shop-headphones", "grounded");
    app.keys("x c").settle();
    assert!(!app.event_loop.app.session().trace_panes.shows_raw);
    let text = rows(&app);
    assert!(text.contains("Price today"), "{text}");
}

#[test]
fn columns_are_copied_one_below_the_other() {
    let mut app = calls(120, 40, &several());
    first_call(&mut app);
    app.keys("3 + y v").settle();
    let copied = app.event_loop.screen.copied.last().expect("it was copied");
    assert!(
        copied.contains("{'order': 'NW-50031', limit: \"5\",}\ncanonical arguments\n{"),
        "{copied}"
    );
}

#[test]
fn truncated_page_states_how_much_is_shown() {
    let mut app = calls(120, 40, &[]);
    go_to(&mut app, "beam-upgrade", "newest");
    app.event_loop.app.session_mut().trace_panes.step =
        crate::tui::state::judge_trace::StepSelection::Position(2);
    app.keys("4 +").settle();
    let text = rows(&app);
    assert!(text.contains(" shown, cut · text/html"), "{text}");
}

#[test]
fn tools_of_the_demo_look_as_recorded() {
    let mut app = recorded(ORDERS, (120, 40), &[]);
    go_to(&mut app, "refund-02", "order-facts");
    same("orders_120x40", &look(&app));
    // The pane shows that `,` moves among the calls of the turn. It starts from the visible call.
    app.keys(", , ,").settle();
    let text = rows(&app);
    assert!(text.contains("▌ 1 order_status"), "{text}");
    app.keys("4 +").settle();
    let text = rows(&app);
    assert!(text.contains("\"sku\": \"BOT-TARN-43\","), "{text}");
    same("orders_rows_120x40", &rows(&app));
    app.keys("+ , ,").settle();
    app.keys("3").resize(80, 24).settle();
    let text = rows(&app);
    assert!(text.contains("rejected: it never ran"), "{text}");
    same("orders_rejected_80x24", &rows(&app));
}
