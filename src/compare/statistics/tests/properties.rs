//! Laws that hold for all inputs.

use proptest::prelude::*;

use super::super::*;

const P95: Confidence = Confidence::P95;

prop_compose! {
    fn any_table()(counts in [0_u64..200, 0..200, 0..200, 0..200]) -> ConfusionTable {
        let [true_pass, false_pass, true_fail, false_fail] = counts;
        ConfusionTable::from_counts(true_pass, false_pass, true_fail, false_fail)
    }
}

prop_compose! {
    fn any_cell()(
        stratum in 0_usize..3,
        verdict: bool,
        extra in 0_u64..500,
        labels in 0_u64..60,
        share in 0.0..=1.0_f64,
    ) -> SamplingCell {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let label_passes = (share * labels as f64).round() as u64;
        SamplingCell { stratum, verdict, population: labels + extra + 1, missing: 0, labels, label_passes }
    }
}

fn any_population() -> impl Strategy<Value = SampledPopulation> {
    proptest::collection::vec(any_cell(), 1..6).prop_map(|cells| SampledPopulation {
        cells,
        ..SampledPopulation::default()
    })
}

fn any_scores() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let score = || (0_u32..7).prop_map(f64::from);
    proptest::collection::vec((score(), score()), 1..40)
}

fn near(a: Figure, b: Figure) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => (a - b).abs() < 1e-9,
        (a, b) => a.is_err() == b.is_err(),
    }
}

fn exchanged(population: &SampledPopulation) -> SampledPopulation {
    let cells = population.cells.iter().map(|cell| SamplingCell {
        verdict: !cell.verdict,
        label_passes: cell.labels - cell.label_passes,
        ..*cell
    });
    SampledPopulation {
        cells: cells.collect(),
        ..*population
    }
}

