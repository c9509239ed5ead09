//! Coverage of paired differences and of noise, by simulation.

use dicta::compare::statistics::{
    Confidence, PairedStratum, flips_of_other_cells, paired_difference,
};
use fastrand::Rng;

/// The sizes of the strata: items that the old judge passed and failed.
const STRATA: [u64; 2] = [740, 260];

/// Returns the table of the coverage of the paired difference, of one draw and of two strata, and of ranges of flips.
pub(crate) fn paired_coverage_table(trials: u64) -> String {
    let mut table = "| figure | n = 20 | 50 | 100 | 400 |\n|---|---|---|---|---|\n".to_owned();
    let mut add = |name: &str, row: [String; 4]| {
        let row = row.join(" | ");
        table.push_str(&["| ", name, " | ", &row, " |\n"].concat());
    };
    for (name, strata) in [
        ("difference, one random draw", 1),
        ("difference, two strata", 2),
    ] {
        let changes = [(0.02, 0.02), (0.05, 0.15), (0.02, 0.25), (0.1, 0.1)];
        let row = [20, 50, 100, 400]
            .map(|size| range(changes.map(|change| paired_coverage(strata, size, change, trials))));
        add(name, row);
    }
    let row = [20, 50, 100, 400].map(|items| {
        let changes = [(0.02, 0.02), (0.05, 0.15), (0.02, 0.25), (0.1, 0.1)];
        range(changes.map(|change| further_coverage(items, change, trials)))
    });
    add(
        "difference, two strata read completely, for further items",
        row,
    );
    let row = [20, 50, 100, 400]
        .map(|cells| range([0.02, 0.05, 0.1, 0.2].map(|rate| flip_coverage(cells, rate, trials))));
    add("flips of 60 other cells", row);
    table
}

fn range<const N: usize>(shares: [f64; N]) -> String {
    let percent = |share: f64| (100.0 * share).round();
    let low = shares.iter().copied().fold(1.0, f64::min);
    let high = shares.iter().copied().fold(0.0, f64::max);
    format!("{}–{}", percent(low), percent(high))
}

/// Draws from a finite population in which each item is a gain, a loss, or unchanged.
pub(crate) fn paired_coverage(
    strata: usize,
    size: u64,
    (lost, gained): (f64, f64),
    trials: u64,
) -> f64 {
    let mut random = Rng::with_seed(3);
    let sizes: Vec<u64> = if strata == 1 {
        vec![STRATA.iter().sum()]
    } else {
        STRATA.to_vec()
    };
    // The second stratum changes twice as often.
    let counts: Vec<[u64; 2]> = sizes
        .iter()
        .zip([1.0, 2.0])
        .map(|(size, factor)| {
            let count = |share: f64| {
                let wanted = share * factor * *size as f64;
                (0..*size)
                    .take_while(|item| *item as f64 + 0.5 <= wanted)
                    .count() as u64
            };
            [count(lost), count(gained)]
        })
        .collect();
    let total: u64 = sizes.iter().sum();
    let gains: f64 = counts
        .iter()
        .map(|[lost, gained]| *gained as f64 - *lost as f64)
        .sum();
    let truth = gains / total as f64;
    let mut covered = 0;
    for _ in 0..trials {
        let drawn: Vec<PairedStratum> = sizes
            .iter()
            .zip(&counts)
            .map(|(population, [lost, gained])| {
                let labels = size / sizes.len() as u64;
                draw_pairs(*population, labels, *lost, *gained, &mut random)
            })
            .collect();
        let found = paired_difference(&drawn, Confidence::P95);
        covered += u64::from(found.is_ok_and(|found| found.interval.contains(truth)));
    }
    covered as f64 / trials as f64
}

/// Makes populations of `items` items from a source, and labels all of them in two strata. Compares the interval for
/// further items with the difference of the source.
pub(crate) fn further_coverage(items: u64, (lost, gained): (f64, f64), trials: u64) -> f64 {
    let mut random = Rng::with_seed(5);
    let mut covered = 0;
    for _ in 0..trials {
        let mut strata = [PairedStratum::default(); 2];
        for item in 0..items {
            let stratum = &mut strata[usize::from(item % 4 == 0)];
            stratum.population += 1;
            stratum.labels += 1;
            stratum.of_class += 1;
            let change = random.f64();
            stratum.lost += u64::from(change < lost);
            stratum.gained += u64::from(change > 1.0 - gained);
        }
        let found = paired_difference(&strata, Confidence::P95);
        let contains = found.is_ok_and(|found| found.further.contains(gained - lost));
        covered += u64::from(contains);
    }
    covered as f64 / trials as f64
}

fn draw_pairs(
    population: u64,
    labels: u64,
    mut lost: u64,
    mut gained: u64,
    random: &mut Rng,
) -> PairedStratum {
    let mut stratum = PairedStratum {
        population,
        labels,
        of_class: labels,
        ..PairedStratum::default()
    };
    for drawn in 0..labels {
        let item = random.u64(..population - drawn);
        if item < lost {
            lost -= 1;
            stratum.lost += 1;
        } else if item < lost + gained {
            gained -= 1;
            stratum.gained += 1;
        }
    }
    stratum
}

/// Returns the share of trials in which the flips of 60 cells are in the range that `measured` cells predict.
fn flip_coverage(measured: u64, rate: f64, trials: u64) -> f64 {
    let mut random = Rng::with_seed(4);
    let mut covered = 0;
    for _ in 0..trials {
        let mut flips = |cells: u64| (0..cells).filter(|_| random.f64() < rate).count() as u64;
        let (seen, new) = (flips(measured), flips(60));
        let (low, high) = flips_of_other_cells(seen as f64, measured, 60).range(Confidence::P95);
        covered += u64::from(low <= new && new <= high);
    }
    covered as f64 / trials as f64
}
