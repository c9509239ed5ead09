//! Hostile text everywhere on the screen: it is visible and has no effect.
//!
//! The frames go through the writer of the real terminal. An independent terminal reads the bytes, and its screen
//! must equal the drawn one.

use std::cell::RefCell;
use std::io;
use std::num::NonZeroU16;
use std::rc::Rc;

use ratatui::backend::CrosstermBackend;
use ratatui::buffer::{Buffer, CellWidth as _};
use ratatui::{Terminal, TerminalOptions, Viewport};
use serde_json::json;

use super::server::{Server, ServerReply};
use super::workbench;
use crate::model::is_invisible;
use crate::tui::msg::Msg;
use crate::tui::term::draw_on;
use crate::tui::testing::TestWorkbench;

/// Everything that a terminal would obey or hide.
///
/// Contains titles, clearing, requests that a terminal answers, 8-bit controls and bidi. Also contains zero-width
/// characters, tags, marks without a letter, and line ends.
const EVIL: &str = "A\u{1b}]0;pwn\u{7}B\u{1b}[2J\u{1b}[1;1HC\u{1b}c\u{9b}31mD\u{9d}0;x\u{9c}E\u{202e}F\u{2066}G\u{200b}\u{feff}H\u{e0041}\u{e007f}I\r\n\u{8}J\u{b}\u{c}\u{7f}K\u{1b}[201~\rq\u{85}\u{2028}L\u{301}\u{300}\u{ad}\u{fe0f}M\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}中\u{1b}Pq\u{1b}\\";

/// The bytes written so far.
/// The largest size of a cell. A terminal keeps few characters per cell, and some hang on long ones.
const MAX_CELL_CHARS: usize = 8;
const MAX_CELL_BYTES: usize = 64;

#[derive(Clone, Default)]
struct Bytes(Rc<RefCell<Vec<u8>>>);

impl io::Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The independent terminal.
struct Other {
    bytes: Bytes,
    terminal: Terminal<CrosstermBackend<Bytes>>,
    parser: vt100::Parser,
}

impl Other {
    fn new(like: &Buffer) -> Self {
        let bytes = Bytes::default();
        let viewport = Viewport::Fixed(like.area);
        let backend = CrosstermBackend::new(bytes.clone());
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport });
        Self {
            bytes,
            terminal: terminal.expect("a fixed size needs no terminal"),
            parser: vt100::Parser::new(side(like.area.height), side(like.area.width), 0),
        }
    }

    /// Sends a frame and returns its size in bytes. Asserts that only cursor moves, styles and visible text are sent,
    /// that no cell is large, and that the screens are equal.
    fn show(&mut self, frame: &Buffer, when: &str) -> usize {
        if self.terminal.get_frame().area() != frame.area {
            *self = Self::new(frame);
        }
        // Behind a wide character, the frame of a test has what was there before, which is not on the screen.
        let mut frame = frame.clone();
        for y in frame.area.rows() {
            let mut covered = 0;
            for at in y.columns() {
                let cell = &mut frame[(at.x, at.y)];
                if covered > 0 {
                    covered -= 1;
                    cell.set_symbol(" ");
                } else {
                    covered = cell.symbol().cell_width().saturating_sub(1);
                }
            }
        }
        let frame = &frame;
        draw_on(&mut self.terminal, &mut |buffer| buffer.clone_from(frame)).expect("it is memory");
        let bytes = std::mem::take(&mut *self.bytes.0.borrow_mut());
        let text = String::from_utf8(bytes).expect("it is text");
        only_moves_and_looks(&text, when);
        self.parser.process(text.as_bytes());
        let screen = self.parser.screen();
        for y in frame.area.rows() {
            let mut covered = 0;
            for at in y.columns() {
                if covered > 0 {
                    covered -= 1;
                    continue;
                }
                let drawn = &frame[(at.x, at.y)];
                let seen = screen.cell(at.y, at.x).expect("it is on the screen");
                let seen = if seen.has_contents() {
                    seen.contents()
                } else {
                    " "
                };
                assert_eq!(seen, drawn.symbol(), "{when}: {},{}", at.x, at.y);
                let symbol = drawn.symbol();
                assert!(
                    symbol.chars().count() <= MAX_CELL_CHARS && symbol.len() <= MAX_CELL_BYTES,
                    "{when}: {symbol:?}"
                );
                covered = symbol.cell_width().saturating_sub(1);
            }
        }
        text.len()
    }
}

fn side(length: u16) -> NonZeroU16 {
    NonZeroU16::new(length).expect("a screen has a size")
}

