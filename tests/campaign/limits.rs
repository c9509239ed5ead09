//! Limits of time and memory: YAML, users' patterns, searches in large texts, endless replies (U3, U12, A6).

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use dicta::diag::yaml;
use dicta::handlers::EvalTypeRegistry;
use dicta::rubric;

use crate::fetches::run_measured;
use crate::goals::combine;
use crate::sandbox::{Sandbox, outcomes, text};
use crate::terminal::Terminal;
use crate::terminals::{conclude, wait_for};
use crate::{Campaign, Measured, Scale};

/// The longest time until a YAML document over a limit is refused.
const MAX_REFUSAL: Duration = Duration::from_millis(100);
/// The longest time of a pattern.
const MAX_COMPILING: Duration = Duration::from_millis(200);
/// The longest time until a search has stopped.
const MAX_CANCEL: Duration = Duration::from_millis(100);
/// The memory of two equal runs differs by up to this many KiB.
const MEMORY_DIFFERENCE_KIB: u64 = 4 << 10;

/// Patterns whose automata are large, deep or both. `true`: more than 1 MiB, so dicta refuses the pattern.
const PATTERNS: [(&str, bool); 12] = [
    (r"\w{1000}", true),
    (r"(?i)\w{900}", true),
    (r"\pL{500}", true),
    ("((((a{100}){100}){100}){100})", true),
    ("(a+)+$", false),
    ("(a|aa)+$", false),
    ("(?:x{1,1000}){1,1000}", true),
    (r"[\p{Han}\p{Hiragana}\p{Katakana}]{200}", false),
    (r"(?:\s*\S+\s*){500}", true),
    (
        "(((((((((((((((((((((((((((((((a)))))))))))))))))))))))))))))))",
        false,
    ),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", false),
    (r"\b(?:\d{1,3}\.){3}\d{1,3}\b", false),
];

/// The time until YAML documents over a limit are refused, and the tests of the other promises (U3).
pub(crate) fn measure_yaml(campaign: &Campaign) -> Measured {
    let mut aliases = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for number in 1..9 {
        let list = vec![format!("*a{}", number - 1); 9].join(", ");
        writeln!(aliases, "a{number}: &a{number} [{list}]").expect("a string");
    }
    let texts = [
        ("nested lists", "[".repeat(100_000)),
        ("nested mappings", "{a: ".repeat(1000)),
        ("aliases", aliases),
        ("values", "- 1\n".repeat(60_000)),
        ("bytes", " a:\n".repeat(300_000)),
    ];
    let texts = &texts[..campaign.count(2, texts.len())];
    let mut problems = Vec::new();
    let mut slowest = Duration::ZERO;
    for (name, text) in texts {
        let begin = Instant::now();
        let read = yaml::read_document(&text.as_str().into(), Path::new("f.yaml"));
        let took = begin.elapsed();
        slowest = slowest.max(took);
        if read.is_ok() {
            problems.push(format!("too many {name} are read"));
        }
        if campaign.scale == Scale::Full && took > MAX_REFUSAL {
            problems.push(format!("{name} are refused after {} ms", took.as_millis()));
        }
    }
    let figure = format!(
        "{} documents over a limit are refused, the slowest in {} ms",
        texts.len(),
        slowest.as_millis()
    );
    combine(
        campaign,
        conclude(&figure, &problems),
        &[(
            "lib",
            &[
                "alias_bombs_are_refused_quickly",
                "largest_allowed_document_is_read",
                "broken_yaml_is_reported_at_its_place",
                "broken_save_keeps_last_good_rubric",
            ],
        )],
    )
}

/// The time of users' patterns, and of the end of a search (U12).
pub(crate) fn measure_patterns(campaign: &Campaign) -> Measured {
    let registry = EvalTypeRegistry::builtin();
    let mut problems = Vec::new();
    let mut slowest = Duration::ZERO;
    let long = format!("(?:{})", vec!["word"; 13_000].join("|"));
    let patterns = PATTERNS.iter().copied().chain([(long.as_str(), false)]);
    let load = |pattern: &str| {
        let rubric = format!(
            "id: r\nevals:\n  - id: a\n    type: regex\n    params: {{ pattern: '{}' }}\n",
            pattern.replace('\'', "''")
        );
        let begin = Instant::now();
        let (loaded, _) = rubric::load(rubric.into(), Path::new("r.yaml"), &registry);
        (begin.elapsed(), loaded.is_none())
    };
    // The tables of the first pattern are built once.
    load("a");
    let (mut count, mut refused) = (0, 0);
    for (pattern, is_too_large) in patterns {
        count += 1;
        let (took, is_refused) = load(pattern);
        refused += usize::from(is_refused);
        slowest = slowest.max(took);
        let pattern: String = pattern.chars().take(40).collect();
        if is_refused != is_too_large {
            problems.push(format!("{pattern} is refused: {is_refused}"));
        }
        if campaign.scale == Scale::Full && took > MAX_COMPILING {
            problems.push(format!("{pattern} takes {} ms", took.as_millis()));
        }
    }
    let search = cancel_search(campaign, &mut problems);
    conclude(
        &format!(
            "{count} patterns, {refused} of them larger than 1 MiB and refused, the slowest in {} ms; {search}",
            slowest.as_millis(),
        ),
        &problems,
    )
}

