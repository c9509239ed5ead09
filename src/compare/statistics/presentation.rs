//! Rules for figures of few labels: the order of their parts, and required bounds.

use super::estimators::Estimate;
use super::plan::ENOUGH_LABELS;

/// The number of labels of a class below which no number appears without its interval.
pub const FEW_LABELS: u64 = 5;

/// The parts of a figure that a screen shows, by the number of labels of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FigurePresentation {
    /// Under 5 labels: show counts and the interval, no bare number.
    CountsOnly,
    /// 5 to 19 labels: show the interval first.
    IntervalFirst,
    /// 20 labels or more: show the number, then the interval.
    PointFirst,
}

impl FigurePresentation {
    /// Returns the parts to show for a number of labels.
    pub fn for_labels(labels: u64) -> Self {
        if labels < FEW_LABELS {
            Self::CountsOnly
        } else if labels < ENOUGH_LABELS {
            Self::IntervalFirst
        } else {
            Self::PointFirst
        }
    }

    /// Returns the number of labels that are missing until a figure has enough.
    pub fn missing_labels(labels: u64) -> u64 {
        ENOUGH_LABELS.saturating_sub(labels)
    }
}

/// The answer to a required bound of one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundCheck {
    /// The lower limit is at or above the bound.
    Holds,
    /// The lower limit is below the bound.
    Fails,
    /// There are too few labels for an answer; this number is missing.
    TooFewLabels(u64),
}

/// Compares the lower limit for further items with a bound. A figure needs `min_labels` labels, and at least 20.
///
/// A gate decides about a judge that is used again. The limit for the population is not enough: it equals the estimate if
/// each item has a label.
pub fn check_lower_bound(estimate: &Estimate, bound: f64, min_labels: u64) -> BoundCheck {
    let needed = min_labels.max(ENOUGH_LABELS);
    if estimate.labels < needed || estimate.point.is_err() {
        BoundCheck::TooFewLabels(needed.saturating_sub(estimate.labels).max(1))
    } else if estimate.further.lower < bound {
        BoundCheck::Fails
    } else {
        BoundCheck::Holds
    }
}
