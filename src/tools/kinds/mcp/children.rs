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
const POLITE: Millis = Millis(500);
/// How long it gets after SIGTERM.
const FIRM: Millis = Millis(800);
/// How long the system gets to take it away after SIGKILL.
const HARD: Millis = Millis(300);
/// Between two looks.
const LOOK: Millis = Millis(20);

/// Groups that live, by the number of their first process.
static LIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// How many listen to the signals that end dicta, and see to its end themselves.
static HANDLED: AtomicUsize = AtomicUsize::new(0);
static WATCH: Once = Once::new();
/// Whoever ends what is left: a second one waits until the first is done.
static REAPING: Mutex<()> = Mutex::new(());
/// A signal is ending dicta, here: with what code is not for others to say.
static ENDING: AtomicBool = AtomicBool::new(false);

fn live() -> MutexGuard<'static, BTreeSet<i32>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_alive(group: Pid) -> bool {
    !matches!(test_kill_process_group(group), Err(Errno::SRCH))
}

fn signal_group(group: Pid, with: Signal) {
    // It may be gone already.
    let _gone = kill_process_group(group, with);
}

/// How a process ended: known once its leash has ended it, or seen it end.
#[derive(Debug, Default)]
pub(super) struct Gone {
    status: OnceLock<ExitStatus>,
    /// It is over.
    pub(super) over: CancellationToken,
}

impl Gone {
    /// How it ended, where it did so by itself.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        self.status.get().copied()
    }
}

/// A server's process and all that it started. Ended when dropped.
pub(super) struct Leash {
    child: Option<Child>,
    group: Pid,
    gone: Arc<Gone>,
    /// Whether it was dropped once already.
    dropped: bool,
}

impl Leash {
    /// Takes a process that leads a group of its own. `None` if it is gone already.
    pub(super) fn new(child: Child, gone: Arc<Gone>) -> Option<Self> {
        let id = i32::try_from(child.id()?).ok()?;
        let group = Pid::from_raw(id)?;
        live().insert(id);
        watch_signals();
        Some(Self {
            child: Some(child),
            group,
            gone,
            dropped: false,
        })
    }

    /// Ends it, its standard input being closed: waits, then SIGTERM, then SIGKILL.
    pub(super) async fn end(&mut self) {
        let group = self.group;
        let Some(child) = &mut self.child else {
            return;
        };
        let clock = SystemClock::new();
        if let Some(Ok(status)) = with_timeout(&clock, POLITE, child.wait()).await {
            // It is set once: nobody else ends it.
            let _first = self.gone.status.set(status);
        }
        for (with, patience) in [(Signal::TERM, FIRM), (Signal::KILL, HARD)] {
            if !is_alive(group) {
                break;
            }
            signal_group(group, with);
            let gone = async {
                while is_alive(group) {
                    // What has ended is alive until somebody asks how.
                    let _asked = child.try_wait();
                    clock.sleep(LOOK).await;
                }
            };
            let _late = with_timeout(&clock, patience, gone).await;
        }
        self.child = None;
        live().remove(&group.as_raw_nonzero().get());
        self.gone.over.cancel();
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else {
            return;
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if !self.dropped => {
                let mut rest = Self {
                    child: Some(child),
                    group: self.group,
                    gone: Arc::clone(&self.gone),
                    dropped: true,
                };
                runtime.spawn(async move { rest.end().await });
            }
            // A runtime that is being shut down runs nothing more. It stays in the list: [`reap_all`] sees to the rest.
            _ => signal_group(self.group, Signal::TERM),
        }
    }
}

/// Ends every server that lives: SIGTERM, and after a moment SIGKILL. Blocks for about a second at most; at once where
/// there is none.
pub(in super::super) fn reap_all() {
    let _alone = REAPING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut groups: Vec<Pid> = std::mem::take(&mut *live())
        .into_iter()
        .filter_map(Pid::from_raw)
        .collect();
    for (with, patience) in [(Signal::TERM, FIRM), (Signal::KILL, HARD)] {
        for group in &groups {
            signal_group(*group, with);
        }
        for _ in 0..patience.0 / LOOK.0 {
            groups.retain(|group| {
                let _asked = waitpid(Some(*group), WaitOptions::NOHANG);
                is_alive(*group)
            });
            if groups.is_empty() {
                return;
            }
            pause();
        }
    }
}

/// As [`reap_all`], on the way out of `main`: where a signal is ending dicta, that gives the exit code, and not what the
/// command made of its servers' end.
pub(in super::super) fn reap_at_exit() {
    reap_all();
    for _ in 0..FIRM.0 / LOOK.0 {
        if !ENDING.load(Ordering::SeqCst) {
            return;
        }
        pause();
    }
}

/// Waits for [`LOOK`] without a runtime.
fn pause() {
    let nanoseconds = i64::try_from(LOOK.0 * 1_000_000).unwrap_or(0);
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
pub(in super::super) struct Handled(());

impl Handled {
    pub(in super::super) fn new() -> Self {
        HANDLED.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        HANDLED.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From the first server on: a signal that ends dicta ends its servers before. On a thread of its own, so that it works
/// when the command's runtime is stuck or gone.
fn watch_signals() {
    WATCH.call_once(|| {
        // Without it servers still see their standard input closed.
        let _unwatched = std::thread::Builder::new()
            .name("mcp-reaper".to_owned())
            .spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_io()
                    .build();
                if let Ok(runtime) = runtime {
                    runtime.block_on(end_on_signal());
                }
            });
    });
}

#[expect(
    clippy::exit,
    reason = "it stands in for the signal's own effect, which listening to it took away"
)]
async fn end_on_signal() {
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
        if HANDLED.load(Ordering::SeqCst) == 0 {
            ENDING.store(true, Ordering::SeqCst);
            reap_all();
            std::process::exit(code);
        }
    }
}
