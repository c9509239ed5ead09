//! The command line: one file for each command.
//!
//! Responsible for arguments, exit codes and the two output streams. Contains no logic of its own: each command loads
//! its input, calls one module, and prints.

mod agree;
mod agree_gate;
mod agree_unseal;
mod agreement_args;
mod args;
mod branch;
mod bundles;
mod check;
mod check_notes;
mod check_report;
mod clause_split;
mod compare;
mod compare_figures;
mod compare_report;
mod completion;
mod completion_script;
mod connect;
mod consent;
mod deletion;
mod demo;
#[cfg(test)]
mod docs_tests;
mod error;
mod eval_counts;
mod evals;
mod export;
mod export_run;
mod fail_on;
mod figure_json;
mod format;
mod github_place;
mod help;
mod hints;
mod history;
mod import;
mod improve;
mod improve_consent;
mod improve_report;
mod improve_take;
mod init;
mod judged_cells;
mod judged_examples;
mod label_args;
mod label_drift;
mod label_pairs;
mod label_queue;
mod label_raters;
mod label_targets;
mod labels;
mod list;
mod map;
mod measured_run;
mod migrate;
mod migration;
mod named_files;
mod noise;
mod number_args;
mod open;
mod output_file;
mod own_files;
mod paths;
mod pauses;
mod planned_cells;
mod population;
mod print_timer;
mod prompt;
mod question;
mod quote_places;
mod rater_list;
mod replay;
mod resumed_run;
mod review;
mod review_args;
mod review_place;
mod review_suggest;
mod run;
mod run_files;
mod run_list;
mod run_output;
mod runs;
mod selftest;
mod show;
mod side_files;
mod state_args;
mod states;
mod streams;
mod themes;
mod thresholds;
mod tool;
mod tool_context;
mod tool_sources;
mod tools;
mod transcript_file;
mod transcript_report;
mod trust;
mod variant_report;
mod variant_runs;
mod variants;
mod workspace;
mod workspace_args;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::model::{Millis, explain_file_error};
use crate::process::{BoundedRuntime, ProcessReaper};
use crate::workspace::Env;
use args::{Cli, CliCommand};
use error::CommandError;
use format::Format;
use streams::Streams;

/// The time that a command waits at its end for tasks that block.
const SHUTDOWN_TIMEOUT: Millis = Millis(200);

/// The context that every command gets: environment, output streams, clock.
struct CommandCx {
    /// True if `--demo` selects the demo instead of a workspace.
    uses_demo: bool,
    env: Env,
    streams: Streams,
    clock: Arc<dyn Clock>,
}

/// Runs dicta with the arguments of the process.
pub fn main() -> ExitCode {
    // dicta starts itself as the guard of a process group. Test this first: a guard parses no arguments.
    if let Some(code) = crate::process::guard::run_if_guard() {
        return code;
    }
    // Dropped on every return from here on, so the programs that tools started end together with dicta.
    let _children = ProcessReaper;
    let env = Env::from_process();
    let cli = match help::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            let streams = Streams::before_arguments(&env);
            print_clap_message(&error, streams);
            let hint = hints::hint_for(&error).map(str::to_owned);
            if let Some(hint) = hint.or_else(|| hints::hint_for_path(&error)) {
                streams.print_stderr(&format!("  {hint}"));
            }
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return ExitCode::from(finish_output(code, streams));
        }
    };
    let cx = CommandCx {
        uses_demo: cli.common.demo,
        streams: Streams::from_process(&env, &cli.common),
        env,
        clock: Arc::new(SystemClock::new()),
    };
    match enter_directory(&cli).and_then(|()| dispatch(cli, &cx)) {
        Ok(code) => ExitCode::from(finish_output(code, cx.streams)),
        Err(trouble) => {
            trouble.print(cx.streams);
            ExitCode::from(trouble.code)
        }
    }
}

/// Returns the exit code of a command that succeeded: 74 with a message if its output is incomplete.
fn finish_output(code: u8, streams: Streams) -> u8 {
    let trouble = Streams::output_error().and_then(CommandError::text_output_failed);
    match trouble {
        None => code,
        Some(trouble) => {
            trouble.print(streams);
            trouble.code
        }
    }
}

/// Changes to the folder of `-C`, so that every relative path of the command means a path below it.
fn enter_directory(cli: &Cli) -> Result<(), CommandError> {
    let Some(directory) = &cli.common.directory else {
        return Ok(());
    };
    if directory.exists() && !directory.is_dir() {
        return Err(CommandError::usage(format!(
            "-C {} is not a folder",
            directory.display()
        )));
    }
    std::env::set_current_dir(directory).map_err(|error| {
        CommandError::usage(format!("-C {}", explain_file_error(directory, &error)))
    })
}

