//! The promises of the screen about speed, measured on the built program on a terminal, through an independent terminal
//! parser. Run one by name or all:
//!
//! ```text
//! cargo bench --bench screen -- first      start to the first whole frame                        promise: under 100 ms
//! cargo bench --bench screen -- keys       key to frame, 64 live `rules` traces                   promise: p99 under 16 ms
//! cargo bench --bench screen -- save       save to the flip, a deterministic eval                 promise: under 150 ms
//! cargo bench --bench screen -- jump       first to last message of a transcript of 1,000,000     promise: under 100 ms
//! cargo bench --bench screen -- line       key to frame over a single line of 10 MB               promise: p99 under 16 ms
//! cargo bench --bench screen -- resizes    1,000 random sizes: alive, and the last frame right
//! cargo bench --bench screen -- large      a workspace of 100,000 cells: opening, keys while they are judged, filter, memory
//! cargo bench --bench screen -- idle       CPU of an open workbench without a key                 promise: about 0
//! ```
//!
//! Prints one line a measurement with the load it was taken under. Asserts nothing: machines differ; people compare. Each
//! figure holds what the parser needs to read the frame, too.

#![expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]

#[path = "../spine/data.rs"]
#[expect(dead_code, reason = "shared with the other bench, which uses the rest")]
mod data;
mod pty;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use pty::Terminal;

/// A name to choose it by, and what it does in a temporary folder.
type Bench = (&'static str, fn(&Path));

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let benches: [Bench; 8] = [
        ("first", first),
        ("keys", keys),
        ("save", save),
        ("jump", jump),
        ("line", line),
        ("resizes", resizes),
        ("large", large),
        ("idle", idle),
    ];
    for (name, bench) in benches {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())) {
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            println!(
                "# {name} (load {})",
                load.split(' ').next().unwrap_or("unknown")
            );
            let dir = dir.path().join(name);
            std::fs::create_dir(&dir).expect("a folder a bench");
            bench(&dir);
        }
    }
}

fn millis(d: Duration) -> String {
    format!("{:.1} ms", d.as_secs_f64() * 1000.0)
}

fn spread(what: &str, mut all: Vec<Duration>) {
    all.sort();
    let at = |part: usize| millis(all[(all.len() * part / 100).min(all.len() - 1)]);
    println!(
        "{what}: {} times, median {}, p90 {}, p99 {}, most {}",
        all.len(),
        at(50),
        at(90),
        at(99),
        at(100)
    );
}

/// The frame is whole: header, panes and the last row's border. The footer may hold a notice instead of its keys.
fn whole(screen: &str) -> bool {
    screen.starts_with(" dicta ")
        && ["1 cells", "verdict", "6 transcript"]
            .iter()
            .all(|pane| screen.contains(pane))
        && screen.trim_end().lines().count() > 12
}

fn first(dir: &Path) {
    // The first start unpacks the demo; the promise is about any start.
    let mut all = Vec::new();
    for n in 0..11 {
        let start = Instant::now();
        let terminal = Terminal::start(&[], dir, 120, 40);
        terminal.until(whole);
        match n {
            0 => println!(
                "the very first start, demo unpacked: {}",
                millis(start.elapsed())
            ),
            _ => all.push(start.elapsed()),
        }
    }
    spread("start to the first whole frame, 120×40", all);
}

/// Opens and closes help, which draws the whole screen again each time, and measures each way.
fn help(terminal: &mut Terminal, times: usize) -> Vec<Duration> {
    let mut all = Vec::new();
    for _ in 0..times {
        terminal.press("?");
        all.push(terminal.until(|screen| screen.contains("type to search")));
        terminal.press("\u{1b}");
        all.push(terminal.until(|screen| !screen.contains("type to search")));
    }
    all
}

fn keys(dir: &Path) {
    let file = data::transcripts(&dir.join("many.jsonl"), 4_000);
    std::fs::write(
        dir.join("dicta.yaml"),
        format!(
            "transcripts: [{}]\nrubrics: [r.yaml]\nruns: runs\njudge: rules\nlimits: {{ concurrency: 64 }}\n",
            file.display()
        ),
    )
    .expect("written");
    let mut criteria = String::new();
    for n in 0..12 {
        let _infallible = write!(criteria, "The answer does not mention word{n}. ");
    }
    std::fs::write(
        dir.join("r.yaml"),
        format!(
            "id: many\nevals:\n  - id: clauses\n    type: llm_judge_session\n    params:\n      criteria: {criteria}\n"
        ),
    )
    .expect("written");
    let mut terminal = Terminal::start(&[], dir, 200, 60);
    terminal.until(whole);
    // No run is recorded, so opening the workspace judges it.
    terminal.until(|screen| screen.contains("64 live"));
    let (began, cpu) = (Instant::now(), terminal.took().0);
    let all = help(&mut terminal, 250);
    let (took, used) = (began.elapsed(), terminal.took().0.saturating_sub(cpu));
    let live = terminal
        .contents()
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    println!(
        "  while measured: {:.1} s, the program used {:.0}% of one core; header then: {live}",
        took.as_secs_f64(),
        100.0 * used.as_secs_f64() / took.as_secs_f64()
    );
    terminal.press("\u{3}");
    spread("key to frame with 64 live rules traces, 200×60", all);
    println!("  {}", deltas(dir));
}

