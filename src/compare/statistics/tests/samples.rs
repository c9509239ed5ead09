//! Tests of draws, cells, empty cells, bounds and plans.

use super::super::*;

pub(super) const P95: Confidence = Confidence::P95;

pub(super) fn cell(
    stratum: usize,
    verdict: bool,
    population: u64,
    labels: u64,
    passes: u64,
) -> SamplingCell {
    SamplingCell {
        stratum,
        verdict,
        population,
        missing: 0,
        labels,
        label_passes: passes,
    }
}

pub(super) fn population(cells: Vec<SamplingCell>) -> SampledPopulation {
    SampledPopulation {
        cells,
        ..SampledPopulation::default()
    }
}

#[test]
fn random_draw_records_equal_probabilities_and_no_item_twice() {
    let eligible: Vec<bool> = (0..100).map(|item| item % 4 != 0).collect();
    let draw = draw_random(&eligible, 30, 7);
    let mut items: Vec<usize> = draw.items.iter().map(|drawn| drawn.item).collect();
    items.sort_unstable();
    items.dedup();
    assert_eq!(items.len(), 30);
    assert!(items.iter().all(|item| eligible[*item]));
    assert!(
        draw.items
            .iter()
            .all(|drawn| (drawn.probability - 0.4).abs() < 1e-12)
    );
    assert_eq!(
        draw.strata,
        [DrawnStratum {
            eligible: 75,
            drawn: 30
        }]
    );
    assert_eq!(draw, draw_random(&eligible, 30, 7), "the seed decides");
    assert_ne!(draw.items, draw_random(&eligible, 30, 8).items);
}

#[test]
fn seed_gives_the_same_items_in_every_version() {
    let draw = draw_random(&[true; 20], 5, 1);
    let items: Vec<usize> = draw.items.iter().map(|drawn| drawn.item).collect();
    // Recorded draws name this seed. If the generator changes, give draws a version.
    assert_eq!(items, PINNED);
}
const PINNED: [usize; 5] = [13, 11, 6, 4, 16];

#[test]
fn every_item_is_drawn_with_its_recorded_probability() {
    let strata = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1];
    let mut counts = [0_u32; 10];
    for seed in 0..4000 {
        for drawn in draw_by_strata(&strata, &[true; 10], &[1, 3], seed).items {
            counts[drawn.item] += 1;
        }
    }
    for (item, count) in counts.into_iter().enumerate() {
        let probability = if item < 4 { 0.25 } else { 0.5 };
        let share = f64::from(count) / 4000.0;
        assert!((share - probability).abs() < 0.035, "item {item}: {share}");
    }
}

#[test]
fn quota_above_a_stratum_moves_to_the_others() {
    let strata: Vec<u32> = (0..50).map(|item| u32::from(item >= 5)).collect();
    let draw = draw_by_strata(&strata, &[true; 50], &[10, 10], 3);
    let of = |stratum| {
        draw.items
            .iter()
            .filter(move |drawn| drawn.stratum == stratum)
    };
    assert_eq!((of(0).count(), of(1).count()), (5, 15));
    assert!(of(0).all(|drawn| (drawn.probability - 1.0).abs() < 1e-12));
    assert!(of(1).all(|drawn| (drawn.probability - 15.0 / 45.0).abs() < 1e-12));
    assert_eq!(split_evenly(30, &[4, 100, 8]), [4, 18, 8]);
    assert_eq!(split_evenly(3, &[0, 2]), [0, 2]);
}

#[test]
fn quota_of_an_empty_stratum_does_not_fill_one_without_a_quota() {
    let draw = draw_by_strata(&[1, 1, 2], &[true; 3], &[2, 0, 1], 1);
    let drawn: Vec<usize> = draw.strata.iter().map(|stratum| stratum.drawn).collect();
    assert_eq!(drawn, [0, 0, 1]);
}

#[test]
fn take_all_reads_the_set_with_probability_one() {
    let set: Vec<bool> = (0..40).map(|item| item < 6).collect();
    let draw = draw_take_all(&set, &[true; 40], 17, 5);
    let (taken, rest): (Vec<&DrawnItem>, Vec<&DrawnItem>) =
        draw.items.iter().partition(|drawn| drawn.stratum == 0);
    assert_eq!((taken.len(), rest.len()), (6, 17));
    assert!(taken.iter().all(|drawn| drawn.probability >= 1.0));
    assert!(
        rest.iter()
            .all(|drawn| (drawn.probability - 0.5).abs() < 1e-12)
    );
}

