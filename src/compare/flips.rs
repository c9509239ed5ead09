//! The relation of flips to their labels, and their numbers.
//!
//! Responsible for the definition of a regression. Does not compare states.

use super::states::StateChange;
use crate::model::Labels;

/// The relation of a flip to its label. The order is that of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlipDirection {
    /// The newer verdict differs from the label.
    Away,
    /// The newer verdict agrees with the label.
    Towards,
    /// The decision has no label of pass or fail.
    Unlabelled,
}

impl FlipDirection {
    /// Returns the direction of a flip.
    pub fn of(flip: &StateChange, labels: &Labels) -> Self {
        Self::from_agreement(flip.agrees_with_label(labels))
    }

    /// Returns the direction of a flip whose newer verdict agrees with the label or not; `None` without a label.
    pub const fn from_agreement(agrees: Option<bool>) -> Self {
        match agrees {
            Some(true) => Self::Towards,
            Some(false) => Self::Away,
            None => Self::Unlabelled,
        }
    }

    /// Returns true if a flip of this direction is a regression: it goes away from the label or, without a label, from
    /// pass to fail. A flip that a person made by an edit is none.
    pub fn is_regression(self, flip: &StateChange) -> bool {
        match self {
            Self::Towards => false,
            Self::Away => true,
            Self::Unlabelled => flip.after.passed() == Some(false) && !flip.is_edited(),
        }
    }

    /// Returns the word of result lines; `None` without a label.
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Towards => Some("towards"),
            Self::Away => Some("away"),
            Self::Unlabelled => None,
        }
    }
}

/// The numbers of flips by direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlipCounts {
    /// The flips that now agree with their label.
    pub towards: u64,
    /// The flips that no longer agree with their label.
    pub away: u64,
    /// The flips without a label.
    pub unlabelled: u64,
}

impl FlipCounts {
    /// Counts flips.
    pub fn count(flips: &[StateChange], labels: &Labels) -> Self {
        let mut counts = Self::default();
        for flip in flips {
            counts.add(FlipDirection::of(flip, labels));
        }
        counts
    }

    /// Counts one flip.
    pub fn add(&mut self, direction: FlipDirection) {
        *match direction {
            FlipDirection::Towards => &mut self.towards,
            FlipDirection::Away => &mut self.away,
            FlipDirection::Unlabelled => &mut self.unlabelled,
        } += 1;
    }

    /// Returns the number of flips with a label.
    pub fn labelled(self) -> u64 {
        self.towards + self.away
    }

    /// Returns the number of all flips.
    pub fn total(self) -> u64 {
        self.labelled() + self.unlabelled
    }
}
