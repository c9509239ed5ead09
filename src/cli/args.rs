//! The command line's arguments, as clap parses them. Responsible for names, defaults and help texts of commands and
//! flags. Does not carry anything out.

use std::fmt::Write as _;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::agreement_args::AgreeArgs;
use super::completion::{WordList, complete_filter, complete_run, complete_state};
use super::format::{
    CHECK_FORMATS, DOCUMENTED_FORMATS, Format, LIST_FORMATS, RESULT_FORMATS, TABLE_FORMATS, accept,
};
use super::label_args::{LabelArgs, LabelsCommand};
use super::number_args::{accept_range, parse_amount, parse_count, parse_unsigned};
use super::review_args::ReviewArgs;
use super::state_args::{
    BranchArgs, CompareArgs, ExportArgs, HistoryArgs, ImproveArgs, MigrateArgs, NoiseArgs,
    VariantsArgs,
};
pub(super) use super::workspace_args::WorkspaceArgs;
use super::workspace_args::{ConsentArgs, WorkbenchArgs};
use crate::model::{ExitReason, Millis};

/// The parsed command line.
#[derive(Debug, Parser)]
#[command(
    name = "dicta",
    version,
    about = "Judge recorded agent conversations with your rubrics, and see which verdicts changed",
    max_term_width = 100,
    after_help = render_program_help()
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) look: WorkbenchArgs,
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
}