#[test]
fn items_become_cells_by_arrival_strata_and_verdict() {
    let item = |arrival, strata, verdict, label| PopulationItem {
        arrival,
        strata,
        verdict,
        label,
    };
    let (both, first): (&[_], &[_]) = (&[Some(0), Some(1)], &[Some(0), None]);
    let never: &[Option<u32>] = &[None, None];
    let sampled = SampledPopulation::from_items([
        item(0, both, Some(true), MeasuredLabel::Is(true)),
        item(0, both, Some(false), MeasuredLabel::Is(true)),
        item(0, both, Some(true), MeasuredLabel::Missing),
        item(0, first, Some(true), MeasuredLabel::NotDrawn),
        item(1, both, Some(true), MeasuredLabel::Is(false)),
        item(0, both, None, MeasuredLabel::Is(true)),
        item(0, never, Some(true), MeasuredLabel::NotDrawn),
    ]);
    let missing = SamplingCell {
        missing: 1,
        ..cell(0, true, 2, 1, 1)
    };
    assert_eq!(
        sampled.cells,
        [
            missing,
            cell(0, false, 1, 1, 1),
            cell(1, true, 1, 0, 0),
            cell(2, true, 1, 1, 0)
        ]
    );
    assert_eq!((sampled.covered(), sampled.total()), (5, 7));
    assert_eq!((sampled.unreachable, sampled.without_verdict), (1, 1));
    assert_eq!(sampled.cells_with_missing_labels().count(), 1);
    assert_eq!((sampled.labels_of(true), sampled.labels_of(false)), (2, 1));
}

#[test]
fn new_verdicts_change_cells_but_not_the_corrected_rate_of_a_census() {
    let verdicts = [[true, true, false, false], [false, true, true, false]];
    let labels = [true, false, true, true];
    for verdicts in verdicts {
        let sampled = SampledPopulation::from_items(verdicts.into_iter().zip(labels).map(
            |(verdict, label)| PopulationItem {
                arrival: 0,
                strata: &[Some(0)],
                verdict: Some(verdict),
                label: MeasuredLabel::Is(label),
            },
        ));
        let rate = sampled.corrected_rate(P95);
        assert_eq!(rate.point, Ok(0.75));
        assert!(rate.interval.width() < 1e-12, "everything is labelled");
    }
}

#[test]
fn class_without_labels_has_no_rate_and_the_whole_interval() {
    let sampled = population(vec![cell(0, true, 90, 10, 10), cell(0, false, 10, 2, 2)]);
    let tnr = sampled.tnr(P95);
    assert_eq!(tnr.point, Err(Undefined::NoLabelFails));
    assert_eq!((tnr.interval, tnr.labels), (Interval::SHARES, 0));
    assert!(sampled.tpr(P95).point.is_ok());
}

#[test]
fn population_without_labels_has_no_figure() {
    let sampled = population(vec![cell(0, true, 90, 0, 0), cell(0, false, 10, 0, 0)]);
    let figures = sampled.figures(P95);
    assert_eq!(figures.corrected_rate.point, Err(Undefined::NoLabels));
    assert_eq!(figures.agreement.point, Err(Undefined::NoLabels));
    assert_eq!(figures.agreement.interval, Interval::SHARES);
    assert_eq!(figures.judged_rate, Ok(0.9));
    let none = SampledPopulation::default().figures(P95);
    assert_eq!(none.judged_rate, Err(Undefined::NoLabels));
    assert_eq!(none.tpr.interval, Interval::SHARES);
}

#[test]
fn empty_cell_widens_the_interval_and_keeps_the_point_inside() {
    let full = population(vec![cell(0, true, 930, 18, 17), cell(0, false, 70, 2, 0)]);
    let empty = population(vec![cell(0, true, 930, 20, 19), cell(0, false, 70, 0, 0)]);
    let (full, empty) = (full.corrected_rate(P95), empty.corrected_rate(P95));
    // No label has the verdict of the empty cell, so it counts as half passes.
    assert!((empty.point.expect("labels") - (0.93 * 0.95 + 0.07 * 0.5)).abs() < 1e-12);
    assert!(empty.interval.upper > full.interval.upper);
    assert!(empty.interval.contains(empty.point.expect("labels")));
}

