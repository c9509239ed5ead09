//! The words that shells offer for states, runs and filters.
//!
//! Responsible for the offered words. An offered word is not a limit: every text is accepted. clap writes the scripts in
//! advance, so it knows neither the ids of a workspace nor its runs. The scripts of bash, zsh and fish ask the program for
//! these words; the other shells offer only the words that every workspace has.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::ValueEnum;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap_complete::Shell;

use super::history::name_entry;
use super::workspace::open_run_store_and_workspace;
use super::{CommandCx, help};
use crate::record::{History, RunStore};
use crate::workspace::Workspace;

/// The largest number of words of one kind that a shell offers.
const MAX_WORDS: usize = 200;

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
    fn fixed_words(self) -> &'static [&'static str] {
        match self {
            Self::States => STATES,
            Self::Runs => RUNS,
            Self::Filters => FILTERS,
        }
    }

    /// Returns the command line that prints the words.
    fn command_line(self) -> String {
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

/// Lets bash complete words with `@` and `:`. By itself, bash takes these characters as separators of words.
const BASH_WORDS: &str = r#"
_dicta_words() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local -a words
    read -ra words <<<"$line"
    if [[ "$line" == *[[:space:]] ]]; then
        words+=("")
    fi
    local last=$((${#words[@]} - 1))
    local word="${words[last]}"
    local known="${word%"$2"}"
    COMP_WORDS=("${words[@]}")
    COMP_CWORD=$last
    _dicta "$1" "$word" "${words[last - 1]}"
    COMPREPLY=("${COMPREPLY[@]#"$known"}")
}
"#;

/// Returns the completion script of a shell.
pub(super) fn write_script(shell: Shell) -> String {
    let mut script = Vec::new();
    let mut command = help::build_command();
    clap_complete::generate(shell, &mut command, "dicta", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    for list in [WordList::States, WordList::Runs, WordList::Filters] {
        let (words, command_line) = (list.fixed_words(), list.command_line());
        match shell {
            // Both scripts have the words on one line, where the shell runs a command at each completion.
            Shell::Bash | Shell::Zsh => {
                let mut fixed = words.join(" ");
                if shell == Shell::Zsh {
                    fixed = fixed.replace(':', "\\:");
                }
                script = script.replace(&fixed, &format!("$({command_line})"));
            }
            Shell::Fish => {
                let fixed: Vec<String> = words.iter().map(|word| format!("{word}\\t''")).collect();
                script = script.replace(&fixed.join("\n"), &format!("({command_line})"));
            }
            _ => {}
        }
    }
    match shell {
        Shell::Bash => {
            let script = script.replace("complete -F _dicta ", "complete -F _dicta_words ");
            match script.rfind("\nif [[") {
                Some(end) => format!("{}{BASH_WORDS}{}", &script[..end], &script[end..]),
                None => script,
            }
        }
        Shell::Fish => script + &list_fish_positions(&command),
        _ => script,
    }
}

/// Returns the lines for the positional arguments that take states or runs, which clap leaves out for fish.
fn list_fish_positions(command: &clap::Command) -> String {
    let mut lines = String::new();
    for subcommand in command.get_subcommands() {
        let lists = [WordList::States, WordList::Runs];
        let takes = |list: &&WordList| {
            let mut positions = subcommand.get_positionals();
            positions.any(|arg| {
                let values = arg.get_possible_values();
                let names = values.iter().map(PossibleValue::get_name);
                names.eq(list.fixed_words().iter().copied())
            })
        };
        if let Some(list) = lists.iter().find(takes) {
            let _infallible = writeln!(
                lines,
                "complete -c dicta -n \"__fish_dicta_using_subcommand {}\" -a \"({})\"",
                subcommand.get_name(),
                list.command_line()
            );
        }
    }
    lines
}

/// Returns the words of a list, one a line. Without a workspace, these are the fixed words.
pub(super) fn list_words(list: WordList, cx: &CommandCx) -> String {
    let mut words: Vec<String> = Vec::new();
    match open_run_store_and_workspace(None, cx) {
        Ok((store, workspace)) => match list {
            WordList::States => {
                let root = workspace.as_ref().map(|workspace| workspace.root.clone());
                words.extend(list_states(&store, root.as_deref()));
                words.extend(list_runs(&store));
            }
            WordList::Runs => {
                words.extend(RUNS.iter().map(|word| (*word).to_owned()));
                words.extend(list_runs(&store));
            }
            WordList::Filters => words.extend(list_terms(&store, workspace.as_deref())),
        },
        Err(_) => words.extend(list.fixed_words().iter().map(|word| (*word).to_owned())),
    }
    // Shells evaluate the words, so one with a character that has a meaning there is left out.
    words.retain(|word| word.chars().all(is_plain));
    words
        .iter()
        .fold(String::new(), |text, word| text + word + "\n")
}

fn is_plain(one: char) -> bool {
    one.is_ascii_alphanumeric() || matches!(one, '_' | '.' | '-' | '@' | ':' | '/')
}

/// Returns the names of states that exist.
fn list_states(store: &RunStore, root: Option<&std::path::Path>) -> Vec<String> {
    let Some(root) = root else {
        return STATES.iter().map(|word| (*word).to_owned()).collect();
    };
    let history = History::read(store, root);
    let entries = history.entries().len();
    let numbers = (1..=entries).rev().take(MAX_WORDS);
    let baseline = history.baseline().map(|_| "@baseline".to_owned());
    numbers
        .map(|number| name_entry(entries, number))
        .chain(baseline)
        .collect()
}

/// Returns the letters of the runs, newest first.
fn list_runs(store: &RunStore) -> Vec<String> {
    let runs = store.runs().into_iter().take(MAX_WORDS);
    runs.map(|run| run.id.letters().to_owned()).collect()
}

/// Returns the terms of filters, with the ids of the workspace.
fn list_terms(store: &RunStore, workspace: Option<&Workspace>) -> Vec<String> {
    let mut terms: BTreeSet<String> = BTreeSet::new();
    if let Some(workspace) = workspace {
        for rubric in &workspace.rubrics {
            terms.insert(format!("rubric:{}", rubric.id));
            terms.extend(rubric.evals.iter().map(|eval| format!("eval:{}", eval.id)));
        }
        terms.extend(workspace.judges.keys().map(|name| format!("judge:{name}")));
        let history = History::read(store, &workspace.root);
        let newest = history.newest().map(|entry| &entry.state.transcripts);
        let transcripts = newest
            .into_iter()
            .flat_map(|all| all.iter())
            .take(MAX_WORDS);
        terms.extend(transcripts.map(|one| format!("transcript:{}", one.id)));
    }
    let fixed = FILTERS.iter().map(|word| (*word).to_owned());
    fixed.chain(terms).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;
    use crate::run::DecisionFilter;

    #[test]
    fn scripts_ask_the_program_for_states_runs_and_filters() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = write_script(shell);
            for list in ["states", "runs", "filters"] {
                let asked = format!("dicta completions --words {list} 2>/dev/null");
                assert!(script.contains(&asked), "{shell}: {list}");
            }
            // No fixed list is left, not even in a position that clap writes differently.
            for fixed in [
                "@ @2",
                "@2\\t",
                "outcome:pass outcome:fail",
                "outcome\\:pass outcome",
                "outcome:fail\\t",
            ] {
                assert!(!script.contains(fixed), "{shell}: {fixed}");
            }
        }
        assert!(write_script(Shell::Bash).contains("complete -F _dicta_words "));
    }

    #[test]
    fn words_with_characters_of_the_shell_are_not_offered() {
        for word in [
            "$(touch x)",
            "`x`",
            "a b",
            "a;b",
            "~",
            "a'b",
            "a\"b",
            "*",
            "a\nb",
        ] {
            assert!(!word.chars().all(is_plain), "{word}");
        }
        assert!("transcript:refund-03/a.b_c".chars().all(is_plain));
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
