//! The luck of the best variant.

use fastrand::Rng;

use super::distributions::binomial_cdf;

/// Returns the expected difference between the measured agreement of the best of `variants` and its true agreement.
///
/// Assumes independent variants with the same true agreement, so it is an upper limit. The result is a share.
pub fn expected_optimism(variants: u32, labels: u64, agreement: f64) -> f64 {
    if labels == 0 {
        return 0.0;
    }
    let n = labels as f64;
    let expected_best: f64 = (0..labels)
        .map(|x| 1.0 - binomial_cdf(x, labels, agreement).powf(f64::from(variants)))
        .sum();
    expected_best / n - agreement
}

/// The range of the luck of the best variant, as shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptimismRange {
    /// The lower limit, by a bootstrap over cases.
    pub lower: f64,
    /// The upper limit, by the formula for independent variants.
    pub upper: f64,
}

/// The number of resamples of the lower limit.
const RESAMPLES: u32 = 400;
/// The seed of the resamples, so that the same verdicts give the same range.
const RESAMPLE_SEED: u64 = 1;

/// Returns the range of the luck of the best variant. `right` has, for each variant, whether each verdict is right.
/// `None` without variants or labels.
pub fn optimism_range(right: &[Vec<bool>]) -> Option<OptimismRange> {
    optimism_range_after(right, 0)
}

/// As [`optimism_range`], if `earlier` other variants were measured on the same labels before. They raise the upper limit,
/// because a person chose among them too.
pub fn optimism_range_after(right: &[Vec<bool>], earlier: u32) -> Option<OptimismRange> {
    resampled_range(right, earlier, RESAMPLES)
}

fn resampled_range(right: &[Vec<bool>], earlier: u32, resamples: u32) -> Option<OptimismRange> {
    let labels = right.iter().map(Vec::len).min()?;
    if labels == 0 {
        return None;
    }
    let count = |hits: usize| hits as f64 / labels as f64;
    let shares: Vec<f64> = right
        .iter()
        .map(|one| count(one[..labels].iter().filter(|one| **one).count()))
        .collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let variants = u32::try_from(shares.len()).unwrap_or(u32::MAX);
    let variants = variants.saturating_add(earlier);
    let upper = expected_optimism(variants, labels as u64, mean);
    let mut random = Rng::with_seed(RESAMPLE_SEED);
    let mut sum = 0.0;
    for _ in 0..resamples {
        let drawn: Vec<usize> = (0..labels).map(|_| random.usize(..labels)).collect();
        let in_sample = right
            .iter()
            .map(|one| drawn.iter().filter(|at| one[**at]).count());
        // The first of several best variants, as for the winner itself.
        let best = in_sample
            .enumerate()
            .max_by_key(|(at, hits)| (*hits, std::cmp::Reverse(*at)));
        if let Some((at, hits)) = best {
            sum += count(hits) - shares[at];
        }
    }
    let lower = (sum / f64::from(resamples.max(1))).max(0.0);
    // With few labels the two can be in the other order.
    Some(OptimismRange {
        lower: lower.min(upper),
        upper: upper.max(lower),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean lower limit, true luck and upper limit of simulated comparisons. The errors of all variants have
    /// a correlation of about one half, because a part of the cases is hard for all of them.
    fn simulate(variants: usize, labels: usize, spread: f64, seed: u64) -> [f64; 3] {
        const ROUNDS: u32 = 150;
        let mut random = Rng::with_seed(seed);
        let mut sums = [0.0; 3];
        for _ in 0..ROUNDS {
            let truths: Vec<f64> = (0..variants)
                .map(|at| {
                    let place = at as f64 / (variants.max(2) - 1) as f64 - 0.5;
                    0.85 + spread * place
                })
                .collect();
            let mut right = vec![Vec::with_capacity(labels); variants];
            for _ in 0..labels {
                let shared = random.f64();
                for (truth, own) in truths.iter().zip(&mut right) {
                    // With p = ρ the variants share one draw: the correlation of two equal variants is ρ.
                    let draw = if random.f64() < 0.5_f64.sqrt() {
                        shared
                    } else {
                        random.f64()
                    };
                    own.push(draw < *truth);
                }
            }
            let range = resampled_range(&right, 0, 60).expect("a range");
            let hits = |own: &Vec<bool>| own.iter().filter(|one| **one).count();
            let (at, best) = right
                .iter()
                .map(hits)
                .enumerate()
                .max_by_key(|(at, hits)| (*hits, std::cmp::Reverse(*at)))
                .expect("a winner");
            let luck = best as f64 / labels as f64 - truths[at];
            for (sum, value) in sums.iter_mut().zip([range.lower, luck, range.upper]) {
                *sum += value / f64::from(ROUNDS);
            }
        }
        sums
    }

    #[test]
    fn range_contains_the_true_luck_in_at_least_five_of_six_settings() {
        let settings = [
            (2, 40, 0.03),
            (3, 40, 0.03),
            (6, 40, 0.03),
            (6, 100, 0.03),
            (12, 40, 0.03),
            (6, 40, 0.15),
        ];
        let found =
            settings.map(|(variants, labels, spread)| simulate(variants, labels, spread, 7));
        let inside = found
            .iter()
            .filter(|[lower, luck, upper]| lower <= luck && luck <= upper)
            .count();
        assert!(inside >= 5, "{found:?}");
    }

    #[test]
    fn range_is_the_same_each_time_and_needs_labels() {
        let right = vec![vec![true, true, false, true], vec![true, false, true, true]];
        assert_eq!(optimism_range(&right), optimism_range(&right));
        let range = optimism_range(&right).expect("a range");
        assert!(
            0.0 <= range.lower && range.lower <= range.upper,
            "{range:?}"
        );
        let after = optimism_range_after(&right, 10).expect("a range");
        assert!(after.upper > range.upper, "{after:?} {range:?}");
        assert_eq!(optimism_range(&[]), None);
        assert_eq!(optimism_range(&[Vec::new()]), None);
    }
}
