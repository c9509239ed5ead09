//! The completion scripts of shells, and the words of a workspace that they ask for.
//!
//! Responsible for both. clap writes the scripts in advance, so it knows neither the ids of a workspace nor its runs. The
//! scripts of bash, zsh and fish ask the program for these words; the other shells offer the words of every workspace.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;

use clap::builder::PossibleValue;
use clap_complete::Shell;

use super::completion::WordList;
use super::history::name_entry;
use super::workspace::open_run_store_and_workspace;
use super::{CommandCx, help};
use crate::handlers::EvalTypeRegistry;
use crate::record::{History, RunStore};
use crate::rubric::EvalTypeCatalog as _;
use crate::run::visit_transcripts_until;
use crate::workspace::Workspace;

/// The largest number of words of one kind that a shell offers.
const MAX_WORDS: usize = 200;
/// The largest number of transcripts that are read for their ids and tags: the user waits for the list.
const MAX_READ_TRANSCRIPTS: usize = 2000;

/// Lets bash complete words with `@` and `:`. By itself, bash takes these characters as separators of words. It also
/// completes the last of several terms in quotation marks, and a value behind `=`.
const BASH_WORDS: &str = r#"
_dicta_words() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local -a words
    read -ra words <<<"$line"
    if [[ "$line" == *[[:space:]] ]]; then
        words+=("")
    fi
    local last=$((${#words[@]} - 1))
    local word="${words[last]}" before="${words[last - 1]}" typed="$2" first=""
    if [[ "$typed" == *" "* ]]; then
        # Several terms of a filter in quotation marks.
        first="${typed% *} "
        typed="${typed##* }"
        word="$typed"
        before="$3"
    elif [[ "$word" == --*=* ]]; then
        # An option and its value in one word.
        before="${word%%=*}"
        word="${word#*=}"
        words[last]="$before"
        words+=("$word")
        last=$((last + 1))
    fi
    local known="${word%"$typed"}"
    COMP_WORDS=("${words[@]}")
    COMP_CWORD=$last
    _dicta "$1" "$word" "$before"
    COMPREPLY=("${COMPREPLY[@]#"$known"}")
    COMPREPLY=("${COMPREPLY[@]/#/$first}")
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
                words.extend(
                    WordList::Runs
                        .fixed_words()
                        .iter()
                        .map(|word| (*word).to_owned()),
                );
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
        return WordList::States
            .fixed_words()
            .iter()
            .map(|word| (*word).to_owned())
            .collect();
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

/// Returns the terms of filters, with the values of the workspace.
fn list_terms(store: &RunStore, workspace: Option<&Workspace>) -> Vec<String> {
    let mut terms: BTreeSet<String> = BTreeSet::new();
    if let Some(workspace) = workspace {
        for rubric in &workspace.rubrics {
            terms.insert(format!("rubric:{}", rubric.id));
            for eval in &rubric.evals {
                terms.insert(format!("eval:{}", eval.id));
                let groups = eval.groups.iter().map(|group| format!("group:{group}"));
                terms.extend(groups);
            }
        }
        terms.extend(list_used_judges(workspace).map(|name| format!("judge:{name}")));
        terms.extend(list_transcript_terms(workspace));
        let history = History::read(store, &workspace.root);
        if let Some(newest) = history.newest() {
            let decisions = newest.state.decisions().take(MAX_WORDS);
            let names = decisions.map(|decision| newest.state.name(decision));
            terms.extend(names.map(|name| format!("cell:{name}")));
        }
    }
    let fixed = WordList::Filters
        .fixed_words()
        .iter()
        .map(|word| (*word).to_owned());
    fixed.chain(terms).collect()
}

/// Returns the judges of the evals that a judge decides. A filter by another judge selects nothing.
fn list_used_judges(workspace: &Workspace) -> impl Iterator<Item = &str> {
    let registry = EvalTypeRegistry::builtin();
    let types = registry.eval_types().into_iter();
    let judged: HashSet<&str> = types.filter(|one| one.judged).map(|one| one.name).collect();
    let rubrics = workspace.rubrics.iter();
    let evals = rubrics.flat_map(|rubric| rubric.evals.iter().map(move |eval| (rubric, eval)));
    evals
        .filter(move |(_, eval)| judged.contains(&*eval.eval_type))
        .filter_map(|(rubric, eval)| workspace.assign_judges(rubric, eval))
        .flat_map(|assigned| assigned.judges)
}

/// Returns the terms for the ids and tags of the first transcripts. A file that cannot be read has none.
fn list_transcript_terms(workspace: &Workspace) -> BTreeSet<String> {
    let (mut ids, mut tags, mut visited) = (BTreeSet::new(), BTreeSet::new(), 0);
    let _walk = visit_transcripts_until(
        &workspace.transcripts,
        &workspace.field_maps,
        &mut |reference, transcript| {
            if ids.len() < MAX_WORDS {
                ids.insert(format!("transcript:{}", reference.id));
            }
            for tag in &transcript.tags {
                if tags.len() < MAX_WORDS {
                    tags.insert(format!("tag:{tag}"));
                }
            }
            visited += 1;
            if visited < MAX_READ_TRANSCRIPTS {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        },
    );
    ids.extend(tags);
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
