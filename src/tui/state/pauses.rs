//! Paused judge traces of live runs, and the breakpoints that a person can choose from.
//!
//! Pure. A trace counts as paused when its recording reports it; the thing to edit arrives in a message of its own.

use super::App;
use super::cells::{RowId, SlotId};
use super::runs::{RunTicket, TracePause};
use super::shown_cell::resolve_shown_cell;
use super::step_list::StepList;
use crate::event::{CellPhase, StepId, StepPart, find_call};
use crate::judge::Breakpoint;
use crate::model::{CallIx, CellIx, JudgeConfig, RunId, SUBMIT_VERDICT};

/// The breakpoints that the list always offers, with their meaning.
const OFFERED: &[&str] = &[
    "turn",
    "call",
    "answer",
    "rejected",
    "repaired",
    "verdict",
    "verdict:fail",
    "verdict:pass",
    "outcome:judge_error",
    "outcome:unparsed",
    "outcome:truncated",
    "outcome:timeout",
];

/// A paused trace: its run and its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PauseRef {
    pub(crate) ticket: RunTicket,
    pub(crate) cell: CellIx,
}

/// The text that a person edits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EditTarget {
    /// The thing at which a trace is paused.
    Pause(PauseRef),
    /// A step of a recorded trace, which a branch changes.
    Branch(Box<BranchEdit>),
}

impl EditTarget {
    /// Returns the label of the line.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Branch(edit) if edit.part == MODEL_PART => " branch with model: ",
            Self::Branch(_) | Self::Pause(_) => " edit: ",
        }
    }
}

/// The changed part of a branch with another model.
pub(crate) const MODEL_PART: &str = "model";

/// A change of a recorded step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BranchEdit {
    pub(crate) run: RunId,
    pub(crate) cell: CellIx,
    pub(crate) step: StepId,
    pub(crate) row: RowId,
    /// The name of the changed part, as in `dicta branch --set`, or `model`.
    pub(crate) part: &'static str,
    /// The recorded text.
    pub(crate) before: String,
    /// The judge that continues the trace; `None` for that of the recording.
    pub(crate) judge: Option<JudgeConfig>,
    /// True if the judge may cost money.
    pub(crate) costs: bool,
}

/// A breakpoint in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BreakpointOffer {
    pub(crate) breakpoint: Breakpoint,
    pub(crate) is_set: bool,
}

/// Explains in a few words when a trace pauses.
pub(crate) fn explain_breakpoint(breakpoint: &Breakpoint) -> &'static str {
    match breakpoint {
        Breakpoint::Turn => "before each model call",
        Breakpoint::Call {
            tool: None,
            text: None,
        } => "before each tool call",
        Breakpoint::Call { text: None, .. } => "before each call of this tool",
        Breakpoint::Call { .. } => "before calls with this text in their arguments",
        Breakpoint::Answer => "after each tool response",
        Breakpoint::Rejected => "after a rejected call",
        Breakpoint::Repaired => "before a call whose arguments dicta repaired",
        Breakpoint::Verdict { passed: None } => "after each verdict",
        Breakpoint::Verdict { passed: Some(true) } => "after a verdict that passes",
        Breakpoint::Verdict {
            passed: Some(false),
        } => "after a verdict that fails",
        Breakpoint::Outcome(_) => "at the end of a trace with this outcome",
        Breakpoint::In { .. } => "of these cells only",
    }
}

impl App {
    /// Returns the shown trace if it is paused, or if its last decision was to step.
    pub(crate) fn shown_pause(&self) -> Option<PauseRef> {
        // A replay shows pauses, but nothing waits there.
        if self.replay.is_some() {
            return None;
        }
        let shown = resolve_shown_cell(self)?;
        let (id, cell) = (shown.run?, shown.number);
        let mut live = self.live_session.runs.live();
        let (ticket, run) = live.find(|(_, run)| run.id.as_ref() == Some(id))?;
        let is_paused = matches!(shown.trace?.phase, CellPhase::Paused(_));
        // Between two steps the keys keep their meaning, so that a fast press runs no other command.
        (is_paused || run.stepping.contains(&cell)).then_some(PauseRef { ticket, cell })
    }

    /// Returns true if the trace screen shows a paused trace.
    pub(crate) fn shows_paused_trace(&self) -> bool {
        self.shows_trace_screen() && self.shown_pause().is_some()
    }

