//! Runs the built program in a pseudo-terminal. An independent terminal emulator interprets its output.

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tempfile::TempDir;

/// The longest wait for a text, a file or an exit. It allows for a machine that is busy with other tests.
const MAX_WAIT: Duration = Duration::from_secs(40);

/// The number of rows of the screen.
const ROWS: NonZero<u16> = NonZero::new(40).expect("not 0");
/// The number of columns of the screen.
const COLUMNS: NonZero<u16> = NonZero::new(120).expect("not 0");

/// The running program and its terminal.
pub(super) struct Pty {
    child: Box<dyn Child + Send + Sync>,
    master: Option<Box<dyn MasterPty + Send>>,
    keys: Option<Box<dyn std::io::Write + Send>>,
    /// The output that the reader thread passes on.
    bytes: Receiver<Vec<u8>>,
    /// True to make the reader thread stop at its next read.
    stops_reading: Arc<AtomicBool>,
    reader_thread: Option<JoinHandle<()>>,
    /// The terminal emulator.
    screen: vt100::Parser,
    /// The terminal's settings before the program started.
    first_modes: String,
    /// The whole output of the program.
    pub(super) written: Vec<u8>,
    /// The program's home folder.
    home: TempDir,
}

/// The end of a program: its exit code, and the time that the test waited for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: u32,
    pub(super) after: Duration,
}

impl Pty {
    /// Starts `dicta ARGS` on a screen of 120×40, with a new home folder.
    pub(super) fn start(args: &[&str]) -> Self {
        Self::with(args, |_| {})
    }

