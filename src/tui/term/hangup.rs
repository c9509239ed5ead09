//! Notices that the terminal is gone. crossterm's reader does not (it reads an end of file for ever), and the signal that
//! says so may be ignored; so a thread of our own asks the system, blocked until it happens. It also sees to it that a
//! signal ends the program where the main thread cannot: stuck on a terminal that takes no more, say.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::modes;

/// A program that has not ended so long after its terminal, or after a signal, is ended.
const GRACE_PERIOD: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 700_000_000,
};
/// As if ended by SIGHUP.
const SIGHUP_NUMBER: u8 = 1;

/// Watches until it is dropped.
#[derive(Debug)]
pub(crate) struct HangupWatcher {
    _stop: PipeWriter,
}

/// Where the numbers of signals go that are to end the program.
#[derive(Debug)]
pub(super) struct ExitDeadline(PipeWriter);

impl ExitDeadline {
    /// From now on the program has a moment left.
    pub(super) fn start(&mut self, signal: u8) {
        // An error: nobody watches any more, for it has ended.
        let _ended = self.0.write_all(&[signal]);
    }
}

/// Calls `gone` once the terminal on standard input is gone. Should the program not end by itself then, or after a signal,
/// it is ended: whatever is stuck, nothing that was shown is unrecorded.
pub(super) fn watch_terminal(
    gone: impl FnOnce() + Send + 'static,
) -> io::Result<(HangupWatcher, ExitDeadline)> {
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

/// Waits: the signal that is to end the program, a vanished terminal being one; nothing if nobody wants to know.
fn wait_for_hangup(tty: &OwnedFd, stopped: &OwnedFd, signalled: &mut PipeReader) -> Option<u8> {
    loop {
        let mut fds = [
            PollFd::new(tty, PollFlags::empty()),
            PollFd::new(stopped, PollFlags::IN),
            PollFd::new(&*signalled, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
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
    reason = "the last resort: the main thread is stuck on a terminal that is gone, or takes no more"
)]
fn end_unless_stopped(stopped: &OwnedFd, signal: u8) {
    let mut fds = [PollFd::new(stopped, PollFlags::IN)];
    if matches!(poll(&mut fds, Some(&GRACE_PERIOD)), Ok(0)) {
        modes::restore_line_settings();
        crate::process::reap_process_groups();
        std::process::exit(128 + i32::from(signal));
    }
}
