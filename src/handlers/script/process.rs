//! A program's life: fed, listened to and ended by one thread that waits for nothing longer than a moment.
//!
//! Its pipes are read and written as they are ready, so a program may answer before it has read, or never read at all.
//! It is a process group of its own; whatever ends it (its own end, the deadline, a stop, a panic) ends the group, and
//! it is waited for. So nothing is left: no zombie, no child of a child.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::guard;
use crate::clock::{Clock, SystemClock};
use crate::model::Millis;

/// The most a program may write to its standard output, in bytes.
pub(super) const MAX_STDOUT_BYTES: usize = 1 << 20;
/// How much of its standard error is kept, in bytes: the end of it.
const MAX_STDERR_BYTES: usize = 64 << 10;
/// How long a look at the clock, the stop and the program's end may be put off, in milliseconds.
const POLL_MILLIS: u64 = 10;
/// Likewise, once the program has closed its output: it is about to end.
const CLOSING_POLL_MILLIS: u64 = 1;
/// Bytes read or written at once.
const CHUNK_BYTES: usize = 8 << 10;

/// What is to be run.
pub(super) struct ScriptCommand<'j> {
    pub(super) program: &'j Path,
    pub(super) arguments: &'j [String],
    pub(super) folder: &'j Path,
    /// All of its environment.
    pub(super) env: &'j [(String, String)],
    pub(super) input: &'j [u8],
    pub(super) timeout: Millis,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum ScriptExit {
    /// With 0: its standard output and error.
    Success(Vec<u8>, Vec<u8>),
    /// With something else, said as a sentence's end; its standard error.
    Failed(String, Vec<u8>),
    /// By us, at its deadline; its standard error.
    TimedOut(Vec<u8>),
    /// By us: it wrote more than so many bytes.
    OutputTooLarge(usize),
    /// By us: nobody wants to know any more.
    Cancelled,
}

/// Runs a program to its end. The error is a sentence's end: it did not come to run.
pub(super) fn run_command(
    job: &ScriptCommand<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<ScriptExit, String> {
    if stopped() {
        return Ok(ScriptExit::Cancelled);
    }
    let clock = SystemClock::new();
    let child = guard::guarded_command(job.program)
        .args(job.arguments)
        .current_dir(job.folder)
        .env_clear()
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|why| format!("cannot be started: {why}"))?;
    let mut talk =
        ScriptPipes::from_child(child, job.input).map_err(|why| format!("cannot be run: {why}"))?;
    let fault = |why: io::Error| format!("cannot be talked to: {why}");
    loop {
        if stopped() {
            return Ok(ScriptExit::Cancelled);
        }
        let left = job.timeout.0.saturating_sub(clock.now().0);
        if left == 0 {
            return Ok(ScriptExit::TimedOut(talk.err));
        }
        if talk.group.has_ended().map_err(fault)? {
            // Children that it left behind may hold its pipes open: what there is now is all.
            let status = talk.group.kill_and_wait().map_err(fault)?;
            talk.read_output().map_err(fault)?;
            return Ok(talk.into_exit(status));
        }
        talk.wait_until_ready(left).map_err(fault)?;
        talk.write_input().map_err(fault)?;
        talk.read_output().map_err(fault)?;
        if talk.out.len() > MAX_STDOUT_BYTES {
            return Ok(ScriptExit::OutputTooLarge(MAX_STDOUT_BYTES));
        }
    }
}

/// A child and its process group; dropped, both are ended and the child is waited for.
struct ScriptProcessGroup {
    child: Child,
    id: Option<Pid>,
    status: Option<ExitStatus>,
}

impl ScriptProcessGroup {
    /// Whether the child itself ended. It is not waited for yet: until then its number is its own.
    fn has_ended(&self) -> io::Result<bool> {
        let Some(id) = self.id else { return Ok(true) };
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(id), how)?.is_some())
    }

    /// Ends all of the group, and waits for the child.
    fn kill_and_wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        if let Some(id) = self.id {
            // Gone is what they should be.
            let _gone = kill_process_group(id, Signal::KILL);
        }
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }
}

impl Drop for ScriptProcessGroup {
    fn drop(&mut self) {
        let _nobody_asks = self.kill_and_wait();
    }
}

struct ScriptPipes<'j> {
    group: ScriptProcessGroup,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// Not written yet.
    input: &'j [u8],
    out: Vec<u8>,
    err: Vec<u8>,
}

impl<'j> ScriptPipes<'j> {
    fn from_child(mut child: Child, input: &'j [u8]) -> io::Result<Self> {
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let talk = Self {
            group: ScriptProcessGroup {
                child,
                id,
                status: None,
            },
            stdin,
            stdout,
            stderr,
            input,
            out: Vec::new(),
            err: Vec::new(),
        };
        for pipe in talk.pipes() {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(talk)
    }

    fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let stdin = self.stdin.iter().map(AsFd::as_fd);
        let stdout = self.stdout.iter().map(AsFd::as_fd);
        stdin
            .chain(stdout)
            .chain(self.stderr.iter().map(AsFd::as_fd))
    }

    /// Until a pipe is ready or a moment has passed.
    fn wait_until_ready(&self, left: u64) -> io::Result<()> {
        let longest = if self.stdout.is_some() {
            POLL_MILLIS
        } else {
            CLOSING_POLL_MILLIS
        };
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
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Writes what the program has room for.
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
                // It wants no more: that is its own affair.
                Err(why) if why.kind() == io::ErrorKind::BrokenPipe => self.input = &[],
                Err(why) => return Err(why),
            }
        }
        self.stdin = None;
        Ok(())
    }

    /// Reads what there is, a little beyond the caps at most.
    fn read_output(&mut self) -> io::Result<()> {
        read_pipe(&mut self.stdout, |bytes| {
            self.out.extend_from_slice(bytes);
            self.out.len() <= MAX_STDOUT_BYTES
        })?;
        let mut rounds = MAX_STDERR_BYTES / CHUNK_BYTES * 4;
        read_pipe(&mut self.stderr, |bytes| {
            self.err.extend_from_slice(bytes);
            let beyond = self.err.len().saturating_sub(MAX_STDERR_BYTES);
            self.err.drain(..beyond);
            // A program that never stops talking must not keep us from the clock.
            rounds = rounds.saturating_sub(1);
            rounds > 0
        })
    }

    fn into_exit(self, status: ExitStatus) -> ScriptExit {
        if self.out.len() > MAX_STDOUT_BYTES {
            return ScriptExit::OutputTooLarge(MAX_STDOUT_BYTES);
        }
        match (status.code(), status.signal()) {
            (Some(0), _) => ScriptExit::Success(self.out, self.err),
            (Some(code), _) => ScriptExit::Failed(format!("ended with exit code {code}"), self.err),
            (None, Some(signal)) => {
                ScriptExit::Failed(format!("was ended by signal {signal}"), self.err)
            }
            (None, None) => ScriptExit::Failed("ended nobody knows how".to_owned(), self.err),
        }
    }
}

/// Reads a pipe until it has no more, its end, or `take` wants no more; at its end it is closed.
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