#[test]
fn one_of_one_fail_is_printed_with_its_interval_first() {
    let sampled = population(vec![
        cell(0, true, 1_000_000, 19, 19),
        cell(0, false, 50_000, 1, 0),
    ]);
    let tnr = sampled.tnr(P95);
    assert_eq!((tnr.point, tnr.labels), (Ok(1.0), 1));
    assert_eq!(
        FigurePresentation::for_labels(tnr.labels),
        FigurePresentation::CountsOnly
    );
    assert_eq!(FigurePresentation::missing_labels(tnr.labels), 19);
    assert_eq!(
        [4, 5, 19, 20].map(FigurePresentation::for_labels),
        [
            FigurePresentation::CountsOnly,
            FigurePresentation::IntervalFirst,
            FigurePresentation::IntervalFirst,
            FigurePresentation::PointFirst
        ]
    );
}

#[test]
fn required_bound_compares_the_lower_limit_and_asks_for_labels() {
    let sampled = population(vec![
        cell(0, true, 5000, 60, 57),
        cell(0, false, 1000, 40, 4),
    ]);
    let tnr = sampled.tnr(P95);
    let point = tnr.point.expect("labels");
    assert_eq!(
        check_lower_bound(&tnr, tnr.further.lower, 0),
        BoundCheck::Holds
    );
    assert_eq!(
        check_lower_bound(&tnr, point, 0),
        BoundCheck::Fails,
        "the point does not count"
    );
    assert_eq!(
        check_lower_bound(&tnr, 0.1, 50),
        BoundCheck::TooFewLabels(50 - 39)
    );
    let few = population(vec![
        cell(0, true, 5000, 10, 10),
        cell(0, false, 1000, 9, 0),
    ]);
    assert_eq!(
        check_lower_bound(&few.tnr(P95), 0.1, 0),
        BoundCheck::TooFewLabels(11)
    );
}

#[test]
fn constant_raters_have_no_kappa_and_one_constant_rater_has_kappa_0() {
    let both = ConfusionTable::from_counts(5, 0, 0, 0);
    assert_eq!(both.kappa(), Err(Undefined::NoVariation));
    assert_eq!(both.mcc(), Err(Undefined::NoVariation));
    assert_eq!(both.tnr(), Err(Undefined::NoLabelFails));
    assert_eq!(both.f1_on_fail(), Err(Undefined::NoLabelFails));
    assert_eq!(both.precision_on_fail(), Err(Undefined::NoJudgedFails));
    let judge = ConfusionTable::from_counts(3, 2, 0, 0);
    assert!(judge.kappa().expect("labels vary").abs() < 1e-12);
    assert_eq!(ConfusionTable::default().kappa(), Err(Undefined::NoLabels));
    assert_eq!(ConfusionTable::default().mcc(), Err(Undefined::NoLabels));
    assert_eq!(
        spearman_rho(&[(1.0, 1.0), (1.0, 2.0)]),
        Err(Undefined::NoVariation)
    );
    assert_eq!(kendall_tau_b(&[]), Err(Undefined::NoLabels));
    assert_eq!(
        krippendorff_alpha(&[[1.0, 1.0]], AlphaMetric::Ordinal),
        Err(Undefined::NoVariation)
    );
    assert_eq!(
        krippendorff_alpha(&[[1.0]], AlphaMetric::Nominal),
        Err(Undefined::NoPairs)
    );
    assert_eq!(
        fleiss_kappa(&[[2, 0], [1, 0]]),
        Err(Undefined::UnequalRaters)
    );
}

#[test]
fn bootstrap_of_a_table_matches_the_bootstrap_of_its_cases() {
    let sampled = population(vec![cell(0, true, 600, 60, 55), cell(0, false, 400, 40, 6)]);
    let settings = Bootstrap::default();
    let fast = bootstrap_table(&sampled, settings, |table| table.kappa()).expect("defined");
    let judged = |verdict: bool, n: usize, passes: usize| -> Vec<(bool, bool)> {
        (0..n).map(|at| (at < passes, verdict)).collect()
    };
    let (passed, failed) = (judged(true, 60, 55), judged(false, 40, 6));
    let slow = bootstrap_cases(&[&passed, &failed], settings, |cases| {
        let mut table = ConfusionTable::default();
        for (label, verdict) in cases {
            table.add(*label, *verdict, 1.0);
        }
        table.kappa()
    })
    .expect("defined");
    assert!((fast.interval.lower - slow.interval.lower).abs() < 0.02);
    assert!((fast.interval.upper - slow.interval.upper).abs() < 0.02);
    let kappa = sampled.weighted_table().kappa().expect("defined");
    assert!(fast.interval.contains(kappa));
    assert!(!fast.is_approximate);
    let again = bootstrap_table(&sampled, settings, |table| table.kappa());
    assert_eq!(again, Ok(fast), "the seed decides");
}

