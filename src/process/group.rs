//! The process group of a program that serves requests, such as an MCP server.

use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};

use rustix::process::Signal;
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

use super::GroupId;
use super::reaper::{self, POLL_INTERVAL, TERMINATION_STEPS};
use crate::clock::{Clock as _, SystemClock, with_timeout};
use crate::model::Millis;

/// The time that a program gets to end by itself after its standard input is closed.
const STDIN_CLOSED_GRACE: Millis = Millis(500);

/// The end of a process. [`ProcessGroup::terminate`] fills it in.
#[derive(Debug, Default)]
pub struct ProcessExit {
    status: OnceLock<ExitStatus>,
    /// Cancelled when the process group has ended.
    pub ended: CancellationToken,
}

impl ProcessExit {
    /// The exit status, if the process ended by itself.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status.get().copied()
    }
}

/// A started program and its child processes. Dropping it ends them.
pub struct ProcessGroup {
    /// `None` once the group was terminated.
    child: Option<Child>,
    group: GroupId,
    exit: Arc<ProcessExit>,
    /// True in the copy that a dropped group hands to the runtime.
    was_dropped: bool,
}

impl ProcessGroup {
    /// Supervises a process that leads a group of its own. Returns `None` if the process has ended already.
    pub fn new(child: Child, exit: Arc<ProcessExit>) -> Option<Self> {
        // Registered before anything can fail, so that the group ends with dicta.
        let group = GroupId::from_leader(child.id()?)?;
        reaper::register(group);
        Some(Self {
            child: Some(child),
            group,
            exit,
            was_dropped: false,
        })
    }

    /// Ends the group after the caller has closed the standard input: waits, then sends SIGTERM, then SIGKILL.
    pub async fn terminate(&mut self) {
        let group = self.group;
        let Some(child) = &mut self.child else {
            return;
        };
        let clock = SystemClock::new();
        // A server ends by itself when its standard input closes; signals are for those that do not.
        if let Some(Ok(status)) = with_timeout(&clock, STDIN_CLOSED_GRACE, child.wait()).await {
            // The cell is empty: only this function sets it, and it takes `child` at its end.
            let _was_empty = self.exit.status.set(status);
        }
        for (signal, grace) in TERMINATION_STEPS {
            if !group.is_alive() {
                break;
            }
            group.send_signal(signal);
            let group_ended = async {
                while group.is_alive() {
                    // An ended process keeps its group alive until its parent reads the exit status.
                    let _status = child.try_wait();
                    clock.sleep(POLL_INTERVAL).await;
                }
            };
            let _timed_out = with_timeout(&clock, grace, group_ended).await;
        }
        self.child = None;
        reaper::unregister(group);
        self.exit.ended.cancel();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else {
            return;
        };
        // Ending the group takes time, and a destructor must not block the runtime.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if !self.was_dropped => {
                let mut copy = Self {
                    child: Some(child),
                    group: self.group,
                    exit: Arc::clone(&self.exit),
                    was_dropped: true,
                };
                runtime.spawn(async move { copy.terminate().await });
            }
            // A runtime that shuts down drops the spawned task instead of running it. The group stays registered, so
            // the reaper ends it when dicta ends.
            _ => self.group.send_signal(Signal::TERM),
        }
    }
}
