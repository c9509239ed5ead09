//! Hostile text in the output of commands and on the screen, and hidden text in files (T1, T2, T5, J3, J6).

use std::path::Path;

use dicta::model::{count_invisible, is_invisible, make_visible};
use dicta::untrusted;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::corpora;
use crate::goals::combine;
use crate::pty::Pty;
use crate::sandbox::{Sandbox, text};
use crate::support::wire::{Dialect, Reply, WireServer};
use crate::terminals::conclude;
use crate::{Campaign, Measured};

/// Characters that a terminal obeys, that turn the reading direction, or that are invisible.
const PIECES: [&str; 24] = [
    "\u{1b}]0;title\u{7}",
    "\u{1b}]8;;https://evil.example/\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{1b}]52;c;cm0gLXJm\u{7}",
    "\u{1b}[2J\u{1b}[1;1H",
    "\u{1b}[31m",
    "\u{1b}c",
    "\u{1b}Pq\u{1b}\\",
    "\u{9b}31m",
    "\u{9d}0;x\u{9c}",
    "\r",
    "\u{8}\u{8}",
    "\u{7f}",
    "\u{85}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\u{e0041}\u{e007f}",
    "\u{2028}",
    "\u{ad}",
    "\u{fe0f}\u{fe0f}",
    "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}",
    "👨\u{200d}👩\u{200d}👧 中文 עברית",
    "plain",
];

/// The longest sequence of a copy: its beginning, and 64 KiB of text in base64.
const MAX_COPY: usize = "52;c;".len() + (64_usize << 10).div_ceil(3) * 4;

/// The naughty strings, and mixes of hostile pieces; always the same ones.
pub(crate) fn hostile_strings(campaign: &Campaign, count: usize) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(count as u64);
    let naughty = corpora::naughty_strings(campaign);
    let mixed = std::iter::repeat_with(move || {
        let pieces = (0..random.usize(1..6)).map(|_| PIECES[random.usize(..PIECES.len())]);
        pieces.collect::<String>()
    });
    naughty
        .into_iter()
        .chain(mixed)
        .filter(|text| !text.trim().is_empty() && !text.contains('\0'))
        .take(count)
        .collect()
}

/// The first character or sequence of an output to a terminal that is not dicta's own.
fn find_foreign(output: &str) -> Option<String> {
    let mut rest = output;
    while let Some(at) = rest.find(|c: char| {
        (c.is_control() && c != '\n' && c != '\r' && c != '\t')
            || (is_invisible(c) && c != '\u{fe0f}')
    }) {
        let from = &rest[at..];
        let Some(style) = from.strip_prefix("\u{1b}[") else {
            return Some(from.chars().take(12).collect());
        };
        let end = style.find(|c: char| !matches!(c, '0'..='9' | ';' | ':'))?;
        // Colours, and the clearing of the progress line.
        if !style[end..].starts_with(['m', 'K']) {
            return Some(from.chars().take(12).collect());
        }
        rest = &style[end + 1..];
    }
    None
}

/// `dicta ARGS` on a terminal; returns what it wrote.
fn run_on_terminal(sandbox: &Sandbox, args: &[&str]) -> String {
    let mut pty = Pty::with(args, |command| {
        command.cwd(sandbox.path());
        command.env("DICTA_DATA_DIR", sandbox.data_dir());
    });
    pty.ended();
    // The terminal itself turns each line feed into both line ends.
    String::from_utf8_lossy(&pty.written).replace("\r\n", "\n")
}

