//! Measures how the time of each reader, fold, report and screen grows with the size of its input.
//!
//! ```text
//! cargo bench --bench scaling               all cases, in a few minutes
//! cargo bench --bench scaling -- otlp       the cases whose names contain a word
//! ```
//!
//! `cargo bench --profile dev` measures the same exponents without a release build, in a longer time.
//!
//! Each case runs at 1, 4 and 16 times its smallest size. The exponent is the slope of the logarithm of the time over
//! the logarithm of the size: 1 is linear, 2 quadratic. The program exits with 1 if an exponent is above 1.2, and with
//! 2 if a case fails.

#![expect(clippy::print_stdout, reason = "a benchmark's figures are its output")]

mod evals;
mod folds;
mod formats;
mod made_files;
mod measure;
mod otlp;
mod programs;
#[path = "../screen/pty.rs"]
#[expect(dead_code, reason = "shared with the other bench, which uses the rest")]
mod pty;
mod readers;
mod screens;
mod text;

use std::process::ExitCode;

use measure::{Measurement, measure};

/// The highest exponent of a case. Caches and hash tables cost more at larger sizes, so linear code reaches 1.1.
const MAX_EXPONENT: f64 = 1.2;
/// The number of measurements of a case above the limit, before it counts as above it: another program can disturb one.
const TRIES: usize = 3;

/// The work of a case on one input. It returns a count that must not be 0, so that no case measures nothing.
type Work = Box<dyn FnMut() -> usize>;

/// A case: how to prepare its work for an input of `n` elements.
struct Case {
    name: String,
    /// The number of elements at the smallest size.
    unit: usize,
    prepare: Box<dyn Fn(usize) -> Work>,
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_wanted = |case: &Case| {
        wanted.is_empty() || wanted.iter().any(|word| case.name.contains(word.as_str()))
    };
    let growing = readers::growing_files();
    let missing = readers::list_missing_formats(&growing);
    if !missing.is_empty() {
        println!("add a sample to tests/fixtures, or a case, for the readers of {missing:?}");
        return ExitCode::from(2);
    }
    let mut cases = formats::cases();
    for (format, word) in readers::OWN_CASES {
        // A build without SQLite reads no database.
        let is_in_build = cfg!(feature = "sqlite") || word != "sqlite";
        if is_in_build && !cases.iter().any(|case| case.name.contains(word)) {
            println!("the case `{word}` of {format} is gone");
            return ExitCode::from(2);
        }
    }
    cases.extend(growing.into_iter().map(made_files::growing_case));
    cases.extend(folds::cases());
    cases.extend(evals::cases());
    cases.extend(programs::cases());
    cases.extend(screens::cases());
    println!(
        "{:<52} {:>9} {:>9} {:>9}  exponent",
        "case", "1x", "4x", "16x"
    );
    let mut above = 0;
    for case in cases.iter().filter(|case| is_wanted(case)) {
        let mut best: Option<Measurement> = None;
        for _ in 0..TRIES {
            let Some(measured) = measure(case) else {
                println!("{:<52} read nothing", case.name);
                return ExitCode::from(2);
            };
            if best
                .as_ref()
                .is_none_or(|best| measured.exponent() < best.exponent())
            {
                best = Some(measured);
            }
            if best
                .as_ref()
                .is_some_and(|best| best.exponent() <= MAX_EXPONENT)
            {
                break;
            }
        }
        let Some(measured) = best else { continue };
        let exponent = measured.exponent();
        let [one, four, sixteen] = measured.times.map(|time| time.as_secs_f64() * 1e3);
        let mark = if exponent > MAX_EXPONENT {
            "  ABOVE"
        } else {
            ""
        };
        println!(
            "{:<52} {one:>6.1} ms {four:>6.1} ms {sixteen:>6.1} ms  {exponent:.2}{mark}",
            case.name
        );
        above += usize::from(exponent > MAX_EXPONENT);
    }
    if above > 0 {
        println!("{above} above {MAX_EXPONENT}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
