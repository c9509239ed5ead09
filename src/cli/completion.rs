//! The words that shells offer for states, runs and filters.
//!
//! Responsible for the offered words. An offered word is not a limit: every text is accepted. The words here are those of
//! every workspace; `completion_script` adds those of one workspace.

use clap::ValueEnum;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

/// A list of words that depends on the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WordList {
    /// States and runs.
    States,
    /// Runs.
    Runs,
    /// Terms of a filter.
    Filters,
}

impl WordList {
    /// Returns the words that need no workspace.
    pub(super) fn fixed_words(self) -> &'static [&'static str] {
        match self {
            Self::States => STATES,
            Self::Runs => RUNS,
            Self::Filters => FILTERS,
        }
    }

    /// Returns the command line that prints the words.
    pub(super) fn command_line(self) -> String {
        let value = self.to_possible_value();
        let name = value.as_ref().map_or("", PossibleValue::get_name);
        format!("dicta completions --words {name} 2>/dev/null")
    }
}

/// The names of states that always exist or are set by the user.
const STATES: &[&str] = &["@", "@2", "@3", "@baseline"];
/// The names of runs that do not depend on the workspace.
const RUNS: &[&str] = &["@", "@2"];
/// The terms of filters: whole ones for outcomes, and the beginnings of those whose values depend on the workspace.
const FILTERS: &[&str] = &[
    "eval:",
    "rubric:",
    "transcript:",
    "cell:",
    "judge:",
    "tag:",
    "group:",
    "outcome:pass",
    "outcome:fail",
    "outcome:not_applicable",
    "outcome:skipped",
    "outcome:check_error",
    "outcome:judge_error",
    "outcome:unparsed",
    "outcome:turn_limit",
    "outcome:truncated",
    "outcome:timeout",
    "outcome:budget",
    "outcome:cancelled",
    "outcome:error",
    "outcome:none",
    "is:refused",
    "is:repaired",
    "is:fetch-error",
    "is:citation",
    "is:contradiction",
    "is:truncated",
    "label:none",
    "label:any",
    "label:pass",
    "label:fail",
    "label:unsure",
    "label:agrees",
    "label:disagrees",
    "label:confirm",
];

/// A parser that accepts every text and offers some words to shells.
#[derive(Debug, Clone)]
struct OfferedWords(&'static [&'static str]);

impl TypedValueParser for OfferedWords {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// Returns the parser of the name of a state.
pub(super) fn complete_state() -> impl TypedValueParser<Value = String> {
    OfferedWords(STATES)
}

/// Returns the parser of the name of a run.
pub(super) fn complete_run() -> impl TypedValueParser<Value = String> {
    OfferedWords(RUNS)
}

/// Returns the parser of a filter.
pub(super) fn complete_filter() -> impl TypedValueParser<Value = String> {
    OfferedWords(FILTERS)
}

#[cfg(test)]
mod tests {
    use super::super::help;
    use super::*;
    use crate::model::Outcome;
    use crate::run::{DecisionFilter, LabelFilter};

    #[test]
    fn every_outcome_is_offered_and_every_offered_filter_is_valid() {
        for outcome in Outcome::ALL {
            let term = format!("outcome:{}", outcome.as_str());
            assert!(FILTERS.contains(&term.as_str()), "{term}");
        }
        for (value, _) in LabelFilter::ALL {
            let term = format!("label:{value}");
            assert!(FILTERS.contains(&term.as_str()), "{term}");
        }
        for term in FILTERS {
            let term = match *term {
                // A cell has a whole name.
                "cell:" => "cell:x/r/e".to_owned(),
                term if term.ends_with(':') => format!("{term}x"),
                term => term.to_owned(),
            };
            assert!(DecisionFilter::parse(&term).is_ok(), "{term}");
        }
    }

    #[test]
    fn offered_words_are_neither_a_limit_nor_in_the_help() {
        for line in [
            "dicta show kvqa",
            "dicta compare old.jsonl @17",
            "dicta run --where tag:x --resume ./runs/x",
        ] {
            assert!(help::parse(line.split(' ')).is_ok(), "{line}");
        }
        let error = help::parse(["dicta", "compare", "--help"]).expect_err("help");
        assert!(!error.to_string().contains("possible values: @"), "{error}");
    }
}