/// Strings in records, names, labels, settings and arguments, as commands print them (T1).
pub(crate) fn measure_output(campaign: &Campaign) -> Measured {
    let strings = hostile_strings(campaign, campaign.count(120, 2000));
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(0, "judge: rules\nlabels: labels.jsonl\n");
    let record = |at: usize, name: &str| {
        json!({"id": format!("t{at} {name}"), "tags": [name], "metadata": {"m": name}, "messages": [
            {"role": "user", "content": name},
            {"role": "assistant", "content": name, "tool_calls": [
                {"id": name, "type": "function", "function": {"name": name, "arguments": json!({name: name}).to_string()}}
            ]},
        ]})
    };
    let lines = strings
        .iter()
        .enumerate()
        .map(|(at, name)| format!("{}\n", record(at, name)));
    sandbox.write("t.jsonl", &lines.collect::<String>());
    let labels = strings.iter().enumerate().map(|(at, name)| {
        let label = json!({"transcript": format!("t{at} {name}"), "rubric": "r", "eval": "names", "passed": true, "by": name, "note": name});
        format!("{label}\n")
    });
    sandbox.write("labels.jsonl", &labels.collect::<String>());
    let mut problems = Vec::new();
    let (mut outputs, mut marked) = (0, 0);
    let mut judge = |what: &str, output: &str| {
        outputs += 1;
        if let Some(foreign) = find_foreign(output) {
            problems.push(format!("{what}: {foreign:?}"));
        }
    };
    for args in [
        &["run", "--no-cache"][..],
        &["run", "--no-cache", "--stream", "-v"],
        &["show", "@"],
        &["show", "@", "t1*"],
        &["check"],
        &["runs"],
        &["import", "t.jsonl"],
        &["agree"],
        &["history"],
        &["replay", "@", "--print", "--speed", "0"],
        &["run", "--dry-run"],
        &["run", "--no-cache", "--format", "markdown"],
        &["run", "--no-cache", "--format", "junit"],
    ] {
        let output = run_on_terminal(&sandbox, args);
        marked += usize::from(output.contains("‹U+"));
        judge(&args.join(" "), &output);
    }
    // Each string as a command, a value of an option and a name of a cell; all of these are errors.
    for (at, name) in strings.iter().enumerate() {
        let args = match at % 5 {
            0 => vec![name.as_str()],
            1 => vec!["run", "--where", name.as_str()],
            2 => vec!["show", "@", name.as_str()],
            3 => vec!["check", name.as_str()],
            _ => vec!["run", "--format", name.as_str()],
        };
        judge(&args.join(" "), &run_on_terminal(&sandbox, &args));
    }
    // At least two forms of `run`, `show` and `replay` print the texts of the transcripts.
    if marked < 4 {
        problems.push(format!(
            "{marked} outputs contain marks of hidden characters"
        ));
    }
    let figure = format!("{} strings in {outputs} outputs of commands", strings.len());
    let here = conclude(&figure, &problems);
    combine(
        campaign,
        here,
        &[
            (
                "lib",
                &[
                    "nothing_a_terminal_obeys_remains",
                    "hostile_workspace_shows_only_escaped_characters",
                    "hostile_server_error_shows_only_escaped_characters",
                    "hostile_text_in_every_field_breaks_no_span",
                    "hostile_text_is_shown_and_never_raw",
                    "another_terminal_shows_hostile_strings_as_they_are_drawn",
                ],
            ),
            (
                "it",
                &[
                    "hidden_characters_of_arguments_do_not_reach_the_terminal",
                    "imported_record_does_not_reach_the_terminal_raw",
                ],
            ),
        ],
    )
}