/// The number of deltas in a second of the run, from its own log.
fn deltas(dir: &Path) -> String {
    let Some(log) = std::fs::read_dir(dir.join("runs"))
        .ok()
        .and_then(|mut runs| runs.next()?.ok())
        .and_then(|run| std::fs::read_to_string(run.path().join("events.jsonl")).ok())
    else {
        return "no run was recorded".to_owned();
    };
    let deltas = log.lines().filter(|l| l.contains("\"delta\"")).count();
    let last = log.lines().rev().find_map(|l| {
        let (_, at) = l.split_once("\"at\":")?;
        at.split(',').next()?.parse::<f64>().ok()
    });
    let seconds = last.unwrap_or(f64::NAN) / 1000.0;
    format!(
        "the run recorded {deltas} deltas in {seconds:.1} s: {:.0} a second",
        deltas as f64 / seconds
    )
}

fn save(dir: &Path) {
    std::fs::write(
        dir.join("t.jsonl"),
        "{\"id\":\"one\",\"messages\":[{\"role\":\"user\",\"content\":\"which?\"},{\"role\":\"assistant\",\"content\":\"Use 2.69.\"}]}\n",
    )
    .expect("written");
    std::fs::write(
        dir.join("dicta.yaml"),
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n",
    )
    .expect("written");
    let rubric = |pattern: &str| {
        format!(
            "id: r\nevals:\n  - id: names\n    type: regex\n    params: {{ pattern: '{pattern}' }}\n"
        )
    };
    std::fs::write(dir.join("r.yaml"), rubric("2[.]69")).expect("written");
    // High enough for the whole diff.
    let terminal = Terminal::start(&[], dir, 120, 56);
    terminal.until(whole);
    // No run is recorded, so opening the workspace judges it.
    terminal.until(|screen| screen.contains("✓ 1"));
    let mut all = Vec::new();
    for n in 0..40 {
        let (pattern, sign) = if n % 2 == 0 {
            ("2[.]70", "✗ 1")
        } else {
            ("2[.]69", "✓ 1")
        };
        let began = Instant::now();
        if n % 4 < 2 {
            std::fs::write(dir.join("r.yaml"), rubric(pattern)).expect("written");
        } else {
            std::fs::write(dir.join("new"), rubric(pattern)).expect("written");
            std::fs::rename(dir.join("new"), dir.join("r.yaml")).expect("renamed");
        }
        terminal.until(|screen| {
            screen.contains("1 flip")
                && screen.contains(sign)
                && screen.contains(&format!("+    params: {{ pattern: '{pattern}"))
        });
        all.push(began.elapsed());
    }
    spread("save to the flip and the diff on screen, 120×56", all);
}

fn jump(dir: &Path) {
    let mut text = String::from("{\"id\":\"long\",\"messages\":[");
    for n in 0..1_000_000 {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let comma = if n == 0 { "" } else { "," };
        let _infallible = write!(
            text,
            "{comma}{{\"role\":\"{role}\",\"content\":\"message number {n} says so\"}}"
        );
    }
    text.push_str("]}\n");
    let file = dir.join("long.jsonl");
    std::fs::write(&file, &text).expect("written");
    println!(
        "  a transcript of 1,000,000 messages, {} MB",
        text.len() / 1_000_000
    );
    let mut terminal = Terminal::start(&["open", "long.jsonl"], dir, 120, 40);
    println!(
        "open to its first message: {}",
        millis(terminal.until(|s| s.contains("message number 0 ")))
    );
    terminal.press("6+");
    terminal.until(|screen| screen.contains("message number 30 "));
    let mut all = Vec::new();
    for _ in 0..50 {
        terminal.press("G");
        all.push(terminal.until(|screen| screen.contains("message number 999999 ")));
        terminal.press("g");
        all.push(terminal.until(|screen| screen.contains("message number 0 ")));
    }
    spread("key to the other end on screen", all);
    println!("  memory {} MiB", terminal.took().1);
}