    /// Starts `dicta ARGS` as [`Pty::start`] does. `set` may change the command, for example its variables.
    pub(super) fn with(args: &[&str], set: impl FnOnce(&mut CommandBuilder)) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_dicta"));
        command.args(args);
        Self::spawn(command, set)
    }

    /// Starts `dicta ARGS` as [`Pty::with`] does, on a screen of 80×24.
    pub(super) fn small(args: &[&str], set: impl FnOnce(&mut CommandBuilder)) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_dicta"));
        command.args(args);
        let side = |length| NonZero::new(length).expect("not 0");
        Self::spawn_at(command, (side(24), side(80)), set)
    }

    /// Starts a shell that runs the command `first`, and then replaces itself with `dicta`.
    pub(super) fn through(first: &str) -> Self {
        let mut command = CommandBuilder::new("/bin/sh");
        command.args([
            "-c",
            &format!("{first}; exec {}", env!("CARGO_BIN_EXE_dicta")),
        ]);
        Self::spawn(command, |_| {})
    }

    fn spawn(command: CommandBuilder, set: impl FnOnce(&mut CommandBuilder)) -> Self {
        Self::spawn_at(command, (ROWS, COLUMNS), set)
    }

    fn spawn_at(
        mut command: CommandBuilder,
        (rows, columns): (NonZero<u16>, NonZero<u16>),
        set: impl FnOnce(&mut CommandBuilder),
    ) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let size = PtySize {
            rows: rows.get(),
            cols: columns.get(),
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        command.env_clear();
        command.env("HOME", home.path());
        command.env("DICTA_DATA_DIR", home.path().join("data"));
        command.env("TERM", "xterm-256color");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.cwd(home.path());
        set(&mut command);
        let first_modes = format!("{:?}", pair.master.get_termios().expect("settings"));
        let child = pair.slave.spawn_command(command).expect("a process");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let keys = pair.master.take_writer().expect("a writer");
        let (send, bytes) = channel();
        let stops_reading = Arc::new(AtomicBool::new(false));
        let must_stop = Arc::clone(&stops_reading);
        let reader_thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            // An error means that the program closed its end of the terminal.
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if must_stop.load(Ordering::SeqCst) || send.send(buffer[..length].to_vec()).is_err()
                {
                    return;
                }
            }
        });
        Self {
            child,
            master: Some(pair.master),
            keys: Some(keys),
            bytes,
            stops_reading,
            reader_thread: Some(reader_thread),
            screen: vt100::Parser::new(rows, columns, 0),
            first_modes,
            written: Vec::new(),
            home,
        }
    }

    /// Returns the program's home folder.
    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns the folder of the unpacked demo.
    pub(super) fn demo(&self) -> PathBuf {
        let data = std::fs::read_dir(self.home().join("data")).expect("a data directory");
        data.flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with("demo-"))
            .expect("the demo is unpacked")
            .path()
            .join("demo")
    }

    /// Returns the id of the program's process.
    pub(super) fn id(&self) -> rustix::process::Pid {
        let id = self
            .child
            .process_id()
            .and_then(|id| i32::try_from(id).ok());
        rustix::process::Pid::from_raw(id.expect("a running process")).expect("not 0")
    }

    /// Sends the bytes of keys to the program.
    pub(super) fn type_in(&mut self, keys: &str) -> &mut Self {
        let to = self.keys.as_mut().expect("the terminal is open");
        to.write_all(keys.as_bytes()).expect("the keys are sent");
        to.flush().expect("the keys are sent");
        self
    }

    /// Returns the text on the screen of the terminal emulator.
    pub(super) fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    /// Returns true if the alternate screen is visible.
    pub(super) fn alternate(&self) -> bool {
        self.screen.screen().alternate_screen()
    }

    /// Returns the terminal's settings before the program started, as text.
    pub(super) fn first_modes(&self) -> &str {
        &self.first_modes
    }

    /// Returns the terminal's current settings, as text.
    pub(super) fn modes(&self) -> String {
        let master = self.master.as_ref().expect("the terminal is open");
        format!("{:?}", master.get_termios().expect("settings"))
    }

    /// Reads output until the condition on the screen holds. The message of a failure
    /// contains `expected`.
    pub(super) fn until(&mut self, expected: &str, holds: impl Fn(&Self) -> bool) -> &mut Self {
        let deadline = Instant::now() + MAX_WAIT;
        while !holds(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => {
                    panic!(
                        "timed out waiting for {expected}; the screen is\n{}",
                        self.contents()
                    )
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!(
                        "dicta ended before {expected}; the screen was\n{}",
                        self.contents()
                    )
                }
            }
        }
        self
    }

    /// Reads output until the screen contains this text.
    pub(super) fn until_shown(&mut self, text: &str) -> &mut Self {
        self.until(text, |pty| pty.contents().contains(text))
    }

    /// Reads output until a condition outside the screen holds, for example that a file exists.
    pub(super) fn until_true(&mut self, expected: &str, holds: impl Fn() -> bool) -> &mut Self {
        let deadline = Instant::now() + MAX_WAIT;
        while !holds() {
            assert!(
                Instant::now() < deadline,
                "timed out waiting for {expected}; the screen is\n{}",
                self.contents()
            );
            if let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(20)) {
                self.take(&bytes);
            }
        }
        self
    }

    /// Reads output until the screen reports the end of a run.
    pub(super) fn until_run(&mut self) -> &mut Self {
        // The notice begins with the four letters of the run: `run kvqa: `.
        let reports_end = |pty: &Self| {
            pty.contents().match_indices("run ").any(|(at, _)| {
                let rest = &pty.contents()[at + 4..];
                rest.get(..6).is_some_and(|name| {
                    name.ends_with(": ") && name[..4].bytes().all(|b| b.is_ascii_lowercase())
                })
            })
        };
        self.until("the end of the run", reports_end)
    }

    /// Passes output to the terminal emulator.
    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.written.extend_from_slice(bytes);
    }

    /// Changes the number of columns of the window. The terminal emulator keeps its size, which must be at least as wide.
    pub(super) fn resize(&mut self, columns: u16) -> &mut Self {
        let master = self.master.as_ref().expect("the terminal is open");
        let size = PtySize {
            rows: ROWS.get(),
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        master.resize(size).expect("the window is resized");
        self
    }

    /// Closes the terminal while the program runs.
    pub(super) fn hang_up(&mut self) {
        self.stops_reading.store(true, Ordering::SeqCst);
        let master = self.master.take().expect("the terminal is open");
        // The reader thread keeps the terminal open until its next read. The new size makes the program draw a frame.
        master
            .resize(PtySize {
                rows: 30,
                cols: 100,
                pixel_width: 0,
                pixel_height: 0,
            })
            .expect("the window is resized");
        let reader_thread = self.reader_thread.take().expect("a reader thread");
        reader_thread.join().expect("the reader thread ends");
        self.keys = None;
    }

    /// Reads output until the program ends.
    pub(super) fn ended(&mut self) -> Ended {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the status of the process") {
                let after = began.elapsed();
                // The last output may arrive later: the reader thread ends when the program's end of the terminal is
                // closed.
                while let Ok(bytes) = self.bytes.recv_timeout(Duration::from_secs(1)) {
                    self.take(&bytes);
                }
                return Ended {
                    code: status.exit_code(),
                    after,
                };
            }
            assert!(
                began.elapsed() < MAX_WAIT,
                "dicta does not end: {}",
                self.contents()
            );
            if let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(5)) {
                self.take(&bytes);
            }
        }
    }

    /// Returns the terminal modes that the program did not reset as often as it set them: `1049: 1`.
    pub(super) fn unbalanced(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.written);
        let mut balance = std::collections::BTreeMap::<&str, i64>::new();
        for rest in text.split("\x1b[?").skip(1) {
            let Some(end) = rest.find(|c: char| !c.is_ascii_digit()) else {
                continue;
            };
            match rest.as_bytes()[end] {
                b'h' => *balance.entry(&rest[..end]).or_default() += 1,
                b'l' => *balance.entry(&rest[..end]).or_default() -= 1,
                _ => {}
            }
        }
        // Each frame hides the cursor again (25), so the test asks the emulator if the cursor is visible at the end. dicta
        // ends a frame (2026) once more at its exit, because the last one may be incomplete.
        balance
            .into_iter()
            .filter(|(mode, sum)| match *mode {
                "2026" => *sum > 0,
                // dicta resets the other modes, and sets line wrapping (7), because an editor may have changed them.
                "25" | "1" | "7" | "1003" | "1005" | "1015" => false,
                _ => *sum != 0,
            })
            .map(|(mode, sum)| format!("{mode}: {sum}"))
            .collect()
    }

    /// Returns true if the cursor is hidden.
    pub(super) fn cursor_hidden(&self) -> bool {
        self.screen.screen().hide_cursor()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}
