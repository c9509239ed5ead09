//! The help of the command line: commands in groups, examples, and hints for the words of other tools.
//!
//! Responsible for everything that clap's derive can't express. The names and one-line descriptions come from
//! [`super::args`].

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _, FromArgMatches as _};

use super::args::Cli;
use super::streams::terminal_width;
use crate::model::quote_shell_word;
use crate::report::wrap_line;

/// The widest help, and its width without a terminal; clap uses the same number for options.
const MAX_WIDTH: usize = 100;
/// The column at which the description of a command begins.
const ABOUT_COLUMN: usize = 15;

/// The commands in the order of a user's first hour, in groups.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["open", "demo", "init", "trust"]),
    (
        "Judge",
        &[
            "check",
            "run",
            "compare",
            "variants",
            "improve",
            "migrate",
            "noise",
            "robustness",
            "branch",
        ],
    ),
    (
        "Look",
        &[
            "history", "agree", "show", "export", "runs", "replay", "prompt",
        ],
    ),
    (
        "Data",
        &["review", "label", "labels", "import", "map", "paths"],
    ),
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
    (
        "init",
        [
            "dicta init refunds",
            "dicta init --from promptfooconfig.yaml results.json",
        ],
    ),
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
    (
        "compare",
        [
            "dicta compare",
            "dicta compare main.jsonl @ --fail-on regressions",
        ],
    ),
    (
        "agree",
        [
            "dicta agree",
            "dicta agree --fail-on tpr-lower-below=0.85,labels-below=40",
        ],
    ),
    (
        "history",
        ["dicta history --limit 5", "dicta history --baseline @"],
    ),
    (
        "noise",
        [
            "dicta noise 'eval:tone' --repeat 5",
            "dicta noise 'refund-*/support/tone' --repeat 3 --dry-run",
        ],
    ),
    (
        "branch",
        [
            "dicta branch @ refund-02/orders/order-facts",
            "dicta branch @ refund-02/orders/order-facts --at 1.response.1 --set answer=order.json",
        ],
    ),
    (
        "improve",
        [
            "dicta improve support/tone --judge gemini --dry-run",
            "dicta improve support/tone --take 2",
        ],
    ),
    (
        "migrate",
        [
            "dicta migrate --from old --to new --dry-run",
            "dicta migrate --from old --to new --margin 0.03",
        ],
    ),
    (
        "variants",
        [
            "dicta variants variants.yaml --dry-run",
            "dicta variants --split support/tone",
        ],
    ),
    (
        "robustness",
        [
            "dicta robustness quick --dry-run",
            "dicta robustness quick support",
        ],
    ),
    (
        "runs",
        [
            "dicta runs --format jsonl",
            "dicta runs prune --older-than 30d",
        ],
    ),
    (
        "review",
        [
            "dicta review chats.jsonl --sample 100 --mix random=50,outlier=30,diverse=20",
            "dicta review --more 50",
        ],
    ),
    (
        "label",
        [
            "dicta label refund-02/support/tone pass",
            "dicta label beam-release/beamline/newest unsure",
        ],
    ),
    (
        "labels",
        [
            "dicta labels rename support/tone support/manner",
            "dicta labels drift",
        ],
    ),
    ("paths", ["dicta paths", "dicta paths --demo"]),
    (
        "show",
        ["dicta show @", "dicta show @ refund-02/orders/order-facts"],
    ),
    (
        "export",
        [
            "dicta export @ -o result.html",
            "dicta export @ --format bundle -o run.dicta",
        ],
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

/// Two command lines for the help of each command in a group: group, command, examples.
pub(super) const GROUP_EXAMPLES: &[(&str, &str, [&str; 2])] = &[
    (
        "review",
        "report",
        [
            "dicta review report --format html > review.html",
            "dicta review report chats.jsonl --format json",
        ],
    ),
    (
        "review",
        "suggest",
        [
            "dicta review suggest --judge gemini",
            "dicta review suggest --accept 1,3",
        ],
    ),
    (
        "review",
        "eval",
        [
            "dicta review eval wrong-price",
            "dicta review eval wrong-price --type llm_judge_session",
        ],
    ),
    (
        "label",
        "plan",
        [
            "dicta label plan --half-width 0.08",
            "dicta label plan --eval grounded --draw",
        ],
    ),
    (
        "runs",
        "prune",
        [
            "dicta runs prune --older-than 30d --dry-run",
            "dicta runs prune --keep 20 --max-size 2GB --yes",
        ],
    ),
    ("runs", "pin", ["dicta runs pin @", "dicta runs pin kvqa"]),
    (
        "runs",
        "unpin",
        ["dicta runs unpin @", "dicta runs unpin kvqa"],
    ),
    (
        "labels",
        "rename",
        [
            "dicta labels rename refunds support",
            "dicta labels rename support/tone support/manner",
        ],
    ),
    (
        "labels",
        "drift",
        ["dicta labels drift", "dicta labels drift -w evals"],
    ),
    (
        "labels",
        "pairs",
        ["dicta labels pairs", "dicta labels pairs @2 -w evals"],
    ),
    (
        "labels",
        "choose",
        [
            "dicta labels choose q1 candidate",
            "dicta labels choose q2 tie --eval helpful",
        ],
    ),
    (
        "labels",
        "confirm",
        [
            "dicta labels confirm refund-02/support/tone",
            "dicta labels confirm --all --dry-run",
        ],
    ),
    (
        "labels",
        "merge",
        [
            "dicta labels merge bo.jsonl",
            "dicta labels merge ann.jsonl bo.jsonl",
        ],
    ),
    (
        "labels",
        "raters",
        ["dicta labels raters", "dicta labels raters -w evals"],
    ),
    (
        "labels",
        "close",
        [
            "dicta labels close refund-02/support/tone rubric",
            "dicta labels close refund-02/support/tone unclear --clause 'warm without flattery'",
        ],
    ),
    (
        "labels",
        "prune",
        [
            "dicta labels prune --dry-run",
            "dicta labels prune --yes > deleted.jsonl",
        ],
    ),
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
    ("evaluate", "DeepEval's `evaluate` is `dicta run`"),
    ("eval-set", "Inspect's `eval-set` is `dicta run`"),
    (
        "eval-retry",
        "Inspect's `eval-retry` is `dicta run --resume RUN`",
    ),
    (
        "retry",
        "`dicta run --resume RUN` judges what a run left; `@` is the newest run",
    ),
    (
        "log",
        "Inspect's `log` is `dicta show RUN`; `dicta runs` lists the runs",
    ),
    (
        "generate",
        "promptfoo's `generate` makes tests; dicta judges recorded transcripts (`dicta import`, `dicta init`)",
    ),
    ("cache", "`dicta runs prune` deletes old recordings"),
    ("delete", "`dicta runs prune` deletes old recordings"),
    (
        "lint",
        "`dicta check` finds mistakes in a workspace or file",
    ),
    (
        "config",
        "the configuration is `dicta.yaml` in the workspace; `dicta paths` prints where dicta keeps its files",
    ),
    (
        "share",
        "dicta has no server; `dicta export @ -o result.html` writes a page that you can send",
    ),
    (
        "list",
        "`dicta runs`, `dicta judges`, `dicta tools` and `dicta eval-types` list things",
    ),
    (
        "ls",
        "`dicta runs`, `dicta judges`, `dicta tools` and `dicta eval-types` list things",
    ),
    ("redteam", "`dicta robustness JUDGE` attacks a judge"),
    (
        "results",
        "`dicta show @` prints the newest results; `dicta runs` lists the runs",
    ),
    (
        "pytest",
        "pytest's tests are evals in a rubric file here; `dicta run` judges with them",
    ),
    ("diff", "`dicta compare` lists the verdicts that changed"),
    (
        "--max-concurrency",
        "use `-j N` for the number of cells at the same time",
    ),
    (
        "--max-connections",
        "use `-j N` for the number of cells at the same time",
    ),
    ("--model", "use `--judge NAME` with a judge of dicta.yaml"),
    ("--grader", "use `--judge NAME` with a judge of dicta.yaml"),
    ("--filter-pattern", "use `--where 'transcript:GLOB'`"),
    ("--sample-id", "use `--where 'transcript:ID'`"),
    ("--filter-failing", "use `--where 'outcome:fail,error'`"),
    ("--last-failed", "use `--where 'outcome:fail,error'`"),
    ("--lf", "use `--where 'outcome:fail,error'`"),
    ("-k", "use `--where TEXT`"),
    ("-x", "use `--fail-fast`"),
    ("--exitfirst", "use `--fail-fast`"),
    (
        "--maxfail",
        "use `--fail-fast`: it stops after the first failure",
    ),
    ("--grep", "use `--where TEXT`"),
    ("--junitxml", "use `-o junit.xml`"),
    ("--junit-xml", "use `-o junit.xml`"),
    (
        "--tb",
        "use `-v` for passed decisions too, or `dicta show @ CELL` for one decision in full",
    ),
    (
        "-n",
        "`dicta run` has `-j N` for the number of cells at the same time, and `--limit N` for the first transcripts",
    ),
    (
        "--numprocesses",
        "use `-j N` for the number of cells at the same time",
    ),
    ("--filter-first-n", "use `--limit N`"),
    ("--filter-sample", "use `--sample N`"),
    ("--no-progress-bar", "use `-q`"),
    ("--epochs", "use `--repeat N`"),
    (
        "--collect-only",
        "use `--dry-run`: it prints what would be judged",
    ),
    (
        "--config",
        "use `-C DIR` with the folder of a dicta.yaml; promptfoo's configuration can be a rubric file",
    ),
    (
        "-c",
        "use `-C DIR` with the folder of a dicta.yaml; promptfoo's configuration can be a rubric file",
    ),
    (
        "-w",
        "`run`, `check` and `open` take the workspace as an argument, as in `dicta run DIR`; `-C DIR` works with every command",
    ),
    (
        "--tests",
        "promptfoo's tests are evals in a rubric file; dicta.yaml lists such files under `rubrics`",
    ),
    ("--output", "use `-o FILE` or `-o FORMAT=FILE`"),
];

/// The former names of commands, which still work. dicta suggests none of them.
const FORMER_NAMES: [&str; 3] = ["selftest", "evals", "validate"];

/// The parts of clap's errors that depend on its suggestion.
const SUGGESTIONS: [ContextKind; 5] = [
    ContextKind::SuggestedSubcommand,
    ContextKind::SuggestedArg,
    ContextKind::SuggestedCommand,
    ContextKind::Suggested,
    ContextKind::Usage,
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
    for (group, name, [first, second]) in GROUP_EXAMPLES {
        command = command.mut_subcommand(group, |group| {
            group.mut_subcommand(name, |subcommand| {
                subcommand.after_help(format!("Examples:\n  {first}\n  {second}"))
            })
        });
    }
    let width = match terminal_width(&std::io::stdout()) {
        None | Some(0) => MAX_WIDTH,
        Some(width) => width.min(MAX_WIDTH),
    };
    let groups = render_groups(&command, width);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

/// Renders the list of commands in their groups for a terminal of this width.
fn render_groups(command: &Command, width: usize) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _infallible = writeln!(text, "{title}:");
        for name in *names {
            let about = command
                .find_subcommand(name)
                .and_then(Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            let about = wrap_line(&about, ABOUT_COLUMN, ABOUT_COLUMN, width);
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
    let parsed = build_command()
        .try_get_matches_from(words)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|mut error| {
        // clap suggests names with a similar spelling, which contradict a hint about the meaning.
        if hint_for(&error).is_some() {
            for kind in SUGGESTIONS {
                error.remove(kind);
            }
        } else if let Some(ContextValue::Strings(names)) =
            error.get(ContextKind::SuggestedSubcommand)
        {
            let mut names = names.clone();
            names.retain(|name| !FORMER_NAMES.contains(&name.as_str()));
            error.remove(ContextKind::SuggestedSubcommand);
            if !names.is_empty() {
                error.insert(
                    ContextKind::SuggestedSubcommand,
                    ContextValue::Strings(names),
                );
            }
        }
        error
    })
}

/// Returns a hint for an unknown command that is a file or folder.
pub(super) fn hint_for_path(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    std::path::Path::new(word)
        .exists()
        .then(|| format!("`dicta open {}` opens it", quote_shell_word(word)))
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
        let mut of_groups: Vec<(&str, &str)> = command
            .get_subcommands()
            .flat_map(|group| {
                let commands = group.get_subcommands();
                commands.map(|command| (group.get_name(), command.get_name()))
            })
            .collect();
        of_groups.sort_unstable();
        let mut with_examples: Vec<(&str, &str)> = GROUP_EXAMPLES
            .iter()
            .map(|(group, name, _)| (*group, *name))
            .collect();
        with_examples.sort_unstable();
        assert_eq!(with_examples, of_groups);
    }

    #[test]
    fn every_example_is_a_valid_command_line() {
        let of_groups = GROUP_EXAMPLES.iter().map(|(_, name, both)| (name, both));
        let of_commands = EXAMPLES.iter().map(|(name, both)| (name, both));
        for (name, examples) in of_commands.chain(of_groups) {
            for example in examples {
                // The part before a pipe or a redirection is the command.
                let line = example
                    .split([' '])
                    .take_while(|word| !["|", ">"].contains(word));
                let line = line.collect::<Vec<_>>().join(" ");
                let line = line.as_str();
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
    fn former_name_is_not_suggested() {
        let printed = |word: &str| {
            let error = parse(["dicta", word]).expect_err("no command");
            error.to_string()
        };
        for word in ["selftests", "eval-typ", "validat", "testself"] {
            let text = printed(word);
            for former in FORMER_NAMES {
                assert!(!text.contains(&format!("'{former}'")), "{text}");
            }
        }
        assert!(printed("comparr").contains("'compare'"));
    }

    #[test]
    fn words_of_other_tools_get_a_hint() {
        for (line, hint) in [
            ("dicta ls", "dicta runs"),
            ("dicta results", "dicta show @"),
            ("dicta run --junitxml=x.xml", "-o junit.xml"),
            ("dicta run -n 4", "-j N"),
            ("dicta run -w evals", "dicta run DIR"),
            ("dicta eval", "dicta run"),
            ("dicta view", "dicta open"),
            ("dicta test", "dicta run"),
            ("dicta run --max-concurrency 4", "-j"),
            ("dicta run --max-concurrency=4", "-j"),
            ("dicta run -k tone", "--where"),
            ("dicta run -x", "--fail-fast"),
            ("dicta run --exitfirst", "--fail-fast"),
            ("dicta run --maxfail=1", "--fail-fast"),
            ("dicta eval-set", "dicta run"),
            ("dicta run --epochs 3", "--repeat"),
            ("dicta run -c promptfooconfig.yaml", "-C"),
        ] {
            let error = parse(line.split(' ')).expect_err(line);
            assert!(
                hint_for(&error).is_some_and(|text| text.contains(hint)),
                "{line}: {error}"
            );
            let message = error.to_string();
            assert!(!message.contains("tip:"), "{message}");
        }
        let error = parse(["dicta", "nonsense"]).expect_err("unknown");
        assert_eq!(hint_for(&error), None);
        let command = Cli::command();
        for (word, _) in HINTS {
            let known = command.find_subcommand(word);
            assert!(
                known.is_none(),
                "`{word}` is a command, so no one sees its hint"
            );
        }
    }

    #[test]
    fn options_of_every_command_come_after_those_of_the_command() {
        let mut root = build_command();
        root.build();
        for command in root.get_subcommands() {
            let help = command.clone().render_long_help().to_string();
            let Some(common) = help.find("-C, --directory") else {
                continue;
            };
            let own = command
                .get_arguments()
                .filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help");
            for long in own.filter_map(clap::Arg::get_long) {
                let place = help.find(&format!("--{long}"));
                assert!(
                    place.is_some_and(|place| place < common),
                    "{} --{long}",
                    command.get_name()
                );
            }
        }
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
        let narrow = render_groups(&Cli::command(), 80);
        for line in narrow.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(
            narrow.contains("\n               "),
            "a long description continues below its beginning"
        );
        let error = parse(["dicta", "help", "run"]).expect_err("help is printed");
        assert_eq!(error.exit_code(), 0);
        assert!(error.to_string().contains("Examples:"), "{error}");
    }
}
