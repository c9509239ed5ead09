//! Rubrics for source verdicts: the file's own tool becomes the judge, so that its verdicts appear next to the user's
//! evals.
//!
//! Each scorer that can decide becomes one eval. A comment in the rubric names the other scorers with the reason,
//! such as a grader that always failed. If a score becomes a pass or fail, the rubric contains the bound.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::quote_yaml;
use crate::model::{
    SourceVerdict, Transcript, find_source_judge, make_visible, pluralize, quote_shell_word,
};
use crate::rubric::check_id;

/// The maximum number of transcripts that `applies_to` of one eval lists by id.
const MAX_NAMED_TRANSCRIPTS: usize = 40;

/// The judges of a file's source verdicts, in order of first occurrence.
#[derive(Debug, Default)]
pub(super) struct SourceVerdictTally {
    judges: Vec<SourceJudgeTally>,
    index_by_name: HashMap<String, usize>,
}

#[derive(Debug, Default)]
struct SourceJudgeTally {
    name: String,
    /// The number of transcripts with a verdict of this judge.
    transcripts: u64,
    scorers: Vec<ScorerTally>,
    index_by_name: HashMap<String, usize>,
}

/// The verdicts of one scorer, counted.
#[derive(Debug, Default)]
struct ScorerTally {
    name: String,
    /// The number of transcripts with this scorer.
    transcripts: u64,
    /// The ids of the first of these transcripts.
    ids: Vec<String>,
    /// True if a transcript has several verdicts of this scorer. The file does not say which of them counts.
    is_repeated: bool,
    passed: u64,
    failed: u64,
    errors: u64,
    /// The number of verdicts with a score from 0 to 1 but without pass or fail.
    scored: u64,
    /// The number of verdicts without such a score and without pass or fail.
    undecided: u64,
    /// The number of verdicts with pass or fail but without a score. A bound cannot decide them.
    unscored: u64,
    lowest_pass: Option<f64>,
    highest_fail: Option<f64>,
}

impl SourceVerdictTally {
    /// Counts a transcript's verdicts.
    pub(super) fn add_transcript(&mut self, transcript: &Transcript<'_>) {
        let mut seen: Vec<(usize, usize)> = Vec::new();
        for verdict in &transcript.verdicts {
            let judge = find_or_insert(
                &mut self.index_by_name,
                &mut self.judges,
                &verdict.judge,
                |name| SourceJudgeTally {
                    name,
                    ..SourceJudgeTally::default()
                },
            );
            let judge_tally = &mut self.judges[judge];
            let scorer = find_or_insert(
                &mut judge_tally.index_by_name,
                &mut judge_tally.scorers,
                &verdict.eval,
                |name| ScorerTally {
                    name,
                    ..ScorerTally::default()
                },
            );
            // `seen` counts a transcript once per judge and once per scorer.
            judge_tally.transcripts += u64::from(!seen.iter().any(|(at, _)| *at == judge));
            let scorer_tally = &mut judge_tally.scorers[scorer];
            if seen.contains(&(judge, scorer)) {
                scorer_tally.is_repeated = true;
            } else {
                scorer_tally.transcripts += 1;
                // One id more than the limit is kept: it shows that the list is too long.
                if scorer_tally.ids.len() <= MAX_NAMED_TRANSCRIPTS {
                    scorer_tally.ids.push(transcript.id.to_string());
                }
            }
            seen.push((judge, scorer));
            scorer_tally.add_verdict(verdict);
        }
    }

    /// Returns the rubrics, each with the name of its file without ending.
    pub(super) fn rubric_files(&self, whole: bool) -> Vec<(String, String)> {
        // `first.yaml` is the starter rubric.
        let mut names = vec!["first".to_owned()];
        self.judges
            .iter()
            .filter_map(|judge| {
                let text = judge.to_rubric_yaml(whole)?;
                let mut name = file_name(&judge.name);
                while names.contains(&name) {
                    name.push_str("-2");
                }
                names.push(name.clone());
                Some((name, text))
            })
            .collect()
    }

    /// Returns the entries of `judges:` for judges that dicta does not know by name.
    pub(super) fn judges(&self) -> String {
        let strange = |judge: &&SourceJudgeTally| {
            judge.is_namable() && find_source_judge(&judge.name).is_none()
        };
        let mut out = String::new();
        for judge in self.judges.iter().filter(strange) {
            let name = quote_yaml(&judge.name);
            let _infallible = writeln!(out, "  {name}: {{ provider: source, of: {name} }}");
        }
        out
    }
}

/// Returns the index of the entry with a name; adds the entry if it is missing.
fn find_or_insert<T>(
    at: &mut HashMap<String, usize>,
    all: &mut Vec<T>,
    name: &str,
    new: impl FnOnce(String) -> T,
) -> usize {
    *at.entry(name.to_owned()).or_insert_with(|| {
        all.push(new(name.to_owned()));
        all.len() - 1
    })
}

/// Converts a tool's name to a file name.
fn file_name(judge: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = judge.chars().take(40).map(plain).collect();
    let name = name.trim_matches('-').to_owned();
    if name.is_empty() {
        "recorded".to_owned()
    } else {
        name
    }
}

impl SourceJudgeTally {
    /// Returns true if dicta.yaml can name the judge. The judge `rules`, which is the default judge, already has its
    /// name.
    fn is_namable(&self) -> bool {
        check_id(&self.name).is_ok() && self.name != "rules"
    }

