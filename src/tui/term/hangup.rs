//! Notices that the terminal has vanished, and ends the program if it does not end by itself.
//!
//! The reader of crossterm does not notice: it reads end of file forever. The process may also ignore SIGHUP.
//! So a thread waits for the hangup with `poll`. It also ends the program after a signal if the main thread is
//! blocked, for example on a full terminal.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::modes;

/// The time that the program has to end after a hangup or a signal; then the thread ends it.
const GRACE_PERIOD: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 700_000_000,
};
/// The exit status after a hangup, as after SIGHUP.
const SIGHUP_NUMBER: u8 = 1;

/// A running watcher. It stops when dropped.
#[derive(Debug)]
pub(crate) struct HangupWatcher {
    _stop: PipeWriter,
}

/// The pipe that carries the numbers of fatal signals to the watcher.
#[derive(Debug)]
pub(super) struct ExitDeadline(PipeWriter);

impl ExitDeadline {
    /// Starts the grace period of the program.
    pub(super) fn start(&mut self, signal: u8) {
        // An error means that the watcher has already ended, so ignore it.
        let _ended = self.0.write_all(&[signal]);
    }
}

/// Starts a watcher. Calls `gone` when the terminal on standard input vanishes. Then, and after a signal, ends the
/// program after the grace period. All printed events are recorded by then, so no data is lost.
pub(super) fn watch_terminal(
    gone: impl FnOnce() + Send + 'static,
) -> io::Result<(HangupWatcher, ExitDeadline)> {
    // A copy of the descriptor stays open, even if standard input is closed.
    let tty = io::stdin().as_fd().try_clone_to_owned()?;
    let (stopped, stop) = io::pipe()?;
    let (mut signalled, signal) = io::pipe()?;
    std::thread::Builder::new()
        .name("hangup".to_owned())
        .spawn(move || {
            let stopped = OwnedFd::from(stopped);
            match wait_for_hangup(&tty, &stopped, &mut signalled) {
                None => {}
                Some(SIGHUP_NUMBER) => {
                    gone();
                    end_unless_stopped(&stopped, SIGHUP_NUMBER);
                }
                Some(signal) => end_unless_stopped(&stopped, signal),
            }
        })?;
    Ok((HangupWatcher { _stop: stop }, ExitDeadline(signal)))
}

/// Waits for the number of a fatal signal; a hangup counts as SIGHUP. Returns None when the watcher is stopped.
fn wait_for_hangup(tty: &OwnedFd, stopped: &OwnedFd, signalled: &mut PipeReader) -> Option<u8> {
    loop {
        let mut fds = [
            // No events are requested: `poll` reports a hangup in any case.
            PollFd::new(tty, PollFlags::empty()),
            PollFd::new(stopped, PollFlags::IN),
            PollFd::new(&*signalled, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            // A signal such as SIGWINCH interrupts the wait.
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
            // The stop has priority: a program that ends normally must not be killed by a hangup.
            Ok(_) if !fds[1].revents().is_empty() => return None,
            Ok(_) => {
                let over = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
                if fds[0].revents().intersects(over) {
                    return Some(SIGHUP_NUMBER);
                }
                if !fds[2].revents().is_empty() {
                    let mut signal = [0];
                    return signalled.read_exact(&mut signal).ok().map(|()| signal[0]);
                }
            }
        }
    }
}

#[expect(
    clippy::exit,
    reason = "the last resort: the main thread is blocked on a terminal that vanished or accepts no output"
)]
fn end_unless_stopped(stopped: &OwnedFd, signal: u8) {
    let mut fds = [PollFd::new(stopped, PollFlags::IN)];
    // `Ok(0)` means that the time is over and the program has not stopped the watcher.
    if matches!(poll(&mut fds, Some(&GRACE_PERIOD)), Ok(0)) {
        // `exit` runs no destructors, so do here what must not be left out: settings first, then the children.
        modes::restore_line_settings();
        crate::process::reap_process_groups();
        std::process::exit(128 + i32::from(signal));
    }
}
