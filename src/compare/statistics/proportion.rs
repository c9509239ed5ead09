//! Intervals of one share.

use super::distributions::beta_quantile;
use super::interval::{Confidence, Interval};

/// Returns Wilson's score interval (1927) of a share of `n` values. `n` may be an effective number. All shares if `n` is 0.
pub fn wilson_interval(share: f64, n: f64, confidence: Confidence) -> Interval {
    if n <= 0.0 {
        return Interval::SHARES;
    }
    let z2 = confidence.z().powi(2);
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = (z2 * (share * (1.0 - share) / n + z2 / (4.0 * n * n))).sqrt() / (1.0 + z2 / n);
    // Rounding can put a limit just above 0 or below 1.
    Interval::new(centre - half, centre + half)
        .including(share)
        .clamped(Interval::SHARES)
}

/// Returns Wilson's score interval with continuity correction (Newcombe 1998, method 4). It holds for rare events, at
/// the price of more width.
pub fn continuous_wilson_interval(share: f64, n: f64, confidence: Confidence) -> Interval {
    if n <= 0.0 {
        return Interval::SHARES;
    }
    let z = confidence.z();
    let (z2, rest) = (z * z, 1.0 - share);
    let limit = |sign: f64| {
        let spread = z2 + sign * 2.0 - 1.0 / n + 4.0 * share * (n * rest - sign);
        let numerator = 2.0 * n * share + z2 + sign * (1.0 + z * spread.max(0.0).sqrt());
        numerator / (2.0 * (n + z2))
    };
    let lower = if share <= 0.0 { 0.0 } else { limit(-1.0) };
    let upper = if share >= 1.0 { 1.0 } else { limit(1.0) };
    Interval::new(lower, upper)
        .including(share)
        .clamped(Interval::SHARES)
}

/// Returns Wilson's interval of a share of a population of known size, of which `labels` were drawn by chance.
///
/// If everything is labelled, the interval has no width. If nothing is labelled, it contains all shares.
pub fn finite_wilson_interval(
    passes: u64,
    labels: u64,
    population: u64,
    confidence: Confidence,
) -> Interval {
    finite_interval(passes, labels, population, |share, n| {
        wilson_interval(share, n, confidence)
    })
}

/// As [`finite_wilson_interval`], with continuity correction.
pub fn finite_continuous_interval(
    passes: u64,
    labels: u64,
    population: u64,
    confidence: Confidence,
) -> Interval {
    finite_interval(passes, labels, population, |share, n| {
        continuous_wilson_interval(share, n, confidence)
    })
}

/// Returns an interval with the effective number n·(N − 1)/(N − n) of labels.
fn finite_interval(
    passes: u64,
    labels: u64,
    population: u64,
    interval: impl Fn(f64, f64) -> Interval,
) -> Interval {
    if labels == 0 {
        return Interval::SHARES;
    }
    let share = passes as f64 / labels as f64;
    if labels >= population {
        return Interval::exact(share);
    }
    let correction = (population - 1) as f64 / (population - labels) as f64;
    interval(share, labels as f64 * correction)
}

/// Returns the interval of a share for further items from the source of a population.
///
/// `interval` is about the population, and `items` is the number of its items. The population is a random sample of the
/// source, so its own chance is added: each limit becomes that of Wilson's interval with 1/(1/n + 1/items) labels, where
/// n is the number with which Wilson's interval has this limit. If one random draw gave the labels, this is Wilson's
/// interval of the labels, whether they are a few or all of the population.
pub fn superpopulation_interval(
    share: f64,
    interval: Interval,
    items: f64,
    confidence: Confidence,
) -> Interval {
    let z2 = confidence.z().powi(2);
    let limits = |limit: f64| {
        let distance = (limit - share).powi(2);
        // The inverse of n. A limit at the share adds no chance, and one at 0 or 1 can't get worse.
        let inverse = if distance > 0.0 {
            distance / (z2 * limit * (1.0 - limit))
        } else {
            0.0
        };
        wilson_interval(share, 1.0 / (inverse + 1.0 / items), confidence)
    };
    if items <= 0.0 {
        return Interval::SHARES;
    }
    let lower = if interval.lower > 0.0 {
        limits(interval.lower).lower
    } else {
        0.0
    };
    let upper = if interval.upper < 1.0 {
        limits(interval.upper).upper
    } else {
        1.0
    };
    Interval::new(lower, upper)
        .including(interval.lower)
        .including(interval.upper)
}

/// Returns the interval of Clopper and Pearson (1934), which covers at least its confidence. All shares if `n` is 0.
pub fn clopper_pearson_interval(hits: u64, n: u64, confidence: Confidence) -> Interval {
    let (x, rest) = (hits as f64, n.saturating_sub(hits) as f64);
    let lower = || beta_quantile(confidence.lower_tail(), x, rest + 1.0);
    let upper = || beta_quantile(confidence.upper_tail(), x + 1.0, rest);
    Interval::new(
        if hits == 0 { 0.0 } else { lower() },
        if hits >= n { 1.0 } else { upper() },
    )
}

/// Returns Jeffreys' interval: quantiles of the beta distribution with half a pass and half a fail added.
///
/// The lower limit is 0 without a hit, and the upper limit is 1 without a miss.
pub fn jeffreys_interval(hits: u64, n: u64, confidence: Confidence) -> Interval {
    let (a, b) = (hits as f64 + 0.5, n.saturating_sub(hits) as f64 + 0.5);
    Interval::new(
        if hits == 0 {
            0.0
        } else {
            beta_quantile(confidence.lower_tail(), a, b)
        },
        if hits >= n {
            1.0
        } else {
            beta_quantile(confidence.upper_tail(), a, b)
        },
    )
}