/// Searches a text that isn't there, and cancels. Returns the figure.
fn cancel_search(campaign: &Campaign, problems: &mut Vec<String>) -> String {
    let megabytes = campaign.count(4, 100);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let words = "many ordinary words in a row ".repeat(35_000);
    let mut record = String::from(r#"{"id":"large","messages":[{"role":"user","content":"Hello"}"#);
    for _ in 0..megabytes {
        record.push_str(r#",{"role":"assistant","content":""#);
        record.push_str(&words);
        record.push_str("\"}");
    }
    record.push_str("]}\n");
    let write = |name: &str, content: &str| {
        std::fs::write(folder.path().join(name), content).expect("a file");
    };
    write("t.jsonl", &record);
    write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n",
    );
    write(
        "r.yaml",
        "id: r\nevals:\n  - { id: names, type: contains, params: { patterns: [ordinary] } }\n",
    );
    let mut terminal = Terminal::start(&[], folder.path(), 120, 40);
    wait_for(&terminal, "the first frame", problems, |screen| {
        screen.contains("names")
    });
    terminal.press("6");
    wait_for(&terminal, "the transcript", problems, |screen| {
        screen.contains("ordinary words")
    });
    terminal.press("/nowhere in this text\r");
    // The footer has this key while there is a search. A search that reached the end also has a message.
    let is_searching = |screen: &str| screen.contains("n next match");
    wait_for(&terminal, "the search", problems, is_searching);
    let has_reached_the_end = terminal.contents().contains("is not in the transcript");
    let begin = Instant::now();
    terminal.press("\u{1b}");
    wait_for(&terminal, "the end of the search", problems, |screen| {
        !is_searching(screen)
    });
    let took = begin.elapsed();
    if has_reached_the_end {
        return format!("a search in {megabytes} MB reaches its end before `esc`");
    }
    if campaign.scale == Scale::Full && took > MAX_CANCEL {
        problems.push(format!("a search ends after {} ms", took.as_millis()));
    }
    format!(
        "a search in {megabytes} MB ends {} ms after `esc`",
        took.as_millis()
    )
}

/// The memory for endless replies of each kind (A6).
pub(crate) fn measure_replies(campaign: &Campaign) -> Measured {
    if !Path::new("/proc/self/status").exists() {
        return Measured::Skipped("this system has no /proc, where the memory is read".to_owned());
    }
    let delta = format!(
        "data: {{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}},\"finish_reason\":null}}]}}\n\n",
        "x".repeat(60_000)
    );
    let row = "x".repeat(64 << 10);
    // The last value is the limit in MiB. Lines without content have none, and cost less than a line may.
    let kinds: [(&str, &str, String, &str, u64); 6] = [
        (
            "deltas",
            "text/event-stream",
            delta,
            "larger than 64 MiB",
            64,
        ),
        (
            "one line",
            "text/event-stream",
            row.clone(),
            "1 MiB for a line",
            1,
        ),
        (
            "one event",
            "text/event-stream",
            format!("data: {row}\n"),
            "8 MiB for an event",
            8,
        ),
        (
            "empty data",
            "text/event-stream",
            "data:\n".repeat(500),
            "10,000 lines for an event",
            1,
        ),
        (
            "empty lines",
            "text/event-stream",
            "\r\n".repeat(500),
            "100,000 empty lines",
            1,
        ),
        ("a whole body", "application/json", row, "MiB", 64),
    ];
    let mut problems = Vec::new();
    let mut growths = Vec::new();
    let small = run_endless(campaign, "application/json", None).1;
    for (name, content_type, piece, reason, limit) in &kinds[..campaign.count(2, kinds.len())] {
        let (output, peak) = run_endless(campaign, content_type, Some(piece.clone()));
        let found: Vec<String> = outcomes(&output.stdout).into_values().collect();
        let printed = text(&output.stdout);
        if found != ["judge_error"] && found != ["truncated"] {
            problems.push(format!("{name}: {found:?} {}", text(&output.stderr)));
        } else if !printed.contains(reason) {
            problems.push(format!(
                "{name}: the error does not name the limit: {printed}"
            ));
        }
        let growth = peak.saturating_sub(small);
        growths.push(format!("{name} {} MiB", growth >> 10));
        if growth > 2 * (limit << 10) + MEMORY_DIFFERENCE_KIB {
            problems.push(format!("{name} costs {growth} KiB"));
        }
    }
    conclude(
        &format!(
            "memory for endless replies beyond that of a refused request: {}",
            growths.join(", ")
        ),
        &problems,
    )
}

/// Runs one cell against a server that repeats a piece for ever, or refuses the request without a piece.
fn run_endless(
    campaign: &Campaign,
    content_type: &'static str,
    piece: Option<String>,
) -> (std::process::Output, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client ends each reply: the write fails then.
            let _gone = serve_endlessly(&stream, content_type, piece.as_deref());
        }
    });
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(
        1,
        &format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: 'http://{address}/v1', model: m, max_attempts: 1 }}\n"
        ),
    );
    sandbox.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: a, type: llm_judge, params: { criteria: It greets. } }\n",
    );
    run_measured(&mut sandbox.command(&["run", "-q", "--format", "jsonl"]))
}

fn serve_endlessly(
    mut stream: &TcpStream,
    content_type: &str,
    piece: Option<&str>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let Some(piece) = piece else {
        return stream
            .write_all(b"HTTP/1.1 400 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n"
    )?;
    loop {
        stream.write_all(piece.as_bytes())?;
    }
}