fn only_moves_and_looks(text: &str, when: &str) {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            assert!(
                !c.is_control() && !is_invisible(c),
                "{when}: {c:?} came out"
            );
            continue;
        }
        assert_eq!(rest.next(), Some('['), "{when}: not a sequence of ours");
        // The cursor is hidden; all other sequences move it or change styles.
        if let Some(after) = rest.as_str().strip_prefix("?25l") {
            rest = after.chars();
            continue;
        }
        let end = rest.find(|c| !matches!(c, '0'..='9' | ';' | ':'));
        assert!(
            matches!(end, Some('H' | 'm')),
            "{when}: a sequence ends in {end:?}"
        );
    }
}

/// Keys that visit every pane and overlay.
const EVERYWHERE: &[&str] = &[
    "1", "j", "j", "enter", "2", "x", "x", "3", "x", "4", "x", "5", "x", "6", "}", "}", "x", "7",
    "c", "c", "c", ",", ",", ".", "+", "G", "g", "+", "1", "]", "]", "[", "G", "g", "L", "G",
    "esc", "?", "esc", "J", "j", "esc", "T", "j", "esc", "y n", "y c", "5", "y v", "6", "y m", "1",
    "y",
];

/// Visits everything at several sizes and checks each frame.
fn everywhere(app: &mut TestWorkbench, other: &mut Other, what: &str) {
    for (width, height) in [(120, 40), (80, 24), (200, 60), (40, 12), (29, 7)] {
        app.resize(width, height).settle();
        for keys in EVERYWHERE {
            app.keys(keys).settle();
            other.show(
                app.buffer(),
                &format!("{what}, {width}x{height}, after {keys}"),
            );
        }
        app.keys("esc esc esc").settle();
    }
}

/// Quotes a text as a JSON string.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}

/// Quotes a text as a YAML string. YAML readers reject raw control characters.
fn yaml(text: &str) -> String {
    let escaped = text.chars().map(|c| format!("\\U{:08X}", u32::from(c)));
    format!("\"{}\"", escaped.collect::<String>())
}

fn hostile(server: &Server) -> TestWorkbench {
    let evil = quoted(EVIL);
    let long = quoted(&format!("{EVIL} ").repeat(400));
    let transcript = format!(
        "{{\"id\":{evil},\"tags\":[{evil}],\"metadata\":{{\"m\":{evil}}},\"messages\":[\
         {{\"role\":\"system\",\"content\":{evil}}},{{\"role\":\"user\",\"content\":{long}}},\
         {{\"role\":\"assistant\",\"content\":{evil},\"tool_calls\":[{{\"id\":{evil},\"type\":\"function\",\"function\":{{\"name\":{evil},\"arguments\":{}}}}}]}},\
         {{\"role\":\"tool\",\"tool_call_id\":{evil},\"content\":{evil}}},{{\"role\":\"assistant\",\"content\":{evil}}}]}}\n{{\"id\":{},\"messages\":[]}}\nno {EVIL}\n",
        quoted(&json!({ EVIL: EVIL }).to_string()),
        quoted(&format!("second {EVIL}")),
    );
    let yaml = yaml(EVIL);
    let rubric = format!(
        "id: r\ndescription: {yaml}\nevals:\n  - {{ id: check, type: contains, description: {yaml}, params: {{ patterns: [{yaml}, nothing] }} }}\n  - {{ id: judged, type: llm_judge, description: {yaml}, params: {{ criteria: {yaml}, rubric: {yaml} }} }}\n"
    );
    let dicta = format!(
        "transcripts: [\"*.jsonl\"]\nrubrics: [r.yaml]\nlabels: labels.json\njudge: wire\njudges:\n  wire: {}\n",
        server.judge(", tools: [fetch_url]")
    );
    let labels = format!(
        "{{\"transcript\":{evil},\"rubric\":\"r\",\"eval\":\"check\",\"passed\":true,\"by\":{evil}}}\n"
    );
    let mut app = workbench(
        120,
        40,
        &[
            ("dicta.yaml", &dicta),
            ("t\u{1b}[2J\u{202e}.jsonl", &transcript),
            ("r.yaml", &rubric),
            ("labels.json", &labels),
        ],
    );
    app.settle();
    app
}

fn verdict() -> ServerReply {
    let verdict = json!({
        "citations": [{"source": EVIL, "quote": EVIL}, {"source": "message 4", "quote": EVIL}, {"source": "rubric", "quote": EVIL}, {"source": "message 99", "quote": "x"}, {"source": "fetch 1", "quote": EVIL}],
        "reasoning": EVIL, "passed": false, "score": 0.0,
    });
    ServerReply::Call("submit_verdict", verdict)
}