/// Each hidden character of random texts has a mark (T2).
pub(crate) fn measure_marks(campaign: &Campaign) -> Measured {
    let wanted = campaign.count(2000, 100_000);
    let mut random = fastrand::Rng::with_seed(2);
    let mut problems = Vec::new();
    let mut hidden = 0;
    for _ in 0..wanted {
        let source: String = (0..random.usize(1..40))
            .map(|_| match random.u8(..4) {
                0 => PIECES[random.usize(..PIECES.len())]
                    .chars()
                    .next()
                    .unwrap_or('x'),
                1 => random.char('\0'..='\u{ff}'),
                2 => random.char('\u{2000}'..='\u{206f}'),
                _ => random.char(..),
            })
            .collect();
        let shown = make_visible(&source, false);
        let mut rest = &*shown;
        // Read the shown text next to the source: each character is itself or a mark that names it.
        let mut lost = None;
        let mut before = 'x';
        for c in source.chars() {
            let code = format!("‹U+{:04X}›", u32::from(c));
            let picture = match c {
                '\u{7f}' => '␡',
                '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(c),
                _ => c,
            };
            let is_mark = picture != c || rest.starts_with(&code);
            if let Some(after) = rest
                .strip_prefix(&code)
                .or_else(|| rest.strip_prefix(picture))
            {
                rest = after;
            } else {
                lost = Some(c);
                break;
            }
            hidden += usize::from(is_mark);
            // A single emoji selector after a character that has an emoji form belongs to it.
            let is_spelling = c == '\u{fe0f}' && before != '\u{fe0f}';
            if !is_mark && !is_spelling && (c.is_control() || is_invisible(c)) {
                lost = Some(c);
            }
            before = c;
        }
        if lost.is_some() || !rest.is_empty() {
            problems.push(format!("{source:?} as {shown:?}: {lost:?}"));
        }
    }
    let figure = format!("{wanted} random texts with {hidden} hidden characters");
    let here = conclude(&figure, &problems);
    combine(
        campaign,
        here,
        &[(
            "lib",
            &[
                "controls_become_visible_and_letters_stay",
                "default_ignorable_characters_are_those_of_unicode",
                "hostile_characters_are_marks_with_their_width",
                "copied_text_has_visible_marks_and_raw_text_does_not",
                "copied_text_has_visible_marks_unless_raw_text_is_requested",
            ],
        )],
    )
}

/// Links, titles and the clipboard (T5).
pub(crate) fn measure_clipboard(campaign: &Campaign) -> Measured {
    const OSC: &str = "\u{1b}]";
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(0, "judge: rules\n");
    let evil = PIECES.concat();
    let long = format!("{evil}{}", "long text ".repeat(20_000));
    let lines = [("one", &evil), ("two", &long)].map(|(id, content)| {
        let record = json!({"id": id, "messages": [
            {"role": "user", "content": evil},
            {"role": "assistant", "content": content},
        ]});
        format!("{record}\n")
    });
    sandbox.write("t.jsonl", &lines.concat());
    let mut pty = Pty::with(&["open", "."], |command| {
        command.cwd(sandbox.path());
        command.env("DICTA_DATA_DIR", sandbox.data_dir());
    });
    let mut problems = Vec::new();
    pty.until_shown("names");
    for keys in ["R", "6", "+", "G", "g", "+"] {
        pty.type_in(keys);
    }
    pty.until_shown("✗ 4");
    for (key, title) in [("?", "┏ help "), ("L", "┏ log ")] {
        pty.type_in(key);
        pty.until_shown(title);
        // The next key waits until it is closed: right after `esc`, it would be a key with alt.
        pty.type_in("\u{1b}");
        pty.until("the closed overlay", |pty| !pty.contents().contains(title));
    }
    pty.type_in("5").type_in("1");
    pty.until_shown("names");
    let before = String::from_utf8_lossy(&pty.written).into_owned();
    if let Some(at) = before.find(OSC) {
        let sequence: String = before[at..].chars().take(20).collect();
        problems.push(format!("without a copy key: {sequence:?}"));
    }
    let mut copies = 0;
    for keys in ["yn", "yc", "ym", "yr", "jym", "jyr"] {
        pty.type_in(keys);
    }
    pty.until("a copy", |pty| {
        String::from_utf8_lossy(&pty.written).contains("\u{1b}]52;")
    });
    kill_process(pty.id(), Signal::TERM).expect("sent");
    pty.ended();
    let written = String::from_utf8_lossy(&pty.written).into_owned();
    for rest in written.split(OSC).skip(1) {
        let content = rest.split(['\u{7}', '\u{1b}']).next().unwrap_or_default();
        copies += 1;
        if !content.starts_with("52;") {
            problems.push(format!(
                "a sequence {:?}",
                &content[..content.len().min(20)]
            ));
        }
        if content.len() > MAX_COPY {
            problems.push(format!("a copy of {} bytes", content.len()));
        }
    }
    if copies == 0 {
        problems.push("no copy was made".to_owned());
    }
    let figure = format!("{copies} copies after keys, none before, no link and no title");
    combine(
        campaign,
        conclude(&figure, &problems),
        &[("lib", &["text_too_large_for_clipboard_is_written_to_file"])],
    )
}

