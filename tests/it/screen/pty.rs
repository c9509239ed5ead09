//! The built program in a terminal of its own, and what an independent terminal makes of what it writes.

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

/// What is waited for comes within this, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(40);

/// The size of the screen.
const ROWS: NonZero<u16> = NonZero::new(40).expect("not 0");
/// See [`ROWS`].
const COLUMNS: NonZero<u16> = NonZero::new(120).expect("not 0");

pub(super) struct Pty {
    child: Box<dyn Child + Send + Sync>,
    master: Option<Box<dyn MasterPty + Send>>,
    keys: Option<Box<dyn std::io::Write + Send>>,
    bytes: Receiver<Vec<u8>>,
    /// Read no more.
    deaf: Arc<AtomicBool>,
    reading: Option<JoinHandle<()>>,
    screen: vt100::Parser,
    /// The terminal's settings before the program started.
    first_modes: String,
    /// Everything it wrote.
    pub(super) written: Vec<u8>,
    home: TempDir,
}

/// How a program ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: u32,
    pub(super) after: Duration,
}

impl Pty {
    /// `dicta ARGS` on a screen of 120×40, with a home of its own.
    pub(super) fn start(args: &[&str]) -> Self {
        Self::with(args, |_| {})
    }

    /// As [`Pty::start`]; `set` gets to set variables.
    pub(super) fn with(args: &[&str], set: impl FnOnce(&mut CommandBuilder)) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_dicta"));
        command.args(args);
        Self::spawn(command, set)
    }

    /// As [`Pty::with`], on a screen of 80×24.
    pub(super) fn small(args: &[&str], set: impl FnOnce(&mut CommandBuilder)) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_dicta"));
        command.args(args);
        let side = |length| NonZero::new(length).expect("not 0");
        Self::spawn_at(command, (side(24), side(80)), set)
    }

    /// `dicta` in the place of a shell that did this first.
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
        let first_modes = format!("{:?}", pair.master.get_termios().expect("it has some"));
        let child = pair.slave.spawn_command(command).expect("it starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let keys = pair.master.take_writer().expect("a writer");
        let (send, bytes) = channel();
        let deaf = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&deaf);
        let reading = std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            // An error: the program has closed its end.
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if told.load(Ordering::SeqCst) || send.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            master: Some(pair.master),
            keys: Some(keys),
            bytes,
            deaf,
            reading: Some(reading),
            screen: vt100::Parser::new(rows, columns, 0),
            first_modes,
            written: Vec::new(),
            home,
        }
    }

    /// Its home.
    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The unpacked demo's folder.
    pub(super) fn demo(&self) -> PathBuf {
        let data = std::fs::read_dir(self.home().join("data")).expect("a data directory");
        data.flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with("demo-"))
            .expect("the demo is unpacked")
            .path()
            .join("demo")
    }

    /// Its process.
    pub(super) fn id(&self) -> rustix::process::Pid {
        let id = self
            .child
            .process_id()
            .and_then(|id| i32::try_from(id).ok());
        rustix::process::Pid::from_raw(id.expect("it runs")).expect("not 0")
    }

    /// Sends what keys send.
    pub(super) fn type_in(&mut self, keys: &str) -> &mut Self {
        let to = self.keys.as_mut().expect("the terminal is there");
        to.write_all(keys.as_bytes()).expect("typed");
        to.flush().expect("typed");
        self
    }

    /// The screen as an independent terminal has it.
    pub(super) fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    /// Whether the alternate screen is shown.
    pub(super) fn alternate(&self) -> bool {
        self.screen.screen().alternate_screen()
    }

    /// The terminal's settings before the program started, as text.
    pub(super) fn first_modes(&self) -> &str {
        &self.first_modes
    }

    /// The terminal's settings now, as text.
    pub(super) fn modes(&self) -> String {
        let master = self.master.as_ref().expect("the terminal is there");
        format!("{:?}", master.get_termios().expect("it has some"))
    }

    /// Reads on until the screen is so; `what` says what was waited for.
    pub(super) fn until(&mut self, what: &str, enough: impl Fn(&Self) -> bool) -> &mut Self {
        let deadline = Instant::now() + PATIENCE;
        while !enough(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{what} did not come; there is\n{}", self.contents())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("it ended before {what}; there was\n{}", self.contents())
                }
            }
        }
        self
    }

    /// Reads on until this text is shown.
    pub(super) fn until_shown(&mut self, text: &str) -> &mut Self {
        self.until(text, |pty| pty.contents().contains(text))
    }

    /// Reads on until something else than the screen is so, such as a file.
    pub(super) fn until_true(&mut self, what: &str, enough: impl Fn() -> bool) -> &mut Self {
        let deadline = Instant::now() + PATIENCE;
        while !enough() {
            assert!(
                Instant::now() < deadline,
                "{what} did not come; there is\n{}",
                self.contents()
            );
            if let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(20)) {
                self.take(&bytes);
            }
        }
        self
    }

    /// Reads on until a run has ended.
    pub(super) fn until_run(&mut self) -> &mut Self {
        // As the message says it: `run kvqa: `.
        let told = |pty: &Self| {
            pty.contents().match_indices("run ").any(|(at, _)| {
                let rest = &pty.contents()[at + 4..];
                rest.get(..6).is_some_and(|name| {
                    name.ends_with(": ") && name[..4].bytes().all(|b| b.is_ascii_lowercase())
                })
            })
        };
        self.until("the run's end", told)
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.written.extend_from_slice(bytes);
    }

    /// The window gets this many columns, of which the terminal here still shows all.
    pub(super) fn resize(&mut self, columns: u16) -> &mut Self {
        let master = self.master.as_ref().expect("the terminal is there");
        let size = PtySize {
            rows: ROWS.get(),
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        master.resize(size).expect("it has another size");
        self
    }

    /// Takes the terminal away from it.
    pub(super) fn hang_up(&mut self) {
        self.deaf.store(true, Ordering::SeqCst);
        let master = self.master.take().expect("the terminal is there");
        // The reader holds the terminal too, until it next reads something: a frame of another size.
        master
            .resize(PtySize {
                rows: 30,
                cols: 100,
                pixel_width: 0,
                pixel_height: 0,
            })
            .expect("it has another size");
        let reading = self.reading.take().expect("somebody reads");
        reading.join().expect("it reads no more");
        self.keys = None;
    }

    /// Waits for its end, reading on.
    pub(super) fn ended(&mut self) -> Ended {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                let after = began.elapsed();
                // What it wrote last may still be on its way: the reader ends when the terminal's other side is closed.
                while let Ok(bytes) = self.bytes.recv_timeout(Duration::from_secs(1)) {
                    self.take(&bytes);
                }
                return Ended {
                    code: status.exit_code(),
                    after,
                };
            }
            assert!(
                began.elapsed() < PATIENCE,
                "it does not end: {}",
                self.contents()
            );
            if let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(5)) {
                self.take(&bytes);
            }
        }
    }

    /// How often each mode was set and reset: those that are not even.
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
        // 25: hiding is repeated in every frame; that it is shown in the end is asked of the terminal. 2026: a frame that
        // may have been cut short is ended once more.
        balance
            .into_iter()
            .filter(|(mode, sum)| match *mode {
                "2026" => *sum > 0,
                // The others: reset in case an editor left them on, and wrapping set in case it left that off.
                "25" | "1" | "7" | "1003" | "1005" | "1015" => false,
                _ => *sum != 0,
            })
            .map(|(mode, sum)| format!("{mode}: {sum}"))
            .collect()
    }

    /// Whether the cursor is hidden.
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
