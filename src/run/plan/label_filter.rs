//! The values of `label:` in the `--where` language, and what they test.
//!
//! Responsible for matching a value with the label of a decision. Does not look labels up; the caller passes them. A
//! sealed label counts as none here, so that no filter reveals its answer. A part of an eval has the label of the whole,
//! unless it has one of its own.

use crate::diag::find_nearest;
use crate::model::{LabelLookup, Outcome};

/// A value of `label:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelFilter {
    /// Without a label that counts.
    Unlabelled,
    /// With a label that counts.
    Labelled,
    /// Labelled as pass.
    Pass,
    /// Labelled as fail.
    Fail,
    /// Labelled as neither pass nor fail.
    Unsure,
    /// The verdict and the label are equal.
    Agrees,
    /// The verdict and the label differ.
    Disagrees,
    /// With a label that waits for a confirmation.
    ToConfirm,
}

/// The label of a decision, as a filter sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CandidateLabel {
    /// The label that counts: `Some(None)` is unsure, `None` without a label.
    pub passed: Option<Option<bool>>,
    /// True if a label waits for a confirmation, because the question or the transcript changed.
    pub is_to_confirm: bool,
    /// The verdict that the label is about, which the parts of an eval have together; `Some(None)` while a part has none.
    /// `None` if the label is about the decision itself.
    pub whole_verdict: Option<Option<bool>>,
}

impl CandidateLabel {
    /// Returns what a filter may know of a label.
    pub(crate) fn from_lookup(found: LabelLookup<'_>) -> Self {
        Self {
            passed: found.counted().map(|label| label.passed),
            is_to_confirm: found.is_to_confirm(),
            whole_verdict: None,
        }
    }
}

impl LabelFilter {
    /// All values with their words, in the order of lists.
    pub const ALL: [(&'static str, Self); 8] = [
        ("none", Self::Unlabelled),
        ("any", Self::Labelled),
        ("pass", Self::Pass),
        ("fail", Self::Fail),
        ("unsure", Self::Unsure),
        ("agrees", Self::Agrees),
        ("disagrees", Self::Disagrees),
        ("confirm", Self::ToConfirm),
    ];

    /// Parses a value. The error is a sentence.
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().map(|(name, _)| *name);
        if let Some((_, one)) = Self::ALL.iter().find(|(name, _)| *name == word) {
            return Ok(*one);
        }
        Err(match find_nearest(word, known) {
            Some(near) if !word.is_empty() => {
                format!("`label:{word}` is not known; did you mean `label:{near}`?")
            }
            _ => Self::describe_values(),
        })
    }

    /// Returns a sentence with all values.
    pub(super) fn describe_values() -> String {
        let known: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
        format!("`label:` takes {}", known.join(", "))
    }

    /// Returns the description for the list of values.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Unlabelled => "without a label",
            Self::Labelled => "with a label",
            Self::Pass => "labelled as pass",
            Self::Fail => "labelled as fail",
            Self::Unsure => "labelled as unsure",
            Self::Agrees => "the verdict agrees with the label",
            Self::Disagrees => "the verdict disagrees with the label",
            Self::ToConfirm => {
                "with a label to confirm, because the question or the transcript changed"
            }
        }
    }

    /// Returns true if the value also tests the newest recorded outcome.
    pub(super) const fn tests_outcome(self) -> bool {
        matches!(self, Self::Agrees | Self::Disagrees)
    }

    pub(super) fn matches(self, label: CandidateLabel, outcome: Option<Outcome>) -> bool {
        // Only a pass or a fail agrees or disagrees.
        let agrees = || {
            let own_verdict = outcome.and_then(Outcome::passed);
            let judged = label.whole_verdict.unwrap_or(own_verdict)?;
            Some(label.passed.flatten()? == judged)
        };
        match self {
            Self::Unlabelled => label.passed.is_none(),
            Self::Labelled => label.passed.is_some(),
            Self::Pass => label.passed == Some(Some(true)),
            Self::Fail => label.passed == Some(Some(false)),
            Self::Unsure => label.passed == Some(None),
            Self::Agrees => agrees() == Some(true),
            Self::Disagrees => agrees() == Some(false),
            Self::ToConfirm => label.is_to_confirm,
        }
    }
}
