//! A program that one thread runs to its end.
//!
//! The thread reads and writes the pipes as they become ready, so a program may print before it reads, or never read.
//! The program's own end, the deadline, a cancellation and a panic all end the whole process group. dicta then waits for
//! the program, so neither a zombie nor a grandchild remains.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};

use super::{GroupId, guard, start_when_free};
use crate::clock::{Clock, SystemClock};
use crate::model::Millis;

/// The limit of a program's standard output, in bytes.
pub const MAX_STDOUT_BYTES: usize = 1 << 20;
/// The number of bytes kept of the standard error, from its end.
const MAX_STDERR_BYTES: usize = 64 << 10;
/// The longest wait between two checks of the deadline, the cancellation and the program's end, in milliseconds.
const POLL_MILLIS: u64 = 10;
/// The same after the program has closed its standard output, when it is about to end.
const CLOSING_POLL_MILLIS: u64 = 1;
/// The number of bytes read or written at once.
const CHUNK_BYTES: usize = 8 << 10;

/// A program to run, with its input.
pub struct ProgramCommand<'j> {
    /// The program's file.
    pub program: &'j Path,
    /// The arguments after the program's name.
    pub arguments: &'j [String],
    /// The working directory.
    pub folder: &'j Path,
    /// All environment variables of the program.
    pub env: &'j [(String, String)],
    /// The bytes for the standard input.
    pub input: &'j [u8],
    /// The time that the program may take.
    pub timeout: Millis,
}

/// The end of a program, with its output.
#[derive(Debug)]
pub enum ProgramExit {
    /// Exit code 0.
    Success {
        /// The standard output.
        stdout: Vec<u8>,
        /// The end of the standard error.
        stderr: Vec<u8>,
    },
    /// Another exit code, or a signal.
    Failed {
        /// A description that follows the program's name: `ended with exit code 1`.
        description: String,
        /// The end of the standard error.
        stderr: Vec<u8>,
    },
    /// dicta ended the program at its deadline.
    TimedOut {
        /// The end of the standard error.
        stderr: Vec<u8>,
    },
    /// dicta ended the program because it printed more than [`MAX_STDOUT_BYTES`].
    OutputTooLarge,
    /// dicta ended the program because the caller cancelled it.
    Cancelled,
}

/// The reason why a program could not run. The text follows the program's name.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The system could not start it.
    #[error("cannot be started: {0}")]
    Start(#[source] io::Error),
    /// The system reported an error of its pipes or its exit status.
    #[error("cannot exchange data with dicta: {0}")]
    Pipes(#[source] io::Error),
}

/// Runs a program to its end. `is_cancelled` is called at least every 10 milliseconds.
pub fn run_program(
    command: &ProgramCommand<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<ProgramExit, ProgramError> {
    if is_cancelled() {
        return Ok(ProgramExit::Cancelled);
    }
    let clock = SystemClock::new();
    let mut program = guard::guarded_command(command.program);
    program
        .args(command.arguments)
        .current_dir(command.folder)
        // Only the given variables: keys of judges must not reach the program.
        .env_clear()
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The program leads its own group, so that its child processes end with it.
        .process_group(0);
    let child = start_when_free(|| program.spawn()).map_err(ProgramError::Start)?;
    let mut pipes = ProgramPipes::from_child(child, command.input).map_err(ProgramError::Pipes)?;
    loop {
        if is_cancelled() {
            return Ok(ProgramExit::Cancelled);
        }
        // The clock starts at zero, so its time is the time that has passed.
        let left = command.timeout.0.saturating_sub(clock.now().0);
        if left == 0 {
            return Ok(ProgramExit::TimedOut { stderr: pipes.err });
        }
        if pipes.group.has_ended().map_err(ProgramError::Pipes)? {
            // Child processes that it left behind may hold its pipes open. So read what is there, and do not wait for
            // the end of the pipes.
            let status = pipes.group.kill_and_wait().map_err(ProgramError::Pipes)?;
            pipes.read_output().map_err(ProgramError::Pipes)?;
            return Ok(pipes.into_exit(status));
        }
        pipes.wait_until_ready(left).map_err(ProgramError::Pipes)?;
        pipes.write_input().map_err(ProgramError::Pipes)?;
        pipes.read_output().map_err(ProgramError::Pipes)?;
        if pipes.out.len() > MAX_STDOUT_BYTES {
            return Ok(ProgramExit::OutputTooLarge);
        }
    }
}

/// A child process and its group. Dropping it ends both and waits for the child.
struct BlockingProcessGroup {
    child: Child,
    group: Option<GroupId>,
    status: Option<ExitStatus>,
}

impl BlockingProcessGroup {
    /// Returns true if the child has ended. Leaves it unreaped (`NOWAIT`), so that its id cannot be reused before
    /// [`Self::kill_and_wait`] signals the group.
    fn has_ended(&self) -> io::Result<bool> {
        let Some(group) = self.group else {
            return Ok(true);
        };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(group.0), options)?.is_some())
    }

    /// Ends the whole group and waits for the child.
    fn kill_and_wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        if let Some(group) = self.group {
            group.send_signal(Signal::KILL);
        }
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }
}

