//! The causes of a verdict that a filter selects: refused and repaired calls, failed fetches, citations, contradictions.
//!
//! Responsible for their words, which `run --where` and the screen share. Does not find causes in a judge trace.

use serde::{Deserialize, Serialize};

use super::{CellResult, Outcome};

/// Something in a judge trace that often explains a wrong verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// dicta refused a call of the judge.
    Refused,
    /// dicta repaired the arguments of a call.
    Repaired,
    /// A tool answered with an error.
    FetchError,
    /// A quote does not occur in its source.
    Citation,
    /// The reasoning contradicts the verdict.
    Contradiction,
    /// The reply was cut off.
    Truncated,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 6] = [
        Self::Refused,
        Self::Repaired,
        Self::FetchError,
        Self::Citation,
        Self::Contradiction,
        Self::Truncated,
    ];

    /// Returns the word of filters: `is:refused`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Repaired => "repaired",
            Self::FetchError => "fetch-error",
            Self::Citation => "citation",
            Self::Contradiction => "contradiction",
            Self::Truncated => "truncated",
        }
    }

    /// Returns the description for lists.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Refused => "a call of the judge was refused",
            Self::Repaired => "a call of the judge was repaired",
            Self::FetchError => "a tool of the judge failed",
            Self::Citation => "a citation occurs nowhere",
            Self::Contradiction => "the reasoning contradicts the verdict",
            Self::Truncated => "the judge's reply was cut off",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of causes. In JSON, a list of their words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<&'static str>")]
pub struct CauseSet(u8);

impl CauseSet {
    /// The set without a cause.
    pub const EMPTY: Self = Self(0);

    /// Adds a cause.
    pub fn insert(&mut self, cause: Cause) {
        self.0 |= cause.bit();
    }

    /// Returns true if the set has the cause.
    pub const fn contains(self, cause: Cause) -> bool {
        self.0 & cause.bit() != 0
    }

    /// Returns true if the set has no cause.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Returns the causes of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns all causes of a result: those of its tool calls, and those of its verdict.
    pub fn of_result(result: &CellResult) -> Self {
        let mut causes = result.tool_causes;
        if result.outcome == Outcome::Truncated {
            causes.insert(Cause::Truncated);
        }
        if let Some(verdict) = result.verdict.as_deref() {
            if verdict.contradiction.is_some() {
                causes.insert(Cause::Contradiction);
            }
            if verdict.citations.iter().any(|citation| !citation.found) {
                causes.insert(Cause::Citation);
            }
            if !verdict.repaired.is_empty() {
                causes.insert(Cause::Repaired);
            }
        }
        causes
    }
}

impl From<Vec<String>> for CauseSet {
    fn from(words: Vec<String>) -> Self {
        let mut causes = Self::default();
        // A later version may know further causes.
        for cause in Cause::ALL {
            if words.iter().any(|word| word == cause.as_str()) {
                causes.insert(cause);
            }
        }
        causes
    }
}

impl From<CauseSet> for Vec<&'static str> {
    fn from(causes: CauseSet) -> Self {
        let known = Cause::ALL.into_iter();
        let known = known.filter(|cause| causes.contains(*cause));
        known.map(Cause::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ArgumentChange, Citation, Verdict};

    #[test]
    fn causes_are_words_in_json_and_unknown_words_are_ignored() {
        let mut causes = CauseSet::default();
        causes.insert(Cause::Refused);
        causes.insert(Cause::FetchError);
        let json = serde_json::to_string(&causes).expect("JSON");
        assert_eq!(json, r#"["refused","fetch-error"]"#);
        let read: CauseSet =
            serde_json::from_str(r#"["fetch-error","later","refused"]"#).expect("JSON");
        assert_eq!(read, causes);
    }

    #[test]
    fn causes_of_a_verdict_add_to_those_of_its_calls() {
        let verdict = Verdict {
            citations: vec![Citation {
                source: "message 1".to_owned(),
                quote: "x".to_owned(),
                found: false,
            }],
            repaired: vec![ArgumentChange {
                path: String::new(),
                what: "closed".to_owned(),
            }],
            contradiction: Some("it says both".to_owned()),
            ..Verdict::default()
        };
        let mut result = CellResult::new(Outcome::Truncated, "");
        result.verdict = Some(Box::new(verdict));
        result.tool_causes.insert(Cause::Refused);
        let causes = CauseSet::of_result(&result);
        for cause in Cause::ALL {
            assert_eq!(
                causes.contains(cause),
                cause != Cause::FetchError,
                "{cause:?}"
            );
        }
        assert!(CauseSet::of_result(&CellResult::new(Outcome::Pass, "")).is_empty());
    }
}
