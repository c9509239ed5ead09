//! `dicta export`: pages that hostile transcripts and judges cannot change, and tables.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use dicta::compare::FileDiff;
use dicta::event::{EvalSpec, RubricSpec, RunHeader};
use dicta::model::{Digest, Labels, Outcome, RunId, WallTime, make_visible};
use dicta::record::{
    DecisionStanding, EvalDecisions, History, State, StateDecision, StateTranscript,
};
use dicta::report::html::{PageComparison, PageSide, write_comparison};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use proptest::prelude::*;
use serde_json::json;

use crate::cli::{TestDir, text};
use crate::support::wire::{Dialect, Reply, WireServer};

/// Texts that would end their element, run a script, load something, or hide text, if a page contained them raw.
const HOSTILE: &str = "</pre></details></main><script>alert(1)</script><img src=x onerror=alert(1)>\" onload=\"alert(1)\" \
                       ' onclick='x' &lt;b&gt; &#0; <!-- ]]> <svg/onload=alert(1)> javascript:alert(1) \u{0}\u{1b}[31m\u{202e}txt\u{2066}\u{200b}";

const VOID: [&str; 4] = ["meta", "br", "hr", "col"];

/// A text of a page with the names of the elements around it.
#[derive(Debug)]
struct PageText {
    path: Vec<String>,
    text: String,
}

#[derive(Default)]
struct ParsedPage {
    open: Vec<String>,
    texts: Vec<PageText>,
    ids: Vec<String>,
    links: Vec<String>,
    elements: Vec<String>,
    problems: Vec<String>,
}

struct PageSink(RefCell<ParsedPage>);

impl ParsedPage {
    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = tag.name.to_string();
        let allowed = [
            "html", "head", "meta", "title", "style", "body", "header", "main", "section", "div",
            "p", "h1", "h2", "h3", "b", "i", "a", "span", "br", "ul", "li", "table", "tr", "th",
            "td", "details", "summary", "pre", "svg", "g", "line", "rect", "circle", "polyline",
            "text",
        ];
        if !allowed.contains(&name.as_str()) {
            self.problems.push(format!("element {name}"));
        }
        for attribute in &tag.attrs {
            let (key, value) = (
                attribute.name.local.to_string(),
                attribute.value.to_string(),
            );
            if key.starts_with("on") || key == "style" || key == "src" || key == "srcset" {
                self.problems.push(format!("attribute {key} of {name}"));
            }
            match key.as_str() {
                "href" => self.links.push(value),
                "id" => self.ids.push(value),
                _ => {}
            }
        }
        let is_in_svg = self.open.iter().any(|open| open == "svg");
        if !VOID.contains(&name.as_str()) && !tag.self_closing {
            self.open.push(name.clone());
        }
        self.elements.push(name.clone());
        match name.as_str() {
            "style" => TokenSinkResult::RawData(RawKind::Rawtext),
            "title" if !is_in_svg => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }
}

impl TokenSink for PageSink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut page = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return page.start(&tag),
            Token::TagToken(tag) => {
                let open = page.open.pop();
                if open.as_deref() != Some(&*tag.name) {
                    let problem = format!("{} closes {open:?}", tag.name);
                    page.problems.push(problem);
                }
            }
            Token::CharacterTokens(text) => {
                let path = page.open.clone();
                match page.texts.last_mut() {
                    Some(last) if last.path == path => last.text.push_str(&text),
                    _ => page.texts.push(PageText {
                        path,
                        text: text.to_string(),
                    }),
                }
            }
            Token::ParseError(error) => page.problems.push(error.to_string()),
            Token::NullCharacterToken => page.problems.push("a null character".to_owned()),
            Token::CommentToken(text) => page.problems.push(format!("comment {text}")),
            Token::DoctypeToken(_) | Token::EOFToken => {}
        }
        TokenSinkResult::Continue
    }
}