#[test]
fn hostile_workspace_shows_only_escaped_characters() {
    let server = Server::new(|n| match n % 3 {
        0 => ServerReply::Call(
            "fetch_url",
            json!({"url": format!("http://127.0.0.1/{EVIL}"), EVIL: EVIL}),
        ),
        1 => verdict(),
        _ => ServerReply::Text(EVIL.to_owned()),
    });
    let mut app = hostile(&server);
    let mut other = Other::new(app.buffer());
    other.show(app.buffer(), "the board");
    everywhere(&mut app, &mut other, "before a run");
    app.keys("R").settle();
    assert!(server.asked() >= 2, "{}", app.screen());
    everywhere(&mut app, &mut other, "after a run");
    let names = app
        .event_loop
        .screen
        .copied
        .iter()
        .filter(|text| text.starts_with("dicta run"));
    for command in names {
        assert!(
            !command.chars().any(char::is_control),
            "{command:?} would be typed into a shell"
        );
    }
    app.keys("v").settle();
    everywhere(&mut app, &mut other, "a replay");
    app.keys("q").settle();
    // A save with an error, with hostile text next to the error.
    app.save(
        "r.yaml",
        &format!("evals:\n  - {{ id: a, type: {} }}\n", yaml(EVIL)),
    );
    app.settle();
    everywhere(&mut app, &mut other, "a broken save");
    app.save("r.yaml", &format!("# {}\nid: r\nevals:\n  - {{ id: check, type: contains, params: {{ patterns: [A] }} }}\n", EVIL.replace(|c: char| c.is_control(), "")));
    app.settle();
    everywhere(&mut app, &mut other, "a flip");
    app.keys("1 /").send_msg(Msg::Pasted(EVIL.to_owned()));
    other.show(app.buffer(), "a pasted filter");
    app.keys("enter").settle();
    other.show(app.buffer(), "a filter");
    app.keys("esc esc 6 /")
        .send_msg(Msg::Pasted(EVIL.to_owned()));
    other.show(app.buffer(), "a pasted search");
    app.keys("enter").settle();
    other.show(app.buffer(), "a search");
    app.keys("esc esc ?").send_msg(Msg::Pasted(EVIL.to_owned()));
    other.show(app.buffer(), "pasted into help");
}

/// The Big List of Naughty Strings, joined pictures, wide and right-to-left text, and mixes with [`EVIL`].
fn list_hostile_strings(count: usize) -> Vec<String> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/campaign/corpora/naughty.zip"
    );
    let file = std::fs::File::open(path).expect("the corpus is in the repository");
    let mut archive = zip::ZipArchive::new(file).expect("a ZIP file");
    let member = archive.by_name("blns.json").expect("the list");
    let naughty: Vec<String> = serde_json::from_reader(member).expect("a list of texts");
    let others = [
        "👨\u{200d}👩\u{200d}👧 👍🏽 🇩🇪🇫🇷 1\u{fe0f}\u{20e3} ❤\u{fe0f}\u{200d}🔥",
        "日本語 한국어 中文 ｆｕｌｌ ﾊﾝｶｸ",
        "עברית مرحبا بالعالم שָׁלוֹם فارسی\u{200c}ها",
        "नमस्ते ภาษาไทย བོད་ཡིག ខ្មែរ தமிழ்",
        "ǅ ﬀ ½ ‰ ⒛ 𝔘𝔫𝔦 𐍈 𒀀 ☃",
    ];
    let mut random = fastrand::Rng::with_seed(4);
    let mixed = std::iter::repeat_with(|| {
        let base = &naughty[random.usize(..naughty.len())];
        let evil: Vec<char> = EVIL.chars().collect();
        let from = random.usize(..evil.len());
        let part: String = evil[from..].iter().take(random.usize(1..12)).collect();
        format!("{part}{base}{}{part}", others[random.usize(..others.len())])
    });
    let plain = naughty.iter().cloned().chain(others.map(str::to_owned));
    plain.chain(mixed).take(count).collect()
}

