//! The noise of a judge: its flips between repeats of the same question.

use super::clusters::{between_groups, clustered_share};
use super::distributions::{ln_choose, ln_gamma};
use super::interval::{Confidence, Figure, Interval, Undefined};
use super::proportion::wilson_interval;

/// The passes of one cell over its repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedCell {
    /// The number of passes.
    pub passes: u64,
    /// The number of verdicts.
    pub repeats: u64,
}

impl RepeatedCell {
    fn counts(self) -> (f64, f64) {
        (self.passes as f64, self.repeats as f64)
    }

    /// Returns the share of pairs of repeats with different verdicts; `None` under two repeats.
    pub fn flip_rate(self) -> Option<f64> {
        let (c, m) = self.counts();
        (self.repeats > 1).then(|| 2.0 * c * (m - c) / (m * (m - 1.0)))
    }

    /// Returns the expected share of flips between two further repeats, with half a pass and half a fail added.
    fn predicted_flip_rate(self) -> f64 {
        let (c, m) = self.counts();
        let (a, b) = (c + 0.5, m - c + 0.5);
        2.0 * a * b / ((a + b) * (a + b + 1.0))
    }

    /// Reports whether the repeats have different verdicts.
    pub fn has_flip(self) -> bool {
        self.passes > 0 && self.passes < self.repeats
    }

    /// Returns the share of the more frequent verdict; `None` without a repeat.
    pub fn majority_share(self) -> Option<f64> {
        let (c, m) = self.counts();
        (self.repeats > 0).then(|| c.max(m - c) / m)
    }

    /// Returns the probability that at least one of `k` repeats passes; `None` if there are fewer than `k`.
    pub fn pass_at_k(self, k: u64) -> Option<f64> {
        let failing = self.repeats - self.passes;
        (k <= self.repeats).then(|| 1.0 - share_of_subsets(failing, self.repeats, k))
    }

    /// Returns the probability that all of `k` repeats pass; `None` if there are fewer than `k`.
    pub fn pass_hat_k(self, k: u64) -> Option<f64> {
        (k <= self.repeats).then(|| share_of_subsets(self.passes, self.repeats, k))
    }
}

/// Returns the share of subsets of size `k` of `all` that contain only the `inside` first ones.
fn share_of_subsets(inside: u64, all: u64, k: u64) -> f64 {
    if k > inside {
        return 0.0;
    }
    (0..k)
        .map(|at| (inside - at) as f64 / (all - at) as f64)
        .product()
}

/// The rate at which a judge contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfFlipRate {
    /// The mean share of pairs of repeats with different verdicts.
    pub rate: f64,
    /// The standard error over cells, or over groups of cells; `None` for one cell or group.
    pub standard_error: Option<f64>,
    /// The interval of the rate.
    pub interval: Interval,
    /// The number of cells with at least two repeats.
    pub cells: u64,
}

/// Returns the self-flip rate of cells. Cells with fewer than two repeats are left out.
pub fn self_flip_rate(
    cells: &[RepeatedCell],
    confidence: Confidence,
) -> Result<SelfFlipRate, Undefined> {
    let groups: Vec<[RepeatedCell; 1]> = cells.iter().map(|cell| [*cell]).collect();
    flip_rate_of_groups(&groups, confidence)
}

/// Returns the self-flip rate of groups of cells that are not independent, such as the cells of one transcript.
pub fn clustered_self_flip_rate(
    groups: &[Vec<RepeatedCell>],
    confidence: Confidence,
) -> Result<SelfFlipRate, Undefined> {
    flip_rate_of_groups(groups, confidence)
}

fn flip_rate_of_groups<G: AsRef<[RepeatedCell]>>(
    groups: &[G],
    confidence: Confidence,
) -> Result<SelfFlipRate, Undefined> {
    let measured = |group: &G| -> Vec<(RepeatedCell, f64)> {
        let cells = group.as_ref().iter();
        cells
            .filter_map(|cell| Some((*cell, cell.flip_rate()?)))
            .collect()
    };
    let groups: Vec<Vec<(RepeatedCell, f64)>> = groups
        .iter()
        .map(measured)
        .filter(|group| !group.is_empty())
        .collect();
    let rates = || groups.iter().flatten().map(|(_, rate)| *rate);
    let cells = rates().count();
    if cells == 0 {
        return Err(Undefined::TooFewValues);
    }
    let n = cells as f64;
    let rate = rates().sum::<f64>() / n;
    let squares: f64 = groups
        .iter()
        .map(|group| {
            group
                .iter()
                .map(|(_, flips)| flips - rate)
                .sum::<f64>()
                .powi(2)
        })
        .sum();
    let has_single_pairs = groups.iter().flatten().all(|(cell, _)| cell.repeats == 2);
    let is_clustered = groups.len() < cells;
    let between = (groups.len() > 1).then(|| between_groups(squares, groups.len(), n, confidence));
    let interval = if has_single_pairs && !is_clustered {
        wilson_interval(rate, n, confidence)
    } else if let Some((standard_error, t)) = between
        && squares > 0.0
        && !has_single_pairs
    {
        let half = t * standard_error;
        Interval::new(rate - half, rate + half).clamped(Interval::SHARES)
    } else if has_single_pairs && groups.len() > 1 {
        let flips: Vec<(u64, u64)> = groups
            .iter()
            .map(|group| {
                let flipped = group.iter().filter(|(cell, _)| cell.has_flip()).count();
                (flipped as u64, group.len() as u64)
            })
            .collect();
        clustered_share(&flips, confidence)?.interval
    } else {
        // One group has no standard error. Equal rates have one of 0, which does not make the rate certain.
        wilson_interval(rate, groups.len() as f64, confidence)
    };
    Ok(SelfFlipRate {
        rate,
        standard_error: between.map(|(standard_error, _)| standard_error),
        interval,
        cells: cells as u64,
    })
}

