//! Agreement of several raters, also with missing ratings.

use std::collections::BTreeMap;

use super::agreement::correct_for_chance;
use super::interval::{Figure, Undefined};

/// The distance between two ratings in Krippendorff's α.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlphaMetric {
    /// Ratings are equal or not, such as pass and fail.
    Nominal,
    /// Only the order of ratings has a meaning.
    Ordinal,
    /// Differences of ratings have a meaning, such as scores.
    Interval,
    /// Ratios of ratings have a meaning.
    Ratio,
}

/// A rating that is a key of a map: 0 and −0 are equal, and the order is that of the numbers.
#[derive(Clone, Copy)]
struct Rating(f64);

impl PartialEq for Rating {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Rating {}
impl PartialOrd for Rating {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Rating {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0 + 0.0).total_cmp(&(other.0 + 0.0))
    }
}

/// Returns Krippendorff's α. Each unit has the ratings that it received; units with fewer than two are left out.
pub fn krippendorff_alpha<U: AsRef<[f64]>>(units: &[U], metric: AlphaMetric) -> Figure {
    let units = || {
        units
            .iter()
            .map(AsRef::as_ref)
            .filter(|unit| unit.len() > 1)
    };
    let mut counts: BTreeMap<Rating, f64> = BTreeMap::new();
    for rating in units().flatten() {
        *counts.entry(Rating(*rating)).or_default() += 1.0;
    }
    let total: f64 = counts.values().sum();
    if total <= 0.0 {
        return Err(Undefined::NoPairs);
    }
    // Ordinal distances are distances of mean ranks.
    let mut below = 0.0;
    let ranks: BTreeMap<Rating, f64> = counts
        .iter()
        .filter(|_| metric == AlphaMetric::Ordinal)
        .map(|(rating, count)| {
            below += count;
            (*rating, below - count / 2.0)
        })
        .collect();
    let position = |rating: f64| ranks.get(&Rating(rating)).copied().unwrap_or(rating);
    let observed: f64 = units()
        .map(|unit| {
            let positions: Vec<f64> = unit.iter().map(|rating| position(*rating)).collect();
            let ones = vec![1.0; unit.len()];
            sum_of_distances(&positions, &ones, metric) / (unit.len() - 1) as f64
        })
        .sum();
    let positions: Vec<f64> = counts.keys().map(|rating| position(rating.0)).collect();
    let weights: Vec<f64> = counts.values().copied().collect();
    let expected = sum_of_distances(&positions, &weights, metric);
    if expected <= 0.0 {
        return Err(Undefined::NoVariation);
    }
    Ok(1.0 - (total - 1.0) * observed / expected)
}

/// Returns the sum over ordered pairs of the squared distance times both weights.
fn sum_of_distances(values: &[f64], weights: &[f64], metric: AlphaMetric) -> f64 {
    let pairs = || values.iter().zip(weights);
    let total: f64 = weights.iter().sum();
    match metric {
        AlphaMetric::Nominal => {
            let mut sorted: Vec<(Rating, f64)> = pairs().map(|(v, w)| (Rating(*v), *w)).collect();
            sorted.sort_by_key(|(rating, _)| *rating);
            let equal: f64 = sorted
                .chunk_by(|a, b| a.0 == b.0)
                .map(|same| same.iter().map(|(_, weight)| weight).sum::<f64>().powi(2))
                .sum();
            total * total - equal
        }
        AlphaMetric::Ordinal | AlphaMetric::Interval => {
            // The distances from the mean, so that large values of a small spread stay precise.
            let mean = pairs().map(|(v, w)| v * w).sum::<f64>() / total;
            2.0 * total * pairs().map(|(v, w)| w * (v - mean).powi(2)).sum::<f64>()
        }
        AlphaMetric::Ratio => pairs()
            .map(|(a, w)| {
                pairs()
                    .map(|(b, x)| w * x * ratio_distance(*a, *b))
                    .sum::<f64>()
            })
            .sum(),
    }
}

fn ratio_distance(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if sum == 0.0 {
        return 0.0;
    }
    ((a - b) / sum).powi(2)
}

/// Returns Fleiss' κ. Each unit has the number of ratings by category; all units have the same number of ratings.
pub fn fleiss_kappa<U: AsRef<[u64]>>(units: &[U]) -> Figure {
    let (observed, shares) = observed_agreement(units)?;
    correct_for_chance(observed, shares.iter().map(|share| share * share).sum())
}

/// Returns Randolph's κ, which assumes that all categories are equally likely by chance.
pub fn randolph_kappa<U: AsRef<[u64]>>(units: &[U]) -> Figure {
    let (observed, shares) = observed_agreement(units)?;
    correct_for_chance(observed, 1.0 / shares.len() as f64)
}

/// Returns the mean agreement of pairs of ratings, and the share of each category.
fn observed_agreement<U: AsRef<[u64]>>(units: &[U]) -> Result<(f64, Vec<f64>), Undefined> {
    let first = units.first().ok_or(Undefined::NoPairs)?.as_ref();
    let raters: u64 = first.iter().sum();
    if raters < 2 {
        return Err(Undefined::NoPairs);
    }
    let mut shares = vec![0.0; first.len()];
    let mut agreeing = 0.0;
    for unit in units.iter().map(AsRef::as_ref) {
        if unit.len() != shares.len() || unit.iter().sum::<u64>() != raters {
            return Err(Undefined::UnequalRaters);
        }
        for (share, count) in shares.iter_mut().zip(unit) {
            *share += *count as f64;
            agreeing += *count as f64 * (*count as f64 - 1.0);
        }
    }
    let (raters, ratings) = (raters as f64, units.len() as f64 * raters as f64);
    for share in &mut shares {
        *share /= ratings;
    }
    Ok((agreeing / (ratings * (raters - 1.0)), shares))
}
