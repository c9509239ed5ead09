//! The saves and runs that wait until the verdicts of past runs are known. Otherwise dicta would report decisions as
//! judged for the first time, and would miss their flips.

use super::label_edits::HeldReload;
use super::runs::RunTicket;
use crate::tui::effect::Effect;

/// The saves and runs that wait: see the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct PastVerdictWait {
    phase: WaitPhase,
    /// The newest reload, with the files that changed since the wait began.
    reload: Option<HeldReload>,
    /// The starts and the cancellations of runs, in their order.
    runs: Vec<Effect>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum WaitPhase {
    /// Nothing waits: the verdicts are known, or nothing has any.
    #[default]
    Over,
    /// dicta reads the recordings.
    Reading,
    /// The verdicts are read, and the rows get them.
    Filling,
    /// The rows have their verdicts, but not all rows are known. Runs wait no longer, because a new row gets its verdict
    /// at once. A save still waits, because it decides by the rows what it judges.
    Outlining,
}

impl PastVerdictWait {
    /// Begins the wait: the verdicts were ordered.
    pub(crate) fn begin(&mut self) {
        self.phase = WaitPhase::Reading;
    }

    /// Stores that the verdicts are read.
    pub(crate) fn end_reading(&mut self) {
        if self.phase == WaitPhase::Reading {
            self.phase = WaitPhase::Filling;
        }
    }

    /// Returns true while rows may lack the verdict of a past run.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self.phase, WaitPhase::Reading | WaitPhase::Filling)
    }

    /// Returns true while rows, or their verdicts of past runs, may be missing.
    pub(crate) fn is_waiting(&self) -> bool {
        self.phase != WaitPhase::Over
    }

    /// Returns the reload if it can be applied now. Otherwise it waits.
    pub(crate) fn admit_reload(&mut self, reload: HeldReload) -> Option<HeldReload> {
        if self.phase == WaitPhase::Over {
            return Some(reload);
        }
        self.reload = Some(reload.merge_earlier(self.reload.take()));
        None
    }

    /// Removes the starts of runs from the effects, and the cancellations of runs that wait.
    pub(crate) fn hold_runs(&mut self, effects: &mut Vec<Effect>) {
        if !self.is_reading() {
            return;
        }
        let mut waiting: Vec<RunTicket> = self.runs.iter().filter_map(started_ticket).collect();
        let held = effects.extract_if(.., |effect| match effect {
            Effect::StartRun(order) => {
                waiting.push(order.ticket);
                true
            }
            Effect::CancelRun(ticket) => waiting.contains(ticket),
            _ => false,
        });
        self.runs.extend(held);
    }

    /// Goes on to the next phase if it can begin. `rows_filled`: no row waits for its verdict. `rows_known`: the outline
    /// has ended. Returns the runs that need not wait any longer.
    pub(crate) fn advance(&mut self, rows_filled: bool, rows_known: bool) -> Vec<Effect> {
        if self.phase == WaitPhase::Filling && rows_filled {
            self.phase = WaitPhase::Outlining;
        }
        if self.phase == WaitPhase::Outlining && rows_known {
            self.phase = WaitPhase::Over;
        }
        if self.is_reading() {
            Vec::new()
        } else {
            std::mem::take(&mut self.runs)
        }
    }

    /// Returns the reload that waited, once the wait is over.
    pub(crate) fn release_reload(&mut self) -> Option<HeldReload> {
        self.reload.take_if(|_| self.phase == WaitPhase::Over)
    }
}

fn started_ticket(effect: &Effect) -> Option<RunTicket> {
    match effect {
        Effect::StartRun(order) => Some(order.ticket),
        _ => None,
    }
}
