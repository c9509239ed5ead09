//! The end of all supervised process groups when dicta ends.
//!
//! Covers a return from `main`, a panic and a signal. SIGKILL gives dicta no time to act: a server then sees that its
//! standard input closed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, mpsc};

use rustix::event::{Timespec, poll};
use rustix::process::{Signal, WaitOptions, waitpid};
use tokio::signal::unix::{SignalKind, signal};

use super::GroupId;
use crate::model::Millis;

/// The signals that end a group, with the time that the group gets after each.
pub(super) const TERMINATION_STEPS: [(Signal, Millis); 2] =
    [(Signal::TERM, SIGTERM_GRACE), (Signal::KILL, Millis(300))];
/// The time that a group gets after SIGTERM.
const SIGTERM_GRACE: Millis = Millis(800);
/// The time between two checks of whether a group has ended.
pub(super) const POLL_INTERVAL: Millis = Millis(20);

/// The state of the reaper. It is process-wide, because the signals are.
struct ReaperState {
    live_groups: Mutex<Vec<GroupId>>,
    /// The number of [`ExitSignalsHandled`] values.
    exit_signal_handlers: AtomicUsize,
    watcher: Once,
    /// Held during a reap, so that a second caller returns only after the groups have ended.
    reaping: Mutex<()>,
    /// True once the watcher thread ends dicta: its exit code then wins over the command's.
    exiting_on_signal: AtomicBool,
}

static STATE: ReaperState = ReaperState {
    live_groups: Mutex::new(Vec::new()),
    exit_signal_handlers: AtomicUsize::new(0),
    watcher: Once::new(),
    reaping: Mutex::new(()),
    exiting_on_signal: AtomicBool::new(false),
};

fn lock_live_groups() -> MutexGuard<'static, Vec<GroupId>> {
    STATE
        .live_groups
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Adds a group to those that end with dicta.
pub(super) fn register(group: GroupId) {
    lock_live_groups().push(group);
    watch_exit_signals();
}

/// Removes a group that has ended.
pub(super) fn unregister(group: GroupId) {
    lock_live_groups().retain(|live| *live != group);
}

/// Ends every supervised process group when dropped. `main` holds it, so a return and a panic both end the groups.
#[derive(Debug)]
pub struct ProcessReaper;

impl Drop for ProcessReaper {
    fn drop(&mut self) {
        reap_process_groups();
        // If the watcher thread is ending dicta, its exit code must win: wait for its `exit` instead of returning from
        // `main` with the code that the command made of its servers' end.
        for _ in 0..SIGTERM_GRACE.0 / POLL_INTERVAL.0 {
            if !STATE.exiting_on_signal.load(Ordering::SeqCst) {
                return;
            }
            sleep_poll_interval();
        }
    }
}

/// Ends every supervised process group: sends SIGTERM, waits, then sends SIGKILL.
///
/// Blocks for about a second at most, and not at all without groups. For code that ends dicta without returning.
pub fn reap_process_groups() {
    // Two callers at the same time would send signals twice; the second waits for the first.
    let _reaping = STATE.reaping.lock().unwrap_or_else(PoisonError::into_inner);
    // The list is emptied, so that a later call has nothing left to end.
    let mut groups = std::mem::take(&mut *lock_live_groups());
    for (signal, grace) in TERMINATION_STEPS {
        for group in &groups {
            group.send_signal(signal);
        }
        for _ in 0..grace.0 / POLL_INTERVAL.0 {
            groups.retain(|group| {
                // An ended leader keeps its group alive until its parent, dicta, waits for it.
                let _status = waitpid(Some(group.0), WaitOptions::NOHANG);
                group.is_alive()
            });
            if groups.is_empty() {
                return;
            }
            sleep_poll_interval();
        }
    }
}

/// Waits for [`POLL_INTERVAL`]. Needs no tokio runtime, which may be gone when dicta ends.
fn sleep_poll_interval() {
    let nanoseconds = i64::try_from(POLL_INTERVAL.0 * 1_000_000).unwrap_or(0);
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    };
    let _no_events = poll(&mut [], Some(&timeout));
}

/// A declaration that its holder handles the signals that end dicta: it returns from `main` or calls
/// [`reap_process_groups`].
///
/// Without such a value, the watcher thread ends dicta on a signal, once a process group was registered.
#[derive(Debug)]
pub struct ExitSignalsHandled(());

impl ExitSignalsHandled {
    /// Starts the declaration; dropping the value ends it.
    #[must_use]
    pub fn new() -> Self {
        STATE.exit_signal_handlers.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Default for ExitSignalsHandled {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ExitSignalsHandled {
    fn drop(&mut self) {
        STATE.exit_signal_handlers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Starts the thread that ends the groups and then dicta on a signal. Returns after it listens: a signal before that
/// would end dicta alone. Call it before a program starts.
pub fn watch_exit_signals() {
    // Listening to signals changes their default action, so it starts only when a program runs.
    STATE.watcher.call_once(|| {
        let (listening, is_listening) = mpsc::channel();
        // A thread of its own also works when the command's runtime is stuck or gone. If it cannot start, servers still
        // see that their standard input closed.
        let _not_started = std::thread::Builder::new()
            .name("process-reaper".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_io()
                    .build();
                if let Ok(runtime) = runtime {
                    runtime.block_on(exit_on_signal(listening));
                }
            });
        // An error means that the thread does not listen: it dropped its end.
        let _listening_or_not = is_listening.recv();
    });
}

#[expect(
    clippy::exit,
    reason = "replaces the signal's default action, which listening to the signal turned off"
)]
async fn exit_on_signal(listening: mpsc::Sender<()>) {
    let (Ok(mut hangup), Ok(mut interrupt), Ok(mut terminate)) = (
        // Without the listeners, the default action of the signals ends dicta.
        signal(SignalKind::hangup()),
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return;
    };
    let _starter_waits = listening.send(());
    loop {
        // 128 + the signal's number, as shells report it.
        let code = tokio::select! {
            _ = hangup.recv() => 129,
            _ = interrupt.recv() => 130,
            _ = terminate.recv() => 143,
        };
        // A command that handles the signals ends the groups itself.
        if STATE.exit_signal_handlers.load(Ordering::SeqCst) == 0 {
            STATE.exiting_on_signal.store(true, Ordering::SeqCst);
            reap_process_groups();
            std::process::exit(code);
        }
    }
}
