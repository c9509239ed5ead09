//! The help of the command line: commands in groups, examples, and hints for the words of other tools.
//!
//! Responsible for everything that clap's derive can't express. The names and one-line descriptions come from
//! [`super::args`].

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _, FromArgMatches as _};

use super::args::Cli;

/// The commands in the order of a user's first hour, in groups.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["open", "demo", "init", "trust"]),
    ("Judge", &["check", "run", "compare", "robustness"]),
    ("Look", &["runs", "show", "replay", "prompt"]),
    ("Data", &["import", "map"]),
    (
        "Reference",
        &[
            "eval-types",
            "judges",
            "tools",
            "tool",
            "schema",
            "keys",
            "themes",
            "completions",
            "man",
        ],
    ),
];

/// Two command lines for the help of each command.
pub(super) const EXAMPLES: &[(&str, [&str; 2])] = &[
    ("open", ["dicta open", "dicta open session.jsonl"]),
    ("demo", ["dicta demo", "dicta demo --reset"]),
    ("init", ["dicta init", "dicta init refunds"]),
    ("trust", ["dicta trust .", "dicta trust --list"]),
    (
        "check",
        ["dicta check --strict", "dicta check rubrics/tone.yaml"],
    ),
    (
        "run",
        [
            "dicta run --where 'eval:tone'",
            "dicta run -q --format jsonl -o junit=results.xml",
        ],
    ),
    ("compare", ["dicta compare @2 @", "dicta compare kvqa @"]),
    (
        "robustness",
        [
            "dicta robustness quick --dry-run",
            "dicta robustness quick support",
        ],
    ),
    (
        "runs",
        ["dicta runs", "dicta -C refunds runs --format jsonl"],
    ),
    (
        "show",
        ["dicta show @", "dicta show @ refund-02/orders/order-facts"],
    ),
    (
        "replay",
        ["dicta replay @", "dicta replay @ --print --speed 0"],
    ),
    (
        "prompt",
        [
            "dicta prompt beam-release/beamline/newest",
            "dicta prompt beam-release/beamline/newest --key",
        ],
    ),
    (
        "import",
        [
            "dicta import run.eval -o transcripts/run.jsonl",
            "dicta import support.csv --map 'id: uuid, messages: turns'",
        ],
    ),
    ("map", ["dicta map support.csv", "dicta map traces.json"]),
    ("eval-types", ["dicta eval-types", "dicta eval-types regex"]),
    ("judges", ["dicta judges", "dicta judges --demo"]),
    ("tools", ["dicta tools", "dicta tools --provider anthropic"]),
    (
        "tool",
        [
            "dicta tool fetch_url '{\"url\": \"https://example.com\"}'",
            "dicta tool order_status '{\"order\": \"48213\"}' --format json",
        ],
    ),
    ("schema", ["dicta schema rubric", "dicta schema event"]),
    ("keys", ["dicta keys", "dicta keys --format markdown"]),
    ("themes", ["dicta themes", "dicta themes dark"]),
    (
        "completions",
        ["dicta completions bash", "dicta completions zsh"],
    ),
    ("man", ["dicta man", "dicta man | man -l -"]),
];

/// Words that users of other tools type, and what they mean in dicta.
const HINTS: &[(&str, &str)] = &[
    ("eval", "promptfoo's and Inspect's `eval` is `dicta run`"),
    ("test", "pytest's and DeepEval's `test` is `dicta run`"),
    ("view", "promptfoo's and Inspect's `view` is `dicta open`"),
    (
        "score",
        "Inspect's `score` is `dicta run`: it judges recorded transcripts",
    ),
    (
        "list",
        "`dicta runs`, `dicta judges`, `dicta tools` and `dicta eval-types` list things",
    ),
    ("redteam", "`dicta robustness JUDGE` attacks a judge"),
    (
        "history",
        "`dicta runs` lists the runs, and `dicta compare` compares two",
    ),
    (
        "--max-concurrency",
        "use `-j N` for the number of cells at the same time",
    ),
    (
        "--max-connections",
        "use `-j N` for the number of cells at the same time",
    ),
    ("--model", "use `--judge NAME` with a judge of dicta.yaml"),
    ("--filter-pattern", "use `--where 'transcript:GLOB'`"),
    ("--output", "use `-o FILE` or `-o FORMAT=FILE`"),
];