/// The arguments of every command. In the help of a command, they come after its own.
#[derive(Debug, Clone, Args)]
pub(super) struct CommonArgs {
    /// Run in this folder, as if dicta had been started there
    #[arg(
        short = 'C',
        long = "directory",
        value_name = "DIR",
        global = true,
        display_order = 900
    )]
    pub(super) directory: Option<PathBuf>,
    /// Use the demo instead of a workspace
    #[arg(long, global = true, display_order = 901)]
    pub(super) demo: bool,
    /// Color the output: on terminals (auto), always, or never
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        global = true,
        display_order = 902,
        hide_possible_values = true
    )]
    pub(super) color: ColorArg,
    /// Print more: passed decisions, whole reasons, every rubric score
    #[arg(
        short,
        long,
        global = true,
        display_order = 903,
        conflicts_with = "quiet",
        overrides_with = "verbose"
    )]
    pub(super) verbose: bool,
    /// Print less: only failures, the summary and errors; no notes, progress or statistics
    #[arg(
        short,
        long,
        global = true,
        display_order = 904,
        overrides_with = "quiet"
    )]
    pub(super) quiet: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorArg {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Open the workbench on a workspace, a transcript file, a run, or a bundle
    Open {
        /// A workspace or a file in it, a transcript file, a run (@, its letters, its folder), or a bundle; default: the
        /// workspace in this folder or a parent
        path: Option<PathBuf>,
        #[command(flatten)]
        look: WorkbenchArgs,
    },
    /// Open the demo, and print its folder
    Demo {
        /// Restore the demo's original files; the present ones move to a folder next to it
        #[arg(long)]
        reset: bool,
        /// The output format; `json` opens no workbench
        #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
        format: Format,
        #[command(flatten)]
        look: WorkbenchArgs,
    },
    /// Create a small starter workspace
    Init {
        /// The folder; dicta creates it if necessary
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Files of another tool to start from: results or logs, and the config with their checks
        #[arg(long, value_name = "FILE", num_args = 1..)]
        from: Vec<PathBuf>,
    },
    /// Find mistakes in a workspace, a rubric or transcripts, and check the examples of evals; judges no transcript
    #[command(alias = "validate", after_help = render_lint_help())]
    Check {
        /// A workspace, a rubric or a transcript file; default: the workspace in this folder or a parent
        path: Option<PathBuf>,
        /// Treat warnings as errors (exit code 2)
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        exam: ExampleArgs,
        #[command(flatten)]
        connecting: ConnectArgs,
    },
    /// Trust a workspace that other users own or can write, and let its runs send variables to its addresses
    Trust(TrustArgs),
    /// Convert transcripts of any supported format to dicta's native format, one JSON object per line
    Import(ImportArgs),
    /// Guess the field mapping of a CSV or JSON file, and print it as an entry for dicta.yaml
    Map {
        /// The CSV or JSON file
        file: PathBuf,
        /// The output format
        #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
        format: Format,
    },
    /// Run the evals of a workspace, record the run, and print the results
    Run(RunArgs),
    /// Attack a judge with manipulated transcripts, and print how often each attack flips its verdict
    #[command(alias = "selftest")]
    Robustness(SelftestArgs),
    /// Repeat the same judge calls without the cache, and measure how often the verdicts differ without an edit
    Noise(NoiseArgs),
    /// Continue a recorded judge trace from one of its steps, with or without a change; the original stays as it is
    Branch(BranchArgs),
    /// Compare variants of a judged eval on the dev labels, or write one into the rubric
    Variants(VariantsArgs),
    /// Ask a model for better criteria or shots of an eval, measure each proposal on the dev labels, and show it as a diff
    Improve(ImproveArgs),
    /// Judge the same decisions with an old and a new judge, and report if the new one can replace it
    Migrate(MigrateArgs),
    /// List recorded runs, newest first; delete old ones, or keep some
    #[command(args_conflicts_with_subcommands = true)]
    Runs {
        #[command(subcommand)]
        command: Option<RunsCommand>,
        /// The output format
        #[arg(long, value_name = "FORMAT", value_parser = accept(TABLE_FORMATS), default_value = "human")]
        format: Format,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Read transcripts before any rubric, note the first failure of each, and count failure modes
    Review(ReviewArgs),
    /// Label the decision of a cell, as the keys p, f and u of the workbench do; or list what to label next
    Label(LabelArgs),
    /// List, confirm, merge, rename or delete labels, and compare the people who labelled
    Labels {
        #[command(subcommand)]
        command: LabelsCommand,
    },
    /// Print the folders and files where dicta keeps its data
    Paths {
        /// The output format
        #[arg(long, value_name = "FORMAT", value_parser = accept(TABLE_FORMATS), default_value = "human")]
        format: Format,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// List the states of the workspace, one per edit: what was edited, its cost, flips and agreement with labels
    History(HistoryArgs),
    /// Print how well a state agrees with the labels: TPR, TNR and the corrected pass rate, with intervals
    Agree(AgreeArgs),
    /// Print the results of a state, or the judge trace of one cell
    Show {
        /// The state: @ for the newest, @2 for the one before the last edit, @baseline; or the four letters or path of
        /// a run; or a bundle; or a file of result lines (.jsonl)
        #[arg(value_name = "STATE", value_parser = complete_state(), hide_possible_values = true)]
        state: String,
        /// The name of a cell, a unique prefix of it, or a glob
        cell: Option<String>,
        /// For each eval with scores, list the outcome of every threshold and its agreement with the labels
        #[arg(long, conflicts_with = "cell")]
        thresholds: bool,
        /// Show only the thresholds of this eval
        #[arg(long, value_name = "ID", requires = "thresholds")]
        eval: Option<String>,
        /// The output format
        #[arg(long, value_name = "FORMAT", value_parser = accept(RESULT_FORMATS), default_value = "human")]
        format: Format,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Write a state or a run to a file: a page, a table, a bundle, spans or a screen recording
    Export(ExportArgs),
    /// Replay a recorded run in the workbench with its original timing
    Replay {
        /// The run: its four letters, a path, or a bundle; @ is the newest run that judged something, also a second opinion or a branch, @2 the one before it
        #[arg(value_parser = complete_run(), hide_possible_values = true, default_value = "@")]
        run: String,
        /// The speed factor; 0 replays without delays
        #[arg(
            long,
            value_name = "N",
            default_value_t = 1.0,
            value_parser = parse_amount,
            allow_negative_numbers = true
        )]
        speed: f64,
        /// Print the replay to standard output instead; each wait takes at most 10 s
        #[arg(long)]
        print: bool,
        #[command(flatten)]
        look: WorkbenchArgs,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Compare two states: the decisions that flipped and why, new and removed evals, and the edit of the rubrics
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareArgs),
    /// Print the request that dicta would send to a judge for a cell, without sending it
    Prompt {
        /// The name of a judged cell, a unique prefix of it, or a glob
        cell: String,
        /// Print the parts of the cell's cache key instead
        #[arg(long)]
        key: bool,
        /// Use this judge instead of the configured one
        #[arg(long, value_name = "NAME")]
        judge: Option<String>,
        /// The output format
        #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
        format: Format,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Call one tool exactly as a judge would: a built-in tool, or a tool of the workspace
    Tool(ToolArgs),
    /// List the eval types; with a type, print its params, an example and its JSON Schema
    #[command(alias = "evals")]
    EvalTypes {
        /// Print everything about this type; accepts aliases
        #[arg(value_name = "TYPE")]
        kind: Option<String>,
        /// Print everything about every type
        #[arg(long, conflicts_with = "kind")]
        all: bool,
        /// The output format
        #[arg(long, value_name = "FORMAT", value_parser = accept(DOCUMENTED_FORMATS), default_value = "human")]
        format: Format,
    },
    /// List the judges of the workspace
    Judges {
        /// The output format
        #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
        format: Format,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// List the available tools and the judges that use them
    Tools {
        /// Print each tool as the requests to this provider declare it; without it, JSON output contains all four
        #[arg(long, value_enum, value_name = "NAME")]
        provider: Option<DialectArg>,
        /// The output format
        #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
        format: Format,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Print a JSON Schema for editors
    Schema {
        /// The schema to print: rubric files, dicta.yaml, tools files, transcript lines, event lines of a run, or JSON lines of results
        #[arg(value_enum, default_value_t = SchemaArg::Rubric)]
        of: SchemaArg,
        /// The output format; jsonl prints the schema on one line
        #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
        format: Format,
    },
    /// List the themes of the workbench, or print a theme's file as a start for your own
    Themes {
        /// Print the file of this theme
        name: Option<String>,
        /// The output format of the list
        #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
        format: Format,
    },
    /// List the keys of the workbench
    Keys {
        /// The output format
        #[arg(long, value_name = "FORMAT", value_parser = accept(DOCUMENTED_FORMATS), default_value = "human")]
        format: Format,
        /// The former spelling of `--format markdown`
        #[arg(long, hide = true, conflicts_with = "format")]
        markdown: bool,
    },
    /// Print the completion script for a shell
    Completions {
        /// The shell
        #[arg(required_unless_present = "words")]
        shell: Option<clap_complete::Shell>,
        /// Print the words of this list, one a line, as the scripts need them
        #[arg(long, hide = true, value_name = "LIST", conflicts_with = "shell")]
        words: Option<WordList>,
    },
    /// Print the manual page
    Man,
}

/// Returns the end of the program's help.
fn render_program_help() -> String {
    let mut text = "Without a command, dicta opens the workbench on the workspace in this folder or a parent, else \
                    on the demo.\n\nExit codes:\n"
        .to_owned();
    for reason in ExitReason::ALL {
        let _infallible = writeln!(text, "  {:<4} {}", reason.code(), reason.meaning());
    }
    text
}

/// Returns the help on the warnings that a rubric can allow.
fn render_lint_help() -> String {
    let mut text = "Warnings that `allow: [NAME, …]` on an eval or a rubric silences:\n".to_owned();
    for (name, what) in crate::rubric::LINTS {
        let _infallible = writeln!(text, "  {name:<17}{what}");
    }
    text
}

/// The end of the help of `compare`.
const COMPARE_HELP: &str = "\
States: @ is the newest, @2 the one before the last edit, @3 the one before that, @baseline the one of \
`dicta history --baseline`. Four letters or a path are a run. A file.jsonl has the result lines of \
`dicta run -o file.jsonl`.

A flip is a decision that passes in one state and fails in the other. It is a regression if its newer verdict differs \
from the label or, without a label of pass or fail, if it goes from pass to fail. Decisions that end in an error, are \
pending, new or removed are not regressions; `dicta run` reports them by its exit code.
";

/// The arguments of `dicta trust`.
#[derive(Debug, Clone, Args)]
pub(super) struct TrustArgs {
    /// The workspace folder; default: this folder or a parent
    pub(super) dir: Option<PathBuf>,
    /// List the trusted workspaces and what each may do
    #[arg(long, conflicts_with_all = ["dir", "remove"])]
    pub(super) list: bool,
    /// The output format of the list
    #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
    pub(super) format: Format,
    /// Stop trusting the workspace
    #[arg(long, requires = "dir")]
    pub(super) remove: bool,
}

/// The arguments of `dicta check` on examples.
#[derive(Debug, Clone, Args)]
pub(super) struct ExampleArgs {
    /// Also check the examples of judged evals: dicta first prints the judges, calls and costs
    #[arg(long)]
    pub(super) examples: bool,
    /// Call this judge instead; with --connect, test only this one
    #[arg(long, value_name = "NAME")]
    pub(super) judge: Option<String>,
    #[command(flatten)]
    pub(super) consent: ConsentArgs,
}

/// The arguments of `dicta check` on connections.
#[derive(Debug, Clone, Args)]
pub(super) struct ConnectArgs {
    /// Test each judge with one tiny question (key, model, streaming, tools, verdict format), and each tool source.
    /// Sends a few small requests, billed to their keys
    #[arg(long)]
    pub(super) connect: bool,
    /// The output format; with --connect, human, json or jsonl
    #[arg(long, value_name = "FORMAT", value_parser = accept(CHECK_FORMATS), default_value = "human")]
    pub(super) format: Format,
}

/// The arguments of `dicta robustness`.
#[derive(Debug, Clone, Args)]
pub(super) struct SelftestArgs {
    /// The judge
    pub(super) judge: String,
    /// A rubric of the workspace (id or file); dicta attacks the judge on its transcripts; default: built-in
    /// questions
    pub(super) rubric: Option<String>,
    /// Use a random sample of N transcripts of the rubric
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_count::<NonZeroU64>, allow_negative_numbers = true)]
    pub(super) limit: NonZeroU64,
    /// Seed for the sample: the same seed selects the same transcripts
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = parse_unsigned::<u64>, allow_negative_numbers = true)]
    pub(super) seed: u64,
    /// Call the judge again, even for questions with a cached verdict
    #[arg(long)]
    pub(super) refresh: bool,
    /// Print the number of calls and the estimated cost, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) consent: ConsentArgs,
    /// The output format
    #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) place: WorkspaceArgs,
}

