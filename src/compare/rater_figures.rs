//! The agreement of several raters: people who labelled the same decisions, or the judges of a panel.
//!
//! Responsible for collecting pairs and units. Does not compute the figures; [`super::statistics`] does.

use std::collections::BTreeMap;

use super::statistics::{
    AlphaMetric, Bootstrap, Confidence, ConfusionTable, Figure, Interval, Undefined,
    bootstrap_cases, fleiss_kappa, krippendorff_alpha,
};

/// The number of common decisions from which the normal interval of κ holds.
const ENOUGH_FOR_NORMAL: u64 = 50;

/// Two raters and their common decisions.
#[derive(Debug, Clone, PartialEq)]
pub struct RaterPair {
    /// The first rater.
    pub first: String,
    /// The second rater.
    pub second: String,
    /// The numbers of common decisions by both answers.
    pub table: ConfusionTable,
    /// The number of common decisions.
    pub common: u64,
    /// The number of common decisions with the same answer.
    pub same: u64,
    /// The interval of κ: by a bootstrap with under 50 common decisions, if enough resamples have a value.
    pub kappa_interval: Result<Interval, Undefined>,
}

impl RaterPair {
    /// Returns Cohen's κ.
    pub fn kappa(&self) -> Figure {
        self.table.kappa()
    }
}

/// The figures of several raters.
#[derive(Debug, Clone, PartialEq)]
pub struct RaterFigures {
    /// The raters with their numbers of answers, in alphabetical order.
    pub raters: BTreeMap<String, u64>,
    /// The number of decisions with two answers or more.
    pub units: u64,
    /// The share of pairs of answers to one decision that are equal.
    pub agreement: Figure,
    /// Krippendorff's α.
    pub alpha: Figure,
    /// Fleiss' κ. It has a value only if all decisions have the same number of answers.
    pub fleiss: Figure,
    /// Each pair with common decisions, the pair with the most of them first.
    pub pairs: Vec<RaterPair>,
}

impl Default for RaterFigures {
    fn default() -> Self {
        RaterTally::default().finish()
    }
}

impl RaterFigures {
    /// Returns the pair with the most common decisions. Its κ is the ceiling for a judge: a judge can't agree with people
    /// more than they agree with each other.
    pub fn closest_pair(&self) -> Option<&RaterPair> {
        self.pairs.first()
    }
}

/// The common decisions of two raters.
#[derive(Debug, Clone, Default)]
struct PairCounts {
    table: ConfusionTable,
    common: u64,
    same: u64,
}

/// Collects the answers of raters.
#[derive(Debug, Clone, Default)]
pub struct RaterTally {
    raters: BTreeMap<String, u64>,
    units: Vec<[u64; 2]>,
    pairs: BTreeMap<(String, String), PairCounts>,
}

impl RaterTally {
    /// Adds the answers to one decision. All decisions must have the names in the same order.
    pub fn add(&mut self, answers: &[(&str, bool)]) {
        for (name, _) in answers {
            match self.raters.get_mut(*name) {
                Some(count) => *count += 1,
                // Only the first answer of a rater copies the name.
                None => drop(self.raters.insert((*name).to_owned(), 1)),
            }
        }
        if answers.len() < 2 {
            return;
        }
        let passes = answers.iter().filter(|(_, passed)| *passed).count() as u64;
        self.units.push([passes, answers.len() as u64 - passes]);
        for (at, (first, answer)) in answers.iter().enumerate() {
            for (second, other) in &answers[at + 1..] {
                let names = ((*first).to_owned(), (*second).to_owned());
                let counts = self.pairs.entry(names).or_default();
                counts.table.add(*answer, *other, 1.0);
                counts.common += 1;
                counts.same += u64::from(answer == other);
            }
        }
    }

    /// Computes the figures.
    pub fn finish(self) -> RaterFigures {
        let ratings = self.units.iter().map(|[passes, fails]| {
            let count = |n: u64| usize::try_from(n).unwrap_or(0);
            let mut unit = vec![1.0; count(*passes)];
            unit.resize(count(passes + fails), 0.0);
            unit
        });
        let ratings: Vec<Vec<f64>> = ratings.collect();
        let pairs = self.pairs.into_iter();
        let mut pairs: Vec<RaterPair> = pairs
            .map(|((first, second), counts)| RaterPair {
                first,
                second,
                table: counts.table,
                common: counts.common,
                same: counts.same,
                kappa_interval: find_kappa_interval(&counts.table, counts.common),
            })
            .collect();
        // The sort is stable, so pairs with equal counts stay in alphabetical order.
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.common));
        RaterFigures {
            raters: self.raters,
            units: self.units.len() as u64,
            agreement: agreement_of_pairs(&self.units),
            alpha: krippendorff_alpha(&ratings, AlphaMetric::Nominal),
            fleiss: fleiss_kappa(&self.units),
            pairs,
        }
    }
}

