//! The command line: one file for each command.
//!
//! Responsible for arguments, exit codes and the two output streams. Contains no logic of its own: each command loads
//! its input, calls one module, and prints.

mod args;
mod check;
mod connect;
mod demo;
mod error;
mod evals;
mod flush_timer;
mod help;
mod import;
mod init;
mod judged_examples;
mod list;
mod map;
mod open;
mod output_file;
mod prompt;
mod replay;
mod run;
mod selftest;
mod show;
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
mod workspace;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::process::ProcessReaper;
use crate::workspace::Env;
use args::{Cli, CliCommand, ColorArg};
use error::CommandError;
use streams::Streams;

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
            let streams = Streams::from_process(&env, ColorArg::Auto);
            print_clap_message(&error, streams);
            if let Some(hint) = help::hint_for(&error) {
                streams.print_stderr(&format!("  {hint}"));
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let cx = CommandCx {
        uses_demo: cli.common.demo,
        streams: Streams::from_process(&env, cli.common.color),
        env,
        clock: Arc::new(SystemClock::new()),
    };
    match enter_directory(&cli).and_then(|()| dispatch(cli, &cx)) {
        Ok(code) => ExitCode::from(code),
        Err(trouble) => {
            trouble.print(cx.streams);
            ExitCode::from(trouble.code)
        }
    }
}

/// Changes to the folder of `-C`, so that every relative path of the command means a path below it.
fn enter_directory(cli: &Cli) -> Result<(), CommandError> {
    let Some(directory) = &cli.common.directory else {
        return Ok(());
    };
    std::env::set_current_dir(directory)
        .map_err(|error| CommandError::usage(format!("-C {}: {error}", directory.display())))
}

/// Prints an error of clap, which exits with 2, or its help, which goes to standard output and exits with 0.
///
/// Both repeat arguments, the program's name and variables, so a terminal gets hidden characters as visible marks.
fn print_clap_message(error: &clap::Error, streams: Streams) {
    let is_terminal = if error.use_stderr() {
        streams.err.terminal
    } else {
        streams.out.terminal
    };
    if is_terminal && let Some(visible) = make_clap_message_visible(std::env::args_os(), error) {
        if error.use_stderr() {
            streams.print_stderr(&visible);
        } else {
            streams.print(&visible);
        }
        return;
    }
    // Nothing is hidden, so clap prints its own colors.
    let _gone = error.print();
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
    if cli.command.is_some() && (cli.look.theme.is_some() || cli.look.ascii) {
        return Err(CommandError::usage(
            "put `--theme` and `--ascii` after `open`, `demo` or `replay`, as in `dicta open --theme light`",
        ));
    }
    match cli.command {
        None => run_without_command(&cli.look, cx),
        Some(CliCommand::Demo { reset, look }) => demo::demo(reset, &look, cx),
        Some(CliCommand::Open { path, look }) => open::open(path.as_deref(), &look, cx),
        Some(CliCommand::Init { dir }) => init::init(&dir, cx),
        Some(CliCommand::Check {
            path,
            strict,
            exam,
            connecting,
        }) => connect::check_and_connect(path.as_deref(), strict, &exam, &connecting, cx),
        Some(CliCommand::Trust(args)) => trust::trust(&args, cx),
        Some(CliCommand::Import(args)) => import::import(&args, cx),
        Some(CliCommand::Map { file }) => map::print_field_map(&file, cx),
        Some(CliCommand::Run(args)) => run::run(&args, cx),
        Some(CliCommand::Robustness(args)) => selftest::selftest(&args, cx),
        Some(CliCommand::Runs { place }) => show::list_runs(&place, cx),
        // The arm with `thresholds: true` must come before the general arm of `show`.
        Some(CliCommand::Show {
            run,
            thresholds: true,
            eval,
            format,
            place,
            ..
        }) => thresholds::print_thresholds(&run, eval.as_deref(), format, &place, cx),
        Some(CliCommand::Show {
            run,
            cell,
            format,
            place,
            ..
        }) => show::show(&run, cell.as_deref(), format, &place, cx),
        Some(CliCommand::Replay {
            run,
            speed,
            print,
            look,
            place,
        }) => replay::replay(&run, speed, print, &look, &place, cx),
        Some(CliCommand::Compare {
            before,
            after,
            place,
        }) => show::compare(&before, &after, &place, cx),
        Some(CliCommand::Prompt {
            cell,
            key,
            judge,
            place,
        }) => prompt::print_prompt(&cell, key, judge, &place, cx),
        Some(CliCommand::Tool(args)) => tool::call_tool(&args, cx),
        Some(CliCommand::EvalTypes { kind, all, format }) => {
            evals::list_eval_types(kind.as_deref(), all, format, cx)
        }
        Some(CliCommand::Judges { place }) => list::list_judges(&place, cx),
        Some(CliCommand::Tools {
            provider,
            format,
            place,
        }) => tools::list_tools(provider, format, &place, cx),
        Some(CliCommand::Schema { of }) => Ok(list::print_schema(of, cx)),
        Some(CliCommand::Themes { name }) => themes::list_themes(name.as_deref(), cx),
        Some(CliCommand::Keys { markdown }) => {
            cx.streams.print(&crate::tui::render_key_bindings(markdown));
            Ok(0)
        }
        Some(CliCommand::Completions { shell }) => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut help::build_command(), "dicta", &mut text);
            cx.streams.print(&String::from_utf8_lossy(&text));
            Ok(0)
        }
        Some(CliCommand::Man) => {
            let text = render_manual()
                .map_err(|error| CommandError::usage(format!("the manual page: {error}")))?;
            cx.streams.print(&String::from_utf8_lossy(&text));
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
    clap_mangen::Man::new(program.clone()).render(&mut text)?;
    // The page of `help` would repeat clap's own text.
    for command in program.get_subcommands().filter(|c| c.get_name() != "help") {
        writeln!(text, ".SH \"DICTA {}\"", command.get_name().to_uppercase())?;
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
    }
    Ok(text)
}

/// Runs `dicta` without a command: opens the workbench on the workspace, else on the demo.
///
/// Without a terminal it never judges the user's workspace, because that may cost money: it prints the help. Outside a
/// workspace it runs the free demo.
fn run_without_command(look: &args::WorkbenchArgs, cx: &CommandCx) -> Result<u8, CommandError> {
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
    cx.streams.print_stderr(&format!(
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
fn build_runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::usage(format!("can't start the async runtime: {error}")))
}
