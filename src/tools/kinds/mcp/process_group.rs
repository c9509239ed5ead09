//! The processes of MCP servers, and their end. Unix only.
//!
//! Each server leads a process group of its own, so that what it started (`npx` → `sh` → `node`) ends with it and the
//! terminal's ctrl-c is not for it. A connection that closes ends its group itself, politely; [`reap_all`] ends the groups
//! that are left when dicta goes, whatever way it goes. Only SIGKILL leaves dicta no moment: a server then sees its standard
//! input closed.

use std::collections::BTreeSet;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpid,
};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock as _, SystemClock};
use crate::model::Millis;
use crate::net::with_timeout;

/// How long a server gets to end by itself once its standard input is closed.
const STDIN_CLOSED_GRACE: Millis = Millis(500);
/// How long it gets after SIGTERM.
const SIGTERM_GRACE: Millis = Millis(800);
/// How long the system gets to take it away after SIGKILL.
const SIGKILL_GRACE: Millis = Millis(300);
/// Between two looks.
const POLL_INTERVAL: Millis = Millis(20);

/// Groups that live, by the number of their first process.
static LIVE_GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// How many listen to the signals that end dicta, and see to its end themselves.
static EXIT_SIGNAL_HANDLERS: AtomicUsize = AtomicUsize::new(0);
static SIGNAL_WATCHER: Once = Once::new();
/// Whoever ends what is left: a second one waits until the first is done.
static REAP_LOCK: Mutex<()> = Mutex::new(());
/// A signal is ending dicta, here: with what code is not for others to say.
static EXITING_ON_SIGNAL: AtomicBool = AtomicBool::new(false);

fn lock_live_groups() -> MutexGuard<'static, BTreeSet<i32>> {
    LIVE_GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_group_alive(group: Pid) -> bool {
    !matches!(test_kill_process_group(group), Err(Errno::SRCH))
}

fn signal_group(group: Pid, with: Signal) {
    // It may be gone already.
    let _gone = kill_process_group(group, with);
}

/// How a process ended: known once its leash has ended it, or seen it end.
#[derive(Debug, Default)]
pub(super) struct ProcessExit {
    status: OnceLock<ExitStatus>,
    /// It is over.
    pub(super) ended: CancellationToken,
}

impl ProcessExit {
    /// How it ended, where it did so by itself.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        self.status.get().copied()
    }
}

/// A server's process and all that it started. Ended when dropped.
pub(super) struct ProcessGroup {
    child: Option<Child>,
    group: Pid,
    exit: Arc<ProcessExit>,
    /// Whether it was dropped once already.
    was_dropped: bool,
}

impl ProcessGroup {
    /// Takes a process that leads a group of its own. `None` if it is gone already.
    pub(super) fn new(child: Child, gone: Arc<ProcessExit>) -> Option<Self> {
        let id = i32::try_from(child.id()?).ok()?;
        let group = Pid::from_raw(id)?;
        lock_live_groups().insert(id);
        start_signal_watcher();
        Some(Self {
            child: Some(child),
            group,
            exit: gone,
            was_dropped: false,
        })
    }

    /// Ends it, its standard input being closed: waits, then SIGTERM, then SIGKILL.
    pub(super) async fn terminate(&mut self) {
        let group = self.group;
        let Some(child) = &mut self.child else {
            return;
        };
        let clock = SystemClock::new();
        if let Some(Ok(status)) = with_timeout(&clock, STDIN_CLOSED_GRACE, child.wait()).await {
            // It is set once: nobody else ends it.
            let _first = self.exit.status.set(status);
        }
        for (with, patience) in [(Signal::TERM, SIGTERM_GRACE), (Signal::KILL, SIGKILL_GRACE)] {
            if !is_group_alive(group) {
                break;
            }
            signal_group(group, with);
            let gone = async {
                while is_group_alive(group) {
                    // What has ended is alive until somebody asks how.
                    let _asked = child.try_wait();
                    clock.sleep(POLL_INTERVAL).await;
                }
            };
            let _late = with_timeout(&clock, patience, gone).await;
        }
        self.child = None;
        lock_live_groups().remove(&group.as_raw_nonzero().get());
        self.exit.ended.cancel();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else {
            return;
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if !self.was_dropped => {
                let mut rest = Self {
                    child: Some(child),
                    group: self.group,
                    exit: Arc::clone(&self.exit),
                    was_dropped: true,
                };
                runtime.spawn(async move { rest.terminate().await });
            }
            // A runtime that is being shut down runs nothing more. It stays in the list: [`reap_all`] sees to the rest.
            _ => signal_group(self.group, Signal::TERM),
        }
    }
}

