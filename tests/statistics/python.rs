//! The comparison of random tables with scikit-learn, statsmodels, krippendorff and SciPy.

use std::io::Write as _;
use std::process::{Command, Stdio};

use dicta::compare::statistics::{
    AlphaMetric, CategoryTable, Confidence, ConfusionTable, DisagreementWeight, Figure, FlipPrior,
    Interval, PairedCounts, RepeatedCell, WeightedLabel, adjust_holm, area_under_roc, brier_score,
    clopper_pearson_interval, fleiss_kappa, flips_of_other_cells, flips_of_same_cells,
    jeffreys_interval, kendall_tau_b, krippendorff_alpha, mean_absolute_error, randolph_kappa,
    spearman_rho, weighted_kappa, wilson_interval,
};
use dicta::compare::{ShareFigure, VariantVerdicts, compare_variants};
use fastrand::Rng;
use serde_json::{Map, Value, json};

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/statistics/compare_with_python.py"
);
/// The exit code of the script if a package is missing.
const MISSING_PACKAGE: i32 = 77;
/// The number of random inputs of each kind.
const INPUTS: usize = 60;
const P95: Confidence = Confidence::P95;

#[test]
fn figures_of_random_tables_agree_with_python_libraries() {
    let python = std::env::var("DICTA_STATISTICS_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let child = Command::new(&python)
        .arg(SCRIPT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return skip(&format!("{python} cannot be started: {error}")),
    };
    let mut stdin = child.stdin.take().expect("a pipe");
    // A script without its packages ends before it reads, which breaks the pipe.
    let _ended = stdin.write_all(cases().to_string().as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("the script ends");
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(MISSING_PACKAGE) {
        return skip(text.trim());
    }
    assert!(output.status.success(), "{text}");
    assert!(text.contains("figures agree"), "{text}");
}

/// Not by `eprintln!`, which test runners keep to themselves where a test passes.
fn skip(reason: &str) {
    let _written = writeln!(
        std::io::stderr().lock(),
        "skipped: {reason} (pip install scikit-learn statsmodels krippendorff scipy; DICTA_STATISTICS_PYTHON names the program)"
    );
}

fn value(figure: Figure) -> Value {
    figure.map_or(Value::Null, |figure| json!(figure))
}

fn figures<const N: usize>(figures: [(&str, Figure); N]) -> Value {
    let all = figures.map(|(name, figure)| (name.to_owned(), value(figure)));
    Value::Object(Map::from_iter(all))
}

fn limits(interval: Interval) -> [f64; 2] {
    [interval.lower, interval.upper]
}

/// Makes random inputs with the figures of this crate.
fn cases() -> Value {
    let mut random = Rng::with_seed(18);
    let mut all = Map::new();
    let mut add = |kind: &str, make: &mut dyn FnMut(&mut Rng) -> Value| {
        let cases: Vec<Value> = (0..INPUTS).map(|_| make(&mut random)).collect();
        all.insert(kind.to_owned(), Value::Array(cases));
    };
    add("binary", &mut binary);
    add("weighted", &mut weighted);
    add("categories", &mut categories);
    add("scores", &mut scores);
    add("raters", &mut raters);
    add("missing", &mut missing_ratings);
    add("shares", &mut shares);
    add("pairs", &mut pairs);
    add("holm", &mut holm);
    add("variants", &mut variants);
    add("probabilities", &mut probabilities);
    add("flips", &mut flips);
    Value::Object(all)
}

fn binary(random: &mut Rng) -> Value {
    let counts = [(); 4].map(|()| random.u64(1..90));
    let [tp, fp, tf, ff] = counts;
    let table = ConfusionTable::from_counts(tp, fp, tf, ff);
    json!({
        "counts": counts,
        "figures": figures([
            ("agreement", table.agreement()),
            ("tpr", table.tpr()),
            ("tnr", table.tnr()),
            ("precision_on_fail", table.precision_on_fail()),
            ("f1_on_fail", table.f1_on_fail()),
            ("balanced_accuracy", table.balanced_accuracy()),
            ("mcc", table.mcc()),
            ("kappa", table.kappa()),
            ("kappa_max", table.kappa_max()),
            ("kappa_se", table.kappa_standard_error()),
            ("kappa_null_se", table.kappa_null_standard_error()),
        ]),
    })
}

fn weighted(random: &mut Rng) -> Value {
    let count = random.usize(10..60);
    let mut labels: Vec<WeightedLabel> = (0..count)
        .map(|_| WeightedLabel {
            label: random.bool(),
            verdict: random.bool(),
            weight: 1.0 + 20.0 * random.f64(),
        })
        .collect();
    // Both classes occur.
    labels[0].label = true;
    labels[1].label = false;
    let table = ConfusionTable::from_weighted(labels.iter().copied());
    let rows: Vec<Value> = labels
        .iter()
        .map(|label| json!([label.label, label.verdict, label.weight]))
        .collect();
    json!({
        "labels": rows,
        "figures": figures([
            ("agreement", table.agreement()),
            ("tpr", table.tpr()),
            ("tnr", table.tnr()),
            ("f1_on_fail", table.f1_on_fail()),
            ("kappa", table.kappa()),
            ("mcc", table.mcc()),
        ]),
    })
}

fn categories(random: &mut Rng) -> Value {
    let size = random.usize(2..6);
    let rows: Vec<Vec<u64>> = (0..size)
        .map(|_| (0..size).map(|_| random.u64(1..30)).collect())
        .collect();
    let borrowed: Vec<&[u64]> = rows.iter().map(Vec::as_slice).collect();
    let table = CategoryTable::from_rows(&borrowed).expect("square");
    json!({
        "rows": rows,
        "figures": figures([
            ("kappa", table.kappa()),
            ("kappa_se", table.kappa_standard_error()),
            ("kappa_null_se", table.kappa_null_standard_error()),
            ("kappa_max", table.kappa_max()),
        ]),
    })
}

fn scores(random: &mut Rng) -> Value {
    let count = random.usize(5..60);
    let pairs: Vec<(f64, f64)> = (0..count)
        .map(|_| {
            let score = random.u32(1..=5);
            let judge = if random.bool() {
                score
            } else {
                random.u32(1..=5)
            };
            (f64::from(score), f64::from(judge))
        })
        .collect();
    json!({
        "pairs": pairs,
        "figures": figures([
            ("linear", weighted_kappa(&pairs, DisagreementWeight::Linear)),
            ("quadratic", weighted_kappa(&pairs, DisagreementWeight::Quadratic)),
            ("spearman", spearman_rho(&pairs)),
            ("kendall", kendall_tau_b(&pairs)),
            ("mae", mean_absolute_error(&pairs)),
        ]),
    })
}

fn raters(random: &mut Rng) -> Value {
    let (raters, categories) = (random.usize(2..6), random.usize(2..5));
    let units: Vec<Vec<u64>> = (0..random.usize(3..30))
        .map(|_| {
            let mut counts = vec![0; categories];
            for _ in 0..raters {
                counts[random.usize(..categories)] += 1;
            }
            counts
        })
        .collect();
    json!({
        "units": units,
        "figures": figures([
            ("fleiss", fleiss_kappa(&units)),
            ("randolph", randolph_kappa(&units)),
        ]),
    })
}

fn missing_ratings(random: &mut Rng) -> Value {
    let raters = random.usize(2..5);
    let table: Vec<Vec<Option<f64>>> = (0..random.usize(6..30))
        .map(|_| {
            let rate = |random: &mut Rng| (random.f64() < 0.8).then(|| f64::from(random.u32(1..6)));
            (0..raters).map(|_| rate(random)).collect()
        })
        .collect();
    let units: Vec<Vec<f64>> = table
        .iter()
        .map(|unit| unit.iter().copied().flatten().collect())
        .collect();
    json!({
        "units": table,
        "figures": figures([
            ("nominal", krippendorff_alpha(&units, AlphaMetric::Nominal)),
            ("ordinal", krippendorff_alpha(&units, AlphaMetric::Ordinal)),
            ("interval", krippendorff_alpha(&units, AlphaMetric::Interval)),
            ("ratio", krippendorff_alpha(&units, AlphaMetric::Ratio)),
        ]),
    })
}

fn shares(random: &mut Rng) -> Value {
    let n = random.u64(1..400);
    let hits = random.u64(0..=n);
    json!({
        "hits": hits,
        "n": n,
        "wilson": limits(wilson_interval(hits as f64 / n as f64, n as f64, P95)),
        "beta": limits(clopper_pearson_interval(hits, n, P95)),
        "jeffreys": limits(jeffreys_interval(hits, n, P95)),
    })
}

fn pairs(random: &mut Rng) -> Value {
    let counts = PairedCounts {
        lost: random.u64(0..60),
        gained: random.u64(1..60),
        ..PairedCounts::default()
    };
    let (corrected, corrected_p) = counts.mcnemar_chi_squared(true).expect("discordant");
    let (plain, plain_p) = counts.mcnemar_chi_squared(false).expect("discordant");
    json!({
        "lost": counts.lost,
        "gained": counts.gained,
        "exact": counts.mcnemar_exact(),
        "mid_p": counts.mcnemar_mid_p(),
        "corrected": [corrected, corrected_p],
        "plain": [plain, plain_p],
    })
}

fn holm(random: &mut Rng) -> Value {
    let values: Vec<f64> = (0..random.usize(1..12))
        .map(|_| random.f64().powi(3))
        .collect();
    json!({ "values": values, "adjusted": adjust_holm(&values) })
}

/// A table of variants on the same labels. Some verdicts are missing.
fn variants(random: &mut Rng) -> Value {
    let mut labels: Vec<bool> = (0..random.usize(8..120)).map(|_| random.bool()).collect();
    // Both classes occur.
    (labels[0], labels[1]) = (true, false);
    let variants: Vec<VariantVerdicts> = (0..random.usize(2..7))
        .map(|at| {
            let right = 0.55 + 0.4 * random.f64();
            let verdicts = labels.iter().enumerate().map(|(place, label)| {
                let is_right = random.f64() < right;
                // The first two labels always have a verdict, so that no class is empty.
                (place < 2 || random.f64() < 0.95).then_some(*label == is_right)
            });
            VariantVerdicts {
                name: format!("v{at}"),
                verdicts: verdicts.collect(),
                ..VariantVerdicts::default()
            }
        })
        .collect();
    let table = compare_variants(&labels, &variants);
    let share = |one: ShareFigure| {
        json!({
            "value": one.share(),
            "labels": one.labels,
            "interval": one.interval.map(limits),
        })
    };
    let rows = table.variants.iter().zip(&variants).map(|(row, own)| {
        json!({
            "verdicts": own.verdicts,
            "tpr": share(row.tpr),
            "tnr": share(row.tnr),
            "agreement": share(row.agreement),
            "lost": row.paired.map(|paired| paired.counts.lost),
            "gained": row.paired.map(|paired| paired.counts.gained),
            "p": row.paired.map(|paired| paired.p_value),
            "p_holm": row.paired.map(|paired| paired.p_holm),
        })
    });
    json!({ "labels": labels, "variants": rows.collect::<Vec<_>>() })
}

fn probabilities(random: &mut Rng) -> Value {
    let mut pairs: Vec<(f64, bool)> = (0..random.usize(4..60))
        .map(|_| (f64::from(random.u32(0..=10)) / 10.0, random.bool()))
        .collect();
    pairs[0].1 = true;
    pairs[1].1 = false;
    json!({
        "pairs": pairs,
        "figures": figures([("brier", brier_score(&pairs)), ("auc", area_under_roc(&pairs))]),
    })
}

fn flips(random: &mut Rng) -> Value {
    let (measured, others) = (random.u64(5..150), random.u64(1..120));
    let seen = random.u64(0..=measured);
    let other = flips_of_other_cells(seen as f64, measured, others);
    let at = random.u64(0..=others);
    let cells: Vec<RepeatedCell> = (0..random.usize(2..60))
        .map(|_| {
            let repeats = random.u64(2..6);
            RepeatedCell {
                passes: random.u64(0..=repeats),
                repeats,
            }
        })
        .collect();
    let same = flips_of_same_cells(&cells, FlipPrior::Observed);
    json!({
        "measured": measured,
        "seen": seen,
        "others": others,
        "at": at,
        "range": other.range(P95),
        "at_least": other.at_least(at),
        "cells": cells.iter().map(|cell| [cell.passes, cell.repeats]).collect::<Vec<_>>(),
        "same_range": same.range(P95),
        "same_at_least": same.at_least(3),
    })
}