/// Parses a page, and checks that it has no script, no resource and no unbalanced element.
fn parse_page(html: &str) -> ParsedPage {
    let options = TokenizerOpts {
        exact_errors: true,
        ..TokenizerOpts::default()
    };
    let tokenizer = Tokenizer::new(PageSink(RefCell::default()), options);
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(html));
    while !queue.is_empty() {
        let _script = tokenizer.feed(&queue);
    }
    tokenizer.end();
    let page = tokenizer.sink.0.into_inner();
    assert!(page.problems.is_empty(), "{:?}", page.problems);
    assert!(page.open.is_empty(), "{:?}", page.open);
    for link in &page.links {
        let target = link.strip_prefix('#');
        let is_known = target.is_some_and(|id| page.ids.iter().any(|known| known == id));
        assert!(is_known, "{link}");
    }
    page
}

fn has_text(page: &ParsedPage, element: &str, part: &str) -> bool {
    let mut texts = page.texts.iter();
    texts.any(|text| {
        text.path.last().is_some_and(|last| last == element) && text.text.contains(part)
    })
}

/// A judge that fails an answer if the criteria contain `STRICT`, with a hostile reason.
fn hostile_judge() -> WireServer {
    WireServer::answering(Dialect::Openai, |request| {
        let is_strict = request.body.contains("STRICT");
        let verdict = json!({
            "citations": [{"source": "message 1", "quote": HOSTILE}],
            "reasoning": format!("strict {is_strict}: {HOSTILE}"),
            "passed": !is_strict,
            "score": if is_strict { 0.2 } else { 0.9 },
        });
        Reply::text(verdict.to_string())
    })
}

/// A workspace with hostile transcripts, in which an edit flipped every verdict.
fn hostile_workspace(server: &WireServer) -> TestDir {
    let test_dir = TestDir::new();
    let long = "x<".repeat(50_000);
    let transcript = |id: &str, answer: &str| {
        json!({"id": id, "messages": [
            {"role": "user", "content": HOSTILE},
            {"role": "assistant", "content": answer},
        ]})
        .to_string()
    };
    test_dir.write(
        "dicta.yaml",
        &format!(
            "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nlabels: [l.jsonl]\nruns: runs\njudge: m\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m }}\n",
            server.base_url()
        ),
    );
    let lines = [
        transcript("one\"><img src=x onerror=alert(1)>", "fine"),
        transcript("two", &long),
    ];
    test_dir.write("t.jsonl", &lines.join("\n"));
    let note = json!({"transcript": "two", "eval": "kind", "passed": false, "note": HOSTILE});
    test_dir.write("l.jsonl", &format!("{note}\n"));
    for criteria in ["The answer is kind.", "The answer is kind. STRICT"] {
        test_dir.write(
            "r.yaml",
            &format!(
                "id: r\nevals:\n  - {{ id: kind, type: llm_judge, params: {{ criteria: '{criteria}', min_score: 0.5 }} }}\n"
            ),
        );
        let run = test_dir.dicta(&["run", "-q", "-j", "1"]);
        let code = run.status.code();
        assert!(
            matches!(code, Some(0 | 1)),
            "{code:?} {}",
            text(&run.stderr)
        );
    }
    test_dir
}