#[test]
fn another_terminal_shows_hostile_strings_as_they_are_drawn() {
    // The campaign sets the variable for its count.
    let is_full = std::env::var_os("DICTA_CAMPAIGN").is_some();
    let strings = list_hostile_strings(if is_full { 2000 } else { 620 });
    let transcripts = strings.chunks(50).enumerate().map(|(at, part)| {
        let messages = part
            .iter()
            .map(|text| json!({"role": "assistant", "content": text}));
        let messages: Vec<_> = messages.collect();
        let id = format!("t{at} {}", part[0]);
        format!(
            "{}\n",
            json!({"id": id, "tags": [part[1]], "messages": messages})
        )
    });
    let transcripts: String = transcripts.collect();
    let mut app = workbench(
        200,
        60,
        &[
            ("dicta.yaml", "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n"),
            ("t.jsonl", &transcripts),
            (
                "r.yaml",
                "id: r\nevals:\n  - { id: check, type: contains, params: { patterns: [A] } }\n",
            ),
        ],
    );
    app.settle();
    let mut other = Other::new(app.buffer());
    other.show(app.buffer(), "the cells");
    for at in 0..strings.chunks(50).count() {
        app.keys("6 + g").settle();
        other.show(app.buffer(), &format!("the top of transcript {at}"));
        let mut before = String::new();
        while before != app.screen() {
            before = app.screen();
            app.keys("pagedown").settle();
            other.show(app.buffer(), &format!("a page of transcript {at}"));
        }
        app.keys("esc 1 j").settle();
        other.show(app.buffer(), &format!("the cells after transcript {at}"));
    }
    app.resize(60, 16).settle();
    for text in strings.iter().step_by(if is_full { 1 } else { 10 }) {
        app.send_msg(Msg::Refused(text.clone()));
        other.show(app.buffer(), &format!("a refusal of {text:?}"));
    }
}

#[test]
fn frame_of_stacked_marks_stays_small() {
    // The screen draws at most four marks on a base, and fewer bytes per cell if all cells are that long.
    for unit in [
        "e\u{301}\u{302}\u{303}\u{304}",
        "é\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}",
        "A\u{1f3fb}\u{200d}",
        "😀\u{200d}😀",
        "\u{f66}\u{f92}\u{fb2}\u{f74}",
        "\u{e01}\u{e34}\u{e48}\u{e34}\u{e48}",
        "a\u{1d165}\u{1d166}\u{1e8d0}\u{1e8d1}",
        "\u{1e900}\u{1e944}\u{1e945}\u{1e946}\u{1e947}",
    ] {
        let message = quoted(&unit.repeat(20_000));
        let transcript = format!(
            "{{\"id\":\"t\",\"messages\":[{{\"role\":\"user\",\"content\":{message}}},{{\"role\":\"assistant\",\"content\":\"A\"}}]}}\n"
        );
        let mut app = workbench(
            200,
            60,
            &[
                ("dicta.yaml", "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n"),
                ("t.jsonl", &transcript),
                (
                    "r.yaml",
                    "id: r\nevals:\n  - { id: check, type: contains, params: { patterns: [A] } }\n",
                ),
            ],
        );
        app.settle();
        app.keys("6 + g").settle();
        let frame = app.buffer().clone();
        let hostile = frame
            .content
            .iter()
            .filter(|cell| !cell.symbol().is_ascii());
        assert!(hostile.count() > 500, "{}", app.screen());
        let bytes = Other::new(&frame).show(&frame, unit);
        assert!(bytes <= 128 << 10, "{unit:?}: {bytes} bytes");
    }
}

#[test]
fn hostile_server_error_shows_only_escaped_characters() {
    let body = json!({"error": {"message": EVIL, "type": EVIL, "code": EVIL}}).to_string();
    let server = Server::new(move |n| match n % 3 {
        0 => ServerReply::Refuse(400, "x-a: b", body.clone()),
        1 => ServerReply::Refuse(503, "retry-after: 1", EVIL.to_owned()),
        _ => ServerReply::Text(EVIL.to_owned()),
    });
    let mut app = hostile(&server);
    let mut other = Other::new(app.buffer());
    app.keys("R").settle();
    everywhere(&mut app, &mut other, "errors");
    for text in [EVIL, ""] {
        app.send_msg(Msg::WatchFailed(text.to_owned()));
        other.show(app.buffer(), "a failed watch");
        app.send_msg(Msg::EditorClosed(Err(text.into())));
        other.show(app.buffer(), "an editor's failure");
        app.send_msg(Msg::WorkerPanicked(text.to_owned()));
        other.show(app.buffer(), "a panic");
        app.send_msg(Msg::Refused(text.to_owned()));
        other.show(app.buffer(), "a refusal");
    }
    app.keys("L");
    other.show(app.buffer(), "the log");
}

#[test]
fn copied_text_has_visible_marks_unless_raw_text_is_requested() {
    let server = Server::new(|_| verdict());
    let mut app = hostile(&server);
    app.keys("y n y c 5 y v 6 y m y r").settle();
    let copied = &app.event_loop.screen.copied;
    assert_eq!(copied.len(), 5);
    let (raw, visible) = copied.split_last().expect("five texts");
    let hides = |c: char| c != '\n' && c != '\t' && (c.is_control() || is_invisible(c));
    for text in visible {
        assert!(!text.chars().any(hides), "{text:?}");
    }
    assert!(visible[3].contains("‹U+202E›"), "{:?}", visible[3]);
    assert!(raw.contains("\u{1b}[201~\rq"), "{raw:?}");
}