#[test]
fn bootstrap_without_a_class_has_no_interval() {
    let sampled = population(vec![cell(0, true, 600, 3, 3), cell(0, false, 400, 2, 2)]);
    let settings = Bootstrap::default();
    assert_eq!(
        bootstrap_table(&sampled, settings, |table| table.tnr()),
        Err(Undefined::UndefinedResamples)
    );
    let agreement = bootstrap_table(&sampled, settings, |table| table.agreement());
    assert!(agreement.expect("defined").is_approximate);
}

#[test]
fn plan_names_the_missing_labels_of_both_classes_and_their_draws() {
    let progress = ClassProgress {
        labels: 40,
        effective_labels: 40.0,
        measured: None,
    };
    assert_eq!(
        labels_missing(progress, 0.08, P95),
        Some(17),
        "57 are needed"
    );
    let weighted = ClassProgress {
        effective_labels: 20.0,
        ..progress
    };
    assert_eq!(labels_missing(weighted, 0.08, P95), Some(114 - 40));
    assert_eq!(
        labels_missing(ClassProgress::default(), 0.08, P95),
        Some(57)
    );
    // A figure needs 20 labels, so a plan for a wide interval asks for them, too.
    let wide = labels_missing(ClassProgress::default(), 0.3, P95);
    assert_eq!(wide, Some(20));
    assert_eq!(draws_for_class(10, 0.05), Some(200));
    assert_eq!(draws_for_class(10, 0.0), None);
    let passed = VerdictStratum {
        available: 700,
        labels: 48,
        label_passes: 47,
    };
    let failed = VerdictStratum {
        available: 200,
        labels: 48,
        label_passes: 16,
    };
    let draw = suggest_draws(17, 30, passed, failed);
    assert!(draw.is_enough && draw.expected_passes >= 17.0 && draw.expected_fails >= 29.999);
    assert!(
        draw.from_judged_fails > draw.from_judged_passes,
        "most fails are there"
    );
    // Without a pilot, the plan expects a judge that is mostly right, and draws from both of its verdicts.
    let unlabelled = |available| VerdictStratum {
        available,
        ..VerdictStratum::default()
    };
    let draw = suggest_draws(57, 57, unlabelled(142), unlabelled(58));
    assert_eq!((draw.from_judged_passes, draw.from_judged_fails), (57, 57));
    assert!(draw.is_enough);
    // One class is enough, and no verdict stays without labels.
    let draw = suggest_draws(20, 0, unlabelled(500), unlabelled(500));
    assert_eq!((draw.from_judged_passes, draw.from_judged_fails), (22, 10));
    let draw = suggest_draws(0, 0, unlabelled(500), unlabelled(500));
    assert!(draw.is_enough && draw.from_judged_passes + draw.from_judged_fails == 0);
    let short = suggest_draws(17, 500, passed, failed);
    assert!(!short.is_enough);
    assert_eq!(
        (short.from_judged_passes, short.from_judged_fails),
        (700, 200)
    );
}

#[test]
fn plan_ends_exactly_when_the_shown_interval_is_narrow_enough() {
    let progress = |labels: u64, half_width: f64| ClassProgress {
        labels,
        effective_labels: labels as f64,
        measured: Some(MeasuredShare {
            share: 0.8,
            half_width,
        }),
    };
    assert_eq!(labels_missing(progress(95, 0.08), 0.08, P95), Some(0));
    assert_eq!(labels_missing(progress(40, 0.08), 0.08, P95), Some(0));
    assert_eq!(labels_missing(progress(500, 0.081), 0.08, P95), Some(17));
    // 60 equal labels give ±0.10, so 120 labels with the same interval are worth 60.
    assert_eq!(labels_for_half_width(0.8, 0.1, P95), Some(60));
    assert_eq!(
        labels_missing(progress(120, 0.1), 0.08, P95),
        Some(190 - 120)
    );
}