/// The arguments of `dicta import`.
#[derive(Debug, Clone, Args)]
pub(super) struct ImportArgs {
    /// Transcript files of any supported format
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
    /// The output file; default or `-`: standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// The field mapping, as in `map:` of dicta.yaml, such as 'id: uuid, messages: turns'; default: the mapping in
    /// the workspace of the file
    #[arg(long, value_name = "MAP")]
    pub(super) map: Option<String>,
    /// Let `-o` replace a transcript file of a workspace
    #[arg(long)]
    pub(super) replace: bool,
    /// Also write the labels in the files to FILE, for `labels:` of dicta.yaml
    #[arg(long, value_name = "FILE")]
    pub(super) labels: Option<PathBuf>,
    /// Exit with 2 if dicta skips a record or changes an id
    #[arg(long)]
    pub(super) strict: bool,
    /// The format of the summary; `json` needs `-o FILE`, and prints it on standard output
    #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
    pub(super) format: Format,
}

#[derive(Debug, Clone, Subcommand)]
pub(super) enum RunsCommand {
    /// Delete recorded runs; dicta asks first, and keeps pinned runs, runs in use, and the runs of the newest state and the
    /// baseline
    Prune(PruneRunsArgs),
    /// Keep a run: `dicta runs prune` never deletes it
    Pin {
        /// The run: @ for the newest, @2 for the one before; or its four letters; or a path
        #[arg(value_parser = complete_run(), hide_possible_values = true)]
        run: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Remove the pin of a run
    Unpin {
        /// The run: @ for the newest, @2 for the one before; or its four letters; or a path
        #[arg(value_parser = complete_run(), hide_possible_values = true)]
        run: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

/// The arguments of `dicta runs prune`.
#[derive(Debug, Clone, Args)]
pub(super) struct PruneRunsArgs {
    /// Delete runs that are older than this: 30d, 12h, 8w
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub(super) older_than: Option<Millis>,
    /// Delete the oldest runs until N are left
    #[arg(long, value_name = "N", value_parser = parse_unsigned::<usize>, allow_negative_numbers = true)]
    pub(super) keep: Option<usize>,
    /// Delete the oldest runs until the others have at most this size: 500MB, 2GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) max_size: Option<u64>,
    /// Delete without a question
    #[arg(long)]
    pub(super) yes: bool,
    /// Print what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
    /// The output format of the list
    #[arg(long, value_name = "FORMAT", value_parser = accept(TABLE_FORMATS), default_value = "human")]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) place: WorkspaceArgs,
}

/// The arguments of `dicta run`.
#[derive(Debug, Clone, Args)]
pub(super) struct RunArgs {
    /// The folder of a workspace, or files: rubrics judge alone, and transcripts are judged alone; default: the
    /// workspace in this folder or a parent
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Run only these cells, such as 'eval:tone tag:beam !judge:rules outcome:fail,error'; keys: outcome, is,
    /// label, eval, rubric, transcript, cell, judge, tag, group; `is:` takes refused, repaired, fetch-error, citation,
    /// contradiction, truncated; `label:` takes none, any, pass, fail, unsure, agrees, disagrees, confirm
    #[arg(long = "where", value_name = "FILTER", value_parser = complete_filter(), hide_possible_values = true)]
    pub(super) filter: Option<String>,
    /// Call this judge instead of the configured ones
    #[arg(long, value_name = "NAME")]
    pub(super) judge: Option<String>,
    /// The number of cells to judge at the same time
    #[arg(short = 'j', long = "jobs", value_name = "N", value_parser = parse_count::<NonZeroUsize>, allow_negative_numbers = true)]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Judge only the first N transcripts
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU64>, allow_negative_numbers = true)]
    pub(super) limit: Option<NonZeroU64>,
    /// Judge a random sample of N transcripts
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU64>, allow_negative_numbers = true)]
    pub(super) sample: Option<NonZeroU64>,
    /// Seed for `--sample`: the same seed selects the same transcripts
    #[arg(
        long,
        value_name = "S",
        default_value_t = 0,
        requires = "sample",
        value_parser = parse_unsigned::<u64>,
        allow_negative_numbers = true
    )]
    pub(super) seed: u64,
    /// Judge each cell N times; the majority decides
    #[arg(long, value_name = "N", value_parser = accept_range(1..=99), allow_negative_numbers = true)]
    pub(super) repeat: Option<u32>,
    /// Reuse the recorded tool responses of this run; with several runs (RUN,RUN), the first that has a response. @ is
    /// the newest run that has recorded tool responses
    #[arg(long, alias = "frozen", value_name = "RUN", value_parser = complete_run(), hide_possible_values = true)]
    pub(super) replay_tools: Option<String>,
    /// The action for a tool call without a recorded response: call the tool (live), fail the call (error), or end the
    /// cell (end)
    #[arg(
        long,
        alias = "frozen-miss",
        value_name = "live|error|end",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub(super) on_missing: MissPolicyArg,
    /// Neither use cached verdicts nor let later runs use the verdicts of this one
    #[arg(long, conflicts_with = "refresh")]
    pub(super) no_cache: bool,
    /// Judge everything again; later runs can use these verdicts
    #[arg(long)]
    pub(super) refresh: bool,
    /// Recompute outcomes from recorded scores with the current bounds, thresholds, weights and repeats, without
    /// calling judges; cells without a recorded score stay pending
    #[arg(long, conflicts_with_all = ["no_cache", "refresh", "resume", "dry_run"])]
    pub(super) recorded: bool,
    #[command(flatten)]
    pub(super) consent: ConsentArgs,
    /// Continue a run that was interrupted, cancelled or stopped by a budget. dicta keeps its verdicts. It runs cells
    /// that are pending or ended in an error (`check_error`, `judge_error`, unparsed, `turn_limit`, truncated, timeout,
    /// budget, cancelled). @ is the newest run that has something to continue
    #[arg(long, value_name = "RUN", value_parser = complete_run(), hide_possible_values = true)]
    pub(super) resume: Option<String>,
    /// Also exit with 1 if a verdict is flagged: it contradicts itself, or cites a quote that isn't in its source. Also exit
    /// with 2 if a file is broken
    #[arg(long)]
    pub(super) strict: bool,
    /// Print the plan and the estimated cost, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// The format of the results on standard output
    #[arg(long, value_name = "FORMAT", value_parser = accept(RESULT_FORMATS), default_value = "human")]
    pub(super) format: Format,
    /// Also write the results to a file; the extension (.json .jsonl .xml .md .csv .txt) or FORMAT selects the format
    #[arg(short = 'o', long = "output", value_name = "[FORMAT=]FILE")]
    pub(super) output: Vec<PathBuf>,
    /// Pause judge traces at these stops and ask what to do: `turn`, `call`, `call:TOOL`, `call:TOOL:TEXT`, `answer`,
    /// `rejected`, `repaired`, `verdict`, `verdict:fail`, `outcome:timeout`; `STOP in CELL` stops these cells only. Needs a
    /// terminal
    #[arg(
        long = "break",
        value_name = "STOP",
        value_delimiter = ',',
        conflicts_with = "dry_run"
    )]
    pub(super) breakpoints: Vec<crate::judge::Breakpoint>,
    /// Stop after the first failed decision; `--resume` continues the run
    #[arg(long)]
    pub(super) fail_fast: bool,
    /// Also print the turns of the judges while they work
    #[arg(long)]
    pub(super) stream: bool,
}