proptest! {
    #[test]
    fn intervals_of_shares_contain_their_point(hits in 0_u64..80, misses in 0_u64..80, extra in 0_u64..500) {
        let n = hits + misses;
        let share = if n == 0 { 0.5 } else { hits as f64 / n as f64 };
        let intervals = [
            wilson_interval(share, n as f64, P95),
            finite_wilson_interval(hits, n, n + extra, P95),
            clopper_pearson_interval(hits, n, P95),
            jeffreys_interval(hits, n, P95),
        ];
        for interval in intervals {
            prop_assert!(interval.contains(share), "{interval:?} {share}");
            prop_assert!(interval.lower >= 0.0 && interval.upper <= 1.0);
        }
        // Hits and misses are exchangeable.
        let mirrored = clopper_pearson_interval(misses, n, P95).complement();
        prop_assert!((mirrored.lower - intervals[2].lower).abs() < 1e-9);
        let mirrored = jeffreys_interval(misses, n, P95).complement();
        prop_assert!((mirrored.upper - intervals[3].upper).abs() < 1e-9);
        prop_assert!(intervals[1].width() <= intervals[0].width() + 1e-12);
    }

    #[test]
    fn figures_of_a_population_are_shares_inside_their_intervals(population in any_population()) {
        let figures = population.figures(P95);
        for estimate in [figures.tpr, figures.tnr, figures.agreement, figures.corrected_rate] {
            prop_assert!(estimate.interval.lower >= 0.0 && estimate.interval.upper <= 1.0);
            if let Ok(point) = estimate.point {
                prop_assert!(estimate.interval.contains(point), "{estimate:?}");
            } else {
                prop_assert_eq!(estimate.interval, Interval::SHARES);
            }
            prop_assert!(estimate.effective_labels <= estimate.labels as f64 + 1e-9);
        }
        let wider = Confidence::new(0.99).expect("a share");
        let wide = population.corrected_rate(wider).interval;
        let usual = figures.corrected_rate.interval;
        prop_assert!(wide.lower <= usual.lower + 1e-12 && wide.upper >= usual.upper - 1e-12);
    }

    #[test]
    fn exchanged_classes_exchange_tpr_and_tnr(population in any_population()) {
        let (figures, mirrored) = (population.figures(P95), exchanged(&population).figures(P95));
        prop_assert!(near(figures.tpr.point, mirrored.tnr.point));
        prop_assert!((figures.tpr.interval.lower - mirrored.tnr.interval.lower).abs() < 1e-9);
        prop_assert!((figures.tnr.interval.upper - mirrored.tpr.interval.upper).abs() < 1e-9);
        prop_assert!(near(figures.agreement.point, mirrored.agreement.point));
        prop_assert!((figures.agreement.interval.lower - mirrored.agreement.interval.lower).abs() < 1e-9);
        let rate = figures.corrected_rate.point.map(|rate| 1.0 - rate);
        prop_assert!(near(rate, mirrored.corrected_rate.point));
    }

    #[test]
    fn symmetric_figures_ignore_the_names_of_classes_and_raters(table in any_table()) {
        for other in [table.with_classes_exchanged(), table.with_raters_exchanged()] {
            prop_assert!(near(table.agreement(), other.agreement()));
            prop_assert!(near(table.kappa(), other.kappa()));
            prop_assert!(near(table.kappa_standard_error(), other.kappa_standard_error()));
            prop_assert!(near(table.kappa_max(), other.kappa_max()));
            prop_assert!(near(table.mcc(), other.mcc()));
            prop_assert!(near(table.ac1(), other.ac1()));
            prop_assert!(near(table.scott_pi(), other.scott_pi()));
        }
        prop_assert!(near(table.tpr(), table.with_classes_exchanged().tnr()));
        if let (Ok(kappa), Ok(max)) = (table.kappa(), table.kappa_max()) {
            prop_assert!((-1.0..=max + 1e-9).contains(&kappa));
            prop_assert!(table.kappa_interval(P95).expect("kappa is defined").contains(kappa));
        }
    }

    #[test]
    fn two_by_two_table_equals_the_category_table(counts in [0_u64..90, 0..90, 0..90, 0..90]) {
        let [tp, fp, tf, ff] = counts;
        let small = ConfusionTable::from_counts(tp, fp, tf, ff);
        let rows: [&[u64]; 2] = [&[tp, ff], &[fp, tf]];
        let large = CategoryTable::from_rows(&rows).expect("square");
        prop_assert!(near(small.kappa(), large.kappa()));
        prop_assert!(near(small.kappa_standard_error(), large.kappa_standard_error()));
        prop_assert!(near(small.ac1(), large.ac1()));
    }

    #[test]
    fn score_figures_match_their_definitions(pairs in any_scores()) {
        let sum = |term: &dyn Fn((f64, f64), (f64, f64)) -> f64| -> f64 {
            pairs.iter().flat_map(|a| pairs.iter().map(move |b| term(*a, *b))).sum()
        };
        let n = pairs.len() as f64;
        for (weight, power) in [(DisagreementWeight::Linear, 1), (DisagreementWeight::Quadratic, 2)] {
            let observed: f64 = pairs.iter().map(|(a, b)| (a - b).abs().powi(power)).sum();
            let expected = sum(&|a, b| (a.0 - b.1).abs().powi(power)) / n;
            let kappa = if expected > 0.0 { Ok(1.0 - observed / expected) } else { Err(Undefined::NoVariation) };
            prop_assert!(near(weighted_kappa(&pairs, weight), kappa));
        }
        let sign = |a: f64, b: f64| if a < b { -1.0 } else { f64::from(u8::from(a > b)) };
        let concordance = sum(&|a, b| sign(a.0, b.0) * sign(a.1, b.1));
        let (untied_a, untied_b) =
            (sum(&|a, b| sign(a.0, b.0).powi(2)), sum(&|a, b| sign(a.1, b.1).powi(2)));
        let tau = if untied_a * untied_b > 0.0 {
            Ok(concordance / (untied_a * untied_b).sqrt())
        } else {
            Err(Undefined::NoVariation)
        };
        prop_assert!(near(kendall_tau_b(&pairs), tau));
        let swapped: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        prop_assert!(near(spearman_rho(&pairs), spearman_rho(&swapped)));
        prop_assert!(near(score_bias(&pairs), score_bias(&swapped).map(|bias| -bias)));
    }

    #[test]
    fn alpha_of_equal_ratings_is_one_and_order_does_not_matter(
        mut units in proptest::collection::vec(proptest::collection::vec((1_u32..6).prop_map(f64::from), 0..5), 1..20),
    ) {
        let metrics = [AlphaMetric::Nominal, AlphaMetric::Ordinal, AlphaMetric::Interval, AlphaMetric::Ratio];
        let before = metrics.map(|metric| krippendorff_alpha(&units, metric));
        for unit in &mut units {
            unit.reverse();
        }
        units.reverse();
        for (metric, before) in metrics.into_iter().zip(before) {
            prop_assert!(near(before, krippendorff_alpha(&units, metric)));
            prop_assert!(before.is_err() || before.is_ok_and(|alpha| alpha <= 1.0 + 1e-9));
        }
        for unit in &mut units {
            let first = unit.first().copied().unwrap_or(0.0);
            unit.fill(first);
        }
        if let Ok(alpha) = krippendorff_alpha(&units, AlphaMetric::Ordinal) {
            prop_assert!((alpha - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn tango_mirrors_when_gains_and_losses_are_exchanged(lost in 0_u64..40, gained in 0_u64..40, rest in 0_u64..100) {
        let n = lost + gained + rest;
        let (found, mirrored) = (tango_interval(lost, gained, n, P95), tango_interval(gained, lost, n, P95));
        prop_assert!((found.lower + mirrored.upper).abs() < 1e-9);
        prop_assert!(found.lower >= -1.0 && found.upper <= 1.0);
        if n > 0 {
            prop_assert!(found.contains((gained as f64 - lost as f64) / n as f64));
            let narrower = tango_interval(lost, gained, n, Confidence::P90);
            prop_assert!(narrower.width() <= found.width() + 1e-12);
        }
    }

    #[test]
    fn paired_differences_contain_their_point_and_mirror(
        strata in proptest::collection::vec((0_u64..20, 0_u64..20, 0_u64..20, 0_u64..20, 0_u64..300), 1..4),
    ) {
        let strata: Vec<PairedStratum> = strata
            .into_iter()
            .map(|(lost, gained, same, outside, extra)| PairedStratum {
                population: lost + gained + same + outside + extra,
                labels: lost + gained + same + outside,
                of_class: lost + gained + same,
                lost,
                gained,
            })
            .collect();
        let mirrored: Vec<PairedStratum> = strata
            .iter()
            .map(|stratum| PairedStratum { lost: stratum.gained, gained: stratum.lost, ..*stratum })
            .collect();
        let (found, mirrored) = (paired_difference(&strata, P95), paired_difference(&mirrored, P95));
        prop_assert_eq!(found.is_ok(), mirrored.is_ok());
        if let (Ok(found), Ok(mirrored)) = (found, mirrored) {
            prop_assert!(found.interval.contains(found.difference), "{found:?}");
            prop_assert!((found.interval.lower + mirrored.interval.upper).abs() < 1e-9);
            prop_assert_eq!(found.method, mirrored.method);
        }
    }

    #[test]
    fn mcnemar_is_symmetric_and_mid_p_is_smaller(lost in 0_u64..60, gained in 0_u64..60) {
        let counts = PairedCounts { lost, gained, ..PairedCounts::default() };
        let mirrored = PairedCounts { lost: gained, gained: lost, ..counts };
        prop_assert!((counts.mcnemar_exact() - mirrored.mcnemar_exact()).abs() < 1e-12);
        prop_assert!(counts.mcnemar_mid_p() <= counts.mcnemar_exact() + 1e-12);
        prop_assert!(counts.mcnemar_mid_p() > 0.0 && counts.mcnemar_exact() <= 1.0);
    }

    #[test]
    fn holm_keeps_order_and_never_lowers_a_p_value(values in proptest::collection::vec(0.0..=1.0_f64, 0..12)) {
        let adjusted = adjust_holm(&values);
        for (at, p) in values.iter().enumerate() {
            prop_assert!(adjusted[at] >= *p && adjusted[at] <= 1.0);
            for (other, q) in values.iter().enumerate() {
                prop_assert!(p > q || adjusted[at] <= adjusted[other] + 1e-15);
            }
        }
    }

    #[test]
    fn flip_distributions_add_up_to_one(
        cells in proptest::collection::vec((0_u64..6, 0_u64..6), 0..30),
        flips in 0_u64..50,
        rest in 0_u64..50,
        others in 0_u64..80,
    ) {
        let cells: Vec<RepeatedCell> = cells
            .into_iter()
            .map(|(passes, fails)| RepeatedCell { passes, repeats: passes + fails })
            .collect();
        let expected: f64 = cells.iter().filter_map(|cell| cell.flip_rate()).sum();
        let same = flips_of_same_cells(&cells, FlipPrior::Observed);
        prop_assert!((same.mean() - expected).abs() < 1e-9);
        let smoothed = flips_of_same_cells(&cells, FlipPrior::Jeffreys);
        let other = flips_of_other_cells(flips as f64, flips + rest, others);
        for distribution in [same, smoothed, other] {
            prop_assert!((distribution.at_least(0) - 1.0).abs() < 1e-9);
            let (low, high) = distribution.range(P95);
            prop_assert!(low <= high && distribution.at_least(high + 1) <= 0.025 + 1e-9);
        }
    }

    #[test]
    fn draws_fill_their_quotas_without_repeats(
        strata in proptest::collection::vec((0_u32..3, any::<bool>()), 0..60),
        quotas in proptest::collection::vec(0_usize..30, 3),
        seed: u64,
    ) {
        let (strata, eligible): (Vec<u32>, Vec<bool>) = strata.into_iter().unzip();
        let draw = draw_by_strata(&strata, &eligible, &quotas, seed);
        let mut items: Vec<usize> = draw.items.iter().map(|drawn| drawn.item).collect();
        items.sort_unstable();
        items.dedup();
        prop_assert_eq!(items.len(), draw.items.len());
        for drawn in &draw.items {
            prop_assert!(eligible[drawn.item] && strata[drawn.item] == drawn.stratum);
            prop_assert!(drawn.probability > 0.0 && drawn.probability <= 1.0);
        }
        let with_quota = draw.strata.iter().zip(&quotas).filter(|(_, quota)| **quota > 0);
        let available: usize = with_quota.map(|(stratum, _)| stratum.eligible).sum();
        prop_assert_eq!(draw.items.len(), quotas.iter().sum::<usize>().min(available));
    }

    #[test]
    fn more_precision_needs_more_labels(share in 0.05..0.95_f64, half_width in 0.02..0.3_f64) {
        let needed = labels_for_half_width(share, half_width, P95).expect("a half-width");
        let width = |n: u64| wilson_interval(share, n as f64, P95).half_width();
        prop_assert!(width(needed) <= half_width);
        prop_assert!(needed == 1 || width(needed - 1) > half_width);
    }
}