fn find_kappa_interval(table: &ConfusionTable, common: u64) -> Result<Interval, Undefined> {
    let normal = table.kappa_interval(Confidence::P95);
    if common >= ENOUGH_FOR_NORMAL {
        return normal;
    }
    let answers = [
        ((true, true), table.true_pass),
        ((true, false), table.false_fail),
        ((false, true), table.false_pass),
        ((false, false), table.true_fail),
    ];
    let cases: Vec<(bool, bool)> = answers
        .into_iter()
        .flat_map(|(answers, count)| {
            let cases = (0..common).take_while(move |case| (*case as f64) + 0.5 < count);
            cases.map(move |_| answers)
        })
        .collect();
    let resampled = bootstrap_cases(&[cases.as_slice()], Bootstrap::default(), |cases| {
        let mut table = ConfusionTable::default();
        for (first, second) in cases {
            table.add(*first, *second, 1.0);
        }
        table.kappa()
    });
    resampled.map(|found| found.interval).or(normal)
}

fn agreement_of_pairs(units: &[[u64; 2]]) -> Figure {
    let pairs = |n: u64| n * n.saturating_sub(1) / 2;
    let all: u64 = units.iter().map(|[a, b]| pairs(a + b)).sum();
    let same: u64 = units.iter().map(|[a, b]| pairs(*a) + pairs(*b)).sum();
    if all == 0 {
        return Err(Undefined::NoPairs);
    }
    Ok(same as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_two_raters_equal_those_of_their_table() {
        let mut tally = RaterTally::default();
        // The table of statistics.md: 20, 5, 10, 15 gives κ = 0.4.
        for (count, ann, bo) in [
            (20, true, true),
            (5, true, false),
            (10, false, true),
            (15, false, false),
        ] {
            for _ in 0..count {
                tally.add(&[("ann", ann), ("bo", bo)]);
            }
        }
        // One answer has no other one to agree with.
        tally.add(&[("ann", true)]);
        let found = tally.finish();
        assert_eq!((found.units, found.raters["ann"]), (50, 51));
        let pair = found.closest_pair().expect("a pair");
        assert_eq!((pair.common, pair.same), (50, 35));
        assert!((pair.kappa().expect("a value") - 0.4).abs() < 1e-9);
        let interval = pair.kappa_interval.expect("an interval");
        assert!((interval.lower - 0.151_092).abs() < 1e-6, "{interval:?}");
        assert!((found.agreement.expect("a value") - 0.7).abs() < 1e-9);
        // Scott's π of this table is 0.394; α corrects it for 100 ratings.
        let pi = 1.0 - 0.3 / (1.0 - (0.55_f64.powi(2) + 0.45_f64.powi(2)));
        assert!((found.fleiss.expect("a value") - pi).abs() < 1e-9);
        let alpha = 1.0 - (1.0 - pi) * 99.0 / 100.0;
        assert!((found.alpha.expect("a value") - alpha).abs() < 1e-9);
    }

    #[test]
    fn unequal_numbers_of_answers_leave_alpha_and_no_fleiss() {
        let mut tally = RaterTally::default();
        tally.add(&[("a", true), ("b", true), ("c", false)]);
        tally.add(&[("a", false), ("c", false)]);
        let found = tally.finish();
        assert_eq!(found.fleiss, Err(Undefined::UnequalRaters));
        assert!(found.alpha.is_ok());
        let first = found.closest_pair().expect("a pair");
        assert_eq!((first.first.as_str(), first.second.as_str()), ("a", "c"));
    }

    #[test]
    fn kappa_of_few_common_answers_has_a_bootstrap_interval() {
        let mut tally = RaterTally::default();
        for (ann, bo) in [(true, true), (false, false), (true, true), (false, true)].repeat(5) {
            tally.add(&[("ann", ann), ("bo", bo)]);
        }
        let pair = tally.finish().pairs.remove(0);
        let interval = pair.kappa_interval.expect("an interval");
        let normal = pair.table.kappa_interval(Confidence::P95);
        assert_ne!(Ok(interval), normal);
        assert!(
            interval.contains(0.5) && interval.upper <= 1.0,
            "{interval:?}"
        );
        assert!((0.5..0.8).contains(&interval.width()), "{interval:?}");
    }

    #[test]
    fn one_rater_has_no_agreement() {
        let found = RaterFigures::default();
        assert_eq!(found.agreement, Err(Undefined::NoPairs));
        assert_eq!(found.closest_pair(), None);
    }
}