/// Returns the parser with groups and examples.
pub(super) fn build_command() -> Command {
    let mut command = Cli::command();
    for (name, [first, second]) in EXAMPLES {
        command = command.mut_subcommand(name, |subcommand| {
            // The help of some commands already ends with a table.
            let before = subcommand
                .get_after_help()
                .map(|text| format!("{text}\n"))
                .unwrap_or_default();
            subcommand.after_help(format!("{before}Examples:\n  {first}\n  {second}"))
        });
    }
    let groups = render_groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

/// Renders the list of commands in their groups.
fn render_groups(command: &Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _infallible = writeln!(text, "{title}:");
        for name in *names {
            let about = command
                .find_subcommand(name)
                .and_then(Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            let _infallible = writeln!(text, "  {name:<13}{about}");
        }
        text.push('\n');
    }
    text
}

/// Parses a command line.
pub(super) fn parse(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Cli, clap::Error> {
    let matches = build_command().try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches)
}

/// Returns a hint for an unknown word that another tool knows.
pub(super) fn hint_for(error: &clap::Error) -> Option<&'static str> {
    let word = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg]
        .into_iter()
        .find_map(|kind| match error.get(kind) {
            Some(ContextValue::String(word)) => Some(word.as_str()),
            _ => None,
        })?;
    // clap reports `--model=x` as it was written.
    let word = word.split(['=', ' ']).next().unwrap_or(word);
    HINTS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_has_two_examples() {
        let command = Cli::command();
        let mut names: Vec<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        names.sort_unstable();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        grouped.sort_unstable();
        assert_eq!(grouped, names);
        let mut with_examples: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
        with_examples.sort_unstable();
        assert_eq!(with_examples, names);
    }

    #[test]
    fn every_example_is_a_valid_command_line() {
        for (name, examples) in EXAMPLES {
            for example in examples {
                // The part before a pipe is the command.
                let line = example.split(" | ").next().unwrap_or(example);
                let words = split_words(line);
                let cli = parse(&words).unwrap_or_else(|error| panic!("{example}: {error}"));
                assert!(cli.command.is_some(), "{name}: {example}");
            }
        }
    }

    /// Splits at spaces outside single quotes.
    fn split_words(line: &str) -> Vec<String> {
        line.split('\'')
            .enumerate()
            .flat_map(|(index, part)| match index % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect(),
                _ => vec![part.to_owned()],
            })
            .collect()
    }

    #[test]
    fn former_names_still_work() {
        for line in [
            "dicta selftest quick",
            "dicta evals regex",
            "dicta validate",
            "dicta run --frozen @ --frozen-miss live",
            "dicta keys --markdown",
            "dicta run --quiet",
        ] {
            assert!(parse(line.split(' ')).is_ok(), "{line}");
        }
    }

    #[test]
    fn words_of_other_tools_get_a_hint() {
        for (line, hint) in [
            ("dicta eval", "dicta run"),
            ("dicta view", "dicta open"),
            ("dicta run --max-concurrency 4", "-j"),
        ] {
            let error = parse(line.split(' ')).expect_err(line);
            assert!(
                hint_for(&error).is_some_and(|text| text.contains(hint)),
                "{line}: {error}"
            );
        }
        let error = parse(["dicta", "nonsense"]).expect_err("unknown");
        assert_eq!(hint_for(&error), None);
    }

    #[test]
    fn help_shows_groups_and_works_as_a_command() {
        let help = build_command().render_help().to_string();
        for title in [
            "Start:",
            "Judge:",
            "Look:",
            "Data:",
            "Reference:",
            "Options:",
        ] {
            assert!(help.contains(title), "{title}: {help}");
        }
        let error = parse(["dicta", "help", "run"]).expect_err("help is printed");
        assert_eq!(error.exit_code(), 0);
        assert!(error.to_string().contains("Examples:"), "{error}");
    }
}