fn line(dir: &Path) {
    let words: String = (0..1_300_000).fold(String::new(), |mut text, n| {
        let _infallible = write!(text, "w{n} ");
        text
    });
    let long = &words[..words.len().min(10_000_000)];
    std::fs::write(
        dir.join("line.jsonl"),
        format!(
            "{{\"id\":\"line\",\"messages\":[{{\"role\":\"assistant\",\"content\":\"{long}\"}}]}}\n"
        ),
    )
    .expect("written");
    println!("  one line of {} bytes", long.len());
    let mut terminal = Terminal::start(&["open", "line.jsonl"], dir, 120, 40);
    terminal.until(|screen| screen.contains("w0 w1 "));
    terminal.press("6+");
    let mut all = Vec::new();
    // The last one may be cut, and a fixed break of a long line may be inside a word.
    let tail: Vec<&str> = long.split_whitespace().rev().skip(1).take(40).collect();
    let last = format!("{} ", tail.get(30).expect("it is long"));
    for _ in 0..100 {
        terminal.press("G");
        all.push(terminal.until(|screen| screen.contains(&last)));
        terminal.press("g");
        all.push(terminal.until(|screen| screen.contains("w0 w1 ")));
    }
    spread("key to frame", all);
}

fn large(dir: &Path) {
    const TRANSCRIPTS: usize = 10_000;
    let file = data::transcripts(&dir.join("many.jsonl"), TRANSCRIPTS);
    std::fs::write(dir.join("r.yaml"), include_str!("../spine/ten.yaml")).expect("written");
    std::fs::write(
        dir.join("dicta.yaml"),
        format!(
            "transcripts: [{}]\nrubrics: [r.yaml]\nruns: runs\n",
            file.display()
        ),
    )
    .expect("written");
    let known = |screen: &str| screen.contains("10000");
    for round in ["judged on opening", "with the board of the run before"] {
        let mut terminal = Terminal::start(&[], dir, 160, 48);
        println!(
            "{round}: start to the first frame {}",
            millis(terminal.until(whole))
        );
        let all = help(&mut terminal, 20);
        spread("  key to frame while the workspace is read", all);
        println!(
            "  all cells are known {} later",
            millis(terminal.until(known))
        );
        // The first round judges the workspace when it opens, because no run is recorded.
        let head = |screen: &str| screen.lines().next().unwrap_or_default().to_owned();
        let is_judged =
            |screen: &str| head(screen).contains("✓ 80785") && !head(screen).contains("live");
        println!(
            "  all cells have verdicts {} later",
            millis(terminal.until(is_judged))
        );
        println!("  memory {} MiB", terminal.took().1);
        spread("  key to frame at rest", help(&mut terminal, 50));
        terminal.press("1/");
        terminal.until(|screen| screen.contains("filter"));
        let mut all = Vec::new();
        for needle in ["w", "o", "r", "d"] {
            let before = terminal.contents();
            terminal.press(needle);
            all.push(terminal.until(|screen| screen != before));
        }
        spread("  a character of a filter", all);
        terminal.press("\u{1b}\u{1b}");
        terminal.until(|screen| screen.contains("1 cells"));
        terminal.press("R");
        let began = Instant::now();
        let all = help(&mut terminal, 60);
        spread("  key to frame while R decides 100,000 cells", all);
        terminal.until(is_judged);
        println!(
            "  R to its end, keys pressed meanwhile: at most {}",
            millis(began.elapsed())
        );
        println!("  memory {} MiB", terminal.took().1);
        std::thread::sleep(Duration::from_secs(1));
        println!(
            "  header then: {}",
            terminal
                .contents()
                .lines()
                .next()
                .unwrap_or_default()
                .trim()
        );
        terminal.press("q");
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn resizes(dir: &Path) {
    let mut terminal = Terminal::start(&[], dir, 120, 40);
    terminal.until(whole);
    let mut rng = fastrand::Rng::with_seed(7);
    let began = Instant::now();
    for _ in 0..1_000 {
        terminal.resize(rng.u16(1..=250), rng.u16(1..=80));
        if rng.u8(..) < 40 {
            terminal.press(["j", "\t", "+", "]", "6", "1"][rng.usize(..6)]);
        }
    }
    terminal.resize(120, 40);
    // A pane may be zoomed by now: header, footer, and nothing beyond them.
    let fits = |screen: &str| {
        let rows: Vec<&str> = screen.trim_end().lines().collect();
        rows.len() == 40 && rows[0].starts_with(" dicta ") && rows[39].contains("? help")
    };
    let after = terminal.until(fits);
    println!(
        "1,000 random sizes in {}; the last frame was right {} later; alive: {}",
        millis(began.elapsed()),
        millis(after),
        terminal.is_alive()
    );
}

fn idle(dir: &Path) {
    let terminal = Terminal::start(&[], dir, 120, 40);
    terminal.until(whole);
    // Until the notices are gone.
    std::thread::sleep(Duration::from_secs(10));
    let before = terminal.took().0;
    std::thread::sleep(Duration::from_secs(10));
    println!(
        "10 s untouched: {} of CPU",
        millis(terminal.took().0.saturating_sub(before))
    );
}