#[test]
fn suggested_draw_is_the_smallest_one() {
    let passed = VerdictStratum {
        available: 60,
        labels: 10,
        label_passes: 9,
    };
    let failed = VerdictStratum {
        available: 60,
        labels: 10,
        label_passes: 3,
    };
    for (passes, fails) in [(0, 0), (5, 0), (0, 9), (12, 12), (30, 4)] {
        let draw = suggest_draws(passes, fails, passed, failed);
        let smaller = (0..=60_u64)
            .flat_map(|n| (0..=60_u64).map(move |m| (n, m)))
            .filter(|(n, m)| {
                let (n, m) = (*n as f64, *m as f64);
                let expected = n * 10.0 / 12.0 + m * 4.0 / 12.0;
                expected + 1e-9 >= passes as f64 && n + m - expected + 1e-9 >= fails as f64
            })
            .map(|(n, m)| n + m)
            .min();
        assert_eq!(
            Some(draw.from_judged_passes + draw.from_judged_fails),
            smaller
        );
    }
}

#[test]
fn neyman_gives_every_stratum_ten_labels() {
    assert_eq!(neyman_quotas(&[(900, 0.5), (100, 0.999)], 100), [90, 10]);
    assert_eq!(neyman_quotas(&[(900, 0.5), (3, 0.5)], 100), [97, 3]);
    assert_eq!(rogan_gladen_passes(100, 0.5, 0.9, 0.9, 50), 50);
    assert!(rogan_gladen_passes(100, 0.8, 0.95, 0.7, 50) < 80);
}

#[test]
fn large_states_have_a_range_of_flips_without_delay() {
    let cells = vec![
        RepeatedCell {
            passes: 1,
            repeats: 4
        };
        20_000
    ];
    let flips = flips_of_same_cells(&cells, FlipPrior::Observed);
    assert!((flips.mean() - 10_000.0).abs() < 1e-6);
    let (low, high) = flips.range(P95);
    // ± 1.96 · √(20,000 / 4).
    assert!((9860..=9863).contains(&low) && (10_137..=10_140).contains(&high));
}

#[test]
fn repeats_that_all_agree_do_not_make_the_noise_certainly_zero() {
    let quiet = vec![
        RepeatedCell {
            passes: 3,
            repeats: 3
        };
        10
    ];
    let rate = self_flip_rate(&quiet, P95).expect("defined");
    assert!(rate.rate.abs() < 1e-12 && rate.interval.upper > 0.2);
    let pairs = [2, 0, 1, 2].map(|passes| RepeatedCell { passes, repeats: 2 });
    let rate = self_flip_rate(&pairs, P95).expect("defined");
    assert_eq!(rate.interval, wilson_interval(0.25, 4.0, P95));
    let groups = [pairs.to_vec(), pairs.to_vec(), quiet[..2].to_vec()];
    let clustered = clustered_self_flip_rate(&groups, P95).expect("defined");
    assert!((clustered.rate - 0.2).abs() < 1e-12 && clustered.interval.contains(0.2));
    let single = [RepeatedCell {
        passes: 1,
        repeats: 1,
    }];
    assert_eq!(self_flip_rate(&single, P95), Err(Undefined::TooFewValues));
}

#[test]
fn paired_strata_without_changes_use_tango_limits() {
    let stratum = |population, of_class, lost, gained| PairedStratum {
        population,
        labels: 50,
        of_class,
        lost,
        gained,
    };
    let agreement = [stratum(740, 50, 0, 0), stratum(260, 50, 1, 6)];
    let found = paired_difference(&agreement, P95).expect("defined");
    assert_eq!(found.method, PairedMethod::MoverTango);
    assert!((found.difference - 0.026).abs() < 1e-12 && found.interval.contains(0.026));
    assert!(found.interval.lower < 0.0);
    let tpr = [stratum(740, 48, 2, 5), stratum(260, 17, 1, 6)];
    let found = paired_difference(&tpr, P95).expect("defined");
    let classes = (0.74 * 48.0 / 50.0, 0.26 * 17.0 / 50.0);
    let gain = 0.74 * 3.0 / 50.0 + 0.26 * 5.0 / 50.0;
    assert!((found.difference - gain / (classes.0 + classes.1)).abs() < 1e-12);
    assert_eq!(found.method, PairedMethod::StratifiedT);
    let none = [stratum(740, 0, 0, 0), stratum(260, 0, 0, 0)];
    assert_eq!(paired_difference(&none, P95), Err(Undefined::NoLabels));
    let unread = PairedStratum {
        population: 300,
        ..PairedStratum::default()
    };
    let found = paired_difference(&[agreement[1], unread], P95).expect("defined");
    assert!(
        found.interval.width() > 0.5,
        "an unlabelled stratum can differ in any way"
    );
}

