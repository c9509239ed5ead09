//! The command line: clap, and one file a command.
//!
//! Owns the commands, their exit codes and the two streams. Refuses to know how anything is done: each command loads,
//! calls one part, and prints.

mod args;
mod check;
mod connect;
mod evals;
mod exam;
mod file;
mod import;
mod init;
mod list;
mod map;
mod open;
mod output;
mod prompt;
mod replay;
mod run;
mod selftest;
mod show;
mod sources;
mod themes;
mod thresholds;
mod tool;
mod toolbox;
mod tools;
mod trouble;
mod understood;
mod workspace;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory as _, Parser as _};

use crate::clock::{Clock, SystemClock};
use crate::tools::kinds::SourceProcessReaper;
use crate::workspace::Env;
use args::{Cli, Command, RunArgs};
use output::Streams;
use trouble::Trouble;

/// What every command stands in.
struct Cx {
    env: Env,
    streams: Streams,
    clock: Arc<dyn Clock>,
}

/// Runs the program as it was called.
pub fn main() -> ExitCode {
    if let Some(code) = crate::handlers::guard::run_if_guard() {
        return code;
    }
    // However the program ends from here on, what its tools started ends with it.
    let _children = SourceProcessReaper;
    let env = Env::from_process();
    let streams = Streams::of_process(&env);
    let cx = Cx {
        env,
        streams,
        clock: Arc::new(SystemClock::new()),
    };
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // clap prints help to standard output with 0 and faults to standard error with 2.
            let _gone = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match dispatch(cli, &cx) {
        Ok(code) => ExitCode::from(code),
        Err(trouble) => {
            trouble.tell(cx.streams);
            ExitCode::from(trouble.code)
        }
    }
}

fn dispatch(cli: Cli, cx: &Cx) -> Result<u8, Trouble> {
    match cli.command {
        None => bare(&cli.look, cx),
        Some(Command::Open { path, look }) => open::open(path.as_deref(), &look, cx),
        Some(Command::Init { dir }) => init::init(&dir, cx),
        Some(Command::Check {
            path,
            strict,
            exam,
            connecting,
        }) => connect::check(path.as_deref(), strict, &exam, &connecting, cx),
        Some(Command::Import(args)) => import::import(&args, cx),
        Some(Command::Map { file }) => map::map(&file, cx),
        Some(Command::Run(args)) => run::run(&args, cx),
        Some(Command::Selftest(args)) => selftest::selftest(&args, cx),
        Some(Command::Runs { place }) => show::runs(&place, cx),
        Some(Command::Show {
            run,
            thresholds: true,
            eval,
            format,
            place,
            ..
        }) => thresholds::thresholds(&run, eval.as_deref(), format, &place, cx),
        Some(Command::Show {
            run,
            cell,
            format,
            place,
            ..
        }) => show::show(&run, cell.as_deref(), format, &place, cx),
        Some(Command::Replay {
            run,
            speed,
            print,
            look,
            place,
        }) => replay::replay(&run, speed, print, &look, &place, cx),
        Some(Command::Compare {
            before,
            after,
            place,
        }) => show::compare(&before, &after, &place, cx),
        Some(Command::Prompt {
            cell,
            key,
            judge,
            place,
        }) => prompt::prompt(&cell, key, judge, &place, cx),
        Some(Command::Tool(args)) => tool::tool(&args, cx),
        Some(Command::Evals { kind, all, format }) => {
            evals::evals(kind.as_deref(), all, format, cx)
        }
        Some(Command::Judges { place }) => list::judges(&place, cx),
        Some(Command::Tools {
            provider,
            format,
            place,
        }) => tools::tools(provider, format, &place, cx),
        Some(Command::Schema { of }) => Ok(list::schema(of, cx)),
        Some(Command::Themes { name }) => themes::themes(name.as_deref(), cx),
        Some(Command::Keys { markdown }) => {
            cx.streams.print(&crate::tui::render_key_bindings(markdown));
            Ok(0)
        }
        Some(Command::Completions { shell }) => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "dicta", &mut text);
            cx.streams.print(&String::from_utf8_lossy(&text));
            Ok(0)
        }
        Some(Command::Man) => {
            let text =
                manual().map_err(|error| Trouble::usage(format!("the manual page: {error}")))?;
            cx.streams.print(&String::from_utf8_lossy(&text));
            Ok(0)
        }
    }
}

/// One page with every command and its options, in roff.
fn manual() -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut program = Cli::command();
    program.build();
    clap_mangen::Man::new(program.clone()).render(&mut text)?;
    for command in program.get_subcommands().filter(|c| c.get_name() != "help") {
        writeln!(text, ".SH \"DICTA {}\"", command.get_name().to_uppercase())?;
        let page = clap_mangen::Man::new(command.clone());
        let mut part = Vec::new();
        page.render_description_section(&mut part)?;
        page.render_synopsis_section(&mut part)?;
        page.render_options_section(&mut part)?;
        // Sections of a page of its own; here they are parts of a command's section.
        text.extend(
            String::from_utf8_lossy(&part)
                .replace(".SH ", ".SS ")
                .bytes(),
        );
    }
    Ok(text)
}

/// `dicta` alone: the workbench. Without a terminal it does what `dicta run` does.
fn bare(look: &args::Look, cx: &Cx) -> Result<u8, Trouble> {
    let Some(why) = open::no_screen(cx) else {
        return open::here(look, cx);
    };
    cx.streams.tell(&format!(
        "{why}: doing what `dicta run` does (`dicta --help` lists the commands)"
    ));
    let cli =
        Cli::try_parse_from(["dicta", "run"]).map_err(|error| Trouble::usage(error.to_string()))?;
    match cli.command {
        Some(Command::Run(args @ RunArgs { .. })) => run::run(&args, cx),
        _ => Err(Trouble::usage("`dicta run` is not a command")),
    }
}

/// The runtime of commands that wait for something.
fn runtime() -> Result<tokio::runtime::Runtime, Trouble> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Trouble::usage(format!("no runtime could be started: {error}")))
}
