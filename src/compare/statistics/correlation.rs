//! Agreement of scores: pairs of a person's score and the judge's score.

use super::interval::{Figure, Undefined};

/// The weight of a disagreement between two scores in weighted κ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DisagreementWeight {
    /// The distance of the scores.
    Linear,
    /// The squared distance of the scores.
    Quadratic,
}

/// Returns weighted κ of pairs of scores.
///
/// Distances are those of the scores. For levels that are equally spaced, this is weighted κ over the levels.
pub fn weighted_kappa(pairs: &[(f64, f64)], weight: DisagreementWeight) -> Figure {
    if pairs.is_empty() {
        return Err(Undefined::NoLabels);
    }
    let n = pairs.len() as f64;
    let (observed, expected) = match weight {
        DisagreementWeight::Linear => {
            let observed: f64 = pairs.iter().map(|(a, b)| (a - b).abs()).sum();
            (observed / n, mean_absolute_distance(pairs))
        }
        DisagreementWeight::Quadratic => {
            let observed: f64 = pairs.iter().map(|(a, b)| (a - b).powi(2)).sum();
            let (mean_a, mean_b) = means(pairs);
            let spread: f64 = pairs
                .iter()
                .map(|(a, b)| (a - mean_a).powi(2) + (b - mean_b).powi(2))
                .sum();
            (observed / n, spread / n + (mean_a - mean_b).powi(2))
        }
    };
    if expected <= 0.0 {
        return Err(Undefined::NoVariation);
    }
    Ok(1.0 - observed / expected)
}

/// Returns the mean distance between all first and all second scores.
fn mean_absolute_distance(pairs: &[(f64, f64)]) -> f64 {
    let mut all: Vec<(f64, bool)> = Vec::with_capacity(2 * pairs.len());
    all.extend(pairs.iter().map(|(a, _)| (*a, true)));
    all.extend(pairs.iter().map(|(_, b)| (*b, false)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = pairs.len() as f64;
    let (mut firsts, mut seconds, mut sum) = (0.0, 0.0, 0.0);
    // Between two neighbours, the distribution functions differ from 1 in both orders of a pair.
    for neighbours in all.windows(2) {
        if neighbours[0].1 {
            firsts += 1.0 / n;
        } else {
            seconds += 1.0 / n;
        }
        let between = firsts * (1.0 - seconds) + seconds * (1.0 - firsts);
        sum += (neighbours[1].0 - neighbours[0].0) * between;
    }
    sum
}

/// Returns Spearman's rank correlation ρ.
pub fn spearman_rho(pairs: &[(f64, f64)]) -> Figure {
    let ranks = |of: fn(&(f64, f64)) -> f64| mean_ranks(&pairs.iter().map(of).collect::<Vec<_>>());
    let (first, second) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    pearson(&first.into_iter().zip(second).collect::<Vec<_>>())
}

/// Returns Kendall's τ-b, which corrects for ties, in n·log n steps.
pub fn kendall_tau_b(pairs: &[(f64, f64)]) -> Figure {
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let tied_pairs = |length: usize| length as f64 * (length as f64 - 1.0) / 2.0;
    let all = tied_pairs(pairs.len());
    let tied_first: f64 = sorted
        .chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq())
        .map(|same| tied_pairs(same.len()))
        .sum();
    let tied_both: f64 = sorted
        .chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq() && a.1.total_cmp(&b.1).is_eq())
        .map(|same| tied_pairs(same.len()))
        .sum();
    let mut second: Vec<f64> = sorted.iter().map(|pair| pair.1).collect();
    let exchanges = sort_counting_exchanges(&mut second);
    let tied_second: f64 = second
        .chunk_by(|a, b| a.total_cmp(b).is_eq())
        .map(|same| tied_pairs(same.len()))
        .sum();
    let product = (all - tied_first).sqrt() * (all - tied_second).sqrt();
    if product <= 0.0 {
        return Err(no_variation(pairs));
    }
    let concordant_minus_discordant =
        all - tied_first - tied_second + tied_both - 2.0 * exchanges as f64;
    Ok(concordant_minus_discordant / product)
}

/// Sorts values and returns the number of pairs that were in the wrong order.
fn sort_counting_exchanges(values: &mut [f64]) -> u64 {
    if values.len() < 2 {
        return 0;
    }
    let middle = values.len() / 2;
    let (left, right) = values.split_at_mut(middle);
    let mut exchanges = sort_counting_exchanges(left) + sort_counting_exchanges(right);
    let (left, mut rest) = (left.to_vec(), middle);
    let mut left = left.into_iter().peekable();
    for at in 0..values.len() {
        let takes_right = rest < values.len()
            && left
                .peek()
                .is_none_or(|first| values[rest].total_cmp(first).is_lt());
        if takes_right {
            exchanges += left.len() as u64;
            values[at] = values[rest];
            rest += 1;
        } else if let Some(first) = left.next() {
            values[at] = first;
        }
    }
    exchanges
}

/// Returns the mean distance of the scores.
pub fn mean_absolute_error(pairs: &[(f64, f64)]) -> Figure {
    mean(pairs, |(person, judge)| (judge - person).abs())
}

/// Returns the mean of judge − person: a positive bias is a generous judge.
pub fn score_bias(pairs: &[(f64, f64)]) -> Figure {
    mean(pairs, |(person, judge)| judge - person)
}

/// Returns the share of pairs whose scores differ by at most `tolerance`; 0 for exact matches.
pub fn share_within(pairs: &[(f64, f64)], tolerance: f64) -> Figure {
    // Scores such as 0.7 and 0.6 differ by 0.1 only after rounding.
    let limit = tolerance + 1e-9;
    mean(pairs, |(person, judge)| {
        f64::from(u8::from((judge - person).abs() <= limit))
    })
}

fn mean(pairs: &[(f64, f64)], value: impl Fn((f64, f64)) -> f64) -> Figure {
    if pairs.is_empty() {
        return Err(Undefined::NoLabels);
    }
    Ok(pairs.iter().map(|pair| value(*pair)).sum::<f64>() / pairs.len() as f64)
}

fn means(pairs: &[(f64, f64)]) -> (f64, f64) {
    let n = pairs.len() as f64;
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    (sum(|pair| pair.0) / n, sum(|pair| pair.1) / n)
}

fn pearson(pairs: &[(f64, f64)]) -> Figure {
    let (mean_a, mean_b) = means(pairs);
    let (mut squares_a, mut squares_b, mut products) = (0.0, 0.0, 0.0);
    for (a, b) in pairs {
        squares_a += (a - mean_a).powi(2);
        squares_b += (b - mean_b).powi(2);
        products += (a - mean_a) * (b - mean_b);
    }
    if pairs.is_empty() || squares_a <= 0.0 || squares_b <= 0.0 {
        return Err(no_variation(pairs));
    }
    Ok((products / (squares_a.sqrt() * squares_b.sqrt())).clamp(-1.0, 1.0))
}

fn no_variation(pairs: &[(f64, f64)]) -> Undefined {
    if pairs.is_empty() {
        Undefined::NoLabels
    } else {
        Undefined::NoVariation
    }
}

/// Returns the rank of each value; equal values have the mean of their ranks.
fn mean_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for tied in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        let rank = below as f64 + f64::midpoint(1.0, tied.len() as f64);
        for at in tied {
            ranks[*at] = rank;
        }
        below += tied.len();
    }
    ranks
}
