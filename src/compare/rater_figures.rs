//! The agreement of several raters: people who labelled the same decisions, or the judges of a panel.
//!
//! Responsible for collecting pairs and units. Does not compute the figures; [`super::statistics`] does.

use std::collections::{BTreeMap, HashMap};

use super::statistics::{
    AlphaMetric, Bootstrap, Confidence, ConfusionTable, Figure, Interval, Undefined,
    bootstrap_cases, fleiss_kappa, krippendorff_alpha,
};

/// The number of common decisions from which the normal interval of κ holds.
const ENOUGH_FOR_NORMAL: u64 = 50;
/// The number of raters, those with the most answers, whose pairs are counted. The number of pairs grows with its square.
const MAX_PAIRED_RATERS: usize = 100;

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
    /// Each pair with common decisions of the 100 raters with the most answers; the pair with the most common ones first.
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
    /// The counts of the table.
    answers: [u64; 4],
    common: u64,
    same: u64,
}

/// The answers of one rater.
#[derive(Debug, Clone)]
struct RaterCount {
    /// The position in the order of first answers.
    number: u32,
    answers: u64,
}

/// Collects the answers of raters.
#[derive(Debug, Clone, Default)]
pub struct RaterTally {
    raters: BTreeMap<String, RaterCount>,
    /// The answers to each decision with two or more, with the numbers of their raters.
    units: Vec<Vec<(u32, bool)>>,
}

impl RaterTally {
    /// Adds the answers to one decision. All decisions must have the names in the same order.
    pub fn add(&mut self, answers: &[(&str, bool)]) {
        let mut unit = Vec::with_capacity(answers.len());
        for (name, passed) in answers {
            let number = if let Some(rater) = self.raters.get_mut(*name) {
                rater.answers += 1;
                rater.number
            } else {
                // Only the first answer of a rater copies the name.
                let number = u32::try_from(self.raters.len()).unwrap_or(u32::MAX);
                let rater = RaterCount { number, answers: 1 };
                self.raters.insert((*name).to_owned(), rater);
                number
            };
            unit.push((number, *passed));
        }
        if unit.len() > 1 {
            self.units.push(unit);
        }
    }

    /// Computes the figures.
    pub fn finish(self) -> RaterFigures {
        let of_answer = |answer: bool| if answer { 1.0 } else { 0.0 };
        let ratings: Vec<Vec<f64>> = self
            .units
            .iter()
            .map(|unit| unit.iter().map(|(_, passed)| of_answer(*passed)).collect())
            .collect();
        let counts: Vec<[u64; 2]> = self
            .units
            .iter()
            .map(|unit| {
                let passes = unit.iter().filter(|(_, passed)| *passed).count() as u64;
                [passes, unit.len() as u64 - passes]
            })
            .collect();
        // Many pairs with few common decisions have equal tables, and each interval takes many resamples.
        let mut intervals = BTreeMap::new();
        let mut pairs: Vec<RaterPair> = self
            .count_pairs()
            .into_iter()
            .map(|((first, second), counts)| RaterPair {
                first: first.to_owned(),
                second: second.to_owned(),
                table: counts.table,
                common: counts.common,
                same: counts.same,
                kappa_interval: *intervals
                    .entry(counts.answers)
                    .or_insert_with(|| find_kappa_interval(&counts.table, counts.common)),
            })
            .collect();
        // The sort is stable, so pairs with equal counts stay in alphabetical order.
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.common));
        RaterFigures {
            units: self.units.len() as u64,
            agreement: agreement_of_pairs(&counts),
            alpha: krippendorff_alpha(&ratings, AlphaMetric::Nominal),
            fleiss: fleiss_kappa(&counts),
            pairs,
            raters: self
                .raters
                .into_iter()
                .map(|(name, rater)| (name, rater.answers))
                .collect(),
        }
    }

    /// Counts the common decisions of each pair among the raters with the most answers.
    fn count_pairs(&self) -> BTreeMap<(&str, &str), PairCounts> {
        let mut raters: Vec<(&str, &RaterCount)> = self
            .raters
            .iter()
            .map(|(name, rater)| (name.as_str(), rater))
            .collect();
        raters.sort_by_key(|(_, rater)| std::cmp::Reverse(rater.answers));
        let names: HashMap<u32, &str> = raters
            .into_iter()
            .take(MAX_PAIRED_RATERS)
            .map(|(name, rater)| (rater.number, name))
            .collect();
        let mut pairs: BTreeMap<(&str, &str), PairCounts> = BTreeMap::new();
        for unit in &self.units {
            let answers: Vec<(&str, bool)> = unit
                .iter()
                .filter_map(|(number, passed)| Some((*names.get(number)?, *passed)))
                .collect();
            for (at, (first, answer)) in answers.iter().enumerate() {
                for (second, other) in &answers[at + 1..] {
                    let counts = pairs.entry((*first, *second)).or_default();
                    counts.table.add(*answer, *other, 1.0);
                    counts.answers[usize::from(*answer) * 2 + usize::from(*other)] += 1;
                    counts.common += 1;
                    counts.same += u64::from(answer == other);
                }
            }
        }
        pairs
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
    fn pairs_of_a_crowd_are_those_of_the_raters_with_the_most_answers() {
        let names: Vec<String> = (0..150)
            .map(|number| format!("rater {number:03}"))
            .collect();
        let crowd: Vec<(&str, bool)> = names
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), at % 3 == 0))
            .collect();
        let mut tally = RaterTally::default();
        tally.add(&crowd);
        tally.add(&crowd[148..]);
        let found = tally.finish();
        assert_eq!(found.raters.len(), 150);
        assert_eq!(
            (found.raters["rater 000"], found.raters["rater 149"]),
            (1, 2)
        );
        assert_eq!(found.pairs.len(), 100 * 99 / 2);
        let closest = found.closest_pair().expect("a pair");
        assert_eq!(
            (
                closest.first.as_str(),
                closest.second.as_str(),
                closest.common
            ),
            ("rater 148", "rater 149", 2)
        );
        // Each pair of answers to a decision counts for the agreement, also those of the other raters.
        let pairs = |n: f64| n * (n - 1.0) / 2.0;
        let same = pairs(50.0) + pairs(100.0) + 1.0;
        let all = pairs(150.0) + 1.0;
        assert!((found.agreement.expect("pairs") - same / all).abs() < 1e-12);
    }

    #[test]
    fn one_rater_has_no_agreement() {
        let found = RaterFigures::default();
        assert_eq!(found.agreement, Err(Undefined::NoPairs));
        assert_eq!(found.closest_pair(), None);
    }
}
