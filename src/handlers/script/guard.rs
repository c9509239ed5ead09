//! How a program ends with dicta even where dicta is killed: on Linux it asks the system for a signal when its parent
//! dies. Only the program itself can ask, and it does not know dicta; so dicta starts itself, asks, and *becomes* the
//! program (`exec`): same process, same group. What the program itself started is not reached by this: it may outlive a
//! kill -9 of dicta, as with any parent; a cancel, a signal and a panic end the whole group.
//!
//! Elsewhere, and in a program that is not `dicta` (tests), programs are started directly: they end with the run, with a
//! cancel and a panic, but outlive a kill -9 of dicta until their deadline would have come.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

/// The first argument that makes dicta a program's guard. No command has such a name.
const GUARD_ARG: &str = "__script";
/// What a shell answers where a program cannot be started.
#[cfg(target_os = "linux")]
const NOT_STARTED: u8 = 127;

static GUARD_AVAILABLE: OnceLock<bool> = OnceLock::new();

/// Called first thing in `main`. `Some`: this process was started to become a program, and could not.
pub fn run_if_guard() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == GUARD_ARG) {
        return Some(become_program(arguments));
    }
    // Said once; nobody else says it.
    let _first = GUARD_AVAILABLE.set(cfg!(target_os = "linux"));
    None
}

/// What starts a program: itself, or a guard that becomes it.
pub(super) fn guarded_command(program: &Path) -> Command {
    if GUARD_AVAILABLE.get().copied().unwrap_or_default() {
        // Names this very program even where its file was replaced meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg(GUARD_ARG)
            .arg(std::process::id().to_string())
            .arg(program);
        return command;
    }
    Command::new(program)
}

#[cfg(target_os = "linux")]
fn become_program(mut arguments: impl Iterator<Item = impl AsRef<OsStr>>) -> ExitCode {
    use std::io::Write as _;
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    let parent = arguments.next();
    let parent = parent.and_then(|id| id.as_ref().to_str()?.parse::<i32>().ok());
    let Some(program) = arguments.next() else {
        return ExitCode::from(NOT_STARTED);
    };
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    // Who started us may have died before we asked.
    let orphaned = getppid().map(rustix::process::Pid::as_raw_pid) != parent;
    if asked.is_err() || orphaned {
        return ExitCode::from(NOT_STARTED);
    }
    let why = Command::new(program).args(arguments).exec();
    let _nobody_reads = writeln!(std::io::stderr(), "cannot be started: {why}");
    ExitCode::from(NOT_STARTED)
}

#[cfg(not(target_os = "linux"))]
fn become_program(_: impl Iterator<Item = impl AsRef<OsStr>>) -> ExitCode {
    ExitCode::FAILURE
}
