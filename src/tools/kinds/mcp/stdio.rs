//! MCP over the standard input and output of a program that dicta starts.
//!
//! Uses rmcp's framing ([`AsyncRwTransport`]) but not its child transport. That one has no line limit, waits for
//! seconds when it closes, and does not know process groups.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio as Pipe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use super::MAX_MESSAGE;
use super::config::McpProgram;
use super::failure::McpFailure;
use crate::clock::{SystemClock, with_timeout};
use crate::model::{Millis, make_visible};
use crate::process::{ProcessExit, ProcessGroup, start_when_free, watch_exit_signals};

/// The environment variables that a server inherits in addition to its `env`. None of them may hold a key.
const INHERITED_VARIABLES: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// The number of bytes kept of the standard error, from its end.
const STDERR_TAIL_BYTES: usize = 2048;
/// The time to wait for the last output and the exit status.
const STDERR_WAIT: Millis = Millis(2500);
/// The number of bytes kept of output that is not a message.
const MAX_STRAY_BYTES: usize = 160;

/// The output and exit status of a server, for error messages.
#[derive(Default)]
pub(super) struct ProcessNotes {
    output: Mutex<ProcessOutput>,
    /// Cancelled when the standard error has ended.
    stderr_closed: CancellationToken,
    exit: Arc<ProcessExit>,
}

#[derive(Default)]
struct ProcessOutput {
    /// The end of the standard error.
    stderr_tail: VecDeque<u8>,
    /// The start of the first output that was not a message.
    stray_stdout: Vec<u8>,
    /// The reason why dicta stopped reading.
    read_error: Option<String>,
}

impl ProcessNotes {
    fn lock(&self) -> MutexGuard<'_, ProcessOutput> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_read_error(&self, why: String) {
        self.lock().read_error.get_or_insert(why);
    }

    /// Describes the end of the process as the rest of a sentence: `; it ended with exit status 1; …`. If `dead` is
    /// set, waits for the last output first.
    pub(super) async fn describe_end(&self, dead: bool) -> String {
        // A program that ended needs a moment until its last output has arrived.
        if dead {
            // After a read error, dicta ends the program itself, so its exit status is not the cause.
            let over = self.lock().read_error.is_none();
            let last = async {
                self.stderr_closed.cancelled().await;
                if over {
                    self.exit.ended.cancelled().await;
                }
            };
            let _late = with_timeout(&SystemClock::new(), STDERR_WAIT, last).await;
        }
        let inner = self.lock();
        let mut description = String::new();
        // The read error explains more than the exit status that follows from it.
        if let Some(why) = &inner.read_error {
            description.push_str("; ");
            description.push_str(why);
        } else if let Some(status) = self.exit.status() {
            description.push_str("; it ended with ");
            description.push_str(&status.to_string());
        }
        if !inner.stray_stdout.is_empty() {
            description.push_str("; its standard output holds what is no message: ");
            description.push_str(&to_visible_line(&inner.stray_stdout));
            // The mark by which a redactor recognizes a cut secret.
            if inner.stray_stdout.len() >= MAX_STRAY_BYTES {
                description.push('…');
            }
        }
        if !inner.stderr_tail.is_empty() {
            let mut bytes: Vec<u8> = inner.stderr_tail.iter().copied().collect();
            // The first word may be the end of a secret, which no redactor recognizes.
            if bytes.len() == STDERR_TAIL_BYTES
                && let Some(blank) = bytes.iter().position(u8::is_ascii_whitespace)
            {
                bytes.drain(..blank);
            }
            description.push_str("; its last words: ");
            description.push_str(&to_visible_line(&bytes));
        }
        description
    }
}

/// Formats untrusted bytes on one line.
fn to_visible_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    make_visible(&lines.join(" / "), false).into_owned()
}

