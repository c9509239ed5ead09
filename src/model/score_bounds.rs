//! Bounds on scores: decision settings that dicta can apply to recorded verdicts without a judge call.

use indexmap::IndexMap;
use serde_json::Value;

use super::{Outcome, Verdict};

/// `min_score` and `max_score` of an eval, both inclusive. Without either, `passed` decides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ScoreBounds {
    /// The lowest score that passes.
    pub min: Option<f64>,
    /// The highest score that passes.
    pub max: Option<f64>,
}

/// The distance from a bound under which a score is uncertain, unless a cascade sets its own.
pub const UNCERTAIN_MARGIN: f64 = 0.15;

/// The parts of a verdict that decide, small enough to keep for every cell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct VerdictSummary {
    /// See [`Verdict::passed`].
    pub passed: Option<bool>,
    /// See [`Verdict::score`].
    pub score: Option<f64>,
    /// See [`Verdict::applicable`].
    pub applicable: Option<bool>,
}

impl From<&Verdict> for VerdictSummary {
    fn from(verdict: &Verdict) -> Self {
        Self {
            passed: verdict.passed,
            score: verdict.score,
            applicable: verdict.applicable,
        }
    }
}

impl ScoreBounds {
    /// Reads the bounds from the decision settings of a rubric or of a run's header.
    pub fn from_decision_settings(decides: &IndexMap<String, Value>) -> Self {
        let bound = |name: &str| decides.get(name).and_then(Value::as_f64);
        Self {
            min: bound("min_score"),
            max: bound("max_score"),
        }
    }

    /// Returns true if no bound is set.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns true if a score is within the bounds.
    pub fn contains(self, score: f64) -> bool {
        self.min.is_none_or(|min| score >= min) && self.max.is_none_or(|max| score <= max)
    }

    /// Returns the distance of a score from the nearest score at which the outcome changes.
    pub fn distance_to_boundary(self, score: f64) -> f64 {
        // Without bounds, a score has no limit of its own, so the middle counts.
        let none = self.is_empty().then_some(0.5);
        let boundaries = [self.min, self.max, none].into_iter().flatten();
        boundaries
            .map(|at| (score - at).abs())
            .fold(f64::INFINITY, f64::min)
    }

    /// Returns true if a score is nearer than `margin` to a score at which the outcome changes.
    pub fn is_uncertain(self, score: f64, margin: f64) -> bool {
        /// Differences of decimal fractions are inexact, so a distance that prints as the margin must not count as
        /// within it.
        const SLACK: f64 = 1e-9;
        self.distance_to_boundary(score) + SLACK < margin
    }

    /// Returns the outcome of a verdict. The error names what the verdict lacks; the caller then records `unparsed`.
    pub fn decide(self, stated: VerdictSummary) -> Result<Outcome, &'static str> {
        // This comes first: a verdict that does not apply has no score to compare.
        if stated.applicable == Some(false) {
            return Ok(Outcome::NotApplicable);
        }
        if self.is_empty() {
            let passed = stated.passed.map(Outcome::from_passed);
            // Without bounds, a score alone never decides.
            return passed.ok_or("the verdict has no `passed`, and no min_score decides");
        }
        match stated.score {
            Some(score) => Ok(Outcome::from_passed(self.contains(score))),
            None => Err("the verdict has no score, and min_score or max_score decides from it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Fail, NotApplicable, Pass};

    #[test]
    fn bounds_come_from_the_decision_settings_and_the_summary_from_the_verdict() {
        let settings = [
            ("min_score".to_owned(), Value::from(0.25)),
            ("max_score".to_owned(), Value::from(0.75)),
        ];
        let bounds = ScoreBounds::from_decision_settings(&settings.into());
        assert_eq!((bounds.min, bounds.max), (Some(0.25), Some(0.75)));
        let verdict = Verdict {
            passed: Some(true),
            score: Some(0.5),
            applicable: Some(false),
            ..Verdict::default()
        };
        let summary = VerdictSummary::from(&verdict);
        assert_eq!(
            (summary.passed, summary.score, summary.applicable),
            (Some(true), Some(0.5), Some(false))
        );
    }

    #[test]
    fn bounds_are_inclusive_and_take_precedence_over_the_judge() {
        let says = |passed, score| VerdictSummary {
            passed,
            score,
            applicable: None,
        };
        let bounds = |min, max| ScoreBounds { min, max };
        for (at, stated, want) in [
            (bounds(None, None), says(Some(true), Some(0.1)), Ok(Pass)),
            (bounds(None, None), says(Some(false), Some(0.9)), Ok(Fail)),
            (
                bounds(Some(0.7), None),
                says(Some(false), Some(0.7)),
                Ok(Pass),
            ),
            (
                bounds(Some(0.7), None),
                says(Some(true), Some(0.69)),
                Ok(Fail),
            ),
            (bounds(None, Some(0.3)), says(None, Some(0.3)), Ok(Pass)),
            (bounds(None, Some(0.3)), says(None, Some(0.31)), Ok(Fail)),
            (
                bounds(Some(0.2), Some(0.4)),
                says(None, Some(0.5)),
                Ok(Fail),
            ),
            (
                bounds(Some(0.7), None),
                VerdictSummary {
                    applicable: Some(false),
                    ..VerdictSummary::default()
                },
                Ok(NotApplicable),
            ),
        ] {
            assert_eq!(at.decide(stated), want, "{at:?} {stated:?}");
        }
        assert!(
            bounds(Some(0.7), None)
                .decide(says(Some(true), None))
                .is_err()
        );
        assert!(bounds(None, None).decide(says(None, Some(1.0))).is_err());
    }
}
