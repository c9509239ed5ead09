//! The promises of the spine about speed, measured on the built program. Run one by name or all:
//!
//! ```text
//! cargo bench --bench spine -- deterministic     10,000 transcripts × 10 checks       promise: at most 0.5 CPU s
//! cargo bench --bench spine -- mixed             the same with ten other types        promise: the same
//! cargo bench --bench spine -- opening           a 1 GB transcript file               promise: first result within 1 s, memory bounded
//! cargo bench --bench spine -- inspect           10,000 samples of a 100 MB Inspect log   promise: listed in 0.5 s
//! cargo bench --bench spine -- judging           1,000 judge cells at 100 ms a call   promise: within 3% of the ideal 20 at once, 10% 200 at once;
//!                                                without and with one tool round               0.5 and 0.8 CPU s
//! cargo bench --bench spine -- recording         200,000 events through the recorder
//! cargo bench --bench spine -- startup           to `--version`, and to a first result
//! ```
//!
//! Prints one line a measurement with the load it was taken under. Asserts nothing: machines differ; people compare.

#![expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]

mod data;
mod inspect;
mod judging;
mod measure;
mod recording;

use std::path::Path;

use measure::{Measured, dicta, load};

/// A name to choose it by, and what it does in a temporary folder.
type Bench = (&'static str, fn(&Path));

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let benches: [Bench; 7] = [
        ("deterministic", deterministic),
        ("mixed", mixed),
        ("opening", opening),
        ("inspect", inspect::inspect),
        ("judging", judging::judging),
        ("recording", recording::recording),
        ("startup", startup),
    ];
    for (name, bench) in benches {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())) {
            println!("# {name} (load {})", load());
            bench(dir.path());
        }
    }
}

/// The lab's ten checks.
fn deterministic(dir: &Path) {
    ten(dir, "10 checks", include_str!("ten.yaml"));
}

/// Ten checks of ten types, of which every one looks at another part of the transcript.
fn mixed(dir: &Path) {
    ten(dir, "10 types", include_str!("mixed.yaml"));
}

/// A rubric of ten checks over 10,000 transcripts of about 7.8 KB, results as JSON lines to a file.
fn ten(dir: &Path, what: &str, rubric: &str) {
    let workspace = dir.join(what.replace(' ', "-"));
    // The lab's own data where it is at hand, so that figures compare with the peers'; else ours of the same shape.
    let lab = std::env::var_os("DICTA_BENCH_FILE").map(std::path::PathBuf::from);
    let file = lab.unwrap_or_else(|| data::transcripts(&dir.join("10k.jsonl"), 10_000));
    data::workspace(&workspace, &file);
    std::fs::write(workspace.join("ten.yaml"), rubric).expect("written");
    for n in 1..=3 {
        let out = workspace.join("out.jsonl");
        let run = dicta(&["run", "-q", "--format", "jsonl"], &workspace, Some(&out));
        run.print(&format!("10,000 × {what}, run {n}"));
        let text = std::fs::read_to_string(&out).expect("results were written");
        println!("  {}", text.lines().last().unwrap_or("no output"));
    }
}

/// One gigabyte of transcripts: how soon the first, how much memory for all.
fn opening(dir: &Path) {
    let file = data::transcripts(&dir.join("1gb.jsonl"), 128_000);
    let bytes = std::fs::metadata(&file).expect("written").len();
    let workspace = dir.join("opening");
    data::workspace(&workspace, &file);
    let first = dicta(
        &["run", "-q", "--format", "jsonl", "--limit", "1"],
        &workspace,
        None,
    );
    first.print(&format!(
        "first of {} MB judged and printed",
        bytes / 1_000_000
    ));
    let out = workspace.join("out.jsonl");
    let all = dicta(&["run", "-q", "--format", "jsonl"], &workspace, Some(&out));
    all.print("all of it × 10 checks");
    std::fs::remove_file(file).expect("a gigabyte is given back");
}

/// The program's own start, and the demo's first result.
fn startup(dir: &Path) {
    for _ in 0..3 {
        dicta(&["--version"], dir, None).print("--version");
    }
    let workspace = dir.join("one");
    let file = data::transcripts(&dir.join("1.jsonl"), 1);
    data::workspace(&workspace, &file);
    for _ in 0..3 {
        let one: Measured = dicta(&["run", "-q", "--format", "jsonl"], &workspace, None);
        one.print("one transcript × 10 checks, recorded and printed");
    }
}
