//! Programs that dicta starts, and how they end.
//!
//! Responsible for process groups: each program leads one, so that its child processes end with it. Ctrl-c in the
//! terminal does not reach them. The function [`run_program`] runs a program to its end (evals of type `script`). A
//! [`ProcessGroup`] supervises a program that serves requests (MCP servers), and [`ProcessReaper`] ends all supervised
//! groups when dicta ends. The module [`guard`] makes Linux end a script even if dicta is killed. Does not interpret
//! what a program prints. Unix only. The end of dicta itself needs a [`BoundedRuntime`].

mod bounded_runtime;
mod group;
pub mod guard;
mod reaper;
mod run;
mod start;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

pub use bounded_runtime::{
    BoundedRuntime, MAX_BLOCKING_THREADS, MAX_PROGRAM_PLACES, PROGRAM_PLACES,
};
pub use group::{ProcessExit, ProcessGroup};
pub use reaper::{ExitSignalsHandled, ProcessReaper, reap_process_groups, watch_exit_signals};
pub use run::{MAX_STDOUT_BYTES, ProgramCommand, ProgramError, ProgramExit, run_program};
pub use start::start_when_free;

/// The id of a process group, which is the process id of its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GroupId(Pid);

impl GroupId {
    /// Converts the process id of a group leader.
    fn from_leader(process_id: u32) -> Option<Self> {
        let raw = i32::try_from(process_id).ok()?;
        Pid::from_raw(raw).map(Self)
    }

    /// Returns true while the group has a process, including one that ended and was not waited for.
    fn is_alive(self) -> bool {
        !matches!(test_kill_process_group(self.0), Err(Errno::SRCH))
    }

    /// Sends a signal to every process of the group.
    fn send_signal(self, signal: Signal) {
        // The only expected error is that the group has ended already, which is the aim.
        let _already_ended = kill_process_group(self.0, signal);
    }
}