impl Drop for BlockingProcessGroup {
    fn drop(&mut self) {
        // A destructor cannot report an error.
        let _error = self.kill_and_wait();
    }
}

/// A running program and its pipes.
struct ProgramPipes<'j> {
    group: BlockingProcessGroup,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The input that is not written yet.
    input: &'j [u8],
    out: Vec<u8>,
    err: Vec<u8>,
}

impl<'j> ProgramPipes<'j> {
    fn from_child(mut child: Child, input: &'j [u8]) -> io::Result<Self> {
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = GroupId::from_leader(child.id());
        let pipes = Self {
            group: BlockingProcessGroup {
                child,
                group,
                status: None,
            },
            stdin,
            stdout,
            stderr,
            input,
            out: Vec::new(),
            err: Vec::new(),
        };
        // One thread serves all three pipes, so none of them may block it.
        for pipe in pipes.descriptors() {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(pipes)
    }

    /// Returns the open pipes.
    fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let stdin = self.stdin.iter().map(AsFd::as_fd);
        let stdout = self.stdout.iter().map(AsFd::as_fd);
        stdin
            .chain(stdout)
            .chain(self.stderr.iter().map(AsFd::as_fd))
    }

    /// Waits until a pipe is ready, for at most `left` milliseconds and never longer than the next check.
    fn wait_until_ready(&self, left: u64) -> io::Result<()> {
        let longest = if self.stdout.is_some() {
            POLL_MILLIS
        } else {
            CLOSING_POLL_MILLIS
        };
        // The wait is short, because no pipe reports a cancellation or the program's end.
        let nanos = i64::try_from(left.min(longest) * 1_000_000).unwrap_or(1_000_000);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: nanos,
        };
        let stdin = self.stdin.as_ref().map(AsFd::as_fd);
        let outs = self.stdout.iter().map(AsFd::as_fd);
        let outs = outs.chain(self.stderr.iter().map(AsFd::as_fd));
        let mut fds: Vec<PollFd<'_>> = outs
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .chain(stdin.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)))
            .collect();
        // A signal interrupts the wait; the caller's loop then checks everything again.
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Writes as much input as the pipe accepts, and closes the pipe after the last byte.
    fn write_input(&mut self) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Ok(());
        };
        while !self.input.is_empty() {
            let piece = &self.input[..self.input.len().min(CHUNK_BYTES)];
            match stdin.write(piece) {
                Ok(written) => self.input = &self.input[written..],
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                // A program may close its standard input without reading all of it.
                Err(why) if why.kind() == io::ErrorKind::BrokenPipe => self.input = &[],
                Err(why) => return Err(why),
            }
        }
        // The closed pipe marks the end of the input for the program.
        self.stdin = None;
        Ok(())
    }

    /// Reads the output that is available, up to little more than the limits.
    fn read_output(&mut self) -> io::Result<()> {
        read_pipe(&mut self.stdout, |bytes| {
            self.out.extend_from_slice(bytes);
            self.out.len() <= MAX_STDOUT_BYTES
        })?;
        // Four times the kept size per round, so that a long error text does not delay the loop.
        let mut rounds = MAX_STDERR_BYTES / CHUNK_BYTES * 4;
        read_pipe(&mut self.stderr, |bytes| {
            self.err.extend_from_slice(bytes);
            let beyond = self.err.len().saturating_sub(MAX_STDERR_BYTES);
            self.err.drain(..beyond);
            // A program that prints without end must not delay the check of the deadline.
            rounds = rounds.saturating_sub(1);
            rounds > 0
        })
    }

    /// Combines the exit status and the output.
    fn into_exit(self, status: ExitStatus) -> ProgramExit {
        if self.out.len() > MAX_STDOUT_BYTES {
            return ProgramExit::OutputTooLarge;
        }
        if status.success() {
            return ProgramExit::Success {
                stdout: self.out,
                stderr: self.err,
            };
        }
        // An ended process has either an exit code or a signal.
        let description = match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended for an unknown reason".to_owned(),
        };
        ProgramExit::Failed {
            description,
            stderr: self.err,
        }
    }
}

/// Reads a pipe until it is empty or `take` returns false. Closes the pipe at its end.
fn read_pipe(pipe: &mut Option<impl Read>, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let Some(reader) = pipe else { return Ok(()) };
    let mut piece = [0; CHUNK_BYTES];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => {
                *pipe = None;
                return Ok(());
            }
            Ok(read) => {
                if !take(&piece[..read]) {
                    return Ok(());
                }
            }
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}