#[test]
fn rogan_gladen_is_shown_only_for_random_samples_of_informative_judges() {
    assert!(shows_rogan_gladen(true, 0.8, 0.4));
    assert!(!shows_rogan_gladen(false, 0.8, 0.4));
    assert!(!shows_rogan_gladen(true, 0.6, 0.45));
}

#[test]
fn paired_items_become_strata_of_the_class() {
    let item = |strata, label, old, new| PairedItem {
        arrival: 0,
        strata,
        label,
        old_verdict: Some(old),
        new_verdict: Some(new),
    };
    let (first, second): (&[_], &[_]) = (&[Some(0)], &[Some(1)]);
    let items = [
        item(first, MeasuredLabel::Is(true), false, true),
        item(first, MeasuredLabel::Is(false), false, true),
        item(first, MeasuredLabel::NotDrawn, true, true),
        item(second, MeasuredLabel::Is(true), true, true),
        item(second, MeasuredLabel::Missing, true, true),
        item(&[None], MeasuredLabel::Is(true), true, false),
        PairedItem {
            new_verdict: None,
            ..item(second, MeasuredLabel::Is(true), true, true)
        },
    ];
    let stratum = |population, labels, of_class, lost, gained| PairedStratum {
        population,
        labels,
        of_class,
        lost,
        gained,
    };
    assert_eq!(
        paired_strata(items, None),
        [stratum(3, 2, 2, 1, 1), stratum(2, 1, 1, 0, 0)]
    );
    assert_eq!(
        paired_strata(items, Some(true)),
        [stratum(3, 2, 1, 0, 1), stratum(2, 1, 1, 0, 0)]
    );
    assert_eq!(
        paired_strata(items, Some(false)),
        [stratum(3, 2, 1, 1, 0), stratum(2, 1, 0, 0, 0)]
    );
    let counts = PairedCounts {
        both_right: 1,
        lost: 1,
        gained: 1,
        both_wrong: 0,
    };
    assert_eq!(paired_counts(items, None), counts);
}

/// Returns ln(n!) for 0 to `most`.
fn ln_factorials(most: usize) -> Vec<f64> {
    let mut all = vec![0.0];
    for n in 1..=most {
        all.push(all[n - 1] + (n as f64).ln());
    }
    all
}

/// Returns the exact coverage of an interval of the share `hits / population` in a random draw of `labels`.
fn exact_coverage(
    (hits, labels, population): (usize, usize, usize),
    intervals: &[Interval],
    ln_factorials: &[f64],
) -> f64 {
    let choose = |n: usize, k: usize| ln_factorials[n] - ln_factorials[k] - ln_factorials[n - k];
    let share = hits as f64 / population as f64;
    let others = population - hits;
    let drawn = labels.saturating_sub(others)..=labels.min(hits);
    let covering = drawn.filter(|found| intervals[*found].contains(share));
    let ways = covering.map(|found| {
        choose(hits, found) + choose(others, labels - found) - choose(population, labels)
    });
    ways.map(f64::exp).sum()
}

#[test]
fn interval_of_a_rare_share_covers_every_share_of_a_random_draw() {
    let ln_factorials = ln_factorials(1000);
    // The random part of a review, also next to take-all sets of 50, which leave 950 transcripts.
    for (labels, population) in [
        (50, 1000),
        (100, 1000),
        (200, 1000),
        (400, 1000),
        (50, 950),
        (200, 950),
    ] {
        let intervals = |interval: fn(u64, u64, u64, Confidence) -> Interval| -> Vec<Interval> {
            let found = 0..=labels as u64;
            found
                .map(|found| interval(found, labels as u64, population as u64, P95))
                .collect()
        };
        let corrected = intervals(finite_continuous_interval);
        let plain = intervals(finite_wilson_interval);
        let lowest = |intervals: &[Interval]| {
            let counts = 1..population;
            counts
                .map(|hits| exact_coverage((hits, labels, population), intervals, &ln_factorials))
                .fold(1.0, f64::min)
        };
        assert!(
            lowest(&corrected) >= 0.94,
            "{labels}: {}",
            lowest(&corrected)
        );
        // The correction is needed: without it, some share is covered less often.
        assert!(lowest(&plain) < 0.93, "{labels}: {}", lowest(&plain));
    }
}
