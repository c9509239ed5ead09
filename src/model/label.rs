//! Labels: a person's verdicts on transcripts.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::WallTime;

/// A person's verdict on one transcript and eval. dicta never shows it to a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The id of the transcript.
    pub transcript: String,
    /// The id of the rubric; `None` matches any rubric with that eval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// The id of the eval.
    pub eval: String,
    /// The verdict; `null` if the person looked and could not decide. The key is required.
    #[serde(deserialize_with = "stated")]
    pub passed: Option<bool>,
    /// The person's score, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The name of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time of the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<WallTime>,
    /// The person's note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Parses a word for pass or fail, in any case and with spaces around it. This is the only list of these words:
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

/// Deserializes a required key whose value may be null. Without it, serde reads a missing key as `null`.
fn stated<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    Option::deserialize(from)
}

/// Labels, indexed by transcript and eval.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    by_transcript_and_eval: HashMap<LabelKey, Vec<Label>>,
}

/// The ids that every label has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LabelKey {
    transcript: String,
    eval: String,
}

impl Labels {
    /// Indexes labels. Of several labels of one decision the last one counts, because files of labels grow at their
    /// end.
    pub fn new(labels: impl IntoIterator<Item = Label>) -> Self {
        let mut by_transcript_and_eval: HashMap<LabelKey, Vec<Label>> = HashMap::new();
        for label in labels {
            let key = LabelKey {
                transcript: label.transcript.clone(),
                eval: label.eval.clone(),
            };
            by_transcript_and_eval.entry(key).or_default().push(label);
        }
        Self {
            by_transcript_and_eval,
        }
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.by_transcript_and_eval.is_empty()
    }

    /// Returns the label of a decision. A label that names the rubric takes precedence over one that does not.
    pub fn find(&self, transcript: &str, rubric: &str, eval: &str) -> Option<&Label> {
        // A lookup in a map with a key of two texts needs owned texts.
        let key = LabelKey {
            transcript: transcript.to_owned(),
            eval: eval.to_owned(),
        };
        let found = self.by_transcript_and_eval.get(&key)?.iter();
        found
            .filter(|label| label.rubric.as_ref().is_none_or(|id| id == rubric))
            // `max_by_key` returns the last maximum, so the last label of the same kind counts.
            .max_by_key(|label| label.rubric.is_some())
    }
}

/// The counts of verdicts against labels. Decisions without a verdict or without a label are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelAgreement {
    /// The number of passes with a label pass.
    pub true_pass: u64,
    /// The number of passes with a label fail.
    pub false_pass: u64,
    /// The number of fails with a label fail.
    pub true_fail: u64,
    /// The number of fails with a label pass.
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

    /// Returns the number of labelled decisions with a verdict.
    pub fn total(&self) -> u64 {
        self.true_pass + self.false_pass + self.true_fail + self.false_fail
    }

    /// Returns the number of decisions whose verdict differs from the label.
    pub fn disagreements(&self) -> u64 {
        self.false_pass + self.false_fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_words_parse_as_pass_or_fail() {
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