/// The arguments of `dicta tool`.
#[derive(Debug, Clone, Args)]
pub(super) struct ToolArgs {
    /// The name of the tool
    pub(super) name: String,
    /// The arguments as JSON, as a model would send them
    pub(super) json: String,
    /// Use this judge's settings for the tool
    #[arg(long, value_name = "NAME")]
    pub(super) judge: Option<String>,
    /// Resolve a host as in curl: HOST:PORT:ADDRESS[,ADDRESS…]; the address guard still applies
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    pub(super) resolve: Vec<String>,
    /// The transcript that `list_messages`, `read_message` and `search_transcript` read; default ID: the first
    /// transcript
    #[arg(long, value_name = "FILE[:ID]")]
    pub(super) transcript: Option<String>,
    /// The output format
    #[arg(long, value_name = "FORMAT", value_parser = accept(LIST_FORMATS), default_value = "human")]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) place: WorkspaceArgs,
}

// Values have no help texts: these would make `--help` three times as long, and the words explain themselves.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum MissPolicyArg {
    Live,
    #[default]
    Error,
    End,
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
    Tools,
    Transcript,
    Event,
    Result,
}

/// Splits a number and its unit.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, unit.trim()))
}

/// Parses an age, such as `30d`.
fn parse_age(text: &str) -> Result<Millis, String> {
    let seconds = split_unit(text).and_then(|(number, unit)| {
        let seconds = match unit {
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return None,
        };
        Some(number * seconds)
    });
    let seconds = seconds.ok_or_else(|| {
        "must be a number with a unit: 90m, 12h, 30d or 8w (minutes, hours, days, weeks)".to_owned()
    })?;
    Ok(Millis::from_secs_f64(seconds))
}