/// Starts a program.
pub(super) fn start_program(
    program: &McpProgram,
) -> Result<(StdioTransport, Arc<ProcessNotes>), McpFailure> {
    let mut command = Command::new(&program.command);
    command
        .args(&program.args)
        // Clear the environment first: keys of judges must not reach a server.
        .env_clear()
        .envs(
            INHERITED_VARIABLES
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .envs(&program.env)
        .current_dir(&program.cwd)
        // The server leads its own group, so that its child processes end with it.
        .process_group(0)
        .stdin(Pipe::piped())
        .stdout(Pipe::piped())
        .stderr(Pipe::piped());
    watch_exit_signals();
    let mut child = start_when_free(|| command.spawn())
        .map_err(|error| explain_start_failure(program, &error))?;
    let (Some(to), Some(from), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(McpFailure::permanent(format!(
            "`{}` has no pipes",
            program.command
        )));
    };
    // From here on the group owns the process, and dropping it ends the program.
    let notes = Arc::new(ProcessNotes::default());
    let process_group = ProcessGroup::new(child, Arc::clone(&notes.exit))
        .ok_or_else(|| McpFailure::transient(format!("`{}` ended at once", program.command)))?;
    tokio::spawn(collect_stderr(errors, Arc::clone(&notes)));
    let lines = LimitedLineReader {
        stdout: from,
        line_len: 0,
        is_closed: false,
        notes: Arc::clone(&notes),
    };
    let stdio = StdioTransport {
        // rmcp's limit exceeds that of the reader, so that the reader reports a long line.
        messages: AsyncRwTransport::new_client(lines, to).with_max_line_length(MAX_MESSAGE * 2),
        process_group,
    };
    Ok((stdio, notes))
}

fn explain_start_failure(program: &McpProgram, error: &io::Error) -> McpFailure {
    let name = &program.command;
    let why = match error.kind() {
        // The order matters: each case excludes the more general one below it.
        io::ErrorKind::NotFound if !program.cwd.is_dir() => {
            format!(
                "`{name}` cannot be started: there is no folder {}",
                program.cwd.display()
            )
        }
        io::ErrorKind::NotFound if Path::new(name).exists() => {
            format!("`{name}` cannot be started: what its first line (`#!`) names is not there")
        }
        io::ErrorKind::NotFound if name.contains('/') => {
            format!("`{name}` cannot be started: there is no such file")
        }
        io::ErrorKind::NotFound => {
            format!("`{name}` cannot be started: it is not installed, or not on PATH")
        }
        io::ErrorKind::PermissionDenied if Path::new(name).is_file() => {
            format!(
                "`{name}` cannot be started: the file may not be run (`chmod +x` makes it a program)"
            )
        }
        _ => format!("`{name}` cannot be started: {error}"),
    };
    McpFailure::permanent(why)
}

/// Keeps the end of a server's standard error, which never reaches the terminal.
async fn collect_stderr(mut errors: ChildStderr, notes: Arc<ProcessNotes>) {
    // The guard reports the end of the standard error on every way out of this function.
    let _silent = notes.stderr_closed.clone().drop_guard();
    let mut buffer = [0; 4096];
    while let Ok(n) = errors.read(&mut buffer).await {
        if n == 0 {
            return;
        }
        let mut inner = notes.lock();
        inner.stderr_tail.extend(&buffer[..n]);
        // Only the end is kept: a program's last lines name the reason of its failure.
        let over = inner.stderr_tail.len().saturating_sub(STDERR_TAIL_BYTES);
        inner.stderr_tail.drain(..over);
    }
}

/// A reader of a server's output, which ends at a line over the size limit.
struct LimitedLineReader {
    stdout: ChildStdout,
    /// The length of the current line so far, in bytes.
    line_len: usize,
    is_closed: bool,
    notes: Arc<ProcessNotes>,
}

impl LimitedLineReader {
    /// Counts bytes. Returns false if a line exceeds the limit.
    fn admits(&mut self, bytes: &[u8]) -> bool {
        for (at, part) in bytes.split(|b| *b == b'\n').enumerate() {
            if at > 0 {
                self.line_len = 0;
            }
            let begins = part.iter().find(|b| !b.is_ascii_whitespace());
            // A message is a JSON object, so a line with another first character is stray output.
            if self.line_len == 0 && begins.is_some_and(|b| *b != b'{') {
                let mut inner = self.notes.lock();
                // The first stray output is kept, because it is the most useful one for the message.
                if inner.stray_stdout.is_empty() {
                    inner.stray_stdout.extend(part.iter().take(MAX_STRAY_BYTES));
                }
            }
            self.line_len += part.len();
            if self.line_len > MAX_MESSAGE {
                return false;
            }
        }
        true
    }
}

impl AsyncRead for LimitedLineReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_closed {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stdout).poll_read(cx, buf);
        if matches!(read, Poll::Ready(Ok(()))) {
            // The bytes are copied, because `admits` needs `self` while the buffer is borrowed.
            let fresh = buf.filled()[before..].to_vec();
            if !self.admits(&fresh) {
                self.is_closed = true;
                // The long line is withheld, so that rmcp never buffers it.
                buf.set_filled(before);
                self.notes.set_read_error(format!(
                    "it sent a message of more than {MAX_MESSAGE} bytes"
                ));
            }
        }
        read
    }
}

/// A transport of messages, with the process that it belongs to.
pub(super) struct StdioTransport {
    messages: AsyncRwTransport<RoleClient, LimitedLineReader, ChildStdin>,
    process_group: ProcessGroup,
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.messages.send(item)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.messages.receive()
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // A message that the server does not read blocks the pipe. Do not wait long: the pipe ends with the process.
        let _stuck = with_timeout(&SystemClock::new(), Millis(100), self.messages.close()).await;
        self.process_group.terminate().await;
        Ok(())
    }
}
