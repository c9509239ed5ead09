//! What a file's own tool decided, as a rubric whose judge is that tool: what was there stands beside one's own evals.
//!
//! One eval a scorer, where its word can decide something; what cannot (a grader that always failed, a length in
//! characters) is told in a comment, with the reason. Refuses to turn a score into a pass without saying so in the file.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::quote_yaml;
use crate::model::{SourceVerdict, Transcript, find_source_judge, make_visible, pluralize};
use crate::rubric::check_id;

/// A scorer that is on fewer transcripts names them, if these are not too many to read.
const MAX_NAMED_TRANSCRIPTS: usize = 40;

/// Whose verdicts a file carries, in the order they were met.
#[derive(Debug, Default)]
pub(super) struct SourceVerdictTally {
    judges: Vec<SourceJudgeTally>,
    index_by_name: HashMap<String, usize>,
}

#[derive(Debug, Default)]
struct SourceJudgeTally {
    name: String,
    /// Transcripts that carry a verdict of it.
    transcripts: u64,
    scorers: Vec<ScorerTally>,
    index_by_name: HashMap<String, usize>,
}

/// What one scorer said.
#[derive(Debug, Default)]
struct ScorerTally {
    name: String,
    /// The transcripts it is on.
    transcripts: u64,
    /// Their ids, the first ones.
    ids: Vec<String>,
    /// More than once on one transcript: which of them counts would be a guess.
    is_repeated: bool,
    passed: u64,
    failed: u64,
    errors: u64,
    /// A score from 0 to 1 and neither pass nor fail.
    scored: u64,
    /// Neither, and no such score.
    undecided: u64,
    /// A pass or fail without a score: no bound could decide it.
    unscored: u64,
    lowest_pass: Option<f64>,
    highest_fail: Option<f64>,
}

impl SourceVerdictTally {
    /// Takes a transcript's verdicts in.
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
            let own = &mut self.judges[judge];
            let scorer = find_or_insert(
                &mut own.index_by_name,
                &mut own.scorers,
                &verdict.eval,
                |name| ScorerTally {
                    name,
                    ..ScorerTally::default()
                },
            );
            own.transcripts += u64::from(!seen.iter().any(|(at, _)| *at == judge));
            let told = &mut own.scorers[scorer];
            if seen.contains(&(judge, scorer)) {
                told.is_repeated = true;
            } else {
                told.transcripts += 1;
                if told.ids.len() <= MAX_NAMED_TRANSCRIPTS {
                    told.ids.push(transcript.id.to_string());
                }
            }
            seen.push((judge, scorer));
            told.add_verdict(verdict);
        }
    }

    /// Rubrics by the name of their file, without ending.
    pub(super) fn rubric_files(&self, whole: bool) -> Vec<(String, String)> {
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

    /// Judges that dicta does not know by their names, as entries of `judges:`.
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

/// Where something of a name stands; made if it was not there.
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

/// A tool's name as that of a file.
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
    /// Whether dicta.yaml can name it: the checker that is the default judge has its name already.
    fn is_namable(&self) -> bool {
        check_id(&self.name).is_ok() && self.name != "rules"
    }

    /// `None` where nothing it said can decide.
    fn to_rubric_yaml(&self, whole: bool) -> Option<String> {
        if !self.is_namable() {
            return None;
        }
        let name = make_visible(&self.name, false);
        let mut evals = String::new();
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
        let about = quote_yaml(&format!(
            "What {name} decided when these transcripts were made"
        ));
        Some(format!(
            "# Nobody is asked: these verdicts came with the transcripts. `dicta run --judge {name}` has {name} answer your
# own evals of the same names, and `dicta compare` says where the two differ.
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

    /// Why it is no eval.
    fn explain_exclusion(&self, of: u64, whole: bool) -> Option<String> {
        if let Err(why) = check_id(&self.name) {
            return Some(format!("its name {why}"));
        }
        if self.is_repeated {
            return Some("several times on one transcript".to_owned());
        }
        if self.passed + self.failed + self.scored == 0 {
            let all = if self.undecided == 0 {
                "only graders that failed"
            } else {
                "values that are no scores from 0 to 1, and neither pass nor fail"
            };
            return Some(all.to_owned());
        }
        let many = self.ids.len() > MAX_NAMED_TRANSCRIPTS || !whole;
        (!self.is_common(of) && many).then(|| {
            format!(
                "on {} of {of} transcripts only; `applies_to` can say which",
                self.transcripts
            )
        })
    }

    /// Whether it is on nearly all transcripts that its judge said something about.
    fn is_common(&self, of: u64) -> bool {
        self.transcripts * 5 >= of * 4
    }

    /// The bound that decides, where the scorer itself did not; of what it did decide nothing changes.
    fn deciding_bound(&self) -> Option<f64> {
        if self.scored == 0 || self.unscored > 0 {
            return None;
        }
        let bound = self.lowest_pass.unwrap_or(0.5);
        self.highest_fail
            .is_none_or(|fail| fail < bound)
            .then_some(bound)
    }

    fn write_eval(&self, judge: &str, of: u64, out: &mut String) {
        let mut told = Vec::new();
        for (count, word) in [
            (self.passed, "passed"),
            (self.failed, "failed"),
            (self.scored, "scored without pass or fail"),
            (self.undecided, "neither"),
            (self.errors, "errors"),
        ] {
            if count > 0 {
                told.push(format!("{count} {word}"));
            }
        }
        let on = pluralize(self.transcripts, "transcript");
        let told = quote_yaml(&format!("Recorded on {on}: {}", told.join(", ")));
        // Braces would be a template's.
        let asked = format!("what {judge} recorded as {}", self.name);
        let asked = quote_yaml(&asked.replace(['{', '}'], ""));
        let _infallible = write!(
            out,
            "  - id: {}
    description: {told}
    type: llm_judge_session
",
            quote_yaml(&self.name)
        );
        if !self.is_common(of) {
            let ids = self.ids.iter().map(|id| quote_yaml(&globset::escape(id)));
            let ids: Vec<String> = ids.collect();
            let _infallible = writeln!(out, "    applies_to: {{ ids: [{}] }}", ids.join(", "));
        }
        let _infallible = writeln!(out, "    params:\n      criteria: {asked}");
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
