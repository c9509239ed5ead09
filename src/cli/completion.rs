//! The words that shells offer for states, runs and filters.
//!
//! Responsible for the offered words. An offered word is not a limit: every text is accepted. clap
//! writes the scripts in advance. So they cannot offer ids of a workspace, its runs, or a second term of a filter.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

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
    use crate::run::DecisionFilter;

    fn script(shell: clap_complete::Shell) -> String {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut help::build_command(), "dicta", &mut text);
        String::from_utf8(text).expect("a script is text")
    }

    #[test]
    fn scripts_offer_states_and_filters() {
        use clap_complete::Shell::{Bash, Fish, Zsh};
        for shell in [Bash, Zsh, Fish] {
            let text = script(shell);
            for word in ["@baseline", "outcome"] {
                assert!(text.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn every_outcome_is_offered_and_every_offered_filter_is_valid() {
        for outcome in Outcome::ALL {
            let term = format!("outcome:{}", outcome.as_str());
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
