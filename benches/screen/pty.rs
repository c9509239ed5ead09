//! The built program on a terminal of its own, seen through an independent terminal parser.

use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Longer than any promise. A state that takes longer counts as one that never appears.
const NEVER: Duration = Duration::from_mins(1);

/// The end of a frame: the end of a synchronized update.
const END: &[u8] = b"\x1b[?2026l";

/// A terminal with the program on it.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    seen: Arc<Seen>,
}

struct Seen {
    screen: Mutex<vt100::Parser>,
    changed: Condvar,
}

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).expect("a terminal has rows and columns")
}

fn pty_size(columns: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols: columns,
        pixel_width: 0,
        pixel_height: 0,
    }
}

impl Terminal {
    /// Starts the program in a folder, which also contains its data directory.
    pub(crate) fn start(args: &[&str], dir: &Path, columns: u16, rows: u16) -> Self {
        let pair = native_pty_system()
            .openpty(pty_size(columns, rows))
            .expect("a pty");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_dicta"));
        command.args(args);
        command.cwd(dir);
        command.env("DICTA_DATA_DIR", dir.join("data"));
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        command.env_remove("NO_COLOR");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let keys = pair.master.take_writer().expect("a writer");
        let child = pair.slave.spawn_command(command).expect("it starts");
        drop(pair.slave);
        let seen = Arc::new(Seen {
            screen: Mutex::new(vt100::Parser::new(cells(rows), cells(columns), 0)),
            changed: Condvar::new(),
        });
        let witness = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            let mut held = Vec::new();
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                held.extend_from_slice(&buffer[..n]);
                // Half a frame is not shown: it can contain parts of the screen before it.
                let Some(end) = held.windows(END.len()).rposition(|part| part == END) else {
                    continue;
                };
                let rest = held.split_off(end + END.len());
                witness.screen.lock().expect("no panic").process(&held);
                witness.changed.notify_all();
                held = rest;
            }
        });
        Self {
            child,
            master: pair.master,
            keys,
            seen,
        }
    }

    /// Presses keys: their bytes.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
        self.keys.flush().expect("the terminal takes keys");
    }

    /// Waits until the screen is as wanted, and returns the time. A minute means never.
    pub(crate) fn until(&self, wanted: impl Fn(&str) -> bool) -> Duration {
        let start = Instant::now();
        let mut screen = self.seen.screen.lock().expect("no panic");
        while !wanted(&screen.screen().contents()) {
            let left = NEVER.saturating_sub(start.elapsed());
            if left.is_zero() {
                println!("  never: the screen was\n{}", screen.screen().contents());
                break;
            }
            screen = self
                .seen
                .changed
                .wait_timeout(screen, left)
                .expect("no panic")
                .0;
        }
        start.elapsed()
    }

    /// The text of the screen.
    pub(crate) fn contents(&self) -> String {
        self.seen
            .screen
            .lock()
            .expect("no panic")
            .screen()
            .contents()
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let mut screen = self.seen.screen.lock().expect("no panic");
        screen.set_size(cells(rows), cells(columns));
        self.master
            .resize(pty_size(columns, rows))
            .expect("resized");
    }

    /// CPU time of the program so far, and its memory in MiB.
    pub(crate) fn took(&self) -> (Duration, u64) {
        let id = self.child.process_id().unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let kib = status
            .lines()
            .find_map(|l| {
                l.strip_prefix("VmRSS:")?
                    .trim()
                    .strip_suffix(" kB")?
                    .trim()
                    .parse::<u64>()
                    .ok()
            })
            .unwrap_or(0);
        // The fields `utime` and `stime`.
        let time = read_processor_time(&id.to_string(), 11);
        (time, kib / 1024)
    }

    /// True if the program runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Returns the sum of two times on the processor in the file `stat` of a process: those after `skipped` fields that follow
/// its name.
pub(crate) fn read_processor_time(process: &str, skipped: usize) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(skipped).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
