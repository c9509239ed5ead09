//! The guard: a way to end a program even if dicta is killed.
//!
//! On Linux a process can ask for a signal when its parent dies. Only the process itself can ask, and the program does not
//! know dicta. So dicta starts itself, asks, and becomes the program (`exec`), in the same process and group. Child
//! processes of the program may survive `kill -9` of dicta; a cancellation, a signal and a panic end the whole group.
//!
//! On other systems, and in a program that is not `dicta` (tests), dicta starts programs directly. They end with the run,
//! a cancellation and a panic, but survive `kill -9` of dicta.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

/// The first argument that makes dicta a guard. No command has this name.
const GUARD_ARG: &str = "__script";
/// The exit code with which shells report that a program cannot be started.
#[cfg(target_os = "linux")]
const NOT_STARTED: u8 = 127;

/// True if this program's `main` calls [`run_if_guard`], and the system is Linux.
static GUARD_AVAILABLE: OnceLock<bool> = OnceLock::new();

/// Becomes the program if dicta started this process as a guard. `main` calls it first.
///
/// Returns the exit code if the process is a guard and the program could not be started.
#[must_use]
pub fn run_if_guard() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    // The guard is dicta's own program, started with this argument.
    if arguments.next().is_some_and(|first| first == GUARD_ARG) {
        return Some(become_program(arguments));
    }
    // `main` calls this once, so the cell is empty.
    let _was_empty = GUARD_AVAILABLE.set(cfg!(target_os = "linux"));
    None
}

/// Returns the command that starts a program: directly, or through a guard.
pub(super) fn guarded_command(program: &Path) -> Command {
    if GUARD_AVAILABLE.get().copied().unwrap_or_default() {
        // This path names the running program even if its file was replaced or deleted.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg(GUARD_ARG)
            .arg(std::process::id().to_string())
            .arg(program);
        return command;
    }
    // Without the guard, the program may outlive a dicta that is killed.
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
    // The kernel kills the program when dicta ends, even after SIGKILL.
    let death_signal = set_parent_process_death_signal(Some(Signal::KILL));
    // The parent may have died before this request; then no signal comes.
    let orphaned = getppid().map(rustix::process::Pid::as_raw_pid) != parent;
    if death_signal.is_err() || orphaned {
        return ExitCode::from(NOT_STARTED);
    }
    let error = Command::new(program).args(arguments).exec();
    // Standard error may be closed; the exit code reports the failure as well.
    let _write_error = writeln!(std::io::stderr(), "cannot be started: {error}");
    ExitCode::from(NOT_STARTED)
}

#[cfg(not(target_os = "linux"))]
fn become_program(_: impl Iterator<Item = impl AsRef<OsStr>>) -> ExitCode {
    ExitCode::FAILURE
}
