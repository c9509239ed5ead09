//! Labels: a person's verdicts on transcripts.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Digest, LabelQuery, WallTime};

/// The eval that several evals replace, one for each criterion. Labels stay on the whole, which passes if all parts pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalWhole {
    /// The id of the eval as the file writes it.
    pub id: String,
    /// The digest of the question that its labels answer.
    pub question: Digest,
}

impl EvalWhole {
    /// Returns the query for the label of the whole, from that of its first part.
    pub fn label_query<'q>(&'q self, first: LabelQuery<'q>, is_shot: bool) -> LabelQuery<'q> {
        LabelQuery {
            eval: &self.id,
            question: Some(&self.question),
            later_name: None,
            is_shot,
            ..first
        }
    }
}

/// The verdicts of a whole's parts on one transcript.
#[derive(Debug, Clone, Copy, Default)]
pub struct PartVerdicts {
    decided: usize,
    passes: usize,
}

impl PartVerdicts {
    /// Adds the verdict of a part; `None` if it has none.
    pub fn add(&mut self, passed: Option<bool>) {
        self.decided += usize::from(passed.is_some());
        self.passes += usize::from(passed == Some(true));
    }

    /// Returns the verdict of the whole, which has this number of parts. It passes if all parts pass, and has no verdict if
    /// one of them has none.
    pub fn join(self, parts: usize) -> Option<bool> {
        (self.decided == parts).then_some(self.passes == parts)
    }
}

/// A person's verdict on one transcript and eval. dicta shows it to a judge only as a shot, which measures nothing.
///
/// Files written before the fields of its origin existed lack them: the origin of such a label is unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Label {
    /// The id of the transcript.
    pub transcript: String,
    /// The id of the rubric; `None` matches any rubric with that eval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// The id of the eval.
    pub eval: String,
    /// The verdict; `null` if the person looked and could not decide. The key is required.
    pub passed: Option<bool>,
    /// The person's score, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The name of the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time of the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<WallTime>,
    /// The person's note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// True if the screen hid the verdict while the person labelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blind: Option<bool>,
    /// The verdicts that the person saw before the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenVerdicts>,
    /// The digest of the transcript that the person read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_digest: Option<Digest>,
    /// The digest of the question that the person answered: criteria, scoring guide and scale, without thresholds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_digest: Option<Digest>,
    /// The draw that chose the item; `None` for an item that a person picked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<LabelSample>,
    /// The answers of the same person to earlier versions of the question, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierAnswer>,
    /// The cause of a disagreement with the judge that the person closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<DisagreementCause>,
    /// The clause of the criteria that settled the disagreement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clause: Option<String>,
    /// The fields that dicta does not know. They stay when dicta writes the label again.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The verdicts that a person saw before labelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenVerdicts {
    /// No verdict.
    None,
    /// The verdict of the judge that the label is compared with.
    ThisJudge,
    /// The verdict of another judge, such as a second opinion or a source verdict.
    Another,
}

impl SeenVerdicts {
    /// Returns the word in label files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ThisJudge => "this_judge",
            Self::Another => "another",
        }
    }
}

/// The draw by chance that chose an item to label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelSample {
    /// The name of the sampling plan, such as `random` or `stratified`.
    pub plan: String,
    /// The stratum of the item, if the plan has strata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stratum: Option<String>,
    /// The probability with which the plan drew the item: above 0, at most 1.
    pub p: f64,
}

/// A person's answer to an earlier version of a question or transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlierAnswer {
    /// The question that the person answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_digest: Option<Digest>,
    /// The transcript that the person read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript_digest: Option<Digest>,
    /// The answer; `null` is unsure.
    #[serde(deserialize_with = "stated")]
    pub passed: Option<bool>,
    /// The time of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<WallTime>,
}

/// The cause of a disagreement between a verdict and a label, as a person found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisagreementCause {
    /// The rubric misleads the judge.
    Rubric,
    /// The label is wrong.
    Label,
    /// The specification allows both answers.
    Unclear,
}

impl DisagreementCause {
    /// All causes.
    pub const ALL: [Self; 3] = [Self::Rubric, Self::Label, Self::Unclear];

    /// Returns the word in label files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rubric => "rubric",
            Self::Label => "label",
            Self::Unclear => "unclear",
        }
    }
}

impl Label {
    /// Returns true if the label states where it comes from: what the person saw, what they answered, or the draw. Labels of
    /// older versions and of other programs do not.
    pub fn has_origin(&self) -> bool {
        let saw = self.blind.is_some() || self.seen.is_some();
        let answered = self.question_digest.is_some() || self.transcript_digest.is_some();
        saw || answered || self.sample.is_some()
    }

    /// Returns a label of a decision, without an origin.
    pub fn new(transcript: &str, eval: &str, passed: Option<bool>) -> Self {
        Self {
            transcript: transcript.to_owned(),
            eval: eval.to_owned(),
            passed,
            ..Self::default()
        }
    }

    /// Returns the problems of the values, which the types do not exclude.
    pub fn list_invalid_values(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self
            .score
            .is_some_and(|score| !(0.0..=1.0).contains(&score))
        {
            problems.push("score must be between 0 and 1".to_owned());
        }
        if let Some(sample) = &self.sample
            && !(sample.p > 0.0 && sample.p <= 1.0)
        {
            problems.push(format!(
                "sample.p must be above 0 and at most 1, because it is the probability of the draw (got {})",
                sample.p
            ));
        }
        problems
    }

    /// Replaces the answer by one to the current question and transcript. If either differs, the replaced answer stays
    /// as an earlier one.
    pub fn answer_again(&mut self, old: &Self) {
        let differs = |new: &Option<Digest>, old: &Option<Digest>| {
            new.is_some() && old.is_some() && new != old
        };
        self.earlier.clone_from(&old.earlier);
        if differs(&self.question_digest, &old.question_digest)
            || differs(&self.transcript_digest, &old.transcript_digest)
        {
            self.earlier.push(EarlierAnswer {
                question_digest: old.question_digest.clone(),
                transcript_digest: old.transcript_digest.clone(),
                passed: old.passed,
                at: old.at.clone(),
            });
        }
    }

    /// Returns the label without everything that depends on the person's answer.
    #[must_use]
    pub fn without_answer(&self) -> Self {
        let mut earlier = self.earlier.clone();
        for answer in &mut earlier {
            answer.passed = None;
            answer.at = None;
        }
        Self {
            transcript: self.transcript.clone(),
            rubric: self.rubric.clone(),
            eval: self.eval.clone(),
            by: self.by.clone(),
            transcript_digest: self.transcript_digest.clone(),
            question_digest: self.question_digest.clone(),
            sample: self.sample.clone(),
            earlier,
            ..Self::default()
        }
    }
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

/// The counts of verdicts against labels. Decisions without a verdict or without a label are not counted.
/// `to_confirm` is outside of every total.
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
    /// The number of decisions whose label waits for a confirmation, because the question or the transcript changed.
    #[serde(default)]
    pub to_confirm: u64,
    /// The number of decisions whose label the judge saw as an example, so that it measures nothing.
    #[serde(default)]
    pub shots: u64,
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