/// Prints an error of clap, which exits with 2, or its help, which goes to standard output and exits with 0.
///
/// Both repeat arguments, the program's name and variables, so a terminal and standard error get hidden characters as
/// visible marks.
fn print_clap_message(error: &clap::Error, streams: Streams) {
    let is_for_people = error.use_stderr() || streams.out.terminal;
    let visible = if streams.err.is_workflow_log {
        Some(error.render().to_string())
    } else if is_for_people {
        make_clap_message_visible(std::env::args_os(), error)
    } else {
        None
    };
    if let Some(visible) = visible {
        if error.use_stderr() {
            streams.print_stderr(&visible);
        } else {
            streams.print(&visible);
        }
        return;
    }
    // Nothing is hidden, so clap prints its own colors.
    let printed = error.print();
    if !error.use_stderr() {
        Streams::keep_output_error(printed);
    }
}

/// Returns the message for these arguments with visible marks and without colors; `None` if nothing in it is hidden.
fn make_clap_message_visible(
    args: impl Iterator<Item = std::ffi::OsString>,
    error: &clap::Error,
) -> Option<String> {
    // In a colored message, the escape sequences of clap and of an argument look the same. So the arguments are parsed
    // again without colors.
    let plain = help::build_command()
        .styles(clap::builder::Styles::plain())
        .try_get_matches_from(args)
        .map_or_else(
            |error| error.render().ansi().to_string(),
            |_| error.render().to_string(),
        );
    match crate::model::make_visible(&plain, true) {
        std::borrow::Cow::Borrowed(_) => None,
        std::borrow::Cow::Owned(visible) => Some(visible),
    }
}

fn dispatch(cli: Cli, cx: &CommandCx) -> Result<u8, CommandError> {
    // Before a command, the options of the workbench would be ignored by commands such as `run`.
    if cli.command.is_some() && (cli.look.theme.is_some() || cli.look.ascii || cli.look.fresh) {
        return Err(CommandError::usage(
            "put `--theme`, `--ascii` and `--fresh` after `open`, `demo` or `replay`, as in `dicta open --theme light`",
        ));
    }
    match cli.command {
        None => run_without_command(&cli.look, cx),
        Some(CliCommand::Demo {
            reset,
            format,
            look,
        }) => demo::demo(reset, format, &look, cx),
        Some(CliCommand::Open { path, look }) => open::open(path.as_deref(), &look, cx),
        Some(CliCommand::Init { dir, from }) => init::init(&dir, &from, cx),
        Some(CliCommand::Check {
            path,
            strict,
            exam,
            connecting,
        }) => connect::check_and_connect(path.as_deref(), strict, &exam, &connecting, cx),
        Some(CliCommand::Trust(args)) => trust::trust(&args, cx),
        Some(CliCommand::Import(args)) => import::import(&args, cx),
        Some(CliCommand::Map { file, format }) => map::print_field_map(&file, format, cx),
        Some(CliCommand::Run(args)) => run::run(&args, cx),
        Some(CliCommand::Robustness(args)) => selftest::selftest(&args, cx),
        Some(CliCommand::Branch(args)) => branch::branch(&args, cx),
        Some(CliCommand::Noise(args)) => noise::noise(&args, cx),
        Some(CliCommand::Variants(args)) => variants::variants(&args, cx),
        Some(CliCommand::Improve(args)) => improve::improve(&args, cx),
        Some(CliCommand::Migrate(args)) => migrate::migrate(&args, cx),
        Some(CliCommand::Runs {
            command: Some(command),
            ..
        }) => runs::change_runs(&command, cx),
        Some(CliCommand::Runs { format, place, .. }) => run_list::list_runs(format, &place, cx),
        Some(CliCommand::Review(args)) => review::review(&args, cx),
        Some(CliCommand::Label(args)) => labels::label(&args, cx),
        Some(CliCommand::Labels { command }) => labels::labels(&command, cx),
        Some(CliCommand::Paths { format, place }) => paths::print_paths(format, &place, cx),
        // The arm with `thresholds: true` must come before the general arm of `show`.
        Some(CliCommand::Show {
            state,
            thresholds: true,
            eval,
            format,
            place,
            ..
        }) => thresholds::print_thresholds(&state, eval.as_deref(), format, &place, cx),
        Some(CliCommand::Show {
            state,
            cell,
            format,
            place,
            ..
        }) => show::show(&state, cell.as_deref(), format, &place, cx),
        Some(CliCommand::Agree(args)) => agree::agree(&args, cx),
        Some(CliCommand::History(args)) => history::history(&args, cx),
        Some(CliCommand::Export(args)) => export::export(&args, cx),
        Some(CliCommand::Replay {
            run,
            speed,
            print,
            look,
            place,
        }) => replay::replay(&run, speed, print, &look, &place, cx),
        Some(CliCommand::Compare(args)) => compare::compare(&args, cx),
        Some(CliCommand::Prompt {
            cell,
            key,
            judge,
            format,
            place,
        }) => prompt::print_prompt(&cell, key, judge, format, &place, cx),
        Some(CliCommand::Tool(args)) => tool::call_tool(&args, cx),
        Some(CliCommand::EvalTypes { kind, all, format }) => {
            evals::list_eval_types(kind.as_deref(), all, format, cx)
        }
        Some(CliCommand::Judges { format, place }) => list::list_judges(format, &place, cx),
        Some(CliCommand::Tools {
            provider,
            format,
            place,
        }) => tools::list_tools(provider, format, &place, cx),
        Some(CliCommand::Schema { of, format }) => Ok(list::print_schema(of, format, cx)),
        Some(CliCommand::Themes { name, format }) => {
            themes::list_themes(name.as_deref(), format, cx)
        }
        Some(CliCommand::Keys { format, markdown }) => {
            let format = if markdown { Format::Markdown } else { format };
            Ok(list::list_keys(format, cx))
        }
        Some(CliCommand::Completions { shell, words }) => {
            let text = match (shell, words) {
                (Some(shell), _) => completion_script::write_script(shell),
                (None, Some(list)) => completion_script::list_words(list, cx),
                (None, None) => String::new(),
            };
            cx.streams.print_data(&text);
            Ok(0)
        }
        Some(CliCommand::Man) => {
            let text = render_manual()
                .map_err(|error| CommandError::usage(format!("the manual page: {error}")))?;
            cx.streams.print_data(&String::from_utf8_lossy(&text));
            Ok(0)
        }
    }
}

