//! Means over a stratified random sample of a finite population.

use super::distributions::t_quantile;
use super::interval::{Confidence, Interval, Undefined};

/// The values of one stratum, reduced to what a mean needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StratumMoments {
    /// The number of items in the population.
    pub population: u64,
    /// The number of values.
    pub values: u64,
    /// The mean of the values.
    pub mean: f64,
    /// The sum of squared distances from the mean.
    pub squares: f64,
}

/// A mean over a stratified population.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StratifiedMean {
    /// The mean.
    pub mean: f64,
    /// The standard error, with the correction for a finite population.
    pub standard_error: f64,
    /// Satterthwaite's degrees of freedom; `None` if the standard error is 0.
    pub degrees_of_freedom: Option<f64>,
}

impl StratifiedMean {
    /// Returns the t interval. It is too narrow for rare values; use the intervals of [`super::SampledPopulation`] for
    /// shares.
    pub fn t_interval(self, confidence: Confidence) -> Interval {
        let t = self
            .degrees_of_freedom
            .map_or(0.0, |df| t_quantile(confidence.upper_tail(), df));
        let half = t * self.standard_error;
        Interval::new(self.mean - half, self.mean + half)
    }

    /// Returns the mean with every value divided by `divisor`, for the linearized variance of a ratio.
    pub(super) fn divided(self, mean: f64, divisor: f64) -> Self {
        Self {
            mean,
            standard_error: self.standard_error / divisor,
            ..self
        }
    }
}

/// Returns the mean of a stratified sample with its standard error.
///
/// Each stratum that was not read completely needs two values.
pub fn stratified_mean(strata: &[StratumMoments]) -> Result<StratifiedMean, Undefined> {
    let total: u64 = strata.iter().map(|stratum| stratum.population).sum();
    if strata.iter().all(|stratum| stratum.values == 0) {
        return Err(Undefined::NoLabels);
    }
    let (mut mean, mut variance, mut squared) = (0.0, 0.0, 0.0);
    for stratum in strata.iter().filter(|stratum| stratum.population > 0) {
        let weight = stratum.population as f64 / total as f64;
        mean += weight * stratum.mean;
        if stratum.values >= stratum.population {
            continue;
        }
        if stratum.values < 2 {
            return Err(Undefined::TooFewValues);
        }
        let (n, freedom) = (stratum.values as f64, (stratum.values - 1) as f64);
        let unread = 1.0 - n / stratum.population as f64;
        let part = weight * weight * stratum.squares / freedom / n * unread;
        variance += part;
        squared += part * part / freedom;
    }
    Ok(StratifiedMean {
        mean,
        standard_error: variance.sqrt(),
        degrees_of_freedom: (squared > 0.0).then(|| variance * variance / squared),
    })
}
