//! Notices that the terminal is gone. crossterm's reader does not (it reads an end of file for ever), and the signal that
//! says so may be ignored; so a thread of our own asks the system, blocked until it happens.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A program that has not ended so long after its terminal is ended.
const GRACE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 700_000_000,
};
/// As if ended by SIGHUP.
const CODE: i32 = 129;

/// Watches until it is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    _stop: PipeWriter,
}

/// Calls `gone` once the terminal on standard input is gone. Should the program not end by itself then, it is ended:
/// whatever is stuck, nothing that was shown is unrecorded.
pub(super) fn watch(gone: impl FnOnce() + Send + 'static) -> io::Result<Guard> {
    let tty = io::stdin().as_fd().try_clone_to_owned()?;
    let (stopped, stop) = io::pipe()?;
    std::thread::Builder::new()
        .name("hangup".to_owned())
        .spawn(move || {
            let stopped = OwnedFd::from(stopped);
            if hung_up(&tty, &stopped) {
                gone();
                end_unless_stopped(&stopped);
            }
        })?;
    Ok(Guard { _stop: stop })
}

/// Waits: `true` once the terminal is gone and the program may go on for a moment, `false` if nobody wants to know.
fn hung_up(tty: &OwnedFd, stopped: &OwnedFd) -> bool {
    loop {
        let mut fds = [
            PollFd::new(tty, PollFlags::empty()),
            PollFd::new(stopped, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) if !fds[1].revents().is_empty() => return false,
            Ok(_) => {
                let over = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
                if fds[0].revents().intersects(over) {
                    return true;
                }
            }
        }
    }
}

#[expect(
    clippy::exit,
    reason = "the last resort: the main thread is stuck on a terminal that is gone"
)]
fn end_unless_stopped(stopped: &OwnedFd) {
    let mut fds = [PollFd::new(stopped, PollFlags::IN)];
    if matches!(poll(&mut fds, Some(&GRACE)), Ok(0)) {
        std::process::exit(CODE);
    }
}
