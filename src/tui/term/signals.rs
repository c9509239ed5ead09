//! Signals as values.

use std::io;

use rustix::process::{Pid, getpgrp, getpid, getsid, kill_current_process_group, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::hangup::ExitDeadline;
use super::modes;
use crate::process::ExitSignalsHandled;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// To end: its number.
    End(i32),
    /// To stop, as a shell job.
    Stop,
    /// To go on: the terminal may have been somebody else's in between.
    Continue,
}

/// The signals that concern a screen.
pub(crate) struct SignalStream {
    /// Would end the process when a file reaches the limit of its size; listened to, so that the write fails instead and
    /// the failure is told.
    _file_size: Signal,
    hangup: Signal,
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
    stop: Signal,
    continued: Signal,
    _ours: ExitSignalsHandled,
}

impl SignalStream {
    /// Listens from now on.
    pub(super) fn new() -> io::Result<Self> {
        use rustix::process::Signal as S;
        let of = |kind: S| signal(SignalKind::from_raw(kind.as_raw()));
        Ok(Self {
            _file_size: of(S::XFSZ)?,
            hangup: of(S::HUP)?,
            interrupt: of(S::INT)?,
            quit: of(S::QUIT)?,
            terminate: of(S::TERM)?,
            stop: of(S::TSTP)?,
            continued: of(S::CONT)?,
            _ours: ExitSignalsHandled::new(),
        })
    }

    /// The next one.
    pub(crate) async fn next_request(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.hangup.recv() => SignalRequest::End(1),
            _ = self.interrupt.recv() => SignalRequest::End(2),
            // No core: what the terminal was left in would be worse than what one could learn from it.
            _ = self.quit.recv() => SignalRequest::End(3),
            _ = self.terminate.recv() => SignalRequest::End(15),
            _ = self.stop.recv() => SignalRequest::Stop,
            _ = self.continued.recv() => SignalRequest::Continue,
        }
    }
}

/// Sees to it that a signal which ends the program does so soon: by itself, or by force. Returns at once.
pub(super) fn enforce_exit(mut signals: SignalStream, mut deadline: ExitDeadline) {
    tokio::spawn(async move {
        loop {
            // While an editor has the terminal, what is typed there is no signal to us.
            match signals.next_request().await {
                SignalRequest::End(2 | 3) if !modes::is_taken() => {}
                SignalRequest::End(number) => {
                    return deadline.start(u8::try_from(number).unwrap_or(u8::MAX));
                }
                SignalRequest::Stop | SignalRequest::Continue => {}
            }
        }
    });
}

/// Stops the program until somebody continues it; returns then. The whole job is stopped, as the key would have done
/// outside of raw mode: a `cargo run` around us must stop too, or the shell never gets its prompt back.
pub(super) fn stop_job() -> Result<(), String> {
    // Nobody could continue a program that is the first of its session.
    if getsid(None).is_ok_and(|session| session == getpid()) {
        return Err("there is no shell to go back to here: q quits".to_owned());
    }
    kill_current_process_group(rustix::process::Signal::STOP)
        .map_err(|error| format!("dicta cannot be stopped: {error}"))
}

/// Stops this process alone, where the rest of its job stops by itself.
pub(crate) fn stop_this_process() {
    let _gone = kill_process(getpid(), rustix::process::Signal::STOP);
}

/// Tells this process that its window has another size, whether it has or not: whoever waits for a key sees that too.
pub(super) fn send_resize_signal() {
    let _gone = kill_process(getpid(), rustix::process::Signal::WINCH);
}

/// Asks a child to end.
pub(crate) fn terminate_child(id: u32) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|pid| *pid != getpgrp()) {
        let _gone = kill_process(pid, rustix::process::Signal::TERM);
    }
}
