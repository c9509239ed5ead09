//! What a person said of a transcript.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::WallTime;

/// A human's verdict on a transcript × eval. Never shown to a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The transcript's id.
    pub transcript: String,
    /// The rubric's id; absent: any rubric with that eval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// The eval's id.
    pub eval: String,
    /// The human's verdict; `null`: looked at, and cannot say. It must be stated either way.
    #[serde(deserialize_with = "stated")]
    pub passed: Option<bool>,
    /// A score, where given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<WallTime>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// People's and tables' words for pass and fail, in any case and with blanks around them; the one list of them:
///
/// | pass | `true` `yes` `y` `pass` `passed` `ok` `good` `correct` `1` `1.0` |
/// |---|---|
/// | fail | `false` `no` `n` `fail` `failed` `bad` `incorrect` `wrong` `0` `0.0` |
pub fn parse_pass_or_fail(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "pass" | "passed" | "ok" | "good" | "correct" | "1" | "1.0" => {
            Some(true)
        }
        "false" | "no" | "n" | "fail" | "failed" | "bad" | "incorrect" | "wrong" | "0" | "0.0" => {
            Some(false)
        }
        _ => None,
    }
}

/// A key that serde would take for `null` where it is missing.
fn stated<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    Option::deserialize(from)
}

/// Labels, found by what they are about.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// By transcript and eval.
    by_transcript_and_eval: HashMap<(String, String), Vec<Label>>,
}

impl Labels {
    /// Of several labels of the same decision the last one counts: a file of labels grows at its end.
    pub fn new(labels: impl IntoIterator<Item = Label>) -> Self {
        let mut by_transcript_and_eval: HashMap<(String, String), Vec<Label>> = HashMap::new();
        for label in labels {
            let of = (label.transcript.clone(), label.eval.clone());
            by_transcript_and_eval.entry(of).or_default().push(label);
        }
        Self {
            by_transcript_and_eval,
        }
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.by_transcript_and_eval.is_empty()
    }

    /// The label of a decision: one that names the rubric counts before one that names none.
    pub fn find(&self, transcript: &str, rubric: &str, eval: &str) -> Option<&Label> {
        let of = (transcript.to_owned(), eval.to_owned());
        let found = self.by_transcript_and_eval.get(&of)?.iter();
        found
            .filter(|label| label.rubric.as_ref().is_none_or(|own| own == rubric))
            .max_by_key(|label| label.rubric.is_some())
    }
}

/// Verdicts counted against labels. Decisions without a verdict, or without a label, are in none of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelAgreement {
    /// Passed, and the label says pass.
    pub true_pass: u64,
    /// Passed, and the label says fail.
    pub false_pass: u64,
    /// Failed, and the label says fail.
    pub true_fail: u64,
    /// Failed, and the label says pass.
    pub false_fail: u64,
}

impl LabelAgreement {
    /// Counts one decision.
    pub fn add(&mut self, passed: bool, label: bool) {
        let count = match (passed, label) {
            (true, true) => &mut self.true_pass,
            (true, false) => &mut self.false_pass,
            (false, false) => &mut self.true_fail,
            (false, true) => &mut self.false_fail,
        };
        *count += 1;
    }

    /// Labelled decisions with a verdict.
    pub fn total(&self) -> u64 {
        self.true_pass + self.false_pass + self.true_fail + self.false_fail
    }

    /// Those where verdict and label differ.
    pub fn disagreements(&self) -> u64 {
        self.false_pass + self.false_fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_pass_and_fail_are_the_ones_listed() {
        for (words, passed) in [
            (
                "true yes y pass passed ok good correct 1 1.0 PASS",
                Some(true),
            ),
            (
                "false no n fail failed bad incorrect wrong 0 0.0 No",
                Some(false),
            ),
            ("maybe 2 0.5 unsure passing", None),
        ] {
            for word in words.split(' ') {
                assert_eq!(parse_pass_or_fail(&format!(" {word}\t")), passed, "{word}");
            }
        }
        assert_eq!(parse_pass_or_fail(""), None);
    }
}
