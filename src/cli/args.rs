//! What can be typed.

use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "dicta",
    version,
    about = "Judge recorded conversations of agents by your rubrics, and see which verdicts moved",
    max_term_width = 100,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
#[command(
    after_help = "Without a command: the workbench, on the workspace found here or above, else on the demo.\n\
    Exit codes: 0 all passed, 1 some failed, 2 usage or configuration, 3 errors but no failures,\n\
    4 nothing decided, 74 writing failed, 101 a bug in dicta, 129, 130, 143 ended by a signal."
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) look: WorkbenchArgs,
    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Open the workbench on a workspace, a file of transcripts, or a run
    Open {
        /// A workspace or a file in one, a file of transcripts, or a run (@, its letters, its folder);
        /// default: the workspace found here or above
        path: Option<PathBuf>,
        #[command(flatten)]
        look: WorkbenchArgs,
    },
    /// Make a small workspace to start from
    Init {
        /// The folder; made if it is not there
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Find mistakes in a workspace, a rubric or transcripts, and try the examples of evals; judge no transcript
    #[command(alias = "validate", after_help = render_lint_help())]
    Check {
        /// A workspace, a rubric or a file of transcripts; default: the workspace found here or above
        path: Option<PathBuf>,
        /// Exit with 2 where there is a warning, too
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        exam: ExampleArgs,
        #[command(flatten)]
        connecting: ConnectArgs,
    },
    /// Write transcripts of any format in dicta's own, one JSON object a line
    Import(ImportArgs),
    /// Guess what the fields of a CSV or JSON file mean, and print it as an entry of dicta.yaml
    Map {
        /// The file
        file: PathBuf,
    },
    /// Run the evals of a workspace, record the run, print the results
    Run(RunArgs),
    /// Attack a judge (master keys, injected praise, fake verdicts …) and print how often its verdict flips
    Selftest(SelftestArgs),
    /// List recorded runs, newest first
    Runs {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Print a recorded run's results, or one cell's whole trace
    Show {
        /// The run: @ is the newest, @2 the one before; or its four letters, or a path
        run: String,
        /// A cell's name, a unique prefix of it, or a glob
        cell: Option<String>,
        /// For every eval with scores: what each threshold would decide, and what the labels say of it
        #[arg(long, conflicts_with = "cell")]
        thresholds: bool,
        /// Only the thresholds of this eval
        #[arg(long, value_name = "ID", requires = "thresholds")]
        eval: Option<String>,
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: ResultFormat,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Play a recorded run as it happened, in the workbench
    Replay {
        /// The run: @ is the newest, @2 the one before; or its four letters, or a path
        run: String,
        /// How many times as fast; 0: at once
        #[arg(
            long,
            value_name = "N",
            default_value_t = 1.0,
            allow_negative_numbers = true
        )]
        speed: f64,
        /// Print to standard output instead
        #[arg(long)]
        print: bool,
        #[command(flatten)]
        look: WorkbenchArgs,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show what moved between two runs, and what changed in the rubrics
    Compare {
        /// The older run, such as @2
        before: String,
        /// The newer run, such as @
        after: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Print the request a judge would be sent for a cell; send nothing
    Prompt {
        /// A judged cell's name, a unique prefix of it, or a glob
        cell: String,
        /// Print the parts of its cache key instead
        #[arg(long)]
        key: bool,
        /// Another judge than the configured one
        #[arg(long, value_name = "NAME")]
        judge: Option<String>,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Call one tool exactly as a judge would: a built-in one, or one of the workspace's tools files
    Tool(ToolArgs),
    /// List the eval types; with a name, its params, an example and its JSON Schema
    Evals {
        /// Tell all about this type, by any of its names
        #[arg(value_name = "TYPE")]
        kind: Option<String>,
        /// Tell all about every type
        #[arg(long, conflicts_with = "kind")]
        all: bool,
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// List the judges of the workspace
    Judges {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// List the tools a judge can be given: built-in ones and those of the workspace's tools files
    Tools {
        /// Declared as this provider's requests declare them; in JSON, all four without it
        #[arg(long, value_enum, value_name = "NAME")]
        provider: Option<DialectArg>,
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Print a JSON Schema for editors
    Schema {
        /// Of a rubric, of dicta.yaml, of a line of transcripts, or of a line of a run's events
        #[arg(value_enum, default_value_t = SchemaArg::Rubric)]
        of: SchemaArg,
    },
    /// List the themes of the workbench, or print one's file to start your own from
    Themes {
        /// Print this theme's file
        name: Option<String>,
    },
    /// List the keys of the workbench
    Keys {
        /// As a table of the README
        #[arg(long)]
        markdown: bool,
    },
    /// Print a shell's completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// The warnings that a rubric may allow.
fn render_lint_help() -> String {
    let mut text = "Warnings that `allow: [NAME, …]` on an eval or a rubric silences:\n".to_owned();
    for (name, what) in crate::rubric::LINTS {
        let _infallible = writeln!(text, "  {name:<17}{what}");
    }
    text
}

/// How the workbench looks.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct WorkbenchArgs {
    /// The workbench's theme: a name, or a theme file
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) theme: Option<String>,
    /// Draw the workbench with ASCII characters alone
    #[arg(long)]
    pub(super) ascii: bool,
}

/// Which examples `dicta check` tries.
#[derive(Debug, Clone, Args)]
pub(super) struct ExampleArgs {
    /// Try the examples of judged evals too: says first what is asked, and asks only judges that cost nothing
    #[arg(long)]
    pub(super) examples: bool,
    /// Ask this judge instead; with --connect, try this one alone
    #[arg(long, value_name = "NAME")]
    pub(super) judge: Option<String>,
    /// Ask judges that cost, too
    #[arg(long, requires = "examples")]
    pub(super) yes: bool,
}

/// Whether `dicta check` tries judges and sources.
#[derive(Debug, Clone, Args)]
pub(super) struct ConnectArgs {
    /// Try each judge once with a tiny question: key, model, streaming, tools, verdict form. Costs a few small requests.
    /// And each source of the tools files
    #[arg(long)]
    pub(super) connect: bool,
    /// How to print what --connect found
    #[arg(long, value_enum, default_value_t, requires = "connect")]
    pub(super) format: ListFormat,
}

#[derive(Debug, Clone, Args)]
pub(super) struct SelftestArgs {
    /// The judge
    pub(super) judge: String,
    /// A rubric of the workspace (id or file), tried on its own transcripts; default: built-in questions
    pub(super) rubric: Option<String>,
    /// How many transcripts are drawn for a rubric
    #[arg(long, value_name = "N", default_value = "3")]
    pub(super) limit: NonZeroU64,
    /// What the draw depends on: the same number draws the same transcripts
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(super) seed: u64,
    /// Ask everything again, past verdicts aside
    #[arg(long)]
    pub(super) refresh: bool,
    /// Print what it would take, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: ListFormat,
    #[command(flatten)]
    pub(super) place: WorkspaceArgs,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ImportArgs {
    /// Files of transcripts, of any format dicta reads
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Where to write; `-` or none: standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// What the fields of a record mean, as `map:` of dicta.yaml says it: 'id: uuid, messages: turns'; default:
    /// what the dicta.yaml above the file says of it
    #[arg(long, value_name = "MAP")]
    pub(super) map: Option<String>,
    /// Also write the labels that the files hold, as a file for `labels:` of dicta.yaml
    #[arg(long, value_name = "FILE")]
    pub(super) labels: Option<PathBuf>,
    /// Exit with 2 where a record was left out or an id changed, too
    #[arg(long)]
    pub(super) strict: bool,
}

/// Where to look.
#[derive(Debug, Clone, Args)]
pub(super) struct WorkspaceArgs {
    /// The workspace's folder; default: found here or above
    #[arg(short = 'w', long = "workspace", value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct RunArgs {
    /// A workspace, or a file in one; default: found here or above, else the demo
    pub(super) path: Option<PathBuf>,
    /// Only these cells, such as 'eval:tone tag:beam !judge:rules outcome:fail,error'; keys: outcome,
    /// eval, rubric, transcript, judge, tag, group
    #[arg(long = "where", value_name = "FILTER")]
    pub(super) filter: Option<String>,
    /// Ask this judge instead of the configured ones
    #[arg(long, value_name = "NAME")]
    pub(super) judge: Option<String>,
    /// How many cells are judged at once
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    pub(super) jobs: Option<usize>,
    /// Only the first N transcripts
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<NonZeroU64>,
    /// Only N transcripts drawn by chance
    #[arg(long, value_name = "N")]
    pub(super) sample: Option<NonZeroU64>,
    /// What the draw depends on: the same number draws the same transcripts
    #[arg(long, value_name = "S", default_value_t = 0, requires = "sample")]
    pub(super) seed: u64,
    /// Judge each cell N times and let the majority decide
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(super) repeat: Option<u32>,
    /// Answer judges' tool calls from this run's evidence; of several (RUN,RUN) the first that has an answer gives it
    #[arg(long, value_name = "RUN")]
    pub(super) frozen: Option<String>,
    /// What a call gets that frozen evidence has no answer for: made live, refused (error), or the end of its cell
    #[arg(
        long,
        value_name = "live|error|end",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub(super) frozen_miss: MissPolicyArg,
    /// Take no verdict of past runs, and leave none for later ones
    #[arg(long, conflicts_with = "refresh")]
    pub(super) no_cache: bool,
    /// Judge everything again; later runs take these verdicts
    #[arg(long)]
    pub(super) refresh: bool,
    /// Decide anew from the verdicts that past runs recorded, by today's bounds, thresholds, weights and
    /// repeats, and ask no judge; what has no recorded verdict stays pending
    #[arg(long, conflicts_with_all = ["no_cache", "refresh", "resume", "dry_run"])]
    pub(super) recorded: bool,
    /// The most that this run may cost, in USD; instead of `limits.max_cost_usd`
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub(super) max_cost: Option<f64>,
    /// Go on with a run that was interrupted, cancelled or stopped by a budget: its verdicts are carried over as they
    /// are; what is pending and what ended in an error of any kind (`check_error`, `judge_error`, unparsed, `turn_limit`,
    /// truncated, timeout, budget, cancelled) is done again
    #[arg(long, value_name = "RUN")]
    pub(super) resume: Option<String>,
    /// Print the plan and what it would cost, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How results are printed on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: ResultFormat,
    /// Also write results to a file; the format follows its ending (.jsonl .xml .md .txt)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(super) output: Vec<PathBuf>,
    /// Do not tell judges' turns on standard error as they happen
    #[arg(short, long)]
    pub(super) quiet: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ToolArgs {
    /// The tool
    pub(super) name: String,
    /// Its arguments, as a model would send them
    pub(super) json: String,
    /// With this judge's settings for the tool
    #[arg(long, value_name = "NAME")]
    pub(super) judge: Option<String>,
    /// As in curl: HOST:PORT:ADDRESS[,ADDRESS…]; the guard still decides
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    pub(super) resolve: Vec<String>,
    /// For `list_messages`, `read_message`, `search_transcript`: the transcript they read; its first one without an ID
    #[arg(long, value_name = "FILE[:ID]")]
    pub(super) transcript: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: ListFormat,
    #[command(flatten)]
    pub(super) place: WorkspaceArgs,
}

// Values carry no help of their own: it would stretch `--help` to three times its length, for words that need none.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ResultFormat {
    #[default]
    Human,
    Jsonl,
    Junit,
    Markdown,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum MissPolicyArg {
    Live,
    #[default]
    Error,
    End,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ListFormat {
    #[default]
    Human,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DialectArg {
    Openai,
    OpenaiResponses,
    Anthropic,
    Gemini,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaArg {
    Rubric,
    Workspace,
    Transcript,
    Event,
}

/// An amount of money.
fn parse_usd(text: &str) -> Result<f64, String> {
    let amount: f64 = text
        .trim_start_matches('$')
        .parse()
        .map_err(|_| "not a number".to_owned())?;
    if amount.is_finite() && amount >= 0.0 {
        Ok(amount)
    } else {
        Err("must be 0 or more".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
