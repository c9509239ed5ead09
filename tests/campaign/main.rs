//! The hardening campaign: measures the goals of the page about reliability, and writes that page (`page.rs`).
//!
//! Two forms, the same code:
//!
//! - `cargo test --locked --features full --test campaign` is the short form. It runs each measurement that fits in
//!   seconds at a small scale, and checks that the page lists every goal. `.ci/run` runs it with the other tests.
//! - `cargo test --release --locked --features full --test campaign -- --full --write` is the whole campaign. It takes
//!   hours on two cores, and writes the figures into the page. With ids (`-- --full --write D1 A1`) it measures
//!   these goals only, and keeps the other rows of the page.
//!
//! Doesn't contain the tests of single modules: a goal may name them, and the whole campaign runs them by name.

#![expect(
    clippy::print_stdout,
    reason = "the figures of a campaign are its output"
)]

mod advisories;
mod corpora;
mod dependencies;
mod disks;
mod events;
mod faults;
mod fetches;
mod files;
mod fuzz;
mod fuzz_runs;
mod goals;
mod hostile_text;
mod injection;
mod kills;
#[path = "../tidy/layers.rs"]
mod layers;
mod limits;
mod long_texts;
mod model_server;
mod page;
#[path = "../it/screen/pty.rs"]
#[expect(dead_code, reason = "shared with the tests, which use the rest")]
mod pty;
mod recordings;
mod records;
mod sandbox;
mod saves;
mod silent_changes;
mod soak;
mod streams;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, reason = "the tests of `tests/it` use the rest of the kit")]
mod support;
#[path = "../../benches/screen/pty.rs"]
mod terminal;
mod terminals;
mod watched;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// The scale of the measurements, and the path of the program.
pub struct Campaign {
    pub scale: Scale,
    /// The built `dicta` binary.
    pub dicta: PathBuf,
    /// The folder of the repository.
    pub repository: PathBuf,
}

/// The form of the campaign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Seconds: runs with every `cargo test`.
    Short,
    /// The counts that the goals state.
    Full,
}

impl Campaign {
    /// `short` in the short form, `full` in the whole campaign.
    pub fn count(&self, short: usize, full: usize) -> usize {
        match self.scale {
            Scale::Short => short,
            Scale::Full => full,
        }
    }
}

/// The result of a measurement.
pub enum Measured {
    /// The goal holds; the text is the figure, for example `1,000 kills, 0 lost`.
    Reached(String),
    /// A part of the goal is measured and holds; the text is the figure and the part.
    Partly(String),
    /// The goal doesn't hold; the text is the figure and what is missing.
    Missed(String),
    /// This machine can't measure it (a program or a right is missing), or the short form leaves it out; the text is the reason.
    Skipped(String),
}

/// One reliability goal and how the campaign measures it.
pub struct Goal {
    /// For example `D1`.
    pub id: &'static str,
    /// The promise of dicta, as the page prints it.
    pub promise: &'static str,
    pub measure: Measure,
}

/// The source of the figure of a goal.
pub enum Measure {
    /// A function of this campaign.
    Here(fn(&Campaign) -> Measured),
    /// Tests of the library or of `tests/it`, by their names. The whole campaign runs them; the short
    /// form leaves them to `cargo test`.
    Tests { suites: &'static [Suite] },
    /// Nothing measures it yet; the text is the reason that the page prints.
    Nothing(&'static str),
}

/// The target of some tests (`lib`, `it`, `tidy`), and the names of the tests.
pub type Suite = (&'static str, &'static [&'static str]);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let full = arguments.iter().any(|argument| argument == "--full");
    let write = arguments.iter().any(|argument| argument == "--write");
    // `cargo test NAME` passes NAME to this target, too: then only goals with that id run.
    let wanted: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let campaign = Campaign {
        scale: if full { Scale::Full } else { Scale::Short },
        dicta: PathBuf::from(env!("CARGO_BIN_EXE_dicta")),
        repository: Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf(),
    };
    let mut missed = 0;
    let mut results = Vec::new();
    for goal in goals::all() {
        if !wanted.is_empty() && !wanted.iter().any(|id| *id == goal.id) {
            continue;
        }
        let begin = Instant::now();
        let measured = goals::measure(&campaign, goal);
        let seconds = begin.elapsed().as_secs_f64();
        match &measured {
            Measured::Reached(figure) => {
                println!("{:>4} reached  {figure} ({seconds:.1} s)", goal.id);
            }
            Measured::Partly(figure) => {
                println!("{:>4} in part  {figure} ({seconds:.1} s)", goal.id);
            }
            Measured::Missed(figure) => {
                missed += 1;
                println!("{:>4} MISSED   {figure} ({seconds:.1} s)", goal.id);
            }
            Measured::Skipped(reason) => println!("{:>4} skipped  {reason}", goal.id),
        }
        results.push((goal, measured));
    }
    if write {
        page::write(&campaign, &results);
    } else if wanted.is_empty()
        && let Err(problem) = page::check(&campaign)
    {
        println!("{problem}");
        missed += 1;
    }
    if missed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
