//! The choices of people between the transcripts of a pair.
//!
//! Responsible for the choice, for its comparison with scores, and for the choice that a judge's score states. Does not
//! read files.

use serde::{Deserialize, Serialize};

use super::WallTime;

/// The word for a pair of equal quality.
const TIE: &str = "tie";
/// The largest difference of two scores that count as equal.
const EQUAL_SCORES: f64 = 1e-9;

/// The eval type with which a judge compares the transcripts of a pair.
pub const PAIRWISE_EVAL_TYPE: &str = "pairwise_preference";

/// Returns true if a judge compares the transcripts of a pair for an eval of this type, in both orders.
pub fn compares_pairs(eval_type: &str) -> bool {
    eval_type == PAIRWISE_EVAL_TYPE
}

/// The order in which a judge reads the transcripts of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairOrder {
    /// The first transcript of the file is answer A.
    FirstIsA,
    /// The second transcript of the file is answer A.
    SecondIsA,
}

impl PairOrder {
    /// Returns the order of a repeat, from 1: the orders alternate.
    pub fn of_repeat(repeat: Option<u32>) -> Self {
        match repeat {
            Some(repeat) if repeat % 2 == 0 => Self::SecondIsA,
            _ => Self::FirstIsA,
        }
    }

    /// Returns the score of the first transcript for a judge's score of answer A: 1, 0, or 0.5 for a tie.
    pub fn score_first(self, score_of_a: f64) -> f64 {
        let score = match score_of_a {
            score if score > TIE_SCORE => 1.0,
            score if score < TIE_SCORE => 0.0,
            _ => TIE_SCORE,
        };
        match self {
            Self::FirstIsA => score,
            Self::SecondIsA => 1.0 - score,
        }
    }
}

/// The choice of a judge between the transcripts of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairChoice {
    /// The first transcript of the file is better.
    First,
    /// The second transcript of the file is better.
    Second,
    /// Neither is better, or the judge chose another one in the other order.
    Tie,
}

impl PairChoice {
    /// Returns the choice of a decision from its score, the median over both orders.
    pub fn from_score(score: f64) -> Self {
        match score {
            score if score >= 1.0 - EQUAL_SCORES => Self::First,
            score if score <= EQUAL_SCORES => Self::Second,
            _ => Self::Tie,
        }
    }

    /// Returns the choice in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::First => "the first transcript is better in both orders",
            Self::Second => "the second transcript is better in both orders",
            Self::Tie => "a tie, or another choice in the other order",
        }
    }
}

/// The score of the first transcript if neither is better.
const TIE_SCORE: f64 = 0.5;

/// A person's choice between the transcripts of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairPreference {
    /// The pair: `metadata.pair` of its transcripts.
    pub pair: String,
    /// The better transcript, by its id or its `metadata.choice`; or `tie`.
    pub better: String,
    /// The eval that the choice is about; `None` for every eval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval: Option<String>,
    /// The name of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time of the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<WallTime>,
    /// The person's note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl PairPreference {
    /// Returns true if neither transcript is better.
    pub fn is_tie(&self) -> bool {
        self.better.eq_ignore_ascii_case(TIE)
    }
}

/// The agreement of the scores of pairs with the choices of people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairAgreement {
    /// The pairs whose better transcript has the higher score, and the ties with equal scores.
    pub same: u64,
    /// The pairs whose better transcript has the lower score.
    pub opposite: u64,
    /// The pairs with equal scores of which people chose one.
    pub undecided: u64,
    /// The ties of people whose scores differ.
    pub split_ties: u64,
}

impl PairAgreement {
    /// Adds a pair. `better` is the score of the better transcript; of a tie, the order does not matter.
    pub fn add(&mut self, better: f64, other: f64, is_tie: bool) {
        let are_equal = (better - other).abs() < EQUAL_SCORES;
        let count = match (are_equal, is_tie) {
            (true, true) => &mut self.same,
            (true, false) => &mut self.undecided,
            (false, true) => &mut self.split_ties,
            (false, false) if better > other => &mut self.same,
            (false, false) => &mut self.opposite,
        };
        *count += 1;
    }

    /// Returns the number of pairs.
    pub fn total(&self) -> u64 {
        self.same + self.opposite + self.undecided + self.split_ties
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_needs_the_same_answer_in_both_orders() {
        let decide = |in_file_order: f64, swapped: f64| {
            let first = PairOrder::of_repeat(Some(1)).score_first(in_file_order);
            let second = PairOrder::of_repeat(Some(2)).score_first(swapped);
            PairChoice::from_score(f64::midpoint(first, second))
        };
        assert_eq!(decide(1.0, 0.0), PairChoice::First);
        assert_eq!(decide(0.2, 0.9), PairChoice::Second);
        assert_eq!(decide(1.0, 1.0), PairChoice::Tie, "A in both orders");
        assert_eq!(decide(0.5, 0.5), PairChoice::Tie);
        assert_eq!(decide(1.0, 0.5), PairChoice::Tie);
    }

    #[test]
    fn equal_scores_agree_only_with_a_tie() {
        let mut found = PairAgreement::default();
        found.add(0.9, 0.2, false);
        found.add(0.2, 0.9, false);
        found.add(0.5, 0.5, false);
        found.add(0.5, 0.5, true);
        found.add(0.9, 0.2, true);
        let wanted = PairAgreement {
            same: 2,
            opposite: 1,
            undecided: 1,
            split_ties: 1,
        };
        assert_eq!((found, found.total()), (wanted, 5));
    }
}