fn export(test_dir: &TestDir, args: &[&str]) -> String {
    let name = args.last().expect("a file");
    let output = test_dir.dicta(&[&["export"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    std::fs::read_to_string(test_dir.path().join(name)).expect("the file")
}

#[test]
fn hostile_texts_stay_inside_their_element() {
    let server = hostile_judge();
    let test_dir = hostile_workspace(&server);
    let html = export(&test_dir, &["@", "-o", "page.html"]);
    let page = parse_page(&html);
    assert!(!html.contains("<script") && !html.contains("<img"));
    assert!(
        !html.contains("http://") && !html.contains("https://"),
        "no address but those of texts"
    );
    let visible = make_visible(HOSTILE, true);
    // The reasons of both sides of the flip, and of the decision.
    for reason in [
        format!("strict true: {visible}"),
        format!("strict false: {visible}"),
    ] {
        assert!(has_text(&page, "div", &reason), "{reason}");
    }
    // The note of the label, the prompt and the judge's reply.
    assert!(has_text(&page, "p", &visible));
    assert!(
        has_text(&page, "pre", &visible),
        "the prompt has the transcript"
    );
    assert!(has_text(&page, "pre", &"x<".repeat(50_000)));
    assert!(has_text(&page, "th", "one\"><img src=x onerror=alert(1)>"));
    // The answer, the plots and the folded traces are there.
    assert!(has_text(
        &page,
        "p",
        "Better: 1 flip now agrees with the label, and 0 no longer agree."
    ));
    assert!(page.elements.iter().filter(|name| *name == "svg").count() >= 2);
    for heading in ["prompt, turn 1", "verdict"] {
        assert!(has_text(&page, "summary", heading), "{heading}");
    }
    assert!(
        html.contains(
            "default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;; img-src data:"
        )
    );
    // The same state has the same page.
    assert_eq!(html, export(&test_dir, &["@", "-o", "again.html"]));
}

#[test]
fn page_of_the_demo_has_the_figures_of_show() {
    let test_dir = TestDir::new();
    let run = test_dir.dicta(&["run", "--demo", "-q"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let html = export(&test_dir, &["@", "--demo", "-o", "demo.html"]);
    let page = parse_page(&html);
    let all: String = page.texts.iter().map(|text| text.text.as_str()).collect();
    let shown = text(&test_dir.dicta(&["show", "@", "--demo"]).stdout);
    let counts = shown
        .lines()
        .find(|line| line.starts_with('✓') && line.contains(" pass "))
        .expect("the counts");
    for count in counts.split("   ") {
        assert!(all.contains(count), "{count}: {shown}");
    }
    let rate = shown.lines().find(|line| line.starts_with("pass rate "));
    let rate = rate.expect("the rate").split(" (").next().expect("text");
    assert!(all.contains(rate), "{rate}");
    assert!(has_text(&page, "summary", "Judge trace of quick"));
    for heading in ["prompt, turn 2", "function call", "fetched content"] {
        assert!(has_text(&page, "summary", heading), "{heading}");
    }
    // On paper, failures show their judge traces, and other passes do not.
    for printed in [
        "<details><summary>Judge trace of quick",
        "<details class=\"unprinted\"><summary>Judge trace of quick",
        "<details class=\"unprinted\"><summary class=\"key\">prompt, turn 2",
    ] {
        assert!(html.contains(printed), "{printed}");
    }
    assert!(html.contains("details:not(.unprinted)::details-content"));
}

#[test]
fn table_has_a_row_for_each_decision() {
    let server = hostile_judge();
    let test_dir = hostile_workspace(&server);
    let csv = export(&test_dir, &["@", "-o", "rows.csv"]);
    let printed = test_dir.dicta(&["export", "@", "-o", "csv=-"]);
    assert_eq!(text(&printed.stdout), csv);
    let note = text(&printed.stderr);
    assert!(note.contains("note: standard output has "), "{note}");
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let header: Vec<String> = rows
        .headers()
        .expect("a header")
        .iter()
        .map(str::to_owned)
        .collect();
    assert_eq!(
        header.join(","),
        "transcript,rubric,eval,eval_type,message,outcome,passed,score,label,agrees,explanation,run,judged_at,cost_usd,judge,revision,shot,flags"
    );
    let rows: Vec<csv::StringRecord> = rows.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), 2);
    let two = rows.iter().find(|row| &row[0] == "two").expect("a row");
    let fields: Vec<&str> = two.iter().collect();
    assert_eq!(
        fields[1..10],
        [
            "r",
            "kind",
            "llm_judge",
            "",
            "fail",
            "false",
            "0.2",
            "false",
            "true"
        ]
    );
    assert_eq!(
        fields[10],
        format!("strict true: {HOSTILE}"),
        "values are not changed"
    );
    assert!(
        fields[11].len() > 20 && fields[12].starts_with("20"),
        "{fields:?}"
    );
    assert_eq!(fields[14], "m");
    // The state before the edit, and one decision of it.
    for cell in ["two/", "two/r/kind~m", "*/r/kind"] {
        let args = ["@2", cell, "--format", "csv", "-o", "before"];
        let before = export(&test_dir, &args);
        assert!(before.contains(",pass,true,0.9,false,false,"), "{before}");
        assert_eq!(before.contains("one\""), cell.starts_with('*'));
    }
}

#[test]
fn pending_decisions_repeats_and_failed_attempts_are_shown() {
    let server = WireServer::answering(Dialect::Openai, |request| {
        if request.body.contains("BROKEN") {
            return Reply::text("I can't decide.");
        }
        let verdict = json!({"citations": [], "reasoning": "It is.", "passed": true, "score": 0.8});
        Reply::text(verdict.to_string())
    });
    let test_dir = TestDir::new();
    let judged = crate::cli::judged_by(&server);
    let eval = |id: &str, keys: &str| format!("  - {{ id: {id}, type: llm_judge, {keys} }}\n");
    let evals = [
        eval("often", "repeat: 3, params: { criteria: It is kind. }"),
        eval("broken", "params: { criteria: BROKEN. }"),
    ];
    test_dir.workspace(&judged, &evals.concat());
    let run = test_dir.dicta(&["run", "-q", "-j", "1", "--where", "transcript:one"]);
    assert!(run.status.code() != Some(2), "{}", text(&run.stderr));
    let page = parse_page(&export(&test_dir, &["@", "-o", "page.html"]));
    let csv = export(&test_dir, &["@", "-o", "rows.csv"]);
    assert!(has_text(&page, "p", "… 2 pending"), "{csv}");
    assert!(has_text(&page, "h3", "Pending"));
    // The third repeat is not necessary for a majority of two.
    for repeat in ["repeat 1: ✓", "repeat 2: ✓"] {
        let title = format!("Judge trace of m, {repeat} (1 turn)");
        assert!(has_text(&page, "summary", &title), "{title}");
    }
    assert!(has_text(&page, "summary", "one/r/broken"));
    assert!(has_text(&page, "pre", "I can't decide."), "the reply");
    let csv = export(&test_dir, &["@", "-o", "rows.csv"]);
    assert!(
        csv.contains("\ntwo,r,often,llm_judge,,pending,,,,,,,,,,"),
        "{csv}"
    );
    assert!(
        csv.contains("\none,r,often,llm_judge,,pass,true,0.8,"),
        "{csv}"
    );
}

#[test]
fn page_compares_with_the_baseline_and_shows_runs_and_result_files() {
    let server = hostile_judge();
    let test_dir = hostile_workspace(&server);
    let set = test_dir.dicta(&["history", "--baseline", "@2"]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    let html = export(&test_dir, &["@", "-o", "page.html"]);
    let page = parse_page(&html);
    // The state before is the baseline, so the page compares once.
    assert_eq!(html.matches("class=\"answer").count(), 1);
    assert!(has_text(&page, "p", "the baseline (state 1) → @ (state 2)"));
    assert!(has_text(&page, "td", "1 (baseline)"));
    assert!(has_text(&page, "td", "r/kind: criteria or scoring guide"));
    // The edit of the rubric.
    assert!(has_text(&page, "pre", "The answer is kind. STRICT"));
    // A third state is compared with both.
    test_dir.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: kind, type: llm_judge, params: { criteria: 'The answer is kind. STRICT', min_score: 0.1 } }\n",
    );
    let run = test_dir.dicta(&["run", "-q", "-o", "results.jsonl"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let html = export(&test_dir, &["@", "-o", "page.html"]);
    let page = parse_page(&html);
    assert_eq!(html.matches("class=\"answer").count(), 2);
    assert!(has_text(&page, "p", "0.20 ≥ 0.10, was < 0.50"));
    assert!(has_text(
        &page,
        "p",
        "the state before (state 2) → @ (state 3)"
    ));
    // The comparison has a page of its own.
    let compared = test_dir.dicta(&["compare", "@3", "@", "--format", "html"]);
    assert!(compared.status.success(), "{}", text(&compared.stderr));
    let html = text(&compared.stdout);
    let page = parse_page(&html);
    assert!(has_text(&page, "h1", "dicta compare @3 @"));
    assert!(has_text(&page, "p", "@3 (state 1) → @ (state 3)"));
    // A run and a result file have no history.
    let listed = text(&test_dir.dicta(&["runs", "--format", "jsonl"]).stdout);
    let last = listed.lines().last().expect("a run");
    let last: serde_json::Value = serde_json::from_str(last).expect("JSON");
    let letters = last["letters"].as_str().expect("letters");
    for name in [letters, "results.jsonl"] {
        let page = parse_page(&export(&test_dir, &[name, "-o", "page.html"]));
        let verdict = if name == letters {
            "strict false: "
        } else {
            "strict true: "
        };
        assert!(has_text(&page, "div", verdict), "{name}");
        assert!(!has_text(&page, "h2", "Edits"));
    }
}

#[test]
fn wrong_state_cell_or_file_is_refused_and_nothing_is_written() {
    let test_dir = TestDir::new();
    test_dir.workspace("", crate::cli::NAMES_A_RELEASE);
    let refused = |args: &[&str], why: &str| {
        let output = test_dir.dicta(&[&["export"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let stderr = text(&output.stderr)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(stderr.contains(why), "{args:?}: {stderr}");
    };
    refused(&["-o", "page.html"], "there is no state yet");
    let run = test_dir.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    refused(&["@7", "-o", "page.html"], "there is no `@7`");
    refused(
        &["@", "on3/r/names", "-o", "page.html"],
        "did you mean `one/r/names`?",
    );
    refused(
        &["@", "-o", "page.txt"],
        "add --format html, csv, bundle, cast or otlp",
    );
    refused(
        &["@", "--format", "csv", "-o", "t.jsonl"],
        "which dicta reads",
    );
    refused(&["@"], "--output");
    assert!(!test_dir.path().join("page.html").exists());
    // The first state has nothing to compare with.
    let html = export(&test_dir, &["-o", "page.html"]);
    let page = parse_page(&html);
    assert!(has_text(
        &page,
        "p",
        "There is no earlier state and no baseline, so nothing is compared."
    ));
}

/// Returns a state with one decision, whose names are `text`.
fn state_named(text: &str, outcome: Outcome) -> State {
    let started = WallTime("2026-11-22T21:09:00Z".to_owned());
    let mut header = RunHeader::new(
        RunId("20261122T210900Z-kvqa".to_owned()),
        started,
        "/w".into(),
    );
    header.rubrics.push(RubricSpec {
        id: text.to_owned(),
        path: "r.yaml".into(),
        threshold: None,
    });
    let digest = Digest::hash_bytes(b"same");
    header
        .evals
        .push(EvalSpec::new(0, text, "regex", digest.clone()));
    let decision = StateDecision {
        transcript: 0,
        eval: 0,
        message: None,
        standing: DecisionStanding::Decided {
            outcome,
            score: None,
        },
        cells: Box::default(),
        slots: Box::default(),
        failed_rerun: None,
        edited: false,
    };
    State {
        identities: Vec::new(),
        header: Arc::new(header),
        transcripts: Arc::new(vec![StateTranscript {
            id: text.into(),
            digest,
        }]),
        evals: vec![Arc::new(EvalDecisions {
            decisions: vec![decision],
        })],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_text_reaches_the_page_and_nothing_else_does(
        text in prop_oneof![".*", "[<>&\"'/!a-z \\-=;#\u{0}\u{202e}\r\n]{0,40}"]
    ) {
        let (before, after) = (state_named(&text, Outcome::Fail), state_named(&text, Outcome::Pass));
        let side = |state| PageSide { name: format!("a{text}"), state };
        let labels = Labels::default();
        let history = History::default();
        let diff = FileDiff { path: "r.yaml".into(), diff: format!("\n{text}.") };
        let comparison =
            PageComparison::new(side(&before), side(&after), &labels, &history, vec![diff]);
        let mut html = Vec::new();
        write_comparison(&mut html, &format!("x{text}"), &comparison, &labels).expect("memory");
        let page = parse_page(std::str::from_utf8(&html).expect("UTF-8"));
        let text_of = |element: &str| {
            let mut texts = page.texts.iter();
            let found = texts.find(|one| one.path.last().is_some_and(|last| last == element));
            found.map(|one| one.text.clone())
        };
        prop_assert_eq!(text_of("h1"), Some(make_visible(&format!("x{text}"), true).into_owned()));
        prop_assert_eq!(text_of("title"), Some(make_visible(&format!("x{text}"), true).into_owned()));
        // The tokenizer keeps the first line break of the element, which a browser leaves out.
        let diff = make_visible(&format!("\n{text}."), true).into_owned();
        prop_assert_eq!(text_of("pre"), Some(format!("\n{diff}")));
        prop_assert!(page.elements.iter().filter(|name| *name == "details").count() == 1);
    }
}

/// Returns a Chromium of this machine, if there is one.
fn find_chromium() -> Option<PathBuf> {
    let named = std::env::var_os("CHROME").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).flat_map(|folder| {
        ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name))
    });
    named
        .into_iter()
        .chain(installed)
        .find(|path| path.is_file())
}

/// Opens a page in Chromium without network, and returns what it prints.
fn open_in_chromium(chromium: &Path, folder: &Path, args: &[&str], page: &Path) -> String {
    let output = Command::new(chromium)
        .env("HOME", folder)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .args(args)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("Chromium runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn page_fits_two_widths_and_prints_in_chromium() {
    let Some(chromium) = find_chromium() else {
        println!(
            "skipped: no chromium, chromium-browser or google-chrome in PATH, and CHROME is not set"
        );
        return;
    };
    let server = hostile_judge();
    let test_dir = hostile_workspace(&server);
    let html = export(&test_dir, &["@", "-o", "page.html"]);
    let folder = test_dir.path();
    // The page itself runs no script. A test page around it measures a frame of each width, with all details open.
    let opened = html
        .replace("<details", "<details open")
        .replace("open open", "open");
    let policy = opened.find("<meta http-equiv").expect("a policy");
    let end = policy + opened[policy..].find('>').expect("its end") + 1;
    let measure = "<script>addEventListener('load',()=>{const e=document.documentElement;\
                   const wide=[...document.querySelectorAll('body *')].filter(x=>!x.closest('.wide')&&x.getBoundingClientRect().right>e.clientWidth+1);\
                   document.title=`width ${e.clientWidth} scroll ${e.scrollWidth} wide ${wide.length} ${wide.slice(0,3).map(x=>x.tagName+'.'+x.className).join(' ')}`})</script>";
    let measured = format!("{}{}</body></html>", &opened[..policy], &opened[end..]);
    let measured = measured.replacen("</head>", &format!("{measure}</head>"), 1);
    for width in [400, 1400] {
        // Chromium's own window is never narrower than 500 px, so a frame has the width.
        test_dir.write("inner.html", &measured);
        let outer = test_dir.write(
            &format!("outer{width}.html"),
            &format!(
                "<body style='margin:0'><iframe id=f src=inner.html style='border:0;width:{width}px;height:900px'></iframe>\
                 <script>f.onload=()=>setTimeout(()=>document.title=f.contentDocument.title,50)</script>"
            ),
        );
        let window = format!("--window-size={},900", width + 100);
        let args = [
            "--dump-dom",
            "--virtual-time-budget=5000",
            "--allow-file-access-from-files",
            &window,
        ];
        let dom = open_in_chromium(&chromium, folder, &args, &outer);
        let title = dom.split("<title>").nth(1).unwrap_or_default();
        let title = title.split("</title>").next().unwrap_or_default();
        let expected = format!("width {width} scroll {width} wide 0");
        assert_eq!(title.trim_end(), expected, "{dom}");
    }
    // In print, the other folded parts are open: the page has as many sheets as one whose details are open.
    let print = |name: &str| {
        let pdf = folder.join(format!("{name}.pdf"));
        let print = format!("--print-to-pdf={}", pdf.display());
        let args = [print.as_str(), "--no-pdf-header-footer"];
        open_in_chromium(&chromium, folder, &args, &folder.join(name));
        let pdf = std::fs::read(pdf).expect("a PDF");
        assert!(pdf.starts_with(b"%PDF"), "{} bytes", pdf.len());
        let pdf = String::from_utf8_lossy(&pdf).into_owned();
        pdf.matches("/Type /Page").count()
    };
    let unprinted = "<details open class=\"unprinted\">";
    assert!(opened.contains(unprinted), "{opened}");
    let opened = opened.replace(unprinted, &unprinted.replace(" open", ""));
    test_dir.write("opened.html", &opened);
    let sheets = print("page.html");
    assert!(sheets > 1, "{sheets}");
    assert_eq!(sheets, print("opened.html"));
}
