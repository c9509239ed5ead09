//! The paused judge traces of live runs: they wait here until the app decides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::UnboundedReceiver;

use super::Runtime;
use crate::judge::{BreakpointGate, BreakpointSet, PauseDecision, PausedTrace};
use crate::model::CellIx;
use crate::tui::msg::Msg;
use crate::tui::state::runs::RunTicket;

/// The paused traces of all runs.
type WaitingTraces = Arc<Mutex<HashMap<(RunTicket, CellIx), PausedTrace>>>;

/// The breakpoints of all runs, and the traces that wait at them.
#[derive(Default)]
pub(super) struct Pauses {
    breakpoints: Arc<BreakpointSet>,
    waiting: WaitingTraces,
}

/// The pauses of one run.
pub(super) struct RunPauses {
    ticket: RunTicket,
    paused: UnboundedReceiver<PausedTrace>,
    waiting: WaitingTraces,
}

impl Pauses {
    /// Returns the gate of a run and the receiver of its pauses.
    pub(super) fn open_gate(&self, ticket: RunTicket) -> (Arc<BreakpointGate>, RunPauses) {
        let (gate, paused) = BreakpointGate::watching(Arc::clone(&self.breakpoints));
        let receiver = RunPauses {
            ticket,
            paused,
            waiting: Arc::clone(&self.waiting),
        };
        (Arc::new(gate), receiver)
    }
}

impl RunPauses {
    /// Waits for the next pause and returns the message about it; `None` after the end of the run.
    pub(super) async fn next(&mut self) -> Option<Msg> {
        let trace = self.paused.recv().await?;
        let msg = Msg::TracePaused {
            ticket: self.ticket,
            cell: trace.cell,
            name: trace.name.clone().map(Box::new),
            point: trace.point,
            at: Box::new(trace.at.clone()),
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert((self.ticket, trace.cell), trace);
        Some(msg)
    }
}

impl Drop for RunPauses {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|(ticket, _), _| *ticket != self.ticket);
    }
}

impl Runtime {
    pub(super) fn set_breakpoints(&self, breakpoints: Vec<crate::judge::Breakpoint>) {
        self.pauses.breakpoints.replace(breakpoints);
    }

    pub(super) fn decide_pause(&self, ticket: RunTicket, cell: CellIx, decision: PauseDecision) {
        let waiting = self.pauses.waiting.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        // A trace of a cancelled run no longer waits.
        if let Some(trace) = waiting.remove(&(ticket, cell)) {
            trace.decide(decision);
        }
    }
}