/// Parses a size in bytes, such as `500MB`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is not negative, and the cast saturates"
)]
fn parse_size(text: &str) -> Result<u64, String> {
    let bytes = split_unit(text).and_then(|(number, unit)| {
        let bytes = match unit.to_ascii_uppercase().as_str() {
            "B" => 1.0,
            "K" | "KB" => 1e3,
            "M" | "MB" => 1e6,
            "G" | "GB" => 1e9,
            "T" | "TB" => 1e12,
            _ => return None,
        };
        Some(number * bytes)
    });
    let bytes = bytes.ok_or_else(|| {
        "must be a number with a unit: 500MB or 2GB (B, KB, MB, GB, TB)".to_owned()
    })?;
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn ages_and_sizes_need_a_unit() {
        assert_eq!(parse_age("30d"), Ok(Millis::from_secs(30 * 86_400)));
        assert_eq!(parse_age(" 1.5 h"), Ok(Millis::from_secs(5_400)));
        for wrong in ["30", "d", "-1d", "1y", "infd", ""] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_size("500MB"), Ok(500_000_000));
        assert_eq!(parse_size("1.5 gb"), Ok(1_500_000_000));
        for wrong in ["500", "MB", "-1MB", "1XB", ""] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    /// The commands that neither list nor report: they open a screen, change something, or print text for a shell.
    const WITHOUT_FORMAT: [&str; 10] = [
        "open",
        "init",
        "replay",
        "completions",
        "man",
        "pin",
        "unpin",
        "choose",
        "close",
        "rename",
    ];

    fn collect_without_format(parent: &clap::Command, found: &mut Vec<String>) {
        for command in parent.get_subcommands() {
            let mut args = command.get_arguments();
            let is_group = command.has_subcommands();
            if !is_group && !args.any(|arg| arg.get_id() == "format") {
                found.push(command.get_name().to_owned());
            }
            collect_without_format(command, found);
        }
    }

    #[test]
    fn every_command_that_lists_or_reports_has_a_format() {
        let mut found = Vec::new();
        collect_without_format(&Cli::command(), &mut found);
        found.sort();
        let mut known = WITHOUT_FORMAT.map(str::to_owned);
        known.sort();
        assert_eq!(found, known);
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