/// Returns the manual page in roff: every command with its options.
fn render_manual() -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut program = help::build_command();
    // Without this, subcommands lack their inherited settings in the page.
    program.build();
    let mut front = Vec::new();
    clap_mangen::Man::new(program.clone()).render(&mut front)?;
    let mut front = String::from_utf8_lossy(&front).into_owned();
    for command in program.get_subcommands() {
        let name = command.get_name().replace('-', "\\-");
        // clap_mangen names a page for each command. This page has a section instead.
        front = front.replace(&format!("dicta\\-{name}(1)"), &format!("dicta {name}"));
    }
    text.extend(front.into_bytes());
    render_manual_sections(&program, "DICTA", &mut text)?;
    Ok(text)
}

/// Adds a section for each visible command below `parent`, and for the commands below that.
fn render_manual_sections(
    parent: &clap::Command,
    prefix: &str,
    text: &mut Vec<u8>,
) -> std::io::Result<()> {
    let commands = parent.get_subcommands();
    // The page of `help` would repeat clap's own text.
    for command in commands.filter(|c| c.get_name() != "help" && !c.is_hide_set()) {
        let name = format!("{prefix} {}", command.get_name().to_uppercase());
        writeln!(text, ".SH \"{name}\"")?;
        let page = clap_mangen::Man::new(command.clone());
        let mut part = Vec::new();
        page.render_description_section(&mut part)?;
        page.render_synopsis_section(&mut part)?;
        page.render_options_section(&mut part)?;
        // `.SH` starts a section of the whole page. These are parts of one command's section, so they become `.SS`.
        text.extend(
            String::from_utf8_lossy(&part)
                .replace(".SH ", ".SS ")
                .bytes(),
        );
        render_manual_sections(command, &name, text)?;
    }
    Ok(())
}

/// Runs `dicta` without a command: opens the workbench on the workspace, else on the demo.
///
/// Without a terminal it never judges the user's workspace, because that may cost money: it prints the help. Outside a
/// workspace it runs the free demo.
fn run_without_command(
    look: &workspace_args::WorkbenchArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let is_demo = cx.uses_demo || !workspace::is_inside_workspace();
    let cx = &CommandCx {
        uses_demo: is_demo,
        env: cx.env.clone(),
        streams: cx.streams,
        clock: Arc::clone(&cx.clock),
    };
    let Some(why) = open::explain_no_screen(cx) else {
        return open::open_here(look, cx);
    };
    if !is_demo {
        cx.streams
            .print_stderr(&help::build_command().render_help().to_string());
        return Err(CommandError::usage(format!(
            "{why}; `dicta run` judges this workspace"
        )));
    }
    cx.streams.print_note(&format!(
        "{why}: dicta runs the free demo, as `dicta run --demo` does (`dicta help` lists the commands)"
    ));
    // Parse a command line instead of building `RunArgs`, so that all defaults come from clap.
    let cli =
        help::parse(["dicta", "run"]).map_err(|error| CommandError::usage(error.to_string()))?;
    match cli.command {
        Some(CliCommand::Run(args)) => run::run(&args, cx),
        _ => Err(CommandError::usage("`dicta run` is not a command")),
    }
}

/// Builds the async runtime of a command that waits for I/O.
fn build_runtime() -> Result<BoundedRuntime, CommandError> {
    BoundedRuntime::start(SHUTDOWN_TIMEOUT)
        .map_err(|error| CommandError::usage(format!("can't start the async runtime: {error}")))
}