    /// Returns the rubric as YAML; `None` if none of its scorers can decide.
    fn to_rubric_yaml(&self, whole: bool) -> Option<String> {
        if !self.is_namable() {
            return None;
        }
        let name = make_visible(&self.name, false);
        let mut evals = String::new();
        // Scorers that cannot decide are listed as comments, so that the author sees them.
        let mut left_out = String::new();
        for scorer in &self.scorers {
            match scorer.explain_exclusion(self.transcripts, whole) {
                Some(why) => {
                    let called = quote_yaml(&scorer.name);
                    let _infallible = writeln!(left_out, "  # {called}: {why}");
                }
                None => scorer.write_eval(&self.name, self.transcripts, &mut evals),
            }
        }
        if evals.is_empty() {
            return None;
        }
        if !left_out.is_empty() {
            left_out.insert_str(0, "\n  # Also recorded, and no eval here:\n");
        }
        let id = quote_yaml(&self.name);
        let judge = quote_shell_word(&self.name);
        let about = quote_yaml(&format!(
            "What {name} decided when these transcripts were made"
        ));
        Some(format!(
            "# This judge calls nothing: it returns the verdicts in the transcripts. `dicta run --judge {judge}` returns them for
# your own evals of the same names, and `dicta compare` shows where the two differ.
id: {id}
description: {about}
judge: {id}

evals:
{evals}{left_out}"
        ))
    }
}

impl ScorerTally {
    fn add_verdict(&mut self, verdict: &SourceVerdict) {
        let score = verdict.score.filter(|score| (0.0..=1.0).contains(score));
        // An error is never a verdict, also if the tool recorded a score with it.
        if verdict.error.is_some() {
            self.errors += 1;
            return;
        }
        match (verdict.passed, score) {
            (Some(passed), score) => {
                self.unscored += u64::from(score.is_none());
                if passed {
                    self.passed += 1;
                    self.lowest_pass = merge_optional(self.lowest_pass, score, f64::min);
                } else {
                    self.failed += 1;
                    self.highest_fail = merge_optional(self.highest_fail, score, f64::max);
                }
            }
            (None, Some(_)) => self.scored += 1,
            (None, None) => self.undecided += 1,
        }
    }

    /// Returns the reason why the scorer does not become an eval.
    fn explain_exclusion(&self, of: u64, whole: bool) -> Option<String> {
        if let Err(why) = check_id(&self.name) {
            return Some(format!("its name {why}"));
        }
        // The file does not say which of the verdicts counts.
        if self.is_repeated {
            return Some("several times on one transcript".to_owned());
        }
        if self.passed + self.failed + self.scored == 0 {
            let all = if self.undecided == 0 {
                "only graders that failed"
            } else {
                "values that are neither a score from 0 to 1 nor a pass or fail"
            };
            return Some(all.to_owned());
        }
        // Without the whole file, the list of ids would be incomplete.
        let many = self.ids.len() > MAX_NAMED_TRANSCRIPTS || !whole;
        (!self.is_common(of) && many).then(|| {
            format!(
                "on {} of {of} transcripts only; `applies_to` can say which",
                self.transcripts
            )
        })
    }

    /// Returns true if the scorer is on at least 80% of the transcripts that its judge has verdicts on.
    fn is_common(&self, of: u64) -> bool {
        self.transcripts * 5 >= of * 4
    }

    /// Returns the lowest score that passes, if some verdicts have a score but no pass or fail. It agrees with every
    /// pass or fail of the scorer.
    fn deciding_bound(&self) -> Option<f64> {
        if self.scored == 0 || self.unscored > 0 {
            return None;
        }
        // Without any pass, the middle is a guess; the comment in the file asks the author to change it.
        let bound = self.lowest_pass.unwrap_or(0.5);
        self.highest_fail
            .is_none_or(|fail| fail < bound)
            .then_some(bound)
    }

    fn write_eval(&self, judge: &str, of: u64, out: &mut String) {
        let mut counts = Vec::new();
        for (count, word) in [
            (self.passed, "passed"),
            (self.failed, "failed"),
            (self.scored, "scored without pass or fail"),
            (self.undecided, "neither"),
            (self.errors, "errors"),
        ] {
            if count > 0 {
                counts.push(format!("{count} {word}"));
            }
        }
        let on = pluralize(self.transcripts, "transcript");
        let description = quote_yaml(&format!("Recorded on {on}: {}", counts.join(", ")));
        // In criteria, braces would begin a template.
        let criteria = format!("what {judge} recorded as {}", self.name);
        let criteria = quote_yaml(&criteria.replace(['{', '}'], ""));
        let _infallible = write!(
            out,
            "  - id: {}
    description: {description}
    type: llm_judge_session
",
            quote_yaml(&self.name)
        );
        // Other transcripts have no verdict of this scorer.
        if !self.is_common(of) {
            let ids = self.ids.iter().map(|id| quote_yaml(&globset::escape(id)));
            let ids: Vec<String> = ids.collect();
            let _infallible = writeln!(out, "    applies_to: {{ ids: [{}] }}", ids.join(", "));
        }
        let _infallible = writeln!(out, "    params:\n      criteria: {criteria}");
        if let Some(bound) = self.deciding_bound() {
            let why = if self.lowest_pass.is_some() {
                "the lowest score it passed; it says no pass or fail of some"
            } else {
                "CHANGE: it says no pass or fail, so this decides"
            };
            let _infallible = writeln!(out, "      min_score: {bound:<18} # {why}");
        }
    }
}

fn merge_optional(old: Option<f64>, new: Option<f64>, which: fn(f64, f64) -> f64) -> Option<f64> {
    match (old, new) {
        (Some(old), Some(new)) => Some(which(old, new)),
        (old, new) => old.or(new),
    }
}
