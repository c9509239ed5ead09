//! Coverage of the shares of failure modes: six planted modes in 1,000 transcripts, and a reader who codes a sample.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use dicta::compare::statistics::Confidence;
use dicta::model::WallTime;
use dicta::review::{
    FailureMode, ModeList, NoteOutcome, ReviewBook, ReviewCatalog, ReviewNote, ReviewPlace,
    SampleRequest, count_modes, draw_sample, list_queue,
};
use fastrand::Rng;

/// The planted rates.
const RATES: [f64; 6] = [0.30, 0.20, 0.12, 0.08, 0.05, 0.02];
const TRANSCRIPTS: usize = 1000;
/// The draws of each plan: some plans are extended once.
const PLANS: [&[&str]; 6] = [
    &["random=50"],
    &["random=100"],
    &["random=400"],
    &["random=50,outlier=30,diverse=20"],
    &["random=200,outlier=30,diverse=20"],
    &["random=50,outlier=10", "random=40,diverse=10"],
];

/// Returns a table with the coverage of each plan and mode, and false if one of them is under 93%.
pub(crate) fn coverage_table(trials: u64) -> io::Result<(String, bool)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("t.jsonl");
    let planted = plant(&file)?;
    let place = ReviewPlace::of_files(&[file]).map_err(io::Error::other)?;
    let catalog = ReviewCatalog::read(&place).map_err(io::Error::other)?;
    let mut table = String::from("| plan |");
    for rate in RATES {
        let _infallible = write!(table, " {:.0}% |", 100.0 * rate);
    }
    let _infallible = writeln!(table, "\n|---|{}", "---|".repeat(RATES.len()));
    let mut is_enough = true;
    for plan in PLANS {
        let covered = count_covered(&catalog, &planted, plan, trials);
        let _infallible = write!(table, "| {} |", plan.join(", then "));
        for count in covered {
            let share = count as f64 / trials as f64;
            is_enough &= share >= 0.93;
            let _infallible = write!(table, " {:.1} |", 100.0 * share);
        }
        table.push('\n');
    }
    Ok((table, is_enough))
}

/// Writes the transcripts. Returns the modes that occur in each. The first mode is frequent in long transcripts.
fn plant(file: &Path) -> io::Result<Vec<[bool; 6]>> {
    let mut random = Rng::with_seed(7);
    let (mut lines, mut planted) = (String::new(), Vec::new());
    for at in 0..TRANSCRIPTS {
        let is_long = at % 40 == 0;
        planted.push(std::array::from_fn(|mode| {
            let rate = if mode == 0 && is_long {
                0.9
            } else {
                RATES[mode]
            };
            random.f64() < rate
        }));
        let words = if is_long {
            2000
        } else {
            20 + random.usize(..60)
        };
        let words: Vec<String> = (0..words)
            .map(|_| format!("w{}", random.u32(..400)))
            .collect();
        let text = words.join(" ");
        let _infallible = writeln!(
            lines,
            r#"{{"id":"t{at:04}","messages":[{{"role":"assistant","content":"{text}"}}]}}"#
        );
    }
    std::fs::write(file, lines)?;
    Ok(planted)
}

fn count_covered(
    catalog: &ReviewCatalog,
    planted: &[[bool; 6]],
    plan: &[&str],
    trials: u64,
) -> [u64; 6] {
    let modes = ModeList {
        modes: (0..6)
            .map(|at| FailureMode {
                id: format!("m{at}"),
                ..FailureMode::default()
            })
            .collect(),
    };
    let mut covered = [0; 6];
    for trial in 0..trials {
        let mut draws = Vec::new();
        for (number, mix) in (0..).zip(plan) {
            let Ok(mix) = mix.parse() else { continue };
            let request = SampleRequest {
                mix,
                seed: trial * 31 + number,
                at: WallTime("2026-01-01T00:00:00Z".to_owned()),
            };
            draws.extend(draw_sample(catalog, &draws, &request));
        }
        let notes = list_queue(catalog, &draws).into_iter().filter_map(|item| {
            let occurs = planted.get(catalog.position(&item.transcript)?)?;
            let mut note =
                ReviewNote::new(&*item.transcript, &item.transcript, NoteOutcome::Failure);
            let answers = occurs.iter().enumerate();
            note.modes = answers.map(|(at, yes)| (format!("m{at}"), *yes)).collect();
            Some(note)
        });
        let book = ReviewBook::from_records(notes, modes.clone());
        let table = count_modes(catalog, &draws, &book, Confidence::P95);
        for (at, counts) in table.modes.iter().enumerate() {
            let count = planted.iter().filter(|occurs| occurs[at]).count();
            let rate = count as f64 / TRANSCRIPTS as f64;
            covered[at] += u64::from(counts.share.interval.contains(rate));
        }
    }
    covered
}