/// The treatment of cells whose repeats agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlipPrior {
    /// A cell flips with the rate of its repeats. A cell of equal repeats never flips. For expected numbers.
    Observed,
    /// Half a pass and half a fail are added to the repeats. For ranges.
    Jeffreys,
}

/// The distribution of a number of flips.
#[derive(Debug, Clone, PartialEq)]
pub struct FlipDistribution {
    /// The smallest number with a probability that matters.
    first: u64,
    /// The probability of each number from `first` on.
    probabilities: Vec<f64>,
}

impl FlipDistribution {
    /// Probabilities below this one do not matter.
    const NEGLIGIBLE: f64 = 1e-18;
    /// The rounding error of a sum of probabilities.
    const ROUNDING: f64 = 1e-12;

    /// Returns the expected number of flips.
    pub fn mean(&self) -> f64 {
        self.numbered().map(|(flips, p)| flips as f64 * p).sum()
    }

    /// Returns the range of flips that noise alone gives.
    pub fn range(&self, confidence: Confidence) -> (u64, u64) {
        let quantile = |p: f64| {
            let mut sum = 0.0;
            let found = self.numbered().find(|(_, probability)| {
                sum += probability;
                sum >= p - Self::ROUNDING
            });
            let last = self.first + self.probabilities.len() as u64 - 1;
            found.map_or(last, |(flips, _)| flips)
        };
        (
            quantile(confidence.lower_tail()),
            quantile(confidence.upper_tail()),
        )
    }

    /// Returns the probability of at least so many flips. Below 0.05, noise alone does not explain them.
    pub fn at_least(&self, flips: u64) -> f64 {
        let tail = self.numbered().filter(|(number, _)| *number >= flips);
        tail.map(|(_, p)| p).sum::<f64>().min(1.0)
    }

    fn numbered(&self) -> impl Iterator<Item = (u64, f64)> {
        (self.first..).zip(self.probabilities.iter().copied())
    }

    /// Adds a cell that flips with a probability.
    fn add(&mut self, flip: f64) {
        self.probabilities.push(0.0);
        for at in (1..self.probabilities.len()).rev() {
            self.probabilities[at] =
                self.probabilities[at] * (1.0 - flip) + self.probabilities[at - 1] * flip;
        }
        self.probabilities[0] *= 1.0 - flip;
        // Without the cut, the time would grow with the square of the number of cells.
        while self.probabilities.len() > 1
            && self
                .probabilities
                .last()
                .is_some_and(|p| *p < Self::NEGLIGIBLE)
        {
            self.probabilities.pop();
        }
        let small = |p: &&f64| **p < Self::NEGLIGIBLE;
        let cut = self.probabilities.iter().take_while(small).count();
        if cut < self.probabilities.len() {
            self.probabilities.drain(..cut);
            self.first += cut as u64;
        }
    }
}

/// Returns the distribution of flips between two further draws of the same cells. Left out: cells without two repeats.
pub fn flips_of_same_cells(cells: &[RepeatedCell], prior: FlipPrior) -> FlipDistribution {
    let mut flips = FlipDistribution {
        first: 0,
        probabilities: vec![1.0],
    };
    for cell in cells {
        if let Some(rate) = cell.flip_rate() {
            flips.add(match prior {
                FlipPrior::Observed => rate,
                FlipPrior::Jeffreys => cell.predicted_flip_rate(),
            });
        }
    }
    flips
}

/// Returns the distribution of flips of `cells` other cells, after `flips` of `measured` cells flipped between two draws.
///
/// The measured cells have to be a random sample of the compared ones, with the same judge, question and settings. With
/// more than two repeats, pass the sum of the flip rates.
pub fn flips_of_other_cells(flips: f64, measured: u64, cells: u64) -> FlipDistribution {
    let (a, b) = (flips + 0.5, measured as f64 - flips + 0.5);
    let n = cells as f64;
    let ln_beta = |a: f64, b: f64| ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    let whole = ln_beta(a, b);
    let probability = |y: u64| {
        let y = y as f64;
        (ln_choose(n, y) + ln_beta(y + a, n - y + b) - whole).exp()
    };
    FlipDistribution {
        first: 0,
        probabilities: (0..=cells).map(probability).collect(),
    }
}

impl SelfFlipRate {
    /// Returns the mean share of pairs of repeats with equal verdicts.
    pub fn pairwise_agreement(self) -> f64 {
        1.0 - self.rate
    }

    /// Returns the mean of a figure of cells; cells without the figure are left out.
    pub fn mean_over(
        cells: &[RepeatedCell],
        figure: impl Fn(RepeatedCell) -> Option<f64>,
    ) -> Figure {
        let values: Vec<f64> = cells.iter().filter_map(|cell| figure(*cell)).collect();
        if values.is_empty() {
            return Err(Undefined::TooFewValues);
        }
        Ok(values.iter().sum::<f64>() / values.len() as f64)
    }
}