/// Invented quotes are flagged wherever a verdict is shown (J3).
pub(crate) fn measure_citations(campaign: &Campaign) -> Measured {
    let count = campaign.count(8, 100);
    let judge = WireServer::answering(Dialect::Openai, |request| {
        // The prompt contains the number of the transcript.
        let number = request.body.split("number-").nth(1).unwrap_or_default();
        let number: String = number.chars().take_while(char::is_ascii_digit).collect();
        Reply::text(
            json!({"citations": [
                {"source": "message 1", "quote": format!("This is number-{number}.")},
                {"source": "message 1", "quote": format!("An invented quote {number}")},
            ], "reasoning": "It greets.", "passed": true, "score": 1.0})
            .to_string(),
        )
    });
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(
        0,
        &format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m }}\n",
            judge.base_url()
        ),
    );
    sandbox.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: names, type: llm_judge, params: { criteria: It greets. } }\n",
    );
    let lines = (0..count).map(|number| {
        let record = json!({"id": format!("t{number}"), "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": format!("This is number-{number}.")},
        ]});
        format!("{record}\n")
    });
    sandbox.write("t.jsonl", &lines.collect::<String>());
    let mut problems = Vec::new();
    let output = sandbox.dicta(&[
        "run",
        "-q",
        "--format",
        "jsonl",
        "-o",
        "report.md",
        "-o",
        "report.xml",
        "-o",
        "report.csv",
    ]);
    let rows: Vec<Value> = text(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let results: Vec<&Value> = rows.iter().filter(|row| row["type"] == "result").collect();
    let marked = results.iter().filter(|row| {
        let found = |at: usize| row["citations"][at]["found"].as_bool();
        (found(0), found(1)) == (Some(true), Some(false))
    });
    let marked = marked.count();
    if marked != count {
        problems.push(format!(
            "{marked} of {count} results in JSON: {}",
            text(&output.stderr)
        ));
    }
    let summary = rows.iter().find(|row| row["type"] == "summary");
    if summary.and_then(|row| row["flagged"].as_u64()) != Some(count as u64) {
        problems.push(format!("the summary: {summary:?}"));
    }
    let strict = sandbox.dicta(&["run", "-q", "--strict"]);
    if strict.status.code() != Some(1) {
        problems.push(format!("--strict exits with {:?}", strict.status.code()));
    }
    let human = text(&sandbox.dicta(&["show", "@", "-v"]).stdout);
    sandbox.dicta(&["export", "@", "-o", "page.html"]);
    let read = |name: &str| text(&sandbox.read(name).unwrap_or_default());
    for (name, content) in [
        ("human", human),
        ("Markdown", read("report.md")),
        ("JUnit", read("report.xml")),
        ("CSV", read("report.csv")),
        ("HTML", read("page.html")),
    ] {
        let flags = count_flags(&content);
        if flags < count {
            problems.push(format!("{flags} flags in {name}"));
        }
    }
    // The screen: the trace of a cell shows the mark next to the quote.
    let mut pty = Pty::with(&["open", "."], |command| {
        command.cwd(sandbox.path());
        command.env("DICTA_DATA_DIR", sandbox.data_dir());
    });
    pty.until_shown("names").type_in("5+");
    pty.until("the flag of an invented quote", |pty| {
        count_flags(&pty.contents()) > 0
    });
    kill_process(pty.id(), Signal::TERM).expect("sent");
    pty.ended();
    conclude(
        &format!(
            "{count} invented quotes next to {count} real ones in JSON, text, Markdown, JUnit, CSV, HTML and on the screen"
        ),
        &problems,
    )
}

