//! Which modes a terminal is put into, and how it gets every one of them back, whatever happened in between.

use std::io::{self, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Alternate screen, no cursor, clicks, drags and the wheel (not every move of the pointer: it would wake an idle
/// program), bracketed paste, focus.
const ENABLE_SEQUENCE: &[u8] =
    b"\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[2J\x1b[H";
/// The reverse, last one first; and what a frame that was cut short may have left on.
const DISABLE_SEQUENCE: &[u8] =
    b"\x1b[?2026l\x1b[0m\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?25h\x1b[?1049l";

/// What an editor that was killed, or has no manners, leaves on and nobody wants: every move of the pointer reported, old
/// spellings of clicks, application keys, no wrapping, a scrolling region.
const RESET_AFTER_EDITOR: &[u8] =
    b"\x1b[?1003l\x1b[?1005l\x1b[?1015l\x1b[?1l\x1b>\x1b[>4m\x1b[?7h\x1b[r\x1b[0m";

/// Whether the terminal is ours now. One process has one terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether the terminal is ours now.
pub(super) fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Takes the terminal. If only half of it worked, that half is given back.
pub(super) fn take_terminal() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    // Not only once: a shell that had the terminal meanwhile may have set it as it likes it.
    let _as_before = disable_raw_mode();
    let took = enable_raw_mode().and_then(|()| write_all(ENABLE_SEQUENCE));
    if took.is_err() {
        restore_terminal();
    }
    took
}

/// Gives the terminal back, if it is ours: every step, even where one before it failed. Safe to call from anywhere.
pub(super) fn restore_terminal() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _gone = write_all(DISABLE_SEQUENCE);
        let _gone = disable_raw_mode();
    }
}

/// Of what there is to give back, that which never waits for the terminal.
pub(super) fn restore_line_settings() {
    let _gone = disable_raw_mode();
}

/// How the terminal is set, while it is not ours.
#[derive(Debug)]
pub(super) struct LineSettings(Termios);

impl LineSettings {
    /// As it is now; nothing if it does not say.
    pub(super) fn current() -> Option<Self> {
        tcgetattr(io::stdin()).ok().map(Self)
    }

    /// Sets it so again, whatever somebody left it in.
    pub(super) fn restore(&self) {
        let _gone = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        let _gone = write_all(RESET_AFTER_EDITOR);
    }
}

/// Past every buffer and lock: a thread that panics may hold them.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let out = io::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(out.as_fd(), bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Where frames are written: a whole frame is one write, and what is left of one is dropped once the terminal is not ours
/// any more, so that no half frame lands on the normal screen.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    file: std::fs::File,
    buffered: Vec<u8>,
}

impl FrameWriter {
    /// The program's standard output.
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
        let held = std::mem::take(&mut self.buffered);
        if is_taken() {
            self.file.write_all(&held)?;
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