/// Ends every server that lives: SIGTERM, and after a moment SIGKILL. Blocks for about a second at most; at once where
/// there is none.
pub(in super::super) fn reap_process_groups() {
    let _alone = REAP_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let mut groups: Vec<Pid> = std::mem::take(&mut *lock_live_groups())
        .into_iter()
        .filter_map(Pid::from_raw)
        .collect();
    for (with, patience) in [(Signal::TERM, SIGTERM_GRACE), (Signal::KILL, SIGKILL_GRACE)] {
        for group in &groups {
            signal_group(*group, with);
        }
        for _ in 0..patience.0 / POLL_INTERVAL.0 {
            groups.retain(|group| {
                let _asked = waitpid(Some(*group), WaitOptions::NOHANG);
                is_group_alive(*group)
            });
            if groups.is_empty() {
                return;
            }
            sleep_poll_interval();
        }
    }
}

/// As [`reap_all`], on the way out of `main`: where a signal is ending dicta, that gives the exit code, and not what the
/// command made of its servers' end.
pub(in super::super) fn reap_at_exit() {
    reap_process_groups();
    for _ in 0..SIGTERM_GRACE.0 / POLL_INTERVAL.0 {
        if !EXITING_ON_SIGNAL.load(Ordering::SeqCst) {
            return;
        }
        sleep_poll_interval();
    }
}

/// Waits for [`LOOK`] without a runtime.
fn sleep_poll_interval() {
    let nanoseconds = i64::try_from(POLL_INTERVAL.0 * 1_000_000).unwrap_or(0);
    let _nothing = poll(
        &mut [],
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: nanoseconds,
        }),
    );
}

/// While one is alive, somebody listens to the signals that end dicta, and its end is theirs.
#[derive(Debug)]
pub(in super::super) struct McpExitSignalsHandled(());

impl McpExitSignalsHandled {
    pub(in super::super) fn new() -> Self {
        EXIT_SIGNAL_HANDLERS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for McpExitSignalsHandled {
    fn drop(&mut self) {
        EXIT_SIGNAL_HANDLERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From the first server on: a signal that ends dicta ends its servers before. On a thread of its own, so that it works
/// when the command's runtime is stuck or gone.
fn start_signal_watcher() {
    SIGNAL_WATCHER.call_once(|| {
        // Without it servers still see their standard input closed.
        let _unwatched = std::thread::Builder::new()
            .name("mcp-reaper".to_owned())
            .spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_io()
                    .build();
                if let Ok(runtime) = runtime {
                    runtime.block_on(exit_on_signal());
                }
            });
    });
}

#[expect(
    clippy::exit,
    reason = "it stands in for the signal's own effect, which listening to it took away"
)]
async fn exit_on_signal() {
    let (Ok(mut hangup), Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::hangup()),
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return;
    };
    loop {
        let code = tokio::select! {
            _ = hangup.recv() => 129,
            _ = interrupt.recv() => 130,
            _ = terminate.recv() => 143,
        };
        if EXIT_SIGNAL_HANDLERS.load(Ordering::SeqCst) == 0 {
            EXITING_ON_SIGNAL.store(true, Ordering::SeqCst);
            reap_process_groups();
            std::process::exit(code);
        }
    }
}
