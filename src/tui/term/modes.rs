//! The terminal modes of the workbench, and their restoration after any other program used the terminal.

use std::io::{self, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Alternate screen, hidden cursor, clicks, drags and the wheel, bracketed paste, focus events. Not every pointer
/// movement, which would wake an idle program.
const ENABLE_SEQUENCE: &[u8] =
    b"\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[2J\x1b[H";
/// The reverse of [`ENABLE_SEQUENCE`] in reverse order, and the attributes that an interrupted frame leaves on.
const DISABLE_SEQUENCE: &[u8] =
    b"\x1b[?2026l\x1b[0m\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?25h\x1b[?1049l";

/// Modes that a crashed editor may leave on: a scrolling region, reports of all pointer movements, old click encodings,
/// application keys, no line wrapping. The reset of the region moves the cursor, so its place is saved: after the
/// workbench, the shell continues there.
const RESET_AFTER_EDITOR: &[u8] =
    b"\x1b7\x1b[r\x1b8\x1b[?1003l\x1b[?1005l\x1b[?1015l\x1b[?1l\x1b>\x1b[>4m\x1b[?7h\x1b[0m";

/// True while the workbench has the terminal. A global, because a process has only one terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Returns true while the workbench has the terminal.
pub(super) fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Takes the terminal. If it fails halfway, restores the terminal.
pub(super) fn take_terminal() -> io::Result<()> {
    // Set first, so that a panic during the change restores the terminal.
    TAKEN.store(true, Ordering::SeqCst);
    // A shell may have changed the settings since the first time, so save them again.
    let _as_before = disable_raw_mode();
    let took = enable_raw_mode().and_then(|()| write_all(ENABLE_SEQUENCE));
    if took.is_err() {
        restore_terminal();
    }
    took
}

/// Restores the terminal if the workbench has it. Runs every step, even after an error. Callable from any thread.
pub(super) fn restore_terminal() {
    // `swap` lets only one thread restore, if two try at the same time.
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that refuses one write can accept the next. One that is gone refuses both at once.
        let _gone = write_all(DISABLE_SEQUENCE).or_else(|_| write_all(DISABLE_SEQUENCE));
        let _gone = disable_raw_mode();
    }
}

/// Restores only the line settings, which never blocks on the terminal.
pub(super) fn restore_line_settings() {
    let _gone = disable_raw_mode();
}

/// The line settings of the terminal while the workbench does not have it.
#[derive(Debug)]
pub(super) struct LineSettings(Termios);

impl LineSettings {
    /// Returns the current settings, or None if the terminal does not report them.
    pub(super) fn current() -> Option<Self> {
        tcgetattr(io::stdin()).ok().map(Self)
    }

    /// Restores these settings, whatever another program changed.
    pub(super) fn restore(&self) {
        let _gone = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        let _gone = write_all(RESET_AFTER_EDITOR);
    }
}

/// Writes with a system call, without buffers and locks, because a panicking thread may hold those.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let out = io::stdout();
    while !bytes.is_empty() {
        // A write can be partial or interrupted by a signal, so repeat it.
        match rustix::io::write(out.as_fd(), bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The writer of frames. Writes each frame with one call. Drops the rest of a frame once the terminal is
/// released, so that no half frame appears on the normal screen.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    file: std::fs::File,
    buffered: Vec<u8>,
}

impl FrameWriter {
    /// Returns a writer to standard output.
    pub(super) fn new() -> io::Result<Self> {
        let fd: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self {
            file: fd.into(),
            buffered: Vec::new(),
        })
    }
}

impl Write for FrameWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffered.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.buffered);
        // The editor may have the terminal by now, and half a frame would appear in it.
        if is_taken() {
            self.file.write_all(&frame)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_that_is_set_is_reset() {
        let modes = |bytes: &[u8], end: char| -> Vec<String> {
            let text = String::from_utf8(bytes.to_vec()).expect("ASCII");
            let mut modes: Vec<String> = text
                .split("\x1b[?")
                .skip(1)
                .filter_map(|rest| {
                    let at = rest.find(|c: char| !c.is_ascii_digit())?;
                    rest[at..].starts_with(end).then(|| rest[..at].to_owned())
                })
                .collect();
            modes.sort();
            modes
        };
        // The cursor is the one mode that is taken by resetting it.
        let mut set = modes(ENABLE_SEQUENCE, 'h');
        set.extend(modes(ENABLE_SEQUENCE, 'l'));
        let mut reset = modes(DISABLE_SEQUENCE, 'l');
        reset.extend(modes(DISABLE_SEQUENCE, 'h'));
        reset.retain(|mode| mode != "2026");
        set.sort();
        reset.sort();
        assert_eq!(set, reset);
    }
}
