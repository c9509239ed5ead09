//! The share of hits in groups that were drawn whole, such as repeats or transcripts of one customer.

use super::distributions::t_quantile;
use super::interval::{Confidence, Interval, Undefined};
use super::proportion::wilson_interval;

/// A share over values in groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusteredShare {
    /// The share of hits.
    pub share: f64,
    /// The standard error between groups.
    pub standard_error: f64,
    /// The variance relative to that of single draws; `None` if all values are equal.
    pub design_effect: Option<f64>,
    /// Wilson's interval with the effective number of values.
    pub interval: Interval,
}

/// Returns the share of hits of groups, each given as its hits and its size.
pub fn clustered_share(
    groups: &[(u64, u64)],
    confidence: Confidence,
) -> Result<ClusteredShare, Undefined> {
    let values = groups.iter().map(|(_, size)| *size).sum::<u64>() as f64;
    let hits = groups.iter().map(|(hits, _)| *hits).sum::<u64>() as f64;
    if values <= 0.0 {
        return Err(Undefined::NoLabels);
    }
    if groups.len() < 2 {
        return Err(Undefined::TooFewValues);
    }
    let share = hits / values;
    let squares: f64 = groups
        .iter()
        .map(|(hits, size)| (*hits as f64 - *size as f64 * share).powi(2))
        .sum();
    let (standard_error, t) = between_groups(squares, groups.len(), values, confidence);
    let spread = share * (1.0 - share);
    let design_effect = (spread > 0.0).then(|| standard_error.powi(2) * (values - 1.0) / spread);
    // Grouping never adds information, so a design effect below 1 is chance.
    let effective = values / design_effect.unwrap_or(1.0).max(1.0);
    let interval = wilson_interval(share, effective * (confidence.z() / t).powi(2), confidence);
    Ok(ClusteredShare {
        share,
        standard_error,
        design_effect,
        interval,
    })
}

/// Returns the standard error of a mean over groups and the quantile of t for its interval.
///
/// `squares` is the sum over groups of the squared distance of the group's sum from its expected sum.
pub(super) fn between_groups(
    squares: f64,
    groups: usize,
    values: f64,
    confidence: Confidence,
) -> (f64, f64) {
    let groups = groups as f64;
    let standard_error = (groups / (groups - 1.0) * squares).sqrt() / values;
    let t = t_quantile(confidence.upper_tail(), groups - 1.0);
    (standard_error, t)
}