    /// Returns the thing at which a trace is paused, if it waits for a decision.
    pub(crate) fn find_pause(&self, at: PauseRef) -> Option<&TracePause> {
        let run = self.live_session.runs.by_ticket.get(&at.ticket)?;
        let pause = run.pauses.get(&at.cell)?;
        let phase = run.state.cells.get(at.cell.index())?.phase;
        // The recording of this stop may arrive after the message about it.
        (phase == CellPhase::Paused(pause.point)).then_some(pause)
    }

    /// Returns the paused traces of live runs, in the order of the rows.
    pub(crate) fn list_paused(&self) -> Vec<SlotId> {
        let runs = self.live_session.runs.live();
        let mut slots: Vec<SlotId> = runs
            .flat_map(|(_, run)| {
                let slot = |cell: &CellIx| run.cell_slots.get(cell.index()).copied().flatten();
                run.paused.iter().filter_map(slot)
            })
            .collect();
        slots.sort_unstable_by_key(|at| (at.row, at.slot));
        slots
    }

    /// Returns the paused trace after the focused one, or before it; `None` if no other trace is paused.
    pub(crate) fn next_paused(&self, forward: bool) -> Option<SlotId> {
        if self.replay.is_some() {
            return None;
        }
        let mut paused = self.list_paused();
        if !forward {
            paused.reverse();
        }
        let panes = &self.live_session.trace_panes;
        // On the row of a group, no trace is focused.
        let Some(row) = panes.row else {
            return paused.first().copied();
        };
        let here = (row, panes.slot);
        let follows = |at: &&SlotId| {
            let there: (RowId, u16) = (at.row, at.slot);
            if forward { there > here } else { there < here }
        };
        let next = paused.iter().find(follows).or(paused.first()).copied();
        next.filter(|at| (at.row, at.slot) != here)
    }

    /// Returns the breakpoints of the list: those of the selected call first, then the set ones, then the usual ones.
    pub(crate) fn list_breakpoints(&self) -> Vec<BreakpointOffer> {
        let mut all: Vec<Breakpoint> = Vec::new();
        let mut add = |breakpoint: Breakpoint| {
            if !all.contains(&breakpoint) {
                all.push(breakpoint);
            }
        };
        if let Some(tool) = self.selected_tool() {
            add(Breakpoint::Call {
                tool: Some(tool),
                text: None,
            });
        }
        let usual: Vec<Breakpoint> = OFFERED
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect();
        let own = self.breakpoints.iter().filter(|one| !usual.contains(one));
        own.cloned().for_each(&mut add);
        usual.into_iter().for_each(add);
        all.into_iter()
            .map(|breakpoint| BreakpointOffer {
                is_set: self.breakpoints.contains(&breakpoint),
                breakpoint,
            })
            .collect()
    }

    /// Returns the tool of the last call up to the selected step on the trace screen.
    fn selected_tool(&self) -> Option<String> {
        if !self.shows_trace_screen() {
            return None;
        }
        let step = self.last_call_step(StepPart::Call)?;
        let call = find_call(resolve_shown_cell(self)?.trace?, step)?;
        Some(call.name.clone())
    }

    /// Returns the part of the last tool call up to the selected step of the trace, without the call that submits the
    /// verdict.
    pub(crate) fn last_call_step(&self, part: impl Fn(CallIx) -> StepPart) -> Option<StepId> {
        let shown = resolve_shown_cell(self)?;
        let screen = &self.session().trace_screen;
        let list = StepList::new(screen, &shown);
        let selected = screen.find_selected(&list.steps)?;
        let before = list.steps.get(..=selected)?.iter().rev();
        before
            .filter_map(|step| match step.id.part {
                StepPart::Call(call) | StepPart::Response(call) => Some(StepId {
                    part: part(call),
                    ..step.id
                }),
                _ => None,
            })
            .find(|step| {
                let call = shown.trace.and_then(|trace| find_call(trace, *step));
                call.is_some_and(|call| call.name != SUBMIT_VERDICT)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offered_breakpoint_is_one() {
        for text in OFFERED {
            let breakpoint: Breakpoint = text.parse().expect(text);
            assert_eq!(breakpoint.to_string(), *text);
            assert!(!explain_breakpoint(&breakpoint).is_empty());
        }
    }
}