/// The number of places that tell that a quote does not occur.
fn count_flags(content: &str) -> usize {
    content.matches("NOT FOUND").count()
}

/// Planted hidden text is counted, and clean files have none (J6).
pub(crate) fn measure_hidden_text(campaign: &Campaign) -> Measured {
    let files = list_clean_files(&campaign.repository, campaign.count(40, 200));
    let mut problems = Vec::new();
    for (name, content) in &files {
        let counted = count_invisible(content);
        if counted > 0 {
            problems.push(format!("{name}: {counted} hidden characters"));
        }
        // The same text as a page, alone and after an element that a browser does not show.
        let escaped = content.replace('&', "&amp;").replace('<', "&lt;");
        let clean = format!("<html><body><main><pre>{escaped}</pre></main></body></html>");
        let hidden = clean.replacen("<pre>", "<p hidden>planted words</p><pre>", 1);
        let found = [clean, hidden].map(|page| list_hidden_texts(&page));
        if !found[0].is_empty() || found[1] != ["planted words"] {
            problems.push(format!("{name} as a page: {found:?}"));
        }
    }
    let mut random = fastrand::Rng::with_seed(6);
    let planted: Vec<char> = ('\u{e0041}'..='\u{e005a}')
        .chain("\u{200b}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2060}\u{2066}\u{2067}\u{2068}\u{2069}\u{ad}\u{61c}\u{180e}\u{3164}\u{ffa0}\u{2061}\u{2064}".chars())
        .collect();
    let mut plants = 0;
    for (name, content) in &files {
        let mut text: Vec<char> = content.chars().take(2000).collect();
        let count = random.usize(1..=20);
        for _ in 0..count {
            let at = random.usize(..=text.len());
            text.insert(at, planted[random.usize(..planted.len())]);
        }
        plants += count;
        let found = count_invisible(&text.iter().collect::<String>());
        if found != count {
            problems.push(format!("{name}: {found} of {count} planted characters"));
        }
    }
    let figure = format!(
        "{plants} planted characters and {0} planted elements found, none in {0} clean files",
        files.len()
    );
    if files.len() < campaign.count(40, 200) {
        problems.push("too few files".to_owned());
    }
    combine(
        campaign,
        conclude(&figure, &problems),
        &[(
            "lib",
            &[
                "text_hidden_by_attributes_and_styles_is_counted",
                "visible_text_is_not_counted",
                "invisible_characters_count_and_joiners_in_words_do_not",
                "prompt_reports_invisible_text",
            ],
        )],
    )
}

/// The texts of a page that a browser does not show.
fn list_hidden_texts(page: &str) -> Vec<String> {
    let shown = untrusted::render_page(page.as_bytes(), Some("text/html"), 50_000);
    let shown = shown.expect("a page has a text");
    let ranges = untrusted::find_hidden_ranges(page.as_bytes(), &shown).into_iter();
    ranges.map(|range| shown[range].to_owned()).collect()
}

/// The documentation and sources of the repository, with their content, in the order of their names.
fn list_clean_files(repository: &Path, count: usize) -> Vec<(String, String)> {
    let folders = ["docs", "src"].map(|folder| repository.join(folder));
    let walk = folders
        .iter()
        .flat_map(|folder| walkdir::WalkDir::new(folder).sort_by_file_name());
    walk.filter_map(|entry| {
        let path = entry.ok()?.into_path();
        let ending = path.extension().unwrap_or_default();
        if ending != "md" && ending != "rs" {
            return None;
        }
        let content = std::fs::read_to_string(&path).ok()?;
        Some((path.display().to_string(), content))
    })
    .take(count)
    .collect()
}
